//! 3GPP tables: transport block sizes, MCS and CQI of LTE and NR; bands, resource blocks and timing of NR; delay profiles
//! of radio channels.

pub mod delay;
pub mod lte;
pub mod nr;

/// Modulation of a resource element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modulation {
    /// QPSK: 2 bits per resource element.
    Qpsk,
    /// 16QAM: 4 bits per resource element.
    Qam16,
    /// 64QAM: 6 bits per resource element.
    Qam64,
    /// 256QAM: 8 bits per resource element.
    Qam256,
}

impl Modulation {
    /// Bits per resource element: the modulation order Q_m.
    pub const fn bits_per_symbol(self) -> u32 {
        match self {
            Modulation::Qpsk => 2,
            Modulation::Qam16 => 4,
            Modulation::Qam64 => 6,
            Modulation::Qam256 => 8,
        }
    }
}

/// Code rate: information bits per coded bit. The rate is stored exactly, as a multiple of 1/2048: the tables contain
/// multiples of 1/1024, except two rows with an odd multiple of 1/2048.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeRate(u16);

impl CodeRate {
    /// The code rate `numerator` / 1024.
    pub const fn from_1024ths(numerator: u16) -> CodeRate {
        CodeRate(2 * numerator)
    }

    /// The code rate `numerator` / 2048.
    pub const fn from_2048ths(numerator: u16) -> CodeRate {
        CodeRate(numerator)
    }

    /// The numerator of the code rate over the denominator 2048.
    pub const fn as_2048ths(self) -> u16 {
        self.0
    }

    /// The code rate as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 2048.0
    }
}

/// One row of a CQI table: the modulation and code rate that a device reports as decodable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cqi {
    /// Modulation.
    pub modulation: Modulation,
    /// Code rate.
    pub rate: CodeRate,
}

impl Cqi {
    /// Information bits per resource element.
    pub fn efficiency(self) -> f64 {
        f64::from(self.modulation.bits_per_symbol()) * self.rate.as_f64()
    }
}

/// A row of a CQI table, written as the specification prints it: Q_m and code rate × 1024.
const fn cqi_row(bits_per_symbol: u32, rate_1024ths: u16) -> Cqi {
    Cqi { modulation: modulation(bits_per_symbol), rate: CodeRate::from_1024ths(rate_1024ths) }
}

/// The modulation of order Q_m.
const fn modulation(bits_per_symbol: u32) -> Modulation {
    match bits_per_symbol {
        2 => Modulation::Qpsk,
        4 => Modulation::Qam16,
        6 => Modulation::Qam64,
        8 => Modulation::Qam256,
        _ => panic!("no modulation of this order in the tables"),
    }
}

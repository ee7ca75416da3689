//! Parameters of a cell that determine its control channels.

use crate::numerology::{Bandwidth, CyclicPrefix};

/// Parameters that determine the layout of a cell's control channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Physical cell identity, 0…503.
    pub pci: u16,
    /// Downlink bandwidth.
    pub bandwidth: Bandwidth,
    /// Cell-specific antenna ports.
    pub ports: Ports,
    /// Cyclic prefix of the downlink.
    pub cp: CyclicPrefix,
    /// Number of symbols over which the PHICH is spread.
    pub phich_duration: PhichDuration,
    /// Number of PHICH groups.
    pub phich_resource: PhichResource,
}

impl Cell {
    /// Number of cell identities: 168 groups of 3.
    ///
    /// Source: TS 36.211 §6.11
    pub const IDENTITIES: u16 = 504;

    /// Identity within the group, N_ID^(2), 0…2. The PSS carries it.
    ///
    /// Source: TS 36.211 §6.11
    pub const fn n_id_2(&self) -> u16 {
        self.pci % 3
    }

    /// Group of identities, N_ID^(1), 0…167. The SSS carries it.
    ///
    /// Source: TS 36.211 §6.11
    pub const fn n_id_1(&self) -> u16 {
        self.pci / 3
    }

    /// Frequency shift of the reference signals (subcarriers).
    ///
    /// Source: TS 36.211 §6.10.1.2
    pub const fn v_shift(&self) -> usize {
        self.pci as usize % 6
    }

    /// Number of OFDM symbols in the control region at a CFI.
    ///
    /// Source: TS 36.212 §5.3.4
    pub const fn control_symbols(&self, cfi: u8) -> usize {
        cfi as usize + if self.bandwidth.prbs() <= 10 { 1 } else { 0 }
    }

    /// Minimum CFI: an extended PHICH needs three control symbols.
    ///
    /// Source: TS 36.211 §6.7, TS 36.213 §9.1.3
    pub const fn least_cfi(&self) -> u8 {
        match (self.phich_duration, self.bandwidth.prbs() <= 10) {
            (PhichDuration::Normal, _) => 1,
            (PhichDuration::Extended, true) => 2,
            (PhichDuration::Extended, false) => 3,
        }
    }

    /// Number of PHICH groups in a subframe (FDD).
    ///
    /// Source: TS 36.211 §6.9
    pub const fn phich_groups(&self) -> usize {
        let groups = (self.phich_resource.sixths() * self.bandwidth.prbs() as usize).div_ceil(6 * 8);
        match self.cp {
            CyclicPrefix::Normal => groups,
            CyclicPrefix::Extended => 2 * groups,
        }
    }
}

/// Cell-specific antenna ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ports {
    /// Port 0.
    One,
    /// Ports 0 and 1.
    Two,
    /// Ports 0 to 3.
    Four,
}

impl Ports {
    /// All possible numbers of ports.
    pub const ALL: [Ports; 3] = [Ports::One, Ports::Two, Ports::Four];

    /// Number of ports.
    pub const fn count(self) -> usize {
        match self {
            Ports::One => 1,
            Ports::Two => 2,
            Ports::Four => 4,
        }
    }

    /// The ports of a `count` of 1, 2 or 4; `None` otherwise.
    pub const fn from_count(count: usize) -> Option<Ports> {
        match count {
            1 => Some(Ports::One),
            2 => Some(Ports::Two),
            4 => Some(Ports::Four),
            _ => None,
        }
    }
}

/// Number of symbols over which the PHICH is spread.
///
/// Source: TS 36.211 §6.9.3 Table 6.9.3-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhichDuration {
    /// The first symbol only.
    Normal,
    /// The first three symbols.
    Extended,
}

/// Number of PHICH groups, given by the factor N_g.
///
/// Source: TS 36.331 §6.3.2 PHICH-Config
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhichResource {
    /// N_g = 1/6.
    Sixth,
    /// N_g = 1/2.
    Half,
    /// N_g = 1.
    One,
    /// N_g = 2.
    Two,
}

impl PhichResource {
    /// All values, in the order of their code in the MIB.
    pub const ALL: [PhichResource; 4] =
        [PhichResource::Sixth, PhichResource::Half, PhichResource::One, PhichResource::Two];

    /// Text form: `1/6`, `1/2`, `1` or `2`.
    pub const fn name(self) -> &'static str {
        match self {
            PhichResource::Sixth => "1/6",
            PhichResource::Half => "1/2",
            PhichResource::One => "1",
            PhichResource::Two => "2",
        }
    }

    /// N_g in sixths.
    pub const fn sixths(self) -> usize {
        match self {
            PhichResource::Sixth => 1,
            PhichResource::Half => 3,
            PhichResource::One => 6,
            PhichResource::Two => 12,
        }
    }
}

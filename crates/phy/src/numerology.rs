//! Numerology: bandwidths, cyclic prefixes, FFT sizes and symbol timing.

/// Number of subcarriers in a PRB.
///
/// Source: TS 36.211 §6.2.3 Table 6.2.3-1
pub const SUBCARRIERS_PER_PRB: usize = 12;

/// Subcarrier spacing (Hz).
///
/// Source: TS 36.211 §6.12
pub const SUBCARRIER_HZ: u32 = 15_000;

/// Downlink bandwidth of a carrier: 6, 15, 25, 50, 75 or 100 PRB pairs.
///
/// Source: TS 36.331 §6.2.2 MasterInformationBlock
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(u16);

impl Bandwidth {
    /// All bandwidths, in the order of their code in the MIB.
    pub const ALL: [Bandwidth; 6] =
        [Bandwidth(6), Bandwidth(15), Bandwidth(25), Bandwidth(50), Bandwidth(75), Bandwidth(100)];

    /// Bandwidth of `prbs` PRB pairs; `None` if LTE has no such bandwidth.
    pub fn from_prbs(prbs: u16) -> Option<Bandwidth> {
        Bandwidth::ALL.into_iter().find(|bandwidth| bandwidth.0 == prbs)
    }

    /// Number of PRB pairs.
    pub const fn prbs(self) -> u16 {
        self.0
    }

    /// Number of subcarriers, without the unused subcarrier at the centre.
    pub const fn subcarriers(self) -> usize {
        self.0 as usize * SUBCARRIERS_PER_PRB
    }

    /// FFT size at the nominal sample rate: 128, 256, 512, 1024, 1536 or 2048.
    ///
    /// Source: TS 36.104 Annex E.5.1
    pub const fn nominal_fft_size(self) -> usize {
        match self.0 {
            0..=6 => 128,
            7..=15 => 256,
            16..=25 => 512,
            26..=50 => 1024,
            51..=75 => 1536,
            _ => 2048,
        }
    }
}

/// Cyclic prefix: length of the guard interval before each symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CyclicPrefix {
    /// About 4.7 µs; seven symbols per slot.
    Normal,
    /// About 16.7 µs; six symbols per slot.
    Extended,
}

impl CyclicPrefix {
    /// Number of OFDM symbols in a slot.
    ///
    /// Source: TS 36.211 §6.2.3 Table 6.2.3-1
    pub const fn symbols_per_slot(self) -> usize {
        match self {
            CyclicPrefix::Normal => 7,
            CyclicPrefix::Extended => 6,
        }
    }

    /// Number of OFDM symbols in a subframe.
    pub const fn symbols_per_subframe(self) -> usize {
        2 * self.symbols_per_slot()
    }

    /// N_CP in the seeds of the reference signals.
    ///
    /// Source: TS 36.211 §6.10.1.1
    pub const fn n_cp(self) -> u32 {
        match self {
            CyclicPrefix::Normal => 1,
            CyclicPrefix::Extended => 0,
        }
    }
}

/// Sampling parameters of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Numerology {
    bandwidth: Bandwidth,
    cp: CyclicPrefix,
    fft_size: usize,
}

impl Numerology {
    /// Numerology with an FFT of `fft_size` points. `None` unless the size is a multiple of 128, at most 4096, and larger
    /// than the number of subcarriers. Then every cyclic prefix is a whole number of samples.
    pub fn new(bandwidth: Bandwidth, cp: CyclicPrefix, fft_size: usize) -> Option<Numerology> {
        let fits = fft_size.is_multiple_of(128) && fft_size <= 4096 && fft_size > bandwidth.subcarriers();
        fits.then_some(Numerology { bandwidth, cp, fft_size })
    }

    /// Numerology at the nominal sample rate.
    pub const fn nominal(bandwidth: Bandwidth, cp: CyclicPrefix) -> Numerology {
        Numerology { bandwidth, cp, fft_size: bandwidth.nominal_fft_size() }
    }

    /// Downlink bandwidth.
    pub const fn bandwidth(self) -> Bandwidth {
        self.bandwidth
    }

    /// Cyclic prefix.
    pub const fn cp(self) -> CyclicPrefix {
        self.cp
    }

    /// Number of FFT points.
    pub const fn fft_size(self) -> usize {
        self.fft_size
    }

    /// Sample rate (Hz).
    pub const fn sample_rate_hz(self) -> u32 {
        self.fft_size as u32 * SUBCARRIER_HZ
    }

    /// Length of the cyclic prefix of symbol `symbol` of a slot (samples).
    ///
    /// Source: TS 36.211 §6.12 Table 6.12-1
    pub const fn prefix_samples(self, symbol: usize) -> usize {
        let of_2048 = match self.cp {
            CyclicPrefix::Normal if symbol == 0 => 160,
            CyclicPrefix::Normal => 144,
            CyclicPrefix::Extended => 512,
        };
        of_2048 * self.fft_size / 2048
    }

    /// Length of a slot (samples).
    pub const fn slot_samples(self) -> usize {
        self.fft_size * 15 / 2
    }

    /// Length of a subframe (samples).
    pub const fn subframe_samples(self) -> usize {
        self.fft_size * 15
    }

    /// First sample after the cyclic prefix of symbol `symbol` of a subframe, relative to the start of the subframe.
    pub const fn symbol_start(self, symbol: usize) -> usize {
        let per_slot = self.cp.symbols_per_slot();
        let (slot, symbol) = (symbol / per_slot, symbol % per_slot);
        let others = (self.fft_size + self.prefix_samples(1)) * symbol;
        slot * self.slot_samples() + self.prefix_samples(0) + others
    }

    /// FFT bin of subcarrier `k`. The subcarriers are centred on bin 0, which is not used.
    ///
    /// Source: TS 36.211 §6.12
    pub const fn bin(self, k: usize) -> usize {
        let half = self.bandwidth.subcarriers() / 2;
        if k < half { self.fft_size - half + k } else { k - half + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_fill_a_subframe_without_gaps() {
        for bandwidth in Bandwidth::ALL {
            for cp in [CyclicPrefix::Normal, CyclicPrefix::Extended] {
                for fft_size in (128..=2048).step_by(128) {
                    let Some(numerology) = Numerology::new(bandwidth, cp, fft_size) else {
                        assert!(fft_size <= bandwidth.subcarriers());
                        continue;
                    };
                    let mut at = 0;
                    for symbol in 0..cp.symbols_per_subframe() {
                        at += numerology.prefix_samples(symbol % cp.symbols_per_slot());
                        assert_eq!(numerology.symbol_start(symbol), at, "{numerology:?} symbol {symbol}");
                        at += fft_size;
                    }
                    assert_eq!(at, numerology.subframe_samples());
                }
            }
        }
    }

    #[test]
    fn the_centre_carries_nothing_and_no_bin_twice() {
        let numerology = Numerology::nominal(Bandwidth(6), CyclicPrefix::Normal);
        let bins: std::collections::BTreeSet<_> = (0..72).map(|k| numerology.bin(k)).collect();
        assert_eq!(bins.len(), 72);
        assert!(!bins.contains(&0));
        assert_eq!((numerology.bin(35), numerology.bin(36)), (127, 1));
        assert_eq!(numerology.sample_rate_hz(), 1_920_000);
    }
}

//! Pseudo-random (Gold) sequences of LTE, and their seeds for each channel.

/// Endless pseudo-random bits from a seed of 31 bits.
///
/// Source: TS 36.211 §7.2
#[derive(Clone, Debug)]
pub struct Gold {
    /// Bits n … n+30 of the first m-sequence, bit n lowest.
    x1: u32,
    /// Bits n … n+30 of the second m-sequence, which the seed initialises.
    x2: u32,
    /// Remaining bits of the last block, lowest first.
    word: u32,
    left: u32,
}

/// Number of discarded steps before the first bit.
///
/// Source: TS 36.211 §7.2
const N_C: u32 = 1600;

/// Maximum number of steps in one update of a 31-bit register, because the highest tap of the register is bit 3.
const STRIDE: u32 = 28;

impl Gold {
    /// The sequence of seed `c_init`; only its lowest 31 bits are used.
    pub const fn new(c_init: u32) -> Gold {
        let mut gold = Gold { x1: 1, x2: c_init & 0x7FFF_FFFF, word: 0, left: 0 };
        let mut steps = 0;
        while steps + STRIDE <= N_C {
            gold.step(STRIDE);
            steps += STRIDE;
        }
        gold.step(N_C - steps);
        gold
    }

    /// Advances both registers by `steps`, at most [`STRIDE`].
    const fn step(&mut self, steps: u32) {
        let mask = (1 << steps) - 1;
        let new1 = (self.x1 ^ self.x1 >> 3) & mask;
        let new2 = (self.x2 ^ self.x2 >> 1 ^ self.x2 >> 2 ^ self.x2 >> 3) & mask;
        self.x1 = self.x1 >> steps | new1 << (31 - steps);
        self.x2 = self.x2 >> steps | new2 << (31 - steps);
    }

    /// The next bit, 0 or 1.
    #[inline]
    pub const fn next_bit(&mut self) -> u8 {
        if self.left == 0 {
            self.word = self.x1 ^ self.x2;
            self.left = STRIDE;
            self.step(STRIDE);
        }
        let bit = self.word & 1;
        self.word >>= 1;
        self.left -= 1;
        bit as u8
    }

    /// The next bit as a sign: +1 for 0, −1 for 1.
    #[inline]
    pub const fn next_sign(&mut self) -> f32 {
        1.0 - 2.0 * self.next_bit() as f32
    }
}

impl Iterator for Gold {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        Some(self.next_bit())
    }
}

/// Seed of the cell-specific reference signals of symbol `symbol` of slot `slot` (0…19).
///
/// Source: TS 36.211 §6.10.1.1
pub const fn crs_seed(pci: u16, slot: usize, symbol: usize, n_cp: u32) -> u32 {
    let pci = pci as u32;
    (7 * (slot as u32 + 1) + symbol as u32 + 1) * (2 * pci + 1) * (1 << 10) + 2 * pci + n_cp
}

/// Seed of the PBCH. The sequence restarts in every fourth frame.
///
/// Source: TS 36.211 §6.6.1
pub const fn pbch_seed(pci: u16) -> u32 {
    pci as u32
}

/// Seed of the PCFICH in a subframe (0…9).
///
/// Source: TS 36.211 §6.7.1
pub const fn pcfich_seed(pci: u16, subframe: usize) -> u32 {
    (subframe as u32 + 1) * (2 * pci as u32 + 1) * (1 << 9) + pci as u32
}

/// Seed of the PHICHs in a subframe (0…9).
///
/// Source: TS 36.211 §6.9.1
pub const fn phich_seed(pci: u16, subframe: usize) -> u32 {
    pcfich_seed(pci, subframe)
}

/// Seed of the PDCCHs in a subframe (0…9).
///
/// Source: TS 36.211 §6.8.2
pub const fn pdcch_seed(pci: u16, subframe: usize) -> u32 {
    subframe as u32 * (1 << 9) + pci as u32
}

/// Seed of the first codeword on the PDSCH of a user in a subframe (0…9).
///
/// Source: TS 36.211 §6.3.1
pub const fn pdsch_seed(pci: u16, subframe: usize, rnti: u16) -> u32 {
    ((rnti as u32) << 14) + subframe as u32 * (1 << 9) + pci as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference generator: the recurrences as in the specification, one step at a time.
    fn by_the_book(c_init: u32, len: usize) -> Vec<u8> {
        let total = N_C as usize + len + 31;
        let mut x1 = vec![0u8; total];
        let mut x2 = vec![0u8; total];
        x1[0] = 1;
        for (i, bit) in x2.iter_mut().take(31).enumerate() {
            *bit = (c_init >> i & 1) as u8;
        }
        for n in 0..total - 31 {
            x1[n + 31] = x1[n + 3] ^ x1[n];
            x2[n + 31] = x2[n + 3] ^ x2[n + 2] ^ x2[n + 1] ^ x2[n];
        }
        (0..len).map(|n| x1[n + N_C as usize] ^ x2[n + N_C as usize]).collect()
    }

    #[test]
    fn strides_give_the_bits_of_the_recurrences() {
        for c_init in [0, 1, 0x7FFF_FFFF, crs_seed(503, 19, 6, 1), pdcch_seed(77, 5)] {
            let bits: Vec<u8> = Gold::new(c_init).take(500).collect();
            assert_eq!(bits, by_the_book(c_init, 500), "seed {c_init:#x}");
        }
    }

    #[test]
    fn every_seed_fits_the_register() {
        for pci in [0, 503] {
            assert!(crs_seed(pci, 19, 6, 1) < 1 << 31);
            assert!(pcfich_seed(pci, 9) < 1 << 31);
            assert!(pdsch_seed(pci, 9, 0xFFFF) < 1 << 31);
        }
    }
}

//! Converts physical capacity to goodput: subtracts HARQ retransmissions and radio headers.
//!
//! ```text
//! Cp = Ct + Ct·(1 − (1 − p)^L) + γ·Cp        so        Ct = Cp · (1 − γ) / (1 + e(L)),  e(L) = 1 − (1 − p)^L
//! ```
//!
//! Source: PBE-CC §4.2.1 Eq. 5

/// γ: fraction of the physical capacity used by protocol headers.
///
/// Source: PBE-CC §4.2.1 (6.8 %)
pub const OVERHEAD: f64 = 0.068;

/// Probability p that a bit of a transport block is wrong, at and below [`SINR_LOW_DB`].
///
/// Source: PBE-CC §4.2.1; PBE-CC Fig. 6b (5·10⁻⁶, 3·10⁻⁶, 1·10⁻⁶)
const BIT_ERROR_HIGH: f64 = 5e-6;
/// Probability p that a bit of a transport block is wrong, at and above [`SINR_HIGH_DB`].
///
/// Source: PBE-CC §4.2.1
const BIT_ERROR_LOW: f64 = 1e-6;
/// Chosen: the SINR (dB) up to which p has its maximum. From here to [`SINR_HIGH_DB`], log p falls linearly. The paper
/// estimates p from the SINR without giving a formula. Its three values fit this line: 3·10⁻⁶ is then at 8 dB.
const SINR_LOW_DB: f64 = 0.0;
/// The SINR (dB) from which on p has its minimum; see [`SINR_LOW_DB`].
const SINR_HIGH_DB: f64 = 25.0;

/// Maximum error rate of a transport block of NR.
///
/// Source: TS 38.214 §5.2.2.1 (a device reports the CQI at which a tenth of the blocks fail)
///
/// Differs: the paper's p fits the blocks of LTE with at most 75,376 bits per codeword. A codeword of NR carries up to
/// four layers and has up to 1.2 million bits, for which the smallest p gives an error rate of 0.7. But the base
/// station adapts the rate to the same error rate at every size, and retransmits only the code block groups that failed.
/// With L = Ct, as in the paper's text, the model has no limit.
pub const MAX_NR_BLOCK_ERROR: f64 = 0.1;

/// Number of levels of p from [`BIT_ERROR_HIGH`] to [`BIT_ERROR_LOW`]. The rounding error, half a level, is 5 %.
const LEVELS: usize = 17;
/// Number of steps in a table over transport block sizes. `STEP_BITS` is the length of a step in bits. The last entry
/// corresponds to 1 Gbit/s.
const STEPS: usize = 256;
const STEP_BITS: f64 = 4096.0;

/// The meaning of L in Eq. 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockSize {
    /// The transport block on the air.
    ///
    /// Differs: with L = Ct, Eq. 5 computes the errors of a block that is smaller than the block on the air. In
    /// addition, the sum over several carriers is not the size of a block on any of them.
    #[default]
    OnAir,
    /// L = Ct·10⁻³ with Ct in bit/s: the capacity of one subframe, which Eq. 5 then defines implicitly.
    ///
    /// Source: PBE-CC §4.2.1
    Capacity,
}

/// Eq. 5 as look-up tables, one per level of p. A table is built when it is first needed.
#[derive(Clone, Debug)]
pub struct Translation {
    block: BlockSize,
    overhead: f64,
    tables: Vec<Option<Box<[f64]>>>,
}

/// The coding of a transport block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// Turbo codes of LTE.
    #[default]
    Lte,
    /// LDPC codes of NR, whose error rate has the maximum [`MAX_NR_BLOCK_ERROR`].
    Nr,
}

impl Translation {
    /// A translation with protocol overhead γ.
    pub fn new(block: BlockSize, overhead: f64) -> Translation {
        Translation { block, overhead, tables: vec![None; LEVELS] }
    }

    /// The error rate that Eq. 5 expects for a block of `block_bits` bits.
    ///
    /// Source: PBE-CC §4.2.1
    pub fn block_error(&self, block_bits: f64, sinr_db: Option<f64>) -> f64 {
        block_error(bit_error(level(sinr_db)), block_bits)
    }

    /// As [`Translation::block_error`], for a block with the coding `coding`.
    pub fn coded_block_error(&self, block_bits: f64, sinr_db: Option<f64>, coding: Coding) -> f64 {
        let error = self.block_error(block_bits, sinr_db);
        match coding {
            Coding::Lte => error,
            Coding::Nr => error.min(MAX_NR_BLOCK_ERROR),
        }
    }

    /// As [`Translation::goodput`], for a block with the coding `coding`.
    pub fn coded_goodput(
        &mut self,
        capacity_bits: f64,
        block_bits: f64,
        sinr_db: Option<f64>,
        coding: Coding,
    ) -> f64 {
        let goodput = self.goodput(capacity_bits, block_bits, sinr_db);
        match (coding, self.block) {
            (Coding::Nr, BlockSize::OnAir) => {
                goodput.max(capacity_bits * (1.0 - self.overhead) / (1.0 + MAX_NR_BLOCK_ERROR))
            }
            _ => goodput,
        }
    }

    /// Converts Cp (`capacity_bits`) to Ct, both in bits per subframe. `block_bits` is the size of a transport block on
    /// the air.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 5
    pub fn goodput(&mut self, capacity_bits: f64, block_bits: f64, sinr_db: Option<f64>) -> f64 {
        let bits = match self.block {
            BlockSize::OnAir => block_bits,
            BlockSize::Capacity => capacity_bits,
        };
        let level = level(sinr_db);
        let (block, overhead) = (self.block, self.overhead);
        let table = self.tables[level].get_or_insert_with(|| build(block, overhead, bit_error(level)));
        let at = (bits / STEP_BITS).clamp(0.0, STEPS as f64);
        let index = (at as usize).min(STEPS - 1);
        let share = table[index] + (table[index + 1] - table[index]) * (at - index as f64);
        capacity_bits * share
    }
}

/// Builds the table of Ct/Cp for block sizes (or capacities) in steps of `STEP_BITS`.
fn build(block: BlockSize, overhead: f64, bit_error: f64) -> Box<[f64]> {
    (0..=STEPS)
        .map(|step| {
            let bits = step as f64 * STEP_BITS;
            match block {
                BlockSize::OnAir => (1.0 - overhead) / (1.0 + block_error(bit_error, bits)),
                BlockSize::Capacity => implicit_share(bits, overhead, bit_error),
            }
        })
        .collect()
}

/// Ct/Cp if L is Ct itself. The value is found by bisection, because Ct·(1 + e(Ct)) rises with Ct.
fn implicit_share(capacity_bits: f64, overhead: f64, bit_error: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0 - overhead);
    for _ in 0..40 {
        let share = 0.5 * (low + high);
        let taken = share * (1.0 + block_error(bit_error, share * capacity_bits));
        if taken < 1.0 - overhead {
            low = share;
        } else {
            high = share;
        }
    }
    0.5 * (low + high)
}

/// Probability that a transport block of `bits` bits is wrong.
///
/// Source: PBE-CC §4.2.1
pub fn block_error(bit_error: f64, bits: f64) -> f64 {
    -libm::expm1(bits * libm::log1p(-bit_error))
}

/// The level of p for a SINR. Without SINR, level 0: the highest bit error rate.
fn level(sinr_db: Option<f64>) -> usize {
    let Some(sinr_db) = sinr_db else { return 0 };
    let quality = ((sinr_db - SINR_LOW_DB) / (SINR_HIGH_DB - SINR_LOW_DB)).clamp(0.0, 1.0);
    libm::round(quality * (LEVELS - 1) as f64) as usize
}

fn bit_error(level: usize) -> f64 {
    BIT_ERROR_HIGH * libm::pow(BIT_ERROR_LOW / BIT_ERROR_HIGH, level as f64 / (LEVELS - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of 100 PRBs with 950 bits each.
    const CAPACITY: f64 = 95_000.0;

    #[test]
    fn the_ends_of_p_are_those_of_the_paper() {
        assert_eq!(bit_error(level(Some(-5.0))), 5e-6);
        assert!((bit_error(level(Some(30.0))) - 1e-6).abs() < 1e-15);
        assert!(
            (bit_error(level(Some(8.0))) - 3e-6).abs() < 2e-7,
            "the middle curve of Fig. 6b lies between the two ends"
        );
        assert_eq!(level(None), 0);
    }

    #[test]
    fn eq_5_holds_for_what_the_table_gives() {
        for sinr_db in [0.0, 8.0, 25.0] {
            let p = bit_error(level(Some(sinr_db)));
            let ct =
                Translation::new(BlockSize::Capacity, OVERHEAD).goodput(CAPACITY, f64::NAN, Some(sinr_db));
            let cp = ct + ct * block_error(p, ct) + OVERHEAD * CAPACITY;
            assert!((cp / CAPACITY - 1.0).abs() < 1e-4, "L = Ct: {cp} at {sinr_db} dB");
            let ct = Translation::new(BlockSize::OnAir, OVERHEAD).goodput(CAPACITY, CAPACITY, Some(sinr_db));
            let cp = ct + ct * block_error(p, CAPACITY) + OVERHEAD * CAPACITY;
            assert!((cp / CAPACITY - 1.0).abs() < 1e-4, "L on the air: {cp} at {sinr_db} dB");
        }
    }

    #[test]
    fn a_block_on_the_air_is_larger_than_its_goodput_and_so_fails_more_often() {
        let on_air = Translation::new(BlockSize::OnAir, OVERHEAD).goodput(CAPACITY, CAPACITY, Some(8.0));
        let text = Translation::new(BlockSize::Capacity, OVERHEAD).goodput(CAPACITY, CAPACITY, Some(8.0));
        assert!(on_air < text && on_air > 0.95 * text, "{on_air} {text}");
    }

    #[test]
    fn a_block_of_nr_fails_at_most_once_in_ten() {
        const BLOCK: f64 = 1_179_864.0;
        let mut table = Translation::new(BlockSize::OnAir, OVERHEAD);
        let share = |table: &mut Translation, bits, coding| {
            table.coded_goodput(bits, bits, Some(25.0), coding) / (bits * (1.0 - OVERHEAD))
        };
        let lte = share(&mut table, BLOCK, Coding::Lte);
        assert!((1.0 / lte - 1.65).abs() < 0.05, "two blocks of three fail: {lte}");
        assert!((share(&mut table, BLOCK, Coding::Nr) - 1.0 / 1.1).abs() < 1e-12);
        assert_eq!(table.coded_block_error(BLOCK, Some(25.0), Coding::Nr), 0.1);
        let small = CAPACITY / 2.0;
        assert_eq!(share(&mut table, small, Coding::Nr), share(&mut table, small, Coding::Lte), "4.6 % fail");
        assert!(table.coded_block_error(BLOCK, Some(25.0), Coding::Lte) > 0.69);
        let mut text = Translation::new(BlockSize::Capacity, OVERHEAD);
        assert_eq!(share(&mut text, BLOCK, Coding::Nr), share(&mut text, BLOCK, Coding::Lte), "L = Ct");
    }

    #[test]
    fn more_capacity_is_never_less_goodput() {
        let mut table = Translation::new(BlockSize::Capacity, OVERHEAD);
        let goodputs: Vec<f64> =
            (0..600).map(|k| table.goodput(f64::from(k) * 2_000.0, 0.0, Some(3.0))).collect();
        assert!(goodputs.windows(2).all(|pair| pair[1] > pair[0]));
        assert_eq!(goodputs[0], 0.0);
    }
}

//! Positions of SS blocks (synchronisation signals and PBCH) in a half frame.

use super::spectrum::{Duplex, FrequencyRange, SubcarrierSpacing};

/// Pattern of candidate SS blocks in a half frame of 5 ms. An SS block has four symbols.
///
/// Source: TS 38.213 §4.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SsBlockCase {
    /// 15 kHz.
    A,
    /// 30 kHz, for bands that share the spectrum with LTE.
    B,
    /// 30 kHz.
    C,
    /// 120 kHz.
    D,
    /// 240 kHz.
    E,
}

impl SsBlockCase {
    /// Subcarrier spacing of the SS blocks.
    pub const fn spacing(self) -> SubcarrierSpacing {
        match self {
            SsBlockCase::A => SubcarrierSpacing::Khz15,
            SsBlockCase::B | SsBlockCase::C => SubcarrierSpacing::Khz30,
            SsBlockCase::D => SubcarrierSpacing::Khz120,
            SsBlockCase::E => SubcarrierSpacing::Khz240,
        }
    }

    /// First symbols of the candidate SS blocks by SS block index, counted from the start of the half frame in symbols
    /// of [`spacing`](SsBlockCase::spacing). The slice has L_max elements (4, 8 or 64). `None` if the case does not
    /// exist at a carrier frequency of `carrier_khz` kHz: cases A to C belong to FR1, cases D and E to FR2.
    ///
    /// The positions hold for spectrum without shared channel access.
    ///
    /// Source: TS 38.213 §4.1
    pub fn first_symbols(self, carrier_khz: u32, duplex: Duplex) -> Option<&'static [u16]> {
        let range = FrequencyRange::of_khz(carrier_khz)?;
        let (positions, of_range): (&[u16], FrequencyRange) = match self {
            SsBlockCase::A | SsBlockCase::C => (&CASES_A_C, FrequencyRange::Fr1),
            SsBlockCase::B => (&CASE_B, FrequencyRange::Fr1),
            SsBlockCase::D => (&CASE_D, FrequencyRange::Fr2),
            SsBlockCase::E => (&CASE_E, FrequencyRange::Fr2),
        };
        let has_four = match (self, duplex) {
            (SsBlockCase::C, Duplex::Tdd) => carrier_khz < 1_880_000,
            _ => carrier_khz <= 3_000_000,
        };
        let blocks = if has_four { 4 } else { positions.len() };
        (range == of_range).then_some(&positions[..blocks])
    }
}

/// First symbols of cases A and C: {2, 8} + 14·n.
///
/// Source: TS 38.213 §4.1
static CASES_A_C: [u16; 8] = first_symbols(&[2, 8], 14, &[0, 1, 2, 3]);

/// First symbols of case B: {4, 8, 16, 20} + 28·n.
///
/// Source: TS 38.213 §4.1
static CASE_B: [u16; 8] = first_symbols(&[4, 8, 16, 20], 28, &[0, 1]);

/// First symbols of case D: {4, 8, 16, 20} + 28·n.
///
/// Source: TS 38.213 §4.1
static CASE_D: [u16; 64] =
    first_symbols(&[4, 8, 16, 20], 28, &[0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18]);

/// First symbols of case E: {8, 12, 16, 20, 32, 36, 40, 44} + 56·n.
///
/// Source: TS 38.213 §4.1
static CASE_E: [u16; 64] = first_symbols(&[8, 12, 16, 20, 32, 36, 40, 44], 56, &[0, 1, 2, 3, 5, 6, 7, 8]);

/// All sums of an element of `starts` and a multiple of `period`, in increasing order. `N` is the number of sums.
const fn first_symbols<const N: usize>(starts: &[u16], period: u16, multiples: &[u16]) -> [u16; N] {
    let mut sums = [0; N];
    let mut at = 0;
    while at < N {
        sums[at] = starts[at % starts.len()] + period * multiples[at / starts.len()];
        at += 1;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use Duplex::{Fdd, Tdd};
    use SsBlockCase::{A, B, C, D, E};

    #[test]
    fn first_symbols_are_those_of_the_specification() {
        let c_band = 3_500_000;
        assert_eq!(A.first_symbols(2_140_000, Fdd), Some(&[2, 8, 16, 22][..]));
        assert_eq!(B.first_symbols(880_000, Fdd), Some(&[4, 8, 16, 20][..]));
        assert_eq!(B.first_symbols(c_band, Fdd), Some(&[4, 8, 16, 20, 32, 36, 44, 48][..]));
        assert_eq!(C.first_symbols(c_band, Tdd), Some(&[2, 8, 16, 22, 30, 36, 44, 50][..]));
        let (d, e) = (D.first_symbols(28_000_000, Tdd).unwrap(), E.first_symbols(28_000_000, Tdd).unwrap());
        assert_eq!(
            (&d[..6], &d[12..20]),
            (&[4, 8, 16, 20, 32, 36][..], &[88, 92, 100, 104, 144, 148, 156, 160][..])
        );
        assert_eq!((d[63], e[63]), (524, 492));
        assert_eq!(&e[24..36], &[176, 180, 184, 188, 200, 204, 208, 212, 288, 292, 296, 300]);
    }

    #[test]
    fn the_carrier_frequency_determines_the_number_of_ss_blocks() {
        let blocks = |case: SsBlockCase, khz, duplex| case.first_symbols(khz, duplex).map(<[u16]>::len);
        assert_eq!([blocks(A, 3_000_000, Fdd), blocks(A, 3_000_001, Fdd)], [Some(4), Some(8)]);
        assert_eq!([blocks(C, 3_000_000, Fdd), blocks(C, 3_000_001, Fdd)], [Some(4), Some(8)]);
        assert_eq!([blocks(C, 1_879_999, Tdd), blocks(C, 1_880_000, Tdd)], [Some(4), Some(8)]);
        assert_eq!([blocks(D, 28_000_000, Tdd), blocks(E, 39_000_000, Tdd)], [Some(64), Some(64)]);
        assert_eq!(
            [blocks(D, 3_500_000, Tdd), blocks(A, 28_000_000, Tdd), blocks(A, 10_000_000, Tdd)],
            [None; 3]
        );
    }

    #[test]
    fn ss_blocks_do_not_overlap_and_end_in_their_half_frame() {
        for (case, khz) in [(A, 3_500_000), (B, 3_500_000), (C, 3_500_000), (D, 28_000_000), (E, 28_000_000)]
        {
            let positions = case.first_symbols(khz, Tdd).unwrap();
            assert!(positions.windows(2).all(|pair| pair[0] + 4 <= pair[1]), "{case:?}");
            let symbols_of_half_frame = (5 * 14) << case.spacing().mu();
            assert!(positions[positions.len() - 1] + 4 <= symbols_of_half_frame, "{case:?}");
            // An SS block lies in one slot, apart from case E, which lies in one slot of 120 kHz.
            let slot = if case == E { 28 } else { 14 };
            assert!(positions.iter().all(|first| first / slot == (first + 3) / slot), "{case:?}");
        }
    }
}

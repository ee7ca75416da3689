//! The unit in which PBE-CC counts PRBs. Slots of NR carry downlink data in different numbers of OFDM symbols, so a PRB
//! of a special slot is less than a PRB of a downlink slot, and a PRB of an uplink slot is nothing.
//!
//! ```text
//! PRBs · (12 · symbols − DMRS) / (12 · 13 − DMRS)
//! ```
//!
//! | slot | symbols | value of a PRB |
//! | --- | --- | --- |
//! | LTE subframe, or unknown symbols | unknown | 1 |
//! | downlink slot after one control symbol | 13 | 1 |
//! | special slot with ten downlink symbols, one of them control | 9 | 2/3 |
//! | uplink slot | 0 | 0 |
//!
//! Source: TS 38.214 §5.1.3.2 (resource elements per PRB)
//!
//! Differs: the paper counts PRBs of LTE FDD, where every subframe has the same resource elements. Without the weights,
//! an idle carrier with the TDD pattern DDDSU would have 1.37 times its true capacity, because the uplink slots would
//! count as idle.

use airpace_radio::{Dci, PrbSet, RadioReport};

/// Number of counting units per PRB. PRBs are counted in thousandths, so that sums of estimates are exact.
pub const MILLI: u64 = 1_000;

/// Subcarriers of a PRB.
///
/// Source: TS 38.211 §4.4.4.1
const SUBCARRIERS: u64 = 12;

/// Number of data symbols of the slot whose PRBs have the value 1.
///
/// Chosen: a downlink slot whose first symbol is the control region.
pub const FULL_SYMBOLS: u8 = 13;

/// Maximum number of OFDM symbols of a slot.
///
/// Source: TS 38.211 §4.3.2 Table 4.3.2-1
const MAX_SYMBOLS: u8 = 14;

/// Resource elements per PRB for DMRS.
///
/// Chosen: one symbol that carries no data, as in a slot for slow devices. With more DMRS, a special slot counts up to
/// 8 % too much; only the small share of special slots in the capacity has this error.
const DMRS_RES: u64 = 12;

/// Resource elements for data of one PRB in `symbols` symbols.
fn data_res(symbols: u8) -> u64 {
    (SUBCARRIERS * u64::from(symbols.min(MAX_SYMBOLS))).saturating_sub(DMRS_RES)
}

/// Value of `prbs` PRBs with `symbols` data symbols each, in thousandths. PRBs with unknown symbols have the value 1.
pub fn milli(prbs: u64, symbols: Option<u8>) -> u64 {
    match symbols {
        None => prbs * MILLI,
        Some(symbols) => {
            let full = data_res(FULL_SYMBOLS);
            (prbs * MILLI * data_res(symbols) + full / 2) / full
        }
    }
}

/// Value of one PRB of the report's slot.
pub fn weight(report: &RadioReport) -> f64 {
    match report.symbols {
        None => 1.0,
        Some(symbols) => data_res(symbols) as f64 / data_res(FULL_SYMBOLS) as f64,
    }
}

/// Value of all PRBs of the carrier in the report's slot, in thousandths; 0 if the carrier's width is unknown.
pub fn carrier(report: &RadioReport) -> u64 {
    milli(u64::from(report.carrier_prbs.unwrap_or(0)), report.symbols)
}

/// Number of data symbols of a grant; `None` if neither the grant nor the report contains it.
pub fn symbols_of(dci: &Dci, report: &RadioReport) -> Option<u8> {
    dci.symbols.or(report.symbols)
}

/// Value of the PRBs of some of the report's grants, in thousandths.
///
/// Chosen: a PRB of several grants counts once, with the longest of them. Grants of the same symbols to several users
/// (MU-MIMO) are frequent; grants of different symbols of one slot are not.
pub fn granted<'a>(report: &RadioReport, grants: impl Iterator<Item = &'a Dci> + Clone) -> u64 {
    let all = |grants: &mut dyn Iterator<Item = &'a Dci>| {
        grants.fold(PrbSet::EMPTY, |set, dci| set.union(dci.prbs))
    };
    if grants.clone().all(|dci| dci.symbols.is_none()) {
        return milli(u64::from(all(&mut grants.clone()).len()), report.symbols);
    }
    let mut counted = PrbSet::EMPTY;
    let mut sum = 0;
    for symbols in (1..=MAX_SYMBOLS).rev() {
        let has_length = |dci: &&Dci| symbols_of(dci, report).unwrap_or(FULL_SYMBOLS) == symbols;
        let with_these = counted.union(all(&mut grants.clone().filter(has_length)));
        sum += milli(u64::from(with_these.len() - counted.len()), Some(symbols));
        counted = with_these;
    }
    sum
}

#[cfg(test)]
mod tests {
    use airpace_core::Time;
    use airpace_radio::{CarrierId, Slot};

    use super::*;

    #[test]
    fn a_prb_counts_by_its_resource_elements_for_data() {
        let values = [None, Some(0), Some(1), Some(9), Some(10), Some(13), Some(14)];
        assert_eq!(
            values.map(|symbols| milli(273, symbols)),
            [273_000, 0, 0, 182_000, 204_750, 273_000, 295_750]
        );
    }

    #[test]
    fn overlapping_grants_count_once_with_the_longest() {
        let report = RadioReport {
            symbols: Some(13),
            carrier_prbs: Some(50),
            ..RadioReport::new(CarrierId(0), Slot::default(), Time::ZERO)
        };
        let grant = |start, len, symbols| Dci { prbs: PrbSet::run(start, len), symbols, ..Dci::default() };
        let of = |grants: &[Dci]| granted(&report, grants.iter());
        assert_eq!(of(&[grant(0, 10, None), grant(5, 10, None)]), 15_000);
        assert_eq!(of(&[grant(0, 10, Some(7)), grant(20, 10, None)]), 5_000 + 10_000);
        assert_eq!(of(&[grant(0, 10, Some(7)), grant(5, 10, Some(13))]), 2_500 + 10_000);
        assert_eq!((of(&[]), carrier(&report), weight(&report)), (0, 50_000, 1.0));
    }
}

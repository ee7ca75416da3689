//! Compares every row of the tables in this crate with the numeric tables that the project keeps outside its repository
//! (`AIRPACE_DATA`).

use airpace_core::Bits;
use airpace_core::tables::lte::{McsTable, tbs, tbs_format_1c, uplink_mcs};
use airpace_core::tables::{CodeRate, Cqi, Modulation, nr};

/// The rows of a CSV file of the recordings, without the header.
fn rows(path: &str) -> Option<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(airpace_testing::recordings(path)?).expect("a table");
    Some(text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

fn number<T: std::str::FromStr>(field: &str) -> Option<T> {
    field.parse().ok()
}

fn order(modulation: Modulation) -> Option<u32> {
    Some(modulation.bits_per_symbol())
}

fn lte_table(name: &str) -> McsTable {
    match name {
        "64qam" => McsTable::Qam64,
        "256qam" => McsTable::Qam256,
        other => panic!("unknown table {other}"),
    }
}

#[test]
fn every_lte_block_size_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/tbs_lte_dl.csv") else { return };
    assert_eq!(rows.len(), 34 * 110);
    for row in rows {
        let (i_tbs, n_prb) = (number(&row[0]).unwrap(), number(&row[1]).unwrap());
        assert_eq!(tbs(i_tbs, n_prb, 1), number(&row[2]).map(Bits), "I_TBS {i_tbs}, {n_prb} PRB");
    }
}

#[test]
fn every_block_size_of_format_1c_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/tbs_lte_format1c.csv") else { return };
    assert_eq!(rows.len(), 32);
    for row in rows {
        assert_eq!(tbs_format_1c(number(&row[0]).unwrap()), number(&row[1]).map(Bits), "{row:?}");
    }
}

#[test]
fn every_lte_mcs_row_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/mcs_lte_dl.csv") else { return };
    assert_eq!(rows.len(), 64);
    for row in rows {
        let mcs = lte_table(&row[0]).mcs(number(&row[1]).unwrap()).unwrap();
        assert_eq!((order(mcs.modulation), mcs.i_tbs), (number(&row[2]), number(&row[3])), "{row:?}");
    }
}

#[test]
fn every_lte_uplink_mcs_row_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/mcs_lte_ul.csv") else { return };
    assert_eq!(rows.len(), 32);
    for row in rows {
        let mcs = uplink_mcs(number(&row[0]).unwrap()).unwrap();
        let initial = number(&row[1]).zip(number(&row[2]));
        assert_eq!(
            mcs.initial.map(|(modulation, i_tbs)| (modulation.bits_per_symbol(), i_tbs)),
            initial,
            "{row:?}"
        );
        assert_eq!(Some(mcs.rv), number(&row[3]), "{row:?}");
    }
}

#[test]
fn every_lte_cqi_row_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/cqi_lte.csv") else { return };
    assert_eq!(rows.len(), 32);
    for row in rows {
        check_cqi(lte_table(&row[0]).cqi(number(&row[1]).unwrap()), &row);
    }
}

fn nr_table(name: &str) -> nr::McsTable {
    match name {
        "1" => nr::McsTable::Qam64,
        "2" => nr::McsTable::Qam256,
        "3" => nr::McsTable::LowEfficiency,
        other => panic!("unknown table {other}"),
    }
}

#[test]
fn every_nr_mcs_row_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/mcs_nr_pdsch.csv") else { return };
    assert_eq!(rows.len(), 96);
    for row in rows {
        let mcs = nr_table(&row[0]).mcs(number(&row[1]).unwrap()).unwrap();
        assert_eq!(order(mcs.modulation), number(&row[2]), "{row:?}");
        assert_eq!(mcs.rate.map(|rate| rate.as_f64() * 1024.0), number(&row[3]), "{row:?}");
    }
}

#[test]
fn every_nr_cqi_row_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/cqi_nr.csv") else { return };
    assert_eq!(rows.len(), 48);
    for row in rows {
        check_cqi(nr_table(&row[0]).cqi(number(&row[1]).unwrap()), &row);
    }
}

#[test]
fn every_small_nr_block_size_is_that_of_the_specification() {
    let Some(rows) = rows("3gpp/tbs_nr_small.csv") else { return };
    assert_eq!(rows.len(), 93);
    // One resource element of QPSK at code rate 1/2 contains one information bit, so `res` is the number of information
    // bits. A number of bits between two sizes of the table gets the larger size, apart from quantisation.
    let half = CodeRate::from_1024ths(512);
    let ours: std::collections::BTreeSet<u64> =
        (1..=3824).map(|bits| nr::tbs(bits, Modulation::Qpsk, half, 1).0).collect();
    let theirs = rows.iter().map(|row| number(&row[1]).unwrap()).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn every_nr_block_size_is_that_of_an_independent_implementation() {
    let Some(rows) = rows("../docs/cell-model-data/nr_tbs_38214_table1.csv") else { return };
    assert_eq!(rows.len(), 3132);
    for row in rows {
        // Columns: mcs_table, mcs, Qm, R × 1024, layers, n_prb, symbols, DMRS per PRB, overhead, N_info, TBS.
        let allocation = nr::Allocation {
            n_prb: number(&row[5]).unwrap(),
            symbols: number(&row[6]).unwrap(),
            dmrs_res_per_prb: number(&row[7]).unwrap(),
            overhead_res_per_prb: number(&row[8]).unwrap(),
        };
        let (mcs, layers) = (number(&row[1]).unwrap(), number(&row[4]).unwrap());
        let ours = nr_table(&row[0]).tbs(mcs, &allocation, layers);
        assert_eq!(ours, number(&row[10]).map(Bits), "{row:?}");
    }
}

/// Columns: table, index, Q_m, code rate × 1024, efficiency; the last three columns are empty in row 0.
fn check_cqi(cqi: Option<Cqi>, row: &[String]) {
    assert_eq!(cqi.and_then(|cqi| order(cqi.modulation)), number(&row[2]), "{row:?}");
    assert_eq!(cqi.map(|cqi| cqi.rate.as_f64() * 1024.0), number(&row[3]), "{row:?}");
    let printed = cqi.map_or(0.0, Cqi::efficiency) - number(&row[4]).unwrap_or(0.0);
    assert!(printed.abs() <= 5.1e-5, "the specification prints the efficiency with four digits: {row:?}");
}

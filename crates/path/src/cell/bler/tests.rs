//! Tests of the curves against their measurement, and of properties of any error model.

use super::super::channel::measured::rows;
use super::*;
use airpace_core::tables::lte::{McsTable, tbs};
use proptest::prelude::*;

fn bler(config: BlerConfig) -> Bler {
    Bler::new(&config).expect("a valid configuration")
}

fn lossless() -> Bler {
    bler(BlerConfig { implementation_loss_db: 0.0, ..BlerConfig::default() })
}

fn block(mcs: u8, bits: u64) -> Block {
    Block { table: McsTable::Qam64.into(), mcs, bits: Bits(bits) }
}

#[test]
fn curves_pass_through_the_measured_points() {
    let Some(rows) = rows("bler_miesm_ns3.csv") else { return };
    let bler = lossless();
    for row in rows {
        let [mcs, _, bits, half_db, tenth_db, hundredth_db, ..] = row[..] else { panic!("{row:?}") };
        let block = block(mcs as u8, bits as u64);
        // The two parameters of the logistic curve follow from the first two points. For the smallest blocks, the
        // measured tail is steeper than the curve.
        for (error, sinr_db, off_db) in
            [(0.5, half_db, 0.001), (0.1, tenth_db, 0.001), (0.01, hundredth_db, 0.46)]
        {
            let ours = bler.sinr_db_for(block, error);
            assert!((ours - sinr_db).abs() < off_db, "{block:?}: {error} at {ours} dB, measured {sinr_db}");
            assert!(
                (bler.first_error(block, ours) - error).abs() < 1e-6,
                "{block:?}: the inverse does not fit"
            );
        }
    }
}

#[test]
fn a_curve_is_a_cliff() {
    let block = block(28, 75_376);
    let width = lossless().sinr_db_for(block, 0.1) - lossless().sinr_db_for(block, 0.9);
    assert!((0.2..0.6).contains(&width), "from 90 % to 10 % in {width} dB");
}

#[test]
fn tables_of_64qam_and_256qam_share_what_they_have_in_common() {
    for mcs in 0..20 {
        let row = McsTable::Qam256.mcs(mcs).unwrap();
        let same = McsTable::Qam64.mcs(curve_index(McsTable::Qam256, mcs) as u8).unwrap();
        assert_eq!(row, same, "MCS {mcs}");
    }
}

#[test]
fn every_mcs_of_256qam_needs_more_than_the_one_before() {
    let thresholds: Vec<f64> = (0..28)
        .map(|mcs| {
            let bits = McsTable::Qam256.tbs(mcs, 100, 1).unwrap();
            lossless().sinr_db_for(Block { table: McsTable::Qam256.into(), mcs, bits }, 0.1)
        })
        .collect();
    assert!(thresholds.windows(2).all(|pair| pair[0] < pair[1]), "{thresholds:?}");
    insta::assert_snapshot!(
        thresholds[19..].iter().map(|db| format!("{db:.1}")).collect::<Vec<_>>().join(" "),
        @"18.0 19.1 19.7 20.8 21.8 22.9 24.0 24.9 25.9"
    );
}

#[test]
fn the_papers_model_counts_bits_only() {
    let pbe = bler(BlerConfig { model: BlerModel::Pbe, ..BlerConfig::default() });
    // The middle curve of PBE-CC Fig. 6b, p = 3e-6.
    for (bits, error) in [(36_696, 0.104), (75_376, 0.202), (149_776, 0.362)] {
        assert!((pbe.first_error(block(28, bits), 99.0) - error).abs() < 0.001);
    }
    let mut held = SoftBuffer::default();
    held.add(Modulation::Qam64, 0.0);
    let first = pbe.error(block(28, 75_376), &held);
    held.add(Modulation::Qam64, 0.0);
    assert!((pbe.error(block(28, 75_376), &held) - 0.1 * first).abs() < 1e-12);
    let literal =
        bler(BlerConfig { model: BlerModel::Pbe, pbe_retransmission_factor: 1.0, ..BlerConfig::default() });
    assert_eq!(literal.error(block(28, 75_376), &held), first, "independent errors have no combining");
}

/// The SINR (dB) of each of `n` equal transmissions at which half of the blocks are still lost after the last
/// transmission.
fn sinr_db_after(bler: &Bler, block: Block, n: usize) -> f64 {
    let (mut low, mut high) = (-30.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let mut held = SoftBuffer::default();
        (0..n).for_each(|_| held.add(block.modulation(), middle));
        if bler.error(block, &held) > 0.5 { low = middle } else { high = middle }
    }
    low
}

#[test]
fn chase_combining_gains_3_then_4_8_then_6_db() {
    let block = block(20, 39_232);
    let first = sinr_db_after(&lossless(), block, 1);
    for (n, gain_db) in [(2, 3.01), (3, 4.77), (4, 6.02)] {
        let gained = first - sinr_db_after(&lossless(), block, n);
        assert!((gained - gain_db).abs() < 0.01, "{n} transmissions gain {gained} dB");
    }
}

#[test]
fn new_parity_bits_gain_most_where_there_were_few() {
    let redundancy = bler(BlerConfig {
        combining: Combining::IncrementalRedundancy,
        implementation_loss_db: 0.0,
        ..BlerConfig::default()
    });
    let gain_db = |mcs, bits| {
        sinr_db_after(&redundancy, block(mcs, bits), 1) - sinr_db_after(&redundancy, block(mcs, bits), 2)
    };
    assert!(
        (gain_db(0, 2792) - 3.01).abs() < 0.01,
        "after the whole mother code is sent, bits can only be repeated"
    );
    assert!(gain_db(28, 75_376) > 5.0, "rate 0.93: {} dB", gain_db(28, 75_376));
}

#[test]
fn probabilities_out_of_range_are_refused() {
    let error = Bler::new(&BlerConfig { pbe_bit_error_rate: 1.5, ..BlerConfig::default() }).unwrap_err();
    assert_eq!(error.key, "pbe_bit_error_rate");
}

proptest! {
    #[test]
    fn more_sinr_or_a_lower_mcs_never_loses_more(
        sinr_db in -20.0..35.0, gain_db in 0.0..5.0, mcs in 0_u8..28, prbs in 1_u16..=100, qam256: bool,
    ) {
        let table = if qam256 { McsTable::Qam256 } else { McsTable::Qam64 };
        let of = |mcs: u8| Block { table: table.into(), mcs, bits: table.tbs(mcs, prbs, 1).unwrap() };
        let mcs = mcs.min(table.last_mcs() - 1);
        let model = bler(BlerConfig::default());
        let error = model.first_error(of(mcs), sinr_db);
        prop_assert!((0.0..=1.0).contains(&error));
        prop_assert!(model.first_error(of(mcs), sinr_db + gain_db) <= error + 1e-12);
        // A short block has more errors than its code rate suggests. A block of some ten bits may be lost more often
        // than the longer block of the next MCS.
        let turned = if prbs < 6 { 0.25 } else { 0.005 };
        prop_assert!(model.first_error(of(mcs + 1), sinr_db) >= error - turned);
    }

    #[test]
    fn another_transmission_never_hurts(first_db in -10.0..25.0, second_db in -30.0..25.0, mcs in 0_u8..29, chase: bool) {
        let combining = if chase { Combining::Chase } else { Combining::IncrementalRedundancy };
        let model = bler(BlerConfig { combining, ..BlerConfig::default() });
        let block = Block { table: McsTable::Qam64.into(), mcs, bits: tbs(McsTable::Qam64.mcs(mcs).unwrap().i_tbs.unwrap(), 50, 1).unwrap() };
        let mut held = SoftBuffer::default();
        held.add(block.modulation(), first_db);
        let once = model.error(block, &held);
        held.add(block.modulation(), second_db);
        prop_assert!(model.error(block, &held) <= once + 1e-9);
    }
}

#[test]
fn a_block_may_be_judged_by_the_size_of_its_code_blocks() {
    // The transport block has three code blocks of 5888 bits, for which LENA uses its curve for 4032 bits. With 25
    // PRBs, the code blocks would have 6144 bits.
    let block =
        Block { table: McsTable::Qam64.into(), mcs: 28, bits: McsTable::Qam64.tbs(28, 24, 1).unwrap() };
    let error = |by_code_block| {
        let config = BlerConfig { by_code_block, implementation_loss_db: 0.0, ..BlerConfig::default() };
        Bler::new(&config).unwrap().first_error(block, 20.0)
    };
    let (by_block, by_code_block) = (error(false), error(true));
    println!("LENA loses 1.3 to 1.8 %, here {by_code_block}, by the size of the whole block {by_block}");
    assert!((0.013 * 0.85..0.018 * 1.15).contains(&by_code_block), "{by_code_block}");
    assert!(by_block < 0.005, "{by_block}");
}

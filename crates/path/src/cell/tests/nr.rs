//! Cells with carriers of NR.

use airpace_core::tables::nr::{Allocation, McsTable};

use super::super::config::Rat;
use super::*;

/// A cell of 100 MHz in n78 with the pattern DDDSU.
fn n78() -> CellConfig {
    CellConfig { rat: Rat::Nr, band: Some("n78".into()), ..CellConfig::default() }
}

/// A device with this SINR on each of `layers` layers.
fn device_with_layers(sinr_db: f64, layers: u8) -> DeviceRadioConfig {
    let channel =
        ChannelConfig { sinr_db: Some(sinr_db), layers, layer_penalty_db: 0.0, ..ChannelConfig::default() };
    DeviceRadioConfig { channel, queue_bytes: 20_000_000, ..DeviceRadioConfig::default() }
}

/// Bits per second on the air if each slot of DDDSU carries a block over 273 PRBs at MCS 27 of table 2.
fn air_mbps(layers: u8) -> f64 {
    let block = |symbols| {
        let allocation = Allocation { n_prb: 273, symbols, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };
        McsTable::Qam256.tbs(27, &allocation, layers).expect("a row of the table").0 as f64
    };
    (3.0 * block(13) + block(9)) / 2.5e-3 / 1e6
}

#[test]
fn a_saturated_cell_of_100_mhz_carries_the_rate_of_its_blocks() {
    assert!((air_mbps(4) - 1724.1).abs() < 0.1, "the study computed 1,724.1 by hand");
    let source = Source::new(0, 1500, Rate::from_mbps(2_000.0), Time::ZERO, Time::NEVER);
    let mut bench = Bench::new(&n78(), &[device_with_layers(40.0, 4)], vec![source]);
    let end = Time::from_secs(1);
    bench.run(end, |_| {});
    let got = bench.goodput_mbps(0, 1500, Time::from_millis(200), end);
    println!("{got} of {}", air_mbps(4));
    assert!((0.97..1.0).contains(&(got / air_mbps(4))), "{got:.1} of {:.1} Mbit/s", air_mbps(4));
}

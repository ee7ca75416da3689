//! Repeated samples: the cell's frame numbers jump back, time continues, and HARQ processes follow the cell's numbers.

use crate::blind;
use crate::crowd;
use crate::recordings;

use std::collections::BTreeMap;

use airpace_core::Direction;
use airpace_phy::dci::Extras;
use airpace_phy::decoder::Output;
use airpace_phy::pdcch::CceRange;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{Dci, Rnti};
use crowd::Scene;
use recordings::{Description, data};

/// Grants to users, by the cell's own time, user and place. If a grant is decoded twice, the second grant is kept.
type Grants = BTreeMap<(u16, u8, Rnti, CceRange), Dci>;

/// Decoded grants, and the number of jumps.
fn decode(rate_hz: u64, samples: &[Complex32]) -> (Grants, usize) {
    let (mut grants, mut leaps) = (Grants::new(), 0);
    for output in blind::decode(rate_hz, samples).0 {
        leaps += usize::from(matches!(&output, Output::Subframe(reading) if reading.leap != 0));
        for found in blind::messages(output) {
            let key = (found.sfn, found.subframe, found.rnti, found.place);
            grants.extend(found.dci.map(|dci| (key, dci)));
        }
    }
    (grants, leaps)
}

/// Repeats the `count` samples before `at`.
fn repeat(samples: &[Complex32], at: usize, count: usize) -> Vec<Complex32> {
    [&samples[..at], &samples[at - count..]].concat()
}

fn assert_own_processes(grants: &Grants) -> usize {
    let uplink = grants.iter().filter(|(_, dci)| dci.direction == Direction::Uplink);
    uplink
        .map(|((sfn, subframe, ..), dci)| {
            let process = (10 * u32::from(*sfn) + u32::from(*subframe)) % 8;
            assert_eq!(dci.harq.map(u32::from), Some(process), "of frame {sfn}, subframe {subframe}");
        })
        .count()
}

#[test]
fn uplink_processes_are_those_of_the_cell_after_samples_came_twice() {
    let cell = Cell {
        pci: 305,
        bandwidth: Bandwidth::from_prbs(25).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let (extras, fading, snr_db) = (Extras::NONE, None, 20.0);
    let scene =
        Scene { cell, fft_size: 384, users: 12, tries: 4, extras, snr_db, fading, subframes: 120, seed: 9 };
    let (samples, _) = scene.play();
    for ms in [2.6, 3.7, 5.0] {
        let twice = repeat(&samples, 60 * 5760 + 1000, (ms * 5760.0) as usize);
        let (grants, leaps) = decode(5_760_000, &twice);
        let uplink = assert_own_processes(&grants);
        println!("{ms} ms: {uplink} uplink grants, {leaps} leaps");
        assert!(leaps == 1 && uplink > 80, "{ms} ms: {uplink} uplink grants, {leaps} leaps");
    }
}

/// After the repetition, retransmitted blocks have the same sizes as without the repetition.
#[test]
fn what_is_sent_again_is_found_in_its_process_after_samples_came_twice() {
    let Some(folder) = data("radio") else { return };
    let name = "pub_g06_1p";
    let samples = Description::load(&folder, name).samples(&folder, name);
    let (whole, _) = decode(1_920_000, &samples);
    let (twice, leaps) = decode(1_920_000, &repeat(&samples, 100_000, 5000));
    assert_own_processes(&twice);
    let wrong: Vec<_> = whole
        .iter()
        .filter_map(|(key, dci)| twice.get(key).map(|twice| (key, dci.tbs, twice.tbs)))
        .filter(|(_, once, twice)| once != twice)
        .collect();
    println!("{} of {} grants, {leaps} leaps: {wrong:?}", twice.len(), whole.len());
    assert!(leaps == 1 && 20 * twice.len() > 19 * whole.len(), "{} of {} grants", twice.len(), whole.len());
    assert!(wrong.is_empty(), "{wrong:?}");
}

//! Transmitted but undecoded messages: the PRBs in their grants are never reported as idle.

use crate::blind;
use crate::crowd;
use crate::recordings;

use std::collections::BTreeMap;

use airpace_core::Time;
use airpace_phy::dci::Extras;
use airpace_phy::decoder::{Output, Reading};
use airpace_phy::impair::DelayProfile;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{CarrierId, Scope};
use crowd::Scene;
use recordings::{Description, NAMES, data};

/// A cell with 25 PRB pairs that attempts `tries` grants in each of 200 subframes.
fn scene(tries: usize, ports: Ports, snr_db: f64, fading: Option<(DelayProfile, f64)>) -> Scene {
    let cell = Cell {
        pci: 305,
        bandwidth: Bandwidth::from_prbs(25).expect("a bandwidth of LTE"),
        ports,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let extras = Extras::NONE;
    Scene { cell, fft_size: 384, users: 12, tries, extras, snr_db, fading, subframes: 200, seed: 6 }
}

/// All subframes with all their messages, including those accepted later.
fn decode(rate_hz: u64, samples: &[Complex32]) -> BTreeMap<u64, Reading> {
    let mut readings = BTreeMap::<u64, Reading>::new();
    for output in blind::decode(rate_hz, samples).0 {
        let late = match output {
            Output::Subframe(mut reading) => {
                let late = std::mem::take(&mut reading.late);
                readings.insert(reading.index, reading);
                late
            }
            other => blind::messages(other),
        };
        for found in late {
            if let Some(reading) = readings.get_mut(&found.index) {
                reading.found.push(found);
            }
        }
    }
    readings
}

fn is_reported(reading: &Reading) -> bool {
    reading.report(CarrierId(0), Time::ZERO).scope == Scope::Everyone
}

#[test]
fn no_subframe_is_reported_of_which_messages_were_missed() {
    let (mut missed, mut reported) = (0, 0);
    for (ports, snr_db, fading) in [
        (Ports::One, 1.0, None),
        (Ports::One, 8.0, Some((DelayProfile::Epa, 5.0))),
        (Ports::Two, 2.0, Some((DelayProfile::Epa, 5.0))),
        (Ports::Four, 3.0, Some((DelayProfile::Eva, 70.0))),
        (Ports::Two, 30.0, Some((DelayProfile::Etu, 300.0))),
    ] {
        let scene = scene(3, ports, snr_db, fading);
        let (samples, sent) = scene.play();
        for (index, reading) in decode(scene.fft_size as u64 * 15_000, &samples) {
            let sent = sent.iter().filter(|(at, _)| *at == index).count();
            let is_reported = is_reported(&reading);
            let what = format!("{ports:?}, {snr_db} dB, {fading:?}, subframe {index}");
            let found = reading.found.len();
            assert!(!is_reported || found >= sent, "{what}: reported with {found} of {sent} messages");
            missed += usize::from(found < sent);
            reported += usize::from(is_reported);
        }
    }
    assert!(missed > 100, "the scenes are hard: in {missed} subframes something is missed");
    assert!(reported > 400, "{reported} of 1,000 subframes are reported");
}

#[test]
fn an_idle_cell_is_reported_as_idle_and_a_busy_one_as_read() {
    for (tries, snr_db) in [(0, 5.0), (0, 12.0), (0, 30.0), (3, 12.0), (3, 30.0)] {
        for ports in [Ports::One, Ports::Two, Ports::Four] {
            let scene = scene(tries, ports, snr_db, None);
            let readings = decode(scene.fft_size as u64 * 15_000, &scene.play().0);
            let reported = readings.values().filter(|reading| is_reported(reading)).count();
            let what = format!("{tries} grants, {ports:?}, {snr_db} dB");
            assert!(readings.len() >= 190, "{what}: {} subframes are read", readings.len());
            assert!(reported + 1 >= readings.len(), "{what}: {reported} of {} reported", readings.len());
        }
    }
}

#[test]
fn every_subframe_of_the_recorded_cells_is_reported() {
    let Some(folder) = data("radio") else { return };
    for name in NAMES {
        let about = Description::load(&folder, name);
        let readings = decode(about.rate_hz(), &about.samples(&folder, name));
        let unread: Vec<u64> =
            readings.iter().filter(|(_, reading)| !is_reported(reading)).map(|(&index, _)| index).collect();
        assert!(readings.len() >= 39, "{name}: {} subframes are read", readings.len());
        assert!(unread.is_empty(), "{name}: of {unread:?} nothing is told");
    }
}

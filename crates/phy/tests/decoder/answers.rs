//! HARQ feedback for uplink blocks: in a recording of a live cell, and in our own cells.

use crate::recordings;

use std::collections::BTreeMap;

use airpace_core::{Direction, Streams, Time};
use airpace_phy::answers::Answered;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::impair::{Conditions, noise_power};
use airpace_phy::station::Station;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, PrbSet, RadioReport, Rnti, Scope, Slot};
use recordings::{Description, data};

/// HARQ feedback by subframe number, counted from the first subframe of the recording.
fn answers(rate_hz: u64, samples: &[Complex32]) -> Vec<(u64, Answered)> {
    let mut decoder = Decoder::new(Options::new(rate_hz)).expect("a rate");
    decoder.push(samples);
    decoder.finish();
    let mut all = vec![];
    while let Some(output) = decoder.pop() {
        if let Output::Subframe(reading) = output {
            all.extend(reading.answers.iter().map(|answer| (reading.index, *answer)));
        }
    }
    all
}

/// In the recording of a live network, the feedback for each decoded grant equals the feedback in the log, and no other
/// feedback is reported.
#[test]
fn a_live_networks_answers_are_those_of_its_log() {
    let Some(folder) = data("radio") else { return };
    let about = Description::load(&folder, "pub_n25");
    let first = u64::from(about.sfn) * 10 + about.subframe as u64;
    let heard = answers(about.rate_hz(), &about.raw_samples(&folder, "pub_n25"));
    let mut log: BTreeMap<(u64, u16), bool> = BTreeMap::new();
    for row in recordings::table(&folder, "pub_n25.phich.csv") {
        log.insert((first + row.number::<u64>("sf"), row.number("rnti")), row.flag("ack"));
    }
    for (index, answer) in &heard {
        assert_eq!(
            log.remove(&(*index, answer.rnti.0)),
            Some(answer.ack),
            "subframe {index} answers {answer:?}"
        );
        assert!(answer.confidence > 0.999 && answer.granted + 8 == *index && answer.attempt == 1);
    }
    // Feedback for grants from before the recording cannot be reported.
    assert!(log.keys().all(|(index, _)| *index < first + 9), "not heard: {log:?}");
    assert_eq!(heard.len(), 135);
}

/// For a retransmitted block, the first feedback is a NACK and the last an ACK, in every kind of cell.
#[test]
fn a_block_that_is_sent_again_was_not_received() {
    for (cp, ports, phich_duration) in [
        (CyclicPrefix::Normal, Ports::One, PhichDuration::Normal),
        (CyclicPrefix::Normal, Ports::Two, PhichDuration::Extended),
        (CyclicPrefix::Normal, Ports::Four, PhichDuration::Normal),
        (CyclicPrefix::Extended, Ports::Two, PhichDuration::Normal),
        (CyclicPrefix::Extended, Ports::Four, PhichDuration::Extended),
    ] {
        let cell = Cell {
            pci: 71,
            bandwidth: Bandwidth::ALL[2],
            ports,
            cp,
            phich_duration,
            phich_resource: PhichResource::One,
        };
        let conditions =
            Conditions { noise_power: noise_power(20.0, 512, 0.02), ..Conditions::perfect(7.68e6) };
        let mut station =
            Station::new(cell, 512, 0.02, conditions, 0, &Streams::new(3)).expect("an FFT size");
        let grant = |rnti, start, again, ndi| Dci {
            rnti: Rnti(rnti),
            direction: Direction::Uplink,
            format: DciFormat::F0,
            prbs: PrbSet::run(start, 3),
            mcs: [Some(9), None],
            ndi: [Some(ndi), None],
            retransmission: [again, false],
            ..Dci::default()
        };
        let mut samples = vec![];
        for index in 0..72 {
            // One user has a grant in each of the eight processes, and in one process the same grant twice. The other
            // user has a grant in every tenth subframe.
            let (turn, is_its) = (index / 8, index % 8 == 3);
            let first = grant(5000, 2, is_its && turn % 3 == 1, turn % 3 != 2);
            let second = grant(6000, 11, false, true);
            let both = [Some(first), (index % 10 == 0).then_some(second)];
            let report = RadioReport {
                carrier: CarrierId(0),
                slot: Slot::subframe_of_lte(index),
                time: Time::from_millis(index),
                scope: Scope::Everyone,
                carrier_prbs: Some(25),
                cfi: Some(3),
                symbols: None,
                dcis: both.into_iter().flatten().collect(),
                own: None,
                layer: BitLayer::Physical,
            };
            station.send(&report, &mut samples);
        }
        let heard = answers(7_680_000, &samples);
        let of = |rnti| heard.iter().filter(move |(_, answer)| answer.rnti == Rnti(rnti));
        assert!(of(5000).count() > 50 && of(6000).count() > 4, "{cell:?}: {heard:?}");
        for (index, answer) in of(5000) {
            let again = index % 8 == 3 && index / 8 % 3 == 1;
            assert_eq!(answer.ack, !again, "{cell:?}: subframe {index} answers {answer:?}");
        }
        assert!(of(6000).all(|(_, answer)| answer.ack));
    }
}

//! Signal of a station: the subframes of reports, and the subframes between them, are received.

use crate::reference;

use airpace_core::{Direction, Streams, Time};
use airpace_phy::grid::{ControlRegion, Grid};
use airpace_phy::impair::Conditions;
use airpace_phy::ofdm::Demodulator;
use airpace_phy::station::Station;
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, Numerology, PhichDuration, PhichResource, Ports};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, PrbSet, RadioReport, Rnti, Scope, Slot};
use reference::Receiver;

const CELL: Cell = Cell {
    pci: 12,
    bandwidth: Bandwidth::ALL[2],
    ports: Ports::One,
    cp: CyclicPrefix::Normal,
    phich_duration: PhichDuration::Normal,
    phich_resource: PhichResource::One,
};

#[test]
fn subframes_without_a_report_are_sent_too() {
    let conditions = Conditions::perfect(5.76e6);
    let mut station = Station::new(CELL, 384, 0.1, conditions, 7, &Streams::new(1)).unwrap();
    let grant = Dci { rnti: Rnti(99), prbs: PrbSet::run(0, 4), mcs: [Some(3), None], ..Dci::default() };
    let report = RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(10),
        time: Time::from_millis(10),
        scope: Scope::Everyone,
        carrier_prbs: Some(25),
        cfi: Some(2),
        symbols: None,
        dcis: vec![grant],
        own: None,
        layer: BitLayer::Physical,
    };
    let mut samples = vec![];
    let announced = station.send(&report, &mut samples);
    assert_eq!((announced.cfi, announced.messages.len(), announced.data.len()), (2, 1, 1));
    station.send(&RadioReport { slot: Slot::subframe_of_lte(11), dcis: vec![], ..report }, &mut samples);

    // Subframe 10 is the first of the next frame.
    let mut demodulator = Demodulator::new(Numerology::new(CELL.bandwidth, CELL.cp, 384).unwrap());
    let mut receiver = Receiver::new(CELL, 0.6);
    let mut grid = Grid::new(&CELL);
    demodulator.demodulate(&samples, 14, &mut grid).unwrap();
    assert_eq!(receiver.broadcast(&grid).unwrap().sfn, 7);
    demodulator.demodulate(&samples[10 * 5760..], 14, &mut grid).unwrap();
    assert_eq!(receiver.broadcast(&grid).unwrap().sfn, 8);
    let heard = receiver.read(0, &grid);
    assert_eq!(heard.cfi, 2);
    // On a channel without noise, silence may also decode to messages: this receiver does not filter.
    assert!(heard.found.iter().any(|found| found.message == announced.messages[0]));
}

#[test]
fn an_uplink_grant_is_answered_eight_subframes_later() {
    let conditions = Conditions::perfect(5.76e6);
    let mut station = Station::new(CELL, 384, 0.1, conditions, 0, &Streams::new(1)).unwrap();
    let grant = Dci {
        rnti: Rnti(99),
        direction: Direction::Uplink,
        format: DciFormat::F0,
        prbs: PrbSet::run(6, 4),
        mcs: [Some(3), None],
        ..Dci::default()
    };
    let report = |subframe_index, dcis| RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(subframe_index),
        time: Time::from_millis(subframe_index),
        scope: Scope::Everyone,
        carrier_prbs: Some(25),
        cfi: Some(1),
        symbols: None,
        dcis,
        own: None,
        layer: BitLayer::Physical,
    };
    let mut samples = vec![];
    station.send(&report(1, vec![grant]), &mut samples);
    station.send(&report(12, vec![]), &mut samples);
    let mut demodulator = Demodulator::new(Numerology::new(CELL.bandwidth, CELL.cp, 384).unwrap());
    let mut grid = Grid::new(&CELL);
    let region = ControlRegion::new(&CELL, 1).unwrap();
    let power = |grid: &Grid| -> f32 {
        region.phich.iter().flatten().flat_map(|reg| grid.quad(reg)).map(|element| element.norm_sqr()).sum()
    };
    let mut answered = vec![];
    for at in 0..12 {
        demodulator.demodulate(&samples[at * 5760..], 14, &mut grid).unwrap();
        if power(&grid) > 1e-6 {
            answered.push(at);
        }
    }
    assert_eq!(answered, [9]);
}

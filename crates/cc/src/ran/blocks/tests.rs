use airpace_core::Bits;
use airpace_radio::{CarrierId, OwnRadio, PrbSet, Rnti, Scope, Slot};
use proptest::prelude::*;

use super::*;

const OWN: Rnti = Rnti(0x3D);

/// Size of a packet, and of a block that carries one packet.
const PACKET: Bytes = Bytes(1_500);

/// Number of subframes from the start of the subframe that released a packet to the arrival of the packet. The next
/// subframe has been reported by then.
const WAY: u64 = 2;

fn report(carrier: u8, subframe: u64, dcis: Vec<Dci>, decoded: Option<bool>) -> RadioReport {
    RadioReport {
        carrier: CarrierId(carrier),
        time: Time::from_millis(subframe),
        slot: Slot::subframe_of_lte(subframe),
        scope: Scope::Everyone,
        carrier_prbs: Some(100),
        cfi: Some(1),
        symbols: None,
        dcis,
        own: Some(OwnRadio {
            rnti: OWN,
            active: true,
            sinr_db: None,
            bits_per_prb: None,
            decoded,
            uplink_queue: None,
        }),
        layer: BitLayer::Physical,
    }
}

/// A block of one packet. Eight HARQ processes are used in turn, one per subframe. The NDI toggles with each new block.
fn grant(subframe: u64, retransmission: bool) -> Dci {
    Dci {
        rnti: OWN,
        prbs: PrbSet::run(0, 10),
        mcs: [Some(20), None],
        tbs: [Bits(PACKET.0 * 8), Bits::ZERO],
        ndi: [Some(((subframe - if retransmission { 8 } else { 0 }) / 8).is_multiple_of(2)), None],
        harq: Some((subframe % 8) as u8),
        layers: 1,
        retransmission: [retransmission, false],
        ..Dci::default()
    }
}

/// Numbers of the blocks that fail while the lag is learnt.
fn every_twentieth() -> Vec<u64> {
    (0..20).map(|index| 10 + index * 20).collect()
}

/// A device that gets a block in every subframe. It reports the subframes `from..until` to `blocks`, and the packets
/// that RLC delivers if the blocks in `fails` fail once. It returns the waits, by the subframe of the first
/// transmission.
struct Device {
    /// Delay of the reports in subframes.
    late: u64,
    reports: VecDeque<RadioReport>,
    blocks: Blocks,
    /// Blocks not yet released: subframe of the first transmission, and subframe of the reception.
    line: VecDeque<(u64, u64)>,
    waits: Vec<(u64, u64)>,
    /// Packets in transit: arrival, first transmission.
    on_way: VecDeque<(u64, u64)>,
    /// Whether the reports lack retransmissions.
    is_deaf_to_repetitions: bool,
    is_marked: bool,
}

impl Device {
    fn new() -> Device {
        Device {
            late: 0,
            reports: VecDeque::new(),
            blocks: Blocks::default(),
            line: VecDeque::new(),
            waits: vec![],
            on_way: VecDeque::new(),
            is_deaf_to_repetitions: false,
            is_marked: true,
        }
    }

    fn run(&mut self, subframes: std::ops::Range<u64>, fails: &[u64]) -> Vec<(u64, u64)> {
        self.waits.clear();
        for now in subframes {
            while let Some(&(_, first)) = self.on_way.front().filter(|(at, _)| *at <= now) {
                self.on_way.pop_front();
                let wait = self.blocks.wait(Time::from_millis(now), PACKET);
                self.waits.push((first, wait.as_millis() as u64));
            }
            let is_again = now >= 8 && fails.contains(&(now - 8));
            let has_failed = fails.contains(&now);
            if !is_again {
                self.line.push_back((now, if has_failed { now + 8 } else { now }));
            }
            let mut dci = grant(now, is_again);
            dci.retransmission[0] &= self.is_marked;
            let dcis = if is_again && self.is_deaf_to_repetitions { vec![] } else { vec![dci] };
            let decoded = (!dcis.is_empty()).then_some(!has_failed);
            self.reports.push_back(report(0, now, dcis, decoded));
            if self.reports.len() as u64 > self.late {
                self.reports.pop_front().iter().for_each(|report| self.blocks.on_report(report));
            }
            while let Some(&(first, _)) = self.line.front().filter(|(_, received)| *received <= now) {
                self.line.pop_front();
                self.on_way.push_back((now + WAY, first));
            }
        }
        self.waits.clone()
    }

    /// A device that has learnt the lag. Some blocks fail, because the lag can only be learnt from failed blocks.
    fn settled() -> Device {
        let mut device = Device::new();
        device.run(0..440, &every_twentieth());
        device
    }
}

#[test]
fn packets_behind_a_failed_block_waited_for_it_and_later_ones_did_not() {
    let mut device = Device::settled();
    assert_eq!(device.blocks.lag(), Some(SUBFRAME), "the next subframe was reported before the packets came");
    let waits = device.run(440..480, &[450]);
    let expected = |first: u64| if (450..458).contains(&first) { 458 - first } else { 0 };
    for (first, wait) in &waits {
        assert_eq!(*wait, expected(*first), "the packet of subframe {first}: {waits:?}");
    }
    assert!(waits.iter().any(|(_, wait)| *wait == 8) && waits.iter().any(|(first, _)| *first == 460));
}

#[test]
fn a_repetition_that_is_not_marked_shows_by_its_new_data_indicator() {
    let mut device = Device::settled();
    device.is_marked = false;
    let waits = device.run(440..480, &[450]);
    assert!(waits.contains(&(450, 8)) && waits.contains(&(457, 1)) && waits.contains(&(459, 0)), "{waits:?}");
}

#[test]
fn a_repetition_that_was_not_heard_is_known_by_the_packets_that_come() {
    let mut device = Device::settled();
    device.is_deaf_to_repetitions = true;
    let waits = device.run(440..480, &[450]);
    assert!(waits.contains(&(450, 8)) && waits.contains(&(452, 6)) && waits.contains(&(460, 0)), "{waits:?}");
}

#[test]
fn a_standing_queue_is_no_wait() {
    // All blocks are received at the first transmission. Nothing is subtracted, even if packets waited for a grant.
    let waits = Device::settled().run(440..1_000, &[]);
    assert!(waits.len() > 500 && waits.iter().all(|(_, wait)| *wait == 0));
}

#[test]
fn a_block_of_one_carrier_holds_up_those_of_another() {
    let mut device = Device::settled();
    let blocks = &mut device.blocks;
    let start = 500;
    // The first carrier's block fails; blocks of the second carrier arrive in between.
    for now in start..start + 9 {
        let own = match now - start {
            0 => vec![Dci { harq: Some(0), ..grant(0, false) }],
            8 => vec![Dci { harq: Some(0), ..grant(8, true) }],
            _ => vec![],
        };
        let decoded = (!own.is_empty()).then_some(now != start);
        blocks.on_report(&report(0, now, own, decoded));
        blocks.on_report(&report(1, now, vec![grant(now, false)], Some(true)));
    }
    for carrier in 0..2 {
        blocks.on_report(&report(carrier, start + 9, vec![], None));
    }
    let arrival = Time::from_millis(start + 8 + WAY);
    let waits: Vec<u64> = (0..10).map(|_| blocks.wait(arrival, PACKET).as_millis() as u64).collect();
    assert_eq!(waits, [8, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn of_two_codewords_the_one_that_is_not_repeated_was_received() {
    let mut device = Device::settled();
    let blocks = &mut device.blocks;
    let both = |subframe: u64, codewords: [bool; 2], again: bool| {
        let one = |index: usize, bits: Bits| if codewords[index] { bits } else { Bits::ZERO };
        Dci {
            mcs: codewords.map(|is_sent| is_sent.then_some(20)),
            tbs: [one(0, Bits(PACKET.0 * 8)), one(1, Bits(PACKET.0 * 8))],
            ndi: codewords.map(|is_sent| is_sent.then_some(true)),
            retransmission: codewords.map(|is_sent| is_sent && again),
            harq: Some(5),
            ..grant(subframe, again)
        }
    };
    blocks.on_report(&report(0, 600, vec![both(600, [true, true], false)], Some(false)));
    blocks.on_report(&report(0, 608, vec![both(608, [false, true], true)], Some(true)));
    let received: Vec<_> = blocks.releases().map(|(_, release)| release).collect();
    assert_eq!(received, [600, 608].map(Time::from_millis), "the first did not fail");
}

#[test]
fn without_reports_or_with_reports_that_come_after_the_packets_nothing_is_subtracted() {
    let mut blocks = Blocks::default();
    assert_eq!(blocks.wait(Time::from_millis(5), PACKET), Duration::ZERO);
    let mut device = Device { late: 30, ..Device::new() };
    let waits = device.run(0..2_000, &every_twentieth());
    assert!(waits.len() > 1_000 && waits.iter().all(|(_, wait)| *wait == 0), "{waits:?}");
    let trace = RadioReport { layer: BitLayer::Transport, ..report(0, 9, vec![grant(9, false)], Some(true)) };
    let mut blocks = Blocks::default();
    (0..200).for_each(|_| blocks.on_report(&trace));
    assert!(blocks.blocks.is_empty() && blocks.lag().is_none(), "a recorded link has no blocks");
}

proptest! {
    /// For any reports and arrivals, memory is bounded, and a wait is no longer than the time for which blocks are
    /// stored.
    #[test]
    fn no_reports_break_it(
        happenings in prop::collection::vec(
            (0u8..4, 0u64..3_000, 0u8..10, prop::option::of(any::<bool>()), any::<bool>(), any::<bool>()),
            1..3_000,
        ),
    ) {
        let mut blocks = Blocks::default();
        for (kind, at, harq, decoded, ndi, again) in happenings {
            if kind == 0 {
                let wait = blocks.wait(Time::from_millis(at), PACKET);
                prop_assert!(wait <= Duration::from_secs(3));
                continue;
            }
            let dci = Dci {
                harq: (harq < 8).then_some(harq),
                ndi: [Some(ndi), decoded],
                mcs: [Some(20), again.then_some(3)],
                retransmission: [again, ndi],
                ..grant(at + 8, false)
            };
            blocks.on_report(&report(kind, at, vec![dci], decoded));
            prop_assert!(blocks.blocks.len() <= MAX_BLOCKS + 2);
        }
    }
}

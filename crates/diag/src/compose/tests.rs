//! Round-trip tests of the composer: its packets are read back by the grant reader, by the KPIs, and by the full layouts.

use airpace_core::Bytes;
use airpace_radio::{BitLayer, Numerology, OwnRadio, PrbSet, Rnti, Scope, Slot};

use super::*;
use crate::grant::{Grant, GrantReport, Grants, Rat, Source};
use crate::kpi::{Extractor, Subscription};
use crate::packet::{LogPacket, Radio};
use crate::stamp::Stamp;

/// A report of a subframe on a carrier with 50 PRBs.
fn report(index: u64, carrier: u8, decoded: Option<bool>, dcis: Vec<Dci>) -> RadioReport {
    RadioReport {
        carrier: CarrierId(carrier),
        slot: Slot::subframe_of_lte(index),
        time: Time::from_millis(index),
        scope: Scope::Everyone,
        carrier_prbs: Some(50),
        cfi: Some(2),
        symbols: None,
        dcis,
        own: Some(OwnRadio {
            rnti: Rnti(61),
            active: true,
            sinr_db: Some(12.5),
            bits_per_prb: Some(400.0),
            decoded,
            uplink_queue: Some(Bytes(0)),
        }),
        layer: BitLayer::Physical,
    }
}

/// A DCI for one new block on all 50 PRBs.
fn down(index: u64, mcs: u8) -> Dci {
    Dci {
        format: DciFormat::F1,
        prbs: PrbSet::run(0, 50),
        mcs: [Some(mcs), None],
        tbs: [lte::McsTable::Qam64.tbs(mcs, 50, 1).unwrap(), Bits::ZERO],
        ndi: [Some((index / 8).is_multiple_of(2)), None],
        harq: Some((index % 8) as u8),
        layers: 1,
        ..Dci::default()
    }
}

fn up(index: u64) -> Dci {
    Dci {
        direction: Direction::Uplink,
        format: DciFormat::F0,
        prbs: PrbSet::run(4, 10),
        mcs: [Some(20), None],
        tbs: [lte::tbs(lte::uplink_mcs(20).unwrap().initial.unwrap().1, 10, 1).unwrap(), Bits::ZERO],
        harq: Some((index % 8) as u8),
        layers: 1,
        ..Dci::default()
    }
}

fn composed(reports: &[RadioReport]) -> Vec<Composed> {
    let mut composer = Composer::new(ComposeOptions::default());
    let mut all = vec![];
    for report in reports {
        composer.push(report, |composed| all.push(composed));
    }
    composer.finish(|composed| all.push(composed));
    assert!(
        all.windows(2).all(|pair| pair[0].at <= pair[1].at || pair[1].at == Time::NEVER),
        "in order of time"
    );
    all
}

/// A packet as it is in a log, with a time stamp in 2026.
fn packet(composed: &Composed) -> LogPacket<'_> {
    let stamp = Stamp::from_nanos(1_450_000_000_000_000_000 + composed.at.as_nanos());
    LogPacket { radio: Radio::FIRST, code: composed.code, stamp, payload: &composed.payload }
}

fn grants(all: &[Composed]) -> Vec<Grant> {
    let (mut reader, mut grants) = (Grants::new(), vec![]);
    for composed in all {
        reader.push(&packet(composed), |report| {
            if let GrantReport::Grant(grant) = report {
                grants.push(grant);
            }
        });
    }
    assert_eq!(reader.troubles(), Default::default());
    grants
}

#[test]
fn every_packet_is_read_whole_by_its_table() {
    let reports: Vec<_> = (0..100).map(|at| report(at, 0, Some(true), vec![down(at, 20), up(at)])).collect();
    let all = composed(&reports);
    for composed in &all {
        let decoded = log::read(&packet(composed)).unwrap();
        assert_eq!((decoded.left, decoded.unknown.as_slice()), (0, &[][..]), "{}", composed.code);
        let again = log::code(composed.code).unwrap().read(&composed.payload).unwrap();
        assert_eq!(again, decoded);
    }
    let count = |code| all.iter().filter(|composed| composed.code == code).count();
    assert_eq!((count(B130), count(B173), count(B139), count(B193)), (100, 4, 4, 10));
}

#[test]
fn batches_are_full_at_25_records_or_after_44_milliseconds() {
    let dense: Vec<_> = (0..60).map(|at| report(at, 0, Some(true), vec![down(at, 20)])).collect();
    let at = |all: &[Composed]| {
        let of_down = all.iter().filter(|composed| composed.code == B173 && composed.at < Time::NEVER);
        of_down.map(|composed| composed.at.as_millis()).collect::<Vec<_>>()
    };
    assert_eq!(at(&composed(&dense)), [26, 51, 96], "the 25th is of subframe 24, which is known at 26 ms");
    let thin: Vec<_> = (0..100)
        .map(|at| report(at, 0, Some(true), if at % 10 == 0 { vec![down(at, 20)] } else { vec![] }))
        .collect();
    assert_eq!(at(&composed(&thin))[..2], [46, 96], "44 ms after the first of them, subframes 0 and 50");
}

#[test]
fn grants_come_back_from_the_control_channel_and_from_the_shared_one() {
    let reports: Vec<_> = (0..200)
        .map(|at| report(at, (at % 2) as u8, Some(at % 5 != 0), vec![down(at, (at % 28) as u8), up(at)]))
        .collect();
    let grants = grants(&composed(&reports));
    for (source, direction) in [
        (Source::ControlChannel, Direction::Downlink),
        (Source::ControlChannel, Direction::Uplink),
        (Source::SharedChannel, Direction::Downlink),
        (Source::SharedChannel, Direction::Uplink),
    ] {
        let found: Vec<_> =
            grants.iter().filter(|grant| (grant.source, grant.direction) == (source, direction)).collect();
        assert_eq!(found.len(), 200, "{source:?} {direction:?}");
        let delay = if direction == Direction::Uplink { UPLINK_DELAY } else { 0 };
        let first = found[0].subframe;
        for (grant, report) in found.iter().zip(&reports) {
            let dci = report.dcis.iter().find(|dci| dci.direction == direction).unwrap();
            assert_eq!(grant.subframe - first, report.slot.index);
            assert_eq!(grant.subframe % 10, (report.slot.index + delay) % 10);
            assert_eq!((grant.carrier, grant.prbs), (report.carrier, dci.prbs.len()));
            assert_eq!(grant.bits(), dci.bits(), "{source:?} {grant:?}");
            assert!(grant.prb_set.is_none_or(|set| set == dci.prbs));
            let block = grant.blocks[0].unwrap();
            if direction == Direction::Downlink {
                assert_eq!((block.mcs, grant.harq), (dci.mcs[0], dci.harq));
                let crc = (source == Source::SharedChannel)
                    .then_some(report.own.as_ref().unwrap().decoded.unwrap());
                assert_eq!(block.crc, crc);
            }
        }
    }
}

#[test]
fn a_block_that_is_sent_again_has_the_size_that_it_had() {
    let first = down(0, 20);
    let again = Dci {
        mcs: [Some(29), None],
        tbs: [Bits::ZERO; 2],
        rv: [Some(2), None],
        retransmission: [true, false],
        ..first
    };
    let all = composed(&[report(0, 0, Some(false), vec![first]), report(8, 0, Some(true), vec![again])]);
    let shared: Vec<_> =
        grants(&all).into_iter().filter(|grant| grant.source == Source::SharedChannel).collect();
    assert_eq!(shared.iter().map(Grant::bits).collect::<Vec<_>>(), [first.bits(); 2]);
    assert_eq!(shared.iter().map(Grant::new_bits).collect::<Vec<_>>(), [first.bits(), Bits::ZERO]);
}

#[test]
fn kpis_are_what_the_radio_said() {
    let reports: Vec<_> =
        (0..100).map(|at| report(at, 0, Some(at % 4 != 0), vec![down(at, 20), up(at)])).collect();
    let names = ["lte.dl.bytes", "lte.ul.bytes", "lte.snr", "lte.rsrp", "lte.dl.mcs", "lte.dl.prb"];
    let subscription = Subscription::new(names).unwrap();
    let (mut extractor, mut last) = (Extractor::new(&subscription), [f64::NAN; 6]);
    let mut samples = 0;
    for composed in composed(&reports) {
        extractor.push(&packet(&composed), |sample| {
            last[sample.wanted] = sample.value;
            samples += u32::from(sample.wanted == 4);
        });
    }
    let bytes = |dci: Dci| dci.bits().bytes().0 as f64;
    assert_eq!(last[..2], [75.0 * bytes(down(0, 20)), 100.0 * bytes(up(0))], "three quarters were received");
    assert_eq!((last[2], last[3], last[4], last[5]), (12.5, -107.5, 20.0, 50.0));
    assert_eq!(samples, 100, "a sample for each subframe, however they are batched");
}

/// Reports of a carrier of NR with two slots per subframe and the TDD pattern DDDSU: the third slot of each period grants
/// the uplink slot, two slots later. `first` is the first slot.
fn reports_of_nr(first: u64) -> Vec<RadioReport> {
    let slot_of = |index| Slot { numerology: Numerology::KHZ_30, index };
    let report = |index: u64| {
        let grant = |direction, bits: u64, again: bool| Dci {
            direction,
            format: if direction == Direction::Uplink { DciFormat::Nr01 } else { DciFormat::Nr11 },
            prbs: PrbSet::run(6, 261),
            mcs: [Some((index % 28) as u8), None],
            tbs: [Bits(8 * bits), Bits::ZERO],
            rv: [Some(if again { 2 } else { 0 }), None],
            harq: Some((index / 5 % 16) as u8),
            layers: 1,
            symbols: Some(13),
            offset_slots: Some(if direction == Direction::Uplink { 2 } else { 0 }),
            retransmission: [again, false],
            ..Dci::default()
        };
        let mut dcis = vec![];
        if index % 5 < 4 {
            // The largest block of a carrier of 100 MHz with four layers.
            dcis.push(grant(Direction::Downlink, 159_749 - index % 7, false));
        }
        if index % 5 == 2 {
            dcis.push(grant(Direction::Uplink, 29_722 - index % 11, index.is_multiple_of(3)));
        }
        let own = report(0, 0, Some(!index.is_multiple_of(9)), vec![]).own;
        let symbols = Some(if index % 5 == 4 { 0 } else { 13 });
        let time = Time::from_micros(500 * (index - first));
        RadioReport {
            symbols,
            carrier_prbs: Some(273),
            own,
            dcis,
            ..RadioReport::new(CarrierId(2), slot_of(index), time)
        }
    };
    (first..first + 4_000).map(report).collect()
}

#[test]
fn uplink_grants_of_nr_come_back_in_the_slots_of_their_data() {
    // The frame numbers wrap in the middle.
    let reports = reports_of_nr(2 * 10_240 - 2_000);
    let all = composed(&reports);
    assert!(all.iter().all(|composed| [nr::B883, nr::B888].contains(&composed.code)), "no packet of LTE");
    let found = grants(&all);
    let mut truth = vec![];
    for report in &reports {
        let uplink = report.dcis.iter().filter(|dci| dci.direction == Direction::Uplink);
        truth.extend(uplink.map(|dci| (report.slot.index + 2, *dci)));
    }
    assert_eq!((found.len(), truth.len()), (800, 800));
    let shift = found[0].on_air().index - truth[0].0;
    assert_eq!(shift % (2 * 10_240), 0, "the numbers of the frames are those of the cell");
    let mut processes = BTreeMap::new();
    for (grant, (slot, dci)) in found.iter().zip(&truth) {
        assert_eq!((grant.on_air().index - shift, grant.on_air().numerology), (*slot, Numerology::KHZ_30));
        assert_eq!((grant.rat, grant.direction, grant.carrier), (Rat::Nr, dci.direction, CarrierId(0)));
        assert_eq!((grant.prbs, grant.prb_set, grant.harq), (261, Some(dci.prbs), dci.harq));
        let block = grant.blocks[0].unwrap();
        assert_eq!((block.mcs, block.rv, block.again), (dci.mcs[0], dci.rv[0], dci.is_retransmission()));
        let before = processes.get(&dci.harq).copied().filter(|_| dci.is_retransmission());
        let bits = before.unwrap_or(dci.bits());
        assert_eq!(grant.bits(), bits, "a retransmission has the size of its block");
        processes.insert(dci.harq, bits);
    }
}

#[test]
fn downlink_blocks_of_nr_come_back_as_sums() {
    let reports = reports_of_nr(0);
    let names = ["nr.dl.bytes", "nr.dl.blocks", "nr.dl.failed_blocks"];
    let subscription = Subscription::new(names).unwrap();
    let (mut extractor, mut last) = (Extractor::new(&subscription), [f64::NAN; 3]);
    let all = composed(&reports);
    for composed in &all {
        extractor.push(&packet(composed), |sample| last[sample.wanted] = sample.value);
    }
    let (mut bytes, mut blocks, mut failed) = (0, 0, 0);
    for report in &reports {
        for dci in report.dcis.iter().filter(|dci| dci.direction == Direction::Downlink) {
            blocks += 1;
            match report.own.as_ref().unwrap().decoded {
                Some(true) => bytes += dci.bits().bytes().0,
                _ => failed += 1,
            }
        }
    }
    assert_eq!(last, [bytes, blocks, failed].map(|sum: u64| sum as f64));
    assert_eq!(blocks, 3_200);
    let packets = all.iter().filter(|composed| composed.code == nr::B888);
    let at: Vec<u64> = packets.map(|composed| composed.at.as_millis()).collect();
    assert_eq!(at[..3], [101, 201, 301], "the first block is known after 1.5 ms");
}

#[test]
fn packets_about_lte_and_nr_are_in_order_of_time() {
    let mut reports: Vec<_> =
        (0..2_000).map(|at| report(at, 0, Some(true), vec![down(at, 20), up(at)])).collect();
    let of_lte_only = composed(&reports);
    reports.extend(reports_of_nr(0));
    reports.sort_by_key(|report| report.time);
    let both = composed(&reports);
    let is_nr = |composed: &&Composed| [nr::B883, nr::B888].contains(&composed.code);
    // In 44 ms, the modem transmits 17 or 18 blocks, one in 2.5 ms.
    assert_eq!(both.iter().filter(is_nr).count(), 45 + 20);
    let of_lte: Vec<_> = both.iter().filter(|composed| !is_nr(composed)).cloned().collect();
    assert_eq!(of_lte, of_lte_only, "carriers of NR change no packet about LTE");
    for composed in both.iter().filter(is_nr) {
        let decoded = log::read(&packet(composed)).unwrap();
        assert_eq!((decoded.left, decoded.unknown.as_slice()), (0, &[][..]), "{}", composed.code);
    }
}

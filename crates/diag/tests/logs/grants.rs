//! Tests of grants in recorded logs: each has the correct subframe, the same values in every packet that reports it, and
//! a size of TS 36.213. Skipped if the recordings are not available.

use crate::recordings_folder;

use std::collections::BTreeMap;

use airpace_core::tables::Modulation;
use airpace_core::{Bits, Direction, Time};
use airpace_diag::grant::report::{Reports, Until};
use airpace_diag::grant::{Block, Checksum, Grant, GrantReport, Grants, Oracle, Source, Verdict};
use airpace_diag::layout::{Record, Value};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogCode, LogPacket, Message, Radio, log};
use airpace_radio::CarrierId;
use recordings_folder::{logs, recordings};

/// The packets of every recorded log.
fn each_log(mut visit: impl FnMut(&str, &mut dyn FnMut(&mut dyn FnMut(&LogPacket<'_>)))) {
    let Some(folder) = recordings() else { return };
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        visit(path.file_name().unwrap().to_str().unwrap(), &mut |each| {
            Format::Hdlc.visit(&bytes, |_, item| {
                if let Item::Message(Message::Log(packet)) = item {
                    each(&packet);
                }
            });
        });
    }
}

/// All grants of every log.
fn each_logs_grants(mut visit: impl FnMut(&str, &[Grant], &Grants)) {
    each_log(|name, packets| {
        let (mut grants, mut all) = (Grants::new(), vec![]);
        packets(&mut |packet| {
            grants.push(packet, |report| {
                if let GrantReport::Grant(grant) = report {
                    all.push(grant);
                }
            });
        });
        visit(name, &all, &grants);
    });
}

/// Differences between the reports of two layers of the modem about one grant, in fields that both reports have.
fn differences(one: &Grant, other: &Grant) -> Vec<String> {
    let mut differences = vec![];
    let mut differ = |what: &str, one: Option<u64>, other: Option<u64>| {
        if let (Some(one), Some(other)) = (one, other)
            && one != other
        {
            differences.push(format!("{what} {one} and {other}"));
        }
    };
    let is_coded = one.source != Source::Mac && other.source != Source::Mac;
    differ("prbs", is_coded.then_some(one.prbs.into()), is_coded.then_some(other.prbs.into()));
    let first = |grant: &Grant| grant.prb_set?.runs().next().map(|(start, _)| u64::from(start));
    differ("first prb", first(one), first(other));
    // In the uplink, only the MAC layer reports HARQ processes, so there is nothing to compare.
    differ("harq", one.harq.map(u64::from), other.harq.map(u64::from));
    for (one, other) in one.blocks.iter().flatten().zip(other.blocks.iter().flatten()) {
        let both = |what: fn(&Block) -> Option<u64>| (what(one), what(other));
        // In the uplink, the DCI does not determine sizes and redundancy versions of retransmitted blocks.
        for (what, (one, other)) in [
            ("bits", both(|block| block.bits.map(|bits| bits.0))),
            ("ndi", both(|block| block.ndi.map(u64::from))),
            ("rv", both(|block| block.rv.map(u64::from))),
        ] {
            differ(what, one, other);
        }
    }
    differences
}

#[test]
fn all_sources_of_a_grant_report_the_same() {
    let mut agree: BTreeMap<(Direction, Source, Source), usize> = BTreeMap::new();
    each_logs_grants(|name, all, grants| {
        let troubles = grants.troubles();
        assert_eq!(
            (troubles.misfits, troubles.versions, troubles.dcis),
            (0, 0, 0),
            "{name}: everything is read"
        );
        let mut told: BTreeMap<(u64, CarrierId, Direction), Vec<&Grant>> = BTreeMap::new();
        for grant in all {
            told.entry((grant.subframe, grant.carrier, grant.direction)).or_default().push(grant);
        }
        for ((subframe, _, direction), same) in told {
            for (at, one) in same.iter().enumerate() {
                for other in &same[at + 1..] {
                    let found = differences(one, other);
                    assert!(
                        found.is_empty(),
                        "{name}, subframe {subframe} {direction:?}: {found:?}\n{one:?}\n{other:?}"
                    );
                    let sources = [one.source, other.source];
                    let key = (direction, sources[0].min(sources[1]), sources[0].max(sources[1]));
                    *agree.entry(key).or_default() += 1;
                }
            }
        }
    });
    if agree.is_empty() {
        return;
    }
    println!("pairs that agree: {agree:#?}");
    use Direction::{Downlink, Uplink};
    let at_least = |key: (Direction, Source, Source), count| {
        assert!(agree.get(&key).is_some_and(|pairs| *pairs >= count), "{key:?}: {agree:?}");
    };
    // These comparisons verify the bit order of a raw DCI in both directions.
    at_least((Downlink, Source::ControlChannel, Source::SharedChannel), 26);
    at_least((Uplink, Source::ControlChannel, Source::SharedChannel), 40);
    at_least((Downlink, Source::Demapper, Source::SharedChannel), 20);
    at_least((Uplink, Source::Mac, Source::SharedChannel), 30);
    at_least((Downlink, Source::Mac, Source::ControlChannel), 15);
}

#[test]
fn subframes_and_their_times_are_in_order() {
    each_logs_grants(|name, all, _| {
        let mut newest: BTreeMap<(Radio, Direction, LogCode), &Grant> = BTreeMap::new();
        for grant in all {
            // Skip the MAC layer: it reports the last records of a connection only with the next connection.
            if grant.source == Source::Mac {
                continue;
            }
            if let Some(before) = newest.insert((grant.radio, grant.direction, grant.code), grant) {
                assert!(grant.subframe >= before.subframe, "{name}: {before:?}\n{grant:?}");
                // Allow for a clock that is still converging, because the first packets may have been late.
                let since = grant.time.since(before.time).unwrap();
                assert!(since > -0.6, "{name}: {since}: {before:?}\n{grant:?}");
            }
            let late = grant.stamp.since(grant.time).unwrap();
            assert!(
                (-0.0045..5.2).contains(&late),
                "{name}: nothing is told before it was: {late} {grant:?}"
            );
        }
        let fastest = all
            .iter()
            .filter(|grant| grant.code == LogCode(0xB130))
            .map(|grant| grant.stamp.since(grant.time).unwrap());
        if let Some(fastest) = fastest.reduce(f64::min) {
            assert!(fastest < 0.001, "{name}: the control channel is told within a millisecond: {fastest}");
        }
    });
}

fn number(record: &Record<'_>, name: &str) -> Option<u64> {
    match record.get(name)? {
        Value::Unsigned(number) => Some(*number),
        Value::Name(name) => name.split('Q').next().and_then(|order| match (order, *name) {
            (_, "QPSK") => Some(2),
            (order, _) => Some(u64::from(order.trim_end_matches('-').parse::<u32>().ok()?.ilog2())),
        }),
        _ => None,
    }
}

/// Whether a block is for all phones: its RNTI is the RNTI of paging, of random access or of system information.
fn is_common(record: &Record<'_>) -> bool {
    matches!(record.get("rnti_type"), Some(Value::Name("P-RNTI" | "RA-RNTI" | "SI-RNTI")))
}

#[test]
fn block_sizes_are_those_of_the_tables() {
    let mut verdicts: BTreeMap<(LogCode, String, Verdict), usize> = BTreeMap::new();
    each_log(|name, packets| {
        let mut grants = Grants::new();
        packets(&mut |packet| grants.push(packet, |_| {}));
        packets(&mut |packet| {
            if packet.code != LogCode(0xB173) && packet.code != LogCode(0xB139) {
                return;
            }
            let decoded = log::read(packet).unwrap();
            let checksum = grants.checksum(packet.code, decoded.version);
            let mut check = |block: &Record<'_>, oracle: Oracle, bits: Bits| {
                let verdict = oracle.check(bits);
                assert_ne!(
                    verdict,
                    Verdict::Differs,
                    "{name}: {} {oracle:?} {bits:?} {block:?}",
                    packet.code
                );
                *verdicts.entry((packet.code, decoded.version.to_string(), verdict)).or_default() += 1;
            };
            for record in decoded.fields.records("records") {
                for block in record.records("transport_blocks") {
                    let oracle = Oracle {
                        direction: Direction::Downlink,
                        mcs: number(block, "mcs").map(|mcs| mcs as u8),
                        modulation: None,
                        prbs: number(block, "num_rbs").unwrap() as u16,
                        is_common: is_common(block),
                    };
                    assert_ne!(checksum, Checksum::Unknown, "{name}: its blocks tell");
                    check(block, oracle, checksum.bits(number(block, "tb_size").unwrap()));
                }
                let Some(bytes) = number(record, "pusch_tb_size") else { continue };
                let oracle = Oracle {
                    direction: Direction::Uplink,
                    mcs: None,
                    modulation: match number(record, "pusch_mod_order") {
                        Some(2) => Some(Modulation::Qpsk),
                        Some(4) => Some(Modulation::Qam16),
                        Some(6) => Some(Modulation::Qam64),
                        other => panic!("{other:?}: {record:?}"),
                    },
                    prbs: number(record, "num_of_rb").unwrap() as u16,
                    is_common: false,
                };
                check(record, oracle, Bits(8 * bytes));
            }
        });
    });
    if verdicts.is_empty() {
        return;
    }
    println!("block sizes: {verdicts:#?}");
    let count = |verdict| {
        verdicts.iter().filter(|((.., own), _)| *own == verdict).map(|(_, count)| count).sum::<usize>()
    };
    // These blocks are blocks retransmitted with a reserved MCS, and subframes with control information only.
    assert!(
        count(Verdict::Agrees) >= 88 && count(Verdict::Reserved) >= 1 && count(Verdict::Empty) >= 3,
        "{verdicts:?}"
    );
}

#[test]
fn reports_have_every_subframe_once_and_all_the_bits() {
    each_logs_grants(|name, all, _| {
        let mut reports = Reports::new(Radio::FIRST);
        let mut best: BTreeMap<(u64, CarrierId, Direction), &Grant> = BTreeMap::new();
        for grant in all {
            reports.push(grant);
            let known = best.entry((grant.subframe, grant.carrier, grant.direction)).or_insert(grant);
            if known.source < grant.source {
                *known = grant;
            }
        }
        let list = reports.take(Until::End);
        let mut carriers: BTreeMap<CarrierId, u64> = BTreeMap::new();
        for report in &list {
            if let Some(before) = carriers.insert(report.carrier, report.slot.index) {
                assert!(report.slot.index > before, "{name}: subframe {before}, then {}", report.slot.index);
            }
        }
        let mut times: BTreeMap<CarrierId, Time> = BTreeMap::new();
        for report in &list {
            let before = times.insert(report.carrier, report.time);
            assert!(before <= Some(report.time), "{name}: {before:?}, then {:?}", report.time);
            assert!(report.carrier.0 <= 7, "{name}: carrier {}", report.carrier.0);
        }
        let told: usize = list.iter().map(|report| report.dcis.len()).sum();
        let expected = best.values().filter(|grant| grant.radio == Radio::FIRST).count();
        assert_eq!(told as u64 + reports.left_out(), expected as u64, "{name}");
        if reports.left_out() == 0 {
            let told: Bits = list.iter().flat_map(|report| &report.dcis).map(|dci| dci.bits()).sum();
            let expected: Bits =
                best.values().filter(|grant| grant.radio == Radio::FIRST).map(|grant| grant.bits()).sum();
            assert_eq!(told, expected, "{name}");
        }
    });
}

//! Tests of the KPIs of the recorded logs, compared with complete decoding of the same packets. Skipped if the recordings
//! are not available.

use crate::recordings_folder;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use airpace_diag::kpi::origin::{Control, Formula, Is, Origin, When};
use airpace_diag::kpi::qualcomm::ORIGINS;
use airpace_diag::kpi::{Extractor, KPIS, Kind, Kpi, Subscription};
use airpace_diag::layout::{Layout, Record, Shown, Value};
use airpace_diag::mac::{self, BUFFER_SIZES, Element};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogPacket, Message, Radio, log};
use airpace_diag::{rlc, rrc};
use recordings_folder::{logs, recordings};

/// KPIs whose values depend on several packets.
const REMEMBERING: &[&str] = &["lte.rlc.ul.retransmissions", "lte.ul.latency"];

/// Visits the log packets of a recorded log.
fn visit(bytes: &[u8], mut visit: impl FnMut(&LogPacket<'_>)) {
    Format::Hdlc.visit(bytes, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            visit(&packet);
        }
    });
}

/// A row of values, one value for each path.
type Row<'r, 'a> = Vec<Option<&'r Value<'a>>>;

/// The rows of a record: one for each repetition of the innermost part that the paths reach.
fn rows<'r, 'a>(
    record: &'r Record<'a>,
    paths: &[(usize, &str)],
    row: &mut Row<'r, 'a>,
    all: &mut Vec<Row<'r, 'a>>,
) {
    let mut own = false;
    let mut deeper: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for &(column, path) in paths {
        match path.split_once('.') {
            Some((part, rest)) => deeper.entry(part).or_default().push((column, rest)),
            None => {
                row[column] = record.get(path);
                own |= row[column].is_some();
            }
        }
    }
    let mut is_deepest = true;
    for (part, paths) in deeper {
        let within = match record.get(part) {
            Some(Value::Records(records)) => records.iter().collect(),
            Some(Value::Record(record)) => vec![record],
            _ => continue,
        };
        is_deepest = false;
        for record in within {
            for (column, _) in &paths {
                row[*column] = None;
            }
            rows(record, &paths, row, all);
        }
    }
    if is_deepest && own {
        all.push(row.clone());
    }
}

/// The number of a value; for a named value, its number in the layout.
fn number(layout: &'static Layout, path: &str, value: &Value<'_>) -> Option<f64> {
    Some(match *value {
        Value::Unsigned(number) | Value::Mask(number, _) | Value::Flags(number, _) => number as f64,
        Value::Signed(number) => number as f64,
        Value::Real(number) => number,
        Value::Name(name) => {
            let leaves = layout.find(path);
            let names = leaves.iter().find_map(|leaf| match leaf.field?.shown {
                Shown::Named(names) => Some(names),
                _ => None,
            });
            names?.iter().find(|(_, other)| *other == name)?.0 as f64
        }
        _ => return None,
    })
}

/// The name of a value; `None` for numbers.
fn name<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::Name(name) => Some(name),
        _ => None,
    }
}

fn holds(layout: &'static Layout, when: &When, value: Option<&Value<'_>>) -> bool {
    let Some(value) = value else { return when.or_absent };
    match when.is {
        Is::Number(wanted) => number(layout, when.path, value) == Some(wanted as f64),
        Is::Not(unwanted) => number(layout, when.path, value) != Some(unwanted as f64),
        Is::Named(names) => name(value).is_some_and(|name| names.contains(&name)),
        Is::NotNamed(names) => name(value).is_none_or(|name| !names.contains(&name)),
        Is::Begins(start) => name(value).is_some_and(|name| name.starts_with(start)),
    }
}

/// The values of an origin in a row.
fn values(layout: &'static Layout, origin: &Origin, row: &[Option<&Value<'_>>]) -> Vec<f64> {
    let bytes = row.iter().find_map(|value| match value {
        Some(Value::Bytes(bytes)) => Some(*bytes),
        _ => None,
    });
    let numbers: Vec<f64> = origin
        .value
        .iter()
        .zip(row)
        .filter_map(|(path, value)| value.and_then(|value| number(layout, path, value)))
        .collect();
    let first = numbers.first().copied();
    let value = match origin.formula {
        Formula::First => first,
        Formula::Plus(offset) => first.map(|number| number + offset),
        Formula::Times(factor) => first.map(|number| number * factor),
        Formula::Signed => first.map(|number| {
            let bits = layout.find(origin.value[0])[0].field.unwrap().width as u32;
            if number >= f64::from(1 << (bits - 1)) { number - f64::from(1 << bits) } else { number }
        }),
        Formula::Largest => numbers.iter().copied().reduce(f64::max),
        Formula::Sum => numbers.iter().copied().reduce(|one, other| one + other),
        Formula::TwoToThe => first.map(|power| f64::from(1 << power as u32)),
        Formula::Quotient => Some(numbers[0] / numbers[1]),
        Formula::One => row.iter().any(Option::is_some).then_some(1.0),
        Formula::Named(meanings) => row[0]
            .and_then(name)
            .and_then(|name| meanings.iter().find(|(other, _)| *other == name))
            .map(|(_, value)| *value),
        Formula::Nacks => {
            let mut nacks = 0;
            let sn_bits = numbers.first().map_or(0, |number| *number as u64);
            let read = rlc::visit(sn_bits, bytes.unwrap_or_default(), |item| {
                nacks += u32::from(matches!(item, rlc::Item::Nack { .. }));
            });
            matches!(read, Ok(rlc::Pdu::Status { .. })).then_some(f64::from(nacks))
        }
        Formula::SentAgain => unreachable!("it is not in one packet"),
        Formula::NrMessageType => bytes
            .zip(row[1].and_then(name))
            .and_then(|(bytes, channel)| rrc::nr_message(channel, bytes))
            .map(|kind| f64::from(kind.number)),
        Formula::Element(direction, control) => {
            let Some(Value::Bytes(header)) = row[0] else { return vec![] };
            let mut found = vec![];
            let _ = mac::visit(direction, header, |subheader| match (control, subheader.element) {
                (Control::BufferStatus, Element::ShortBsr { index, .. }) => {
                    found.push(f64::from(BUFFER_SIZES[usize::from(index)]));
                }
                (Control::BufferStatus, Element::LongBsr(groups)) => {
                    found.push(groups.iter().map(|&index| f64::from(BUFFER_SIZES[usize::from(index)])).sum());
                }
                (Control::GroupStatus(wanted), Element::ShortBsr { group, index, .. }) if wanted == group => {
                    found.push(f64::from(BUFFER_SIZES[usize::from(index)]));
                }
                (Control::GroupStatus(wanted), Element::LongBsr(groups)) => {
                    found.push(f64::from(BUFFER_SIZES[usize::from(groups[usize::from(wanted)])]));
                }
                (Control::PowerHeadroom, Element::PowerHeadroom(index)) => {
                    found.push(f64::from(index) - 23.0)
                }
                (Control::TimingAdvance, Element::TimingAdvance { command, .. }) => {
                    found.push(f64::from(command) - 31.0);
                }
                _ => {}
            });
            return found;
        }
    };
    value.filter(|value| origin.above.is_none_or(|unmeasured| *value > unmeasured)).into_iter().collect()
}

/// Values of an origin in a packet, computed from complete decoding.
fn expected(layout: &'static Layout, origin: &Origin, fields: &Record<'_>) -> Vec<f64> {
    let paths: Vec<&str> = origin
        .value
        .iter()
        .copied()
        .chain(origin.when.iter().map(|when| when.path))
        .chain(origin.rows)
        .collect();
    let mut numbered: Vec<(usize, &str)> = paths.iter().copied().enumerate().collect();
    numbered.retain(|(_, path)| !layout.find(path).is_empty());
    let mut all = vec![];
    rows(fields, &numbered, &mut vec![None; paths.len()], &mut all);
    let (mut found, mut left, mut sum) = (vec![], 0, None);
    for row in all {
        let passes = origin
            .when
            .iter()
            .zip(&row[origin.value.len()..])
            .all(|(when, value)| holds(layout, when, *value));
        let values = if passes { values(layout, origin, &row[..origin.value.len()]) } else { vec![] };
        if origin.rows.is_none() {
            found.extend(values);
            continue;
        }
        let Some(Value::Unsigned(of)) = row[paths.len() - 1] else { panic!("{}: a count", origin.kpi) };
        if left == 0 {
            (left, sum) = (*of, None);
        }
        for value in values {
            sum = Some(sum.unwrap_or(0.0) + value);
        }
        left -= 1;
        if left == 0 {
            found.extend(sum);
        }
    }
    found
}

/// Samples that a new extractor returns for these values, if all values are from one packet and one carrier.
fn as_kind(kind: Kind, values: &[f64]) -> Vec<f64> {
    let before = |at: usize| &values[..=at];
    let all = 0..values.len();
    match kind {
        Kind::Level | Kind::Event => values.to_vec(),
        Kind::Total => all.map(|at| before(at).iter().sum()).collect(),
        Kind::Share => all.map(|at| before(at).iter().sum::<f64>() / (at + 1) as f64).collect(),
        Kind::Wait => unreachable!("waits have tests of their own"),
    }
}

#[test]
fn every_kpi_of_a_log_equals_the_value_in_its_whole_packet() {
    let Some(folder) = recordings() else { return };
    let kinds: BTreeMap<&str, &Kpi> = KPIS.iter().map(|kpi| (kpi.name, kpi)).collect();
    let mut extractors = BTreeMap::new();
    for kpi in KPIS {
        let names = [kpi.name.to_owned(), format!("{}@2", kpi.name)];
        let subscription = Subscription::new(names.iter().map(String::as_str)).unwrap();
        extractors.insert(kpi.name, Extractor::new(&subscription));
    }
    let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        visit(&bytes, |packet| {
            let origins: Vec<&Origin> = ORIGINS.iter().filter(|origin| origin.code == packet.code).collect();
            let names: BTreeSet<&str> = origins.iter().map(|origin| origin.kpi).collect();
            let decoded = log::read(packet);
            // Retransmission and queueing delay cannot be determined from a single packet.
            let is_of_one = |name: &&str| !REMEMBERING.contains(name);
            for name in names.into_iter().filter(is_of_one) {
                let mut expected_values = vec![];
                if let Ok(decoded) = &decoded {
                    let layout = log::code(packet.code).unwrap().layout(decoded.version).unwrap();
                    let is_meant = |origin: &&&Origin| {
                        let versions = origin.versions;
                        origin.kpi == name && (versions.is_empty() || versions.contains(&decoded.version))
                    };
                    for origin in origins.iter().filter(is_meant) {
                        expected_values.extend(expected(layout, origin, &decoded.fields));
                    }
                }
                let mut found = vec![];
                let mut extractor = extractors[name].clone();
                extractor.push(packet, |sample| {
                    assert_eq!(sample.wanted, usize::from(packet.radio == Radio(2)), "{name}");
                    assert!(sample.subframe.is_none_or(|subframe| subframe < 10_240), "{name}");
                    found.push(sample.value);
                });
                // `as_kind` computes a share as if there were only one carrier. In logs with several carriers, other
                // KPIs compare the same values as events.
                let kind = kinds[name].kind;
                assert_eq!(found, as_kind(kind, &expected_values), "{name} of {} in {path:?}", packet.code);
                *compared.entry(name).or_default() += found.len();
            }
        });
    }
    let total: usize = compared.values().sum();
    println!("{total} values of {} KPIs compared", compared.values().filter(|count| **count > 0).count());
    assert!(total > 50_000, "there were values: {total}");
}

#[test]
fn a_generic_field_gives_a_sample_for_each_record() {
    let Some(folder) = recordings() else { return };
    let names = ["0xB173:records.num_rbs", "0xB173:num_records", "0xB193:subpackets.e_arfcn"];
    let mut extractor = Extractor::new(&Subscription::new(names).unwrap());
    let (mut found, mut records, mut packets) = ([0, 0, 0], 0, 0);
    let bytes = std::fs::read(folder.join("lte_pixel3_a.mi2log")).unwrap();
    visit(&bytes, |packet| {
        extractor.push(packet, |sample| {
            found[sample.wanted] += 1;
            assert_eq!(sample.subframe.is_some(), sample.wanted == 0, "a record has its subframe");
        });
        if packet.code.0 == 0xB173 {
            packets += 1;
            records += log::read(packet).unwrap().fields.records("records").len();
        }
    });
    assert!(packets > 0 && found[2] > 0, "the log has both codes");
    assert_eq!(found[..2], [records, packets]);
    assert_eq!(extractor.troubles(), []);
}

#[test]
fn the_logs_have_so_many_samples_of_each_kpi() {
    let Some(folder) = recordings() else { return };
    let names: Vec<String> =
        [1, 2].iter().flat_map(|radio| KPIS.iter().map(move |kpi| format!("{}@{radio}", kpi.name))).collect();
    let subscription = Subscription::new(names.iter().map(String::as_str)).unwrap();
    let mut counts: BTreeMap<&str, Vec<u32>> =
        KPIS.iter().map(|kpi| (kpi.name, vec![0; logs(&folder).len()])).collect();
    let (mut heads, mut troubles) = (String::new(), String::new());
    for (column, path) in logs(&folder).iter().enumerate() {
        let log = path.file_stem().unwrap().to_str().unwrap();
        writeln!(heads, "{column:>2} {log}").unwrap();
        let mut extractor = Extractor::new(&subscription);
        let bytes = std::fs::read(path).unwrap();
        visit(&bytes, |packet| {
            extractor.push(packet, |sample| {
                let kpi = subscription.wanted(sample.wanted).kpi().unwrap();
                counts.get_mut(kpi.name).unwrap()[column] += 1;
            });
        });
        for trouble in extractor.troubles() {
            writeln!(troubles, "{log}: {} ({} times)", trouble_text(&subscription, trouble), trouble.count)
                .unwrap();
        }
        assert_eq!(extractor.more_troubles(), 0, "{log}");
    }
    let mut table = String::new();
    for kpi in KPIS {
        let row = &counts[kpi.name];
        if row.iter().any(|count| *count > 0) {
            let cells: String = row.iter().map(|count| format!("{count:>6}")).collect();
            writeln!(table, "{:28}{cells}", kpi.name).unwrap();
        }
    }
    let numbers: String = (0..logs(&folder).len()).map(|column| format!("{column:>6}")).collect();
    insta::assert_snapshot!(format!("{heads}\n{:28}{numbers}\n{table}\n{troubles}", ""));
}

/// The valid range of a KPI, if its unit or its name limits it. The values that a modem writes if it has no measurement
/// (−180 dBm, −30 dB, an SNR of −20 dB, 0 MHz) lie outside this range.
///
/// Source: TS 36.133 §9.1.4
///
/// Source: TS 36.133 §9.1.7
///
/// Chosen: values that a modem measures beyond the reporting range are valid, too.
fn bounds(kpi: &Kpi) -> Option<(f64, f64)> {
    let ends = |end: &str| kpi.name.ends_with(end);
    let has = |part: &str| kpi.name.split('.').any(|own| own == part);
    Some(match kpi.unit {
        "dBm" if has("rsrp") => (-156.0, -30.0),
        "dBm" if has("rssi") => (-109.9, -10.0),
        "dBm" => (-60.0, 90.0),
        "dB" if has("rsrq") => (-29.95, 3.0),
        "dB" if has("snr") => (-19.95, 40.0),
        "dB" if has("path_loss") => (40.0, 200.0),
        "dB" => (-50.0, 60.0),
        "%" => (0.0, 100.0),
        "MHz" => (0.18, 400.0),
        "kHz" => (15.0, 120.0),
        "bit" => (1.0, 8.0),
        "CCE" => (1.0, 24.0),
        "16Ts" => (-31.0, 32.0),
        "ms" => (0.0, 10_000.0),
        // The limit is the maximum block of eight layers, or an NR block of all carriers.
        "byte" if kpi.kind == Kind::Event => (0.0, 300_000.0),
        "byte" => (0.0, 1e12),
        _ if kpi.kind == Kind::Share || ends(".crc") || ends(".ack") || ends(".code_rate") => (0.0, 1.0),
        _ if ends(".mcs") => (0.0, 31.0),
        _ if ends(".prb") => (0.0, 275.0),
        _ if has("cqi") => (0.0, 15.0),
        _ if ends(".ri") || ends(".layers") => (1.0, 8.0),
        _ if ends(".rv") => (0.0, 3.0),
        _ if ends("antenna_ports") => (1.0, 4.0),
        _ if has("pci") => (0.0, if kpi.name.starts_with("nr.") { 1007.0 } else { 503.0 }),
        _ if has("mcc") => (200.0, 999.0),
        _ if has("mnc") => (0.0, 999.0),
        _ => return None,
    })
}

#[test]
fn every_sample_of_the_logs_is_a_value_that_its_kpi_can_have() {
    let Some(folder) = recordings() else { return };
    let names: Vec<String> =
        [1, 2].iter().flat_map(|radio| KPIS.iter().map(move |kpi| format!("{}@{radio}", kpi.name))).collect();
    let subscription = Subscription::new(names.iter().map(String::as_str)).unwrap();
    let (mut bounded, mut beyond) = (0, BTreeMap::<_, (usize, f64, f64)>::new());
    for path in logs(&folder) {
        let log = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut extractor = Extractor::new(&subscription);
        visit(&std::fs::read(&path).unwrap(), |packet| {
            extractor.push(packet, |sample| {
                let kpi = subscription.wanted(sample.wanted).kpi().unwrap();
                let Some((least, most)) = bounds(kpi) else { return };
                bounded += 1;
                if !(least..=most).contains(&sample.value) {
                    let (count, low, high) = beyond.entry((kpi.name, packet.code, log.clone())).or_insert((
                        0,
                        sample.value,
                        sample.value,
                    ));
                    *count += 1;
                    *low = low.min(sample.value);
                    *high = high.max(sample.value);
                }
            });
        });
    }
    for ((kpi, code, log), (count, low, high)) in &beyond {
        println!("{kpi} of {code} in {log}: {count} times, {low} to {high}");
    }
    assert!(beyond.is_empty(), "every value is one that can be");
    assert!(bounded > 50_000, "there were values: {bounded}");
}

/// Text of a trouble, with the KPI's name instead of its index.
fn trouble_text(subscription: &Subscription, trouble: &airpace_diag::kpi::Trouble) -> String {
    match trouble.reason {
        airpace_diag::kpi::Reason::MissingKpi(wanted) => {
            let version = trouble.version.unwrap();
            format!("{} version {version}: has nothing for {}", trouble.code, subscription.wanted(wanted))
        }
        _ => trouble.to_string(),
    }
}

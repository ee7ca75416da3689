//! Tests of the interpretation of values in the recorded logs: MAC blocks by RNTI, one type for each field, and no
//! value for fields whose value the modem does not know. Skipped if the recordings are not available.

use crate::recordings_folder;

use std::collections::{BTreeMap, BTreeSet};

use airpace_diag::export::json;
use airpace_diag::kpi::{Extractor, Subscription};
use airpace_diag::layout::{Decoded, Record, Value};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogPacket, Message, Radio, log};
use recordings_folder::{logs, recordings};
use serde_json::Value as Json;

/// Visits the decodable packets of every recorded log, with the log's name.
fn visit(mut each: impl FnMut(&str, &LogPacket<'_>, &Decoded<'_>)) {
    let Some(folder) = recordings() else { return };
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        Format::Hdlc.visit(&bytes, |_, item| {
            if let Item::Message(Message::Log(packet)) = item
                && let Ok(decoded) = log::read(&packet)
            {
                each(name, &packet, &decoded);
            }
        });
    }
}

fn number(record: &Record<'_>, name: &str) -> u64 {
    match record.get(name) {
        Some(Value::Unsigned(number) | Value::Mask(number, _)) => *number,
        other => panic!("{name}: {other:?}"),
    }
}

fn name<'a>(record: &Record<'a>, field: &str) -> &'a str {
    match record.get(field) {
        Some(Value::Name(name)) => name,
        other => panic!("{field}: {other:?}"),
    }
}

#[test]
fn blocks_for_all_phones_have_no_subheaders_and_random_accesses_get_answers() {
    let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut identities: Vec<(String, u64)> = vec![];
    let mut used: BTreeSet<(String, u64)> = BTreeSet::new();
    visit(|log, packet, decoded| match packet.code.0 {
        0xB063 => {
            let subpackets = decoded.fields.records("subpackets").iter();
            for block in subpackets.flat_map(|subpacket| subpacket.records("samples")) {
                let whom = name(block, "rnti_type");
                if whom == "C-RNTI" {
                    continue;
                }
                assert_eq!(block.get("mac_broken_at"), None, "{log}: {block:?}");
                for element in block.records("mac") {
                    let kind = name(element, "element");
                    *kinds.entry((whom.to_owned(), kind.to_owned())).or_default() += 1;
                    if kind == "random access response" {
                        identities.push((log.to_owned(), number(element, "temporary_c_rnti")));
                        assert!(number(element, "rapid") < 64 && number(element, "ta_command") < 1_282);
                    }
                }
            }
        }
        0xB126 => {
            used.extend(
                decoded
                    .fields
                    .get("pdsch_rntil_id")
                    .map(|_| (log.to_owned(), number(&decoded.fields, "pdsch_rntil_id"))),
            );
        }
        _ => {}
    });
    if recordings().is_none() {
        return;
    }
    let expected = [
        (("P-RNTI", "transparent"), 9),
        (("RA-RNTI", "random access response"), 5),
        (("SI-RNTI", "transparent"), 6),
        (("Temporary-C-RNTI", "contention resolution"), 4),
        (("Temporary-C-RNTI", "data"), 4),
        (("Temporary-C-RNTI", "padding"), 4),
    ];
    assert_eq!(
        kinds,
        expected.map(|((whom, kind), count)| ((whom.to_owned(), kind.to_owned()), count)).into()
    );
    // The log of NB-IoT has no 0xB126.
    let checked: Vec<_> = identities.iter().filter(|(log, _)| !log.starts_with("nbiot")).collect();
    assert_eq!(checked.len(), 3);
    for identity in checked {
        assert!(used.contains(identity), "the phone gets blocks as {identity:?}, the identity of the answer");
    }
}

/// Collects the types of all values in a piece of JSON, by path; null matches any type.
fn types(path: &str, value: &Json, found: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Json::Null => return,
        Json::Bool(_) => "truth",
        Json::Number(_) => "number",
        Json::String(_) => "text",
        Json::Array(items) => {
            items.iter().for_each(|item| types(&format!("{path}[]"), item, found));
            "list"
        }
        Json::Object(fields) => {
            // The fields of a subpacket depend on its kind.
            let version = fields.get("subpacket_version").or(fields.get("version"));
            let which =
                fields.get("subpacket_id").map(|id| format!("<{id} {version:?}>")).unwrap_or_default();
            fields.iter().for_each(|(name, value)| types(&format!("{path}{which}.{name}"), value, found));
            "object"
        }
    };
    found.entry(path.to_owned()).or_default().insert(kind);
}

#[test]
fn every_field_of_a_version_has_one_type() {
    let (mut found, mut text) = (BTreeMap::new(), vec![]);
    visit(|_, packet, decoded| {
        text.clear();
        json::record(&decoded.fields, &mut text);
        let fields: Json = serde_json::from_slice(&text).unwrap();
        types(&format!("{} {}: ", packet.code, decoded.version), &fields, &mut found);
    });
    for (path, kinds) in &found {
        assert_eq!(kinds.len(), 1, "{path}");
    }
    // Treat a number with a unit as a number.
    let numbers = [
        "0xB0A3 1: .subpackets[]<195 Some(Number(1))>.pdus[].sn_length",
        "0xB0C0 26: .rrc_version_number",
        "0xB126 144: .records[].number_of_rx_antennas_n",
        "0xB245 2: .subcarrier_space",
        "0xB821 0.8: .rrc_version_number",
    ];
    assert!(recordings().is_none() || found.len() > 1_900, "{} fields", found.len());
    for path in numbers.into_iter().filter(|_| recordings().is_some()) {
        let kinds = found.get(path).unwrap_or_else(|| panic!("{path} is not there"));
        assert!(kinds.contains("number"), "{path}: {kinds:?}");
    }
}

#[test]
fn what_the_modem_does_not_know_is_no_value() {
    if recordings().is_none() {
        return;
    }
    // By log packet: number of known values and of unknown values.
    let mut counts: BTreeMap<(&str, &str), [usize; 2]> = BTreeMap::new();
    let mut count = |what, whose, record: &Record<'_>, fields: &[&str]| {
        let absent = fields.iter().filter(|field| record.get(field) == Some(&Value::Absent)).count();
        assert!(absent == 0 || absent == fields.len(), "{what}: {record:?}");
        counts.entry((what, whose)).or_default()[usize::from(absent > 0)] += 1;
    };
    visit(|_, packet, decoded| match packet.code.0 {
        0xB066 => {
            for sample in decoded.fields.records("subpackets").iter().flat_map(|part| part.records("samples"))
            {
                count("0xB066", "samples", sample, &["sub_fn", "sys_fn"]);
            }
        }
        0xB821 => {
            count("0xB821", "cell", &decoded.fields, &["physical_cell_id", "freq"]);
            count("0xB821", "frame", &decoded.fields, &["system_frame_number", "subframe_number"]);
        }
        0xB0C0 => {
            let channel = name(&decoded.fields, "channel");
            let whose = match channel.split('-').next() {
                Some("UL") => "uplink",
                Some("BCCH") => "system information",
                _ => "other downlink",
            };
            count("0xB0C0", whose, &decoded.fields, &["system_frame_number", "subframe_number"]);
        }
        _ => {}
    });
    let expected = [
        (("0xB066", "samples"), [42, 4_038]),
        (("0xB0C0", "other downlink"), [6_432, 0]),
        (("0xB0C0", "system information"), [1_712, 518]),
        (("0xB0C0", "uplink"), [0, 3_339]),
        (("0xB821", "cell"), [369, 23]),
        (("0xB821", "frame"), [172, 220]),
    ];
    assert_eq!(counts, expected.into());
}

/// The samples of an NR message contain its subframe if the modem knows it.
#[test]
fn samples_of_nr_messages_tell_their_subframe() {
    let names = ["nr.rrc.messages", "nr.rrc.sfn", "nr.rrc.slot"];
    let subscription = Subscription::listed(names, Radio::FIRST).unwrap();
    let mut extractor = Extractor::new(&subscription);
    // Number of messages, and number of messages with a subframe.
    let (mut messages, mut told) = (0, 0);
    visit(|_, packet, decoded| {
        if packet.code.0 != 0xB821 {
            return;
        }
        let known = match decoded.fields.get("system_frame_number") {
            Some(Value::Unsigned(frame)) => Some(10 * frame + number(&decoded.fields, "subframe_number")),
            _ => None,
        };
        extractor.push(packet, |sample| {
            assert_eq!(sample.subframe.map(u64::from), known, "{sample:?}");
            let is_message = subscription.wanted(sample.wanted).to_string().contains("messages");
            messages += usize::from(is_message);
            told += usize::from(is_message && known.is_some());
        });
    });
    assert!(recordings().is_none() || (messages, told) == (392, 172), "{told} of {messages}");
}

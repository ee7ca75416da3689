//! What values of the recorded logs mean: blocks of the MAC layer by whom they are for, one type for each field, and
//! nothing where the modem does not know. Skipped if the recordings are not there.

mod recordings_folder;

use std::collections::{BTreeMap, BTreeSet};

use airpace_diag::layout::{Decoded, Record, Value};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogPacket, Message, log};
use recordings_folder::{logs, recordings};

/// Visits the packets of every recorded log that can be read, with the log's name.
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

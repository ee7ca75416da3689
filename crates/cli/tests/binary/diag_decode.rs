//! `airpace diag decode`: the contents of log packets.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use super::diag_made::{Log, index, nas, recorded, rrc};
use super::{Done, Shell};

fn log() -> Log {
    Log::default()
        .packet(1, 0, 0xB0C0, &rrc(7, 1650, &[0x40, 1]))
        .packet(2, 1, 0xB0EC, &nas(&[7, 0x41]))
        .message(&[0x60, 0, 1])
        .packet(1, 10, 0xB1EA, &[48, 1, 2])
        .packet(1, 20, 0xB173, &[250, 9, 9, 9])
        .packet(2, 30, 0xB0EE, &[2, 1])
}

#[test]
fn every_packet_is_an_object_with_what_it_says() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let done = shell.run(&["diag", "decode", "--json", "phone.qmdl"]);
    let told = done.err.clone();
    let packets = done.json();
    assert_eq!(packets.len(), 5, "other messages are no packets");
    assert_eq!(
        packets[0],
        json!({
            "time_utc": "2021-03-07T06:28:02.000000", "code": "0xB0C0", "name": "LTE RRC OTA", "version": 26,
            "radio": 1,
            "fields": {
                "pkt_version": 26, "rrc_release_number": 15, "rrc_version_number": 48,
                "nr_rrc_release_number": 0, "nr_rrc_version_number": 0, "radio_bearer_id": 1,
                "physical_cell_id": 67, "freq": 1650, "subframe_number": 5, "system_frame_number": 310,
                "frame_flags": 0, "pdu_number": 7, "channel": "PCCH", "sib_mask_in_si": [], "msg_length": 2, "msg": "4001"
            }
        })
    );
    assert_eq!((&packets[1]["radio"], &packets[1]["fields"]["msg"]), (&json!(2), &json!("0741")));
    let unread: Vec<_> = packets[2..].iter().map(|packet| (&packet["fields"], &packet["unknown"])).collect();
    assert_eq!(
        unread,
        [(&Value::Null, &json!("code")), (&Value::Null, &json!("version")), (&Value::Null, &Value::Null)]
    );
    assert_eq!(packets[4]["misfit"], "packet at byte 0: takes 19 bytes of 2");
    assert_eq!(
        told,
        "airpace: 3 packets could not be read, or not all of them: 0xB1EA (1), 0xB173 version 250 (1), 0xB0EE that does \
         not fit its layout (1); --unknown DIR keeps them\n",
        "and that is reported once"
    );
    let bytes = &shell.run(&["diag", "decode", "--json", "--payload", "phone.qmdl"]).json()[2];
    assert_eq!((&bytes["payload"], &bytes["payload_bytes"]), (&json!("300102"), &json!(3)));
}

#[test]
fn codes_and_radios_are_selected_and_text_is_for_people() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let told = shell.run(&["diag", "decode", "phone.qmdl", "--code", "b0c0,0xB0EC"]).fine();
    assert!(told.contains("0xB0C0 LTE RRC OTA, version 26\n    pkt_version=26"), "{told}");
    assert_eq!(told.lines().count(), 4, "two packets of two lines: {told}");
    let second = shell.run(&["diag", "decode", "phone.qmdl", "--radio", "2", "--json"]).json();
    assert_eq!(second.len(), 2);
    assert!(second.iter().all(|packet| packet["radio"] == 2));
    shell
        .run(&["diag", "decode", "phone.qmdl", "--code", "173"])
        .refused(&["`173` is no log code", "0xB173"]);
    shell.run(&["diag", "decode", "missing"]).refused(&["missing", "give an existing file"]);
}

#[test]
fn what_cannot_be_read_is_kept_as_logs_of_their_own() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let done = shell.run(&["diag", "decode", "phone.qmdl", "--json", "--unknown", "kept"]);
    assert!(done.err.contains("kept in kept"), "{}", done.err);
    let kept: BTreeSet<_> = std::fs::read_dir(shell.path("kept"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        kept.into_iter().collect::<Vec<_>>(),
        ["0xB0EE_misfit.qmdl", "0xB173_v250.qmdl", "0xB1EA.qmdl"]
    );

    let joined = ["kept/0xB1EA.qmdl", "kept/0xB173_v250.qmdl", "kept/0xB0EE_misfit.qmdl"];
    let again = shell.run(&[&["diag", "decode", "--json", "--payload"], &joined[..]].concat()).json();
    let all = shell.run(&["diag", "decode", "--json", "--payload", "phone.qmdl"]).json();
    assert_eq!(again, all[2..], "radio, time and bytes are as they were");

    shell.write("file", "");
    shell.run(&["diag", "decode", "phone.qmdl", "--unknown", "file"]).refused(&["`file`", "--unknown"]);
}

#[test]
fn broken_bytes_cost_no_other_packet_and_are_reported_with_their_place() {
    let shell = Shell::new();
    let mut bytes = log().0;
    bytes[20] ^= 1;
    shell.write_bytes("flipped", &bytes);
    let done = shell.run(&["diag", "decode", "--json", "flipped"]);
    let told = done.err.clone();
    assert!(told.contains("flipped: bytes that are no message in 1 place, the first at byte 0"), "{told}");
    assert_eq!(done.json().len(), 4);
    shell.write_bytes("cut", &log().0[..90]);
    let done = shell.run(&["diag", "decode", "--json", "cut"]);
    assert!(
        done.err.contains("cut: bytes that are no message in 1 place, the first at byte "),
        "{}",
        done.err
    );
    assert_eq!(done.json().len(), 2);
}

#[test]
fn a_pipe_is_read_while_it_is_written() {
    let shell = Shell::new();
    let mut child = shell
        .command(&["diag", "decode", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for millis in 0..3 {
        input.write_all(&Log::default().packet(1, millis, 0xB0EC, &nas(&[7])).0).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(
            line.contains(&format!("02.00{millis}000")),
            "packet {millis} is there before the next: {line}"
        );
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// Splits a time into microseconds within the minute, and the text before them. The index omits a fraction of zero, and
/// its floating-point arithmetic is sometimes off by one.
fn split(utc: &str) -> (&str, i64) {
    let (before, after) = utc.split_at(17);
    let (seconds, micros) = after.split_once('.').unwrap_or((after, "0"));
    (before, seconds.parse::<i64>().unwrap() * 1_000_000 + micros.parse::<i64>().unwrap())
}

#[test]
fn recorded_logs_say_when_and_what_as_their_index_has_it() {
    for log in recorded() {
        let name = log.display();
        let done = Shell::new().run(&["diag", "decode", "--json", "--payload", log.to_str().unwrap()]);
        let packets = done.json();
        let rows: Vec<_> = index(&log).into_iter().filter(|row| row.kind == "log").collect();
        assert_eq!(packets.len(), rows.len(), "{name}");
        for (at, (packet, row)) in packets.iter().zip(&rows).enumerate() {
            let said = (&packet["code"], &packet["radio"], packet["payload"].as_str().unwrap().len() / 2);
            assert_eq!(said, (&json!(row.code), &json!(row.radio), row.bytes), "{name}, packet {at}");
            let version = packet["version"].to_string();
            // Some codes have no version; for them, the index contains their first byte.
            if !packet["version"].is_null() || !packet["fields"].is_object() {
                assert_eq!(version.trim_matches('"'), row.version, "{name}, packet {at}");
            }
            let (own, reference) = (split(packet["time_utc"].as_str().unwrap()), split(&row.utc));
            assert_eq!(own.0, reference.0, "{name}, packet {at}");
            assert!(
                (own.1 - reference.1).abs() <= 1,
                "{name}, packet {at}: {own:?} where it has {reference:?}"
            );
            let is_known = packet["fields"].is_object();
            assert!(
                is_known != packet["unknown"].is_string(),
                "{name}, packet {at} is neither read nor reported as unknown: {packet}"
            );
        }
    }
}

#[test]
fn recorded_chunks_are_one_log() {
    let Some(log) = recorded().into_iter().find(|log| log.ends_with("lte_pixel3_a.mi2log")) else { return };
    let shell = Shell::new();
    let bytes = std::fs::read(&log).unwrap();
    let mut words = vec!["diag".to_owned(), "decode".to_owned(), "--json".to_owned()];
    for (at, chunk) in bytes.chunks(100_000).enumerate() {
        let name = format!("chunk{at:02}.qmdl");
        shell.write_bytes(&name, chunk);
        words.push(name);
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let whole = Done::of(shell.command(&["diag", "decode", "--json"]).arg(&log), &["whole"]).fine();
    assert!(shell.run(&words).fine() == whole, "ten pieces give the same as the whole log");
}

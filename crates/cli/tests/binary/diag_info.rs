//! `airpace diag info`: contents of a log.

use std::io::Write;

use serde_json::json;

use super::Shell;
use super::diag_made::{Log, counts, index, nas, recorded, rrc};

/// Seven messages: two codes, two radios, an event, and an unknown code.
fn log() -> Log {
    Log::default()
        .packet(1, 0, 0xB0C0, &rrc(7, 1650, &[0x40, 1]))
        .packet(2, 1, 0xB0C0, &rrc(7, 2850, &[0x40, 2]))
        .packet(1, 10, 0xB0C0, &rrc(3, 1650, &[3]))
        .message(&[0x60, 0, 1])
        .packet(1, 40, 0xB0C0, &rrc(3, 1650, &[4]))
        .packet(2, 50, 0xB0EC, &nas(&[7, 0x41]))
        .packet(1, 60, 0xB1EA, &[48, 1, 2])
}

#[test]
fn a_log_is_told_for_people_and_programs() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let told = shell.run(&["diag", "info", "phone.qmdl"]).fine();
    for part in [
        "6 log packets in 0.060 s",
        "radio 1 (4 packets), radio 2 (2 packets): LTE",
        "LTE RRC OTA",
        "48?",
        "1 other message 0x60 (event)",
    ] {
        assert!(told.contains(part), "tells `{part}`: {told}");
    }
    assert!(!told.contains('\x1b'), "no colours without a terminal");

    let info = &shell.run(&["diag", "info", "--json", "phone.qmdl"]).json()[0];
    assert_eq!(info["file"], "phone.qmdl");
    assert_eq!((&info["packets"], &info["duration_s"]), (&json!(6), &json!(0.06)));
    assert_eq!((&info["radios"], &info["rats"]), (&json!([1, 2]), &json!(["LTE"])));
    let rrc = &info["codes"]["0xB0C0"];
    assert_eq!((&rrc["count"], &rrc["versions"]), (&json!(4), &json!({"26": 4})));
    assert_eq!(rrc["layouts"], json!({"26": "checked"}));
    assert_eq!(rrc["gap_ms"], json!({"median": 10.0, "p90": 30.0}), "gaps are of one radio");
    assert_eq!(info["codes"]["0xB1EA"]["layouts"], json!({"48": "unknown"}));
    assert_eq!(info["messages"], json!({"0x60": {"about": "event", "count": 1}}));
    assert_eq!(info["faults"], json!({}));
}

#[test]
fn compressed_logs_pipes_and_packets_without_frames_say_the_same() {
    let shell = Shell::new();
    let log = log().0;
    shell.write_bytes("plain", &log);
    let codes =
        |words: &[&str]| shell.run(&[&["diag", "info", "--json"], words].concat()).json()[0]["codes"].clone();
    let expected = codes(&["plain"]);

    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    gzip.write_all(&log).unwrap();
    shell.write_bytes("log.txt", &gzip.finish().unwrap());
    assert_eq!(codes(&["log.txt"]), expected, "gzip is known by its content");
    shell.write_bytes("log.gz", &zstd::encode_all(&log[..], 1).unwrap());
    assert_eq!(codes(&["log.gz"]), expected, "zstd is known by its content");

    let mut command = shell.command(&["diag", "info", "--json", "-"]);
    let done = super::Done::of(
        command.stdin(std::fs::File::open(shell.path("plain")).unwrap()),
        &["diag", "info", "-"],
    );
    assert_eq!(done.json()[0]["codes"], expected, "a pipe");

    let (mut dlf, mut packets) = (vec![], 0);
    airpace_diag::Format::Hdlc.visit(&log, |_, item| {
        if let airpace_diag::source::Item::Message(airpace_diag::Message::Log(packet)) = item {
            let mut body = vec![];
            packet.write(false, &mut body);
            dlf.extend_from_slice(&body[4..]);
            packets += 1;
        }
    });
    shell.write_bytes("log.dlf", &dlf);
    let info = &shell.run(&["diag", "info", "--json", "log.dlf"]).json()[0];
    assert_eq!((&info["form"], &info["packets"]), (&json!("dlf"), &json!(packets)));
    assert_eq!(info["codes"]["0xB0EC"], expected["0xB0EC"]);
}

#[test]
fn of_a_compressed_log_that_is_cut_all_up_to_there_is_told() {
    let shell = Shell::new();
    let many =
        |log: Log, at| log.packet(1, at, 0xB0C0, &rrc(7, 1650, &at.wrapping_mul(0x9E37_79B9).to_le_bytes()));
    let log = (0..20_000).fold(Log::default(), many).0;
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    gzip.write_all(&log).unwrap();
    for (name, packed) in
        [("a.gz", gzip.finish().unwrap()), ("a.zst", zstd::encode_all(&log[..], 1).unwrap())]
    {
        shell.write_bytes(name, &packed[..packed.len() * 3 / 4]);
        let done = shell.run(&["diag", "info", name, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        let packets = told["packets"].as_u64().unwrap();
        assert!((5_000..20_000).contains(&packets), "{name}: {packets} packets");
        done.refused(&[&format!("`{name}` cannot be read beyond byte {}", told["bytes"])]);
        let done = shell.run(&["diag", "bandwidth", name, "--reports", "reports"]);
        done.refused(&["cannot be read beyond byte"]);
        assert!(!shell.path("reports").exists(), "reports are of a whole log");
    }
}

#[test]
fn files_of_one_capture_are_joined_and_each_is_told() {
    let shell = Shell::new();
    let log = log().0;
    shell.write_bytes("1.qmdl", &log[..100]);
    shell.write_bytes("2.qmdl", &log[100..]);
    let both = shell.run(&["diag", "info", "--json", "1.qmdl", "2.qmdl"]).json();
    let packets: Vec<_> = both.iter().map(|info| info["packets"].as_u64().unwrap()).collect();
    assert_eq!(packets.iter().sum::<u64>(), 6, "the packet between the files is not lost");
    assert!(both.iter().all(|info| info["faults"] == json!({})), "{both:?}");

    let alone = &shell.run(&["diag", "info", "--json", "2.qmdl"]).json()[0];
    assert_eq!(alone["packets"], packets[1], "alone, a file has the packets that begin in it");
    assert_eq!(alone["faults"], json!({"bad checksum": {"count": 1, "first_offsets": [0]}}));
    let alone = shell.run(&["diag", "info", "1.qmdl"]).fine();
    assert!(alone.contains("1 × frame cut at the end of the file, at byte "), "{alone}");
}

#[test]
fn a_log_without_frames_says_how_many_bytes_a_wrong_length_cost() {
    let (mut dlf, mut begins) = (vec![], vec![]);
    for number in 0..20u8 {
        begins.push(dlf.len());
        let frame = Log::default().packet(1, u64::from(number), 0xB0C0, &rrc(7, 1650, &[0x40, number])).0;
        airpace_diag::Format::Hdlc.visit(&frame, |_, item| {
            if let airpace_diag::source::Item::Message(airpace_diag::Message::Log(packet)) = item {
                let mut body = vec![];
                packet.write(false, &mut body);
                dlf.extend_from_slice(&body[4..]);
            }
        });
    }
    dlf[begins[3]] += 1;
    let shell = Shell::new();
    shell.write_bytes("broken.dlf", &dlf);
    let info = &shell.run(&["diag", "info", "--json", "broken.dlf"]).json()[0];
    let (at, bytes) = (begins[3], begins[4] - begins[3]);
    assert_eq!((&info["form"], &info["packets"]), (&json!("dlf"), &json!(19)));
    let faults =
        json!({"stretch between packets skipped": {"count": 1, "first_offsets": [at], "bytes": bytes}});
    assert_eq!(info["faults"], faults);
    let told = shell.run(&["diag", "info", "broken.dlf"]).fine();
    let line = format!("1 × stretch between packets skipped ({bytes} bytes), at byte {at}");
    assert!(told.contains(&line), "{told}");
}

#[test]
fn what_is_no_log_is_refused_with_the_reason() {
    let shell = Shell::new();
    let text = "All work and no play.\n".repeat(60);
    shell.write("notes.txt", &text);
    for command in ["info", "decode"] {
        shell
            .run(&["diag", command, "notes.txt"])
            .found_nothing(&["notes.txt", "no diag frame found in 1,320 bytes"]);
    }
    // Random bytes, in which one frame has a valid checksum by chance.
    let mut state = 7u64;
    let mut noise: Vec<u8> = (0..100_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    noise.push(0x7E);
    noise.extend(Log::default().message(&[0x5A, 1, 2]).0);
    shell.write_bytes("noise.bin", &noise);
    for command in ["info", "decode"] {
        shell.run(&["diag", command, "noise.bin"]).found_nothing(&["noise.bin", "no diag frame found"]);
    }
    shell.write_bytes("phone.qmdl", &log().0);
    shell
        .run(&["diag", "decode", "phone.qmdl", "--code", "0xB173"])
        .found_nothing(&["no log packet of --code among 6 packets"]);
    shell.write("empty.qmdl", "");
    for command in ["info", "decode", "bandwidth"] {
        shell.run(&["diag", command, "empty.qmdl"]).found_nothing(&["`empty.qmdl` is empty"]);
    }
    let some = shell.run(&["diag", "info", "--json", "empty.qmdl", "phone.qmdl", "noise.bin"]);
    assert!(
        some.out.lines().count() == 1 && some.out.contains("phone.qmdl"),
        "what is there is told: {}",
        some.out
    );
    some.found_nothing(&["`empty.qmdl` is empty", "`noise.bin`: no diag frame found"]);
    shell.run(&["diag", "bandwidth", "phone.qmdl"]).found_nothing(&["phone.qmdl: no grants", "0xB173"]);
    shell.run(&["diag", "info", "missing.qmdl"]).refused(&["missing.qmdl", "give an existing file"]);
    std::fs::create_dir(shell.path("logs")).unwrap();
    shell.run(&["diag", "info", "logs"]).refused(&["`logs` is a folder", "logs/*.qmdl"]);
    shell.write_bytes("log.bz2", b"BZh91AY&SY");
    shell.run(&["diag", "info", "log.bz2"]).refused(&["bzip2", "bunzip2 -c"]);
    shell.write_bytes("cut.gz", &[0x1F, 0x8B, 8, 0, 0, 0]);
    shell.run(&["diag", "info", "cut.gz"]).refused(&["`cut.gz` cannot be read beyond byte 0"]);
    shell.run(&["diag", "info"]).refused(&["FILE"]);
}

#[test]
fn recorded_logs_hold_what_their_index_says() {
    for log in recorded() {
        let rows = index(&log);
        let shell = Shell::new();
        let info = &shell.run(&["diag", "info", "--json", log.to_str().unwrap()]).json()[0];
        let name = log.display();
        let packets: Vec<_> = rows.iter().filter(|row| row.kind == "log").collect();
        assert_eq!(info["packets"], packets.len(), "{name}");
        // These codes have no version; for them, the index contains their first byte.
        let has_version = |code: &str| !["0x7130", "0x7131", "0x713A"].contains(&code);
        let with_version = packets.iter().filter(|row| has_version(&row.code));
        let versions = counts(with_version.map(|row| (row.code.clone(), row.version.clone())));
        let mut found = std::collections::BTreeMap::new();
        for (code, of_code) in info["codes"].as_object().unwrap() {
            for (version, count) in of_code["versions"].as_object().unwrap() {
                found.insert((code.clone(), version.clone()), count.as_u64().unwrap());
            }
            assert_eq!(of_code["misfits"], 0, "{name}: every packet fits its layout: {code}");
        }
        assert_eq!(found, versions, "{name}");
        let radios: Vec<_> = counts(packets.iter().map(|row| row.radio)).into_keys().collect();
        assert_eq!(info["radios"], json!(radios), "{name}");
        let commands: u64 = info["messages"]
            .as_object()
            .unwrap()
            .values()
            .map(|message| message["count"].as_u64().unwrap())
            .sum();
        assert_eq!(commands, rows.iter().filter(|row| row.kind == "cmd").count() as u64, "{name}");
        let bad = info["faults"]["bad checksum"]["count"].as_u64().unwrap_or(0);
        assert_eq!(bad, rows.iter().filter(|row| row.kind == "badcrc").count() as u64, "{name}");

        // Durations from the list of recordings. A modem that never learned the time uses its own clock.
        let seconds = [
            ("lte_pixel3_a", 8.462),
            ("lte_pixel5_2023_a", 0.321),
            ("lte_att_iphone_2016_a", 0.92),
            ("lte_att_2016", 123.075),
            ("lte_bler_2019", 36.145),
            ("lte_attach_2020", 1481.754),
            ("lte_volte_2018", 5_788_266.676),
            ("multi_rat_cmcc_2015", 10_111.499),
            ("lte_qmdl_example_2015", 423.056),
            ("nbiot_2020", 8.421),
            ("nr_mi10_a", 65_986.004),
            ("rayhunter_deadsim_2025", 12.245),
            ("rayhunter_goodsim_short_2025", 4.096),
        ];
        let stem = log.file_stem().unwrap().to_str().unwrap();
        let (_, expected) = seconds.iter().find(|(name, _)| *name == stem).unwrap();
        let found = info["duration_s"].as_f64().unwrap();
        assert!((found - expected).abs() < 0.001, "{name}: {found} s where the list has {expected}");
    }
}

//! `airpace emu agree`: one schedule in real time and in virtual time. No test depends on the machine's timing.

use serde_json::Value;

use super::emu::{WIRE, can_emulate, manifest};
use super::{Done, Shell};

/// Packets for two devices; one packet is too small for a sequence number.
const SCHEDULE: &str =
    "ms,bytes,direction,device\n0.05,1500,down,1\n0.05,20,up,1\n3,700,down,2\n5.05,1500,up,2\n250,99,up,1\n";

const TWO: &str = "name = \"two\"\nduration_s = 1\n[[device]]\n[[device]]\n[[flow]]\nrtt_ms = 40\n[[flow]]\ndevice = 1\n\
                   rtt_ms = 40\nlabel = \"b\"\n";

/// Returns the object of a finished comparison, and checks that the exit status matches it, whatever its verdict is.
#[track_caller]
fn compared(done: &Done) -> Value {
    let value: Value = serde_json::from_str(&done.out)
        .unwrap_or_else(|error| panic!("{}: {error}: {}{}", done.words, done.out, done.err));
    let status = match (value["fit"].as_bool(), value["agrees"].as_bool()) {
        (Some(true), Some(true)) => 0,
        (Some(true), Some(false)) => 1,
        (Some(false), Some(false)) => 3,
        other => panic!("what is not fit does not agree: {other:?}"),
    };
    assert_eq!(done.code, Some(status), "{}: {}", done.words, done.err);
    assert_eq!(value["unfit_because"].as_array().unwrap().is_empty(), status != 3);
    value
}

#[test]
fn a_schedule_is_compared_packet_by_packet_and_the_folder_holds_everything() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.write("two.toml", TWO);
    shell.write("s.csv", SCHEDULE);
    let done = shell.run(&["emu", "agree", "two.toml", "--schedule", "s.csv", "--out", "run", "--json"]);
    let value = compared(&done);
    assert!(done.err.contains("1 packet of the schedule had fewer than 36 bytes"), "{}", done.err);
    assert!(done.err.contains("report.html"), "{}", done.err);
    assert_eq!(value["packets"], 5);
    // A wire drops nothing, and its delay is the same in real and in virtual time.
    for of in ["as_sent", "as_scheduled"] {
        assert_eq!((&value[of]["only_real"], &value[of]["only_virtual"]), (&0.into(), &0.into()));
        assert_eq!(value[of]["dropped_by_both"], 0);
    }
    let lost = value["lost_outside"].as_u64().unwrap() + value["not_sent"].as_u64().unwrap();
    assert!(value["delivered"].as_u64().unwrap() + lost <= 5, "{value}");

    let schedule = shell.read("run/schedule.csv");
    let head = "ms,bytes,direction,device\n0.050000,1500,down,1\n0.050000,36,up,1\n";
    assert!(schedule.starts_with(head), "{schedule}");
    assert_eq!(schedule.lines().count(), 6);
    let whole: Value = serde_json::from_str(&shell.read("run/agreement.json")).unwrap();
    assert_eq!(whole["courses"].as_array().unwrap().len(), 4, "two devices, both ways");
    assert!(shell.path("run/agreement.parquet").exists());
    for figure in ["agreement-cdf", "agreement-departures"] {
        assert!(shell.read("run/report.html").contains(figure), "{figure}");
    }
    let manifest = manifest(&shell, "run");
    assert_eq!(manifest["complete"], true);
    let programs = manifest["emulation"]["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 3, "the far side's player and two devices'");
    assert!(programs.iter().all(|it| it["exit"]["status"] == 0), "{programs:?}");

    // The packets of this run are a schedule as well, and the folder is used again.
    let words = ["emu", "agree", "two.toml", "--schedule", "run", "--device", "2", "--out", "again"];
    let done = shell.run(&words);
    assert!(matches!(done.code, Some(0 | 1 | 3)), "{}: {}", done.words, done.err);
    for part in ["departures apart, packets as sent", "as scheduled", "dropped by both"] {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let verdicts = ["time agree.", "do not agree.", "was too slow"].map(|it| done.out.contains(it));
    assert_eq!(verdicts.map(u8::from).iter().sum::<u8>(), 1, "{}", done.out);
    assert_eq!(verdicts[0], done.code == Some(0), "{}", done.out);
    let schedule = shell.read("again/schedule.csv");
    assert!(
        schedule.lines().count() >= 3 && schedule.lines().skip(1).all(|it| it.ends_with(",2")),
        "{schedule}"
    );
    shell.run(&["report", "again"]).fine();
}

#[test]
fn a_drawn_schedule_depends_on_its_seed_and_fills_queues_that_drop_the_same_packets() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.run(&["trace", "synth", "--mean-mbps", "3", "--seconds", "5", "--out", "a.down"]).fine();
    let trace = "trace.file=a.down";
    let words =
        ["emu", "agree", "trace", "--set", trace, "--set", "trace.link.buffer.packets=5", "--for", "0.5"];
    let value = compared(&shell.run(&[&words[..], &["--out", "a", "--json"]].concat()));
    assert!(value["packets"].as_u64().unwrap() > 50, "{value}");
    let first = shell.read("a/schedule.csv");
    let virtually = |value: &Value| {
        let of = &value["as_scheduled"];
        of["dropped_by_both"].as_u64().unwrap() + of["only_virtual"].as_u64().unwrap()
    };
    assert!(virtually(&value) > 0, "the queue is full at times: {value}");
    compared(&shell.run(&[&words[..], &["--out", "a", "--json"]].concat()));
    assert_eq!(shell.read("a/schedule.csv"), first);
    compared(&shell.run(&[&words[..], &["--out", "a", "--seed", "2", "--json"]].concat()));
    assert_ne!(shell.read("a/schedule.csv"), first);
    let even = compared(&shell.run(&[&words[..], &["--schedule", "even", "--out", "a", "--json"]].concat()));
    assert!(even["packets"].as_u64().unwrap() > 20, "{even}");
}

#[test]
fn what_is_no_schedule_is_one_sentence_and_leaves_no_folder() {
    let shell = Shell::new();
    shell.write("wire.toml", WIRE);
    shell.write("bad.csv", "ms,bytes,direction\n1,100,down\n2,100,sideways\n");
    shell.write("second.csv", "ms,bytes,direction,device\n1,100,down,2\n");
    let refused = |words: &[&str], parts: &[&str]| {
        shell.run(&[&["emu", "agree"], words].concat()).refused(parts);
    };
    refused(&["no-such"], &["no scenario is called `no-such`"]);
    refused(&["wire.toml", "--schedule", "none.csv"], &["none.csv", "`mixed`, `even`, a table"]);
    refused(&["wire.toml", "--schedule", "bad.csv"], &["bad.csv", "line 3", "neither `down` nor `up`"]);
    refused(&["wire.toml", "--schedule", "second.csv"], &["device 2", "1 device"]);
    refused(&["wire.toml", "--schedule", "second.csv", "--device", "1"], &["no packet is left"]);
    refused(&["wire.toml", "--device", "2"], &["device 2", "1 device"]);
    refused(&["wire.toml", "--for", "0"], &["--for"]);
    refused(&["wire.toml", "--for", "1e300"], &["at most a day"]);
    refused(&["wire.toml", "--schedule", "."], &["manifest.json"]);
    assert!(!shell.path("runs").exists());
}

//! `airpace decode`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::{Done, Shell, recordings};

/// Creates a recording of a small cell, `NAME.sigmf-meta`, and a file of the messages transmitted in it, `NAME.truth`.
pub fn record(shell: &Shell, name: &str, more: &[&str]) {
    let truth = format!("{name}.truth");
    let words = ["encode", "competitor", "--out", name, "--truth", &truth, "--seconds", "0.2"];
    let small = ["--set", "cell.prbs=25", "--set", "cell.crs_ports=2", "--sfn", "1020"];
    let clear: &[&str] = if more.contains(&"--snr") { &[] } else { &["--snr", "20"] };
    shell.run(&[&words[..], &small, clear, more].concat()).fine();
}

pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Messages by position and content, without the fields that only a receiver knows.
pub fn by_place(messages: Vec<Value>) -> BTreeMap<String, Value> {
    let strip = |mut message: Value| {
        let object = message.as_object_mut().expect("an object");
        for key in ["snr_db", "confidence", "format_known", "mcs_table_known", "carrier", "own"] {
            object.remove(key);
        }
        let key = |name: &str| object[name].to_string();
        (["index", "rnti", "ncce", "l", "bits"].map(key).join(" "), message)
    };
    messages.into_iter().map(strip).collect()
}

#[test]
fn what_encode_sends_decode_reads_field_by_field() {
    let shell = Shell::new();
    record(&shell, "a", &["--fading", "eva", "--doppler", "5", "--cfo", "400", "--pci", "42"]);
    let sent = lines(&shell.read("a.truth"));
    assert!(sent.len() > 50, "only {} messages are sent", sent.len());
    let found = shell.run(&["decode", "a.sigmf-meta", "--json"]).json();
    assert!(found.iter().all(|message| message["confidence"].as_f64() > Some(0.8)));
    assert_eq!(by_place(found), by_place(sent), "what is read is what was sent");
}

/// A table of users contains the sums that a program computes from the messages.
#[test]
fn users_have_the_sums_of_their_messages() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let messages = shell.run(&["decode", "a.sigmf-meta", "--json"]).json();
    let users = shell.run(&["decode", "a.sigmf-meta", "--users", "--json"]).json();
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(users.iter().map(|user| number(&user["messages"])).sum::<u64>(), messages.len() as u64);
    let busiest = &users[0];
    let its = messages.iter().filter(|message| message["rnti"] == busiest["rnti"] && message["dir"] == "DL");
    let grants = its.filter(|message| message["n_prb"].is_u64()).count() as u64;
    assert_eq!(number(&busiest["down"]["grants"]), grants, "{busiest}");
    assert!(busiest["down"]["mbps"].as_f64() > Some(1.0), "{busiest}");
    let csv = shell.run(&["decode", "a.sigmf-meta", "--csv"]).fine();
    let mut rows = csv.lines();
    assert!(rows.next().unwrap().starts_with("cell,index,sfn,subframe,cfi,rnti,"), "{csv:.200}");
    assert_eq!(rows.count(), messages.len(), "a row per message");
    let table = shell.run(&["decode", "a.sigmf-meta", "--users"]).fine();
    assert_eq!(table.lines().count(), users.len() + 1, "a heading, and a line per user: {table}");
    assert!(table.lines().nth(1).unwrap().starts_with(&busiest["rnti"].to_string()), "{table}");
    let csv = shell.run(&["decode", "a.sigmf-meta", "--users", "--csv"]).fine();
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    let cell = |row: usize, name: &str| {
        let column =
            rows[0].iter().position(|head| *head == name).unwrap_or_else(|| panic!("{name}: {csv:.200}"));
        rows[row][column]
    };
    assert_eq!(rows.len(), users.len() + 1, "a row per user");
    for (at, user) in users.iter().enumerate() {
        assert_eq!(cell(at + 1, "rnti"), user["rnti"].to_string());
        assert_eq!(cell(at + 1, "rnti_type"), user["rnti_type"]);
        for (way, of) in
            ["down", "up"].into_iter().flat_map(|way| ["grants", "new_bits", "mbps"].map(|of| (way, of)))
        {
            assert_eq!(cell(at + 1, &format!("{way}_{of}")), user[way][of].to_string());
        }
    }
    let several = shell.run(&["decode", "a.sigmf-meta", "a.sigmf-meta", "--users", "--csv"]).fine();
    assert_eq!(several.lines().count(), 2 * users.len() + 1, "one heading: {several}");
    assert!(several.lines().next().unwrap().ends_with(",carrier"), "{several:.200}");
}

/// Antennas of one recording, or of several, are combined. Two antennas decode messages that one antenna cannot decode.
#[test]
fn antennas_are_combined() {
    let shell = Shell::new();
    let hard = ["--snr", "7", "--fading", "eva", "--doppler", "70", "--format", "ci8"];
    record(&shell, "one", &hard);
    record(&shell, "two", &[&hard[..], &["--antennas", "2"]].concat());
    let sent = by_place(lines(&shell.read("two.truth")));
    let right = |words: &[&str]| {
        let found = shell.run(&[&["decode", "--json"], words].concat()).json();
        by_place(found).into_keys().filter(|key| sent.contains_key(key)).count()
    };
    let (one, two) = (right(&["one.sigmf-meta"]), right(&["two.sigmf-meta"]));
    assert!(one < two && two > sent.len() * 9 / 10, "{one} by one, {two} by two, {} sent", sent.len());
    // Two copies of one antenna decode about as many messages as one copy. The noise is the same in both copies, unlike
    // that of two antennas, and soft bits appear twice as reliable as they are.
    let twice = right(&["one.sigmf-meta", "one.sigmf-meta", "--join"]);
    assert!(twice.abs_diff(one) * 15 <= one, "{twice} by the same antenna twice, {one} by it once");
    let words = ["encode", "competitor", "--out", "x", "--antennas", "3", "--snr", "1,2"];
    shell.run(&words).refused(&["--snr has 2 values for 3 antennas"]);
}

/// Samples that are read with the wrong signedness are reported with the format that they appear to have, also from a
/// pipe.
#[test]
fn a_wrong_sign_is_reported_with_its_remedy() {
    let shell = Shell::new();
    for (is, said) in [("cu8", "ci8"), ("ci8", "cu8")] {
        record(&shell, is, &["--format", is]);
        let data = format!("{is}.sigmf-data");
        let rate = ["--rate", "7.68e6"];
        let read = shell.run(&[&["decode", &data, "--format", said], &rate[..]].concat());
        let err = read.err;
        assert!(
            err.contains(&format!("it is read as {said}, but"))
                && err.contains(&format!("give --format {is}")),
            "{err}"
        );
        let read = shell.run(&[&["decode", &data, "--format", is], &rate[..]].concat());
        assert!(!read.err.contains("it is read as"), "{}", read.err);
    }
}

/// Every uplink block whose PHICH answer lies within the recording has an answer, eight subframes after the grant.
#[test]
fn uplink_blocks_are_answered() {
    let shell = Shell::new();
    let words = ["encode", "biscay-uplink", "--out", "up", "--seconds", "0.2", "--set", "cell.prbs=25"];
    shell.run(&words).fine();
    let heard = shell.run(&["decode", "up.sigmf-meta", "--json", "--phich"]).json();
    let (answers, messages): (Vec<Value>, Vec<Value>) =
        heard.into_iter().partition(|object| object.get("phich").is_some());
    let number =
        |object: &Value, key: &str| object[key].as_u64().unwrap_or_else(|| panic!("{key}: {object}"));
    let granted: Vec<(u64, u64)> = messages
        .iter()
        .filter(|message| message["dir"] == "UL" && number(message, "index") + 8 < 200)
        .map(|message| (number(message, "index"), number(message, "rnti")))
        .collect();
    let answered: Vec<(u64, u64)> =
        answers.iter().map(|answer| (number(answer, "granted"), number(answer, "rnti"))).collect();
    assert!(granted.len() > 50, "only {} uplink grants", granted.len());
    assert_eq!(answered, granted);
    assert!(answers.iter().all(|answer| number(answer, "index") == number(answer, "granted") + 8));
}

#[test]
fn a_recording_read_as_it_was_received_says_the_same_and_how_far_behind_this_machine_fell() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let at_once = shell.run(&["decode", "a.sigmf-meta", "--json"]).fine();
    let paced = shell.run(&["decode", "a.sigmf-meta", "--json", "--pace"]);
    assert!(paced.err.contains("a.sigmf-meta: read as it was received, "), "{}", paced.err);
    assert_eq!(paced.fine(), at_once);
}

#[test]
fn a_pipe_gives_what_its_file_gives() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let of_file = shell.run(&["decode", "a.sigmf-data", "--json"]).fine();
    let words = ["decode", "-", "--rate", "7.68e6", "--format", "ci16_le", "--json"];
    let pipe = std::fs::File::open(shell.path("a.sigmf-data")).unwrap();
    let of_pipe = Done::of(shell.command(&words).stdin(Stdio::from(pipe)), &words);
    assert_eq!(of_pipe.fine(), of_file);

    let people = shell.run(&["decode", "a.sigmf-meta"]).fine();
    assert_eq!(people.lines().count(), of_file.lines().count() + 1, "a line each, below a head");
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    for words in [&["decode", "a.sigmf-meta", "--json"][..], &["decode", "a.sigmf-meta"]] {
        let (from, to) = std::io::pipe().unwrap();
        drop(from);
        let child = shell.command(words).stdout(to).stderr(Stdio::piped()).spawn().unwrap();
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success() && !err.contains("airpace: Broken"), "{words:?}: {err}");
    }
}

#[test]
fn it_ends_early_where_it_is_told_to() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let all = shell.run(&["decode", "a.sigmf-meta", "--subframes", "--json"]).json();
    let some = shell.run(&["decode", "a.sigmf-meta", "--subframes", "--json", "--for", "50ms"]).json();
    assert!(some.len() >= 48 && some.len() <= 50, "{} subframes in 50 ms", some.len());
    assert_eq!(some[..40], all[..40], "the same from the start");
    shell.run(&["decode", "a.sigmf-meta", "--for", "50"]).refused(&["--for", "500us, 1ms or 2s"]);
}

#[test]
fn an_interrupted_pipe_still_gives_its_counts_and_its_table() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let words = ["decode", "-", "--rate", "7.68e6", "--format", "ci16_le", "--stats", "--parquet", "table"];
    let mut command = shell.command(&words);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut open = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut open, &std::fs::read(shell.path("a.sigmf-data")).unwrap()).unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    drop(open);
    std::io::Read::read_to_string(&mut out, &mut line).unwrap();
    let done = child.wait_with_output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "that is no error: {err}");
    assert!(err.contains("RNTIs") && err.contains("processor time"), "counts are told: {err}");
    let table = std::fs::read(shell.path("table")).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "the table is whole");
}

#[test]
fn a_recording_goes_by_many_names_and_ends_where_it_ends() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let of = |name: &str| shell.run(&["decode", name, "--json"]);
    let whole = of("a.sigmf-meta").fine();
    let data = std::fs::read(shell.path("a.sigmf-data")).unwrap();
    let packed = zstd::encode_all(&data[..], 1).unwrap();
    assert_eq!(of("a").fine(), whole);
    let archived = std::process::Command::new("tar")
        .args(["cf", "all.sigmf", "a.sigmf-meta", "a.sigmf-data"])
        .current_dir(shell.path(""))
        .status();
    if archived.is_ok_and(|status| status.success()) {
        assert_eq!(of("all.sigmf").fine(), whole);
    }
    std::fs::remove_file(shell.path("a.sigmf-data")).unwrap();
    of("a.sigmf-meta").refused(&["a.sigmf-meta: the samples it describes are missing", "a.sigmf-data"]);
    std::fs::write(shell.path("a.sigmf-data.zst"), &packed).unwrap();
    for name in ["a", "a.sigmf-meta", "a.sigmf-data.zst"] {
        assert_eq!(of(name).fine(), whole, "{name}");
    }

    std::fs::write(shell.path("a.sigmf-data.zst"), &packed[..packed.len() * 3 / 4]).unwrap();
    let most = of("a");
    let end = format!("a: the compressed data end unfinished after {} bytes", packed.len() * 3 / 4);
    assert_eq!(most.err.matches(&end).count(), 1, "{}", most.err);
    assert!(most.fine().len() > whole.len() / 3, "what is whole is read");
    std::fs::write(shell.path("a.sigmf-data"), &data[..data.len() - 1]).unwrap();
    let cut = of("a");
    let end = format!("a: sample {} has only 3 of its 4 bytes", data.len() / 4 - 1);
    assert_eq!(cut.err.matches(&end).count(), 1, "{}", cut.err);
}

#[test]
fn subframes_say_what_was_granted_and_what_is_idle() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let sent = lines(&shell.read("a.truth"));
    let subframes = shell.run(&["decode", "a.sigmf-meta", "--subframes", "--json"]).json();
    assert!(subframes.len() >= 199, "{} of 200 subframes are read", subframes.len());
    for subframe in &subframes {
        let own: Vec<_> = sent.iter().filter(|message| message["index"] == subframe["index"]).collect();
        assert_eq!(subframe["messages"], own.len());
        let down = own.iter().filter(|message| message["dir"] == "DL");
        let used: u64 = down.map(|message| message["n_prb"].as_u64().unwrap()).sum();
        assert_eq!((&subframe["prbs_used"], &subframe["prbs_idle"]), (&used.into(), &(25 - used).into()));
    }

    // The text has the same content, below a heading. With several recordings, the text also contains their numbers.
    let text = shell.run(&["decode", "a.sigmf-meta", "--subframes"]).fine();
    let mut read = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let head = read.next().unwrap();
    assert_eq!(head[..5], ["cell", "sfn.sf", "cfi", "messages", "DL"]);
    for (line, subframe) in read.by_ref().zip(&subframes) {
        assert_eq!(line[0], subframe["cell"].to_string());
        assert_eq!(line[1], format!("{}.{}", subframe["sfn"], subframe["subframe"]));
        let keys =
            ["cfi", "messages", "downlink", "uplink", "users", "prbs_used", "prbs_idle", "cces_used", "cces"];
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(line[2 + at], subframe[key].to_string(), "{key}: {line:?}");
        }
    }
    assert_eq!(read.next(), None);
    let both = shell.run(&["decode", "a.sigmf-meta", "a.sigmf-meta", "--subframes"]).fine();
    assert!(
        both.starts_with(" # cell") && both.contains("\n 0    1 ") && both.contains("\n 1    1 "),
        "{both}"
    );
}

/// With noise, some messages cannot be decoded, but the output shows that something was transmitted.
#[test]
fn what_could_not_be_read_is_not_told_to_be_idle() {
    let shell = Shell::new();
    let words =
        ["encode", "competitor", "--out", "a", "--truth", "a.truth", "--snr", "4", "--seconds", "0.25"];
    shell.run(&[&words[..], &["--set", "cell.prbs=25", "--set", "cell.crs_ports=1"]].concat()).fine();
    let mut sent = BTreeMap::<u64, usize>::new();
    for message in lines(&shell.read("a.truth")) {
        *sent.entry(message["index"].as_u64().unwrap()).or_default() += 1;
    }
    let words = ["decode", "a.sigmf-meta", "--subframes", "--json", "--reports", "told", "--stats"];
    let done = shell.run(&words);
    let (told, subframes) = (done.err.clone(), done.json());
    let index = |subframe: &Value| subframe["index"].as_u64().unwrap();
    let all = |subframe: &Value| sent.get(&index(subframe)).copied().unwrap_or(0) as u64;
    let (known, unknown): (Vec<&Value>, Vec<&Value>) =
        subframes.iter().partition(|subframe| subframe["prbs_idle"].is_u64());
    // Over eight seeds, one of 1,777 subframes contained a message whose energy was not detected either.
    let wrong: Vec<_> = known.iter().filter(|subframe| subframe["messages"] != all(subframe)).collect();
    assert!(wrong.len() <= 2, "idle PRBs are given although not all messages were read: {wrong:?}");
    assert!(known.len() > 150, "idle PRBs are given for {} subframes", known.len());
    assert!(unknown.iter().any(|subframe| subframe["messages"] != all(subframe)), "{unknown:?}");
    assert!(unknown.iter().all(|subframe| subframe["cces_unread"].as_u64() > Some(0)));
    assert!(known.iter().all(|subframe| subframe["cces_unread"] == 0));

    let reports = lines(&shell.read("told"));
    let reported: Vec<u64> =
        reports.iter().map(|report| report["subframe_index"].as_u64().unwrap()).collect();
    assert_eq!(reported, subframes.iter().map(index).collect::<Vec<_>>(), "all of them have reports");
    for (subframe, report) in subframes.iter().zip(&reports) {
        let report = &report["reports"][0];
        let is_known = subframe["prbs_idle"].is_u64();
        assert_eq!(report["scope"], if is_known { "everyone" } else { "partly" }, "{report}");
        assert_eq!(report["idle_prbs"].is_u64(), is_known, "{report}");
    }
    assert!(told.contains(&format!("unread: {} subframe", unknown.len())), "{told}");
    let text = shell.run(&["decode", "a.sigmf-meta", "--subframes"]).fine();
    assert_eq!(text.lines().filter(|line| line.contains(" ? ")).count(), unknown.len());
}

#[test]
fn one_user_is_followed_through_its_retransmissions() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let sent = lines(&shell.read("a.truth"));
    let mut counts = BTreeMap::new();
    sent.iter().for_each(|message| *counts.entry(message["rnti"].as_u64().unwrap()).or_insert(0) += 1);
    let (rnti, count) = counts.into_iter().max_by_key(|(_, count)| *count).unwrap();
    let done = shell.run(&["decode", "a.sigmf-meta", "--rnti", &rnti.to_string(), "--json"]);
    assert!(done.err.contains(&format!("RNTI {rnti} over")), "{}", done.err);
    let own = done.json();
    assert_eq!(own.len(), count, "all grants of the user and no others");
    for grant in &own {
        let blocks =
            grant["tbs"].as_array().unwrap().iter().zip(grant["own"]["retransmission"].as_array().unwrap());
        let new = blocks.filter(|(_, again)| **again == false).map(|(tbs, _)| tbs.as_u64().unwrap());
        assert_eq!(grant["own"]["new_bits"], new.sum::<u64>());
    }
    assert!(own.last().unwrap()["own"]["throughput_bps"].as_u64() > Some(100_000));
    assert!(own.iter().any(|grant| grant["own"]["again"].as_u64() > Some(0)), "some blocks are sent again");
}

#[test]
fn the_table_and_the_counts_are_written_beside_the_messages() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let done = shell.run(&["decode", "a.sigmf-meta", "--parquet", "a.parquet", "--stats", "--json"]);
    for word in ["PSS", "CFI", "RNTIs", "processor time", "PRB pairs used"] {
        assert!(done.err.contains(word), "--stats says `{word}`: {}", done.err);
    }
    assert!(!done.json().is_empty());
    let table = std::fs::read(shell.path("a.parquet")).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "a whole Parquet file");
}

#[test]
fn where_nothing_is_found_the_ladder_says_how_far_it_led() {
    let shell = Shell::new();
    // Random samples without a cell.
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let noise: Vec<u8> = noise.take(200_000).collect();
    std::fs::write(shell.path("noise"), noise).unwrap();
    std::fs::write(shell.path("silence"), vec![0; 200_000]).unwrap();
    shell.write("words.txt", "no samples");
    shell.write("broken.sigmf-meta", "{");
    shell.write("broken.sigmf-data", "");
    let raw = ["--rate", "1.92e6", "--format", "ci8"];
    let refused = |words: &[&str], parts: &[&str]| shell.run(&[&["decode"], words].concat()).refused(parts);
    refused(
        &[&["noise"][..], &raw].concat(),
        &["noise: no cell could be read", "PSS", "centre frequency", "100,000"],
    );
    refused(&[&["silence"][..], &raw].concat(), &["all samples are zero"]);
    refused(&["words.txt"], &["words.txt", "--rate", "--format"]);
    refused(&[&["missing"][..], &raw].concat(), &["missing: No such file"]);
    refused(&["broken.sigmf-meta"], &["broken.sigmf-meta", "line 1"]);
    refused(&["noise", "--rate", "1e6", "--format", "ci8"], &["noise", "1920000"]);
    refused(&["noise", "--cell", "504"], &["0 to 503"]);
    refused(&["noise", "--patience", "10001"], &["0 to 10000"]);
    refused(&["noise", "--stall", "-1"], &["above 0"]);
    refused(&["noise", "--rnti", "x"], &["0x1234"]);
    refused(&["noise", "--rnti", "0"], &["no user has this RNTI"]);
    refused(&["noise", "--subframes", "--phich"], &["--subframes counts", "--phich"]);
    refused(&["noise", "--subframes", "--rnti", "5"], &["--subframes counts", "--rnti"]);
    let done = shell.run(&[&["decode", "noise"][..], &raw].concat());
    assert!(
        !done.err.contains("identified a cell"),
        "rungs that are due to chance are not shown: {}",
        done.err
    );
    assert_eq!(done.err.matches("stopped at").count(), 1, "once: {}", done.err);
    std::fs::write(shell.path("blink"), &std::fs::read(shell.path("noise")).unwrap()[..5000]).unwrap();
    refused(&[&["blink"][..], &raw].concat(), &["1.3 ms of samples are too short", "at least 20"]);
    refused(&[&["-", "-"][..], &raw].concat(), &["once"]);

    record(&shell, "a", &["--pci", "42"]);
    let others = ["a.sigmf-meta: no cell could be read", "cell 7 was not detected, but 42 was"];
    refused(&["a.sigmf-meta", "--cell", "7"], &others);
    assert!(!shell.run(&["decode", "a.sigmf-meta", "--cell", "42", "--json"]).json().is_empty());
}

#[test]
fn samples_that_are_written_otherwise_than_is_said_are_read_by_trial() {
    let shell = Shell::new();
    record(&shell, "a", &["--pci", "42"]);
    for (rate, format) in [
        ("7.68e6", "ci8"),
        ("1.536e7", "ci16_le"),
        ("3.84e6", "ci16_le"),
        ("7.68e6", "cf32_le"),
        ("1.92e6", "cf32_le"),
    ] {
        let help = [
            "--rate and --format override the description",
            "7,680,000 samples per second it has cell 42",
            "--rate 7680000 --format ci16_le, or neither of them: its description contains these values",
        ];
        let done = shell.run(&["decode", "a.sigmf-data", "--rate", rate, "--format", format]);
        let said = done.refused(&help);
        assert!(said.contains("a.sigmf-data is described as"), "a description is overruled: {said}");
    }
    let meta = shell.read("a.sigmf-meta");
    for (what, is, says) in [("rate", "7680000", "1920000"), ("format", "ci16_le", "ci8")] {
        assert!(meta.contains(is), "the {what} is described");
        shell.write("a.sigmf-meta", &meta.replace(is, says));
        shell.run(&["decode", "a"]).refused(&["it has cell 42", "--rate 7680000 --format ci16_le"]);
    }
}

#[test]
fn a_recording_that_breaks_still_gives_its_counts() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let data = std::fs::read(shell.path("a.sigmf-data")).unwrap();
    // Two zstd frames; the second is invalid.
    let mut packed = zstd::encode_all(&data[..data.len() / 2], 1).unwrap();
    packed.extend(b"no samples at all");
    std::fs::remove_file(shell.path("a.sigmf-data")).unwrap();
    std::fs::write(shell.path("a.sigmf-data.zst"), packed).unwrap();
    let said = shell.run(&["decode", "a", "--stats"]).refused(&["damaged", "processor time"]);
    assert!(said.contains("a: cell 1: 25 PRB pairs, 2 ports"), "{said}");
}

#[test]
fn who_is_asked_for_and_never_heard_is_told_who_is_there() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let sent = lines(&shell.read("a.truth"));
    let mut counts = BTreeMap::new();
    sent.iter().for_each(|message| *counts.entry(message["rnti"].as_u64().unwrap()).or_insert(0) += 1);
    let (rnti, count) = counts.iter().max_by_key(|(_, count)| **count).unwrap();
    let done = shell.run(&["decode", "a.sigmf-meta", "--rnti", "3", "--json"]);
    let told = done.err.split_once("not detected; ").expect("it is told").1;
    assert!(told.starts_with(&format!("{} user", counts.len())), "{told}");
    assert!(told.contains(&format!(" {rnti} ({count} messages)")), "{told}");
    assert_eq!(done.fine(), "");
}

/// Compares the decoded messages of a recording with its table of transmitted messages: (transmitted, found, others).
fn score(shell: &Shell, folder: &Path, name: &str) -> (usize, usize, usize) {
    let text = std::fs::read_to_string(folder.join(format!("{name}.truth.csv"))).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let columns = ["sfn", "subframe", "rnti", "L", "ncce", "bits", "n_prb"].map(column);
    let sent: Vec<String> = rows.map(|row| columns.map(|at| row[at]).join(",")).collect();
    let file = folder.join(format!("{name}.sigmf-meta"));
    let found = shell.run(&["decode", file.to_str().unwrap(), "--json"]).json();
    let key = |message: &Value| {
        let number = |name: &str| message[name].as_u64().map_or(String::new(), |number| number.to_string());
        let [sfn, subframe, rnti, l, ncce, prbs] =
            ["sfn", "subframe", "rnti", "l", "ncce", "n_prb"].map(number);
        [&sfn, &subframe, &rnti, &l, &ncce, message["bits"].as_str().unwrap(), &prbs]
            .map(|text| text)
            .join(",")
    };
    let is_true = found.iter().filter(|message| sent.contains(&key(message))).count();
    (sent.len(), is_true, found.len() - is_true)
}

#[test]
fn recordings_are_read_as_their_tables_say() {
    let Some(folder) = recordings().map(|folder| folder.join("radio")) else { return };
    let shell = Shell::new();
    for name in ["pub_g06_1p", "pub_g100_2p", "pub_g25_2p_clean", "pub_g50_2p", "pub_n25", "pub_p15_tm1"] {
        let (sent, found, others) = score(&shell, &folder, name);
        println!("{name}: {found} of {sent} found, {others} others");
        assert!(found * 100 >= sent * 98, "{name}: {found} of {sent} are found");
        assert!(others * 100 <= found + others, "{name}: {others} others");
    }
    let capture = folder.join("captures/signal.1.92M.amar.dat");
    let words = ["decode", capture.to_str().unwrap(), "--rate", "1.92e6", "--format", "cf32_le", "--json"];
    let found = shell.run(&words).json();
    let is_it = |message: &Value| {
        message["rnti_type"] == "SI"
            && message["format"] == "1A"
            && (&message["l"], &message["ncce"]) == (&4.into(), &0.into())
    };
    assert!(found.iter().any(is_it), "system information in subframe 2: {found:?}");
}

//! `airpace decode --pcap`: granted blocks in a capture file that Wireshark opens; and lines of text.

use std::process::Command;

use airpace_testing::has_program;
use serde_json::Value;

use super::Shell;
use super::decode::record;

/// The granted blocks in the order of their messages: the message, and the index of the block in the message.
fn blocks(messages: &[Value]) -> Vec<(&Value, usize)> {
    let count = |message: &Value| message["mcs"].as_array().expect("a list").len();
    messages.iter().flat_map(|message| (0..count(message)).map(move |block| (message, block))).collect()
}

#[test]
fn each_granted_block_is_a_frame_as_long_as_the_block() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let done = shell.run(&["decode", "a.sigmf-meta", "--json", "--pcap", "a.pcap"]);
    let messages = done.json();
    let capture = std::fs::read(shell.path("a.pcap")).unwrap();
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(20)), (0xA1B2_3C4D, 252), "nanoseconds, exported PDUs");
    let blocks = blocks(&messages);
    assert!(blocks.len() > 100, "{} blocks", blocks.len());
    let mut at = 24;
    for (message, block) in &blocks {
        let (captured, length) = (word(at + 8), word(at + 12));
        let bytes = message["tbs"][block].as_u64().unwrap_or(0) / 8;
        assert_eq!(u64::from(length - captured), bytes, "{message}");
        let name = &capture[at + 16 + 4..][..14];
        assert_eq!(name, b"mac-lte-framed");
        at += 16 + captured as usize;
    }
    assert_eq!(at, capture.len(), "no frame beside those of the blocks");
}

#[test]
fn wireshark_shows_each_grant_and_counts_the_bytes_of_each_user() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let messages = shell.run(&["decode", "a.sigmf-meta", "--json", "--pcap", "a.pcap"]).json();
    if !has_program("tshark", "tshark") {
        return;
    }
    let fields = [
        "mac-lte.direction",
        "mac-lte.rnti",
        "mac-lte.sfn",
        "mac-lte.subframe",
        "mac-lte.length",
        "mac-lte.dl-phy.mcs-index",
        "mac-lte.dl-phy.rb-length",
        "mac-lte.ul-phy.resource-block-length",
    ];
    let mut command = Command::new("tshark");
    command.args(["-r", "a.pcap", "-T", "fields"]).current_dir(shell.folder.path());
    let done =
        fields.iter().fold(&mut command, |command, field| command.args(["-e", field])).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let blocks = blocks(&messages);
    assert_eq!(text.lines().count(), blocks.len());
    for (line, (message, block)) in text.lines().zip(&blocks) {
        let is_down = message["dir"] == "DL";
        let shown = |value: &Value, is_there: bool| if is_there { value.to_string() } else { String::new() };
        let wanted = [
            u8::from(is_down).to_string(),
            message["rnti"].to_string(),
            message["sfn"].to_string(),
            message["subframe"].to_string(),
            (message["tbs"][block].as_u64().unwrap_or(0) / 8).to_string(),
            shown(&message["mcs"][block], is_down),
            shown(&message["n_prb"], is_down),
            shown(&message["n_prb"], !is_down),
        ];
        assert_eq!(line.split('\t').collect::<Vec<_>>(), wanted, "{message}");
    }
}

#[test]
fn lines_for_people_have_at_most_a_hundred_columns() {
    let shell = Shell::new();
    record(&shell, "a", &["--set", "cell.prbs=100"]);
    for more in [&[][..], &["--subframes"], &["--phich"]] {
        let text = shell.run(&[&["decode", "a.sigmf-meta"], more].concat()).fine();
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 100, "{more:?}: {widest}");
        assert!(text.lines().count() > 100, "{more:?}");
    }
}

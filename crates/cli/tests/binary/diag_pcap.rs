//! `airpace diag decode --pcap`: messages in a capture file that Wireshark opens.

use std::process::Command;

use airpace_testing::has_program;

use super::Shell;
use super::diag_made::{Log, nas, recorded, reference, rrc};

/// A message in a capture: GSMTAP's version, type and subtype, the frame, and the message itself.
#[derive(Debug, PartialEq)]
struct Message {
    version: u8,
    kind: u16,
    subtype: u16,
    frame: u32,
    bytes: Vec<u8>,
    address: u8,
}

/// Extracts the messages of a capture.
fn messages(capture: &[u8]) -> Vec<Message> {
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap()) as usize;
    /// Link type of exported PDUs.
    const EXPORTED: u8 = 252;
    let (mut at, mut messages, mut links) = (0, vec![], vec![]);
    while at < capture.len() {
        let length = word(at + 4);
        match word(at) {
            1 => links.push(capture[at + 8]),
            6 => {
                let packet = &capture[at + 28..][..word(at + 20)];
                messages.push(match links[word(at + 8)] {
                    // In captures of SCAT, an Ethernet header precedes the packet.
                    1 => message(&packet[14..]),
                    EXPORTED => exported(packet),
                    _ => message(packet),
                });
            }
            _ => {}
        }
        at += length;
    }
    messages
}

/// A message after the name of its dissector.
fn exported(pdu: &[u8]) -> Message {
    let name = usize::from(pdu[3]);
    assert!(pdu[4..].starts_with(b"nr-rrc."), "{pdu:?}");
    assert_eq!(pdu[4 + name..8 + name], [0; 4]);
    Message { version: 0, kind: 252, subtype: 0, frame: 0, bytes: pdu[8 + name..].to_vec(), address: 0 }
}

fn message(datagram: &[u8]) -> Message {
    assert_eq!((datagram[9], &datagram[22..24]), (17, &4729u16.to_be_bytes()[..]), "UDP to GSMTAP's port");
    let gsmtap = &datagram[28..];
    let pair = |at: usize| u16::from_be_bytes([gsmtap[at], gsmtap[at + 1]]);
    let (version, address) = (gsmtap[0], datagram[19]);
    if version == 2 {
        let frame = u32::from_be_bytes(gsmtap[8..12].try_into().unwrap());
        let bytes = gsmtap[16..].to_vec();
        return Message {
            version,
            kind: gsmtap[2].into(),
            subtype: gsmtap[12].into(),
            frame,
            bytes,
            address,
        };
    }
    let (mut at, mut frame) = (8, 0);
    while pair(at) != 0xFFFE {
        if pair(at) == 8 {
            frame = u32::from_be_bytes(gsmtap[at + 4..at + 8].try_into().unwrap());
        }
        at += 4 + usize::from(pair(at + 2));
    }
    // SCAT's metadata end with the tag, even if the header contains another length.
    let end = if pair(4) == 0x0403 || pair(4) == 0x0400 { at + 2 } else { 4 * usize::from(pair(2)) };
    Message { version, kind: pair(4), subtype: pair(6), frame, bytes: gsmtap[end..].to_vec(), address }
}

#[test]
fn recorded_messages_are_those_that_scat_extracts() {
    // For LTE, SCAT uses version 3 if the channel number is too large for version 2.
    const LTE_RRC_V3: [(u16, u16); 6] = [(3, 5), (7, 6), (8, 0), (9, 1), (10, 2), (11, 3)];
    for log in recorded() {
        let name = log.display();
        let capture = Shell::new().command(&["diag", "decode", "--pcap", "-"]).arg(&log).output().unwrap();
        // One log contains no messages.
        assert!(matches!(capture.status.code(), Some(0 | 1)), "{name}");
        assert_eq!(capture.status.success(), !messages(&capture.stdout).is_empty(), "{name}");
        let ours: Vec<_> =
            messages(&capture.stdout).into_iter().filter(|message| message.version == 2).collect();
        let mut scats = messages(&reference(&log, "scat.pcapng"));
        // Captures of `airpace` do not contain GSM messages and MAC blocks.
        scats.retain(|message| matches!((message.version, message.kind), (2, 13 | 18) | (3, 0x0403)));
        for message in &mut scats {
            if message.version == 3 {
                let (_, subtype) = LTE_RRC_V3.iter().find(|(scats, _)| *scats == message.subtype).unwrap();
                (message.version, message.kind, message.subtype) = (2, 13, *subtype);
            }
            // SCAT includes two flags in the frame number.
            if message.kind == 13 {
                message.frame %= 1_024;
            }
        }
        assert_eq!(ours.len(), scats.len(), "{name}");
        for (at, (own, scats)) in ours.iter().zip(&scats).enumerate() {
            assert_eq!(own, scats, "{name}, message {at}");
        }
    }
}

fn log() -> Log {
    let mut nr = vec![8, 0, 0, 0, 15, 0x30, 1, 67, 0];
    nr.extend(627_264u32.to_le_bytes());
    nr.extend([0, 0, 0, 0, 5, 0, 0, 0, 0, 2, 0, 0x00, 0x01]);
    Log::default()
        // A paging message without a recipient, an identity request, and the protected form of the request in the
        // uplink.
        .packet(1, 0, 0xB0C0, &rrc(7, 1650, &[0x00, 0x00]))
        .packet(2, 1, 0xB0EC, &nas(&[0x07, 0x55, 0x01]))
        .packet(2, 2, 0xB0EB, &nas(&[0x17, 1, 2, 3, 4, 5, 0x07, 0x55, 0x01]))
        .packet(1, 3, 0xB821, &nr)
        .packet(1, 4, 0xB173, &[36, 0, 0, 0])
}

#[test]
fn messages_keep_their_radio_and_version_and_what_has_no_message_is_left_out() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let done = shell.run(&["diag", "decode", "phone.qmdl", "--pcap", "phone.pcapng"]);
    assert_eq!(done.err, "airpace: phone.pcapng: 4 RRC and NAS messages\n");
    assert_eq!(done.fine(), "");
    let messages = messages(&std::fs::read(shell.path("phone.pcapng")).unwrap());
    let told: Vec<_> = messages
        .iter()
        .map(|message| (message.version, message.kind, message.subtype, message.address))
        .collect();
    assert_eq!(told, [(2, 13, 6, 1), (2, 18, 0, 2), (2, 18, 1, 2), (0, 252, 0, 0)]);
    assert_eq!((messages[0].frame, &messages[3].bytes[..]), (310, &[0, 1][..]));
    shell.run(&["diag", "decode", "phone.qmdl", "--pcap", "phone.pcapng", "--gsmtap"]).fine();
    let gsmtap = self::messages(&std::fs::read(shell.path("phone.pcapng")).unwrap());
    let last = &gsmtap[3];
    assert_eq!((last.version, last.kind, last.subtype, last.address), (3, 0x0503, 6, 1));
    shell.run(&["diag", "decode", "phone.qmdl", "--gsmtap"]).refused(&["--pcap"]);
    shell.run(&["diag", "decode", "phone.qmdl", "--pcap", "no/folder"]).refused(&["no/folder", "--pcap"]);
    shell.run(&["diag", "decode", "phone.qmdl", "--pcap", "x", "--json"]).refused(&["--json"]);
}

#[test]
fn a_log_without_messages_leaves_an_earlier_capture_as_it_was() {
    let shell = Shell::new();
    shell.write_bytes("blocks.qmdl", &Log::default().packet(1, 4, 0xB173, &[36, 0, 0, 0]).0);
    shell.write_bytes("phone.pcapng", b"an earlier one");
    let words = ["diag", "decode", "blocks.qmdl", "--pcap", "phone.pcapng"];
    shell.run(&words).found_nothing(&["phone.pcapng: no RRC or NAS message: nothing is written"]);
    assert_eq!(std::fs::read(shell.path("phone.pcapng")).unwrap(), b"an earlier one");
    let piped = shell
        .command(&["diag", "decode", "-", "--pcap", "phone.pcapng"])
        .stdin(std::fs::File::open(shell.path("blocks.qmdl")).unwrap())
        .output();
    assert_eq!(piped.unwrap().status.code(), Some(1));
    assert_eq!(std::fs::read(shell.path("phone.pcapng")).unwrap(), b"an earlier one", "nor that of a pipe");
    let words = ["diag", "decode", "blocks.qmdl", "--pcap", "new.pcapng"];
    shell.run(&words).found_nothing(&["new.pcapng"]);
    assert!(!shell.path("new.pcapng").exists());
    // A program that reads the capture from a pipe receives one without messages.
    let done = shell.command(&["diag", "decode", "blocks.qmdl", "--pcap", "-"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(messages(&done.stdout), []);
}

/// The output of tshark; `None` if it is not installed.
fn tshark(shell: &Shell, words: &[&str]) -> Option<String> {
    if !has_program("tshark", "tshark") {
        return None;
    }
    let done = Command::new("tshark").args(words).current_dir(shell.folder.path()).output().unwrap();
    assert!(done.status.success(), "tshark {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8(done.stdout).unwrap())
}

#[test]
fn wireshark_opens_the_capture_and_names_the_messages() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    shell.run(&["diag", "decode", "phone.qmdl", "--pcap", "phone.pcapng"]).fine();
    let fields =
        ["frame.interface_name", "frame.time_epoch", "frame.comment", "_ws.col.Protocol", "_ws.col.Info"];
    let mut words = vec!["-r", "phone.pcapng", "-T", "fields"];
    for field in fields {
        words.extend(["-e", field]);
    }
    let Some(told) = tshark(&shell, &words) else { return };
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 4, "{told}");
    let parts = [
        &["radio1\t1615098482.000000000\t0xB0C0, PCCH, EARFCN 1650, PCI 67, frame 310", "LTE RRC", "Paging"]
            [..],
        &["radio2\t1615098482.001000", "0xB0EC, LTE NAS EMM plain incoming", "Identity request"],
        &["radio2\t1615098482.002000", "0xB0EB", "NAS-EPS"],
        &["radio1\t1615098482.003000", "0xB821, PCCH, NR-ARFCN 627264, PCI 67", "NR RRC", "Paging"],
    ];
    for (line, parts) in lines.iter().zip(parts) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?} are in: {line}");
    }
}

#[test]
fn wireshark_reads_every_recorded_message_of_nr() {
    for log in recorded() {
        let shell = Shell::new();
        let name = log.display();
        let done = shell.run(&["diag", "decode", log.to_str().unwrap(), "--pcap", "out.pcapng"]);
        if done.code == Some(1) {
            done.found_nothing(&["no RRC or NAS message"]);
            continue;
        }
        done.fine();
        let capture = messages(&std::fs::read(shell.path("out.pcapng")).unwrap());
        let count = capture.iter().filter(|message| message.kind == 252).count();
        let lines = |filter: &str| {
            let told = tshark(&shell, &["-r", "out.pcapng", "-Y", filter])?;
            Some(told.lines().count())
        };
        let Some(read) = lines("exported_pdu && nr-rrc") else { return };
        let malformed = lines("exported_pdu && _ws.malformed").unwrap();
        println!("{name}: {read} of {count} messages of NR are dissected, {malformed} malformed");
        assert_eq!((read, malformed), (count, 0), "{name}");
    }
}

#[test]
fn wireshark_reads_every_recorded_message() {
    for log in recorded() {
        let shell = Shell::new();
        let name = log.display();
        let done = shell.run(&["diag", "decode", log.to_str().unwrap(), "--pcap", "out.pcapng"]);
        if done.code == Some(1) {
            done.found_nothing(&["no RRC or NAS message"]);
            continue;
        }
        done.fine();
        let capture = messages(&std::fs::read(shell.path("out.pcapng")).unwrap());
        let count = capture.iter().filter(|message| message.version == 2).count();
        let filter = "gsmtap.version == 2 && (lte_rrc || nas-eps)";
        let Some(read) = tshark(&shell, &["-r", "out.pcapng", "-Y", filter]) else { return };
        assert_eq!(read.lines().count(), count, "{name}: all are LTE RRC or NAS");
        // Wireshark cannot parse a NAS container in one recorded message, nor in SCAT's capture.
        let malformed = |capture: &str| {
            let filter = "gsmtap.version == 2 && _ws.malformed";
            tshark(&shell, &["-r", capture, "-Y", filter]).unwrap().lines().count()
        };
        shell.write_bytes("scat.pcapng", &reference(&log, "scat.pcapng"));
        assert_eq!(
            malformed("out.pcapng"),
            malformed("scat.pcapng"),
            "{name}: no other is malformed than SCAT's"
        );
    }
}

//! Transfers that are interrupted, and resumed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::{Recv, TRANSPORTS, file, interrupt, is_same, send, sending};
use crate::{Done, Shell};

/// Starts a sender of standard input; the test writes the input.
fn stream(shell: &Shell, recv: &Recv, transport: &str, words: &[&str]) -> Child {
    let words = sending(recv, transport, &[&["-"], words].concat());
    let mut command = shell.command(&words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn an_interrupt_ends_both_sides_in_good_order() {
    for transport in TRANSPORTS {
        let shell = Shell::new();
        let recv = Recv::start(&shell, &[]);
        let mut sender = stream(&shell, &recv, transport, &["--name", "log"]);
        sender.stdin.as_mut().unwrap().write_all(&[7; 10_000]).unwrap();
        recv.wait_for("begins");
        interrupt(&sender);
        let mut said = String::new();
        sender.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(sender.wait().unwrap().code(), Some(2));
        assert!(said.contains("it was stopped; type the same command again"), "{said}");
        let lost = recv.wait_for("lost");
        assert!(lost["why"].as_str().unwrap().contains("stopped"), "{lost}");
        // If the receiver is stopped, the sender reports this.
        let mut sender = stream(&shell, &recv, transport, &["--name", "log", "--patience", "0"]);
        sender.stdin.as_mut().unwrap().write_all(&[7; 10_000]).unwrap();
        recv.wait_for("begins");
        recv.interrupt();
        let mut said = String::new();
        sender.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(sender.wait().unwrap().code(), Some(2));
        assert!(said.contains("the receiver was stopped"), "{said}");
    }
}

#[test]
fn a_receiver_that_is_killed_and_started_again_goes_on_where_it_was() {
    for transport in TRANSPORTS {
        let shell = Shell::new();
        let bytes = file(&shell, "film", 6_000_000);
        let mut recv = Recv::start(&shell, &[]);
        // The rate is so low that there is time to kill the receiver.
        let words = ["send", "film", &recv.at, "--transport", transport, "--key", "key", "--json"];
        let words = [&words[..], &["--scheme", "cbr:rate_mbps=16", "--patience", "60"]].concat();
        let sender = shell.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while recv.wait_for("moving")["bytes_done"].as_u64() < Some(1_000_000) {}
        recv.child.kill().unwrap();
        recv.child.wait().unwrap();
        let at = recv.at.clone();
        assert!(shell.path("in/film.airpace-part").exists() && !shell.path("in/film").exists());
        drop(recv);
        let recv = Recv::at(&shell, &at, &[]);
        let done = sender.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert!(report["bytes_resumed"].as_u64() >= Some(500_000), "{report}");
        assert!(report["connections_lost"].as_u64() >= Some(1), "{report}");
        is_same(&shell, "in/film", &bytes);
        assert!(!shell.path("in/film.airpace-part").exists());
        recv.interrupt();
    }
}

#[test]
fn a_sender_that_is_killed_and_started_again_does_not_wait_for_its_own_connection() {
    for transport in TRANSPORTS {
        let shell = Shell::new();
        let bytes = file(&shell, "film", 6_000_000);
        let recv = Recv::start(&shell, &[]);
        let words = ["send", "film", &recv.at, "--transport", transport, "--key", "key", "--json"];
        let slowly = [&words[..], &["--scheme", "cbr:rate_mbps=16"]].concat();
        let mut killed = shell.command(&slowly).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while recv.wait_for("moving")["bytes_done"].as_u64() < Some(1_000_000) {}
        killed.kill().unwrap();
        killed.wait().unwrap();
        // The receiver closes an idle connection after 20 s; the new sender does not wait that long.
        let done =
            shell.command(&[&words[..], &["--scheme", "bbr", "--patience", "12"]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert!(report["bytes_resumed"].as_u64() >= Some(500_000), "{report}");
        is_same(&shell, "in/film", &bytes);
        assert!(!shell.path("in/film.airpace-part").exists(), "no empty part is left");
        recv.interrupt();
    }
}

#[test]
fn a_file_of_radio_reports_in_use_is_not_replaced() {
    let shell = Shell::new();
    fs::create_dir(shell.path("in")).unwrap();
    fs::write(shell.path("in/reports"), "").unwrap();
    file(&shell, "reports", 1_000);
    let recv = Recv::start(&shell, &["--overwrite", "--radio", "in/reports"]);
    let done =
        shell.command(&["send", "reports", &recv.at, "--scheme", "bbr", "--key", "key"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("this command itself uses"), "{said}");
    assert_eq!(fs::read(shell.path("in/reports")).unwrap(), b"", "what the receiver reads is as it was");
    recv.interrupt();
}

#[test]
fn a_full_disk_is_one_sentence_on_both_sides_and_what_came_is_kept() {
    for transport in TRANSPORTS {
        let shell = Shell::new();
        fs::create_dir(shell.path("in")).unwrap();
        let may = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
        if !may.is_ok_and(|done| done.status.success()) {
            return airpace_testing::skipped("no file system may be mounted, not even in a namespace");
        }
        let bytes = file(&shell, "film", 3_000_000);
        let inner = "mount -t tmpfs -o size=1m none in && cd . && exec \"$0\" recv in --listen 127.0.0.1:0 --key key --json";
        let mut command = Command::new("unshare");
        command
            .args(["-rm", "sh", "-c", inner, env!("CARGO_BIN_EXE_airpace")])
            .current_dir(shell.folder.path());
        let recv = Recv::of(&shell, &mut command);
        send(&shell, &recv, transport, &["film"]).refused(&["does not fit on the receiver's disk"]);
        let lost = recv.wait_for("lost");
        assert!(lost["why"].as_str().unwrap().contains("does not fit"), "{lost}");
        // The path leads through `/proc` because the receiver has a separate file system.
        let seen = format!("/proc/{}/root{}", recv.child.id(), shell.path("in/film.airpace-part").display());
        let part = fs::read(seen).expect("what came is kept");
        assert!(!part.is_empty() && bytes.starts_with(&part), "{} bytes were kept", part.len());
        recv.interrupt();
    }
}

#[test]
fn no_rights_are_needed() {
    let shell = Shell::new();
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        return airpace_testing::skipped("all of these tests run without rights already");
    }
    for folder in ["", "in", "from"] {
        let _ = fs::create_dir(shell.path(folder));
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(shell.path(folder), all).unwrap();
    }
    let nobody = |words: &[&str]| {
        let mut command = shell.command(words);
        command.uid(65_534).gid(65_534);
        command
    };
    if nobody(&["--version"]).output().is_err() {
        return airpace_testing::skipped("another user cannot reach the binary");
    }
    let bytes = file(&shell, "film", 500_000);
    let words = ["recv", "in", "--listen", "127.0.0.1:0", "--key", "key", "--json"];
    let recv = Recv::of(&shell, &mut nobody(&words));
    for transport in TRANSPORTS {
        let words = sending(&recv, transport, &["film"]);
        let said = Done::of(&mut nobody(&words), &words);
        assert_eq!(said.err, "");
        said.fine();
        is_same(&shell, "in/film", &bytes);
        fs::remove_file(shell.path("in/film")).unwrap();
    }
}

//! `airpace send` and `airpace recv` as two programs on this machine: received files, and messages if a transfer fails.

mod end;
mod hard;
mod many;
mod relay;
mod telemetry;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::{Done, Shell};

/// The transports, as named on the command line.
const TRANSPORTS: [&str; 2] = ["quic", "udp"];

/// Maximum wait for an event; a later event counts as missing.
const FOREVER: Duration = Duration::from_secs(120);

/// A receiver on a free port. Its folder is `in`, and its key is in the file `key`.
struct Recv {
    child: Child,
    events: Receiver<Value>,
    at: String,
}

impl Recv {
    fn start(shell: &Shell, more: &[&str]) -> Recv {
        Recv::at(shell, "127.0.0.1:0", more)
    }

    fn at(shell: &Shell, listen: &str, more: &[&str]) -> Recv {
        let words = [&["recv", "in", "--listen", listen, "--key", "key", "--json"], more].concat();
        Recv::of(shell, &mut shell.command(&words))
    }

    fn of(shell: &Shell, command: &mut Command) -> Recv {
        fs::create_dir_all(shell.path("in")).unwrap();
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the receiver starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (tell, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if tell.send(event).is_err() {
                    return;
                }
            }
        });
        let mut recv = Recv { child, events, at: String::new() };
        recv.at = recv.wait_for("listening")["listen"].as_str().unwrap().to_owned();
        recv
    }

    /// Waits for an event of this kind.
    #[track_caller]
    fn wait_for(&self, kind: &str) -> Value {
        let mut before = vec![];
        loop {
            let event = self.events.recv_timeout(FOREVER);
            let Ok(event) = event else { panic!("no `{kind}` came, but {before:?}") };
            if event["event"] == kind {
                return event;
            }
            if event["event"] != "moving" {
                before.push(event);
            }
        }
    }

    /// Stops the receiver as Ctrl-C does.
    #[track_caller]
    fn interrupt(mut self) {
        interrupt(&self.child);
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "the receiver ends in good order");
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn interrupt(child: &Child) {
    let sent = Command::new("sh").args(["-c", "kill -INT $0", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Random bytes.
fn random(bytes: usize) -> Vec<u8> {
    let mut random = vec![0; bytes];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    random
}

/// Creates a file of this many random bytes.
fn file(shell: &Shell, name: &str, bytes: usize) -> Vec<u8> {
    let random = random(bytes);
    fs::write(shell.path(name), &random).unwrap();
    random
}

/// Compares a file with these bytes; a failure does not print megabytes.
#[track_caller]
fn is_same(shell: &Shell, name: &str, wanted: &[u8]) {
    let is = fs::read(shell.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(is == wanted, "{name} has {} bytes, and {} were sent", is.len(), wanted.len());
}

fn send(shell: &Shell, recv: &Recv, transport: &str, words: &[&str]) -> Done {
    shell.run(&sending(recv, transport, words))
}

/// Arguments of a sender; `words` are options and files.
fn sending<'a>(recv: &'a Recv, transport: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let common = ["--scheme", "bbr", "--transport", transport, "--key", "key"];
    [&["send"], words, &[recv.at.as_str()], &common[..]].concat()
}

#[test]
fn files_are_pushed_and_fetched_over_both_transports() {
    let shell = Shell::new();
    let recv = Recv::start(&shell, &["--allow-pull", "--overwrite"]);
    fs::create_dir(shell.path("out")).unwrap();
    for transport in TRANSPORTS {
        for bytes in [0, 1, 65_536, 3_333_333] {
            let sent = file(&shell, "film", bytes);
            let said = send(&shell, &recv, transport, &["film"]).fine();
            assert!(said.contains("the hashes are right"), "{said}");
            is_same(&shell, "in/film", &sent);
            assert_eq!(recv.wait_for("stored")["bytes"], bytes);
            let words = ["--pull", "film", "--into", "out", "--overwrite", "--json"];
            let came = &send(&shell, &recv, transport, &words).json()[0];
            assert_eq!((&came["bytes"], &came["transport"]), (&bytes.into(), &transport.into()), "{came}");
            is_same(&shell, "out/film", &sent);
            let _ = fs::remove_file(shell.path("out/film"));
        }
        let sent: Vec<_> = ["a", "b", "c"].map(|name| (name, file(&shell, name, 20_000))).into();
        send(&shell, &recv, transport, &["a", "b", "c"]).fine();
        for (name, bytes) in sent {
            is_same(&shell, &format!("in/{name}"), &bytes);
            assert_eq!(recv.wait_for("stored")["name"], name);
        }
    }
    recv.interrupt();
}

#[test]
fn streams_come_from_standard_input_and_go_to_standard_output() {
    for transport in TRANSPORTS {
        let shell = Shell::new();
        let sent = file(&shell, "stream", 2_000_000);
        let out = fs::File::create(shell.path("came")).unwrap();
        // The text on standard error contains the port.
        let words = ["recv", "-", "--listen", "127.0.0.1:0", "--key", "key", "--once"];
        let mut recv = shell.command(&words).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(recv.stderr.take().unwrap()).lines();
        let line = lines.find_map(|line| Some(line.unwrap().split_once("THIS-MACHINE:")?.1.to_owned()));
        let at = format!("127.0.0.1:{}", line.unwrap().split(' ').next().unwrap());
        let words = ["send", "-", &at, "--scheme", "bbr", "--transport", transport, "--key", "key"];
        let input = fs::File::open(shell.path("stream")).unwrap();
        Done::of(shell.command(&words).stdin(input), &words).fine();
        // Read further output until the program ends.
        lines.for_each(drop);
        assert!(recv.wait().unwrap().success());
        is_same(&shell, "came", &sent);
    }
}

#[test]
fn who_has_another_key_learns_it_and_sends_nothing() {
    let shell = Shell::new();
    let recv = Recv::start(&shell, &[]);
    file(&shell, "film", 1000);
    for (transport, said) in [("quic", "the key is not the one"), ("udp", "the key is another")] {
        let words = ["film", &recv.at, "--transport", transport, "--patience", "0"];
        let mut command = shell.command(&[&["send"], &words[..]].concat());
        command.env("AIRPACE_KEY", "66YZ-PEN0-PVCZ-RVVH-QNM8-CJNV-7PQG");
        Done::of(&mut command, &words).refused(&[said]);
    }
    assert_eq!(fs::read_dir(shell.path("in")).unwrap().count(), 0);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let shell = Shell::new();
    let recv = Recv::start(&shell, &[]);
    file(&shell, "film", 1000);
    let mode = |path: &str| fs::metadata(shell.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("key"), 0o600);
    fs::set_permissions(shell.path("key"), fs::Permissions::from_mode(0o644)).unwrap();
    send(&shell, &recv, "quic", &["film"]).refused(&["chmod"]);
    shell.run(&["recv", "in", "--listen", "127.0.0.1:0", "--key", "key"]).refused(&["chmod"]);
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let shell = Shell::new();
    let recv = Recv::start(&shell, &["--allow-pull", "--overwrite"]);
    let secret = file(&shell, "secret", 1000);
    symlink(shell.path("secret"), shell.path("in/link")).unwrap();
    fs::create_dir_all(shell.path("from")).unwrap();
    for transport in TRANSPORTS {
        let absolute = shell.path("secret").display().to_string();
        for name in ["../secret", "link", &absolute, "key/../../secret", ".."] {
            send(&shell, &recv, transport, &["--pull", name, "--into", "from"]).refused(&[]);
        }
        assert_eq!(fs::read_dir(shell.path("from")).unwrap().count(), 0);
        // A link is not followed, nor does a copy of its target replace it.
        fs::write(shell.path("link"), "another").unwrap();
        let _ = send(&shell, &recv, transport, &["link"]);
        is_same(&shell, "secret", &secret);
        file(&shell, ".profile", 10);
        send(&shell, &recv, transport, &[".profile"]).refused(&["dot"]);
    }
}

#[test]
fn the_key_in_the_folder_is_neither_handed_out_nor_replaced() {
    let shell = Shell::new();
    fs::create_dir_all(shell.path("in")).unwrap();
    let recv = Recv::of(
        &shell,
        &mut shell.command(&[
            "recv",
            "in",
            "--listen",
            "127.0.0.1:0",
            "--key",
            "in/mine",
            "--json",
            "--allow-pull",
            "--overwrite",
        ]),
    );
    let key = fs::read(shell.path("in/mine")).unwrap();
    fs::write(shell.path("key"), &key).unwrap();
    fs::set_permissions(shell.path("key"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(shell.path("in/mine"), shell.path("in/same")).unwrap();
    fs::write(shell.path("in/copy"), &key).unwrap();
    fs::create_dir_all(shell.path("from")).unwrap();
    file(&shell, "mine", 1000);
    for transport in TRANSPORTS {
        for name in ["mine", "same", "copy"] {
            send(&shell, &recv, transport, &["--pull", name, "--into", "from"]).refused(&["not handed out"]);
        }
        send(&shell, &recv, transport, &["mine"]).refused(&["refused"]);
    }
    assert_eq!(fs::read_dir(shell.path("from")).unwrap().count(), 0);
    assert!(fs::read(shell.path("in/mine")).unwrap() == key, "the key is the same");
}

#[test]
fn a_file_that_is_sent_onto_itself_stays_as_it_is() {
    let shell = Shell::new();
    let recv = Recv::start(&shell, &["--allow-pull", "--overwrite"]);
    let bytes = file(&shell, "in/film", 300_000);
    for transport in TRANSPORTS {
        let said = send(&shell, &recv, transport, &["in/film"]);
        assert!(said.code.is_some(), "{}", said.err);
        is_same(&shell, "in/film", &bytes);
        let said = send(&shell, &recv, transport, &["--pull", "film", "--into", "in", "--overwrite"]);
        assert!(said.code.is_some(), "{}", said.err);
        is_same(&shell, "in/film", &bytes);
    }
}

#[test]
fn what_cannot_be_used_is_said_at_once() {
    let shell = Shell::new();
    file(&shell, "film", 10);
    shell.write("key", "4KW1-TF8K-JRGX-B6X7-7DZX-FM30-V7TN\n");
    fs::set_permissions(shell.path("key"), fs::Permissions::from_mode(0o600)).unwrap();
    let send = |words: &[&str]| shell.run(&[&["send", "film", "127.0.0.1:9"], words].concat());
    send(&[]).refused(&["--key FILE"]);
    send(&["--key", "key", "--scheme", "oracle"]).refused(&["oracle", "list schemes"]);
    send(&["--key", "key", "--radio", "/dev/null"]).refused(&["no serial device", "--radio od"]);
    send(&["--key", "key", "--radio", "modem:tcp:phone"]).refused(&["HOST:PORT"]);
    send(&["--key", "key", "--radio", "none.sigmf-meta,rnti=70"]).refused(&["none.sigmf-meta"]);
    send(&["--key", "key", "--radio", "none.sigmf-meta"]).refused(&[",rnti=R", "--stats"]);
    send(&["--key", "key", "--radio", "iq:film,rnti=70"]).refused(&["rate", "format"]);
    if !cfg!(feature = "sdr") {
        let remedies = ["without SoapySDR", "--features sdr", "airpace decode --device driver=rtlsdr"];
        send(&["--key", "key", "--radio", "driver=rtlsdr,rnti=70"]).refused(&remedies);
    }
    for source in ["-", "iq:-,rnti=70"] {
        shell.run(&["send", "-", "h", "--key", "key", "--radio", source]).refused(&["standard input"]);
    }
    let patience = ["--key", "key", "--patience", "0"];
    send(&patience).refused(&["it does not answer: no receiver of files runs there", "--patience"]);
    shell.run(&["recv", "none", "--listen", "127.0.0.1:0", "--key", "key"]).refused(&["none", "folder"]);
    shell.run(&["recv", ".", "--listen", "192.0.2.1:0", "--key", "key"]).refused(&["192.0.2.1"]);
}

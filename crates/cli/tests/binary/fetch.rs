//! `airpace serve` and `airpace fetch`: files over hq-interop, between two processes.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use super::Shell;

/// A server that is stopped at the end of a test.
struct Serving {
    child: Child,
    out: BufReader<ChildStdout>,
    url: String,
    fingerprint: String,
}

impl Serving {
    /// Serves the folder `files` on a free port of the loopback interface.
    fn new(shell: &Shell, more: &[&str]) -> Serving {
        let words = [&["serve", "files", "--listen", "127.0.0.1:0", "--json"], more].concat();
        let mut child = shell.command(&words).stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        out.read_line(&mut line).expect("its first line");
        let first: Value = serde_json::from_str(&line).expect("one object per line");
        let text = |key: &str| first[key].as_str().expect("a text").to_owned();
        Serving { child, out, url: format!("https://{}", text("listen")), fingerprint: text("fingerprint") }
    }

    /// Stops the server as Ctrl-C does. Returns its output after the first line.
    fn stop(mut self) -> Vec<Value> {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).expect("the signal is sent");
        let lines = self.out.by_ref().lines();
        let events = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        assert!(self.child.wait().expect("it ends").success(), "Ctrl-C is no error");
        events
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Needed after a failed test. A process that has already ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shell() -> (Shell, Vec<u8>) {
    let shell = Shell::new();
    std::fs::create_dir_all(shell.path("files/inner")).unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    shell.write_bytes("files/big", &bytes);
    shell.write("files/inner/a b", "spaced");
    shell.write("secret", "secret");
    symlink("../secret", shell.path("files/link")).unwrap();
    (shell, bytes)
}

#[test]
fn what_serve_serves_fetch_fetches() {
    let (shell, bytes) = shell();
    let serving = Serving::new(&shell, &["--scheme", "bbr", "--retry", "--qlog", "logs"]);
    let (url, fingerprint) = (serving.url.clone(), serving.fingerprint.clone());
    let urls = [format!("{url}/big"), format!("{url}/inner/a%20b")];
    let words = ["fetch", &urls[0], &urls[1], "--fingerprint", &fingerprint, "--out", "got", "--json"];
    let said = shell.run(&words).json();
    assert_eq!(said[0]["bytes"], 3_000_006);
    assert!(std::fs::read(shell.path("got/big")).unwrap() == bytes, "every byte in its place");
    assert_eq!(shell.read("got/a b"), "spaced");
    let printed = shell.run(&["fetch", &urls[1], "--insecure", "--out", "-", "--quiet"]);
    assert!(printed.err.contains("may read and change everything"), "{}", printed.err);
    assert_eq!(printed.fine(), "spaced");
    let events = serving.stop();
    let ended = events.last().expect("what it did");
    assert_eq!(
        (&ended["event"], &ended["files"], &ended["connections"]),
        (&"ended".into(), &3.into(), &2.into())
    );
    let logs: Vec<_> = std::fs::read_dir(shell.path("logs")).unwrap().collect();
    assert_eq!(logs.len(), 2, "a log of each connection");
}

#[test]
fn the_files_of_other_servers_come_although_one_cannot_be_found() {
    let (shell, bytes) = shell();
    let serving = Serving::new(&shell, &[]);
    let there = format!("{}/big", serving.url);
    let words = ["fetch", "https://host.invalid/lost", &there, "--fingerprint", &serving.fingerprint];
    let done = shell.run(&[&words[..], &["--out", "got"]].concat());
    assert_eq!(done.code, Some(2));
    for part in ["/lost was not fetched", "is no host that can be found"] {
        assert!(done.err.contains(part), "{}", done.err);
    }
    assert!(std::fs::read(shell.path("got/big")).unwrap() == bytes);
}

#[test]
fn nothing_outside_the_folder_is_served() {
    let (shell, _) = shell();
    let serving = Serving::new(&shell, &[]);
    let trust = ["--fingerprint", &serving.fingerprint, "--out", "got"];
    for path in
        ["/../secret", "/%2e%2e/secret", "/inner/..%2f../secret", "/link", "/inner", "/nothing", "//secret"]
    {
        let url = format!("{}{path}", serving.url);
        shell.run(&[&["fetch", &url], &trust[..]].concat()).refused(&["was not fetched", "404"]);
    }
    assert_eq!(std::fs::read_dir(shell.path("got")).unwrap().count(), 0, "nothing of them remains");
    let refused = serving.stop().into_iter().filter(|event| event["event"] == "refused").count();
    assert_eq!(refused, 7, "each is told");
}

#[test]
fn no_secret_of_the_folder_is_served() {
    let (shell, _) = shell();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = made.signing_key.serialize_pem();
    std::fs::create_dir_all(shell.path("files/.hidden")).unwrap();
    shell.write("files/fullchain.pem", &made.cert.pem());
    for name in ["privkey.pem", "copy.txt", ".hidden/key"] {
        shell.write(&format!("files/{name}"), &key);
        std::fs::set_permissions(shell.path(&format!("files/{name}")), Permissions::from_mode(0o600))
            .unwrap();
    }
    shell.write("files/bundle.pem", &format!("{}{key}", made.cert.pem()));
    shell.write("files/backup.tar", &format!("{}\0{key}", "x".repeat(2_000_000)));
    shell.write("files/film.airpace-part", "half of it");
    shell.write("files/.film.Ab12Cd.part", "half of it");
    let linked = ["files/privkey.pem", "files/fullchain.pem"].map(|name| shell.path(name));
    std::fs::hard_link(&linked[0], shell.path("files/same")).unwrap();
    std::fs::hard_link(&linked[1], shell.path("files/chain")).unwrap();
    let chain = shell.path("files/fullchain.pem");
    let words =
        ["--cert", chain.to_str().unwrap(), "--key", "files/privkey.pem", "--qlog", "files/logs", "--retry"];
    let refused = |serving: &Serving, path: &str| {
        let url = format!("{}/{path}", serving.url);
        let words = ["fetch", &url, "--fingerprint", &serving.fingerprint, "--out", "got"];
        shell.run(&words).refused(&["was not fetched", "404"]);
    };
    let serving = Serving::new(&shell, &words);
    for path in [
        "privkey.pem",
        "fullchain.pem",
        "copy.txt",
        ".hidden/key",
        "bundle.pem",
        "backup.tar",
        "same",
        "chain",
        "film.airpace-part",
        ".film.Ab12Cd.part",
        "%2ehidden/key",
    ] {
        refused(&serving, path);
    }
    let log = std::fs::read_dir(shell.path("files/logs")).unwrap().next().expect("a log").unwrap();
    refused(&serving, &format!("logs/{}", log.file_name().display()));
    // A program that renews certificates replaces the file. The new file contains no PEM.
    std::fs::remove_file(&linked[1]).unwrap();
    shell.write("files/fullchain.pem", "renewed");
    refused(&serving, "fullchain.pem");
    serving.stop();
    let words = ["--cert", "files/chain", "--key", "files/same"];
    let serving = Serving::new(&shell, &words);
    refused(&serving, "privkey.pem");
    serving.stop();
    assert_eq!(std::fs::read_dir(shell.path("got")).unwrap().count(), 0, "nothing of them was handed out");
    shell
        .run(&["serve", "files/inner", "--qlog", "files", "--listen", "127.0.0.1:0"])
        .refused(&["another folder"]);
}

#[test]
fn fetch_trusts_only_whom_it_is_told_and_writes_through_no_link() {
    let (shell, _) = shell();
    let serving = Serving::new(&shell, &[]);
    let url = format!("{}/big", serving.url);
    shell.run(&["fetch", &url]).refused(&["--ca", "--insecure"]);
    let other = "00".repeat(32);
    shell.run(&["fetch", &url, "--fingerprint", &other]).refused(&["certificate", "--fingerprint"]);
    shell.write("victim", "precious");
    symlink("victim", shell.path("big")).unwrap();
    shell.run(&["fetch", &url, "--fingerprint", &serving.fingerprint]).refused(&["it is a link to `victim`"]);
    assert_eq!(shell.read("victim"), "precious");
    let twice = ["fetch", &url, &url, "--fingerprint", &serving.fingerprint, "--out", "got"];
    shell.run(&twice).refused(&["are one file"]);
    std::fs::create_dir_all(shell.path("got")).unwrap();
    shell.write("got/big", "mine");
    let once = ["fetch", &url, "--fingerprint", &serving.fingerprint, "--out", "got"];
    shell.run(&once).refused(&["got/big", "is there already", "--overwrite"]);
    assert_eq!(shell.read("got/big"), "mine");
    shell.run(&[&once[..], &["--overwrite", "--quiet"]].concat()).fine();
    assert_eq!(std::fs::metadata(shell.path("got/big")).unwrap().len(), 3_000_000);
    shell.run(&["fetch", "http://h/a", "--insecure"]).refused(&["must begin with https://"]);
    drop(serving);
}

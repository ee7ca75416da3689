//! The server and the client of the example fetch from each other over the loopback interface.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, PipeReader, Read, Seek};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use airpace_core::Refused;
use clap::Parser;
use serde_json::Value;
use tempfile::TempDir;

use super::{Cli, Command, fetch, serve};

/// A folder `files` to serve, and space for results.
struct Folder {
    root: TempDir,
    /// Contents of `files/big`.
    big: Vec<u8>,
}

impl Folder {
    fn new() -> Folder {
        let root = tempfile::tempdir().unwrap();
        let big: Vec<u8> =
            (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let folder = Folder { root, big };
        fs::create_dir_all(folder.path("files/inner")).unwrap();
        folder.write("files/big", &folder.big);
        folder.write("files/inner/a b", "spaced");
        folder.write("secret", "secret");
        symlink("../secret", folder.path("files/link")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Fetches one URL, which must fail with a message that contains all of `parts`.
    fn refused(&self, url: &str, serving: &Serving, parts: &[&str]) {
        let error = run_fetch(&[url, "--fingerprint", &serving.fingerprint, "--out", &self.text("got")]);
        let error = error.expect_err(url);
        for part in parts {
            assert!(error.to_string().contains(part), "{url} says `{part}`, but said: {error}");
        }
    }
}

/// Runs the command `fetch`. Returns its standard output, or its error message.
fn run_fetch(words: &[&str]) -> Result<String, Refused> {
    let cli = Cli::try_parse_from([&["hq", "fetch"], words].concat()).map_err(|error| error.to_string())?;
    let Command::Fetch(args) = cli.command else { panic!("the command is fetch") };
    let mut out: File = tempfile::tempfile().unwrap();
    fetch::run(&args, &mut out, &Arc::default()).map_err(|error| format!("{error:#}"))?;
    out.rewind().unwrap();
    Ok(std::io::read_to_string(out).unwrap())
}

/// Runs the command `serve` on a free port, until `stop` is set. Returns the thread and the command's output.
fn run_serve(
    folder: &str,
    more: &[&str],
    stop: &Arc<AtomicBool>,
) -> (JoinHandle<Result<(), String>>, BufReader<PipeReader>) {
    let words = [&["hq", "serve", folder, "--listen", "127.0.0.1:0", "--json"], more].concat();
    let Command::Serve(args) = Cli::try_parse_from(words).unwrap().command else {
        panic!("the command is serve")
    };
    let (out, mut into) = std::io::pipe().unwrap();
    let hand = stop.clone();
    let run = move || serve::run(&args, &mut into, &hand).map_err(|error| format!("{error:#}"));
    (std::thread::spawn(run), BufReader::new(out))
}

/// A server that is stopped at the end of a test.
struct Serving {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), String>>>,
    out: BufReader<PipeReader>,
    url: String,
    fingerprint: String,
}

impl Serving {
    fn new(folder: &Folder, more: &[&str]) -> Serving {
        let stop = Arc::<AtomicBool>::default();
        let (thread, mut out) = run_serve(&folder.text("files"), more, &stop);
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        if line.is_empty() {
            panic!("the server ended: {:?}", thread.join());
        }
        let first: Value = serde_json::from_str(&line).unwrap();
        let text = |key: &str| first[key].as_str().unwrap().to_owned();
        let url = format!("https://{}", text("listen"));
        Serving { stop, thread: Some(thread), out, url, fingerprint: text("fingerprint") }
    }

    /// Stops the server. Returns its events after the first.
    fn stop(mut self) -> Vec<Value> {
        self.stop.store(true, Ordering::Relaxed);
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        self.thread.take().unwrap().join().unwrap().unwrap();
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_serve_serves_fetch_fetches() {
    let folder = Folder::new();
    let logs = folder.text("logs");
    let serving = Serving::new(&folder, &["--scheme", "bbr", "--retry", "--qlog", &logs]);
    let urls = [format!("{}/big", serving.url), format!("{}/inner/a%20b", serving.url)];
    let got = folder.text("got");
    let words = [urls[0].as_str(), &urls[1], "--fingerprint", &serving.fingerprint, "--out", &got];
    let said: Value = serde_json::from_str(&run_fetch(&[&words[..], &["--json"]].concat()).unwrap()).unwrap();
    assert_eq!(said["bytes"], 3_000_006);
    assert!(folder.read("got/big") == folder.big, "every byte in its place");
    assert_eq!(folder.read("got/a b"), b"spaced");
    let printed = run_fetch(&[&urls[1], "--insecure", "--out", "-", "--quiet"]);
    assert_eq!(printed, Ok("spaced".to_owned()));
    let events = serving.stop();
    let ended = events.last().expect("the event of the end");
    assert_eq!(
        (&ended["event"], &ended["files"], &ended["connections"]),
        (&"ended".into(), &3.into(), &2.into())
    );
    assert_eq!(fs::read_dir(logs).unwrap().count(), 2, "a log of each connection");
}

#[test]
fn the_files_of_other_servers_come_although_one_cannot_be_found() {
    let folder = Folder::new();
    let serving = Serving::new(&folder, &[]);
    let there = format!("{}/big", serving.url);
    let words = ["https://host.invalid/lost", &there, "--fingerprint", &serving.fingerprint];
    let error = run_fetch(&[&words[..], &["--out", &folder.text("got")]].concat()).unwrap_err();
    for part in ["/lost was not fetched", "is no host that can be found"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(folder.read("got/big") == folder.big);
}

#[test]
fn nothing_outside_the_folder_is_served() {
    let folder = Folder::new();
    let serving = Serving::new(&folder, &[]);
    for path in
        ["/../secret", "/%2e%2e/secret", "/inner/..%2f../secret", "/link", "/inner", "/nothing", "//secret"]
    {
        folder.refused(&format!("{}{path}", serving.url), &serving, &["was not fetched", "404"]);
    }
    assert_eq!(fs::read_dir(folder.path("got")).unwrap().count(), 0, "no refused file leaves a part");
    let refused = serving.stop().into_iter().filter(|event| event["event"] == "refused").count();
    assert_eq!(refused, 7, "each refusal is reported");
}

#[test]
fn no_secret_of_the_folder_is_served() {
    let folder = Folder::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = made.signing_key.serialize_pem();
    fs::create_dir_all(folder.path("files/.hidden")).unwrap();
    folder.write("files/fullchain.pem", made.cert.pem());
    for name in ["files/privkey.pem", "files/copy.txt", "files/.hidden/key"] {
        folder.write(name, &key);
        fs::set_permissions(folder.path(name), Permissions::from_mode(0o600)).unwrap();
    }
    folder.write("files/bundle.pem", format!("{}{key}", made.cert.pem()));
    folder.write("files/backup.tar", format!("{}\0{key}", "x".repeat(2_000_000)));
    folder.write("files/film.airpace-part", "half of it");
    folder.write("files/.film.Ab12Cd.part", "half of it");
    fs::hard_link(folder.path("files/privkey.pem"), folder.path("files/same")).unwrap();
    fs::hard_link(folder.path("files/fullchain.pem"), folder.path("files/chain")).unwrap();
    let refused = |serving: &Serving, path: &str| {
        folder.refused(&format!("{}/{path}", serving.url), serving, &["was not fetched", "404"]);
    };
    let [chain, own_key, logs] =
        ["fullchain.pem", "privkey.pem", "logs"].map(|name| folder.text(&format!("files/{name}")));
    let serving = Serving::new(&folder, &["--cert", &chain, "--key", &own_key, "--qlog", &logs, "--retry"]);
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
    let log = fs::read_dir(&logs).unwrap().next().expect("a log").unwrap();
    refused(&serving, &format!("logs/{}", log.file_name().display()));
    // A program that renews certificates replaces the file. The new file contains no PEM.
    fs::remove_file(&chain).unwrap();
    folder.write("files/fullchain.pem", "renewed");
    refused(&serving, "fullchain.pem");
    serving.stop();
    let [chain, same] = ["files/chain", "files/same"].map(|name| folder.text(name));
    let serving = Serving::new(&folder, &["--cert", &chain, "--key", &same]);
    refused(&serving, "privkey.pem");
    serving.stop();
    assert_eq!(fs::read_dir(folder.path("got")).unwrap().count(), 0, "no secret was handed out");
    let more = ["--qlog", &folder.text("files")];
    let (thread, _out) = run_serve(&folder.text("files/inner"), &more, &Arc::default());
    let error = thread.join().unwrap().unwrap_err();
    assert!(
        error.to_string().contains("another folder"),
        "the logs' folder contains the served one: {error}"
    );
}

#[test]
fn fetch_trusts_only_the_named_server_and_writes_through_no_link() {
    let folder = Folder::new();
    let serving = Serving::new(&folder, &[]);
    let (url, got) = (format!("{}/big", serving.url), folder.text("got"));
    let error = run_fetch(&[&url]).unwrap_err();
    assert!(
        ["--ca", "--fingerprint", "--insecure"].iter().all(|option| error.to_string().contains(option)),
        "{error}"
    );
    let other = "00".repeat(32);
    let error = run_fetch(&[&url, "--fingerprint", &other, "--out", &got]).unwrap_err();
    assert!(
        error.to_string().contains("certificate") && error.to_string().contains("fingerprint"),
        "{error}"
    );
    folder.write("got/victim", "precious");
    symlink("victim", folder.path("got/big")).unwrap();
    folder.refused(&url, &serving, &["it is a link to `victim`"]);
    assert_eq!(folder.read("got/victim"), b"precious");
    fs::remove_file(folder.path("got/big")).unwrap();
    let once = [url.as_str(), "--fingerprint", &serving.fingerprint, "--out", &got];
    let error = run_fetch(&[&[url.as_str()], &once[..]].concat()).unwrap_err();
    assert!(error.to_string().contains("two URLs name"), "{error}");
    folder.write("got/big", "mine");
    folder.refused(&url, &serving, &["got/big", "is there already", "--overwrite"]);
    assert_eq!(folder.read("got/big"), b"mine");
    run_fetch(&[&once[..], &["--overwrite", "--quiet"]].concat()).unwrap();
    assert!(folder.read("got/big") == folder.big);
    let error = run_fetch(&["http://h/a", "--insecure"]).unwrap_err();
    assert!(error.to_string().contains("must begin with https://"), "{error}");
}

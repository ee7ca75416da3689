//! `airpace fetch`: fetches files over `hq-interop`, from any QUIC stack.

use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use airpace_core::{Bytes, Rate};
use airpace_transfer::hq::client::{Client, FileProgress, Shared, Sink, Stage, Wanted};
use airpace_transfer::hq::url::Url;
use airpace_transfer::hq::{fetching, identity};
use airpace_transport::qlog;
use airpace_transport::quic::{QuicEndpoint, Trust};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use anyhow::{Context, anyhow, bail};
use indicatif::DecimalBytes;
use serde_json::json;

use super::outputs::{self, Named};
use super::{Verdict, on_interrupt, thread, wire};
use crate::terminal;

/// Fetches files from any hq-interop server: HTTP/0.9 over QUIC.
///
/// Servers are `airpace serve` and the interoperability programs of all QUIC stacks. A file appears under its name when it
/// is complete. The server's congestion control determines the sending rate. One of --ca, --fingerprint and --insecure must
/// be given; it determines which servers are trusted.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace fetch https://server.example:47474/film.mkv --fingerprint 3f8a…\n         \
                   airpace fetch https://[::1]:4433/a https://[::1]:4433/b --out folder --ca root.pem",
    group = clap::ArgGroup::new("trust").required(true)
)]
pub struct Args {
    #[arg(
        required = true,
        value_name = "URL",
        value_parser = Url::parse,
        help = "URL of a file: https://HOST[:PORT]/PATH [default port: 443]",
    )]
    urls: Vec<Url>,
    /// The folder for the files; `-` writes one file to standard output.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Replaces existing files.
    #[arg(long)]
    overwrite: bool,
    /// Trusts servers whose certificate chain ends in a certificate of this file (PEM).
    #[arg(long, value_name = "FILE", group = "trust")]
    ca: Option<PathBuf>,
    /// Trusts the server whose certificate has this SHA-256 fingerprint, as `airpace serve` prints it.
    #[arg(long, value_name = "HEX", group = "trust")]
    fingerprint: Option<String>,
    /// Trusts every server: an attacker on the path can read and change all data.
    #[arg(long, group = "trust")]
    insecure: bool,
    /// Writes a log of each connection to this folder (.sqlog, opens in qvis).
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// Prints one JSON object at the end.
    #[arg(long)]
    json: bool,
    /// Prints only errors.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let trust = match (&args.ca, &args.fingerprint) {
        (Some(file), _) => identity::roots(file),
        (_, Some(text)) => identity::fingerprint(text),
        (None, None) => Ok(Trust::Anyone),
    };
    let trust = trust.map_err(anyhow::Error::msg)?;
    if args.insecure {
        terminal::say("--insecure: whoever is between you and the server may read and change everything");
    }
    let to_stdout = args.out == Path::new("-");
    if to_stdout && (args.urls.len() > 1 || args.json) {
        bail!("`--out -` writes one file to standard output; give one URL, and no --json");
    }
    let logs =
        args.qlog.as_deref().map(|path| qlog::Folder::new(path).map_err(outputs::refused("--qlog", path)));
    let logs = logs.transpose()?;
    let mut places = Vec::new();
    for url in args.urls.iter().filter(|_| !to_stdout) {
        places.push(args.out.join(url.file_name().map_err(anyhow::Error::msg)?));
    }
    // The comparison of files resolves their folder, which must therefore exist.
    if !to_stdout {
        outputs::folder("--out", &args.out)?;
    }
    let inputs = args.ca.iter().map(|path| Named::by("--ca", path)).collect::<Vec<_>>();
    let named = places.iter().map(|path| Named::by("--out", path)).collect::<Vec<_>>();
    outputs::check(&inputs, &named)?;
    // Links are rejected when the file is created.
    let is_file = |place: &&PathBuf| place.symlink_metadata().is_ok_and(|about| about.is_file());
    if let Some(there) = places.iter().filter(|_| !args.overwrite).find(is_file) {
        bail!(
            "`{}` is there already; give --overwrite to replace it, or another folder by --out",
            there.display()
        );
    }
    let stop = on_interrupt()?;
    let began = Instant::now();
    let mut results = vec![FileProgress::default(); args.urls.len()];
    for (at, first) in args.urls.iter().enumerate() {
        let is_first = !args.urls[..at].iter().any(|other| other.is_beside(first));
        if !is_first || stop.load(Ordering::Relaxed) {
            continue;
        }
        let group: Vec<usize> =
            (at..args.urls.len()).filter(|other| args.urls[*other].is_beside(first)).collect();
        let mut wanted = Vec::new();
        for &index in &group {
            let sink = match places.get(index) {
                Some(path) => Sink::File(outputs::whole("--out", path)?),
                // The command's own `out` is locked by this thread.
                None => Sink::Stream(Box::new(File::from(std::io::stdout().as_fd().try_clone_to_owned()?))),
            };
            wanted.push(Wanted { path: args.urls[index].path.clone(), sink });
        }
        let server =
            Server { url: first, trust: &trust, logs: logs.as_ref(), is_quiet: args.quiet || args.json };
        // After an error of one server, the files of the other servers are still fetched.
        let files = server.fetch(wanted, &stop).unwrap_or_else(|why| {
            let stage = Stage::Failed(format!("{why:#}"));
            vec![FileProgress { stage, ..FileProgress::default() }; group.len()]
        });
        for (index, file) in group.into_iter().zip(files) {
            results[index] = file;
        }
    }
    let took = began.elapsed();
    if let Some(failed) = logs.map(|logs| logs.failed()).filter(|failed| *failed > 0) {
        terminal::say(format_args!(
            "{} without a whole log: its file could not be written; make room, or give another folder",
            terminal::count(failed, "connection")
        ));
    }
    report(args, out, &places, &results, took)
}

/// Prints the downloaded files, and fails if a file is missing.
fn report(
    args: &Args,
    out: &mut dyn Write,
    places: &[PathBuf],
    results: &[FileProgress],
    took: Duration,
) -> anyhow::Result<Verdict> {
    let bytes: u64 = results.iter().map(|file| file.bytes).sum();
    let rate = Rate::from_bytes_per(Bytes(bytes), took.max(Duration::from_nanos(1)));
    let error = |file: &FileProgress| match &file.stage {
        Stage::Done => None,
        Stage::Failed(why) => Some(why.clone()),
        Stage::Waiting | Stage::Fetching => Some("it was interrupted".to_owned()),
    };
    if args.json {
        let files = args.urls.iter().zip(results).enumerate().map(|(at, (url, file))| {
            json!({ "url": url.to_string(), "file": places.get(at), "bytes": file.bytes, "error": error(file) })
        });
        let files: Vec<_> = files.collect();
        let all =
            json!({ "files": files, "bytes": bytes, "seconds": took.as_secs_f64(), "mbps": rate.as_mbps() });
        writeln!(out, "{all}")?;
    } else if !args.quiet {
        for (path, file) in places.iter().zip(results).filter(|(_, file)| file.stage == Stage::Done) {
            terminal::say(format_args!("{}: {}, whole", path.display(), DecimalBytes(file.bytes)));
        }
        terminal::say(format_args!(
            "{} in {:.1} s, {:.1} Mbit/s",
            DecimalBytes(bytes),
            took.as_secs_f64(),
            rate.as_mbps()
        ));
    }
    let failed: Vec<_> =
        args.urls.iter().zip(results).filter_map(|(url, file)| Some((url, error(file)?))).collect();
    match failed.as_slice() {
        [] => Ok(Verdict::Fine),
        [(url, why)] => bail!("{url} was not fetched: {why}"),
        [(url, why), ..] => {
            bail!("{} of {} files were not fetched; {url}: {why}", failed.len(), results.len())
        }
    }
}

/// One server, and its connection parameters.
struct Server<'a> {
    url: &'a Url,
    trust: &'a Trust,
    logs: Option<&'a Arc<qlog::Folder>>,
    is_quiet: bool,
}

impl Server<'_> {
    /// Fetches from the first address of the server that answers.
    fn fetch(&self, mut wanted: Vec<Wanted>, stop: &Arc<AtomicBool>) -> anyhow::Result<Vec<FileProgress>> {
        let (host, port) = (self.url.host.as_str(), self.url.port);
        let found = (host, port).to_socket_addrs();
        let found =
            found.with_context(|| format!("`{host}` is no host that can be found; give its address"))?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        addresses.dedup();
        let last = addresses.pop().ok_or_else(|| anyhow!("`{host}` has no address"))?;
        for address in addresses {
            let client = self.fetch_at(address, wanted, stop)?;
            if client.was_connected() || stop.load(Ordering::Relaxed) {
                return Ok(client.progress().files.clone());
            }
            wanted = client.into_wanted();
        }
        Ok(self.fetch_at(last, wanted, stop)?.progress().files.clone())
    }

    fn fetch_at(
        &self,
        at: SocketAddr,
        wanted: Vec<Wanted>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Client> {
        let mut config = fetching(&self.url.host, self.trust.clone());
        config.qlog = self.logs.cloned();
        let endpoint = QuicEndpoint::new(config).map_err(anyhow::Error::msg)?;
        let socket = Socket::toward(at, Buffers::default())?;
        let app = Client::new(at, wanted, stop.clone());
        let shared = app.shared();
        let control = Control::new().context("cannot make what wakes the thread; close other programs")?;
        let hand = control.clone();
        let turning = thread("fetch", move || {
            Turn { socket, endpoint, app, radios: vec![], control: hand, wants_realtime: false }.run().app
        })?;
        let mut watch = Watch::new(self.is_quiet);
        while !turning.is_finished() {
            // The display is updated ten times per second; the end of a fetch does not wait for an update.
            std::thread::park_timeout(Duration::from_millis(20));
            watch.show(&shared);
            if stop.load(Ordering::Relaxed) {
                control.wake();
            }
        }
        watch.bar.finish_and_clear();
        turning.join().map_err(|_| anyhow!("the fetching thread ended early; this is a bug of airpace"))
    }
}

/// Shows the progress if standard error is a terminal.
struct Watch {
    bar: indicatif::ProgressBar,
    speed: wire::Speed,
    began: Instant,
}

impl Watch {
    fn new(is_quiet: bool) -> Watch {
        Watch { bar: terminal::activity(is_quiet), speed: wire::Speed::default(), began: Instant::now() }
    }

    fn show(&mut self, shared: &Shared) {
        // A panic elsewhere leaves plain data behind.
        let progress = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let bytes: u64 = progress.files.iter().map(|file| file.bytes).sum();
        let done = progress.files.iter().filter(|file| file.stage == Stage::Done).count();
        let mut line = match progress.peer {
            None => "connecting".to_owned(),
            Some(_) => format!("{done} of {} files, {}", progress.files.len(), DecimalBytes(bytes)),
        };
        if let Some(speed) = self.speed.at(self.began.elapsed(), bytes) {
            line += &format!(", {:.1} Mbit/s", speed.as_mbps());
        }
        if let Some(delay) = progress.figures.queueing_delay {
            line += &format!(", queue {:.0} ms", delay.as_secs_f64() * 1e3);
        }
        self.bar.set_message(line);
    }
}

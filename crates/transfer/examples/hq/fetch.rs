//! Fetches files from any QUIC implementation.

use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use airpace_core::{Bytes, Rate};
use airpace_files::{Place, Whole, remedy};
use airpace_transfer::hq::client::{Client, FileProgress, Sink, Stage, Wanted};
use airpace_transfer::hq::url::Url;
use airpace_transfer::hq::{fetching, identity};
use airpace_transport::qlog;
use airpace_transport::quic::{QuicEndpoint, Trust};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use anyhow::{Context, anyhow, bail};
use serde_json::json;

use super::{logs, report_failed, say};

/// Fetches files from any hq-interop server.
///
/// Servers are the command `serve` and the interoperability programs of all QUIC stacks. A file appears under its name when
/// it is complete. The server's congestion control determines the sending rate. One of --ca, --fingerprint and --insecure
/// must be given; it determines which servers are trusted.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("trust").required(true))]
pub struct Args {
    /// URL of a file: https://HOST[:PORT]/PATH [default port: 443]
    #[arg(required = true, value_name = "URL", value_parser = Url::parse)]
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
    /// Trusts the server whose certificate has this SHA-256 fingerprint, as `serve` prints it.
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

/// Fetches the files. Stops early if `stop` is set. The result as JSON, and the file of `--out -`, go to `out`.
pub fn run(args: &Args, out: &mut (impl Write + AsFd), stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let trust = match (&args.ca, &args.fingerprint) {
        (Some(file), _) => identity::roots(file),
        (_, Some(text)) => identity::fingerprint(text),
        (None, None) => Ok(Trust::Anyone),
    };
    let trust = trust?;
    if args.insecure {
        say("--insecure: whoever is between you and the server may read and change everything");
    }
    let to_stdout = args.out == Path::new("-");
    if to_stdout && (args.urls.len() > 1 || args.json) {
        bail!("`--out -` writes one file to standard output; give one URL, and no --json");
    }
    let logs = logs(args.qlog.as_deref())?;
    let places = if to_stdout { vec![] } else { places(args)? };
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
                Some(path) => Sink::File(Whole::create(path).map_err(|error| refused(path, &error))?),
                None => Sink::Stream(Box::new(File::from(out.as_fd().try_clone_to_owned()?))),
            };
            wanted.push(Wanted { path: args.urls[index].path.clone(), sink });
        }
        let remote = Remote { url: first, trust: &trust, logs: logs.as_ref(), stop };
        // After an error of one server, the files of the other servers are still fetched.
        let files = remote.fetch(wanted).unwrap_or_else(|why| {
            let stage = Stage::Failed(format!("{why:#}"));
            vec![FileProgress { stage, ..FileProgress::default() }; group.len()]
        });
        for (index, file) in group.into_iter().zip(files) {
            results[index] = file;
        }
    }
    let took = began.elapsed();
    report_failed(logs.as_deref());
    report(args, out, &places, &results, took)
}

/// The path of each file. No path is the file of --ca, and no two paths are equal. A path is an existing file only if
/// --overwrite is given.
fn places(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    // The comparison of files resolves their folder, which must therefore exist.
    std::fs::create_dir_all(&args.out).map_err(|error| refused(&args.out, &error))?;
    let read = args.ca.as_deref().and_then(Place::of);
    let (mut places, mut seen) = (Vec::new(), Vec::new());
    for url in &args.urls {
        let path = args.out.join(url.file_name()?);
        let place = Place::of(&path);
        if place.is_some() && place == read {
            bail!(
                "`{}` would be written over the file of --ca: give another folder by --out",
                path.display()
            );
        }
        if place.is_some() && seen.contains(&place) {
            bail!("two URLs name `{}`: fetch them into different folders", path.display());
        }
        // Links are rejected when the file is created.
        if !args.overwrite && path.symlink_metadata().is_ok_and(|about| about.is_file()) {
            bail!(
                "`{}` is there already; give --overwrite to replace it, or another folder by --out",
                path.display()
            );
        }
        seen.push(place);
        places.push(path);
    }
    Ok(places)
}

fn refused(path: &Path, error: &std::io::Error) -> anyhow::Error {
    anyhow!("cannot write `{}`; {}: {error}", path.display(), remedy(error, "--out"))
}

/// Prints the downloaded files, and fails if a file is missing.
fn report(
    args: &Args,
    out: &mut dyn Write,
    places: &[PathBuf],
    results: &[FileProgress],
    took: Duration,
) -> anyhow::Result<()> {
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
            say(format_args!("{}: {} bytes, whole", path.display(), file.bytes));
        }
        say(format_args!("{bytes} bytes in {:.1} s, {:.1} Mbit/s", took.as_secs_f64(), rate.as_mbps()));
    }
    let failed: Vec<_> =
        args.urls.iter().zip(results).filter_map(|(url, file)| Some((url, error(file)?))).collect();
    match failed.as_slice() {
        [] => Ok(()),
        [(url, why)] => bail!("{url} was not fetched: {why}"),
        [(url, why), ..] => {
            bail!("{} of {} files were not fetched; {url}: {why}", failed.len(), results.len())
        }
    }
}

/// One server, and its connection parameters.
struct Remote<'a> {
    url: &'a Url,
    trust: &'a Trust,
    logs: Option<&'a Arc<qlog::Folder>>,
    stop: &'a Arc<AtomicBool>,
}

impl Remote<'_> {
    /// Fetches from the first address of the server that answers.
    fn fetch(&self, mut wanted: Vec<Wanted>) -> anyhow::Result<Vec<FileProgress>> {
        let (host, port) = (self.url.host.as_str(), self.url.port);
        let found = (host, port).to_socket_addrs();
        let found =
            found.with_context(|| format!("`{host}` is no host that can be found; give its address"))?;
        let mut addresses: Vec<SocketAddr> = found.collect();
        addresses.dedup();
        let last = addresses.pop().ok_or_else(|| anyhow!("`{host}` has no address"))?;
        for address in addresses {
            let client = self.fetch_at(address, wanted)?;
            if client.was_connected() || self.stop.load(Ordering::Relaxed) {
                return Ok(client.files().to_vec());
            }
            wanted = client.into_wanted();
        }
        Ok(self.fetch_at(last, wanted)?.files().to_vec())
    }

    fn fetch_at(&self, at: SocketAddr, wanted: Vec<Wanted>) -> anyhow::Result<Client> {
        let mut config = fetching(&self.url.host, self.trust.clone());
        config.qlog = self.logs.cloned();
        let endpoint = QuicEndpoint::new(config)?;
        let socket = Socket::toward(at, Buffers::default())?;
        let app = Client::new(at, wanted, self.stop.clone());
        let control = Control::new().context("cannot make what wakes the thread; close other programs")?;
        let hand = control.clone();
        let turning = std::thread::spawn(move || {
            Turn { socket, endpoint, app, radios: vec![], control: hand, wants_realtime: false }.run().app
        });
        while !turning.is_finished() {
            std::thread::park_timeout(Duration::from_millis(20));
            if self.stop.load(Ordering::Relaxed) {
                control.wake();
            }
        }
        turning.join().map_err(|_| anyhow!("the fetching thread ended early"))
    }
}

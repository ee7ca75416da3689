//! Serves the files of a folder to any QUIC implementation.

use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::plain::plain;
use airpace_files::Inside;
use airpace_transfer::hq::server::{News, Server};
use airpace_transfer::hq::{identity, serving};
use airpace_transfer::wire::PORT;
use airpace_transport::quic::{Identity, QuicEndpoint, Retry};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use super::{logs, report_failed, say};

/// Maximum number of events that wait to be printed. Further events are dropped, so that strangers cannot fill the memory.
const MAX_NEWS: usize = 1024;

/// Default address: every address of the machine.
const EVERY: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);

/// Serves the files of a folder to any client.
///
/// Clients are the command `fetch` and the interoperability programs of all QUIC stacks. A scheme controls the sending rate.
/// Paths that leave the folder or follow a link are refused. Hidden files, files that contain a private key, and this
/// command's own key, certificate and logs are never sent. A private key that is compressed, or that is bare base64, is not
/// detected. Without --cert and --key, a certificate is created for this run, and its fingerprint is printed. Runs until
/// Ctrl-C.
#[derive(clap::Args)]
pub struct Args {
    /// The folder whose files are served.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The address and UDP port to listen on, such as 192.0.2.1:4433 or [::]:4433.
    #[arg(long, value_name = "ADDR:PORT", default_value_t = EVERY)]
    listen: SocketAddr,
    /// The sender's congestion control: NAME[@PRESET][:OPTION=VALUE]…, a scheme without a receiver part.
    #[arg(long, default_value = "cubic", value_parser = SchemeSpec::parse)]
    scheme: SchemeSpec,
    /// The server's certificate chain, as PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM, readable by its owner only.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Validates the address of every client with QUIC's Retry; by default only under load.
    #[arg(long)]
    retry: bool,
    /// Writes a log of each connection to this folder (.sqlog, opens in qvis).
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// Prints one JSON object per event.
    #[arg(long)]
    json: bool,
    /// Prints only errors.
    #[arg(long)]
    quiet: bool,
}

/// Serves until `stop` is set. Events as JSON go to `out`.
pub fn run(args: &Args, out: &mut dyn Write, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let inside = Inside::open(&args.folder).with_context(|| {
        format!(
            "`{}` cannot be served; give a folder that is there and that you may use",
            args.folder.display()
        )
    })?;
    let identity = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => identity::from_files(certificate, key),
        _ => Identity::self_signed(&["localhost", &args.listen.ip().to_string()]),
    };
    let identity = identity?;
    let fingerprint = identity::shown(&identity);
    let mut config = serving(identity, if args.retry { Retry::Always } else { Retry::UnderLoad(64) });
    let logs = logs(args.qlog.as_deref())?;
    let inside = withholding(inside, &args.folder, args.key.iter().chain(&args.cert).chain(&args.qlog))?;
    config.qlog = logs.clone();
    let endpoint = QuicEndpoint::new(config)?;
    let mut socket = Socket::bind(args.listen, Buffers::default())?;
    let listen = socket.local();
    let notices = socket.notices();
    let (tell, news) = sync_channel(MAX_NEWS);
    let told = move |news| _ = tell.try_send(news);
    let app = Server::new(inside, args.scheme.clone(), stop.clone(), Box::new(told))?;
    if args.json {
        log(out, &json!({ "event": "listening", "listen": listen.to_string(), "fingerprint": fingerprint }))?;
    } else if !args.quiet {
        notices.iter().for_each(say);
        say(format_args!("serving {} on {listen}, until Ctrl-C", args.folder.display()));
        say(format_args!(
            "on another machine: fetch https://THIS-MACHINE:{}/FILE --fingerprint {fingerprint}",
            listen.port()
        ));
    }
    let control = Control::new().context("cannot make what wakes the thread; close other programs")?;
    let hand = control.clone();
    let turning = std::thread::spawn(move || {
        let turn = Turn { socket, endpoint, app, radios: vec![], control: hand, wants_realtime: false };
        turn.run().app.served()
    });
    loop {
        // An event wakes this thread; the timeout is for the check of the flag.
        match news.recv_timeout(Duration::from_millis(100)) {
            Ok(news) if args.json => log(out, &object(&news))?,
            Ok(news) if !args.quiet => sentence(&news).into_iter().for_each(say),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stop.load(Ordering::Relaxed) {
            control.wake();
        }
    }
    let served = turning.join().map_err(|_| anyhow!("the serving thread ended early"))?;
    report_failed(logs.as_deref());
    if args.json {
        let ended = json!({
            "event": "ended", "connections": served.connections, "files": served.files, "refused": served.refused,
            "bytes": served.bytes,
        });
        log(out, &ended)?;
    } else if !args.quiet {
        say(format_args!(
            "served: {} files, {} bytes, over {} connections",
            served.files, served.bytes, served.connections
        ));
    }
    Ok(())
}

/// Prints an event on its own line, and flushes it.
fn log(out: &mut dyn Write, event: &Value) -> std::io::Result<()> {
    writeln!(out, "{event}").and_then(|()| out.flush())
}

/// The folder without the command's own files. Prints a warning for each of these files that is inside the folder.
fn withholding<'a>(
    inside: Inside,
    folder: &Path,
    own: impl Iterator<Item = &'a PathBuf> + Clone,
) -> anyhow::Result<Inside> {
    let inside = inside.withholding(own.clone().map(PathBuf::as_path)).context("it cannot be served")?;
    let root = folder.canonicalize()?;
    for path in own {
        let parent = path.canonicalize().ok();
        let lies = |path: &Path| path.starts_with(&root);
        if lies(&std::path::absolute(path)?) || parent.is_some_and(|path| lies(&path)) {
            say(format_args!(
                "`{}` lies in the folder that is served; it is not handed out. Keep it in another folder",
                path.display()
            ));
        }
    }
    Ok(inside)
}

/// Converts an event to a JSON object.
fn object(news: &News) -> Value {
    match news {
        News::Connected(peer) => json!({ "event": "connected", "peer": peer.to_string() }),
        News::Serves(peer, path) => {
            json!({ "event": "serves", "peer": peer.to_string(), "path": plain(path) })
        }
        News::Refused(peer, why) => {
            json!({ "event": "refused", "peer": peer.to_string(), "why": plain(why) })
        }
        News::Closed(peer, why) => {
            json!({ "event": "closed", "peer": peer.to_string(), "why": why.to_string() })
        }
    }
}

/// The text of an event; `None` for events that are not printed as text.
fn sentence(news: &News) -> Option<String> {
    match news {
        News::Serves(peer, path) => Some(format!("{peer} fetches {path}")),
        News::Refused(peer, why) => Some(format!("{peer} was refused {why}")),
        News::Connected(_) | News::Closed(..) => None,
    }
}

//! `airpace serve`: serves the files of a folder over `hq-interop`, to any QUIC stack.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::plain::plain;
use airpace_files::Inside;
use airpace_transfer::hq::server::{News, Server};
use airpace_transfer::hq::{identity, serving};
use airpace_transport::qlog;
use airpace_transport::quic::{Identity, QuicEndpoint, Retry};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use anyhow::{Context, anyhow};
use indicatif::DecimalBytes;
use serde_json::{Value, json};

use super::{Verdict, complete, on_interrupt, outputs, thread, wire};
use crate::terminal;

/// Maximum number of events that wait to be printed. Further events are dropped, so that strangers cannot fill the memory.
const MAX_NEWS: usize = 1024;

/// Serves the files of a folder to any client, over hq-interop: HTTP/0.9 over QUIC.
///
/// Clients are `airpace fetch` and the interoperability programs of all QUIC stacks. A scheme controls the sending rate.
/// Paths that leave the folder or follow a link are refused. Hidden files, files that contain a private key, and this
/// command's own key, certificate and logs are never sent. A private key that is compressed, or that is bare base64, is not
/// detected. Without --cert and --key, a certificate is created for this run, and its fingerprint is printed. Runs until
/// Ctrl-C.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace serve .\n         \
                         airpace serve films --listen :4433 --scheme bbr --qlog logs\n         \
                         airpace serve films --cert fullchain.pem --key privkey.pem --listen :443")]
pub struct Args {
    /// The folder whose files are served.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The address and UDP port to listen on. [default: every address, port 47474]
    #[arg(long, value_name = "ADDR", value_parser = wire::listen_address)]
    listen: Option<SocketAddr>,
    #[arg(
        long,
        default_value = "cubic",
        value_parser = SchemeSpec::parse,
        add = complete::scheme(),
        help = "The sender's congestion control: NAME[@PRESET][:OPTION=VALUE]…, a scheme without a receiver part",
    )]
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

/// Serves until Ctrl-C.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let inside = Inside::open(&args.folder).with_context(|| {
        format!(
            "`{}` cannot be served; give a folder that is there and that you may use",
            args.folder.display()
        )
    })?;
    let listen = args.listen.map_or_else(|| wire::listen_address(&wire::PORT.to_string()), Ok);
    let listen = listen.map_err(anyhow::Error::msg)?;
    let identity = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => identity::from_files(certificate, key),
        _ => Identity::self_signed(&["localhost", &listen.ip().to_string()]),
    };
    let identity = identity.map_err(anyhow::Error::msg)?;
    let fingerprint = identity::shown(&identity);
    let mut config = serving(identity, if args.retry { Retry::Always } else { Retry::UnderLoad(64) });
    let logs =
        args.qlog.as_deref().map(|path| qlog::Folder::new(path).map_err(outputs::refused("--qlog", path)));
    let logs = logs.transpose()?;
    let inside = withholding(inside, &args.folder, args.key.iter().chain(&args.cert).chain(&args.qlog))?;
    config.qlog = logs.clone();
    let endpoint = QuicEndpoint::new(config).map_err(anyhow::Error::msg)?;
    let mut socket = Socket::bind(listen, Buffers::default())?;
    let listen = socket.local();
    let notices = socket.notices();
    let stop = on_interrupt()?;
    let (tell, news) = sync_channel(MAX_NEWS);
    let told = move |news| _ = tell.try_send(news);
    let app =
        Server::new(inside, args.scheme.clone(), stop.clone(), Box::new(told)).map_err(anyhow::Error::msg)?;
    if args.json {
        let listening =
            json!({ "event": "listening", "listen": listen.to_string(), "fingerprint": fingerprint });
        terminal::log(out, listening)?;
    } else if !args.quiet {
        notices.iter().for_each(terminal::say);
        terminal::say(format_args!("serving {} on {listen}, until Ctrl-C", args.folder.display()));
        terminal::say(format_args!(
            "on another machine: airpace fetch https://THIS-MACHINE:{}/FILE --fingerprint {fingerprint}",
            listen.port()
        ));
    }
    let control = Control::new().context("cannot make what wakes the thread; close other programs")?;
    let hand = control.clone();
    let turning = thread("serve", move || {
        let turn = Turn { socket, endpoint, app, radios: vec![], control: hand, wants_realtime: false };
        turn.run().app.served()
    })?;
    loop {
        // An event wakes this thread; the timeout is for the check of Ctrl-C.
        match news.recv_timeout(Duration::from_millis(100)) {
            Ok(news) if args.json => terminal::log(out, object(&news))?,
            Ok(news) if !args.quiet => sentence(&news).into_iter().for_each(terminal::say),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stop.load(Ordering::Relaxed) {
            control.wake();
        }
    }
    let served =
        turning.join().map_err(|_| anyhow!("the serving thread ended early; this is a bug of airpace"))?;
    if let Some(failed) = logs.map(|logs| logs.failed()).filter(|failed| *failed > 0) {
        terminal::say(format_args!(
            "{} without a whole log: its file could not be written; make room, or give another folder",
            terminal::count(failed, "connection")
        ));
    }
    if args.json {
        let ended = json!({
            "event": "ended", "connections": served.connections, "files": served.files, "refused": served.refused,
            "bytes": served.bytes,
        });
        terminal::log(out, ended)?;
    } else if !args.quiet {
        let (files, connections) =
            (terminal::count(served.files, "file"), terminal::count(served.connections, "connection"));
        terminal::say(format_args!("served {files}, {}, over {connections}", DecimalBytes(served.bytes)));
    }
    Ok(Verdict::Fine)
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
            terminal::say(format_args!(
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
        News::Serves(peer, path) => Some(format!("{peer} fetches {}", plain(path))),
        News::Refused(peer, why) => Some(format!("{peer} was refused {}", plain(why))),
        News::Connected(_) | News::Closed(..) => None,
    }
}

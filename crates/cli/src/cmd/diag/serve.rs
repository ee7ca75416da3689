//! `airpace diag serve`: the OpenDiag daemon, which publishes a modem's KPIs.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_core::plain::plain;
use airpace_modem::daemon::{Daemon, Notice, Options};
use airpace_modem::metrics::MetricsServer;
use anyhow::Context;
use serde_json::json;

use super::port::{ListenArgs, PORTS, PortArgs};
use crate::cmd::{Verdict, complete};
use crate::terminal::{Paint, log, say, say_painted};

/// Publishes a modem's KPIs in shared memory, where programs read them through libOD: the OpenDiag daemon.
///
/// The daemon requests from the modem only packets for subscribed KPIs: those of --kpi, and those to which connected
/// programs subscribe. The modem's settings are restored when the daemon exits. If the daemon is killed, a guard process
/// restores them. A port that was unplugged is opened again when it returns, and the gap is marked.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace diag serve --port /dev/ttyUSB2\n         airpace diag serve --dev /dev/diag --kpi lte.rsrp,lte.dl.bytes --metrics 127.0.0.1:9464",
    group = clap::ArgGroup::new("source").args(PORTS).required(true)
)]
pub struct Args {
    #[command(flatten)]
    port: PortArgs,
    /// KPIs that are always published, such as lte.rsrp, lte.dl.bytes@2 or 0xB173:records.num_rbs.
    #[arg(long, value_name = "LIST", value_delimiter = ',', add = complete::kpi())]
    kpi: Vec<String>,
    /// Folder of the control socket [default: $OD_DIR, else /run/airpace for root, else $XDG_RUNTIME_DIR/airpace].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Serves counters and values to Prometheus at this address, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    listen: ListenArgs,
    /// Prints events to standard output, one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Serves until it is stopped.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => od::default_dir()?,
    };
    let source = args.port.source().context("no port is named")?;
    let options = args.listen.options(source, &args.kpi, Some(dir.clone()))?;
    let (source, drain) = (options.source.to_string(), options.drain);
    let daemon = start(options)?;
    let metrics = args.metrics.map(|address| {
        MetricsServer::start(address, Arc::clone(daemon.metrics()))
            .with_context(|| format!("cannot serve metrics at {address}"))
    });
    let metrics = metrics.transpose()?;
    let page = metrics.as_ref().map(|server| format!("http://{}/metrics", server.address()));
    if args.json {
        let begin = json!({"event": "serving", "port": source, "dir": dir, "pid": std::process::id(), "metrics": page});
        log(out, begin)?;
    } else {
        say(format_args!("serving {source} in {}; Ctrl-C ends", dir.display()));
        if let Some(page) = &page {
            say(format_args!("metrics at {page}"));
        }
        if drain.is_none() {
            say("the modem's buffer is not drained");
        }
    }
    let mut broken = None;
    for notice in daemon.notices() {
        if args.json {
            log(out, json!({"event": notice.kind(), "text": notice.to_string()}))?;
        } else {
            tell(&notice);
        }
        if let Notice::Broken(why) = notice {
            broken = Some(why);
        }
    }
    match broken {
        Some(why) => anyhow::bail!(why),
        None => Ok(Verdict::Fine),
    }
}

/// Starts a daemon that ends on Ctrl-C or a signal: the first one ends it in an orderly way, the second one immediately.
///
/// # Errors
/// Something that the daemon needs is missing.
pub fn start(options: Options) -> anyhow::Result<Daemon> {
    let daemon = Daemon::start(options)?;
    let (leave, was_asked) = (daemon.leaver(), AtomicBool::new(false));
    ctrlc::set_handler(move || {
        if was_asked.swap(true, Ordering::Relaxed) {
            // The guard restores the modem.
            std::process::exit(2);
        }
        leave();
    })
    .context("cannot listen to signals")?;
    Ok(daemon)
}

/// Prints a notice on standard error.
pub fn tell(notice: &Notice) {
    let paint = Paint::stderr();
    let text = notice.to_string();
    let text = plain(&text);
    say_painted(if notice.is_bad() { paint.bad(&text) } else { text.into_owned() });
}

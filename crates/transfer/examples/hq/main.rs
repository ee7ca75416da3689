//! Files over `hq-interop`, HTTP/0.9 over QUIC: a server and a client for the interoperability programs of other QUIC
//! implementations.
//!
//! ```text
//! cargo run --release -p airpace-transfer --example hq -- serve films --listen [::]:4433 --scheme bbr
//! cargo run --release -p airpace-transfer --example hq -- fetch https://server.example:4433/film.mkv --fingerprint 3f8a…
//! ```
//!
//! [`airpace_transfer::hq`] has the protocol. Exit codes: 0 success, 2 error.

mod fetch;
mod serve;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_core::Refused;
use airpace_core::plain::plain;
use airpace_core::remedy::explain_plainly;
use airpace_transport::qlog;
use anyhow::Context;
use clap::Parser;

/// Serves and fetches files over hq-interop: HTTP/0.9 over QUIC.
#[derive(Parser)]
#[command(name = "hq")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Serve(serve::Args),
    Fetch(fetch::Args),
}

fn main() -> ExitCode {
    let done = stop_flag().and_then(|stop| match Cli::parse().command {
        Command::Serve(args) => serve::run(&args, &mut std::io::stdout(), &stop),
        Command::Fetch(args) => fetch::run(&args, &mut std::io::stdout(), &stop),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("hq: {}", explain_plainly(error.as_ref())));
            ExitCode::from(2)
        }
    }
}

/// The flag that Ctrl-C sets. A second Ctrl-C exits immediately with status 130.
fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::<AtomicBool>::default();
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen to Ctrl-C")?;
    Ok(stop)
}

/// Prints a line on standard error; unsafe characters are escaped.
fn say(line: impl Display) {
    eprintln!("{}", plain(&line.to_string()));
}

/// Opens the folder of `--qlog`.
fn logs(folder: Option<&Path>) -> anyhow::Result<Option<Arc<qlog::Folder>>> {
    let open = |path: &Path| {
        qlog::Folder::new(path).map_err(|error| {
            let remedy = airpace_files::remedy(&error, "qlog").caused_by(error);
            anyhow::Error::from(Refused::new(format!("cannot write `{}`", path.display())).but(remedy))
        })
    };
    folder.map(open).transpose()
}

/// Reports logs that could not be written completely.
fn report_failed(logs: Option<&qlog::Folder>) {
    if let Some(failed) = logs.map(qlog::Folder::failed).filter(|failed| *failed > 0) {
        say(format_args!(
            "connections without a whole log: {failed}; the file could not be written: make room, or give another folder"
        ));
    }
}

//! `airpace recv`: receives files from `airpace send`, and sends files on request if the user allows this.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use airpace_core::plain::plain;
use airpace_core::{Bytes, Rate};
use airpace_feed::{Heard, Need};
use airpace_files::Inside;
use airpace_rt::clock;
use airpace_transfer::code;
use airpace_transfer::message::Way;
use airpace_transfer::server::{Notice, Server, Settings};
use airpace_transfer::store::{Folder, Store, Stream};
use anyhow::{Context, bail};
use indicatif::DecimalBytes;
use serde_json::{Value, json};

use super::wire::{self, Role, Wire};
use super::{Verdict, on_interrupt};
use crate::explain::failed;
use crate::terminal;

/// Receives files and streams from `airpace send`, over QUIC or UDP.
///
/// Prints the key, which a sender must have; the key stays the same until its file is removed. Every received file is
/// verified against the sent file, and an interrupted transfer can be continued. Runs until Ctrl-C.
///
/// Names from senders that leave the folder or follow a link are refused. Hidden files are refused, as are files whose name
/// already exists, except with --overwrite. The file of the key is neither replaced nor sent, and no file that contains a
/// private key is sent.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace recv\n         \
                         airpace recv ~/incoming --listen :5000 --once\n         \
                         airpace recv - --once | tar x")]
pub struct Args {
    /// The folder for files; `-` writes one file to standard output. [default: this one]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The address and UDP port to listen on. [default: every address, port 47474]
    #[arg(long, value_name = "ADDR", value_parser = wire::listen_address)]
    listen: Option<SocketAddr>,
    /// The file of the key, created if missing. [default: recv.key in airpace's state folder, or $AIRPACE_KEY]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Exits after the first successful transfer.
    #[arg(long)]
    once: bool,
    /// Sends files of the folder to `airpace send --pull`.
    #[arg(long)]
    allow_pull: bool,
    /// Replaces files of the same name.
    #[arg(long)]
    overwrite: bool,
    #[arg(long, value_name = "SOURCE", help = wire::radio::HELP)]
    radio: Option<String>,
    /// Runs with real-time priority (SCHED_FIFO) if this is permitted.
    ///
    /// Packets are then sent on time on a busy machine, and other programs wait.
    #[arg(long)]
    realtime: bool,
    /// Prints one JSON object per event.
    #[arg(long)]
    json: bool,
    /// Prints only the key and errors.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// A folder, a key, an address or a source of reports that cannot be used.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let folder = args.folder.as_deref().unwrap_or(Path::new("."));
    let is_stream = folder == Path::new("-");
    if is_stream && (args.allow_pull || args.json) {
        bail!("`-` writes the file to standard output; --allow-pull and --json need a folder");
    }
    let (key, place) = wire::key_to_receive(args.key.as_deref())?;
    let (store, serves): (Rc<dyn Store>, _) = if is_stream {
        // Another thread writes the stream, and this thread holds the lock of standard output.
        let pipe = std::io::stdout().as_fd().try_clone_to_owned();
        let pipe = pipe.context("standard output cannot be used")?;
        (Rc::new(Stream::new(File::from(pipe)).context(super::NO_THREAD)?), None)
    } else {
        let inside = Inside::open(folder).and_then(|inside| {
            let reports = args.radio.as_deref().map(wire::radio::files).unwrap_or_default();
            inside.withholding(place.as_deref().into_iter().chain(reports.iter().map(PathBuf::as_path)))
        });
        let inside = inside.map_err(|error| {
            let doing = format!("cannot receive into `{}`", folder.display());
            failed(doing, &error, "give an existing folder in which you may write")
        })?;
        let inside = Arc::new(inside);
        (Rc::new(Folder::new(Arc::clone(&inside), args.overwrite)), args.allow_pull.then_some(inside))
    };
    let listen = args.listen.map_or_else(|| wire::listen_address(&wire::PORT.to_string()), Ok);
    let radio = args.radio.as_deref().map(wire::radio::open).transpose()?;
    let ear = radio.as_ref().map(|radio| radio.heard());
    let socket = wire::listen(listen.map_err(anyhow::Error::msg)?)?;
    let listen = socket.local();
    let text = code::print(&key);
    if args.json {
        writeln!(out, "{}", json!({"event": "listening", "key": text, "listen": listen.to_string()}))?;
        out.flush()?;
    } else {
        terminal::say(format_args!("key: {text}"));
        if !args.quiet {
            let port =
                if listen.port() == wire::PORT { String::new() } else { format!(":{}", listen.port()) };
            // The program's name on the other machine is unknown: the text has the usual one.
            terminal::say(format_args!(
                "on the other machine: airpace send FILE THIS-MACHINE{port} --scheme pbe"
            ));
            match place {
                Some(place) => terminal::say(format_args!(
                    "the key is kept in {}; remove it for a new one",
                    place.display()
                )),
                None => terminal::say(format_args!("the key is that of ${}", wire::KEY_VARIABLE)),
            }
        }
    }
    let (is_json, is_quiet) = (args.json, args.quiet);
    let mut watch = wire::Watch::new(is_quiet || is_json, ear.clone());
    let mut radio_ends = RadioEnds { ear: ear.clone(), needs: BTreeMap::new() };
    let tell = move |notice: &Notice| {
        let account = radio_ends.take(notice);
        match notice {
            Notice::Moving(progress) if !is_json => watch.show(progress),
            notice if is_json => {
                let mut object = object(notice, &ear);
                if let Some((heard, need)) = account {
                    object["radio"] = wire::radio::object(&heard, clock::now(), need);
                }
                // The reader of the output may have closed the pipe; transfers continue.
                let _ = terminal::log(&mut std::io::stdout(), object);
            }
            notice if is_quiet => _ = notice,
            notice => {
                watch.end();
                terminal::say(sentence(notice));
                if let Some((heard, need)) = account {
                    terminal::say(plain(&wire::radio::summary(&heard, clock::now(), need)));
                }
            }
        }
    };
    let has_radio = args.radio.is_some();
    let settings =
        Settings { key: key.clone(), store, serves, once: args.once, has_radio, stop: on_interrupt()? };
    let wire = Wire { key, socket, role: Role::Listens, radio, wants_realtime: args.realtime };
    wire::turn(wire, Server::new(settings, tell))?;
    Ok(Verdict::Fine)
}

/// Selects the radio summary for the end of a transfer.
struct RadioEnds {
    ear: wire::radio::Ear,
    /// Scope of reports that the schemes of present transfers need.
    needs: BTreeMap<SocketAddr, Need>,
}

impl RadioEnds {
    /// Processes a notice. When a transfer ends, returns the radio's state and the scope that the transfer needed.
    fn take(&mut self, notice: &Notice) -> Option<(Arc<Heard>, Need)> {
        let heard = self.ear.as_ref()?;
        match notice {
            Notice::Begins { peer, way, scheme, .. } => {
                self.needs.insert(*peer, wire::radio::need_of(scheme, *way == Way::Push));
                None
            }
            Notice::Done { peer, .. } | Notice::Lost { peer, .. } => {
                self.needs.remove(peer).map(|need| (Arc::clone(heard), need))
            }
            Notice::Moving(_) | Notice::Stored { .. } | Notice::Refused { .. } => None,
        }
    }
}

/// Converts a notice to a JSON object.
fn object(notice: &Notice, ear: &wire::radio::Ear) -> Value {
    match notice {
        Notice::Begins { peer, way, files, bytes, scheme } => json!({
            "event": "begins", "peer": peer.to_string(), "way": way, "files": files, "bytes": bytes, "scheme": scheme,
        }),
        Notice::Moving(progress) => wire::moving(progress, ear),
        Notice::Stored { peer, name, bytes } => {
            json!({"event": "stored", "peer": peer.to_string(), "name": name, "bytes": bytes})
        }
        Notice::Done { peer, tally, took } => json!({
            "event": "done", "peer": peer.to_string(), "files": tally.files, "bytes": tally.done,
            "bytes_resumed": tally.resumed, "seconds": took.as_secs_f64(),
        }),
        Notice::Lost { peer, why } => json!({"event": "lost", "peer": peer.to_string(), "why": plain(why)}),
        Notice::Refused { peer, why } => {
            json!({"event": "refused", "peer": peer.to_string(), "why": plain(why)})
        }
    }
}

/// The text of a notice.
fn sentence(notice: &Notice) -> String {
    match notice {
        Notice::Begins { peer, way, files, bytes, scheme } => {
            let what = terminal::count(*files, "file");
            let size = bytes.map_or(String::new(), |bytes| format!(" of {}", DecimalBytes(bytes)));
            match way {
                Way::Push => format!("{peer} sends {what}{size} by {scheme}"),
                Way::Pull => format!("{peer} fetches {what}{size} by {scheme}"),
            }
        }
        Notice::Moving(progress) => wire::line(progress, None),
        Notice::Stored { name, bytes, .. } => format!("{name}: {}, whole", DecimalBytes(*bytes)),
        Notice::Done { peer, tally, took } => {
            let rate = Rate::from_bytes_per(Bytes(tally.done - tally.resumed), *took);
            let resumed = match tally.resumed {
                0 => String::new(),
                bytes => format!(", {} of them already here", DecimalBytes(bytes)),
            };
            let (files, bytes) = (terminal::count(tally.files, "file"), DecimalBytes(tally.done));
            format!("{peer} is done: {files}, {bytes}{resumed}, {:.1} Mbit/s", rate.as_mbps())
        }
        Notice::Lost { peer, why } => format!("{peer} is gone: {why}; it can go on where it was"),
        Notice::Refused { peer, why } => format!("{peer} was refused: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use airpace_transfer::progress::Tally;

    use super::*;

    #[test]
    fn what_happens_is_told_in_sentences_and_in_objects() {
        let peer = "192.0.2.1:9".parse().unwrap();
        let tally = Tally { files: 2, stored: 2, done: 3_000_000, resumed: 1_000_000, ..Tally::default() };
        let done = Notice::Done { peer, tally, took: Duration::from_secs(2) };
        assert_eq!(
            sentence(&done),
            "192.0.2.1:9 is done: 2 files, 3.00 MB, 1.00 MB of them already here, 8.0 Mbit/s"
        );
        assert_eq!(object(&done, &None)["bytes_resumed"], 1_000_000);
        let begins =
            Notice::Begins { peer, way: Way::Pull, files: 1, bytes: Some(5), scheme: "pbe".to_owned() };
        assert_eq!(sentence(&begins), "192.0.2.1:9 fetches 1 file of 5 B by pbe");
        assert_eq!(object(&begins, &None)["way"], "pull");
        let lost = Notice::Lost { peer, why: "nothing\u{1b}[2J was heard".to_owned() };
        assert_eq!(object(&lost, &None)["why"], "nothing\\u{1b}[2J was heard");
    }
}

//! `airpace send`: sends files to `airpace recv`, or fetches files from it.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::plain::plain;
use airpace_files::Inside;
use airpace_transfer::client::{Client, Job, Settings};
use airpace_transfer::progress::Progress;
use airpace_transfer::source::Files;
use airpace_transfer::steering;
use airpace_transfer::store::Folder;
use anyhow::{Context, anyhow, bail};
use indicatif::DecimalBytes;
use serde_json::Value;

use super::wire::{self, Role, Transport, Wire};
use super::{Verdict, complete, on_interrupt};
use crate::called;
use crate::explain::failed;
use crate::terminal;

/// Sends files or standard input to `airpace recv` on another machine, or fetches files from it (--pull).
///
/// The scheme controls the sender. The key is printed by `airpace recv`. It is typed, or read from --key FILE or
/// $AIRPACE_KEY; as an argument it would be visible to other users of this machine. An interrupted transfer continues
/// automatically, or with the same command.
#[derive(clap::Args)]
#[command(override_usage = "airpace send [OPTIONS] <FILE>... <HOST[:PORT]>")]
#[command(before_help = "Example: airpace send film.mkv phone.local --scheme pbe\n         \
                         airpace send --pull film.mkv server.example --scheme pbe --radio reports.jsonl\n         \
                         tar c photos | airpace send - server.example --name photos.tar --scheme biscay")]
pub struct Args {
    /// The files, and last the machine on which `airpace recv` runs. [default port: 47474]
    ///
    /// The file `-` is standard input. For --pull, files are given by their names in the folder of `airpace recv`.
    // Files and machine are one list, because clap accepts no second list after an option.
    #[arg(required = true, num_args = 1.., value_name = "FILE… HOST[:PORT]")]
    names: Vec<PathBuf>,
    #[arg(
        long,
        default_value = "pbe",
        value_parser = SchemeSpec::parse,
        add = complete::scheme(),
        help = "The sender's congestion control: NAME[+ran][@PRESET][:OPTION=VALUE]…",
    )]
    scheme: SchemeSpec,
    /// The transport protocol.
    #[arg(long, value_enum, default_value_t)]
    transport: Transport,
    /// Fetches the files from `airpace recv`, which must run with --allow-pull.
    #[arg(long)]
    pull: bool,
    /// The folder for fetched files. [default: this one]
    #[arg(long, value_name = "DIR", requires = "pull")]
    into: Option<PathBuf>,
    /// Replaces files of the same name.
    #[arg(long, requires = "pull")]
    overwrite: bool,
    /// File name at the receiver, for a single file or standard input. [default: the file's own name, or stdin]
    #[arg(long, value_name = "NAME", conflicts_with = "pull")]
    name: Option<String>,
    /// The file of the key. [default: $AIRPACE_KEY, or a prompt]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[arg(long, value_name = "SOURCE", help = wire::radio::HELP)]
    radio: Option<String>,
    /// Time without an answer after which the transfer fails, in seconds; until then it is retried.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = super::within::<0, 1_000_000>)]
    patience: f64,
    /// Runs with real-time priority (SCHED_FIFO) if this is permitted.
    ///
    /// Packets are then sent on time on a busy machine, and other programs wait.
    #[arg(long)]
    realtime: bool,
    /// Prints one JSON object at the end.
    #[arg(long)]
    json: bool,
    /// Prints only errors.
    #[arg(long)]
    quiet: bool,
}

impl Args {
    /// The files.
    fn files(&self) -> &[PathBuf] {
        self.names.split_last().map_or(&[], |(_, files)| files)
    }

    /// The machine and its port.
    fn host(&self) -> anyhow::Result<(String, u16)> {
        let [_, .., host] = &self.names[..] else {
            bail!("give the files and then the machine: {} send FILE HOST", called::name());
        };
        let text = host.to_str().unwrap_or_default();
        wire::host_and_port(text).map_err(|why| anyhow!("`{}` is the last word: {why}", host.display()))
    }
}

/// Runs the command.
///
/// # Errors
/// A file cannot be sent or fetched, or the transfer ended early. The message contains the reason.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let takes_input = |source: &str| source == "-" || source == "iq:-" || source.starts_with("iq:-,");
    if args.radio.as_deref().is_some_and(takes_input)
        && args.files().iter().any(|path| path == Path::new("-"))
    {
        bail!("standard input is either the file or the radio's reports; give a file for one of them");
    }
    let (host, port) = args.host()?;
    let job = if args.pull { pull(args)? } else { push(args)? };
    let key = wire::key_to_send(args.key.as_deref(), out)?;
    let peer = wire::look_up(&host, port)?;
    let radio = args.radio.as_deref().map(wire::radio::open).transpose()?;
    let ear = radio.as_ref().map(|radio| radio.heard());
    if ear.is_some() && !args.pull && !uses_radio(&args.scheme)? {
        terminal::say(format_args!(
            "airpace: scheme `{}` does not use the radio of the side that sends: --radio only shows its reports here; give it \
             to the side that receives",
            args.scheme.text()
        ));
    }
    let socket = wire::call(peer)?;
    let settings = Settings {
        key: key.clone(),
        peer,
        scheme: args.scheme.clone(),
        job,
        patience: Duration::from_secs_f64(args.patience),
        stop: on_interrupt()?,
    };
    let watch = Rc::new(RefCell::new(wire::Watch::new(args.quiet || args.json, ear.clone())));
    let states = Rc::new(RefCell::new(wire::States::default()));
    let (shown, noted) = (Rc::clone(&watch), Rc::clone(&states));
    let client = Client::new(settings, move |progress| {
        noted.borrow_mut().note(progress);
        shown.borrow_mut().show(progress);
    });
    let client = client?;
    let wire =
        Wire { key, socket, role: Role::Calls(args.transport.into()), radio, wants_realtime: args.realtime };
    let client = wire::turn(wire, client)?;
    watch.borrow().end();
    match client.outcome() {
        Some(Ok(())) => {}
        Some(Err(fault)) => return Err(fault.clone().into()),
        None => bail!("it was stopped; type the same command again to go on"),
    }
    let progress = client.progress();
    // Take the radio's state before it closes: restoring a modem takes some time, which must not count.
    let (now, need) = (states.borrow().looked(), wire::radio::need(&progress.inspect));
    if args.json {
        let mut object = object(progress, args);
        object["states"] = states.borrow().json();
        object["radio"] = ear.map_or(Value::Null, |heard| wire::radio::object(&heard, now, need));
        writeln!(out, "{object}")?;
    } else if !args.quiet {
        writeln!(out, "{}", sentence(progress))?;
        if let Some(heard) = ear {
            writeln!(out, "{}", plain(&wire::radio::summary(&heard, now, need)))?;
        }
    }
    Ok(Verdict::Fine)
}

/// Whether the sender of a scheme uses the radio of its own machine.
fn uses_radio(scheme: &SchemeSpec) -> anyhow::Result<bool> {
    let ends = steering::ends(scheme)?;
    Ok(ends.controller.sees().is_device())
}

fn push(args: &Args) -> anyhow::Result<Job> {
    let mut files = Files::new();
    let mut has_stream = false;
    // --name names standard input if it is sent, and otherwise the only file.
    let only = args.name.as_deref().filter(|_| args.files().len() == 1);
    for path in args.files() {
        let added = if path != Path::new("-") {
            match only {
                Some(name) => files.add_as(path.clone(), name),
                None => files.add(path.clone()),
            }
        } else if std::mem::replace(&mut has_stream, true) {
            bail!("standard input can be sent once; give `-` once");
        } else {
            files.add_stream(args.name.as_deref().unwrap_or("stdin"), std::io::stdin())
        };
        added?;
    }
    if args.name.is_some() && !has_stream && only.is_none() {
        bail!("--name is the name of one file, and these are several; send that file alone");
    }
    Ok(Job::Push(Rc::new(RefCell::new(files))))
}

fn pull(args: &Args) -> anyhow::Result<Job> {
    let name = |path: &PathBuf| path.to_str().map(str::to_owned);
    let names: Option<Vec<String>> = args.files().iter().map(name).collect();
    let names = names.context("a name is no text; the far side hands out files with names that are text")?;
    if names.iter().any(|name| name == "-") {
        bail!("`-` is standard input, which cannot be fetched; give names of files of the far side");
    }
    let folder = args.into.as_deref().unwrap_or(Path::new("."));
    let reports = args.radio.as_deref().map(wire::radio::files).unwrap_or_default();
    let own = args.key.as_deref().into_iter().chain(reports.iter().map(PathBuf::as_path));
    let inside = Inside::open(folder).and_then(|inside| inside.withholding(own));
    let inside = inside.map_err(|error| {
        let doing = format!("cannot write into --into {}", folder.display());
        failed(doing, &error, "give an existing folder in which you may write")
    })?;
    let store = Rc::new(Folder::new(Arc::new(inside), args.overwrite));
    Ok(Job::Pull { names, store, has_radio: args.radio.is_some() })
}

/// The result of the transfer as a JSON object.
fn object(progress: &Progress, args: &Args) -> Value {
    let mut object = progress.object();
    object["scheme"] = args.scheme.text().into();
    object["transport"] = args.transport.name().into();
    object
}

/// The result of the transfer as text.
fn sentence(progress: &Progress) -> String {
    let tally = &progress.tally;
    let resumed = match tally.resumed {
        0 => String::new(),
        bytes => format!(" ({} were there)", DecimalBytes(bytes)),
    };
    let breaks = match progress.losses {
        0 => String::new(),
        losses => format!(", over {}", terminal::count(losses + 1, "connection")),
    };
    format!(
        "{}, {}{resumed} in {:.1} s{breaks}: {:.1} Mbit/s; the hashes are right",
        terminal::count(tally.files, "file"),
        DecimalBytes(tally.done),
        progress.elapsed.as_secs_f64(),
        progress.throughput().as_mbps(),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn read(line: &str) -> Result<Args, String> {
        let mut command = Args::augment_args(clap::Command::new("send"));
        command.clone().debug_assert();
        let matches = command.try_get_matches_from_mut(line.split(' ')).map_err(|error| error.to_string())?;
        Args::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn files_come_first_and_the_host_last() {
        for line in
            ["send a b - host:5000 --scheme cubic --name c", "send a --scheme cubic b - --name c host:5000"]
        {
            let args = read(line).unwrap();
            assert_eq!(args.files(), ["a", "b", "-"].map(PathBuf::from));
            assert_eq!(args.host().unwrap(), ("host".to_owned(), 5000));
            assert_eq!(args.scheme.text(), "cubic");
        }
        for wrong in ["send", "send a host --into b", "send a host --pull --name b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for wrong in ["send host", "send a host:0"] {
            assert!(read(wrong).unwrap().host().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_said_before_anybody_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |line: &str| {
            let args = read(&line.replace("DIR", folder.path().to_str().unwrap())).unwrap();
            let job = if args.pull { pull(&args) } else { push(&args) };
            format!("{:#}", job.err().expect("it is refused"))
        };
        assert!(refused("send DIR/none host").contains("cannot be sent"));
        std::fs::create_dir(folder.path().join("photos")).unwrap();
        assert!(refused("send DIR/photos host").contains("tar c"), "a folder");
        assert!(refused("send - - host").contains("once"));
        std::fs::write(folder.path().join("a"), "a").unwrap();
        assert!(refused("send DIR/a DIR/none host --name b").contains("cannot be sent"));
        std::fs::write(folder.path().join("c"), "c").unwrap();
        assert!(refused("send DIR/a DIR/c host --name b").contains("--name"));
        assert!(refused("send DIR/a host --name ../b").contains("leads out"));
        let unnamed = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        std::fs::write(&unnamed, "a").unwrap();
        let mut args = read("send FILE host").unwrap();
        args.names[0] = unnamed;
        let reason = push(&args).err().expect("a receiver takes names in UTF-8");
        let reason = crate::explain::explained(reason.as_ref());
        assert!(reason.contains("--name"), "{reason}");
        args.name = Some("café".to_owned());
        assert!(push(&args).is_ok(), "under another name");
        assert!(refused("send DIR/a DIR/a host").contains("same name"));
        assert!(refused("send - host --pull").contains("standard input"));
        assert!(refused("send a host --pull --into DIR/none").contains("--into"));
    }

    #[test]
    fn the_outcome_is_one_sentence() {
        let mut progress = Progress { elapsed: Duration::from_secs(2), ..Progress::default() };
        progress.tally.files = 1;
        progress.tally.done = 3_000_000;
        assert_eq!(sentence(&progress), "1 file, 3.00 MB in 2.0 s: 12.0 Mbit/s; the hashes are right");
        progress.tally.resumed = 1_000_000;
        progress.losses = 2;
        assert_eq!(
            sentence(&progress),
            "1 file, 3.00 MB (1.00 MB were there) in 2.0 s, over 3 connections: 8.0 Mbit/s; the hashes are right"
        );
    }
}

//! `airpace diag modem`: an emulated modem for tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_diag::command::Request;
use airpace_diag::source::{Item, Place};
use airpace_diag::{Buffering, Message, ModemOptions, Radio};
use airpace_lab::simulated::{Drive, Driven};
use airpace_modem::modem::{Cut, Door, Next, Notice, Recorded, Replay, ReplayOptions, ServeStats, serve};
use anyhow::{Context, bail};
use serde_json::json;

use super::input::{self, Sink};
use super::port::parse_duration;
use super::simulated::{self, DeviceArgs};
use crate::called;
use crate::cmd::{Verdict, complete};
use crate::explain::failed;
use crate::terminal::{count, log, thousands};

/// Emulates a modem's diagnostic port for tests, on a pseudo-terminal or a TCP port.
///
/// The modem sends the packets of a recorded log at the log's pace, or the log of the grants that a simulated cell gives to
/// a device. It starts when the first host connects, and sends the packets that the host requests: log masks, buffering and
/// drains are supported. The settings are kept when a host disconnects, as in real modems.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace diag modem phone.qmdl --buffer 1s\n         airpace diag modem competitor --listen 127.0.0.1:9000 --loop\n         airpace diag watch --tcp 127.0.0.1:9000"
)]
pub struct Args {
    /// Logs, replayed one after another, or a scenario: a name from `airpace list scenarios` or a TOML file.
    #[arg(required = true, value_name = "LOG|SCENARIO", add = complete::scenario_or(Path::is_file))]
    speech: Vec<PathBuf>,
    /// Listens at this TCP address; port 0 selects a free port. [default: a pseudo-terminal]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Creates a pseudo-terminal, which hosts open like a modem's serial device; the default without --listen.
    #[arg(long, conflicts_with = "listen")]
    pty: bool,
    /// Time for which packets are buffered before they are sent, such as 1s. [default: no buffering]
    ///
    /// A host that drains the buffer receives the packets at the drain.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    buffer: Option<Duration>,
    /// Size of the modem's packet buffer in bytes; packets that do not fit are lost and counted.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    memory: usize,
    /// Rejects plain (non-HDLC) framing, as some modems do.
    #[arg(long)]
    hdlc_only: bool,
    /// Rejects in-band commands that control the buffer, as all real modems do.
    #[arg(long)]
    no_control: bool,
    /// Speed relative to the recording, or to the scenario's clock.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    speed: f64,
    /// Restarts the log or scenario at its end.
    #[arg(long = "loop")]
    is_looped: bool,
    /// Exits when the host has received all packets; otherwise the modem answers until Ctrl-C.
    #[arg(long, conflicts_with = "is_looped")]
    until_end: bool,
    /// For a log: keeps the recorded time stamps instead of stamping packets with their send time.
    #[arg(long)]
    keep_time: bool,
    /// For a log: maximum gap between packets; longer gaps and jumps of the modem's clock are shortened.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_duration)]
    longest_gap: Duration,
    #[command(flatten)]
    device: DeviceArgs,
    /// Prints events as one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Serves until it is stopped, or until all packets have been sent.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut options = ModemOptions {
        memory: args.memory,
        offers_plain: !args.hdlc_only,
        understands_control: !args.no_control,
        ..ModemOptions::default()
    };
    if let Some(hold) = args.buffer {
        options.buffering = Buffering::THRESHOLD;
        options.hold = hold;
    }
    match scenario_name(&args.speech) {
        Some(name) => {
            let simulated = simulated::load(name, &args.device)?;
            let drive = Drive { seed: args.device.seed, speed: args.speed, is_looped: args.is_looped };
            let mut driven = Driven::start(simulated, drive)?;
            let stats = with_door(args, options, &is_over, &driven.about(), || driven.next_packet(), out)?;
            driven.stop()?;
            end(args, stats, out)
        }
        None => {
            let mut packets = Packets::default();
            input::check(&input::read(&args.speech, &mut packets)?)?;
            let Packets(packets) = packets;
            if packets.is_empty() {
                bail!("it contains no log packet, so a modem would have nothing to send");
            }
            options.names_radio = packets.iter().any(|packet| packet.radio != Radio::FIRST);
            let replay = ReplayOptions {
                speed: args.speed,
                longest_gap: args.longest_gap,
                keeps_time: args.keep_time,
                is_looped: args.is_looped,
            };
            let count = packets.len() as u64;
            let mut replay = Replay::new(packets, replay);
            let about = about(count, &replay);
            let stats = with_door(args, options, &is_over, &about, || replay.say(), out)?;
            end(args, stats, out)
        }
    }
}

/// Opens the port, prints its address, and serves.
fn with_door(
    args: &Args,
    options: ModemOptions,
    is_over: &Arc<AtomicBool>,
    about: &str,
    speech: impl FnMut() -> Next,
    out: &mut dyn Write,
) -> anyhow::Result<ServeStats> {
    let mut door = match &args.listen {
        Some(address) => Door::listen(address.as_str()).map_err(|error| {
            failed(format_args!("cannot listen at {address}"), &error, "give a free HOST:PORT of this host")
        })?,
        None => Door::terminal().map_err(|error| {
            failed("cannot make a pseudo-terminal", &error, "--listen makes a TCP port instead")
        })?,
    };
    let option = if args.listen.is_some() { "--tcp" } else { "--port" };
    let flag = Arc::clone(is_over);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("cannot listen to signals")?;
    if args.json {
        let line =
            json!({"event": "listening", "option": option, "address": door.to_string(), "speech": about});
        log(out, line)?;
    } else {
        log(out, format_args!("modem at {door}: {about}"))?;
        log(out, format_args!("  try: {} diag watch {option} {door}", called::name()))?;
    }
    let stats = serve(&mut door, options, args.until_end, speech, is_over, |notice| {
        if tell(args.json, &notice, out).is_err() {
            // The reader of the output has closed the pipe.
            is_over.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(stats)
}

fn tell(json: bool, notice: &Notice, out: &mut dyn Write) -> std::io::Result<()> {
    let (event, text) = match notice {
        Notice::HostCame(Some(from)) => ("host came", from.clone()),
        Notice::HostCame(None) => ("host came", String::new()),
        Notice::HostWent => ("host went", String::new()),
        Notice::Asked(request) => ("asked", words(request)),
        Notice::SpeechOver => ("all said", String::new()),
    };
    if json {
        return log(out, json!({"event": event, "text": text}));
    }
    match text.as_str() {
        "" => log(out, event),
        text => log(out, format_args!("{event}: {text}")),
    }
}

/// A request as text for people.
fn words(request: &Request) -> String {
    match request {
        Request::Version => "who it is".to_owned(),
        Request::Build => "what its software is called".to_owned(),
        Request::Protocol => "which protocol it speaks".to_owned(),
        Request::Events(true) => "all events".to_owned(),
        Request::Events(false) => "no events".to_owned(),
        Request::EventMask => "which events it reports".to_owned(),
        Request::SetEventMask(mask) => format!("events by a mask of {}", mask.count),
        Request::LogsOff => "no log packets".to_owned(),
        Request::LogItems => "how many log items it has".to_owned(),
        Request::LogMask(equipment) => format!("which log packets of equipment {equipment:#X} it sends"),
        Request::SetLogMask(mask) => {
            let codes: Vec<_> = mask.codes().map(|code| code.to_string()).collect();
            let codes = if codes.is_empty() { "none".to_owned() } else { codes.join(" ") };
            format!("log packets of equipment {:#X}: {codes}", mask.equipment())
        }
        Request::PlainFraming => "plain framing".to_owned(),
        Request::Control(control) => format!("of its buffer: {control:?}"),
    }
}

fn end(args: &Args, stats: ServeStats, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let ServeStats { modem, hosts, latest } = stats;
    if args.json {
        let line = json!({
            "event": "end", "hosts": hosts, "requests": modem.requests, "refused": modem.refused,
            "drains": modem.drains, "faults": modem.faults, "packets": modem.fed, "unasked": modem.unasked,
            "lost": modem.lost, "sent": modem.sent, "bytes": modem.bytes, "latest_ms": latest.as_secs_f64() * 1e3,
        });
        writeln!(out, "{line}")?;
    } else {
        writeln!(
            out,
            "{}: {} sent in {}, {} not subscribed by any host, {} lost; {}, {}, {}; the latest packet was \
             {:.1} ms late",
            count(modem.fed, "packet"),
            thousands(modem.sent),
            count(modem.bytes, "byte"),
            thousands(modem.unasked),
            thousands(modem.lost),
            count(hosts, "host"),
            count(modem.requests, "request"),
            count(modem.drains, "drain"),
            latest.as_secs_f64() * 1e3,
        )?;
    }
    Ok(Verdict::Fine)
}

/// A description of the log that is replayed.
fn about(packets: u64, replay: &Replay) -> String {
    let gaps = replay.cuts().iter().filter(|cut| matches!(cut, Cut::Gap(..))).count();
    let clocks = replay.cuts().len() - gaps;
    let mut about = format!("{} in {:.1} s", count(packets, "packet"), replay.length().as_secs_f64());
    if gaps > 0 {
        about += &format!("; long silences shortened: {gaps}");
    }
    if clocks > 0 {
        about += &format!("; jumps of the modem's clock left out: {clocks}");
    }
    about
}

/// The name of a scenario, if the only argument names one.
fn scenario_name(words: &[PathBuf]) -> Option<&str> {
    let [word] = words else { return None };
    let name = word.to_str()?;
    let is_file = Path::new(name).extension().is_some_and(|extension| extension == "toml");
    let is_built_in = airpace_sim::builtin().iter().any(|(built_in, _)| *built_in == name);
    // Treat a name that is not a file and has no extension as a mistyped scenario. Logs have an extension.
    let is_mistyped = !word.exists() && word.extension().is_none() && name != "-";
    (is_file || is_built_in || is_mistyped).then_some(name)
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| (0.001..=1_000.0).contains(factor));
    factor.ok_or_else(|| "give a number from 0.001 to 1000".to_owned())
}

/// Collects the log packets of files.
#[derive(Default)]
struct Packets(Vec<Recorded>);

impl Sink for Packets {
    type Error = anyhow::Error;

    fn item(&mut self, _: Place, item: Item<'_>) -> anyhow::Result<()> {
        if let Item::Message(Message::Log(packet)) = item {
            self.0.push(Recorded::from(&packet));
        }
        Ok(())
    }
}

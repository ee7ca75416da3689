//! `airpace video serve`: the server of an adaptive video.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc::sync_channel;
use std::time::SystemTime;

use airpace_transfer::video::VideoDescription;
use airpace_transfer::video::server::{Config, Notice, Server};
use anyhow::anyhow;
use indicatif::DecimalBytes;
use serde_json::{Value, json};

use super::Source;
use crate::cmd::{Verdict, on_interrupt, thread, unix_s, wire, within};
use crate::terminal;

/// Maximum number of events that wait to be printed. Further events are dropped, so that clients cannot fill the memory.
const MAX_EVENTS: usize = 1_024;

/// Serves an adaptive video over HTTP/1.1 and TCP.
///
/// The content is generated: /ladder.json describes the video, and /REPRESENTATION/SEGMENT has the bytes of a segment. The sizes
/// are those of the simulator with the same scenario and seed. All clients get the same video. A scheme of Airpace must be loaded
/// into the kernel first: `airpace kernel load morc`. Runs until Ctrl-C or SIGTERM, and then closes all connections.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace video serve --congestion-control bbr\n         \
                         airpace video serve --scenario video-adaptive --set flow.0.video.duration_s=600 --seed 2")]
pub struct Args {
    /// The address and TCP port to listen on. [default: every address, port 47474]
    #[arg(long, value_name = "ADDR:PORT", value_parser = wire::listen_address)]
    listen: Option<SocketAddr>,
    /// The kernel's congestion control for the data to clients. [default: the kernel's default]
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    #[command(flatten)]
    source: Source,
    /// Seed of the segments' sizes: that of a simulated run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of the video in seconds. [default: that of the scenario, or 120]
    #[arg(long, value_name = "SECONDS", value_parser = within::<0, 86_400>)]
    length: Option<f64>,
    /// Maximum number of simultaneous connections; a client gets half of them. Further connections are refused.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Prints one JSON object per event.
    #[arg(long)]
    json: bool,
    /// Prints only errors.
    #[arg(long)]
    quiet: bool,
}

/// Serves until Ctrl-C or SIGTERM.
///
/// # Errors
/// The server cannot be started. The message contains the reason.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut watched = args.source.load()?;
    if let Some(length) = args.length {
        watched.player.duration_s = length;
    }
    let description = VideoDescription::of(&watched.player, args.seed, watched.flow);
    let listen = args.listen.map_or_else(|| wire::listen_address(&wire::PORT.to_string()), Ok);
    let segments = description.segments();
    let server = Server::listen(Config {
        listen: listen.map_err(anyhow::Error::msg)?,
        congestion_control: args.congestion_control.clone(),
        choose: |socket, name| airpace_emu::bulk::choose(socket, name),
        connections: args.connections as usize,
        description,
    })?;
    let (at, congestion_control) = (server.local(), server.congestion_control()?);
    let stop = on_interrupt()?;
    if args.json {
        let listening = json!({
            "event": "listening", "unix_s": unix_s(SystemTime::now()), "listen": at.to_string(),
            "congestion_control": congestion_control, "segments": segments,
        });
        terminal::log(out, listening)?;
    } else if !args.quiet {
        let port = if at.port() == wire::PORT { String::new() } else { format!(":{}", at.port()) };
        let segments = terminal::count(segments.into(), "segment");
        terminal::say(format_args!("serves {segments} at {at} with {congestion_control}, until Ctrl-C"));
        // The program's name on the other machine is unknown: the text has the usual one.
        terminal::say(format_args!("on the other machine: airpace video play THIS-MACHINE{port}"));
    }
    let (tell, events) = sync_channel(MAX_EVENTS);
    let running = thread("video server", move || {
        server.run(&stop, &|notice| _ = tell.try_send((SystemTime::now(), notice)))
    })?;
    for (at, notice) in events {
        if args.json {
            terminal::log(out, object(unix_s(at), &notice))?;
        } else if !args.quiet
            && let Some(sentence) = sentence(&notice)
        {
            terminal::say(sentence);
        }
    }
    let totals =
        running.join().map_err(|_| anyhow!("the server ended early; this is a bug of airpace"))??;
    if args.json {
        let ended = json!({
            "event": "ended", "unix_s": unix_s(SystemTime::now()), "connections": totals.connections,
            "segments": totals.segments, "bytes": totals.bytes, "refused": totals.refused,
        });
        terminal::log(out, ended)?;
    } else if !args.quiet {
        terminal::say(format_args!(
            "sent {} over {}: {}; refused {}",
            terminal::count(totals.segments, "segment"),
            terminal::count(totals.connections, "connection"),
            DecimalBytes(totals.bytes),
            terminal::count(totals.refused, "request"),
        ));
    }
    Ok(Verdict::Fine)
}

/// Converts an event to a JSON object.
fn object(unix_s: f64, notice: &Notice) -> Value {
    match notice {
        Notice::Sent { client, representation, segment, bytes, took } => json!({
            "event": "segment", "unix_s": unix_s, "client": client.to_string(), "representation": representation,
            "segment": segment, "bytes": bytes, "seconds": took.as_secs_f64(),
        }),
        Notice::Closed { client, segments, bytes, problem } => json!({
            "event": "closed", "unix_s": unix_s, "client": client.to_string(), "segments": segments, "bytes": bytes,
            "problem": problem,
        }),
        Notice::Refused { client, status, why } => json!({
            "event": "refused", "unix_s": unix_s, "client": client.to_string(), "status": status, "why": why,
        }),
        Notice::Stuck(why) => json!({ "event": "stuck", "unix_s": unix_s, "why": why }),
    }
}

/// The text of an event; `None` for a segment.
fn sentence(notice: &Notice) -> Option<String> {
    Some(match notice {
        Notice::Sent { .. } => return None,
        Notice::Closed { client, segments, bytes, problem } => {
            let problem = problem.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
            let segments = terminal::count(*segments, "segment");
            format!("{client} closed its connection after {segments}, {}{problem}", DecimalBytes(*bytes))
        }
        Notice::Refused { client, status, why } => format!("{client} got the status {status}: {why}"),
        Notice::Stuck(why) => why.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn events_are_objects_and_sentences() {
        let client = "192.0.2.1:9".parse().expect("an address");
        let took = Duration::from_millis(250);
        let sent = Notice::Sent { client, representation: 3, segment: 17, bytes: 450_000, took };
        assert_eq!(sentence(&sent), None, "segments are events of --json only");
        assert_eq!(object(1.5, &sent)["seconds"], 0.25);
        let problem = Some("Connection reset by peer".to_owned());
        let closed = Notice::Closed { client, segments: 1, bytes: 2_000_000, problem };
        assert_eq!(
            sentence(&closed).as_deref(),
            Some("192.0.2.1:9 closed its connection after 1 segment, 2.00 MB; Connection reset by peer")
        );
        let refused = Notice::Refused { client, status: 404, why: "nothing".to_owned() };
        assert_eq!(object(1.5, &refused)["status"], 404);
    }
}

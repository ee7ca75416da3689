//! The running proxy: its start, its events for people and programs, its end.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use airpace_proxy::rules::{Rules, RulesError};
use airpace_proxy::{Closed, Config, Door, News, Proxy, Range, Told, Totals, connections_for, has_ipv6};
use anyhow::{anyhow, ensure};
use indicatif::DecimalBytes;
use serde_json::{Value, json};

use super::Args;
use crate::called;
use crate::cmd::{Verdict, on_interrupt, thread, unix_s};
use crate::explain::explained;
use crate::terminal;

/// Maximum number of events that wait to be printed. Further events are dropped, so that strangers cannot fill the memory.
const MAX_NEWS: usize = 1_024;

/// Default port.
///
/// Source: RFC 1928 §3
const PORT: u16 = 1_080;

/// Update interval of the numbers on the terminal.
const LOOK: Duration = Duration::from_millis(500);

/// Runs the proxy until Ctrl-C.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let door = if args.transparent.is_some() { Door::Transparent } else { Door::Asked };
    let listen = args.listen.unwrap_or(match door {
        Door::Asked => (Ipv4Addr::LOCALHOST, PORT).into(),
        // A machine without IPv6 cannot listen on an IPv6 address.
        Door::Transparent if has_ipv6() => (Ipv6Addr::UNSPECIFIED, PORT).into(),
        Door::Transparent => (Ipv4Addr::UNSPECIFIED, PORT).into(),
    });
    let allow = match (args.allow.is_empty(), door) {
        (false, _) => args.allow.clone(),
        (true, Door::Transparent) => ["0.0.0.0/0", "::/0"].iter().flat_map(|all| Range::parse(all)).collect(),
        (true, Door::Asked) => {
            ensure!(
                listen.ip().to_canonical().is_loopback(),
                "other machines can reach the proxy at {listen}: give the permitted addresses, such as --allow 10.0.0.0/8"
            );
            Range::LOOPBACK.to_vec()
        }
    };
    let config = Config {
        listen,
        door,
        client_leg: args.client_leg.clone(),
        server_leg: args.server_leg.clone(),
        allow,
        most: connections_for(args.connections)?,
        idle: Duration::from_secs_f64(args.idle),
        server_queue: args.server_queue,
        choose: |socket, name| airpace_emu::bulk::choose(socket, name),
    };
    let proxy = Proxy::listen(config)?;
    let at = proxy.local();
    let rules = match &args.transparent {
        Some(interface) => Some(Rules::set(interface, &args.ports, at.port()).map_err(told)?),
        None => None,
    };
    let stop = on_interrupt()?;
    airpace_rt::signal::ignore_hangups();
    let is_silent = args.quiet || args.json;
    if args.json {
        let listening = json!({ "event": "listening", "unix_s": unix_s(SystemTime::now()), "listen": at.to_string(), "transparent": args.transparent });
        terminal::log(out, listening)?;
    } else if !args.quiet {
        let legs = |leg: &Option<String>| leg.clone().unwrap_or_else(|| "the kernel's default".to_owned());
        let (client, server) = (legs(&args.client_leg), legs(&args.server_leg));
        terminal::say(format_args!("to clients by {client}, to servers by {server}, until Ctrl-C"));
        terminal::say(match &args.transparent {
            Some(interface) => format!("intercepts the connections that arrive at {interface}"),
            None => format!("listens on {at}: curl -x socks5h://{at} URL, or https_proxy=http://{at}"),
        });
    }
    let totals = Arc::<Totals>::default();
    let (tell, news) = sync_channel(MAX_NEWS);
    let (hears, counts) = (Arc::clone(&stop), Arc::clone(&totals));
    let running = thread("proxy", move || proxy.run(&hears, counts, move |told| _ = tell.try_send(told)))?;
    let bar = terminal::activity(is_silent);
    let mut speed = Speed::new(&totals);
    let mut takes_over = rules;
    loop {
        match news.recv_timeout(LOOK) {
            Ok(told) if args.json => terminal::log(out, object(&told))?,
            Ok(told) if !args.quiet => {
                if let Some(sentence) = sentence(&told.news) {
                    bar.suspend(|| terminal::say(sentence));
                }
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if stop.load(Ordering::Relaxed) {
            // New connections are no longer taken over.
            takes_over = None;
        }
        bar.set_message(speed.words(&totals));
    }
    drop(takes_over);
    bar.finish_and_clear();
    let ended = running.join().map_err(|_| anyhow!("the proxy ended early; this is a bug of airpace"))?;
    ended?;
    let number = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
    let (connections, refused) = (number(&totals.connections), number(&totals.refused));
    let (up, down) = (number(&totals.up), number(&totals.down));
    if args.json {
        let ended = json!({
            "event": "ended", "unix_s": unix_s(SystemTime::now()), "connections": connections, "refused": refused, "up_bytes": up, "down_bytes": down,
        });
        terminal::log(out, ended)?;
    } else if !args.quiet {
        terminal::say(format_args!(
            "carried {}: {} to clients, {} to servers; refused {}",
            terminal::count(connections, "connection"),
            DecimalBytes(down),
            DecimalBytes(up),
            terminal::thousands(refused)
        ));
    }
    Ok(Verdict::Fine)
}

/// The error of the rules for people who start the proxy by this command.
fn told(error: RulesError) -> anyhow::Error {
    match error {
        RulesError::Taken => {
            anyhow!("another {} runs on this machine; end it first", called::command("proxy --transparent"))
        }
        other => other.into(),
    }
}

/// Formatter of the proxy's rate.
struct Speed {
    at: Instant,
    up: u64,
    down: u64,
}

impl Speed {
    fn new(totals: &Totals) -> Speed {
        let number = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
        Speed { at: Instant::now(), up: number(&totals.up), down: number(&totals.down) }
    }

    /// The text about the time since the last call.
    fn words(&mut self, totals: &Totals) -> String {
        let now = Speed::new(totals);
        let seconds = now.at.duration_since(self.at).as_secs_f64().max(1e-3);
        let mbps = |now: u64, before: u64| (now - before) as f64 * 8e-6 / seconds;
        let active = totals.active.load(Ordering::Relaxed) as u64;
        let words = format!(
            "{}, {:.1} Mbit/s to clients, {:.1} to servers",
            terminal::count(active, "connection"),
            mbps(now.down, self.down),
            mbps(now.up, self.up)
        );
        *self = now;
        words
    }
}

fn object(told: &Told) -> Value {
    let at = unix_s(told.at);
    match &told.news {
        News::Closed(Closed { client, target, up, down, lasted, problem }) => json!({
            "event": "closed", "unix_s": at, "client": client.to_string(), "target": target.to_string(), "up_bytes": up,
            "down_bytes": down, "seconds": lasted.as_secs_f64(), "problem": problem,
        }),
        News::Refused { client, target, why } => json!({
            "event": "refused", "unix_s": at, "client": client.to_string(), "target": target.as_ref().map(ToString::to_string),
            "why": explained(why),
        }),
        News::Stuck(why) => json!({ "event": "stuck", "unix_s": at, "why": why }),
    }
}

/// Message for the user about an event; a connection that ended normally is only counted.
fn sentence(news: &News) -> Option<String> {
    Some(match news {
        News::Closed(Closed { problem: None, .. }) => return None,
        News::Closed(Closed { client, target, up, down, problem: Some(why), .. }) => {
            format!(
                "{client} to {target}: cut after {} down, {} up: {why}",
                DecimalBytes(*down),
                DecimalBytes(*up)
            )
        }
        News::Refused { client, target: Some(target), why } => {
            format!("{client} to {target}: {}", explained(why))
        }
        News::Refused { client, target: None, why } => format!("{client}: {}", explained(why)),
        News::Stuck(why) => why.clone(),
    })
}

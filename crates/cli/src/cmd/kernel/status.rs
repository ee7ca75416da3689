//! `airpace kernel status`: loaded schemes, their flows, and the age of their feed.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use airpace_bpf::feed::{CellFeed, Feed, MAX_AGE};
use airpace_bpf::kernel::{FlowStatus, LOADABLE, PBE, Pinned, RELAY, Totals};
use airpace_core::Rate;
use anyhow::Context;
use serde_json::{Value, json};

use super::loaded::nothing_loaded;
use super::netns::{self, Place};
use crate::cmd::Verdict;
use crate::terminal::{count, thousands};

/// Maximum number of flows that are listed one by one; JSON contains all flows.
///
/// Chosen: fits on a screen.
const SHOWN: usize = 20;

/// Last fed rate in Mbit/s, and its age in milliseconds.
type Fed = (Option<f64>, Option<f64>);

/// Last values that were fed to a scheme; `None` if the scheme needs no feed.
fn fed(name: &str, pinned: &Pinned) -> anyhow::Result<Option<Fed>> {
    if name == PBE {
        let read = pinned.cell()?.map(|feed| CellFeed::read(&feed));
        return Ok(read.map(|told| {
            told.map_or((None, None), |([capacity, _], age)| (Some(capacity.as_mbps()), Some(millis(age))))
        }));
    }
    let read = pinned.feed()?.map(|feed| Feed::read(&feed));
    Ok(read.map(|told| {
        told.map_or((None, None), |(told, age)| (told.bandwidth.map(Rate::as_mbps), Some(millis(age))))
    }))
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Consequence of a feed that is `age_ms` milliseconds old.
fn consequence(name: &str, age_ms: f64) -> &'static str {
    match name {
        _ if age_ms <= MAX_AGE.as_secs_f64() * 1e3 => "",
        PBE => "; its peers hear nothing fresh",
        RELAY => "; it bounds nothing",
        _ => "; flows are BBR's",
    }
}

/// State of a loaded scheme.
struct Status {
    name: &'static str,
    totals: Totals,
    flows: Vec<FlowStatus>,
    /// Last feed; `None` if the scheme needs no feed.
    feed: Option<Fed>,
    active: Option<u64>,
    apps: Option<u64>,
    /// Network namespaces in which the scheme is the default of new sockets.
    default_in: Vec<Place>,
}

impl Status {
    fn of(name: &'static str) -> anyhow::Result<Option<Status>> {
        let Some(pinned) = Pinned::open(name)? else { return Ok(None) };
        let flows = match pinned.flows() {
            Ok(flows) => flows,
            // The scheme has been unloaded in the meantime.
            Err(_) if !pinned.is_there() => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("the flows of `{name}` cannot be read")),
        };
        Ok(Some(Status {
            name,
            totals: pinned.totals()?,
            flows,
            feed: fed(name, &pinned)?,
            active: pinned.active_flows()?,
            apps: pinned.active_apps()?,
            default_in: netns::defaults(name),
        }))
    }

    fn as_json(&self) -> Value {
        let Totals { flows, acks, sends, fallbacks, returns, silences, confirmed, rooms, elsewhere, .. } =
            self.totals;
        json!({
            "scheme": self.name,
            "default_in": self.default_in.iter().map(Place::name).collect::<Vec<_>>(),
            "totals": {
                "confirmed": confirmed,
                "elsewhere": elsewhere,
                "rooms": rooms,
                "flows": flows,
                "acks": acks,
                "sends": sends,
                "fallbacks": fallbacks,
                "silences": silences,
                "returns": returns,
            },
            "flows": self.flows.iter().map(flow_as_json).collect::<Vec<_>>(),
            "feed": self.feed.map(|(mbps, age_ms)| json!({ "mbps": mbps, "age_ms": age_ms })),
            "active_flows_of_machine": self.active,
            "active_applications": self.apps,
        })
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let totals = &self.totals;
        writeln!(out, "Loaded:    {}", self.name)?;
        if !self.default_in.is_empty() {
            writeln!(out, "Default:   of new TCP sockets in {}", netns::words(&self.default_in))?;
        }
        if self.name == RELAY {
            let bounds = totals.returns + totals.sends;
            let (flows, bounds) = (thousands(totals.flows), count(bounds, "bound"));
            writeln!(out, "Downloads: {flows} so far; {bounds}, lifted {}", count(totals.fallbacks, "time"))?;
        } else {
            writeln!(out, "Flows:     {} so far, {}", thousands(totals.flows), count(totals.acks, "ACK"))?;
        }
        self.write_flows(out)?;
        let Some((mbps, age_ms)) = self.feed else { return Ok(()) };
        if self.name == PBE {
            let (confirmed, strangers) = (totals.confirmed, totals.flows.saturating_sub(totals.confirmed));
            writeln!(
                out,
                "Option:    confirmed by the peers of {}, not by those of {strangers}",
                count(confirmed, "flow")
            )?;
        }
        self.write_sharing(out)?;
        let feed = match (mbps, age_ms) {
            // A server needs no feed.
            (_, None) if self.name == PBE => {
                "none, as on a server: what the peers' phones measure steers its flows".to_owned()
            }
            (_, None) => format!("nothing was told yet{}", consequence(self.name, f64::INFINITY)),
            (None, Some(age)) => {
                format!("bandwidth unknown, told {age:.0} ms ago{}", consequence(self.name, age))
            }
            (Some(mbps), Some(age)) => {
                format!("{mbps:.2} Mbit/s, told {age:.0} ms ago{}", consequence(self.name, age))
            }
        };
        writeln!(out, "Feed:      {feed}")?;
        if self.name == PBE && age_ms.is_some() {
            let (elsewhere, rooms) = (count(totals.elsewhere, "time"), count(totals.rooms, "ACK"));
            writeln!(
                out,
                "Receiver:  {elsewhere} the bottleneck was found elsewhere; {rooms} without room got it"
            )?;
        }
        if self.name == RELAY {
            return Ok(());
        }
        writeln!(
            out,
            "FALLBACK:  {}, {} of them for want of {}; {}",
            count(totals.fallbacks, "time"),
            thousands(totals.silences),
            if self.name == PBE { "feedback" } else { "a feed" },
            count(totals.returns, "return")
        )
    }

    /// Prints the number of flows per state, and then the first flows one by one.
    fn write_flows(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if self.flows.is_empty() {
            return Ok(());
        }
        let mut states = BTreeMap::new();
        self.flows.iter().for_each(|flow| *states.entry(flow.state).or_insert(0) += 1);
        let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        writeln!(out, "Now:       {}", states.join(", "))?;
        for flow in self.flows.iter().take(SHOWN) {
            let said = [
                Some(flow.state.to_owned()),
                flow.rate.map(|rate| format!("{:.2} Mbit/s", rate.as_mbps())),
                flow.window.map(|window| format!("window {} B", window.0)),
                flow.rtt.map(|rtt| match rtt.as_micros() {
                    micros @ ..1_000 => format!("least RTT {micros} us"),
                    _ => format!("least RTT {:.1} ms", millis(rtt)),
                }),
            ];
            let said: Vec<String> = said.into_iter().flatten().collect();
            writeln!(out, "           {} to {}: {}", flow.local, flow.remote, said.join(", "))?;
        }
        if let Some(more @ 1..) = self.flows.len().checked_sub(SHOWN) {
            writeln!(out, "           and {more} more, which `--json` has")?;
        }
        Ok(())
    }

    fn write_sharing(&self, out: &mut dyn Write) -> std::io::Result<()> {
        match self.active {
            Some(active) if self.name == PBE => {
                writeln!(out, "Sharing:   {} of this machine now", count(active, "download"))
            }
            None if self.name == PBE => Ok(()),
            Some(active) => {
                let of =
                    self.apps.map_or_else(String::new, |apps| format!(" of {}", count(apps, "application")));
                let does = if self.name == RELAY { "received" } else { "sent" };
                writeln!(out, "Sharing:   {}{of} of this machine {does} just now", count(active, "flow"))
            }
            None => writeln!(out, "Sharing:   only its own flows are counted"),
        }
    }
}

fn flow_as_json(flow: &FlowStatus) -> Value {
    json!({
        "netns": flow.netns,
        "local": flow.local.to_string(),
        "remote": flow.remote.to_string(),
        "state": flow.state,
        "mbps": flow.rate.map(Rate::as_mbps),
        "window_bytes": flow.window.map(|window| window.0),
        "min_rtt_ms": flow.rtt.map(millis),
    })
}

/// Prints the state of all loaded schemes.
pub fn status(as_json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let loaded = LOADABLE.into_iter().filter_map(|name| Status::of(name).transpose());
    let loaded = loaded.collect::<anyhow::Result<Vec<_>>>()?;
    if as_json {
        let loaded: Vec<Value> = loaded.iter().map(Status::as_json).collect();
        writeln!(out, "{}", json!({ "loaded": loaded }))?;
        return Ok(Verdict::Fine);
    }
    if loaded.is_empty() {
        writeln!(out, "{}", nothing_loaded(None, "; `airpace kernel load` does it"))?;
    }
    for status in &loaded {
        status.write(out)?;
    }
    Ok(Verdict::Fine)
}

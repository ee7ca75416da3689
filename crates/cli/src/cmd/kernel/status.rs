//! `airpace kernel status`: loaded schemes, their flows, and the age of their feed.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use airpace_bpf::feed::MAX_AGE;
use airpace_bpf::kernel::{FlowStatus, LOADABLE, PBE, RELAY, Totals};
use airpace_bpf::netns::{self, Place};
use airpace_bpf::status::Status;
use airpace_core::Rate;
use serde_json::{Value, json};

use super::loaded::nothing_loaded;
use crate::called;
use crate::cmd::Verdict;
use crate::terminal::{count, thousands};

/// Maximum number of flows that are listed one by one; JSON contains all flows.
///
/// Chosen: fits on a screen.
const SHOWN: usize = 20;

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Consequence of a feed that is `age_ms` milliseconds old.
fn consequence(name: &str, age_ms: f64) -> &'static str {
    match name {
        _ if age_ms <= MAX_AGE.as_secs_f64() * 1e3 => "",
        PBE => "; its peers receive no current measurements",
        RELAY => "; downloads are not limited",
        _ => "; flows use BBR",
    }
}

/// A loaded scheme, for output.
struct Shown(Status);

impl Shown {
    fn as_json(&self) -> Value {
        let Totals { flows, acks, sends, fallbacks, returns, silences, confirmed, rooms, elsewhere, .. } =
            self.0.totals;
        json!({
            "scheme": self.0.name,
            "default_in": self.0.default_in.iter().map(Place::name).collect::<Vec<_>>(),
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
            "flows": self.0.flows.iter().map(flow_as_json).collect::<Vec<_>>(),
            "feed": self.0.feed.map(|fed| {
                json!({ "mbps": fed.rate.map(Rate::as_mbps), "age_ms": fed.age.map(millis) })
            }),
            "active_flows_of_machine": self.0.active,
            "active_applications": self.0.apps,
        })
    }

    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let totals = &self.0.totals;
        writeln!(out, "Loaded:    {}", self.0.name)?;
        if !self.0.default_in.is_empty() {
            writeln!(out, "Default:   of new TCP sockets in {}", netns::words(&self.0.default_in))?;
        }
        if self.0.name == RELAY {
            let limits = count(totals.returns + totals.sends, "limit");
            let (flows, removed) = (thousands(totals.flows), thousands(totals.fallbacks));
            writeln!(out, "Downloads: {flows} so far; {limits} set, {removed} removed")?;
        } else {
            writeln!(out, "Flows:     {} so far, {}", thousands(totals.flows), count(totals.acks, "ACK"))?;
        }
        self.write_flows(out)?;
        let Some(fed) = self.0.feed else { return Ok(()) };
        let (mbps, age_ms) = (fed.rate.map(Rate::as_mbps), fed.age.map(millis));
        if self.0.name == PBE {
            let (confirmed, strangers) = (totals.confirmed, totals.flows.saturating_sub(totals.confirmed));
            writeln!(
                out,
                "Option:    the peers of {} confirmed it, those of {strangers} did not",
                count(confirmed, "flow")
            )?;
        }
        self.write_sharing(out)?;
        let feed = match (mbps, age_ms) {
            // A server needs no feed.
            (_, None) if self.0.name == PBE => {
                "none, as on a server: its flows follow the measurements of the peers' phones".to_owned()
            }
            (_, None) => format!("no data received yet{}", consequence(self.0.name, f64::INFINITY)),
            (None, Some(age)) => {
                format!("bandwidth unknown, updated {age:.0} ms ago{}", consequence(self.0.name, age))
            }
            (Some(mbps), Some(age)) => {
                format!("{mbps:.2} Mbit/s, updated {age:.0} ms ago{}", consequence(self.0.name, age))
            }
        };
        writeln!(out, "Feed:      {feed}")?;
        if self.0.name == PBE && age_ms.is_some() {
            let (elsewhere, rooms) = (count(totals.elsewhere, "time"), count(totals.rooms, "ACK"));
            writeln!(
                out,
                "Receiver:  {elsewhere} the bottleneck was outside the cell; in {rooms}, the option replaced a SACK block"
            )?;
        }
        if self.0.name == RELAY {
            return Ok(());
        }
        writeln!(
            out,
            "FALLBACK:  started {}, {} of them without {}; ended {}",
            count(totals.fallbacks, "time"),
            thousands(totals.silences),
            if self.0.name == PBE { "current feedback" } else { "current data in the feed" },
            count(totals.returns, "time")
        )
    }

    /// Prints the number of flows per state, and then the first flows one by one.
    fn write_flows(&self, out: &mut dyn Write) -> std::io::Result<()> {
        if self.0.flows.is_empty() {
            return Ok(());
        }
        let mut states = BTreeMap::new();
        self.0.flows.iter().for_each(|flow| *states.entry(flow.state).or_insert(0) += 1);
        let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        writeln!(out, "Now:       {}", states.join(", "))?;
        for flow in self.0.flows.iter().take(SHOWN) {
            let said = [
                Some(flow.state.to_owned()),
                flow.rate.map(|rate| format!("{:.2} Mbit/s", rate.as_mbps())),
                flow.window.map(|window| format!("window {} B", window.0)),
                flow.rtt.map(|rtt| match rtt.as_micros() {
                    micros @ ..1_000 => format!("minimum RTT {micros} us"),
                    _ => format!("minimum RTT {:.1} ms", millis(rtt)),
                }),
            ];
            let said: Vec<String> = said.into_iter().flatten().collect();
            writeln!(out, "           {} to {}: {}", flow.local, flow.remote, said.join(", "))?;
        }
        if let Some(more @ 1..) = self.0.flows.len().checked_sub(SHOWN) {
            writeln!(out, "           and {more} more; `--json` lists all flows")?;
        }
        Ok(())
    }

    fn write_sharing(&self, out: &mut dyn Write) -> std::io::Result<()> {
        match self.0.active {
            Some(active) if self.0.name == PBE => {
                writeln!(out, "Sharing:   {} of this machine at present", count(active, "download"))
            }
            None if self.0.name == PBE => Ok(()),
            Some(active) => {
                let of = self
                    .0
                    .apps
                    .map_or_else(String::new, |apps| format!(" of {}", count(apps, "application")));
                let does = if self.0.name == RELAY { "receiving" } else { "sending" };
                writeln!(out, "Sharing:   {}{of} of this machine, {does} at present", count(active, "flow"))
            }
            None => writeln!(out, "Sharing:   only flows of this scheme are counted"),
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
    let loaded = loaded.map(|status| status.map(Shown)).collect::<Result<Vec<_>, _>>()?;
    if as_json {
        let loaded: Vec<Value> = loaded.iter().map(Shown::as_json).collect();
        writeln!(out, "{}", json!({ "loaded": loaded }))?;
        return Ok(Verdict::Fine);
    }
    if loaded.is_empty() {
        writeln!(
            out,
            "{}",
            nothing_loaded(None, &format!("; load one with {}", called::command("kernel load")))
        )?;
    }
    for status in &loaded {
        status.write(out)?;
    }
    Ok(Verdict::Fine)
}

//! `airpace kernel load` and `unload`, in a build that can load programs.

use std::io::Write;

use airpace_bpf::kernel::{BISCAY, PBE, RELAY};
use airpace_bpf::manage::{self, CountError, Loaded, ManageError};
use airpace_bpf::netns::{self, Place};
use airpace_cc::SchemeSpec;
use anyhow::anyhow;
use serde_json::json;

use crate::called;
use crate::cmd::Verdict;
use crate::explain::explained;

/// Loads a scheme, or makes a loaded scheme the default of new sockets in a network namespace.
pub(super) fn load(
    scheme: &SchemeSpec,
    default_in: Option<Place>,
    as_json: bool,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let loaded = manage::load(scheme, default_in.as_ref()).map_err(|error| match error {
        ManageError::RelayAsDefault => anyhow!("{error}, without `--default` and `--netns`"),
        other => other.into(),
    })?;
    let Loaded { name, is_new, doubt, renewed } = loaded;
    if as_json {
        let place = default_in.as_ref().map(|place| json!({ "netns": place.name() }));
        let counts = [BISCAY, RELAY].contains(&name).then_some(doubt.is_none());
        let line = json!({ "loaded": name, "is_new": is_new, "counts_flows_of_machine": counts, "default_in": place,
            "still_default_in": renewed.iter().map(Place::name).collect::<Vec<_>>() });
        writeln!(out, "{line}")?;
        return Ok(Verdict::Fine);
    }
    if is_new {
        tell_loaded(name, doubt, out)?;
    } else {
        writeln!(out, "{name} was loaded already, and stays as it is.")?;
    }
    if !renewed.is_empty() {
        writeln!(
            out,
            "It is the default of new TCP sockets in {} again, as it was before.",
            netns::words(&renewed)
        )?;
    }
    if let Some(place) = default_in {
        writeln!(
            out,
            "It is the default of new TCP sockets in {place}; {} does not undo that:",
            called::command(&format!("kernel unload {name}"))
        )?;
        writeln!(out, "sysctl net.ipv4.tcp_congestion_control=NAME does.")?;
    }
    Ok(Verdict::Fine)
}

/// Prints the state of a loaded scheme, and its requirements.
fn tell_loaded(name: &str, doubt: Option<CountError>, out: &mut dyn Write) -> std::io::Result<()> {
    if name == RELAY {
        writeln!(out, "{name} is loaded: it limits the downloads of new connections, with any sender.")?;
        let feed = called::command(&format!("kernel feed {name}"));
        return writeln!(out, "Feed it with {feed}; until then it limits no download.");
    }
    writeln!(out, "{name} is loaded: sockets choose it by TCP_CONGESTION, as in `iperf3 -C {name}`.")?;
    match doubt {
        Some(error) => {
            writeln!(
                out,
                "It shares with its own flows only; others are not counted: {}",
                explained(&error)
            )?;
        }
        None if name == BISCAY => {
            writeln!(out, "It shares with all flows that this machine sends, TCP and UDP.")?;
        }
        None => {}
    }
    match name {
        BISCAY => {
            let feed = called::command("kernel feed");
            writeln!(out, "Feed it with {feed}; until then its flows use BBR.")
        }
        PBE => {
            writeln!(
                out,
                "New connections offer to exchange what a phone measures, by a TCP option (kind 254)."
            )?;
            writeln!(
                out,
                "The phone needs it too, and `airpace kernel feed pbe` there; without it, flows use BBR."
            )
        }
        _ => Ok(()),
    }
}

/// Unloads a scheme, or all schemes.
pub fn unload(scheme: Option<&str>, as_json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let removed = manage::remove(scheme)?;
    if as_json {
        let removed = removed.iter().map(|(name, places)| {
            json!({ "scheme": name, "still_default_in": places.iter().map(Place::name).collect::<Vec<_>>() })
        });
        writeln!(out, "{}", json!({ "removed": removed.collect::<Vec<_>>() }))?;
        return Ok(Verdict::Fine);
    }
    if removed.is_empty() {
        writeln!(out, "{}", nothing_loaded(scheme, ""))?;
    }
    for (name, places) in removed {
        if name == RELAY {
            writeln!(out, "{name} is removed, and what it bound has no bound any more.")?;
        } else {
            writeln!(out, "{name} is removed. Flows that use it keep it until they end.")?;
        }
        if !places.is_empty() {
            writeln!(
                out,
                "It is still the default of new TCP sockets in {}, and lives until that is changed there:",
                netns::words(&places)
            )?;
            writeln!(out, "sysctl net.ipv4.tcp_congestion_control=NAME")?;
        }
    }
    Ok(Verdict::Fine)
}

/// Error text if a required scheme is not loaded, or is not visible.
pub(super) fn not_loaded(name: &str) -> String {
    nothing_loaded(Some(name), &format!("; load it with {}", called::command(&format!("kernel load {name}"))))
}

/// Returns the sentence that no scheme, or not the requested scheme, is loaded, or that the scheme is loaded but not
/// visible from here. Called if none of the requested schemes is pinned.
pub(super) fn nothing_loaded(asked: Option<&str>, remedy: &str) -> String {
    match (manage::hidden(asked), asked) {
        (Some(name), _) => format!(
            "`{name}` is loaded, but this process does not see it: it was loaded through another /sys/fs/bpf."
        ),
        (None, Some(name)) => format!("`{name}` is not loaded{remedy}."),
        (None, None) => format!("No scheme is loaded{remedy}."),
    }
}

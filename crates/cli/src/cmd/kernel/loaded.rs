//! `airpace kernel` in a build that can load programs.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use airpace_bpf::feed::{CellFeed, Feed, MAX_AGE};
use airpace_bpf::kernel::{BISCAY, Kernel, LOADABLE, MORC, PBE, Part, Pinned, RELAY, unload as remove};
use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::morc::MorcTuning;
use airpace_bpf::twin::pbe::PbeTuning;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use airpace_core::Rate;
use anyhow::{Context, anyhow, bail, ensure};
use serde_json::json;

use super::Standard;
use super::devices::forget;
use super::run::Groups;
use crate::cmd::Verdict;

pub(super) fn load(
    scheme: &SchemeSpec,
    standard: Option<Standard<'_>>,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    ensure!(
        part(scheme)?.name() != RELAY || standard.is_none(),
        "no socket chooses `{RELAY}`: it concerns all that this machine downloads, without `--default` and `--netns`"
    );
    let namespace = standard.map(find).transpose()?.flatten();
    let (mut kernel, name, doubt) = bring_in(scheme)?;
    kernel.pin()?;
    if name == RELAY {
        writeln!(
            out,
            "{name} is loaded: it bounds what new connections download, whatever their senders use."
        )?;
        writeln!(out, "Feed it with `airpace kernel feed {name}`; until then it bounds nothing.")?;
        return Ok(Verdict::Fine);
    }
    writeln!(out, "{name} is loaded: sockets choose it by TCP_CONGESTION, as in `iperf3 -C {name}`.")?;
    match doubt {
        Some(error) => {
            writeln!(out, "It shares with its own flows only; others are not counted: {error:#}")?;
        }
        None if name == BISCAY => {
            writeln!(out, "It shares with all flows that this machine sends, TCP and UDP.")?;
        }
        None => {}
    }
    if name == BISCAY {
        writeln!(out, "Feed it with `airpace kernel feed`; until then its flows are BBR's.")?;
    }
    if name == PBE {
        writeln!(
            out,
            "New connections offer to exchange what a phone measures, by a TCP option (kind 254)."
        )?;
        writeln!(
            out,
            "The phone needs it too, and `airpace kernel feed pbe` there; without, flows are BBR's."
        )?;
    }
    if standard.is_some() {
        if let Some(namespace) = &namespace {
            let network = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(namespace.as_fd(), network)
                .context("cannot enter the network namespace; do it as root")?;
        }
        set_default(name)?;
        writeln!(
            out,
            "It is the default of new TCP sockets there; `airpace kernel unload {name}` does not undo that:"
        )?;
        writeln!(out, "sysctl net.ipv4.tcp_congestion_control=NAME does.")?;
    }
    Ok(Verdict::Fine)
}

/// Loads a scheme with all that belongs to it, for as long as the result lives or until it is pinned. Also returns its name, and
/// why the machine's flows are not counted, if they should be.
///
/// # Errors
/// A machine that takes no programs; a scheme that is loaded already.
pub fn bring_in(scheme: &SchemeSpec) -> anyhow::Result<(Kernel, &'static str, Option<anyhow::Error>)> {
    let part = part(scheme)?;
    let name = part.name();
    if Pinned::open(name)?.is_some() {
        bail!("`{name}` is loaded already; `airpace kernel unload {name}` removes it");
    }
    let mut kernel = Kernel::load(&part)?;
    let doubt = if [BISCAY, RELAY].contains(&name) { count(&mut kernel).err() } else { None };
    if let (true, Some(error)) = (part.needs_counts() || name == RELAY, &doubt) {
        bail!("{}: it needs a count of this machine's flows: {error:#}", scheme.text());
    }
    if name == PBE {
        // Without it, the scheme is no more than BBR.
        kernel.exchange(root(&Groups::see()?)?.as_fd())?;
    }
    if name == RELAY {
        kernel.bound_downloads(root(&Groups::see()?)?.as_fd())?;
    }
    Ok((kernel, name, doubt))
}

/// Counts the flows of the whole machine, or of the container that this runs in.
fn count(kernel: &mut Kernel) -> anyhow::Result<()> {
    let groups = Groups::see()?;
    Ok(kernel.count_flows(root(&groups)?.as_fd())?)
}

/// The group that all others are in.
fn root(groups: &Groups) -> anyhow::Result<File> {
    File::open(groups.root()).with_context(|| groups.root().display().to_string())
}

/// The default of a network namespace.
const DEFAULT: &str = "net/ipv4/tcp_congestion_control";

/// The network namespace whose default is meant; `None` for that of this program.
fn find(place: Standard<'_>) -> anyhow::Result<Option<File>> {
    let Standard::Namespace(name) = place else { return Ok(None) };
    ensure!(!name.contains('/') && !name.is_empty(), "`{name}` is no name of a network namespace");
    let path = Path::new("/run/netns").join(name);
    let opened = File::open(&path).map(Some);
    opened.map_err(|error| {
        anyhow!("no network namespace `{name}` ({}: {error}); `ip netns` lists them", path.display())
    })
}

/// Whether new sockets of this program's network namespace get this scheme.
fn is_default(name: &str) -> bool {
    std::fs::read_to_string(Path::new("/proc/sys").join(DEFAULT)).is_ok_and(|text| text.trim() == name)
}

fn set_default(name: &str) -> anyhow::Result<()> {
    airpace_files::set_kernel(DEFAULT, name)
        .with_context(|| format!("/proc/sys/{DEFAULT} does not take `{name}`; do it as root"))
}

/// The kernel's part of a scheme.
fn part(scheme: &SchemeSpec) -> anyhow::Result<Part> {
    let (name, options) = (scheme.scheme().name, scheme.options());
    let part = match name {
        BISCAY if options.text("relay") == "window" => {
            KernelTuning::new(&Tuning::read(options)?).map(Part::Relay)
        }
        BISCAY => KernelTuning::new(&Tuning::read(options)?).map(Part::Biscay),
        PBE => PbeTuning::new(&airpace_cc::pbe::Tuning::read(options)?).map(Part::Pbe),
        MORC if options.text("learner") == "ahead" => {
            MorcTuning::new(&airpace_cc::morc::profile(options)?).map(Part::Morc)
        }
        MORC => bail!("{}: the kernel's part has the learner `ahead` only", scheme.text()),
        _ => bail!("the kernel's part of `{name}` is not written: load `{}`", LOADABLE.join("` or `")),
    };
    part.map_err(|error| anyhow!("{}: {error}", scheme.text()))
}

pub fn unload(scheme: Option<&str>, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut is_any = false;
    for name in LOADABLE.into_iter().filter(|name| scheme.is_none_or(|scheme| scheme == *name)) {
        if let Some(room) = Pinned::open(name)?.map(|pinned| pinned.room()).transpose()?.flatten() {
            forget(&room);
        }
        if remove(name)? {
            if name == RELAY {
                writeln!(out, "{name} is removed, and what it bound has no bound any more.")?;
            } else {
                writeln!(out, "{name} is removed. Flows that use it keep it until they end.")?;
            }
            if is_default(name) {
                writeln!(
                    out,
                    "It is still the default of new TCP sockets here, and lives until that is changed:"
                )?;
                writeln!(out, "sysctl net.ipv4.tcp_congestion_control=NAME")?;
            }
            is_any = true;
        }
    }
    if !is_any {
        writeln!(out, "{}", nothing_loaded(""))?;
    }
    Ok(Verdict::Fine)
}

/// Says that nothing is loaded; or that something is, which is not seen from here.
fn nothing_loaded(remedy: &str) -> String {
    let here = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    unseen(&here.unwrap_or_default()).map_or_else(
        || format!("Nothing is loaded{remedy}."),
        |name| {
            format!(
                "The kernel has `{name}`, but it was loaded with another /sys/fs/bpf than is seen here: `ip netns exec` hides that, \
                 `nsenter --net=/run/netns/NAME` does not."
            )
        },
    )
}

/// The first scheme of ours among the kernel's congestion controls.
fn unseen(available: &str) -> Option<&str> {
    available.split_whitespace().find(|name| [BISCAY, MORC, PBE].contains(name))
}

/// Mbit/s that were told last, and how many milliseconds ago.
type Fed = (Option<f64>, Option<f64>);

/// What was told to a scheme; `None` if it needs no feed.
fn fed(name: &str, pinned: &Pinned) -> anyhow::Result<Option<Fed>> {
    let millis = |age: Duration| age.as_secs_f64() * 1e3;
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

/// What it means that a feed is so old, in milliseconds.
fn consequence(name: &str, age_ms: f64) -> &'static str {
    match name {
        _ if age_ms <= MAX_AGE.as_secs_f64() * 1e3 => "",
        PBE => "; its peers hear nothing fresh",
        RELAY => "; it bounds nothing",
        _ => "; flows are BBR's",
    }
}

pub fn status(as_json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut schemes = vec![];
    for name in LOADABLE {
        let Some(pinned) = Pinned::open(name)? else { continue };
        let totals = pinned.totals()?;
        let (active, apps) = (pinned.active_flows()?, pinned.active_apps()?);
        let feed = fed(name, &pinned)?;
        let (mbps, age_ms) = feed.unwrap_or_default();
        if as_json {
            let totals = json!({
                "confirmed": totals.confirmed,
                "elsewhere": totals.elsewhere,
                "rooms": totals.rooms,
                "flows": totals.flows,
                "acks": totals.acks,
                "sends": totals.sends,
                "fallbacks": totals.fallbacks,
                "silences": totals.silences,
                "returns": totals.returns,
            });
            let told = feed.map(|_| json!({ "mbps": mbps, "age_ms": age_ms }));
            schemes.push(
                json!({ "scheme": name, "totals": totals, "feed": told, "active_flows_of_machine": active, "active_applications": apps }),
            );
            continue;
        }
        writeln!(out, "Loaded:    {name}")?;
        if name == RELAY {
            let (flows, bounds) = (totals.flows, totals.returns + totals.sends);
            writeln!(out, "Downloads: {flows} so far, {bounds} bounds, lifted {} times", totals.fallbacks)?;
        } else {
            writeln!(out, "Flows:     {} so far, {} ACKs", totals.flows, totals.acks)?;
        }
        schemes.push(json!(name));
        if feed.is_none() {
            continue;
        }
        if name == PBE {
            let (confirmed, strangers) = (totals.confirmed, totals.flows.saturating_sub(totals.confirmed));
            writeln!(
                out,
                "Option:    confirmed by the peers of {confirmed} flows, not by those of {strangers}"
            )?;
        }
        let feed = match (mbps, age_ms) {
            // A server needs none.
            (_, None) if name == PBE => {
                "none, as on a server: what the peers' phones measure steers its flows".to_owned()
            }
            (_, None) => format!("nothing was told yet{}", consequence(name, f64::INFINITY)),
            (None, Some(age)) => format!("bandwidth unknown, told {age:.0} ms ago{}", consequence(name, age)),
            (Some(mbps), Some(age)) => {
                format!("{mbps:.2} Mbit/s, told {age:.0} ms ago{}", consequence(name, age))
            }
        };
        match active {
            Some(active) if name == PBE => {
                writeln!(out, "Sharing:   {active} downloads of this machine now")?;
            }
            None if name == PBE => {}
            Some(active) => {
                let of = apps.map_or_else(String::new, |apps| format!(" of {apps} applications"));
                writeln!(
                    out,
                    "Sharing:   {active} flows{of} of this machine {} now",
                    if name == RELAY { "receive" } else { "send" }
                )?;
            }
            None => writeln!(out, "Sharing:   only its own flows are counted")?,
        }
        writeln!(out, "Feed:      {feed}")?;
        if name == PBE && age_ms.is_some() {
            let (elsewhere, rooms) = (totals.elsewhere, totals.rooms);
            writeln!(
                out,
                "Receiver:  {elsewhere} times the bottleneck was found elsewhere; {rooms} ACKs without room got it"
            )?;
        }
        if name == RELAY {
            continue;
        }
        let (fallbacks, silences, returns) = (totals.fallbacks, totals.silences, totals.returns);
        writeln!(
            out,
            "FALLBACK:  {fallbacks} times, {silences} of them for want of a feed; {returns} returns"
        )?;
    }
    if as_json {
        writeln!(out, "{}", json!({ "loaded": schemes }))?;
    } else if schemes.is_empty() {
        writeln!(out, "{}", nothing_loaded("; `airpace kernel load` does it"))?;
    }
    Ok(Verdict::Fine)
}

#[cfg(test)]
mod tests {
    use super::unseen;

    #[test]
    fn a_scheme_that_the_kernel_has_is_told_from_its_own() {
        assert_eq!(unseen("reno cubic bbr\n"), None);
        assert_eq!(unseen("reno cubic morc bbr\n"), Some("morc"));
    }
}

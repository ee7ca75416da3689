//! `airpace kernel load` and `unload`, in a build that can load programs.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use airpace_bpf::kernel::{
    BISCAY, Kernel, KernelScheme, LOADABLE, MORC, PBE, Pinned, RELAY, turn, unload as remove,
};
use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::morc::MorcTuning;
use airpace_bpf::twin::pbe::PbeTuning;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use anyhow::{Context, anyhow, bail, ensure};
use serde_json::json;

use super::devices::forget;
use super::groups::{self, Groups};
use super::netns::{self, Place};
use crate::cmd::Verdict;

/// Loads a scheme, or makes a loaded scheme the default of new sockets in a network namespace.
pub(super) fn load(
    scheme: &SchemeSpec,
    default_in: Option<Place>,
    as_json: bool,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let name = part(scheme)?.name();
    ensure!(
        name != RELAY || default_in.is_none(),
        "no socket chooses `{RELAY}`: it concerns all that this machine downloads, without `--default` and `--netns`"
    );
    default_in.iter().try_for_each(Place::check)?;
    let _turn = turn();
    // A loaded scheme keeps the options with which it was loaded.
    let is_there = default_in.is_some() && scheme.text() == name && Pinned::open(name)?.is_some();
    let (mut doubt, mut renewed) = (None, vec![]);
    if !is_there {
        let (mut kernel, _, uncounted) = bring_in(scheme)?;
        kernel.pin()?;
        doubt = uncounted;
        // In namespaces in which this scheme is the default, the kernel still gives new sockets the unloaded version.
        renewed = netns::defaults(name);
        renewed.iter().try_for_each(|place| place.set_default(name))?;
    }
    if let Some(place) = &default_in {
        place.set_default(name)?;
    }
    if as_json {
        let place = default_in.as_ref().map(|place| json!({ "netns": place.name() }));
        let counts = [BISCAY, RELAY].contains(&name).then_some(doubt.is_none());
        let line = json!({ "loaded": name, "is_new": !is_there, "counts_flows_of_machine": counts, "default_in": place,
            "still_default_in": renewed.iter().map(Place::name).collect::<Vec<_>>() });
        writeln!(out, "{line}")?;
        return Ok(Verdict::Fine);
    }
    if is_there {
        writeln!(out, "{name} was loaded already, and stays as it is.")?;
    } else {
        tell_loaded(name, doubt.as_ref(), out)?;
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
            "It is the default of new TCP sockets in {place}; `airpace kernel unload {name}` does not undo that:"
        )?;
        writeln!(out, "sysctl net.ipv4.tcp_congestion_control=NAME does.")?;
    }
    Ok(Verdict::Fine)
}

/// Prints the state of a loaded scheme, and its requirements.
fn tell_loaded(name: &str, doubt: Option<&anyhow::Error>, out: &mut dyn Write) -> std::io::Result<()> {
    if name == RELAY {
        writeln!(
            out,
            "{name} is loaded: it bounds what new connections download, whatever their senders use."
        )?;
        return writeln!(out, "Feed it with `airpace kernel feed {name}`; until then it bounds nothing.");
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
    match name {
        BISCAY => writeln!(out, "Feed it with `airpace kernel feed`; until then its flows are BBR's."),
        PBE => {
            writeln!(
                out,
                "New connections offer to exchange what a phone measures, by a TCP option (kind 254)."
            )?;
            writeln!(
                out,
                "The phone needs it too, and `airpace kernel feed pbe` there; without, flows are BBR's."
            )
        }
        _ => Ok(()),
    }
}

/// Loads a scheme with its auxiliary programs, for as long as the result lives or until it is pinned. Also returns the
/// scheme's name, and the reason if the machine's other flows should be counted but cannot be.
///
/// # Errors
/// The kernel accepts no programs, or the scheme is already loaded.
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
        // Without the exchange of feedback, PBE-CC is only BBR.
        kernel.exchange(root(&Groups::see()?)?.as_fd())?;
    }
    if name == RELAY {
        kernel.bound_downloads(root(&Groups::see()?)?.as_fd())?;
    }
    Ok((kernel, name, doubt))
}

/// Starts the count of flows of the whole machine, or of the container in which this process runs.
fn count(kernel: &mut Kernel) -> anyhow::Result<()> {
    let groups = Groups::see()?;
    Ok(kernel.count_flows(root(&groups)?.as_fd())?)
}

/// Opens the root control group, which contains all other groups.
fn root(groups: &Groups) -> anyhow::Result<File> {
    File::open(groups.root()).with_context(|| groups.root().display().to_string())
}

/// The kernel implementation of a scheme, with the scheme's options.
fn part(scheme: &SchemeSpec) -> anyhow::Result<KernelScheme> {
    let (name, options) = (scheme.scheme().name, scheme.options());
    let part = match name {
        BISCAY if options.text("relay") == "window" => {
            KernelTuning::new(&Tuning::read(options)?).map(KernelScheme::Relay)
        }
        BISCAY => KernelTuning::new(&Tuning::read(options)?).map(KernelScheme::Biscay),
        PBE => PbeTuning::new(&airpace_cc::pbe::Tuning::read(options)?).map(KernelScheme::Pbe),
        MORC if options.text("learner") == "ahead" => {
            MorcTuning::new(&airpace_cc::morc::profile(options)?).map(KernelScheme::Morc)
        }
        MORC => bail!("{}: the kernel's part has the learner `ahead` only", scheme.text()),
        _ => bail!("the kernel's part of `{name}` is not written: load `{}`", LOADABLE.join("` or `")),
    };
    part.map_err(|error| {
        anyhow!("{}: {error}; `airpace sim` and `airpace emu` have the whole scheme", scheme.text())
    })
}

/// Unloads a scheme, or all schemes.
pub fn unload(scheme: Option<&str>, as_json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let _turn = turn();
    let mut removed = vec![];
    for name in LOADABLE.into_iter().filter(|name| scheme.is_none_or(|scheme| scheme == *name)) {
        if let Some(room) = Pinned::open(name)?.map(|pinned| pinned.room()).transpose()?.flatten() {
            forget(&room);
        }
        if remove(name)? {
            removed.push((name, netns::defaults(name)));
        }
    }
    groups::sweep();
    if let Some(name) = registered(scheme, &removed) {
        bail!(
            "the kernel still has `{name}` as a congestion control: a file in another BPF file system, or a process, holds \
             it; run `airpace kernel unload {name}` where it was loaded, or restart the machine"
        );
    }
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

/// A scheme that should be gone but that the kernel still offers. The kernel removes a scheme soon after its last file.
fn registered(asked: Option<&str>, removed: &[(&'static str, Vec<Place>)]) -> Option<String> {
    let until = Instant::now() + STILL_THERE;
    loop {
        let here = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
        let found = unseen(&here, asked).map(str::to_owned)?;
        // A scheme that this command did not remove stays registered: do not wait for it.
        let is_removed = removed.iter().any(|(name, _)| *name == found);
        if !is_removed || Instant::now() >= until {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The congestion controls that sockets may choose.
///
/// Source: Linux Documentation/networking/ip-sysctl.rst (tcp_available_congestion_control)
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Maximum time for the kernel to remove a scheme.
///
/// Chosen: the kernel's grace periods take about 10 ms.
const STILL_THERE: Duration = Duration::from_secs(5);

/// Error text if a required scheme is not loaded, or is not visible.
pub(super) fn not_loaded(name: &str) -> String {
    nothing_loaded(Some(name), &format!("; `airpace kernel load {name}` does it"))
}

/// Returns the sentence that no scheme, or not the requested scheme, is loaded, or that the scheme is loaded but not
/// visible from here. Called if none of the requested schemes is pinned.
pub(super) fn nothing_loaded(asked: Option<&str>, remedy: &str) -> String {
    let here = std::fs::read_to_string(AVAILABLE);
    match (unseen(&here.unwrap_or_default(), asked), asked) {
        (Some(name), _) => format!(
            "The kernel has `{name}`, which the /sys/fs/bpf that is seen here does not hold: it was loaded with another."
        ),
        (None, Some(name)) => format!("`{name}` is not loaded{remedy}."),
        (None, None) => format!("Nothing is loaded{remedy}."),
    }
}

/// The first of Airpace's schemes, or the requested scheme, among the kernel's congestion controls.
fn unseen<'a>(available: &'a str, asked: Option<&str>) -> Option<&'a str> {
    let is_asked = |name: &&str| asked.is_none_or(|asked| asked == *name);
    available.split_whitespace().filter(is_asked).find(|name| LOADABLE.contains(name))
}

#[cfg(test)]
mod tests {
    use super::unseen;

    #[test]
    fn a_scheme_of_ours_is_found_among_the_kernel_s() {
        assert_eq!(unseen("reno cubic bbr\n", None), None);
        assert_eq!(unseen("reno cubic morc bbr\n", None), Some("morc"));
        assert_eq!(unseen("reno cubic morc bbr\n", Some("biscay")), None, "the other one may be seen");
    }
}

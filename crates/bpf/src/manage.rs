//! Life cycle of schemes: from a scheme with its options to programs that stay in the kernel, and their removal.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use airpace_cc::biscay::Tuning;
use airpace_cc::{SchemeError, SchemeSpec};
use airpace_core::remedy::{Remedy, UserTask};

use crate::devices::forget;
use crate::groups::{self, Groups, GroupsError};
use crate::kernel::{
    BISCAY, Kernel, KernelScheme, LOADABLE, LoadError, MORC, PBE, Pinned, RELAY, turn, unload,
};
use crate::netns::{self, NetnsError, Place};
use crate::twin::morc::MorcTuning;
use crate::twin::pbe::PbeTuning;
use crate::twin::{KernelTuning, Unsupported};

/// Reason why a scheme cannot be loaded with its options, or removed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// The scheme has no implementation for the kernel.
    #[error("the kernel's part of `{0}` is not written: load `{known}`", known = LOADABLE.join("` or `"))]
    NotWritten(String),
    /// The kernel's MORC has another learner only.
    #[error("{0}: the kernel's part has the learner `ahead` only")]
    Learner(String),
    /// The kernel's implementation does not support an option.
    #[error("{scheme}: {error}")]
    Unsupported {
        /// The scheme with its options.
        scheme: String,
        /// The options that are not supported.
        error: Unsupported,
        /// The remedy: the scheme outside the kernel.
        #[source]
        remedy: Remedy,
    },
    /// An option has an invalid value.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// The scheme is already loaded.
    #[error("`{name}` is loaded already")]
    Loaded {
        /// Name of the scheme.
        name: &'static str,
        /// The remedy: remove the loaded scheme.
        #[source]
        remedy: Remedy,
    },
    /// The scheme requires a count of the machine's flows, which cannot be started.
    #[error("{scheme}: it needs a count of this machine's flows")]
    NoCount {
        /// The scheme with its options.
        scheme: String,
        /// The reason.
        source: CountError,
    },
    /// The kernel refuses the programs.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The control groups cannot be seen.
    #[error(transparent)]
    Groups(#[from] GroupsError),
    /// A network namespace cannot be changed.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The relay cannot be the default of sockets.
    #[error("no socket chooses `{RELAY}`: it concerns all that this machine downloads")]
    RelayAsDefault,
    /// The kernel still has a scheme that should be gone.
    #[error(
        "the kernel still has `{name}` as a congestion control: a file in another BPF file system, or a process, holds it"
    )]
    Held {
        /// Name of the scheme.
        name: String,
        /// The remedy: remove the scheme on the system on which it was loaded.
        #[source]
        remedy: Remedy,
    },
}

/// Reason why the flows of the machine cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The control groups cannot be seen.
    #[error(transparent)]
    Groups(#[from] GroupsError),
    /// The kernel refuses the program that counts.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A scheme that was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// Name of the scheme.
    pub name: &'static str,
    /// Whether it was not loaded before. A loaded scheme keeps its options.
    pub is_new: bool,
    /// The reason if the machine's other flows should be counted but cannot be.
    pub doubt: Option<CountError>,
    /// Namespaces in which the scheme was made the default again, because it was the default before.
    pub renewed: Vec<Place>,
}

/// Loads a scheme, which stays loaded until it is unloaded; or, with `default_in`, also makes it, or the loaded scheme, the
/// default of new TCP sockets in a network namespace.
///
/// # Errors
/// The scheme is already loaded, has no such implementation, or the kernel refuses it.
pub fn load(scheme: &SchemeSpec, default_in: Option<&Place>) -> Result<Loaded, ManageError> {
    let name = part(scheme)?.name();
    if name == RELAY && default_in.is_some() {
        return Err(ManageError::RelayAsDefault);
    }
    default_in.iter().try_for_each(|place| place.check())?;
    let _turn = turn();
    // A loaded scheme keeps the options with which it was loaded.
    let is_there = default_in.is_some() && scheme.text() == name && Pinned::open(name)?.is_some();
    let (mut doubt, mut renewed) = (None, vec![]);
    if !is_there {
        let (mut kernel, _, uncounted) = bring_in(scheme)?;
        kernel.pin()?;
        doubt = uncounted;
        // In namespaces whose default it was, the kernel still gives new sockets the unloaded version.
        renewed = netns::defaults(name);
        renewed.iter().try_for_each(|place| place.set_default(name))?;
    }
    if let Some(place) = default_in {
        place.set_default(name)?;
    }
    Ok(Loaded { name, is_new: !is_there, doubt, renewed })
}

/// Loads a scheme with its auxiliary programs, for as long as the result lives or until it is pinned. Also returns the
/// scheme's name, and the reason if the machine's other flows should be counted but cannot be.
///
/// # Errors
/// The kernel accepts no programs, or the scheme is already loaded.
pub fn bring_in(scheme: &SchemeSpec) -> Result<(Kernel, &'static str, Option<CountError>), ManageError> {
    let part = part(scheme)?;
    let name = part.name();
    if Pinned::open(name)?.is_some() {
        let remedy = Remedy::new("remove it by").task(UserTask::UnloadKernel(name.to_owned()));
        return Err(ManageError::Loaded { name, remedy });
    }
    let mut kernel = Kernel::load(&part)?;
    let doubt = if [BISCAY, RELAY].contains(&name) { count(&mut kernel).err() } else { None };
    let doubt = match doubt {
        Some(source) if part.needs_counts() || name == RELAY => {
            return Err(ManageError::NoCount { scheme: scheme.text().to_owned(), source });
        }
        doubt => doubt,
    };
    if name == PBE {
        // Without the exchange of feedback, PBE-CC is only BBR.
        kernel.exchange(Groups::see()?.open_root()?.as_fd())?;
    }
    if name == RELAY {
        kernel.bound_downloads(Groups::see()?.open_root()?.as_fd())?;
    }
    Ok((kernel, name, doubt))
}

/// Starts the count of flows of the whole machine, or of the container in which this process runs.
fn count(kernel: &mut Kernel) -> Result<(), CountError> {
    let groups = Groups::see()?;
    Ok(kernel.count_flows(groups.open_root()?.as_fd())?)
}

/// The kernel implementation of a scheme, with the scheme's options.
fn part(scheme: &SchemeSpec) -> Result<KernelScheme, ManageError> {
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
        MORC => return Err(ManageError::Learner(scheme.text().to_owned())),
        _ => return Err(ManageError::NotWritten(name.to_owned())),
    };
    part.map_err(|error| ManageError::Unsupported {
        scheme: scheme.text().to_owned(),
        error,
        remedy: Remedy::new("the whole scheme runs in").task(UserTask::Simulate),
    })
}

/// Removes a scheme, or all schemes. Returns the removed ones, each with the namespaces in which it is still the default of
/// new sockets.
///
/// # Errors
/// The kernel refuses, or still has a scheme that should be gone.
pub fn remove(scheme: Option<&str>) -> Result<Vec<(&'static str, Vec<Place>)>, ManageError> {
    let _turn = turn();
    let mut removed = vec![];
    for name in LOADABLE.into_iter().filter(|name| scheme.is_none_or(|scheme| scheme == *name)) {
        if let Some(room) = Pinned::open(name)?.map(|pinned| pinned.room()).transpose()?.flatten() {
            forget(&room);
        }
        if unload(name)? {
            removed.push((name, netns::defaults(name)));
        }
    }
    groups::sweep();
    match registered(scheme, &removed) {
        Some(name) => {
            let remedy = Remedy::new("run").task(UserTask::UnloadKernel(name.clone()));
            let remedy = remedy.text("where it was loaded, or restart the machine");
            Err(ManageError::Held { name, remedy })
        }
        None => Ok(removed),
    }
}

/// A scheme that should be gone but that the kernel still offers. The kernel removes a scheme soon after its last file.
fn registered(asked: Option<&str>, removed: &[(&'static str, Vec<Place>)]) -> Option<String> {
    let until = Instant::now() + STILL_THERE;
    loop {
        let here = available().unwrap_or_default();
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

fn available() -> io::Result<String> {
    std::fs::read_to_string(AVAILABLE)
}

/// Maximum time for the kernel to remove a scheme.
///
/// Chosen: the kernel's grace periods take about 10 ms.
const STILL_THERE: Duration = Duration::from_secs(5);

/// The first of Airpace's schemes, or `asked`, that sockets may choose although it is not pinned in the BPF file system that
/// this process sees. Call it if none of the requested schemes is pinned.
pub fn hidden(asked: Option<&str>) -> Option<String> {
    unseen(&available().unwrap_or_default(), asked).map(str::to_owned)
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

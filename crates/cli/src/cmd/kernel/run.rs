//! `airpace kernel run`: runs a program whose TCP connections use a scheme without any change to the program.
//!
//! The program runs in a separate control group, in which a small program in the kernel selects the scheme for each
//! connection.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};

use airpace_bpf::choose::Chooser;
use airpace_bpf::groups::OwnGroup;
use airpace_bpf::kernel::{Pinned, SCHEMES};
use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::loaded::not_loaded;
use crate::cmd::{Verdict, thread};
use crate::terminal::say;

/// Runs the command, and returns its exit status.
pub fn run(scheme: &str, command: &[OsString]) -> anyhow::Result<Verdict> {
    let Some(scheme) = SCHEMES.into_iter().find(|name| *name == scheme) else {
        bail!("`{scheme}` is not of the kernel's: `{}`", SCHEMES.join("`, `"));
    };
    let [program, arguments @ ..] = command else { bail!("name a program") };
    ensure!(Pinned::open(scheme)?.is_some(), "{}", not_loaded(scheme));
    // From here on, this process always outlives the program that it runs, and cleans up after it.
    let signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT]).context("cannot listen to signals")?;
    let group = OwnGroup::enter(|| {
        say("airpace: what the program started goes on, and its new connections use the default again");
    })?;
    let folder = group.open()?;
    let chooser = Chooser::attach(folder.as_fd(), scheme)?;
    let started = Command::new(program).args(arguments).spawn();
    let mut child = started.with_context(|| format!("cannot run {}", Path::new(program).display()))?;
    pass_on(signals, &child)?;
    let status = child.wait().with_context(|| format!("cannot wait for {}", Path::new(program).display()))?;
    drop(chooser);
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(if code == 0 { Verdict::Fine } else { Verdict::Status(code as u8) })
}

/// Forwards SIGTERM and SIGHUP to the program, so that this process stops after the program. SIGINT and SIGQUIT are not
/// forwarded, because a terminal sends them to both processes.
fn pass_on(mut signals: Signals, child: &Child) -> anyhow::Result<()> {
    // A pidfd refers to this process, and not to a later process with the same ID.
    let process =
        pidfd_open(Pid::from_child(child), PidfdFlags::empty()).context("cannot watch the program")?;
    let pass = move || {
        for signal in signals.forever() {
            let passed = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            // The program may already have ended.
            let _ = pidfd_send_signal(&process, passed);
        }
    };
    thread("signals", pass).map(drop)
}

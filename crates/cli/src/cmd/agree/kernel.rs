//! Our schemes in the kernel, for the time of a run.

#[cfg(feature = "bpf")]
mod loaded {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::JoinHandle;

    use airpace_bpf::kernel::{Kernel, PBE};
    use airpace_cc::SchemeSpec;
    use airpace_core::Direction;
    use anyhow::{Context, anyhow};

    use super::is_relay;
    use crate::cmd::kernel::{feed, loaded};

    /// Schemes in the kernel, and who feeds them; removed when it is dropped.
    #[derive(Default)]
    pub struct InKernel {
        /// Before the kernels: a feeder must not outlive what it feeds.
        feeders: Vec<Feeder>,
        kernels: Vec<Kernel>,
    }

    struct Feeder {
        stop: Arc<AtomicBool>,
        thread: Option<JoinHandle<anyhow::Result<u64>>>,
    }

    impl InKernel {
        /// Loads a scheme, and feeds it from the sockets of its device's radio: `reports` of the whole cell, `modem` of the
        /// device's own modem.
        ///
        /// # Errors
        /// A machine that takes no programs; a scheme that is loaded already.
        pub fn load(&mut self, scheme: &SchemeSpec, radio: &[(String, String)]) -> anyhow::Result<()> {
            let (kernel, doubt) = loaded::bring_in(scheme)?;
            if let Some(doubt) = doubt {
                return Err(doubt.context("flows of other programs would not be counted"));
            }
            let stop = Arc::new(AtomicBool::new(false));
            let socket = |name: &str| {
                let found = radio.iter().find(|(variable, _)| variable == name);
                found
                    .map(|(_, path)| PathBuf::from(path))
                    .with_context(|| format!("the scenario has no radio to feed `{}` from", scheme.text()))
            };
            let is_over = Arc::clone(&stop);
            let thread = match scheme.scheme().name {
                "biscay" => {
                    let direction = if is_relay(scheme) { Direction::Downlink } else { Direction::Uplink };
                    let (feed, from) = (kernel.feed()?, socket("AIRPACE_MODEM_REPORTS")?);
                    Some(std::thread::spawn(move || feed::biscay_from(feed, direction, &from, &is_over)))
                }
                PBE => {
                    let (feed, from) = (kernel.feedbacks()?, socket("AIRPACE_REPORTS")?);
                    Some(std::thread::spawn(move || feed::pbe_from(feed, &from, &is_over)))
                }
                _ => None,
            };
            self.feeders.extend(thread.map(|thread| Feeder { stop, thread: Some(thread) }));
            self.kernels.push(kernel);
            Ok(())
        }

        /// Ends the feeders, and says what went wrong with them.
        ///
        /// # Errors
        /// Reports that could not be read, or that never came.
        pub fn end(mut self) -> anyhow::Result<()> {
            for mut feeder in std::mem::take(&mut self.feeders) {
                feeder.stop.store(true, Ordering::Relaxed);
                let Some(thread) = feeder.thread.take() else { continue };
                let told = thread.join().map_err(|_| anyhow!("the kernel's feeder failed"))??;
                anyhow::ensure!(told > 0, "the radio told the kernel nothing");
            }
            Ok(())
        }
    }

    impl Drop for Feeder {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            if let Some(thread) = self.thread.take() {
                // What it says is heard in `end`; here something else has failed.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(not(feature = "bpf"))]
mod loaded {
    use airpace_cc::SchemeSpec;

    /// Schemes in the kernel: this build can load none.
    #[derive(Default)]
    pub struct InKernel;

    impl InKernel {
        /// Says what is missing.
        pub fn load(&mut self, _: &SchemeSpec, _: &[(String, String)]) -> anyhow::Result<()> {
            anyhow::bail!(crate::cmd::kernel::REMEDY)
        }

        /// There is nothing to end.
        pub fn end(self) -> anyhow::Result<()> {
            Ok(())
        }
    }
}

use std::collections::BTreeSet;

use airpace_cc::SchemeSpec;
use airpace_core::Direction;
use airpace_sim::Scenario;
use anyhow::{bail, ensure};

pub use loaded::InKernel;

/// Whether this is BISCAY's relay: the phone bounds what it downloads, and the sender's TCP is the usual one.
pub fn is_relay(scheme: &SchemeSpec) -> bool {
    scheme.scheme().name == "biscay" && scheme.options().text("relay") == "window"
}

/// The kernel's congestion control that sends by this scheme.
pub fn sender(scheme: &SchemeSpec) -> &str {
    if is_relay(scheme) { scheme.options().text("sender") } else { scheme.scheme().name }
}

use super::over::{Over, is_ours};

/// Our schemes that a run needs in the kernel, and the device whose radio feeds each.
///
/// # Errors
/// What one kernel cannot do for all flows at once.
pub fn needed(scenario: &Scenario, scheme: &SchemeSpec) -> anyhow::Result<Vec<(SchemeSpec, usize)>> {
    let mut needed: Vec<(SchemeSpec, usize)> = vec![];
    for (index, flow) in scenario.flow.iter().enumerate() {
        let own = flow.scheme.as_deref().map(SchemeSpec::parse).transpose()?;
        let used = own.as_ref().unwrap_or(scheme);
        if Over::Kernel.of_flow(flow)? != Over::Kernel || !is_ours(used) {
            continue;
        }
        let (name, device) = (used.scheme().name, usize::from(flow.device));
        match (name, flow.direction) {
            ("biscay", Direction::Downlink) => {
                bail!(
                    "flow.{index}: BISCAY in the kernel steers what the phone sends; take a scenario of uploads"
                )
            }
            ("pbe", Direction::Uplink) => {
                bail!("flow.{index}: PBE-CC steers downloads; take a scenario of them")
            }
            _ => {}
        }
        match needed.iter().find(|(known, _)| known.scheme().name == name) {
            None => needed.push((used.clone(), device)),
            Some((known, at)) => {
                let is_same = known.options() == used.options();
                ensure!(
                    is_same,
                    "flow.{index}: the kernel holds one `{name}` at a time, with one set of options"
                );
                ensure!(
                    *at == device || name == "morc",
                    "flow.{index}: the kernel has one feed for `{name}`, and its flows are on two devices"
                );
            }
        }
    }
    let names: BTreeSet<&str> = needed.iter().map(|(scheme, _)| scheme.scheme().name).collect();
    debug_assert_eq!(names.len(), needed.len());
    Ok(needed)
}

//! Schemes that a run over the kernel's TCP needs in the kernel.

use std::collections::BTreeSet;

use airpace_cc::SchemeSpec;
use airpace_core::Direction;
use airpace_sim::Scenario;

use crate::error::{LabError, refuse};
use crate::over::{Over, is_ours};

/// Whether the scheme is BISCAY's relay: the phone limits its download, and the sender uses ordinary TCP.
pub fn is_relay(scheme: &SchemeSpec) -> bool {
    scheme.scheme().name == "biscay" && scheme.options().text("relay") == "window"
}

/// Environment variable with the path of the report socket for the scheme's feeder; `None` if the scheme needs no
/// feeder.
pub fn fed_by(scheme: &SchemeSpec) -> Option<&'static str> {
    match scheme.scheme().name {
        "biscay" => Some("AIRPACE_MODEM_REPORTS"),
        "pbe" => Some("AIRPACE_REPORTS"),
        _ => None,
    }
}

/// Name of the kernel's congestion control at the sender for this scheme.
pub fn sender(scheme: &SchemeSpec) -> &str {
    if is_relay(scheme) { scheme.options().text("sender") } else { scheme.scheme().name }
}

/// Airpace's schemes that a run needs in the kernel, each with the index of the device whose radio reports feed the
/// scheme.
///
/// # Errors
/// The kernel's schemes cannot run the scenario: a flow has a direction that its scheme does not control, or flows need
/// different options or devices of one scheme.
pub fn needed(scenario: &Scenario, scheme: &SchemeSpec) -> Result<Vec<(SchemeSpec, usize)>, LabError> {
    let mut needed: Vec<(SchemeSpec, usize)> = vec![];
    for (index, flow) in scenario.flow.iter().enumerate() {
        let own = flow.scheme.as_deref().map(SchemeSpec::parse).transpose()?;
        let used = own.as_ref().unwrap_or(scheme);
        if Over::Kernel.of_flow(flow)? != Over::Kernel || !is_ours(used) {
            continue;
        }
        let (name, device) = (used.scheme().name, usize::from(flow.device));
        match (name, flow.direction) {
            ("biscay", Direction::Downlink) if !is_relay(used) => refuse!(
                "flow.{index}: BISCAY in the kernel steers what the phone sends; take a scenario of uploads, or \
                 `biscay@window`, which bounds what the phone downloads"
            ),
            ("biscay", Direction::Uplink) if is_relay(used) => {
                refuse!(
                    "flow.{index}: `{}` bounds what the phone downloads; take a scenario of that",
                    used.text()
                )
            }
            ("pbe", Direction::Uplink) => {
                refuse!("flow.{index}: PBE-CC steers downloads; take a scenario of them")
            }
            _ => {}
        }
        match needed.iter().find(|(known, _)| known.scheme().name == name) {
            None => needed.push((used.clone(), device)),
            Some((known, at)) => {
                if known.options() != used.options() {
                    refuse!("flow.{index}: the kernel holds one `{name}` at a time, with one set of options");
                }
                if *at != device && name != "morc" {
                    refuse!(
                        "flow.{index}: the kernel has one feed for `{name}`, and its flows are on two devices"
                    );
                }
            }
        }
    }
    let names: BTreeSet<&str> = needed.iter().map(|(scheme, _)| scheme.scheme().name).collect();
    debug_assert_eq!(names.len(), needed.len());
    Ok(needed)
}

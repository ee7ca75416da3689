//! Transports of the flows of a run: one of Airpace's transports, or the kernel's TCP.

use airpace_cc::SchemeSpec;
use airpace_sim::scenario::Flow;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// A transport of the flows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// Airpace's UDP transport, the prototype of the papers.
    Udp,
    /// Airpace's QUIC.
    Quic,
    /// The kernel's TCP, with Linux's congestion controls and Airpace's (see `airpace kernel`).
    Kernel,
}

/// Schemes that Linux provides, under Airpace's names.
const OF_LINUX: [&str; 4] = ["bbr", "cubic", "reno", "vegas"];

/// Airpace's schemes that can be loaded into the kernel.
const OURS: [&str; 3] = ["biscay", "morc", "pbe"];

impl Over {
    /// All transports.
    pub const ALL: [Over; 3] = [Over::Udp, Over::Quic, Over::Kernel];

    /// The transport's name.
    pub fn name(self) -> &'static str {
        match self {
            Over::Udp => "udp",
            Over::Quic => "quic",
            Over::Kernel => airpace_run::wire::KERNEL,
        }
    }

    /// The variant with this name.
    pub fn of(name: &str) -> Option<Over> {
        Over::ALL.into_iter().find(|over| over.name() == name)
    }

    /// Checks that the transport can carry this scheme.
    ///
    /// # Errors
    /// The kernel does not have this scheme or its option. The message contains the reason.
    pub fn carries(self, scheme: &SchemeSpec) -> Result<(), LabError> {
        if self != Over::Kernel {
            return Ok(());
        }
        let name = scheme.scheme().name;
        if !OF_LINUX.contains(&name) && !OURS.contains(&name) {
            return Err(LabError::Refused(
                format!(
                    "`{name}` is not in the kernel; choose the transport udp or quic, or one of {}, {}",
                    OURS.join(", "),
                    OF_LINUX.join(", ")
                )
                .into(),
            ));
        }
        if !OURS.contains(&name) && scheme.text() != name {
            return Err(LabError::Refused(
                format!("`{}`: the kernel's own `{name}` has no options; give `{name}` alone", scheme.text())
                    .into(),
            ));
        }
        Ok(())
    }

    /// The transport of this flow. A flow of the scenario whose scheme the kernel does not have is carried over UDP.
    pub fn of_flow(self, flow: &Flow) -> Result<Over, LabError> {
        let Some(scheme) = &flow.scheme else { return Ok(self) };
        let scheme = SchemeSpec::parse(scheme)?;
        Ok(if self.carries(&scheme).is_ok() { self } else { Over::Udp })
    }
}

/// Whether the scheme is one of Airpace's, which the kernel provides only after it has been loaded.
pub fn is_ours(scheme: &SchemeSpec) -> bool {
    OURS.contains(&scheme.scheme().name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_again() {
        for over in Over::ALL {
            assert_eq!(Over::of(over.name()), Some(over));
        }
        assert_eq!(Over::of("tcp"), None);
    }

    #[test]
    fn the_kernel_carries_what_it_has() {
        let said = |text: &str| Over::Kernel.carries(&SchemeSpec::parse(text).unwrap());
        for text in ["pbe", "morc", "biscay", "biscay:safety=false", "bbr", "cubic", "reno", "vegas"] {
            if SchemeSpec::parse(text).is_ok() {
                assert!(said(text).is_ok(), "{text}");
            }
        }
        let error = said("copa").unwrap_err().to_string();
        assert!(error.contains("`copa` is not in the kernel") && error.contains("biscay"), "{error}");
        Over::Quic.carries(&SchemeSpec::parse("copa").unwrap()).unwrap();
    }
}

//! Congestion control scheme of a transfer: each endpoint builds its sender or receiver from the same text.

use airpace_cc::controller::{Inspect, Receiver, Sees};
use airpace_cc::scheme::{Ends, Setup};
use airpace_cc::schemes::SchemeSpec;
use airpace_core::Streams;
use airpace_core::remedy::{Remedy, UserTask};
use airpace_feed::Need;

use super::message::{Code, Fault};
use airpace_transport::endpoint::MSS;
use airpace_transport::key;

/// Builds the sender and receiver of a scheme for a real transport.
///
/// # Errors
/// The scheme needs information that only the simulator has.
pub fn ends(spec: &SchemeSpec) -> Result<Ends, Fault> {
    let refuse = |why: String| Fault::new(Code::Refused, why);
    let seed = key::random::<8>().map_err(|error| refuse(error.to_string()))?;
    let rng = Streams::new(u64::from_be_bytes(seed)).stream("scheme");
    let ends = spec.build(&Setup::new(MSS, rng)).map_err(|error| refuse(error.to_string()))?;
    let receiver = ends.receiver.as_ref().map(|receiver| receiver.sees());
    if ends.controller.sees() == Sees::Truth || receiver == Some(Sees::Truth) {
        let why = "uses information that only a simulator has, and cannot control a transfer";
        let remedy = Remedy::new("choose another from").task(UserTask::ListSchemes);
        return Err(refuse(format!("scheme `{}` {why}", spec.text())).but(remedy));
    }
    Ok(ends)
}

/// Checks that a scheme's receiver works on this machine.
///
/// # Errors
/// The receiver needs radio reports, and the machine has none.
pub fn can_receive(spec: &SchemeSpec, receiver: &dyn Receiver, has_radio: bool) -> Result<(), Fault> {
    if receiver.sees() != Sees::DeviceOnly || has_radio {
        return Ok(());
    }
    let sentence = format!("scheme `{}` needs the radio of the machine that receives", spec.text());
    let remedy = Remedy::new("give it there with").parameter("radio").text(", or choose another scheme");
    Err(Fault::new(Code::Refused, sentence).but(remedy))
}

/// Scope of reports that a scheme needs, derived from the names of its reported values: a scheme that counts refused
/// reports needs the grants of all users.
pub fn need(inspect: &Inspect) -> Need {
    let refuses = inspect.values.iter().any(|(name, _)| *name == "refused_reports_n");
    if refuses { Need::Everyone } else { Need::Own }
}

/// Scope of reports that the receiver (`receives`) or the sender of a scheme needs.
pub fn need_of(scheme: &str, receives: bool) -> Need {
    let spec = SchemeSpec::parse(scheme).ok();
    let Some(ends) = spec.and_then(|spec| ends(&spec).ok()) else { return Need::Own };
    let mut inspect = Inspect::default();
    match ends.receiver {
        Some(receiver) if receives => receiver.inspect(&mut inspect),
        _ => ends.controller.inspect(&mut inspect),
    }
    need(&inspect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_that_refuses_reports_needs_everybodys_grants() {
        let mut inspect = Inspect::default();
        assert_eq!(need(&inspect), Need::Own);
        inspect.value("downlink_mbps", 1.0);
        assert_eq!(need(&inspect), Need::Own);
        for (scheme, receives, needed) in [
            ("pbe", true, Need::Everyone),
            ("pbe", false, Need::Own),
            ("biscay", true, Need::Own),
            ("biscay", false, Need::Own),
            ("bbr", true, Need::Own),
            ("no scheme", true, Need::Own),
        ] {
            assert_eq!(need_of(scheme, receives), needed, "{scheme}");
        }
    }
}

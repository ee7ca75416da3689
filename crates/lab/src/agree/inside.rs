//! Internal states of the schemes of real flows. Each endpoint prints its states when the flow has ended; the run
//! folder contains them next to the simulator's states.

use std::io::Write;

use airpace_core::{Bytes, FlowId, Rate, Time};
use airpace_event::{Event, Inspected, Recorder};
use airpace_transfer::bulk::Sample;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// State of one endpoint of a flow at an instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Instant in nanoseconds of the monotonic clock.
    at_ns: u64,
    state: String,
    cwnd_bytes: u64,
    pacing_bps: Option<u64>,
    inflight_bytes: u64,
    /// Names and values of the scheme's sender or receiver on this endpoint; `None` for an unknown value.
    values: Vec<(String, Option<f64>)>,
}

impl Look {
    /// Converts a sample.
    pub fn of(sample: &Sample<'_>) -> Look {
        let finite = |value: f64| value.is_finite().then_some(value);
        let values = sample.inspect.values.iter();
        Look {
            at_ns: sample.now.as_nanos(),
            state: sample.inspect.state.to_owned(),
            cwnd_bytes: sample.figures.cwnd.0,
            pacing_bps: sample.figures.pacing_rate.map(Rate::as_bps),
            inflight_bytes: sample.figures.inflight.0,
            values: values.map(|(name, value)| ((*name).to_owned(), finite(*value))).collect(),
        }
    }
}

/// Prints the states as JSON, one per line.
///
/// # Errors
/// The output cannot be written.
pub fn print(looks: &[Look], out: &mut dyn Write) -> std::io::Result<()> {
    for look in looks {
        writeln!(out, "{}", serde_json::to_string(look)?)?;
    }
    Ok(())
}

/// Parses the output of an endpoint.
///
/// # Errors
/// A line that starts with `{` is not a state.
pub fn read(said: &str) -> Result<Vec<Look>, LabError> {
    let lines = said.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| {
            let look = serde_json::from_str(line);
            look.map_err(|_| LabError::Refused(format!("an endpoint of a flow printed `{line}`").into()))
        })
        .collect()
}

/// A flow over a real transport.
pub struct Flow<'a> {
    /// The flow.
    pub id: FlowId,
    /// Start of the flow's traffic in the scenario.
    pub starts: Time,
    /// Names of the values that the scheme's sender and receiver report.
    pub names: &'a [&'static str],
    /// States that the sender printed.
    pub sender: &'a [Look],
    /// States that the receiver printed.
    pub receiver: &'a [Look],
}

/// Records the states of both endpoints of a flow. Both endpoints sample on the same time grid. If the receiver has no
/// sample for an instant, only the sender's values are recorded. `zero_ns` is the start of the scenario.
pub fn tell(flow: &Flow<'_>, zero_ns: u64, recorder: &mut dyn Recorder) {
    let mut receiver = flow.receiver.iter().peekable();
    let mut last = None;
    for look in flow.sender {
        let Some(since_ns) = look.at_ns.checked_sub(zero_ns) else { continue };
        let time = Time::from_nanos(since_ns);
        if time < flow.starts {
            continue;
        }
        while receiver.next_if(|other| grid(other) < grid(look)).is_some() {}
        let beside = receiver.peek().filter(|other| grid(other) == grid(look));
        let both = look.values.iter().chain(beside.iter().flat_map(|other| &other.values));
        let values: Vec<(&'static str, f64)> = both
            .filter_map(|(name, value)| {
                Some((*flow.names.iter().find(|known| *known == name)?, value.unwrap_or(f64::NAN)))
            })
            .collect();
        recorder.record(Event::Inspected(&Inspected {
            time,
            flow: flow.id,
            state: &look.state,
            state_changed: last != Some(&look.state),
            cwnd: Bytes(look.cwnd_bytes),
            pacing_rate: look.pacing_bps.map(Rate::from_bps),
            inflight: Bytes(look.inflight_bytes),
            values: &values,
        }));
        last = Some(&look.state);
    }
}

/// Index of the sample on the common time grid.
fn grid(look: &Look) -> u64 {
    look.at_ns / airpace_transfer::bulk::RECORD_EVERY.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time in ms, state, whether the state differs from the previous one, and values.
    type Row = (u64, String, bool, Vec<(&'static str, f64)>);

    /// Recorder that stores all rows.
    #[derive(Default)]
    struct Told(Vec<Row>);

    impl Recorder for Told {
        fn record(&mut self, event: Event<'_>) {
            let Event::Inspected(inspected) = event else { panic!("nothing else is told") };
            self.0.push((
                inspected.time.as_nanos() / 1_000_000,
                inspected.state.to_owned(),
                inspected.state_changed,
                inspected.values.to_vec(),
            ));
        }
    }

    fn look(at_ns: u64, state: &str, values: &[(&str, Option<f64>)]) -> Look {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Look {
            at_ns,
            state: state.to_owned(),
            cwnd_bytes: u64::MAX,
            pacing_bps: None,
            inflight_bytes: 3_000,
            values,
        }
    }

    #[test]
    fn what_is_printed_is_read_again_among_other_words() {
        let looks = [look(7, "Startup", &[("rtt_ms", Some(40.25)), ("share_mbps", None)]), look(8, "", &[])];
        let mut printed = b"a program's remark\n".to_vec();
        print(&looks, &mut printed).unwrap();
        assert_eq!(read(std::str::from_utf8(&printed).unwrap()).unwrap(), looks);
        assert!(read("{}").unwrap_err().to_string().contains("`{}`"));
    }

    #[test]
    fn both_ends_are_one_row_from_the_flows_start_on() {
        const MS: u64 = 1_000_000;
        let sender = [
            look(100 * MS, "Waits", &[("rate_mbps", Some(1.0))]),
            look(110 * MS, "Startup", &[("rate_mbps", None)]),
            look(120 * MS + 9, "Startup", &[("rate_mbps", Some(3.0))]),
            look(130 * MS, "Drain", &[("rate_mbps", Some(4.0)), ("of_another_scheme", Some(5.0))]),
        ];
        let receiver =
            [look(90 * MS, "", &[("prbs", Some(50.0))]), look(120 * MS + 70, "", &[("prbs", Some(51.0))])];
        let mut told = Told::default();
        let flow = Flow {
            id: FlowId(2),
            starts: Time::from_millis(60),
            names: &["rate_mbps", "prbs"],
            sender: &sender,
            receiver: &receiver,
        };
        tell(&flow, 50 * MS, &mut told);
        assert_eq!(told.0.len(), 3);
        let (time, state, is_new, values) = &told.0[0];
        assert_eq!((*time, state.as_str(), *is_new), (60, "Startup", true));
        assert!(values[0].1.is_nan());
        assert_eq!(told.0[1], (70, "Startup".to_owned(), false, vec![("rate_mbps", 3.0), ("prbs", 51.0)]));
        assert_eq!(told.0[2], (80, "Drain".to_owned(), true, vec![("rate_mbps", 4.0)]));
    }
}

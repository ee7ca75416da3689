//! Completion, start-up and first-byte times of a flow's transfers.
//!
//! | metric | definition |
//! | --- | --- |
//! | completion time | from the start of a transfer (the client's request, if there is one) to the arrival of its last byte |
//! | start-up | from the start of a transfer to the arrival of the bytes that the client needs to start (`start_up_bytes`) |
//! | first byte | from the start of a transfer to the arrival of the first packet |
//!
//! Percentiles are nearest-rank, over the transfers that reached the respective point before the run's end.

use airpace_core::Time;
use airpace_event::{Transfer, TransferStep};
use serde::{Deserialize, Serialize};

use super::nearest_rank;
use super::rounded;

/// The transfers of a flow over a run, or of the same flow over several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfers {
    /// Number of transfers that were due before the run's end. A transfer that is due while the previous one is in
    /// progress has to wait, and may never start. In run folders of earlier versions: number of transfers that started.
    #[serde(default)]
    pub due: u64,
    /// Number of transfers that started.
    pub begun: u64,
    /// Number of transfers that arrived completely before the run's end.
    pub complete: u64,
    /// Completion times.
    pub completion_s: Times,
    /// Start-up times: from the start until the client has the bytes that it needs to start.
    pub start_up_s: Times,
    /// Times until the first byte.
    pub first_byte_s: Times,
    /// Every transfer, in order.
    pub each: Vec<TransferTimes>,
}

/// Statistics of a time over several transfers, in seconds; `None` if no transfer reached the respective point.
///
/// Source: MORC §4.1 Fig. 4 (minimum, median, maximum, standard deviation and average)
/// Chosen: also the 95th percentile, as for delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The minimum.
    pub min: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
    /// The sample standard deviation; `None` for fewer than two.
    pub sigma: Option<f64>,
}

/// Times of one transfer, in seconds; `None` for steps that did not happen before the run's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferTimes {
    /// Start of the transfer, since the start of the run.
    pub began_s: f64,
    /// Time from the start of the transfer to its first byte.
    pub first_byte_s: Option<f64>,
    /// Time from the start of the transfer until the client has the bytes that it needs to start.
    pub start_up_s: Option<f64>,
    /// Time from the start of the transfer to its last byte.
    pub completion_s: Option<f64>,
}

impl Transfers {
    /// Statistics of the transfers `each`, for a flow with `due` transfers due before the run's end.
    pub fn of(due: u64, each: Vec<TransferTimes>) -> Transfers {
        let times = |of: fn(&TransferTimes) -> Option<f64>| Times::of(each.iter().filter_map(of).collect());
        Transfers {
            due: due.max(each.len() as u64),
            begun: each.len() as u64,
            complete: each.iter().filter(|one| one.completion_s.is_some()).count() as u64,
            completion_s: times(|one| one.completion_s),
            start_up_s: times(|one| one.start_up_s),
            first_byte_s: times(|one| one.first_byte_s),
            each,
        }
    }

    /// Statistics over the transfers of several runs together. `None` if there are no runs, or a run has no transfers.
    pub fn pooled<'a>(runs: impl IntoIterator<Item = Option<&'a Transfers>>) -> Option<Transfers> {
        let runs = runs.into_iter().collect::<Option<Vec<_>>>()?;
        let each = runs.iter().flat_map(|run| run.each.iter().copied()).collect();
        let due = runs.iter().map(|run| run.due.max(run.begun)).sum();
        (!runs.is_empty()).then(|| Transfers::of(due, each))
    }
}

impl Times {
    fn of(mut times: Vec<f64>) -> Times {
        times.sort_unstable_by(f64::total_cmp);
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let squares: f64 = times.iter().map(|time| (time - mean) * (time - mean)).sum();
        Times {
            min: times.first().copied(),
            p50: nearest_rank(&times, 0.50).copied(),
            mean: (!times.is_empty()).then(|| rounded(mean)),
            p95: nearest_rank(&times, 0.95).copied(),
            max: times.last().copied(),
            sigma: (times.len() >= 2).then(|| rounded((squares / (count - 1.0)).sqrt())),
        }
    }
}

/// Collects the transfers of one flow.
#[derive(Default)]
pub(super) struct TransferMeter {
    /// Start of the latest transfer; zero before the first one.
    began: Time,
    due: u64,
    each: Vec<TransferTimes>,
}

impl TransferMeter {
    /// A meter for a flow with `due` transfers due before the run's end.
    pub(super) fn new(due: u64) -> TransferMeter {
        TransferMeter { due, ..TransferMeter::default() }
    }

    pub(super) fn add(&mut self, transfer: &Transfer) {
        if transfer.step == TransferStep::Began {
            self.began = transfer.time;
            let began_s = rounded(transfer.time.as_secs_f64());
            self.each.push(TransferTimes { began_s, ..TransferTimes::default() });
            return;
        }
        let Some(last) = self.each.last_mut() else { return };
        let took = Some(rounded((transfer.time - self.began).as_secs_f64()));
        match transfer.step {
            TransferStep::Began => {}
            TransferStep::FirstByte => last.first_byte_s = took,
            TransferStep::StartedUp => last.start_up_s = took,
            TransferStep::Complete => last.completion_s = took,
        }
    }

    /// Statistics of the transfers; `None` if the flow has no transfers.
    pub(super) fn finish(self) -> Option<Transfers> {
        (self.due > 0 || !self.each.is_empty()).then(|| Transfers::of(self.due, self.each))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn completed(times: &[f64]) -> Transfers {
        let one = |time: &f64| TransferTimes { completion_s: Some(*time), ..TransferTimes::default() };
        Transfers::of(0, times.iter().map(one).collect())
    }

    #[test]
    fn times_are_those_of_the_transfers_that_arrived() {
        let mut meter = TransferMeter::new(5);
        let mut step = |ms, number, step| {
            let (time, flow) = (Time::from_millis(ms), airpace_core::FlowId(0));
            meter.add(&Transfer { time, flow, number, step });
        };
        for (number, took) in [(0, 200), (1, 400)] {
            let began = 1000 * number;
            step(began, number, TransferStep::Began);
            step(began + 50, number, TransferStep::FirstByte);
            step(began + 100, number, TransferStep::StartedUp);
            step(began + took, number, TransferStep::Complete);
        }
        step(2000, 2, TransferStep::Began);
        step(2060, 2, TransferStep::FirstByte);
        let transfers = meter.finish().expect("it has transfers");
        assert_eq!((transfers.due, transfers.begun, transfers.complete), (5, 3, 2), "two never began");
        let Times { min, p50, mean, p95, max, sigma } = transfers.completion_s;
        assert_eq!((min, p50, mean), (Some(0.2), Some(0.2), Some(0.3)));
        assert_eq!((p95, max, sigma), (Some(0.4), Some(0.4), Some(0.141421)));
        assert_eq!((transfers.first_byte_s.max, transfers.start_up_s.max), (Some(0.06), Some(0.1)));
        assert_eq!(transfers.each[2].completion_s, None);
        assert_eq!(TransferMeter::default().finish(), None, "a flow without transfers has no times");
    }

    #[test]
    fn several_runs_are_one_sample() {
        let (one, other) = (completed(&[1.0, 2.0, 3.0]), completed(&[9.0]));
        let all = Transfers::pooled([Some(&one), Some(&other)]).unwrap();
        assert_eq!((all.due, all.begun), (4, 4));
        assert_eq!((all.begun, all.completion_s.p50, all.completion_s.max), (4, Some(2.0), Some(9.0)));
        assert_eq!(Transfers::pooled([Some(&one), None]), None);
        assert_eq!(Transfers::pooled([]), None);
    }

    proptest! {
        #[test]
        fn times_are_ordered(times in prop::collection::vec(0.0..1e3_f64, 1..50)) {
            let of = completed(&times).completion_s;
            prop_assert!(of.min <= of.p50 && of.p50 <= of.p95 && of.p95 <= of.max);
            prop_assert!(of.min.unwrap() <= of.mean.unwrap() + 1e-6 && of.mean.unwrap() <= of.max.unwrap() + 1e-6);
            prop_assert_eq!(of.sigma.is_some(), times.len() >= 2);
        }
    }
}

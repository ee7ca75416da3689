//! Replay of an ACK trace through a C port: the decisions that the kernel's controller would have made.

pub mod bbr;
pub mod morc;
pub mod pbe;

use std::time::Duration;

use airpace_cc::ack_trace::{Acked, Entry, Told};
use airpace_cc::biscay::feedback::Feedback;
use airpace_cc::controller::LossCause;
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bytes, Rate, Time};

use crate::twin::active::DeviceView;
use crate::twin::{Answer, Biscay, KernelAck, KernelRadio, KernelTuning, NONE};

/// Denominator of the share in a receiver's feedback.
///
/// Source: BISCAY §5.4
const FED_PARTS: u64 = 65_535;

/// Replays a flow of an ACK trace through BISCAY's C port.
pub struct Replay {
    twin: Biscay,
    stale_after: Duration,
    /// Bandwidth of the sender's own radio. `own_burst` is its burst rate.
    own: Option<Rate>,
    own_burst: Rate,
    /// Whether a radio report has arrived since the last ACK.
    heard: bool,
    last_heard: Option<Time>,
    tuning: KernelTuning,
    flows: DeviceFlows,
    fed: Option<Feedback>,
    /// The last window of the trace's controller.
    cwnd: Bytes,
}

impl Replay {
    /// Starts the replay of a trace.
    pub fn new(tuning: KernelTuning, mss: Bytes) -> Replay {
        Replay {
            twin: Biscay::new(tuning, mss),
            stale_after: tuning.stale_after(),
            own: None,
            own_burst: Rate::ZERO,
            heard: false,
            last_heard: None,
            tuning,
            flows: DeviceFlows::ALONE,
            fed: None,
            cwnd: Bytes::ZERO,
        }
    }

    /// Passes the entry's event to the C port. Returns the port's decision.
    pub fn tell(&mut self, entry: &Entry) -> Answer {
        let now = entry.time;
        match &entry.told {
            Told::Sent { bytes, inflight, app_limited, .. } => {
                self.twin.on_sent(now, *bytes, inflight == bytes, *app_limited);
            }
            Told::Acked(acked) => {
                if std::mem::take(&mut self.heard) {
                    self.last_heard = Some(now);
                }
                self.fed = Feedback::read(acked.feedback.as_bytes()).or(self.fed);
                let radio = self.radio(now);
                self.twin.on_ack(&kernel_ack(now, acked, self.cwnd), &radio);
            }
            Told::Lost { lost, cause, .. } => {
                let radio = self.radio(now);
                self.twin.on_loss(*lost, *cause == LossCause::Persistent, &radio);
            }
            Told::Radio { bandwidth, burst, .. } => {
                self.heard = true;
                (self.own, self.own_burst) = (*bandwidth, *burst);
            }
            Told::Device(flows) => self.flows = *flows,
            Told::Feedback(_) | Told::Timer => {}
        }
        self.cwnd = entry.answer.as_ref().map_or(self.cwnd, |answer| answer.cwnd);
        self.twin.answer()
    }

    /// The radio's state as a feeder would write it: the state of the sender's own radio or, without such a radio, the
    /// receiver's feedback.
    ///
    /// The controllers of the trace have no clock between ACKs. They use the time of the first ACK after a report as
    /// the time of the report, and so does this function.
    fn radio(&self, now: Time) -> KernelRadio {
        let is_fresh = self.last_heard.is_some_and(|heard| now - heard <= self.stale_after);
        match (self.own, self.fed) {
            (None, Some(fed)) => KernelRadio {
                bandwidth: bps(fed.bandwidth),
                burst: fed.burst.as_bps(),
                share_num: (fed.share * FED_PARTS as f64 + 0.5) as u64,
                share_den: FED_PARTS,
            },
            (own, _) => {
                let [share_num, share_den] = self.tuning.part(&seen(&self.flows));
                KernelRadio {
                    bandwidth: bps(own.filter(|_| is_fresh)),
                    burst: self.own.map_or(0, |_| self.own_burst.as_bps()),
                    share_num,
                    share_den,
                }
            }
        }
    }
}

/// The values that the kernel would count for the flows of the simulator's device.
fn seen(flows: &DeviceFlows) -> DeviceView {
    DeviceView {
        flows: flows.flows.into(),
        apps: flows.apps.into(),
        app_flows: flows.app_flows.into(),
        used: (flows.used_share * MOVED as f64 + 0.5) as u64,
        moved: MOVED,
    }
}

/// Total number of moved bytes that is assumed when a flow's used share is converted to bytes.
const MOVED: u64 = 1 << 30;

fn bps(rate: Option<Rate>) -> u64 {
    rate.map_or(NONE, Rate::as_bps)
}

fn nanos(span: Option<Duration>) -> u64 {
    span.map_or(NONE, |span| u64::try_from(span.as_nanos()).unwrap_or(NONE))
}

fn kernel_ack(now: Time, acked: &Acked, cwnd: Bytes) -> KernelAck {
    KernelAck {
        now: now.as_nanos(),
        acked: acked.acked.0,
        prior_inflight: acked.prior_inflight.0,
        inflight: acked.inflight.0,
        delivered: acked.delivered.0,
        prior_delivered: acked.prior_delivered.0,
        rtt: nanos(acked.rtt),
        smoothed: nanos(Some(acked.smoothed)),
        rate: bps(acked.rate),
        app_limited: u64::from(acked.app_limited),
        cwnd: cwnd.0,
    }
}

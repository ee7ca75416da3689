//! The receiver of PBE-CC on the mobile. It processes telemetry and packets, and computes the capacity of the path and
//! the location of its bottleneck.
//!
//! Source: PBE-CC §4; PBE-CC §5

use std::time::Duration;

use airpace_core::{Bytes, Rate, Rider, Time};
use airpace_radio::RadioReport;

use crate::controller::{Arrival, Inspect, Receiver, Sees};

use super::Tuning;
use super::bottleneck::{Bottleneck, Evidence};
use super::carriers::{Carriers, CellState};
use super::delay::OneWayDelay;
use super::doubt::{Belief, Doubt};
use super::explained::Explained;
use super::feedback::{Feedback, Header};
use super::growth::Growth;
use super::users::Weights;

/// Telemetry is stale if it is older than this many RTprop and older than [`MIN_STALE`].
///
/// Chosen: by that time, new reports should have replaced all old values in the average. A decoder's pause of some
/// milliseconds is allowed.
const STALE_RTPROPS: u32 = 2;
/// Minimum age of stale telemetry; see [`STALE_RTPROPS`].
const MIN_STALE: Duration = Duration::from_millis(50);

/// Maximum time from the last report until the sender is informed that there are no more reports, if the RTprop of the
/// path permits this. The feedback takes half an RTprop to the sender, and leaves only when a packet arrives.
///
/// Chosen: more than twice the RTprop of a mobile path. A rate of that age is no longer the current capacity.
const MAX_STALE: Duration = Duration::from_millis(100);

/// Number of packets over which the radio's delay is averaged.
///
/// Chosen: some tens of transport blocks, so that retransmissions average out.
const RADIO_DELAY_PACKETS: f64 = 256.0;

/// The measurements of the cell at one time, for all flows of the device together. They are for a driver that does not
/// pass the packets of the flows through this receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Ct of the device; not less than the device's Cf if the option `floor` is on.
    pub capacity: Rate,
    /// Cf of the device.
    pub fair_share: Rate,
    /// Time of the last usable report; `None` before the first.
    pub heard: Option<Time>,
    /// Number of active carriers.
    pub carriers: u8,
    /// Number of carrier activations, modulo 256.
    pub activations: u8,
    /// Whether so many PRBs are idle that a packet has no queueing delay in the cell.
    pub is_idle: bool,
    /// Whether the cell cannot have a queue for this device.
    pub is_elsewhere: bool,
    /// Whether full subframes are accepted as the explanation of a delay.
    pub explains: bool,
}

/// The receiver of PBE-CC.
#[derive(Clone, Debug)]
pub struct PbeReceiver {
    tuning: Tuning,
    carriers: Carriers,
    cell: CellState,
    cell_is_old: bool,
    delay: OneWayDelay,
    bottleneck: Bottleneck,
    growth: Growth,
    header: Header,
    device_flows: u16,
    /// Whether a radio report has arrived since the last call of `see_clock`.
    heard: bool,
    /// Number of unusable reports: without the device's own part, or without the grants of all users.
    refused: u64,
    last_heard: Option<Time>,
    /// Mean delay beyond Dprop while PRBs were idle (ns).
    radio_delay_ns: Option<f64>,
    doubt: Doubt,
}

impl PbeReceiver {
    /// The receiver of a new flow.
    pub fn new(tuning: Tuning, mss: Bytes) -> PbeReceiver {
        PbeReceiver {
            tuning,
            carriers: Carriers::new(tuning.measure),
            cell: CellState::default(),
            cell_is_old: false,
            delay: OneWayDelay::default(),
            bottleneck: Bottleneck::new(tuning.rules, mss),
            growth: Growth::default(),
            header: Header::default(),
            device_flows: 1,
            heard: false,
            refused: 0,
            last_heard: None,
            radio_delay_ns: None,
            doubt: Doubt::default(),
        }
    }

    /// Sets the averaging window to this RTprop, as if it had arrived in a packet's header.
    pub fn set_rtprop(&mut self, rtprop: Duration) {
        self.header.rtprop = Some(rtprop);
        self.set_window(rtprop);
    }

    fn set_window(&mut self, rtprop: Duration) {
        // One subframe is a millisecond.
        self.carriers.set_window((rtprop.as_micros() as u64).div_ceil(1_000));
    }

    /// The current measurements of the cell.
    pub fn measured(&mut self, now: Time) -> Measured {
        self.see_clock(now);
        let (capacity, fair_share) = self.rates_of(1.0);
        Measured {
            capacity,
            fair_share,
            heard: self.last_heard,
            carriers: self.cell.carriers,
            activations: self.carriers.activations(),
            is_idle: self.is_idle(),
            is_elsewhere: self.bottleneck.cannot_be_in_cell(&self.cell),
            explains: self.is_explainable(),
        }
    }

    /// Number of unusable reports.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The record of full subframes that explain a delay.
    pub fn explained(&self) -> &Explained {
        self.carriers.explained()
    }

    fn is_idle(&self) -> bool {
        self.cell.idle_share > self.tuning.rules.idle_share
    }

    fn is_explainable(&self) -> bool {
        self.tuning.explained_test && !self.cell.is_passed_over()
    }

    /// Ct and Cf of this flow, reduced by the present doubt in incomplete reports.
    fn rates(&self) -> (Rate, Rate) {
        let flows = if self.tuning.device_split { f64::from(self.device_flows.max(1)) } else { 1.0 };
        let (capacity, fair_share) = self.rates_of(flows);
        let belief = self.doubt.belief(self.cell.lacking, self.cell.timing.harq);
        if belief == Belief::WHOLE {
            return (capacity, fair_share);
        }
        let own = Rate::from_bps_f64(self.cell.own_capacity_bits() * 1e3 / flows);
        (belief.of(capacity, own), belief.of(fair_share, own))
    }

    /// Ct and Cf of one flow if the device has `flows` flows.
    fn rates_of(&self, flows: f64) -> (Rate, Rate) {
        let per_second = |subframe_bits: f64| Rate::from_bps_f64(subframe_bits * 1e3 / flows);
        let fair_share = per_second(self.cell.fair_share_bits);
        let capacity = per_second(self.cell.capacity_bits);
        // Differs: if competitors leave no idle PRBs, Eq. 3 yields only the PRBs that this device already used. A
        // device that uses less than its capacity would then get a lower limit each time, down to zero. The cell gives
        // the device its fair share in any case, so the capacity is at least the fair share. With weights, the
        // scheduler does not guarantee the weighted share, so the weighted share is no lower bound of the capacity. Eq.
        // 3 alone moves the capacity towards the weighted share.
        let has_floor = self.tuning.floor && self.tuning.measure.weights == Weights::Equal;
        (if has_floor { capacity.max(fair_share) } else { capacity }, fair_share)
    }

    /// Records the time by the receiver's clock. Reports contain the reporter's time, whose clock may differ.
    fn see_clock(&mut self, now: Time) {
        if std::mem::take(&mut self.heard) {
            self.last_heard = Some(now);
        }
        if std::mem::take(&mut self.cell_is_old) {
            self.cell = self.carriers.state();
        }
    }

    /// Whether the last packet's delay indicates a queue outside of the cell.
    ///
    /// Source: PBE-CC §4.2.2
    ///
    /// Differs: the paper attributes every delay above Dth to a queue in the Internet. A queue in the cell can cause
    /// the same delay. Therefore the time in which the cell had no idle PRBs is subtracted before the comparison.
    fn is_late(&self) -> bool {
        let radio_delay = self.cell.timing.radio_delay;
        self.delay.exceeds_threshold(radio_delay)
            && (!self.is_explainable()
                || self.carriers.explained().leaves_more_than(radio_delay, self.delay.excess()))
    }

    /// Averages the delay of packets that met no queue: the cell had idle PRBs, and the delay did not exceed Dth.
    fn measure_radio_delay(&mut self) {
        let excess = self.delay.excess();
        if self.is_idle() && excess <= self.cell.timing.radio_delay {
            let sample = excess.as_nanos() as f64;
            let mean = self.radio_delay_ns.unwrap_or(sample);
            self.radio_delay_ns = Some(mean + (sample - mean) / RADIO_DELAY_PACKETS);
        }
    }

    fn is_fresh(&self, now: Time) -> bool {
        let rtprop = self.header.rtprop.unwrap_or_default();
        let stale_after = (rtprop * STALE_RTPROPS).min(MAX_STALE.saturating_sub(rtprop)).max(MIN_STALE);
        self.cell.carriers > 0 && self.last_heard.is_some_and(|heard| now - heard <= stale_after)
    }
}

impl Receiver for PbeReceiver {
    fn sees(&self) -> Sees {
        Sees::Device
    }

    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        self.see_clock(arrival.now);
        self.device_flows = arrival.device.flows;
        if let Some(header) = Header::read(arrival.header) {
            self.header = header;
        }
        if let Some(rtprop) = self.header.rtprop {
            self.set_window(rtprop);
        }
        self.delay.on_packet(arrival.now, arrival.sent);
        self.doubt.on_packet(arrival.now, self.delay.excess());
        if !self.is_fresh(arrival.now) {
            return;
        }
        self.measure_radio_delay();
        let (capacity, fair_share) = self.rates();
        let packet = Evidence {
            now: arrival.now,
            late: self.is_late(),
            capacity,
            fair_share,
            pacing_rate: self.header.pacing_rate,
        };
        self.bottleneck.on_packet(&packet, &self.cell);
        match self.header.rtprop {
            Some(rtprop) if self.header.starting => {
                let (excess, no_queue) = (self.delay.excess(), self.cell.timing.one_retransmission());
                if self.growth.on_packet(arrival.now, arrival.bytes, excess, rtprop, no_queue) {
                    self.bottleneck.on_stalled_start(&self.cell);
                }
            }
            _ => self.growth = Growth::default(),
        }
    }

    fn on_radio(&mut self, report: &RadioReport) {
        // Reports that contain only the device's own grants would make the cell look idle. Such reports are ignored.
        // Without other reports the telemetry becomes stale, the feedback contains this fact, and the sender falls back
        // to BBR.
        if self.carriers.on_report(report) {
            self.cell_is_old = true;
            self.heard = true;
        } else {
            self.refused += 1;
        }
    }

    fn feedback(&mut self, now: Time) -> Rider {
        self.see_clock(now);
        let (capacity, fair_share) = self.rates();
        let feedback = Feedback {
            internet: self.bottleneck.is_internet(),
            fresh: self.is_fresh(now),
            clear: self.bottleneck.is_clear(),
            carriers: self.cell.carriers,
            activations: self.carriers.activations(),
            capacity: Some(capacity),
            fair_share: Some(fair_share),
            radio_delay: self.radio_delay_ns.map(|nanos| Duration::from_nanos(nanos as u64)),
        };
        feedback.write()
    }

    /// Returns the phone's current measurements, as on an ACK. The phone decodes the control channel even without a
    /// connection.
    fn request(&mut self, now: Time) -> Rider {
        self.feedback(now)
    }

    fn inspect(&self, out: &mut Inspect) {
        let (capacity, fair_share) = self.rates();
        let (latest, dprop) = self.delay.raw();
        out.value("cp_mbps", self.cell.physical_bits * 1e-3);
        out.value("ct_mbps", capacity.as_mbps());
        out.value("cf_mbps", fair_share.as_mbps());
        out.value("users_n", self.cell.users);
        out.value("idle_prbs", self.cell.idle_prbs);
        out.value("own_prbs", self.cell.own_prbs);
        out.value("owd_ms", dprop.map_or(f64::NAN, |_| latest as f64 * 1e-6));
        out.value("dprop_ms", dprop.map_or(f64::NAN, |dprop| dprop as f64 * 1e-6));
        out.value("carriers_n", f64::from(self.cell.carriers));
        out.value("carriers_missing_n", f64::from(self.cell.missing));
        out.value("refused_reports_n", self.refused as f64);
        out.value("internet", f64::from(u8::from(self.bottleneck.is_internet())));
    }
}

//! The sending endpoint: it sends as the controller permits, and passes ACKs and losses to the controller.

pub(super) mod recovery;

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Ecn, Rider, Time};
use airpace_event::Acked;
use airpace_radio::RadioReport;

use self::recovery::Timeouts;
use crate::controller::{Ack, Control, Controller, Inspect, LossCause, Rtt, Sees, Sent, SentPacket, Truth};
use crate::delivery_rate::DeliveryRate;
use crate::endpoint::reordering::Reordering;
use crate::endpoint::sent::{Entry, SentPackets, Status};
use crate::endpoint::{
    AckError, AckFrame, Backlog, Outcome, Ranges, RttEstimator, SenderConfig, Settled, Transmit,
};
use crate::pacer::Pacer;
use crate::registry::DeviceFlows;

/// The sending endpoint of one flow.
pub struct Sender {
    config: SenderConfig,
    controller: Box<dyn Controller>,
    control: Control,
    pacer: Pacer,
    backlog: Backlog,
    closed: bool,
    blocked: Blocked,

    packets: SentPackets,
    reordering: Reordering,
    inflight: Bytes,
    rtt: RttEstimator,
    /// The timeouts computed from `rtt`. They are stored because they are read far more often than they change.
    timeouts: Timeouts,
    rate: DeliveryRate,
    largest_acked: Option<u64>,
    /// The ranges of the last ACK. The packets in them are already recorded as acknowledged.
    known: Ranges,
    newest_ack: Option<u64>,
    /// The ECN field of outgoing packets.
    ecn: Ecn,
    /// Number of packets that the receiver has reported as marked (ECN CE) up to now.
    ce: u64,
    /// The receive window on the newest ACK; `None` for no limit.
    advertised: Option<Bytes>,

    loss_time: Option<Time>,
    last_sent: Time,
    /// The time of the last newly acknowledged packet, or of the first packet sent after the flow had nothing in
    /// flight.
    silent_since: Time,
    first_sample: Option<Time>,
    probes: u32,
    probe_due: bool,

    delivered_packets: u64,
    spurious_losses: u64,
    /// Outcomes that a driver with [`Backlog::Carried`] has not read yet; empty for all other drivers.
    settled: VecDeque<Settled>,
    /// Buffers, kept to reuse their memory.
    acked: Vec<SentPacket>,
    lost: Vec<SentPacket>,
}

/// The last reason why the sender stopped sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    Application,
    Window,
    /// The receive window is full, but the congestion window is not.
    Receiver,
    Pacing(Time),
    Memory,
}

impl Sender {
    /// A sender that has not sent anything yet.
    pub fn new(config: SenderConfig, controller: Box<dyn Controller>, backlog: Backlog) -> Sender {
        let control = controller.control();
        let ecn = if controller.is_ecn_capable() { Ecn::Ect } else { Ecn::NotEct };
        let mut pacer = Pacer::new(config.pacer);
        let rtt = RttEstimator::default();
        pacer.set_rate(Time::ZERO, control.pacing_rate);
        Sender {
            config,
            controller,
            control,
            pacer,
            backlog,
            closed: false,
            blocked: Blocked::Application,
            packets: SentPackets::default(),
            reordering: Reordering::default(),
            inflight: Bytes::ZERO,
            rtt,
            timeouts: Timeouts::of(&rtt, config.ack.deliberate_delay()),
            rate: DeliveryRate::new(),
            largest_acked: None,
            known: Ranges::EMPTY,
            newest_ack: None,
            ecn,
            ce: 0,
            advertised: None,
            loss_time: None,
            last_sent: Time::ZERO,
            silent_since: Time::ZERO,
            first_sample: None,
            probes: 0,
            probe_due: false,
            delivered_packets: 0,
            spurious_losses: 0,
            settled: VecDeque::new(),
            acked: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// The next packet to send at `now`. Drivers call it repeatedly until it returns `None`, after every call of
    /// another method.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.closed {
            return None;
        }
        if self.packets.is_full() {
            self.blocked = Blocked::Memory;
            return None;
        }
        let bytes = match self.backlog {
            Backlog::Unlimited => self.config.mss,
            Backlog::Limited(left) | Backlog::Carried { next: left, .. } => left.min(self.config.mss),
        };
        if self.probe_due {
            self.probe_due = false;
            if bytes > Bytes::ZERO {
                return Some(self.transmit(now, bytes, None));
            }
            if let Some((number, bytes)) = self.packets.oldest_outstanding() {
                return Some(self.transmit(now, bytes, Some(number)));
            }
        }
        if bytes == Bytes::ZERO {
            self.blocked = Blocked::Application;
            if self.inflight < self.control.cwnd {
                self.rate.on_app_limited(self.inflight);
            }
            return None;
        }
        if self.inflight + bytes > self.control.cwnd {
            self.blocked = Blocked::Window;
            return None;
        }
        if self.advertised.is_some_and(|advertised| self.inflight + bytes > advertised.max(self.config.mss)) {
            // Source: RFC 9293 §3.8.6.1
            // Differs: one packet may always be outstanding. This packet replaces TCP's zero-window probes.
            self.blocked = Blocked::Receiver;
            return None;
        }
        if !self.pacer.ready(now, bytes) {
            self.blocked = Blocked::Pacing(self.pacer.next(bytes).unwrap_or(now));
            return None;
        }
        Some(self.transmit(now, bytes, None))
    }

    /// Processes an acknowledgement.
    ///
    /// # Errors
    /// The ACK acknowledges packets that were never sent, or is malformed. An error leaves the sender unchanged.
    pub fn on_ack(&mut self, now: Time, frame: &AckFrame) -> Result<Outcome, AckError> {
        self.check(frame)?;
        let is_newest_ack = self.newest_ack.is_none_or(|newest| frame.number > newest);
        if is_newest_ack {
            self.advertised = frame.window;
        }
        let (prior_inflight, prior_spurious) = (self.inflight, self.spurious_losses);
        let acked = self.acknowledge(now, &frame.ranges);
        self.delivered_packets += self.acked.len() as u64;
        let Some(newest) = self.acked.last().copied() else {
            if is_newest_ack {
                self.newest_ack = Some(frame.number);
                self.hear(now, frame.feedback.as_bytes());
            }
            return Ok(Outcome::default());
        };
        if self.is_carried() {
            let told = |packet: &SentPacket| Settled::Delivered {
                number: packet.number,
                declared_lost: packet.declared_lost,
            };
            self.settled.extend(self.acked.iter().map(told));
        }
        let sample = self.sample_rtt(now, &newest, frame);
        let is_overtaken = self.largest_acked.is_some_and(|largest| self.acked[0].number < largest);
        let largest_acked = self.largest_acked.map_or(newest.number, |largest| largest.max(newest.number));
        self.largest_acked = Some(largest_acked);
        let is_spurious = self.spurious_losses > prior_spurious;
        self.reordering.on_ack(is_overtaken, is_spurious, largest_acked, self.packets.next_number());
        self.probes = 0;
        self.probe_due = false;
        self.silent_since = now;
        let lost = self.detect_losses(now);
        let lost = self.report_losses(now, prior_inflight, lost);
        // Marks are counted over the connection's life, so an ACK that a newer ACK has overtaken contains no new marks.
        let ce = frame.ce.saturating_sub(self.ce);
        self.ce += ce;
        self.rate.on_marked(ce);
        let rate = self.rate.sample(self.rtt.get().min);
        self.newest_ack = self.newest_ack.max(Some(frame.number));
        self.controller.on_ack(&Ack {
            now,
            packets: &self.acked,
            acked,
            prior_inflight,
            inflight: self.inflight,
            next_number: self.packets.next_number(),
            rtt: Rtt { latest: sample, ..self.rtt.get() },
            rate,
            cwnd_limited: self.blocked == Blocked::Window,
            ce,
            // If a newer ACK was already processed, the feedback of this ACK is out of date.
            feedback: if is_newest_ack { frame.feedback.as_bytes() } else { &[] },
        });
        self.packets.forget(now);
        self.refresh(now);
        let acked = Acked {
            time: now,
            flow: self.config.flow,
            largest: newest.number,
            acked,
            inflight: self.inflight,
            rtt: sample,
            delivery_rate: rate.rate,
        };
        Ok(Outcome { acked: Some(acked), lost })
    }

    /// Replaces the controller at `now`. Packets in flight stay in flight. The new controller receives their ACKs and
    /// losses, although it received no [`Controller::on_sent`] for them. RTT and delivery-rate estimators keep their
    /// state.
    pub fn set_controller(&mut self, now: Time, controller: Box<dyn Controller>) {
        self.ecn = if controller.is_ecn_capable() { Ecn::Ect } else { Ecn::NotEct };
        self.controller = controller;
        self.refresh(now);
    }

    /// Inputs that the controller uses besides packets and ACKs.
    pub fn sees(&self) -> Sees {
        self.controller.sees()
    }

    /// Header bytes that the controller would put on a packet sent now.
    pub fn header(&self) -> Rider {
        self.controller.header()
    }

    /// The client's request arrived, with these feedback bytes of the scheme's receiver ([`Acker::request`]).
    ///
    /// [`Acker::request`]: crate::endpoint::Acker::request
    pub fn on_request(&mut self, now: Time, feedback: &[u8]) {
        self.hear(now, feedback);
    }

    /// Processes the timers that are due: the time returned by [`Sender::poll_timeout`] has been reached. Calls at other times
    /// do no harm.
    pub fn handle_timeout(&mut self, now: Time) -> Outcome {
        if self.closed {
            return Outcome::default();
        }
        let due = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        let mut lost = None;
        // Most timeouts are pacing timeouts, which do not concern the controller.
        let mut is_news = true;
        if due(self.silence_deadline()) {
            let prior_inflight = self.inflight;
            let bytes = self.lose_everything();
            self.silent_since = now;
            lost = self.report(now, prior_inflight, bytes, LossCause::Persistent);
            self.packets.forget(now);
        } else if due(self.loss_time) {
            let prior_inflight = self.inflight;
            let bytes = self.detect_losses(now);
            lost = self.report_losses(now, prior_inflight, bytes);
        } else if due(self.probe_deadline()) {
            self.probes += 1;
            self.probe_due = true;
            self.last_sent = now;
        } else {
            is_news = false;
        }
        if due(self.controller.poll_timeout()) {
            self.controller.handle_timeout(now);
            is_news = true;
        }
        if is_news {
            self.refresh(now);
        }
        Outcome { acked: None, lost }
    }

    /// The time of the next call of [`Sender::handle_timeout`] and [`Sender::poll_transmit`] if no event occurs earlier.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.closed {
            return None;
        }
        let mut earliest = self.controller.poll_timeout().unwrap_or(Time::NEVER);
        if let Blocked::Pacing(until) = self.blocked {
            earliest = earliest.min(until);
        }
        let recovery = self.loss_time.or_else(|| self.probe_deadline());
        for deadline in [recovery, self.silence_deadline()].into_iter().flatten() {
            earliest = earliest.min(deadline);
        }
        (earliest < Time::NEVER).then_some(earliest)
    }

    /// The outcomes of packets, in the order in which they were detected. After [`Sender::on_ack`] and
    /// [`Sender::handle_timeout`], call this method until it returns `None`, and then call [`Sender::set_backlog`] with the
    /// data to send now. Outcomes are returned only if the backlog is [`Backlog::Carried`].
    pub fn poll_settled(&mut self) -> Option<Settled> {
        self.settled.pop_front()
    }

    /// The lowest packet number whose outcome may still be reported. Once [`Sender::poll_settled`] returns `None`, no
    /// outcome of a lower number will follow, and a driver may delete its records of these packets.
    pub fn remembered_from(&self) -> u64 {
        self.packets.base()
    }

    /// Adds `bytes` that the application wants to send to a backlog of [`Backlog::Limited`].
    pub fn offer(&mut self, bytes: Bytes) {
        if let Backlog::Limited(left) = &mut self.backlog {
            *left += bytes;
        }
    }

    /// Replaces the backlog.
    pub fn set_backlog(&mut self, backlog: Backlog) {
        self.backlog = backlog;
    }

    /// Closes the flow: nothing more is sent, not even lost bytes. ACKs are still processed.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// The radio of the sender's device reported a subframe.
    pub fn on_radio(&mut self, now: Time, report: &RadioReport) {
        self.controller.on_radio(report);
        self.refresh(now);
    }

    /// The sender's device reported its knowledge of its flows.
    pub fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        self.controller.on_device(now, flows);
        self.refresh(now);
    }

    /// A simulator reported the ground truth of the path.
    pub fn on_truth(&mut self, truth: &Truth) {
        self.controller.on_truth(truth);
        self.refresh(truth.now);
    }

    /// The number of packets that must have left by `now`, computed by a simulator.
    pub fn on_due(&mut self, now: Time, packets: u64) {
        self.controller.on_due(packets);
        self.refresh(now);
    }

    /// The controller's current control.
    pub fn control(&self) -> Control {
        self.control
    }

    /// Maximum number of outstanding bytes that the receiver permits; `None` for no limit.
    pub fn advertised(&self) -> Option<Bytes> {
        self.advertised
    }

    /// Bytes outstanding: sent, neither acknowledged nor declared lost.
    pub fn inflight(&self) -> Bytes {
        self.inflight
    }

    /// The data that the application still has to send.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The current RTT estimates.
    pub fn rtt(&self) -> Rtt {
        self.rtt.get()
    }

    /// Bytes delivered since the start of the flow.
    pub fn delivered(&self) -> Bytes {
        self.rate.delivered()
    }

    /// Packets delivered since the start of the flow.
    pub fn delivered_packets(&self) -> u64 {
        self.delivered_packets
    }

    /// Number of packets that were declared lost and acknowledged later.
    pub fn spurious_losses(&self) -> u64 {
        self.spurious_losses
    }

    /// Number of packet records in memory: packets in flight, and recently lost packets.
    pub fn remembered(&self) -> usize {
        self.packets.len()
    }

    /// Sending credit forfeited because the driver was late; see [`Pacer::forfeited`].
    pub fn forfeited(&self) -> Bytes {
        self.pacer.forfeited()
    }

    /// Appends the names and values of the controller.
    pub fn inspect(&self, out: &mut Inspect) {
        self.controller.inspect(out);
    }

    fn is_carried(&self) -> bool {
        matches!(self.backlog, Backlog::Carried { .. })
    }

    fn transmit(&mut self, now: Time, bytes: Bytes, copy_of: Option<u64>) -> Transmit {
        if self.inflight == Bytes::ZERO {
            self.silent_since = now;
        }
        self.inflight += bytes;
        match &mut self.backlog {
            Backlog::Limited(left) if copy_of.is_none() => *left -= bytes,
            Backlog::Carried { next, rest } if copy_of.is_none() => {
                *rest += *next - bytes;
                *next = Bytes::ZERO;
            }
            _ => {}
        }
        let rate = self.rate.on_sent(now, bytes, self.inflight);
        // An IP packet has at most 64 KiB, so its size fits.
        let entry = Entry {
            sent: now,
            bytes: bytes.0 as u32,
            copy: copy_of.is_some(),
            status: Status::Outstanding,
            rate,
        };
        let number = self.packets.push(entry);
        self.last_sent = now;
        self.pacer.on_sent(now, bytes);
        let app_limited = matches!(
            self.backlog,
            Backlog::Limited(Bytes::ZERO) | Backlog::Carried { rest: Bytes::ZERO, .. }
        );
        self.controller.on_sent(&Sent { now, number, bytes, inflight: self.inflight, app_limited });
        let header = self.controller.header();
        self.refresh(now);
        Transmit { number, bytes, copy_of, ecn: self.ecn, header }
    }

    fn check(&self, frame: &AckFrame) -> Result<(), AckError> {
        let next_number = self.packets.next_number();
        if !frame.ranges.is_well_formed() || frame.ranges.as_slice()[0].1 != frame.largest {
            return Err(AckError::Ranges);
        }
        if frame.largest >= next_number {
            return Err(AckError::Unsent { largest: frame.largest, next_number });
        }
        if frame.ce > next_number {
            return Err(AckError::Marks { ce: frame.ce, next_number });
        }
        Ok(())
    }

    /// Moves the packets that `ranges` newly acknowledge to `self.acked`. Returns their total size.
    fn acknowledge(&mut self, now: Time, ranges: &Ranges) -> Bytes {
        let mut bytes = Bytes::ZERO;
        self.acked.clear();
        let Sender { packets, acked, rate, inflight, backlog, spurious_losses, .. } = self;
        ranges.each_beyond(&self.known, |lowest, highest| {
            packets.acknowledge(lowest, highest, |number, entry| {
                acked.push(entry.packet(number));
                bytes += entry.bytes();
                rate.on_delivered(now, entry.bytes(), entry.sent, &entry.rate);
                if entry.status == Status::Outstanding {
                    *inflight -= entry.bytes();
                    return;
                }
                *spurious_losses += 1;
                if let (Backlog::Limited(left), false) = (&mut *backlog, entry.copy) {
                    *left -= entry.bytes();
                }
            });
        });
        self.known = *ranges;
        bytes
    }

    /// Updates the RTT estimates if `newest` is the highest packet acknowledged so far. Otherwise returns `None`.
    ///
    /// Source: RFC 9002 §5.1
    fn sample_rtt(&mut self, now: Time, newest: &SentPacket, frame: &AckFrame) -> Option<Duration> {
        if newest.number != frame.largest || self.largest_acked.is_some_and(|largest| newest.number < largest)
        {
            return None;
        }
        let sample = now - newest.sent;
        let deliberate_delay = self.config.ack.deliberate_delay();
        self.rtt.update(sample, frame.delay.min(deliberate_delay));
        self.timeouts = Timeouts::of(&self.rtt, deliberate_delay);
        self.first_sample.get_or_insert(now);
        Some(sample)
    }

    /// Passes feedback that arrived without a newly acknowledged packet to the controller.
    fn hear(&mut self, now: Time, feedback: &[u8]) {
        if !feedback.is_empty() {
            self.controller.on_feedback(now, feedback);
            self.refresh(now);
        }
    }

    fn refresh(&mut self, now: Time) {
        self.control = self.controller.control();
        debug_assert!(self.control.cwnd >= self.config.mss, "the contract is a window of at least one MSS");
        self.pacer.set_rate(now, self.control.pacing_rate);
    }
}

//! The congestion control of a sender, for a transport that has its own packet numbers and its own loss detection.
//!
//! The transport reports that packet number n was sent, acknowledged or lost. From this, the ledger computes the same
//! [`Sent`], [`Ack`], [`Loss`] and [`RateSample`] as a [`Sender`] computes from ACKs. It uses the same estimators, and
//! calls the controller in the order that [`Controller`] requires. The ledger also contains the pacer. It therefore
//! reports how many packets may leave now, and when the next packet may leave.
//!
//! ```text
//!  transport ── sent, acked, lost ──▶ Ledger ──▶ Controller
//!  transport ◀── allowance, next ──── Ledger ◀── Control
//! ```
//!
//! [`Sender`]: crate::endpoint::Sender
//! [`RateSample`]: crate::controller::RateSample

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rider, Time};
use airpace_radio::RadioReport;

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Rtt, Sent, SentPacket};
use crate::delivery_rate::DeliveryRate;
use crate::endpoint::RttEstimator;
use crate::endpoint::sender::recovery::{Timeouts, is_persistent};
use crate::endpoint::sent::{Entry, SentPackets, Status};
use crate::pacer::{Pacer, PacerConfig};
use crate::registry::DeviceFlows;

/// The sending endpoint of a flow whose packets another transport numbers, acknowledges and declares lost.
///
/// Report events with [`Ledger::on_sent`], [`Ledger::on_acked`] and [`Ledger::on_lost`]. When all events of one
/// received datagram have been reported, call [`Ledger::settle`], which passes them to the controller.
pub struct Ledger {
    mss: Bytes,
    controller: Box<dyn Controller>,
    control: Control,
    pacer: Pacer,
    blocked: Blocked,

    packets: SentPackets,
    /// The transport's numbers of the stored packets, in ascending order.
    names: VecDeque<u64>,
    inflight: Bytes,
    rtt: RttEstimator,
    timeouts: Timeouts,
    rate: DeliveryRate,
    largest_acked: Option<u64>,
    first_sample: Option<Time>,
    silent_since: Time,
    advertised: Option<Bytes>,
    /// The header that the controller returned for the next packet; `None` if the next packet was not announced yet.
    announced: Option<Rider>,
    /// Number of marked packets that no [`Ack`] has reported yet.
    marked: u64,

    /// Packet numbers (of the ledger) that the next call of `settle` will report.
    acked: Vec<u64>,
    lost: Vec<u64>,
    counts: Counts,
    /// Buffers, kept to reuse their memory.
    acked_packets: Vec<SentPacket>,
    lost_packets: Vec<SentPacket>,
}

/// The reason why no packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The application has nothing to send.
    Application,
    /// The congestion window is full.
    Window,
    /// The receiver's window is full, but the congestion window is not.
    Receiver,
    /// The pacer does not permit a packet before this time.
    Pacing(Time),
    /// No more packet records can be stored.
    Memory,
}

/// Counters of packets and bytes over a ledger's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: Bytes,
    /// Packets acknowledged.
    pub acked: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Bytes declared lost.
    pub lost_bytes: Bytes,
    /// Packets that were declared lost and acknowledged later.
    pub spurious: u64,
}

impl Ledger {
    /// A ledger before the first packet.
    pub fn new(now: Time, mss: Bytes, pacer: PacerConfig, controller: Box<dyn Controller>) -> Ledger {
        let control = controller.control();
        let mut pacer = Pacer::new(pacer);
        pacer.set_rate(now, control.pacing_rate);
        let rtt = RttEstimator::default();
        Ledger {
            mss,
            controller,
            control,
            pacer,
            blocked: Blocked::Application,
            packets: SentPackets::default(),
            names: VecDeque::new(),
            inflight: Bytes::ZERO,
            rtt,
            timeouts: Timeouts::of(&rtt, Duration::ZERO),
            rate: DeliveryRate::new(),
            largest_acked: None,
            first_sample: None,
            silent_since: now,
            advertised: None,
            announced: None,
            marked: 0,
            acked: Vec::new(),
            lost: Vec::new(),
            counts: Counts::default(),
            acked_packets: Vec::new(),
            lost_packets: Vec::new(),
        }
    }

    /// The number of packets of `bytes` that may leave at `now`, at least one; or the reason why none may leave. The
    /// state is unchanged: if a packet is ready but may not leave, call [`Ledger::on_held`].
    ///
    /// # Errors
    /// The reason why no packet may leave.
    pub fn allowance(&self, now: Time, bytes: Bytes) -> Result<u64, Blocked> {
        if self.packets.is_full() {
            return Err(Blocked::Memory);
        }
        let room = |window: Bytes| (window - self.inflight).0 / bytes.0.max(1);
        let by_window = room(self.control.cwnd);
        if self.inflight + bytes > self.control.cwnd {
            return Err(Blocked::Window);
        }
        let advertised = self.advertised.map(|advertised| advertised.max(self.mss));
        if advertised.is_some_and(|advertised| self.inflight + bytes > advertised) {
            return Err(Blocked::Receiver);
        }
        let by_pacer = self.pacer.burst(now, bytes);
        if by_pacer == 0 {
            return Err(Blocked::Pacing(self.pacer.next(bytes).unwrap_or(now)));
        }
        Ok(by_window.min(advertised.map_or(u64::MAX, room)).min(by_pacer))
    }

    /// Records that a packet of `bytes` was ready, but [`Ledger::allowance`] did not permit it to leave.
    pub fn on_held(&mut self, now: Time, bytes: Bytes, by: Blocked) {
        self.blocked = match by {
            Blocked::Pacing(until) if !self.pacer.ready(now, bytes) => {
                Blocked::Pacing(self.pacer.next(bytes).unwrap_or(until))
            }
            by => by,
        };
    }

    /// Records that the application had nothing to send.
    pub fn on_idle(&mut self) {
        self.blocked = Blocked::Application;
        if self.inflight < self.control.cwnd {
            self.rate.on_app_limited(self.inflight);
        }
    }

    /// Records that the packet with the transport's number `name` was sent, with `bytes` on the wire. A name must be
    /// greater than all earlier names; otherwise the call is ignored. `app_limited`: the application had no more data
    /// to send after this packet. Returns the header for the scheme's receiver.
    pub fn on_sent(&mut self, now: Time, name: u64, bytes: Bytes, app_limited: bool) -> Rider {
        if self.names.back().is_some_and(|newest| name <= *newest) || self.packets.is_full() {
            return Rider::EMPTY;
        }
        if self.inflight == Bytes::ZERO {
            self.silent_since = now;
        }
        self.inflight += bytes;
        let rate = self.rate.on_sent(now, bytes, self.inflight);
        // An IP packet has at most 64 KiB, so its size fits.
        let bytes_u32 = u32::try_from(bytes.0).unwrap_or(u32::MAX);
        let entry = Entry { sent: now, bytes: bytes_u32, copy: false, status: Status::Outstanding, rate };
        let number = self.packets.push(entry);
        self.names.push_back(name);
        self.pacer.on_sent(now, bytes);
        self.counts.sent += 1;
        self.counts.sent_bytes += bytes;
        if self.announced.take().is_none() {
            self.controller.on_sent(&Sent { now, number, bytes, inflight: self.inflight, app_limited });
        }
        let header = self.controller.header();
        self.refresh(now);
        header
    }

    /// Announces the next packet to the controller: its approximate size, and whether the application has no more data
    /// after it. Returns the header for the scheme's receiver. A transport calls this if it must write the header
    /// before the packet is complete; the following [`Ledger::on_sent`] does not notify the controller again. If no
    /// packet leaves now, the announcement applies to the packet that leaves next.
    pub fn announce(&mut self, now: Time, bytes: Bytes, app_limited: bool) -> Rider {
        if let Some(header) = self.announced {
            return header;
        }
        let (number, inflight) = (self.packets.next_number(), self.inflight + bytes);
        self.controller.on_sent(&Sent { now, number, bytes, inflight, app_limited });
        let header = self.controller.header();
        self.announced = Some(header);
        header
    }

    /// Records that the packet `name` was acknowledged. Returns whether `name` is one of the ledger's packets.
    pub fn on_acked(&mut self, name: u64) -> bool {
        let number = self.number(name);
        self.acked.extend(number);
        number.is_some()
    }

    /// Records that the packet `name` was declared lost. Returns whether `name` is one of the ledger's packets.
    pub fn on_lost(&mut self, name: u64) -> bool {
        let number = self.number(name);
        self.lost.extend(number);
        number.is_some()
    }

    /// Records that all packets that the transport recently declared lost have been acknowledged after all.
    ///
    /// Chosen: "recently" covers the packets sent within the last two round trips. Transports store records of lost
    /// packets for at least this time.
    pub fn on_late(&mut self, now: Time) {
        let Ledger { packets, acked, .. } = self;
        let span = self.rtt.get().smoothed * 2;
        packets.visit_lost(|number, entry| {
            if now - entry.sent <= span {
                acked.push(number);
            }
        });
    }

    /// Records that `packets` more packets were reported as marked by a queue.
    pub fn on_marked(&mut self, packets: u64) {
        self.marked += packets;
    }

    /// Sets the maximum number of outstanding bytes that the receiver permits from now on; `None` for no limit.
    pub fn on_advertised(&mut self, window: Option<Bytes>) {
        self.advertised = window;
    }

    /// Completes the report of an input and notifies the controller: first of the losses, then of the acknowledged
    /// packets with `feedback`, which arrived with the input. If no packet was acknowledged, the controller receives
    /// the feedback alone.
    pub fn settle(&mut self, now: Time, feedback: &[u8]) {
        let prior_inflight = self.inflight;
        let acked = self.acknowledge(now);
        let sample = self.acked_packets.last().copied().map(|newest| self.sample_rtt(now, &newest));
        if sample.is_some() {
            self.silent_since = now;
        }
        let lost = self.lose();
        if !self.lost_packets.is_empty() {
            let persistent = is_persistent(&self.lost_packets, self.first_sample, self.timeouts.persistent);
            let cause = if persistent { LossCause::Persistent } else { LossCause::Threshold };
            self.tell_losses(now, prior_inflight, lost, cause);
        }
        if let Some(sample) = sample {
            let ce = std::mem::take(&mut self.marked);
            self.rate.on_marked(ce);
            let rate = self.rate.sample(self.rtt.get().min);
            self.controller.on_ack(&Ack {
                now,
                packets: &self.acked_packets,
                acked,
                prior_inflight,
                inflight: self.inflight,
                next_number: self.packets.next_number(),
                rtt: Rtt { latest: sample, ..self.rtt.get() },
                rate,
                cwnd_limited: self.blocked == Blocked::Window,
                ce,
                feedback,
            });
            self.forget(now);
        } else if !feedback.is_empty() {
            self.controller.on_feedback(now, feedback);
        } else if self.lost_packets.is_empty() {
            return;
        }
        self.refresh(now);
    }

    /// Processes the timers that are due: the time returned by [`Ledger::poll_timeout`] has been reached. Calls at other times
    /// do no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        let mut is_news = false;
        if self.silence_deadline().is_some_and(|deadline| deadline <= now) {
            self.silent_since = now;
            self.lose_all(now);
            is_news = true;
        }
        if self.controller.poll_timeout().is_some_and(|timer| timer <= now) {
            self.controller.handle_timeout(now);
            is_news = true;
        }
        if is_news {
            self.refresh(now);
        }
    }

    /// The time of the next call of [`Ledger::handle_timeout`] and [`Ledger::allowance`] if nothing happens earlier.
    pub fn poll_timeout(&self) -> Option<Time> {
        let pacing = if let Blocked::Pacing(until) = self.blocked { Some(until) } else { None };
        [pacing, self.silence_deadline(), self.controller.poll_timeout()].into_iter().flatten().min()
    }

    /// The flow has moved to another path: the packets in flight count as lost, and the RTT estimates restart.
    ///
    /// Source: RFC 9000 §9.4
    ///
    /// Differs: the controller is not replaced. Instead it receives a loss with persistent congestion, which reduces
    /// its window to the minimum.
    pub fn on_moved(&mut self, now: Time) {
        self.rtt = RttEstimator::default();
        self.timeouts = Timeouts::of(&self.rtt, Duration::ZERO);
        self.first_sample = None;
        self.lose_all(now);
        self.refresh(now);
    }

    /// Removes the packets in flight without an outcome, because the transport will not report whether they were
    /// acknowledged or lost.
    pub fn on_forgotten(&mut self) {
        let Ledger { packets, inflight, .. } = self;
        packets.forsake(|entry| *inflight -= entry.bytes());
    }

    /// The radio of the sender's device reported a subframe.
    pub fn on_radio(&mut self, now: Time, report: &RadioReport) {
        self.controller.on_radio(report);
        self.refresh(now);
    }

    /// The sender's device reported its information about its flows.
    pub fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        self.controller.on_device(now, flows);
        self.refresh(now);
    }

    /// The controller.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The controller's current control.
    pub fn control(&self) -> Control {
        self.control
    }

    /// The last reason why a packet was not permitted to leave.
    pub fn blocked(&self) -> Blocked {
        self.blocked
    }

    /// Bytes outstanding: sent, neither acknowledged nor declared lost.
    pub fn inflight(&self) -> Bytes {
        self.inflight
    }

    /// Round-trip times; `None` before the first sample.
    pub fn rtt(&self) -> Option<Rtt> {
        self.first_sample.map(|_| self.rtt.get())
    }

    /// Bytes delivered since the start of the flow.
    pub fn delivered(&self) -> Bytes {
        self.rate.delivered()
    }

    /// Counters of packets and bytes since the start of the flow.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Sending credit forfeited because the driver was late; see [`Pacer::forfeited`].
    pub fn forfeited(&self) -> Bytes {
        self.pacer.forfeited()
    }

    /// Appends the names and values of the controller.
    pub fn inspect(&self, out: &mut Inspect) {
        self.controller.inspect(out);
    }

    /// The ledger's number of the packet with the transport's number `name`.
    fn number(&self, name: u64) -> Option<u64> {
        let index = self.names.binary_search(&name).ok()?;
        Some(self.packets.base() + index as u64)
    }

    /// Moves the newly acknowledged packets to `self.acked_packets`. Returns their total size.
    fn acknowledge(&mut self, now: Time) -> Bytes {
        let mut bytes = Bytes::ZERO;
        self.acked_packets.clear();
        self.acked.sort_unstable();
        let Ledger { packets, acked, acked_packets, rate, inflight, counts, .. } = self;
        for number in acked.drain(..) {
            packets.acknowledge(number, number, |number, entry| {
                acked_packets.push(entry.packet(number));
                bytes += entry.bytes();
                counts.acked += 1;
                rate.on_delivered(now, entry.bytes(), entry.sent, &entry.rate);
                match entry.status {
                    Status::Outstanding => *inflight -= entry.bytes(),
                    _ => counts.spurious += 1,
                }
            });
        }
        bytes
    }

    /// Moves the newly lost packets to `self.lost_packets`. Returns their total size.
    fn lose(&mut self) -> Bytes {
        let mut bytes = Bytes::ZERO;
        self.lost_packets.clear();
        self.lost.sort_unstable();
        let Ledger { packets, lost, lost_packets, rate, inflight, .. } = self;
        for number in lost.drain(..) {
            packets.lose_one(number, |number, entry| {
                *inflight -= entry.bytes();
                rate.on_lost(entry.bytes());
                bytes += entry.bytes();
                lost_packets.push(entry.packet(number));
            });
        }
        bytes
    }

    /// Declares all outstanding packets lost.
    fn lose_all(&mut self, now: Time) {
        let prior_inflight = self.inflight;
        let mut bytes = Bytes::ZERO;
        self.lost_packets.clear();
        let Ledger { packets, lost_packets, rate, inflight, .. } = self;
        packets.lose_all(|number, entry| {
            *inflight -= entry.bytes();
            rate.on_lost(entry.bytes());
            bytes += entry.bytes();
            lost_packets.push(entry.packet(number));
        });
        if !self.lost_packets.is_empty() {
            self.tell_losses(now, prior_inflight, bytes, LossCause::Persistent);
        }
        self.forget(now);
    }

    /// Reports `self.lost_packets` to the controller.
    fn tell_losses(&mut self, now: Time, prior_inflight: Bytes, lost: Bytes, cause: LossCause) {
        self.counts.lost += self.lost_packets.len() as u64;
        self.counts.lost_bytes += lost;
        self.controller.on_loss(&Loss {
            now,
            packets: &self.lost_packets,
            lost,
            prior_inflight,
            inflight: self.inflight,
            next_number: self.packets.next_number(),
            cause,
        });
    }

    /// Updates the RTT only if `newest` is the highest packet acknowledged so far.
    ///
    /// Source: RFC 9002 §5.1
    ///
    /// Chosen: transports are configured to acknowledge every packet or every millisecond, so no ACK delay is
    /// subtracted.
    fn sample_rtt(&mut self, now: Time, newest: &SentPacket) -> Option<Duration> {
        if self.largest_acked.is_some_and(|largest| newest.number < largest) {
            return None;
        }
        self.largest_acked = Some(newest.number);
        let sample = now - newest.sent;
        self.rtt.update(sample, Duration::ZERO);
        self.timeouts = Timeouts::of(&self.rtt, Duration::ZERO);
        self.first_sample.get_or_insert(now);
        Some(sample)
    }

    fn silence_deadline(&self) -> Option<Time> {
        (self.inflight > Bytes::ZERO).then(|| self.silent_since + self.timeouts.silence)
    }

    fn forget(&mut self, now: Time) {
        let base = self.packets.base();
        self.packets.forget(now);
        self.names.drain(..(self.packets.base() - base) as usize);
    }

    fn refresh(&mut self, now: Time) {
        self.control = self.controller.control();
        self.pacer.set_rate(now, self.control.pacing_rate);
    }
}

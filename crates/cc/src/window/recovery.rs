//! Episodes of loss or marks: all losses and marks of one window of data count as one, and reduce the window once.
//!
//! ```text
//!  quic   window │▔▔▔▔▔▔╲________________________/▔▔    the window falls at once: silence, then as before
//!  linux         │▔▔▔▔▔▔╲▁                      /▔▔▔    the window follows what is delivered, down to its target
//!                       ╲▁▁▁▁▁▁▁______________/
//!                       loss seen             all that was lost has arrived after all
//! ```

use airpace_core::Bytes;

use crate::controller::{Ack, Loss, Sent, SentPacket};
use crate::scheme::{OptionSpec, Options, SchemeError};
use crate::window::Holes;

/// Rules for counting episodes, and for the fall of the window within an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The window falls at once. An episode ends when a packet that was sent during the episode is acknowledged. A
    /// retransmission is a new packet like any other: if the retransmission is lost, the next episode starts.
    ///
    /// Source: RFC 9002 §7.3.2; RFC 5681 §4.3 (the loss of a retransmission counts again)
    #[default]
    Quic,
    /// The window falls in proportion to the delivered data. An episode ends when all data that was in flight at its
    /// start has arrived. A retransmission that is lost during the episode does not count again.
    ///
    /// Source: RFC 6937; Linux tcp_input.c
    Linux,
}

impl Kind {
    /// The option of schemes that let users choose these rules.
    pub const OPTION: OptionSpec = OptionSpec {
        name: "recovery",
        default: "quic",
        summary: "quic: the window falls at once, a lost retransmission counts again; linux: falls along RFC 6937",
    };

    /// Parses the user's choice.
    ///
    /// # Errors
    /// The value is neither `quic` nor `linux`.
    pub fn of(options: &Options) -> Result<Kind, SchemeError> {
        match options.text(Kind::OPTION.name) {
            "quic" => Ok(Kind::Quic),
            "linux" => Ok(Kind::Linux),
            _ => Err(options.refuse(Kind::OPTION.name, "`quic` or `linux`")),
        }
    }
}

/// Detects episodes.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    kind: Kind,
    /// Packets below this number were sent before the current or last episode was detected.
    until: u64,
    active: bool,
    /// Bytes in flight at the detection.
    inflight: Bytes,
    /// Data of the episodes of [`Kind::Linux`] that has not arrived yet.
    holes: Holes,
    /// Whether packets were declared lost since the last ACK.
    losing: bool,
    /// Whether everything in flight was declared lost and nothing has been acknowledged since.
    collapsed: bool,
    fall: Option<Fall>,
    /// The losses of the current or last episode; `None` if a cause other than losses reduced the window.
    doubted: Option<Doubted>,
}

/// Losses that later ACKs may show to be spurious.
#[derive(Clone, Copy, Debug)]
struct Doubted {
    /// The number of the first lost packet.
    first: u64,
    lost: u64,
    /// Number of these packets that arrived after all.
    arrived: u64,
}

/// A window during its reduction.
///
/// Source: RFC 6937 §3
#[derive(Clone, Copy, Debug)]
struct Fall {
    mss: Bytes,
    /// Window before the fall, in packets. `target` is the window after the fall.
    prior: u64,
    target: u64,
    /// Number of packets delivered since the reduction started. `sent` is the number of packets sent since then.
    delivered: u64,
    sent: u64,
    window: Bytes,
}

impl Recovery {
    /// State before the first episode.
    pub fn new(kind: Kind) -> Recovery {
        Recovery { kind, ..Recovery::default() }
    }

    /// Whether these losses start an episode.
    pub fn begins(&mut self, loss: &Loss<'_>) -> bool {
        self.losing = true;
        let begins = self.begins_with(loss.packets, loss.next_number, loss.inflight);
        if self.kind == Kind::Linux {
            self.holes.on_loss(loss);
        }
        self.doubt(loss, begins);
        begins
    }

    /// Stores losses that later ACKs may show to be spurious. `anew`: these losses reduced the window, so earlier
    /// losses are discarded.
    fn doubt(&mut self, loss: &Loss<'_>, anew: bool) {
        let first = loss.packets.first().map_or(loss.next_number, |packet| packet.number);
        if anew {
            self.doubted = Some(Doubted { first, lost: 0, arrived: 0 });
        }
        if let Some(doubted) = &mut self.doubted {
            doubted.first = doubted.first.min(first);
            doubted.lost += loss.packets.len() as u64;
        }
    }

    /// Whether this ACK shows that nothing was lost in the last episode or collapse: the packets were late, or all
    /// their ACKs were late or lost. In this case the episode is over, and its reduction must be undone.
    ///
    /// Source: RFC 9438 §4.9; RFC 4015; RFC 5682 (of timeouts); Linux tcp_input.c (tcp_try_undo_dsack, tcp_try_undo_loss)
    pub fn was_none(&mut self, ack: &Ack<'_>) -> bool {
        let Some(doubted) = &mut self.doubted else { return false };
        let is_of_it = |packet: &&SentPacket| packet.declared_lost && packet.number >= doubted.first;
        let arrived = ack.packets.iter().filter(is_of_it).count() as u64;
        if arrived == 0 {
            return false;
        }
        doubted.arrived += arrived;
        if doubted.arrived < doubted.lost {
            return false;
        }
        self.doubted = None;
        self.finish();
        true
    }

    /// Whether the marks that this ACK reports, if any, start an episode.
    ///
    /// Source: RFC 3168 §6.1.2
    pub fn begins_by_mark(&mut self, ack: &Ack<'_>) -> bool {
        let begins = ack.ce > 0 && self.begins_with(ack.packets, ack.next_number, ack.inflight);
        if begins {
            self.doubted = None;
        }
        begins
    }

    fn begins_with(&mut self, packets: &[SentPacket], next_number: u64, inflight: Bytes) -> bool {
        let is_of_this = |number| number < self.until || (self.active && self.holes.is_filled_by(number));
        if packets.iter().all(|packet| is_of_this(packet.number)) {
            return false;
        }
        self.until = next_number;
        self.active = true;
        self.inflight = inflight;
        true
    }

    /// The value that a reduction multiplies by its factor: the bytes in flight or the controller's window `cwnd`.
    ///
    /// Source: RFC 5681 §3.1 Eq. 4 (bytes in flight); Linux tcp_cong.c (the window)
    pub fn reduced_from(&self, prior_inflight: Bytes, cwnd: Bytes) -> Bytes {
        match self.kind {
            Kind::Quic => prior_inflight,
            Kind::Linux => cwnd,
        }
    }

    /// Starts the reduction of the window from `prior` to `target` at the start of an episode.
    pub fn falls(&mut self, prior: Bytes, target: Bytes, mss: Bytes) {
        if self.kind == Kind::Quic {
            return;
        }
        let packets = |bytes: Bytes| (bytes.0 / mss.0).max(1);
        let (prior, target) = (packets(prior), packets(target));
        // The first lost packet is retransmitted at once, regardless of the amount in flight. Source: RFC 6937 §3
        let window = self.inflight + mss;
        self.fall = Some(Fall { mss, prior, target, delivered: 0, sent: 0, window });
    }

    /// Records a sent packet.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.holes.on_sent(sent);
        self.fall.iter_mut().for_each(|fall| fall.sent += 1);
    }

    /// Whether the window must not grow yet after this ACK.
    pub fn rests(&mut self, ack: &Ack<'_>) -> bool {
        self.collapsed = false;
        self.holes.on_ack(ack);
        let newest = ack.packets.last().map_or(0, |packet| packet.number);
        let over = match self.kind {
            Kind::Quic => newest >= self.until,
            Kind::Linux => !self.holes.is_open() && newest.saturating_add(1) >= self.until,
        };
        if self.active && over {
            self.finish();
        }
        let losing = std::mem::take(&mut self.losing);
        self.fall.iter_mut().for_each(|fall| fall.on_ack(ack, losing));
        self.active
    }

    /// Ends the episode.
    fn finish(&mut self) {
        self.active = false;
        self.fall = None;
    }

    /// Ends the episode, because everything in flight is lost. Returns whether the threshold of slow start must fall:
    /// if only retransmissions were in flight, it does not fall again.
    ///
    /// Source: RFC 5681 §3.1
    pub fn collapse(&mut self, loss: &Loss<'_>) -> bool {
        self.until = loss.next_number;
        self.active = false;
        self.holes = Holes::default();
        self.fall = None;
        let is_first = !std::mem::replace(&mut self.collapsed, true);
        self.doubt(loss, is_first);
        is_first
    }

    /// Whether an episode is in progress.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// The window to use instead of the controller's window while the window falls; `None` otherwise.
    pub fn window(&self) -> Option<Bytes> {
        self.fall.map(|fall| fall.window)
    }
}

impl Fall {
    /// Source: RFC 6937 §3
    fn on_ack(&mut self, ack: &Ack<'_>, losing: bool) {
        let acked = ack.packets.len() as u64;
        let inflight = ack.inflight.0 / self.mss.0;
        self.delivered += acked;
        let may_send = if inflight > self.target {
            // Proportional reduction: for each `prior` packets delivered, `target` packets are sent.
            self.target.saturating_mul(self.delivered).div_ceil(self.prior).saturating_sub(self.sent)
        } else {
            // Below the target, the window grows back to the target, as in slow start while no further packets are
            // lost.
            let grown = self.delivered.saturating_sub(self.sent).max(acked) + u64::from(!losing);
            grown.min(self.target - inflight)
        };
        let may_send = if self.sent == 0 { may_send.max(1) } else { may_send };
        self.window = ack.inflight + Bytes(may_send * self.mss.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use airpace_core::Time;

    use super::*;
    use crate::controller::{LossCause, RateSample, Rtt, SentPacket};

    const MSS: Bytes = Bytes(1000);

    fn packets(numbers: &[u64]) -> Vec<SentPacket> {
        let packet = |&number| SentPacket {
            number,
            bytes: MSS,
            sent: Time::ZERO,
            inflight_at_send: MSS,
            app_limited: false,
            declared_lost: false,
            lost_at_send: Bytes::ZERO,
        };
        numbers.iter().map(packet).collect()
    }

    /// A sender that has sent `next` packets and has `inflight` packets outstanding.
    struct Flow {
        recovery: Recovery,
        next: u64,
        inflight: u64,
    }

    impl Flow {
        fn new(kind: Kind, window: u64) -> Flow {
            Flow { recovery: Recovery::new(kind), next: window, inflight: window }
        }

        fn lose(&mut self, numbers: &[u64]) -> bool {
            let lost = packets(numbers);
            let prior_inflight = Bytes(self.inflight * MSS.0);
            self.inflight -= numbers.len() as u64;
            self.recovery.begins(&Loss {
                now: Time::ZERO,
                packets: &lost,
                lost: Bytes(numbers.len() as u64 * MSS.0),
                prior_inflight,
                inflight: Bytes(self.inflight * MSS.0),
                next_number: self.next,
                cause: LossCause::Threshold,
            })
        }

        /// Simulates a long time without ACKs. Returns whether the threshold falls.
        fn collapse(&mut self, numbers: &[u64]) -> bool {
            let lost = packets(numbers);
            let prior_inflight = Bytes(self.inflight * MSS.0);
            self.inflight = 0;
            self.recovery.collapse(&Loss {
                now: Time::ZERO,
                packets: &lost,
                lost: prior_inflight,
                prior_inflight,
                inflight: Bytes::ZERO,
                next_number: self.next,
                cause: LossCause::Persistent,
            })
        }

        /// Acknowledges packet `number`. Returns whether the window still must not grow.
        fn acknowledge(&mut self, number: u64) -> bool {
            self.inflight -= 1;
            let acked = packets(&[number]);
            let ack = self.ack(&acked);
            self.recovery.rests(&ack)
        }

        fn ack<'a>(&self, packets: &'a [SentPacket]) -> Ack<'a> {
            let inflight = Bytes(self.inflight * MSS.0);
            Ack {
                now: Time::ZERO,
                packets,
                acked: MSS,
                prior_inflight: inflight + MSS,
                inflight,
                next_number: self.next,
                rtt: Rtt {
                    latest: None,
                    smoothed: Duration::ZERO,
                    variation: Duration::ZERO,
                    min: Duration::ZERO,
                },
                rate: RateSample::default(),
                ce: 0,
                cwnd_limited: true,
                feedback: &[],
            }
        }

        /// Acknowledges a packet that was declared lost. Returns whether this ACK shows that the episode was spurious.
        fn arrive_late(&mut self, number: u64) -> bool {
            self.recovery.was_none(&self.ack(&[SentPacket { declared_lost: true, ..packets(&[number])[0] }]))
        }

        /// Sends as many packets as the falling window permits. Returns their number.
        fn send(&mut self) -> u64 {
            let mut sent = 0;
            while self.recovery.window().is_some_and(|window| (self.inflight + 1) * MSS.0 <= window.0) {
                self.send_one();
                sent += 1;
            }
            sent
        }

        fn send_one(&mut self) {
            self.inflight += 1;
            self.recovery.on_sent(&Sent {
                now: Time::ZERO,
                number: self.next,
                bytes: MSS,
                inflight: Bytes(self.inflight * MSS.0),
                app_limited: false,
            });
            self.next += 1;
        }
    }

    #[test]
    fn a_falling_window_sends_one_packet_for_two_delivered_until_it_is_down() {
        let mut flow = Flow::new(Kind::Linux, 100);
        assert!(flow.lose(&[0]), "a first loss begins an episode");
        flow.recovery.falls(Bytes(100 * MSS.0), Bytes(50 * MSS.0), MSS);
        let mut sent = vec![];
        for number in 3..100 {
            flow.acknowledge(number);
            sent.push(flow.send());
        }
        assert_eq!(sent[0], 1, "the lost packet is sent again at once");
        assert!(sent.iter().all(|&burst| burst <= 1), "the sender makes no burst and no pause");
        assert_eq!(sent.iter().sum::<u64>(), 48, "one packet is sent for every two of 97");
        assert_eq!(flow.inflight, 50, "the window has reached its target");
        assert!(!flow.acknowledge(100), "the retransmission was the last to arrive");
        assert_eq!(flow.recovery.window(), None, "the controller's window is in use again");
    }

    #[test]
    fn a_window_below_its_target_grows_back_to_it() {
        let mut flow = Flow::new(Kind::Linux, 100);
        flow.lose(&(0..80).collect::<Vec<_>>());
        flow.recovery.falls(Bytes(100 * MSS.0), Bytes(50 * MSS.0), MSS);
        for number in 80..100 {
            flow.acknowledge(number);
            assert!(flow.send() <= 2, "at most two packets are sent for one, as in slow start");
        }
        assert_eq!(
            flow.inflight, 39,
            "20 were left and 20 arrived; 39 could be sent, as the first ACK showed the loss"
        );
        for number in 100..120 {
            flow.acknowledge(number);
            flow.send();
        }
        assert_eq!(flow.inflight, 50, "no more than the target is in flight");
    }

    #[test]
    fn a_lost_retransmission_counts_again_for_quic_and_not_for_linux() {
        for (kind, again) in [(Kind::Quic, true), (Kind::Linux, false)] {
            let mut flow = Flow::new(kind, 10);
            assert!(flow.lose(&[0, 1]));
            assert!(!flow.lose(&[4]), "packet 4 was in the same window");
            (0..3).for_each(|_| flow.send_one());
            assert_eq!(flow.lose(&[11]), again, "packets 10 to 12 carry what 0, 1 and 4 carried");
            (0..2).for_each(|_| flow.send_one());
            assert!(flow.lose(&[14]), "13 carries what 11 carried; 14 is new");
        }
    }

    #[test]
    fn an_episode_of_linux_lasts_until_what_was_lost_has_arrived() {
        let mut flow = Flow::new(Kind::Linux, 10);
        flow.lose(&[0]);
        flow.send_one();
        flow.send_one();
        assert!(flow.acknowledge(9), "packet 10, which carries what 0 carried, is still in flight");
        flow.lose(&[10]);
        assert!(flow.acknowledge(11), "packet 10 was lost again, so the episode goes on");
        flow.send_one();
        assert!(!flow.acknowledge(12));
        assert!(!flow.lose(&[2]), "later losses of earlier packets belong to the same episode");
    }

    #[test]
    fn an_episode_was_none_once_all_its_losses_have_arrived() {
        for kind in [Kind::Quic, Kind::Linux] {
            let mut flow = Flow::new(kind, 10);
            flow.lose(&[0, 1]);
            flow.lose(&[4]);
            assert!(!flow.arrive_late(1) && !flow.arrive_late(0), "packet 4 may still be lost");
            assert!(flow.arrive_late(4), "{kind:?}");
            assert!(!flow.recovery.is_active() && flow.recovery.window().is_none());
            assert!(!flow.lose(&[5]), "a reduction that was undone is not made again for the same window");
            assert!(!flow.arrive_late(5), "nothing is left to undo");
        }
    }

    #[test]
    fn a_collapse_was_none_once_all_that_was_lost_has_arrived() {
        for kind in [Kind::Quic, Kind::Linux] {
            let mut flow = Flow::new(kind, 3);
            assert!(flow.collapse(&[0, 1, 2]));
            flow.send_one();
            assert!(!flow.collapse(&[3]), "what was sent again lowers no threshold");
            flow.send_one();
            assert!(!flow.arrive_late(0) && !flow.arrive_late(1) && !flow.arrive_late(3), "{kind:?}");
            assert!(flow.arrive_late(2), "{kind:?}: only ACKs were lost");
            assert!(!flow.acknowledge(4));
            flow.send_one();
            assert!(flow.collapse(&[5]), "the next silence is another one");
        }
    }
}

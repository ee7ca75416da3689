//! Episodes of loss or marks: all losses and marks of one window of data count as one, and reduce the window once.
//!
//! ```text
//!  quic   window │▔▔▔▔▔▔╲________________________/▔▔    the window falls at once: silence, then as before
//!  linux         │▔▔▔▔▔▔╲▁                      /▔▔▔    the window follows what is delivered, down to its target
//!                       ╲▁▁▁▁▁▁▁______________/
//!                       loss seen             all that was lost has arrived after all
//! ```

use std::collections::VecDeque;

use airpace_core::Bytes;

use crate::controller::{Ack, Loss, Sent, SentPacket};
use crate::scheme::{OptionSpec, Options, SchemeError};

/// How episodes are counted, and how the window falls in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The window falls at once. An episode ends when a packet that was sent in it is acknowledged. A retransmission
    /// is a new packet like any other: if it is lost, the next episode begins.
    ///
    /// Source: RFC 9002 §7.3.2; RFC 5681 §4.3 (the loss of a retransmission counts again)
    #[default]
    Quic,
    /// The window falls in proportion to what is delivered. An episode ends when everything that was in flight at
    /// its beginning has arrived, and a retransmission lost in it does not count again.
    ///
    /// Source: RFC 6937; Linux tcp_input.c
    Linux,
}

impl Kind {
    /// The option for schemes that let users choose.
    pub const OPTION: OptionSpec = OptionSpec {
        name: "recovery",
        default: "quic",
        summary: "quic: the window falls at once, a lost retransmission counts again; linux: falls along RFC 6937",
    };

    /// The user's choice.
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

/// The number of separate runs of retransmissions. Packets sent for the first time lie between the runs.
///
/// Chosen: a window that loses every other packet has one run; only losses far apart make more.
const RUNS: usize = 64;

/// Notices episodes.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    kind: Kind,
    /// Packets below this number were sent before the current or last episode was noticed.
    until: u64,
    active: bool,
    /// Bytes in flight when it was noticed.
    inflight: Bytes,
    again: Retransmissions,
    /// Whether packets were declared lost since the last ACK.
    losing: bool,
    fall: Option<Fall>,
    /// The losses of the current or last episode; `None` if something else than losses reduced the window.
    doubted: Option<Doubted>,
}

/// Losses that may prove to be none.
#[derive(Clone, Copy, Debug)]
struct Doubted {
    /// The number of the first packet.
    first: u64,
    lost: u64,
    /// How many of them arrived after all.
    arrived: u64,
}

/// Which packets carry lost data again. A transport that gives each packet its own number does not tell this.
#[derive(Clone, Debug, Default)]
struct Retransmissions {
    /// Lost packets of the episode that were not yet sent again. They are sent before anything new.
    owed: u64,
    /// First and last number of each run, by rising number.
    runs: VecDeque<(u64, u64)>,
}

/// A window on its way down.
///
/// Source: RFC 6937 §3
#[derive(Clone, Copy, Debug)]
struct Fall {
    mss: Bytes,
    /// Packets of the window before and after the fall.
    prior: u64,
    target: u64,
    /// Packets delivered and sent since the fall began.
    delivered: u64,
    sent: u64,
    window: Bytes,
}

impl Recovery {
    /// No episode has been noticed yet.
    pub fn new(kind: Kind) -> Recovery {
        Recovery { kind, ..Recovery::default() }
    }

    /// Whether these losses begin an episode.
    pub fn begins(&mut self, loss: &Loss<'_>) -> bool {
        if self.kind == Kind::Linux {
            self.again.owed += loss.packets.len() as u64;
        }
        self.losing = true;
        let begins = self.begins_with(loss.packets, loss.next_number, loss.inflight);
        let first = loss.packets.first().map_or(loss.next_number, |packet| packet.number);
        if begins {
            self.doubted = Some(Doubted { first, lost: 0, arrived: 0 });
        }
        if let Some(doubted) = &mut self.doubted {
            doubted.first = doubted.first.min(first);
            doubted.lost += loss.packets.len() as u64;
        }
        begins
    }

    /// Whether this ACK shows that nothing was lost in the last episode: the packets were only late. The episode is over
    /// then, and its reduction is to be undone.
    ///
    /// Source: RFC 9438 §4.9; RFC 4015; Linux tcp_input.c (tcp_try_undo_dsack)
    pub fn was_none(&mut self, ack: &Ack<'_>) -> bool {
        let Some(doubted) = &mut self.doubted else { return false };
        let is_of_it = |packet: &&SentPacket| packet.declared_lost && packet.number >= doubted.first;
        let arrived = ack.packets.iter().filter(is_of_it).count() as u64;
        if arrived == 0 {
            return false;
        }
        doubted.arrived += arrived;
        self.again.owed = self.again.owed.saturating_sub(arrived);
        if doubted.arrived < doubted.lost {
            return false;
        }
        self.doubted = None;
        self.finish();
        true
    }

    /// Whether the marks that this ACK reports, if any, begin an episode.
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
        let is_of_this = |number| {
            number < self.until || (self.kind == Kind::Linux && self.active && self.again.holds(number))
        };
        if packets.iter().all(|packet| is_of_this(packet.number)) {
            return false;
        }
        self.until = next_number;
        self.active = true;
        self.again.runs.clear();
        self.inflight = inflight;
        true
    }

    /// The window of which a reduction takes a share; `cwnd` is the controller's window.
    ///
    /// Source: RFC 5681 §3.1 Eq. 4 (bytes in flight); Linux tcp_cong.c (the window)
    pub fn reduced_from(&self, prior_inflight: Bytes, cwnd: Bytes) -> Bytes {
        match self.kind {
            Kind::Quic => prior_inflight,
            Kind::Linux => cwnd,
        }
    }

    /// The episode that has just begun takes the window from `prior` to `target`.
    pub fn falls(&mut self, prior: Bytes, target: Bytes, mss: Bytes) {
        if self.kind == Kind::Quic {
            return;
        }
        let packets = |bytes: Bytes| (bytes.0 / mss.0).max(1);
        let (prior, target) = (packets(prior), packets(target));
        // However much is in flight, the first lost packet is sent again at once. Source: RFC 6937 §3
        let window = self.inflight + mss;
        self.fall = Some(Fall { mss, prior, target, delivered: 0, sent: 0, window });
    }

    /// A packet left.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.again.on_sent(sent.number);
        self.fall.iter_mut().for_each(|fall| fall.sent += 1);
    }

    /// Whether the window must not grow yet after this ACK.
    pub fn rests(&mut self, ack: &Ack<'_>) -> bool {
        let newest = ack.packets.last().map_or(0, |packet| packet.number);
        let over = match self.kind {
            Kind::Quic => newest >= self.until,
            // The last retransmission of an episode is the last to arrive.
            Kind::Linux => {
                self.again.owed == 0 && newest >= self.again.last().unwrap_or(self.until.saturating_sub(1))
            }
        };
        if self.active && over {
            self.finish();
        }
        let losing = std::mem::take(&mut self.losing);
        self.fall.iter_mut().for_each(|fall| fall.on_ack(ack, losing));
        self.active
    }

    /// The episode is over.
    fn finish(&mut self) {
        self.until = self.again.last().map_or(self.until, |last| self.until.max(last.saturating_add(1)));
        self.active = false;
        self.again.runs.clear();
        self.fall = None;
    }

    /// All that was in flight is lost: there is nothing left to recover.
    pub fn collapse(&mut self, loss: &Loss<'_>) {
        self.until = loss.next_number;
        self.active = false;
        self.again = Retransmissions::default();
        self.fall = None;
        self.doubted = None;
    }

    /// Whether an episode is in progress.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// The window to use instead of the controller's while it falls.
    pub fn window(&self) -> Option<Bytes> {
        self.fall.map(|fall| fall.window)
    }
}

impl Retransmissions {
    fn on_sent(&mut self, number: u64) {
        if self.owed == 0 {
            return;
        }
        self.owed -= 1;
        match self.runs.back_mut() {
            Some((_, last)) if last.saturating_add(1) == number => *last = number,
            _ => self.runs.push_back((number, number)),
        }
        if self.runs.len() > RUNS {
            // The two oldest runs become one.
            let oldest = self.runs.pop_front().map_or(number, |(first, _)| first);
            self.runs[0].0 = oldest;
        }
    }

    fn holds(&self, number: u64) -> bool {
        self.runs.iter().any(|&(first, last)| (first..=last).contains(&number))
    }

    fn last(&self) -> Option<u64> {
        self.runs.back().map(|&(_, last)| last)
    }
}

impl Fall {
    /// Source: RFC 6937 §3
    fn on_ack(&mut self, ack: &Ack<'_>, losing: bool) {
        let acked = ack.packets.len() as u64;
        let inflight = ack.inflight.0 / self.mss.0;
        self.delivered += acked;
        let may_send = if inflight > self.target {
            // Proportional reduction: of each `prior` packets delivered, `target` are replaced.
            self.target.saturating_mul(self.delivered).div_ceil(self.prior).saturating_sub(self.sent)
        } else {
            // Back up to the target, in slow start while nothing more is lost.
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

    /// A sender that has sent `next` packets, of which `inflight` are outstanding.
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

        /// Whether the window must still not grow.
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

        /// A packet that was declared lost arrives. Whether that shows the episode to be none.
        fn arrive_late(&mut self, number: u64) -> bool {
            self.recovery.was_none(&self.ack(&[SentPacket { declared_lost: true, ..packets(&[number])[0] }]))
        }

        /// Sends what the falling window allows.
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
    fn runs_of_retransmissions_are_bounded() {
        let mut flow = Flow::new(Kind::Linux, 1_000);
        for number in 0..400 {
            flow.lose(&[number]);
            flow.send_one();
            flow.send_one();
        }
        assert!(flow.recovery.again.runs.len() <= RUNS);
        assert!(flow.recovery.again.holds(1_000), "the oldest runs were merged");
        assert!(flow.recovery.again.holds(1_798) && !flow.recovery.again.holds(1_799));
    }
}

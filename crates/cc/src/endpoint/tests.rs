//! Tests of one sender and one receiver, step by step.

mod carried;
mod replaced;

use std::time::Duration;

use airpace_core::{Bytes, Ecn, FlowId, Rate, Rider, Time};
use proptest::prelude::*;

use super::*;
use crate::controller::{Ack, Arrival, Control, Controller, Inspect, Loss, LossCause, Receiver};
use crate::registry::DeviceFlows;

const MSS: Bytes = Bytes(1500);

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A controller whose window never changes.
struct Fixed {
    packets: u64,
    pacing_rate: Option<Rate>,
    events: std::sync::mpsc::Sender<Event>,
}

/// An event that the controller received, in short form.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Acked {
        numbers: Vec<u64>,
        prior_inflight: u64,
        inflight: u64,
        cwnd_limited: bool,
        ce: u64,
        feedback: Vec<u8>,
    },
    Lost {
        numbers: Vec<u64>,
        inflight: u64,
        cause: LossCause,
    },
    Heard {
        feedback: Vec<u8>,
    },
}

impl Controller for Fixed {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let _ = self.events.send(Event::Acked {
            numbers: ack.packets.iter().map(|packet| packet.number).collect(),
            prior_inflight: ack.prior_inflight.0 / MSS.0,
            inflight: ack.inflight.0 / MSS.0,
            cwnd_limited: ack.cwnd_limited,
            ce: ack.ce,
            feedback: ack.feedback.to_vec(),
        });
    }

    fn on_feedback(&mut self, _now: Time, feedback: &[u8]) {
        let _ = self.events.send(Event::Heard { feedback: feedback.to_vec() });
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        let _ = self.events.send(Event::Lost {
            numbers: loss.packets.iter().map(|packet| packet.number).collect(),
            inflight: loss.inflight.0 / MSS.0,
            cause: loss.cause,
        });
    }

    fn control(&self) -> Control {
        Control { cwnd: Bytes(self.packets * MSS.0), pacing_rate: self.pacing_rate }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Fixed";
    }
}

struct Story {
    sender: Sender,
    told: std::sync::mpsc::Receiver<Event>,
    acks: u64,
}

impl Story {
    fn new(packets: u64, backlog: Backlog) -> Story {
        let (events, told) = std::sync::mpsc::channel();
        let controller = Box::new(Fixed { packets, pacing_rate: None, events });
        let config = SenderConfig {
            flow: FlowId(0),
            mss: MSS,
            pacer: PacerConfig::default(),
            ack: AckPolicy::default(),
        };
        Story { sender: Sender::new(config, controller, backlog), told, acks: 0 }
    }

    /// Sends all packets that may leave. Returns their numbers.
    fn send(&mut self, now: Time) -> Vec<u64> {
        std::iter::from_fn(|| self.sender.poll_transmit(now)).map(|transmit| transmit.number).collect()
    }

    fn ack(&mut self, now: Time, ranges: &[(u64, u64)]) -> Outcome {
        let frame = frame(self.acks, ranges, &[]);
        self.acks += 1;
        self.sender.on_ack(now, &frame).expect("a proper ACK")
    }

    /// Processes an ACK from a receiver that permits `packets` outstanding packets.
    fn ack_allowing(&mut self, now: Time, ranges: &[(u64, u64)], packets: Option<u64>) {
        let window = packets.map(|packets| Bytes(packets * MSS.0));
        let frame = AckFrame { window, ..frame(self.acks, ranges, &[]) };
        self.acks += 1;
        self.sender.on_ack(now, &frame).expect("a proper ACK");
    }

    fn told(&self) -> Vec<Event> {
        self.told.try_iter().collect()
    }

    /// The numbers of all packets that were reported to the controller as lost.
    fn lost(&self) -> Vec<u64> {
        let lost = |told| if let Event::Lost { numbers, .. } = told { numbers } else { vec![] };
        self.told().into_iter().flat_map(lost).collect()
    }
}

fn frame(number: u64, newest_first: &[(u64, u64)], feedback: &[u8]) -> AckFrame {
    let mut ranges = Ranges::EMPTY;
    for &(lowest, highest) in newest_first {
        assert!(ranges.push(lowest, highest));
    }
    AckFrame {
        number,
        largest: newest_first[0].1,
        ranges,
        ce: 0,
        feedback: Rider::new(feedback).unwrap(),
        window: None,
        delay: Duration::ZERO,
    }
}

#[test]
fn the_receivers_window_holds_any_sender_back_and_does_not_count_as_congestion() {
    let mut story = Story::new(4, Backlog::Unlimited);
    assert_eq!(story.send(ms(0)), [0, 1, 2, 3], "nothing is advertised before the first ACK");
    story.ack_allowing(ms(40), &[(0, 0)], Some(2));
    assert_eq!(story.send(ms(40)), [0_u64; 0], "three packets are outstanding, but only two are allowed");
    story.ack_allowing(ms(41), &[(0, 2)], Some(2));
    assert_eq!(story.send(ms(41)), [4]);
    let limited = |told| matches!(told, Event::Acked { cwnd_limited: true, .. });
    assert_eq!(story.told().into_iter().map(limited).collect::<Vec<_>>(), [true, false]);
    story.ack_allowing(ms(80), &[(0, 4)], Some(0));
    assert_eq!(story.send(ms(80)), [5], "if the window is closed, one packet asks whether it is open again");
    story.ack_allowing(ms(120), &[(0, 4)], None);
    assert_eq!(story.send(ms(120)), [6, 7, 8], "an ACK without new packets can open the window");
}

#[test]
fn the_window_opens_as_acks_come_in() {
    let mut story = Story::new(4, Backlog::Unlimited);
    assert_eq!(story.send(ms(0)), [0, 1, 2, 3]);
    let outcome = story.ack(ms(40), &[(0, 1)]);
    let acked = outcome.acked.unwrap();
    assert_eq!((acked.largest, acked.acked, acked.inflight), (1, Bytes(3000), Bytes(3000)));
    assert_eq!(acked.rtt, Some(Duration::from_millis(40)));
    assert_eq!(story.send(ms(40)), [4, 5]);
    let expected = Event::Acked {
        numbers: vec![0, 1],
        prior_inflight: 4,
        inflight: 2,
        cwnd_limited: true,
        ce: 0,
        feedback: vec![],
    };
    assert_eq!(story.told(), [expected]);
}

#[test]
fn three_later_packets_make_a_loss_and_its_bytes_are_sent_again() {
    let mut story = Story::new(10, Backlog::Limited(Bytes(10 * 1500)));
    assert_eq!(story.send(ms(0)).len(), 10);
    story.ack(ms(40), &[(1, 2)]);
    assert_eq!(story.lost(), [] as [u64; 0], "two later packets may be reordering");
    let outcome = story.ack(ms(41), &[(1, 3)]);
    assert_eq!(outcome.lost.map(|lost| (lost.packets, lost.bytes)), Some((1, MSS)));
    assert_eq!(story.lost(), [0]);
    assert_eq!(story.send(ms(41)), [10], "the lost bytes leave in a packet with a new number");
    assert_eq!(story.sender.backlog(), Backlog::Limited(Bytes::ZERO));
}

#[test]
fn time_makes_a_loss_where_too_few_packets_follow() {
    let mut story = Story::new(2, Backlog::Limited(Bytes(3000)));
    story.send(ms(0));
    story.ack(ms(80), &[(1, 1)]);
    assert_eq!(story.sender.poll_timeout(), Some(ms(90)), "the packet is lost 9/8 of the RTT after it left");
    story.sender.handle_timeout(ms(90));
    assert_eq!(story.lost(), [0]);
}

#[test]
fn a_late_ack_shows_a_loss_to_be_spurious_and_its_bytes_count_as_delivered() {
    let mut story = Story::new(5, Backlog::Limited(Bytes(5 * 1500)));
    story.send(ms(0));
    story.ack(ms(40), &[(1, 4)]);
    assert_eq!(story.sender.backlog(), Backlog::Limited(MSS));
    let acked = story.ack(ms(41), &[(0, 4)]).acked.unwrap();
    assert_eq!((acked.acked, acked.rtt), (MSS, None), "an old packet gives no RTT");
    assert_eq!(story.sender.spurious_losses(), 1);
    assert_eq!(story.sender.delivered(), Bytes(5 * 1500));
    assert_eq!(story.sender.backlog(), Backlog::Limited(Bytes::ZERO), "nothing is left to send again");
}

#[test]
fn silence_sends_one_probe_past_the_window_and_backs_off() {
    let mut story = Story::new(2, Backlog::Unlimited);
    story.send(ms(0));
    story.ack(ms(100), &[(0, 0)]);
    assert_eq!(story.send(ms(100)), [2]);
    // Probe timeout (PTO): the smoothed RTT (100 ms) plus four times the variation (50 ms), after the packet sent at
    // 100 ms.
    assert_eq!(story.sender.poll_timeout(), Some(ms(400)));
    story.sender.handle_timeout(ms(400));
    assert_eq!(story.send(ms(400)), [3], "one probe leaves although the window is full");
    assert_eq!(story.sender.poll_timeout(), Some(ms(1000)), "the next probe waits twice as long");
}

#[test]
fn long_silence_loses_everything_and_says_so() {
    let mut story = Story::new(3, Backlog::Unlimited);
    story.send(ms(0));
    story.ack(ms(40), &[(0, 0)]);
    story.send(ms(40));
    story.told();
    let (now, lost) = loop {
        let now = story.sender.poll_timeout().expect("a sender with packets in flight has a timer");
        if let Some(lost) = story.sender.handle_timeout(now).lost {
            break (now, lost);
        }
        story.send(now);
    };
    assert_eq!(now, ms(1040), "one second after the last ACK");
    assert_eq!(story.sender.inflight(), Bytes::ZERO);
    let [Event::Lost { numbers, inflight: 0, cause: LossCause::Persistent }] = &story.told()[..] else {
        panic!("one persistent loss must be reported");
    };
    assert_eq!(numbers.len() as u64, lost.packets);
    assert!(numbers.len() > 3, "the window and its probes are lost");
}

#[test]
fn an_outage_shown_by_an_ack_is_persistent_congestion() {
    let mut story = Story::new(3, Backlog::Unlimited);
    story.send(ms(0));
    for (now, number) in [(40, 0), (41, 1), (80, 2)] {
        story.ack(ms(now), &[(0, number)]);
        story.send(ms(now));
    }
    story.told();
    // PTO probes are sent during an outage. The fourth packet after the start of the outage arrives.
    let mut now = ms(80);
    let mut newest = 5;
    while now < ms(800) {
        now = story.sender.poll_timeout().unwrap();
        story.sender.handle_timeout(now);
        newest = story.send(now).last().copied().unwrap_or(newest);
    }
    story.ack(now + Duration::from_millis(40), &[(newest, newest), (0, 2)]);
    let causes: Vec<_> = story
        .told()
        .into_iter()
        .filter_map(|told| if let Event::Lost { cause, .. } = told { Some(cause) } else { None })
        .collect();
    assert_eq!(causes, [LossCause::Persistent], "lost packets span more than three probe timeouts");
}

#[test]
fn a_finished_application_is_probed_with_a_copy() {
    let mut story = Story::new(4, Backlog::Limited(Bytes(2_000)));
    assert_eq!(story.send(ms(0)), [0, 1]);
    assert_eq!(story.sender.inflight(), Bytes(2_000), "the last packet holds only what is left");
    let probe_at = story.sender.poll_timeout().unwrap();
    story.sender.handle_timeout(probe_at);
    assert_eq!(story.send(probe_at), [2]);
    story.ack(probe_at + Duration::from_millis(40), &[(2, 2)]);
    assert_eq!(
        story.sender.backlog(),
        Backlog::Limited(Bytes(2_000)),
        "both originals are sent again, but not the copy"
    );
}

#[test]
fn a_controller_hears_only_feedback_that_is_news() {
    let mut story = Story::new(4, Backlog::Unlimited);
    story.send(ms(0));
    story.sender.on_ack(ms(40), &frame(1, &[(1, 1)], &[7])).unwrap();
    story.sender.on_ack(ms(41), &frame(0, &[(0, 0)], &[6])).unwrap();
    let feedback: Vec<Vec<u8>> = story
        .told()
        .into_iter()
        .filter_map(|told| if let Event::Acked { feedback, .. } = told { Some(feedback) } else { None })
        .collect();
    assert_eq!(
        feedback,
        [vec![7], vec![]],
        "the overtaken ACK still acknowledges, but its feedback is ignored"
    );
}

#[test]
fn what_a_receiver_says_of_its_own_accord_is_heard_if_it_is_the_newest() {
    let mut story = Story::new(2, Backlog::Unlimited);
    story.send(ms(0));
    for (number, feedback) in [(1, &[1][..]), (3, &[3]), (2, &[2]), (4, &[])] {
        story.sender.on_ack(ms(40 + number), &frame(number, &[(0, 0)], feedback)).expect("a proper ACK");
    }
    let feedback: Vec<Vec<u8>> = story
        .told()
        .into_iter()
        .map(|told| match told {
            Event::Acked { feedback, .. } | Event::Heard { feedback } => feedback,
            Event::Lost { .. } => panic!("nothing is lost"),
        })
        .collect();
    assert_eq!(feedback, [[1], [3]], "overtaken and empty feedback is not reported");
}

#[test]
fn a_mark_is_told_once_whichever_acks_are_lost_or_overtaken() {
    let mut acker = Acker::new(AckPolicy { every: 8, ..AckPolicy::default() }, None);
    let mut arrive = |number, ecn| {
        let arrival = Arrival {
            now: ms(20),
            sent: ms(0),
            number,
            bytes: MSS,
            ecn,
            header: &[],
            device: DeviceFlows::ALONE,
        };
        acker.on_packet(&arrival);
        acker.poll_ack(ms(20))
    };
    assert!(arrive(0, Ecn::Ect).is_none(), "the first of eight packets may wait for its ACK");
    let lost = arrive(1, Ecn::Ce).expect("a mark is acknowledged at once");
    assert_eq!(lost.ce, 1);
    let late = arrive(1, Ecn::Ce).expect("a duplicate is acknowledged at once");
    assert_eq!(late.ce, 1, "a duplicate's mark does not count");
    let newest = arrive(2, Ecn::Ce).expect("another mark");
    let mut story = Story::new(4, Backlog::Unlimited);
    story.send(ms(0));
    let after = frame(9, &[(0, 3)], &[]);
    for frame in [&newest, &late, &AckFrame { ce: 3, ..after }] {
        story.sender.on_ack(ms(40), frame).expect("a proper ACK");
    }
    let told: Vec<u64> = story
        .told()
        .iter()
        .filter_map(|told| if let Event::Acked { ce, .. } = told { Some(*ce) } else { None })
        .collect();
    assert_eq!(
        told,
        [2, 1],
        "the first ACK also has the lost ACK's mark, and the overtaken ACK has no new one"
    );
}

#[test]
fn nonsense_is_refused_and_changes_nothing() {
    let mut story = Story::new(4, Backlog::Unlimited);
    story.send(ms(0));
    let refused =
        |story: &mut Story, ranges: &[(u64, u64)]| story.sender.on_ack(ms(40), &frame(0, ranges, &[]));
    assert_eq!(refused(&mut story, &[(0, 4)]), Err(AckError::Unsent { largest: 4, next_number: 4 }));
    assert_eq!(refused(&mut story, &[(3, 1)]), Err(AckError::Ranges));
    assert_eq!(refused(&mut story, &[(1, 2), (0, 1)]), Err(AckError::Ranges));
    let marks = AckFrame { ce: 5, ..frame(0, &[(0, 0)], &[]) };
    assert_eq!(story.sender.on_ack(ms(40), &marks), Err(AckError::Marks { ce: 5, next_number: 4 }));
    assert_eq!(story.sender.inflight(), Bytes(6000));
    assert!(story.told().is_empty());
}

#[test]
fn a_closed_sender_is_silent_but_listens() {
    let mut story = Story::new(4, Backlog::Unlimited);
    story.send(ms(0));
    story.sender.close();
    story.ack(ms(40), &[(0, 0)]);
    assert!(story.send(ms(40)).is_empty());
    assert_eq!((story.sender.poll_timeout(), story.sender.delivered()), (None, MSS));
}

fn arrive(acker: &mut Acker, now: Time, number: u64) -> Received {
    acker.on_packet(&Arrival {
        now,
        sent: Time::ZERO,
        number,
        bytes: MSS,
        ecn: Ecn::NotEct,
        header: &[],
        device: DeviceFlows::ALONE,
    })
}

#[test]
fn a_receiver_reports_what_it_has_newest_first() {
    let mut acker = Acker::new(AckPolicy::default(), None);
    for number in [0, 1, 3, 6, 5] {
        assert!(!arrive(&mut acker, ms(number), number).duplicate);
    }
    let ack = acker.poll_ack(ms(9)).unwrap();
    assert_eq!(ack.ranges.as_slice(), [(5, 6), (3, 3), (0, 1)]);
    assert_eq!((ack.number, ack.largest), (0, 6));
    assert_eq!(acker.poll_ack(ms(9)), None, "each ACK is sent only once");
    assert!(arrive(&mut acker, ms(10), 3).duplicate);
    assert_eq!(acker.duplicates(), 1);
}

#[test]
fn a_receiver_that_waits_acknowledges_every_second_packet_or_after_a_while() {
    let mut acker = Acker::new(AckPolicy { every: 2, max_delay: Duration::from_millis(25) }, None);
    arrive(&mut acker, ms(0), 0);
    assert_eq!((acker.poll_ack(ms(0)), acker.poll_timeout()), (None, Some(ms(25))));
    let late = acker.poll_ack(ms(25)).unwrap();
    assert_eq!(late.delay, Duration::from_millis(25));
    arrive(&mut acker, ms(30), 1);
    arrive(&mut acker, ms(31), 2);
    assert!(acker.poll_ack(ms(31)).is_some(), "the second packet is acknowledged at once");
    arrive(&mut acker, ms(32), 4);
    assert!(acker.poll_ack(ms(32)).is_some(), "a packet after a gap is acknowledged at once");
}

/// A scheme's receiver that sends feedback every 20 ms, starting with the first packet. The feedback is the number of
/// timer ticks so far.
struct Ticking {
    due: Option<Time>,
    ticks: u8,
}

impl Receiver for Ticking {
    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        self.due.get_or_insert(arrival.now + Duration::from_millis(20));
    }

    fn handle_timeout(&mut self, now: Time) -> bool {
        self.ticks += 1;
        self.due = Some(now + Duration::from_millis(20));
        true
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }

    fn feedback(&mut self, _now: Time) -> Rider {
        Rider::new(&[self.ticks]).unwrap()
    }

    fn inspect(&self, _out: &mut Inspect) {}
}

#[test]
fn a_receiver_half_may_speak_though_nothing_arrived() {
    let policy = AckPolicy { every: 2, max_delay: Duration::from_millis(25) };
    let mut acker = Acker::new(policy, Some(Box::new(Ticking { due: None, ticks: 0 })));
    assert_eq!(acker.poll_timeout(), None);
    arrive(&mut acker, ms(0), 0);
    assert_eq!((acker.poll_ack(ms(0)), acker.poll_timeout()), (None, Some(ms(20))));
    acker.handle_timeout(ms(19));
    assert_eq!(acker.poll_ack(ms(19)), None, "it is not time yet");
    acker.handle_timeout(ms(20));
    let early = acker.poll_ack(ms(20)).expect("the packet that waits for a second one is acknowledged too");
    assert_eq!((early.number, early.largest, early.feedback.as_bytes()), (0, 0, &[1][..]));
    assert_eq!((acker.poll_ack(ms(20)), acker.poll_timeout()), (None, Some(ms(40))));
    acker.handle_timeout(ms(40));
    let repeated = acker.poll_ack(ms(40)).expect("only the feedback is new");
    assert_eq!((repeated.number, repeated.ranges, repeated.feedback.as_bytes()), (1, early.ranges, &[2][..]));
}

#[test]
fn no_ack_leaves_before_there_is_a_packet_to_name() {
    let mut acker = Acker::new(AckPolicy::default(), Some(Box::new(Ticking { due: Some(ms(0)), ticks: 0 })));
    acker.handle_timeout(ms(0));
    assert_eq!(
        (acker.poll_ack(ms(0)), acker.poll_timeout()),
        (None, Some(ms(20))),
        "the driver does not spin"
    );
    arrive(&mut acker, ms(1), 0);
    assert!(acker.poll_ack(ms(1)).is_some());
}

proptest! {
    /// The sender processes or refuses any ACK, and its count of bytes in flight stays correct.
    #[test]
    fn a_sender_survives_any_ack(
        steps in prop::collection::vec((0u64..50, 0u64..40, 0u64..6, any::<bool>()), 1..200),
    ) {
        let mut story = Story::new(20, Backlog::Unlimited);
        let mut now = ms(0);
        for (wait, largest, length, second) in steps {
            now += Duration::from_millis(wait);
            let sent = story.sender.delivered().0 / MSS.0;
            story.send(now);
            let largest = (sent + largest).saturating_sub(10);
            let lowest = largest.wrapping_sub(length);
            let mut ranges = vec![(lowest, largest)];
            if second {
                ranges.push((lowest.wrapping_sub(4), lowest.wrapping_sub(2)));
            }
            let _ = story.sender.on_ack(now, &frame(now.as_nanos(), &ranges, &[]));
            if story.sender.poll_timeout().is_some_and(|next| next <= now) {
                story.sender.handle_timeout(now);
            }
            prop_assert!(story.sender.inflight() <= Bytes(40 * MSS.0));
        }
    }

    /// For any order of arrivals, the receiver's record of received packets is exact.
    #[test]
    fn a_receiver_knows_what_it_has(numbers in prop::collection::vec(0u64..60, 1..150)) {
        let mut acker = Acker::new(AckPolicy::default(), None);
        let mut seen = std::collections::BTreeSet::new();
        for number in numbers {
            prop_assert_eq!(arrive(&mut acker, ms(0), number).duplicate, !seen.insert(number));
            let ack = acker.poll_ack(ms(0)).unwrap();
            prop_assert!(ack.ranges.is_well_formed());
            for &(lowest, highest) in ack.ranges.as_slice() {
                prop_assert!((lowest..=highest).all(|number| seen.contains(&number)));
                prop_assert!(!seen.contains(&(highest + 1)));
            }
            prop_assert_eq!(ack.largest, *seen.last().unwrap());
        }
    }
}

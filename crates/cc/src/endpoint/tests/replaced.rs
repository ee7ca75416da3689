//! Tests of controllers and receivers that are replaced while a flow runs.

use airpace_core::Streams;

use super::*;
use crate::scheme::Setup;
use crate::schemes::{SchemeSpec, choices};

#[test]
fn a_controller_that_takes_over_decides_at_once_and_hears_of_what_left_before() {
    let mut story = Story::new(4, Backlog::Unlimited);
    assert_eq!(story.send(ms(0)), [0, 1, 2, 3]);
    story.ack(ms(40), &[(0, 1)]);
    story.send(ms(40));
    let before = story.told().len();
    let (events, told) = std::sync::mpsc::channel();
    let rate = Some(Rate::from_mbps(12.0));
    story.sender.set_controller(ms(50), Box::new(Fixed { packets: 6, pacing_rate: rate, events }));
    assert_eq!(story.sender.control(), Control { cwnd: Bytes(6 * MSS.0), pacing_rate: rate });
    assert_eq!(story.send(ms(50)), [6], "the second packet of the larger window waits for the new rate");
    story.ack(ms(80), &[(0, 5)]);
    assert_eq!((before, story.told().len()), (1, 0), "who is no longer in charge hears nothing");
    let Ok(Event::Acked { numbers, prior_inflight: 5, inflight: 1, .. }) = told.recv() else {
        panic!("the new one hears of the acknowledgement");
    };
    assert_eq!(numbers, [2, 3, 4, 5]);
    assert_eq!(story.sender.rtt().min, Duration::from_millis(40), "what was measured stays known");
    assert_eq!(story.sender.delivered_packets(), 6);
}

/// Every scheme can take over a flow, even after packets, losses and times without ACKs under the previous scheme.
#[test]
fn any_scheme_takes_over_from_any_point() {
    for (place, name) in choices().into_iter().enumerate() {
        let mut story = Story::new(20, Backlog::Unlimited);
        story.send(ms(0));
        story.ack(ms(40), &[(0, 9)]);
        story.send(ms(40));
        let setup = Setup::new(MSS, Streams::new(7).stream("replaced"));
        let ends =
            SchemeSpec::parse(&name).and_then(|spec| spec.build(&setup)).expect("a scheme of the list");
        story.sender.set_controller(ms(60), ends.controller);
        let (mut now, mut newest, mut lowest) = (ms(60), 29, 12 + place as u64 % 3);
        while now < ms(4_000) {
            now = story.sender.poll_timeout().map_or(now + Duration::from_millis(10), |next| next.max(now));
            now = now.min(ms(now.as_millis() / 10 * 10 + 10));
            story.sender.handle_timeout(now);
            newest = story.send(now).last().copied().unwrap_or(newest);
            // Acknowledgements stop for a second, and about every third packet is lost.
            if !(1_000..2_000).contains(&now.as_millis()) && newest >= lowest + 2 {
                story.ack(now, &[(lowest, newest)]);
                lowest = newest + 2;
            }
        }
        let control = story.sender.control();
        assert!(control.cwnd >= MSS, "{name}: {control:?}");
        let sent = story.sender.delivered_packets();
        assert!(sent > 20, "{name} sent {sent} packets in 4 s");
    }
}

#[test]
fn a_receiver_half_that_is_put_in_place_later_speaks_from_then_on() {
    let mut acker = Acker::new(AckPolicy::default(), None);
    arrive(&mut acker, ms(0), 0);
    assert_eq!(acker.poll_ack(ms(0)).expect("an ACK").feedback, Rider::EMPTY);
    acker.set_receiver(Some(Box::new(Ticking { due: Some(ms(10)), ticks: 0 })));
    assert_eq!(acker.poll_timeout(), Some(ms(10)));
    acker.handle_timeout(ms(10));
    let ack = acker.poll_ack(ms(10)).expect("the half asked for one");
    assert_eq!((ack.number, ack.feedback.as_bytes()), (1, &[1][..]));
    acker.set_receiver(None);
    arrive(&mut acker, ms(20), 1);
    assert_eq!(acker.poll_ack(ms(20)).expect("an ACK").feedback, Rider::EMPTY);
}

//! Tests of a sender whose driver carries bytes: the outcomes that the sender reports by packet number, and how an
//! outbox uses these outcomes.

use super::*;

const fn waiting(next: u64, rest: u64) -> Backlog {
    Backlog::Carried { next: Bytes(next), rest: Bytes(rest) }
}

const fn delivered(number: u64) -> Settled {
    Settled::Delivered { number, declared_lost: false }
}

const fn lost(number: u64) -> Settled {
    Settled::Lost { number }
}

impl Story {
    fn settled(&mut self) -> Vec<Settled> {
        std::iter::from_fn(|| self.sender.poll_settled()).collect()
    }

    /// Sends packets of these sizes, with `rest` bytes of backlog after the last one.
    fn send_sizes(&mut self, now: Time, sizes: &[u64], rest: u64) -> Vec<Transmit> {
        let after = |place: usize| sizes[place + 1..].iter().sum::<u64>() + rest;
        let mut sent = vec![];
        for (place, &size) in sizes.iter().enumerate() {
            self.sender.set_backlog(waiting(size, after(place)));
            sent.extend(self.sender.poll_transmit(now));
        }
        sent
    }
}

#[test]
fn every_number_is_told_delivered_or_lost_in_rising_order() {
    let mut story = Story::new(10, Backlog::NOTHING_CARRIED);
    story.send_sizes(ms(0), &[1500; 7], 0);
    story.ack(ms(40), &[(4, 5), (1, 1)]);
    let expected = [delivered(1), delivered(4), delivered(5), lost(0), lost(2)];
    assert_eq!(story.settled(), expected, "a packet is lost after three later ones; 3 and 6 may still come");
    story.ack(ms(41), &[(3, 5), (1, 1)]);
    assert_eq!(story.settled(), [delivered(3)], "what was reported is not reported again");
    assert_eq!(story.sender.remembered_from(), 0, "a late ACK may still show the loss of 0 to be spurious");
}

#[test]
fn what_is_not_drained_at_once_is_not_forgotten() {
    let mut story = Story::new(4, Backlog::NOTHING_CARRIED);
    story.send_sizes(ms(0), &[1500; 3], 0);
    story.ack(ms(40), &[(0, 0)]);
    story.ack(ms(41), &[(0, 2)]);
    assert_eq!(story.settled(), [delivered(0), delivered(1), delivered(2)]);
    assert_eq!(story.sender.remembered_from(), 3, "all packets are settled");
}

#[test]
fn a_spurious_loss_is_told_lost_and_later_delivered() {
    let mut story = Story::new(10, Backlog::NOTHING_CARRIED);
    story.send_sizes(ms(0), &[1500; 5], 0);
    story.ack(ms(40), &[(1, 4)]);
    assert_eq!(story.settled().last(), Some(&lost(0)));
    story.ack(ms(41), &[(0, 4)]);
    assert_eq!(story.settled(), [Settled::Delivered { number: 0, declared_lost: true }]);
    story.ack(ms(42), &[(0, 4)]);
    assert_eq!(story.settled(), [], "it is reported only once");
}

#[test]
fn silence_tells_that_all_is_lost_and_a_number_may_be_forgotten_when_no_ack_counts_any_more() {
    let mut story = Story::new(2, Backlog::NOTHING_CARRIED);
    story.send_sizes(ms(0), &[1500; 2], 0);
    let mut now = ms(0);
    while story.sender.inflight() > Bytes::ZERO {
        now = story.sender.poll_timeout().expect("a sender with packets in flight has a timer");
        story.sender.handle_timeout(now);
    }
    assert_eq!(story.settled(), [lost(0), lost(1)]);
    assert_eq!(story.sender.remembered_from(), 0);
    let late = now + Duration::from_secs(3);
    story.send_sizes(late, &[1500; 1], 0);
    story.ack(late + Duration::from_millis(40), &[(2, 2)]);
    assert_eq!((story.settled(), story.sender.remembered_from()), (vec![delivered(2)], 3));
    story.ack(late + Duration::from_millis(50), &[(0, 2)]);
    assert_eq!(story.settled(), [], "after three seconds, packet 0 is forgotten");
}

#[test]
fn the_driver_says_how_large_the_next_packet_is_and_whether_it_is_the_last() {
    let mut story = Story::new(10, Backlog::NOTHING_CARRIED);
    assert_eq!(story.send(ms(0)), [] as [u64; 0], "there is nothing to send");
    story.sender.set_backlog(waiting(400, 2_000));
    let sizes: Vec<Bytes> =
        std::iter::from_fn(|| story.sender.poll_transmit(ms(0))).map(|transmit| transmit.bytes).collect();
    assert_eq!(sizes, [Bytes(400)], "the driver did not give the size of the second packet");
    assert_eq!(story.sender.backlog(), waiting(0, 2_000));
    story.sender.set_backlog(waiting(2_000, 0));
    assert_eq!(story.sender.poll_transmit(ms(0)).map(|transmit| transmit.bytes), Some(MSS));
    assert_eq!(story.sender.backlog(), waiting(0, 500), "the bytes that did not fit come after the packet");
}

#[test]
fn a_sender_that_is_told_of_real_bytes_books_no_loss_by_itself() {
    let mut story = Story::new(10, Backlog::NOTHING_CARRIED);
    story.send_sizes(ms(0), &[1500; 5], 0);
    story.ack(ms(40), &[(1, 4)]);
    assert_eq!(story.sender.backlog(), Backlog::NOTHING_CARRIED);
    assert_eq!(story.send(ms(40)), [] as [u64; 0], "the driver decides what to do about packet 0");
}

#[test]
fn a_probe_without_new_bytes_names_the_packet_that_it_repeats() {
    let mut story = Story::new(4, Backlog::NOTHING_CARRIED);
    let sent = story.send_sizes(ms(0), &[1500, 600], 0);
    assert_eq!(sent.iter().map(|transmit| transmit.copy_of).collect::<Vec<_>>(), [None, None]);
    story.ack(ms(40), &[(0, 0)]);
    let probe_at = story.sender.poll_timeout().unwrap();
    story.sender.handle_timeout(probe_at);
    let probe = story.sender.poll_transmit(probe_at).expect("a probe");
    assert_eq!((probe.number, probe.bytes, probe.copy_of), (2, Bytes(600), Some(1)));
}

#[test]
fn a_driver_that_only_counts_is_told_nothing_by_number() {
    for backlog in [Backlog::Unlimited, Backlog::Limited(Bytes(7_500))] {
        let mut story = Story::new(5, backlog);
        story.send(ms(0));
        story.ack(ms(40), &[(1, 4)]);
        assert_eq!(story.settled(), [], "{backlog:?}");
    }
}

/// Sends the data of `outbox`. Returns the numbers of the packets and the offsets that they carry.
fn send(outbox: &mut Outbox, story: &mut Story, now: Time) -> Vec<(u64, std::ops::Range<u64>)> {
    std::iter::from_fn(|| outbox.poll_transmit(&mut story.sender, now))
        .map(|(transmit, range)| (transmit.number, range))
        .collect()
}

/// An outbox for `most` bytes whose packets have no overhead.
fn outbox(most: u64) -> Outbox {
    Outbox::new(Bytes(most), Bytes::ZERO)
}

#[test]
fn bytes_go_out_in_order_and_lost_ones_before_new_ones() {
    let (mut story, mut outbox) = (Story::new(5, Backlog::NOTHING_CARRIED), outbox(100_000));
    assert_eq!(outbox.hand_over(Bytes(9_000)), Bytes(9_000));
    let first = send(&mut outbox, &mut story, ms(0));
    assert_eq!(first, [(0, 0..1500), (1, 1500..3000), (2, 3000..4500), (3, 4500..6000), (4, 6000..7500)]);
    story.ack(ms(40), &[(1, 4)]);
    assert_eq!(send(&mut outbox, &mut story, ms(40)), [(5, 0..1500), (6, 7500..9000)]);
    assert_eq!((outbox.arrived(), outbox.held()), (0, Bytes(9_000)), "the first byte is still missing");
    story.ack(ms(80), &[(1, 6)]);
    assert_eq!(send(&mut outbox, &mut story, ms(80)), []);
    assert_eq!((outbox.arrived(), outbox.is_empty()), (9_000, true));
}

#[test]
fn the_overhead_of_a_packet_leaves_less_room_for_bytes() {
    let mut story = Story::new(5, Backlog::NOTHING_CARRIED);
    let mut outbox = Outbox::new(Bytes(100_000), Bytes(50));
    let _ = outbox.hand_over(Bytes(1_600));
    let (first, range) = outbox.poll_transmit(&mut story.sender, ms(0)).expect("a packet");
    assert_eq!((first.bytes, range), (MSS, 0..1_450));
    let (second, range) = outbox.poll_transmit(&mut story.sender, ms(0)).expect("the rest");
    assert_eq!((second.bytes, range), (Bytes(200), 1_450..1_600));
}

#[test]
fn bytes_of_a_spurious_loss_that_have_not_left_again_are_not_sent_again() {
    let (mut story, mut outbox) = (Story::new(5, Backlog::NOTHING_CARRIED), outbox(100_000));
    let _ = outbox.hand_over(Bytes(7_500));
    send(&mut outbox, &mut story, ms(0));
    story.ack(ms(40), &[(1, 4)]);
    story.ack(ms(40), &[(0, 4)]);
    assert_eq!(send(&mut outbox, &mut story, ms(40)), []);
    assert!(outbox.is_empty());
}

#[test]
fn bytes_of_a_spurious_loss_that_have_left_again_cost_no_other_byte_its_place() {
    let (mut story, mut outbox) = (Story::new(5, Backlog::NOTHING_CARRIED), outbox(100_000));
    let _ = outbox.hand_over(Bytes(7_500));
    send(&mut outbox, &mut story, ms(0));
    story.ack(ms(40), &[(1, 4)]);
    assert_eq!(send(&mut outbox, &mut story, ms(40)), [(5, 0..1500)]);
    story.ack(ms(41), &[(0, 4)]);
    let _ = outbox.hand_over(Bytes(7_500));
    let more: Vec<_> =
        (7_500..13_500).step_by(1_500).zip(6..).map(|(from, number)| (number, from..from + 1_500)).collect();
    assert_eq!(send(&mut outbox, &mut story, ms(41)), more, "only the new bytes are sent");
    story.ack(ms(80), &[(6, 9), (0, 4)]);
    assert_eq!(
        send(&mut outbox, &mut story, ms(80)),
        [(10, 13_500..15_000)],
        "packet 5 is lost, but its bytes have arrived"
    );
    story.ack(ms(120), &[(6, 10), (0, 4)]);
    assert_eq!(send(&mut outbox, &mut story, ms(120)), []);
    assert!(outbox.is_empty());
}

#[test]
fn a_copy_that_arrives_stands_for_the_packet_that_it_repeats() {
    let (mut story, mut outbox) = (Story::new(4, Backlog::NOTHING_CARRIED), outbox(100_000));
    let _ = outbox.hand_over(Bytes(2_000));
    assert_eq!(send(&mut outbox, &mut story, ms(0)), [(0, 0..1500), (1, 1500..2000)]);
    let probe_at = story.sender.poll_timeout().expect("a probe");
    story.sender.handle_timeout(probe_at);
    assert_eq!(send(&mut outbox, &mut story, probe_at), [(2, 0..1500)], "the oldest packet is sent again");
    story.ack(probe_at + Duration::from_millis(40), &[(1, 2)]);
    assert_eq!(
        story.sender.inflight(),
        Bytes::ZERO,
        "the original is older than a round trip, so it is lost"
    );
    assert_eq!(send(&mut outbox, &mut story, probe_at + Duration::from_millis(40)), []);
    assert!(outbox.is_empty(), "its bytes arrived with the copy");
}

#[test]
fn the_loss_of_a_copy_asks_for_nothing() {
    let (mut story, mut outbox) = (Story::new(4, Backlog::NOTHING_CARRIED), outbox(100_000));
    let _ = outbox.hand_over(Bytes(1_500));
    send(&mut outbox, &mut story, ms(0));
    let mut now = ms(0);
    for number in 1..=2 {
        now = story.sender.poll_timeout().expect("a probe");
        story.sender.handle_timeout(now);
        assert_eq!(send(&mut outbox, &mut story, now), [(number, 0..1500)]);
    }
    let later = now + Duration::from_millis(900);
    story.ack(later, &[(2, 2), (0, 0)]);
    assert_eq!(
        send(&mut outbox, &mut story, later),
        [],
        "packet 1 is lost, but the bytes that it repeated have arrived"
    );
    assert!(outbox.is_empty());
}

#[test]
fn a_copy_of_what_has_arrived_carries_nothing() {
    let (mut story, mut outbox) = (Story::new(5, Backlog::NOTHING_CARRIED), outbox(100_000));
    let _ = outbox.hand_over(Bytes(7_500));
    send(&mut outbox, &mut story, ms(0));
    story.ack(ms(40), &[(1, 4)]);
    assert_eq!(send(&mut outbox, &mut story, ms(40)), [(5, 0..1500)]);
    story.ack(ms(41), &[(0, 4)]);
    let probe_at = story.sender.poll_timeout().expect("packet 5 is outstanding");
    story.sender.handle_timeout(probe_at);
    assert_eq!(send(&mut outbox, &mut story, probe_at), [(6, 7_500..7_500)]);
}

#[test]
fn an_application_hands_over_no_more_than_the_bound_and_hears_when_there_is_room() {
    let (mut story, mut outbox) = (Story::new(100, Backlog::NOTHING_CARRIED), outbox(9_000));
    assert_eq!((outbox.room(), outbox.poll_room()), (Bytes(9_000), None), "the application does not wait");
    assert_eq!(outbox.hand_over(Bytes(20_000)), Bytes(9_000));
    assert_eq!((outbox.room(), outbox.poll_room()), (Bytes::ZERO, None));
    send(&mut outbox, &mut story, ms(0));
    story.ack(ms(40), &[(0, 0)]);
    send(&mut outbox, &mut story, ms(40));
    assert_eq!(
        (outbox.room(), outbox.poll_room()),
        (MSS, None),
        "room for one packet of six is not reported"
    );
    story.ack(ms(41), &[(0, 1)]);
    send(&mut outbox, &mut story, ms(41));
    assert_eq!(outbox.poll_room(), Some(Bytes(3_000)));
    assert_eq!(outbox.poll_room(), None, "room is reported only once");
    assert_eq!(outbox.hand_over(Bytes(3_000)), Bytes(3_000));
    story.ack(ms(42), &[(0, 5)]);
    send(&mut outbox, &mut story, ms(42));
    assert_eq!(outbox.poll_room(), None, "an application that handed over all its bytes does not wait");
}

#[test]
fn a_byte_that_is_missing_keeps_the_room_of_those_after_it() {
    let (mut story, mut outbox) = (Story::new(100, Backlog::NOTHING_CARRIED), outbox(9_000));
    let _ = outbox.hand_over(Bytes(9_000));
    send(&mut outbox, &mut story, ms(0));
    story.ack(ms(40), &[(1, 5)]);
    send(&mut outbox, &mut story, ms(40));
    assert_eq!(outbox.room(), Bytes::ZERO, "the far end also waits for the first byte");
    story.ack(ms(80), &[(1, 6)]);
    send(&mut outbox, &mut story, ms(80));
    assert_eq!(outbox.room(), Bytes(9_000));
}

#[test]
fn a_bound_may_change_while_bytes_are_held() {
    let mut outbox = outbox(9_000);
    let _ = outbox.hand_over(Bytes(9_000));
    outbox.set_most(Bytes(3_000));
    assert_eq!((outbox.held(), outbox.room()), (Bytes(9_000), Bytes::ZERO));
    assert_eq!(outbox.hand_over(Bytes(1)), Bytes::ZERO);
    outbox.set_most(Bytes(15_000));
    assert_eq!(outbox.poll_room(), Some(Bytes(6_000)));
}

proptest! {
    /// For any acknowledgements in any order, a number is reported as delivered at most once and as lost at most once.
    /// It is never reported as lost after it was delivered, and never if it is below the lowest number in the sender's
    /// memory.
    #[test]
    fn a_number_is_told_once_of_each(
        steps in prop::collection::vec((0u64..60, 0u64..30, 0u64..8), 1..150),
    ) {
        let mut story = Story::new(16, Backlog::NOTHING_CARRIED);
        let mut fates = std::collections::BTreeMap::<u64, (bool, bool)>::new();
        let (mut now, mut next, mut floor) = (ms(0), 0, 0);
        for (wait, back, length) in steps {
            now += Duration::from_millis(wait);
            story.send_sizes(now, &[1500; 4], 1).iter().for_each(|sent| next = sent.number + 1);
            let largest = next.saturating_sub(1 + back % next.max(1));
            let _ = story.sender.on_ack(now, &frame(now.as_nanos(), &[(largest.saturating_sub(length), largest)], &[]));
            story.sender.handle_timeout(now);
            for settled in story.settled() {
                match settled {
                    Settled::Delivered { number, declared_lost } => {
                        let fate = fates.entry(number).or_default();
                        prop_assert_eq!((fate.0, fate.1), (false, declared_lost));
                        fate.0 = true;
                        prop_assert!(number >= floor);
                    }
                    Settled::Lost { number } => {
                        let fate = fates.entry(number).or_default();
                        prop_assert_eq!(*fate, (false, false));
                        fate.1 = true;
                        prop_assert!(number >= floor);
                    }
                }
            }
            floor = story.sender.remembered_from();
            let outstanding = (floor..next).filter(|number| !fates.contains_key(number)).count() as u64;
            prop_assert_eq!(Bytes(outstanding * MSS.0), story.sender.inflight());
            prop_assert!((0..floor).all(|number| fates.contains_key(&number)), "every forgotten number was reported");
        }
    }
}

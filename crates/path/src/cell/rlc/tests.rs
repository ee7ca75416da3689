use airpace_core::{DeviceId, Ecn, FlowId};
use proptest::prelude::*;

use super::super::config::Rat;
use super::*;

fn packet(number: u64, bytes: u64) -> Packet {
    Packet {
        flow: FlowId(0),
        device: DeviceId(0),
        number,
        bytes: Bytes(bytes),
        sent: Time::ZERO,
        ecn: Ecn::NotEct,
    }
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn rlc(mode: RlcMode, packets: &[u64]) -> Rlc {
    let mut rlc = {
        let config = RlcConfig { mode, ..RlcConfig::default() };
        Rlc::new(&config, Framing::new(Rat::Lte, &config), Bytes(1_000_000))
    };
    for (number, &bytes) in packets.iter().enumerate() {
        assert!(rlc.push(Time::ZERO, packet(number as u64, bytes)));
    }
    rlc.admit(Time::ZERO);
    rlc
}

/// Returns a function that appends the number and the fate of each packet to `list`.
fn into(list: &mut Vec<(u64, Fate)>) -> impl FnMut(Packet, Fate) {
    |packet, fate| list.push((packet.number, fate))
}

#[test]
fn a_packet_is_delivered_with_its_last_segment() {
    let mut rlc = rlc(RlcMode::Acknowledged, &[1000]);
    let mut out = Vec::new();
    let (first, second) = (rlc.fill(at(0), 600), rlc.fill(at(1), 600));
    rlc.decoded(at(0), first, &mut into(&mut out));
    assert!(out.is_empty(), "half a packet was delivered");
    rlc.decoded(at(1), second, &mut into(&mut out));
    assert_eq!(out, [(0, Fate::Delivered)]);
}

#[test]
fn headers_take_what_the_model_says() {
    let mut rlc = rlc(RlcMode::Acknowledged, &[1000, 1000]);
    // The block has two packets with PDCP headers, two bytes of length indicators, 2 bytes of RLC header and 3 bytes of
    // MAC header.
    assert_eq!(rlc.wanted(at(0)), 2 * 1002 + 2 + 2 + 3);
    let mut out = Vec::new();
    let wanted = rlc.wanted(at(0)) as u32;
    let content = rlc.fill(at(0), wanted);
    rlc.decoded(at(0), content, &mut into(&mut out));
    assert_eq!(out.len(), 2, "a block of exactly the wanted size takes everything");
    assert_eq!((rlc.wanted(at(1)), rlc.queued()), (0, Bytes::ZERO));
}

#[test]
fn what_follows_a_lost_block_waits_for_it_and_leaves_with_it() {
    let mut rlc = rlc(RlcMode::Acknowledged, &[1000; 9]);
    let blocks: Vec<_> = (0..9).map(|now| rlc.fill(at(now), 1007)).collect();
    let mut out = Vec::new();
    for (now, block) in (1..8).zip(&blocks[1..8]) {
        rlc.decoded(at(now), *block, &mut into(&mut out));
        assert!(out.is_empty(), "block {now} overtook the lost one");
    }
    rlc.decoded(at(8), blocks[0], &mut into(&mut out));
    assert_eq!(out.iter().map(|&(number, _)| number).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
}

#[test]
fn acknowledged_mode_sends_again_what_harq_gave_up() {
    let mut rlc = rlc(RlcMode::Acknowledged, &[1000, 1000]);
    let (first, second) = (rlc.fill(at(0), 1007), rlc.fill(at(1), 1007));
    let mut out = Vec::new();
    rlc.decoded(at(1), second, &mut into(&mut out));
    rlc.failed(at(32), first);
    assert_eq!(rlc.wanted(at(33)), 0, "the receiver's STATUS takes its time");
    let now = 32 + u64::from(RlcConfig::default().status_delay_ms);
    // The retransmission is divided into two segments, because the blocks are small.
    for now in [now, now + 1] {
        let again = rlc.fill(at(now), 600);
        rlc.decoded(at(now), again, &mut into(&mut out));
    }
    assert_eq!(out, [(0, Fate::Delivered), (1, Fate::Delivered)]);
}

#[test]
fn unacknowledged_mode_gives_up_and_loses_only_what_the_block_held() {
    let mut rlc = rlc(RlcMode::Unacknowledged, &[1000; 4]);
    // The second block contains the end of packet 0, the whole of packet 1 and the start of packet 2.
    let blocks = [rlc.fill(at(0), 600), rlc.fill(at(1), 1700), rlc.fill(at(2), 4000)];
    let mut out = Vec::new();
    rlc.decoded(at(0), blocks[0], &mut into(&mut out));
    rlc.decoded(at(2), blocks[2], &mut into(&mut out));
    rlc.failed(at(25), blocks[1]);
    rlc.expire(at(41), &mut into(&mut out));
    assert!(out.is_empty(), "t-Reordering began in subframe 2");
    rlc.expire(at(42), &mut into(&mut out));
    let lost = Fate::HarqFailure;
    assert_eq!(out, [(0, lost), (1, lost), (2, lost), (3, Fate::Delivered)]);
}

#[test]
fn a_full_queue_refuses() {
    let config = RlcConfig::default();
    let mut rlc = Rlc::new(&config, Framing::new(Rat::Lte, &config), Bytes(2500));
    assert!(rlc.push(Time::ZERO, packet(0, 1500)));
    assert!(!rlc.push(Time::ZERO, packet(1, 1500)));
    assert!(rlc.push(Time::ZERO, packet(2, 1000)));
}

proptest! {
    #[test]
    fn every_packet_ends_once_and_in_order(
        mode in prop_oneof![Just(RlcMode::Acknowledged), Just(RlcMode::Unacknowledged)],
        sizes in prop::collection::vec(1_u64..3000, 1..40),
        // Per subframe: size of the block, number of subframes until its outcome, and the outcome (0 failed, 1 decoded).
        steps in prop::collection::vec((0_u32..5000, 0_u64..30, 0_u8..4), 60),
        handover in prop::option::of(0_usize..60),
    ) {
        let mut rlc = rlc(mode, &sizes);
        let mut out = Vec::new();
        let mut on_air: Vec<(u64, Content, u8)> = Vec::new();
        for now in 0..5000_u64 {
            let (room, after, outcome) = steps.get(now as usize).copied().unwrap_or((3000, 1, 1));
            if handover == Some(now as usize) {
                on_air.clear();
                rlc.forward(at(now + 40));
            }
            let content = rlc.fill(at(now), room);
            on_air.push((now + after, content, outcome));
            let (ended, rest): (Vec<_>, Vec<_>) = on_air.into_iter().partition(|&(ends_at, ..)| ends_at <= now);
            on_air = rest;
            for (_, content, outcome) in ended {
                match outcome {
                    0 => rlc.failed(at(now), content),
                    _ => rlc.decoded(at(now), content, &mut into(&mut out)),
                }
            }
            rlc.expire(at(now), &mut into(&mut out));
        }
        prop_assert_eq!(out.iter().map(|&(number, _)| number).collect::<Vec<_>>(), (0..sizes.len() as u64).collect::<Vec<_>>());
        if mode == RlcMode::Acknowledged {
            prop_assert!(out.iter().all(|&(_, fate)| fate == Fate::Delivered));
        }
        prop_assert_eq!(rlc.queued(), Bytes::ZERO);
    }
}

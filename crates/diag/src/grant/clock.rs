//! Subframe numbers without their wrap, and the time of each subframe.
//!
//! A packet has one stamp, the time at which the modem made it, and records of many earlier subframes. A frame number
//! tells the place of a subframe within 10.24 s. The stamp tells which 10.24 s, if records are late by less than half
//! of that. Some are later: records that the MAC layer kept when a connection ended come out with the next connection,
//! and would seem to be in the future.

use crate::stamp::Stamp;

/// Subframes after which frame numbers begin again.
///
/// Source: TS 36.211 §4; TS 38.211 §4.3.1 (1,024 frames of ten)
pub const CYCLE: u64 = 10_240;

const SUBFRAME_NANOS: i128 = 1_000_000;

/// How long the clock looks for the least delay before it is set by that delay again.
///
/// Chosen: ten seconds. The clocks of a modem and of a cell drift by less than a microsecond in that time, and if a
/// modem sets its clock by the network, this clock follows soon.
const SPAN_NANOS: i128 = 10_000_000_000;

/// How far in the future a record can be and still only show that earlier ones were late.
///
/// Chosen: 20 ms, more than the delays of the fastest packets differ.
const AHEAD_NANOS: i128 = 20_000_000;

/// Records with a delay below this confirm the clock.
const FAST_NANOS: i128 = 5_000_000;

/// After this many confirmations, a record from the future counts as a late one. This many of those in a row show that
/// frames are numbered differently now.
///
/// Chosen: eight and three.
const SURE: u32 = 8;
const DOUBTS: u32 = 3;

/// When each subframe began, learned from the packets that come fastest.
#[derive(Clone, Debug, Default)]
pub struct FrameClock {
    /// When subframe 0 began, in nanoseconds of the modem's clock.
    epoch: Option<i128>,
    /// The newest subframe placed.
    newest: u64,
    /// The newest stamp.
    stamp: i128,
    /// Since when the least delay is looked for, and the least delay so far.
    least: Option<(i128, i128)>,
    /// Whether a prompt packet has set the clock.
    is_set: bool,
    confirmations: u32,
    doubts: u32,
}

/// A subframe with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// `10 · SFN + subframe` without the wrap.
    pub subframe: u64,
    /// When it began, by the modem's clock.
    pub time: Stamp,
}

impl FrameClock {
    /// From here on, the frames are another cell's. Their numbers are not related to the earlier ones.
    pub fn new_cell(&mut self) {
        *self = FrameClock { newest: self.newest, stamp: self.stamp, ..FrameClock::default() };
    }

    /// Places a record of subframe `within` (`10 · SFN + subframe`) in a packet with that stamp. Packets that are not
    /// `prompt` count only as long as no others have come.
    pub fn place(&mut self, stamp: Stamp, within: u16, is_prompt: bool) -> Placed {
        let (now, within) = (i128::from(stamp.nanos()), u64::from(within) % CYCLE);
        // Chosen: a stamp that goes back by more than a second is from another log, or from a clock that was set.
        if now + 1_000_000_000 < self.stamp {
            self.new_cell();
        }
        let is_first = is_prompt && !self.is_set;
        self.is_set |= is_prompt;
        self.stamp = now;
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => now - i128::from(self.first(within)) * SUBFRAME_NANOS,
        };
        let expected = (now - epoch) / SUBFRAME_NANOS;
        let half = i128::from(CYCLE / 2);
        let ahead = (i128::from(within) - expected + half).rem_euclid(i128::from(CYCLE)) - half;
        let subframe = u64::try_from(expected + ahead).unwrap_or(within);
        let delay = now - epoch - i128::from(subframe) * SUBFRAME_NANOS;
        let is_believed = is_prompt && (self.confirmations < SURE || self.doubts >= DOUBTS);
        if delay < -AHEAD_NANOS && self.is_set && !is_believed && subframe >= CYCLE {
            self.doubts += u32::from(is_prompt);
            return placed(epoch, subframe - CYCLE);
        }
        let mut epoch = epoch;
        if is_first {
            // Whatever earlier packets said.
            epoch += delay;
        } else if is_prompt || !self.is_set {
            self.doubts = 0;
            self.confirmations = match delay {
                ..0 => 0,
                0..FAST_NANOS => self.confirmations + 1,
                _ => self.confirmations,
            };
            // Nothing is logged before it happens: a record from the future shows that all before it were late.
            epoch += delay.min(0) + self.drift(now, delay.max(0));
        }
        self.epoch = Some(epoch);
        self.newest = self.newest.max(subframe);
        placed(epoch, subframe)
    }

    /// The number of a cell's first subframe: higher than all before.
    fn first(&self, within: u64) -> u64 {
        match self.newest {
            // Subframes before the first can still come: they need numbers too.
            0 => within + CYCLE,
            newest => newest + 1 + (within + CYCLE - (newest + 1) % CYCLE) % CYCLE,
        }
    }

    /// At the end of a span: by how much its fastest packets are later than the clock. Otherwise 0.
    fn drift(&mut self, now: i128, delay: i128) -> i128 {
        let (since, least) = match self.least {
            Some((since, least)) if since <= now => (since, least.min(delay)),
            _ => (now, delay),
        };
        let is_over = now - since > SPAN_NANOS;
        self.least = (!is_over).then_some((since, least));
        if is_over { least } else { 0 }
    }
}

fn placed(epoch: i128, subframe: u64) -> Placed {
    let time = epoch + i128::from(subframe) * SUBFRAME_NANOS;
    Placed { subframe, time: Stamp::from_nanos(u64::try_from(time).unwrap_or(0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGIN: u64 = 1_299_133_682_000_000_000;

    fn stamp(millis: u64) -> Stamp {
        Stamp::from_nanos(BEGIN + millis * 1_000_000)
    }

    #[test]
    fn numbers_do_not_wrap_and_times_are_those_of_the_fastest_packet() {
        let mut clock = FrameClock::default();
        let first = clock.place(stamp(500), 10_000, true);
        assert_eq!(first.subframe % CYCLE, 10_000);
        let fast = clock.place(stamp(741), 1, true);
        assert_eq!(fast.subframe, first.subframe + 241, "frame 0 comes after frame 1023");
        let late = clock.place(stamp(2_000), 10_100, true);
        assert_eq!(late.subframe, first.subframe + 100, "a record of 1.4 s before");
        assert_eq!(late.time.nanos() / 1_000_000, stamp(600).nanos() / 1_000_000);
    }

    #[test]
    fn a_late_packet_at_first_is_set_right_by_the_first_fast_one() {
        let mut clock = FrameClock::default();
        let late = clock.place(stamp(1_000), 100, true);
        let fast = clock.place(stamp(1_002), 900, true);
        assert_eq!(fast.subframe - late.subframe, 800);
        let again = clock.place(stamp(1_003), 100, true);
        assert_eq!(again.subframe, late.subframe, "the same subframe has the same number");
        assert_eq!(fast.time.nanos() - again.time.nanos(), 800_000_000);
    }

    #[test]
    fn another_cells_frames_come_after_those_of_the_first() {
        let mut clock = FrameClock::default();
        let before = clock.place(stamp(0), 5_000, true);
        clock.new_cell();
        let after = clock.place(stamp(20), 4_000, true);
        assert!(after.subframe > before.subframe);
        assert_eq!(after.subframe % CYCLE, 4_000);
        assert!(after.time >= before.time, "its time is the modem's");
    }

    #[test]
    fn what_the_mac_layer_kept_from_the_connection_before_is_of_then() {
        let mut clock = FrameClock::default();
        let before = clock.place(stamp(0), 9_000, true);
        clock.place(stamp(9_960), 8_720, true);
        let kept = clock.place(stamp(9_960), 9_010, false);
        assert_eq!(kept.subframe, before.subframe + 10);
        let after = clock.place(stamp(9_961), 8_721, true);
        assert_eq!(
            after.time.nanos() / 1_000_000,
            stamp(9_961).nanos() / 1_000_000,
            "the clock is as it was"
        );
    }

    #[test]
    fn a_record_from_the_future_is_late_and_four_are_another_cells() {
        let mut clock = FrameClock::default();
        for at in 0..20 {
            clock.place(stamp(at), 5_000 + at as u16, true);
        }
        let odd = clock.place(stamp(20), 6_000, true);
        assert!(odd.time < stamp(0), "of the frames before");
        let placed: Vec<_> = (21..26).map(|at| clock.place(stamp(at), 5_980 + at as u16, true)).collect();
        assert_eq!(placed[4].time.nanos() / 1_000_000, stamp(25).nanos() / 1_000_000);
        assert!(placed[4].subframe > 5_020 + CYCLE);
    }

    #[test]
    fn a_clock_that_is_set_is_followed() {
        let mut clock = FrameClock::default();
        let placed: Vec<Placed> = (0..30_000)
            .step_by(5)
            .map(|ms| clock.place(stamp(if ms < 5_000 { ms } else { ms + 700 }), (ms % CYCLE) as u16, true))
            .collect();
        let last = placed.last().unwrap();
        assert_eq!(last.time.nanos() / 1_000_000, stamp(30_695).nanos() / 1_000_000);
        assert!(placed.windows(2).all(|pair| pair[1].subframe == pair[0].subframe + 5));
    }

    proptest! {
        #[test]
        fn subframes_keep_their_order_and_distance_however_late_their_packets_are(
            steps in prop::collection::vec((0u64..900, 0u64..2_500), 1..80),
            phase in 0u64..CYCLE,
        ) {
            let mut clock = FrameClock::default();
            let mut at = 3_000;
            let mut placed = vec![];
            // A packet without delay comes now and then, so that the clock is right.
            for (step, delay) in [(0, 0)].into_iter().chain(steps) {
                at += step;
                let _ = clock.place(stamp(at), ((at + phase) % CYCLE) as u16, true);
                let record = at.saturating_sub(delay).max(3_000);
                placed.push((record, clock.place(stamp(at), ((record + phase) % CYCLE) as u16, true)));
            }
            for pair in placed.windows(2) {
                let distance = pair[1].0 as i64 - pair[0].0 as i64;
                prop_assert_eq!(pair[1].1.subframe as i64 - pair[0].1.subframe as i64, distance);
                let nanos = pair[1].1.time.nanos() as i64 - pair[0].1.time.nanos() as i64;
                prop_assert!((nanos - distance * 1_000_000).abs() < 60, "{}", nanos);
            }
        }

        #[test]
        fn no_stamp_makes_it_panic(all in prop::collection::vec((any::<u64>(), any::<u16>(), any::<bool>()), 0..40)) {
            let mut clock = FrameClock::default();
            for (raw, within, new) in all {
                if new {
                    clock.new_cell();
                }
                let placed = clock.place(Stamp(raw), within, true);
                prop_assert_eq!(placed.subframe % CYCLE, u64::from(within) % CYCLE);
            }
        }
    }
}

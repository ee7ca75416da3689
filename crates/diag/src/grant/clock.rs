//! Frame clock: unwrapped subframe numbers, and the time of each subframe.
//!
//! A packet has one stamp, the time at which the modem made it, and records of many earlier subframes. A frame number
//! identifies a subframe within 10.24 s. The stamp resolves the ambiguity of 10.24 s if records are late by less than
//! half of that. Some records are later: those that the MAC layer kept when a connection ended are logged with the next
//! connection, and would appear to be in the future.

use crate::stamp::Stamp;

/// Number of subframes after which frame numbers wrap.
///
/// Source: TS 36.211 §4; TS 38.211 §4.3.1 (1,024 frames of ten)
pub const CYCLE: u64 = 10_240;

const SUBFRAME_NANOS: i128 = 1_000_000;

/// Duration over which the minimum delay is determined before the clock is adjusted by that delay (ns).
///
/// Chosen: ten seconds. The clocks of a modem and of a cell drift by less than a microsecond in that time. If a modem
/// sets its clock to the network's time, the frame clock is adjusted after this duration.
const SPAN_NANOS: i128 = 10_000_000_000;

/// Maximum time by which a record may appear to lie in the future (ns). Such a record shows that earlier records were
/// late, and adjusts the clock. A record further in the future is an old record.
///
/// Chosen: 20 ms, more than the difference between the delays of the fastest packets.
const AHEAD_NANOS: i128 = 20_000_000;

/// Maximum delay of a record that confirms the clock (ns).
const FAST_NANOS: i128 = 5_000_000;

/// `SURE`: number of confirmations after which a record from the future counts as late. `DOUBTS`: number of consecutive
/// records from the future that show that the numbering of frames has changed.
///
/// Chosen: `SURE` is eight and `DOUBTS` is three.
const SURE: u32 = 8;
const DOUBTS: u32 = 3;

/// `MIN_BEHIND`: minimum delay of a record that may show that the numbering of frames has changed. `BEHIND_FOR`: time
/// for which all prompt records must have such a delay. `MAX_SPREAD`: maximum difference of these delays.
///
/// Chosen: 100 ms each. Records that were kept for a long time are logged at once, with delays that differ by as much as
/// their ages; frames of another cell advance with the time.
const MIN_BEHIND: i128 = 100_000_000;
const BEHIND_FOR: i128 = 100_000_000;
const MAX_SPREAD: i128 = 100_000_000;

/// Start time of each subframe, estimated from the packets with the lowest delay.
#[derive(Clone, Debug, Default)]
pub struct FrameClock {
    /// Start of subframe 0, in nanoseconds of the modem's clock.
    epoch: Option<i128>,
    /// The newest subframe so far.
    newest: u64,
    /// Stamp of the last record (ns).
    stamp: i128,
    /// Start of the search for the minimum delay, and the minimum delay so far.
    least: Option<(i128, i128)>,
    /// Whether a prompt packet has set the clock.
    is_set: bool,
    confirmations: u32,
    doubts: u32,
    behind: Option<Behind>,
}

/// Consecutive prompt records with a long delay.
#[derive(Clone, Copy, Debug)]
struct Behind {
    /// Stamp of the first record (ns).
    since: i128,
    /// Minimum and maximum delay (ns).
    least: i128,
    most: i128,
}

/// A subframe with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// `10 · SFN + subframe` without the wrap.
    pub subframe: u64,
    /// Start of the subframe by the modem's clock.
    pub time: Stamp,
}

impl FrameClock {
    /// Resets the clock for frames of another cell, whose numbers are not related to the earlier numbers.
    pub fn new_cell(&mut self) {
        *self = FrameClock { newest: self.newest, stamp: self.stamp, ..FrameClock::default() };
    }

    /// Determines number and time of subframe `within` (`10 · SFN + subframe`) in a record of a packet with stamp
    /// `stamp`. Packets that are not `prompt` adjust the clock only until the first prompt packet.
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
        if is_prompt && self.is_other_numbering(now, delay) {
            self.new_cell();
            return self.place(stamp, within as u16, true);
        }
        let mut epoch = epoch;
        if is_first {
            // The first prompt packet sets the clock, independent of earlier packets.
            epoch += delay;
        } else if is_prompt || !self.is_set {
            self.doubts = 0;
            self.confirmations = match delay {
                ..0 => 0,
                0..FAST_NANOS => self.confirmations + 1,
                _ => self.confirmations,
            };
            // No event is logged before it happens: a record from the future shows that all records before it were late.
            epoch += delay.min(0) + self.drift(now, delay.max(0));
        }
        self.epoch = Some(epoch);
        self.newest = self.newest.max(subframe);
        placed(epoch, subframe)
    }

    /// Whether the last prompt records show that the numbering of frames has changed to lower numbers: their delays are
    /// long, but nearly equal for some time.
    fn is_other_numbering(&mut self, now: i128, delay: i128) -> bool {
        if delay < MIN_BEHIND || self.confirmations < SURE {
            self.behind = None;
            return false;
        }
        let run = self.behind.filter(|run| run.since <= now);
        let mut run = run.unwrap_or(Behind { since: now, least: delay, most: delay });
        (run.least, run.most) = (run.least.min(delay), run.most.max(delay));
        if run.most - run.least > MAX_SPREAD {
            run = Behind { since: now, least: delay, most: delay };
        }
        self.behind = Some(run);
        now - run.since >= BEHIND_FOR
    }

    /// Returns the number of a cell's first subframe: higher than all earlier numbers.
    fn first(&self, within: u64) -> u64 {
        match self.newest {
            // Leave numbers for subframes before the first one: their records may still arrive.
            0 => within + CYCLE,
            newest => newest + 1 + (within + CYCLE - (newest + 1) % CYCLE) % CYCLE,
        }
    }

    /// At the end of a span, returns the minimum delay of its packets relative to the clock; otherwise 0.
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
            // The first packet has no delay, so that the clock is correct.
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

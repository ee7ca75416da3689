//! The buffer-based rule: the buffer's level determines the bitrate.

use std::time::Duration;

use super::{Sample, Situation};

/// Level of the buffer below which the rule requests the lowest bitrate (the reservoir), as a fraction of the usable buffer.
///
/// Source: Huang, Johari, McKeown, Trunnell, Watson 2014, BBA-0 (90 s of a buffer of 240 s)
const RESERVOIR: f64 = 90.0 / 240.0;

/// Level of the buffer from which the rule requests the highest bitrate, as a fraction of the usable buffer.
///
/// Source: Huang, Johari, McKeown, Trunnell, Watson 2014, BBA-0 (90 % of the buffer)
const UPPER: f64 = 0.9;

/// Gain of buffer per segment, in segments, for a step up in the start-up phase, at an empty buffer and at the upper level.
/// A gain of 0.875 means that the segment arrived in an eighth of its length.
///
/// Source: Huang, Johari, McKeown, Trunnell, Watson 2014, BBA-2
const STEP_GAIN: (f64, f64) = (0.875, 0.5);

/// The buffer-based rule: BBA-0 with the start-up phase of BBA-2.
///
/// In the steady state, the level of the buffer gives a bitrate: the lowest up to the reservoir, the highest from the upper
/// level, and linear in between. The representation changes if this bitrate reaches the next representation's. In the
/// start-up phase the representation rises by one step after each segment that arrived fast enough. The phase ends if the
/// buffer shrinks, or if its level gives a higher representation.
///
/// Source: Huang, Johari, McKeown, Trunnell, Watson 2014, Algorithm 1 and BBA-2
///
/// Differs: the map is from level to bitrate, as in BBA-0; BBA-1 and BBA-2 map to the size of the next segment, and compute
/// the reservoir from the sizes of the coming minutes, which the client does not have here.
///
/// Chosen: reservoir and upper level scale with the maximum buffer, because clients on phones have less than 240 s. The
/// usable buffer is the part that the level can reach when a segment is requested, divided by 0.9: otherwise, long segments
/// would keep the level below the upper one for ever.
#[derive(Clone, Debug)]
pub(crate) struct BufferRule {
    is_starting: bool,
    /// Level of the buffer in seconds at the previous choice.
    previous_s: f64,
    /// Download time of the last segment.
    took: Duration,
}

impl Default for BufferRule {
    fn default() -> BufferRule {
        BufferRule { is_starting: true, previous_s: 0.0, took: Duration::ZERO }
    }
}

/// The map from the buffer's level to a bitrate.
#[derive(Clone, Copy, Debug)]
struct Map {
    reservoir_s: f64,
    upper_s: f64,
}

impl Map {
    fn new(situation: &Situation<'_>) -> Map {
        let max_s = situation.max_buffer.as_secs_f64();
        let usable_s = max_s.min((max_s - situation.ladder.segment_s) / UPPER);
        Map { reservoir_s: RESERVOIR * usable_s, upper_s: UPPER * usable_s }
    }

    /// The representation at the level `level_s` (seconds) after the representation `previous`.
    fn choose(&self, bitrates: &[f64], level_s: f64, previous: usize) -> usize {
        let highest = bitrates.len() - 1;
        if level_s <= self.reservoir_s {
            return 0;
        }
        if level_s >= self.upper_s {
            return highest;
        }
        let share = (level_s - self.reservoir_s) / (self.upper_s - self.reservoir_s);
        let mapped = bitrates[0] + share * (bitrates[highest] - bitrates[0]);
        let (above, below) = (highest.min(previous + 1), previous.saturating_sub(1));
        if mapped >= bitrates[above] {
            bitrates.iter().rposition(|&one| one < mapped).unwrap_or(0)
        } else if mapped <= bitrates[below] {
            bitrates.iter().position(|&one| one > mapped).unwrap_or(highest)
        } else {
            previous
        }
    }

    /// Gain of buffer per segment, in segments, for a step up in the start-up phase at the level `level_s` (seconds).
    fn step_gain(&self, level_s: f64) -> f64 {
        let (empty, full) = STEP_GAIN;
        empty + (full - empty) * (level_s / self.upper_s).min(1.0)
    }
}

impl BufferRule {
    pub(crate) fn observe(&mut self, sample: &Sample) {
        self.took = sample.took;
    }

    pub(crate) fn choose(&mut self, situation: &Situation<'_>) -> usize {
        let bitrates: Vec<f64> = situation.ladder.representation.iter().map(|one| one.bitrate_mbps).collect();
        let (map, level_s) = (Map::new(situation), situation.buffered.as_secs_f64());
        let shrinks = level_s < self.previous_s;
        self.previous_s = level_s;
        let Some(previous) = situation.previous else { return 0 };
        let mapped = map.choose(&bitrates, level_s, previous);
        if !self.is_starting {
            return mapped;
        }
        let gain = 1.0 - self.took.as_secs_f64() / situation.ladder.segment_s;
        let steps = usize::from(gain > map.step_gain(level_s));
        let stepped = (previous + steps).min(bitrates.len() - 1);
        self.is_starting = !shrinks && mapped <= stepped;
        if self.is_starting { stepped } else { mapped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::Ladder;
    use airpace_core::Bytes;

    fn situation(ladder: &Ladder, buffered_s: f64, previous: Option<usize>) -> Situation<'_> {
        let buffered = Duration::from_secs_f64(buffered_s);
        Situation { ladder, buffered, max_buffer: Duration::from_secs(240), previous }
    }

    fn steady() -> BufferRule {
        BufferRule { is_starting: false, ..BufferRule::default() }
    }

    #[test]
    fn the_level_of_the_buffer_gives_the_bitrate() {
        let ladder = Ladder::default();
        let at = |buffered_s, previous| steady().choose(&situation(&ladder, buffered_s, Some(previous)));
        assert_eq!(at(90.0, 11), 0, "the reservoir of 90 s");
        assert_eq!(at(216.0, 0), 11, "90 % of the buffer");
        // At 153 s, half of the cushion, the map gives (0.145 + 16.8) / 2 = 8.47 Mbit/s.
        assert_eq!(at(153.0, 0), 9, "8.1 Mbit/s is the highest bitrate below");
        assert_eq!(at(153.0, 11), 10, "11.6 Mbit/s is the lowest bitrate above");
        assert_eq!(at(153.0, 9), 9, "no change between the two neighbours");
        assert_eq!(at(153.0, 10), 10, "no change between the two neighbours");
    }

    #[test]
    fn start_up_rises_by_one_step_after_each_fast_segment() {
        let (ladder, mut rule) = (Ladder::default(), BufferRule::default());
        let mut choose = |took_s: f64, buffered_s, previous| {
            rule.observe(&Sample { bytes: Bytes(1), took: Duration::from_secs_f64(took_s) });
            rule.choose(&situation(&ladder, buffered_s, previous))
        };
        assert_eq!(choose(0.0, 0.0, None), 0, "the first segment");
        assert_eq!(choose(0.3, 4.0, Some(0)), 1, "0.3 s of 4 s: a gain of 0.925");
        assert_eq!(choose(0.6, 8.0, Some(1)), 1, "0.6 s of 4 s: a gain of 0.85 is too little");
        assert_eq!(choose(1.0, 160.0, Some(9)), 10, "with more buffer, a smaller gain is enough");
        assert_eq!(choose(1.0, 159.0, Some(9)), 9, "the buffer shrinks: the map decides from here on");
        assert_eq!(choose(0.1, 163.0, Some(9)), 9, "no further steps");
    }

    #[test]
    fn the_highest_bitrate_is_reached_with_any_length_of_segment() {
        for (segment_s, max_s) in [(4.0, 50.0), (10.0, 20.0), (4.0, 8.0), (60.0, 61.0)] {
            let ladder = Ladder { segment_s, ..Ladder::default() };
            let full = Duration::from_secs_f64(max_s - segment_s);
            let max_buffer = Duration::from_secs_f64(max_s);
            let situation = Situation { ladder: &ladder, buffered: full, max_buffer, previous: Some(3) };
            assert_eq!(steady().choose(&situation), 11, "{segment_s} s of {max_s} s");
        }
    }
}

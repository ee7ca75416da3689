//! Playback: the buffer of a player, the position in the video, and the stalls.
//!
//! All times are whole nanoseconds, so that start-up, played time and stalls add up to the session's length exactly.

use std::time::Duration;

use airpace_core::Time;

/// State of playback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Playback has not started.
    StartUp,
    Playing,
    Stalled,
    /// The whole video was played.
    Ended,
}

/// An interruption of playback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interruption {
    pub(super) start: Time,
    /// Position in the video: media played before.
    pub(super) position: Duration,
    /// Length up to now.
    pub(super) length: Duration,
}

/// Thresholds of the buffer at which playback starts and continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub(super) start_up: Duration,
    pub(super) rebuffer: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Playback {
    thresholds: Thresholds,
    start: Time,
    /// Time of the last update.
    at: Time,
    phase: Phase,
    buffered: Duration,
    played: Duration,
    /// Time until playback started; up to now if it has not.
    start_up: Duration,
    /// Interruptions in order. Only the last one may still last.
    stalls: Vec<Interruption>,
    /// Whether the buffer contains the end of the video.
    has_end: bool,
    /// Corners of the buffer's level over time. Between two corners the level is linear.
    course: Vec<(Time, Duration)>,
}

impl Playback {
    /// Playback of a session that starts at `now`, with an empty buffer.
    pub(super) fn new(now: Time, thresholds: Thresholds) -> Playback {
        Playback {
            thresholds,
            start: now,
            at: now,
            phase: Phase::StartUp,
            buffered: Duration::ZERO,
            played: Duration::ZERO,
            start_up: Duration::ZERO,
            stalls: vec![],
            has_end: false,
            course: vec![(now, Duration::ZERO)],
        }
    }

    /// Lets playback proceed until `now`. If the buffer became empty before `now`, playback stalled or ended at that
    /// instant. A buffer that is empty exactly at `now` is no stall yet: a segment may arrive at the same instant.
    pub(super) fn advance(&mut self, now: Time) {
        let elapsed = now - self.at;
        match self.phase {
            Phase::StartUp => self.start_up += elapsed,
            Phase::Playing => {
                let played = elapsed.min(self.buffered);
                self.played += played;
                self.buffered -= played;
                if elapsed > played {
                    self.run_dry(self.at + played);
                }
            }
            Phase::Stalled | Phase::Ended => {}
        }
        self.at = self.at.max(now);
        if let (Phase::Stalled, Some(stall)) = (self.phase, self.stalls.last_mut()) {
            stall.length = self.at - stall.start;
        }
    }

    /// Stalls or ends playback at `now` if the buffer is empty. No segment arrives at this instant any more.
    pub(super) fn settle(&mut self, now: Time) {
        self.advance(now);
        if self.phase == Phase::Playing && self.buffered.is_zero() {
            self.run_dry(self.at);
        }
    }

    /// Adds a segment of length `media` to the buffer, and starts or continues playback if it now may.
    pub(super) fn add(&mut self, now: Time, media: Duration, is_last: bool) {
        self.advance(now);
        self.mark();
        self.buffered += media;
        self.mark();
        self.has_end |= is_last;
        let threshold = match self.phase {
            Phase::StartUp => self.thresholds.start_up,
            Phase::Stalled => self.thresholds.rebuffer,
            Phase::Playing | Phase::Ended => return,
        };
        if self.buffered >= threshold || self.has_end {
            self.phase = Phase::Playing;
        }
    }

    /// The instant at which the buffer becomes empty, unless another segment arrives.
    pub(super) fn empties(&self) -> Option<Time> {
        (self.phase == Phase::Playing).then(|| self.at + self.buffered)
    }

    /// The instant at which the buffer has sunk to `level`; `None` if it does not sink, or is not above.
    pub(super) fn sinks_to(&self, level: Duration) -> Option<Time> {
        let above = self.buffered.checked_sub(level)?;
        (self.phase == Phase::Playing).then(|| self.at + above)
    }

    /// Adds the level of the buffer to its course.
    pub(super) fn mark(&mut self) {
        self.mark_at(self.at);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn buffered(&self) -> Duration {
        self.buffered
    }

    pub(super) fn played(&self) -> Duration {
        self.played
    }

    pub(super) fn start_up(&self) -> Duration {
        self.start_up
    }

    pub(super) fn start(&self) -> Time {
        self.start
    }

    pub(super) fn stalls(&self) -> &[Interruption] {
        &self.stalls
    }

    pub(super) fn course(&self) -> &[(Time, Duration)] {
        &self.course
    }

    /// Ends playback at `at`, or stalls it, with an empty buffer.
    fn run_dry(&mut self, at: Time) {
        self.mark_at(at);
        if self.has_end {
            self.phase = Phase::Ended;
        } else {
            self.phase = Phase::Stalled;
            self.stalls.push(Interruption { start: at, position: self.played, length: Duration::ZERO });
        }
    }

    fn mark_at(&mut self, at: Time) {
        let corner = (at, self.buffered);
        if self.course.last() != Some(&corner) {
            self.course.push(corner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn playback() -> Playback {
        Playback::new(Time::ZERO, Thresholds { start_up: 2 * SECOND, rebuffer: 4 * SECOND })
    }

    fn at(seconds: f64) -> Time {
        Time::from_secs_f64(seconds)
    }

    #[test]
    fn a_buffer_that_runs_dry_between_two_events_stalled_at_that_instant() {
        let mut playback = playback();
        playback.add(at(1.5), 2 * SECOND, false);
        playback.advance(at(5.0));
        assert_eq!(playback.phase(), Phase::Stalled);
        let expected =
            Interruption { start: at(3.5), position: 2 * SECOND, length: Duration::from_millis(1500) };
        assert_eq!(playback.stalls(), [expected], "from 3.5 s on, although nobody asked then");
        playback.add(at(6.0), 2 * SECOND, false);
        assert_eq!(playback.phase(), Phase::Stalled, "2 s are not enough after a stall");
        playback.add(at(6.5), 2 * SECOND, false);
        assert_eq!(playback.phase(), Phase::Playing);
        assert_eq!(playback.stalls()[0].length, 3 * SECOND);
    }

    #[test]
    fn a_segment_at_the_last_instant_prevents_the_stall() {
        let mut playback = playback();
        playback.add(at(0.0), 2 * SECOND, false);
        playback.add(at(2.0), 2 * SECOND, false);
        assert!(playback.stalls().is_empty());
        playback.settle(at(4.0));
        assert_eq!(playback.stalls().len(), 1, "nothing arrived at this instant");
    }

    #[test]
    fn the_end_of_the_video_starts_playback_and_ends_it() {
        let mut playback = playback();
        playback.add(at(3.0), SECOND, true);
        assert_eq!(playback.phase(), Phase::Playing, "below the threshold, but no more will come");
        assert_eq!(playback.empties(), Some(at(4.0)));
        playback.advance(at(9.0));
        assert_eq!(playback.phase(), Phase::Ended);
        assert_eq!((playback.start_up(), playback.played()), (3 * SECOND, SECOND));
        let course = [(0.0, 0), (3.0, 0), (3.0, 1), (4.0, 0)].map(|(when, s)| (at(when), s * SECOND));
        assert_eq!(playback.course(), course);
    }
}

//! A player over a link whose rate changes, and the invariants that hold after each event.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Streams, Time};
use airpace_video::{Action, Player, PlayerConfig, Session, State};

/// Number of parts in which a segment arrives.
const PARTS: u64 = 10;

/// A link with a round-trip time. Its rate follows a list of spans, again and again.
#[derive(Clone, Debug)]
pub struct Link {
    pub rtt: Duration,
    /// Length and rate (Mbit/s) of each span. Rate 0 is an outage.
    pub spans: Vec<(Duration, f64)>,
}

impl Link {
    /// A link with the spans `spans`: seconds and Mbit/s.
    pub fn new(spans: &[(f64, f64)]) -> Link {
        let spans = spans.iter().map(|&(seconds, mbps)| (Duration::from_secs_f64(seconds), mbps)).collect();
        Link { rtt: Duration::from_millis(40), spans }
    }

    /// The time at which `bytes` have been transmitted, from `start` on.
    fn transmitted(&self, start: Time, bytes: Bytes) -> Time {
        let period: Duration = self.spans.iter().map(|(length, _)| *length).sum();
        let mut offset = Duration::from_nanos(start.as_nanos() % period.as_nanos() as u64);
        let (mut now, mut left) = (start, bytes);
        for (length, mbps) in self.spans.iter().cycle() {
            let Some(rest) = length.checked_sub(offset).filter(|rest| !rest.is_zero()) else {
                offset -= *length;
                continue;
            };
            offset = Duration::ZERO;
            let rate = Rate::from_mbps(*mbps);
            if rate.time_for(left) <= rest {
                return now + rate.time_for(left);
            }
            left -= rate.bytes_in(rest);
            now += rest;
        }
        unreachable!("the spans repeat")
    }
}

/// A segment on the link.
struct Transfer {
    /// Arrival of the next part.
    arrives: Time,
    part: Bytes,
    left: Bytes,
}

/// A run of a player over a link.
pub struct Run {
    player: Player,
    config: PlayerConfig,
    link: Link,
    now: Time,
    transfer: Option<Transfer>,
    /// Number of the next segment that has not been requested, and whether the last one was cancelled.
    expected: (u32, bool),
    /// States in order, without repetitions.
    pub states: Vec<State>,
    /// Times of the requests.
    pub requests: Vec<Time>,
}

impl Run {
    /// A run that starts at time zero, with the segment sizes of `seed`.
    pub fn new(config: &PlayerConfig, link: &Link, seed: u64) -> Run {
        let draws = Streams::new(seed).draws("flow.0.video");
        Run {
            player: Player::new(config, draws, Time::ZERO).expect("a valid configuration"),
            config: config.clone(),
            link: link.clone(),
            now: Time::ZERO,
            transfer: None,
            expected: (0, false),
            states: vec![],
            requests: vec![],
        }
    }

    /// Runs until the video ends, at most until `end`, and returns the report.
    pub fn until(&mut self, end: Time) -> Session {
        loop {
            self.act();
            self.check();
            let timeout = self.player.poll_timeout().unwrap_or(Time::NEVER);
            let arrival = self.transfer.as_ref().map_or(Time::NEVER, |transfer| transfer.arrives);
            let next = timeout.min(arrival);
            if next == Time::NEVER || next > end {
                let now = if next == Time::NEVER { self.now } else { end };
                return self.player.session(now);
            }
            assert!(next >= self.now, "time goes forward");
            self.now = next;
            if arrival <= timeout { self.receive() } else { self.player.handle_timeout(next) }
        }
    }

    /// Takes the player's actions.
    fn act(&mut self) {
        while let Some(action) = self.player.poll_action() {
            match action {
                Action::Cancel => {
                    assert!(self.transfer.take().is_some(), "only an outstanding segment is cancelled");
                    self.expected = (self.expected.0 - 1, true);
                }
                Action::Request(request) => {
                    assert!(self.transfer.is_none(), "at most one segment is outstanding");
                    assert_eq!(request.segment, self.expected.0, "segments are requested in order");
                    self.expected = (self.expected.0 + 1, false);
                    self.requests.push(self.now);
                    let part = Bytes(request.bytes.0.div_ceil(PARTS));
                    let arrives = self.link.transmitted(self.now + self.link.rtt, part);
                    self.transfer = Some(Transfer { arrives, part, left: request.bytes });
                }
            }
        }
    }

    /// Lets the next part of the outstanding segment arrive.
    fn receive(&mut self) {
        let transfer = self.transfer.as_mut().expect("a segment is on the link");
        let part = Bytes(transfer.part.0.min(transfer.left.0));
        transfer.left -= part;
        let is_complete = transfer.left == Bytes::ZERO;
        transfer.arrives = self.link.transmitted(self.now, Bytes(transfer.part.0.min(transfer.left.0)));
        self.player.on_bytes(self.now, part);
        if is_complete {
            self.transfer = None;
            self.player.on_complete(self.now);
        }
    }

    /// Checks the invariants after an event.
    fn check(&mut self) {
        let state = self.player.state();
        if self.states.last() != Some(&state) {
            self.states.push(state);
        }
        let max = Duration::from_secs_f64(self.config.max_buffer_s);
        assert!(self.player.buffered() <= max, "the buffer has {:?} of {max:?}", self.player.buffered());
        let session = self.player.session(self.now);
        let waited = session.start_up_s.unwrap_or(session.elapsed_s);
        let total = waited + session.played_s + session.stalled_s;
        assert!((total - session.elapsed_s).abs() < 1e-6, "start-up, played and stalled time are all time");
        if state != State::Ended {
            assert!((session.elapsed_s - self.now.as_secs_f64()).abs() < 1e-6, "{session:?}");
            let arrived_s = session.segments.len() as f64 * self.config.ladder.segment_s;
            let left_s = arrived_s - session.played_s - self.player.buffered().as_secs_f64();
            assert!(left_s.abs() < 1e-6, "all media is played or in the buffer: {left_s}");
        }
        let waits = matches!(state, State::Waiting) && self.player.outstanding().is_none();
        assert!(waits || state != State::Waiting, "a player that waits has no request outstanding");
    }
}

/// Plays the video of `config` to its end over `link`.
pub fn play(config: &PlayerConfig, link: &Link) -> Session {
    Run::new(config, link, 1).until(Time::from_secs(100_000))
}

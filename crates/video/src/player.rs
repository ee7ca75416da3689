//! The player: requests segments, buffers and plays them.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Draws, Rate, Refused, Time};

use crate::config::PlayerConfig;
use crate::rule::{Adaptation, Sample, Situation, sustainable};
use crate::session::{SegmentReport, Session, State};
use crate::sizes::SegmentSizes;

mod playback;
mod report;

use playback::{Phase, Playback, Thresholds};

/// Time from a response's first byte after which its segment may be abandoned.
///
/// Source: dash.js AbandonRequestsRule.js (`GRACE_TIME_THRESHOLD`)
const ABANDON_AFTER: Duration = Duration::from_millis(500);

/// Expected download time from which a segment is abandoned, in lengths of a segment.
///
/// Source: dash.js AbandonRequestsRule.js (`ABANDON_MULTIPLIER`)
const ABANDON_FROM: f64 = 1.5;

/// The request of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the segment, from 0.
    pub segment: u32,
    /// Index of the representation in the ladder.
    pub representation: usize,
    /// Size of the segment. A server that has real segments may send another number of bytes.
    pub bytes: Bytes,
}

/// An output of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the request of a segment.
    Request(Request),
    /// Stop the transfer of the outstanding segment. Report no further bytes of it, and not its end. The next action
    /// requests the segment in a lower representation.
    Cancel,
}

/// A segment that was requested and has not arrived completely.
#[derive(Clone, Copy, Debug)]
struct Download {
    request: Request,
    sent: Time,
    first_byte: Option<Time>,
    received: Bytes,
}

/// A client of adaptive video, as a state machine.
///
/// The player has at most one segment outstanding. As long as its buffer has room, it requests the next segment as soon as
/// the last one has arrived. If the buffer is full, it waits until there is room, so that its traffic comes in bursts with
/// silences in between.
///
/// At one instant, a driver reports bytes and the end of a segment before it calls [`Player::handle_timeout`], and takes all
/// actions after each call. Times that go backwards count as no time passed.
///
/// Source: MORC §2 Fig. 2 (bursts of adaptive video)
///
/// Chosen: the whole video is available at the start (video on demand); segments are requested in order, on one connection,
/// and arrive over a connection that has been set up; decoding takes no time.
///
/// ```
/// use airpace_core::{Streams, Time};
/// use airpace_video::{Action, Player, PlayerConfig, State};
///
/// let sizes = Streams::new(1).draws("flow.0.video");
/// let mut player = Player::new(&PlayerConfig::default(), sizes, Time::ZERO)?;
/// let Some(Action::Request(request)) = player.poll_action() else { panic!("a player starts with a request") };
/// player.on_bytes(Time::from_millis(80), request.bytes);
/// player.on_complete(Time::from_millis(80));
/// assert_eq!(player.state(), State::Playing, "the first segment has 4 s, more than the start-up buffer");
/// # Ok::<(), airpace_core::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct Player {
    config: PlayerConfig,
    sizes: SegmentSizes,
    adaptation: Adaptation,
    playback: Playback,
    /// Number of the next segment to be requested.
    next: u32,
    download: Option<Download>,
    actions: VecDeque<Action>,
    segments: Vec<SegmentReport>,
    /// Representation of the last complete segment.
    previous: Option<usize>,
    abandoned: u32,
    abandoned_bytes: Bytes,
    /// Whether the outstanding segment was abandoned once.
    is_second_attempt: bool,
}

impl Player {
    /// A player whose user starts the video at `now`. The sizes of the segments are drawn from `draws`.
    ///
    /// Fails if the configuration is invalid ([`PlayerConfig::validate`]).
    pub fn new(config: &PlayerConfig, draws: Draws, now: Time) -> Result<Player, Refused> {
        config.validate()?;
        let thresholds = Thresholds { start_up: config.start_up_buffer(), rebuffer: config.rebuffer() };
        let mut player = Player {
            config: config.clone(),
            sizes: SegmentSizes::new(draws, config.size_variation),
            adaptation: Adaptation::new(config.rule),
            playback: Playback::new(now, thresholds),
            next: 0,
            download: None,
            actions: VecDeque::new(),
            segments: vec![],
            previous: None,
            abandoned: 0,
            abandoned_bytes: Bytes::ZERO,
            is_second_attempt: false,
        };
        player.request_next(now);
        Ok(player)
    }

    /// The next action that the driver must take. Drivers ask after every event, until there is none.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Bytes of the outstanding segment arrived at `now`. Bytes without an outstanding segment are ignored.
    pub fn on_bytes(&mut self, now: Time, bytes: Bytes) {
        self.playback.advance(now);
        let Some(download) = &mut self.download else { return };
        download.first_byte.get_or_insert(now);
        download.received += bytes;
        if self.config.abandon && !self.is_second_attempt {
            self.consider_abandoning(now);
        }
    }

    /// The outstanding segment arrived completely at `now`. If the driver reported none of its bytes, it has the requested
    /// size. Without an outstanding segment, the call is ignored.
    pub fn on_complete(&mut self, now: Time) {
        self.playback.advance(now);
        let Some(download) = self.download.take() else { return };
        let Request { segment, representation, bytes } = download.request;
        let bytes = if download.received == Bytes::ZERO { bytes } else { download.received };
        let sample = Sample { bytes, took: now - download.sent };
        self.adaptation.observe(&sample);
        self.segments.push(report::segment(&self.playback, &self.config, &download, &sample));
        self.previous = Some(representation);
        self.is_second_attempt = false;
        let is_last = segment + 1 == self.config.segments();
        self.playback.add(now, self.config.ladder.segment(), is_last);
        self.request_next(now);
    }

    /// The time returned by [`Player::poll_timeout`] has been reached.
    pub fn handle_timeout(&mut self, now: Time) {
        self.playback.settle(now);
        self.request_next(now);
    }

    /// The time of the next call of [`Player::handle_timeout`]: the buffer runs empty, or has room for a segment again.
    /// Drivers ask after every event.
    pub fn poll_timeout(&self) -> Option<Time> {
        let room = if self.is_waiting() { self.playback.sinks_to(self.room_level()) } else { None };
        [self.playback.empties(), room].into_iter().flatten().min()
    }

    /// The state at the last event.
    pub fn state(&self) -> State {
        self.state_in(self.playback.phase())
    }

    /// The state if playback is in the phase `phase`.
    fn state_in(&self, phase: Phase) -> State {
        match phase {
            Phase::StartUp => State::StartUp,
            Phase::Playing if self.is_waiting() => State::Waiting,
            Phase::Playing => State::Playing,
            Phase::Stalled => State::Stalled,
            Phase::Ended => State::Ended,
        }
    }

    /// Media in the buffer at the last event.
    pub fn buffered(&self) -> Duration {
        self.playback.buffered()
    }

    /// Position in the video at the last event: media played so far.
    pub fn position(&self) -> Duration {
        self.playback.played()
    }

    /// The request of the outstanding segment.
    pub fn outstanding(&self) -> Option<Request> {
        self.download.map(|download| download.request)
    }

    /// The report on the session from its start until `now`, which is not before the last event. The session continues.
    pub fn session(&self, now: Time) -> Session {
        report::session(self, now)
    }

    /// Whether the player has segments to request but no request outstanding.
    fn is_waiting(&self) -> bool {
        self.download.is_none() && self.next < self.config.segments()
    }

    /// Maximum level of the buffer at which it has room for a segment.
    fn room_level(&self) -> Duration {
        self.config.max_buffer().saturating_sub(self.config.ladder.segment())
    }

    /// Requests the next segment if there is one, none is outstanding, and the buffer has room.
    fn request_next(&mut self, now: Time) {
        if !self.is_waiting() || self.playback.buffered() > self.room_level() {
            return;
        }
        let situation = Situation {
            ladder: &self.config.ladder,
            buffered: self.playback.buffered(),
            max_buffer: self.config.max_buffer(),
            previous: self.previous,
        };
        let representation = self.adaptation.choose(&situation);
        let segment = self.next;
        self.next += 1;
        self.request(now, segment, representation);
    }

    fn request(&mut self, now: Time, segment: u32, representation: usize) {
        let bytes = self.sizes.bytes(&self.config.ladder, segment, representation);
        let request = Request { segment, representation, bytes };
        self.download = Some(Download { request, sent: now, first_byte: None, received: Bytes::ZERO });
        self.actions.push_back(Action::Request(request));
    }

    /// Abandons the outstanding segment if it would take too long, playback would stall before its end, and a lower
    /// representation has fewer bytes than remain. A segment is abandoned at most once.
    ///
    /// Source: dash.js AbandonRequestsRule.js
    ///
    /// Differs: dash.js does not ask whether playback would stall, and has a safety margin of its own.
    fn consider_abandoning(&mut self, now: Time) {
        let Some(Download { request, first_byte: Some(first), received, .. }) = self.download else { return };
        let elapsed = now - first;
        if elapsed < ABANDON_AFTER || request.representation == 0 || received >= request.bytes {
            return;
        }
        let throughput = Rate::from_bytes_per(received, elapsed);
        let expected = throughput.time_for(request.bytes);
        let rest = request.bytes - received;
        let is_slow = expected.as_secs_f64() > ABANDON_FROM * self.config.ladder.segment_s;
        if !is_slow || throughput.time_for(rest) <= self.playback.buffered() {
            return;
        }
        let lower = sustainable(&self.config.ladder, throughput.as_mbps()).min(request.representation - 1);
        if self.sizes.bytes(&self.config.ladder, request.segment, lower) < rest {
            self.abandon(now, lower);
        }
    }

    /// Abandons the outstanding segment, and requests it in the representation `lower`.
    fn abandon(&mut self, now: Time, lower: usize) {
        let Some(download) = self.download.take() else { return };
        self.adaptation.observe(&Sample { bytes: download.received, took: now - download.sent });
        self.abandoned += 1;
        self.abandoned_bytes += download.received;
        self.is_second_attempt = true;
        self.actions.push_back(Action::Cancel);
        self.request(now, download.request.segment, lower);
    }
}

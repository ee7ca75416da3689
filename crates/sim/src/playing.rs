//! The player of a flow with a video. Each segment is a transfer of the flow.

use airpace_core::{Bytes, Draws, Refused, Time};
use airpace_event::{Segment, Stall, Viewing as Viewed};
use airpace_video::session::SegmentReport;
use airpace_video::{Action, Player, PlayerConfig, Quality, Request, Session, Viewing};

/// A player, and the request that it has made but that has not been sent.
///
/// Differs: a player reads the device's clock. This one reads true time, because a wrong clock does not change the speed of
/// playback noticeably.
///
/// Differs: a player also requests a manifest before the first segment.
#[derive(Clone, Debug)]
pub(crate) struct Playing {
    player: Player,
    viewing: Viewing,
    start: Time,
    /// Time at which the viewer closes the video.
    stop: Time,
    request: Option<Waiting>,
}

/// A request that has not been sent.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    bytes: Bytes,
    /// Time at which the player made the request.
    since: Time,
    /// Whether the player cancelled the segment before.
    replaces: bool,
}

impl Playing {
    /// A player that starts its video at the first time of `span` and closes it at the second. The sizes of segments are
    /// drawn from `sizes`.
    pub(crate) fn new(
        config: &PlayerConfig,
        viewing: Viewing,
        sizes: Draws,
        (start, stop): (Time, Time),
    ) -> Playing {
        let player = Player::new(config, sizes, start).expect("a scenario's players were checked");
        let mut playing = Playing { player, viewing, start, stop, request: None };
        playing.collect(start);
        playing
    }

    /// Returns the time at which the player made the request that waits to be sent, if there is one.
    pub(crate) fn requested(&self) -> Option<Time> {
        self.request.map(|request| request.since)
    }

    /// Returns the player's next deadline.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.player.poll_timeout().filter(|due| *due < self.stop)
    }

    /// Processes the player's deadline, if it has one at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.poll_timeout().is_some_and(|due| due <= now) && now < self.stop {
            self.player.handle_timeout(now);
            self.collect(now);
        }
    }

    /// Returns the size of the segment that the client requests at `now`, and whether it cancelled the segment before.
    /// `None` if no request waits.
    pub(crate) fn take_request(&mut self, now: Time) -> Option<(u64, bool)> {
        let waiting = self.request.filter(|waiting| waiting.since <= now)?;
        self.request = None;
        Some((waiting.bytes.0, waiting.replaces))
    }

    /// Reports bytes of the requested segment that arrived at `now`; `is_complete`: they are its last. Returns whether the
    /// player cancelled the segment.
    pub(crate) fn on_bytes(&mut self, now: Time, bytes: Bytes, is_complete: bool) -> bool {
        if now >= self.stop {
            return false;
        }
        self.player.on_bytes(now, bytes);
        if is_complete {
            self.player.on_complete(now);
        }
        self.collect(now)
    }

    /// Takes the player's actions. Returns whether one of them cancels the requested segment.
    fn collect(&mut self, now: Time) -> bool {
        let mut replaces = false;
        while let Some(action) = self.player.poll_action() {
            match action {
                Action::Cancel => replaces = true,
                Action::Request(Request { bytes, .. }) if now < self.stop => {
                    self.request = Some(Waiting { bytes, since: now, replaces });
                }
                Action::Request(_) => {}
            }
        }
        replaces
    }

    /// The report on the video until `now`, or until the viewer closed it.
    pub(crate) fn report(&self, now: Time) -> Viewed {
        let session = self.player.session(now.min(self.stop));
        viewed(&session, &self.viewing, self.start).expect("a scenario's viewings were checked")
    }
}

/// The report on a session as an event of a run in which the session started at `start`.
///
/// # Errors
/// The viewing is invalid.
pub fn viewed(session: &Session, viewing: &Viewing, start: Time) -> Result<Viewed, Refused> {
    let since_run = |seconds: f64| start.as_secs_f64() + seconds;
    let segment = |one: &SegmentReport| {
        let representation = session.ladder.representation[one.representation];
        Segment {
            requested_s: since_run(one.requested_s),
            download_s: one.download_s,
            bytes: Bytes(one.bytes),
            bitrate_mbps: representation.bitrate_mbps,
            height: representation.height,
        }
    };
    let stalls = session.stalls.iter();
    let quality = Quality::of(session, viewing)?;
    Ok(Viewed {
        start_up_s: session.start_up_s,
        played_s: session.played_s,
        stalls: stalls.map(|one| Stall { start_s: since_run(one.start_s), length_s: one.length_s }).collect(),
        switches: u64::from(session.switches),
        abandoned: u64::from(session.abandoned),
        score: quality.map(|quality| quality.score),
        segments: session.segments.iter().map(segment).collect(),
    })
}

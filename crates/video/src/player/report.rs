//! The report of a player: its measurements as a [`Session`].

use std::time::Duration;

use airpace_core::Time;

use super::playback::{Phase, Playback};
use super::{Download, Player};
use crate::config::PlayerConfig;
use crate::rule::Sample;
use crate::session::{BufferSample, SegmentReport, Session, Stall};

/// The report on a segment that arrived completely.
pub(super) fn segment(
    playback: &Playback,
    config: &PlayerConfig,
    download: &Download,
    sample: &Sample,
) -> SegmentReport {
    let segment_s = config.ladder.segment_s;
    SegmentReport {
        segment: download.request.segment,
        representation: download.request.representation,
        bytes: sample.bytes.0,
        bitrate_mbps: sample.bytes.0 as f64 * 8e-6 / segment_s,
        requested_s: (download.sent - playback.start()).as_secs_f64(),
        download_s: sample.took.as_secs_f64(),
        throughput_mbps: sample.throughput().as_mbps(),
    }
}

/// The report of `player` until `now`.
pub(super) fn session(player: &Player, now: Time) -> Session {
    let mut playback = player.playback.clone();
    playback.advance(now);
    playback.mark();
    let since_start = |time: Time| (time - playback.start()).as_secs_f64();
    let stalls: Vec<Stall> = (playback.stalls().iter())
        .map(|stall| Stall {
            start_s: since_start(stall.start),
            position_s: stall.position.as_secs_f64(),
            length_s: stall.length.as_secs_f64(),
        })
        .collect();
    let stalled: Duration = playback.stalls().iter().map(|stall| stall.length).sum();
    let elapsed = playback.start_up() + playback.played() + stalled;
    let pairs = player.segments.windows(2);
    Session {
        rule: player.config.rule,
        ladder: player.config.ladder.clone(),
        state: player.state_in(playback.phase()),
        elapsed_s: elapsed.as_secs_f64(),
        start_up_s: (playback.phase() != Phase::StartUp).then(|| playback.start_up().as_secs_f64()),
        played_s: playback.played().as_secs_f64(),
        stalled_s: stalled.as_secs_f64(),
        stalls,
        switches: pairs.filter(|pair| pair[0].representation != pair[1].representation).count() as u32,
        mean_bitrate_mbps: mean_bitrate_mbps(player),
        abandoned: player.abandoned,
        abandoned_bytes: player.abandoned_bytes.0,
        segments: player.segments.clone(),
        buffer: (playback.course().iter())
            .map(|&(time, level)| BufferSample { time_s: since_start(time), level_s: level.as_secs_f64() })
            .collect(),
    }
}

/// Mean bitrate of the representations of all segments that arrived, in Mbit/s; 0 without segments.
fn mean_bitrate_mbps(player: &Player) -> f64 {
    let ladder = &player.config.ladder.representation;
    let total: f64 = player.segments.iter().map(|one| ladder[one.representation].bitrate_mbps).sum();
    total / (player.segments.len().max(1)) as f64
}

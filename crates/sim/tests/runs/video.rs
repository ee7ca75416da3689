//! Scenario tests of adaptive video: a player requests segments over a flow's connection.

use crate::common;

use airpace_event::{TransferStep, Viewing};
use common::{Notebook, run, scenario};

/// Returns a scenario of a minute of video over a link of `mbps`, with further keys of the flow.
fn link(mbps: f64, more: &str) -> String {
    format!(
        "duration_s = 80\n[internet]\nrate_mbps = {mbps}\nbuffer.ms = 100\n\
         [[flow]]\nrtt_ms = 40\nrequest_bytes = 400\nvideo.duration_s = 60\n{more}"
    )
}

/// Returns the viewing and the events of a run with CUBIC.
fn watched(text: &str) -> (Viewing, Notebook) {
    let (_, mut notes) = run(&scenario(text), "cubic", 1);
    assert_eq!(notes.videos.len(), 1, "one report per flow with a video");
    (notes.videos.remove(0), notes)
}

#[test]
fn a_fast_link_plays_the_whole_video_at_the_highest_bitrate_without_a_stall() {
    let (video, notes) = watched(&link(60.0, ""));
    assert!(video.stalls.is_empty() && (59.9..60.1).contains(&video.played_s), "{video:?}");
    assert!(video.start_up_s.is_some_and(|seconds| seconds < 0.5), "{:?}", video.start_up_s);
    assert_eq!(video.segments.len(), 15, "fifteen segments of 4 s");
    assert_eq!(video.segments[14].height, 2160, "the last segment is in 4K");
    assert!(video.score.is_some_and(|score| score > 4.0), "{:?}", video.score);
    let complete = notes.transfers.iter().filter(|one| one.step == TransferStep::Complete).count();
    assert_eq!(complete, 15, "each segment is a transfer");
}

#[test]
fn a_request_crosses_the_path_before_its_segment_is_sent() {
    let (video, notes) = watched(&link(60.0, ""));
    let first = notes.flows[0].arrivals[0].time_s;
    assert!(first > 0.04, "half a round trip for the request and half for the data: {first} s");
    for pair in video.segments.windows(2) {
        let end = pair[0].requested_s + pair[0].download_s;
        assert!(pair[1].requested_s >= end - 1e-9, "one segment at a time: {pair:?}");
        let between = notes.flows[0].between(end + 1e-6, pair[1].requested_s + 0.04).count();
        assert!(
            between <= 2,
            "silence until the next request is answered, but for probes: {between} packets"
        );
    }
}

#[test]
fn the_bytes_of_a_segment_are_those_of_the_flow() {
    let (video, notes) = watched(&link(8.0, ""));
    let of_segments: u64 = video.segments.iter().map(|one| one.bytes.0).sum();
    let arrived: u64 = notes.flows[0].arrivals.iter().map(|one| one.bytes).sum();
    assert!(of_segments <= arrived, "{of_segments} of {arrived} bytes");
    assert!(arrived < of_segments + of_segments / 50, "little beside the segments: {arrived} bytes");
}

#[test]
fn a_full_buffer_makes_silences() {
    let (video, _) = watched(&link(60.0, "video.max_buffer_s = 12\n"));
    let gaps: Vec<f64> = video
        .segments
        .windows(2)
        .map(|pair| pair[1].requested_s - pair[0].requested_s - pair[0].download_s)
        .collect();
    let silent = gaps.iter().filter(|gap| **gap > 1.0).count();
    assert!(silent >= 8, "the player waits until 4 s have been played: {gaps:?}");
}

#[test]
fn a_slow_link_stalls_a_player_that_has_one_representation() {
    let one = "video.ladder.representation = [{ bitrate_mbps = 4, width = 1280, height = 720 }]\n";
    let (video, _) = watched(&link(2.0, one));
    assert!(video.stalls.len() >= 2, "a segment of 4 s takes 8 s: {:?}", video.stalls);
    let stalled: f64 = video.stalls.iter().map(|stall| stall.length_s).sum();
    let whole = video.start_up_s.unwrap() + video.played_s + stalled;
    assert!((79.9..80.1).contains(&whole), "start-up, play and stalls fill the run: {whole} s");
    let (adaptive, _) = watched(&link(2.0, ""));
    assert!(adaptive.stalls.is_empty() && adaptive.score > video.score, "{adaptive:?}");
}

#[test]
fn a_player_that_abandons_a_segment_gets_a_smaller_one() {
    let text = "duration_s = 80\n[internet]\nschedule = [{ at_s = 0, rate_mbps = 20 }, { at_s = 6, rate_mbps = 1 }]\nbuffer.ms = 100\n\
                [[flow]]\nrtt_ms = 40\nrequest_bytes = 400\nvideo.duration_s = 60\nvideo.max_buffer_s = 12\n";
    let (patient, _) = watched(text);
    let (video, notes) = watched(&format!("{text}video.abandon = true\n"));
    assert_eq!(patient.abandoned, 0);
    assert!(video.abandoned >= 1, "the rate falls to a twentieth: {video:?}");
    let began = notes.transfers.iter().filter(|one| one.step == TransferStep::Began).count() as u64;
    let ended = video.abandoned + video.segments.len() as u64;
    assert!((ended..=ended + 1).contains(&began), "each is requested again: {began} requests, {ended} ended");
    let stalled = |video: &Viewing| video.stalls.iter().map(|stall| stall.length_s).sum::<f64>();
    assert!(stalled(&video) < stalled(&patient), "{} s, {} s", stalled(&video), stalled(&patient));
}

#[test]
fn a_viewer_who_leaves_sees_no_more() {
    let (video, notes) = watched(&link(20.0, "stop_s = 20\n"));
    assert!((19.0..20.0).contains(&video.played_s), "until 20 s: {}", video.played_s);
    assert_eq!(notes.flows[0].between(20.1, 80.0).count(), 0, "the server stops");
}

#[test]
fn the_same_seed_gives_the_same_video_and_another_seed_another() {
    let scenario = scenario(&link(20.0, ""));
    let fingerprint = |seed| run(&scenario, "morc", seed).1.fingerprint();
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}

#[test]
fn a_video_runs_with_every_scheme() {
    for scheme in airpace_sim::SCHEMES.iter().map(|scheme| scheme.name) {
        let (_, notes) = run(&scenario(&link(20.0, "")), scheme, 1);
        let video = &notes.videos[0];
        assert!(video.start_up_s.is_some() && video.segments.len() >= 5, "{scheme}: {video:?}");
    }
}

//! Sessions as stories: conditions, run, check.

use std::fmt::Write;
use std::time::Duration;

use airpace_core::{Bytes, Streams, Time};
use airpace_video::{Action, Player, PlayerConfig, Quality, Rule, Session, State, Viewing};

use crate::link::{Link, Run, play};

fn config(rule: Rule) -> PlayerConfig {
    PlayerConfig { rule, ..PlayerConfig::default() }
}

/// The score on a phone.
fn score(session: &Session) -> f64 {
    score_on(session, &Viewing::default())
}

fn score_on(session: &Session, viewing: &Viewing) -> f64 {
    Quality::of(session, viewing).expect("a valid screen").expect("a video that was played").score
}

#[test]
fn traffic_comes_in_bursts_once_the_buffer_is_full() {
    for rule in Rule::ALL {
        let mut run = Run::new(&config(rule), &Link::new(&[(10.0, 60.0)]), 1);
        let session = run.until(Time::from_secs(1000));
        assert!(
            run.states.starts_with(&[State::StartUp, State::Playing, State::Waiting]),
            "{:?}",
            run.states
        );
        assert_eq!(run.states.last(), Some(&State::Ended));
        let gaps: Vec<Duration> = run.requests.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (first, last) = (&gaps[..5], &gaps[gaps.len() - 5..]);
        assert!(first.iter().all(|gap| gap.as_secs_f64() < 2.0), "{rule}: no pause at first: {first:?}");
        let regular = |gap: &Duration| (gap.as_secs_f64() - 4.0).abs() < 1e-6;
        assert!(last.iter().all(regular), "{rule}: then a segment of 4 s every 4 s: {last:?}");
        assert!(session.stalls.is_empty() && session.start_up_s < Some(0.5), "{rule}: {session:?}");
        assert_eq!(session.segments.last().map(|one| one.representation), Some(11), "{rule}: 4K");
        // The start-up delay counts as a stall of P.1203, which alone costs 0.4.
        assert!(score(&session) > 4.35, "{rule}: a good session: {}", score(&session));
    }
}

#[test]
fn an_outage_longer_than_the_buffer_stalls_the_video() {
    for rule in Rule::ALL {
        let config = config(rule);
        let session = play(&config, &Link::new(&[(60.0, 20.0), (70.0, 0.0), (1e4, 20.0)]));
        assert_eq!(session.stalls.len(), 1, "{rule}: {:?}", session.stalls);
        let stall = session.stalls[0];
        assert!(
            stall.start_s > 100.0 && stall.start_s < 110.0,
            "{rule}: after the buffer of 50 s: {stall:?}"
        );
        let end = stall.start_s + stall.length_s;
        assert!(end > 130.0 && end < 135.0, "{rule}: two segments after the end of the outage: {stall:?}");
        let good = play(&config, &Link::new(&[(1e4, 20.0)]));
        assert!(score(&session) < score(&good) - 1.0, "{rule}: {} of {}", score(&session), score(&good));
    }
}

#[test]
fn a_network_below_the_ladder_is_watched_in_stalls() {
    let session = play(&config(Rule::Rate), &Link::new(&[(10.0, 0.1)]));
    assert!(session.segments.iter().all(|one| one.representation == 0), "only the lowest representation");
    assert!(session.stalls.len() > 5 && session.stalled_s > 40.0, "0.145 Mbit/s do not fit: {session:?}");
    assert!(score(&session) < 2.0, "a bad session: {}", score(&session));
    assert_eq!(session.switches, 0);
    assert!((session.mean_bitrate_mbps - 0.145).abs() < 1e-12);
}

#[test]
fn an_abandoned_segment_avoids_a_stall() {
    let link = Link::new(&[(8.0, 30.0), (1e4, 1.0)]);
    let base = PlayerConfig { max_buffer_s: 12.0, size_variation: 0.0, ..config(Rule::Rate) };
    let [patient, abandons] =
        [false, true].map(|abandon| play(&PlayerConfig { abandon, ..base.clone() }, &link));
    assert!(patient.stalled_s > 20.0, "8 MB of 4K arrive at 1 Mbit/s: {:?}", patient.stalls);
    assert!(abandons.stalled_s < patient.stalled_s / 2.0, "{:?}", abandons.stalls);
    assert_eq!((patient.abandoned, abandons.abandoned), (0, 1));
    assert!(abandons.abandoned_bytes > 0 && abandons.abandoned_bytes < 8_400_000);
    assert_eq!(abandons.segments.len(), 30, "every segment was played, the abandoned one too");
    assert!(score(&abandons) > score(&patient));
}

#[test]
fn the_course_of_the_buffer_is_that_of_downloads_and_playback() {
    let session = play(&config(Rule::Rate), &Link::new(&[(30.0, 8.0), (40.0, 0.5)]));
    for pair in session.buffer.windows(2) {
        let (elapsed, change) = (pair[1].time_s - pair[0].time_s, pair[1].level_s - pair[0].level_s);
        let jumps = elapsed == 0.0 && (change - 4.0).abs() < 1e-9;
        let drains = (elapsed + change).abs() < 1e-9;
        assert!(
            jumps || drains || change == 0.0,
            "a segment arrives, time passes, or the video waits: {pair:?}"
        );
    }
    let level_s = |which: fn(f64, f64) -> f64| session.buffer.iter().map(|one| one.level_s).reduce(which);
    assert!(level_s(f64::min) == Some(0.0) && level_s(f64::max) > Some(20.0), "{:?}", session.buffer);
}

#[test]
fn a_report_in_between_ends_at_its_time() {
    let mut run = Run::new(&config(Rule::Rate), &Link::new(&[(10.0, 60.0)]), 1);
    let early = run.until(Time::from_millis(10));
    assert_eq!((early.state, early.start_up_s, early.elapsed_s), (State::StartUp, None, 0.01));
    assert_eq!(Quality::of(&early, &Viewing::default()), Ok(None), "nobody saw a picture");
    let later = run.until(Time::from_secs(30));
    assert!((later.elapsed_s - 30.0).abs() < 1e-9 && later.played_s > 29.0, "{later:?}");
    let quality = Quality::of(&later, &Viewing::television()).expect("a valid screen").expect("29 s");
    assert_eq!(quality.video.len(), 29, "a score for each whole second that was played");
    assert!(quality.score <= score(&later), "a television shows more than a phone");
}

#[test]
fn events_that_do_not_belong_are_ignored() {
    let mut player =
        Player::new(&PlayerConfig::default(), Streams::new(1).draws("video"), Time::from_secs(5))
            .expect("valid");
    let Some(Action::Request(request)) = player.poll_action() else { panic!("a request") };
    assert_eq!((request.segment, request.representation, player.poll_action()), (0, 0, None));
    player.handle_timeout(Time::from_secs(6));
    assert_eq!(player.outstanding(), Some(request), "a timeout without a reason");
    player.on_complete(Time::from_secs(4));
    let session = player.session(Time::from_secs(5));
    assert_eq!(session.segments[0].bytes, request.bytes.0, "no bytes were reported: the requested size");
    assert!(session.segments[0].throughput_mbps.is_finite(), "a download that took no time");
    assert_eq!(session.start_up_s, Some(1.0), "time did not go backwards");
    let second = player.outstanding().expect("the next request");
    player.on_bytes(Time::from_secs(7), second.bytes + Bytes(10));
    player.on_complete(Time::from_secs(7));
    player.on_complete(Time::from_secs(7));
    let third = player.outstanding().expect("a third request: the second end counts for it");
    assert_eq!((third.segment, player.session(Time::from_secs(7)).segments.len()), (3, 3));
    assert_eq!(
        player.session(Time::from_secs(7)).segments[1].bytes,
        second.bytes.0 + 10,
        "the bytes that came"
    );
}

/// Sessions of both rules over several links, with the mean of three seeds.
#[test]
fn table_of_sessions() {
    let links: [(&str, &[(f64, f64)]); 6] = [
        ("60 Mbit/s", &[(10.0, 60.0)]),
        ("5 Mbit/s", &[(10.0, 5.0)]),
        ("1 Mbit/s", &[(10.0, 1.0)]),
        ("20 and 3 Mbit/s, 10 s each", &[(10.0, 20.0), (10.0, 3.0)]),
        ("20 Mbit/s, 5 s outage every 30 s", &[(25.0, 20.0), (5.0, 0.0)]),
        ("3 Mbit/s, 20 s outage every 60 s", &[(40.0, 3.0), (20.0, 0.0)]),
    ];
    let mut table = format!(
        "{:32} {:6} {:>8} {:>6} {:>9} {:>8} {:>7} {:>5} {:>5}\n",
        "link", "rule", "start-up", "stalls", "stalled", "switches", "bitrate", "phone", "TV"
    );
    for (name, spans) in links {
        for rule in Rule::ALL {
            let sessions: Vec<Session> = (1..=3)
                .map(|seed| Run::new(&config(rule), &Link::new(spans), seed).until(Time::from_secs(10_000)))
                .collect();
            let mean = |of: &dyn Fn(&Session) -> f64| sessions.iter().map(of).sum::<f64>() / 3.0;
            writeln!(
                table,
                "{name:32} {rule:6} {:6.2} s {:6.1} {:7.2} s {:8.1} {:7.2} {:5.2} {:5.2}",
                mean(&|session| session.start_up_s.unwrap_or(f64::NAN)),
                mean(&|session| session.stalls.len() as f64),
                mean(&|session| session.stalled_s),
                mean(&|session| f64::from(session.switches)),
                mean(&|session| session.mean_bitrate_mbps),
                mean(&score),
                mean(&|session| score_on(session, &Viewing::television())),
            )
            .expect("a string");
        }
    }
    insta::assert_snapshot!(table);
}

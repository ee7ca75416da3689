//! Invariants over random networks and random calls.

use std::time::Duration;

use airpace_core::{Bytes, Streams, Time};
use airpace_video::{Ladder, Player, PlayerConfig, Quality, Rule, Session, State, Viewing};
use proptest::prelude::*;

use crate::link::{Link, Run};

/// Rates in Mbit/s: outages, slow and fast spans.
fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 2 => 0.05..1.0, 3 => 1.0..20.0, 1 => 20.0..500.0]
}

fn link() -> impl Strategy<Value = Link> {
    let span = (10u64..60_000, rate());
    (proptest::collection::vec(span, 1..8), 0u64..400, 0.2..50.0).prop_map(|(spans, rtt_ms, last)| {
        let mut spans: Vec<(Duration, f64)> =
            spans.into_iter().map(|(ms, mbps)| (Duration::from_millis(ms), mbps)).collect();
        // The video must end: the last span has a rate.
        spans.push((Duration::from_secs(1), last));
        Link { rtt: Duration::from_millis(rtt_ms), spans }
    })
}

fn config() -> impl Strategy<Value = PlayerConfig> {
    let buffers = (0.1..15.0, 0.1..15.0, 0.0..40.0);
    let ladder = (0.5..10.0, 1usize..=12);
    (buffers, ladder, 0.1..180.0, 0.0..0.6, any::<bool>(), any::<bool>()).prop_map(
        |(
            (start_up_buffer_s, rebuffer_s, room),
            (segment_s, representations),
            duration_s,
            variation,
            by_rate,
            abandon,
        )| {
            let mut ladder = Ladder { segment_s, ..Ladder::default() };
            ladder.representation.truncate(representations);
            PlayerConfig {
                ladder,
                duration_s,
                size_variation: variation,
                start_up_buffer_s,
                rebuffer_s,
                max_buffer_s: f64::max(start_up_buffer_s, rebuffer_s) + segment_s + room,
                rule: if by_rate { Rule::Rate } else { Rule::Buffer },
                abandon,
            }
        },
    )
}

fn played(config: &PlayerConfig, link: &Link, seed: u64) -> Session {
    Run::new(config, link, seed).until(Time::from_secs(10_000_000))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// `Run` checks the buffer, the order of requests and the sum of all times after each event.
    #[test]
    fn every_segment_is_played_once_over_any_network(config in config(), link in link(), seed in 0u64..1000) {
        let session = played(&config, &link, seed);
        prop_assert_eq!(session.state, State::Ended);
        let numbers: Vec<u32> = session.segments.iter().map(|one| one.segment).collect();
        prop_assert_eq!(numbers, (0..config.segments()).collect::<Vec<_>>());
        let media_s = f64::from(config.segments()) * config.ladder.segment_s;
        prop_assert!((session.played_s - media_s).abs() < 1e-6, "{} of {media_s} s", session.played_s);
        prop_assert!(media_s >= config.duration_s - 1e-6);
        prop_assert!(session.buffer.iter().all(|one| one.level_s >= 0.0));
        prop_assert!(session.stalls.iter().all(|stall| stall.length_s >= 0.0));
        let stalled_s: f64 = session.stalls.iter().map(|stall| stall.length_s).sum();
        prop_assert!((stalled_s - session.stalled_s).abs() < 1e-6);
        prop_assert_eq!(played(&config, &link, seed), session, "the same seed gives the same session");
    }

    #[test]
    fn a_report_survives_its_text(config in config(), link in link(), seconds in 0u64..100) {
        let session = Run::new(&config, &link, 1).until(Time::from_secs(seconds));
        let text = serde_json::to_string(&session).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Session>(&text).expect("the same format"), session);
    }

    #[test]
    fn scores_are_on_the_scale(config in config(), link in link(), phone in any::<bool>()) {
        let session = played(&config, &link, 1);
        let viewing = if phone { Viewing::default() } else { Viewing::television() };
        if let Some(quality) = Quality::of(&session, &viewing).expect("a valid screen") {
            let scores = [quality.score, quality.stalling, quality.without_stalls];
            let on_scale = |score: &f64| (1.0..=5.0).contains(score);
            prop_assert!(scores.iter().chain(&quality.video).all(on_scale), "{quality:?}");
            prop_assert!(quality.score <= quality.without_stalls + 1e-9, "stalls do not raise the score");
        } else {
            prop_assert!(session.played_s < 1.0);
        }
    }

    /// Calls in any order, at any time, also backwards.
    #[test]
    fn no_order_of_calls_breaks_the_player(
        config in config(),
        calls in proptest::collection::vec((0u8..4, 0u64..20_000, 0u64..10_000_000), 0..200),
    ) {
        let mut player = Player::new(&config, Streams::new(1).draws("video"), Time::ZERO).expect("valid");
        for (call, ms, bytes) in calls {
            let now = Time::from_millis(ms);
            match call {
                0 => player.on_bytes(now, Bytes(bytes)),
                1 => player.on_complete(now),
                2 => player.handle_timeout(now),
                _ => _ = player.poll_action(),
            }
            prop_assert!(player.buffered().as_secs_f64() <= config.max_buffer_s + 1e-6);
        }
        let session = player.session(Time::from_secs(20));
        let waited_s = session.start_up_s.unwrap_or(session.elapsed_s);
        prop_assert!((waited_s + session.played_s + session.stalled_s - session.elapsed_s).abs() < 1e-6);
        let _ = Quality::of(&session, &Viewing::default());
    }
}

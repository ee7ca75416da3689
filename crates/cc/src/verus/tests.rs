//! Tests of the profile and of the stored windows.

use super::profile::{DelayProfile, Fit};
use super::sent::SentWindows;

/// A profile in which the delay is 40 ms up to a window of 20 packets, and rises by 1 ms per further packet.
fn knee(fit: Fit) -> DelayProfile {
    let mut profile = DelayProfile::new(fit);
    for window in 1..=100 {
        profile.record(f64::from(window), 40.0 + f64::from((window - 20).max(0)));
    }
    assert!(profile.fit());
    profile
}

#[test]
fn the_profile_tells_the_window_of_a_delay() {
    let profile = knee(Fit::Interpolated);
    assert_eq!(profile.window(40.0), Some(20.0), "the largest window without a queue");
    assert_eq!(profile.window(70.5), Some(50.0));
    assert_eq!(profile.window(39.0), Some(1.0), "no window has less delay than the least one");
    assert_eq!(profile.window(140.0), Some(120.0), "beyond the largest window seen, the curve is straight");
    let delay_ms = profile.delay_ms(50.5).unwrap();
    assert!((delay_ms - 70.5).abs() < 1e-9);
    let smooth = knee(Fit::Penalised).window(100.0).unwrap();
    assert!((78.0..=82.0).contains(&smooth), "the smooth curve is close: {smooth}");
}

#[test]
fn a_window_seen_again_moves_its_point_by_an_eighth() {
    let mut profile = knee(Fit::Interpolated);
    profile.record(100.0, 200.0);
    assert!(profile.fit());
    assert_eq!(profile.delay_ms(100.0), Some(120.0 * 0.875 + 200.0 * 0.125));
}

#[test]
fn one_point_too_high_does_not_shut_the_way() {
    let mut profile = DelayProfile::new(Fit::Interpolated);
    for window in 1..=100 {
        profile.record(f64::from(window), if window == 30 { 500.0 } else { 40.0 + f64::from(window) });
    }
    assert!(profile.fit());
    assert_eq!(profile.window(100.5), Some(60.0));
}

#[test]
fn a_profile_that_does_not_rise_cannot_be_inverted() {
    let mut profile = DelayProfile::new(Fit::Interpolated);
    (1..=50).for_each(|window| profile.record(f64::from(window), 40.0));
    assert!(profile.fit());
    assert_eq!(profile.window(60.0), None);
    let mut few = DelayProfile::new(Fit::Penalised);
    (1..=4).for_each(|window| few.record(f64::from(window), 40.0));
    assert!(!few.fit(), "four windows are too few for a curve");
}

#[test]
fn what_the_overrun_spoilt_is_forgotten() {
    let mut profile = knee(Fit::Interpolated);
    profile.forget_from(80.0);
    assert_eq!(profile.largest(), 79);
}

#[test]
fn packets_remember_the_window_that_they_left_with() {
    let mut sent = SentWindows::default();
    for number in 0..20_000 {
        sent.push(number, (number / 2) as f64);
    }
    assert_eq!(sent.window_of(19_999), Some(9_999.0));
    assert_eq!(sent.window_of(19_000), Some(9_500.0));
    assert_eq!(sent.window_of(5), None, "old packets are forgotten");
}

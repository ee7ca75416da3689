use airpace_core::{DeviceId, Ecn, FlowId, Streams};
use proptest::prelude::*;

use super::*;

fn packet(number: u64) -> Packet {
    Packet {
        flow: FlowId(0),
        device: DeviceId(0),
        number,
        bytes: Bytes(1500),
        sent: Time::ZERO,
        ecn: Ecn::NotEct,
    }
}

fn wire(config: WireConfig) -> Wire {
    Wire::new(&config.plan().expect("a legal wire"), &Streams::new(1), "wire")
}

/// Sends `count` packets, one every `gap`, and returns all exits.
fn crossing(mut wire: Wire, count: u64, gap: Duration) -> Vec<Exit> {
    let mut exits = Vec::new();
    let mut now = Time::ZERO;
    for number in 0..count {
        exits.extend(std::iter::from_fn(|| wire.pop(now)));
        wire.push(now, packet(number));
        now += gap;
    }
    while let Some(next) = wire.poll_timeout() {
        exits.extend(std::iter::from_fn(|| wire.pop(next)));
    }
    assert!(exits.windows(2).all(|two| two[0].time <= two[1].time), "exits come in order of time");
    exits
}

fn numbers(exits: &[Exit]) -> Vec<u64> {
    exits.iter().map(|exit| exit.packet.number).collect()
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_plain_wire_delays_and_nothing_else() {
    let mut wire = wire(WireConfig { delay_ms: 12.5, ..WireConfig::default() });
    assert!(wire.impairments.is_none(), "the fast path");
    wire.push(Time::from_millis(1), packet(0));
    assert_eq!(wire.poll_timeout(), Some(Time::from_micros(13_500)));
    assert_eq!(wire.pop(Time::from_micros(13_499)), None);
    let exit = wire.pop(Time::from_micros(13_500)).unwrap();
    assert_eq!((exit.time, exit.fate), (Time::from_micros(13_500), Fate::Delivered));
    assert_eq!((wire.poll_timeout(), wire.backlog()), (None, Bytes::ZERO));
    assert_eq!(wire.base_delay(Bytes(1500)), Duration::from_micros(12_500));
}

#[test]
fn jitter_has_its_mean_and_keeps_the_order() {
    let config = WireConfig { delay_ms: 10.0, jitter_mean_ms: 1.06, ..WireConfig::default() };
    let exits = crossing(wire(config), 20_000, 100 * MS);
    assert!(numbers(&exits).is_sorted());
    let delays: Vec<f64> = exits
        .iter()
        .map(|exit| (exit.time - Time::from_millis(100 * exit.packet.number)).as_secs_f64() * 1e3)
        .collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((mean - 11.06).abs() < 0.03, "mean delay {mean} ms");
    let above_3ms = delays.iter().filter(|&&delay| delay > 13.0).count() as f64 / delays.len() as f64;
    assert!((above_3ms - 0.059).abs() < 0.006, "{above_3ms} of the packets are more than 3 ms late");
}

#[test]
fn losses_are_as_frequent_as_asked_and_end_as_wire_loss() {
    let exits = crossing(wire(WireConfig { loss: 0.02, ..WireConfig::default() }), 50_000, MS);
    assert_eq!(exits.len(), 50_000, "lost packets exit too");
    let lost = exits.iter().filter(|exit| exit.fate == Fate::WireLoss).count();
    assert!((850..1150).contains(&lost), "{lost} of 50,000 lost at 2 %");
}

fn on_off(on_mean_s: f64, off_mean_s: f64, starts: OnOff) -> WireConfig {
    let on_off = Some(OnOffConfig { on_mean_s, off_mean_s, starts });
    WireConfig { on_off, ..WireConfig::default() }
}

#[test]
fn a_wire_that_is_off_loses_what_comes_until_it_is_on_again() {
    // One packet is sent per millisecond. The test counts consecutive arrivals and consecutive losses.
    let exits = crossing(wire(on_off(0.4, 0.1, OnOff::On)), 400_000, MS);
    let lost = exits.iter().filter(|exit| exit.fate == Fate::WireLoss).count() as f64;
    assert!((lost / 400_000.0 - 0.2).abs() < 0.02, "off for a fifth of the time, not {lost}");
    let turns: Vec<usize> = exits.chunk_by(|a, b| a.fate == b.fate).map(<[Exit]>::len).collect();
    assert_eq!(exits[0].fate, Fate::Delivered, "it starts on");
    let mean_ms = |first: usize| {
        let turns: Vec<f64> = turns.iter().skip(first).step_by(2).map(|&packets| packets as f64).collect();
        let mean = turns.iter().sum::<f64>() / turns.len() as f64;
        let square = turns.iter().map(|turn| turn * turn).sum::<f64>() / turns.len() as f64;
        (mean, square / (mean * mean))
    };
    let ((on, on_shape), (off, off_shape)) = (mean_ms(0), mean_ms(1));
    assert!((370.0..430.0).contains(&on) && (93.0..107.0).contains(&off), "on {on} ms, off {off} ms");
    // The mean square of an exponential distribution is twice the square of its mean.
    assert!((1.75..2.25).contains(&on_shape) && (1.75..2.25).contains(&off_shape), "{on_shape}, {off_shape}");
}

#[test]
fn the_times_on_and_off_do_not_depend_on_packets() {
    let config = on_off(0.03, 0.03, OnOff::Off);
    let fates = |count: u64, gap: Duration| -> std::collections::BTreeMap<u64, Fate> {
        let exits = crossing(wire(config.clone()), count, gap);
        exits.iter().map(|exit| (exit.packet.number * gap.as_millis() as u64, exit.fate)).collect()
    };
    let (often, seldom) = (fates(7000, MS), fates(1000, 7 * MS));
    assert_eq!(often[&0], Fate::WireLoss, "it starts off");
    assert!(seldom.iter().all(|(ms, fate)| often[ms] == *fate), "all senders meet the same outages");
    assert!(often.values().any(|fate| *fate == Fate::Delivered));
}

#[test]
fn a_mean_of_zero_is_never() {
    let fates = |config| crossing(wire(config), 5_000, MS).iter().map(|exit| exit.fate).collect::<Vec<_>>();
    assert_eq!(fates(on_off(0.1, 0.0, OnOff::Off)), vec![Fate::Delivered; 5_000], "never off");
    assert_eq!(fates(on_off(0.0, 0.1, OnOff::On)), vec![Fate::WireLoss; 5_000], "never on");
}

#[test]
fn a_packet_under_way_when_the_wire_goes_off_arrives() {
    let mut wire =
        wire(WireConfig { delay_ms: 500.0, rate_mbps: Some(12.0), ..on_off(0.05, 10.0, OnOff::On) });
    wire.push(Time::ZERO, packet(0));
    wire.push(Time::from_secs(2), packet(1));
    let exits: Vec<Exit> = std::iter::from_fn(|| wire.pop(Time::from_secs(3))).collect();
    let seen: Vec<_> = exits.iter().map(|exit| (exit.time.as_millis(), exit.fate)).collect();
    assert_eq!(
        seen,
        [(501, Fate::Delivered), (2500, Fate::WireLoss)],
        "what is lost takes no time of the rate"
    );
}

#[test]
fn bursts_are_as_long_as_asked() {
    let burst = BurstConfig { to_bad: 0.01, to_good: 0.25, loss_in_bad: 1.0, loss_in_good: 0.0 };
    let exits = crossing(wire(WireConfig { burst: Some(burst), ..WireConfig::default() }), 100_000, MS);
    let lost: Vec<bool> = exits.iter().map(|exit| exit.fate == Fate::WireLoss).collect();
    let bursts = lost.windows(2).filter(|two| !two[0] && two[1]).count() as f64;
    let total = lost.iter().filter(|&&lost| lost).count() as f64;
    assert!((total / bursts - 4.0).abs() < 0.3, "bursts of {} packets", total / bursts);
    assert!((total / 1e5 - 0.01 / 0.26).abs() < 0.005, "stationary loss {}", total / 1e5);
}

#[test]
fn a_reordered_packet_arrives_after_its_followers() {
    let reorder = ReorderConfig { probability: 0.1, extra_ms: 3.5 };
    let config = WireConfig { delay_ms: 5.0, reorder: Some(reorder), ..WireConfig::default() };
    let exits = crossing(wire(config), 10_000, MS);
    let numbers = numbers(&exits);
    assert!(!numbers.is_sorted());
    let late: Vec<u64> = numbers
        .iter()
        .enumerate()
        .filter(|&(i, n)| numbers[..i].iter().any(|m| m > n))
        .map(|(_, &n)| n)
        .collect();
    assert!((800..1200).contains(&late.len()), "{} of 10,000 packets overtaken at 10 %", late.len());
    for exit in exits.iter().filter(|exit| late.contains(&exit.packet.number)) {
        assert_eq!(exit.time, Time::from_millis(exit.packet.number) + Duration::from_micros(8500));
    }
}

#[test]
fn a_duplicate_has_the_number_of_its_original() {
    let exits = crossing(wire(WireConfig { duplicate: 0.1, ..WireConfig::default() }), 10_000, MS);
    let twins = exits.windows(2).filter(|two| two[0] == two[1]).count();
    assert_eq!(exits.len(), 10_000 + twins);
    assert!((850..1150).contains(&twins), "{twins} of 10,000 packets duplicated at 10 %");
}

#[test]
fn a_rate_serialises_and_shows_its_backlog() {
    let mut wire = wire(WireConfig { delay_ms: 1.0, rate_mbps: Some(12.0), ..WireConfig::default() });
    assert_eq!(wire.base_delay(Bytes(1500)), 2 * MS);
    (0..4).for_each(|number| wire.push(Time::ZERO, packet(number)));
    assert_eq!(wire.backlog(), Bytes(6000));
    assert_eq!(wire.pop(Time::from_millis(1)), None);
    assert_eq!(wire.backlog(), Bytes(4500), "one packet is serialised in 1 ms");
    let left: Vec<Time> =
        std::iter::from_fn(|| wire.pop(Time::from_millis(9))).map(|exit| exit.time).collect();
    assert_eq!(left, [2, 3, 4, 5].map(Time::from_millis));
}

#[test]
fn a_batching_wire_releases_on_its_grid() {
    let config = WireConfig { delay_ms: 1.0, batch_ms: 8.0, ..WireConfig::default() };
    let exits = crossing(wire(config), 30, MS);
    assert!(exits.iter().all(|exit| exit.time.as_nanos().is_multiple_of(8_000_000)));
    let at_16 = exits.iter().filter(|exit| exit.time == Time::from_millis(16)).count();
    assert_eq!(at_16, 8, "all packets that arrived since the release before");
}

fn swaying(up_to_ms: f64, every_ms: f64, may_reorder: bool) -> WireConfig {
    let sway = Some(SwayConfig { up_to_ms, every_ms, may_reorder });
    WireConfig { delay_ms: 5.0, sway, ..WireConfig::default() }
}

fn delays_ms(exits: &[Exit], gap: Duration) -> Vec<f64> {
    let sent = |exit: &Exit| Time::ZERO + gap * exit.packet.number as u32;
    exits.iter().map(|exit| (exit.time - sent(exit)).as_secs_f64() * 1e3).collect()
}

#[test]
fn a_sway_holds_for_its_time_and_is_uniform() {
    let exits = crossing(wire(swaying(16.0, 100.0, true)), 100_000, 10 * MS);
    let mut delays = vec![0.0; exits.len()];
    for (exit, delay) in exits.iter().zip(delays_ms(&exits, 10 * MS)) {
        delays[exit.packet.number as usize] = delay;
    }
    assert!(delays.iter().all(|delay| (5.0..=21.0).contains(delay)), "between the delay and 16 ms more");
    for held in delays.chunks(10) {
        assert!(held.iter().all(|delay| delay == &held[0]), "one draw for 100 ms: {held:?}");
    }
    let drawn: Vec<f64> = delays.chunks(10).map(|held| held[0]).collect();
    let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
    assert!((mean - 13.0).abs() < 0.2, "mean {mean} ms of 5 to 21");
    let low = drawn.iter().filter(|delay| **delay < 9.0).count() as f64 / drawn.len() as f64;
    assert!((low - 0.25).abs() < 0.02, "{low} of the draws are in the lowest quarter");
}

#[test]
fn a_sway_does_not_depend_on_what_crosses() {
    let often = crossing(wire(swaying(50.0, 100.0, true)), 10_000, MS);
    let seldom = crossing(wire(swaying(50.0, 100.0, true)), 100, 100 * MS);
    for (exit, delay) in seldom.iter().zip(delays_ms(&seldom, 100 * MS)) {
        let number = exit.packet.number * 100;
        let other = often.iter().find(|exit| exit.packet.number == number).expect("it crossed");
        let other_delay = (other.time - Time::from_millis(number)).as_secs_f64() * 1e3;
        assert!((delay - other_delay).abs() < 1e-9, "at {number} ms: {delay} and {other_delay} ms");
    }
}

proptest! {
    #[test]
    fn a_sway_keeps_order_unless_it_may_not_and_loses_nothing(
        up_to_ms in 0.0..200.0_f64, every_ms in 1.0..50.0_f64, gap_us in 1_u64..5_000, may_reorder: bool,
    ) {
        let gap = Duration::from_micros(gap_us);
        let exits = crossing(wire(swaying(up_to_ms, every_ms, may_reorder)), 500, gap);
        let mut numbers = numbers(&exits);
        prop_assert!(may_reorder || numbers.is_sorted());
        for delay in delays_ms(&exits, gap) {
            prop_assert!((5.0 - 1e-9..5.0 + up_to_ms + 1e-6).contains(&delay), "{} ms", delay);
        }
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    }
}

#[test]
fn the_same_stream_gives_the_same_crossing() {
    let config = WireConfig { jitter_mean_ms: 2.0, loss: 0.1, duplicate: 0.1, ..WireConfig::default() };
    assert_eq!(crossing(wire(config.clone()), 1000, MS), crossing(wire(config), 1000, MS));
}

#[test]
fn errors_name_key_and_remedy() {
    let error = |config: WireConfig| config.plan().unwrap_err().to_string();
    let plain = WireConfig::default();
    assert_eq!(
        error(WireConfig { loss: 2.0, ..plain.clone() }),
        "`loss` is 2; a probability is 0 to 1 (0.01 is one in a hundred)"
    );
    assert_eq!(
        error(WireConfig { delay_ms: -1.0, ..plain.clone() }),
        "`delay_ms` is -1; give a number of at least 0"
    );
    assert_eq!(
        error(WireConfig { rate_mbps: Some(0.0), ..plain.clone() }),
        "`rate_mbps` is 0; give a number above 0"
    );
    assert_eq!(
        error(swaying(10.0, 0.5, false)),
        "`sway.every_ms` is 0.5; the least is 1: for a delay of each packet's own, set `jitter_mean_ms`"
    );
    assert_eq!(error(swaying(-1.0, 5.0, false)), "`sway.up_to_ms` is -1; give a number of at least 0");
    assert_eq!(error(on_off(-1.0, 1.0, OnOff::On)), "`on_off.on_mean_s` is -1; give a number of at least 0");
    assert_eq!(
        error(on_off(1.0, 1e-4, OnOff::On)),
        "`on_off.off_mean_s` is 0.0001; the least is 0.001, or 0: for a loss of each packet's own, set `loss`"
    );
    assert_eq!(
        error(on_off(0.0, 0.0, OnOff::On)),
        "`on_off.on_mean_s` is 0, and so is `off_mean_s`; give one of them more"
    );
    let reorder = Some(ReorderConfig { probability: 0.5, extra_ms: f64::NAN });
    assert_eq!(
        error(WireConfig { reorder, ..plain }),
        "`reorder.extra_ms` is NaN; give a number of at least 0"
    );
}

#[test]
fn the_jitter_of_each_packet_is_known_beforehand() {
    let config = WireConfig {
        delay_ms: 10.0,
        jitter_mean_ms: 2.0,
        loss: 0.2,
        duplicate: 0.2,
        ..WireConfig::default()
    };
    let jitters = config.plan().unwrap().jitters(&Streams::new(1), "wire").expect("it has jitter");
    let jitters: Vec<Duration> = jitters.take(500).collect();
    for exit in crossing(wire(config), 500, 1_000 * MS) {
        let number = exit.packet.number;
        let entered = Time::from_secs(number);
        assert_eq!(exit.time - entered, 10 * MS + jitters[number as usize], "packet {number}");
    }
    assert!(WireConfig::default().plan().unwrap().jitters(&Streams::new(1), "wire").is_none());
}

#[test]
fn from_its_far_end_a_wire_loses_the_same_packets_at_once() {
    let config = WireConfig {
        delay_ms: 10.0,
        jitter_mean_ms: 2.0,
        loss: 0.2,
        duplicate: 0.2,
        ..WireConfig::default()
    };
    let near = config.plan().unwrap().seen_from_far_end().expect("nothing depends on time");
    let near = crossing(Wire::new(&near, &Streams::new(1), "wire"), 500, 100 * MS);
    let far = crossing(wire(config), 500, 100 * MS);
    let fates = |exits: &[Exit]| exits.iter().map(|exit| (exit.packet.number, exit.fate)).collect::<Vec<_>>();
    assert_eq!(fates(&near), fates(&far));
    assert!(near.iter().all(|exit| exit.time == Time::from_millis(100 * exit.packet.number)));
    let reordering = WireConfig {
        reorder: Some(ReorderConfig { probability: 0.1, extra_ms: 1.0 }),
        ..WireConfig::default()
    };
    assert!(reordering.plan().unwrap().seen_from_far_end().is_none(), "packets that overtake each other");
}

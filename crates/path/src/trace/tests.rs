use airpace_core::remedy::explain_plainly;
use airpace_core::{DeviceId, Ecn, FlowId, Streams};
use proptest::prelude::*;

use super::synth::{Model, RandomWalk};
use super::*;
use crate::queue::Discipline;

fn packet(number: u64, bytes: u64) -> Packet {
    Packet {
        flow: FlowId(0),
        device: DeviceId(0),
        number,
        bytes: Bytes(bytes),
        sent: Time::ZERO,
        ecn: Ecn::NotEct,
    }
}

fn link(times_ms: &[u64], config: TraceConfig) -> TraceLink {
    let trace = Trace::from_times_ms(times_ms.to_vec()).expect("a legal trace");
    TraceLink::new(Arc::new(trace), &config).expect("a legal link")
}

/// The number and the departure (ms) of each packet that leaves up to millisecond `until`.
fn leaves(link: &mut TraceLink, until: u64) -> Vec<(u64, u64)> {
    let exits = std::iter::from_fn(|| link.pop(Time::from_millis(until)));
    exits.map(|exit| (exit.packet.number, exit.time.as_millis())).collect()
}

#[test]
fn a_packet_never_uses_a_chance_of_its_own_millisecond() {
    let mut link = link(&[3, 3, 4, 10], TraceConfig::default());
    link.push(Time::from_micros(3400), packet(0, 1500));
    assert_eq!(link.poll_timeout(), Some(Time::from_millis(4)));
    assert_eq!(leaves(&mut link, 20), [(0, 4)]);
    assert_eq!((link.poll_timeout(), link.used()), (None, 1));
}

#[test]
fn after_its_last_chance_the_trace_starts_anew() {
    let mut link = link(&[0, 5, 10], TraceConfig::default());
    (0..7).for_each(|number| link.push(Time::ZERO, packet(number, 1500)));
    // Millisecond 10 has the last opportunity of one repetition, and also the first opportunity of the next repetition,
    // whose time in the trace is 0.
    assert_eq!(leaves(&mut link, 100), [(0, 5), (1, 10), (2, 10), (3, 15), (4, 20), (5, 20), (6, 25)]);
}

#[test]
fn small_packets_share_a_chance_and_large_ones_take_several() {
    let mut link = link(&[1, 2, 3, 4, 5, 6], TraceConfig::default());
    [700, 700, 700, 2000, 40].iter().zip(0..).for_each(|(&bytes, n)| link.push(Time::ZERO, packet(n, bytes)));
    // Each packet counts with 4 more bytes. The opportunities carry 704 + 704 + 96, 608 + 896, and 1108 + 44 bytes; the
    // unused bytes of the last opportunity are lost.
    assert_eq!(link.backlog(), Bytes(4140));
    assert_eq!(leaves(&mut link, 1), [(0, 1), (1, 1)]);
    assert_eq!(link.backlog(), Bytes(608 + 2040));
    assert_eq!(leaves(&mut link, 9), [(2, 2), (3, 3), (4, 3)]);
}

#[test]
fn what_a_chance_has_left_over_is_lost() {
    let mut link = link(&[1, 2, 3], TraceConfig::default());
    link.push(Time::ZERO, packet(0, 40));
    link.push(Time::from_millis(1), packet(1, 1500));
    assert_eq!(leaves(&mut link, 9), [(0, 1), (1, 2)]);
}

#[test]
fn the_packet_in_transit_is_outside_of_the_queue() {
    let buffer = BufferConfig { packets: Some(2), ..BufferConfig::default() };
    let mut link = link(&[1, 1000], TraceConfig { buffer, ..TraceConfig::default() });
    (0..3).for_each(|number| link.push(Time::ZERO, packet(number, 2000)));
    assert_eq!(leaves(&mut link, 0), [(2, 0)], "the third is refused");
    assert_eq!(leaves(&mut link, 1), [], "a part of the first is under way");
    link.push(Time::from_millis(2), packet(3, 2000));
    link.push(Time::from_millis(2), packet(4, 2000));
    let refused = link.pop(Time::from_millis(2)).unwrap();
    assert_eq!((refused.packet.number, refused.fate), (4, Fate::QueueFull), "one place was free");
}

#[test]
fn a_run_may_start_in_the_middle_of_a_trace() {
    let mut link =
        link(&[10, 20, 1000], TraceConfig { start_s: Start::AtS(0.015), ..TraceConfig::default() });
    (0..4).for_each(|number| link.push(Time::ZERO, packet(number, 1500)));
    assert_eq!(leaves(&mut link, 2000), [(0, 5), (1, 985), (2, 995), (3, 1005)]);
    assert_eq!(link.opportunities_in(Time::ZERO, Time::from_millis(995)), 2);
    assert_eq!(link.opportunities_in(Time::ZERO, Time::from_millis(996)), 3);
}

#[test]
fn capacity_is_known_before_and_after() {
    let link = link(&[0, 0, 7, 10], TraceConfig::default());
    let chances = |from, to| link.opportunities_in(Time::from_micros(from), Time::from_micros(to));
    assert_eq!([chances(0, 1), chances(0, 0), chances(1, 7000), chances(1, 7001)], [2, 0, 0, 1]);
    assert_eq!([chances(0, 10_000), chances(10_000, 10_001), chances(0, 1_000_001)], [3, 3, 402]);
    assert_eq!(link.capacity_between(Time::ZERO, Time::from_secs(1)), Bytes(399 * 1500));
}

#[test]
fn codel_works_on_a_trace() {
    let buffer = BufferConfig { discipline: Discipline::CoDel, ..BufferConfig::default() };
    let mut link = link(&[1], TraceConfig { buffer, ..TraceConfig::default() });
    let mut dropped = Vec::new();
    for number in 0..2000 {
        // 13 packets arrive in 12 ms; there is one opportunity per millisecond.
        let now = Time::from_micros(number * 12_000 / 13);
        link.push(now, packet(number, 1500));
        let exits = std::iter::from_fn(|| link.pop(now));
        dropped.extend(exits.filter(|exit| exit.fate == Fate::Aqm).map(|exit| exit.time.as_millis()));
    }
    // The waiting time of a packet counts from the start of its millisecond. The queue grows by one packet in 12 ms.
    // The fifth queued packet arrives after about 40 ms, and the queue may persist for 100 ms.
    assert!((135..150).contains(&dropped[0]), "the first drop is at {} ms", dropped[0]);
    assert_eq!(dropped[1] - dropped[0], 100);
}

#[test]
fn what_is_wrong_with_a_trace_is_said_with_line_and_remedy() {
    let error = |file: &str| explain_plainly(&Trace::parse(file.as_bytes(), None).unwrap_err());
    insta::assert_snapshot!(
        ["", "\n\n", "0\n0\n", "5\n4\n", "1\n\n-3\n", "1\n2.5\n", "1\nsix\n", "99999999999999999999", "9999999999999",
         "time_s,rate\n0,1\n", "time_s,mbps\n0,1\n1,1\n3,1\n", "mbps\n-1\n", "time_s,mbps\n0\n", "mbps\n1\nNaN\n", "mbps\n0.001\n"]
            .map(error)
            .join("\n"),
        @r"
        the trace is empty; give one millisecond per line, each an opportunity to deliver 1500 bytes
        the trace is empty; give one millisecond per line, each an opportunity to deliver 1500 bytes
        line 2: the last time is 0; the last time is the trace's period in ms; it must be at least 1
        line 2: time 4 after 5; times never decrease; sort the lines by number
        line 3: `-3` is no time; times are milliseconds from the start of the trace, 0 or more
        line 2: `2.5` is no time; each line is one whole number of milliseconds (a table of rates starts with a header)
        line 2: `six` is no time; each line is one whole number of milliseconds (a table of rates starts with a header)
        line 1: `99999999999999999999` is no time; times are milliseconds from the start of the trace; subtract the first one
        line 1: time 9999999999999 is more than eleven days; times are milliseconds from the start of the trace; subtract the first one
        line 1: the header names no rate; name the unit in the header, as in `time_s,mbps`, or choose a column and its unit, as in `DL_bitrate:kbps`
        line 4: time_s advances by 2.000 s, and by 1.000 s in other rows; give rows at equal intervals, without gaps
        line 2: mbps is -1; give a rate from 0 to a million Mbit/s
        line 2: column `mbps` holds ``, which is no number; give a decimal number
        line 3: column `mbps` holds `NaN`, which is no number; give a decimal number
        column `mbps` adds up to less than one packet; a trace needs at least one delivery opportunity; choose another column or file
        "
    );
}

#[test]
fn files_of_other_systems_are_read() {
    let read = |file: &str| Trace::parse(file.as_bytes(), None).map(|trace| trace.times_ms().to_vec());
    assert_eq!(read("\u{feff}1\r\n2\r\n\r\n"), Ok(vec![1, 2]));
    assert_eq!(read("\u{feff}Time_s,\tMbps\r\n7, 3\r\n").map(|times| times.len()), Ok(250));
}

#[test]
fn what_is_wrong_with_a_log_is_said_with_line_and_remedy() {
    let error = |text: &str| explain_plainly(&mmlink::Log::parse(text).unwrap_err());
    insta::assert_snapshot!(
        ["1 # 1504\n", "# queue: red [packets=1]\n", "# queue: droptail [size=1]\n", "# base timestamp: 5\n1 x 3\n",
         "# queue: infinite\n# base timestamp: 5\n7 + 1\n6 + 1\n"]
            .map(error)
            .join("\n"),
        @r"
        the log's header has no `# base timestamp:`; give the whole log, with its first lines, as mm-link wrote it
        line 1: queue `red` is none that our link has; use infinite, droptail, drophead, codel or pie
        line 1: queue argument `size=1` is unknown; arguments are packets=N, bytes=N, target=MS, interval=MS, qdelay_ref=MS, max_burst=MS
        line 2: `1 x 3` is no line of an mm-link log; lines are `t # bytes`, `t + bytes`, `t - bytes delay` or `t d packets bytes`
        line 4: time 6 after 7; a log's times never decrease; give it as mm-link wrote it
        "
    );
}

#[test]
fn a_log_may_name_every_queue_that_we_have() {
    let buffer =
        |queue: &str| mmlink::Log::parse(&format!("# queue: {queue}\n# base timestamp: 5\n")).unwrap().buffer;
    let plain = BufferConfig::default;
    assert_eq!(buffer("infinite"), plain());
    assert_eq!(buffer("droptail [packets=250]"), BufferConfig { packets: Some(250), ..plain() });
    let drop_head = BufferConfig { discipline: Discipline::DropHead, bytes: Some(9000), ..plain() };
    assert_eq!(buffer("drophead [bytes=9000]"), drop_head);
    let codel =
        BufferConfig { discipline: Discipline::CoDel, packets: Some(9), interval_ms: 50.0, ..plain() };
    assert_eq!(buffer("codel [packets=9, target=5, interval=50]"), codel);
    let pie = BufferConfig {
        discipline: Discipline::Pie,
        bytes: Some(9000),
        qdelay_ref_ms: 20.0,
        max_burst_ms: 100.0,
        ..plain()
    };
    assert_eq!(buffer("pie [bytes=9000, qdelay_ref=20, max_burst=100]"), pie);
}

#[test]
fn a_link_that_cannot_be_is_refused() {
    let trace = Arc::new(Trace::from_times_ms(vec![1]).unwrap());
    let backwards = TraceConfig { start_s: Start::AtS(-1.0), ..TraceConfig::default() };
    let error = TraceLink::new(trace.clone(), &backwards).unwrap_err().to_string();
    assert_eq!(error, "`start_s` is -1; give a number of at least 0");
    let config = TraceConfig { opportunity_bytes: 4, ..TraceConfig::default() };
    let error = TraceLink::new(trace, &config).unwrap_err().to_string();
    assert_eq!(
        error,
        "`opportunity_bytes` is 4, which the 4 header bytes of one packet use up; 1504 carries one of 1500"
    );
}

#[test]
fn a_constant_rate_comes_out_as_asked() {
    let trace = synth::constant(Rate::from_mbps(12.0), Duration::from_secs(2)).unwrap();
    assert_eq!(trace.times_ms(), (1..=2000).collect::<Vec<u64>>());
    let slow = synth::constant(Rate::from_mbps(0.57), Duration::from_secs(60)).unwrap();
    assert!((slow.info().mean_mbps - 0.57).abs() < 0.001);
    let error = synth::constant(Rate::ZERO, Duration::from_secs(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`rate_mbps` gives no trace (the trace is empty): give a rate and a duration that make at least one \
         packet of 1500 bytes"
    );
}

#[test]
fn steps_hold_their_rates() {
    let second = Duration::from_secs(1);
    let trace = synth::steps(&[
        (second, Rate::from_mbps(6.0)),
        (second, Rate::ZERO),
        (second, Rate::from_mbps(24.0)),
    ]);
    assert_eq!(trace.unwrap().to_rates_csv(), "time_s,mbps\n0,6.000\n1,0.000\n2,24.000\n");
}

#[test]
fn poisson_chances_have_the_mean_and_the_spread_of_their_law() {
    let mut rng = Streams::new(1).stream("synth");
    let trace = synth::poisson(Rate::from_mbps(600.0), Duration::from_secs(20), &mut rng).unwrap();
    let info = trace.info();
    assert!((info.mean_mbps / 600.0 - 1.0).abs() < 0.005, "mean {}", info.mean_mbps);
    let mut counts = vec![0f64; 20_001];
    trace.times_ms().iter().for_each(|&ms| counts[ms as usize] += 1.0);
    let variance = counts[1..].iter().map(|n| (n - 50.0) * (n - 50.0)).sum::<f64>() / 20_000.0;
    assert!(
        (variance / 50.0 - 1.0).abs() < 0.05,
        "the variance of chances per ms is {variance}, not their mean, 50"
    );
}

#[test]
fn a_random_walk_wanders_between_its_bounds_and_the_same_seed_gives_the_same() {
    let walk = RandomWalk::default();
    let make = |seed| {
        walk.generate(Duration::from_secs(120), &mut Streams::new(seed).stream("synth")).expect("a trace")
    };
    let (trace, info) = (make(1), make(1).info());
    assert_eq!(trace, make(1));
    assert_ne!(trace, make(2));
    assert!((2.0..18.0).contains(&info.mean_mbps) && info.sd_1s_mbps > 1.0, "{info:?}");
    let steady = RandomWalk { volatility_mbps: 0.0, ..walk };
    let info = steady.generate(Duration::from_secs(60), &mut Streams::new(1).stream("synth")).unwrap().info();
    assert!((info.mean_mbps - 6.0).abs() < 0.15, "without volatility the rate should stay: {info:?}");
    let error = RandomWalk { max_mbps: -1.0, ..walk }
        .generate(Duration::from_secs(1), &mut Streams::new(1).stream("x"));
    assert_eq!(error.unwrap_err().to_string(), "`max_mbps` is -1; give a number above 0");
}

#[test]
fn a_trace_made_by_its_mean_carries_it_whatever_the_model_and_the_seed() {
    let length = Duration::from_secs(60);
    for model in [Model::Cellular, Model::Poisson, Model::Constant] {
        for (seed, mbps) in (0..20).zip([0.5, 12.0, 80.0].into_iter().cycle()) {
            let trace = model.with_mean(Rate::from_mbps(mbps), length, &Streams::new(seed)).unwrap();
            let info = trace.info();
            assert!((info.mean_mbps / mbps - 1.0).abs() < 0.01, "{model:?}, seed {seed}: {info:?}");
            assert!((info.seconds - 60.0).abs() < 0.1, "{model:?}, seed {seed}: {info:?}");
            let windows = KpiTrace::of(&trace, Duration::from_secs(1));
            let most = windows.values().iter().map(|(_, rate)| rate.as_mbps()).fold(0.0, f64::max);
            // The limit is a tenth above the maximum rate of the walk, plus a margin for the random variation of few
            // opportunities.
            assert!(most < 2.3 * mbps + 2.0, "{model:?}, seed {seed}: {most} Mbit/s of {mbps} in the mean");
        }
    }
    let [walk, poisson] = [Model::Cellular, Model::Poisson].map(|model| {
        let trace = model.with_mean(Rate::from_mbps(12.0), length, &Streams::new(1)).unwrap();
        assert_eq!(trace.info().mean_mbps, 12.0, "to the packet");
        trace.info().sd_1s_mbps
    });
    // For 1,000 opportunities per second, a Poisson process has a standard deviation of 31.6.
    assert!((poisson - 0.38).abs() < 0.1, "deviation of {poisson} Mbit/s over a second");
    assert!(walk > 2.0, "the rate of a walk should change: {walk} Mbit/s over a second");
    let nothing = Model::Cellular.with_mean(Rate::ZERO, length, &Streams::new(1)).unwrap_err();
    assert_eq!(nothing.key, "mean_mbps");
}

prop_compose! {
    fn any_trace()(mut times_ms in prop::collection::vec(0u64..300, 1..60), last in 1u64..400) -> Vec<u64> {
        times_ms.push(last);
        times_ms.sort_unstable();
        times_ms
    }
}

prop_compose! {
    /// Arrivals as (microseconds, bytes), in order of time.
    fn any_arrivals()(mut arrivals in prop::collection::vec((0u64..2_000_000, 1u64..4000), 1..150))
        -> Vec<(u64, u64)> {
        arrivals.sort_unstable();
        arrivals
    }
}

proptest! {
    #[test]
    fn bytes_are_conserved_and_order_is_kept(
        times_ms in any_trace(),
        arrivals in any_arrivals(),
        limit in prop::option::of(1u64..20),
        start_ms in 0u64..1000,
    ) {
        let buffer = BufferConfig { packets: limit, ..BufferConfig::default() };
        let start_s = start_ms as f64 * 1e-3;
        let mut link = link(&times_ms, TraceConfig { buffer, start_s: Start::AtS(start_s), ..TraceConfig::default() });
        let mut exits = Vec::new();
        for (number, &(at, bytes)) in (0..).zip(&arrivals) {
            let now = Time::from_micros(at);
            exits.extend(std::iter::from_fn(|| link.pop(now)));
            link.push(now, Packet { sent: now, ..packet(number, bytes) });
        }
        let in_flight: u64 = arrivals.iter().map(|&(_, bytes)| bytes).sum::<u64>()
            - exits.iter().map(|exit| exit.packet.bytes.0).sum::<u64>();
        prop_assert!(link.backlog().0 <= in_flight);
        while let Some(next) = link.poll_timeout() {
            exits.extend(std::iter::from_fn(|| link.pop(next)));
        }
        prop_assert_eq!(exits.len(), arrivals.len());
        prop_assert_eq!(link.backlog(), Bytes::ZERO);
        prop_assert!(exits.windows(2).all(|two| two[0].time <= two[1].time));
        let delivered: Vec<&Exit> = exits.iter().filter(|exit| exit.fate == Fate::Delivered).collect();
        prop_assert!(delivered.windows(2).all(|two| two[0].packet.number < two[1].packet.number));
        prop_assert!(delivered.iter().all(|exit| exit.time.as_millis() > exit.packet.sent.as_millis()));
        let bytes = delivered.iter().map(|exit| exit.packet.bytes).sum::<Bytes>();
        prop_assert!(bytes.0 + 4 * delivered.len() as u64 <= 1504 * link.used(), "more was carried than there was room for");
        if let Some(last) = delivered.last() {
            let chances = link.opportunities_in(Time::ZERO, last.time + Duration::from_nanos(1));
            prop_assert!(link.used() <= chances, "a chance was used twice");
        }
    }

    #[test]
    fn chances_are_counted_as_they_are_met(times_ms in any_trace(), from in 0u64..2000, span in 0u64..2000) {
        let trace = Trace::from_times_ms(times_ms.clone()).unwrap();
        let laps = (0..).map(|lap| lap * trace.period_ms()).take_while(|&lap| lap < from + span);
        let met = laps.flat_map(|lap| times_ms.iter().map(move |time| lap + time));
        let met = met.filter(|&time| from <= time && time < from + span).count() as u64;
        let counted = trace.opportunities_before(from + span) - trace.opportunities_before(from);
        prop_assert_eq!(counted, met);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(file in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Trace::parse(&file, None);
        let _ = Trace::parse_rates(&file, Some("mbps"));
        let _ = mmlink::Log::parse(&String::from_utf8_lossy(&file));
        let _ = SizeOffsets::parse(&file);
        let _ = Trains::parse(&file);
    }

    #[test]
    fn no_numbers_make_the_readers_of_recordings_panic(
        rows in prop::collection::vec(prop::collection::vec(prop_oneof![0_u64..200, any::<u64>()], 0..6), 0..30),
        at in any::<u64>(),
    ) {
        let row = |numbers: &Vec<u64>| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let text = rows.iter().map(row).collect::<Vec<_>>().join("\n");
        let _ = SizeOffsets::parse(text.as_bytes());
        if let Ok(trains) = Trains::parse(text.as_bytes()) {
            let (place, delay_ms) = trains.at(at);
            prop_assert!(place + 1 < trains.all().len() && delay_ms >= trains.least_delay_ms());
        }
        let lines = ["# queue: pie", "# base timestamp: 3"].into_iter().map(str::to_owned);
        let signs = ["#", "+", "-", "d"].into_iter().cycle();
        let log = lines.chain(rows.iter().zip(signs).map(|(numbers, sign)| match &numbers[..] {
            [first, rest @ ..] => format!("{first} {sign} {}", row(&rest.to_vec())),
            [] => String::from("0 # 1504"),
        }));
        let _ = mmlink::Log::parse(&log.collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn holes_and_rates_are_those_of_the_part_that_a_run_uses() {
    let trace = Trace::from_times_ms(vec![1_000, 2_000, 10_000, 11_000, 12_000]).unwrap();
    let hole = |from_ms, for_ms| {
        let hole = trace.longest_hole_in(from_ms, for_ms);
        (hole.start_ms, hole.length.as_millis())
    };
    assert_eq!(hole(0, 2_500), (0, 1_000), "the long hole is later");
    assert_eq!(hole(0, 5_000), (2_000, 3_000), "a run's end cuts it");
    assert_eq!(hole(4_000, 7_000), (4_000, 6_000), "a run's start cuts it");
    assert_eq!(hole(11_500, 3_000), (0, 1_000), "the trace repeats");
    assert_eq!(hole(11_500, 12_000), (2_000, 8_000), "the whole trace");
    let mbps = |from_ms, for_ms| trace.mean_rate_in(from_ms, for_ms, Bytes(1_000_000)).as_mbps();
    assert_eq!(mbps(2_500, 7_000), 0.0);
    assert!((mbps(0, 2_500) - 6.4).abs() < 1e-9, "{}", mbps(0, 2_500));
}

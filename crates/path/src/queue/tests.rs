use airpace_core::{DeviceId, Ecn, FlowId};

use super::*;

fn packet(flow: u16, number: u64, bytes: u64) -> Packet {
    Packet {
        flow: FlowId(flow),
        device: DeviceId(0),
        number,
        bytes: Bytes(bytes),
        sent: Time::ZERO,
        ecn: Ecn::NotEct,
    }
}

fn queue(rate_mbps: f64, buffer: BufferConfig) -> Queue {
    Queue::new(&QueueConfig { rate_mbps, buffer, ..QueueConfig::default() }).expect("a legal queue")
}

fn drain(queue: &mut Queue, now: Time) -> Vec<Exit> {
    std::iter::from_fn(|| queue.pop(now)).collect()
}

fn delivered(exits: &[Exit]) -> Vec<(u64, u64)> {
    let delivered = exits.iter().filter(|exit| exit.fate == Fate::Delivered);
    delivered.map(|exit| (exit.packet.number, exit.time.as_nanos() / 1000)).collect()
}

fn dropped(exits: &[Exit]) -> Vec<u64> {
    exits.iter().filter(|exit| exit.fate != Fate::Delivered).map(|exit| exit.packet.number).collect()
}

const FIFO: BufferConfig = BufferConfig {
    discipline: Discipline::DropTail,
    packets: None,
    bytes: None,
    ms: None,
    target_ms: 5.0,
    interval_ms: 100.0,
    qdelay_ref_ms: 15.0,
    max_burst_ms: 150.0,
    quantum_bytes: 1514,
    flow_queues: 1024,
    ecn_threshold_ms: None,
};

#[test]
fn packets_leave_one_after_the_other_at_the_rate() {
    let mut queue = queue(12.0, FIFO);
    (0..3).for_each(|number| queue.push(Time::from_millis(5), packet(0, number, 1500)));
    assert_eq!((queue.poll_timeout(), queue.backlog()), (Some(Time::from_millis(6)), Bytes(4500)));
    assert_eq!(delivered(&drain(&mut queue, Time::from_millis(7))), [(0, 6000), (1, 7000)]);
    assert_eq!((queue.poll_timeout(), queue.backlog()), (Some(Time::from_millis(8)), Bytes(1500)));
    assert_eq!(delivered(&drain(&mut queue, Time::from_millis(8))), [(2, 8000)]);
    assert_eq!((queue.poll_timeout(), queue.backlog()), (None, Bytes::ZERO));
    assert_eq!(queue.base_delay(Bytes(1500)), Duration::from_millis(1));
}

#[test]
fn without_a_rate_packets_pass_at_once() {
    let mut queue = queue(f64::INFINITY, FIFO);
    queue.push(Time::from_micros(10), packet(0, 0, 1500));
    queue.push(Time::from_micros(10), packet(0, 1, 1500));
    assert_eq!(delivered(&drain(&mut queue, Time::from_micros(10))), [(0, 10), (1, 10)]);
    assert_eq!((queue.backlog(), queue.base_delay(Bytes(1500))), (Bytes::ZERO, Duration::ZERO));
}

#[test]
fn a_rate_step_takes_hold_in_the_middle_of_a_packet() {
    let schedule = [(0.0005, 24.0), (0.002, 0.0), (0.004, 12.0), (0.0045, f64::INFINITY)]
        .map(|(at_s, rate_mbps)| RateStep { at_s, rate_mbps })
        .to_vec();
    let mut queue =
        Queue::new(&QueueConfig { rate_mbps: 12.0, schedule, redraw: None, buffer: FIFO }).unwrap();
    (0..6).for_each(|number| queue.push(Time::ZERO, packet(0, number, 1500)));
    let mut exits = Vec::new();
    while let Some(next) = queue.poll_timeout() {
        exits.extend(drain(&mut queue, next));
    }
    // Half of packet 0 takes 0.5 ms at 12 Mbit/s, the other half 0.25 ms at 24 Mbit/s. Packets 1 and 2 take 0.5 ms
    // each. At 2 ms, half of packet 3 has been served and the rate becomes zero; the other half is served from 4 to 4.5
    // ms. From 4.5 ms on, all packets pass immediately.
    assert_eq!(delivered(&exits), [(0, 750), (1, 1250), (2, 1750), (3, 4500), (4, 4500), (5, 4500)]);
}

#[test]
fn drop_tail_refuses_what_is_over_the_limit_and_not_one_byte_less() {
    let fills = |buffer: BufferConfig, sizes: &[u64]| {
        let mut queue = queue(12.0, buffer);
        queue.push(Time::ZERO, packet(0, 99, 1500)); // in service, not waiting
        for (number, &bytes) in sizes.iter().enumerate() {
            queue.push(Time::ZERO, packet(0, number as u64, bytes));
        }
        dropped(&drain(&mut queue, Time::ZERO))
    };
    assert_eq!(fills(BufferConfig { packets: Some(2), ..FIFO }, &[1500, 40, 40]), [2]);
    assert_eq!(fills(BufferConfig { bytes: Some(3000), ..FIFO }, &[1500, 1500, 1]), [2]);
    assert_eq!(fills(BufferConfig { bytes: Some(3000), ..FIFO }, &[1500, 1501, 1500]), [1]);
    // A limit of 2 ms at 12 Mbit/s is a limit of 3000 bytes.
    assert_eq!(fills(BufferConfig { ms: Some(2.0), ..FIFO }, &[1500, 1500, 1]), [2]);
    assert_eq!(fills(BufferConfig { packets: Some(9), bytes: Some(100), ..FIFO }, &[60, 60]), [1]);
    assert_eq!(fills(FIFO, &[1500; 5000]), [0; 0]);
}

#[test]
fn drop_head_lets_the_oldest_make_room() {
    let mut queue = queue(12.0, BufferConfig { discipline: Discipline::DropHead, packets: Some(2), ..FIFO });
    (0..5).for_each(|number| queue.push(Time::ZERO, packet(0, number, 1500)));
    let exits = drain(&mut queue, Time::from_millis(10));
    assert_eq!((dropped(&exits), delivered(&exits)), (vec![1, 2], vec![(0, 1000), (3, 2000), (4, 3000)]));
}

/// Offers packets of 1500 bytes of flow 0 at `offered_mbps` for 20 s; returns all exits.
fn overload(mut queue: Queue, offered_mbps: f64) -> Vec<Exit> {
    let gap = Rate::from_mbps(offered_mbps).time_for(Bytes(1500));
    let (mut exits, mut now, mut number) = (Vec::new(), Time::ZERO, 0);
    while now < Time::from_secs(20) {
        queue.push(now, Packet { sent: now, ..packet(0, number, 1500) });
        exits.extend(drain(&mut queue, now));
        now += gap;
        number += 1;
    }
    exits
}

#[test]
fn codel_drops_first_after_an_interval_and_then_by_its_law() {
    let codel = queue(12.0, BufferConfig { discipline: Discipline::CoDel, ..FIFO });
    let exits = overload(codel, 13.0);
    let drops: Vec<f64> = exits
        .iter()
        .filter(|exit| exit.fate == Fate::Aqm)
        .map(|exit| exit.time.as_secs_f64() * 1e3)
        .collect();
    // Each packet waits 1/13 ms longer than the previous packet. The delay exceeds 5 ms from about 65 ms on.
    assert!((165.0..172.0).contains(&drops[0]), "first drop at {} ms", drops[0]);
    let mut due = drops[0];
    for (count, &drop) in drops.iter().enumerate().take(20).skip(1) {
        due += 100.0 / (count as f64).sqrt();
        assert!((0.0..=1.001).contains(&(drop - due)), "drop {count} is due at {due} ms, came at {drop} ms");
    }
}

#[test]
fn codel_leaves_a_burst_alone() {
    let mut codel = queue(12.0, BufferConfig { discipline: Discipline::CoDel, ..FIFO });
    (0..60).for_each(|number| codel.push(Time::ZERO, packet(0, number, 1500)));
    assert_eq!(
        dropped(&drain(&mut codel, Time::from_secs(1))),
        [0; 0],
        "60 ms of queue that drain by themselves"
    );
}

#[test]
fn codel_remembers_the_rate_that_controlled_a_queue_of_late() {
    let mut codel = queue(12.0, BufferConfig { discipline: Discipline::CoDel, ..FIFO });
    let offer = |codel: &mut Queue, from_ms: u64, number: u64| {
        let mut drops = Vec::new();
        for i in 0..number {
            let now = Time::from_millis(from_ms) + Duration::from_micros(700 * i);
            codel.push(now, packet(0, i, 1500));
            drops
                .extend(drain(codel, now).iter().filter(|exit| exit.fate == Fate::Aqm).map(|exit| exit.time));
        }
        drops
    };
    let first = offer(&mut codel, 0, 1000);
    drain(&mut codel, Time::from_millis(1500));
    let second = offer(&mut codel, 1500, 1000);
    let gap = |drops: &[Time]| drops[1] - drops[0];
    assert!(
        first.len() > 4 && gap(&second) < gap(&first) / 2 + Duration::from_millis(5),
        "{first:?} {second:?}"
    );
}

#[test]
fn codel_marks_what_understands_marks_and_drops_nothing_of_it() {
    let capable = |queue: Queue| {
        let (mut exits, mut queue) = (Vec::new(), queue);
        let gap = Rate::from_mbps(13.0).time_for(Bytes(1500));
        let mut now = Time::ZERO;
        for number in 0..15_000 {
            queue.push(now, Packet { sent: now, ecn: Ecn::Ect, ..packet(0, number, 1500) });
            exits.extend(drain(&mut queue, now));
            now += gap;
        }
        exits
    };
    let codel = || queue(12.0, BufferConfig { discipline: Discipline::CoDel, ..FIFO });
    let marked = capable(codel());
    assert!(marked.iter().all(|exit| exit.fate == Fate::Delivered), "marks should replace all drops");
    let marks: Vec<Time> =
        marked.iter().filter(|exit| exit.packet.ecn == Ecn::Ce).map(|exit| exit.time).collect();
    let drops: Vec<Time> =
        overload(codel(), 13.0).iter().filter(|exit| exit.fate == Fate::Aqm).map(|exit| exit.time).collect();
    // A dropped packet leaves when the service of the next packet starts, a marked packet when its own service ends.
    for (mark, drop) in marks.iter().zip(&drops).take(10) {
        let apart = Duration::max(*mark - *drop, *drop - *mark);
        assert!(apart < Duration::from_millis(3), "marks come when drops would: {mark:?} and {drop:?}");
    }
    let fair = queue(12.0, BufferConfig { discipline: Discipline::FqCoDel, ..FIFO });
    let exits = capable(fair);
    assert!(exits.iter().any(|exit| exit.packet.ecn == Ecn::Ce), "FQ-CoDel should mark too");
    assert!(exits.iter().all(|exit| exit.fate == Fate::Delivered));
}

#[test]
fn pie_holds_the_delay_at_its_reference() {
    for (qdelay_ref_ms, seed) in [(15.0, 1), (15.0, 2), (40.0, 1)] {
        let config = BufferConfig { discipline: Discipline::Pie, qdelay_ref_ms, ..FIFO };
        let exits = overload(queue(12.0, config).begin(&Streams::new(seed), "queue"), 13.0);
        let late = exits.iter().filter(|exit| exit.packet.sent > Time::from_secs(8));
        let (mut waited_ms, mut lost, mut sent) = (0.0, 0, 0);
        for exit in late {
            sent += 1;
            match exit.fate {
                Fate::Delivered => waited_ms += (exit.time - exit.packet.sent).as_secs_f64() * 1e3 - 1.0,
                fate => lost += u64::from(fate == Fate::Aqm),
            }
        }
        let mean_ms = waited_ms / (sent - lost) as f64;
        assert!((mean_ms / qdelay_ref_ms - 1.0).abs() < 0.15, "{mean_ms} ms, not {qdelay_ref_ms}");
        let share = lost as f64 / sent as f64;
        assert!((share - 1.0 / 13.0).abs() < 0.005, "what does not fit is dropped: {share}");
    }
}

#[test]
fn pie_leaves_a_burst_and_a_short_queue_alone() {
    let pie = || queue(12.0, BufferConfig { discipline: Discipline::Pie, ..FIFO });
    let mut burst = pie();
    (0..120).for_each(|number| burst.push(Time::ZERO, packet(0, number, 1500)));
    assert_eq!(dropped(&drain(&mut burst, Time::from_secs(1))), [0; 0], "120 ms that drain by themselves");
    let exits = overload(pie(), 11.9);
    assert_eq!(dropped(&exits), [0; 0], "a queue that does not grow");
}

#[test]
fn pie_drops_other_packets_with_another_seed() {
    let lost = |seed| {
        let pie = queue(12.0, BufferConfig { discipline: Discipline::Pie, ..FIFO });
        dropped(&overload(pie.begin(&Streams::new(seed), "queue"), 13.0))
    };
    assert_eq!(lost(1), lost(1));
    assert_ne!(lost(1), lost(2));
}

#[test]
fn pie_marks_what_understands_marks_as_long_as_that_may_help() {
    let mut pie = queue(12.0, BufferConfig { discipline: Discipline::Pie, ..FIFO });
    let (mut exits, mut now) = (Vec::new(), Time::ZERO);
    // The queue grows slowly, so that the probability stays low for some time.
    for number in 0..10_000 {
        pie.push(now, Packet { ecn: Ecn::Ect, ..packet(0, number, 1500) });
        exits.extend(drain(&mut pie, now));
        now += Rate::from_mbps(12.3).time_for(Bytes(1500));
    }
    let first_drop = exits.iter().position(|exit| exit.fate == Fate::Aqm).unwrap_or(exits.len());
    let marks = exits[..first_drop].iter().filter(|exit| exit.packet.ecn == Ecn::Ce).count();
    assert!(marks > 10, "{marks} marks before the first drop");
    assert!(first_drop < exits.len(), "marks that nobody heeds should give way to drops");
}

#[test]
fn a_threshold_marks_whoever_waited_longer() {
    let buffer = BufferConfig { ecn_threshold_ms: Some(5.0), ..FIFO };
    let mut queue = queue(12.0, buffer);
    for number in 0..20 {
        let ecn = if number % 2 == 0 { Ecn::Ect } else { Ecn::NotEct };
        queue.push(Time::ZERO, Packet { ecn, ..packet(0, number, 1500) });
    }
    let marked: Vec<u64> = drain(&mut queue, Time::from_secs(1))
        .iter()
        .filter(|exit| exit.packet.ecn == Ecn::Ce)
        .map(|exit| exit.packet.number)
        .collect();
    assert_eq!(marked, [6, 8, 10, 12, 14, 16, 18], "packet n begins to be served after n ms");
}

#[test]
fn fq_codel_shares_by_bytes_between_a_greedy_flow_and_a_thin_one() {
    let mut queue = queue(12.0, BufferConfig { discipline: Discipline::FqCoDel, ..FIFO });
    let mut exits = Vec::new();
    // Flow 0 sends 24 Mbit/s of full-sized packets, flow 1 sends 8 Mbit/s of small packets, and flow 2 sends one packet
    // every 20 ms.
    for i in 0..20_000u64 {
        let now = Time::from_micros(500 * i);
        queue.push(now, Packet { sent: now, ..packet(0, i, 1500) });
        queue.push(now, Packet { sent: now, ..packet(1, i, 500) });
        if i % 40 == 0 {
            queue.push(now, Packet { sent: now, ..packet(2, i, 200) });
        }
        exits.extend(drain(&mut queue, now));
    }
    let bytes = |flow| -> u64 {
        let of_flow = |exit: &&Exit| exit.fate == Fate::Delivered && exit.packet.flow == FlowId(flow);
        exits.iter().filter(of_flow).map(|exit| exit.packet.bytes.0).sum()
    };
    let ratio = bytes(0) as f64 / bytes(1) as f64;
    assert!((0.97..1.03).contains(&ratio), "two backlogged flows get equal bytes: ratio {ratio}");
    let sparse = exits.iter().filter(|exit| exit.packet.flow == FlowId(2));
    let worst = sparse.map(|exit| exit.time - exit.packet.sent).max().unwrap();
    assert!(
        worst < Duration::from_millis(3),
        "a sparse flow waits for at most a packet or two, not {worst:?}"
    );
}

#[test]
fn fq_codel_takes_from_the_longest_when_full() {
    let buffer = BufferConfig { discipline: Discipline::FqCoDel, packets: Some(100), ..FIFO };
    let mut queue = queue(12.0, buffer);
    queue.push(Time::ZERO, packet(9, 0, 1500)); // in service
    (0..90).for_each(|number| queue.push(Time::ZERO, packet(0, number, 1500)));
    (0..11).for_each(|number| queue.push(Time::ZERO, packet(1, number, 1500)));
    let exits = drain(&mut queue, Time::ZERO);
    assert_eq!(exits.len(), 45, "half of the longest queue goes at once");
    assert!(exits.iter().all(|exit| exit.packet.flow == FlowId(0) && exit.fate == Fate::QueueFull));
    assert_eq!(queue.backlog(), Bytes(1500 * (1 + 45 + 11)));
}

#[test]
fn errors_name_key_and_remedy() {
    let error = |config: QueueConfig| Queue::new(&config).unwrap_err().to_string();
    let plain = QueueConfig { buffer: FIFO, ..QueueConfig::default() };
    let step = |at_s, rate_mbps| RateStep { at_s, rate_mbps };
    insta::assert_snapshot!(
        [
            error(QueueConfig { rate_mbps: -1.0, ..plain.clone() }),
            error(QueueConfig { rate_mbps: 0.0, ..plain.clone() }),
            error(QueueConfig { schedule: vec![step(2.0, 5.0), step(1.0, 5.0)], ..plain.clone() }),
            error(QueueConfig { schedule: vec![step(1.0, 0.0)], ..plain.clone() }),
            error(QueueConfig { buffer: BufferConfig { packets: Some(0), ..FIFO }, ..plain.clone() }),
            error(QueueConfig { buffer: BufferConfig { interval_ms: 0.0, ..FIFO }, ..plain.clone() }),
            error(QueueConfig { buffer: BufferConfig { qdelay_ref_ms: 0.0, ..FIFO }, ..plain.clone() }),
            error(QueueConfig { buffer: BufferConfig { max_burst_ms: -1.0, ..FIFO }, ..plain }),
        ]
        .join("\n"),
        @r"
    `rate_mbps` is -1; give Mbit/s of at least 0, or inf
    `rate_mbps` is 0 for ever; give a rate above 0, or a later step that ends it
    `schedule[1].at_s` is 1, not after the step before; put the steps in order of time
    `schedule[0].rate_mbps` is 0 for ever; give a rate above 0, or a later step that ends it
    `buffer.packets` is 0: nothing could wait; give at least 1, or leave it out
    `buffer.interval_ms` is 0; give about the round-trip time of the path, 100 by default
    `buffer.qdelay_ref_ms` is 0; give the delay that may persist, 15 by default
    `buffer.max_burst_ms` is -1; give a number of at least 0
    "
    );
}

fn redrawn(from_mbps: f64, to_mbps: f64, every_ms: f64, distribution: Distribution) -> QueueConfig {
    let redraw = Some(RedrawConfig { from_mbps, to_mbps, every_ms, distribution });
    QueueConfig { redraw, buffer: FIFO, ..QueueConfig::default() }
}

/// The rates (Mbit/s) of a queue without packets, one rate for each of `draws` intervals.
fn rates_mbps(config: &QueueConfig, draws: u64, every: Duration) -> Vec<f64> {
    let mut queue = Queue::new(config).expect("a legal queue").begin(&Streams::new(1), "queue");
    let at = (0..draws).map(|draw| Time::ZERO + every * draw as u32);
    at.map(|now| {
        queue.update_rate(now);
        queue.rate().expect("a drawn rate").as_mbps()
    })
    .collect()
}

#[test]
fn a_redrawn_rate_has_its_distribution() {
    let (every, draws) = (Duration::from_secs(1), 20_000);
    for (distribution, median) in [(Distribution::Uniform, 35.0), (Distribution::LogUniform, 24.5)] {
        let mut rates = rates_mbps(&redrawn(10.0, 60.0, 1000.0, distribution), draws, every);
        assert!(rates.windows(2).all(|two| two[0] != two[1]), "each second has a rate of its own");
        rates.sort_unstable_by(f64::total_cmp);
        assert!(rates[0] >= 10.0 && rates[rates.len() - 1] <= 60.0);
        let middle = rates[rates.len() / 2];
        assert!((middle / median - 1.0).abs() < 0.03, "{distribution:?}: median {middle} Mbit/s");
    }
}

#[test]
fn a_redrawn_queue_carries_what_its_rates_allow() {
    let config = redrawn(2.0, 20.0, 100.0, Distribution::Uniform);
    let rates = rates_mbps(&config, 100, Duration::from_millis(100));
    let could_carry: f64 = rates.iter().map(|mbps| mbps * 1e6 / 8.0 * 0.1).sum();
    let mut queue = Queue::new(&config).unwrap().begin(&Streams::new(1), "queue");
    for number in 0..20_000 {
        queue.push(Time::ZERO, packet(0, number, 1500));
    }
    let carried = drain(&mut queue, Time::from_secs(10)).len() as f64 * 1500.0;
    assert!((carried - could_carry).abs() <= 1500.0, "{carried} of {could_carry} bytes");
}

#[test]
fn a_redraw_that_cannot_be_names_key_and_remedy() {
    let error = |config: QueueConfig| Queue::new(&config).unwrap_err().to_string();
    assert_eq!(
        error(redrawn(60.0, 10.0, 1000.0, Distribution::Uniform)),
        "`redraw.to_mbps` is 10, below `from_mbps` (60); give the lower rate first"
    );
    assert_eq!(
        error(redrawn(10.0, 60.0, 0.0, Distribution::Uniform)),
        "`redraw.every_ms` is 0; the least is 1"
    );
    assert_eq!(
        error(QueueConfig { rate_mbps: 20.0, ..redrawn(10.0, 60.0, 1000.0, Distribution::Uniform) }),
        "`rate_mbps` stands beside `redraw`, which draws the rate; remove either"
    );
}

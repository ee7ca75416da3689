//! Tests of logs that a network's links write: the reader for mm-link's format must find the links' events in these
//! logs.

use std::sync::Arc;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Streams, Time};
use airpace_event::Fate;
use airpace_path::link::Link;
use airpace_path::network::{
    DATA_BYTES, FlowConfig, LastHopPlan, Load, Network, NetworkConfig, NetworkPlan, Output, TracePlan,
};
use airpace_path::queue::{BufferConfig, Discipline};
use airpace_path::trace::mmlink::{Chance, Line, Log, LogHeader, LogWriter};
use airpace_path::trace::{Start, Trace, TraceConfig, TraceLink};
use airpace_path::wire::WireConfig;
use proptest::prelude::*;

fn header(link: &TraceConfig) -> LogHeader<'_> {
    LogHeader {
        direction: Direction::Downlink,
        trace: "made.down",
        log: "down.log",
        command_line: "airpace emu link made.up made.down",
        config: "",
        link,
        init_ms: 1_800_000_000_000,
        base_ms: 0,
    }
}

fn packet(number: u64, bytes: Bytes, sent: Time) -> Packet {
    Packet { flow: FlowId(0), device: DeviceId(0), number, bytes, sent, ecn: Ecn::NotEct }
}

/// Differences between a log and a `TraceLink` with the log's arrivals.
fn disagreement(log: &Log, trace: Arc<Trace>) -> Vec<String> {
    let comparison = log.compare(trace).expect("a queue that we have");
    comparison.differences.iter().map(ToString::to_string).collect()
}

prop_compose! {
    fn any_trace()(mut times_ms in prop::collection::vec(0u64..250, 0..70), last in 1u64..250) -> Arc<Trace> {
        times_ms.push(last);
        times_ms.sort_unstable();
        Arc::new(Trace::from_times_ms(times_ms).expect("a trace"))
    }
}

fn any_buffer() -> impl Strategy<Value = BufferConfig> {
    let limits = (prop::option::of(1_u64..25), prop::option::of(1_500_u64..20_000));
    let disciplines = vec![Discipline::DropTail, Discipline::DropHead, Discipline::CoDel, Discipline::Pie];
    (prop::sample::select(disciplines), limits, 1_u64..30, 5_u64..120).prop_map(
        |(discipline, (packets, bytes), target_ms, interval_ms)| BufferConfig {
            discipline,
            packets,
            bytes,
            target_ms: target_ms as f64,
            interval_ms: interval_ms as f64,
            qdelay_ref_ms: target_ms as f64,
            max_burst_ms: interval_ms as f64 - 5.0,
            ..BufferConfig::default()
        },
    )
}

proptest! {
    #[test]
    fn a_log_of_our_link_says_what_our_link_did(
        trace in any_trace(),
        buffer in any_buffer(),
        arrivals in prop::collection::vec((0_u64..2_500_000, 1_u64..=1500), 1..250),
        start_ms in 0_u64..600,
        base_ms in 0_u64..50,
    ) {
        let mut arrivals = arrivals;
        arrivals.sort_unstable();
        let config = TraceConfig { buffer, start_s: Start::AtS(start_ms as f64 * 1e-3), ..TraceConfig::default() };
        let mut link = TraceLink::new(trace.clone(), &config).expect("a link");
        link.watch();
        let mut writer = LogWriter::new(&LogHeader { base_ms, ..header(&config) }).expect("a log");
        let mut delivered = 0;
        let mut refused = 0;
        let mut text = String::new();
        for (number, &(us, bytes)) in (0..).zip(&arrivals) {
            let now = Time::from_micros(us);
            link.push(now, packet(number, Bytes(bytes), Time::ZERO));
            if number % 3 == 0 {
                link.lines(now).for_each(|line| writer.write(line));
                text += &writer.take();
            }
        }
        let end = Time::from_secs(4);
        while let Some(exit) = link.pop(end) {
            delivered += u64::from(exit.fate == Fate::Delivered);
            // CoDel drops packets at dequeue, and mm-link does not log these drops.
            let is_logged = config.buffer.discipline != Discipline::CoDel || exit.fate == Fate::QueueFull;
            refused += u64::from(exit.fate != Fate::Delivered && is_logged);
        }
        link.lines(end).for_each(|line| writer.write(line));
        text += &writer.take();
        let log = Log::parse(&text).expect("a log");
        let mut named = config.buffer.clone();
        if named.discipline != Discipline::CoDel {
            // The parameters of CoDel and PIE are only written if the discipline is CoDel or PIE, so other
            // configurations get the default values.
            (named.target_ms, named.interval_ms) = (5.0, 100.0);
        }
        if named.discipline != Discipline::Pie {
            (named.qdelay_ref_ms, named.max_burst_ms) = (15.0, 150.0);
        }
        prop_assert_eq!(&log.buffer, &named);
        prop_assert_eq!(log.base_ms, base_ms);
        prop_assert_eq!(log.arrivals.len(), arrivals.len());
        prop_assert_eq!(log.departures.len() as u64, delivered);
        prop_assert_eq!(log.drops.iter().map(|drop| drop.packets).sum::<u64>(), refused);
        prop_assert_eq!(disagreement(&log, trace.clone()), Vec::<String>::new());
        // Every opportunity is in the log, used or not.
        let chances = text.lines().filter(|line| line.ends_with(" # 1504")).count() as u64;
        prop_assert_eq!(chances, link.opportunities_in(Time::ZERO, end + std::time::Duration::from_nanos(1)));
    }

    #[test]
    fn a_network_that_is_driven_late_logs_both_directions(
        traces in (any_trace(), any_trace()),
        sent in prop::collection::vec((0_u64..800_000, any::<bool>(), 1_u64..=1500), 1..150),
        late_us in 1_u64..7_000,
        packets in prop::option::of(1_u64..10),
    ) {
        let config = TraceConfig { buffer: BufferConfig { packets, ..BufferConfig::default() }, ..TraceConfig::default() };
        let plan = TracePlan::new(traces.0.clone(), None, Direction::Downlink, false, &config);
        let plan = plan.and_then(|plan| plan.with_back(traces.1.clone(), &config)).expect("a plan");
        let flow = FlowConfig {
            device: DeviceId(0),
            direction: Direction::Downlink,
            acks_cross_cell: false,
            crosses_internet: false,
            crosses_last_hop: true,
            has_plain_wires: false,
            rtt_ms: 7.0,
            data_bytes: DATA_BYTES,
        };
        let network = NetworkPlan::new(NetworkConfig {
            forward: &WireConfig { jitter_mean_ms: 1.0, ..WireConfig::default() },
            reverse: &WireConfig::default(),
            internet: None,
            last_hop: LastHopPlan::Trace(Box::new(plan)),
            devices: 1,
            flows: vec![flow],
        });
        let network = network.and_then(|plan| plan.for_devices()).expect("a plan");
        let mut network: Network<(), ()> = Network::new(&network, &[0], &Streams::new(3));
        network.watch_links();
        let mut sent = sent;
        sent.sort_unstable();
        let mut sent = sent.into_iter().peekable();
        let mut writers = [(); 2].map(|()| LogWriter::new(&header(&config)).expect("a log"));
        let mut numbers = [0; 2];
        let end = Time::from_millis(1500);
        let mut now = Time::ZERO;
        while now < end {
            // The driver sleeps and then processes all events that became due in the meantime.
            now += std::time::Duration::from_micros(late_us);
            while network.poll_timeout() <= now {
                while let Some(output) = network.pop(now) {
                    prop_assert!(!matches!(output, Output::Ended(journey) if journey.fate == Fate::WireLoss));
                }
            }
            while let Some((_, is_up, bytes)) = sent.next_if(|(us, ..)| Time::from_micros(*us) <= now) {
                let load = if is_up { Load::Ack(()) } else { Load::Data(()) };
                let number = &mut numbers[usize::from(is_up)];
                network.push(now, packet(*number, Bytes(bytes), now), load);
                *number += 1;
            }
            for (direction, writer) in Direction::BOTH.into_iter().zip(&mut writers) {
                network.link_lines(direction, now).for_each(|line| writer.write(line));
            }
        }
        for (trace, (writer, number)) in [&traces.0, &traces.1].into_iter().zip(writers.iter_mut().zip(numbers)) {
            let log = Log::parse(&writer.take()).expect("a log");
            prop_assert_eq!(log.arrivals.len() as u64, number);
            prop_assert_eq!(disagreement(&log, trace.clone()), Vec::<String>::new());
        }
    }
}

#[test]
fn the_head_is_that_of_mm_link() {
    let buffer = BufferConfig { packets: Some(250), bytes: Some(9000), ..BufferConfig::default() };
    let link = TraceConfig { buffer, start_s: Start::AtS(0.5), ..TraceConfig::default() };
    let named = LogHeader { trace: "a\nb.down", config: "[delay 20 ms] ", base_ms: 7, ..header(&link) };
    let mut writer = LogWriter::new(&named).unwrap();
    writer.write(Line::Chance(Chance { ms: 3, bytes: 1504 }));
    let text = "# mahimahi mm-link (Downlink) [a b.down] > down.log
# command line: airpace emu link made.up made.down
# queue: droptail [bytes=9000, packets=250]
# init timestamp: 1800000000000
# base timestamp: 7
# mahimahi config: [delay 20 ms]\x20
510 # 1504
";
    assert_eq!(writer.take(), text);
    assert_eq!(writer.take(), "", "what was taken is not given again");
}

#[test]
fn a_queue_that_mm_link_has_not_is_refused() {
    let refusal = |buffer: BufferConfig| {
        let link = TraceConfig { buffer, ..TraceConfig::default() };
        LogWriter::new(&header(&link)).unwrap_err().to_string()
    };
    let plain = BufferConfig::default;
    let refusals = [
        refusal(BufferConfig { discipline: Discipline::FqCoDel, ..plain() }),
        refusal(BufferConfig { ms: Some(50.0), ..plain() }),
        refusal(BufferConfig { discipline: Discipline::CoDel, target_ms: 2.5, ..plain() }),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r"
    `buffer.discipline` is `fq_codel`, which mm-link does not have; take another one, or write no log of its form
    `buffer.ms` bounds the queue in milliseconds, which a log of mm-link cannot say; give `packets` or `bytes`
    `buffer.target_ms` is 2.5, and mm-link counts whole milliseconds; give a whole number
    ");
}

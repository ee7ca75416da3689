//! Tests of the links' configurations in the format of a scenario.

use airpace_path::queue::{Discipline, QueueConfig};
use airpace_path::trace::{Start, TraceConfig};
use airpace_path::wire::{OnOff, OnOffConfig, WireConfig};

#[test]
fn a_wire_reads_as_a_scenario_writes_it() {
    let wire: WireConfig = toml::from_str(
        r#"
        delay_ms = 20
        jitter_mean_ms = 1.06
        loss = 0.001
        on_off = { on_mean_s = 4, off_mean_s = 0.5, starts = "off" }
        burst = { to_bad = 0.001, to_good = 0.25 }
        reorder = { probability = 0.01, extra_ms = 3 }
        duplicate = 0.0001
        rate_mbps = 1000
        batch_ms = 8
        "#,
    )
    .expect("a wire");
    assert_eq!((wire.delay_ms, wire.rate_mbps, wire.batch_ms), (20.0, Some(1000.0), 8.0));
    assert_eq!(wire.burst.map(|burst| (burst.loss_in_bad, burst.loss_in_good)), Some((1.0, 0.0)));
    let on_off = OnOffConfig { on_mean_s: 4.0, off_mean_s: 0.5, starts: OnOff::Off };
    assert_eq!(wire.on_off, Some(on_off));
    assert_eq!(toml::from_str::<WireConfig>("").expect("a wire"), WireConfig::default());
}

#[test]
fn a_queue_reads_as_a_scenario_writes_it() {
    let queue: QueueConfig = toml::from_str(
        r#"
        rate_mbps = inf
        schedule = [{ at_s = 10, rate_mbps = 10 }, { at_s = 20, rate_mbps = inf }]
        buffer = { discipline = "fq_codel", target_ms = 5 }
        "#,
    )
    .expect("a queue");
    assert_eq!((queue.schedule.len(), queue.schedule[1].rate_mbps), (2, f64::INFINITY));
    assert_eq!(queue.buffer.discipline, Discipline::FqCoDel);
    assert_eq!(toml::from_str::<QueueConfig>("").expect("a queue"), QueueConfig::default());
}

#[test]
fn a_trace_link_reads_as_a_scenario_writes_it() {
    let text = "start_s = 2.5\nbuffer = { discipline = 'codel', packets = 250 }";
    let trace: TraceConfig = toml::from_str(text).expect("a trace link");
    assert_eq!((trace.start_s, trace.opportunity_bytes, trace.header_bytes), (Start::AtS(2.5), 1504, 4));
    assert_eq!((trace.buffer.discipline, trace.buffer.packets), (Discipline::CoDel, Some(250)));
}

#[test]
fn a_misspelt_key_is_refused_by_name() {
    let refused = [
        toml::from_str::<WireConfig>("dely_ms = 20").unwrap_err().to_string(),
        toml::from_str::<QueueConfig>("buffer = { paquets = 20 }").unwrap_err().to_string(),
        toml::from_str::<TraceConfig>("buffer = { discipline = 'red' }").unwrap_err().to_string(),
    ];
    assert!(refused[0].contains("dely_ms") && refused[0].contains("delay_ms"), "{}", refused[0]);
    assert!(refused[1].contains("paquets") && refused[1].contains("packets"), "{}", refused[1]);
    assert!(refused[2].contains("red") && refused[2].contains("drop_tail"), "{}", refused[2]);
}

//! Scenario tests of a link with a trace for each direction: conditions → run → check.

use crate::common;
use common::{run, scenario};

/// A link of 12 Mbit/s to the phone and 2.4 Mbit/s from the phone, with a queue of 60 ms of packets in each direction.
const LINK: &str = "duration_s = 10
    [trace]
    synth = { model = 'constant', mean_mbps = 12 }
    link.buffer.packets = 60
    [trace.back]
    synth = { model = 'constant', mean_mbps = 2.4 }
    link.buffer.ms = 60
    [[flow]]
    label = 'in'
    rtt_ms = 40\n";

#[test]
fn each_direction_carries_what_its_trace_says() {
    let both = scenario(&format!("{LINK}[[flow]]\nlabel = 'out'\nrtt_ms = 40\ndirection = 'up'\n"));
    let (_, notebook) = run(&both, "oracle", 1);
    let [down, up] = [0, 1].map(|flow| notebook.flows[flow].mbps(2.0, 10.0));
    // The ACKs of each flow use capacity of the opposite direction: 64 bytes for each 1504 bytes of data.
    assert!((11.0..12.0).contains(&down), "{down} Mbit/s to the phone");
    assert!(
        (1.2..2.1).contains(&up),
        "{up} Mbit/s from the phone, beside the ACKs of eight packets per packet"
    );
    assert_eq!(notebook.capacity_bytes[0], 9_999 * 1500, "the capacity counts every chance once");
    assert_eq!(notebook.uplink_capacity_bytes[0], 1_999 * 1500, "in either direction");
}

#[test]
fn an_upload_of_the_phone_holds_up_the_acks_of_its_download() {
    let alone = scenario(LINK);
    let (_, notebook) = run(&alone, "cubic", 1);
    let flow = &notebook.flows[0];
    let least = flow.least_rtt_ms();
    assert!((40.0..46.1).contains(&least), "an ACK waits for a chance, one each 5 ms: {least} ms");
    assert!((flow.mbps(2.0, 10.0) - 12.0).abs() < 0.1, "{} Mbit/s", flow.mbps(2.0, 10.0));

    let beside = scenario(&format!(
        "{LINK}[[flow]]\nlabel = 'out'\nrtt_ms = 40\ndirection = 'up'\nscheme = 'cubic'\nstart_s = 4\n"
    ));
    let (_, notebook) = run(&beside, "oracle", 1);
    let rtt_ms = |from_s: f64, to_s: f64| {
        let flow = &notebook.flows[0];
        let acks = flow.acked_s.iter().zip(&flow.rtts_ms).filter(|(at, _)| (from_s..to_s).contains(*at));
        let delays: Vec<f64> = acks.map(|(_, rtt)| *rtt).collect();
        delays.iter().sum::<f64>() / delays.len() as f64
    };
    let (before, after) = (rtt_ms(2.0, 4.0), rtt_ms(6.0, 10.0));
    assert!(
        after > before + 15.0,
        "ACKs should wait in the phone behind up to 60 ms of data: {before}, then {after} ms"
    );
}

#[test]
fn without_the_other_trace_acks_go_around() {
    let one_way = scenario(&LINK.replace("[trace.back]", "[internet]").replace(
        "synth = { model = 'constant', mean_mbps = 2.4 }\n    link.buffer.ms = 60",
        "rate_mbps = 1000",
    ));
    let (_, notebook) = run(&one_way, "cubic", 1);
    let least = notebook.flows[0].least_rtt_ms();
    assert!((40.0..41.1).contains(&least), "only data waits for a chance, one each ms: {least} ms");
    assert!(notebook.uplink_capacity_bytes.is_empty(), "a direction without flows has no capacity");
}

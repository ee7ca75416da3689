//! Medians, and what is printed.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::Stack;
use crate::rounds::Flow;
use crate::side::Measured;

/// What one side costs.
struct Cost {
    us_per_packet: f64,
    ns_per_byte: f64,
    /// Share of the processor time that the kernel took.
    kernel: f64,
    /// Processors that were busy.
    cores: f64,
}

/// Medians of a stack.
struct Row {
    gbps: f64,
    packet_bytes: f64,
    send: Cost,
    receive: Cost,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The cost of a side; bytes are those that the application at the receiver got.
fn cost(flows: &[Flow], side: fn(&Flow) -> &Measured) -> Cost {
    let of = |value: fn(&Measured, &Flow) -> f64| {
        median(flows.iter().map(|flow| value(side(flow), flow)).collect())
    };
    Cost {
        us_per_packet: of(|side, _| side.cpu_s * 1e6 / side.packets as f64),
        ns_per_byte: of(|side, flow| side.cpu_s * 1e9 / flow.1.bytes as f64),
        kernel: of(|side, _| side.kernel_s / side.cpu_s),
        cores: of(|side, _| side.cpu_s / side.seconds),
    }
}

fn row(flows: &[Flow]) -> Row {
    let of = |value: fn(&Flow) -> f64| median(flows.iter().map(value).collect());
    Row {
        gbps: of(|(_, receiver)| receiver.bytes as f64 * 8e-9 / receiver.seconds),
        packet_bytes: of(|(sender, _)| sender.payload as f64 / sender.packets as f64),
        send: cost(flows, |flow| &flow.0),
        receive: cost(flows, |flow| &flow.1),
    }
}

/// The least of the QUIC stacks.
fn best(stacks: &[&Stack], rows: &[Row], of: fn(&Row) -> f64) -> f64 {
    let quic = stacks.iter().zip(rows).filter(|((name, _), _)| *name != "ours udp");
    let least = quic.map(|(_, row)| of(row)).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { rows.iter().map(of).fold(f64::INFINITY, f64::min) }
}

/// A table of medians; ratios are to the best QUIC stack of the run.
pub fn text(stacks: &[&Stack], flows: &[Vec<Flow>]) -> String {
    let rows: Vec<Row> = flows.iter().map(|flows| row(flows)).collect();
    let mut text = String::from(
        "                       |        sender                      |        receiver\n\
         stack      Gbit/s  bytes | µs/packet  ratio  ns/byte  kernel  | µs/packet  ratio  ns/byte  kernel\n",
    );
    let sends = best(stacks, &rows, |row| row.send.us_per_packet);
    let receives = best(stacks, &rows, |row| row.receive.us_per_packet);
    for ((name, _), row) in stacks.iter().zip(&rows) {
        let part = |cost: &Cost, best: f64| {
            format!(
                "{:>9.3} {:>6.2} {:>8.3} {:>6.0} %",
                cost.us_per_packet,
                cost.us_per_packet / best,
                cost.ns_per_byte,
                cost.kernel * 100.0
            )
        };
        writeln!(
            text,
            "{name:<10} {:>6.2} {:>6.0} | {}  | {}",
            row.gbps,
            row.packet_bytes,
            part(&row.send, sends),
            part(&row.receive, receives)
        )
        .expect("a string takes all");
    }
    text
}

/// All rounds, medians and ratios.
pub fn json(stacks: &[&Stack], flows: &[Vec<Flow>], seconds: f64) -> String {
    let rows: Vec<Row> = flows.iter().map(|flows| row(flows)).collect();
    let sends = best(stacks, &rows, |row| row.send.us_per_packet);
    let receives = best(stacks, &rows, |row| row.receive.us_per_packet);
    let part = |cost: &Cost, best: f64| {
        json!({
            "us_per_packet": cost.us_per_packet,
            "ratio_to_best": cost.us_per_packet / best,
            "ns_per_byte": cost.ns_per_byte,
            "kernel_share": cost.kernel,
            "cores": cost.cores,
        })
    };
    let stacks: Vec<Value> = stacks
        .iter()
        .zip(rows.iter().zip(flows))
        .map(|((name, _), (row, flows))| {
            let rounds: Vec<Value> = flows
                .iter()
                .map(|(sender, receiver)| json!({ "sender": sender, "receiver": receiver }))
                .collect();
            json!({
                "stack": name,
                "gbps": row.gbps,
                "packet_bytes": row.packet_bytes,
                "sender": part(&row.send, sends),
                "receiver": part(&row.receive, receives),
                "rounds": rounds,
            })
        })
        .collect();
    let whole = json!({ "seconds": seconds, "stacks": stacks });
    serde_json::to_string_pretty(&whole).expect("plain numbers")
}

//! HTML page with the results as figures. It only draws the values that [`super::measure`] computed.

use std::fmt::Write;

use serde_json::Value;

use super::measure::{Outcome, Percentiles};
use super::{GAP_GOAL_MS, Goal, LATENCY_GOALS_US};

/// Colours and dash patterns of the two measurements. Colour-blind readers can distinguish the colours.
const STYLES: [(&str, &str); 2] = [("#0077BB", ""), ("#CC3311", "6 4")];
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 46.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = 28.0;

/// Renders the page.
pub fn page(outcomes: &[Outcome], goals: &[Goal], manifest: &Value) -> String {
    let mut html = String::from(HEAD);
    let _ = write!(html, "<h1>Interval, delay and CPU cost of KPIs</h1>");
    let _ = write!(
        html,
        "<p class=\"lead\">A modem that buffers packets for {} s reports RSRP every 10 ms, among {} packets \
         per second. The daemon receives the packets with draining (every millisecond) and without; a \
         program reads RSRP through libOD.</p>",
        manifest["buffer_s"], manifest["packets_per_s"]
    );
    goals_table(goals, &mut html);
    let gaps: Vec<_> = outcomes.iter().map(Outcome::gaps).collect();
    figure(
        &mut html,
        "Time between RSRPs",
        "Share of RSRPs that arrived at most this long after the previous one. RSRPs within 5 ms count as \
         one arrival. The line is the goal. Compare BISCAY Fig. 4a.",
        "ms between RSRPs",
        &gaps,
        &[GAP_GOAL_MS],
    );
    let ages: Vec<_> = outcomes.iter().map(Outcome::ages).collect();
    figure(
        &mut html,
        "From the modem to the reader",
        "Share of readings that reached the program at most this long after the modem reported them. If \
         several readings arrive at once, a waiting program receives the last.",
        "ms from modem to reader",
        &ages,
        &[],
    );
    let latencies: Vec<_> = outcomes.iter().map(Outcome::latencies).collect();
    figure(
        &mut html,
        "From arrival to the reader",
        "Share of readings that reached the program at most this long after their bytes were read from the \
         port. The lines are the goals: the median below the first, 99 % below the second.",
        "µs from arrival to reader",
        &latencies,
        &LATENCY_GOALS_US,
    );
    numbers(outcomes, &mut html);
    let host = &manifest["host"];
    let load = host["load_milli"].as_f64().unwrap_or(0.0) / 1_000.0;
    let _ = writeln!(
        html,
        "<p>Made by <code>{}</code>, version {}, on {} ({} processors, load {load:.1} before it began). Every reading is in \
         <code>readings.csv</code>.</p></main></body></html>",
        escape(manifest["command"].as_str().unwrap_or("")),
        manifest["version"].as_str().unwrap_or(""),
        escape(host["processor"].as_str().unwrap_or("")),
        host["processors"],
    );
    html
}

fn goals_table(goals: &[Goal], html: &mut String) {
    html.push_str("<table><tr><th>goal</th><th class=n>found</th><th class=n>bound</th><th></th></tr>");
    for goal in goals {
        let (class, verdict) = if goal.is_met() { ("good", "met") } else { ("bad", "not met") };
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=n>{:.2}</td><td class=n>{}</td><td class={class}>{verdict}</td></tr>",
            escape(goal.what),
            goal.found,
            goal.bounds()
        );
    }
    html.push_str("</table>");
}

fn name(outcome: &Outcome) -> &'static str {
    if outcome.drains { "with draining" } else { "without" }
}

fn numbers(outcomes: &[Outcome], html: &mut String) {
    html.push_str(
        "<h2>Numbers</h2><table><tr><th></th><th class=n>median</th><th class=n>90 %</th><th class=n>99 %</th>\
         <th class=n>max</th><th class=n>count</th></tr>",
    );
    for outcome in outcomes {
        let mut row = |what: &str, of: Percentiles| {
            let _ = write!(html, "<tr><td>{what}, {}</td>", name(outcome));
            for cell in [of.p50, of.p90, of.p99, of.max] {
                let _ = write!(html, "<td class=n>{cell:.2}</td>");
            }
            let _ = write!(html, "<td class=n>{}</td></tr>", of.count);
        };
        row("ms between RSRPs", outcome.gaps_ms());
        row("ms from modem to reader", outcome.ages_ms());
        row("µs from arrival to reader", outcome.latencies_us());
    }
    html.push_str(
        "</table><table><tr><th></th><th class=n>packets/s</th><th class=n>drains/s</th>\
         <th class=n>wake-ups/s</th><th class=n>% of a core</th><th>real time</th></tr>",
    );
    for outcome in outcomes {
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=n>{:.0}</td><td class=n>{:.0}</td><td class=n>{:.0}</td><td class=n>{:.2}</td><td>{}</td></tr>",
            name(outcome),
            outcome.packets_per_s,
            outcome.drains_per_s,
            outcome.wakes_per_s,
            outcome.cpu_percent,
            if outcome.is_realtime { "yes" } else { "no" },
        );
    }
    html.push_str("</table>");
}

/// Draws the cumulative distribution of values on a logarithmic axis. `marks` are vertical marker lines.
fn figure(html: &mut String, title: &str, about: &str, axis: &str, series: &[Vec<f64>], marks: &[f64]) {
    let all = || series.iter().flatten().chain(marks).copied().filter(|value| *value > 0.0);
    let low = all().fold(f64::INFINITY, f64::min).log10().floor();
    let high = all().fold(f64::NEG_INFINITY, f64::max).log10().ceil().max(low + 1.0);
    let x = |value: f64| {
        let share = (value.max(1e-9).log10() - low) / (high - low);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    };
    let y = |share: f64| TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM);
    let _ = write!(
        html,
        "<figure><h2>{title}</h2><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"{}\">",
        escape(title)
    );
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let _ = write!(
            html,
            "<line class=grid x1={LEFT} x2={} y1={y:.1} y2={y:.1} /><text x={} y={:.1} text-anchor=end>{:.0} %</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y(share) + 4.0,
            share * 100.0,
            y = y(share),
        );
    }
    for power in low as i32..=high as i32 {
        let value = 10f64.powi(power);
        let _ = write!(
            html,
            "<line class=grid x1={x:.1} x2={x:.1} y1={TOP} y2={} /><text x={x:.1} y={} text-anchor=middle>{value}</text>",
            y(0.0),
            y(0.0) + 18.0,
            x = x(value),
        );
    }
    let _ = write!(
        html,
        "<text x={} y={} text-anchor=middle>{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 6.0,
        escape(axis)
    );
    for mark in marks {
        let x = x(*mark);
        let _ = write!(html, "<line class=mark x1={x:.1} x2={x:.1} y1={TOP} y2={:.1} />", y(0.0));
    }
    for (values, (colour, dash)) in series.iter().zip(STYLES) {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let mut path = String::new();
        for (at, value) in sorted.iter().enumerate() {
            // One step per value, but at most a thousand: more cannot be distinguished.
            if sorted.len() > 1_000 && at % (sorted.len() / 1_000) != 0 && at + 1 < sorted.len() {
                continue;
            }
            let (from, to) = (y(at as f64 / count), y((at + 1) as f64 / count));
            let start = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{start}{:.1} {from:.1}L{:.1} {to:.1}", x(*value), x(*value));
        }
        let _ = write!(
            html,
            "<path d=\"{path}\" fill=none stroke=\"{colour}\" stroke-width=2 stroke-dasharray=\"{dash}\" />"
        );
    }
    html.push_str("</svg><p class=legend>");
    for (label, (colour, dash)) in ["with draining", "without"].iter().zip(STYLES) {
        let _ = write!(
            html,
            "<span><svg viewBox=\"0 0 30 8\"><line x1=0 x2=30 y1=4 y2=4 stroke=\"{colour}\" stroke-width=3 \
             stroke-dasharray=\"{dash}\" /></svg> {label}</span>"
        );
    }
    let _ = write!(html, "</p><figcaption>{}</figcaption></figure>", escape(about));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8><title>airpace diag granularity</title>\
<meta name=viewport content=\"width=device-width\"><style>\
:root{color-scheme:light dark;--ink:#1b1b1f;--soft:#6b6b76;--line:#d9d9e0;--paper:#fff}\
@media(prefers-color-scheme:dark){:root{--ink:#ececf1;--soft:#a0a0ab;--line:#3a3a44;--paper:#17171b}}\
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:44rem;margin:2rem auto;padding:0 1rem}h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.1rem;margin:2rem 0 .3rem}\
figure{margin:0}figcaption,.lead{color:var(--soft)}figure>svg{width:100%;height:auto}\
svg text{font-size:12px;fill:var(--soft)}.grid{stroke:var(--line)}.mark{stroke:var(--soft);stroke-dasharray:2 3}\
.legend{margin:.2rem 0;display:flex;gap:1.5rem}.legend svg{width:30px;height:8px}\
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid var(--line)}\
.n{text-align:right;font-variant-numeric:tabular-nums}.good{color:#228833}.bad{color:#CC3311;font-weight:600}\
code{font-size:.9em;overflow-wrap:anywhere}</style></head><body><main>";

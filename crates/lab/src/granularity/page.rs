//! HTML page with the results as figures. It only draws the values that [`super::measure`] computed.

use std::fmt::Write;

use airpace_plot::{Axis, Colour, Dash, Entry, Figure, Line, Mark, Panel, Rule, Style};
use serde_json::Value;

use super::measure::{Outcome, Percentiles};
use super::{GAP_GOAL_MS, Goal, LATENCY_GOALS_US};

/// Names, colours and dashes of the two measurements. Colour-blind readers can distinguish the colours.
const STYLES: [(&str, &str, Dash); 2] =
    [("with draining", "#0077BB", Dash::Solid), ("without", "#CC3311", Dash::Dashed)];

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

/// Draws the cumulative distribution of values on a logarithmic axis. `marks` are vertical lines.
fn figure(html: &mut String, title: &str, about: &str, axis: &str, series: &[Vec<f64>], marks: &[f64]) {
    let curve = |(values, (name, colour, dash)): (&Vec<f64>, (&str, &str, Dash))| {
        Mark::Line(Line::cdf(Style { dash, ..Style::new(name, colour) }, values))
    };
    let goal = |at: &f64| {
        let style =
            Style { name: String::new(), colour: Colour::Soft, dash: Dash::Dotted, ..Style::default() };
        Mark::VerticalLine(Rule { style, at: *at, text: String::new(), second_y: false })
    };
    let panel = Panel {
        x: Axis::log(axis),
        y: Axis { range: Some((0.0, 1.0)), ..Axis::linear("share") },
        marks: series.iter().zip(STYLES).map(curve).chain(marks.iter().map(goal)).collect(),
        ..Panel::default()
    };
    let drawing = Figure {
        title: title.to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 640.0,
        ..Figure::default()
    };
    let (svg, about) = (drawing.inline_svg(title), escape(about));
    let _ = write!(html, "<figure><h2>{title}</h2>{svg}<figcaption>{about}</figcaption></figure>");
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
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid var(--line)}\
.n{text-align:right;font-variant-numeric:tabular-nums}.good{color:#228833}.bad{color:#CC3311;font-weight:600}\
code{font-size:.9em;overflow-wrap:anywhere}</style></head><body><main>";

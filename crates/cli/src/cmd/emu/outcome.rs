//! Text about an emulated run that has ended.

use std::io::Write;
use std::path::Path;

use airpace_core::Direction;
use airpace_emu::session::Control;
use airpace_lab::finish::Judged;
use airpace_run::LinkSummary;

use super::Options;
use crate::called;
use crate::terminal::{self, Paint};

/// Prints the path of the run folder, and whether the figures of the run may be used.
///
/// # Errors
/// The output cannot be written.
pub fn tell(judged: &Judged, page: &Path, options: &Options, out: &mut dyn Write) -> anyhow::Result<()> {
    let Judged { finished, audit, .. } = judged;
    if options.json {
        for line in finished.summary.runs.iter().flat_map(|run| run.lines()) {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
    }
    let paint = Paint::stderr();
    // These reasons are printed even with `--quiet`, because the figures of an unfit run are meaningless.
    let say_unfit = || {
        for reason in &audit.unfit_because {
            let line = terminal::noted(UNFIT, reason);
            terminal::say_painted(line.replacen(UNFIT, &paint.bad(UNFIT), 1));
        }
    };
    if options.quiet {
        say_unfit();
        return Ok(());
    }
    let counts = &audit.counts;
    let lateness = format!(
        "{} s, {} in, {} out, {} dropped by the network; lateness p50 {:.2}, p99 {:.2}, p99.9 {:.2} ms, wait before reading p99.9 {:.2} ms; {:.0} % of a core",
        (audit.seconds * 10.0).round() / 10.0,
        terminal::count(counts.packets_in, "packet"),
        terminal::thousands(counts.packets_out),
        terminal::thousands(counts.dropped),
        audit.lateness_p50_ms,
        audit.lateness_p99_ms,
        audit.lateness_p999_ms,
        audit.wait_p999_ms,
        audit.cpu * 100.0,
    );
    terminal::say(terminal::noted("Emulated:", &lateness));
    for link in finished.summary.runs.iter().flat_map(|run| &run.links) {
        let (heading, text) = carried(link);
        terminal::say(terminal::noted(&heading, &text));
    }
    if let Some(sentence) = tcp(&judged.controls) {
        terminal::say(terminal::noted("TCP:", &sentence));
    }
    say_unfit();
    if judged.is_fit && audit.not_real_time_because.is_some() {
        terminal::say(terminal::noted(
            "Fit:",
            &format!(
                "without real-time priority; on a busier machine a run may be unfit. {} shows how to get it.",
                called::command("doctor --emu")
            ),
        ));
    }
    terminal::say(format_args!("Run folder: {}", finished.folder.root().display()));
    terminal::say(format_args!("Report:     {}", page.display()));
    Ok(())
}

/// Heading of the reasons why a run is unfit.
const UNFIT: &str = "Unfit:";

/// Summary line of a direction of a device, with its heading. Devices count from 1, as for `--device`.
fn carried(link: &LinkSummary) -> (String, String) {
    let way = match link.direction {
        Direction::Downlink => "Down",
        Direction::Uplink => "Up",
    };
    let (delay, used) = (&link.metrics.one_way_delay_ms, link.metrics.utilization);
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1}"));
    let of_capacity = used.map_or(String::new(), |used| format!(", {:.0} % of the capacity", used * 100.0));
    let text = format!(
        "{:.2} Mbit/s{of_capacity}; one-way delay mean {}, p95 {} ms; {}",
        link.metrics.throughput_mbps,
        ms(delay.mean),
        ms(delay.p95),
        terminal::count(link.connections, "connection"),
    );
    (format!("{way} {}:", link.device + 1), text)
}

/// The congestion controls that TCP used, by direction. Devices count from 1. If no socket was sampled, the default of
/// new sockets.
fn tcp(controls: &[Control]) -> Option<String> {
    if controls.is_empty() {
        let default = default_control()?;
        return Some(format!(
            "no connection lasted long enough to be sampled (0.1 s); this kernel's default is {default}"
        ));
    }
    let mut text = String::new();
    let mut last = None;
    for control in controls {
        let way = control.device.map_or("sent down".to_owned(), |device| format!("sent up {}", device + 1));
        match last.replace(way.clone()) {
            Some(before) if before == way => text += ", ",
            Some(_) => text += &format!("; {way} by "),
            None => text += &format!("{way} by "),
        }
        text += &format!("{} ({})", control.name, terminal::count(control.connections, "connection"));
    }
    Some(text)
}

/// Default TCP congestion control of this machine; `None` if the kernel does not report it.
fn default_control() -> Option<String> {
    let read = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(read.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_controls_are_told_by_direction() {
        let control = |device, name: &str, connections| Control {
            device,
            name: name.to_owned(),
            connections,
            bytes: 0,
        };
        let all = [
            control(None, "bbr", 2),
            control(None, "reno", 1),
            control(Some(0), "cubic", 1),
            control(Some(1), "cubic", 3),
        ];
        assert_eq!(
            tcp(&all).unwrap(),
            "sent down by bbr (2 connections), reno (1 connection); sent up 1 by cubic (1 connection); sent up 2 by \
             cubic (3 connections)"
        );
    }
}

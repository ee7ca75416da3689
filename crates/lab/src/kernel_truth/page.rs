//! Markdown page with conditions, metrics and comparisons.

use super::compare::{Comparison, name_of, table};
use super::{Condition, KernelRun, Measured, paths};

/// Template of the page. Words in braces are replaced by metrics and tables.
const TEMPLATE: &str = include_str!("page.md");

/// A condition in which Airpace's scheme exceeds the bounds for a known reason.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Name of the recorded link's file, or of the path.
    pub trace: &'static str,
    /// Capacity of the queue, in packets.
    pub queue_packets: u64,
    /// Kernel's name of the scheme.
    pub scheme: &'static str,
    /// Explanation, in sentences.
    pub because: &'static str,
}

/// Conditions that are known to exceed the bounds.
pub const KNOWN: [Known; 4] = [
    Known {
        trace: "orca-step-10s-3-level.down",
        queue_packets: 1_000,
        scheme: "reno",
        because: "At the constant rate of the first step, wire and queue hold 1014 packets. Slow start doubles the window \
              beyond that, and half of the doubled window is just these 1014 packets. A burst that is one packet longer \
              then decides whether another packet is lost and the window halves once more. In each run of Linux 6.18, \
              exactly one packet is lost, the last retransmission, and this loss does not count again. Ours loses one \
              packet too, but a new one, and this loss counts. With 300 packets the same condition is within the bounds.",
    },
    Known {
        trace: "loss-1",
        queue_packets: 110,
        scheme: "morc",
        because: "The round-trip times that a kernel measures have about a millisecond of noise, and MORC's target and its drains \
              follow them. With 1 ms of jitter on the data's wire (`forward.jitter_mean_ms=1`), ours has 51 ms of mean delay at \
              the same rate, as the kernel's.",
    },
    Known {
        trace: "loss-10",
        queue_packets: 110,
        scheme: "morc",
        because: "As over `loss-1`: with 1 ms of jitter, ours has 56 ms at the same rate, within the range of the kernel's two runs.",
    },
    Known {
        trace: "reordering",
        queue_packets: 417,
        scheme: "cubic",
        because: "Both carry all of the link, but the kernel's queue is a quarter shorter. Why its window stays lower is not known; \
              Reno, BBR and MORC have the kernel's queue here.",
    },
];

/// The known reason why a condition exceeds the bounds, if any.
pub fn known(condition: &Condition) -> Option<&'static Known> {
    KNOWN.iter().find(|known| {
        (known.trace, known.queue_packets, known.scheme)
            == (&condition.trace[..], condition.queue_packets, &condition.scheme[..])
    })
}

/// Renders the page. `held` and `by_the_rfc` compare Airpace's schemes with the measured runs.
pub fn page(measured: &Measured, held: &[Comparison], by_the_rfc: &[Comparison]) -> String {
    let machine = &measured.machine;
    let within = |comparisons: &[Comparison]| comparisons.iter().filter(|it| it.is_within()).count();
    let close = held.iter().filter(|it| it.most_off() <= 0.02).count();
    let (over_paths, over_links): (Vec<_>, Vec<_>) = held.iter().cloned().partition(Comparison::is_path);
    let out: Vec<&Comparison> = over_links.iter().chain(&over_paths).filter(|it| !it.is_within()).collect();
    let explained = match out.len() {
        0 => "",
        1 => " The one that is not is [explained below](#not-within-the-bounds).",
        _ => " Those that are not are [listed below](#not-within-the-bounds).",
    };
    let outcome = format!(
        "**The outcome:** {} of {} conditions are within the bounds, {close} of them within 2 %.{explained}",
        within(held),
        held.len()
    );
    let rfc_outcome =
        format!("Here, {} of {} conditions are within the bounds.", within(by_the_rfc), by_the_rfc.len());
    let mut exceptions = String::new();
    if !out.is_empty() {
        exceptions.push_str("\n### Not within the bounds\n");
    }
    for comparison in out {
        let condition = &comparison.condition;
        let because = known(condition).map_or("There is no explanation yet.", |known| known.because);
        let (ours, trace, queue) = (&comparison.other, name_of(&condition.trace), condition.queue_packets);
        let text = format!("`{ours}` over `{trace}` with a queue of {queue} packets: {because}");
        exceptions.push_str(&format!("\n{}\n", filled(&text, 120)));
    }
    let path_outcome =
        format!("Here, {} of {} conditions are within the bounds.", within(&over_paths), over_paths.len());
    let runs: Vec<&KernelRun> = measured.runs.iter().flat_map(|(_, runs)| runs).collect();
    let mut lateness: Vec<u64> = runs.iter().map(|run| run.lateness_p999_us).collect();
    lateness.sort_unstable();
    let median_ms = lateness.get(lateness.len() / 2).copied().unwrap_or_default() as f64 * 1e-3;
    let processors = match machine.processors {
        1 => "one processor".to_owned(),
        many => format!("{many} processors"),
    };
    let mut page = TEMPLATE.to_owned();
    for (word, value) in [
        ("{outcome}", filled(&outcome, 120)),
        ("{kernel}", machine.kernel.clone()),
        ("{processors}", processors),
        ("{program}", machine.program.clone()),
        ("{runs}", runs.len().to_string()),
        ("{lateness}", format!("{median_ms:.2}")),
        ("{refused}", machine.refused.to_string()),
        ("{held}", table(&over_links)),
        ("{path_outcome}", path_outcome),
        ("{paths}", listed()),
        ("{held_paths}", table(&over_paths)),
        ("{exceptions}", exceptions),
        ("{rfc_outcome}", rfc_outcome),
        ("{rfc}", table(by_the_rfc)),
    ] {
        page = page.replace(word, value.trim_end());
    }
    page
}

/// The paths as a Markdown table.
fn listed() -> String {
    let mut text =
        "| path | Mbit/s | round trip, ms | queue | beside that |\n|".to_owned() + &" --- |".repeat(5);
    for paths::Path { name, queue_packets, rate_mbps, rtt_ms, about, .. } in &paths::PATHS {
        text.push_str(&format!("\n| {name} | {rate_mbps} | {rtt_ms} | {queue_packets} | {about} |"));
    }
    text
}

/// Wraps text at `columns` characters.
fn filled(text: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::Figures;
    use super::*;

    #[test]
    fn a_page_leaves_no_word_in_braces_and_names_what_is_out_of_bounds() {
        let mut measured = Measured::default();
        let condition = Condition { trace: "a.down".to_owned(), queue_packets: 9, scheme: "reno".to_owned() };
        let figures = Figures { throughput_mbps: 10.0, mean_ms: 50.0, p95_ms: 90.0 };
        measured.push(&condition, KernelRun { figures, dropped: 0, lateness_p999_us: 340 });
        let off = Figures { mean_ms: 99.0, ..figures };
        let comparison = Comparison::of(&condition, &[figures], "reno@linux", &[off]);
        let page = page(&measured, std::slice::from_ref(&comparison), std::slice::from_ref(&comparison));
        let braces = |line: &&str| line.contains('{') || line.contains('}');
        assert_eq!(page.lines().find(braces), None);
        for part in [
            "0 of 1 conditions are within",
            "late by 0.34 ms",
            "`reno@linux` over `a` with a queue of 9 packets: There is no explanation yet.",
            "| a | 9 | `reno@linux` | 10.00 | 10.00 (+0.0 %) | 50 (50–50) | 99 (+98.0 %) |",
        ] {
            assert!(page.contains(part), "there is no `{part}` in:\n{page}");
        }
    }
}

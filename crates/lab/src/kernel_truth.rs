//! Kernel reference measurements: Linux's congestion controls and Airpace's schemes over the same recorded links.
//!
//! | part | contents |
//! | --- | --- |
//! | this module | conditions, and the runs of a kernel as a table |
//! | [`campaign`] | runs of a kernel under many conditions |
//! | [`compare`] | bounds, and comparison of two sets of runs with the bounds |
//! | [`measure`] | one run of a kernel |
//! | [`ours`] | runs of Airpace's schemes in the simulator |
//! | [`paths`] | emulated paths, in addition to the recorded links |
//! | [`page`] | results as the page `docs/evaluation/kernel-truth.md` |

pub mod campaign;
pub mod compare;
pub mod measure;
pub mod ours;
pub mod page;
pub mod paths;

use std::fmt::Write;
use std::path::Path;

use airpace_core::Refused;

/// Runs of Linux 6.18, with which every other kernel is compared.
pub const REFERENCE: &str = include_str!("kernel_truth/linux-6.18.csv");

/// Condition of a run: a bulk flow of 60 s over a recorded link, or of 20 s over an emulated path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Name of the recorded link's file, or of an entry of [`paths::PATHS`].
    pub trace: String,
    /// Capacity of the queue, in packets.
    pub queue_packets: u64,
    /// Kernel's name of the congestion control.
    pub scheme: String,
}

/// Metrics of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Rate of the delivered bytes, counted as IP packets.
    pub throughput_mbps: f64,
    /// Mean queueing delay of the delivered packets.
    pub mean_ms: f64,
    /// 95th percentile of the queueing delay.
    pub p95_ms: f64,
}

/// One run of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelRun {
    /// Metrics of the run.
    pub figures: Figures,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// The 99.9th percentile of the emulator's lateness.
    pub lateness_p999_us: u64,
}

/// The machine on which a kernel was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The program that executed the runs.
    pub program: String,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Number of logical processors.
    pub processors: usize,
    /// Number of runs that were rejected because the emulator was late.
    pub refused: u64,
}

/// The runs of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The machine on which the kernel was measured.
    pub machine: Machine,
    /// Runs by condition, in the order of each condition's first run.
    pub runs: Vec<(Condition, Vec<KernelRun>)>,
}

const HEAD: &str = "trace,queue_packets,scheme,run,throughput_mbps,queueing_mean_ms,queueing_p95_ms,dropped,\
                    lateness_p999_us";

impl Measured {
    /// An empty set of runs on this machine.
    pub fn on(machine: Machine) -> Measured {
        Measured { machine, runs: vec![] }
    }

    /// Parses [`REFERENCE`].
    pub fn reference() -> Measured {
        Measured::parse(REFERENCE).expect("a test reads it")
    }

    /// Adds a run.
    pub fn push(&mut self, condition: &Condition, run: KernelRun) {
        match self.runs.iter_mut().find(|(its, _)| its == condition) {
            Some((_, runs)) => runs.push(run),
            None => self.runs.push((condition.clone(), vec![run])),
        }
    }

    /// The runs of a condition; empty if the condition was not measured.
    pub fn of(&self, condition: &Condition) -> &[KernelRun] {
        self.runs.iter().find(|(its, _)| its == condition).map_or(&[], |(_, runs)| runs)
    }

    /// Formats the runs as CSV: lines `# key: value` about the machine, a header, and a line for each run.
    pub fn to_csv(&self) -> String {
        let Machine { program, kernel, processors, refused } = &self.machine;
        let mut text = format!(
            "# program: {program}\n# kernel: {kernel}\n# processors: {processors}\n# refused: {refused}\n{HEAD}\n"
        );
        for (condition, runs) in &self.runs {
            for (index, run) in runs.iter().enumerate() {
                let Condition { trace, queue_packets, scheme } = condition;
                let Figures { throughput_mbps, mean_ms, p95_ms } = run.figures;
                let KernelRun { dropped, lateness_p999_us, .. } = run;
                writeln!(
                    text,
                    "{trace},{queue_packets},{scheme},{},{throughput_mbps:.4},{mean_ms:.2},{p95_ms:.2},{dropped},\
                     {lateness_p999_us}",
                    index + 1
                )
                .expect("text takes everything");
            }
        }
        text
    }

    /// Parses CSV in the format of [`Measured::to_csv`].
    ///
    /// # Errors
    /// The malformed line, and the defect.
    pub fn parse(text: &str) -> Result<Measured, Refused> {
        let mut measured = Measured::default();
        let mut has_head = false;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |what: &str| format!("line {}: {what}", number + 1);
            if let Some((key, value)) = line.strip_prefix('#').and_then(|line| line.split_once(':')) {
                let (value, machine) = (value.trim(), &mut measured.machine);
                let a_count = |_| wrong("this is no count");
                match key.trim() {
                    "program" => machine.program = value.to_owned(),
                    "kernel" => machine.kernel = value.to_owned(),
                    "processors" => machine.processors = value.parse().map_err(a_count)?,
                    "refused" => machine.refused = value.parse().map_err(a_count)?,
                    _ => {
                        return Err(
                            wrong("it contains neither program, nor kernel, processors or refused").into()
                        );
                    }
                }
                continue;
            }
            if !has_head {
                if line != HEAD {
                    return Err(wrong(&format!("the head must be `{HEAD}`")).into());
                }
                has_head = true;
                continue;
            }
            let cells: Vec<&str> = line.split(',').collect();
            let [trace, queue, scheme, _, throughput, mean, p95, dropped, lateness] = cells[..] else {
                return Err(wrong("a run has nine cells").into());
            };
            let count = |cell: &str| cell.parse::<u64>().map_err(|_| wrong(&format!("`{cell}` is no count")));
            let figure = |cell: &str| {
                let value = cell.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
                value.ok_or_else(|| wrong(&format!("`{cell}` is no figure")))
            };
            let condition = Condition {
                trace: trace.to_owned(),
                queue_packets: count(queue)?,
                scheme: scheme.to_owned(),
            };
            let figures = Figures {
                throughput_mbps: figure(throughput)?,
                mean_ms: figure(mean)?,
                p95_ms: figure(p95)?,
            };
            let run = KernelRun { figures, dropped: count(dropped)?, lateness_p999_us: count(lateness)? };
            measured.push(&condition, run);
        }
        if has_head { Ok(measured) } else { Err(format!("it has no head `{HEAD}`").into()) }
    }
}

/// Metrics of packets that were delivered within `seconds`, from their bytes and their queueing delays in ms.
pub fn figures(bytes: u64, mut delays_ms: Vec<f64>, seconds: f64) -> Figures {
    delays_ms.sort_by(f64::total_cmp);
    let last = delays_ms.len().saturating_sub(1);
    Figures {
        throughput_mbps: bytes as f64 * 8e-6 / seconds,
        mean_ms: delays_ms.iter().sum::<f64>() / delays_ms.len().max(1) as f64,
        p95_ms: delays_ms.get((last as f64 * 0.95) as usize).copied().unwrap_or_default(),
    }
}

impl Condition {
    /// Duration of a run, in s.
    pub fn seconds(&self) -> f64 {
        paths::path(self).map_or(ours::SECONDS, |_| paths::SECONDS)
    }

    /// The scenario, as text. The files of recorded links are in the folder `traces`.
    pub fn scenario(&self, traces: &Path) -> String {
        paths::path(self).map_or_else(
            || scenario(&traces.join(&self.trace), self.queue_packets, ours::SECONDS),
            paths::Path::scenario,
        )
    }
}

/// The scenario of a recorded link, as text. The trace starts with the first packet, the propagation delay is 20 ms in
/// each direction, and receivers acknowledge every second packet.
fn scenario(trace: &Path, queue_packets: u64, seconds: f64) -> String {
    format!(
        "name = \"kernel-truth\"\nduration_s = {seconds}\n[trace]\nfile = {trace:?}\nallow_holes = true\n\
         telemetry = false\nlink.buffer.packets = {queue_packets}\n[[flow]]\nrtt_ms = 40\nack_every = 2\nack_delay_ms = 40\n"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_reference_is_read_and_written_the_same() {
        let reference = Measured::reference();
        assert!(reference.runs.len() >= 15, "five traces and three schemes");
        assert_eq!(reference.to_csv(), REFERENCE);
        for (condition, runs) in &reference.runs {
            let least = if paths::path(condition).is_some() { 1 } else { 3 };
            assert!(runs.len() >= least, "{condition:?} was measured {} times", runs.len());
            for run in runs {
                let late = "a run whose emulator is late by a millisecond cannot be used";
                assert!(run.lateness_p999_us < 1_000, "{condition:?}: {late}");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said_with_its_line() {
        for (text, said) in [
            ("", "no head"),
            ("trace,queue\n", "line 1: the head must be"),
            ("# kernel: 6\n# colour: red\n", "line 2: it contains neither"),
            ("# refused: -1\n", "line 1: this is no count"),
        ] {
            let error = Measured::parse(text).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        for (row, said) in [
            ("a,1", "line 2: a run has nine cells"),
            ("a,x,reno,1,1,1,1,1,1", "`x` is no count"),
            ("a,1,reno,1,NaN,1,1,1,1", "`NaN` is no figure"),
        ] {
            let error = Measured::parse(&format!("{HEAD}\n{row}\n")).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn figures_are_a_rate_a_mean_and_a_percentile() {
        let delays = (0..=100).rev().map(f64::from).collect();
        let figures = figures(7_500_000, delays, 60.0);
        assert_eq!(figures, Figures { throughput_mbps: 1.0, mean_ms: 50.0, p95_ms: 95.0 });
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".*", cells in prop::collection::vec("[a-z0-9.]{0,5}", 0..12)) {
            let _ = Measured::parse(&text);
            let _ = Measured::parse(&format!("{HEAD}\n{}\n", cells.join(",")));
        }
    }
}

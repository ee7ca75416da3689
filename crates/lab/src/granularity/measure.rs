//! Measurement with an emulated modem, a daemon in a separate process, and a program that reads KPIs.

use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airpace_tables::FileError;
use od::clock::now_ns;
use od::{Kpi, Od, Reading};
use serde_json::Value;

use super::emulator::{Emulator, modem_ns};
use super::{Request, kinds};
use crate::error::{LabError, refuse};
use crate::part::Executable;

/// Maximum interval between readings of the same arrival. A modem that flushes its buffer sends the packets of a whole
/// second at once.
///
/// Chosen: longer than a buffer takes over the port, shorter than the modem's own reporting interval.
const TOGETHER: Duration = Duration::from_millis(5);
/// Maximum time until the daemon receives data from the modem.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time between the start of streaming and the measurement, so that the first buffers have passed.
const SETTLE: Duration = Duration::from_millis(1_500);

/// Result of a measurement.
pub struct Outcome {
    /// Whether the daemon sent drain requests to the modem.
    pub drains: bool,
    /// Processor time of the daemon, in percent of a core.
    pub cpu_percent: f64,
    /// Wake-ups of the daemon's threads per second.
    pub wakes_per_s: f64,
    /// Packets per second that the daemon read.
    pub packets_per_s: f64,
    /// Drain requests per second that the daemon sent.
    pub drains_per_s: f64,
    /// Whether the daemon had real-time priority.
    pub is_realtime: bool,
    readings: Readings,
}

/// Readings, each with the time at which it was read.
type Readings = Vec<(Reading, u64)>;

/// Percentiles of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Median of the values.
    pub p50: f64,
    /// 90th percentile of the values.
    pub p90: f64,
    /// 99th percentile of the values.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
    /// Number of values.
    pub count: usize,
}

impl Percentiles {
    /// The percentiles of these values, by the nearest rank.
    pub fn of(values: &[f64]) -> Percentiles {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| match sorted.len() {
            0 => f64::NAN,
            count => sorted[((count as f64 * share).ceil() as usize).clamp(1, count) - 1],
        };
        Percentiles { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0), count: sorted.len() }
    }
}

impl Outcome {
    /// Intervals between arrivals (ms).
    pub fn gaps(&self) -> Vec<f64> {
        let (mut gaps, mut last, mut arrived) = (vec![], None, None);
        for (reading, _) in &self.readings {
            let is_together = last.is_some_and(|last| reading.arrival_ns - last < TOGETHER.as_nanos() as u64);
            last = Some(reading.arrival_ns);
            if !is_together && let Some(before) = arrived.replace(reading.arrival_ns) {
                gaps.push((reading.arrival_ns - before) as f64 / 1e6);
            }
        }
        gaps
    }

    /// Time from the arrival of a reading's bytes to the program's read (µs).
    pub fn latencies(&self) -> Vec<f64> {
        self.readings.iter().map(|(reading, read_ns)| (read_ns - reading.arrival_ns) as f64 / 1e3).collect()
    }

    /// Time from the modem's transmission of a reading to the program's read (ms). The origin of the modem's clock is
    /// uncertain by the scheduling delay of the modem's thread. On a busy machine, all ages may therefore be too short
    /// by this delay.
    pub fn ages(&self) -> Vec<f64> {
        let age = |(reading, read_ns): &(Reading, u64)| {
            (modem_ns(*read_ns) as i64 - reading.modem_ns as i64) as f64 / 1e6
        };
        self.readings.iter().map(age).collect()
    }

    /// Percentiles of [`Outcome::gaps`].
    pub fn gaps_ms(&self) -> Percentiles {
        Percentiles::of(&self.gaps())
    }

    /// Percentiles of [`Outcome::latencies`].
    pub fn latencies_us(&self) -> Percentiles {
        Percentiles::of(&self.latencies())
    }

    /// Percentiles of [`Outcome::ages`].
    pub fn ages_ms(&self) -> Percentiles {
        Percentiles::of(&self.ages())
    }
}

/// Measures for the requested time, with draining or without. `tick` receives the elapsed time.
///
/// # Errors
/// The daemon does not start, or stops too early, or fewer than two readings arrive.
pub(super) fn measure(
    executable: &Executable,
    request: &Request,
    drains: bool,
    tick: impl Fn(Duration),
) -> Result<Outcome, LabError> {
    let span = request.span;
    let folder = tempfile::Builder::new().prefix("airpace-granularity-").tempdir();
    let folder = folder.map_err(LabError::step("there is no folder for temporary files"))?;
    let emulator = Emulator::start(request.load)?;
    let drain = if drains { &*request.drain } else { "off" };
    let mut daemon = Daemon::start(executable, &emulator, folder.path(), drain, request)?;
    let od = daemon.open(folder.path())?;
    let kpi = od.subscribe(kinds::RSRP).map_err(LabError::refused)?;
    std::thread::sleep(SETTLE);

    let (began, before, counted) = (Instant::now(), daemon.work()?, daemon.counted()?);
    let reader = read(kpi, span)?;
    while began.elapsed() < span {
        std::thread::sleep((span - began.elapsed()).min(Duration::from_millis(100)));
        tick(began.elapsed().min(span));
    }
    let (took, after, now_counted) = (began.elapsed().as_secs_f64(), daemon.work()?, daemon.counted()?);
    let readings = match reader.join() {
        Ok(readings) => readings.map_err(LabError::refused)?,
        Err(_) => return Err(LabError::Thread("reader")),
    };
    if readings.len() < 2 {
        refuse!("only {} readings arrived in {took:.1} s", readings.len());
    }
    daemon.end()?;
    Ok(Outcome {
        drains,
        cpu_percent: (after.cpu_ns - before.cpu_ns) as f64 / 1e9 / took * 100.0,
        wakes_per_s: (after.wakes - before.wakes) as f64 / took,
        packets_per_s: (now_counted.packets - counted.packets) / took,
        drains_per_s: (now_counted.drains - counted.drains) / took,
        is_realtime: daemon.is_realtime,
        readings,
    })
}

/// Reads every reading of a KPI for `span`, as a program would, and records the time of each read.
fn read(kpi: Kpi, span: Duration) -> Result<JoinHandle<Result<Readings, od::Error>>, LabError> {
    let until = now_ns() + span.as_nanos() as u64;
    let mut seen = kpi.latest().map_or(0, |reading| reading.sequence);
    let read = move || {
        let mut readings = Vec::with_capacity(1 << 16);
        loop {
            let left = until.saturating_sub(now_ns());
            match kpi.wait(seen, Duration::from_nanos(left)) {
                Ok(reading) => {
                    readings.push((reading, now_ns()));
                    seen = reading.sequence;
                }
                Err(od::Error::TimedOut) => return Ok(readings),
                Err(od::Error::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    };
    let reader = std::thread::Builder::new().name("reader".to_owned()).spawn(read);
    reader.map_err(LabError::step("the system gives no further thread"))
}

/// The daemon's process.
struct Daemon {
    process: Child,
    says: BufReader<ChildStdout>,
    metrics: String,
    is_realtime: bool,
}

/// Work of the daemon's threads.
struct Work {
    /// Processor time, in nanoseconds.
    cpu_ns: u64,
    /// Number of voluntary context switches: a thread slept and was woken up.
    wakes: u64,
}

/// Counters of the daemon.
struct Counted {
    packets: f64,
    drains: f64,
}

impl Daemon {
    fn start(
        executable: &Executable,
        emulator: &Emulator,
        folder: &Path,
        drain: &str,
        request: &Request,
    ) -> Result<Daemon, LabError> {
        let kpis = &kinds::kpis(request.load.kinds);
        let Some((program, first)) = executable.0.split_first() else {
            refuse!("there is no program to start");
        };
        let mut command = Command::new(program);
        command
            .args(first)
            .args(["diag", "serve", "--json", "--kpi", kpis])
            .args(["--metrics", "127.0.0.1:0", "--drain", drain])
            .arg("--port")
            .arg(emulator.device())
            .arg("--dir")
            .arg(folder)
            .args(request.wants_realtime.then_some("--realtime"));
        let process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = process.map_err(LabError::step("cannot start the daemon"))?;
        let says = BufReader::new(process.stdout.take().expect("it was piped"));
        Ok(Daemon { process, says, metrics: String::new(), is_realtime: false })
    }

    /// Waits until the daemon receives data from the modem, and opens its shared-memory region.
    fn open(&mut self, folder: &Path) -> Result<Od, LabError> {
        let began = Instant::now();
        loop {
            let mut line = String::new();
            let read = self.says.read_line(&mut line);
            let read = read.map_err(LabError::step("cannot read the daemon's output"))?;
            if read == 0 || began.elapsed() > PATIENCE {
                refuse!("the daemon received nothing from the modem");
            }
            let event: Result<Value, _> = serde_json::from_str(&line);
            let event =
                event.map_err(|_| LabError::Refused("the daemon printed a line that is no JSON".into()))?;
            match event["event"].as_str() {
                Some("serving") => event["metrics"].as_str().unwrap_or("").clone_into(&mut self.metrics),
                Some("realtime") => {
                    self.is_realtime = event["text"].as_str().is_some_and(|text| text.contains("SCHED_FIFO"));
                }
                Some("streaming") => return Od::open(Some(folder)).map_err(LabError::refused),
                _ => {}
            }
        }
    }

    /// Work that the daemon's threads have done so far.
    fn work(&self) -> Result<Work, LabError> {
        let folder = PathBuf::from(format!("/proc/{}/task", self.process.id()));
        let mut work = Work { cpu_ns: 0, wakes: 0 };
        for task in fs::read_dir(&folder).map_err(FileError::read(&folder))? {
            let task = task.map_err(FileError::read(&folder))?.path();
            let read = |name: &str| {
                let path = task.join(name);
                fs::read_to_string(&path).map_err(FileError::read(&path))
            };
            let run = read("schedstat")?.split(' ').next().and_then(|run| run.parse::<u64>().ok());
            let status = read("status")?;
            let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            let slept = slept.and_then(|slept| slept.trim().parse::<u64>().ok());
            let (Some(run), Some(slept)) = (run, slept) else {
                refuse!("{} has no figures of the daemon's threads", task.display());
            };
            work.cpu_ns += run;
            work.wakes += slept;
        }
        Ok(work)
    }

    fn counted(&self) -> Result<Counted, LabError> {
        let address = self.metrics.trim_start_matches("http://").trim_end_matches("/metrics");
        let page = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(address)?;
            std::io::Write::write_all(&mut stream, b"GET /metrics HTTP/1.0\r\n\r\n")?;
            let mut page = String::new();
            stream.read_to_string(&mut page)?;
            Ok(page)
        };
        let page = page().map_err(LabError::step("cannot read the daemon's metrics"))?;
        let value = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let value = line.and_then(|value| value.parse().ok());
            value.ok_or_else(|| LabError::Refused(format!("the daemon's metrics lack {name}").into()))
        };
        Ok(Counted {
            packets: value("airpace_diag_packets_total")?,
            drains: value("airpace_diag_drains_total")?,
        })
    }

    /// Stops the daemon with SIGTERM, and checks its exit status.
    fn end(&mut self) -> Result<(), LabError> {
        if let Some(pid) = rustix::process::Pid::from_raw(self.process.id() as i32) {
            let killed = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            killed.map_err(|error| LabError::step("cannot stop the daemon")(error.into()))?;
        }
        let status = self.process.wait().map_err(LabError::step("cannot wait for the daemon"))?;
        if !status.success() {
            refuse!("the daemon ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// All readings as CSV, one per row.
pub fn as_csv(outcomes: &[Outcome]) -> String {
    let mut csv = String::from("drains,sequence,rsrp_dbm,modem_ns,arrival_ns,published_ns,read_ns\n");
    for outcome in outcomes {
        for (reading, read_ns) in &outcome.readings {
            let Reading { sequence, value, modem_ns, arrival_ns, published_ns, .. } = reading;
            let drains = outcome.drains;
            let _ =
                writeln!(csv, "{drains},{sequence},{value},{modem_ns},{arrival_ns},{published_ns},{read_ns}");
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(arrivals_ms: &[f64]) -> Outcome {
        let reading = |(at, ms): (usize, &f64)| {
            let arrival_ns = (ms * 1e6) as u64;
            let reading = Reading {
                value: -90.0,
                sequence: at as u64 + 1,
                modem_ns: modem_ns(arrival_ns - 500_000),
                arrival_ns,
                published_ns: arrival_ns + 1_000,
                subframe: None,
                carrier: 0,
                radio: 1,
                is_after_gap: false,
                gaps: 0,
            };
            (reading, arrival_ns + 20_000)
        };
        let readings = arrivals_ms.iter().enumerate().map(reading).collect();
        Outcome {
            drains: true,
            cpu_percent: 1.0,
            wakes_per_s: 400.0,
            packets_per_s: 0.0,
            drains_per_s: 0.0,
            is_realtime: true,
            readings,
        }
    }

    #[test]
    fn what_comes_at_once_is_one_arrival() {
        assert_eq!(outcome_of(&[1_000.0, 1_010.0, 1_020.5]).gaps(), [10.0, 10.5]);
        assert_eq!(outcome_of(&[1_000.0, 1_001.0, 1_004.0, 2_000.0, 2_003.0]).gaps(), [1_000.0]);
    }

    #[test]
    fn latency_is_from_arrival_and_age_from_the_modem() {
        let outcome = outcome_of(&[1_000.0, 1_010.0]);
        assert_eq!(outcome.latencies(), [20.0, 20.0]);
        assert_eq!(outcome.ages(), [0.52, 0.52]);
        let mut early = outcome.readings.clone();
        early[0].0.modem_ns += 1_000_000;
        let early = Outcome { readings: early, ..outcome_of(&[]) };
        assert_eq!(
            early.ages(),
            [-0.48, 0.52],
            "a begin that was seen late makes them short, and nothing worse"
        );
        assert_eq!(as_csv(&[outcome]).lines().nth(1).unwrap().split(',').next_back(), Some("1000020000"));
    }

    #[test]
    fn percentiles_are_values_that_came() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let found = Percentiles::of(&values);
        assert_eq!((found.p50, found.p90, found.p99, found.max, found.count), (50.0, 90.0, 99.0, 100.0, 100));
        assert!(Percentiles::of(&[]).p50.is_nan());
    }
}

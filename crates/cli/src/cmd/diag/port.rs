//! Options of all live commands: the modem's port, and how the port is read.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use airpace_core::{Refused, Remedy};
use airpace_diag::kpi::{KpiError, Subscription};
use airpace_modem::daemon::{DRAIN_EVERY, Options};
use airpace_modem::source::Source;
use anyhow::Context;

/// The modem's diagnostic port. A command that flattens these options puts [`PORTS`] into an argument group that requires
/// one of them.
#[derive(clap::Args)]
pub struct PortArgs {
    /// Serial device: the DM port of a USB modem, usually the first of its ports.
    #[arg(long, value_name = "DEVICE")]
    port: Option<PathBuf>,
    /// Character device of a phone's own kernel, usually /dev/diag; requires root.
    #[arg(long, value_name = "DEVICE")]
    dev: Option<PathBuf>,
    /// TCP server that forwards a modem's port.
    #[arg(long, value_name = "HOST:PORT")]
    tcp: Option<String>,
}

/// The mutually exclusive options of [`PortArgs`].
pub const PORTS: [&str; 3] = ["port", "dev", "tcp"];

/// Options for reading the modem's port.
#[derive(clap::Args)]
pub struct ListenArgs {
    /// Interval between drains of the modem's buffer, such as 1ms, or `off`, if the device supports drains.
    ///
    /// Without drains, a modem that buffers packets sends them about once a second.
    #[arg(long, value_name = "EVERY", default_value = DRAIN, value_parser = parse_drain)]
    drain: Drain,
    /// Requests real-time priority and locked memory, for a machine that is busy with other programs.
    ///
    /// This option increases the CPU use; `airpace diag granularity --realtime` measures its benefit.
    #[arg(long)]
    realtime: bool,
}

/// Default interval between drains of the modem's buffer.
///
/// Chosen: every drain wakes two threads of the daemon, and these wake-ups are most of the daemon's cost. The interval
/// between values that a modem reports every ten milliseconds stays the same, because ten is a multiple of five. Values
/// are two milliseconds older than with a drain every millisecond.
pub const DRAIN: &str = "5ms";

/// Interval between drains; `None` means no draining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain(pub Option<Duration>);

impl PortArgs {
    /// The port, with a path that stays the same when the device is plugged in again; `None` if no port is given.
    pub fn source(&self) -> Option<Source> {
        let serial = self.port.clone().map(Source::Serial);
        let dev_diag = self.dev.clone().map(Source::DevDiag);
        let tcp = self.tcp.clone().map(Source::Tcp);
        serial.or(dev_diag).or(tcp).map(Source::lasting)
    }
}

impl Default for ListenArgs {
    /// The defaults of the command line.
    fn default() -> ListenArgs {
        ListenArgs { drain: Drain(Some(DRAIN_EVERY)), realtime: false }
    }
}

impl ListenArgs {
    /// Options of a daemon on `source`. Programs subscribe through a control socket in `dir`, if `dir` is given. Another
    /// process of this program is the daemon's guard.
    ///
    /// # Errors
    /// A KPI does not exist, or the path of this program is not known.
    pub fn options(&self, source: Source, kpis: &[String], dir: Option<PathBuf>) -> anyhow::Result<Options> {
        subscription(kpis)?;
        let program =
            std::env::current_exe().context("cannot find this program, which is to guard the modem")?;
        let guard = move || {
            let mut command = Command::new(&program);
            command.args(["diag", "guard"]);
            command
        };
        Ok(Options {
            source,
            kpis: kpis.to_vec(),
            dir,
            drain: self.drain.0,
            wants_realtime: self.realtime,
            guard: Some(Box::new(guard)),
            tap: None,
            packets: None,
        })
    }
}

/// A subscription to the KPIs with these names.
///
/// # Errors
/// A KPI does not exist. The message names the command that lists all KPIs.
pub fn subscription(kpis: &[String]) -> anyhow::Result<Subscription> {
    Subscription::new(kpis.iter().map(String::as_str)).map_err(refused_kpi)
}

/// The error of a KPI that does not exist, with the command that lists all KPIs.
pub fn refused_kpi(error: KpiError) -> anyhow::Error {
    match error {
        KpiError::Unknown(..) => {
            let remedy = Remedy::new("all KPIs:").command("airpace list kpis".to_owned());
            Refused::of(&error).but(remedy).into()
        }
        KpiError::Bytes(..) => {
            let remedy = Remedy::new("its bytes:").command("airpace diag decode --json".to_owned());
            Refused::of(&error).but(remedy).into()
        }
        other => other.into(),
    }
}

/// Parses the interval between drains: a duration, or `off`.
///
/// # Errors
/// The text is not a duration, or the duration is too short.
pub fn parse_drain(text: &str) -> Result<Drain, String> {
    if text == "off" {
        return Ok(Drain(None));
    }
    let every = parse_duration(text)?;
    if every < DRAIN_EVERY / 10 {
        return Err("no modem is drained more often than every 100us".to_owned());
    }
    Ok(Drain(Some(every)))
}

/// Parses a duration such as `250us`, `1ms`, `1.5s`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let read = |(unit, seconds): (&str, f64)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * seconds);
    let seconds = units.into_iter().find_map(read).filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "write a time such as 500us, 1ms or 2s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1_500)));
        for wrong in ["1", "ms", "-1s", "0s", "1m", "1e999s"] {
            parse_duration(wrong).unwrap_err();
        }
        assert_eq!(parse_drain("off"), Ok(Drain(None)));
        assert_eq!(parse_drain("10ms"), Ok(Drain(Some(Duration::from_millis(10)))));
        parse_drain("10us").unwrap_err();
    }
}

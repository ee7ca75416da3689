//! Writer for logs in the format of mm-link, which mahimahi's own tools can read (`mm-throughput-graph`,
//! `mm-delay-graph`).

use std::fmt::Write as _;

use airpace_core::Direction;

use super::{Arrival, Chance, Departure, Drop, Line};
use crate::config_error::ConfigError;
use crate::queue::{BufferConfig, Discipline};
use crate::trace::TraceConfig;

/// The header of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogHeader<'a> {
    /// The direction of the link.
    pub direction: Direction,
    /// The name of the trace's file.
    pub trace: &'a str,
    /// The name of the log's file.
    pub log: &'a str,
    /// The command that runs the link.
    pub command_line: &'a str,
    /// The enclosing mahimahi shells, as `[delay 20 ms] `; omitted if empty.
    pub config: &'a str,
    /// The configuration of the link.
    pub link: &'a TraceConfig,
    /// The time of day that corresponds to time zero of the log, in ms since 1970.
    pub init_ms: u64,
    /// The log's millisecond at which the trace starts.
    pub base_ms: u64,
}

/// Writes the log of one direction of a link from the link's events ([`TraceLink::lines`]). The text is stored until it
/// is fetched.
///
/// The log's times are those of its trace, plus [`LogHeader::base_ms`]: if the link starts in the middle of the trace,
/// the times of the log start there too.
///
/// Source: mahimahi `link_queue.cc`, `dropping_packet_queue.cc` (the head and the lines)
/// Differs: mm-link's header does not contain the parameters of CoDel and PIE; here they are written like other
/// parameters, so that the queue can be reconstructed.
///
/// [`TraceLink::lines`]: crate::trace::TraceLink::lines
#[derive(Clone, Debug)]
pub struct LogWriter {
    text: String,
    /// The log's millisecond of the link's time zero.
    zero_ms: u64,
}

impl LogWriter {
    /// A log that contains its header.
    ///
    /// # Errors
    /// The start is random, or mm-link has no such queue or cannot express its configuration. The error has the key
    /// (such as `buffer.discipline`) and the remedy.
    pub fn new(header: &LogHeader<'_>) -> Result<LogWriter, ConfigError> {
        let queue = queue(&header.link.buffer).map_err(|error| error.within("buffer"))?;
        let start_ms = header.link.start_s.fixed_ms()?.ok_or_else(|| {
            ConfigError::new(
                "start_s",
                "is `random`, but mm-link's log counts from a fixed start; give seconds",
            )
        })?;
        let name = match header.direction {
            Direction::Downlink => "Downlink",
            Direction::Uplink => "Uplink",
        };
        let [trace, log] = [header.trace, header.log].map(one_line);
        let mut text = format!(
            "# mahimahi mm-link ({name}) [{trace}] > {log}\n# command line: {}\n# queue: {queue}\n\
             # init timestamp: {}\n# base timestamp: {}\n",
            one_line(header.command_line),
            header.init_ms,
            header.base_ms
        );
        if !header.config.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# mahimahi config: {}", one_line(header.config));
        }
        Ok(LogWriter { text, zero_ms: header.base_ms.saturating_add(start_ms) })
    }

    /// Adds an event of the link, in milliseconds of the link's own time. Times must not decrease from call to call.
    pub fn write(&mut self, line: Line) {
        let at = |ms: u64| ms.saturating_add(self.zero_ms);
        let line = match line {
            Line::Chance(chance) => Line::Chance(Chance { ms: at(chance.ms), ..chance }),
            Line::Arrival(arrival) => Line::Arrival(Arrival { ms: at(arrival.ms), ..arrival }),
            Line::Departure(departure) => Line::Departure(Departure {
                ms: at(departure.ms),
                arrived_ms: at(departure.arrived_ms),
                ..departure
            }),
            Line::Drop(drop) => Line::Drop(Drop { ms: at(drop.ms), ..drop }),
        };
        let _ = writeln!(self.text, "{line}");
    }

    /// Returns the text added since the last call. The first text includes the header.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// Replaces control characters in `text` by spaces, because a file name may contain line breaks.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// The configuration of the queue in mm-link's notation, for example `droptail [packets=250]`.
fn queue(buffer: &BufferConfig) -> Result<String, ConfigError> {
    if buffer.ms.is_some() {
        let reason =
            "bounds the queue in milliseconds, which a log of mm-link cannot say; give `packets` or `bytes`";
        return Err(ConfigError::new("ms", reason));
    }
    let mut arguments = vec![];
    arguments.extend(buffer.bytes.map(|bytes| format!("bytes={bytes}")));
    arguments.extend(buffer.packets.map(|packets| format!("packets={packets}")));
    let whole = |key: &str, ms: f64| match ms {
        ms if ms >= 0.0 && ms == libm::trunc(ms) => Ok(ms as u64),
        ms => {
            let reason = format!("is {ms}, and mm-link counts whole milliseconds; give a whole number");
            Err(ConfigError::new(key, reason))
        }
    };
    let name = match buffer.discipline {
        Discipline::DropTail if arguments.is_empty() => return Ok("infinite".to_owned()),
        Discipline::DropTail => "droptail",
        Discipline::DropHead => "drophead",
        Discipline::CoDel => {
            arguments.push(format!("target={}", whole("target_ms", buffer.target_ms)?));
            arguments.push(format!("interval={}", whole("interval_ms", buffer.interval_ms)?));
            "codel"
        }
        Discipline::Pie => {
            arguments.push(format!("qdelay_ref={}", whole("qdelay_ref_ms", buffer.qdelay_ref_ms)?));
            arguments.push(format!("max_burst={}", whole("max_burst_ms", buffer.max_burst_ms)?));
            "pie"
        }
        Discipline::FqCoDel => {
            let reason =
                "is `fq_codel`, which mm-link does not have; take another one, or write no log of its form";
            return Err(ConfigError::new("discipline", reason));
        }
    };
    Ok(format!("{name} [{}]", arguments.join(", ")))
}

//! Writes a trace as text, and parses it.

use std::fmt;
use std::str::{FromStr, SplitWhitespace};
use std::time::Duration;

use airpace_core::{Bytes, Rate, Rider, Time};

use super::{Acked, Answer, Entry, Numbers, Told};
use crate::controller::LossCause;
use crate::registry::DeviceFlows;

/// The first word of a trace.
const FORMAT: &str = "airpace-ack-trace";
const VERSION: &str = "1";

/// The first line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The scheme, as users type it.
    pub scheme: String,
    /// The size of a full packet.
    pub mss: Bytes,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORMAT} {VERSION} {} {}", self.scheme, self.mss.0)
    }
}

/// The reason why a line cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// The text is not an ACK trace, or the trace has another version.
    Header,
    /// A word is missing, or does not have the expected form.
    Word {
        /// The line number, from 1.
        line: usize,
        /// Description of the expected word.
        expected: &'static str,
        /// The text found instead of the expected word; empty at the end of the line.
        found: String,
    },
    /// The time of the line is earlier than the time of the previous line.
    Order {
        /// The line number, from 1.
        line: usize,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Header => write!(f, "line 1 is not `{FORMAT} {VERSION} SCHEME MSS`")?,
            ParseError::Word { line, expected, found } => {
                write!(f, "line {line}: expected {expected}, found `{found}`")?;
            }
            ParseError::Order { line } => {
                write!(f, "line {line}: its time is before that of the line above")?
            }
        }
        f.write_str("; write the trace again")
    }
}

impl std::error::Error for ParseError {}

/// Reads a trace line by line.
pub struct Reader<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    last: Time,
}

impl<'a> Reader<'a> {
    /// Starts to parse `text`.
    ///
    /// # Errors
    /// The first line is not the first line of an ACK trace.
    pub fn new(text: &'a str) -> Result<(Header, Reader<'a>), ParseError> {
        let mut lines = text.lines().enumerate();
        let mut words = lines.next().map_or("", |(_, line)| line).split_whitespace();
        if (words.next(), words.next()) != (Some(FORMAT), Some(VERSION)) {
            return Err(ParseError::Header);
        }
        let scheme = words.next().ok_or(ParseError::Header)?.to_owned();
        let mss = words.next().and_then(|word| word.parse().ok()).filter(|&mss| mss > 0);
        let mss = Bytes(mss.ok_or(ParseError::Header)?);
        if words.next().is_some() {
            return Err(ParseError::Header);
        }
        Ok((Header { scheme, mss }, Reader { lines, last: Time::ZERO }))
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Entry, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (index, text) = self.lines.by_ref().find(|(_, line)| !line.trim().is_empty())?;
        let line = index + 1;
        let entry = Words { line, words: text.split_whitespace() }.entry();
        if entry.as_ref().is_ok_and(|entry| entry.time < self.last) {
            return Some(Err(ParseError::Order { line }));
        }
        self.last = entry.as_ref().map_or(self.last, |entry| entry.time);
        Some(entry)
    }
}

/// The words of one line.
struct Words<'a> {
    line: usize,
    words: SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn refuse(&self, expected: &'static str, found: &str) -> ParseError {
        ParseError::Word { line: self.line, expected, found: found.to_owned() }
    }

    fn word(&mut self, expected: &'static str) -> Result<&'a str, ParseError> {
        self.words.next().ok_or_else(|| self.refuse(expected, ""))
    }

    fn parsed<T: FromStr>(&mut self, expected: &'static str) -> Result<T, ParseError> {
        let word = self.word(expected)?;
        word.parse().map_err(|_| self.refuse(expected, word))
    }

    fn known<T: FromStr>(&mut self, expected: &'static str) -> Result<Option<T>, ParseError> {
        match self.word(expected)? {
            "-" => Ok(None),
            word => word.parse().map(Some).map_err(|_| self.refuse(expected, word)),
        }
    }

    fn bytes(&mut self) -> Result<Bytes, ParseError> {
        self.parsed("a number of bytes").map(Bytes)
    }

    fn span(&mut self) -> Result<Duration, ParseError> {
        self.parsed("nanoseconds").map(Duration::from_nanos)
    }

    fn flag(&mut self) -> Result<bool, ParseError> {
        match self.word("0 or 1")? {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(self.refuse("0 or 1", other)),
        }
    }

    /// Parses ranges of packet numbers, as in `0-3,5`. Each range must start above the end of the previous range.
    fn numbers(&mut self) -> Result<Numbers, ParseError> {
        const EXPECTED: &str = "packet numbers, as in 0-3,5";
        let word = self.word(EXPECTED)?;
        let mut ranges: Vec<(u64, u64)> = vec![];
        for range in word.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let read = first.parse().ok().zip(last.parse().ok());
            let after = ranges.last().map_or(0, |&(_, last)| last.saturating_add(1));
            // The maximum of `u64` is not a valid packet number.
            let read = read.filter(|&(first, last)| after <= first && first <= last && last < u64::MAX);
            ranges.push(read.ok_or_else(|| self.refuse(EXPECTED, word))?);
        }
        Ok(Numbers(ranges))
    }

    fn rider(&mut self) -> Result<Rider, ParseError> {
        const EXPECTED: &str = "bytes as hexadecimal digits, or `-`";
        let word = self.word(EXPECTED)?;
        if word == "-" {
            return Ok(Rider::EMPTY);
        }
        let digit = |at: u8| char::from(at).to_digit(16).map(|digit| digit as u8);
        let pair = |pair: &[u8]| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = word.as_bytes().chunks(2).map(pair).collect();
        bytes.and_then(|bytes| Rider::new(&bytes)).ok_or_else(|| self.refuse(EXPECTED, word))
    }

    fn entry(mut self) -> Result<Entry, ParseError> {
        let time = Time::from_nanos(self.parsed("a time in nanoseconds")?);
        let told = match self.word("the kind of an event")? {
            "sent" => Told::Sent {
                number: self.parsed("a packet number")?,
                bytes: self.bytes()?,
                inflight: self.bytes()?,
                app_limited: self.flag()?,
            },
            "ack" => Told::Acked(self.acked()?),
            "loss" => Told::Lost {
                numbers: self.numbers()?,
                lost: self.bytes()?,
                prior_inflight: self.bytes()?,
                inflight: self.bytes()?,
                next_number: self.parsed("a packet number")?,
                cause: match self.word("`threshold` or `persistent`")? {
                    "threshold" => LossCause::Threshold,
                    "persistent" => LossCause::Persistent,
                    other => return Err(self.refuse("`threshold` or `persistent`", other)),
                },
            },
            "radio" => Told::Radio {
                bandwidth: self.known("bits per second")?.map(Rate::from_bps),
                burst: Rate::from_bps(self.parsed("bits per second")?),
                queue: self.bytes()?,
            },
            "device" => Told::Device(DeviceFlows {
                flows: self.parsed("a number of flows")?,
                apps: self.parsed("a number of applications")?,
                app_flows: self.parsed("a number of flows")?,
                used_share: self.parsed("a share")?,
            }),
            "feedback" => Told::Feedback(self.rider()?),
            "timer" => Told::Timer,
            other => return Err(self.refuse("sent, ack, loss, radio, device, feedback or timer", other)),
        };
        let answer = match self.words.next() {
            None => None,
            Some("=") => Some(Answer {
                cwnd: self.bytes()?,
                pacing_rate: self.known("bits per second")?.map(Rate::from_bps),
                state: self.word("a state")?.to_owned(),
            }),
            Some(other) => return Err(self.refuse("`=` or the end of the line", other)),
        };
        match self.words.next() {
            None => Ok(Entry { time, told, answer }),
            Some(other) => Err(self.refuse("the end of the line", other)),
        }
    }

    fn acked(&mut self) -> Result<Acked, ParseError> {
        Ok(Acked {
            numbers: self.numbers()?,
            acked: self.bytes()?,
            prior_inflight: self.bytes()?,
            inflight: self.bytes()?,
            next_number: self.parsed("a packet number")?,
            rtt: self.known("nanoseconds")?.map(Duration::from_nanos),
            smoothed: self.span()?,
            variation: self.span()?,
            least: self.span()?,
            rate: self.known("bits per second")?.map(Rate::from_bps),
            delivered: self.bytes()?,
            prior_delivered: self.bytes()?,
            interval: self.span()?,
            app_limited: self.flag()?,
            any_app_limited: self.flag()?,
            lost: self.bytes()?,
            cwnd_limited: self.flag()?,
            ce: self.parsed("a number of packets")?,
            feedback: self.rider()?,
        })
    }
}

/// A value that is written as `-` if it is unknown.
struct Known<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

struct Hex<'a>(&'a Rider);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_bytes() {
            [] => f.write_str("-"),
            bytes => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

fn bps(rate: Option<Rate>) -> Known<u64> {
    Known(rate.map(Rate::as_bps))
}

/// Converts `span` to nanoseconds. If the result does not fit into 64 bits, the maximum of `u64` (584 years) is
/// returned.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(first, last)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.time.as_nanos(), self.told)?;
        match &self.answer {
            Some(Answer { cwnd, pacing_rate, state }) => {
                write!(f, " = {} {} {state}", cwnd.0, bps(*pacing_rate))
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Told::Sent { number, bytes, inflight, app_limited } => {
                write!(f, "sent {number} {} {} {}", bytes.0, inflight.0, u8::from(*app_limited))
            }
            Told::Acked(acked) => acked.fmt(f),
            Told::Lost { numbers, lost, prior_inflight, inflight, next_number, cause } => {
                let cause = match cause {
                    LossCause::Threshold => "threshold",
                    LossCause::Persistent => "persistent",
                };
                let [lost, prior, inflight] = [lost, prior_inflight, inflight].map(|bytes| bytes.0);
                write!(f, "loss {numbers} {lost} {prior} {inflight} {next_number} {cause}")
            }
            Told::Radio { bandwidth, burst, queue } => {
                write!(f, "radio {} {} {}", bps(*bandwidth), burst.as_bps(), queue.0)
            }
            Told::Device(DeviceFlows { flows, apps, app_flows, used_share }) => {
                write!(f, "device {flows} {apps} {app_flows} {used_share}")
            }
            Told::Feedback(bytes) => write!(f, "feedback {}", Hex(bytes)),
            Told::Timer => f.write_str("timer"),
        }
    }
}

impl fmt::Display for Acked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Acked { numbers, next_number, ce, .. } = self;
        let [acked, prior, inflight] = [self.acked, self.prior_inflight, self.inflight].map(|bytes| bytes.0);
        write!(f, "ack {numbers} {acked} {prior} {inflight} {next_number} ")?;
        let [smoothed, variation, least] = [self.smoothed, self.variation, self.least].map(nanos);
        write!(f, "{} {smoothed} {variation} {least} ", Known(self.rtt.map(nanos)))?;
        let (delivered, before, interval) = (self.delivered.0, self.prior_delivered.0, nanos(self.interval));
        write!(f, "{} {delivered} {before} {interval} ", bps(self.rate))?;
        let [app_limited, any, cwnd_limited] =
            [self.app_limited, self.any_app_limited, self.cwnd_limited].map(u8::from);
        write!(f, "{app_limited} {any} {} {cwnd_limited} {ce} {}", self.lost.0, Hex(&self.feedback))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "airpace-ack-trace 1 biscay:sample_ms=20 1500
1200000 sent 0 1500 1500 0 = 15000 - Startup
2000000 device 2 1 2 0.5
2000000 radio - 0 300
3000000 radio 12000000 30000000 0
41000000 loss 1 1500 15000 13500 10 threshold
41000000 ack 0,2-4 6000 15000 7500 10 40000000 40000000 20000000 40000000 - 1500 0 40000000 0 1 1500 1 0 01ff = 16500 7920000 Startup
50000000 feedback 01
60000000 timer
70000000 loss 5-9 7500 7500 0 10 persistent = 6000 1000 Startup
";

    #[test]
    fn a_trace_reads_as_it_was_written() {
        let (header, entries) = Reader::new(TEXT).unwrap();
        assert_eq!(header, Header { scheme: "biscay:sample_ms=20".to_owned(), mss: Bytes(1500) });
        let entries: Vec<Entry> = entries.map(|entry| entry.expect("the text is well formed")).collect();
        let mut written = format!("{header}\n");
        entries.iter().for_each(|entry| written += &format!("{entry}\n"));
        assert_eq!(written, TEXT);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(Reader::new("airpace-ack-trace 2 biscay 1500\n").err(), Some(ParseError::Header));
        let first_error = |lines: &str| {
            let text = format!("airpace-ack-trace 1 biscay 1500\n{lines}");
            let (_, reader) = Reader::new(&text).unwrap();
            reader.filter_map(Result::err).map(|error| error.to_string()).next().unwrap_or_default()
        };
        let said = first_error("1 timer\n2 loss 1 1500 x 0 10 threshold\n");
        assert!(said.starts_with("line 3: expected a number of bytes, found `x`"), "{said}");
        assert!(first_error("2 timer\n1 timer\n").starts_with("line 3: its time is before"));
        assert!(first_error("2 timer now\n").contains("found `now`"));
        for numbers in ["", "x", "3-", "3-2", "1,1", "4-5,5", "0,"] {
            let said = first_error(&format!("2 loss {numbers} 1500 0 0 10 threshold\n"));
            assert!(said.contains("expected "), "{numbers}: {said}");
        }
        assert!(first_error("2 feedback 0g\n").contains("hexadecimal"));
        assert!(first_error("2 timer = 1500 -\n").contains("a state"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "(airpace-ack-trace 1 reno 1500\n)?([0-9a-z= .-]{0,60}\n){0,4}") {
            if let Ok((_, reader)) = Reader::new(&text) {
                reader.for_each(drop);
            }
        }
    }
}

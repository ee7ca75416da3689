//! Counters for the content of a log. The memory does not grow with the log.

use std::collections::{BTreeMap, BTreeSet};

use crate::layout::{Unreadable, Version};
use crate::source::Item;
use crate::{Fault, LogCode, LogPacket, Message, Radio, Stamp, log};

/// Counters of a file.
#[derive(Debug, Default)]
pub struct Tally {
    /// Number of log packets.
    pub packets: u64,
    /// Number of log packets of each radio.
    pub radios: BTreeMap<Radio, u64>,
    /// Counts of log packets by code.
    pub codes: BTreeMap<LogCode, CodeTally>,
    /// Results from the timestamps.
    pub clock: Clock,
    /// Number of other messages by command code.
    pub commands: BTreeMap<u8, u64>,
    /// Bytes that do not belong to a message, by kind of fault.
    pub faults: BTreeMap<&'static str, Faults>,
}

/// Counters of the packets of one code.
#[derive(Debug, Default)]
pub struct CodeTally {
    /// Number of packets.
    pub count: u64,
    /// Number of bytes of their payloads.
    pub bytes: u64,
    /// Number of packets per version.
    pub versions: BTreeMap<Version, u64>,
    /// Number of packets that do not match their version's layout.
    pub misfits: u64,
    /// Timestamp of the last packet of each radio.
    last: BTreeMap<Radio, Stamp>,
    /// Intervals between consecutive packets of the same radio, in microseconds rounded to three significant digits,
    /// and the number of occurrences of each.
    gaps: BTreeMap<u64, u64>,
}

/// Bytes that do not belong to a message.
#[derive(Debug, Default)]
pub struct Faults {
    /// Number of occurrences.
    pub count: u64,
    /// Offsets of the first occurrences, at most 100.
    pub offsets: Vec<u64>,
    /// Number of bytes, if known.
    pub bytes: u64,
}

/// Results from the timestamps.
#[derive(Debug, Default)]
pub struct Clock {
    /// Earliest and latest timestamp in network time.
    set: Option<(Stamp, Stamp)>,
    /// Earliest and latest timestamp before the modem knew the network time.
    unset: Option<(Stamp, Stamp)>,
    /// Number of packets before the modem knew the network time.
    pub unset_packets: u64,
    /// Number of packets that are more than a second earlier than the previous packet.
    pub steps_back: u64,
    last: BTreeMap<Radio, Stamp>,
}

impl Tally {
    /// Names of the radio access technologies of the packets, sorted.
    pub fn rats(&self) -> Vec<&'static str> {
        self.codes.keys().filter_map(|code| code.rat()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Counts the item at this offset.
    pub fn add(&mut self, offset: u64, item: Item<'_>) {
        match item {
            Item::Message(Message::Log(packet)) => self.add_packet(&packet),
            Item::Message(Message::Other { command, .. }) => *self.commands.entry(command).or_default() += 1,
            Item::Message(Message::Cut { .. }) => {
                self.add_fault("packet shorter than its length field", offset)
            }
            Item::Fault(Fault::Checksum) => self.add_fault("bad checksum", offset),
            Item::Fault(Fault::Short) => self.add_fault("frame too short", offset),
            Item::Fault(Fault::Long) => self.add_fault("frame too long", offset),
            Item::Fault(Fault::Marks) => self.add_fault("no mark where a frame should end", offset),
            Item::Skipped(bytes) => self.add_bytes("stretch between packets skipped", offset, bytes),
            Item::Unfinished(_) => self.add_fault("frame cut at the end of the file", offset),
        }
    }

    fn add_packet(&mut self, packet: &LogPacket<'_>) {
        self.packets += 1;
        *self.radios.entry(packet.radio).or_default() += 1;
        self.clock.add(packet.radio, packet.stamp);
        self.codes.entry(packet.code).or_default().add(packet);
    }

    fn add_bytes(&mut self, kind: &'static str, offset: u64, bytes: usize) {
        self.add_fault(kind, offset);
        self.faults.entry(kind).or_default().bytes += bytes as u64;
    }

    fn add_fault(&mut self, kind: &'static str, offset: u64) {
        const FEW: usize = 100;
        let faults = self.faults.entry(kind).or_default();
        faults.count += 1;
        if faults.offsets.len() < FEW {
            faults.offsets.push(offset);
        }
    }
}

impl CodeTally {
    fn add(&mut self, packet: &LogPacket<'_>) {
        self.count += 1;
        self.bytes += packet.payload.len() as u64;
        if let Some(version) = log::version(packet) {
            *self.versions.entry(version).or_default() += 1;
        }
        self.misfits += u64::from(matches!(log::read(packet), Err(Unreadable::Misfit(..))));
        let gap = self.last.insert(packet.radio, packet.stamp).and_then(|last| packet.stamp.since(last));
        // No interval is counted across the moment at which the modem learns the network time, nor if the clock steps
        // back, which gives a negative interval.
        if let Some(gap_s) = gap.filter(|gap_s| *gap_s >= 0.0) {
            *self.gaps.entry(three_digits((gap_s * 1e6) as u64)).or_default() += 1;
        }
    }

    /// Quantile of the gaps between packets, in milliseconds.
    pub fn gap_ms(&self, quantile: f64) -> Option<f64> {
        let gaps: u64 = self.gaps.values().sum();
        let mut left = (quantile * gaps as f64).ceil().max(1.0) as u64;
        let (&micros, _) = self.gaps.iter().find(|(_, count)| {
            let is_there = left <= **count;
            left = left.saturating_sub(**count);
            is_there
        })?;
        Some(micros as f64 / 1e3)
    }
}

/// Rounds to three significant digits.
fn three_digits(number: u64) -> u64 {
    let mut unit = 1;
    while number / unit >= 1_000 {
        unit *= 10;
    }
    (number + unit / 2) / unit * unit
}

impl Clock {
    fn add(&mut self, radio: Radio, stamp: Stamp) {
        let span = if stamp.is_set() { &mut self.set } else { &mut self.unset };
        self.unset_packets += u64::from(!stamp.is_set());
        *span = Some(span.map_or((stamp, stamp), |(begin, end)| (begin.min(stamp), end.max(stamp))));
        let gap = self.last.insert(radio, stamp).and_then(|last| stamp.since(last));
        self.steps_back += u64::from(gap.is_some_and(|gap_s| gap_s < -1.0));
    }

    /// Earliest and latest timestamp in network time; if there is none, those before the network time was known.
    pub fn span(&self) -> Option<(Stamp, Stamp)> {
        self.set.or(self.unset)
    }

    /// Duration of [`Clock::span`] in seconds.
    pub fn seconds(&self) -> Option<f64> {
        seconds(self.span())
    }

    /// Duration of the part before the network time was known, in seconds.
    pub fn unset_seconds(&self) -> Option<f64> {
        seconds(self.unset)
    }
}

/// Duration in seconds, computed from microseconds because the finer digits of a timestamp are not meaningful.
fn seconds(span: Option<(Stamp, Stamp)>) -> Option<f64> {
    span.map(|(begin, end)| (end.micros() - begin.micros()) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(radio: u8, millis: u64) -> LogPacket<'static> {
        let stamp = Stamp::from_nanos(millis * 1_000_000);
        LogPacket { radio: Radio(radio), code: LogCode(0xB999), stamp, payload: &[1, 2, 3, 4] }
    }

    #[test]
    fn gaps_are_of_one_radio_and_not_across_the_learning_of_the_time() {
        const SET: u64 = 1_200_000_000_000;
        let mut tally = Tally::default();
        for (radio, millis) in
            [(1, 5), (1, 15), (1, SET), (2, SET + 7), (1, SET + 20), (2, SET + 107), (1, SET + 50)]
        {
            tally.add_packet(&packet(radio, millis));
        }
        let code = &tally.codes[&LogCode(0xB999)];
        assert_eq!(
            code.gaps.iter().map(|(gap, count)| (*gap, *count)).collect::<Vec<_>>(),
            [(10_000, 1), (20_000, 1), (30_000, 1), (100_000, 1)]
        );
        assert_eq!((code.gap_ms(0.5), code.gap_ms(0.9)), (Some(20.0), Some(100.0)));
        assert_eq!(tally.clock.seconds(), Some(0.107), "only by the network's time");
        assert_eq!((tally.clock.unset_packets, tally.clock.unset_seconds()), (2, Some(0.01)));
    }

    #[test]
    fn a_clock_that_steps_back_is_told_and_gives_no_gap() {
        let mut tally = Tally::default();
        for millis in [1_500_000_000_000, 1_500_000_005_000, 1_500_000_001_000] {
            tally.add_packet(&packet(1, millis));
        }
        assert_eq!(tally.clock.steps_back, 1);
        assert_eq!(tally.codes[&LogCode(0xB999)].gap_ms(0.9), Some(5_000.0));
    }

    #[test]
    fn gaps_keep_three_digits() {
        assert_eq!([7, 999, 1_234, 9_996, 123_456].map(three_digits), [7, 999, 1_230, 10_000, 123_000]);
    }
}

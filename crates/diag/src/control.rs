//! Control of the modem's packet buffer: buffering modes, watermarks and drains.
//!
//! A phone's modem keeps packets until a watermark or a timer is reached, which delays them by about a second. The
//! phone's application processor can change that with control packets. From user space, two ioctls on `/dev/diag` make
//! the kernel send these control packets (buffering: 35, drain: 36). No public command sends them over a DM port: such a
//! port is expected to stream, which must be verified by measurement.
//! [`Request::Control`](crate::command::Request::Control) carries them in-band to this crate's own [modem](crate::modem),
//! so that draining can be tested without a phone. A real modem refuses this request.
//!
//! Source: Linux drivers/char/diag/diagfwd_cntl.h, of Android's kernels

use std::time::Duration;

use airpace_core::Time;

/// Length of a control packet's header, `id, length of the rest, version`.
const HEADER: usize = 12;
/// Stream id in control packets. Only this stream exists.
const STREAM: u8 = 1;

/// Buffering mode of a modem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffering {
    /// Sends packets immediately.
    Streaming,
    /// Keeps packets until the buffer is filled to `high` percent, then sends until the buffer is filled to only `low`
    /// percent.
    Threshold {
        /// Upper watermark in percent of the buffer.
        high: u8,
        /// Lower watermark in percent of the buffer.
        low: u8,
    },
    /// Keeps the newest packets; sends only when drained.
    Circular,
}

impl Buffering {
    /// The watermarks in common use.
    pub const THRESHOLD: Buffering = Buffering::Threshold { high: 85, low: 15 };

    /// The mode's number in control packets.
    pub fn mode(self) -> u8 {
        match self {
            Buffering::Streaming => 0,
            Buffering::Threshold { .. } => 1,
            Buffering::Circular => 2,
        }
    }

    /// The control packets that set this mode.
    pub fn controls(self) -> Vec<Control> {
        let mut controls = vec![Control::Mode(self.mode())];
        if let Buffering::Threshold { high, low } = self {
            controls.push(Control::Watermarks { high, low });
        }
        controls
    }
}

/// A control packet, from the application processor to the modem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// 3: whether packets are wanted in real time. If not, the modem keeps packets longer, for example while the phone
    /// sleeps.
    RealTime(bool),
    /// 17: sets the buffering mode: 0 streaming, 1 threshold, 2 circular.
    Mode(u8),
    /// 18: send the content of the buffer.
    Drain,
    /// 19: sets the watermarks in percent of the buffer.
    Watermarks {
        /// The modem starts to send at this level.
        high: u8,
        /// The modem stops at this level.
        low: u8,
    },
}

/// Addressee of a control packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressed {
    /// The peripheral itself (version 1).
    #[default]
    Peripheral,
    /// One of the peripheral's diag ids (version 2).
    DiagId(u8),
}

impl Control {
    /// Appends the packet's bytes.
    pub fn write(self, to: Addressed, out: &mut Vec<u8>) {
        let (id, rest): (u32, Vec<u8>) = match self {
            // Sleep vote, real time, and six fields that must not be used.
            Control::RealTime(real_time) => {
                let vote = u32::from(real_time);
                (3, [vote, vote, 0, 0, 0, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect())
            }
            Control::Mode(mode) => (17, vec![STREAM, mode]),
            Control::Drain => (18, vec![STREAM]),
            Control::Watermarks { high, low } => (19, vec![STREAM, high, low]),
        };
        let (version, diag_id): (u32, Option<u8>) = match to {
            Addressed::Peripheral => (1, None),
            Addressed::DiagId(diag_id) => (2, Some(diag_id)),
        };
        let length = 4 + rest.len() + usize::from(diag_id.is_some());
        out.extend(id.to_le_bytes());
        out.extend((length as u32).to_le_bytes());
        out.extend(version.to_le_bytes());
        out.extend(diag_id);
        out.extend(rest);
    }

    /// Reads a control packet; `None` if its kind is unknown or bytes are missing.
    pub fn read(bytes: &[u8]) -> Option<(Control, Addressed)> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if word(4) as usize != 4 + rest.len() {
            return None;
        }
        let (to, rest) = match word(8) {
            1 => (Addressed::Peripheral, rest),
            2 => (Addressed::DiagId(*rest.first()?), &rest[1..]),
            _ => return None,
        };
        let control = match (word(0), rest) {
            (3, [_, _, _, _, real_time, ..]) if rest.len() == 32 => Control::RealTime(*real_time != 0),
            (17, &[STREAM, mode @ 0..=2]) => Control::Mode(mode),
            (18, &[STREAM]) => Control::Drain,
            (19, &[STREAM, high, low]) if low <= high && high <= 100 => Control::Watermarks { high, low },
            _ => return None,
        };
        Some((control, to))
    }
}

/// Drain schedule: sets the modem's buffering mode, then drains the buffer periodically.
///
/// Source: BISCAY §3.2.3
#[derive(Clone, Debug)]
pub struct Drain {
    buffering: Option<Buffering>,
    every: Option<Duration>,
    next: Option<Time>,
}

impl Drain {
    /// Creates a schedule that sets `buffering` (`None`: leaves the mode unchanged) and drains with period `every`
    /// (`None`: never).
    pub fn new(buffering: Option<Buffering>, every: Option<Duration>) -> Drain {
        Drain { buffering, every, next: None }
    }

    /// The buffering mode to set, if any.
    pub fn buffering(&self) -> Option<Buffering> {
        self.buffering
    }

    /// Returns the next drain once it is due.
    pub fn poll(&mut self, now: Time) -> Option<Control> {
        let every = self.every?;
        let due = *self.next.get_or_insert(now);
        if now < due {
            return None;
        }
        // A late poll drains once. The schedule continues with the same period.
        let next = due + every;
        self.next = Some(if next > now { next } else { now + every });
        Some(Control::Drain)
    }

    /// Delays the schedule by half a period; see [`Evenness`].
    pub fn dodge(&mut self) {
        if let (Some(every), Some(next)) = (self.every, &mut self.next) {
            *next += every / 2;
        }
    }

    /// Time of the next [`poll`](Drain::poll); `None` if never.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.every.map(|_| self.next.unwrap_or(Time::ZERO))
    }
}

/// Detects drains that coincide with the writing of periodic packets.
///
/// Assume that the modem writes a packet every ten milliseconds, just when a drain arrives. Each packet is then sent
/// sometimes by this drain and sometimes by the next drain. The gaps between these packets are ten milliseconds plus or
/// minus one drain period. If the drains are shifted by half a period, all gaps are ten milliseconds. The host does not
/// know the offset of the modem's clock, but both clocks measure the same intervals between packets.
#[derive(Clone, Debug)]
pub struct Evenness {
    every: Duration,
    /// For each kind of packet: the modem's time stamp of the last packet, and its arrival time.
    last: Vec<Option<(Time, Time)>>,
    /// Number of gaps checked, and number of uneven gaps among them.
    gaps: u32,
    uneven: u32,
}

/// Number of gaps over which uneven gaps are counted (`GAPS_WATCHED`), and maximum number of uneven gaps among them
/// without a shift of the drains (`MAX_UNEVEN`).
///
/// Chosen: one delayed host thread makes two gaps uneven, one too long and one too short.
const GAPS_WATCHED: u32 = 20;
const MAX_UNEVEN: u32 = 2;

/// Maximum gap between two packets that is checked.
const MAX_GAP: Duration = Duration::from_secs(1);

impl Evenness {
    /// Creates a detector for drains with period `every`.
    pub fn new(every: Duration) -> Evenness {
        Evenness { every, last: vec![], gaps: 0, uneven: 0 }
    }

    /// Takes a packet of kind `which`: the time at which the modem wrote it, by the modem's clock, and the arrival time.
    /// Returns whether drains should [`dodge`](Drain::dodge).
    pub fn hear(&mut self, which: usize, written: Time, arrived: Time) -> bool {
        if self.last.len() <= which {
            self.last.resize(which + 1, None);
        }
        let Some((written_before, arrived_before)) = self.last[which].replace((written, arrived)) else {
            return false;
        };
        let every = self.every.as_nanos() as i64;
        let apart = |now: Time, before: Time| now.as_nanos().wrapping_sub(before.as_nanos()) as i64;
        let (written, arrived) = (apart(written, written_before), apart(arrived, arrived_before));
        // Ignore three cases: gaps shorter than 1.5 drain periods (a packet in every drain), gaps that are not a
        // multiple of the drain period (such gaps cannot be even), and gaps after a long silence.
        if !(3 * every / 2..=MAX_GAP.as_nanos() as i64).contains(&written) {
            return false;
        }
        let beside = (written + every / 2).rem_euclid(every.max(1)) - every / 2;
        if beside.abs() > every / 8 {
            return false;
        }
        self.gaps += 1;
        self.uneven += u32::from((arrived - written).abs() > every / 2);
        let dodges = self.uneven > MAX_UNEVEN;
        if dodges || self.gaps == GAPS_WATCHED {
            (self.gaps, self.uneven) = (0, 0);
        }
        if dodges {
            // The shift itself makes one more gap uneven. Do not count that gap.
            self.last.fill(None);
        }
        dodges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_has_the_thirteen_bytes_that_kernels_send() {
        let mut bytes = vec![];
        Control::Drain.write(Addressed::Peripheral, &mut bytes);
        assert_eq!(bytes, [0x12, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let controls = [
            Control::RealTime(true),
            Control::RealTime(false),
            Control::Mode(2),
            Control::Drain,
            Control::Watermarks { high: 85, low: 15 },
        ];
        for to in [Addressed::Peripheral, Addressed::DiagId(3)] {
            for control in controls {
                let mut bytes = vec![];
                control.write(to, &mut bytes);
                assert_eq!(Control::read(&bytes), Some((control, to)));
                assert_eq!(Control::read(&bytes[..bytes.len() - 1]), None, "cut");
                bytes.push(0);
                assert_eq!(Control::read(&bytes), None, "too long");
            }
        }
        let mut unknown = vec![];
        Control::Watermarks { high: 10, low: 20 }.write(Addressed::Peripheral, &mut unknown);
        assert_eq!(Control::read(&unknown), None, "low above high");
    }

    /// Simulates a modem that writes a packet every ten milliseconds, with drains every five, late by up to 0.3 ms.
    /// Returns the maximum and the minimum gap after the first second, and the number of shifts.
    fn gaps_with(phase_us: u64) -> (u64, u64, u32) {
        let every = Duration::from_millis(5);
        let (mut drain, mut evenness) = (Drain::new(None, Some(every)), Evenness::new(every));
        drain.poll(Time::ZERO);
        let (mut dodged, mut last, mut gaps, mut next) = (0, None::<Time>, vec![], 0u64);
        let mut late = 0;
        while next < 400 {
            let due = drain.poll_timeout().unwrap();
            late = (late * 7 + 113) % 300;
            let now = due + Duration::from_micros(late);
            assert_eq!(drain.poll(now), Some(Control::Drain));
            let written = Time::from_micros(20_000 + next * 10_000 + phase_us);
            if written <= now {
                next += 1;
                if next > 100 {
                    gaps.extend(last.map(|last| (now - last).as_micros() as u64));
                }
                last = Some(now);
                // The modem's clock is years ahead.
                if evenness.hear(1, written + Duration::from_secs(1_000_000_000), now) {
                    dodged += 1;
                    drain.dodge();
                }
            }
        }
        (*gaps.iter().max().unwrap(), *gaps.iter().min().unwrap(), dodged)
    }

    #[test]
    fn drains_keep_away_from_packets_of_their_own_rhythm() {
        for phase_us in (0..5_000).step_by(50) {
            let (longest, shortest, dodged) = gaps_with(phase_us);
            assert!(longest < 10_400 && shortest > 9_600, "{phase_us} µs: {shortest} to {longest} µs");
            let falls_together = (50..=200).contains(&phase_us);
            assert!(
                dodged >= u32::from(falls_together) && dodged <= u32::from(phase_us < 300),
                "{phase_us} µs"
            );
        }
    }

    #[test]
    fn packets_of_another_rhythm_and_threads_that_are_late_move_nothing() {
        let mut evenness = Evenness::new(Duration::from_millis(5));
        let mut hear = |written: u64, arrived: u64| {
            evenness.hear(0, Time::from_micros(written), Time::from_micros(arrived))
        };
        for at in 0..200 {
            assert!(!hear(at * 12_000, (at * 12 / 5 + 1) * 5_000), "every twelve milliseconds");
        }
        for at in 0..200 {
            let late = if at % 20 == 7 { 4_000 } else { 0 };
            assert!(!hear(10_000_000 + at * 10_000, 10_000_000 + at * 10_000 + late), "late now and then");
        }
        for at in 0..200 {
            assert!(!hear(at * 1_000, at / 5 * 5_000), "in every drain");
        }
    }

    #[test]
    fn a_late_drain_is_one_drain_and_the_period_stays() {
        let mut drain = Drain::new(None, Some(Duration::from_millis(10)));
        let mut drained = vec![];
        for millis in [0, 3, 9, 10, 12, 20, 55, 56, 60, 65] {
            if drain.poll(Time::from_millis(millis)).is_some() {
                drained.push(millis);
            }
        }
        assert_eq!(drained, [0, 10, 20, 55, 65]);
        assert_eq!(drain.poll_timeout(), Some(Time::from_millis(75)));
        drain.dodge();
        assert_eq!(drain.poll_timeout(), Some(Time::from_millis(80)), "and on from there");
        assert_eq!(Drain::new(None, None).poll_timeout(), None);
    }
}

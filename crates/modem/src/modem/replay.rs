//! Replay of a recorded log with its original timing.

use std::time::Duration;

use airpace_core::Time;
use airpace_diag::{LogCode, LogPacket, Radio, Stamp};

use super::{Next, Stamped, TimedPacket};

/// A packet of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Radio of the packet.
    pub radio: Radio,
    /// Log code, which identifies the content.
    pub code: LogCode,
    /// Time stamp of the modem's clock.
    pub stamp: Stamp,
    /// Content.
    pub payload: Vec<u8>,
}

impl From<&LogPacket<'_>> for Recorded {
    fn from(packet: &LogPacket<'_>) -> Recorded {
        let LogPacket { radio, code, stamp, payload } = *packet;
        Recorded { radio, code, stamp, payload: payload.to_vec() }
    }
}

/// Options of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Replay speed relative to the recording; must be positive.
    pub speed: f64,
    /// Maximum duration of a gap without packets, in the log's time. Longer gaps are shortened to this duration.
    pub longest_gap: Duration,
    /// Whether packets keep their recorded stamps. Otherwise, a packet carries its send time, minus its recorded distance
    /// from the newest packet before it.
    pub keeps_time: bool,
    /// Whether the log restarts at its end.
    pub is_looped: bool,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions {
            speed: 1.0,
            // Chosen: the longest silence that a viewer interprets as a pause and not as the end.
            longest_gap: Duration::from_secs(3),
            keeps_time: false,
            is_looped: false,
        }
    }
}

/// A position in a log at which the replay changes the timing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// A gap of this many seconds was shortened before this packet.
    Gap(usize, f64),
    /// The modem's clock jumped before this packet: it was set, lost its time, or went back.
    Clock(usize),
}

/// A log that is replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    packets: Vec<Recorded>,
    /// Send time of each packet in the first round, and the time in its stamp in this round, both in nanoseconds.
    times: Vec<(u64, u64)>,
    cuts: Vec<Cut>,
    options: ReplayOptions,
    /// Time from the start of one round to the start of the next, in nanoseconds.
    length: u64,
    next: usize,
    /// Number of complete rounds.
    rounds: u64,
}

impl Replay {
    /// Creates a replay of a log.
    pub fn new(packets: Vec<Recorded>, options: ReplayOptions) -> Replay {
        let longest = options.longest_gap.as_nanos() as i128;
        let (mut times, mut cuts) = (Vec::with_capacity(packets.len()), vec![]);
        let mut newest: Option<Stamp> = None;
        let mut at = 0u64;
        for (index, packet) in packets.iter().enumerate() {
            let before = newest.unwrap_or(packet.stamp);
            let gap = i128::from(packet.stamp.nanos()) - i128::from(before.nanos());
            let mut behind = 0;
            if packet.stamp.is_set() != before.is_set() || gap < -longest {
                cuts.push(Cut::Clock(index));
                newest = Some(packet.stamp);
            } else if gap < 0 {
                // Packets from different parts of a modem are recorded slightly out of order.
                behind = scaled(-gap, options.speed);
            } else {
                if gap > longest {
                    cuts.push(Cut::Gap(index, gap as f64 * 1e-9));
                }
                at += scaled(gap.min(longest), options.speed);
                newest = Some(packet.stamp);
            }
            times.push((at, at.saturating_sub(behind)));
        }
        let length = at + scaled(longest.min(1_000_000_000), options.speed);
        Replay { packets, times, cuts, options, length, next: 0, rounds: 0 }
    }

    /// Returns the duration of one round, up to its last packet.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.times.last().map_or(0, |(at, _)| *at))
    }

    /// Returns the positions at which the timing is changed.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Returns the next packet. A looped replay ends only if its log is empty.
    pub fn say(&mut self) -> Next {
        if self.next == self.packets.len() && self.options.is_looped {
            self.next = 0;
            self.rounds += 1;
        }
        let Some(packet) = self.packets.get(self.next) else { return Next::End };
        let (at, bears) = self.times[self.next];
        self.next += 1;
        let round = self.rounds * self.length;
        let stamped = match self.options.keeps_time {
            true => Stamped::Kept(packet.stamp),
            false => Stamped::At(Time::from_nanos(round + bears)),
        };
        let (radio, code, payload) = (packet.radio, packet.code, packet.payload.clone());
        Next::Packet(TimedPacket { at: Time::from_nanos(round + at), radio, code, stamped, payload })
    }
}

fn scaled(nanos: i128, speed: f64) -> u64 {
    (nanos as f64 / speed) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a replay of packets whose stamps are these milliseconds since 2026; for a negative number, the stamp
    /// counts from 1980.
    fn replay(millis: &[i64], options: ReplayOptions) -> Replay {
        let packets = millis.iter().map(|&millis| {
            let epoch = if millis < 0 { 0 } else { 1_450_000_000_000 };
            let stamp = Stamp::from_nanos((epoch + millis.unsigned_abs()) * 1_000_000);
            Recorded { radio: Radio::FIRST, code: LogCode(0xB173), stamp, payload: vec![] }
        });
        Replay::new(packets.collect(), options)
    }

    fn packet_times(replay: &mut Replay, count: usize) -> Vec<(u64, u64)> {
        let mut times = vec![];
        while times.len() < count
            && let Next::Packet(next) = replay.say()
        {
            let Stamped::At(bears) = next.stamped else { panic!("stamps are not kept") };
            times.push((next.at.as_millis(), bears.as_millis()));
        }
        times
    }

    #[test]
    fn a_log_has_its_own_pace_and_packets_out_of_order_keep_their_distance() {
        let mut whole = replay(&[0, 100, 90, 250], ReplayOptions::default());
        assert_eq!(packet_times(&mut whole, 9), [(0, 0), (100, 100), (100, 90), (250, 250)]);
        assert_eq!((whole.length(), whole.cuts()), (Duration::from_millis(250), &[][..]));
        let mut fast = replay(&[0, 100, 90, 250], ReplayOptions { speed: 2.0, ..ReplayOptions::default() });
        assert_eq!(packet_times(&mut fast, 9), [(0, 0), (50, 50), (50, 45), (125, 125)]);
    }

    #[test]
    fn gaps_are_shortened_and_jumps_of_the_clock_are_none() {
        let mut cut = replay(&[-10, -20, 5, 15, 100_015, 20, 30], ReplayOptions::default());
        assert_eq!(
            packet_times(&mut cut, 9).iter().map(|(at, _)| *at).collect::<Vec<_>>(),
            [0, 10, 10, 20, 3_020, 3_020, 3_030]
        );
        assert_eq!(cut.cuts(), [Cut::Clock(2), Cut::Gap(4, 100.0), Cut::Clock(5)]);
    }

    #[test]
    fn a_loop_goes_on_a_second_after_its_end() {
        let options = ReplayOptions { is_looped: true, ..ReplayOptions::default() };
        let mut looped = replay(&[0, 500], options);
        assert_eq!(packet_times(&mut looped, 4), [(0, 0), (500, 500), (1_500, 1_500), (2_000, 2_000)]);
        assert_eq!(replay(&[], options).say(), Next::End);
    }
}

//! PBE-CC's receiver, compiled for the host.
//!
//! Differs: on NR, the port keeps LTE's delay threshold of 27 ms; see `bpf/pbe_receiver.h`.

use airpace_cc::pbe::explained::{Explained, MAX_SUBFRAMES};
use airpace_cc::pbe::receiver::Measured;
use airpace_core::{Bytes, Rate, Time};

use super::NONE;
use super::pbe::{PbeFed, PbeTuning};

mod sys;

/// `struct pbe_arrival`: a received packet. [`NONE`] represents values missing in the sender's option.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PbeArrival {
    /// Arrival time in nanoseconds of the receiver's clock.
    pub now: u64,
    /// Send time in nanoseconds of the sender's clock.
    pub sent: u64,
    /// Resolution of the sender's clock in nanoseconds.
    pub tick: u64,
    /// The packet's size in bytes.
    pub bytes: u64,
    /// Number of packets received at once.
    pub packets: u64,
    /// The sender's RTprop in nanoseconds.
    pub rtprop: u64,
    /// The sender's pacing rate in bit/s.
    pub pacing: u64,
    /// Whether the sender is in its linear start.
    pub starting: u32,
    /// Whether the packet carried the sender's option.
    pub has_header: u32,
}

/// State of the cell at one time: `struct ap_pbe_told` of `intf.h`, and a record of the full subframes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The words of `struct ap_pbe_told`; the first word, the time of writing, is zero.
    pub told: [u64; 6],
    /// One bit for each of the last subframes: whether the subframe was full.
    pub full: [u64; MAX_SUBFRAMES as usize / 64],
}

/// Bits of `ap_pbe_told.flags`.
const IDLE: u64 = 1;
const ELSEWHERE: u64 = 2;
const EXPLAINS: u64 = 4;

impl Cell {
    /// Reads the state from the receiver's measurements. `heard`: arrival time of the last radio report, in nanoseconds
    /// of the receiver's clock; zero if there was no report.
    pub fn new(measured: &Measured, explained: &Explained, heard: u64) -> Cell {
        let (newest, full) = explained.full_subframes();
        let flags =
            [(measured.is_idle, IDLE), (measured.is_elsewhere, ELSEWHERE), (measured.explains, EXPLAINS)];
        let flags: u64 = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum();
        let [carriers, activations] = [measured.carriers, measured.activations].map(u64::from);
        let state = flags | carriers << 32 | activations << 40;
        let rates = [measured.capacity, measured.fair_share].map(Rate::as_bps);
        Cell { told: [0, heard, rates[0], rates[1], newest, state], full }
    }

    /// A cell of one carrier with a constant rate. No PRBs are idle, so the cell may be the cause of any queue.
    pub fn constant(rate: Rate, heard: u64) -> Cell {
        let told = [0, heard, rate.as_bps(), rate.as_bps(), 0, 1 << 32];
        Cell { told, full: [0; MAX_SUBFRAMES as usize / 64] }
    }

    /// A cell with a constant rate and idle PRBs, so the cell is the cause of no queue.
    pub fn idle(rate: Rate, heard: u64) -> Cell {
        let mut cell = Cell::constant(rate, heard);
        cell.told[5] |= IDLE | ELSEWHERE;
        cell
    }

    /// Returns all words of `struct ap_pbe_feed` with this state.
    fn feed(&self) -> sys::PbeFeed {
        let mut words = [0; 30];
        words[2..8].copy_from_slice(&self.told);
        words[14..].copy_from_slice(&self.full);
        words
    }
}

/// A flow of the C port of PBE-CC's receiver.
pub struct PbeReceiver {
    /// The memory of the flow's `struct pbe_receiver`.
    words: Box<[u64]>,
}

impl PbeReceiver {
    /// Creates the state of a new flow.
    pub fn new(tuning: &PbeTuning, mss: Bytes) -> PbeReceiver {
        PbeReceiver { words: sys::pbe_receiver(tuning, mss.0) }
    }

    /// Processes a received packet. `flows`: number of the device's receiving flows.
    pub fn on_packet(&mut self, arrival: &PbeArrival, cell: &Cell, flows: u64) {
        sys::packet(&mut self.words, arrival, &cell.feed(), flows);
    }

    /// Returns the feedback of an ACK that is sent at `now`.
    pub fn tell(&self, cell: &Cell, flows: u64, now: Time) -> PbeFed {
        sys::feedback(&self.words, &cell.feed(), flows, now.as_nanos())
    }
}

/// Writes the option on data as the sender's kernel does, and reads it as the receiver's kernel does: whether the sender is
/// in its start, RTprop in nanoseconds and the pacing rate in bit/s, or [`NONE`]. `has_us`: the time stamps are in
/// microseconds.
pub fn header(starting: bool, has_us: bool, rtprop: u64, pacing: u64) -> PbeArrival {
    let mut arrival = PbeArrival { rtprop: NONE, pacing: NONE, ..PbeArrival::default() };
    sys::header_read(&mut arrival, sys::header_write(starting, has_us, rtprop, pacing));
    arrival
}

#[cfg(test)]
mod tests {
    use airpace_cc::SchemeSpec;
    use airpace_cc::pbe::{SCHEME, Tuning};
    use airpace_cc::scheme::Options;
    use proptest::prelude::*;

    use super::*;

    fn tuning() -> PbeTuning {
        PbeTuning::new(&Tuning::read(&Options::defaults(&SCHEME)).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(starting: bool, has_us: bool, rtprop in 65_536u64..2_000_000_000, pacing in 512u64..1 << 34) {
            let read = header(starting, has_us, rtprop, pacing);
            prop_assert_eq!((read.starting, read.has_header), (starting.into(), 1));
            prop_assert_eq!(read.tick, if has_us { 1_000 } else { 1_000_000 });
            prop_assert!(read.rtprop <= rtprop && rtprop - read.rtprop < 1 << 15, "{read:?}");
            prop_assert!(read.pacing.abs_diff(pacing) * 1_000 <= pacing, "{read:?}");
            let unknown = header(starting, has_us, NONE, NONE);
            prop_assert_eq!((unknown.rtprop, unknown.pacing), (NONE, NONE));
        }

        #[test]
        fn full_subframes_are_counted_across_the_words(idle in prop::collection::vec(0u16..=20, 1..2_500), delay_ms in 0u64..4_000) {
            let mut explained = Explained::new(0.1);
            for (subframe, &idle) in idle.iter().enumerate() {
                explained.on_report(subframe as u64, f64::from(idle), 100);
            }
            // A scheme without a minimum time, and a bottleneck outside the cell: a single late packet is enough.
            let spec = SchemeSpec::parse("pbe:npkt_least_ms=0").unwrap();
            let eager = PbeTuning::new(&Tuning::read(spec.options()).unwrap()).unwrap();
            let mut twin = PbeReceiver::new(&eager, Bytes(1500));
            let now = 20_000_000_000;
            let measured = Measured { carriers: 1, is_elsewhere: true, explains: true, capacity: Rate::from_mbps(1.0), ..Measured::default() };
            let cell = Cell::new(&measured, &explained, now);
            let sent = now - 5_000_000_000;
            let packet = |now| PbeArrival { now, sent: sent + 1, tick: 1, bytes: 1_500, packets: 1, rtprop: NONE, pacing: NONE, ..PbeArrival::default() };
            twin.on_packet(&packet(now), &cell, 1);
            let delay = std::time::Duration::from_millis(delay_ms);
            twin.on_packet(&packet(now + delay_ms * 1_000_000), &Cell::new(&measured, &explained, now + delay_ms * 1_000_000), 1);
            let most = airpace_cc::pbe::delay::RADIO_DELAY;
            let is_late = delay > most && explained.leaves_more_than(most, delay);
            prop_assert_eq!(twin.tell(&cell, 1, Time::from_nanos(now)).internet, u32::from(is_late));
        }

        #[test]
        fn whatever_comes_is_told_within_bounds(
            packets in prop::collection::vec(any::<([u64; 7], [bool; 2], u32)>(), 1..60), told: [u64; 6], full: [u64; 16],
        ) {
            let mut twin = PbeReceiver::new(&tuning(), Bytes(1500));
            let cell = Cell { told, full };
            for ([now, sent, tick, bytes, rtprop, pacing, flows], [starting, has_header], count) in packets {
                let (starting, has_header) = (starting.into(), has_header.into());
                let packets = u64::from(count);
                twin.on_packet(&PbeArrival { now, sent, tick, bytes, packets, rtprop, pacing, starting, has_header }, &cell, flows);
                let fed = twin.tell(&cell, flows, Time::from_nanos(now));
                let most = crate::twin::MAX_RATE.as_bps();
                prop_assert!([fed.capacity, fed.fair_share].iter().all(|&rate| rate == NONE || rate <= most), "{fed:?}");
                prop_assert!([fed.internet, fed.clear, fed.fresh].iter().all(|&flag| flag <= 1), "{fed:?}");
                prop_assert!(fed.radio_delay == NONE || fed.radio_delay <= 27_000_000, "{fed:?}");
            }
        }
    }
}

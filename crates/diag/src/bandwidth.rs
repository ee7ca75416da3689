//! Bandwidth of the radio link, computed from the phone's grants by two methods.
//!
//! ```text
//! blocks    bw = Σ over carriers of  table[PRB, TBS index] · antennas    every TTI       BISCAY §3.2.2 Eq. 1
//! granted   bw = bytes that the MAC layer was granted / time             every 100 ms    BISCAY §3.2.2
//! ```
//!
//! The first method has a value for every TTI of every carrier, from the DCIs or from the results of the shared channel.
//! Block sizes that the modem logs equal those of the table (a test compares them with recorded logs), so logged sizes
//! are used if present. The second method uses the modem's own sum: for the uplink in 0xB067, otherwise block by block in
//! 0xB063 and 0xB064. Both methods count only new grants: a retransmitted block is no new bandwidth.
//!
//! Source: BISCAY §3.2.2; BISCAY §5.2 (comparison of the two methods)

mod summary;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use airpace_core::{Bits, Bytes, Direction, Rate};
use airpace_radio::CarrierId;

use crate::grant::{Grant, GrantReport, Grants, Rat, Source, Sum, Troubles};
use crate::packet::{LogPacket, Radio};
use crate::stamp::Stamp;

pub use summary::{Rates, Summary, Windows};

/// Default time for which a window waits for late packets.
///
/// Chosen: five seconds, the maximum delay at which a frame number is still unambiguous.
const HOLD: Duration = Duration::from_secs(5);

/// Minimum duration of a gap in the log for which windows are left out (ns).
///
/// Chosen: ten seconds. Shorter gaps count as time without traffic, because an idle modem logs little.
const SILENCE_NANOS: u64 = 10_000_000_000;

/// Time from which stamps are treated as corrupt (ns since 1980). No modem writes such a time, and a single such stamp
/// would advance all windows.
///
/// Chosen: 2^62 ns after 1980, the year 2126. Window numbers after this time do not overflow.
const LATEST_NANOS: u64 = 1 << 62;

/// Method by which bandwidth is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Sum of transport blocks per TTI.
    #[default]
    Blocks,
    /// Bytes granted to the MAC layer.
    Granted,
}

/// The bandwidth in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The radio whose modem reported the grants.
    pub radio: Radio,
    /// Direction of the data.
    pub direction: Direction,
    /// Number of the window, counted from the start of the log.
    pub window: u64,
    /// Duration of the window.
    pub span: Duration,
    /// Start of the window by the modem's clock.
    pub begin: Stamp,
    /// Bandwidth by transport blocks; `None` until a packet with transport blocks has arrived.
    pub blocks: Option<Rate>,
    /// Bandwidth by granted bytes; `None` until a packet with MAC grants has arrived.
    pub granted: Option<Rate>,
    /// Bandwidth by transport blocks of each carrier with grants in this window.
    pub carriers: Vec<OnCarrier>,
}

/// Bandwidth of one carrier in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnCarrier {
    /// Radio access technology of the carrier.
    pub rat: Rat,
    /// The carrier, numbered by the modem. Carriers of LTE and of NR have the same numbers.
    pub carrier: CarrierId,
    /// Bandwidth by transport blocks.
    pub blocks: Rate,
    /// Sum of granted PRB pairs over all TTIs.
    pub prbs: u64,
    /// Number of grants.
    pub grants: u32,
}

impl Point {
    /// Duration of a window in milliseconds.
    pub fn every_ms(&self) -> u64 {
        self.span.as_millis() as u64
    }

    /// The bandwidth by `method`.
    pub fn by(&self, method: Method) -> Option<Rate> {
        match method {
            Method::Blocks => self.blocks,
            Method::Granted => self.granted,
        }
    }
}

/// Computes the bandwidth series of a log or of a running modem.
#[derive(Debug)]
pub struct Bandwidth {
    every_nanos: u64,
    hold_nanos: u64,
    grants: Grants,
    /// Time of the first packet, from which windows are counted (ns).
    origin: Option<u64>,
    /// The latest stamp so far (ns); meaningless if `origin` is `None`.
    newest: u64,
    /// Number of the next window to return.
    next: u64,
    /// Start and end of gaps in the log.
    silences: VecDeque<(u64, u64)>,
    series: BTreeMap<(Radio, Direction), Series>,
    /// Number of grants that belong to no window: their time is before the first packet of the log, or in a window that
    /// was already returned.
    outside: u64,
    misstamped: u64,
    unstamped: u64,
}

#[derive(Debug, Default)]
struct Series {
    /// The best report of each TTI and carrier, until its window is returned. The technologies number their subframes
    /// independently.
    ttis: BTreeMap<Rat, BTreeMap<(u64, u8, CarrierId), Tti>>,
    windows: BTreeMap<u64, Window>,
    has_blocks: bool,
    has_mac: bool,
    has_sums: bool,
}

/// One TTI of one carrier, from the most detailed source.
#[derive(Clone, Copy, Debug)]
struct Tti {
    source: Source,
    window: u64,
    bits: Bits,
    prbs: u16,
}

#[derive(Debug, Default)]
struct Window {
    carriers: BTreeMap<(Rat, CarrierId), Tally>,
    /// Bytes of the MAC layer's blocks.
    mac: Bytes,
    /// Bytes of the modem's sums, as far as they fall into the window.
    sums: f64,
}

#[derive(Debug, Default)]
struct Tally {
    bits: Bits,
    prbs: u64,
    grants: u32,
}

impl Bandwidth {
    /// Creates a series with windows of `every_ms` milliseconds. With 1, each TTI has its own window.
    ///
    /// # Panics
    /// If `every_ms` is 0.
    pub fn new(every_ms: u32) -> Bandwidth {
        assert!(every_ms > 0, "a window is at least a millisecond");
        Bandwidth {
            every_nanos: u64::from(every_ms) * 1_000_000,
            hold_nanos: HOLD.as_nanos() as u64,
            grants: Grants::new(),
            origin: None,
            newest: 0,
            next: 0,
            silences: VecDeque::new(),
            series: BTreeMap::new(),
            outside: 0,
            misstamped: 0,
            unstamped: 0,
        }
    }

    /// Sets the time for which windows wait for late packets. A longer time makes the windows more complete, and delays
    /// them more if the modem is running.
    pub fn holding(self, hold: Duration) -> Bandwidth {
        Bandwidth { hold_nanos: hold.as_nanos() as u64, ..self }
    }

    /// Time of the first packet.
    pub fn begin(&self) -> Option<Stamp> {
        self.origin.map(Stamp::from_nanos)
    }

    /// Counters of unreadable packets.
    pub fn troubles(&self) -> Troubles {
        self.grants.troubles()
    }

    /// Number of grants outside all windows: from before the first packet, or late, after their window was returned.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Number of packets with a stamp that no modem writes. Such packets are otherwise ignored.
    pub fn misstamped(&self) -> u64 {
        self.misstamped
    }

    /// Number of packets whose stamp is 0: the modem assigned no time. Such packets are otherwise ignored.
    pub fn unstamped(&self) -> u64 {
        self.unstamped
    }

    /// Parts of the log that are in no window, as number, noun, and reason. Only reasons that occurred are returned.
    pub fn uncounted(&self) -> Vec<(u64, &'static str, &'static str)> {
        let troubles = self.troubles();
        let all = [
            (troubles.versions, "packet", "with grants in a version without a known layout"),
            (troubles.misfits, "packet", "with grants outside the layout of its version"),
            (troubles.dcis, "DCI", "that cannot be read"),
            (troubles.carriers, "grant", "of a carrier that no phone has"),
            (
                self.outside,
                "grant",
                "of before the first packet, seconds late, or summing up more than a minute",
            ),
            (self.unstamped, "packet", "without a time (stamp 0)"),
            (self.misstamped, "packet", "with a time that no modem has"),
        ];
        all.into_iter().filter(|(count, ..)| *count > 0).collect()
    }

    /// Number of windows that [`Bandwidth::take`] would return now, including those in gaps. A reader of a long log can
    /// take these windows before there are too many.
    pub fn due(&self) -> u64 {
        self.until().saturating_sub(self.next)
    }

    /// Processes a packet. Also calls `each` for its grants, in the order of the packet.
    pub fn push(&mut self, packet: &LogPacket<'_>, mut each: impl FnMut(&GrantReport)) {
        if packet.stamp == Stamp::default() {
            self.unstamped += 1;
            return;
        }
        let now = packet.stamp.nanos();
        if now >= LATEST_NANOS {
            self.misstamped += 1;
            return;
        }
        let has_begun = self.origin.is_some();
        let origin = *self.origin.get_or_insert(now);
        // Different parts of a modem write the packets of the radios and codes: the stamps of successive packets are
        // not in order.
        if now > self.newest {
            if has_begun && now - self.newest > SILENCE_NANOS {
                self.silences.push_back((self.newest, now));
            }
            self.newest = now;
        }
        let Bandwidth { grants, series, every_nanos, next, outside, .. } = self;
        grants.push(packet, |report| {
            each(&report);
            let window = |time: Stamp| {
                let window = time.nanos().checked_sub(origin)? / *every_nanos;
                (window >= *next).then_some(window)
            };
            match report {
                GrantReport::Grant(grant) => {
                    let series = series.entry((grant.radio, grant.direction)).or_default();
                    match window(grant.time) {
                        Some(window) => series.grant(&grant, window),
                        None => *outside += 1,
                    }
                }
                GrantReport::Sum(sum) => {
                    let series = series.entry((sum.radio, sum.direction)).or_default();
                    series.sum(&sum, origin, *every_nanos, *next);
                }
            }
        });
    }

    /// Returns the windows to which no more grants can be added.
    pub fn take(&mut self) -> Vec<Point> {
        self.points(self.until())
    }

    /// The first window to which grants can still be added.
    fn until(&self) -> u64 {
        let origin = self.origin.unwrap_or(0);
        self.newest.saturating_sub(self.hold_nanos).saturating_sub(origin) / self.every_nanos
    }

    /// Returns all windows up to the window of the last packet.
    pub fn finish(&mut self) -> Vec<Point> {
        let Some(origin) = self.origin else { return vec![] };
        let until = (self.newest - origin) / self.every_nanos + 1;
        self.points(until)
    }

    fn points(&mut self, until: u64) -> Vec<Point> {
        let origin = self.origin.unwrap_or(0);
        let mut points = vec![];
        while self.next < until {
            let window = self.next;
            let begin = origin + window * self.every_nanos;
            let end = begin + self.every_nanos;
            // Gaps and windows are both in chronological order.
            while self.silences.front().is_some_and(|(_, to)| *to <= begin) {
                self.silences.pop_front();
            }
            if let Some(&(_, to)) = self.silences.front().filter(|(from, to)| *from < begin && end <= *to) {
                // Continues with the window that contains the first packet after the gap.
                self.next = ((to - origin) / self.every_nanos).max(window + 1);
                for series in self.series.values_mut() {
                    series.windows = series.windows.split_off(&self.next);
                }
                continue;
            }
            self.next += 1;
            for (&(radio, direction), series) in &mut self.series {
                series.count(self.next);
                let had = series.windows.remove(&window).unwrap_or_default();
                // Rounded to the nearest bit.
                let rate = |bytes: f64| Rate::from_bps((bytes * 8e9 / self.every_nanos as f64 + 0.5) as u64);
                let mac = if series.has_sums { had.sums } else { had.mac.0 as f64 };
                let bits: u64 = had.carriers.values().map(|tally| tally.bits.0).sum();
                let carriers = had.carriers.iter().map(|(&(rat, carrier), tally)| OnCarrier {
                    rat,
                    carrier,
                    blocks: rate(tally.bits.0 as f64 / 8.0),
                    prbs: tally.prbs,
                    grants: tally.grants,
                });
                points.push(Point {
                    radio,
                    direction,
                    window,
                    span: Duration::from_nanos(self.every_nanos),
                    begin: Stamp::from_nanos(begin),
                    blocks: series.has_blocks.then(|| rate(bits as f64 / 8.0)),
                    granted: (series.has_sums || series.has_mac).then(|| rate(mac)),
                    carriers: carriers.collect(),
                });
            }
        }
        points
    }
}

impl Series {
    fn grant(&mut self, grant: &Grant, window: u64) {
        if grant.source == Source::Mac {
            self.has_mac = true;
            self.windows.entry(window).or_default().mac += grant.bits().bytes();
            return;
        }
        self.has_blocks = true;
        let tti = Tti { source: grant.source, window, bits: grant.new_bits(), prbs: grant.prbs };
        let ttis = self.ttis.entry(grant.rat).or_default();
        let slot = ttis.entry((grant.subframe, grant.slot, grant.carrier)).or_insert(tti);
        if slot.source < grant.source {
            *slot = Tti { window: slot.window, ..tti };
        }
    }

    /// Distributes the bytes of a sum over the windows of its span. The part before window `next` is dropped.
    fn sum(&mut self, sum: &Sum, origin: u64, every_nanos: u64, next: u64) {
        self.has_sums = true;
        let span = u64::from(sum.span_ms) * 1_000_000;
        let end = sum.stamp.nanos();
        let begin = end.saturating_sub(span).max(origin + next * every_nanos);
        let mut at = begin;
        while at < end {
            let window = (at - origin) / every_nanos;
            let until = (origin + (window + 1) * every_nanos).min(end);
            let part = sum.bytes.0 as f64 * (until - at) as f64 / span as f64;
            self.windows.entry(window).or_default().sums += part;
            at = until;
        }
    }

    /// Adds the TTIs of all windows before `before` to their windows.
    fn count(&mut self, before: u64) {
        for (&rat, ttis) in &mut self.ttis {
            while let Some(entry) = ttis.first_entry() {
                if entry.get().window >= before {
                    break;
                }
                let ((_, _, carrier), tti) = entry.remove_entry();
                // At the end of a window, a TTI can be slightly older than the previous TTI.
                let window = self.windows.entry(tti.window.max(before - 1)).or_default();
                let tally = window.carriers.entry((rat, carrier)).or_default();
                tally.bits += tti.bits;
                tally.prbs += u64::from(tti.prbs);
                tally.grants += 1;
            }
        }
    }
}

/// The longest run of windows without a gap, as the values of a KPI trace: the millisecond at which the run starts, and
/// the rates. Empty if no window has a value by this method.
pub fn kpi_trace(
    points: &[Point],
    radio: Radio,
    direction: Direction,
    method: Method,
    every_ms: u32,
) -> Vec<(u64, Rate)> {
    let mut series = points.iter().filter(|point| point.radio == radio && point.direction == direction);
    let mut best: Vec<Rate> = vec![];
    let mut stretch: Vec<Rate> = vec![];
    let mut next = None;
    loop {
        let point = series.next();
        let value = point.and_then(|point| Some((point.window, point.by(method)?)));
        let goes_on = value.is_some_and(|(window, _)| next.is_none_or(|next| next == window));
        if !goes_on && stretch.len() > best.len() {
            best = std::mem::take(&mut stretch);
        } else if !goes_on {
            stretch.clear();
        }
        next = value.map(|(window, rate)| {
            stretch.push(rate);
            window + 1
        });
        if point.is_none() {
            break;
        }
    }
    best.into_iter().zip(0u64..).map(|(rate, at)| (at * u64::from(every_ms), rate)).collect()
}

//! What the daemon counts, and the page on which Prometheus reads it.
//!
//! The data thread counts in words of its own that others only read: counting never waits.
//!
//! Source: Prometheus 2014, text-based exposition format, version 0.0.4

mod page;
mod server;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use od::clock::now_ns;

pub use page::page;
pub use server::MetricsServer;

/// Carriers of a KPI whose values are told apart.
///
/// Chosen: the most that a phone aggregates; values of further ones are on the board all the same.
pub const CARRIERS: usize = 16;

/// Upper bounds of the latency histogram's buckets, in nanoseconds.
pub const LATENCY_BOUNDS_NS: [u64; 14] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    100_000_000,
];

/// Something that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it; one thread does.
    #[inline]
    pub fn add(&self, more: u64) {
        // Not a read-modify-write: nobody else writes.
        self.0.store(self.0.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Sets it to what it has grown to; one thread does.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// How much it is.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the daemon counts.
#[derive(Debug)]
pub struct Metrics {
    /// Bytes that came from the port.
    pub bytes: Count,
    /// Reads of the port that gave bytes.
    pub reads: Count,
    /// Log packets.
    pub packets: Count,
    /// Samples of KPIs that were published.
    pub samples: Count,
    /// Stretches of bytes that were no message: most of them with a wrong checksum.
    pub bad_frames: Count,
    /// Gaps: times that the port was lost.
    pub gaps: Count,
    /// Sessions that came to streaming.
    pub sessions: Count,
    /// Times that the modem was asked to send what its buffer holds.
    pub drains: Count,
    /// Drains that the port did not take.
    pub failed_drains: Count,
    /// Packets of which nothing could be read, by what they are; and how many.
    pub troubles: Mutex<Vec<(String, u64)>>,
    /// 1 while the modem streams what is subscribed to.
    pub streaming: AtomicU32,
    /// Programs that are connected.
    pub clients: AtomicU32,
    /// KPIs with a name, by slot.
    pub kpis: Mutex<Vec<KpiLabel>>,
    latency: Histogram,
    latest: Vec<Latest>,
}

/// What a KPI's value is labelled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KpiLabel {
    /// Its name, without the radio.
    pub name: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// Which of the phone's radios, from 1.
    pub radio: u8,
    /// Subscriptions to it.
    pub leases: u32,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [Count; LATENCY_BOUNDS_NS.len() + 1],
    sum_ns: Count,
}

/// The last value of a KPI on a carrier. The two words are not read as one: between samples the age may be that of the
/// one before.
#[derive(Debug, Default)]
struct Latest {
    value: AtomicU64,
    arrival_ns: AtomicU64,
}

impl Metrics {
    /// Nothing counted yet, of at most `capacity` KPIs.
    pub fn new(capacity: u32) -> Metrics {
        Metrics {
            bytes: Count::default(),
            reads: Count::default(),
            packets: Count::default(),
            samples: Count::default(),
            bad_frames: Count::default(),
            gaps: Count::default(),
            sessions: Count::default(),
            drains: Count::default(),
            failed_drains: Count::default(),
            troubles: Mutex::default(),
            streaming: AtomicU32::new(0),
            clients: AtomicU32::new(0),
            kpis: Mutex::default(),
            latency: Histogram::default(),
            latest: std::iter::repeat_with(Latest::default).take(capacity as usize * CARRIERS).collect(),
        }
    }

    /// A sample was published.
    #[inline]
    pub fn on_sample(&self, slot: u32, carrier: u8, value: f64, arrival_ns: u64) {
        self.samples.add(1);
        let carrier = usize::from(carrier);
        if let Some(latest) =
            self.latest.get(slot as usize * CARRIERS + carrier).filter(|_| carrier < CARRIERS)
        {
            latest.value.store(value.to_bits(), Ordering::Relaxed);
            latest.arrival_ns.store(arrival_ns, Ordering::Relaxed);
        }
    }

    /// A slot is another KPI's from now on: values of the one before are not its.
    pub fn forget(&self, slot: u32) {
        let from = slot as usize * CARRIERS;
        for latest in self.latest.get(from..from + CARRIERS).unwrap_or_default() {
            latest.arrival_ns.store(0, Ordering::Relaxed);
        }
    }

    /// What a read of the port gave was published this long after it arrived.
    #[inline]
    pub fn on_latency(&self, nanos: u64) {
        let bucket = LATENCY_BOUNDS_NS.iter().position(|bound| nanos <= *bound);
        self.latency.buckets[bucket.unwrap_or(LATENCY_BOUNDS_NS.len())].add(1);
        self.latency.sum_ns.add(nanos);
    }

    /// The last values of the KPI of a slot: carrier, value, age in nanoseconds.
    fn latest(&self, slot: usize) -> impl Iterator<Item = (usize, f64, u64)> {
        let now = now_ns();
        let range = slot * CARRIERS..(slot + 1) * CARRIERS;
        let latest = self.latest.get(range).unwrap_or_default();
        latest.iter().enumerate().filter_map(move |(carrier, latest)| {
            let arrival_ns = latest.arrival_ns.load(Ordering::Relaxed);
            let value = f64::from_bits(latest.value.load(Ordering::Relaxed));
            (arrival_ns > 0).then(|| (carrier, value, now.saturating_sub(arrival_ns)))
        })
    }
}

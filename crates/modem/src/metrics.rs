//! The daemon's counters, and the page from which Prometheus reads them.
//!
//! Only the data thread writes the counters, and other threads read them: counting never blocks.
//!
//! Source: Prometheus 2014, text-based exposition format, version 0.0.4

mod page;
mod server;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use od::clock::now_ns;

pub use page::page;
pub use server::MetricsServer;

/// Maximum number of a KPI's carriers whose values the page shows separately.
///
/// Chosen: the maximum number of carriers that a phone aggregates. Values of further carriers are still on the board.
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

/// A counter that only increases.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the counter. Only one thread may call this method.
    #[inline]
    pub fn add(&self, more: u64) {
        // No read-modify-write is needed, because no other thread writes.
        self.0.store(self.0.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Sets the counter to a larger value. Only one thread may call this method.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the counter's value.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The daemon's counters.
#[derive(Debug)]
pub struct Metrics {
    /// Bytes received from the port.
    pub bytes: Count,
    /// Reads of the port that returned bytes.
    pub reads: Count,
    /// Log packets.
    pub packets: Count,
    /// Published samples of KPIs.
    pub samples: Count,
    /// Byte sequences that were not a valid message; most of them have a wrong checksum.
    pub bad_frames: Count,
    /// Gaps: number of times that the port was lost or a session failed.
    pub gaps: Count,
    /// Sessions that reached streaming.
    pub sessions: Count,
    /// Requests to the modem to send the content of its buffer.
    pub drains: Count,
    /// Drains that the port refused.
    pub failed_drains: Count,
    /// Kinds of packets that could not be parsed, with their counts.
    pub troubles: Mutex<Vec<(String, u64)>>,
    /// 1 while the modem streams the subscription.
    pub streaming: AtomicU32,
    /// Number of connected programs.
    pub clients: AtomicU32,
    /// Labels of the KPIs, by slot.
    pub kpis: Mutex<Vec<KpiLabel>>,
    latency: Histogram,
    latest: Vec<Latest>,
}

/// Labels of a KPI's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KpiLabel {
    /// Name of the KPI, without the radio.
    pub name: String,
    /// Unit of the KPI; empty if there is none.
    pub unit: String,
    /// Number of the phone's radio, from 1.
    pub radio: u8,
    /// Whether a value is the total of all carriers. For such a KPI, the page shows only the latest value, without a
    /// carrier.
    pub is_of_all: bool,
    /// Number of subscriptions.
    pub leases: u32,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [Count; LATENCY_BOUNDS_NS.len() + 1],
    sum_ns: Count,
}

/// The last value of a KPI on a carrier. The value and its age are not read atomically: during a write, the age may
/// belong to the previous value.
#[derive(Debug, Default)]
struct Latest {
    value: AtomicU64,
    arrival_ns: AtomicU64,
}

impl Metrics {
    /// Creates counters with value zero, for at most `capacity` KPIs.
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

    /// Counts a published sample.
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

    /// Clears the slot's values, because the slot now belongs to another KPI.
    pub fn forget(&self, slot: u32) {
        let from = slot as usize * CARRIERS;
        for latest in self.latest.get(from..from + CARRIERS).unwrap_or_default() {
            latest.arrival_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Counts the time from the arrival of a read's bytes to their publication.
    #[inline]
    pub fn on_latency(&self, nanos: u64) {
        let bucket = LATENCY_BOUNDS_NS.iter().position(|bound| nanos <= *bound);
        self.latency.buckets[bucket.unwrap_or(LATENCY_BOUNDS_NS.len())].add(1);
        self.latency.sum_ns.add(nanos);
    }

    /// Returns the latest values of the KPI in a slot, as (carrier, value, age in nanoseconds).
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

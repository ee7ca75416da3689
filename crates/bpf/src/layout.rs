//! The arrays that user space and the programs share, word by word as `bpf/intf.h` has them. A test compares.

use std::sync::atomic::AtomicU64;

/// `struct ap_feed`, and `struct ap_pbe_feed`, which only means other things by the last words.
#[repr(C)]
pub struct FeedWords {
    /// What is valid lies in `told[sequence % 2]`.
    pub sequence: AtomicU64,
    /// Nothing yet.
    pub reserved: AtomicU64,
    /// A time, and what was told then.
    pub told: [[AtomicU64; 4]; 2],
}

/// `struct ap_totals`.
#[repr(C)]
pub struct TotalsWords {
    /// The present interval.
    pub interval: AtomicU64,
    /// Flows that sent in an interval, by its number modulo 4.
    pub active: [AtomicU64; 4],
    /// See [`crate::kernel::Totals`], also for the others.
    pub flows: AtomicU64,
    pub acks: AtomicU64,
    pub sends: AtomicU64,
    pub fallbacks: AtomicU64,
    pub returns: AtomicU64,
    pub silences: AtomicU64,
    pub confirmed: AtomicU64,
}

/// `struct ap_shares`.
#[repr(C)]
pub struct SharesWords {
    /// The active applications.
    pub apps: HostWords,
    /// Bytes that all moved.
    pub all: [AtomicU64; 2],
}

/// `struct ap_host`.
#[repr(C)]
pub struct HostWords {
    /// Flows by the slot of their last packet.
    pub ring: [AtomicU64; 16],
    /// Active flows.
    pub flows: AtomicU64,
    /// Until when that says something.
    pub until: AtomicU64,
}

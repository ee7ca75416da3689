//! Counters of a loaded scheme's flows, and CPU cost of its programs.

/// Counters over all flows of a scheme since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows started.
    pub flows: u64,
    /// ACKs.
    pub acks: u64,
    /// Calls before a send.
    pub sends: u64,
    /// Transitions of a flow to FALLBACK.
    pub fallbacks: u64,
    /// Returns of a flow from FALLBACK.
    pub returns: u64,
    /// Transitions to FALLBACK because the feed was older than 100 ms, or unknown.
    pub silences: u64,
    /// Flows of PBE-CC whose peer confirmed that it reports its radio's measurements.
    pub confirmed: u64,
    /// ACKs on which PBE-CC's option replaced a SACK block.
    pub rooms: u64,
    /// Number of times that a PBE-CC receiver located the bottleneck outside its cell.
    pub elsewhere: u64,
}

/// CPU cost of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Its name.
    pub name: String,
    /// Number of instructions that the kernel's verifier processed.
    pub verified: u64,
    /// Number of calls while `kernel.bpf_stats_enabled` was 1.
    pub calls: u64,
    /// Time in these calls, in nanoseconds.
    pub nanos: u64,
}

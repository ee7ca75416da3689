//! Counters of a loaded scheme's flows, and CPU cost of its programs.

/// Counters over all flows of a scheme since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of flows started.
    pub flows: u64,
    /// Number of ACKs processed.
    pub acks: u64,
    /// Number of calls before a send.
    pub sends: u64,
    /// Number of transitions of a flow to FALLBACK.
    pub fallbacks: u64,
    /// Number of returns of a flow from FALLBACK.
    pub returns: u64,
    /// Number of transitions to FALLBACK because the bandwidth in the feed was older than 100 ms or unknown.
    pub silences: u64,
    /// Number of PBE-CC flows whose peer confirmed that it reports the measurements of its radio.
    pub confirmed: u64,
    /// Number of ACKs on which PBE-CC's option replaced a SACK block.
    pub rooms: u64,
    /// Number of times that a PBE-CC receiver located the bottleneck outside its cell.
    pub elsewhere: u64,
}

/// CPU cost of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Name of the program.
    pub name: String,
    /// Number of instructions that the kernel's verifier processed.
    pub verified: u64,
    /// Number of calls while `kernel.bpf_stats_enabled` was 1.
    pub calls: u64,
    /// Time in these calls, in nanoseconds.
    pub nanos: u64,
}

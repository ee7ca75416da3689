//! What the flows of a loaded scheme counted, and what its programs cost.

/// What all flows of a scheme counted since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows that began.
    pub flows: u64,
    /// ACKs.
    pub acks: u64,
    /// Times that the kernel was about to send.
    pub sends: u64,
    /// Times that a flow went to FALLBACK.
    pub fallbacks: u64,
    /// Times that a flow returned from FALLBACK.
    pub returns: u64,
    /// Times that a flow went to FALLBACK because the feed was older than 100 ms, or unknown.
    pub silences: u64,
    /// Flows of PBE-CC whose peer confirmed that it tells what its radio measures.
    pub confirmed: u64,
    /// ACKs on which PBE-CC's option took the place of a SACK block.
    pub rooms: u64,
    /// Times that a receiver of PBE-CC found the bottleneck elsewhere than in its cell.
    pub elsewhere: u64,
}

/// What a program costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Its name.
    pub name: String,
    /// Instructions that the kernel's verifier went through.
    pub verified: u64,
    /// Calls, and nanoseconds in them, while `kernel.bpf_stats_enabled` was 1.
    pub calls: u64,
    /// See above.
    pub nanos: u64,
}

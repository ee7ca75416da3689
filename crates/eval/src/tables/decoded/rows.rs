//! The rows, which callers fill in. Every field is a column of the same name; `None` becomes null.

use crate::tables::columns::row;

row! {
    /// A message of the control channel.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Message in MessageRows {
        /// The number of the recording in which it was received, from 0.
        carrier: u8,
        /// Physical identity of the cell.
        cell: u16,
        /// When its subframe began, in milliseconds from the recording's first sample.
        time_ms: f64,
        /// Number of the subframe: 10 · SFN + subframe, without the wrap of frame numbers.
        index: u64,
        /// System frame number, 0…1023.
        sfn: u16,
        /// Subframe within the frame, 0…9.
        subframe: u8,
        /// Control format indicator of the subframe, 1…4.
        cfi: u8,
        /// The RNTI that it is addressed to, or the pseudonym of that RNTI.
        rnti: u16,
        /// The kind of this RNTI: C, SI, P, RA, M or TPC.
        rnti_type: &'static str,
        /// `DL`, `UL`, or `-` where nothing is granted.
        dir: &'static str,
        /// Its DCI format.
        format: &'static str,
        /// Whether the format is certain.
        format_known: bool,
        /// How many CCEs it takes.
        l: u8,
        /// The first of these CCEs. It is left out where RNTIs must not be guessable.
        ncce: Option<u16>,
        /// The payload without CRC, a `0` or `1` for each bit.
        bits: String,
        /// Its type of resource allocation.
        alloc: Option<&'static str>,
        /// First and last PRB of each range in the first slot, one after the other; none where none are granted.
        prb_slot0: Option<Vec<u16>>,
        /// The same for the second slot.
        prb_slot1: Option<Vec<u16>>,
        /// How many PRB pairs are granted.
        n_prb: Option<u16>,
        /// MCS index of each transport block that is sent. The following lists have the same number of entries.
        mcs: Vec<u8>,
        /// Redundancy versions.
        rv: Vec<Option<u8>>,
        /// New-data indicators, 0 or 1.
        ndi: Vec<Option<u8>>,
        /// Modulations.
        modulation: Vec<Option<&'static str>>,
        /// Sizes in bits.
        tbs: Vec<Option<i64>>,
        /// The table from which sizes are read: `64qam` or `256qam`.
        mcs_table: Option<&'static str>,
        /// Whether that is certain.
        mcs_table_known: Option<bool>,
        /// HARQ process.
        harq: Option<u8>,
        /// Power command.
        tpc: Option<u8>,
        /// Signal to noise ratio of the subframe, in dB.
        snr_db: f32,
        /// The probability that these bits were sent to this RNTI on these CCEs, 0 to 1.
        confidence: f32,
    }
}

/// What the user who is followed gets by a grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Bits of blocks that are sent for the first time.
    pub new_bits: u64,
    /// For each block that is sent, whether it is a retransmission.
    pub retransmission: Vec<bool>,
    /// Number of blocks that are retransmissions.
    pub again: u8,
    /// Number of these whose size is not known.
    pub unknown: u8,
    /// New bits per second up to this message, in its direction.
    pub throughput_bps: u64,
}

row! {
    /// A [`Gain`], or nothing.
    pub struct GainRow in GainRows {
        /// [`Gain::new_bits`].
        own_new_bits: Option<u64>,
        /// [`Gain::retransmission`].
        own_retransmission: Option<Vec<bool>>,
        /// [`Gain::again`].
        own_again: Option<u8>,
        /// [`Gain::unknown`].
        own_unknown: Option<u8>,
        /// [`Gain::throughput_bps`].
        own_throughput_bps: Option<u64>,
    }
}

impl GainRows {
    /// Adds a grant's gain. Adds nulls for a message that is no grant.
    pub(super) fn push_gain(&mut self, gain: Option<&Gain>) {
        self.push(GainRow {
            own_new_bits: gain.map(|gain| gain.new_bits),
            own_retransmission: gain.map(|gain| gain.retransmission.clone()),
            own_again: gain.map(|gain| gain.again),
            own_unknown: gain.map(|gain| gain.unknown),
            own_throughput_bps: gain.map(|gain| gain.throughput_bps),
        });
    }
}

row! {
    /// An answer of the cell to an uplink block whose grant was received.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Answer in AnswerRows {
        /// The number of the recording in which it was received, from 0.
        carrier: u8,
        /// Physical identity of the cell.
        cell: u16,
        /// When its subframe began, in milliseconds from the recording's first sample.
        time_ms: f64,
        /// Number of the subframe: 10 · SFN + subframe, without the wrap of frame numbers.
        index: u64,
        /// System frame number, 0…1023.
        sfn: u16,
        /// Subframe within the frame, 0…9.
        subframe: u8,
        /// The RNTI that it is addressed to, or the pseudonym of that RNTI.
        rnti: u16,
        /// `ACK` or `NACK`.
        phich: &'static str,
        /// `index` of the grant.
        granted: u64,
        /// How many times the block had been sent by then, from 1.
        attempt: u8,
        /// Signal to noise ratio of the subframe, in dB.
        snr_db: f32,
        /// The probability that the answer is right, 0 to 1.
        confidence: f32,
    }
}

row! {
    /// A subframe that has all its messages.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Subframe in SubframeRows {
        /// The number of the recording in which it was received, from 0.
        carrier: u8,
        /// Physical identity of the cell.
        cell: u16,
        /// When it began, in milliseconds from the recording's first sample.
        time_ms: f64,
        /// Its number: 10 · SFN + subframe, without the wrap of frame numbers.
        index: u64,
        /// System frame number, 0…1023.
        sfn: u16,
        /// Its number within the frame, 0…9.
        subframe: u8,
        /// Control format indicator, 1…4.
        cfi: u8,
        /// Number of CCEs of its control region.
        cces: u16,
        /// Number of CCEs that its messages take.
        cces_used: u16,
        /// Number of CCEs in which there may be messages that could not be read.
        cces_unread: u16,
        /// Number of messages.
        messages: u16,
        /// Number of messages that grant something in the downlink.
        downlink: u16,
        /// Number of messages that grant something in the uplink.
        uplink: u16,
        /// The format of every message.
        formats: Vec<&'static str>,
        /// Number of downlink PRB pairs of the cell.
        prbs: u16,
        /// Number of PRB pairs that its messages grant.
        prbs_used: u16,
        /// Number of PRB pairs that no user got; `None` where some messages may be unread.
        prbs_idle: Option<u16>,
        /// Number of users that are granted something.
        users: u16,
        /// Signal to noise ratio, in dB.
        snr_db: f32,
    }
}

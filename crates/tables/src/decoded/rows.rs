//! Rows of the decoded tables, which callers fill in. Every field is a column of the same name; `None` becomes null.

use crate::columns::row;

row! {
    /// A message of the control channel (DCI).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Message in MessageRows {
        /// Number of the recording in which the message was received, from 0.
        carrier: u8,
        /// Physical cell identity.
        cell: u16,
        /// Start of the subframe, in milliseconds after the recording's first sample.
        time_ms: f64,
        /// Absolute subframe number: 10 · SFN + subframe, without the wrap of the SFN.
        index: u64,
        /// System frame number, 0…1023.
        sfn: u16,
        /// Subframe within the frame, 0…9.
        subframe: u8,
        /// Control format indicator of the subframe, 1…4.
        cfi: u8,
        /// RNTI to which the message is addressed, or the pseudonym of this RNTI.
        rnti: u16,
        /// Type of the RNTI: C, SI, P, RA, M or TPC.
        rnti_type: &'static str,
        /// `DL` or `UL`, or `-` for a message without a grant.
        dir: &'static str,
        /// DCI format.
        format: &'static str,
        /// Whether the format is certain.
        format_known: bool,
        /// Aggregation level: number of CCEs of the message.
        l: u8,
        /// Index of the first CCE. Null if RNTIs are replaced by pseudonyms, because the CCE could disclose the RNTI.
        ncce: Option<u16>,
        /// Payload without CRC, as a `0` or `1` for each bit.
        bits: String,
        /// Resource allocation type.
        alloc: Option<&'static str>,
        /// First and last PRB of each range in the first slot, one pair after the other; null if no PRBs are granted.
        prb_slot0: Option<Vec<u16>>,
        /// First and last PRB of each range in the second slot, in the same format.
        prb_slot1: Option<Vec<u16>>,
        /// Number of granted PRB pairs.
        n_prb: Option<u16>,
        /// MCS index of each transmitted transport block. The following lists have the same length.
        mcs: Vec<u8>,
        /// Redundancy version of each block.
        rv: Vec<Option<u8>>,
        /// New-data indicator of each block, 0 or 1.
        ndi: Vec<Option<u8>>,
        /// Modulation of each block.
        modulation: Vec<Option<&'static str>>,
        /// Transport block sizes, in bits.
        tbs: Vec<Option<i64>>,
        /// MCS table from which the sizes are read: `64qam` or `256qam`.
        mcs_table: Option<&'static str>,
        /// Whether the MCS table is certain.
        mcs_table_known: Option<bool>,
        /// HARQ process number.
        harq: Option<u8>,
        /// TPC command.
        tpc: Option<u8>,
        /// SNR of the subframe, in dB.
        snr_db: f32,
        /// Probability that this payload was transmitted to this RNTI on these CCEs, 0 to 1.
        confidence: f32,
    }
}

/// Data that the tracked user obtains by a grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Bits of transport blocks that are transmitted for the first time.
    pub new_bits: u64,
    /// For each transmitted block, whether it is a retransmission.
    pub retransmission: Vec<bool>,
    /// Number of retransmitted blocks.
    pub again: u8,
    /// Number of retransmitted blocks of unknown size.
    pub unknown: u8,
    /// Throughput of new bits up to this message in the direction of the message, in bit/s.
    pub throughput_bps: u64,
}

row! {
    /// Columns of a [`Gain`]; all null without a gain.
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
    /// Adds the gain of a grant, or nulls for a message that is not a grant.
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
    /// PHICH answer of the cell to an uplink transport block whose grant was received.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Answer in AnswerRows {
        /// Number of the recording in which the answer was received, from 0.
        carrier: u8,
        /// Physical cell identity.
        cell: u16,
        /// Start of the subframe, in milliseconds after the recording's first sample.
        time_ms: f64,
        /// Absolute subframe number: 10 · SFN + subframe, without the wrap of the SFN.
        index: u64,
        /// System frame number, 0…1023.
        sfn: u16,
        /// Subframe within the frame, 0…9.
        subframe: u8,
        /// RNTI to which the answer is addressed, or the pseudonym of this RNTI.
        rnti: u16,
        /// `ACK` or `NACK`.
        phich: &'static str,
        /// `index` of the grant's subframe.
        granted: u64,
        /// Number of transmissions of the block until the answer, from 1.
        attempt: u8,
        /// SNR of the subframe, in dB.
        snr_db: f32,
        /// Probability that the decoded answer is correct, 0 to 1.
        confidence: f32,
    }
}

row! {
    /// A completely decoded subframe, with counts of its messages.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Subframe in SubframeRows {
        /// Number of the recording in which the subframe was received, from 0.
        carrier: u8,
        /// Physical cell identity.
        cell: u16,
        /// Start of the subframe, in milliseconds after the recording's first sample.
        time_ms: f64,
        /// Absolute subframe number: 10 · SFN + subframe, without the wrap of the SFN.
        index: u64,
        /// System frame number, 0…1023.
        sfn: u16,
        /// Subframe within the frame, 0…9.
        subframe: u8,
        /// Control format indicator, 1…4.
        cfi: u8,
        /// Number of CCEs of the control region.
        cces: u16,
        /// Number of CCEs that the decoded messages occupy.
        cces_used: u16,
        /// Number of CCEs that may contain messages that could not be decoded.
        cces_unread: u16,
        /// Number of decoded messages.
        messages: u16,
        /// Number of messages with a downlink grant.
        downlink: u16,
        /// Number of messages with an uplink grant.
        uplink: u16,
        /// DCI format of every message.
        formats: Vec<&'static str>,
        /// Downlink bandwidth of the cell, in PRB pairs.
        prbs: u16,
        /// Number of PRB pairs that the decoded messages grant in the downlink.
        prbs_used: u16,
        /// Number of PRB pairs that no user was granted; null if messages may be undecoded.
        prbs_idle: Option<u16>,
        /// Number of users with a grant.
        users: u16,
        /// SNR, in dB.
        snr_db: f32,
    }
}

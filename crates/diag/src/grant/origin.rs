//! Fields of Qualcomm's log packets that contain grants.

use airpace_core::Direction;

use super::{Rat, Source};

/// Meaning of a log packet's field for a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// System frame number.
    Frame,
    /// Subframe, or slot if there is a numerology.
    Subframe,
    /// Frame and subframe in one field: `10 · SFN + subframe`.
    Both,
    /// Offset in subframes, added to frame and subframe.
    Offset,
    /// Numerology: a subframe has 2 to the power of this value slots.
    Numerology,
    /// The carrier.
    Carrier,
    /// Physical cell id of the serving cell.
    Cell,
    /// Number of PRB pairs.
    Prbs,
    /// The first PRB pair.
    FirstPrb,
    /// Bitmap of PRBs, the first 64.
    PrbsLow,
    /// Bitmap of PRBs, the next 64.
    PrbsHigh,
    /// Spatial layers.
    Layers,
    /// HARQ process.
    Harq,
    /// Redundancy version.
    Rv,
    /// New-data indicator.
    Ndi,
    /// Whether the CRC passed.
    Crc,
    /// Kind of RNTI.
    Rnti,
    /// Index of the block, 0 or 1.
    Index,
    /// MCS index.
    Mcs,
    /// Bits per symbol.
    ModulationBits,
    /// Modulation: 0 BPSK, 1 QPSK, and so on.
    ModulationUplink,
    /// Modulation of the first block: 0 QPSK, 1 16QAM, and so on.
    ModulationRank,
    /// Modulation of the second block: 0 QPSK, 1 16QAM, and so on.
    ModulationRankSecond,
    /// Size of a block in bytes.
    Bytes,
    /// Size of a block in bits.
    Bits,
    /// Size of the second block in bits.
    BitsSecond,
    /// Number of earlier transmissions of the block.
    Again,
    /// Nonzero for a retransmission.
    IsAgain,
    /// A DCI's bits.
    Payload,
    /// Number of a DCI's bits, including the checksum.
    Length,
    /// Format of the DCI, in encoded form.
    Format,
    /// The modem's decision about the DCI.
    Verdict,
    /// The carrier's bandwidth, in encoded form.
    Width,
    /// The carrier's bandwidth in PRB pairs.
    CarrierPrbs,
    /// Whether DCIs contain a carrier indicator.
    NamesCarrier,
    /// Whether the CSI request has two bits.
    TwoCsiBits,
    /// Whether a DCI has an SRS request.
    AsksSounding,
    /// FDD or TDD.
    Duplex,
    /// Number of antenna ports, in encoded form.
    Ports,
    /// Whether 256QAM is in use.
    Has256Qam,
    /// Time span of a sum in milliseconds.
    Span,
}

/// Conversion of a packet's rows to grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each row is a transport block; two blocks in one subframe can be one grant.
    Block,
    /// Each row is a subframe with up to two blocks.
    Demapped,
    /// Each row is a DCI.
    Dci,
    /// Each row is a sum of bytes.
    Sum,
    /// Each row is the serving cell with its bandwidth.
    Cell,
}

/// A log packet that reports grants.
#[derive(Debug)]
pub struct Origin {
    /// Log code of the packet.
    pub code: u16,
    /// Radio access technology.
    pub rat: Rat,
    /// Layer of the stack.
    pub source: Source,
    /// Direction of the data, if the rows do not contain it.
    pub direction: Direction,
    /// Form of the packet's rows, which determines how a row becomes a grant.
    pub shape: Shape,
    /// Paths of the packet's fields. A column has several paths if the position of the field differs between versions.
    pub columns: &'static [(Column, &'static str)],
}

use Column::*;
use Direction::{Downlink, Uplink};

/// Kinds of RNTI whose blocks are the phone's own.
///
/// Source: mobileinsight-core @4330fa9 (0 C-RNTI, 1 SPS-RNTI, 4 Temporary C-RNTI)
pub const OWN: &[u64] = &[0, 1, 4];

/// The codes of the log packets from which a phone's own bandwidth is determined: those with blocks or sums.
pub fn codes(rat: Rat, direction: Direction) -> impl Iterator<Item = u16> {
    let of_phone = |origin: &&Origin| matches!(origin.shape, Shape::Block | Shape::Sum);
    let its = ORIGINS.iter().filter(of_phone);
    its.filter(move |origin| origin.rat == rat && origin.direction == direction).map(|origin| origin.code)
}

/// All origins.
///
/// Chosen: 0xB885 is not in the list. It contains no PRBs and no block sizes of the downlink. For the uplink, the
/// meaning of its allocation field depends on a bandwidth part that the packet does not identify. 0xB887 is not in the
/// list either, because the meaning of the bytes with PRBs and sizes is unknown.
#[rustfmt::skip]
pub static ORIGINS: &[Origin] = &[
    Origin {
        code: 0xB063, rat: Rat::Lte, source: Source::Mac, direction: Downlink, shape: Shape::Block,
        columns: &[
            (Frame, "subpackets.samples.sfn"), (Subframe, "subpackets.samples.sub_fn"),
            (Carrier, "subpackets.samples.cell_id"), (Harq, "subpackets.samples.harq_id"),
            (Rnti, "subpackets.samples.rnti_type"), (Bytes, "subpackets.samples.dl_tbs_bytes"),
            (Frame, "blocks.sfn"), (Subframe, "blocks.sub_fn"),
            (Harq, "blocks.harq_id"), (Rnti, "blocks.rnti_type"), (Bytes, "blocks.dl_tbs_bytes"),
        ],
    },
    Origin {
        code: 0xB064, rat: Rat::Lte, source: Source::Mac, direction: Uplink, shape: Shape::Block,
        columns: &[
            (Frame, "subpackets.samples.sfn"), (Subframe, "subpackets.samples.sub_fn"),
            (Carrier, "subpackets.samples.cell_id"), (Harq, "subpackets.samples.harq_id"),
            (Rnti, "subpackets.samples.rnti_type"), (Bytes, "subpackets.samples.grant_bytes"),
        ],
    },
    Origin {
        code: 0xB067, rat: Rat::Lte, source: Source::Mac, direction: Uplink, shape: Shape::Sum,
        columns: &[
            (Span, "subpackets.sample.number_of_samples"), (Bytes, "subpackets.sample.grant_received"),
        ],
    },
    Origin {
        code: 0xB0C2, rat: Rat::Lte, source: Source::ControlChannel, direction: Downlink, shape: Shape::Cell,
        columns: &[(CarrierPrbs, "downlink_bandwidth")],
    },
    Origin {
        code: 0xB126, rat: Rat::Lte, source: Source::Demapper, direction: Downlink, shape: Shape::Demapped,
        columns: &[
            (Frame, "system_frame_number"), (Subframe, "subframe_number"), (Carrier, "carrier_index"),
            (Cell, "serving_cell_id"), (Rnti, "pdsch_rnti_type"), (PrbsLow, "rb_allocation_slot_0_0"),
            (PrbsHigh, "rb_allocation_slot_0_1"), (Layers, "spatial_rank"), (Bits, "tbs_0"),
            (BitsSecond, "tbs_1"), (ModulationRank, "mcs_0"), (ModulationRankSecond, "mcs_1"),
            (Frame, "records.system_frame_number"), (Subframe, "records.sub_frame_number"),
            (Cell, "records.serving_cell_id"), (Rnti, "records.pdsch_rnti_type"),
            (PrbsLow, "records.rb_allocation_slot_0_0"), (PrbsHigh, "records.rb_allocation_slot_0_1"),
            (Layers, "records.spatial_rank"), (Bits, "records.transport_block_size_stream_0"),
            (ModulationRank, "records.modulation_stream_0"),
        ],
    },
    Origin {
        code: 0xB130, rat: Rat::Lte, source: Source::ControlChannel, direction: Downlink, shape: Shape::Dci,
        columns: &[
            (Frame, "system_frame_number"), (Subframe, "subframe_number"), (Width, "band_width_mhz"),
            (Frame, "hypotheses.system_frame_number"), (Subframe, "hypotheses.subframe_number"),
            (Width, "hypotheses.band_width_mhz"),
            (Carrier, "carrier_index"), (Offset, "records.subframe_offset"),
            (NamesCarrier, "cif_configured"), (TwoCsiBits, "two_bits_csi_configured"),
            (AsksSounding, "aperiodic_srs_configured"),
            (NamesCarrier, "records.cif_configured"), (TwoCsiBits, "records.two_bits_csi_configured"),
            (AsksSounding, "records.aperiodic_srs_configured"),
            (NamesCarrier, "hypotheses.cif_configured"), (TwoCsiBits, "hypotheses.two_bits_csi_configured"),
            (AsksSounding, "hypotheses.aperiodic_srs_configured"),
            (Duplex, "frame_structure"), (Duplex, "hypotheses.frame_structure"),
            (Ports, "num_enb_antennas"), (Ports, "hypotheses.num_enb_antennas"),
            (Payload, "hypotheses.payload"), (Length, "hypotheses.payload_size"),
            (Format, "hypotheses.dci_format"), (Verdict, "hypotheses.prune_status"),
            (Rnti, "hypotheses.decode_states"), (Rnti, "hypotheses.decode_status"),
            (Has256Qam, "hypotheses.alt_tbs_enabled"),
            (Payload, "records.hypotheses.payload"), (Length, "records.hypotheses.payload_size"),
            (Format, "records.hypotheses.dci_format"), (Verdict, "records.hypotheses.prune_status"),
            (Rnti, "records.hypotheses.decode_states"), (Rnti, "records.hypotheses.decode_status"),
            (Has256Qam, "records.hypotheses.alt_tbs_enabled"),
        ],
    },
    Origin {
        code: 0xB139, rat: Rat::Lte, source: Source::SharedChannel, direction: Uplink, shape: Shape::Block,
        columns: &[
            (Cell, "serving_cell_id"), (Both, "records.current_sfn_sf"), (Carrier, "records.ul_carrier_index"),
            (Carrier, "records.carrier_index"), (Prbs, "records.num_of_rb"),
            (FirstPrb, "records.start_rb_slot_0"), (Bytes, "records.pusch_tb_size"),
            (ModulationUplink, "records.pusch_mod_order"), (Rv, "records.redund_ver"),
            (Again, "records.re_tx_index"),
        ],
    },
    Origin {
        code: 0xB173, rat: Rat::Lte, source: Source::SharedChannel, direction: Downlink, shape: Shape::Block,
        columns: &[
            (Frame, "records.frame_num"), (Subframe, "records.subframe_num"),
            (Carrier, "records.serving_cell_index"), (Layers, "records.num_layers"),
            (Prbs, "records.transport_blocks.num_rbs"), (Harq, "records.transport_blocks.harq_id"),
            (Rv, "records.transport_blocks.rv"), (Ndi, "records.transport_blocks.ndi"),
            (Crc, "records.transport_blocks.crc_result"), (Rnti, "records.transport_blocks.rnti_type"),
            (Index, "records.transport_blocks.tb_index"), (Bytes, "records.transport_blocks.tb_size"),
            (Mcs, "records.transport_blocks.mcs"),
            (ModulationBits, "records.transport_blocks.modulation_type"),
        ],
    },
    Origin {
        code: 0xB872, rat: Rat::Nr, source: Source::Mac, direction: Uplink, shape: Shape::Block,
        columns: &[
            (Frame, "ttis.sys_time_fn"), (Subframe, "ttis.sys_time_slot_number"),
            (Numerology, "ttis.tbs.numerology"), (Carrier, "ttis.tbs.carrier_id"),
            (Harq, "ttis.tbs.harq_id"), (Bytes, "ttis.tbs.grant_size"),
        ],
    },
    Origin {
        code: 0xB883, rat: Rat::Nr, source: Source::SharedChannel, direction: Uplink, shape: Shape::Block,
        columns: &[
            (Frame, "records.frame"), (Subframe, "records.slot"), (Numerology, "records.numerology"),
            (Carrier, "records.carriers.carrier_id"), (Harq, "records.carriers.pusch.harq_id"),
            (Mcs, "records.carriers.pusch.mcs"), (FirstPrb, "records.carriers.pusch.rb_start"),
            (Prbs, "records.carriers.pusch.num_rbs"), (Bytes, "records.carriers.pusch.tb_size_bytes"),
            (Rv, "records.carriers.pusch.rv"), (IsAgain, "records.carriers.pusch.tx_type"),
        ],
    },
];

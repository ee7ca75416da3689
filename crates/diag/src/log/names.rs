//! Names of values, as decoders in common use print them.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::Names;

/// List of raw numbers and their values; `None` means no value.
pub type Meanings = &'static [(u64, Option<f64>)];

pub const AGGREGATION: Names =
    &[(0, "Agg1"), (1, "Agg2"), (2, "Agg4"), (3, "Agg8"), (6, "Agg16"), (7, "Agg24")];

pub const AGGREGATION_V5: Names = &[(0, "Agg1"), (1, "Agg2"), (2, "Agg4"), (3, "Agg8")];

pub const ANTENNAS: Meanings = &[(0, Some(1.0)), (1, Some(2.0)), (2, Some(4.0)), (3, Some(4.0))];

/// Source: TS 36.331 §6.2.2
pub const BANDWIDTH_MHZ: Meanings = &[
    (0, Some(1.4)),
    (1, Some(3.0)),
    (2, Some(5.0)),
    (3, Some(10.0)),
    (4, Some(15.0)),
    (5, Some(20.0)),
    (6, None),
    (7, None),
    (8, None),
    (9, None),
    (10, None),
    (11, None),
    (12, None),
    (13, None),
    (14, None),
    (15, None),
];

pub const BSR_EVENT: Names = &[(0, "None"), (1, "Periodic"), (2, "High Data Arrival"), (3, "Robustness BSR")];

pub const BSR_TRIGGER: Names = &[
    (0, "No BSR"),
    (1, "Cancelled"),
    (2, "L-BSR"),
    (3, "S-BSR"),
    (4, "Pad L-BSR"),
    (5, "Pad S-BSR"),
    (6, "Pad T-BSR"),
];

pub const CARRIER: Names = &[(0, "PCC"), (1, "SCC"), (2, "SCC-2")];

pub const CARRIER_OF_TWO: Names = &[(0, "PCC"), (1, "SCC")];

pub const CDRX_EVENT: Names = &[
    (0, "ON_DURATION_TIMER_START"),
    (1, "ON_DURATION_TIMER_END"),
    (2, "SHORT_CYCLE_START"),
    (3, "SHORT_CYCLE_END"),
    (4, "LONG_CYCLE_START"),
    (5, "LONG_CYCLE_END"),
    (6, "UL_RETX_TIMER_START"),
    (7, "UL_RETX_TIMER_END"),
    (8, "INACTIVITY_TIMER_START"),
    (9, "INACTIVITY_TIMER_END"),
    (10, "DL_DRX_RETX_TIMER_START"),
    (11, "DL_DRX_RETX_TIMER_END"),
    (12, "CDRX_ON_2_OFF"),
    (13, "CDRX_OFF_2_ON"),
    (22, "WAKEUP_MISSED_CYCLE_TIMER_START"),
    (23, "WAKEUP_MISSED_CYCLE_TIMER_END"),
    (24, "CATM1_UL_RETX_TIMER_START"),
    (25, "CATM1_UL_RETX_TIMER_END"),
];

pub const CELL: Names = &[(0, "PCell"), (1, "1_SCell"), (2, "2_SCell")];

pub const CSF_TX_MODE: Names = &[
    (0, "TM_Invalid"),
    (1, "TM_Single_Ant_Port_0"),
    (2, "TM_TD_Rank_1"),
    (3, "TM_OL_SM"),
    (4, "TM_CL_SM"),
    (5, "TM_MU_MIMO"),
    (6, "TM_CL_Rank_1_PC"),
    (7, "TM_Single_Ant_Port_5"),
];

pub const CSI_SET: Names = &[(0, "CSI0")];

pub const CYCLIC_PREFIX: Names = &[(0, "Normal")];

pub const DCI_FORMAT: Names = &[
    (0, "Format 0"),
    (1, "Format 1"),
    (2, "Format 1A"),
    (3, "Format 1B"),
    (4, "Format 1C"),
    (5, "Format 1D"),
    (6, "Format 2"),
    (7, "Format 2A"),
    (8, "Format 3"),
    (9, "Format 3A"),
    (12, "Format 60A"),
    (13, "Format 61A"),
    (14, "Format 62"),
    (15, "Reserved"),
];

pub const DISABLED_ENABLED: Names = &[(0, "Disabled"), (1, "Enabled")];

pub const DISCARDED_RETX: Names = &[(0, "NO_DISCARD"), (1, "DISCARD_AND_ACK")];

pub const DL_MODULATION: Names = &[(0, "QPSK"), (1, "16QAM"), (2, "64QAM"), (3, "256QAM")];

pub const ENB_ANTENNAS: Names = &[(0, "1 or 2"), (1, "2 antennas"), (2, "4 antennas")];

pub const ENB_ANTENNAS_V141: Names = &[(0, "1 or 2"), (1, "4 antennas")];

pub const FAIL_PASS: Names = &[(0, "Fail"), (1, "Pass")];

pub const FALSE_TRUE: Names = &[(0, "False"), (1, "True")];

pub const FALSE_TRUE_V5: Names = &[(0, "false"), (1, "true")];

pub const FRAME_STRUCTURE: Names = &[(0, "FDD"), (1, "TDD")];

pub const FREQUENCY_SELECTIVE_PMI: Names = &[(0, "WideBand")];

pub const JOINT_DEMOD_SKIP: Names = &[(0, "NO_SKIP"), (1, "SW_DISABLE")];

pub const MATCH: Names = &[(0, "Mismatch"), (1, "Match")];

pub const MODULATION_BITS: Names = &[(2, "QPSK"), (4, "16QAM"), (6, "64QAM"), (8, "256QAM")];

pub const MVC_CLOCK: Names = &[(0, "MIN SVS")];

pub const NACK_ACK: Names = &[(0, "NACK"), (1, "ACK")];

pub const NB_DCI_RNTI: Names = &[(0, "C-RNTI"), (2, "TC-RNTI")];

pub const NB_OPERATION: Names =
    &[(0, "inband-DifferentPCI"), (1, "inband-SamePCI"), (2, "GUARDBAND"), (3, "STANDALONE")];

pub const NB_PDSCH_RNTI: Names = &[(1, "C-RNTI"), (3, "RA-RNTI"), (4, "TC-RNTI")];

pub const NONE_EXISTS: Names = &[(0, "None"), (1, "Exists")];

pub const NONE_PRESENT: Names = &[(0, "None"), (1, "Present")];

pub const NO_YES: Names = &[(0, "No"), (1, "Yes")];

pub const OFF_ON: Names = &[(0, "Off"), (1, "On")];

pub const OP_MODE: Names = &[(1, "TILE0_4RX"), (3, "TILE0_4RX")];

pub const ORDINAL: Names = &[
    (0, "First"),
    (1, "Second"),
    (2, "Third"),
    (3, "Fourth"),
    (4, "Fifth"),
    (5, "Sixth"),
    (6, "Seventh"),
    (7, "Eighth"),
];

pub const PRUNE: Names = &[
    (1, "SUCCESS_DCI0"),
    (3, "SUCCESS_DCI1A"),
    (4, "SUCCESS_DCI1C"),
    (6, "SUCCESS_DCI2_2A_2B"),
    (8, "TAIL_MISMATCH"),
    (9, "FAIL_SURVIVOR_SELECT"),
    (10, "PADDING_ERROR"),
    (13, "RB_ALLOC_SET_NUM_ERROR_TYPE1"),
    (17, "DUPLICATE_HARQ_ID_ERROR"),
    (19, "UNEXPECTED_PAYLOAD_SIZE"),
    (24, "BAD_RIV_DCI0"),
    (25, "RB_ALLOC_ERROR_DCI0"),
    (26, "INVALID_RB_NUM_DCI0"),
    (32, "BAD_RIV_DCI1A"),
    (33, "RB_ALLOC_ERROR_DCI1A"),
    (34, "INVALID_RB_NUM_DCI1A"),
    (36, "RETURN_DL_DATA_ARRIVAL_DCI1A"),
    (44, "RB_ALLOC_ERROR_DCI1C"),
    (48, "PMI_ERROR_DCI2_2A"),
    (50, "NUM_LAYERS_ERROR_DCI2_2A_TB1"),
    (64, "FAIL_SER_ENGYMTRC_CHECK"),
    (70, "NUM_LAYERS_EXCEED_NUM_RX"),
    (200, "PDCCH_DEBUG_SUCCESS_DCI60A"),
    (201, "PDCCH_DEBUG_SUCCESS_DCI61A"),
    (202, "PDCCH_DEBUG_SUCCESS_DCI62"),
    (216, "PDCCH_DEBUG_SUCCESS_DCI62_EARLY_TERMINATION"),
];

pub const PUCCH_DCI_FORMAT: Names = &[
    (0, "Format 0"),
    (1, "Format 1"),
    (2, "Format 1A"),
    (3, "Format 1B"),
    (4, "Format 1C"),
    (5, "Format 1D"),
    (6, "Format 2"),
    (7, "Format 2A"),
    (8, "Format 2B"),
    (9, "Format 2C"),
    (10, "Format 3"),
    (11, "Format 3A"),
    (12, "Format 4"),
    (13, "NO DCI"),
];

pub const PUCCH_FORMAT: Names = &[
    (0, "Format 1"),
    (1, "Format 1A"),
    (2, "Format 1B"),
    (3, "Format 2"),
    (4, "Format 2A"),
    (5, "Format 2B"),
    (6, "Format 1bCS"),
    (7, "Format 3"),
];

pub const PUCCH_MODE: Names = &[(1, "MODE_1_1")];

/// Differs: mobileinsight-core does not name 4. The numbers equal those of the report types; type 4 is the wideband
/// CQI.
///
/// Source: TS 36.213 §7.2.2
pub const PUCCH_REPORT: Names = &[
    (2, "Type 2, Wideband CQI, PMI Feedback"),
    (3, "Type 3, RI Feedback"),
    (4, "Type 4, Wideband CQI Feedback"),
];

pub const PUCCH_REPORT_V22: Names = &[(1, "Type 2, Wideband CQI, PMI Feedback"), (2, "Type 3, RI Feedback")];

/// Transmit power command in dB. 31 means that there is no command.
pub const PUCCH_TPC: Meanings = &[(31, None), (63, Some(-1.0))];

pub const PUSCH_DCI_FORMAT: Names = &[
    (0, "Format 0"),
    (1, "Format 1"),
    (2, "Format 1A"),
    (3, "Format 1B"),
    (4, "Format 1C"),
    (5, "Format 1D"),
    (6, "Format 2"),
    (7, "Format 2A"),
    (8, "Format 2B"),
    (9, "Format 2C"),
    (10, "Format 3"),
    (11, "Format 3A"),
    (12, "Format 4"),
];

pub const PUSCH_MODE: Names = &[
    (0, "MODE_APERIODIC_RM12"),
    (1, "MODE_APERIODIC_RM20"),
    (2, "MODE_APERIODIC_RM22"),
    (3, "MODE_APERIODIC_RM30"),
    (4, "MODE_APERIODIC_RM31"),
];

/// Transmit power command in dB. 15 means that there is no command.
pub const PUSCH_TPC: Meanings = &[(15, None), (31, Some(-1.0))];

pub const PUSCH_TX_TYPE: Names = &[(1, "Dynamic"), (2, "RACH MSG3")];

pub const RANK: Names = &[(0, "Rank 1"), (1, "Rank 2"), (2, "Rank 3"), (3, "Rank 4")];

pub const RASTER_OFFSET: Names = &[(0, "KHZ-7DOT5"), (1, "KHZ-2DOT5"), (2, "KHZ2DOT5"), (3, "KHZ7DOT5")];

pub const RNTI: Names = &[
    (0, "C-RNTI"),
    (1, "SPS-RNTI"),
    (2, "P-RNTI"),
    (3, "RA-RNTI"),
    (4, "Temporary-C-RNTI"),
    (5, "SI-RNTI"),
    (6, "TPC-PUSCH-RNTI"),
    (7, "TPC-PUCCH-RNTI"),
    (8, "MBMS RNTI"),
];

pub const SEARCH_SPACE: Names = &[(0, "Common"), (1, "UE-specific"), (2, "User"), (3, "Common Type 2")];

pub const SEARCH_SPACE_V5: Names = &[(0, "Common"), (1, "UE-specific")];

/// The kinds of packets that a modem may log for a downlink bearer, by bit.
pub const RLC_DOWN_PACKETS: Names = &[
    (1, "0xB081 configuration"),
    (2, "0xB082 all PDUs"),
    (3, "0xB083 control PDUs"),
    (4, "0xB084 polls"),
    (5, "0xB085 signalling"),
    (6, "0xB086 unacknowledged data"),
    (7, "0xB087 statistics"),
    (8, "0xB088 acknowledged state"),
    (9, "0xB089 unacknowledged state"),
];

/// The kinds of packets that a modem may log for an uplink bearer, by bit.
pub const RLC_UP_PACKETS: Names = &[
    (1, "0xB091 configuration"),
    (2, "0xB092 all PDUs"),
    (3, "0xB093 control PDUs"),
    (4, "0xB094 polls"),
    (5, "0xB095 signalling"),
    (6, "0xB096 unacknowledged data"),
    (7, "0xB097 statistics"),
    (8, "0xB098 acknowledged state"),
    (9, "0xB099 unacknowledged state"),
];

/// System information blocks, by bit. In real logs, messages with a single block in the mask start with that block.
#[rustfmt::skip]
pub const SIBS: Names = &[
    (1, "SIB1"), (2, "SIB2"), (3, "SIB3"), (4, "SIB4"), (5, "SIB5"), (6, "SIB6"), (7, "SIB7"), (8, "SIB8"),
    (9, "SIB9"), (10, "SIB10"), (11, "SIB11"), (12, "SIB12"), (13, "SIB13"), (14, "SIB14"), (15, "SIB15"),
    (16, "SIB16"), (17, "SIB17"), (18, "SIB18"), (19, "SIB19"), (20, "SIB20"), (21, "SIB21"),
];

pub const SRS_SHORTENING: Names = &[(0, "Normal"), (1, "Shorten 2nd")];

pub const SUBPACKET: Names = &[
    (0, "Config Type Subpacket"),
    (1, "DL Config SubPacket"),
    (2, "UL Config SubPacket"),
    (3, "RACH Config SubPacket"),
    (4, "LC Config SubPacket"),
    (7, "DL Transport Block"),
    (8, "UL Transport Block"),
    (10, "UL Buffer Status SubPacket"),
    (11, "UL Tx Statistics SubPacket"),
    (13, "eMBMS Config SubPacket"),
    (14, "All Rach Config SubPacket"),
    (18, "ELS SubPacket"),
];

pub const TRANSMISSION_SCHEME: Names = &[
    (1, "Single Antenna Port (SISO or SIMO)"),
    (2, "Transmit diversity"),
    (3, "Open-loop spatial multiplexing"),
    (4, "Closed-loop spatial multiplexing"),
    (5, "Multi-User MIMO"),
    (6, "Closed-loop rank-1 spatial multiplexing"),
    (7, "Single Antenna Port Beamforming"),
    (8, "Dual-Layer Beamforming"),
];

pub const UL_MODULATION: Names = &[(0, "BPSK"), (1, "QPSK"), (2, "16-QAM"), (3, "64-QAM")];

/// Differs: mobileinsight-core does not name 2. In a real log, all 107 records with the value 2 contain no power for
/// antenna 0, and the power of antenna 1 as the power of all antennas.
pub const VALID_RX: Names = &[(1, "RX0"), (2, "RX1"), (3, "RX0_RX1")];

pub const COMPANDING: Names = &[(0, "3 bit LLR"), (1, "4 bit LLR"), (2, "6 bit LLR")];

/// Subcarrier spacing in kHz.
pub const NB_SUBCARRIER: Meanings =
    &[(0, None), (1, None), (2, None), (3, None), (4, Some(15.0)), (5, None), (6, None), (7, None)];

pub const NPUSCH_FORMAT: Names = &[(0, "Format 1"), (1, "Format 2")];

pub const NPUSCH_TX_TYPE: Names = &[(0, ""), (1, "New Transmission")];

pub const RACH_REASON: Names = &[
    (0, "Connection_Request"),
    (1, "RADIO_LINK_FAILURE"),
    (2, "HANDOVER"),
    (3, "UL_DATA_ARRIVAL"),
    (6, "Beam_Failure"),
];

pub const RACH_CONTENTION: Names = &[(0, "CONT_FREE"), (1, "DL_MCE"), (2, "UL_Grant"), (3, "PDCCH_CRNTI")];

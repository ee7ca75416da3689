//! Origins of the KPIs in Qualcomm's log packets.
//!
//! If several kinds of packets contain a KPI, the first origin in the list is used and the other origins are ignored.
//! All origins are used if they report different events ([`additional`](Origin::additional)). Comments in the list give
//! the reason for a preference.

mod places;

pub use places::PLACES;

use super::origin::Control::{BufferStatus, GroupStatus, PowerHeadroom, TimingAdvance};
use super::origin::Formula::{
    Element, Largest, Nacks, Named, NrMessageType, One, Plus, Quotient, SentAgain, Signed, Sum, Times,
    TwoToThe,
};
use super::origin::{Origin, When};
use crate::layout::Version;
use crate::mac::Direction::{Down, Up};

/// RNTIs of data for this phone, as opposed to system information, paging or random access responses.
const MINE: &[&str] = &["C-RNTI", "SPS-RNTI"];

/// RNTIs of data for this phone, by their names in the layouts of NR.
const NR_MINE: &[&str] = &["C_RNTI"];

/// Selects the serving cell among the cells of a measurement. Packets of old versions contain only the serving cell.
const SERVES: &[When] = &[When::is("subpackets.cells.is_serving_cell", 1).or_absent()];

/// Values that a raw 0 is converted to; it means that the modem did not measure or does not know the value. Such values
/// yield no sample.
const NO_POWER: f64 = -180.0;
const NO_QUALITY: f64 = -30.0;
const NO_RSSI: f64 = -110.0;
const NO_SNR: f64 = -20.0;
const NO_BANDWIDTH: f64 = 0.0;
/// Lower limit for the power of all antennas. A raw 0 is −180 dBm in some versions and −140 dBm in others. Both are
/// lower than any power that a phone may report.
///
/// Source: TS 36.133 §9.1.4
const MIN_RSRP: f64 = -140.0;

/// Selects blocks for this phone in 0xB173.
const MY_BLOCK: When = When::named("records.transport_blocks.rnti_type", MINE);
/// Selects blocks with a known size: a modem that does not know the size writes 0.
const WITH_SIZE: When = When::is_not("records.transport_blocks.tb_size", 0);
const PASSED: When = When::named("records.transport_blocks.crc_result", &["Pass"]);
const FAILED: When = When::named("records.transport_blocks.crc_result", &["Fail"]);
const MY_FAILED: &[When] = &[MY_BLOCK.or_absent(), FAILED];
/// Selects blocks that are not retransmissions after successful reception.
const NEWS: When =
    When::not_named("records.transport_blocks.discarded_retx_present", &["Present"]).or_absent();
const NEWS_V34: When =
    When::not_named("records.transport_blocks.discarded_retx", &["DISCARD_AND_ACK"]).or_absent();

/// Length of the block's checksum (bytes). The sizes in 0xB173 include the checksum, except in version 48, which does
/// not contain the RNTI.
///
/// Chosen: sizes are assumed to include it also in versions without any recorded block.
const CHECKSUM_BYTES: f64 = 3.0;
const WITHOUT_CHECKSUM: &[Version] = &[Version::Single(48)];

const FIRST_SENT: &[When] = &[When::is("records.re_tx_index", 0)];

/// Selects NR messages that contain the number of their cell.
const OF_NR_CELL: &[When] = &[When::is_not("freq", 0)];
/// Selects NR messages whose frame number is known.
const WITH_FRAME: &[When] = &[When::is_not("sysframenum_subframenum", 0)];

/// Selects reports of the wideband CQI, not of the rank.
const NO_RANK: &[When] = &[When::not_named("pucch_report_type", RANK)];
const RANK: &[&str] = &["Type 3, RI Feedback"];

const AGGREGATION: &[(&str, f64)] =
    &[("Agg1", 1.0), ("Agg2", 2.0), ("Agg4", 4.0), ("Agg8", 8.0), ("Agg16", 16.0), ("Agg24", 24.0)];

/// All origins, in the order of the list of KPIs.
#[rustfmt::skip]
pub static ORIGINS: &[Origin] = &[
    // The modem sends 0xB193 about every 10 ms, 0xB179 every 40 ms while connected, and 0xB17F while idle.
    cell("lte.rsrp", &["subpackets.cells.rsrp", "subpackets.rsrp"]).above(MIN_RSRP),
    Origin::new("lte.rsrp", 0xB179, &["rsrp_dbm"]).above(MIN_RSRP),
    Origin::new("lte.rsrp", 0xB17F, &["rsrp"]).above(MIN_RSRP),
    cell("lte.rsrp.rx0", &["subpackets.cells.rsrp_rx_0", "subpackets.rsrp_rx_0"]).above(NO_POWER),
    cell("lte.rsrp.rx1", &["subpackets.cells.rsrp_rx_1", "subpackets.rsrp_rx_1"]).above(NO_POWER),
    cell("lte.rsrp.filtered", &["subpackets.cells.filtered_rsrp"]).above(NO_POWER),
    cell("lte.rsrq", &["subpackets.cells.rsrq", "subpackets.rsrq"]).above(NO_QUALITY),
    Origin::new("lte.rsrq", 0xB179, &["rsrq_db"]).above(NO_QUALITY),
    Origin::new("lte.rsrq", 0xB17F, &["rsrq"]).above(NO_QUALITY),
    cell("lte.rsrq.filtered", &["subpackets.cells.filtered_rsrq"]).above(NO_QUALITY),
    cell("lte.rssi", &["subpackets.cells.rssi", "subpackets.rssi"]).above(NO_RSSI),
    Origin::new("lte.rssi", 0xB17F, &["rssi"]).above(NO_RSSI),
    // A missing antenna has the minimum value.
    cell("lte.snr", &[
        "subpackets.cells.ftl_snr_rx_0", "subpackets.cells.ftl_snr_rx_1", "subpackets.cells.ftl_snr_rx_2",
        "subpackets.cells.ftl_snr_rx_3", "subpackets.ftl_snr_rx_0", "subpackets.ftl_snr_rx_1",
    ]).formula(Largest).above(NO_SNR),
    cell("lte.snr.rx0", &["subpackets.cells.ftl_snr_rx_0", "subpackets.ftl_snr_rx_0"]).above(NO_SNR),
    cell("lte.snr.rx1", &["subpackets.cells.ftl_snr_rx_1", "subpackets.ftl_snr_rx_1"]).above(NO_SNR),
    cell("lte.sir", &["subpackets.cells.projected_sir"]),
    Origin::new("lte.neighbor.pci", 0xB179, &["neighbor_cells.physical_cell_id"]),
    Origin::new("lte.neighbor.rsrp", 0xB179, &["neighbor_cells.rsrp_dbm"]).above(NO_POWER),
    Origin::new("lte.neighbor.rsrq", 0xB179, &["neighbor_cells.rsrq_db"]).above(NO_QUALITY),
    Origin::new("lte.rlm.out_of_sync_bler", 0xB18A, &["records.out_of_sync_bler_pct"]),
    Origin::new("lte.rlm.in_sync_bler", 0xB18A, &["records.in_sync_bler_pct"]),

    // CQI reports are sent with data at the cell's request, and periodically on the control channel: both are used.
    Origin::new("lte.cqi", 0xB14E, &["wideband_cqi_cw0"]),
    Origin::new("lte.cqi", 0xB14D, &["cqi_cw0"]).when(NO_RANK).additional(),
    Origin::new("lte.cqi.second", 0xB14E, &["wideband_cqi_cw1"]).when(&[When::not_named("rank_index", &["Rank 1"])]),
    Origin::new("lte.cqi.second", 0xB14D, &["cqi_cw1"])
        .when(&[When::not_named("pucch_report_type", RANK), When::is_not("cqi_cw1", 0)]).additional(),
    Origin::new("lte.ri", 0xB14E, &["rank_index"]).formula(Plus(1.0)),
    Origin::new("lte.ri", 0xB14D, &["rank_index"])
        .formula(Plus(1.0)).when(&[When::named("pucch_report_type", RANK)]).additional(),
    Origin::new("lte.pmi", 0xB14E, &["single_wb_pmi"]),
    Origin::new("lte.pmi", 0xB14D, &["wideband_pmi"]).when(NO_RANK).additional(),
    Origin::new("lte.transmission_mode", 0xB14E, &["csf_tx_mode"]),
    Origin::new("lte.transmission_mode", 0xB14D, &["csf_tx_mode"]).additional(),

    // 0xB173 contains every block with the result of its CRC; 0xB063 only correctly received blocks, ten times a second.
    block("lte.dl.tb_bytes", &["records.transport_blocks.tb_size"])
        .formula(Plus(-CHECKSUM_BYTES)).when(&[MY_BLOCK, WITH_SIZE]),
    block("lte.dl.tb_bytes", &["records.transport_blocks.tb_size"])
        .when(&[WITH_SIZE]).of_versions(WITHOUT_CHECKSUM).additional(),
    Origin::new("lte.dl.tb_bytes", 0xB063, &["subpackets.samples.dl_tbs_bytes"])
        .when(&[When::named("subpackets.samples.rnti_type", MINE)]),
    Origin::new("lte.dl.tb_bytes", 0xB063, &["blocks.dl_tbs_bytes"])
        .when(&[When::named("blocks.rnti_type", MINE)]).additional(),
    // Both blocks of a subframe use the same resource blocks.
    block("lte.dl.prb", &["records.transport_blocks.num_rbs", "records.num_transport_blocks_present"])
        .formula(Quotient).summed("records.num_transport_blocks_present"),
    block("lte.dl.mcs", &["records.transport_blocks.mcs"]),
    block("lte.dl.modulation", &["records.transport_blocks.modulation_type"]),
    block("lte.dl.layers", &["records.num_layers"]),
    block("lte.dl.harq", &["records.transport_blocks.harq_id"]),
    block("lte.dl.rv", &["records.transport_blocks.rv"]),
    block("lte.dl.crc", &["records.transport_blocks.crc_result"]),
    Origin::new("lte.dl.retransmission", 0xB132, &["records.streams.retransmission_number"])
        .when(&[When::named("records.rnti_type", MINE)]),
    block("lte.dl.bler", &["records.transport_blocks.crc_result"]).formula(Named(&[("Pass", 0.0), ("Fail", 1.0)])),
    block("lte.dl.blocks", &["records.transport_blocks.crc_result"]).formula(One),
    block("lte.dl.failed_blocks", &["records.transport_blocks.crc_result"]).formula(One).when(MY_FAILED),
    block("lte.dl.granted_prb", &["records.transport_blocks.num_rbs", "records.num_transport_blocks_present"])
        .formula(Quotient).summed("records.num_transport_blocks_present"),
    block("lte.dl.bytes", &["records.transport_blocks.tb_size"])
        .formula(Plus(-CHECKSUM_BYTES)).when(&[MY_BLOCK, WITH_SIZE, PASSED, NEWS, NEWS_V34]),
    block("lte.dl.bytes", &["records.transport_blocks.tb_size"])
        .when(&[WITH_SIZE, PASSED]).of_versions(WITHOUT_CHECKSUM).additional(),
    Origin::new("lte.dl.bytes", 0xB063, &["subpackets.samples.dl_tbs_bytes"])
        .when(&[When::named("subpackets.samples.rnti_type", MINE)]),
    Origin::new("lte.dl.bytes", 0xB063, &["blocks.dl_tbs_bytes"])
        .when(&[When::named("blocks.rnti_type", MINE)]).additional(),
    Origin::new("lte.dl.transmission_scheme", 0xB126, &["transmission_scheme", "records.transmission_scheme"]),
    // The modem sends 0xB130 within a millisecond, and 0xB16B later; but 0xB16B contains only DCIs that the modem
    // accepted.
    Origin::new("lte.pdcch.aggregation_level", 0xB130, &["hypotheses.aggregation_level"])
        .formula(Named(AGGREGATION)).when(&[When::begins("hypotheses.prune_status", "SUCCESS")]),
    Origin::new("lte.pdcch.aggregation_level", 0xB130, &["records.hypotheses.aggregation_level"])
        .formula(Named(AGGREGATION)).when(&[When::begins("records.hypotheses.prune_status", "SUCCESS")]).additional(),
    Origin::new("lte.pdcch.aggregation_level", 0xB16B, &["records.pdcch_info.aggregation_level"])
        .formula(Named(AGGREGATION)).when(&[When::named("records.pdcch_info.rnti_type", MINE)]),
    Origin::new("lte.pdcch.dcis", 0xB16B, &["records.pdcch_info.rnti_type"])
        .formula(One).when(&[When::named("records.pdcch_info.rnti_type", MINE)]),

    // 0xB139 reports the transmissions, 0xB16E their power, and 0xB064 the MAC PDUs, once per block.
    Origin::new("lte.ul.tb_bytes", 0xB139, &["records.pusch_tb_size"]),
    Origin::new("lte.ul.tb_bytes", 0xB16E, &["records.transport_block_size"]),
    Origin::new("lte.ul.prb", 0xB139, &["records.num_of_rb"]),
    Origin::new("lte.ul.prb", 0xB16E, &["records.num_rbs"]),
    Origin::new("lte.ul.modulation", 0xB139, &["records.pusch_mod_order"])
        .formula(Named(&[("BPSK", 1.0), ("QPSK", 2.0), ("16-QAM", 4.0), ("64-QAM", 6.0)])),
    Origin::new("lte.ul.code_rate", 0xB139, &["records.coding_rate", "records.coding_rate_data"]),
    Origin::new("lte.ul.retransmission", 0xB139, &["records.re_tx_index"]),
    Origin::new("lte.ul.blocks", 0xB139, &["records.pusch_tb_size"]).formula(One),
    Origin::new("lte.ul.blocks", 0xB16E, &["records.transport_block_size"]).formula(One),
    Origin::new("lte.ul.bytes", 0xB139, &["records.pusch_tb_size"]).when(FIRST_SENT),
    Origin::new("lte.ul.bytes", 0xB064, &["subpackets.samples.grant_bytes"]),
    Origin::new("lte.ul.ack", 0xB16B, &["records.phich.phich_value"])
        .when(&[When::named("records.phich.phich_included", &["Yes"])]),
    Origin::new("lte.ul.ack", 0xB16B, &["records.phich_value"])
        .when(&[When::named("records.phich_included", &["Yes"])]).additional(),
    Origin::new("lte.ul.bler", 0xB16B, &["records.phich.phich_value"])
        .formula(Named(&[("ACK", 0.0), ("NACK", 1.0)]))
        .when(&[When::named("records.phich.phich_included", &["Yes"])]),
    Origin::new("lte.ul.bler", 0xB16B, &["records.phich_value"])
        .formula(Named(&[("ACK", 0.0), ("NACK", 1.0)]))
        .when(&[When::named("records.phich_included", &["Yes"])]).additional(),
    Origin::new("lte.ul.tx_power", 0xB16E, &["records.pusch_tx_power_dbm"]).formula(Signed),
    Origin::new("lte.ul.tx_power", 0xB139, &["records.pusch_tx_power_dbm"]).formula(Signed),
    Origin::new("lte.ul.actual_tx_power", 0xB16E, &["records.pusch_actual_tx_power"]).formula(Signed),
    Origin::new("lte.ul.max_tx_power", 0xB16E, &["records.max_power"]).formula(Signed),
    Origin::new("lte.ul.path_loss", 0xB16E, &["records.dl_path_loss"]),
    Origin::new("lte.ul.path_loss", 0xB16F, &["records.dl_path_loss"]),
    Origin::new("lte.pucch.tx_power", 0xB16F, &["records.pucch_tx_power_dbm"]).formula(Signed),
    Origin::new("lte.pucch.tx_power", 0xB13C, &["records.pucch_tx_power_dbm"]).formula(Signed),

    Origin::new("lte.dl.mac_bytes", 0xB063, &["subpackets.samples.dl_tbs_bytes"])
        .when(&[When::named("subpackets.samples.rnti_type", MINE)]),
    Origin::new("lte.dl.mac_bytes", 0xB063, &["blocks.dl_tbs_bytes"])
        .when(&[When::named("blocks.rnti_type", MINE)]).additional(),
    Origin::new("lte.dl.padding_bytes", 0xB063, &["subpackets.samples.padding_bytes"])
        .when(&[When::named("subpackets.samples.rnti_type", MINE)]),
    Origin::new("lte.dl.padding_bytes", 0xB063, &["blocks.padding_bytes"])
        .when(&[When::named("blocks.rnti_type", MINE)]).additional(),
    Origin::new("lte.timing_advance", 0xB063, &["subpackets.samples.mac_hdr_ce"]).formula(Element(Down, TimingAdvance))
        .when(&[When::named("subpackets.samples.rnti_type", MINE)]),
    Origin::new("lte.ul.grant_bytes", 0xB064, &["subpackets.samples.grant_bytes"]),
    Origin::new("lte.ul.padding_bytes", 0xB064, &["subpackets.samples.padding_bytes"]),
    Origin::new("lte.ul.bsr", 0xB064, &["subpackets.samples.mac_hdr_ce"]).formula(Element(Up, BufferStatus)),
    group("lte.ul.bsr.lcg0", 0),
    group("lte.ul.bsr.lcg1", 1),
    group("lte.ul.bsr.lcg2", 2),
    group("lte.ul.bsr.lcg3", 3),
    Origin::new("lte.ul.phr", 0xB064, &["subpackets.samples.mac_hdr_ce"]).formula(Element(Up, PowerHeadroom)),
    // Buffered data is sent compressed if header compression is active.
    Origin::new("lte.ul.buffer", 0xB066, &[
        "subpackets.samples.lcids.new_bytes", "subpackets.samples.lcids.new_compressed_bytes",
        "subpackets.samples.lcids.retx_bytes", "subpackets.samples.lcids.ctrl_bytes",
    ]).formula(Sum).summed("subpackets.samples.number_of_active_lcid"),
    Origin::new("lte.ul.latency", 0xB066, &[
        "subpackets.samples.lcids.new_bytes", "subpackets.samples.lcids.new_compressed_bytes",
        "subpackets.samples.lcids.retx_bytes", "subpackets.samples.lcids.ctrl_bytes",
    ]).formula(Sum).summed("subpackets.samples.number_of_active_lcid"),
    Origin::new("lte.ul.granted_bytes", 0xB067, &["subpackets.sample.grant_received"]),
    Origin::new("lte.ul.used_bytes", 0xB067, &["subpackets.sample.grant_utilized"]),

    Origin::new("lte.rlc.dl.pdu_bytes", 0xB082, &["subpackets.pdus.pdu_bytes"]),
    Origin::new("lte.rlc.dl.bytes", 0xB082, &["subpackets.pdus.pdu_bytes"]),
    Origin::new("lte.rlc.dl.nacks", 0xB092, &["subpackets.pdus.header", "subpackets.sn_length"]).formula(Nacks),
    Origin::new("lte.rlc.dl.again_pdus", 0xB087, &["subpackets.rbs.num_retx_pdu"]),
    Origin::new("lte.rlc.ul.pdu_bytes", 0xB092, &["subpackets.pdus.pdu_bytes"]),
    Origin::new("lte.rlc.ul.bytes", 0xB092, &["subpackets.pdus.pdu_bytes"]),
    Origin::new("lte.rlc.ul.nacks", 0xB082, &["subpackets.pdus.header", "subpackets.sn_length"]).formula(Nacks),
    Origin::new("lte.rlc.ul.retransmissions", 0xB092, &[
        "subpackets.pdus.header", "subpackets.sn_length", "subpackets.rb_cfg_idx", "subpackets.vt_s",
    ]).formula(SentAgain),
    Origin::new("lte.rlc.ul.again_pdus", 0xB097, &["subpackets.rbs.num_retx_pdu"]),
    Origin::new("lte.pdcp.dl.pdu_bytes", 0xB0A3, &["subpackets.pdus.pdu_size"]),
    Origin::new("lte.pdcp.dl.bytes", 0xB0A3, &["subpackets.pdus.pdu_size"]),
    Origin::new("lte.pdcp.ul.pdu_bytes", 0xB0B3, &["subpackets.pdus.pdu_size"]),
    Origin::new("lte.pdcp.ul.bytes", 0xB0B3, &["subpackets.pdus.pdu_size"]),

    // 0xB0C2 is sent once per cell, and the measurements are sent continuously.
    cell("lte.pci", &["subpackets.cells.physical_cell_id", "subpackets.physical_cell_id"]),
    Origin::new("lte.pci", 0xB179, &["serving_physical_cell_id"]),
    Origin::new("lte.pci", 0xB17F, &["physical_cell_id"]),
    Origin::new("lte.pci", 0xB0C2, &["cell_id"]),
    cell("lte.earfcn", &["subpackets.e_arfcn"]),
    Origin::new("lte.earfcn", 0xB179, &["e_arfcn"]),
    Origin::new("lte.earfcn", 0xB17F, &["e_arfcn"]),
    Origin::new("lte.earfcn", 0xB0C2, &["downlink_frequency"]),
    Origin::new("lte.ul.earfcn", 0xB0C2, &["uplink_frequency"]),
    Origin::new("lte.band", 0xB0C2, &["band_indicator"]),
    // 0xB0C2 reports the serving cell, and 0xB0C1 any cell whose MIB was read.
    Origin::new("lte.dl.bandwidth", 0xB0C2, &["downlink_bandwidth"]).above(NO_BANDWIDTH),
    Origin::new("lte.dl.bandwidth", 0xB0C1, &["dl_bw"]).above(NO_BANDWIDTH),
    Origin::new("lte.ul.bandwidth", 0xB0C2, &["uplink_bandwidth"]).above(NO_BANDWIDTH),
    Origin::new("lte.antenna_ports", 0xB0C1, &["number_of_antenna"]),
    Origin::new("lte.cell_identity", 0xB0C2, &["cell_identity"]),
    Origin::new("lte.tac", 0xB0C2, &["tac"]),
    Origin::new("lte.mcc", 0xB0C2, &["mcc"]),
    Origin::new("lte.mnc", 0xB0C2, &["mnc"]),
    Origin::new("lte.rrc.messages", 0xB0C0, &["msg_length"]).formula(One),
    Origin::new("lte.rrc.message_bytes", 0xB0C0, &["msg_length"]),
    Origin::new("lte.drx.event", 0xB198, &["records.cdrx_event"]),
    Origin::new("lte.idle.rsrp", 0xB17F, &["average_rsrp"]).above(NO_POWER),
    Origin::new("lte.idle.rsrq", 0xB17F, &["average_rsrq"]).above(NO_QUALITY),

    Origin::new("lte.emm_state", 0xB0EE, &["emm_state"]),
    Origin::new("lte.bearer.id", 0xB0E5, &["eps_bearer_id"]),
    Origin::new("lte.bearer.qci", 0xB0E5, &["qci"]),
    Origin::new("lte.bearer.state", 0xB0E5, &["eps_bearer_state"]),
    Origin::new("lte.nas.messages", 0xB0E2, &["pkt_version"]).formula(One),
    Origin::new("lte.nas.messages", 0xB0E3, &["pkt_version"]).formula(One).additional(),
    Origin::new("lte.nas.messages", 0xB0EC, &["pkt_version"]).formula(One).additional(),
    Origin::new("lte.nas.messages", 0xB0ED, &["pkt_version"]).formula(One).additional(),

    // The size in the packet is in bits.
    Origin::new("nbiot.dl.tb_bytes", 0xB246, &["records.tb_size"]).formula(Times(0.125))
        .when(&[When::named("records.rnti_type", MINE)]),
    Origin::new("nbiot.dl.mcs", 0xB246, &["records.mcs"]).when(&[When::named("records.rnti_type", MINE)]),
    Origin::new("nbiot.dl.bler", 0xB246, &["records.crc"]).formula(Named(&[("Pass", 0.0), ("Fail", 1.0)]))
        .when(&[When::named("records.rnti_type", MINE)]),
    Origin::new("nbiot.ul.tx_power", 0xB245, &["records.tx_power"]),
    Origin::new("nbiot.ul.repetitions", 0xB245, &["records.repetition_number"]),

    Origin::new("nr.rsrp", 0xB97F, &[
        "carriers.serving_rsrp_rx_0", "carriers.serving_rsrp_rx_1", "carriers.serving_rsrp_rx_2",
        "carriers.serving_rsrp_rx_3",
    ]).formula(Largest),
    Origin::new("nr.rsrp.rx0", 0xB97F, &["carriers.serving_rsrp_rx_0"]),
    Origin::new("nr.rsrp.rx1", 0xB97F, &["carriers.serving_rsrp_rx_1"]),
    Origin::new("nr.ssb", 0xB97F, &["carriers.serving_ssb"]),
    Origin::new("nr.cell.pci", 0xB97F, &["carriers.cells.pci"]),
    Origin::new("nr.cell.rsrp", 0xB97F, &["carriers.cells.cell_quality_rsrp"]),
    Origin::new("nr.cell.rsrq", 0xB97F, &["carriers.cells.cell_quality_rsrq"]),
    Origin::new("nr.beam.rsrp", 0xB97F, &["carriers.cells.beams.rsrp_0", "carriers.cells.beams.rsrp_1"])
        .formula(Largest),

    // The values are means of the reports since the last packet.
    Origin::new("nr.cqi", 0xB881, &["records.cqi", "records.num_cqi"])
        .formula(Quotient).when(&[When::is_not("records.num_cqi", 0)]),
    Origin::new("nr.ri", 0xB881, &["records.ri", "records.num_ri"])
        .formula(Quotient).when(&[When::is_not("records.num_ri", 0)]),
    Origin::new("nr.pdcch.aggregation_level", 0xB885, &["records.dci_info.aggregation_level"])
        .formula(TwoToThe).when(&[When::named("records.dci_info.rnti_type", NR_MINE)]),
    Origin::new("nr.dl.mcs", 0xB885, &["records.dci_info.downlink_1_1.mcs"])
        .when(&[When::named("records.dci_info.rnti_type", NR_MINE)]),
    Origin::new("nr.dl.mcs", 0xB885, &["records.dci_info.downlink_1_0.mcs"])
        .when(&[When::named("records.dci_info.rnti_type", NR_MINE)]).additional(),
    Origin::new("nr.dl.blocks", 0xB888, &["records.num_crc_pass_tb", "records.num_crc_fail_tb"]).formula(Sum),
    Origin::new("nr.dl.failed_blocks", 0xB888, &["records.num_crc_fail_tb"]),
    Origin::new("nr.dl.bytes", 0xB888, &["records.crc_pass_tb_bytes"]),
    Origin::new("nr.dl.padding_bytes", 0xB888, &["records.padding_bytes"]),
    Origin::new("nr.ul.tb_bytes", 0xB883, &["records.carriers.pusch.tb_size_bytes"]),
    Origin::new("nr.ul.prb", 0xB883, &["records.carriers.pusch.num_rbs"]),
    Origin::new("nr.ul.mcs", 0xB883, &["records.carriers.pusch.mcs"]),
    Origin::new("nr.ul.mcs", 0xB885, &["records.dci_info.uplink.mcs"])
        .when(&[When::named("records.dci_info.rnti_type", NR_MINE)]),
    Origin::new("nr.ul.code_rate", 0xB883, &["records.carriers.pusch.code_rate"]).formula(Times(1.0 / 1024.0)),
    Origin::new("nr.ul.new_bytes", 0xB881, &["records.tb_new_tx_bytes"]),
    Origin::new("nr.ul.again_bytes", 0xB881, &["records.tb_retx_bytes"]),
    Origin::new("nr.ul.grant_bytes", 0xB872, &["ttis.tbs.grant_size"]),
    Origin::new("nr.ul.built_bytes", 0xB872, &["ttis.tbs.bytes_build"]),
    Origin::new("nr.rach.reason", 0xB889, &["rach_reason"]),
    Origin::new("nr.rlc.dl.bytes", 0xB84D, &["bearers.rlc_data_bytes"]),
    Origin::new("nr.rlc.dl.again_pdus", 0xB84D, &["bearers.num_retx_pdu"]),

    Origin::new("nr.pci", 0xB97F, &["carriers.serving_cell_pci"]),
    Origin::new("nr.pci", 0xB823, &["physical_cell_id"]),
    Origin::new("nr.pci", 0xB821, &["physical_cell_id"]).when(OF_NR_CELL),
    Origin::new("nr.arfcn", 0xB97F, &["carriers.raster_arfcn"]),
    Origin::new("nr.arfcn", 0xB823, &["dl_nr_arfcn"]),
    Origin::new("nr.arfcn", 0xB821, &["freq"]).when(OF_NR_CELL),
    Origin::new("nr.band", 0xB823, &["band"]),
    Origin::new("nr.dl.bandwidth", 0xB823, &["dl_bandwidth_mhz"]).above(NO_BANDWIDTH),
    Origin::new("nr.ul.bandwidth", 0xB823, &["ul_bandwidth_mhz"]).above(NO_BANDWIDTH),
    Origin::new("nr.subcarrier_spacing", 0xB822, &["subcarrier_spacing"]),
    Origin::new("nr.tac", 0xB823, &["tac"]),
    Origin::new("nr.mcc", 0xB823, &["mcc"]),
    Origin::new("nr.mnc", 0xB823, &["mnc"]),
    Origin::new("nr.rrc.messages", 0xB821, &["msg_length"]).formula(One),
    Origin::new("nr.rrc.message_bytes", 0xB821, &["msg_length"]),
    Origin::new("nr.rrc.channel", 0xB821, &["channel"]).formula(Named(&[
        ("BCCH-BCH", 1.0), ("BCCH-DL-SCH", 2.0), ("DL-CCCH", 3.0), ("DL-DCCH", 4.0), ("MCCH", 5.0), ("PCCH", 6.0),
        ("UL-CCCH", 7.0), ("UL-CCCH1", 8.0), ("UL-DCCH", 9.0), ("RRCReconfiguration", 10.0),
        ("RRCReconfigurationComplete", 11.0),
    ])),
    Origin::new("nr.rrc.message_type", 0xB821, &["msg", "channel"]).formula(NrMessageType),
    // Messages over an LTE cell contain no NR cell number.
    Origin::new("nr.rrc.pci", 0xB821, &["physical_cell_id"]).when(OF_NR_CELL),
    Origin::new("nr.rrc.arfcn", 0xB821, &["freq"]).when(OF_NR_CELL),
    Origin::new("nr.rrc.sfn", 0xB821, &["system_frame_number"]).when(WITH_FRAME),
    Origin::new("nr.rrc.slot", 0xB821, &["subframe_number"]).when(WITH_FRAME),
];

/// A value of the serving cell from 0xB193.
const fn cell(kpi: &'static str, value: &'static [&'static str]) -> Origin {
    Origin::new(kpi, 0xB193, value).when(SERVES)
}

/// The phone's buffer status report for a logical channel group.
const fn group(kpi: &'static str, group: u8) -> Origin {
    Origin::new(kpi, 0xB064, &["subpackets.samples.mac_hdr_ce"]).formula(Element(Up, GroupStatus(group)))
}

/// A value of a block for this phone from 0xB173. If the packet does not contain the RNTI, all blocks are used.
const fn block(kpi: &'static str, value: &'static [&'static str]) -> Origin {
    const MINE_OR_UNSAID: &[When] = &[MY_BLOCK.or_absent()];
    Origin::new(kpi, 0xB173, value).when(MINE_OR_UNSAID)
}

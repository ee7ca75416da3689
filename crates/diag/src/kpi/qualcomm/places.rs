//! Fields with time and carrier in the records of each log packet.

use crate::kpi::origin::Place;

/// All log packets whose records contain time or carrier. RRC messages of LTE are left out: a message may be older than
/// its packet.
#[rustfmt::skip]
pub static PLACES: &[Place] = &[
    Place::of(0xB063)
        .at(&["subpackets.samples.sfn", "blocks.sfn"], &["subpackets.samples.sub_fn", "blocks.sub_fn"])
        .carrier(&["subpackets.samples.cell_id"]),
    Place::of(0xB064)
        .at(&["subpackets.samples.sfn"], &["subpackets.samples.sub_fn"]).carrier(&["subpackets.samples.cell_id"]),
    Place::of(0xB066).at(&["subpackets.samples.sys_fn"], &["subpackets.samples.sub_fn"]),
    Place::of(0xB082).at(&["subpackets.pdus.sys_fn"], &["subpackets.pdus.sub_fn"]),
    Place::of(0xB092).at(&["subpackets.pdus.sys_fn"], &["subpackets.pdus.sub_fn"]),
    Place::of(0xB0A3).at(&["subpackets.pdus.sys_fn"], &["subpackets.pdus.sub_fn"]),
    Place::of(0xB0B3).at(&["subpackets.pdus.sys_fn"], &["subpackets.pdus.sub_fn"]),
    Place::of(0xB126)
        .at(&["system_frame_number", "records.system_frame_number"], &["subframe_number", "records.sub_frame_number"])
        .carrier(&["carrier_index"]),
    Place::of(0xB130)
        .at(&["system_frame_number", "hypotheses.system_frame_number"],
            &["subframe_number", "hypotheses.subframe_number"])
        .offset(&["records.subframe_offset"]).carrier(&["carrier_index"]),
    Place::of(0xB132)
        .at(&["starting_system_frame_number"], &["starting_subframe_number"])
        .offset(&["records.subframe_offset"]).carrier(&["carrier_index"]),
    Place::of(0xB139)
        .packed(&["records.current_sfn_sf"]).carrier(&["records.ul_carrier_index", "records.carrier_index"]),
    Place::of(0xB13C).packed(&["records.current_sfn_sf"]).carrier(&["records.carrier_index"]),
    Place::of(0xB14D).at(&["start_system_frame_number"], &["start_system_sub_frame_number"]).carrier(&["carrier_index"]),
    Place::of(0xB14E).at(&["start_system_frame_number"], &["start_system_sub_frame_number"]).carrier(&["carrier_index"]),
    Place::of(0xB16B)
        .at(&["records.pdcch_timing_sfn"], &["records.pdcch_timing_sub_fn"])
        .carrier(&["records.pdcch_info.serv_cell_idx", "records.phich.cell_index"]),
    Place::of(0xB16C).at(&["records.sfn"], &["records.sub_fn"]),
    Place::of(0xB16D).at(&["records.sfn"], &["records.sub_fn"]),
    Place::of(0xB16E).at(&["records.sfn"], &["records.sub_fn"]).carrier(&["records.cell_index"]),
    Place::of(0xB16F).at(&["records.sfn"], &["records.sub_fn"]),
    Place::of(0xB173).at(&["records.frame_num"], &["records.subframe_num"]).carrier(&["records.serving_cell_index"]),
    Place::of(0xB179).packed(&["sub_frame_number"]).carrier(&["serving_cell_index"]),
    Place::of(0xB18A).at(&["records.system_frame_number"], &["records.sub_frame_number"]),
    Place::of(0xB193)
        .at(&["subpackets.cells.current_sfn", "subpackets.current_sfn"],
            &["subpackets.cells.current_subframe_number", "subpackets.current_subframe_number"])
        .carrier(&["subpackets.cells.serving_cell_index", "subpackets.serving_cell_index"]),
    Place::of(0xB198).at(&["records.sfn"], &["records.sub_fn"]),
    Place::of(0xB246).at(&["records.sfn"], &["records.sub_fn"]),
    // Later versions have frame and slot in bits that could not be verified with a real log.
    Place::of(0xB821).at(&["system_frame_number"], &["subframe_number"]),
    Place::of(0xB872)
        .at(&["ttis.sys_time_fn"], &["ttis.sys_time_slot_number"])
        .slots(&["ttis.tbs.numerology"]).carrier(&["ttis.tbs.carrier_id"]),
    Place::of(0xB883)
        .at(&["records.frame"], &["records.slot"])
        .slots(&["records.numerology"]).carrier(&["records.carriers.carrier_id"]),
    Place::of(0xB885)
        .at(&["records.frame"], &["records.slot"])
        .slots(&["records.numerology"]).carrier(&["records.dci_info.carrier_id"]),
    Place::of(0xB887).at(&["records.frame"], &["records.slot"]).slots(&["records.numerology"]),
    Place::of(0xB888).carrier(&["records.carrier_id"]),
    Place::of(0xB97F).carrier(&["carriers.cc_id"]),
];

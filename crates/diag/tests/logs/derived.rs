//! Tests of the layouts that this project derived itself, because they are not public: compared with the reports of other
//! codes for the same subframes in the same recorded logs. Skipped if the recordings are not available.

use crate::recordings_folder;

use std::collections::BTreeMap;

use airpace_core::tables::lte;
use airpace_diag::layout::{Decoded, Record, Value};
use airpace_diag::source::Item;
use airpace_diag::{Format, Message, log};
use recordings_folder::{logs, recordings};

/// A recorded log.
struct Log {
    bytes: Vec<u8>,
}

impl Log {
    fn open(name: &str) -> Option<Log> {
        let path = logs(&recordings()?).into_iter().find(|path| path.ends_with(name))?;
        Some(Log { bytes: std::fs::read(path).unwrap() })
    }

    fn visit(&self, code: u16, mut each: impl FnMut(&Decoded<'_>)) {
        Format::Hdlc.visit(&self.bytes, |_, item| {
            if let Item::Message(Message::Log(packet)) = item
                && packet.code.0 == code
            {
                each(&log::read(&packet).unwrap());
            }
        });
    }

    /// Values of some fields of each record of `part`, by subframe. The subframe is read from one or two fields.
    fn rows<const N: usize>(
        &self,
        code: u16,
        part: &str,
        time: &[&str],
        names: [&str; N],
    ) -> Vec<(u64, [u64; N])> {
        let mut rows = vec![];
        self.visit(code, |decoded| {
            for record in decoded.fields.records(part) {
                rows.push((subframe(record, time), names.map(|name| number(record, name))));
            }
        });
        rows
    }
}

/// The number in a field; the number in the first block or stream if the record itself has no such field.
fn number(record: &Record<'_>, name: &str) -> u64 {
    let within = ["transport_blocks", "streams", "pusch", "pdcch_info"].iter().find_map(|part| match record
        .get(part)?
    {
        Value::Record(within) => within.get(name).cloned(),
        Value::Records(records) => records.first()?.get(name).cloned(),
        _ => None,
    });
    match record.get(name).cloned().or(within) {
        Some(Value::Unsigned(number)) => number,
        Some(Value::Real(number)) => (number * 1024.0).round() as u64,
        Some(Value::Name(name)) => match name {
            "Fail" | "C-RNTI" | "PUCCH" | "Format 0" => 0,
            "Pass" | "PUSCH" | "QPSK" => 1,
            "16-QAM" | "Format 1A" => 2,
            "64-QAM" => 3,
            "SI-RNTI" => 5,
            "RA-RNTI" => 30,
            "Temporary-C-RNTI" => 4,
            other => panic!("{other}"),
        },
        other => panic!("{name}: {other:?}"),
    }
}

fn subframe(record: &Record<'_>, time: &[&str]) -> u64 {
    match time {
        [both] => number(record, both),
        [frame, subframe] => 10 * number(record, frame) + number(record, subframe),
        _ => unreachable!("one field or two"),
    }
}

#[test]
fn the_uplink_blocks_of_the_pixel_5_are_those_of_its_mac_layer_and_of_its_grants() {
    let Some(log) = Log::open("lte_pixel5_2023_a.qmdl") else { return };
    let blocks = log.rows(
        0xB139,
        "records",
        &["current_sfn_sf"],
        [
            "pusch_tb_size",
            "num_of_rb",
            "start_rb_slot_0",
            "start_rb_slot_1",
            "pusch_mod_order",
            "coding_rate",
        ],
    );
    let mut mac = BTreeMap::new();
    log.visit(0xB064, |decoded| {
        for sample in decoded.fields.records("subpackets").iter().flat_map(|part| part.records("samples")) {
            mac.insert(subframe(sample, &["sfn", "sub_fn"]), number(sample, "grant_bytes"));
        }
    });
    let grants = dcis(&log);
    assert_eq!(blocks.len(), 2);
    for (time, [bytes, prbs, first, second, order, rate]) in blocks {
        assert_eq!(mac[&time], bytes, "the MAC layer was granted as much");
        assert_eq!(first, second, "frequency hopping is off");
        let dci = grants[&(time - 4)];
        let field = |from: u32, width: u32| dci << from >> (64 - width);
        // Format 0 has two flags, 13 bits of allocation on 100 PRBs, and the MCS.
        let riv = field(2, 13);
        assert_eq!(
            (riv / 100 + 1, riv % 100),
            (prbs, first),
            "the grant four subframes before has the same PRBs"
        );
        let (modulation, i_tbs) = lte::uplink_mcs(field(15, 5) as u8).unwrap().initial.unwrap();
        assert_eq!(lte::tbs(i_tbs, prbs as u16, 1).unwrap().0, 8 * bytes);
        assert_eq!(u64::from(modulation.bits_per_symbol()), 2 * order);
        let coded = u64::from(lte::PUSCH_RES_PER_PRB) * prbs * 2 * order;
        assert_eq!(rate, (8 * bytes + 24) * 1024 / coded, "the coding rate counts the checksum");
    }
}

/// Raw DCIs that the modem accepted, by subframe. The first bit of a DCI is the highest bit of the number.
fn dcis(log: &Log) -> BTreeMap<u64, u64> {
    let mut grants = BTreeMap::new();
    log.visit(0xB130, |decoded| {
        for record in decoded.fields.records("hypotheses") {
            let Some(Value::Name(status)) = record.get("prune_status") else { continue };
            let Some(Value::Bytes(payload)) = record.get("payload") else { panic!("there is a DCI") };
            if status.starts_with("SUCCESS") {
                let time = subframe(record, &["system_frame_number", "subframe_number"]);
                grants.insert(time, u64::from_le_bytes((*payload).try_into().unwrap()));
            }
        }
    });
    grants
}

#[test]
fn the_downlink_blocks_of_the_pixel_5_are_those_of_its_demapper_mac_layer_and_assignments() {
    let Some(log) = Log::open("lte_pixel5_2023_a.qmdl") else { return };
    let blocks = log.rows(
        0xB173,
        "records",
        &["frame_num", "subframe_num"],
        ["tb_size", "num_rbs", "num_layers", "harq_id", "ndi", "rv", "crc_result", "mcs"],
    );
    let mut demapper = BTreeMap::new();
    log.visit(0xB126, |decoded| {
        for record in decoded.fields.records("records") {
            let time = subframe(record, &["system_frame_number", "sub_frame_number"]);
            let words = ["rb_allocation_slot_0_0", "rb_allocation_slot_0_1"];
            let prbs: u32 = words.iter().map(|word| mask(record, word).count_ones()).sum();
            let bits = number(record, "transport_block_size_stream_0");
            demapper.insert(time, (bits, u64::from(prbs)));
        }
    });
    let grants = dcis(&log);
    assert_eq!(blocks.len(), 4);
    let harqs: BTreeMap<u64, u64> = blocks.iter().map(|(time, block)| (*time, block[3])).collect();
    let mut with_a_dci = 0;
    for (time, [bytes, prbs, layers, harq, ndi, rv, crc, mcs]) in blocks {
        assert_eq!(demapper[&time], (8 * bytes, prbs), "the demapper had that block at {time}");
        // Four layers with one block mean transmit diversity: format 1A, without 256QAM.
        let table = if layers == 4 { lte::McsTable::Qam64 } else { lte::McsTable::Qam256 };
        assert_eq!(table.tbs(mcs as u8, prbs as u16, 1).unwrap().0, 8 * bytes);
        let Some(&dci) = grants.get(&time) else { continue };
        let field = |from: u32, width: u32| dci << from >> (64 - width);
        let riv = field(2, 13);
        assert_eq!((field(0, 1), riv / 100 + 1), (1, prbs), "format 1A with that many PRBs");
        assert_eq!([field(15, 5), field(20, 3), field(23, 1), field(24, 2)], [mcs, harq, ndi, rv]);
        assert_eq!(crc, 1, "its checksum was right, for the MAC layer had it");
        with_a_dci += 1;
    }
    assert_eq!(with_a_dci, 2);
    log.visit(0xB063, |decoded| {
        let block = &decoded.fields.records("blocks")[0];
        assert_eq!((subframe(block, &["sfn", "sub_fn"]), number(block, "dl_tbs_bytes")), (8163, 18));
        assert_eq!(
            Some(&number(block, "harq_id")),
            harqs.get(&8163),
            "the process that the assignment names"
        );
    });
}

fn mask(record: &Record<'_>, name: &str) -> u64 {
    match record.get(name) {
        Some(Value::Mask(bits, _) | Value::Unsigned(bits)) => *bits,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn the_pixel_5_reports_its_control_channels_consistently() {
    let Some(log) = Log::open("lte_pixel5_2023_a.qmdl") else { return };
    let sent: Vec<u64> =
        log.rows(0xB13C, "records", &["current_sfn_sf"], []).into_iter().map(|(time, [])| time).collect();
    log.visit(0xB14D, |decoded| {
        let report = &decoded.fields;
        let measured = subframe(report, &["start_system_frame_number", "start_system_sub_frame_number"]);
        let reported = subframe(report, &["ul_frame_number", "ul_subframe_number"]);
        assert_eq!(reported - measured, 4);
        // The log ended before the modem logged the transmission of the last report.
        let is_last = sent.iter().all(|at| *at < reported);
        assert!(is_last || sent.contains(&reported), "a report at {reported} was sent: {sent:?}");
        assert_eq!(number(report, "number_of_subbands"), 13, "20 MHz");
        assert_eq!(number(report, "alt_cqi_table_data"), 1, "256QAM");
    });
    let found =
        log.rows(0xB16B, "records", &["pdcch_timing_sfn", "pdcch_timing_sub_fn"], ["num_pdcch_results"]);
    assert_eq!(found.len(), 25);
    assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "subframes rise");
    log.visit(0xB16B, |decoded| {
        for record in decoded.fields.records("records") {
            for dci in record.records("pdcch_info") {
                // Lengths of formats 0 and 2 on 20 MHz with four antennas, including the checksums.
                let is_downlink = dci.get("new_dl_tx") == Some(&Value::Name("True"));
                let bits = number(dci, "payload_size");
                assert_eq!(bits, if is_downlink { 54 + 16 } else { 28 + 16 });
                assert_eq!(number(dci, "num_dl_trblks"), u64::from(is_downlink));
            }
        }
    });
    let blocks = log.rows(0xB173, "records", &["frame_num", "subframe_num"], []);
    let of_blocks =
        blocks.iter().filter(|(time, _)| found.iter().any(|(at, [dcis])| at == time && *dcis == 1));
    assert_eq!(of_blocks.count(), 2, "of the four blocks two are in the span that the report is of");
    log.visit(0xB066, |decoded| {
        let parts = decoded.fields.records("subpackets");
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].records("samples").len(), 40);
    });
}

#[test]
fn what_the_iphone_sent_and_was_granted_fits_together() {
    let Some(log) = Log::open("lte_att_iphone_2016_a.mi2log") else { return };
    let shared: BTreeMap<u64, [u64; 2]> = log
        .rows(0xB139, "records", &["current_sfn_sf"], ["start_rb_slot_0", "num_of_rb"])
        .into_iter()
        .collect();
    let control: Vec<u64> =
        log.rows(0xB13C, "records", &["current_sfn_sf"], []).into_iter().map(|(time, [])| time).collect();
    let (mut on_shared, mut on_control) = (0, 0);
    log.visit(0xB16D, |decoded| {
        for record in decoded.fields.records("records") {
            let time = subframe(record, &["sfn", "sub_fn"]);
            if number(record, "channel") == 0 {
                on_control += usize::from(control.contains(&time));
            } else if let Some(expected) = shared.get(&time) {
                assert_eq!([number(record, "start_rb"), number(record, "num_rbs")], *expected);
                on_shared += 1;
            }
        }
    });
    println!("transmissions on both sides: {on_shared} shared, {on_control} control");
    assert!(on_shared >= 10 && on_control >= 12, "{on_shared}, {on_control}");

    let mut grants = BTreeMap::new();
    log.visit(0xB130, |decoded| {
        let start = subframe(&decoded.fields, &["system_frame_number", "subframe_number"]);
        for record in decoded.fields.records("records") {
            for dci in record.records("hypotheses") {
                if dci.get("prune_status") == Some(&Value::Name("SUCCESS_DCI0")) {
                    let Some(Value::Bytes(payload)) = dci.get("payload") else { panic!("there is a DCI") };
                    let word = u64::from_le_bytes((*payload).try_into().unwrap());
                    grants.insert(start + number(record, "subframe_offset"), word);
                }
            }
        }
    });
    let mut agree = 0;
    log.visit(0xB16C, |decoded| {
        for record in decoded.fields.records("records") {
            let dci = grants.get(&subframe(record, &["sfn", "sub_fn"]));
            assert_eq!(dci.is_some(), number(record, "ul_grant_present") == 1);
            let Some(dci) = dci else { continue };
            let field = |from: u32, width: u32| dci << from >> (64 - width);
            // Fields of format 0 on 50 PRBs.
            let expected = [field(2, 11), field(13, 5), field(18, 1)];
            assert_eq!([number(record, "riv"), number(record, "mcs"), number(record, "ndi")], expected);
            agree += 1;
        }
    });
    assert_eq!(agree, 4);

    let blocks =
        log.rows(0xB173, "records", &["frame_num", "subframe_num"], ["tb_size", "harq_id", "crc_result"]);
    let mut decoded_blocks = 0;
    log.visit(0xB132, |decoded| {
        let start = subframe(&decoded.fields, &["starting_system_frame_number", "starting_subframe_number"]);
        for record in decoded.fields.records("records") {
            let time = start + number(record, "subframe_offset");
            let [bits, crc] =
                ["code_block_size_plus", "transport_block_crc"].map(|name| number(record, name));
            let expected = [bits / 8, number(record, "harq_id"), crc];
            assert!(blocks.contains(&(time, expected)), "{time}: {expected:?} is none of {blocks:?}");
            decoded_blocks += 1;
        }
    });
    assert_eq!(decoded_blocks, 7);
}

/// The real number of a field.
fn real(record: &Record<'_>, name: &str) -> f64 {
    match record.get(name) {
        Some(Value::Real(number)) => *number,
        other => panic!("{name}: {other:?}"),
    }
}

/// The cells of the subpackets of this version of 0xB193, each visited with its subpacket.
fn cells(log: &Log, version: u64, mut each: impl FnMut(&Record<'_>, &Record<'_>)) {
    log.visit(0xB193, |decoded| {
        for subpacket in decoded.fields.records("subpackets") {
            if subpacket.get("subpacket_version") == Some(&Value::Unsigned(version)) {
                subpacket.records("cells").iter().for_each(|cell| each(subpacket, cell));
            }
        }
    });
}

#[test]
fn the_cell_of_b193_subpacket_48_is_the_reference_s_and_its_powers_agree() {
    let Some(log) = Log::open("lte_pixel5_2023_a.qmdl") else { return };
    // Frame number of each packet according to another decoder.
    let frames = [808, 812, 816, 820, 828, 832, 836];
    let mut seen = vec![];
    cells(&log, 48, |subpacket, cell| {
        assert_eq!(number(subpacket, "e_arfcn"), 850);
        assert_eq!(number(cell, "physical_cell_id"), 252);
        assert_eq!(number(cell, "is_serving_cell"), 1);
        assert_eq!(number(cell, "current_subframe_number"), 4);
        seen.push(number(cell, "current_sfn"));

        // A carrier of 20 MHz has 100 resource blocks: the factor is exactly 20 dB.
        for rx in [0, 1] {
            let [rsrp, rsrq, rssi] =
                ["rsrp", "rsrq", "rssi"].map(|name| real(cell, &format!("{name}_rx_{rx}")));
            let off = rsrq - (rsrp - rssi + 20.0);
            assert!(off.abs() <= 0.0625, "RSRQ is RSRP less RSSI, times 100: {rsrq} {rsrp} {rssi}");
        }
        for name in ["rsrp", "rsrq", "rssi"] {
            let best = real(cell, &format!("{name}_rx_0")).max(real(cell, &format!("{name}_rx_1")));
            assert_eq!(real(cell, name), best, "{name} of all antennas is that of the best");
        }
        assert_eq!(real(cell, "post_ic_rsrq"), real(cell, "rsrq"), "nothing was cancelled");
        let smoothed = real(cell, "filtered_rsrp");
        assert!((smoothed - real(cell, "rsrp")).abs() < 2.0, "the phone lies still: {smoothed}");
        for name in ["ftl_snr_rx_0", "ftl_snr_rx_1", "projected_sir"] {
            assert!((5.0..15.0).contains(&real(cell, name)), "{name} is like the RSRQ of -12 dB allows");
        }
    });
    assert_eq!(seen, frames, "the frames are those of the reference");
}

#[test]
fn the_end_of_b193_subpacket_36_repeats_the_rsrq_after_a_likely_sir() {
    let Some(log) = Log::open("lte_bler_2019.mi2log") else { return };
    let mut count = 0;
    cells(&log, 36, |_, cell| {
        assert_eq!(real(cell, "post_ic_rsrq"), real(cell, "rsrq"), "nothing was cancelled");
        let sir = real(cell, "projected_sir");
        assert!((-40.0..40.0).contains(&sir), "a ratio that can be: {sir} dB");
        count += 1;
    });
    assert!(count > 2_500, "there were cells: {count}");
}

#[test]
fn requests_of_0xb195_are_what_the_answers_beside_them_are_about() {
    let Some(folder) = recordings() else { return };
    let (mut pairs, mut near) = (0, 0);
    for path in logs(&folder) {
        let log = Log { bytes: std::fs::read(&path).unwrap() };
        let mut powers = BTreeMap::new();
        log.visit(0xB179, |decoded| {
            for cell in decoded.fields.records("neighbor_cells") {
                powers.insert(number(cell, "physical_cell_id"), real(cell, "rsrp_dbm"));
            }
        });
        log.visit(0xB195, |decoded| {
            let [request, answer] = decoded.fields.records("subpackets") else { panic!("{decoded:?}") };
            let cells = |record: &Record<'_>, part| {
                let mut cells: Vec<u64> =
                    record.records(part).iter().map(|cell| number(cell, "physical_cell_id")).collect();
                cells.sort_unstable();
                cells
            };
            assert_eq!(number(request, "e_arfcn"), number(answer, "e_arfcn"));
            assert_eq!(cells(request, "wanted_cells"), cells(answer, "neighbor_cells"));
            if answer.get("serving_cell_index").is_some() {
                assert_eq!(request.get("serving_cell_index"), answer.get("serving_cell_index"));
            } else {
                for cell in answer.records("neighbor_cells") {
                    let power = powers[&number(cell, "physical_cell_id")];
                    assert!(
                        (real(cell, "inst_measured_rsrp") - power).abs() < 5.0,
                        "{cell:?} has {power} dBm"
                    );
                    near += 1;
                }
            }
            pairs += 1;
        });
    }
    assert!(pairs > 250 && near > 3, "{pairs} packets, {near} cells of the version that we worked out");
}

/// Packets of some codes in the order of a log, with their time in milliseconds and their content.
fn in_order(log: &Log, codes: &[u16], mut each: impl FnMut(u16, f64, &Decoded<'_>)) {
    Format::Hdlc.visit(&log.bytes, |_, item| {
        if let Item::Message(Message::Log(packet)) = item
            && codes.contains(&packet.code.0)
        {
            each(packet.code.0, packet.stamp.nanos() as f64 * 1e-6, &log::read(&packet).unwrap());
        }
    });
}

#[test]
fn frames_counts_and_clocks_of_0xb133_and_0xb1dc_go_on_as_the_time_does() {
    let Some(log) = Log::open("lte_pixel5_2023_a.qmdl") else { return };
    const ROUND_MS: f64 = 10_240.0;
    let (mut last, mut pairs) = (BTreeMap::new(), [0, 0]);
    in_order(&log, &[0xB133, 0xB1DC], |code, at_ms, decoded| {
        let read = |name| number(&decoded.fields, name) as f64;
        let is_short = code == 0xB133;
        let frame_ms =
            10.0 * read("system_frame_number") + if is_short { read("sub_frame_number") } else { 0.0 };
        let count = read(if is_short { "count" } else { "clock_32khz" });
        if let Some((before_ms, before, counted)) = last.insert(code, (at_ms, frame_ms, count)) {
            let (passed_ms, advanced_ms): (f64, f64) =
                (at_ms - before_ms, (frame_ms - before).rem_euclid(ROUND_MS));
            let late_ms = if is_short { 3.0 } else { 20.0 };
            assert!(
                (advanced_ms - passed_ms).abs() < late_ms,
                "0x{code:X}: {advanced_ms} ms in {passed_ms} ms"
            );
            if is_short {
                assert!((1.0..=2.0).contains(&(count - counted)), "from {counted} to {count}");
            } else {
                assert!(((count - counted) / 32.768 - passed_ms).abs() < 0.1, "from {counted} to {count}");
            }
            pairs[usize::from(is_short)] += 1;
        }
    });
    assert_eq!(pairs, [68, 94]);
}

#[test]
fn records_of_0xb12a_count_subframes() {
    let mut pairs = 0;
    for name in ["lte_att_iphone_2016_a.mi2log", "lte_pixel5_2023_a.qmdl"] {
        let Some(log) = Log::open(name) else { return };
        log.visit(0xB12A, |decoded| {
            let records = decoded.fields.records("records");
            assert_eq!(records.len(), 20);
            for pair in records.windows(2) {
                let [before, after] = [0, 1].map(|at| number(&pair[at], "count"));
                // In unused records, all fields are zero.
                if after > before {
                    let [from, to] = [0, 1].map(|at| number(&pair[at], "sub_frame_number"));
                    assert_eq!((from + after - before) % 10, to, "{name}: from {before} to {after}");
                    pairs += 1;
                }
            }
        });
    }
    assert!(pairs > 500, "{pairs}");
}

#[test]
fn the_cell_of_0xb18f_is_that_of_0xb179() {
    let mut near = 0;
    for name in ["lte_att_iphone_2016_a.mi2log", "lte_pixel5_2023_a.qmdl"] {
        let Some(log) = Log::open(name) else { return };
        let mut last: Option<(f64, u64, u64, f64)> = None;
        in_order(&log, &[0xB179, 0xB18F], |code, at_ms, decoded| {
            let fields = &decoded.fields;
            let power = real(fields, if code == 0xB179 { "rsrp_dbm" } else { "rsrp" });
            let cell = number(fields, "serving_physical_cell_id");
            let said = (at_ms, number(fields, "e_arfcn"), cell, power);
            if code == 0xB179 {
                last = Some(said);
            } else if let Some((before_ms, channel, cell, power)) = last.filter(|last| at_ms - last.0 < 60.0)
            {
                assert_eq!((said.1, said.2), (channel, cell), "{name} at {before_ms}");
                assert!((said.3 - power).abs() < 0.7, "{name}: {} dBm, {power} dBm in 0xB179", said.3);
                near += 1;
            }
        });
    }
    assert!(near >= 6, "{near}");
}

#[test]
fn bearers_of_0xb0e4_and_procedures_of_0xb0e6_are_those_of_the_packets_beside_them() {
    let (mut bearers, mut procedures) = (0, 0);
    for name in ["lte_att_iphone_2016_a.mi2log", "lte_qmdl_example_2015.qmdl"] {
        let Some(log) = Log::open(name) else { return };
        let (mut bearer, mut procedure) = (None, None);
        in_order(&log, &[0xB0E2, 0xB0E3, 0xB0E4, 0xB0E5, 0xB0E6], |code, at_ms, decoded| {
            let read = |name| number(&decoded.fields, name);
            match code {
                0xB0E4 => bearer = Some((at_ms, read("eps_bearer_id"), read("eps_bearer_state"))),
                0xB0E5 => {
                    if let Some((before_ms, id, state)) = bearer.filter(|bearer| at_ms - bearer.0 < 5.0) {
                        let said = (read("eps_bearer_id"), read("eps_bearer_state"));
                        assert_eq!(said, (id, state), "{name} at {before_ms}");
                        bearers += 1;
                    }
                }
                0xB0E6 => procedure = Some((at_ms, read("procedure_transaction_id"))),
                // The first bytes of a message are bearer and protocol, procedure, and type.
                _ => {
                    let Some(Value::Bytes(message)) = decoded.fields.get("msg") else {
                        panic!("{decoded:?}")
                    };
                    if let Some((_, id)) = procedure.filter(|procedure| at_ms - procedure.0 < 1_000.0)
                        && message[1] > 0
                    {
                        assert_eq!(u64::from(message[1]), id, "{name}");
                        procedures += 1;
                    }
                }
            }
        });
    }
    assert_eq!((bearers, procedures), (4, 6), "bearers and procedures");
}

#[test]
fn channels_of_0xb0c8_are_those_of_the_serving_cell() {
    let mut packets = 0;
    for name in ["lte_qmdl_example_2015.qmdl", "multi_rat_cmcc_2015.mi2log"] {
        let Some(log) = Log::open(name) else { return };
        let mut serving = None;
        in_order(&log, &[0xB0C0, 0xB0C8], |code, at_ms, decoded| match code {
            0xB0C0 => serving = Some(number(&decoded.fields, "freq")),
            _ => {
                let channel = number(&decoded.fields, "e_arfcn");
                assert_eq!(Some(channel), serving, "{name} at {at_ms}");
                packets += 1;
            }
        });
    }
    assert_eq!(packets, 65);
}

//! Tests of the layout tables: every packet of the recorded logs is decoded and compared with another decoder's output.
//! Skipped if the recordings are not available.

use crate::recordings_folder;
use crate::rlc_headers;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use airpace_diag::layout::{Cell, Pick, Record, Unreadable, Value, Verified};
use airpace_diag::mac::{self, Direction, Element};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogPacket, Message, log};
use flate2::read::GzDecoder;
use recordings_folder::{logs, recordings};
use rlc_headers::{rlc_of_ours, rlc_of_the_reference};
use serde_json::{Map, Value as Json};

/// The names that the reference (another decoder) uses for the packets of each code.
const REFERENCE_TYPES: &[(u16, &str)] = &[
    (0x7130, "UMTS_NAS_GMM_State"),
    (0x7131, "UMTS_NAS_MM_State"),
    (0x713A, "UMTS_NAS_OTA_Packet"),
    (0xB063, "LTE_MAC_DL_Transport_Block"),
    (0xB064, "LTE_MAC_UL_Transport_Block"),
    (0xB066, "LTE_MAC_UL_Buffer_Status_Internal"),
    (0xB067, "LTE_MAC_UL_Tx_Statistics"),
    (0xB082, "LTE_RLC_DL_AM_All_PDU"),
    (0xB087, "LTE_RLC_DL_Stats"),
    (0xB092, "LTE_RLC_UL_AM_All_PDU"),
    (0xB097, "LTE_RLC_UL_Stats"),
    (0xB0A3, "LTE_PDCP_DL_Cipher_Data_PDU"),
    (0xB0A4, "LTE_PDCP_DL_Stats"),
    (0xB0A5, "LTE_PDCP_DL_SRB_Integrity_Data_PDU"),
    (0xB0B3, "LTE_PDCP_UL_Cipher_Data_PDU"),
    (0xB0B4, "LTE_PDCP_UL_Stats"),
    (0xB0B5, "LTE_PDCP_UL_SRB_Integrity_Data_PDU"),
    (0xB0C0, "LTE_RRC_OTA_Packet"),
    (0xB0C1, "LTE_RRC_MIB_Packet"),
    (0xB0C2, "LTE_RRC_Serv_Cell_Info"),
    (0xB0E2, "LTE_NAS_ESM_OTA_Incoming_Packet"),
    (0xB0E3, "LTE_NAS_ESM_OTA_Outgoing_Packet"),
    (0xB0E5, "LTE_NAS_ESM_State"),
    (0xB0EC, "LTE_NAS_EMM_OTA_Incoming_Packet"),
    (0xB0ED, "LTE_NAS_EMM_OTA_Outgoing_Packet"),
    (0xB0EE, "LTE_NAS_EMM_State"),
    (0xB126, "LTE_PHY_PDSCH_Packet"),
    (0xB130, "LTE_PHY_PDCCH_Decoding_Result"),
    (0xB132, "LTE_PHY_PDSCH_Decoding_Result"),
    (0xB139, "LTE_PHY_PUSCH_Tx_Report"),
    (0xB13C, "LTE_PHY_PUCCH_Tx_Report"),
    (0xB14D, "LTE_PHY_PUCCH_CSF"),
    (0xB14E, "LTE_PHY_PUSCH_CSF"),
    (0xB16B, "LTE_PHY_PDCCH_PHICH_Indication_Report"),
    (0xB16E, "LTE_PHY_PUSCH_Power_Control"),
    (0xB16F, "LTE_PHY_PUCCH_Power_Control"),
    (0xB173, "LTE_PHY_PDSCH_Stat_Indication"),
    (0xB179, "LTE_PHY_Connected_Mode_Intra_Freq_Meas"),
    (0xB18A, "LTE_PHY_RLM_Report"),
    (0xB193, "LTE_PHY_Serv_Cell_Measurement"),
    (0xB195, "LTE_PHY_Connected_Mode_Neighbor_Measurement"),
    (0xB198, "LTE_RRC_CDRX_Events_Info"),
    (0xB244, "LTE_NB1_ML1_GM_DCI_Info"),
    (0xB245, "LTE_NB1_ML1_GM_TX_Report"),
    (0xB246, "LTE_NB1_ML1_GM_PDSCH_STAT_Ind"),
    (0xB821, "5G_NR_RRC_OTA_Packet"),
];

/// Versions in the logs whose layout is not public and could not be verified; they must have no layout.
const UNKNOWN: &[(u16, &str)] = &[(0xB087, "49"), (0xB0A4, "51"), (0xB132, "162")];

/// Versions in the logs whose layout this project derived itself; `derived.rs` compares them with other codes.
const DERIVED: &[(u16, &str)] = &[
    (0xB066, "48"),
    (0xB0C8, "1"),
    (0xB0C8, "2"),
    (0xB0E4, "1"),
    (0xB0E6, "1"),
    (0xB12A, "42"),
    (0xB12A, "161"),
    (0xB130, "163"),
    (0xB132, "42"),
    (0xB133, "161"),
    (0xB139, "161"),
    (0xB13C, "161"),
    (0xB14D, "162"),
    (0xB16B, "48"),
    (0xB16C, "7"),
    (0xB16D, "8"),
    (0xB173, "48"),
    (0xB18F, "2"),
    (0xB18F, "48"),
    // Version 1 contains subpacket version 48.
    (0xB193, "1"),
    // Version 1 contains requests, and subpacket version 40.
    (0xB195, "1"),
    (0xB1DC, "48"),
];

/// Fields whose names in the layouts differ from the reference's names in lower case.
const RENAMED: &[(u16, &str, &str)] = &[
    (0xB082, "rlcdl_pdus", "pdus"),
    (0xB092, "rlcul_pdus", "pdus"),
    (0xB0A3, "pdcpdl_ciph_data", "pdus"),
    (0xB0B3, "pdcpul_ciph_data", "pdus"),
    (0xB0C0, "msg_type", "channel"),
    (0xB195, "deplexing_mode", "duplex_mode"),
    (0xB130, "hypothesis", "hypotheses"),
    (0xB13C, "cyclic_shift_seq", "cyclic_shift_seq_per_symbol"),
    (0xB18A, "in_sync_bler", "in_sync_bler_pct"),
    (0xB18A, "out_of_sync_bler", "out_of_sync_bler_pct"),
];

/// Fields that the reference computes from other fields, takes from outside the packet, or reads from bits that no
/// layout table covers.
const NOT_OURS: &[(u16, &str)] = &[
    (0x713A, "msg_type"),
    (0xB063, "area_id"),
    (0xB066, "total_bytes"),
    (0xB0A5, "msg_type"),
    (0xB0B5, "msg_type"),
    (0xB0E2, "msg_type"),
    (0xB0E3, "msg_type"),
    (0xB0EC, "msg_type"),
    (0xB0ED, "msg_type"),
    (0xB0EE, "emm_substate"),
    (0xB0EE, "plmn"),
    (0xB0EE, "guti_plmn"),
    (0xB130, "sf"),
    (0xB132, "effective_code_rate"),
    (0xB132, "num_code_block_plus"),
    (0xB139, "ack_payload"),
    (0xB139, "num_rb_cluster1"),
    (0xB139, "ri_payload"),
    (0xB13C, "ack_nak_index"),
    (0xB13C, "ack_payload"),
    (0xB14D, "pucch_reporting_mode"),
    (0xB14E, "csi_meas_set_index"),
    (0xB14E, "num_csirs_ports"),
    (0xB14E, "pusch_reporting_mode"),
    (0xB16B, "sps_grant_type"),
    (0xB198, "internal_field_mask"),
    (0xB821, "unknown"),
    (0xB821, "msg_type"),
];

/// Fields that the reference reads from the header of an RLC PDU, in addition to the PDU's own fields. The list also
/// contains copies of the bearer's fields.
const RLC_HEADER: &[&str] = &[
    "cpt",
    "d_c_lookahead",
    "e",
    "fi",
    "lsf",
    "p",
    "pdu_type",
    "rb_cfg_idx",
    "rf",
    "rlc_ctrl_nack",
    "rlc_data_li",
    "sn",
    "so",
];

/// Whether the reference decodes a field incorrectly.
fn is_wrong(code: u16, version: &str, name: &str, ours: &Record<'_>) -> bool {
    match (code, version, name) {
        // The reference reads one byte instead of four.
        (0xB0C0, _, "sib_mask_in_si") => true,
        // The reference reads the preceding channel number with 16 bits instead of 32.
        (0xB0C0, "26", "sysframenum_subframenum") => true,
        // The reference reads the header of another version.
        (0xB063, "49", "num_subpkt") => true,
        // The reference prints some values as numbers.
        (0xB16B, "5", "phich_value" | "phich_1_value") => true,
        // The reference uses the first antenna's value as the value of all antennas.
        (0xB193, _, "rsrq") => ours.get("subpacket_version") == Some(&Value::Unsigned(36)),
        // The reference prepends a byte to a message that is logged without this byte.
        (0xB821, _, "msg") => ours.get("pdu_number") == Some(&Value::Unsigned(10)),
        _ => false,
    }
}

/// Whether this number marks an unknown value in the packet.
fn is_unset(code: u16, name: &str, number: Option<u64>) -> bool {
    match (code, name) {
        (0xB066, "sub_fn") => number == Some(15),
        (0xB066, "sys_fn") => number == Some(1_023),
        (0xB821, "physical_cell_id" | "freq" | "sysframenum_subframenum") => number == Some(0),
        _ => false,
    }
}

/// Converts a key of the reference to a field name of the layouts: lower case, with one underscore between words.
fn our_name(code: u16, key: &str) -> String {
    let mut name = String::new();
    for c in key.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    let renamed = RENAMED.iter().find(|(of, theirs, _)| *of == code && *theirs == name);
    renamed.map_or(name, |(_, _, ours)| ours).to_owned()
}

/// Differences by code, version and name: the number of differences, and the first difference.
#[derive(Default)]
struct Differences {
    compared: BTreeMap<u16, usize>,
    /// Number of compared RLC headers by code.
    rlc: BTreeMap<u16, usize>,
    found: BTreeMap<(u16, String, String), (usize, String)>,
}

impl Differences {
    /// Compares the header of an RLC PDU.
    fn compare_rlc(&mut self, code: u16, version: &str, ours: &Record<'_>, theirs: &Map<String, Json>) {
        let expected = rlc_of_the_reference(theirs);
        let said = match ours.get("rlc") {
            Some(Value::Record(rlc)) => rlc_of_ours(rlc),
            _ => BTreeMap::new(),
        };
        *self.compared.entry(code).or_default() += expected.len();
        *self.rlc.entry(code).or_default() += expected.len();
        for name in expected.keys().chain(said.keys()) {
            if expected.get(name) != said.get(name) {
                let text = format!("{ours:?} against {theirs:?}");
                self.found.entry((code, version.to_owned(), name.clone())).or_insert((0, text)).0 += 1;
            }
        }
    }

    /// Compares our decoding with the reference's.
    fn compare(&mut self, code: u16, version: &str, ours: &Record<'_>, theirs: &Map<String, Json>) {
        if (code == 0xB082 || code == 0xB092) && theirs.contains_key("pdu_bytes") {
            self.compare_rlc(code, version, ours, theirs);
        }
        for (key, expected) in theirs {
            let name = our_name(code, key);
            if ["log_msg_len", "type_id", "timestamp"].contains(&&**key) || NOT_OURS.contains(&(code, &name))
            {
                continue;
            }
            let is_rlc = code == 0xB082 || code == 0xB092;
            if is_rlc && RLC_HEADER.contains(&&*name) {
                continue;
            }
            if is_wrong(code, version, &name, ours) {
                continue;
            }
            let differs = match (find(ours, &name), expected) {
                (None, _) if name == "sysframenum_subframenum" => frame(ours) != expected.as_u64(),
                // The reference prints the raw numbers that mark unknown values.
                (Some(Value::Absent), Json::Number(number)) => !is_unset(code, &name, number.as_u64()),
                (None, Json::Object(one)) if name == "ignored" => {
                    // The reference keeps only the last record.
                    let last = ours.records("records").last().expect("there are records");
                    self.compare(code, version, last, one);
                    false
                }
                (Some(Value::Records(records)), Json::Array(list)) => {
                    for (record, expected) in records.iter().zip(list) {
                        self.compare(code, version, record, expected.as_object().unwrap());
                    }
                    // The reference also prints unused space, and omits subpackets that it does not support.
                    let has_room = name == "phich" || name == "pdcch_info";
                    let is_unknown = records.len() == 1 && list.is_empty() && name == "subpackets";
                    !(records.len() == list.len() || has_room && records.len() < list.len() || is_unknown)
                }
                (Some(Value::Record(record)), Json::Object(expected)) => {
                    self.compare(code, version, record, expected);
                    false
                }
                (Some(Value::Bytes(bytes)), Json::Array(list)) if name == "mac_hdr_ce" => {
                    *self.compared.entry(code).or_default() += list.len();
                    !has_the_same_elements(code, bytes, list)
                }
                // The reference drops the fraction.
                (Some(Value::Real(number)), expected) if name == "projected_sir" => {
                    expected.as_i64() != Some(number.trunc() as i64)
                }
                (Some(value), expected) => {
                    *self.compared.entry(code).or_default() += 1;
                    !says_the_same(value, expected)
                }
                (None, _) if ours.get("unread").is_some() => false,
                (None, _) => true,
            };
            if differs {
                let text = format!("{:?} against {expected}", find(ours, &name));
                self.found.entry((code, version.to_owned(), name)).or_insert((0, text)).0 += 1;
            }
        }
    }
}

/// The field with this name in our decoding. The reference contains the first of several cells instead of the list of
/// cells.
fn find<'r, 'a>(ours: &'r Record<'a>, name: &str) -> Option<&'r Value<'a>> {
    let of_cell = || ours.records("cells").first()?.get(name);
    // The reference contains the only PDU instead of the enclosing lists.
    let of_pdu = || ours.records("subpackets").first()?.records("pdus").first()?.get(name);
    ours.get(name).or_else(of_cell).or_else(of_pdu)
}

/// Frame and subframe in one number, with the flags, as in the reference.
fn frame(ours: &Record<'_>) -> Option<u64> {
    let number = |name| match ours.get(name)? {
        Value::Unsigned(number) => Some(*number),
        // An absent value means that the modem does not know the frame; the reference has 0.
        Value::Absent => Some(0),
        _ => None,
    };
    let flags = number("frame_flags")?;
    Some(flags << 14 | number("system_frame_number")? << 4 | number("subframe_number")?)
}

fn says_the_same(value: &Value<'_>, expected: &Json) -> bool {
    match (value, expected) {
        (Value::Unsigned(number) | Value::Mask(number, _), Json::String(text)) => {
            let hexadecimal = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let binary = (text.len() == 16).then(|| u64::from_str_radix(text, 2).ok()).flatten();
            hexadecimal == Some(*number)
                || binary == Some(*number)
                || *text == number.to_string()
                // The reference does not have the value in its list.
                || text == "(MI)Unknown"
                || text.ends_with(&format!(" = {number}"))
                // The reference prints a name for a count of 0.
                || (text == "OFF" && *number == 0)
        }
        (Value::Unsigned(number) | Value::Mask(number, _), expected) => expected.as_u64() == Some(*number),
        (Value::Signed(number), expected) => expected.as_i64() == Some(*number),
        // The reference does not have the value in its list, or prints the number of the value.
        (Value::Absent, Json::String(text)) => {
            ["", "Not present", "N/A", "(MI)Unknown"].contains(&text.as_str()) || text == "GMM Substate = 12"
        }
        // The reference lists the flags that it supports in a sentence.
        (Value::Flags(bits, names), Json::String(text)) => {
            let said: Vec<&str> = text.split(['(', ')']).filter(|word| word.starts_with("0x")).collect();
            let known = names.iter().filter(|(bit, _)| bits >> bit & 1 == 1);
            said.iter().eq(known.map(|(_, name)| name.split(' ').next().unwrap()).collect::<Vec<_>>().iter())
        }
        (Value::Flags(bits, _), expected) => expected.as_u64() == Some(*bits),
        (Value::Real(number), Json::String(text)) => {
            let units = [" MHz", " kHz", " bit", " antennas"];
            let text = units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
            text.parse().ok() == Some(*number)
        }
        // The reference computes with 32-bit floating-point numbers.
        (Value::Real(number), expected) => {
            expected.as_f64().is_some_and(|expected| (expected - number).abs() <= number.abs() * 1e-6 + 1e-6)
        }
        // The fourth type is not in the reference's list.
        (Value::Name("RX1" | "Type 4, Wideband CQI Feedback"), Json::String(text)) => text == "(MI)Unknown",
        (Value::Name(name), Json::String(expected)) => {
            let channel = expected.strip_prefix("LTE-RRC_").map(|channel| channel.replace('_', "-"));
            name == expected || channel.as_deref() == Some(name)
        }
        // Names with a unit, such as "2 antennas", and plain numbers, such as "10" (MHz).
        (Value::Name(name), expected) => {
            name.split(' ').next().and_then(|number| number.parse().ok()) == expected.as_u64()
        }
        (Value::Bytes(bytes), Json::String(expected)) => {
            let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            expected.trim_start_matches("0x") == text
        }
        (Value::Bytes(bytes), Json::Array(list)) => {
            let list = list.iter().map(|one| one.as_object()?.values().next()?.as_u64());
            list.eq(bytes.iter().map(|byte| Some(u64::from(*byte))))
        }
        _ => false,
    }
}

/// Whether a MAC header has the subheaders and control elements of the reference.
fn has_the_same_elements(code: u16, bytes: &[u8], list: &[Json]) -> bool {
    let direction = if code == 0xB063 { Direction::Down } else { Direction::Up };
    let mut list = list.iter();
    let mut is_same = true;
    let result = mac::visit(direction, bytes, |subheader| {
        let Some(theirs) = list.next() else {
            is_same = false;
            return;
        };
        let number = |key: &str| theirs[key].as_u64();
        is_same &= number("Header Field").map(|field| field & 31) == Some(u64::from(subheader.lcid));
        if let Some(length) = subheader.length {
            is_same &= number("Len") == Some(u64::from(length));
        }
        is_same &= match subheader.element {
            Element::ShortBsr { group, index, .. } => {
                number(&format!("BSR LCG {group}")) == Some(u64::from(index))
            }
            Element::LongBsr(groups) => groups
                .iter()
                .enumerate()
                .all(|(group, index)| number(&format!("BSR LCG {group}")) == Some(u64::from(*index))),
            Element::PowerHeadroom(index) => number("PHR Ind") == Some(u64::from(index)),
            Element::TimingAdvance { tag, command } => {
                number("TAG Id") == Some(u64::from(tag)) && number("TA Command") == Some(u64::from(command))
            }
            _ => true,
        };
    });
    result.is_ok() && is_same && list.next().is_none()
}

/// Visits all log packets of a recorded log.
fn visit(bytes: &[u8], mut visit: impl FnMut(LogPacket<'_>)) {
    Format::Hdlc.visit(bytes, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            visit(packet);
        }
    });
}

#[test]
fn every_packet_fits_its_layout_and_agrees_with_the_reference() {
    let Some(folder) = recordings() else { return };
    let mut differences = Differences::default();
    let (mut unknown, mut derived) = (BTreeSet::new(), BTreeSet::new());
    for path in logs(&folder) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut text = String::new();
        let file = std::fs::File::open(folder.join(format!("ref/{name}.mobileinsight.jsonl.gz"))).unwrap();
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
        let mut theirs: BTreeMap<String, Vec<Map<String, Json>>> = BTreeMap::new();
        for line in text.lines() {
            let Json::Object(object) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
            theirs.entry(object["type_id"].as_str().unwrap().to_owned()).or_default().push(object);
        }
        let bytes = std::fs::read(&path).unwrap();
        let mut seen: BTreeMap<u16, usize> = BTreeMap::new();
        visit(&bytes, |packet| {
            let code = packet.code.0;
            let at = seen.entry(code).or_default();
            let kind = REFERENCE_TYPES.iter().find(|(of, _)| *of == code);
            let reference = kind.map(|(_, kind)| &theirs[*kind][*at]);
            *at += 1;
            match log::read(&packet) {
                Ok(decoded) => {
                    let version = decoded.version.to_string();
                    // Compare also the answers that are in the same packets as the requests of 0xB195: the answers have
                    // a public layout.
                    if decoded.verified == Verified::Guess {
                        derived.insert((code, version.clone()));
                    }
                    if decoded.verified == Verified::Guess && code != 0xB195 {
                        return;
                    }
                    let is_known = decoded.verified == Verified::Checked || code == 0xB195;
                    assert!(is_known, "{} {version} has a log", packet.code);
                    if let Some(reference) = reference {
                        differences.compare(code, &version, &decoded.fields, reference);
                    }
                    unknown.extend(decoded.unknown.iter().map(|kind| (code, format!("{kind:?}"))));
                }
                Err(Unreadable::Version(_, version)) => drop(unknown.insert((code, version.to_string()))),
                Err(Unreadable::Code(_)) => {}
                Err(error) => panic!("{name}: {error}: {:02x?}", packet.payload),
            }
        });
    }
    let owned = |list: &[(u16, &str)]| -> BTreeSet<(u16, String)> {
        list.iter().map(|&(code, version)| (code, version.to_owned())).collect()
    };
    assert_eq!(derived, owned(DERIVED), "what we worked out ourselves is said to be so");
    let mut expected = owned(UNKNOWN);
    expected.insert((0xB066, "(10, 5)".to_owned()));
    assert_eq!(unknown, expected, "what nobody has laid out is an error of its own");
    for ((code, version, name), (count, text)) in &differences.found {
        println!("0x{code:04X} version {version}: {name}, {count} times: {text}");
    }
    assert!(differences.found.is_empty(), "everything that the reference says is what we say");
    for (code, kind) in REFERENCE_TYPES {
        assert!(differences.compared.get(code) > Some(&0), "{kind}: something was compared");
    }
    println!("fields compared: {}", differences.compared.values().sum::<usize>());
    println!("of RLC headers: {:?}", differences.rlc);
}

/// Frame numbers agree with the time between packets: a frame lasts ten milliseconds, and frames are counted from 0 to
/// 1,023.
#[test]
fn frames_of_rrc_messages_of_one_cell_go_on_as_the_time_does() {
    /// Time after which the frame number wraps (ms).
    const ROUND: f64 = 10_240.0;
    /// Maximum time between two compared packets: for a longer time, the modem's clock may have been set in between.
    const NEAR_S: f64 = 2.0;
    /// Maximum delay from a frame to the packet about it.
    const LATE_MS: f64 = 100.0;
    let Some(folder) = recordings() else { return };
    let (mut pairs, mut agree, mut flagged) = (0, 0, 0);
    for path in logs(&folder) {
        let mut last = BTreeMap::new();
        visit(&std::fs::read(&path).unwrap(), |packet| {
            if packet.code.0 != 0xB0C0 {
                return;
            }
            let fields = log::read(&packet).unwrap().fields;
            let known = |name| match fields.get(name) {
                Some(Value::Unsigned(number)) => Some(*number),
                Some(Value::Absent) => None,
                other => panic!("{name}: {other:?}"),
            };
            let number = |name| known(name).unwrap_or_else(|| panic!("{name} is known"));
            let (frame, subframe) = match (known("system_frame_number"), known("subframe_number")) {
                (Some(frame), Some(subframe)) => (frame, subframe),
                neither => return assert_eq!(neither, (None, None), "both are known, or none"),
            };
            assert!(frame < 1_024 && subframe < 10, "{path:?}: {frame} {subframe}");
            flagged += usize::from(number("frame_flags") > 0);
            if (frame, subframe) == (0, 0) {
                return;
            }
            let at_ms = (10 * frame + subframe) as f64;
            let cell = (packet.radio, number("physical_cell_id"), number("freq"));
            if let Some((stamp, before_ms)) = last.insert(cell, (packet.stamp, at_ms))
                && let Some(gap_s) = packet.stamp.since(stamp).filter(|gap_s| (0.0..NEAR_S).contains(gap_s))
            {
                let error = (at_ms - before_ms - 1e3 * gap_s + ROUND / 2.0).rem_euclid(ROUND) - ROUND / 2.0;
                pairs += 1;
                agree += usize::from(error.abs() <= LATE_MS);
            }
        });
    }
    println!("{agree} of {pairs} pairs of frames agree with the time between them; {flagged} have flags");
    assert!(pairs > 5_000 && flagged > 5_000, "there were pairs: {pairs}, and flags: {flagged}");
    assert!(agree * 100 >= pairs * 99, "{agree} of {pairs}");
}

#[test]
fn a_pick_reads_what_the_whole_reading_has() {
    let Some(folder) = recordings() else { return };
    let picks: &[(u16, &str, &str, &str)] = &[
        (0xB193, "subpackets", "cells", "rsrp"),
        (0xB173, "records", "transport_blocks", "tb_size"),
        (0xB064, "subpackets", "samples", "grant_bytes"),
        (0xB066, "subpackets", "samples", "sys_fn"),
        (0xB179, "", "neighbor_cells", "rsrp_dbm"),
        (0xB139, "", "records", "num_of_rb"),
        (0xB130, "", "hypotheses", "payload"),
    ];
    let mut rows = BTreeMap::new();
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        visit(&bytes, |packet| {
            let Ok(decoded) = log::read(&packet) else { return };
            let of_code = picks.iter().filter(|(code, ..)| *code == packet.code.0);
            for &(code, outer, inner, field) in of_code {
                let layout = log::code(packet.code).unwrap().layout(decoded.version).unwrap();
                let path = format!("{outer}.{inner}.{field}");
                let Ok(pick) = Pick::new(layout, &[path.trim_start_matches('.')]) else {
                    assert_eq!((code, decoded.version.to_string().as_str()), (0xB130, "43"));
                    continue;
                };
                let whole = std::slice::from_ref(&decoded.fields);
                let around = if outer.is_empty() { whole } else { decoded.fields.records(outer) };
                let mut expected: Vec<Value<'_>> = vec![];
                for record in around.iter().flat_map(|record| record.records(inner)) {
                    expected.push(record.get(field).unwrap().clone());
                }
                let mut picked = vec![];
                pick.visit(packet.payload, |row| {
                    picked.push(match row[0] {
                        Cell::Unsigned(number) => Value::Unsigned(number),
                        Cell::Real(number) => Value::Real(number),
                        Cell::Bytes(bytes) => Value::Bytes(bytes),
                        Cell::Absent => Value::Absent,
                        other => panic!("{other:?}"),
                    });
                })
                .unwrap();
                assert_eq!(picked, expected, "{} {path}", packet.code);
                *rows.entry(code).or_insert(0) += picked.len();
            }
        });
    }
    assert!(picks.iter().all(|(code, ..)| rows[code] > 0), "every pick had rows: {rows:?}");
}

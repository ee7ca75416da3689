//! Runs of bytes in another protocol's format, decoded by that protocol's rules.

use super::field::Names;
use super::read::{Record, Value};
use crate::mac::{self, Answer, BUFFER_SIZES, Direction, Element, MIN_HEADROOM_DB};
use crate::rlc::{self, Item, Pdu};
use crate::rrc;

/// Format of a run of bytes. The decoded content is added next to the bytes. If the bytes cannot be decoded to their end,
/// the position of the error is added instead.
#[derive(Clone, Copy, Debug)]
pub enum Coded {
    /// A [MAC header](crate::mac): a list `mac` of subheaders with their control elements, or `mac_broken_at`, an
    /// offset in bytes. In the downlink, the field `rnti_type` of an enclosing part determines the [kind of
    /// header](mac::Kind): for an RRC message, the list has one element; for random access responses, it contains the
    /// responses; if the kind is unknown, there is no list.
    Mac(Direction),
    /// An [RLC header](crate::rlc): a record `rlc`, or `rlc_broken_at`, an offset in bits. The field with the given
    /// name contains the number of bits of a sequence number.
    RlcAm(&'static str),
    /// An NR RRC message. Adds the type of the message as `message`. The value of the field `channel` of an enclosing
    /// part has one of the given names.
    NrRrc(Names),
}

impl Coded {
    /// Adds the decoded content to the enclosing record. `number` returns the values of other fields.
    pub(super) fn read<'a>(
        self,
        bytes: &'a [u8],
        number: impl Fn(&'static str) -> u64,
        around: &mut Record<'a>,
    ) {
        let (name, value) = match self {
            Coded::Mac(_) if bytes.is_empty() => ("mac", Value::Records(vec![])),
            Coded::Mac(direction) => {
                let read = match direction {
                    Direction::Down => mac::Kind::of_rnti(number(RNTI)),
                    Direction::Up => Some(mac::Kind::Subheaders),
                };
                let records = match read {
                    None => return around.0.push(("mac", Value::Absent)),
                    Some(mac::Kind::Subheaders) => subheaders(direction, bytes),
                    Some(mac::Kind::Answers) => answers(bytes),
                    Some(mac::Kind::Transparent) => Ok(vec![headless("transparent", None)]),
                };
                match records {
                    Ok(records) => ("mac", Value::Records(records)),
                    Err(broken) => ("mac_broken_at", Value::Unsigned(broken.at as u64)),
                }
            }
            Coded::RlcAm(sn_bits) => match rlc_header(number(sn_bits), bytes) {
                Ok(record) => ("rlc", Value::Record(record)),
                Err(broken) => ("rlc_broken_at", Value::Unsigned(broken.at_bit as u64)),
            },
            Coded::NrRrc(channels) => {
                let channel = number("channel");
                let name = channels.iter().find(|(number, _)| *number == channel);
                let kind = name.and_then(|(_, name)| rrc::nr_message(name, bytes));
                ("message", kind.map_or(Value::Absent, |kind| Value::Name(kind.name)))
            }
        };
        around.0.push((name, value));
    }
}

/// The field with the type of RNTI to which a block is addressed.
pub(super) const RNTI: &str = "rnti_type";

/// Field names for each logical channel group: index of the buffer size, and the maximum number of bytes for that index.
const GROUPS: [(&str, &str); 4] = [
    ("bsr_lcg_0", "bsr_lcg_0_bytes"),
    ("bsr_lcg_1", "bsr_lcg_1_bytes"),
    ("bsr_lcg_2", "bsr_lcg_2_bytes"),
    ("bsr_lcg_3", "bsr_lcg_3_bytes"),
];

fn subheaders(direction: Direction, header: &[u8]) -> Result<Vec<Record<'_>>, mac::Broken> {
    let mut records = vec![];
    mac::visit(direction, header, |subheader| {
        let length = subheader.length.map_or(Value::Absent, |length| Value::Unsigned(u64::from(length)));
        let mut fields = vec![
            ("lcid", Value::Unsigned(u64::from(subheader.lcid))),
            ("element", Value::Name(kind(subheader.element))),
            ("length", length),
        ];
        element(subheader.element, &mut fields);
        records.push(Record(fields));
    })?;
    Ok(records)
}

/// A record for an element without a MAC subheader.
fn headless(element: &'static str, bytes: Option<u64>) -> Record<'static> {
    Record(vec![
        ("lcid", Value::Absent),
        ("element", Value::Name(element)),
        ("length", bytes.map_or(Value::Absent, Value::Unsigned)),
    ])
}

fn answers(block: &[u8]) -> Result<Vec<Record<'_>>, mac::Broken> {
    const RESPONSE_BYTES: u64 = 6;
    let number = |number: u16| Value::Unsigned(u64::from(number));
    let mut records = vec![];
    mac::visit_answers(block, |answer| {
        let mut record;
        match answer {
            Answer::Backoff(index) => {
                record = headless("backoff indicator", None);
                record.0.push(("bi", number(u16::from(index))));
            }
            Answer::Response { preamble, timing_advance, grant, temporary_crnti } => {
                record = headless("random access response", Some(RESPONSE_BYTES));
                record.0.extend([
                    ("rapid", number(u16::from(preamble))),
                    ("ta_command", number(timing_advance)),
                    ("ul_grant", Value::Unsigned(u64::from(grant))),
                    ("temporary_c_rnti", number(temporary_crnti)),
                ]);
            }
        }
        records.push(record);
    })?;
    Ok(records)
}

fn kind(element: Element<'_>) -> &'static str {
    match element {
        Element::Data => "data",
        Element::Padding => "padding",
        Element::ShortBsr { truncated: false, .. } => "short BSR",
        Element::ShortBsr { truncated: true, .. } => "truncated BSR",
        Element::LongBsr(_) => "long BSR",
        Element::PowerHeadroom(_) => "power headroom",
        Element::Crnti(_) => "C-RNTI",
        Element::TimingAdvance { .. } => "timing advance",
        Element::ContentionResolution(_) => "contention resolution",
        Element::Activation(_) => "activation",
        Element::DrxCommand => "DRX command",
        Element::LongDrxCommand => "long DRX command",
        Element::Other { name, .. } => name,
    }
}

fn element<'a>(element: Element<'a>, fields: &mut Vec<(&'static str, Value<'a>)>) {
    let number = |number: u8| Value::Unsigned(u64::from(number));
    let mut group = |group: usize, index: u8| {
        let (name, bytes) = GROUPS[group & 3];
        fields.push((name, number(index)));
        fields.push((bytes, Value::Unsigned(u64::from(BUFFER_SIZES[usize::from(index & 63)]))));
    };
    match element {
        Element::ShortBsr { group: of, index, .. } => group(usize::from(of), index),
        Element::LongBsr(groups) => {
            for (of, index) in groups.into_iter().enumerate() {
                group(of, index);
            }
        }
        Element::PowerHeadroom(index) => fields.extend([
            ("phr", number(index)),
            ("phr_db", Value::Signed(i64::from(i32::from(index) + MIN_HEADROOM_DB))),
        ]),
        Element::Crnti(crnti) => fields.push(("c_rnti", Value::Unsigned(u64::from(crnti)))),
        Element::TimingAdvance { tag, command } => {
            fields.extend([("tag_id", number(tag)), ("ta_command", number(command))]);
        }
        Element::ContentionResolution(bytes) => {
            let identity = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            fields.push(("identity", Value::Mask(identity, 48)));
        }
        Element::Activation(cells) => fields.push(("active_cells", Value::Flags(u64::from(cells), &[]))),
        Element::Other { bytes, .. } => fields.push(("bytes", Value::Bytes(bytes))),
        Element::Data | Element::Padding | Element::DrxCommand | Element::LongDrxCommand => {}
    }
}

fn rlc_header<'a>(sn_bits: u64, header: &[u8]) -> Result<Record<'a>, rlc::Broken> {
    let mut listed = vec![];
    let number = |number: u16| Value::Unsigned(u64::from(number));
    let pdu = rlc::visit(sn_bits, header, |item| {
        listed.push(Record(match item {
            Item::Length(bytes) => vec![("li", number(bytes))],
            Item::Nack { sn, part: None } => vec![("nack_sn", number(sn))],
            Item::Nack { sn, part: Some((start, end)) } => {
                vec![("nack_sn", number(sn)), ("so_start", number(start)), ("so_end", number(end))]
            }
        }));
    })?;
    Ok(Record(match pdu {
        Pdu::Data(data) => {
            let flag = |is_set: bool| Value::Unsigned(u64::from(is_set));
            let mut fields = vec![
                ("kind", Value::Name("data")),
                ("rf", flag(data.segment.is_some())),
                ("p", flag(data.polls)),
                ("fi", Value::Unsigned(u64::from(data.framing))),
                ("e", flag(data.is_extended)),
                ("sn", number(data.sn)),
            ];
            if let Some(segment) = data.segment {
                fields.extend([("lsf", flag(segment.is_last)), ("so", number(segment.offset))]);
            }
            if data.is_extended {
                fields.push(("lengths", Value::Records(listed)));
            }
            fields
        }
        Pdu::Status { ack_sn } => vec![
            ("kind", Value::Name("status")),
            ("ack_sn", number(ack_sn)),
            ("nacks", Value::Records(listed)),
        ],
        Pdu::Control { cpt } => {
            vec![("kind", Value::Name("control")), ("cpt", Value::Unsigned(u64::from(cpt)))]
        }
    }))
}

//! Grammar of origins: the packet and the fields that contain a KPI.

use crate::layout::Version;
use crate::mac::{self, BUFFER_SIZES, Broken, Direction, Element, MIN_HEADROOM_DB, TIMING_STAYS};
use crate::packet::LogCode;

/// One source of a KPI.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Name of the KPI.
    pub kpi: &'static str,
    /// Log code.
    pub code: LogCode,
    /// [Paths](crate::layout::Pick) of the fields from which the value is computed. A version of a packet without any of
    /// these fields is not an origin.
    pub value: &'static [&'static str],
    /// Formula for the value.
    pub formula: Formula,
    /// Conditions on a row.
    pub when: &'static [When],
    /// Value that the modem writes if it has no measurement. Only larger values are samples.
    pub above: Option<f64>,
    /// If a sample is the sum of several rows, the path of the field with their number.
    pub rows: Option<&'static str>,
    /// The only versions from which the value can be computed; empty: all versions that have the fields.
    pub versions: &'static [Version],
    /// Whether this origin is used in addition to the previous origin because it reports other events. Otherwise, it is
    /// a replacement of the previous origin.
    pub is_additional: bool,
}

/// Formula that computes a value from fields.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// The first field that is present.
    First,
    /// The first field that is present, plus this number.
    Plus(f64),
    /// The first field that is present, times this number.
    Times(f64),
    /// The first field that is present, as a two's complement number, although its layout declares it unsigned.
    Signed,
    /// The largest of the fields.
    Largest,
    /// The sum of the fields.
    Sum,
    /// The first field divided by the second.
    Quotient,
    /// Two to the power of the first field that is present.
    TwoToThe,
    /// 1 if any of the fields is present: this counts rows.
    One,
    /// The number for the value's name in the layout. A value with another name is not a sample.
    Named(&'static [(&'static str, f64)]),
    /// The value of a control element in the MAC header that the field contains.
    Element(Direction, Control),
    /// Number of PDUs reported as missing in the RLC header that the first field contains; the second field is the
    /// number of bits of a sequence number. Only a status PDU yields a value; this value can be 0.
    Nacks,
    /// 1 for a retransmitted PDU, otherwise 0. The fields are the RLC header, the number of bits of a sequence number,
    /// the bearer, and the sequence number of the bearer's next new PDU after the packet.
    SentAgain,
    /// The number of the message type of the NR RRC message that the first field contains; the second field is its
    /// channel.
    NrMessageType,
}

/// A control element of a MAC header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Bytes in the phone's buffers by its buffer status report.
    BufferStatus,
    /// Bytes in the phone's buffers for one logical channel group, 0 to 3, by its buffer status report.
    GroupStatus(u8),
    /// Power headroom in dB.
    PowerHeadroom,
    /// The timing advance command minus 31, the command for no change.
    TimingAdvance,
}

/// A condition on a row.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// Path of the field.
    pub path: &'static str,
    /// Condition on its value.
    pub is: Is,
    /// Whether a packet without this field passes; otherwise the packet is not an origin.
    pub or_absent: bool,
}

/// Condition on a field's value.
#[derive(Clone, Copy, Debug)]
pub enum Is {
    /// Equal to this number.
    Number(u64),
    /// Not equal to this number.
    Not(u64),
    /// One of the values with these names in its layout.
    Named(&'static [&'static str]),
    /// None of the values with these names in its layout.
    NotNamed(&'static [&'static str]),
    /// One of the values whose names start with this text.
    Begins(&'static str),
}

impl Control {
    /// Visits the values of all control elements of this kind in a MAC header.
    ///
    /// # Errors
    /// If the header cannot be read to its end; in that case nothing is visited.
    pub(super) fn visit(
        self,
        direction: Direction,
        header: &[u8],
        mut each: impl FnMut(f64),
    ) -> Result<(), Broken> {
        let waits = |index: u8| f64::from(BUFFER_SIZES[usize::from(index & 63)]);
        mac::visit(direction, header, |subheader| match (self, subheader.element) {
            (Control::BufferStatus, Element::ShortBsr { index, .. }) => each(waits(index)),
            (Control::BufferStatus, Element::LongBsr(groups)) => each(groups.map(waits).iter().sum()),
            (Control::GroupStatus(wanted), Element::ShortBsr { group, index, .. }) if wanted == group => {
                each(waits(index));
            }
            (Control::GroupStatus(wanted), Element::LongBsr(groups)) => {
                groups.get(usize::from(wanted)).into_iter().for_each(|index| each(waits(*index)));
            }
            (Control::PowerHeadroom, Element::PowerHeadroom(index)) => {
                each(f64::from(i32::from(index) + MIN_HEADROOM_DB));
            }
            (Control::TimingAdvance, Element::TimingAdvance { command, .. }) => {
                each(f64::from(i32::from(command) - i32::from(TIMING_STAYS)));
            }
            _ => {}
        })
    }
}

/// Maximum valid number of a KPI that is a cell or channel number. Damaged packets, or packets read with the wrong
/// version, contain larger numbers, which are not samples.
///
/// Source: TS 36.211 §6.11 (504 cells); TS 38.211 §7.4.2.1 (1,008 cells); TS 38.331 §6.4 (maxNARFCN)
pub(super) fn largest(kpi: &str) -> Option<f64> {
    match kpi {
        "lte.pci" | "lte.neighbor.pci" => Some(503.0),
        "nr.pci" | "nr.cell.pci" | "nr.rrc.pci" => Some(1_007.0),
        "nr.arfcn" | "nr.rrc.arfcn" => Some(3_279_165.0),
        _ => None,
    }
}

impl Origin {
    /// Creates an origin whose value is the first of these fields that is present, in every row.
    pub const fn new(kpi: &'static str, code: u16, value: &'static [&'static str]) -> Origin {
        Origin {
            kpi,
            code: LogCode(code),
            value,
            formula: Formula::First,
            when: &[],
            above: None,
            rows: None,
            versions: &[],
            is_additional: false,
        }
    }

    /// Sets the formula that computes the value.
    pub const fn formula(self, formula: Formula) -> Origin {
        Origin { formula, ..self }
    }

    /// Uses only rows that meet these conditions.
    pub const fn when(self, when: &'static [When]) -> Origin {
        Origin { when, ..self }
    }

    /// Uses only values larger than `unmeasured`.
    pub const fn above(self, unmeasured: f64) -> Origin {
        Origin { above: Some(unmeasured), ..self }
    }

    /// Makes a sample the sum of several rows; the field `rows` contains their number.
    pub const fn summed(self, rows: &'static str) -> Origin {
        Origin { rows: Some(rows), ..self }
    }

    /// Uses only these versions.
    pub const fn of_versions(self, versions: &'static [Version]) -> Origin {
        Origin { versions, ..self }
    }

    /// Marks this origin as used in addition to the previous origin.
    pub const fn additional(self) -> Origin {
        Origin { is_additional: true, ..self }
    }
}

impl When {
    /// The field equals this number.
    pub const fn is(path: &'static str, number: u64) -> When {
        When { path, is: Is::Number(number), or_absent: false }
    }

    /// The field does not equal this number.
    pub const fn is_not(path: &'static str, number: u64) -> When {
        When { path, is: Is::Not(number), or_absent: false }
    }

    /// The field's value has one of these names.
    pub const fn named(path: &'static str, names: &'static [&'static str]) -> When {
        When { path, is: Is::Named(names), or_absent: false }
    }

    /// The field's value has none of these names.
    pub const fn not_named(path: &'static str, names: &'static [&'static str]) -> When {
        When { path, is: Is::NotNamed(names), or_absent: false }
    }

    /// The name of the field's value starts with `start`.
    pub const fn begins(path: &'static str, start: &'static str) -> When {
        When { path, is: Is::Begins(start), or_absent: false }
    }

    /// Also accepts packets without the field.
    pub const fn or_absent(self) -> When {
        When { or_absent: true, ..self }
    }
}

/// Fields of a packet's records that contain time and carrier. In each list, the first path that is present is used.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Log code.
    pub code: LogCode,
    /// System frame number.
    pub frame: &'static [&'static str],
    /// Subframe within the frame; or the slot, if `numerology` gives the number of slots per subframe.
    pub subframe: &'static [&'static str],
    /// Frame and subframe in one field: ten times the frame, plus the subframe.
    pub packed: &'static [&'static str],
    /// Offset of the record in subframes, added to frame and subframe.
    pub offset: &'static [&'static str],
    /// Numerology: a subframe has 2 to the power of this value slots.
    pub numerology: &'static [&'static str],
    /// Carrier: 0 is the primary.
    pub carrier: &'static [&'static str],
}

impl Place {
    /// Creates a description of packets whose records contain neither time nor carrier.
    pub const fn of(code: u16) -> Place {
        Place {
            code: LogCode(code),
            frame: &[],
            subframe: &[],
            packed: &[],
            offset: &[],
            numerology: &[],
            carrier: &[],
        }
    }

    /// Sets the fields that contain the frame and the subframe of a record.
    pub const fn at(self, frame: &'static [&'static str], subframe: &'static [&'static str]) -> Place {
        Place { frame, subframe, ..self }
    }

    /// Sets the field that contains frame and subframe of a record in one number.
    pub const fn packed(self, packed: &'static [&'static str]) -> Place {
        Place { packed, ..self }
    }

    /// Sets the field with the number of subframes by which a record is later than its frame and subframe.
    pub const fn offset(self, offset: &'static [&'static str]) -> Place {
        Place { offset, ..self }
    }

    /// Sets the field with the numerology: records contain a slot instead of a subframe.
    pub const fn slots(self, numerology: &'static [&'static str]) -> Place {
        Place { numerology, ..self }
    }

    /// Sets the field that contains the carrier of a record.
    pub const fn carrier(self, carrier: &'static [&'static str]) -> Place {
        Place { carrier, ..self }
    }
}

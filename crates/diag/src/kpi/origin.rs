//! The grammar of origins: the packet and fields from which a KPI is made.

use crate::layout::Version;
use crate::mac::{self, BUFFER_SIZES, Broken, Direction, Element, LEAST_HEADROOM_DB, TIMING_STAYS};
use crate::packet::LogCode;

/// One source of a KPI.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The KPI's name.
    pub kpi: &'static str,
    /// The log packet.
    pub code: LogCode,
    /// [Paths](crate::layout::Pick) of the fields from which the value is made. A version of a packet that has none of
    /// them is not an origin.
    pub value: &'static [&'static str],
    /// How the value is made from the fields.
    pub formula: Formula,
    /// What must hold for a row to count.
    pub when: &'static [When],
    /// A value must be larger than this to be a sample: the modem writes this value for what it has not measured.
    pub above: Option<f64>,
    /// If several rows make one sample, their sum: the path of the field with their number.
    pub rows: Option<&'static str>,
    /// The only versions from which the value can be made; empty: all versions that have the fields.
    pub versions: &'static [Version],
    /// Whether it counts in addition to the previous origin, which reports other things, and not in its place.
    pub is_additional: bool,
}

/// How a value is made from fields.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// The first field that is there.
    First,
    /// The first that is there, plus this.
    Plus(f64),
    /// The first that is there, times this.
    Times(f64),
    /// The first that is there. Its highest bit is a sign, although its layout does not say so.
    Signed,
    /// The largest of the fields.
    Largest,
    /// The sum of the fields.
    Sum,
    /// The first divided by the second.
    Quotient,
    /// Two to the power of the first that is there.
    TwoToThe,
    /// 1 if any of the fields is there: this counts rows.
    One,
    /// The number for the value's name in the layout. A value with another name is not a sample.
    Named(&'static [(&'static str, f64)]),
    /// What a control element says, in the MAC header that the field holds.
    Element(Direction, Control),
    /// How many PDUs are said to be missing, in the RLC header that the first field holds; the second tells how many bits
    /// a sequence number has. Only a status says that, and it may say 0.
    Nacks,
    /// 1 if a PDU was sent before, else 0. The fields: its RLC header, how many bits a sequence number has, the bearer,
    /// and the number of the bearer's next new PDU after the packet.
    SentAgain,
    /// The number of the message type, in the NR RRC message that the first field holds; the second is its channel.
    NrMessageType,
}

/// A control element of a MAC header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Bytes that wait in the phone's buffers, as the phone reports them.
    BufferStatus,
    /// The same of one group of logical channels, 0 to 3.
    GroupStatus(u8),
    /// Power headroom in dB.
    PowerHeadroom,
    /// The command that moves the uplink's timing, minus 31, which moves nothing.
    TimingAdvance,
}

/// A condition on a row.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// The path of the field.
    pub path: &'static str,
    /// What it must be.
    pub is: Is,
    /// Whether a packet without such a field passes; otherwise the packet is not an origin.
    pub or_absent: bool,
}

/// What a field must be.
#[derive(Clone, Copy, Debug)]
pub enum Is {
    /// This number.
    Number(u64),
    /// Any other number.
    Not(u64),
    /// One of the values with these names in its layout.
    Named(&'static [&'static str]),
    /// None of the values with these names in its layout.
    NotNamed(&'static [&'static str]),
    /// One of the values whose names begin with this.
    Begins(&'static str),
}

impl Control {
    /// Visits the values of all control elements of this kind in a MAC header.
    ///
    /// # Errors
    /// If the header cannot be read to its end; then nothing was visited.
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
                each(f64::from(i32::from(index) + LEAST_HEADROOM_DB));
            }
            (Control::TimingAdvance, Element::TimingAdvance { command, .. }) => {
                each(f64::from(i32::from(command) - i32::from(TIMING_STAYS)));
            }
            _ => {}
        })
    }
}

/// The largest number that a cell or channel can have, if the KPI is one: damaged packets and readings of the wrong version
/// have others, which are no samples.
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
    /// The first of these fields that is there, in every row.
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

    /// The same, made by this formula.
    pub const fn formula(self, formula: Formula) -> Origin {
        Origin { formula, ..self }
    }

    /// The same, from rows for which this holds.
    pub const fn when(self, when: &'static [When]) -> Origin {
        Origin { when, ..self }
    }

    /// The same, from values larger than this.
    pub const fn above(self, unmeasured: f64) -> Origin {
        Origin { above: Some(unmeasured), ..self }
    }

    /// The same, as the sum of as many rows as this field says.
    pub const fn summed(self, rows: &'static str) -> Origin {
        Origin { rows: Some(rows), ..self }
    }

    /// The same, from these versions only.
    pub const fn of_versions(self, versions: &'static [Version]) -> Origin {
        Origin { versions, ..self }
    }

    /// The same, in addition to the previous origin.
    pub const fn additional(self) -> Origin {
        Origin { is_additional: true, ..self }
    }
}

impl When {
    /// The field is this number.
    pub const fn is(path: &'static str, number: u64) -> When {
        When { path, is: Is::Number(number), or_absent: false }
    }

    /// The field is another number.
    pub const fn is_not(path: &'static str, number: u64) -> When {
        When { path, is: Is::Not(number), or_absent: false }
    }

    /// The field has one of these names.
    pub const fn named(path: &'static str, names: &'static [&'static str]) -> When {
        When { path, is: Is::Named(names), or_absent: false }
    }

    /// The field has none of these names.
    pub const fn not_named(path: &'static str, names: &'static [&'static str]) -> When {
        When { path, is: Is::NotNamed(names), or_absent: false }
    }

    /// The field's name begins so.
    pub const fn begins(path: &'static str, start: &'static str) -> When {
        When { path, is: Is::Begins(start), or_absent: false }
    }

    /// The same, but packets without such a field pass.
    pub const fn or_absent(self) -> When {
        When { or_absent: true, ..self }
    }
}

/// Where the records of a packet tell their time and carrier. In each list, the first path that is there counts.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The log packet.
    pub code: LogCode,
    /// System frame number.
    pub frame: &'static [&'static str],
    /// Subframe within the frame; or the slot, if `numerology` tells how many slots a subframe has.
    pub subframe: &'static [&'static str],
    /// Both in one: ten times the frame, plus the subframe.
    pub packed: &'static [&'static str],
    /// Subframes from that place to the record.
    pub offset: &'static [&'static str],
    /// The power of two by which a subframe is divided into slots.
    pub numerology: &'static [&'static str],
    /// Carrier: 0 is the primary.
    pub carrier: &'static [&'static str],
}

impl Place {
    /// A packet whose records tell nothing.
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

    /// Its records have the frame here and the subframe there.
    pub const fn at(self, frame: &'static [&'static str], subframe: &'static [&'static str]) -> Place {
        Place { frame, subframe, ..self }
    }

    /// Its records have both in one number.
    pub const fn packed(self, packed: &'static [&'static str]) -> Place {
        Place { packed, ..self }
    }

    /// Its records are this many subframes later.
    pub const fn offset(self, offset: &'static [&'static str]) -> Place {
        Place { offset, ..self }
    }

    /// Its records have slots.
    pub const fn slots(self, numerology: &'static [&'static str]) -> Place {
        Place { numerology, ..self }
    }

    /// Its records have the carrier here.
    pub const fn carrier(self, carrier: &'static [&'static str]) -> Place {
        Place { carrier, ..self }
    }
}

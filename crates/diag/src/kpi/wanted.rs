//! Syntax for selecting values: `lte.rsrp`, `lte.rsrp@2`, `lte.rsrp#1`, `0xB173:records.num_rbs`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{KPIS, Kpi, Scope, plan};
use crate::layout::{Code, Leaf};
use crate::log;
use crate::packet::{LogCode, Radio};

/// Maximum number of a radio that a user can select.
///
/// Chosen: a phone has at most two SIMs; this is twice that number. Each further radio would allow a program to select
/// every KPI once more.
const MAX_RADIOS: u8 = 4;

/// Selection of carriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carriers {
    /// Not specified by the user.
    #[default]
    Unsaid,
    /// All carriers.
    All,
    /// Only this carrier; 0 is the primary carrier.
    Only(u8),
}

/// Keyword for all carriers.
const ALL: &str = "all";
/// Number of carriers that a user can select.
///
/// Source: TS 36.331 §6.4 (maxServCell-r13)
const MAX_CARRIERS: u8 = 32;

/// One selected value of one radio. The syntax is `NAME` or `NAME@RADIO`, optionally followed by `#CARRIER` or `#all`.
/// The default is the first radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The KPI or field.
    pub what: What,
    /// The radio: the modem of one SIM.
    pub radio: Radio,
    /// The carriers.
    pub carriers: Carriers,
}

/// A KPI of the list, or a field of a log packet.
#[derive(Clone, Debug)]
pub enum What {
    /// A KPI.
    Kpi(&'static Kpi),
    /// A field of a log packet by its path, without interpretation: `0xB173:records.num_rbs`.
    Field(&'static Code, String),
}

impl PartialEq for What {
    fn eq(&self, other: &What) -> bool {
        match (self, other) {
            (What::Kpi(one), What::Kpi(other)) => one.name == other.name,
            (What::Field(code, path), What::Field(other, of)) => code.code == other.code && path == of,
            _ => false,
        }
    }
}

impl Eq for What {}

/// Reason why a text does not select a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KpiError {
    /// There is no KPI with this name; the list contains similar names.
    Unknown(String, Vec<&'static str>),
    /// The text behind the `@` is not a radio.
    Radio(String),
    /// The text behind the `#` is not a carrier.
    Carrier(String),
    /// The user specified a carrier, but the KPI does not refer to a single carrier.
    Whole(&'static str),
    /// There is no layout of this code.
    Code(String),
    /// No version of the code has this field; the list contains similar paths.
    Field(LogCode, String, Vec<String>),
    /// The field is a run of bytes, not a number.
    Bytes(LogCode, String),
}

impl fmt::Display for KpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KpiError::Unknown(name, near) => {
                write!(f, "there is no KPI `{name}`")?;
                tell_near(f, near)
            }
            KpiError::Radio(text) => {
                write!(f, "`{text}` is no radio: write 1 for the first SIM, 2 for the second")
            }
            KpiError::Carrier(text) => {
                write!(
                    f,
                    "`{text}` is no carrier: write 0 for the primary, 1 for the first secondary, or `{ALL}`"
                )
            }
            KpiError::Whole(name) => write!(f, "`{name}` is not about one carrier; leave out the `#`"),
            KpiError::Code(text) => write!(f, "there is no layout of log code `{text}`"),
            KpiError::Field(code, path, near) => {
                write!(f, "no version of {code} has a field `{path}`")?;
                tell_near(f, near)
            }
            KpiError::Bytes(code, path) => {
                write!(f, "`{path}` of {code} is bytes, not a number")
            }
        }
    }
}

fn tell_near(f: &mut fmt::Formatter<'_>, near: &[impl AsRef<str>]) -> fmt::Result {
    for (at, name) in near.iter().enumerate() {
        write!(f, "{}`{}`", if at == 0 { "; near it: " } else { ", " }, name.as_ref())?;
    }
    Ok(())
}

impl std::error::Error for KpiError {}

impl FromStr for Wanted {
    type Err = KpiError;

    fn from_str(text: &str) -> Result<Wanted, KpiError> {
        let (text, carriers) = match text.split_once('#') {
            None => (text, Carriers::Unsaid),
            Some((text, ALL)) => (text, Carriers::All),
            Some((text, carrier)) => match carrier.parse() {
                Ok(number) if number < MAX_CARRIERS => (text, Carriers::Only(number)),
                _ => return Err(KpiError::Carrier(carrier.to_owned())),
            },
        };
        let (name, radio) = match text.split_once('@') {
            None => (text, Radio::FIRST),
            Some((name, radio)) => match radio.parse() {
                Ok(number) if (1..=MAX_RADIOS).contains(&number) => (name, Radio(number)),
                _ => return Err(KpiError::Radio(radio.to_owned())),
            },
        };
        let what = match name.split_once(':') {
            Some((code, path)) => field(code, path)?,
            None => What::Kpi(
                Kpi::named(name).ok_or_else(|| KpiError::Unknown(name.to_owned(), near_kpis(name)))?,
            ),
        };
        let wanted = Wanted { what, radio, carriers };
        match wanted.kpi() {
            Some(kpi) if carriers != Carriers::Unsaid && kpi.scope != Scope::Carrier => {
                Err(KpiError::Whole(kpi.name))
            }
            _ => Ok(wanted),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Kpi(kpi) => write!(f, "{}", kpi.name)?,
            What::Field(code, path) => write!(f, "{}:{path}", code.code)?,
        }
        if self.radio != Radio::FIRST {
            write!(f, "@{}", self.radio.0)?;
        }
        match self.carriers {
            Carriers::Unsaid => Ok(()),
            Carriers::All => write!(f, "#{ALL}"),
            Carriers::Only(number) => write!(f, "#{number}"),
        }
    }
}

impl Wanted {
    /// Whether each of the value's samples refers to one carrier, and the user has not specified carriers.
    pub fn is_of_some_carrier(&self) -> bool {
        self.carriers == Carriers::Unsaid && self.kpi().is_some_and(|kpi| kpi.scope == Scope::Carrier)
    }

    /// Unit of the values; empty if they have no unit, or if it is unknown.
    pub fn unit(&self) -> &'static str {
        match self.what {
            What::Kpi(kpi) => kpi.unit,
            What::Field(..) => "",
        }
    }

    /// The selected KPI; `None` if a field is selected.
    pub fn kpi(&self) -> Option<&'static Kpi> {
        match self.what {
            What::Kpi(kpi) => Some(kpi),
            What::Field(..) => None,
        }
    }

    /// The log packets that may contain the value.
    pub fn codes(&self) -> BTreeSet<LogCode> {
        match &self.what {
            What::Kpi(kpi) => plan::origins(kpi.name).map(|origin| origin.code).collect(),
            What::Field(code, _) => BTreeSet::from([code.code]),
        }
    }
}

/// Parses a field of a log packet.
fn field(text: &str, path: &str) -> Result<What, KpiError> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let code = digits
        .and_then(|digits| u16::from_str_radix(digits, 16).ok())
        .and_then(|number| log::code(LogCode(number)))
        .ok_or_else(|| KpiError::Code(text.to_owned()))?;
    let leaves: Vec<Leaf> = code.layouts.iter().flat_map(|layout| layout.find(path)).collect();
    if leaves.is_empty() {
        return Err(KpiError::Field(code.code, path.to_owned(), near_fields(code, path)));
    }
    if !leaves.iter().any(|leaf| leaf.is_number()) {
        return Err(KpiError::Bytes(code.code, path.to_owned()));
    }
    Ok(What::Field(code, path.to_owned()))
}

/// Maximum number of similar names in an error.
const NEAR: usize = 5;

/// KPIs with similar names, the most similar first.
fn near_kpis(name: &str) -> Vec<&'static str> {
    nearest(name, KPIS.iter().map(|kpi| kpi.name).collect())
}

/// Numeric fields of a code with similar paths, the most similar first.
fn near_fields(code: &Code, path: &str) -> Vec<String> {
    let mut paths = BTreeSet::new();
    for layout in code.layouts {
        layout.leaves(|path, leaf| {
            if leaf.is_number() {
                paths.insert(path.to_owned());
            }
        });
    }
    nearest(path, paths.into_iter().collect())
}

/// The names that are similar to `name`, contain it, or are contained in it.
fn nearest<T: AsRef<str>>(name: &str, mut names: Vec<T>) -> Vec<T> {
    /// Minimum similarity of a name.
    ///
    /// Chosen: a short name with one wrong letter has a similarity above this value, and a different name has a lower
    /// similarity.
    const LIKE: f64 = 0.8;
    let likeness = |other: &str| {
        let has = !name.is_empty() && (other.contains(name) || name.contains(other));
        strsim::jaro_winkler(name, other).max(if has { 0.9 } else { 0.0 })
    };
    names.retain(|other| likeness(other.as_ref()) >= LIKE);
    names.sort_by(|one, other| likeness(other.as_ref()).total_cmp(&likeness(one.as_ref())));
    names.truncate(NEAR);
    names
}

/// The selected values, in order: samples refer to them by index.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    wanted: Vec<Wanted>,
}

impl Subscription {
    /// Selects these names, in this order.
    ///
    /// # Errors
    /// If a name is invalid.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Subscription, KpiError> {
        Ok(Subscription { wanted: names.into_iter().map(str::parse).collect::<Result<_, _>>()? })
    }

    /// Selects these names, in this order. The name `all` selects all KPIs of the list. Names without a radio select
    /// `radio`.
    ///
    /// # Errors
    /// If a name is invalid.
    pub fn listed<'n>(
        names: impl IntoIterator<Item = &'n str>,
        radio: Radio,
    ) -> Result<Subscription, KpiError> {
        let list = names.into_iter().flat_map(|name| match name.trim() {
            "all" => KPIS.iter().map(|kpi| kpi.name).collect(),
            name => vec![name],
        });
        let wanted = list.map(|name| {
            let wanted: Wanted = name.parse()?;
            Ok(if name.contains('@') { wanted } else { Wanted { radio, ..wanted } })
        });
        wanted.collect()
    }

    /// Adds a value; returns its index. If the value was already selected, returns its earlier index.
    pub fn add(&mut self, wanted: Wanted) -> usize {
        let known = self.wanted.iter().position(|known| *known == wanted);
        known.unwrap_or_else(|| {
            self.wanted.push(wanted);
            self.wanted.len() - 1
        })
    }

    /// The log packets that may contain the selected values, to be requested from a modem.
    pub fn codes(&self) -> BTreeSet<LogCode> {
        self.wanted.iter().flat_map(Wanted::codes).collect()
    }

    /// Number of selected values.
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Whether no value is selected.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The selected value at an index.
    ///
    /// # Panics
    /// If the index is not below [`len`](Subscription::len).
    pub fn wanted(&self, index: usize) -> &Wanted {
        &self.wanted[index]
    }

    /// All selected values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Wanted> {
        self.wanted.iter()
    }
}

impl FromIterator<Wanted> for Subscription {
    fn from_iter<I: IntoIterator<Item = Wanted>>(wanted: I) -> Subscription {
        Subscription { wanted: wanted.into_iter().collect() }
    }
}

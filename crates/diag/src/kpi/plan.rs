//! Read plan: the fields to read from each version of a packet for a subscription. The plan is computed once, so that
//! each packet costs little time.

use std::ptr;

use super::memory::Sent;
use super::origin::{Control, Formula, Is, Origin, Place, When, largest};
use super::qualcomm::{ORIGINS, PLACES};
use super::{Kpi, Source, Subscription, What};
use crate::layout::{Cell, Code, Layout, Leaf, MAX_FIELDS, Names, Part, Pick, Shown};
use crate::log;
use crate::mac::Direction;
use crate::packet::LogCode;
use crate::rlc::{self, Item, Pdu};
use crate::rrc;

/// Returns the origins of a KPI, the preferred origin first.
pub(super) fn origins(kpi: &str) -> impl Iterator<Item = &'static Origin> {
    ORIGINS.iter().filter(move |origin| origin.kpi == kpi)
}

/// The origins of a KPI with their ranks. Among the origins with data, those of the lowest rank are used, all of them
/// together.
fn ranked(kpi: &str) -> impl Iterator<Item = (usize, &'static Origin)> {
    origins(kpi).scan(None, |rank: &mut Option<usize>, origin| {
        *rank = Some(rank.map_or(0, |rank| rank + usize::from(!origin.is_additional)));
        Some(((*rank)?, origin))
    })
}

/// Returns the codes and versions that contain a KPI, the preferred source first.
pub(super) fn sources(kpi: &Kpi) -> Vec<Source> {
    let mut sources = vec![];
    for origin in origins(kpi.name) {
        let Some(code) = log::code(origin.code) else { continue };
        for layout in code.layouts.iter().filter(|layout| Draft::new(layout, origin).is_some()) {
            sources.extend(layout.versions.iter().map(|&version| Source {
                code: code.code,
                version,
                verified: layout.verified,
            }));
        }
    }
    sources
}

/// Fields to read from the packets of one code.
#[derive(Clone, Debug)]
pub(super) struct CodePlan {
    pub code: &'static Code,
    pub layouts: Vec<LayoutPlan>,
}

/// Fields to read from the packets of one layout.
#[derive(Clone, Debug)]
pub(super) struct LayoutPlan {
    pub layout: &'static Layout,
    pub groups: Vec<Group>,
    /// Selected values of the code that cannot be computed from this layout.
    pub missing: Vec<usize>,
}

/// Fields of the same records, read in one pass.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub pick: Pick,
    pub uses: Vec<Use>,
}

/// Computation of a KPI's samples from a row of a pick. The numbers in this type are columns of the pick.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub wanted: usize,
    /// Number of origins of the KPI that are preferred to this origin.
    pub rank: usize,
    pub rows: Option<usize>,
    value: Vec<usize>,
    make: Make,
    above: Option<f64>,
    at_most: Option<f64>,
    tests: Vec<Test>,
    at: Where,
}

/// Formula for a value, with the raw numbers of this layout.
#[derive(Clone, Debug)]
enum Make {
    First { factor: f64, offset: f64 },
    Signed { bits: usize },
    Largest,
    Sum,
    Quotient,
    TwoToThe,
    One,
    Named(Vec<(u64, f64)>),
    Element(Direction, Control),
    Nacks,
    SentAgain,
    NrMessageType(Names),
}

/// Condition on a row, with the raw numbers of this layout.
#[derive(Clone, Debug)]
struct Test {
    column: usize,
    numbers: Vec<u64>,
    /// Whether the field must equal one of the numbers. If not, the field must equal none of the numbers.
    wants_one: bool,
    or_absent: bool,
}

/// Columns of time and carrier.
#[derive(Clone, Debug, Default)]
struct Where {
    frame: Vec<usize>,
    subframe: Vec<usize>,
    packed: Vec<usize>,
    offset: Vec<usize>,
    numerology: Vec<usize>,
    carrier: Vec<usize>,
}

/// Computes the plan for a subscription, sorted by code.
pub(super) fn plan(subscription: &Subscription) -> Vec<CodePlan> {
    let codes = subscription.codes();
    codes.into_iter().filter_map(log::code).map(|code| CodePlan::new(code, subscription)).collect()
}

impl CodePlan {
    fn new(code: &'static Code, subscription: &Subscription) -> CodePlan {
        let layouts = code.layouts.iter().map(|layout| LayoutPlan::new(code.code, layout, subscription));
        CodePlan { code, layouts: layouts.collect() }
    }
}

impl LayoutPlan {
    fn new(code: LogCode, layout: &'static Layout, subscription: &Subscription) -> LayoutPlan {
        let mut plan = LayoutPlan { layout, groups: vec![], missing: vec![] };
        let mut begun = vec![];
        for (wanted, name) in subscription.iter().enumerate() {
            let drafts: Vec<(usize, Draft)> = match &name.what {
                What::Kpi(kpi) => ranked(kpi.name)
                    .filter(|(_, origin)| origin.code == code)
                    .filter_map(|(rank, origin)| Some((rank, Draft::new(layout, origin)?)))
                    .collect(),
                What::Field(of, path) if of.code == code => {
                    Draft::of_field(code, layout, path).map(|draft| (0, draft)).into_iter().collect()
                }
                What::Field(..) => continue,
            };
            if drafts.is_empty() && name.codes().contains(&code) {
                plan.missing.push(wanted);
            }
            for (rank, draft) in drafts {
                plan.add(wanted, rank, draft, &mut begun);
            }
        }
        plan
    }

    /// Adds the draft to the group that reads the same records, or to a new group. `begun` contains the records and the
    /// paths of each group.
    fn add(&mut self, wanted: usize, rank: usize, draft: Draft, begun: &mut Vec<(Records, Vec<String>)>) {
        for (group, (records, paths)) in self.groups.iter_mut().zip(begun.iter_mut()) {
            if *records != draft.records {
                continue;
            }
            let mut all = paths.clone();
            let made = draft.use_in(wanted, rank, &mut all);
            if let Some(pick) = pick(self.layout, &all) {
                group.pick = pick;
                group.uses.push(made);
                *paths = all;
                return;
            }
        }
        for draft in [draft.clone(), draft.without_place()] {
            let mut paths = vec![];
            let made = draft.use_in(wanted, rank, &mut paths);
            if let Some(pick) = pick(self.layout, &paths) {
                self.groups.push(Group { pick, uses: vec![made] });
                begun.push((draft.records, paths));
                return;
            }
        }
        self.missing.push(wanted);
    }
}

fn pick(layout: &'static Layout, paths: &[String]) -> Option<Pick> {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    (paths.len() <= MAX_FIELDS).then(|| Pick::new(layout, &paths).ok())?
}

/// Fields that an origin uses from a layout, by path.
#[derive(Clone, Debug)]
struct Draft {
    /// The parts whose repetitions are the rows of the draft.
    records: Records,
    value: Vec<String>,
    make: Make,
    above: Option<f64>,
    at_most: Option<f64>,
    tests: Vec<(String, Test)>,
    place: Option<[Vec<String>; 6]>,
    rows: Option<String>,
}

impl Draft {
    /// Creates a draft; `None` if the KPI cannot be computed from this layout with this origin.
    fn new(layout: &'static Layout, origin: &Origin) -> Option<Draft> {
        let Origin { code, value, when, rows, versions, .. } = *origin;
        if !versions.is_empty() && !layout.versions.iter().all(|version| versions.contains(version)) {
            return None;
        }
        // A condition's field may be nested deeper than the value: then each of these inner records is a row.
        let asked = when.iter().map(|when| when.path).chain(rows);
        let mut draft = Draft::of_paths(code, layout, value, asked)?;
        draft.make = Make::new(layout, origin)?;
        draft.above = origin.above;
        draft.at_most = largest(origin.kpi);
        for when in when {
            match Test::new(layout, when) {
                Some(test) => draft.tests.push((when.path.to_owned(), test)),
                None if when.or_absent => {}
                None => return None,
            }
        }
        draft.rows = rows.map(str::to_owned);
        Some(draft)
    }

    /// Creates a draft that reads the number at a path, without interpretation.
    fn of_field(code: LogCode, layout: &'static Layout, path: &str) -> Option<Draft> {
        let is_number = layout.find(path).iter().any(|leaf| leaf.is_number());
        is_number.then(|| Draft::of_paths(code, layout, &[path], []))?
    }

    /// Creates a draft that reads the first of these values that is present, in records that also contain the fields in
    /// `asked`.
    fn of_paths<'p>(
        code: LogCode,
        layout: &'static Layout,
        value: &[&'p str],
        asked: impl IntoIterator<Item = &'p str>,
    ) -> Option<Draft> {
        let records = Records::of(layout, value.iter().copied().chain(asked));
        let there = value.iter().filter(|path| !layout.find(path).is_empty());
        let value: Vec<String> = there.map(|&path| path.to_owned()).collect();
        let place = PLACES.iter().find(|place| place.code == code).map(|place| {
            let Place { frame, subframe, packed, offset, numerology, carrier, .. } = *place;
            [frame, subframe, packed, offset, numerology, carrier].map(|paths| {
                let said = paths.iter().filter(|path| records.say(layout, path));
                said.map(|&path| path.to_owned()).collect()
            })
        });
        let make = Make::First { factor: 1.0, offset: 0.0 };
        (!value.is_empty()).then_some(Draft {
            records,
            value,
            make,
            above: None,
            at_most: None,
            tests: vec![],
            place,
            rows: None,
        })
    }

    fn without_place(self) -> Draft {
        Draft { place: None, ..self }
    }

    /// Converts the draft to columns of a pick of these paths. Missing paths are added.
    fn use_in(&self, wanted: usize, rank: usize, paths: &mut Vec<String>) -> Use {
        let mut column = |path: &String| {
            paths.iter().position(|known| known == path).unwrap_or_else(|| {
                paths.push(path.clone());
                paths.len() - 1
            })
        };
        let value = self.value.iter().map(&mut column).collect();
        let tests =
            self.tests.iter().map(|(path, test)| Test { column: column(path), ..test.clone() }).collect();
        let rows = self.rows.as_ref().map(&mut column);
        let at = self.place.as_ref().map_or_else(Where::default, |place| {
            let [frame, subframe, packed, offset, numerology, carrier] =
                place.each_ref().map(|paths| paths.iter().map(&mut column).collect());
            Where { frame, subframe, packed, offset, numerology, carrier }
        });
        let (make, above, at_most) = (self.make.clone(), self.above, self.at_most);
        Use { wanted, rank, rows, value, make, above, at_most, tests, at }
    }
}

/// Parts whose repetitions are rows.
#[derive(Clone, Debug, Default)]
struct Records {
    parts: Vec<*const Part>,
    /// The paths of their fields, up to the last dot.
    within: Vec<String>,
}

impl PartialEq for Records {
    fn eq(&self, other: &Records) -> bool {
        self.parts == other.parts
    }
}

/// The path of the part around a field, including the dot.
fn around(path: &str) -> &str {
    path.rfind('.').map_or("", |dot| &path[..=dot])
}

impl Records {
    fn of<'p>(layout: &'static Layout, paths: impl Iterator<Item = &'p str>) -> Records {
        let mut records = Records::default();
        for path in paths {
            for leaf in layout.find(path) {
                records.parts.push(ptr::from_ref(leaf.part));
                // A run of bytes is a separate part.
                records
                    .within
                    .push(leaf.field.map_or_else(|| format!("{path}."), |_| around(path).to_owned()));
            }
        }
        records.parts.sort_unstable();
        records.parts.dedup();
        records
    }

    /// Whether each of these records, or a part that encloses it, contains this field.
    fn say(&self, layout: &'static Layout, path: &str) -> bool {
        let own = around(path);
        let is_around = |within: &String| within.starts_with(own) && own.len() < within.len();
        let leaves = layout.find(path);
        let is_theirs = leaves.iter().any(|leaf| self.parts.contains(&ptr::from_ref(leaf.part)));
        is_theirs || (!leaves.is_empty() && self.within.iter().any(is_around))
    }
}

/// The numbers of a layout's field whose names satisfy `is_meant`.
fn numbers(leaves: &[Leaf], is_meant: impl Fn(&str) -> bool) -> Vec<u64> {
    let mut numbers = vec![];
    for leaf in leaves {
        if let Some(Shown::Named(names)) = leaf.field.map(|field| field.shown) {
            numbers.extend(names.iter().filter(|(_, name)| is_meant(name)).map(|(number, _)| *number));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl Make {
    /// Creates a formula; `None` if the layout has none of the names.
    fn new(layout: &'static Layout, origin: &Origin) -> Option<Make> {
        let leaves: Vec<Leaf> = origin.value.iter().flat_map(|path| layout.find(path)).collect();
        Some(match origin.formula {
            Formula::First => Make::First { factor: 1.0, offset: 0.0 },
            Formula::Plus(offset) => Make::First { factor: 1.0, offset },
            Formula::Times(factor) => Make::First { factor, offset: 0.0 },
            Formula::Signed => Make::Signed { bits: leaves.first()?.field?.width },
            Formula::Largest => Make::Largest,
            Formula::Sum => Make::Sum,
            Formula::Quotient if leaves.len() < 2 => return None,
            Formula::Quotient => Make::Quotient,
            Formula::TwoToThe => Make::TwoToThe,
            Formula::One => Make::One,
            Formula::Named(meanings) => {
                let mut values = vec![];
                for &(name, value) in meanings {
                    values
                        .extend(numbers(&leaves, |other| other == name).into_iter().map(|raw| (raw, value)));
                }
                if values.is_empty() {
                    return None;
                }
                Make::Named(values)
            }
            Formula::Element(direction, control) => Make::Element(direction, control),
            // These formulas require all of their fields.
            Formula::Nacks | Formula::SentAgain if leaves.len() < origin.value.len() => return None,
            Formula::Nacks => Make::Nacks,
            Formula::SentAgain => Make::SentAgain,
            Formula::NrMessageType => {
                Make::NrMessageType(leaves.iter().find_map(|leaf| match leaf.field?.shown {
                    Shown::Named(names) => Some(names),
                    _ => None,
                })?)
            }
        })
    }
}

impl Test {
    /// Creates a condition; `None` if the layout has no such field, or none of the required values.
    fn new(layout: &'static Layout, when: &When) -> Option<Test> {
        let leaves = layout.find(when.path);
        let (numbers, wants_one) = match when.is {
            Is::Number(number) => (vec![number], true),
            Is::Not(number) => (vec![number], false),
            Is::Named(names) => (numbers(&leaves, |name| names.contains(&name)), true),
            Is::NotNamed(names) => (numbers(&leaves, |name| names.contains(&name)), false),
            Is::Begins(start) => (numbers(&leaves, |name| name.starts_with(start)), true),
        };
        let can_hold = !leaves.is_empty() && (!wants_one || !numbers.is_empty());
        can_hold.then_some(Test { column: 0, numbers, wants_one, or_absent: when.or_absent })
    }

    fn holds(&self, row: &[Cell<'_>]) -> bool {
        row[self.column]
            .unsigned()
            .map_or(self.or_absent, |number| self.numbers.contains(&number) == self.wants_one)
    }
}

/// The first of these columns that has a number.
fn first(row: &[Cell<'_>], columns: &[usize]) -> Option<u64> {
    columns.iter().find_map(|&column| row[column].unsigned())
}

impl Use {
    /// Calls `each` for the values of a row; returns whether the row could be read completely.
    pub fn values(&self, row: &[Cell<'_>], mut each: impl FnMut(f64)) -> bool {
        if !self.tests.iter().all(|test| test.holds(row)) {
            return true;
        }
        let mut numbers = self.value.iter().filter_map(|&column| row[column].number());
        let value = match &self.make {
            Make::First { factor, offset } => numbers.next().map(|number| number * factor + offset),
            Make::Signed { bits } => numbers.next().map(|number| {
                let is_negative = number >= (1_u64 << (bits - 1)) as f64;
                if is_negative { number - (1_u64 << bits) as f64 } else { number }
            }),
            Make::Largest => numbers.reduce(f64::max),
            Make::Sum => numbers.reduce(|one, other| one + other),
            Make::Quotient => numbers.next().zip(numbers.next()).map(|(one, other)| one / other),
            Make::TwoToThe => first(row, &self.value).map(|power| (1_u64 << power.min(63)) as f64),
            Make::One => self.value.iter().any(|&column| row[column] != Cell::Absent).then_some(1.0),
            Make::Named(meanings) => first(row, &self.value)
                .and_then(|raw| meanings.iter().find(|(number, _)| *number == raw))
                .map(|(_, value)| *value),
            Make::Element(direction, control) => {
                let header = self.value.iter().find_map(|&column| match row[column] {
                    Cell::Bytes(bytes) => Some(bytes),
                    _ => None,
                });
                return header.is_none_or(|header| control.visit(*direction, header, each).is_ok());
            }
            Make::Nacks => {
                let Some((header, sn_bits)) = self.rlc_header(row) else { return true };
                let mut nacks = 0;
                match rlc::visit(sn_bits, header, |item| {
                    nacks += u32::from(matches!(item, Item::Nack { .. }))
                }) {
                    Ok(Pdu::Status { .. }) => Some(f64::from(nacks)),
                    Ok(_) => None,
                    Err(_) => return false,
                }
            }
            Make::SentAgain => {
                let Some((header, sn_bits)) = self.rlc_header(row) else { return true };
                match rlc::visit(sn_bits, header, |_| ()) {
                    Ok(Pdu::Data(_)) => Some(1.0),
                    Ok(_) => None,
                    Err(_) => return false,
                }
            }
            Make::NrMessageType(names) => {
                let bytes = self.value.iter().find_map(|&column| match row[column] {
                    Cell::Bytes(bytes) => Some(bytes),
                    _ => None,
                });
                let channel = first(row, &self.value)
                    .and_then(|raw| names.iter().find(|(number, _)| *number == raw))
                    .map(|(_, name)| *name);
                let kind = bytes.zip(channel).and_then(|(bytes, channel)| rrc::nr_message(channel, bytes));
                kind.map(|kind| f64::from(kind.number))
            }
        };
        let is_sample = |value: &f64| {
            self.above.is_none_or(|unmeasured| *value > unmeasured)
                && self.at_most.is_none_or(|largest| *value <= largest)
        };
        if let Some(value) = value.filter(is_sample) {
            each(value);
        }
        true
    }

    /// The RLC header of a row, and the bits of its sequence numbers.
    fn rlc_header<'a>(&self, row: &[Cell<'a>]) -> Option<(&'a [u8], u64)> {
        match (row[*self.value.first()?], row[*self.value.get(1)?]) {
            (Cell::Bytes(header), Cell::Unsigned(sn_bits)) => Some((header, sn_bits)),
            _ => None,
        }
    }

    /// The PDU of a row, if the KPI detects retransmissions.
    pub fn sent(&self, row: &[Cell<'_>]) -> Option<Sent> {
        if !matches!(self.make, Make::SentAgain) {
            return None;
        }
        let (header, sn_bits) = self.rlc_header(row)?;
        let Ok(Pdu::Data(data)) = rlc::visit(sn_bits, header, |_| ()) else { return None };
        let number = |at: usize| row[*self.value.get(at)?].unsigned();
        Some(Sent {
            bearer: u8::try_from(number(2)?).ok()?,
            sn: data.sn,
            next: u16::try_from(number(3)?).ok()?,
            numbers: 1 << sn_bits.min(16),
            is_segment: data.segment.is_some(),
        })
    }

    /// Ten times the frame of a row, plus the subframe.
    pub fn subframe(&self, row: &[Cell<'_>]) -> Option<u16> {
        /// Number of subframes after which the frame number wraps.
        const ROUND: u64 = 10_240;
        let place = &self.at;
        let begins = match first(row, &place.packed) {
            Some(both) => both,
            None => {
                let (frame, within) = (first(row, &place.frame)?, first(row, &place.subframe)?);
                let within = within >> first(row, &place.numerology).unwrap_or(0).min(63);
                // A modem that does not know the frame sets all bits.
                (frame < 1_024 && within < 10).then_some(10 * frame + within)?
            }
        };
        let offset = first(row, &place.offset).unwrap_or(0);
        (begins < ROUND).then(|| ((begins + offset) % ROUND) as u16)
    }

    /// The carrier of a row; the primary carrier if the row has no carrier.
    pub fn carrier(&self, row: &[Cell<'_>]) -> u8 {
        first(row, &self.at.carrier).and_then(|carrier| u8::try_from(carrier).ok()).unwrap_or(0)
    }
}

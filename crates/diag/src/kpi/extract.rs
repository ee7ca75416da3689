//! Packets in, samples out.

use super::plan::{self, CodePlan};
use super::trouble::Troubles;
use super::{Kind, Reason, Subscription, Trouble, Wanted};
use crate::layout::{Told, Verified, Version};
use crate::packet::{LogCode, LogPacket};
use crate::stamp::Stamp;

/// How long a preferred origin of a level may be silent until the next one may speak, by the modem's clock.
///
/// Chosen: ten times the rarest report of a connected phone; an idle phone that only says the rarer one is heard.
pub const HOLD_SECONDS: f64 = 1.0;

/// Among how many of the last blocks of a carrier a share is taken.
///
/// Chosen: enough to tell 10 % from 5 %, few enough to be of one second under load.
pub const SHARE_BLOCKS: u32 = 128;

/// One value of something wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Of what: an index of the subscription.
    pub wanted: usize,
    /// The value, in the KPI's unit.
    pub value: f64,
    /// When the modem sent the packet that says it. The records in it are older: see `subframe`.
    pub stamp: Stamp,
    /// In which subframe it was, if that is said: ten times the system frame number, plus the subframe.
    pub subframe: Option<u16>,
    /// On which carrier: 0 is the primary, also where none is said.
    pub carrier: u8,
    /// How well the layout is known by which it was read.
    pub verified: Verified,
}

/// Reads from packets what a subscription wants.
///
/// Where several kinds of packets carry the same KPI, the first in the order of its origins counts. Of a level, the next
/// may speak once that one was silent for [`HOLD_SECONDS`]; of anything that is counted, never, lest it be counted
/// twice.
#[derive(Clone, Debug)]
pub struct Extractor {
    plans: Vec<CodePlan>,
    states: Vec<State>,
    troubles: Troubles,
    /// What the packet says, until it is known that all of it fits.
    pending: Vec<Pending>,
    /// Of each one wanted, the rows of which a sample has begun.
    rows: Vec<Rows>,
    /// Packets so far.
    packets: u64,
}

/// What has to be remembered of something wanted.
#[derive(Clone, Debug)]
struct State {
    wanted: Wanted,
    kind: Kind,
    /// The most preferred origin that has spoken, and when.
    best: Option<(usize, Stamp)>,
    /// The packet that is not counted.
    ///
    /// Chosen: when a more preferred origin of a total begins to speak, what it says first may have been counted by the
    /// other.
    passed_over: Option<u64>,
    total: f64,
    shares: [Share; CARRIERS],
}

/// Carriers of which shares are kept apart; those beyond share the last place.
const CARRIERS: usize = 8;

/// The last blocks of one carrier, the newest in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    blocks: u128,
    count: u32,
}

/// A value that is not yet known to count.
#[derive(Clone, Copy, Debug)]
struct Pending {
    rank: usize,
    sample: Sample,
}

/// Rows that are one sample together.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    left: u64,
    sum: Option<f64>,
}

impl Extractor {
    /// Reads what this subscription wants.
    pub fn new(subscription: &Subscription) -> Extractor {
        /// Chosen: more samples than any packet of a real log has, so that the room need not grow.
        const ROOM: usize = 4_096;
        let mut extractor = Extractor {
            plans: vec![],
            states: vec![],
            troubles: Troubles::new(),
            pending: Vec::with_capacity(ROOM),
            rows: vec![],
            packets: 0,
        };
        extractor.follow(subscription);
        extractor
    }

    /// Reads what this subscription wants from now on. Totals and shares of what was wanted before go on.
    pub fn follow(&mut self, subscription: &Subscription) {
        let before = std::mem::take(&mut self.states);
        self.states = subscription.iter().map(|wanted| State::of(wanted, &before)).collect();
        self.plans = plan::plan(subscription);
        self.rows = vec![Rows::default(); self.states.len()];
    }

    /// Takes the next packet; `each` gets what it says of what is wanted, of each KPI in the order of the records. Gives a kind
    /// of trouble when it is met first.
    pub fn push(&mut self, packet: &LogPacket<'_>, mut each: impl FnMut(Sample)) -> Option<Trouble> {
        let at = self.plans.binary_search_by_key(&packet.code, |plan| plan.code.code).ok()?;
        self.packets += 1;
        self.pending.clear();
        let news = self.read(at, packet);
        for pending in &self.pending {
            if let Some(sample) = self.states[pending.sample.wanted].admit(*pending, self.packets) {
                each(sample);
            }
        }
        news
    }

    /// A packet of this code was cut. Gives the trouble if it is the first of its kind.
    pub fn cut(&mut self, code: LogCode) -> Option<Trouble> {
        self.plans.binary_search_by_key(&code, |plan| plan.code.code).ok()?;
        self.troubles.count(code, None, Reason::Cut)
    }

    /// What could not be read so far, in the order in which it was first met.
    pub fn troubles(&self) -> &[Trouble] {
        self.troubles.kinds()
    }

    /// Troubles beyond the kinds that are told apart.
    pub fn more_troubles(&self) -> u64 {
        self.troubles.beyond()
    }

    /// Reads a packet into what is pending; nothing if it does not fit.
    fn read(&mut self, at: usize, packet: &LogPacket<'_>) -> Option<Trouble> {
        let Extractor { plans, states, troubles, pending, rows, .. } = self;
        let plan = &plans[at];
        let mut news = None;
        let mut count = |version: Option<Version>, reason| {
            let first = troubles.count(packet.code, version, reason);
            news = news.or(first);
        };
        let Ok(version) = plan.code.version(packet.payload) else {
            count(None, Reason::Empty);
            return news;
        };
        let Some(layout) = plan.layouts.iter().find(|plan| plan.layout.versions.contains(&version)) else {
            count(Some(version), Reason::Version);
            return news;
        };
        let is_of_radio = |wanted: usize| states[wanted].wanted.radio == packet.radio;
        for &wanted in layout.lacks.iter().filter(|&&wanted| is_of_radio(wanted)) {
            count(Some(version), Reason::Lacks(wanted));
        }
        for group in &layout.groups {
            if !group.uses.iter().any(|one| is_of_radio(one.wanted)) {
                continue;
            }
            for one in &group.uses {
                rows[one.wanted] = Rows::default();
            }
            let fits = group.pick.visit_carefully(packet.payload, |told| {
                let (row, verified) = match told {
                    Told::Row(row, verified) => (row, verified),
                    Told::Unknown(id, kind) => return count(Some(version), Reason::Subpacket(id, kind)),
                };
                for one in group.uses.iter().filter(|one| is_of_radio(one.wanted)) {
                    let sample = |value| Sample {
                        wanted: one.wanted,
                        value,
                        stamp: packet.stamp,
                        subframe: one.subframe(row),
                        carrier: one.carrier(row),
                        verified,
                    };
                    let mut push = |value| pending.push(Pending { rank: one.rank, sample: sample(value) });
                    let is_whole = match one.rows {
                        None => one.values(row, push),
                        Some(column) => {
                            let of = row[column].unsigned();
                            let (is_whole, sum) = rows[one.wanted].add(of, |each| one.values(row, each));
                            sum.into_iter().for_each(&mut push);
                            is_whole
                        }
                    };
                    if !is_whole {
                        count(Some(version), Reason::Header);
                    }
                }
            });
            if let Err(misfit) = fits {
                pending.clear();
                count(Some(version), Reason::Misfit(misfit));
                break;
            }
        }
        news
    }
}

impl Rows {
    /// Adds a row of a record that has `of` rows; the record's sum after its last one.
    fn add(
        &mut self,
        of: Option<u64>,
        values: impl FnOnce(&mut dyn FnMut(f64)) -> bool,
    ) -> (bool, Option<f64>) {
        if self.left == 0 {
            *self = Rows { left: of.unwrap_or(1), sum: None };
        }
        let sum = &mut self.sum;
        let is_whole = values(&mut |value| *sum = Some(sum.unwrap_or(0.0) + value));
        self.left = self.left.saturating_sub(1);
        (is_whole, if self.left == 0 { self.sum.take() } else { None })
    }
}

impl State {
    /// Goes on from what was remembered before, if anything.
    fn of(wanted: &Wanted, before: &[State]) -> State {
        before.iter().find(|state| state.wanted == *wanted).cloned().unwrap_or_else(|| State {
            wanted: wanted.clone(),
            kind: wanted.kpi().map_or(Kind::Event, |kpi| kpi.kind),
            best: None,
            passed_over: None,
            total: 0.0,
            shares: [Share::default(); CARRIERS],
        })
    }

    /// What becomes of a value; `None` if another origin speaks for the KPI.
    fn admit(&mut self, pending: Pending, packet: u64) -> Option<Sample> {
        let Pending { rank, mut sample } = pending;
        if let Some((best, spoke)) = self.best {
            let is_silent = || sample.stamp.since(spoke).is_some_and(|silence| silence > HOLD_SECONDS);
            if rank > best && !(self.kind == Kind::Level && is_silent()) {
                return None;
            }
            if rank < best && self.kind == Kind::Total {
                self.passed_over = Some(packet);
            }
        }
        self.best = Some((rank, sample.stamp));
        if self.passed_over == Some(packet) {
            return None;
        }
        match self.kind {
            Kind::Level | Kind::Event => {}
            Kind::Total => {
                self.total += sample.value;
                sample.value = self.total;
            }
            Kind::Share => {
                let carrier = usize::from(sample.carrier).min(CARRIERS - 1);
                sample.value = self.shares[carrier].add(sample.value != 0.0);
            }
        }
        Some(sample)
    }
}

impl Share {
    /// Adds a block; gives the share.
    fn add(&mut self, is_one: bool) -> f64 {
        self.blocks = self.blocks << 1 | u128::from(is_one);
        self.count = (self.count + 1).min(SHARE_BLOCKS);
        f64::from(self.blocks.count_ones()) / f64::from(self.count)
    }
}

//! Extractor of KPIs: packets in, samples out.

use super::memory::{Bearers, Queue, Sent};
use super::origin::Formula;
use super::plan::{self, CodePlan};
use super::trouble::Troubles;
use super::{Carriers, Kind, Kpi, Reason, Scope, Subscription, Trouble, Wanted};
use crate::layout::{Verified, Version, Visited};
use crate::packet::{LogCode, LogPacket};
use crate::stamp::Stamp;

/// Time by the modem's clock for which the preferred origin of a level must be silent before the next origin is used.
///
/// Chosen: ten times the interval of the rarest report of a connected phone. An idle phone sends only the rarer
/// reports; the extractor then uses these reports.
pub const HOLD_SECONDS: f64 = 1.0;

/// Number of a carrier's last blocks over which a share is computed.
///
/// Chosen: enough to distinguish 10 % from 5 %, and few enough to cover at most one second under load.
pub const SHARE_BLOCKS: u32 = 128;

/// One value of a selected KPI or field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Index into the subscription.
    pub wanted: usize,
    /// The value in the KPI's unit.
    pub value: f64,
    /// Time at which the modem sent the packet. The records in the packet are older: see `subframe`.
    pub stamp: Stamp,
    /// The subframe, if the packet contains it: ten times the system frame number, plus the subframe.
    pub subframe: Option<u16>,
    /// The carrier: 0 is the primary carrier, also if the packet has no carrier number.
    pub carrier: u8,
    /// How well the layout is verified.
    pub verified: Verified,
}

/// Extracts the values of a subscription from packets.
///
/// If several kinds of packets contain the same KPI, the first kind in the order of the KPI's origins is used. For a
/// level, the next origin is used once the preferred origin was silent for [`HOLD_SECONDS`]; for a level of a carrier,
/// each carrier has its own preferred origin. For a KPI that is counted, the next origin is never used, so that nothing
/// is counted twice.
#[derive(Clone, Debug)]
pub struct Extractor {
    plans: Vec<CodePlan>,
    states: Vec<State>,
    troubles: Troubles,
    /// Values of the packet, until the whole packet is known to match its layout.
    pending: Vec<Pending>,
    /// For each selected value, the rows of a sample that is not complete yet.
    rows: Vec<Rows>,
    /// Number of packets so far.
    packets: u64,
}

/// State of one selected value.
#[derive(Clone, Debug)]
struct State {
    wanted: Wanted,
    kind: Kind,
    /// The most preferred origin so far and the time of its last value; for a level of a carrier, per carrier.
    best: [Option<(usize, Stamp)>; CARRIERS],
    /// Number of the packet whose values are not counted.
    ///
    /// Chosen: when a more preferred origin of a total appears, the less preferred origin may already have counted the
    /// content of its first packet.
    passed_over: Option<u64>,
    total: f64,
    shares: [Share; CARRIERS],
    /// Transmitted PDUs, for a KPI that detects retransmissions.
    bearers: Option<Bearers>,
    /// Queued bytes, for a KPI that measures queueing delay.
    queue: Option<Queue>,
}

/// Number of carriers with separate shares. All further carriers use the last entry.
const CARRIERS: usize = 8;

/// The last blocks of one carrier, the newest in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    blocks: u128,
    count: u32,
}

/// A value whose packet is not verified yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    rank: usize,
    sample: Sample,
    /// The PDU of the value, if the KPI detects retransmissions.
    sent: Option<Sent>,
}

/// Rows that together make one sample.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    left: u64,
    sum: Option<f64>,
}

impl Extractor {
    /// An extractor for this subscription.
    pub fn new(subscription: &Subscription) -> Extractor {
        /// Chosen: more samples than any packet of a real log contains, so that no allocation is needed later.
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

    /// Replaces the subscription. If a value was selected before as well, its total or share continues.
    pub fn follow(&mut self, subscription: &Subscription) {
        let before = std::mem::take(&mut self.states);
        self.states = subscription.iter().map(|wanted| State::of(wanted, &before)).collect();
        self.plans = plan::plan(subscription);
        self.rows = vec![Rows::default(); self.states.len()];
    }

    /// Takes the next packet. Calls `each` for the selected values in it; the values of one KPI are in the order of the
    /// records. Returns the trouble if the packet causes the first trouble of a kind.
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

    /// Counts a truncated packet of this code. Returns the trouble if it is the first of this kind.
    pub fn cut(&mut self, code: LogCode) -> Option<Trouble> {
        self.plans.binary_search_by_key(&code, |plan| plan.code.code).ok()?;
        self.troubles.count(code, None, Reason::Cut)
    }

    /// Counters of unreadable packets so far, in the order of their first occurrence.
    pub fn troubles(&self) -> &[Trouble] {
        self.troubles.kinds()
    }

    /// Number of troubles whose kind is not counted separately.
    pub fn more_troubles(&self) -> u64 {
        self.troubles.beyond()
    }

    /// Reads a packet into the pending values; none if the packet does not match its layout.
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
        for &wanted in layout.missing.iter().filter(|&&wanted| is_of_radio(wanted)) {
            count(Some(version), Reason::MissingKpi(wanted));
        }
        for group in &layout.groups {
            if !group.uses.iter().any(|one| is_of_radio(one.wanted)) {
                continue;
            }
            for one in &group.uses {
                rows[one.wanted] = Rows::default();
            }
            let fits = group.pick.visit_carefully(packet.payload, |visited| {
                let (row, verified) = match visited {
                    Visited::Row(row, verified) => (row, verified),
                    Visited::Unknown(id, kind) => return count(Some(version), Reason::Subpacket(id, kind)),
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
                    let sent = one.sent(row);
                    let mut push =
                        |value| pending.push(Pending { rank: one.rank, sample: sample(value), sent });
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
    /// Adds a row of a record with `of` rows. After the last row, returns the sum of the record.
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
    /// Continues from the earlier state of the same value, if any.
    fn of(wanted: &Wanted, before: &[State]) -> State {
        if let Some(known) = before.iter().find(|state| state.wanted == *wanted) {
            return known.clone();
        }
        let kind = wanted.kpi().map_or(Kind::Event, |kpi| kpi.kind);
        let asks_again =
            |kpi: &Kpi| plan::origins(kpi.name).any(|origin| matches!(origin.formula, Formula::SentAgain));
        State {
            wanted: wanted.clone(),
            kind,
            best: [None; CARRIERS],
            passed_over: None,
            total: 0.0,
            shares: [Share::default(); CARRIERS],
            bearers: wanted.kpi().is_some_and(asks_again).then(Bearers::default),
            queue: (kind == Kind::Wait).then(Queue::default),
        }
    }

    /// Converts a value to a sample; `None` if another origin is used for the KPI.
    fn admit(&mut self, pending: Pending, packet: u64) -> Option<Sample> {
        let Pending { rank, mut sample, sent } = pending;
        if let Carriers::Only(carrier) = self.wanted.carriers
            && carrier != sample.carrier
        {
            return None;
        }
        // One kind of packet may report only the primary carrier, and another kind all carriers.
        let is_of_carrier =
            self.kind == Kind::Level && self.wanted.kpi().is_some_and(|kpi| kpi.scope == Scope::Carrier);
        let best = if is_of_carrier { usize::from(sample.carrier).min(CARRIERS - 1) } else { 0 };
        let best = &mut self.best[best];
        if let Some((best, spoke)) = *best {
            let is_silent = || sample.stamp.since(spoke).is_some_and(|silence| silence > HOLD_SECONDS);
            if rank > best && !(self.kind == Kind::Level && is_silent()) {
                return None;
            }
            if rank < best && self.kind == Kind::Total {
                self.passed_over = Some(packet);
            }
        }
        *best = Some((rank, sample.stamp));
        if self.passed_over == Some(packet) {
            return None;
        }
        if let (Some(bearers), Some(sent)) = (&mut self.bearers, sent) {
            sample.value = f64::from(u8::from(bearers.is_again(sent)));
        }
        match self.kind {
            Kind::Level | Kind::Event => {}
            Kind::Wait => sample.value = self.queue.as_mut()?.report(sample.value, sample.stamp)?,
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
    /// Adds a block; returns the share.
    fn add(&mut self, is_one: bool) -> f64 {
        self.blocks = self.blocks << 1 | u128::from(is_one);
        self.count = (self.count + 1).min(SHARE_BLOCKS);
        f64::from(self.blocks.count_ones()) / f64::from(self.count)
    }
}

//! Carrier aggregation of one device: activation and deactivation of its further carriers.
//!
//! The device's carriers have a fixed order and are activated one after the other. The first carrier is always active.
//!
//! Source: PBE-CC §3 (activated when data piles up in the queue, deactivated when the extra capacity is not used)
//!
//! Differs: a deactivated carrier stops carrying new data immediately, but still serves the pending retransmissions. The
//! standard flushes them and leaves their recovery to RLC.

use std::time::Duration;

use airpace_core::{Bytes, Time};

use super::config::AggregationConfig;

/// PRBs of a device in one millisecond, over its active carriers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// PRBs granted to the device.
    pub own: u32,
    /// PRBs of all active carriers that were not granted to other users.
    pub left: u32,
    /// Sum, over the active carriers, of the carrier's PRBs divided by the number of users with data, this device
    /// included. In thousandths of a PRB.
    pub equal_share_thousandths: u32,
    /// PRBs granted to other users on all active carriers except the last.
    pub others_without_last: u32,
    /// PRBs of all active carriers except the last.
    pub total_without_last: u32,
    /// Whether the device was granted PRBs on the last active carrier.
    pub last_is_used: bool,
    /// Bytes queued for the device.
    pub queue_bytes: u64,
}

/// PRBs of a carrier in one millisecond, summed over its slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CarrierPrbs {
    /// PRBs of the carrier.
    pub total: u32,
    /// PRBs granted to the device.
    pub own: u32,
    /// PRBs granted to all users.
    pub used: u32,
}

impl Load {
    /// Counts an active carrier on which `others` other users had data.
    pub(super) fn count(&mut self, prbs: CarrierPrbs, others: usize, is_last: bool) {
        let CarrierPrbs { total, own, used } = prbs;
        let of_others = used - own;
        self.own += own;
        self.left += total - of_others;
        self.equal_share_thousandths += 1000 * total / (1 + others as u32);
        if is_last {
            self.last_is_used = own > 0;
        } else {
            self.others_without_last += of_others;
            self.total_without_last += total;
        }
    }
}

/// The aggregation state of one device.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    config: AggregationConfig,
    usable: usize,
    active: usize,
    /// Time at which the next carrier starts to carry data; `None` if no activation is decided.
    activates_at: Option<Time>,
    recent: Window,
    queue_since: Option<Time>,
    unused_since: Time,
    off: OffWindow,
}

/// The loads of the last milliseconds, and the sums of these loads. Milliseconds before the start of the run count as
/// idle.
#[derive(Clone, Debug)]
struct Window {
    loads: Box<[Sums]>,
    sums: Sums,
    next: usize,
}

/// Sums of PRBs over milliseconds, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    own: u64,
    left: u64,
    equal_share: u64,
}

/// Sums of PRBs since the last check for deactivation.
#[derive(Clone, Copy, Debug, Default)]
struct OffWindow {
    since: Time,
    own: u64,
    offered: u64,
    queued: bool,
}

impl Aggregation {
    /// The state of a device that can use `usable` carriers.
    pub(super) fn new(config: &AggregationConfig, usable: usize) -> Aggregation {
        Aggregation {
            config: config.clone(),
            usable,
            active: if config.always_active { usable } else { 1 },
            activates_at: None,
            recent: Window::new(config.on_ms.max(1) as usize),
            queue_since: None,
            unused_since: Time::ZERO,
            off: OffWindow::default(),
        }
    }

    /// Number of the device's active carriers. Carriers are activated in the device's order.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// Queue length that activates the device's next carrier if the queue has this length for `on_ms`, even if the
    /// device gets few PRBs of the active carriers; `None` if all carriers are active, or the next carrier is already
    /// being activated.
    pub(super) fn needed_queue(&self) -> Option<Bytes> {
        let lacks = self.active < self.usable && self.activates_at.is_none();
        lacks.then_some(Bytes(self.config.on_queue_bytes))
    }

    /// Deactivates all carriers except the primary carrier, at a handover.
    ///
    /// Source: TS 36.331 §5.3.10.3b (further carriers come up deactivated)
    pub(super) fn reset(&mut self, now: Time) {
        if !self.config.always_active {
            self.set_active(now, 1);
        }
    }

    /// Activates the carrier whose activation is complete at `now`.
    pub(super) fn begin(&mut self, now: Time) {
        if self.activates_at.is_some_and(|at| at <= now) {
            self.set_active(now, self.active + 1);
        }
    }

    /// Records the load of the millisecond that starts at `now`, and decides about activation and deactivation.
    pub(super) fn observe(&mut self, now: Time, load: Load) {
        if self.config.always_active || self.usable == 1 {
            return;
        }
        let used_share = self.recent.add(load);
        let is_queued = load.queue_bytes >= self.config.on_queue_bytes;
        self.queue_since = is_queued.then(|| self.queue_since.unwrap_or(now));
        let has_queued =
            self.queue_since.is_some_and(|since| now + MILLISECOND >= since + ms(self.config.on_ms));
        let is_full = used_share >= self.config.on_share || has_queued;
        if is_full && self.active < self.usable && self.activates_at.is_none() {
            self.activates_at = Some(now + ms(self.config.activation_delay_ms));
        }
        if self.active > 1 {
            self.consider_deactivation(now, load, is_queued);
        }
    }

    fn consider_deactivation(&mut self, now: Time, load: Load, is_queued: bool) {
        let end = now + MILLISECOND;
        if load.last_is_used {
            self.unused_since = end;
        }
        self.off.own += u64::from(load.own);
        self.off.offered += u64::from(load.total_without_last.saturating_sub(load.others_without_last));
        self.off.queued |= is_queued;
        let timer_ran_out = end >= self.unused_since + ms(self.config.deactivation_timer_ms);
        let mut fits = false;
        if end >= self.off.since + ms(self.config.off_ms) {
            fits = !self.off.queued
                && self.off.own as f64 <= self.config.off_share * self.off.offered as f64
                && self.activates_at.is_none();
            self.off = OffWindow { since: end, ..OffWindow::default() };
        }
        if timer_ran_out || fits {
            self.set_active(end, self.active - 1);
        }
    }

    fn set_active(&mut self, now: Time, active: usize) {
        self.active = active;
        self.activates_at = None;
        self.recent.clear();
        self.queue_since = None;
        self.unused_since = now;
        self.off = OffWindow { since: now, ..OffWindow::default() };
    }
}

/// Interval at which loads are recorded.
const MILLISECOND: Duration = Duration::from_millis(1);

fn ms(milliseconds: u32) -> Duration {
    Duration::from_millis(milliseconds.into())
}

impl Window {
    fn new(milliseconds: usize) -> Window {
        Window { loads: vec![Sums::default(); milliseconds].into(), sums: Sums::default(), next: 0 }
    }

    /// Adds a millisecond. Returns the device's share, over the whole window, of the PRBs that the scheduler could assign to
    /// it; 0 until the window is full.
    fn add(&mut self, load: Load) -> f64 {
        let new = Sums {
            own: 1000 * u64::from(load.own),
            left: 1000 * u64::from(load.left),
            equal_share: u64::from(load.equal_share_thousandths),
        };
        let old = std::mem::replace(&mut self.loads[self.next], new);
        self.sums.own = self.sums.own + new.own - old.own;
        self.sums.left = self.sums.left + new.left - old.left;
        self.sums.equal_share = self.sums.equal_share + new.equal_share - old.equal_share;
        self.next = (self.next + 1) % self.loads.len();
        // An entry that was never filled has no carrier.
        if self.loads[self.next].equal_share == 0 {
            return 0.0;
        }
        self.sums.own as f64 / self.sums.left.max(self.sums.equal_share) as f64
    }

    fn clear(&mut self) {
        *self = Window::new(self.loads.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aggregation() -> Aggregation {
        Aggregation::new(&AggregationConfig::default(), 2)
    }

    fn load(own: u32, queue_bytes: u64, active: usize) -> Load {
        let mut load = Load { queue_bytes, ..Load::default() };
        for place in 0..active {
            let own = if place == 0 { own } else { 0 };
            load.count(CarrierPrbs { total: 50, own, used: own }, 0, place + 1 == active);
        }
        load
    }

    /// The load of a subframe in which another user, which always has data, takes the remaining PRBs of the primary
    /// carrier.
    fn contended(own: u32) -> Load {
        let mut load = Load::default();
        load.count(CarrierPrbs { total: 50, own, used: 50 }, 1, true);
        load
    }

    fn first_subframe_with(state: &mut Aggregation, active: usize, load: Load) -> Option<u64> {
        (0..2000).find(|&now| {
            state.begin(Time::from_millis(now));
            state.observe(Time::from_millis(now), load);
            state.active() == active
        })
    }

    #[test]
    fn a_full_primary_carrier_without_any_queue_activates_the_next() {
        let at = first_subframe_with(&mut aggregation(), 2, load(47, 0, 1)).expect("never activated");
        assert!((100..=160).contains(&at), "activated after {at} ms of full use");
    }

    #[test]
    fn a_queue_activates_the_next_even_where_others_take_the_primary_carrier() {
        assert!(first_subframe_with(&mut aggregation(), 2, load(20, 60_000, 1)).is_some());
        assert_eq!(
            first_subframe_with(&mut aggregation(), 2, load(20, 1_000, 1)),
            None,
            "neither load nor queue asks for a second carrier"
        );
    }

    #[test]
    fn a_queue_is_needed_until_the_last_carrier_is_decided_on() {
        let mut state = aggregation();
        assert_eq!(state.needed_queue(), Some(Bytes(50_000)));
        first_subframe_with(&mut state, 2, load(20, 60_000, 1)).expect("a queue activates it");
        assert_eq!(state.needed_queue(), None);
        state.reset(Time::from_secs(5));
        assert_eq!(state.needed_queue(), Some(Bytes(50_000)), "after a handover");
        let always = AggregationConfig { always_active: true, ..AggregationConfig::default() };
        assert_eq!(Aggregation::new(&always, 2).needed_queue(), None);
    }

    #[test]
    fn who_uses_its_share_beside_a_busy_user_gets_the_next_and_who_does_not_stays() {
        assert!(
            first_subframe_with(&mut aggregation(), 2, contended(24)).is_some(),
            "half of the carrier is all"
        );
        assert_eq!(
            first_subframe_with(&mut aggregation(), 2, contended(4)),
            None,
            "a thin flow needs no more"
        );
        // Grants of the whole band in every second subframe have the same effect as grants of half the band in every
        // subframe.
        let mut state = aggregation();
        let alternate = |now: u64| contended(if now.is_multiple_of(2) { 50 } else { 0 });
        assert!((0..200).any(|now| {
            state.begin(Time::from_millis(now));
            state.observe(Time::from_millis(now), alternate(now));
            state.active() == 2
        }));
    }

    #[test]
    fn a_carrier_that_the_load_does_not_need_is_let_go() {
        let mut state = aggregation();
        first_subframe_with(&mut state, 2, load(50, 60_000, 1)).expect("never activated");
        assert!(first_subframe_with(&mut state, 1, load(20, 0, 2)).is_some());
    }
}

//! Merges the reports of several cells by subframe.
//!
//! Every cell is decoded separately, with its own delay. A subframe is returned when all cells have reported it. The
//! fusion does not wait for a cell that falls too far behind: the other cells continue, and [`Fused::Stalled`] reports
//! the cell. The fusion also does not wait for a cell that is known to be silent or to have ended. When such a cell
//! comes back, its reports may have a wrong time. Until the cell has kept up with the other cells for `patience`
//! subframes ([`Fusion::new`]), no other cell counts as behind this cell.

use std::collections::{BTreeMap, VecDeque};

use crate::report::{CarrierId, RadioReport};
use crate::slot::Slot;

/// One output of the fusion.
#[derive(Clone, Debug, PartialEq)]
pub enum Fused {
    /// One subframe of all cells, with the reports in the order of the carriers. There is no report from a cell that lost
    /// the subframe, or for which the fusion does not wait.
    Subframe {
        /// Subframe number in the shared numbering.
        index: u64,
        /// Reports of the cells on this subframe, at least one.
        reports: Vec<RadioReport>,
    },
    /// The fusion stops waiting for this cell.
    Stalled(CarrierId),
    /// A cell for which the fusion did not wait has caught up with the others.
    Back(CarrierId),
}

/// Merges the reports of several cells by subframe.
#[derive(Clone, Debug)]
pub struct Fusion {
    cells: BTreeMap<CarrierId, Source>,
    /// Maximum delay of a cell behind the fastest cell (subframes).
    patience: u64,
    waiting: BTreeMap<u64, Vec<RadioReport>>,
    /// Last returned subframe. Reports on this subframe or an earlier one are too late.
    done: Option<u64>,
    stalls: Vec<Fused>,
}

#[derive(Clone, Debug, Default)]
struct Source {
    /// Offset added to the cell's own subframe numbers.
    offset: i64,
    /// Future offsets, each with the cell's own subframe number from which the offset applies.
    offsets: VecDeque<(u64, i64)>,
    /// Last slot of the cell, in the shared numbering.
    last: Option<Slot>,
    /// Whether the fusion does not wait for the cell until it has caught up.
    is_stalled: bool,
    /// For a cell that came back: newest subframe of the other cells at the last time when this cell was far from them.
    /// `None` for a cell in its normal state.
    last_apart: Option<u64>,
    /// Whether the cell's remaining reports arrive at once.
    is_leaving: bool,
    /// Whether the cell sends no more reports.
    has_ended: bool,
    too_late: u64,
}

impl Source {
    /// Whether the fusion does not wait for the cell.
    fn is_free(&self) -> bool {
        self.is_stalled || self.has_ended
    }

    /// Converts a slot with the cell's own number to the shared numbering. The cell's own numbers must increase.
    fn shared(&mut self, own: Slot) -> Slot {
        while let Some(&(_, offset)) = self.offsets.front().filter(|(from, _)| *from <= own.subframe()) {
            self.offset = offset;
            self.offsets.pop_front();
        }
        own.later_by(self.offset)
    }

    /// Last subframe of the cell, in the shared numbering.
    fn newest(&self) -> Option<u64> {
        self.last.map(Slot::subframe)
    }

    /// Whether all reports of a subframe have arrived from the cell.
    fn has_reported(&self, subframe: u64) -> bool {
        self.last.is_some_and(|last| {
            last.subframe() > subframe || last.subframe() == subframe && last.ends_subframe()
        })
    }
}

impl Fusion {
    /// Unlimited patience, for complete recordings: the fusion always waits for the slowest cell.
    pub const WITHOUT_END: u64 = u64::MAX;

    /// Maximum delay of a live cell behind the fastest cell (subframes).
    ///
    /// Chosen: receiver buffers differ by tens of milliseconds, and a rate controller needs reports soon.
    pub const LIVE_PATIENCE: u64 = 100;

    /// Creates a fusion of `carriers`. A cell may be `patience` subframes behind the fastest cell:
    /// [`Fusion::WITHOUT_END`] if waiting has no cost, [`Fusion::LIVE_PATIENCE`] for live cells.
    pub fn new(carriers: impl IntoIterator<Item = CarrierId>, patience: u64) -> Fusion {
        Fusion {
            cells: carriers.into_iter().map(|carrier| (carrier, Source::default())).collect(),
            patience,
            waiting: BTreeMap::new(),
            done: None,
            stalls: Vec::new(),
        }
    }

    /// Adds `offset` to the subframe numbers of one cell, starting at the cell's own number `from`, because cells may
    /// have different frame numbers. Call this method before the report with the number `from` is pushed.
    pub fn align(&mut self, carrier: CarrierId, from: u64, offset: i64) {
        if let Some(source) = self.cells.get_mut(&carrier) {
            source.offsets.push_back((from, offset));
        }
    }

    /// Reports that a timer detected silence of a cell. The fusion does not wait for the cell until the cell has caught
    /// up.
    pub fn stall(&mut self, carrier: CarrierId) {
        if let Some(source) = self.cells.get_mut(&carrier) {
            source.is_stalled = true;
        }
    }

    /// Reports that the remaining reports of a cell arrive at once, so that no other cell counts as behind this cell.
    pub fn leave(&mut self, carrier: CarrierId) {
        if let Some(source) = self.cells.get_mut(&carrier) {
            source.is_leaving = true;
        }
    }

    /// Reports that a cell sends no more reports. The fusion does not wait for the cell.
    pub fn end(&mut self, carrier: CarrierId) {
        if let Some(source) = self.cells.get_mut(&carrier) {
            source.has_ended = true;
        }
    }

    /// Adds a report. Reports of a carrier must be in order. The fusion drops reports of unknown carriers, reports of
    /// subframes that were already returned, and reports with a number that the carrier already had.
    pub fn push(&mut self, mut report: RadioReport) {
        let Some(source) = self.cells.get_mut(&report.carrier) else { return };
        report.slot = source.shared(report.slot);
        let slot = report.slot;
        let is_had = source.last.is_some_and(|last| slot.index <= last.index);
        if !is_had {
            source.last = Some(slot);
        }
        if is_had || Some(slot.subframe()) <= self.done {
            source.too_late += 1;
        } else {
            self.waiting.entry(slot.subframe()).or_default().push(report);
        }
        self.mark();
    }

    /// Detects cells that have fallen behind, and cells that have caught up.
    fn mark(&mut self) {
        let all = || self.cells.values().filter(|source| !source.is_leaving && !source.has_ended);
        let steady = all().filter(|source| !source.is_stalled && source.last_apart.is_none());
        let newest = steady.filter_map(Source::newest).max();
        let Some(newest) = newest.or_else(|| all().filter_map(Source::newest).max()) else { return };
        let oldest = self.waiting.keys().next().copied().unwrap_or(newest);
        for (&carrier, source) in self.cells.iter_mut().filter(|(_, source)| !source.has_ended) {
            // A cell without any report is as late as the oldest report that waits for it.
            let last = source.newest().unwrap_or(oldest);
            let is_beside = source.last.is_some() && newest.abs_diff(last) <= self.patience / 2;
            if !source.is_stalled && newest.saturating_sub(last) > self.patience {
                source.is_stalled = true;
                self.stalls.push(Fused::Stalled(carrier));
            } else if source.is_stalled && is_beside {
                (source.is_stalled, source.last_apart) = (false, Some(newest));
                self.stalls.push(Fused::Back(carrier));
            } else if source.last_apart.is_some() && !is_beside {
                source.last_apart = Some(newest);
            }
            source.last_apart = source.last_apart.filter(|at| newest.saturating_sub(*at) <= self.patience);
        }
    }

    /// Returns the next output; `None` if a cell must report first.
    pub fn pop(&mut self) -> Option<Fused> {
        if !self.stalls.is_empty() {
            return Some(self.stalls.remove(0));
        }
        let (&index, _) = self.waiting.first_key_value()?;
        let is_complete = self.cells.values().all(|source| source.is_free() || source.has_reported(index));
        if is_complete { self.take() } else { None }
    }

    /// Returns the next output, complete or not. Call this method when no more reports arrive.
    pub fn flush(&mut self) -> Option<Fused> {
        self.pop().or_else(|| self.take())
    }

    fn take(&mut self) -> Option<Fused> {
        let (index, mut reports) = self.waiting.pop_first()?;
        self.done = Some(index);
        reports.sort_by_key(|report| (report.carrier, report.slot.index));
        Some(Fused::Subframe { index, reports })
    }

    /// Number of reports of a carrier that arrived after their subframe was returned, or with a number that the carrier
    /// already had.
    pub fn too_late(&self, carrier: CarrierId) -> u64 {
        self.cells.get(&carrier).map_or(0, |source| source.too_late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{BitLayer, Scope};
    use crate::slot::Numerology;
    use airpace_core::Time;

    fn report(carrier: u8, index: u64) -> RadioReport {
        RadioReport {
            carrier: CarrierId(carrier),
            slot: Slot::subframe_of_lte(index),
            time: Time::ZERO,
            scope: Scope::Everyone,
            carrier_prbs: Some(50),
            cfi: Some(1),
            symbols: None,
            dcis: Vec::new(),
            own: None,
            layer: BitLayer::Physical,
        }
    }

    /// Returns the numbers and carriers of the returned subframes, without [`Fused::Stalled`] and [`Fused::Back`].
    fn drain(fusion: &mut Fusion) -> Vec<(u64, Vec<u8>)> {
        std::iter::from_fn(|| fusion.pop())
            .filter_map(|fused| match fused {
                Fused::Subframe { index, reports } => {
                    Some((index, reports.iter().map(|report| report.carrier.0).collect()))
                }
                Fused::Stalled(_) | Fused::Back(_) => None,
            })
            .collect()
    }

    #[test]
    fn a_subframe_waits_for_all_cells() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        fusion.push(report(1, 5));
        fusion.push(report(1, 6));
        assert_eq!(drain(&mut fusion), []);
        fusion.push(report(0, 5));
        assert_eq!(drain(&mut fusion), [(5, vec![0, 1])]);
        fusion.push(report(0, 7));
        assert_eq!(drain(&mut fusion), [(6, vec![1])], "the first cell lost subframe 6");
        assert_eq!(
            fusion.flush(),
            Some(Fused::Subframe { index: 7, reports: vec![report(0, 7)] }),
            "at the end, the fusion waits for nothing"
        );
    }

    #[test]
    fn a_cell_that_stalls_does_not_stall_the_others() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        fusion.push(report(0, 0));
        fusion.push(report(1, 0));
        (1..=11).for_each(|index| fusion.push(report(0, index)));
        assert_eq!(fusion.pop(), Some(Fused::Stalled(CarrierId(1))));
        assert_eq!(drain(&mut fusion).len(), 12, "all waiting subframes are returned");
        fusion.push(report(1, 3));
        assert_eq!((drain(&mut fusion), fusion.too_late(CarrierId(1))), (vec![], 1));
        fusion.push(report(1, 12));
        assert_eq!(fusion.pop(), Some(Fused::Back(CarrierId(1))));
        assert_eq!(drain(&mut fusion), [], "the first cell has not reported 12 yet");
        fusion.push(report(0, 12));
        assert_eq!(drain(&mut fusion), [(12, vec![0, 1])]);
    }

    #[test]
    fn a_cell_that_never_speaks_is_not_waited_for_for_ever() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        (100..=110).for_each(|index| fusion.push(report(0, index)));
        assert_eq!(fusion.pop(), None);
        fusion.push(report(0, 111));
        assert_eq!(fusion.pop(), Some(Fused::Stalled(CarrierId(1))));
    }

    #[test]
    fn a_cell_that_ended_or_is_silent_is_not_waited_for() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], Fusion::WITHOUT_END);
        fusion.push(report(0, 5));
        fusion.push(report(0, 9000));
        assert_eq!(fusion.pop(), None, "with patience, the fusion waits for any time");
        fusion.stall(CarrierId(1));
        assert_eq!(drain(&mut fusion), [(5, vec![0]), (9000, vec![0])]);
        fusion.push(report(1, 9001));
        assert_eq!(fusion.pop(), Some(Fused::Back(CarrierId(1))));
        fusion.push(report(0, 9001));
        fusion.push(report(0, 9002));
        assert_eq!(
            drain(&mut fusion),
            [(9001, vec![0, 1])],
            "the fusion waits again for a cell that came back"
        );
        fusion.end(CarrierId(1));
        fusion.push(report(0, 20_000));
        assert_eq!(drain(&mut fusion), [(9002, vec![0]), (20_000, vec![0])]);
    }

    #[test]
    fn a_carrier_that_returns_ahead_of_its_time_removes_no_other() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 100);
        (0..2).for_each(|carrier| fusion.push(report(carrier, 0)));
        fusion.stall(CarrierId(1));
        (1..=1000).for_each(|index| fusion.push(report(0, index)));
        assert_eq!(drain(&mut fusion).len(), 1001);
        // The reports of three hundred subframes arrive at once, with numbers that are too high.
        (1001..=1300).for_each(|index| fusion.push(report(1, index)));
        assert_eq!(fusion.pop(), Some(Fused::Back(CarrierId(1))));
        for index in 1001..=2000 {
            fusion.push(report(0, index));
            fusion.push(report(1, index + 300));
            let both = Fused::Subframe { index, reports: vec![report(0, index), report(1, index)] };
            assert_eq!(fusion.pop(), Some(both), "every subframe is complete, and no cell counts as behind");
        }
        assert_eq!(fusion.pop(), None);
        assert_eq!(fusion.too_late(CarrierId(0)), 0, "a cell that never stalled is in every subframe");
    }

    #[test]
    fn cells_that_count_differently_are_aligned() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        fusion.align(CarrierId(1), 0, -3);
        fusion.push(report(0, 50));
        fusion.push(report(1, 53));
        assert_eq!(drain(&mut fusion), [(50, vec![0, 1])]);
    }

    #[test]
    fn what_is_kept_back_keeps_the_numbers_of_its_time() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        fusion.align(CarrierId(1), 52, 3);
        (50..56).for_each(|index| fusion.push(report(0, index)));
        (50..53).for_each(|index| fusion.push(report(1, index)));
        let together = [(50, vec![0, 1]), (51, vec![0, 1]), (52, vec![0]), (53, vec![0]), (54, vec![0])];
        assert_eq!(
            drain(&mut fusion),
            [&together[..], &[(55, vec![0, 1])]].concat(),
            "three subframes of the second cell are missing"
        );
    }

    #[test]
    fn the_last_words_of_one_put_no_other_behind() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        (0..2).for_each(|carrier| fusion.push(report(carrier, 5)));
        fusion.leave(CarrierId(0));
        (6..100).for_each(|index| fusion.push(report(0, index)));
        fusion.end(CarrierId(0));
        (6..100).for_each(|index| fusion.push(report(1, index)));
        assert_eq!(fusion.too_late(CarrierId(1)), 0);
        assert!(
            drain(&mut fusion).iter().all(|(_, carriers)| *carriers == [0, 1]),
            "every subframe has both cells"
        );
    }

    #[test]
    fn numbers_that_a_cell_had_already_are_left_out() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        fusion.align(CarrierId(1), 52, -2);
        (50..53).for_each(|index| fusion.push(report(0, index)));
        (50..55).for_each(|index| fusion.push(report(1, index)));
        assert_eq!(drain(&mut fusion), [(50, vec![0, 1]), (51, vec![0, 1]), (52, vec![0, 1])]);
        assert_eq!(fusion.too_late(CarrierId(1)), 2);
    }

    #[test]
    fn all_slots_of_a_subframe_come_out_together() {
        let mut fusion = Fusion::new([CarrierId(0), CarrierId(1)], 10);
        let fast =
            |index| RadioReport { slot: Slot { numerology: Numerology::KHZ_30, index }, ..report(1, 0) };
        fusion.push(report(0, 5));
        fusion.push(fast(10));
        assert_eq!(drain(&mut fusion), [], "the second slot of subframe 5 is still to come");
        fusion.push(fast(11));
        assert_eq!(drain(&mut fusion), [(5, vec![0, 1, 1])]);
        fusion.push(fast(11));
        assert_eq!(fusion.too_late(CarrierId(1)), 1, "a slot counts only once");
        fusion.align(CarrierId(1), 6, -1);
        fusion.push(report(0, 6));
        (12..16).for_each(|index| fusion.push(fast(index)));
        assert_eq!(drain(&mut fusion), [(6, vec![0, 1, 1])], "the shared subframe 6 was the cell's own 7");
    }

    #[test]
    fn the_last_subframe_of_all_comes_out() {
        let mut fusion = Fusion::new([CarrierId(0)], 10);
        fusion.push(report(0, u64::MAX));
        assert_eq!(drain(&mut fusion), [(u64::MAX, vec![0])]);
    }
}

//! Tracking of an interfering cell with aligned symbol timing: joint detection of both cells.

use super::{Health, Observation, Stream, Tracker};
use crate::observation::MAX_ANTENNAS;
use crate::sync::company::Company;
use crate::sync::lookout::DetectedCell;

/// Minimum log-likelihood ratio (nats) between a transmitted PCFICH and no PCFICH.
///
/// Chosen: if the cell is gone, the ratio is about two by chance.
const MIN_PRESENCE: f32 = 5.0;

impl Tracker {
    /// Returns the interfering cell with aligned symbol timing, if one was detected.
    pub(crate) fn beside(&self) -> Option<DetectedCell> {
        self.company.as_ref().map(|company| company.sight())
    }

    /// Returns the PCI of the interfering cell, and its mean power relative to the tracked cell over the last subframes, in
    /// dB.
    pub(crate) fn louder_beside(&self) -> Option<(u16, f32)> {
        let company = self.company.as_ref()?;
        Some((company.sight().pci, company.louder_db()?))
    }

    /// Restores the interfering cell that was present when this cell was lost.
    pub(crate) fn expect_beside(&mut self, sight: DetectedCell) {
        let antennas = self.antennas.grids().count();
        if antennas <= MAX_ANTENNAS {
            self.company = Some(Box::new(Company::new(self.cell(), sight, antennas)));
        }
    }

    /// Receives the interfering cell, if there is one. If this cell is strong enough to matter, decodes the CFI of the
    /// tracked cell jointly with it. Returns whether the joint detection confirms the tracked cell.
    pub(super) fn hear_beside(&mut self, symbols: &[usize], heard: &mut Observation) -> bool {
        let Some(company) = &mut self.company else { return false };
        company.receive(heard.number, symbols, &self.antennas, self.numerology);
        let both = company.both(&self.antennas);
        if both.is_empty() {
            company.is_absent();
            if company.is_gone() {
                self.company = None;
            }
            return false;
        }
        let presence =
            self.observer.cfi_beside(&both, company.subframe(heard.number), &company.shares(), heard);
        presence > MIN_PRESENCE && Health::is_read(heard) && self.health.may_be_beside(self.antennas.hints())
    }

    /// Demodulates the control region jointly with the interfering cell, if that cell is strong enough to matter.
    /// Returns whether joint demodulation was used.
    pub(super) fn read_beside(&mut self, heard: &mut Observation) -> bool {
        let Some(company) = &mut self.company else { return false };
        let both = company.both(&self.antennas);
        if both.is_empty() {
            return false;
        }
        let mut shares = company.shares();
        let other = company.subframe(heard.number);
        self.observer.bits_beside(&both, other, &mut shares, heard);
        drop(both);
        company.learn(shares);
        true
    }

    /// Searches for an interfering cell with aligned symbol timing.
    pub(super) fn look_beside(&mut self, stream: &Stream<'_>, number: usize) {
        let cell = *self.cell();
        if self.company.is_some() || cell.ports.count() > 2 || !self.lookout.is_due() {
            return;
        }
        self.demodulate(stream, cell.cp.symbols_per_slot() - 2);
        let Some(grid) = self.antennas.grids().nth(self.antennas.best()) else { return };
        let sight = self.lookout.look(&cell, number, grid, self.numerology.fft_size());
        if let Some(sight) = sight.filter(|sight| sight.pci % 3 != cell.pci % 3) {
            self.expect_beside(sight);
        }
    }
}

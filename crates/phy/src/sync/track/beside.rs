//! Another cell whose symbols begin together with those of the cell that is followed: both are read for what they are.

use super::{Health, Observation, Stream, Tracker};
use crate::observation::MOST_ANTENNAS;
use crate::sync::company::Company;
use crate::sync::lookout::Sight;

/// By so many nats it must be likelier that a PCFICH was sent than that it was not.
///
/// Chosen: where the cell is gone, chance leaves some two.
const LEAST_PRESENCE: f32 = 5.0;

impl Tracker {
    /// The cell beside this one whose symbols begin together with those of this one, if one was seen.
    pub(crate) fn beside(&self) -> Option<Sight> {
        self.company.as_ref().map(|company| company.sight())
    }

    /// The identity of that cell, and how much louder it is in the mean of the last subframes, in dB.
    pub(crate) fn louder_beside(&self) -> Option<(u16, f32)> {
        let company = self.company.as_ref()?;
        Some((company.sight().pci, company.louder_db()?))
    }

    /// There was such a cell when this one was lost.
    pub(crate) fn expect_beside(&mut self, sight: Sight) {
        let antennas = self.antennas.grids().count();
        if antennas <= MOST_ANTENNAS {
            self.company = Some(Box::new(Company::new(self.cell(), sight, antennas)));
        }
    }

    /// Receives another cell whose symbols begin together with those of this one, if there is one; and if it matters, reads
    /// the CFI beside it. Returns whether that shows that this cell was heard.
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
            self.observer.cfi_beside(&both, company.layout(heard.number), &company.shares(), heard);
        presence > LEAST_PRESENCE
            && Health::is_read(heard)
            && self.health.may_be_beside(self.antennas.hints())
    }

    /// Reads the control region beside the other cell, if it matters.
    pub(super) fn read_beside(&mut self, heard: &mut Observation) -> bool {
        let Some(company) = &mut self.company else { return false };
        let both = company.both(&self.antennas);
        if both.is_empty() {
            return false;
        }
        let mut shares = company.shares();
        let other = company.layout(heard.number);
        self.observer.bits_beside(&both, other, &mut shares, heard);
        drop(both);
        company.learn(shares);
        true
    }

    /// Looks for another cell whose symbols begin together with those of this one.
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

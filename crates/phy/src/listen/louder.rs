//! Comparison with other cells: detects a cell that is stronger than the tracked cell for longer than a typical fade.
//!
//! Without a requested PCI, the listener tracks the first cell it finds. That cell may be the weaker of two cells if
//! the stronger cell faded at that moment. The weaker cell's reference signals stay detectable, so the listener would
//! never leave it. Therefore the listener checks for other cells from time to time. If another cell is as strong as the
//! tracked cell, the listener checks more often and compares the mean powers.

use super::CellChange;
use super::following::Following;

/// Power of another cell, and power of the tracked cell in the same period.
pub(super) struct Louder {
    other: Option<Other>,
    /// PCIs of the cells that the listener left for a stronger cell. The listener takes none of them again before its
    /// next search.
    left: Vec<u16>,
}

/// Another cell, observed since its power first reached that of the tracked cell.
struct Other {
    pci: u16,
    looks: u32,
    /// Mean power of the cell over the last checks. Checks that did not find the cell count as 0.
    mean: f32,
    /// Mean power of the tracked cell in the subframes since the observation started, and the number of these
    /// subframes.
    own: f32,
    subframes: u32,
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// No other cell is as strong as the tracked cell.
    Alone,
    /// Another cell may be stronger: the next check should follow soon.
    Unsure,
    /// Another cell is stronger: switch to it.
    Louder(CellChange),
}

/// Minimum ratio of the mean powers for which the listener switches to another cell.
///
/// Chosen: 3 dB. Switching between equally strong cells gains nothing, and the users of the new cell would have to be
/// learnt from the start.
const LOUDER: f32 = 2.0;

/// Minimum mean power of the other cell relative to the tracked cell. The comparison stops below this power.
const AS_LOUD: f32 = 1.0;

/// Minimum number of checks before a switch.
///
/// Chosen: checks are 100 ms apart. At walking pace a fade takes some tens of milliseconds, so that six checks sample
/// several states of both channels.
const MIN_LOOKS: u32 = 6;

/// Maximum number of checks after which the comparison stops.
const MAX_LOOKS: u32 = 12;

/// Number of checks before the comparison may stop because the other cell is weaker.
const FIRST_LOOKS: u32 = 3;

impl Louder {
    pub(super) fn new() -> Louder {
        Louder { other: None, left: Vec::new() }
    }

    /// Takes notice that the search found cell `pci` after the loss of cell `before`. If both are the same cell, the
    /// comparison continues.
    pub(super) fn begin(&mut self, pci: u16, before: Option<u16>) {
        if before != Some(pci) {
            self.other = None;
            self.left.clear();
        }
    }

    /// Returns whether the listener left cell `pci` for a stronger cell.
    pub(super) fn was_left(&self, pci: u16) -> bool {
        self.left.contains(&pci)
    }

    /// Adds the power of the tracked cell in one subframe.
    pub(super) fn hear(&mut self, loudness: f32) {
        if let Some(other) = &mut self.other {
            other.subframes += 1;
            other.own += (loudness - other.own) / other.subframes as f32;
        }
    }

    /// Takes the strongest other cell that a check found (PCI and power), and compares its mean power with that of the
    /// tracked cell since the first check. If the tracked cell's mean power since acquisition is higher, that mean is
    /// used.
    pub(super) fn look(&mut self, loudest: Option<(u16, f32)>, followed: &Following) -> Verdict {
        let (now, usual) = (followed.tracker.loudness(), followed.usual().loudness);
        let Some(other) = &mut self.other else {
            let is_loud = |other: &(u16, f32)| other.1 >= AS_LOUD * now;
            let Some((pci, mean)) = loudest.filter(is_loud) else { return Verdict::Alone };
            self.other = Some(Other { pci, looks: 1, mean, own: now, subframes: 1 });
            return Verdict::Unsure;
        };
        other.looks += 1;
        let loudness = loudest.filter(|loudest| loudest.0 == other.pci).map_or(0.0, |loudest| loudest.1);
        other.mean += (loudness - other.mean) / other.looks.min(MIN_LOOKS) as f32;
        let own = other.own.max(usual);
        let ratio = other.mean / own.max(f32::MIN_POSITIVE);
        if other.looks >= MIN_LOOKS && ratio >= LOUDER {
            let moved = CellChange {
                from: followed.tracker.cell().pci,
                to: other.pci,
                louder_db: 10.0 * libm::log10f(ratio),
            };
            return Verdict::Louder(moved);
        }
        if other.looks >= MAX_LOOKS || other.looks >= FIRST_LOOKS && ratio < AS_LOUD {
            self.other = None;
            return Verdict::Alone;
        }
        Verdict::Unsure
    }

    /// Takes notice of a switch: the listener leaves cell `pci` and does not switch back to it.
    pub(super) fn leave(&mut self, pci: u16) {
        self.other = None;
        self.left.push(pci);
    }
}

//! Whether another cell is louder than the one that is followed, for longer than a fade lasts.
//!
//! A listener that takes any cell takes the one that it hears first. If that is the weaker of two, because the stronger one
//! faded just then, it would stay with it: its reference signals are still there. So the listener looks for other cells
//! from time to time. Beside one that is as loud as its own it looks more often, and compares their means.

use super::Moved;
use super::following::Following;

/// What was heard of another cell, and of the followed one meanwhile.
pub(super) struct Louder {
    other: Option<Other>,
    /// Cells that were left, each for a louder one. None of them is taken again before the listener searches.
    left: Vec<u16>,
}

/// Another cell since it was as loud for the first time.
struct Other {
    pci: u16,
    looks: u32,
    /// Its loudness in the mean of the last looks; it is 0 in those in which it was not found.
    mean: f32,
    /// Mean loudness of the followed cell in the subframes since, and how many they are.
    own: f32,
    subframes: u32,
}

/// What a look leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// No other cell is as loud.
    Alone,
    /// Another may be: the next look should come soon.
    Unsure,
    /// Another is louder: this one.
    Louder(Moved),
}

/// Another cell is taken from this ratio of the means on.
///
/// Chosen: 3 dB. Cells that are equally loud are not exchanged: nothing is gained, and their users would have to be learnt
/// again.
const LOUDER: f32 = 2.0;

/// As loud: if another has less than this share of the loudness of the followed cell, it is not compared any longer.
const AS_LOUD: f32 = 1.0;

/// So many looks decide, at least and at most; and so many are taken before the other may turn out to be weaker.
///
/// Chosen: looks are 100 ms apart. At walking pace a fade takes some tens of milliseconds, so that six looks see several
/// states of both channels.
const LEAST_LOOKS: u32 = 6;
const MOST_LOOKS: u32 = 12;
const FIRST_LOOKS: u32 = 3;

impl Louder {
    pub(super) fn new() -> Louder {
        Louder { other: None, left: Vec::new() }
    }

    /// The search found cell `pci` after it had lost cell `before`. A cell that is found again is still compared.
    pub(super) fn begin(&mut self, pci: u16, before: Option<u16>) {
        if before != Some(pci) {
            self.other = None;
            self.left.clear();
        }
    }

    /// Whether cell `pci` was left for a louder one.
    pub(super) fn was_left(&self, pci: u16) -> bool {
        self.left.contains(&pci)
    }

    /// The followed cell was heard in a subframe this loud.
    pub(super) fn hear(&mut self, loudness: f32) {
        if let Some(other) = &mut self.other {
            other.subframes += 1;
            other.own += (loudness - other.own) / other.subframes as f32;
        }
    }

    /// Takes the loudest other cell that a look found, and how loud it is; and how loud the followed cell is now and in the
    /// mean since it was found.
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
        other.mean += (loudness - other.mean) / other.looks.min(LEAST_LOOKS) as f32;
        let own = other.own.max(usual);
        let ratio = other.mean / own.max(f32::MIN_POSITIVE);
        if other.looks >= LEAST_LOOKS && ratio >= LOUDER {
            let moved = Moved {
                from: followed.tracker.cell().pci,
                to: other.pci,
                louder_db: 10.0 * libm::log10f(ratio),
            };
            return Verdict::Louder(moved);
        }
        if other.looks >= MOST_LOOKS || other.looks >= FIRST_LOOKS && ratio < AS_LOUD {
            self.other = None;
            return Verdict::Alone;
        }
        Verdict::Unsure
    }

    /// The listener moves: the cell that it leaves is not taken again.
    pub(super) fn leave(&mut self, pci: u16) {
        self.other = None;
        self.left.push(pci);
    }
}

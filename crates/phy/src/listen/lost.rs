//! A cell that was followed and lost.
//!
//! A cell that fades is not gone. For a while the listener takes no other cell, unless that is louder than the lost one usually
//! was, and looks for the lost one where it would be by now. At the end of the samples, it need not read the PBCH of the lost cell again.

use super::usual::Usual;
use super::{KEPT_S, LONGEST_GAP_S, Lock};
use crate::cell::Cell;
use crate::pbch::Mib;
use crate::sync::broadcast::Broadcast;
use crate::sync::lookout::Sight;
use crate::sync::search::{Candidate, Duplex};
use crate::sync::track::Place;

/// The cell that was followed last, and a frame of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostCell {
    cell: Cell,
    rate_hz: u64,
    /// Number of the raw sample at which the frame began, and the frame's number.
    frame_start: f64,
    sfn: u16,
    /// Raw samples per subframe, by the drift of the clock.
    subframe: f64,
    cfo_hz: f64,
    /// The raw sample at which it was lost, and at which it was first lost if it was hardly found again meanwhile.
    lost_at: f64,
    held_from: f64,
    usual: Usual,
    /// A cell whose symbols begin together with its own.
    beside: Option<Sight>,
}

/// For so many seconds no other cell is taken that is not louder. A cell that is found again, but not for as long, is not held anew: otherwise
/// a weak one that is lost again and again would keep its place for good. Nor is it held for longer than it was heard.
///
/// Chosen: a receiver at walking pace is out of a fade within some tens of milliseconds. The samples since the loss are
/// still kept when the time is over, so that a handover costs no subframe.
const HELD_S: f64 = 0.15;

/// A cell with less than this signal to noise ratio is not held: a stronger one is worth more.
///
/// Chosen: below 3 dB, half of the messages on one CCE are lost.
const HELD_DB: f32 = 3.0;

impl LostCell {
    /// Lost at `place`, whose subframe of `subframe` raw samples begins with raw sample number `start`.
    pub(super) fn new(cell: Cell, place: &Place, start: f64, subframe: f64, rate_hz: u64) -> LostCell {
        let frame_start = start - place.number as f64 * subframe;
        LostCell {
            cell,
            rate_hz,
            frame_start,
            sfn: place.sfn,
            subframe,
            cfo_hz: place.cfo_hz,
            lost_at: start,
            held_from: start,
            usual: Usual::default(),
            beside: None,
        }
    }

    /// With how well it was usually heard.
    pub(super) fn with_usual(self, usual: Usual) -> LostCell {
        LostCell { usual, ..self }
    }

    /// If it had been found again only `followed` subframes ago, it is held as of the loss `before`.
    pub(super) fn lost_again(self, before: Option<f64>, followed: u32) -> LostCell {
        let is_hardly_found = f64::from(followed) < HELD_S * 1e3;
        LostCell { held_from: before.filter(|_| is_hardly_found).unwrap_or(self.lost_at), ..self }
    }

    /// The raw sample from which on it is held.
    pub(super) fn held_from(&self) -> f64 {
        self.held_from
    }

    /// How well it was usually heard.
    pub(super) fn usual(&self) -> &Usual {
        &self.usual
    }

    /// With a cell whose symbols begin together with its own.
    pub(super) fn with_beside(self, beside: Option<Sight>) -> LostCell {
        LostCell { beside, ..self }
    }

    /// A cell whose symbols begin together with its own.
    pub(super) fn beside(&self) -> Option<Sight> {
        self.beside
    }

    /// Its identity.
    pub(super) fn pci(&self) -> u16 {
        self.cell.pci
    }

    /// Whether only this cell is taken, once all raw samples before `next` were searched. A cell that is `asked` for has
    /// no other beside it, however weak it is.
    pub(super) fn is_held(&self, next: i64, asked: Option<u16>) -> bool {
        let is_asked_for = asked == Some(self.cell.pci);
        let since = |from: f64| (next as f64 - from) / self.rate_hz as f64;
        if is_asked_for {
            since(self.lost_at) < KEPT_S as f64
        } else {
            let longest_s = HELD_S.min(f64::from(self.usual.subframes) * 1e-3);
            self.usual.snr_db >= HELD_DB && since(self.held_from) < longest_s
        }
    }

    /// Where the cell is if it went on as before and no samples are missing: the last frame that began before raw
    /// sample `next`.
    pub(super) fn expected(&self, next: i64) -> Lock {
        let frame = 10.0 * self.subframe;
        let frames = libm::floor((next as f64 - self.frame_start) / frame);
        Lock {
            cell: self.cell,
            cfo_hz: self.cfo_hz,
            frame_start: self.frame_start + frames * frame,
            sfn: (i64::from(self.sfn) + frames as i64).rem_euclid(1024) as u16,
            after: next.max(0) as u64,
        }
    }

    /// The broadcast of a candidate that is this cell again; a frame of the candidate begins at raw sample
    /// `frame_start`. `None` if the candidate is another cell or comes too late. Frame numbers go on with time, as if
    /// less than half a frame were missing.
    pub(super) fn broadcast(&self, candidate: &Candidate, frame_start: f64) -> Option<Broadcast> {
        let frames = libm::round((frame_start - self.frame_start) * 100.0 / self.rate_hz as f64) as i64;
        let is_again = (candidate.pci, candidate.cp, candidate.duplex)
            == (self.cell.pci, self.cell.cp, Duplex::Fdd)
            && frames < 100 * LONGEST_GAP_S as i64;
        let sfn = (i64::from(self.sfn) + frames).rem_euclid(1024) as u16;
        let (mib, ports) = (Mib::new(&self.cell, sfn), self.cell.ports);
        is_again.then_some(Broadcast { mib, ports, sfn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bandwidth, CyclicPrefix, PhichDuration, PhichResource, Ports};

    #[test]
    fn only_the_same_cell_is_known_again_and_its_frames_by_time() {
        let cell = Cell {
            pci: 301,
            bandwidth: Bandwidth::ALL[2],
            ports: Ports::Two,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let place = Place { sfn: 1022, number: 5, start: 0.0, cfo_hz: 0.0, drift: 0.0 };
        let lost = LostCell::new(cell, &place, 1_009_600.0, 1920.0, 1_920_000);
        let again = Candidate {
            pci: 301,
            cp: CyclicPrefix::Normal,
            duplex: Duplex::Fdd,
            frame_start: 0.0,
            cfo_hz: 0.0,
            primary: 0.5,
            secondary: 0.8,
        };
        let sfn = |candidate: &Candidate, frame_start: f64| {
            let broadcast = lost.broadcast(candidate, frame_start)?;
            assert_eq!((broadcast.mib.bandwidth, broadcast.ports), (cell.bandwidth, cell.ports));
            Some(broadcast.sfn)
        };
        // The frame of the place began at sample 1,000,000; another begins every 19,200 samples.
        let (frame, ten_seconds) = (19_200.0, 19_200_000.0);
        assert_eq!(sfn(&again, 1_000_000.0), Some(1022));
        assert_eq!(sfn(&again, 1_000_000.0 + 3.0 * frame - 5_000.0), Some(1), "some samples are missing");
        assert_eq!(sfn(&again, 1_000_000.0 - frame + 40.0), Some(1021));
        assert_eq!(sfn(&again, 1_000_000.0 + ten_seconds), None, "its clock may be anywhere");
        let usual = |snr_db, subframes| Usual { snr_db, subframes, loudness: 1.0 };
        let faint = lost.with_usual(usual(2.0, 1000));
        let new = lost.with_usual(usual(20.0, 100));
        let lost = lost.with_usual(usual(20.0, 1000));
        let expected = lost.expected(1_000_000 + 57_700);
        assert_eq!((expected.frame_start, expected.sfn), (1_057_600.0, 1));
        assert_eq!(
            [1_010_000, 1_290_000, 1_300_000].map(|next| lost.is_held(next, None)),
            [true, true, false]
        );
        assert_eq!(
            [None, Some(5), Some(301)].map(|asked| faint.is_held(1_300_000, asked)),
            [false, false, true]
        );
        assert_eq!([1_190_000, 1_210_000].map(|next| new.is_held(next, None)), [true, false]);
        // Lost again 0.1 s after it was first lost: it is not held anew, unless it was followed for long meanwhile.
        let first = lost.held_from() - 192_000.0;
        let again_at = |followed| lost.lost_again(Some(first), followed).is_held(1_110_000, None);
        assert_eq!([10, 149, 150].map(again_at), [false, false, true]);
        let others = [
            Candidate { pci: 302, ..again },
            Candidate { cp: CyclicPrefix::Extended, ..again },
            Candidate { duplex: Duplex::Tdd, ..again },
        ];
        assert!(others.iter().all(|other| sfn(other, 1_000_000.0).is_none()));
    }
}

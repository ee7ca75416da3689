//! State of a lost cell, used to reacquire it after a fade.
//!
//! A fading cell is usually still present. For a limited time the listener therefore accepts no other cell, unless that
//! cell is stronger than the lost cell was on average, and tries to track the lost cell at its extrapolated timing. At
//! the end of the samples, the listener accepts the lost cell without another PBCH.

use super::usual::Usual;
use super::{KEPT_S, Lock, MAX_GAP_S};
use crate::cell::Cell;
use crate::pbch::{Broadcast, Mib};
use crate::sync::lookout::DetectedCell;
use crate::sync::search::{Candidate, Duplex};
use crate::sync::track::FramePosition;

/// The last tracked cell, with the timing of one of its frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostCell {
    cell: Cell,
    rate_hz: u64,
    /// Number of the raw sample at which the frame started, and the frame's SFN.
    frame_start: f64,
    sfn: u16,
    /// Raw samples per subframe, including the clock drift.
    subframe: f64,
    cfo_hz: f64,
    /// Raw sample of the loss. `held_from` is the first of several losses if the cell was found only briefly in between.
    lost_at: f64,
    held_from: f64,
    usual: Usual,
    /// Another cell whose symbols start at the same time.
    beside: Option<DetectedCell>,
}

/// Time during which only the lost cell, or a stronger cell, is accepted (seconds). If the cell is found again for less
/// than this time, the period does not restart: otherwise a weak cell that is lost repeatedly would be held forever. A cell
/// is not held for longer than it was received.
///
/// Chosen: a receiver at walking pace is out of a fade within some tens of milliseconds. The samples since the loss are
/// still buffered at the end of this time, so that a handover costs no subframe.
const HELD_S: f64 = 0.15;

/// Minimum usual SNR of a cell that is held (dB). Below this value a stronger cell is preferred.
///
/// Chosen: below 3 dB, half of the messages on one CCE are lost.
const HELD_DB: f32 = 3.0;

impl LostCell {
    /// State of a cell lost at `place`: the subframe there starts at raw sample `start` and has `subframe` raw samples.
    pub(super) fn new(
        cell: Cell,
        place: &FramePosition,
        start: f64,
        subframe: f64,
        rate_hz: u64,
    ) -> LostCell {
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

    /// Sets the long-term averages of the cell.
    pub(super) fn with_usual(self, usual: Usual) -> LostCell {
        LostCell { usual, ..self }
    }

    /// Lets the hold time start at the previous loss `before` if the cell was tracked for only `followed` subframes
    /// since then, a shorter time than [`HELD_S`].
    pub(super) fn lost_again(self, before: Option<f64>, followed: u32) -> LostCell {
        let is_hardly_found = f64::from(followed) < HELD_S * 1e3;
        LostCell { held_from: before.filter(|_| is_hardly_found).unwrap_or(self.lost_at), ..self }
    }

    /// Returns the raw sample at which the hold time starts.
    pub(super) fn held_from(&self) -> f64 {
        self.held_from
    }

    /// Returns the long-term averages of the cell.
    pub(super) fn usual(&self) -> &Usual {
        &self.usual
    }

    /// Sets another cell whose symbols start at the same time.
    pub(super) fn with_beside(self, beside: Option<DetectedCell>) -> LostCell {
        LostCell { beside, ..self }
    }

    /// Returns another cell whose symbols start at the same time.
    pub(super) fn beside(&self) -> Option<DetectedCell> {
        self.beside
    }

    /// Returns the PCI of the cell.
    pub(super) fn pci(&self) -> u16 {
        self.cell.pci
    }

    /// Returns whether only this cell is accepted after all raw samples before `next` were searched. A cell whose PCI
    /// was requested (`asked`) is held for [`KEPT_S`] at any SNR, because no other cell can replace it.
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

    /// Extrapolates the timing of the cell, without missing samples, to the last frame that started before raw sample
    /// `next`.
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

    /// Returns the broadcast of a candidate that is this cell found again; a frame of the candidate starts at raw
    /// sample `frame_start`. Returns `None` if the candidate is another cell or was found too late. The SFN is
    /// extrapolated from the elapsed time, rounded to whole frames, which tolerates less than half a frame of missing
    /// samples.
    pub(super) fn broadcast(&self, candidate: &Candidate, frame_start: f64) -> Option<Broadcast> {
        let frames = libm::round((frame_start - self.frame_start) * 100.0 / self.rate_hz as f64) as i64;
        let is_again = (candidate.pci, candidate.cp, candidate.duplex)
            == (self.cell.pci, self.cell.cp, Duplex::Fdd)
            && frames < 100 * MAX_GAP_S as i64;
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
        let place = FramePosition { sfn: 1022, number: 5, start: 0.0, cfo_hz: 0.0, drift: 0.0 };
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
        // The frame at `place` started at sample 1,000,000. A frame has 19,200 samples.
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
        // The cell is lost again 0.1 s after its first loss. The hold time restarts only if the cell was tracked for long
        // enough in between.
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

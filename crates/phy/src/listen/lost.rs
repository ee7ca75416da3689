//! A cell that was followed and lost. At the end of the samples, the listener need not read its PBCH again.

use super::LONGEST_GAP_S;
use crate::cell::Cell;
use crate::pbch::Mib;
use crate::sync::broadcast::Broadcast;
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
}

impl LostCell {
    /// Lost at `place`, whose first raw sample has number `start`.
    pub(super) fn new(cell: Cell, place: &Place, start: f64, rate_hz: u64) -> LostCell {
        let frame_start = start - place.number as f64 * rate_hz as f64 / 1000.0;
        LostCell { cell, rate_hz, frame_start, sfn: place.sfn }
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
        let lost = LostCell::new(cell, &place, 1_009_600.0, 1_920_000);
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
        let others = [
            Candidate { pci: 302, ..again },
            Candidate { cp: CyclicPrefix::Extended, ..again },
            Candidate { duplex: Duplex::Tdd, ..again },
        ];
        assert!(others.iter().all(|other| sfn(other, 1_000_000.0).is_none()));
    }
}

//! Transmitter of a cell: converts grants to the samples of a receiver's antennas.

use std::collections::VecDeque;

use airpace_core::{Direction, Streams};
use airpace_radio::{RadioReport, Rnti};
use num_complex::Complex32;

use crate::answers::ANSWER_AFTER;
use crate::cell::Cell;
use crate::encode::{Subframe, Transmitter};
use crate::impair::{Conditions, Impair};
use crate::phich::{self, Answer};
use crate::schedule::{Announcement, Scheduler, implied_sinr_db};

/// Transmits a cell's subframes one after the other, through a channel.
///
/// Chosen: the cell acknowledges an uplink block unless it grants the user a retransmission of that block in the same
/// subframe. A report contains no other information about which blocks were received.
pub struct Station {
    cell: Cell,
    scheduler: Scheduler,
    transmitter: Transmitter,
    antennas: Vec<Impair>,
    /// Received samples of each antenna that are not yet available from all antennas.
    received: Vec<Vec<Complex32>>,
    /// Offset of the cell's subframe numbers from the subframe numbers of the reports (subframes).
    offset: u64,
    next: u64,
    /// Pending HARQ feedback: subframe, user, PHICH group and sequence.
    answers: VecDeque<(u64, Rnti, (usize, usize))>,
    ports: Vec<Vec<Complex32>>,
}

impl Station {
    /// Creates a cell. Its first subframe is subframe 0 of frame `first_sfn`. The sample rate is that of an FFT with
    /// `fft_size` points. A resource element of unit power is a tone of `amplitude`. Fading and noise come from `streams`.
    /// `None` if the FFT is too small for the cell, or if this size is not supported.
    pub fn new(
        cell: Cell,
        fft_size: usize,
        amplitude: f32,
        conditions: Conditions,
        first_sfn: u16,
        streams: &Streams,
    ) -> Option<Station> {
        Station::with_antennas(cell, fft_size, amplitude, &[conditions], first_sfn, streams)
    }

    /// As [`Station::new`], with several antennas at one receiver. Each antenna has its own conditions, fading and noise.
    /// The samples are interleaved in the order of the antennas.
    pub fn with_antennas(
        cell: Cell,
        fft_size: usize,
        amplitude: f32,
        conditions: &[Conditions],
        first_sfn: u16,
        streams: &Streams,
    ) -> Option<Station> {
        let antenna = |(at, conditions): (usize, &Conditions)| {
            Impair::of_antenna(at, *conditions, cell.ports.count(), streams)
        };
        Some(Station {
            cell,
            scheduler: Scheduler::new(&cell),
            transmitter: Transmitter::new(cell, fft_size, amplitude)?,
            antennas: conditions.iter().enumerate().map(antenna).collect(),
            received: vec![Vec::new(); conditions.len()],
            offset: u64::from(first_sfn) * 10,
            next: 0,
            answers: VecDeque::new(),
            ports: vec![Vec::new(); cell.ports.count()],
        })
    }

    /// Transmits the subframe of a report, after empty subframes for those without a report. Appends the samples and
    /// returns the transmitted messages. The channel holds back the last few samples until the next subframe.
    ///
    /// # Panics
    /// If the subframe of the report was already transmitted.
    pub fn send(&mut self, report: &RadioReport, out: &mut Vec<Complex32>) -> Announcement {
        let subframe = report.slot.subframe();
        assert!(subframe >= self.next, "subframe {subframe} is over");
        while self.next < subframe {
            let silent = Announcement { cfi: self.cell.least_cfi(), ..Announcement::default() };
            self.transmit(&silent, &[], out);
        }
        let mut shifted = report.clone();
        shifted.slot.index += self.offset;
        let announcement = self.scheduler.announce(&shifted, implied_sinr_db);
        let uplink = || report.dcis.iter().filter(|dci| dci.direction == Direction::Uplink);
        for dci in uplink() {
            if let Some((lowest, _)) = dci.prbs.runs().next() {
                let resource = phich::resource(&self.cell, usize::from(lowest), 0);
                self.answers.push_back((self.next + ANSWER_AFTER, dci.rnti, resource));
            }
        }
        let again: Vec<Rnti> = uplink().filter(|dci| dci.is_retransmission()).map(|dci| dci.rnti).collect();
        self.transmit(&announcement, &again, out);
        announcement
    }

    /// `again`: users that are granted a retransmission.
    fn transmit(&mut self, announcement: &Announcement, again: &[Rnti], out: &mut Vec<Complex32>) {
        let at = self.next + self.offset;
        let due = self.answers.iter().take_while(|(due, ..)| *due <= self.next).count();
        let answers: Vec<Answer> = self
            .answers
            .drain(..due)
            .map(|(_, rnti, (group, sequence))| Answer { group, sequence, ack: !again.contains(&rnti) })
            .collect();
        let subframe = Subframe {
            sfn: (at / 10 % 1024) as u16,
            number: (at % 10) as usize,
            cfi: announcement.cfi,
            messages: &announcement.messages,
            answers: &answers,
            data: &announcement.data,
        };
        self.ports.iter_mut().for_each(Vec::clear);
        self.transmitter.send(&subframe, &mut self.ports).expect("the scheduler asks for what can be sent");
        self.next += 1;
        if let [only] = &mut self.antennas[..] {
            return only.push(&self.ports, out);
        }
        for (antenna, received) in self.antennas.iter_mut().zip(&mut self.received) {
            antenna.push(&self.ports, received);
        }
        interleave(&mut self.received, out);
    }
}

/// Removes the samples that all antennas have, and appends them to `out`, interleaved.
pub fn interleave(antennas: &mut [Vec<Complex32>], out: &mut Vec<Complex32>) {
    let count = antennas.iter().map(Vec::len).min().unwrap_or(0);
    out.reserve(count * antennas.len());
    for at in 0..count {
        out.extend(antennas.iter().map(|samples| samples[at]));
    }
    antennas.iter_mut().for_each(|samples| drop(samples.drain(..count)));
}

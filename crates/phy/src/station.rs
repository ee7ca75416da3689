//! A cell on the air: its grants go in, the samples of a receiver's antennas come out.

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

/// Sends a cell's subframes one after the other, through a channel.
///
/// Chosen: the cell acknowledges an uplink block unless it grants the user another transmission of that block together
/// with the answer. A report tells nothing more about which blocks were received.
pub struct Station {
    cell: Cell,
    scheduler: Scheduler,
    transmitter: Transmitter,
    antennas: Vec<Impair>,
    /// What each antenna received and the others did not yet.
    received: Vec<Vec<Complex32>>,
    /// Subframes by which the cell's clock is ahead of the reports'.
    offset: u64,
    next: u64,
    /// Answers that are due: their subframe, for whom, group and sequence.
    answers: VecDeque<(u64, Rnti, (usize, usize))>,
    ports: Vec<Vec<Complex32>>,
}

impl Station {
    /// A cell whose subframe 0 has number 0 of frame `first_sfn`, with samples at the rate of an FFT of `fft_size` points,
    /// where a resource element of unit power is a tone of `amplitude`. Fading and noise come from `streams`. `None` if
    /// the FFT is too small for the cell, or if there is no FFT of that size.
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

    /// The same, heard by several antennas of one receiver: each has its own conditions, its own fading and its own
    /// noise. The samples of an instant lie side by side, in the order of the antennas.
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

    /// Sends the subframe of a report, after the subframes before it that had no report: these carry no message.
    /// Appends the samples and returns what was sent. The channel keeps the last few samples until more come.
    ///
    /// # Panics
    /// If the report is of a subframe that was sent already.
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

    /// `again`: the users that are to send a block once more.
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

/// Takes the samples that all antennas have and appends them to `out`, those of an instant side by side.
pub fn interleave(antennas: &mut [Vec<Complex32>], out: &mut Vec<Complex32>) {
    let count = antennas.iter().map(Vec::len).min().unwrap_or(0);
    out.reserve(count * antennas.len());
    for at in 0..count {
        out.extend(antennas.iter().map(|samples| samples[at]));
    }
    antennas.iter_mut().for_each(|samples| drop(samples.drain(..count)));
}

//! The decoder: finds a cell in radio samples, follows it, and decodes the control messages of all its users.
//!
//! ```text
//! samples ─▶ listen ─▶ observation ─▶ search ─▶ candidates ─▶ evidence ─▶ found
//! ```

mod clock;

use std::collections::{BTreeSet, VecDeque};

use airpace_core::Time;
use airpace_radio::{BitLayer, CarrierId, Missed, RadioReport, Rnti, Scope, Slot};
use num_complex::Complex32;

use self::clock::Clock;
use crate::answers::{Answered, Answers};
use crate::cell::Cell;
use crate::dci::Carrier;
use crate::evidence::{Caution, Evidence};
use crate::found::Found;
use crate::ladder::Ladder;
use crate::listen::{self, CellChange, Listener, ListenerEvent, Lock, UnsupportedRate};
use crate::missed::Account;
use crate::observation::{CceSet, Observation};
use crate::search::{Search, Work};

/// Options of the decoder.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Options for finding and following a cell.
    pub listen: listen::Options,
    /// Threshold for accepting messages.
    pub caution: Caution,
}

impl Options {
    /// Default options for samples at a rate (Hz).
    pub fn new(rate_hz: u64) -> Options {
        Options { listen: listen::Options::new(rate_hz), caution: Caution::default() }
    }
}

/// Output of the decoder.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A cell was found. All later outputs belong to it.
    Locked(Lock),
    /// One decoded subframe. A doubtful subframe, in which the cell was possibly not received, is output only if it
    /// contains messages: the decoder never reports a doubtful subframe as idle.
    Subframe(Reading),
    /// Messages of earlier subframes that were waiting for evidence, when no [`Reading`] contains them.
    Late(Vec<Found>),
    /// The cell was lost; the search continues.
    Lost,
    /// The decoder leaves the cell for a stronger cell. The next output is [`Output::Locked`] for that cell. The state
    /// of the cell's users is discarded.
    Moved(CellChange),
}

/// One decoded subframe.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Identity of the cell.
    pub pci: u16,
    /// Subframe number: 10 · SFN + subframe, without the wrap at 10,240. After a jump of the cell's frame numbers, it
    /// continues by elapsed time.
    pub index: u64,
    /// Jump of the cell's own subframe numbers against [`Reading::index`] before this subframe, forward or backward
    /// (subframes, modulo 10,240); normally 0. A jump occurs if another cell has different numbers, if a cell restarts,
    /// or if more than a hundred subframes are missing without a notification.
    pub leap: i64,
    /// System frame number, 0…1023.
    pub sfn: u16,
    /// Subframe number within the frame, 0…9.
    pub subframe: u8,
    /// Index of the subframe's first sample; the first pushed sample is 0.
    pub sample: i64,
    /// Control format indicator.
    pub cfi: u8,
    /// Number of CCEs in the control region.
    pub cces: usize,
    /// CCEs that may contain a message: those that cannot be explained by noise.
    pub loud: CceSet,
    /// Number of candidate words that were skipped because of the limit [`MAX_WORDS`] per subframe; 0 unless the noise
    /// is strong. Messages in these words are missing.
    ///
    /// [`MAX_WORDS`]: crate::search::MAX_WORDS
    pub given_up: usize,
    /// Estimate of transmitted but undecoded messages. The estimate does not include messages that are accepted later.
    pub missed: Missed,
    /// Downlink PRB pairs of the cell.
    pub prbs: u16,
    /// SNR per resource element (dB).
    pub snr_db: f32,
    /// Accepted messages of this subframe.
    pub found: Vec<Found>,
    /// Messages of earlier subframes that were accepted only now. Each has its own subframe number.
    pub late: Vec<Found>,
    /// HARQ feedback (PHICH) for uplink blocks with grants that were accepted in time.
    pub answers: Vec<Answered>,
}

impl Reading {
    /// CCEs that may contain a message, but that no accepted message covers. The grants in them are unknown.
    pub fn unread(&self) -> CceSet {
        self.loud.beside(self.found.iter().map(|found| found.place))
    }

    /// Converts the grants of this subframe to a report for congestion controllers and other crates. `time` is the start
    /// of the subframe on the reporter's clock. The report contains the number of unexplained CCEs. If it is not 0, the
    /// report does not show which PRBs are idle, only an estimate of how many may be granted.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 4
    ///
    /// Differs: PBE-CC assumes that every message is decoded. Here a PRB without a known grant may be granted by an
    /// undecoded message.
    pub fn report(&self, carrier: CarrierId, time: Time) -> RadioReport {
        let unexplained = u16::try_from(self.unread().len()).unwrap_or(u16::MAX);
        RadioReport {
            carrier,
            slot: Slot::subframe_of_lte(self.index),
            time,
            scope: if unexplained == 0 {
                Scope::Everyone
            } else {
                Scope::EveryoneBut { unexplained, missed: Some(self.missed) }
            },
            carrier_prbs: Some(self.prbs),
            cfi: Some(self.cfi),
            symbols: None,
            dcis: self.found.iter().filter_map(|found| found.dci).collect(),
            own: None,
            layer: BitLayer::Physical,
        }
    }
}

/// Decodes the control channel of one cell. Push samples, then call `pop` until it returns `None`.
pub struct Decoder {
    listener: Listener,
    caution: Caution,
    reader: Option<Reader>,
    clock: Clock,
    rate_hz: u64,
    /// Accumulated jump of subframe numbers over subframes that were not output.
    leapt: i64,
    rntis: BTreeSet<Rnti>,
    out: VecDeque<Output>,
    is_finished: bool,
}

/// State for decoding the subframes of one cell.
struct Reader {
    cell: Cell,
    search: Search,
    evidence: Evidence,
    answers: Answers,
    account: Account,
    /// First sample of the last decoded subframe, with its SFN and subframe number.
    last: Option<(i64, (u16, usize))>,
    /// Half a subframe (samples).
    half: i64,
}

impl Reader {
    fn new(cell: Cell, caution: Caution, rate_hz: u64) -> Reader {
        let carrier = Carrier::symmetric(cell.bandwidth.prbs(), cell.ports);
        Reader {
            cell,
            search: Search::new(&carrier),
            evidence: Evidence::new(cell.pci, carrier, caution),
            answers: Answers::new(cell),
            account: Account::default(),
            last: None,
            half: (rate_hz / 2000) as i64,
        }
    }

    /// Whether a subframe is new. After the cell was found again, its first subframes may have been decoded before. The
    /// start of the last repeated subframe may differ by some samples.
    fn is_news(&mut self, observation: &Observation) -> bool {
        let Observation { sample, sfn, number, .. } = *observation;
        let is_news = self.last.is_none_or(|(last, of_frames)| {
            let is_same = of_frames == (sfn, number) && sample < last + self.half;
            sample > last && !is_same
        });
        if is_news {
            self.last = Some((sample, (sfn, number)));
        }
        is_news
    }

    fn read(&mut self, index: u64, leap: i64, observation: &Observation, ladder: &mut Ladder) -> Reading {
        let Reader { search, evidence, answers, account, .. } = self;
        evidence.advance(index);
        if leap != 0 {
            evidence.leap(leap);
            answers.leap();
        }
        let candidates = search.candidates(observation, |rnti| evidence.history().prior(rnti, 0.0));
        ladder.candidates += candidates.len() as u64;
        let mut believed = Vec::new();
        evidence.judge(index, observation, candidates, &mut believed);
        let (found, late): (Vec<Found>, Vec<Found>) =
            believed.into_iter().partition(|found| found.index == index);
        for found in found.iter().chain(&late) {
            search.believe(found.rnti, found.payload.len(), found.place.cces);
        }
        Reading {
            pci: self.cell.pci,
            index,
            leap,
            sfn: observation.sfn,
            subframe: observation.number as u8,
            sample: observation.sample,
            cfi: observation.cfi,
            cces: observation.cces(),
            loud: observation.loud(),
            given_up: search.given_up(),
            missed: account.take(observation, &found),
            prbs: self.cell.bandwidth.prbs(),
            snr_db: observation.snr_db,
            answers: answers.read(index, &observation.answers, &found),
            found,
            late,
        }
    }
}

impl Decoder {
    /// Creates a decoder that searches for a cell.
    ///
    /// # Errors
    /// If the sample rate is below the rate of the narrowest cell, or above [`listen::MAX_RATE_HZ`].
    pub fn new(options: Options) -> Result<Decoder, UnsupportedRate> {
        Ok(Decoder {
            listener: Listener::new(options.listen)?,
            caution: options.caution,
            reader: None,
            clock: Clock::new(options.listen.rate_hz),
            rate_hz: options.listen.rate_hz,
            leapt: 0,
            rntis: BTreeSet::new(),
            out: VecDeque::new(),
            is_finished: false,
        })
    }

    /// Appends samples. [`Decoder::pop`] processes them.
    pub fn push(&mut self, samples: &[Complex32]) {
        self.listener.push(samples);
    }

    /// Reports a loss of `count` samples. The decoder omits the subframes in the gap; subframe numbers continue after it.
    pub fn skip(&mut self, count: u64) {
        while let Some(output) = self.advance() {
            self.out.push_back(output);
        }
        self.listener.skip(count);
    }

    /// Reports the end of the samples. Messages that are waiting for evidence are then output as [`Output::Late`].
    pub fn finish(&mut self) {
        self.listener.finish();
        self.is_finished = true;
    }

    /// Returns the next output; `None` if the decoder needs more samples.
    pub fn pop(&mut self) -> Option<Output> {
        self.out.pop_front().or_else(|| self.advance())
    }

    /// The cell that the decoder follows.
    pub fn cell(&self) -> Option<&Cell> {
        self.listener.cell()
    }

    /// Number of buffered samples that may be needed again: see [`Listener::samples_held`].
    pub fn samples_held(&self) -> usize {
        self.listener.samples_held()
    }

    /// Counters of the decoding stages.
    pub fn ladder(&self) -> &Ladder {
        self.listener.ladder()
    }

    /// Evaluation of candidates and history of users in the last decoded cell.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.reader.as_ref().map(|reader| &reader.evidence)
    }

    /// Work counters of the search in the last decoded cell.
    pub fn work(&self) -> Option<Work> {
        self.reader.as_ref().map(|reader| reader.search.work())
    }

    fn advance(&mut self) -> Option<Output> {
        loop {
            let heard = self.listener.pop();
            if let (Some(ListenerEvent::Subframe(observation)), Some(reader)) = (&heard, &mut self.reader)
                && !reader.is_news(observation)
            {
                self.listener.ladder_mut().repeat();
                continue;
            }
            let is_doubtful =
                matches!(&heard, Some(ListenerEvent::Subframe(observation)) if observation.is_doubtful);
            let output = self.take(heard);
            // Without a message, a subframe counts as idle only if the cell was received.
            match output {
                Some(Output::Subframe(reading)) if is_doubtful && reading.found.is_empty() => {
                    self.listener.ladder_mut().doubt();
                    self.leapt += reading.leap;
                    if !reading.late.is_empty() {
                        return Some(Output::Late(reading.late));
                    }
                }
                Some(Output::Subframe(mut reading)) => {
                    reading.leap += std::mem::take(&mut self.leapt);
                    return Some(Output::Subframe(reading));
                }
                output => return output,
            }
        }
    }

    fn take(&mut self, heard: Option<ListenerEvent>) -> Option<Output> {
        let Some(heard) = heard else {
            let late = if self.is_finished { self.settle() } else { Vec::new() };
            return (!late.is_empty()).then_some(Output::Late(late));
        };
        Some(match heard {
            ListenerEvent::Locked(lock) => {
                // Keep the users of a cell that was lost and found again.
                let same = self.reader.as_ref().is_some_and(|reader| reader.cell == lock.cell);
                if !same {
                    let late = self.settle();
                    self.reader = Some(Reader::new(lock.cell, self.caution, self.rate_hz));
                    if !late.is_empty() {
                        self.out.push_back(Output::Locked(lock));
                        return Some(Output::Late(late));
                    }
                }
                Output::Locked(lock)
            }
            ListenerEvent::Lost => Output::Lost,
            ListenerEvent::Moved(moved) => Output::Moved(moved),
            ListenerEvent::Subframe(observation) => {
                let reader = self.reader.as_mut()?;
                let (index, leap) = self.clock.number(reader.cell.pci, &observation);
                let reading = reader.read(index, leap, &observation, self.listener.ladder_mut());
                self.count(reading.found.iter().chain(&reading.late));
                Output::Subframe(reading)
            }
        })
    }

    /// Decides about all messages that are still waiting for evidence.
    fn settle(&mut self) -> Vec<Found> {
        let mut late = Vec::new();
        if let Some(reader) = &mut self.reader {
            reader.evidence.finish(&mut late);
        }
        self.count(late.iter());
        late
    }

    fn count<'a>(&mut self, found: impl Iterator<Item = &'a Found>) {
        for found in found {
            self.rntis.insert(found.rnti);
            self.listener.ladder_mut().messages += 1;
        }
        self.listener.ladder_mut().rntis = self.rntis.len() as u64;
    }
}

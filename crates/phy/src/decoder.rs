//! Samples in, everyone's messages out: the decoder finds a cell, follows it and reads it.
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
use crate::listen::{self, Heard, Listener, Lock, Moved, UnsupportedRate};
use crate::missed::Account;
use crate::observation::{CceSet, Observation};
use crate::search::{Search, Work};

/// How to decode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How to find and follow a cell.
    pub listen: listen::Options,
    /// What to believe.
    pub caution: Caution,
}

impl Options {
    /// For samples at a rate.
    pub fn new(rate_hz: u64) -> Options {
        Options { listen: listen::Options::new(rate_hz), caution: Caution::default() }
    }
}

/// What comes out.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A cell was found. Everything that follows belongs to it.
    Locked(Lock),
    /// One subframe was read. If it is doubtful that the cell was heard, the subframe comes out only with messages: the
    /// decoder never reports a doubtful subframe as idle.
    Subframe(Reading),
    /// Messages of earlier subframes that waited for evidence, when no subframe comes out with them.
    Late(Vec<Found>),
    /// The cell was lost; the search goes on.
    Lost,
    /// The cell is left for a louder one, which is locked next. Nothing that is known of the cell's users is kept.
    Moved(Moved),
}

/// One subframe, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Identity of the cell.
    pub pci: u16,
    /// Number of the subframe: 10 · SFN + subframe, without the wrap at 10,240. After a leap of frame numbers, it
    /// follows time.
    pub index: u64,
    /// By how many subframes the cell's own numbers leapt before this subframe, forward or back. They leap if another
    /// cell counts otherwise, if a cell restarts, or if more than a hundred subframes are missing without notice.
    /// Otherwise 0.
    pub leap: i64,
    /// System frame number, 0…1023.
    pub sfn: u16,
    /// Number within the frame, 0…9.
    pub subframe: u8,
    /// First sample of the subframe, counted from the first sample that was pushed.
    pub sample: i64,
    /// Control format indicator.
    pub cfi: u8,
    /// CCEs of its control region.
    pub cces: usize,
    /// CCEs in which a message may have been sent, as far as noise allows to tell.
    pub loud: CceSet,
    /// Words that were worth decoding but were given up, because a subframe gets only [`MOST_WORDS`]: 0 unless noise is
    /// loud. Messages behind them are missing.
    ///
    /// [`MOST_WORDS`]: crate::search::MOST_WORDS
    pub given_up: usize,
    /// How much was probably sent and not read, without messages that are believed later.
    pub missed: Missed,
    /// Downlink PRB pairs of the cell.
    pub prbs: u16,
    /// Signal to noise ratio of a resource element, in dB.
    pub snr_db: f32,
    /// Messages of this subframe.
    pub found: Vec<Found>,
    /// Messages of earlier subframes that are believed only now. Each has its own time.
    pub late: Vec<Found>,
    /// Answers to uplink blocks whose grants were believed in time.
    pub answers: Vec<Answered>,
}

impl Reading {
    /// CCEs in which a message may have been sent, but that no believed message covers. What they grant is not known.
    pub fn unread(&self) -> CceSet {
        self.loud.beside(self.found.iter().map(|found| found.place))
    }

    /// The grants of this subframe as congestion controls and the other crates read them. `time` is the start of the
    /// subframe by the reporter's clock. The report says how many control channel elements hold what was not read: it
    /// then does not tell which PRBs are idle, but how many may be.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 4
    ///
    /// Differs: there every message is decoded. Here a PRB without a known grant may be granted by an unread message.
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
            dcis: self.found.iter().filter_map(|found| found.dci).collect(),
            own: None,
            layer: BitLayer::Physical,
        }
    }
}

/// Decodes the control channel of one cell. Push samples, then pop until `pop` gives nothing more.
pub struct Decoder {
    listener: Listener,
    caution: Caution,
    reader: Option<Reader>,
    clock: Clock,
    rate_hz: u64,
    /// By how many subframes the numbers leapt in subframes that did not come out.
    leapt: i64,
    rntis: BTreeSet<Rnti>,
    out: VecDeque<Output>,
    is_finished: bool,
}

/// The state for reading the subframes of one cell.
struct Reader {
    cell: Cell,
    search: Search,
    evidence: Evidence,
    answers: Answers,
    account: Account,
    /// First sample of the last subframe that was read, and its frame's number and its own.
    last: Option<(i64, (u16, usize))>,
    /// Half a subframe in samples.
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

    /// Whether a subframe is new. When a cell is found again, the first subframes may have been read before, the last of
    /// them some samples earlier or later.
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

    fn read(&mut self, (index, leap): (u64, i64), observation: &Observation, ladder: &mut Ladder) -> Reading {
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
    /// Starts to search for a cell.
    ///
    /// # Errors
    /// If the sample rate is below that of the narrowest cell, or above [`listen::MOST_RATE_HZ`].
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

    /// Takes samples. [`Decoder::pop`] does the work on them.
    pub fn push(&mut self, samples: &[Complex32]) {
        self.listener.push(samples);
    }

    /// `count` samples were lost. The decoder leaves out the subframes in between; numbers go on.
    pub fn skip(&mut self, count: u64) {
        while let Some(output) = self.advance() {
            self.out.push_back(output);
        }
        self.listener.skip(count);
    }

    /// No more samples will come. Messages that wait for evidence come out as [`Output::Late`].
    pub fn finish(&mut self) {
        self.listener.finish();
        self.is_finished = true;
    }

    /// The next output; `None` if the decoder needs more samples.
    pub fn pop(&mut self) -> Option<Output> {
        self.out.pop_front().or_else(|| self.advance())
    }

    /// The cell that the decoder follows.
    pub fn cell(&self) -> Option<&Cell> {
        self.listener.cell()
    }

    /// Samples that are held because they may be needed again: see [`Listener::samples_held`].
    pub fn samples_held(&self) -> usize {
        self.listener.samples_held()
    }

    /// How far the samples led.
    pub fn ladder(&self) -> &Ladder {
        self.listener.ladder()
    }

    /// Which users are there, in the cell that was read last.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.reader.as_ref().map(|reader| &reader.evidence)
    }

    /// What the search did, in the cell that was read last.
    pub fn work(&self) -> Option<Work> {
        self.reader.as_ref().map(|reader| reader.search.work())
    }

    fn advance(&mut self) -> Option<Output> {
        loop {
            let heard = self.listener.pop();
            if let (Some(Heard::Subframe(observation)), Some(reader)) = (&heard, &mut self.reader)
                && !reader.is_news(observation)
            {
                self.listener.ladder_mut().repeat();
                continue;
            }
            let is_doubtful = matches!(&heard, Some(Heard::Subframe(observation)) if observation.is_doubtful);
            let output = self.take(heard);
            // Silence proves that nothing was sent only if the cell was heard.
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

    fn take(&mut self, heard: Option<Heard>) -> Option<Output> {
        let Some(heard) = heard else {
            let late = if self.is_finished { self.settle() } else { Vec::new() };
            return (!late.is_empty()).then_some(Output::Late(late));
        };
        Some(match heard {
            Heard::Locked(lock) => {
                // A cell that was lost and found again still has its users.
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
            Heard::Lost => Output::Lost,
            Heard::Moved(moved) => Output::Moved(moved),
            Heard::Subframe(observation) => {
                let reader = self.reader.as_mut()?;
                let number = self.clock.number(reader.cell.pci, &observation);
                let reading = reader.read(number, &observation, self.listener.ladder_mut());
                self.count(reading.found.iter().chain(&reading.late));
                Output::Subframe(reading)
            }
        })
    }

    /// Decides about everything that still waits for evidence.
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

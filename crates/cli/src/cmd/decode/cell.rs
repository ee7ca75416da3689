//! One recording's or radio's thread: samples in, what its decoder says out.

use std::sync::mpsc::SyncSender;

use airpace_live::iq::{self, Flaw, Piece, Source};
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::evidence::Caution;
use airpace_phy::search::Work;
use airpace_phy::{Complex32, Ladder};
use anyhow::{Context, anyhow};
use rustix::time::{ClockId, clock_gettime};

/// Events that may wait to be taken: less than a second of a cell.
pub const MOST_WAITING: usize = 256;

/// Pieces of samples after which a thread that heard nothing says that it is still at work.
const MOST_UNTOLD: u32 = 64;

/// What a thread says.
pub enum Event {
    /// What the decoder says.
    Heard(Box<Output>),
    /// The receiver lost samples.
    Gap,
    /// Something is wrong with the samples.
    Flaw(Flaw),
    /// How much of the file has been read, 0 to 1, where that is known, and what it cost since it was told last.
    Progress {
        /// The share.
        share: Option<f64>,
        /// Processor time of this thread, in microseconds.
        cost_us: f64,
    },
    /// Nothing more will come: what is known then, and why it ended if that was too early.
    End(Option<Box<Ending>>, Option<anyhow::Error>),
}

/// An event, whose it is, and how far the recording was read by then.
pub struct Told {
    /// Which recording's, from 0.
    pub carrier: usize,
    /// Milliseconds from its first sample.
    pub at_ms: f64,
    /// What.
    pub event: Event,
}

/// What is known in the end.
pub struct Ending {
    /// How far the samples led.
    pub ladder: Ladder,
    /// What the search did, if a cell was found.
    pub work: Option<Work>,
}

/// How to decode.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Which recording it is, from 0.
    pub carrier: usize,
    /// The only cell that is wanted.
    pub pci: Option<u16>,
    /// What to believe.
    pub caution: Caution,
}

/// Decodes samples in a thread of its own, which ends when nobody listens any more. `name` is for people.
///
/// # Errors
/// If the samples are too few per second for any cell, or no thread can be had.
pub fn start(name: &str, source: Box<dyn Source>, task: Task, told: SyncSender<Told>) -> anyhow::Result<()> {
    let rate_hz = source.sample_rate_hz().round() as u64;
    let mut options = Options::new(rate_hz);
    options.listen.pci = task.pci;
    options.caution = task.caution;
    let decoder = Decoder::new(options).with_context(|| name.to_owned())?;
    let (name, carrier) = (name.to_owned(), task.carrier);
    let mut thread =
        Thread { name, carrier, decoder, rate_hz, gone: 0, share: None, cost_us: 0.0, untold: 0, told };
    std::thread::Builder::new()
        .name(format!("decode {}", thread.name))
        .spawn(move || {
            let failure = match thread.read_all(source) {
                Ok(()) => None,
                Err(Stop::Failed(error)) => Some(error.into()),
                Err(Stop::Unheard) => return,
            };
            let ending = Ending { ladder: *thread.decoder.ladder(), work: thread.decoder.work() };
            // Nobody may be left to hear it.
            let _ = thread.tell(Event::End(Some(Box::new(ending)), failure));
        })
        .context("cannot start a thread")?;
    Ok(())
}

/// Why a thread ends before its recording does.
enum Stop {
    Failed(iq::Error),
    Unheard,
}

struct Thread {
    name: String,
    carrier: usize,
    decoder: Decoder,
    rate_hz: u64,
    /// Samples that were read, or lost by the receiver.
    gone: u64,
    /// How much has been read, where that is known.
    share: Option<f64>,
    /// Processor time that was not told yet, in microseconds.
    cost_us: f64,
    /// Pieces since something was told.
    untold: u32,
    told: SyncSender<Told>,
}

impl Thread {
    /// A source that is read is given back before its end is told: nobody waits for a radio to be switched off.
    fn read_all(&mut self, mut source: Box<dyn Source>) -> Result<(), Stop> {
        // Pieces of one length: what is decoded does not depend on how a pipe was filled. A message waits for its
        // piece's end for a quarter of a millisecond at most.
        let piece = (self.rate_hz / 4000).max(1) as usize;
        let mut samples: Vec<Complex32> = vec![];
        let end = loop {
            let read = source.read(&mut samples);
            self.share = source.progress();
            match read {
                Ok(Piece::Samples(count)) => {
                    self.gone += count as u64;
                    let whole = samples.len() / piece * piece;
                    for piece in samples[..whole].chunks_exact(piece) {
                        self.push(piece)?;
                    }
                    samples.drain(..whole);
                }
                Ok(Piece::Gap(lost)) => {
                    self.push(&samples)?;
                    samples.clear();
                    self.tell(Event::Gap)?;
                    // Of a loss of unknown length the tracker finds out by itself.
                    if let Some(count) = lost {
                        self.gone = self.gone.saturating_add(count);
                        self.decoder.skip(count);
                        self.pop()?;
                    }
                }
                Ok(Piece::Flaw(flaw)) => self.tell(Event::Flaw(flaw))?,
                Ok(Piece::End) => break Ok(()),
                Err(error) => break Err(Stop::Failed(error)),
            }
        };
        // What came before a failure is as good as any.
        self.push(&samples)?;
        self.decoder.finish();
        self.pop()?;
        end
    }

    fn push(&mut self, samples: &[Complex32]) -> Result<(), Stop> {
        let before = cpu_us();
        self.decoder.push(samples);
        let mut heard = vec![];
        while let Some(output) = self.decoder.pop() {
            heard.push(output);
        }
        self.cost_us += cpu_us() - before;
        self.untold += 1;
        let is_news = !heard.is_empty() || self.untold == MOST_UNTOLD;
        for output in heard {
            self.tell(Event::Heard(Box::new(output)))?;
        }
        if !is_news {
            return Ok(());
        }
        self.untold = 0;
        let cost_us = std::mem::take(&mut self.cost_us);
        self.tell(Event::Progress { share: self.share, cost_us })
    }

    fn pop(&mut self) -> Result<(), Stop> {
        while let Some(output) = self.decoder.pop() {
            self.tell(Event::Heard(Box::new(output)))?;
        }
        Ok(())
    }

    fn tell(&self, event: Event) -> Result<(), Stop> {
        let at_ms = self.gone as f64 * 1e3 / self.rate_hz.max(1) as f64;
        self.told.send(Told { carrier: self.carrier, at_ms, event }).map_err(|_| Stop::Unheard)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let failure = anyhow!("{}: its decoder crashed", self.name);
            let _ = self.tell(Event::End(None, Some(failure)));
        }
    }
}

/// Processor time of the calling thread.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

//! One recording's thread: samples in, what its decoder says out.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use airpace_live::iq::{Piece, Reader};
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::search::Work;
use airpace_phy::{Complex32, Ladder};
use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// Events that may wait to be taken: less than a second of a cell.
const MOST_WAITING: usize = 256;

/// Pieces of samples after which a thread that heard nothing says that it is still at work.
const MOST_UNTOLD: u32 = 64;

/// What a thread says.
pub enum Event {
    /// What the decoder says.
    Heard(Box<Output>),
    /// The receiver lost samples.
    Gap,
    /// How much of the file has been read, 0 to 1, where that is known, and what it cost since it was told last.
    Progress {
        /// The share.
        share: Option<f64>,
        /// Processor time of this thread, in microseconds.
        cost_us: f64,
    },
    /// All has been read.
    End(Box<Ending>),
    /// It cannot go on.
    Failed(anyhow::Error),
}

/// An event and how far the recording was read by then, in milliseconds.
pub struct Told {
    /// When.
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

/// Decodes a recording in a thread of its own, which ends when nobody listens any more.
///
/// # Errors
/// If the samples are too few per second for any cell, or no thread can be had.
pub fn start(path: &Path, reader: Reader, pci: Option<u16>) -> anyhow::Result<Receiver<Told>> {
    let rate_hz = reader.meta().sample_rate_hz.round() as u64;
    let mut options = Options::new(rate_hz);
    options.listen.pci = pci;
    let decoder = Decoder::new(options).with_context(|| path.display().to_string())?;
    let (told, heard) = sync_channel(MOST_WAITING);
    let mut thread = Thread { reader, decoder, rate_hz, lost: 0, cost_us: 0.0, untold: 0, told };
    std::thread::Builder::new()
        .name(format!("decode {}", path.display()))
        .spawn(move || {
            let last = match thread.read_all() {
                Ok(()) => Event::End(Box::new(Ending {
                    ladder: *thread.decoder.ladder(),
                    work: thread.decoder.work(),
                })),
                Err(Stop::Failed(error)) => Event::Failed(error.into()),
                Err(Stop::Unheard) => return,
            };
            // Nobody may be left to hear it.
            let _ = thread.tell(last);
        })
        .context("cannot start a thread")?;
    Ok(heard)
}

/// Why a thread ends before its recording does.
enum Stop {
    Failed(airpace_live::iq::Error),
    Unheard,
}

struct Thread {
    reader: Reader,
    decoder: Decoder,
    rate_hz: u64,
    /// Samples that the receiver lost.
    lost: u64,
    /// Processor time that was not told yet, in microseconds.
    cost_us: f64,
    /// Pieces since something was told.
    untold: u32,
    told: SyncSender<Told>,
}

impl Thread {
    fn read_all(&mut self) -> Result<(), Stop> {
        // Pieces of one length: what is decoded does not depend on how a pipe was filled. A message waits for its
        // piece's end for a quarter of a millisecond at most.
        let piece = (self.rate_hz / 4000).max(1) as usize;
        let mut samples: Vec<Complex32> = vec![];
        loop {
            match self.reader.read(&mut samples).map_err(Stop::Failed)? {
                Piece::Samples(_) => {
                    let whole = samples.len() / piece * piece;
                    for piece in samples[..whole].chunks_exact(piece) {
                        self.push(piece)?;
                    }
                    samples.drain(..whole);
                }
                Piece::Gap(lost) => {
                    self.push(&samples)?;
                    samples.clear();
                    self.tell(Event::Gap)?;
                    // Of a loss of unknown length the tracker finds out by itself.
                    if let Some(count) = lost {
                        self.lost += count;
                        self.decoder.skip(count);
                        self.pop()?;
                    }
                }
                Piece::End => {
                    self.push(&samples)?;
                    self.decoder.finish();
                    return self.pop();
                }
            }
        }
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
        self.tell(Event::Progress { share: self.reader.progress(), cost_us })
    }

    fn pop(&mut self) -> Result<(), Stop> {
        while let Some(output) = self.decoder.pop() {
            self.tell(Event::Heard(Box::new(output)))?;
        }
        Ok(())
    }

    fn tell(&self, event: Event) -> Result<(), Stop> {
        let at_ms = (self.reader.position() + self.lost) as f64 * 1e3 / self.rate_hz.max(1) as f64;
        self.told.send(Told { at_ms, event }).map_err(|_| Stop::Unheard)
    }
}

/// Processor time of the calling thread.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

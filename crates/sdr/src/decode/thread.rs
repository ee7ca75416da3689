//! The thread of one recording or radio: samples in, its decoder's outputs out.

use std::sync::mpsc::SyncSender;

use airpace_phy::Complex32;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_rt::clock::thread_cpu;

use super::{End, Error};
use crate::iq::{self, Flaw, Piece, Source};

/// Events that may wait to be taken: less than a second of a cell.
pub(super) const MOST_WAITING: usize = 256;

/// Pieces of samples after which a thread that heard nothing says that it is still at work.
const MOST_UNTOLD: u32 = 64;

/// What a thread reports.
pub(super) enum Event {
    /// An output of the decoder.
    Heard(Box<Output>),
    /// The receiver lost samples.
    Gap,
    /// Something is wrong with the samples.
    Flaw(Flaw),
    /// How much of the samples has been read, 0 to 1, where that is known, and what it cost since it was told last.
    Progress { share: Option<f64>, cost_us: f64 },
    /// Nothing more will come.
    End(Box<End>),
}

/// An event, whose it is, and how far its samples were read by then.
pub(super) struct ThreadEvent {
    /// Which recording's, from 0.
    pub carrier: usize,
    /// Milliseconds from its first sample.
    pub at_ms: f64,
    /// What happened.
    pub event: Event,
}

/// Decodes samples in a thread of its own, which ends when nobody listens any more. `name` is for people, `carrier` its
/// place among the recordings, and `options` says how to decode; its sample rate and antennas are the source's.
pub(super) fn start(
    name: &str,
    source: Box<dyn Source>,
    carrier: usize,
    options: Options,
    sender: SyncSender<ThreadEvent>,
) -> Result<(), Error> {
    let rate_hz = options.listen.rate_hz;
    let antennas = source.antennas();
    let decoder = Decoder::new(options).map_err(|cause| Error::Rate { name: name.to_owned(), cause })?;
    let name = name.to_owned();
    let mut thread = Thread {
        name,
        carrier,
        decoder,
        rate_hz,
        antennas,
        gone: 0,
        share: None,
        cost_us: 0.0,
        untold: 0,
        sender,
    };
    let name = thread.name.clone();
    std::thread::Builder::new()
        .name(format!("decode {name}"))
        .spawn(move || {
            let failure = match thread.read_all(source) {
                Ok(()) => None,
                Err(Stop::Failed(error)) => Some(error.into()),
                Err(Stop::Unheard) => return,
            };
            let (ladder, work) = (Some(*thread.decoder.ladder()), thread.decoder.work());
            // Nobody may be left to hear it.
            let _ = thread.tell(Event::End(Box::new(End { ladder, work, failure })));
        })
        .map_err(|cause| Error::Thread { name, cause })?;
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
    antennas: usize,
    /// Samples that were read, or lost by the receiver.
    gone: u64,
    /// How much has been read, where that is known.
    share: Option<f64>,
    /// Processor time that was not told yet, in microseconds.
    cost_us: f64,
    /// Pieces since something was told.
    untold: u32,
    sender: SyncSender<ThreadEvent>,
}

impl Thread {
    /// A source that is read is given back before its end is told: nobody waits for a radio to be switched off.
    fn read_all(&mut self, mut source: Box<dyn Source>) -> Result<(), Stop> {
        // Pieces of one length: what is decoded does not depend on how a pipe was filled. A message waits for its
        // piece's end for a quarter of a millisecond at most.
        let piece = (self.rate_hz / 4000).max(1) as usize * self.antennas;
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
        let before = thread_cpu();
        self.decoder.push(samples);
        let mut heard = vec![];
        while let Some(output) = self.decoder.pop() {
            heard.push(output);
        }
        self.cost_us += (thread_cpu() - before).as_nanos() as f64 / 1e3;
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
        self.sender.send(ThreadEvent { carrier: self.carrier, at_ms, event }).map_err(|_| Stop::Unheard)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let failure = Some(Error::Crashed { name: self.name.clone() });
            let _ = self.tell(Event::End(Box::new(End { ladder: None, work: None, failure })));
        }
    }
}

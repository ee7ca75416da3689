//! The thread of one recording or radio: reads samples, and sends its decoder's outputs.

use std::sync::mpsc::SyncSender;

use airpace_phy::Complex32;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_rt::clock::thread_cpu;

use super::{End, Error};
use crate::iq::{self, Flaw, Piece, Source};

/// Maximum number of events that wait to be processed: less than a second of the events of one cell.
pub(super) const MAX_WAITING: usize = 256;

/// Number of pieces of samples without output after which a thread reports its progress.
const MAX_UNTOLD: u32 = 64;

/// Events of a thread.
pub(super) enum Event {
    /// An output of the decoder.
    Heard(Box<Output>),
    /// The receiver lost samples.
    Gap,
    /// The samples have a flaw.
    Flaw(Flaw),
    /// Share of the samples that has been read, 0 to 1, if known, and processor time since the last report.
    Progress { share: Option<f64>, cost_us: f64 },
    /// The source has ended.
    End(Box<End>),
}

/// An event with its source, and the position up to which the samples were read.
pub(super) struct ThreadEvent {
    /// Number of the recording, from 0.
    pub carrier: usize,
    /// Position up to which the samples were read, in milliseconds from the first sample.
    pub at_ms: f64,
    /// The event.
    pub event: Event,
}

/// Starts a thread that decodes samples and ends when the receiver of its events is dropped. `name` is for messages,
/// `carrier` is the index of the recording, and `options` configures the decoder; the sample rate and the number of
/// antennas in `options` must be those of the source.
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
            // The receiver of the events may already be dropped, so ignore the result.
            let _ = thread.tell(Event::End(Box::new(End { ladder, work, failure })));
        })
        .map_err(|cause| Error::Thread { name, cause })?;
    Ok(())
}

/// Reason for the end of a thread before the end of its recording.
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
    /// Number of samples that were read or that the receiver lost.
    gone: u64,
    /// Share of the samples that has been read, if known.
    share: Option<f64>,
    /// Processor time that was not reported yet, in microseconds.
    cost_us: f64,
    /// Number of pieces of samples since the last report.
    untold: u32,
    sender: SyncSender<ThreadEvent>,
}

impl Thread {
    /// Reads the whole source. The source is dropped before its end is reported, so that the reader of the events knows
    /// that a radio is switched off.
    fn read_all(&mut self, mut source: Box<dyn Source>) -> Result<(), Stop> {
        // Pieces of a fixed length make the results independent of the sizes of a pipe's reads. A message waits for the
        // end of its piece for at most a quarter of a millisecond.
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
                    // The decoder's tracker detects a loss of unknown length itself.
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
        // The samples before a failure are decoded too.
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
        let is_news = !heard.is_empty() || self.untold == MAX_UNTOLD;
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

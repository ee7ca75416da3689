//! Recordings at the pace at which they were received.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use airpace_phy::Complex32;

use super::{Error, Piece, Source};

/// A source that returns samples no sooner than a receiver would, at most a millisecond of samples per read. The first
/// samples are returned at once.
pub struct Paced {
    source: Box<dyn Source>,
    /// Time of the first read.
    since: Option<Instant>,
    /// Number of samples that were returned or lost.
    gone: u64,
    /// Samples that were read ahead, and the number of them that were returned.
    ahead: Vec<Complex32>,
    given: usize,
    lag: Arc<Lag>,
}

/// Delay of the reads relative to the pace of the recording. The delay shows how far the reader is behind.
#[derive(Debug, Default)]
pub struct Lag {
    pieces: AtomicU64,
    sum_us: AtomicU64,
    most_us: AtomicU64,
    last_us: AtomicU64,
}

impl Lag {
    /// Returns the delay of the last read.
    pub fn last(&self) -> Duration {
        Duration::from_micros(self.last_us.load(Ordering::Relaxed))
    }

    /// Returns the mean delay.
    pub fn mean(&self) -> Duration {
        let pieces = self.pieces.load(Ordering::Relaxed).max(1);
        Duration::from_micros(self.sum_us.load(Ordering::Relaxed) / pieces)
    }

    /// Returns the maximum delay.
    pub fn most(&self) -> Duration {
        Duration::from_micros(self.most_us.load(Ordering::Relaxed))
    }

    fn take(&self, late: Duration) {
        let late_us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(late_us, Ordering::Relaxed);
        self.most_us.fetch_max(late_us, Ordering::Relaxed);
        self.last_us.store(late_us, Ordering::Relaxed);
    }
}

impl Paced {
    /// Creates a paced source from a source that could be read faster.
    pub fn new(source: Box<dyn Source>) -> Paced {
        Paced { source, since: None, gone: 0, ahead: vec![], given: 0, lag: Arc::default() }
    }

    /// Returns the delays of the reads. Another thread can read them while the source is read.
    pub fn lag(&self) -> Arc<Lag> {
        Arc::clone(&self.lag)
    }

    /// Waits until the reception time of the last returned sample.
    fn wait(&self, since: Instant) {
        let due = since + Duration::from_secs_f64(self.gone as f64 / self.source.sample_rate_hz().max(1.0));
        let now = Instant::now();
        self.lag.take(now.saturating_duration_since(due));
        thread::sleep(due.saturating_duration_since(now));
    }
}

impl Source for Paced {
    fn sample_rate_hz(&self) -> f64 {
        self.source.sample_rate_hz()
    }

    fn antennas(&self) -> usize {
        self.source.antennas()
    }

    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if self.given == self.ahead.len() {
            self.ahead.clear();
            self.given = 0;
            match self.source.read(&mut self.ahead)? {
                Piece::Samples(0) => return Ok(Piece::Samples(0)),
                Piece::Samples(_) => {}
                piece => {
                    if let Piece::Gap(Some(lost)) = piece {
                        self.gone += lost;
                    }
                    return Ok(piece);
                }
            }
        }
        let millisecond = (self.source.sample_rate_hz() / 1e3) as usize;
        let antennas = self.source.antennas();
        let count = ((self.ahead.len() - self.given) / antennas).min(millisecond.max(1));
        self.gone += count as u64;
        self.wait(since);
        out.extend_from_slice(&self.ahead[self.given..][..count * antennas]);
        self.given += count * antennas;
        Ok(Piece::Samples(count))
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iq::{Format, Meta, Reader};

    #[test]
    fn samples_come_no_sooner_than_they_were_received_and_all_of_them() {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| (at % 100) as u8).collect();
        let reader = |bytes: &[u8]| {
            let source = Box::new(std::io::Cursor::new(bytes.to_vec()));
            Box::new(Reader::new("a".into(), Meta::raw(Format::Ci8, 200e3), source, None))
        };
        let (mut at_once, mut whole) = (reader(&bytes), vec![]);
        while at_once.read(&mut whole).unwrap() != Piece::End {}
        let mut paced = Paced::new(reader(&bytes));
        let (began, mut out) = (Instant::now(), vec![]);
        loop {
            match paced.read(&mut out).unwrap() {
                Piece::Samples(count) => {
                    assert!(count <= 200, "no more than a millisecond's worth at once");
                    assert!(began.elapsed() >= Duration::from_micros(out.len() as u64 * 5));
                }
                piece @ (Piece::Gap(_) | Piece::Flaw(_)) => panic!("nothing is lost: {piece:?}"),
                Piece::End => break,
            }
        }
        assert!(out.len() == 10_000 && out == whole, "{} samples", out.len());
        // A reader that pauses falls behind.
        let mut paced = Paced::new(reader(&bytes));
        paced.read(&mut out).unwrap();
        thread::sleep(Duration::from_millis(30));
        paced.read(&mut out).unwrap();
        assert!(paced.lag().most() >= Duration::from_millis(28), "{:?}", paced.lag());
        assert!(paced.lag().mean() <= paced.lag().most() && paced.lag().last() <= paced.lag().most());
    }
}

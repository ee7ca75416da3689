//! Sources of samples: a file, a radio, or a processing step that reads from another source.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_phy::Complex32;

use super::{Error, Piece, Reader};

/// Samples in order, from any origin.
pub trait Source: Send {
    /// Returns the number of samples per second.
    fn sample_rate_hz(&self) -> f64;

    /// Returns the number of antennas that receive simultaneously.
    fn antennas(&self) -> usize {
        1
    }

    /// Appends the next samples, interleaved: one of each antenna per instant, in the order of the antennas. Never
    /// crosses a gap: a gap before the next samples is reported first, once. `Samples(0)` means that no samples have
    /// arrived for a while, but more may follow.
    ///
    /// # Errors
    /// The source failed: no more samples will arrive, although the source has not reached its end.
    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error>;

    /// Returns the share of the source that has been read, 0 to 1, if its end is known.
    fn progress(&self) -> Option<f64>;

    /// Returns whether samples arrive at the receiver's pace, and may be interrupted for a while.
    fn is_live(&self) -> bool {
        true
    }
}

impl Source for Reader {
    fn sample_rate_hz(&self) -> f64 {
        self.meta().sample_rate_hz
    }

    fn antennas(&self) -> usize {
        self.meta().antennas
    }

    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        Reader::read(self, out)
    }

    fn progress(&self) -> Option<f64> {
        Reader::progress(self)
    }

    fn is_live(&self) -> bool {
        Reader::is_live(self)
    }
}

/// A source that ends early: after a given time, or on request.
pub struct Until {
    source: Box<dyn Source>,
    /// Number of samples, including lost samples, after which the source ends.
    most: Option<u64>,
    stop: Arc<AtomicBool>,
    /// Number of samples so far, including lost samples.
    gone: u64,
}

impl Until {
    /// Creates a source that ends after `seconds` of samples, if given, or as soon as `stop` is set.
    pub fn new(source: Box<dyn Source>, seconds: Option<f64>, stop: Arc<AtomicBool>) -> Until {
        let most = seconds.map(|seconds| (seconds * source.sample_rate_hz()).round() as u64);
        Until { source, most, stop, gone: 0 }
    }
}

impl Source for Until {
    fn sample_rate_hz(&self) -> f64 {
        self.source.sample_rate_hz()
    }

    fn antennas(&self) -> usize {
        self.source.antennas()
    }

    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        let left = self.most.map(|most| most.saturating_sub(self.gone));
        if left == Some(0) || self.stop.load(Ordering::Relaxed) {
            return Ok(Piece::End);
        }
        let before = out.len();
        let piece = match self.source.read(out)? {
            Piece::Samples(count) => {
                let count = left.map_or(count, |left| count.min(usize::try_from(left).unwrap_or(count)));
                out.truncate(before + count * self.source.antennas());
                self.gone += count as u64;
                Piece::Samples(count)
            }
            piece => piece,
        };
        if let Piece::Gap(Some(lost)) = piece {
            self.gone = self.gone.saturating_add(lost);
        }
        Ok(piece)
    }

    fn progress(&self) -> Option<f64> {
        let of_time = self.most.map(|most| self.gone as f64 / most.max(1) as f64);
        // The limit that is reached first determines the progress.
        let share = [of_time, self.source.progress()].into_iter().flatten().reduce(f64::max);
        share.map(|share| share.min(1.0))
    }

    fn is_live(&self) -> bool {
        self.source.is_live()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iq::{Format, Meta, Segment};

    /// A source of 300 samples per second, with 3000 samples in total. After the first ten samples, one second of
    /// samples is lost.
    fn source() -> Box<dyn Source> {
        let mut meta = Meta::raw(Format::Ci8, 300.0);
        let at = |start, global_index| Segment { start, global_index, ..Segment::default() };
        meta.segments = vec![at(0, Some(0)), at(10, Some(310))];
        let bytes = std::io::Cursor::new(vec![1; 6000]);
        Box::new(Reader::new("a".into(), meta, Box::new(bytes), Some(6000)))
    }

    /// Reads the whole source. Returns the number of samples, and the losses.
    fn rest(until: &mut Until) -> (usize, Vec<Option<u64>>) {
        let (mut out, mut gaps) = (vec![], vec![]);
        loop {
            match until.read(&mut out).unwrap() {
                Piece::Samples(_) => {}
                Piece::Gap(lost) => gaps.push(lost),
                Piece::Flaw(flaw) => panic!("{flaw}"),
                Piece::End => return (out.len(), gaps),
            }
        }
    }

    #[test]
    fn it_ends_after_its_time_of_which_lost_samples_are_a_part() {
        let mut until = Until::new(source(), Some(1.5), Arc::default());
        assert_eq!(rest(&mut until), (150, vec![Some(300)]), "450 in all");
        assert_eq!(until.progress(), Some(1.0));
        let mut until = Until::new(source(), Some(0.5), Arc::default());
        assert_eq!(rest(&mut until), (10, vec![Some(300)]), "the time ends in the gap");
        let mut until = Until::new(source(), None, Arc::default());
        assert_eq!(rest(&mut until), (3000, vec![Some(300)]), "all of it");
    }

    #[test]
    fn it_ends_when_it_is_asked_to() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut until = Until::new(source(), None, Arc::clone(&stop));
        let mut out = vec![];
        until.read(&mut out).unwrap();
        assert!(!out.is_empty() && until.progress() < Some(0.01), "of the file");
        stop.store(true, Ordering::Relaxed);
        assert_eq!(until.read(&mut out).unwrap(), Piece::End);
    }
}

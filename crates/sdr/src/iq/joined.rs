//! Several recordings or radios as the antennas of one receiver.

use std::collections::VecDeque;

use airpace_phy::Complex32;

use super::{Error, Flaw, Piece, Source};

/// Sources that started at the same instant and share a clock, read in parallel.
///
/// For samples that a source lost, its antennas return zeros. If the source does not report the number of lost samples,
/// its antennas return zeros from the loss on, because its samples cannot be aligned with the other sources any more.
/// After the end of a source, its antennas also return zeros. The joined source ends with its last source.
pub struct Joined {
    rate_hz: f64,
    parts: Vec<Part>,
    antennas: usize,
    flaws: VecDeque<Flaw>,
}

struct Part {
    source: Box<dyn Source>,
    antennas: usize,
    /// Samples that wait for the samples of the other sources; each instant contains all antennas of the source.
    ahead: Vec<Complex32>,
    /// Number of lost instants before the samples in `ahead`.
    lost: u64,
    /// Number of instants read and lost so far.
    at: u64,
    is_over: bool,
}

/// Maximum number of instants per read.
const MAX_INSTANTS: usize = 1 << 14;

impl Joined {
    /// Joins sources, each with its name.
    ///
    /// # Errors
    /// The sample rates differ.
    pub fn new(sources: Vec<(String, Box<dyn Source>)>) -> Result<Joined, Error> {
        let rate_hz = sources.first().map_or(0.0, |(_, source)| source.sample_rate_hz());
        if let Some((name, other)) = sources.iter().find(|(_, source)| source.sample_rate_hz() != rate_hz) {
            let what = format!(
                "{name} has {} samples per second, the first {rate_hz}: antennas of one receiver share its clock; resample \
                 one of them, or decode them one by one",
                other.sample_rate_hz()
            );
            let names = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("+");
            return Err(Error::Join { names, what });
        }
        let part = |(_, source): (String, Box<dyn Source>)| {
            let antennas = source.antennas();
            Part { source, antennas, ahead: vec![], lost: 0, at: 0, is_over: false }
        };
        let parts: Vec<Part> = sources.into_iter().map(part).collect();
        let antennas = parts.iter().map(|part| part.antennas).sum();
        Ok(Joined { rate_hz, parts, antennas, flaws: VecDeque::new() })
    }

    /// Reads the samples for the next instants. Returns whether samples or events are available.
    fn read_ahead(&mut self) -> Result<bool, Error> {
        for (which, part) in self.parts.iter_mut().enumerate() {
            if part.is_over || part.lost > 0 || !part.ahead.is_empty() {
                continue;
            }
            match part.source.read(&mut part.ahead)? {
                Piece::Samples(0) => return Ok(false),
                Piece::Samples(count) => part.at += count as u64,
                Piece::Gap(Some(lost)) => {
                    part.lost = lost;
                    part.at = part.at.saturating_add(lost);
                }
                Piece::Gap(None) => {
                    part.is_over = true;
                    self.flaws.push_back(Flaw::Antenna { which, at: part.at });
                }
                Piece::Flaw(flaw) => self.flaws.push_back(flaw),
                Piece::End => part.is_over = true,
            }
        }
        Ok(true)
    }
}

impl Part {
    /// Returns the number of instants for which the source has samples or returns zeros.
    fn ready(&self) -> u64 {
        match (self.lost, self.ahead.len(), self.is_over) {
            (0, 0, true) => u64::MAX,
            (0, ahead, _) => (ahead / self.antennas) as u64,
            (lost, ..) => lost,
        }
    }

    /// Returns whether the source returns zeros at the next instant.
    fn is_silent(&self) -> bool {
        self.lost > 0 || self.ahead.is_empty()
    }
}

impl Source for Joined {
    fn sample_rate_hz(&self) -> f64 {
        self.rate_hz
    }

    fn antennas(&self) -> usize {
        self.antennas
    }

    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        loop {
            if let Some(flaw) = self.flaws.pop_front() {
                return Ok(Piece::Flaw(flaw));
            }
            if self.parts.iter().all(|part| part.is_over && part.lost == 0 && part.ahead.is_empty()) {
                return Ok(Piece::End);
            }
            let ready = self.parts.iter().map(Part::ready).min().unwrap_or(0);
            if ready == 0 {
                if !self.read_ahead()? {
                    return Ok(Piece::Samples(0));
                }
                continue;
            }
            // Instants that all sources lost are a gap; the instants after the end of a source are not lost samples.
            if self.parts.iter().all(Part::is_silent) {
                self.parts.iter_mut().for_each(|part| part.lost = part.lost.saturating_sub(ready));
                return Ok(Piece::Gap(Some(ready)));
            }
            let count = usize::try_from(ready).unwrap_or(MAX_INSTANTS).min(MAX_INSTANTS);
            for at in 0..count {
                for part in &self.parts {
                    let samples = part.ahead.get(at * part.antennas..(at + 1) * part.antennas);
                    match samples.filter(|_| part.lost == 0) {
                        Some(samples) => out.extend_from_slice(samples),
                        None => out.extend(std::iter::repeat_n(Complex32::default(), part.antennas)),
                    }
                }
            }
            for part in &mut self.parts {
                match part.lost {
                    0 => drop(part.ahead.drain(..(count * part.antennas).min(part.ahead.len()))),
                    lost => part.lost = lost - count as u64,
                }
            }
            return Ok(Piece::Samples(count));
        }
    }

    /// Returns the smallest share that has been read, over all sources.
    fn progress(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.parts.iter().map(|part| part.source.progress()).collect();
        shares.map(|shares| shares.into_iter().fold(1.0, f64::min))
    }

    fn is_live(&self) -> bool {
        self.parts.iter().any(|part| part.source.is_live())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iq::{Format, Meta, Reader, Segment};

    /// Returns a recording whose samples all have the value `value`. `counts` contains the number of samples of each
    /// capture, and `begins` the number of its first sample by the receiver's count.
    fn source(value: i8, antennas: usize, counts: &[usize], begins: &[Option<u64>]) -> Box<dyn Source> {
        let mut meta = Meta::raw(Format::Ci8, 1e6);
        meta.antennas = antennas;
        let mut start = 0;
        let segment = |(count, global_index): (&usize, &Option<u64>)| {
            let segment = Segment { start, global_index: *global_index, ..Segment::default() };
            start += *count as u64;
            segment
        };
        meta.segments = counts.iter().zip(begins).map(segment).collect();
        let bytes = vec![value as u8; 2 * antennas * counts.iter().sum::<usize>()];
        Box::new(Reader::new("a".into(), meta, Box::new(std::io::Cursor::new(bytes)), None))
    }

    /// Reads all pieces. Returns the samples as multiples of 1/127, the other pieces with their positions, and the
    /// number of antennas.
    fn all(sources: Vec<Box<dyn Source>>) -> (Vec<i32>, Vec<(usize, Piece)>, usize) {
        let named = sources.into_iter().map(|source| ("a".to_owned(), source)).collect();
        let mut joined = Joined::new(named).unwrap();
        let (mut out, mut told) = (vec![], vec![]);
        loop {
            match joined.read(&mut out).unwrap() {
                Piece::Samples(count) => assert!(count > 0),
                Piece::End => break,
                piece => told.push((out.len() / joined.antennas(), piece)),
            }
        }
        (out.iter().map(|sample| (sample.re * 127.0) as i32).collect(), told, joined.antennas())
    }

    #[test]
    fn an_antenna_without_samples_is_silent_and_what_all_lost_is_lost() {
        let one = || source(1, 1, &[4, 4], &[Some(0), Some(6)]);
        let two = || source(2, 2, &[5, 5], &[Some(0), Some(7)]);
        // The first source lacks the instants 4 and 5, and ends at 10. The second source lacks the instants 5 and 6,
        // and ends at 12.
        let (samples, told, antennas) = all(vec![one(), two()]);
        assert_eq!((antennas, told), (3, vec![(5, Piece::Gap(Some(1)))]));
        let [both, first, second] = [[1, 2, 2], [1, 0, 0], [0, 2, 2]];
        let expected =
            [[both; 4].concat(), second.to_vec(), first.to_vec(), [both; 3].concat(), [second; 2].concat()];
        assert_eq!(samples, expected.concat());
    }

    #[test]
    fn an_antenna_that_lost_nobody_knows_how_much_is_silent_from_there_on() {
        let (samples, told, _) =
            all(vec![source(1, 1, &[3, 3], &[Some(0), None]), source(2, 1, &[5], &[None])]);
        assert_eq!(samples, [1, 2, 1, 2, 1, 2, 0, 2, 0, 2]);
        assert_eq!(told, [(3, Piece::Flaw(Flaw::Antenna { which: 0, at: 3 }))]);
    }

    #[test]
    fn rates_must_be_equal() {
        let other = Reader::new("b".into(), Meta::raw(Format::Ci8, 2e6), Box::new(std::io::empty()), None);
        let sources =
            vec![("a".to_owned(), source(1, 1, &[1], &[None])), ("b".to_owned(), Box::new(other) as _)];
        let refused = Joined::new(sources).err().unwrap().to_string();
        assert!(refused.starts_with("a+b: b has 2000000 samples per second"), "{refused}");
    }
}

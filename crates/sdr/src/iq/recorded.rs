//! A source whose samples are recorded while they are read.

use std::path::Path;

use airpace_phy::Complex32;

use super::{Error, Format, Meta, Piece, Source, Writer};

/// Writes the samples of a source into a SigMF recording, with its gaps. The description is written at the end, or when
/// the source fails or is dropped.
pub struct Recorded {
    source: Box<dyn Source>,
    writer: Option<Writer>,
}

impl Recorded {
    /// Records into `path`, with either extension of SigMF or none, as `ci16_le`; `frequency_hz` is the centre frequency
    /// of the receiver.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn new(source: Box<dyn Source>, path: &Path, frequency_hz: Option<f64>) -> Result<Recorded, Error> {
        let mut meta = Meta::raw(Format::Ci16, source.sample_rate_hz());
        meta.antennas = source.antennas();
        meta.segments[0].frequency_hz = frequency_hz;
        Ok(Recorded { source, writer: Some(Writer::create(path, meta)?) })
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.writer.take().map_or(Ok(()), |writer| writer.finish().map(|_| ()))
    }
}

impl Source for Recorded {
    fn sample_rate_hz(&self) -> f64 {
        self.source.sample_rate_hz()
    }

    fn antennas(&self) -> usize {
        self.source.antennas()
    }

    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        let before = out.len();
        let piece = self.source.read(out);
        match (&piece, &mut self.writer) {
            (Ok(Piece::Samples(_)), Some(writer)) => writer.write(&out[before..])?,
            (Ok(Piece::Gap(lost)), Some(writer)) => writer.gap(*lost),
            (Ok(Piece::End) | Err(_), _) => self.finish()?,
            (Ok(_), _) => {}
        }
        piece
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    fn is_live(&self) -> bool {
        self.source.is_live()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // Errors cannot be returned from here.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iq::{Reader, Segment};

    #[test]
    fn what_goes_by_is_kept_with_its_gaps() {
        let folder = tempfile::tempdir().unwrap();
        let mut meta = Meta::raw(Format::Ci16, 1e6);
        let at = |start, global_index| Segment { start, global_index, ..Segment::default() };
        meta.segments =
            vec![at(0, None), at(100, Some(150)), at(200, None), at(300, Some(1300)), at(350, Some(1370))];
        let mut bytes = vec![];
        let samples: Vec<_> = (0..400).map(|at| Complex32::new(at as f32 / 400.0, -0.25)).collect();
        Format::Ci16.write(&samples, &mut bytes);
        let open = || -> Box<dyn Source> {
            let bytes = Box::new(std::io::Cursor::new(bytes.clone()));
            Box::new(Reader::new("a".into(), meta.clone(), bytes, None))
        };
        let all = |mut source: Box<dyn Source>| {
            let (mut samples, mut gaps) = (vec![], vec![]);
            loop {
                match source.read(&mut samples).unwrap() {
                    Piece::Samples(_) => {}
                    Piece::Gap(lost) => gaps.push((samples.len(), lost)),
                    Piece::Flaw(flaw) => panic!("{flaw}"),
                    Piece::End => return (samples, gaps),
                }
            }
        };
        let path = folder.path().join("kept");
        let told = all(Box::new(Recorded::new(open(), &path, Some(806e6)).unwrap()));
        assert_eq!(told.1, [(100, Some(50)), (200, None), (300, Some(1000)), (350, Some(20))]);
        let kept = Reader::open(&folder.path().join("kept.sigmf-meta"), (None, None)).unwrap();
        assert_eq!(kept.meta().segments[3].frequency_hz, Some(806e6));
        assert_eq!(all(Box::new(kept)), told);

        let mut given_up = Recorded::new(open(), &path, None).unwrap();
        given_up.read(&mut vec![]).unwrap();
        drop(given_up);
        Reader::open(&folder.path().join("kept.sigmf-meta"), (None, None)).unwrap();
    }
}

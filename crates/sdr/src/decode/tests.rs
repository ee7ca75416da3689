use std::path::Path;
use std::sync::mpsc;

use airpace_phy::Complex32;
use airpace_radio::fusion::Fused;

use super::*;
use crate::iq::{Piece, Reader};

/// A recording that is part of the repository: a cell with six PRBs.
fn sample() -> Box<dyn Source> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/samples/cell.sigmf-meta");
    Box::new(Reader::open(&path, (None, None)).unwrap())
}

fn named(sources: Vec<Box<dyn Source>>) -> Vec<(String, Box<dyn Source>)> {
    sources.into_iter().enumerate().map(|(at, source)| (format!("source {at}"), source)).collect()
}

/// Decodes copies of the recording. Returns the carrier, subframe number and message count of each subframe, and the
/// combined reports.
fn decoded(recordings: usize) -> (Vec<(u8, u64, usize)>, Vec<Fused>) {
    let sources = named((0..recordings).map(|_| sample()).collect());
    let options = Options::default();
    let mut stream = ReportStream::new(&vec![1.92e6; recordings], None, options.caution.patience, false);
    let (mut said, mut fused) = (vec![], vec![]);
    for event in Decoding::start(sources, options).unwrap() {
        let event = event.unwrap();
        match &event.event {
            DecodeEvent::Heard(output) => {
                if let Output::Subframe(reading) = &**output {
                    said.push((event.carrier.0, reading.index, reading.found.len() + reading.late.len()));
                }
            }
            DecodeEvent::End(end) => assert!(end.failure.is_none() && end.ladder.is_some()),
            _ => {}
        }
        stream.take(event, |told| fused.push(told));
    }
    stream.finish(|told| fused.push(told));
    (said, fused)
}

#[test]
fn recordings_are_told_in_the_order_of_time_and_their_reports_come_together() {
    let (said, fused) = decoded(2);
    assert_eq!(decoded(2), (said.clone(), fused.clone()), "the same recordings give the same");
    let of =
        |carrier| -> Vec<_> { said.iter().filter(|(of, ..)| *of == carrier).map(|told| told.1).collect() };
    assert!(of(0).len() > 50 && of(0) == of(1), "{} and {} subframes", of(0).len(), of(1).len());
    assert!(said.iter().any(|told| told.2 > 0), "and messages in them");
    let (alone, _) = decoded(1);
    assert_eq!(alone.iter().map(|told| told.1).collect::<Vec<_>>(), of(0));
    assert_eq!(fused.len(), of(0).len());
    for fused in fused {
        let Fused::Subframe { index, reports } = fused else { panic!("{fused:?}") };
        assert_eq!(reports.len(), 2, "subframe {index}");
        assert_eq!(reports[0].dcis, reports[1].dcis, "subframe {index}");
    }
}

/// A source of zero samples that returns a millisecond of samples per trigger, and ends when the sender of triggers is
/// dropped.
struct Silence {
    words: mpsc::Receiver<()>,
    is_live: bool,
}

/// Returns the source, and the sender of its triggers.
fn silence(is_live: bool) -> (mpsc::Sender<()>, Box<dyn Source>) {
    let (say, words) = mpsc::channel();
    (say, Box::new(Silence { words, is_live }))
}

impl Source for Silence {
    fn sample_rate_hz(&self) -> f64 {
        1.92e6
    }

    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, iq::Error> {
        if self.words.recv().is_err() {
            return Ok(Piece::End);
        }
        out.resize(out.len() + 1920, Complex32::default());
        Ok(Piece::Samples(1920))
    }

    fn progress(&self) -> Option<f64> {
        None
    }

    fn is_live(&self) -> bool {
        self.is_live
    }
}

/// The iterator does not wait for a pipe without data, next to another pipe or next to a file.
#[test]
fn a_live_source_that_says_nothing_is_not_waited_for_until_it_goes_on() {
    for is_other_live in [true, false] {
        let (say, silent) = silence(true);
        let (say_other, other) = silence(is_other_live);
        let options = Options { stall: Duration::from_millis(50), ..Options::default() };
        let mut decoding = Decoding::start(named(vec![other, silent]), options).unwrap();
        assert_eq!(decoding.are_live(), is_other_live);
        // Send enough samples for a progress report of the decoder's thread.
        (0..100).for_each(|_| say_other.send(()).unwrap());
        let silent = CarrierId(1);
        let stalled = decoding.find(|event| {
            let event = event.as_ref().unwrap();
            event.carrier == silent && matches!(event.event, DecodeEvent::Stalled)
        });
        assert!(stalled.is_some(), "the other one goes on without it");
        (0..100).for_each(|_| say.send(()).unwrap());
        drop((say, say_other));
        let (mut back, mut ends) = (vec![], 0);
        for event in decoding {
            let CarrierEvent { carrier, event } = event.unwrap();
            match event {
                DecodeEvent::Back => back.push(carrier),
                DecodeEvent::End(_) => ends += 1,
                _ => {}
            }
        }
        assert!(back.contains(&silent), "it is heard again");
        assert_eq!(ends, 2);
    }
}

/// A source that fails at once, or crashes.
struct Broken {
    is_crash: bool,
}

impl Source for Broken {
    fn sample_rate_hz(&self) -> f64 {
        1.92e6
    }

    fn read(&mut self, _: &mut Vec<Complex32>) -> Result<Piece, iq::Error> {
        assert!(!self.is_crash, "this crash is part of the test");
        Err(iq::Error::Radio { device: "radio".into(), what: "it is gone".into(), remedy: None })
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

#[test]
fn a_failure_is_told_in_the_end_of_its_source() {
    for (is_crash, said) in [(false, "radio: it is gone"), (true, "source 0: its decoder crashed")] {
        let mut decoding =
            Decoding::start(named(vec![Box::new(Broken { is_crash })]), Options::default()).unwrap();
        let Some(Ok(CarrierEvent { event: DecodeEvent::End(end), .. })) = decoding.next() else {
            panic!("it ends")
        };
        assert_eq!(end.failure.unwrap().to_string(), said);
        assert_eq!(end.ladder.is_some(), !is_crash);
        assert!(decoding.next().is_none() && decoding.ready().is_none());
    }
}

/// A source with this sample rate.
struct Rate(f64);

impl Source for Rate {
    fn sample_rate_hz(&self) -> f64 {
        self.0
    }

    fn read(&mut self, _: &mut Vec<Complex32>) -> Result<Piece, iq::Error> {
        Ok(Piece::End)
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

#[test]
fn what_cannot_be_decoded_is_refused_by_name() {
    let refused = |sources| Decoding::start(sources, Options::default()).err().unwrap().to_string();
    let said = refused(named(vec![Box::new(Rate(1e6))]));
    assert!(said.starts_with("source 0: 1000000 samples per second are too few"), "{said}");
    let many = (0..257).map(|_| -> Box<dyn Source> { Box::new(Rate(1.92e6)) }).collect();
    assert!(refused(named(many)).contains("256 carriers"));
    assert!(Decoding::start(vec![], Options::default()).unwrap().next().is_none(), "nothing to do");
}

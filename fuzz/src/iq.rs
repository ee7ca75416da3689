//! Properties that must hold for any recording: its description and its bytes.
//!
//! No function in this file may panic on any input. The comment of a function describes what else it checks.

use std::io::{self, Read};
use std::path::Path;

use airpace_sdr::iq::{Format, Joined, Meta, Piece, Reader, Segment, Source};

use super::choices::Choices;

/// A recording. A parsed description is unchanged after it is written and parsed again. Samples are finite, and their
/// number matches the reported number, even if the file is truncated or damaged. There are fewer gaps than captures.
/// After the end, no samples are returned.
pub fn recording(input: &[u8]) {
    let mut choices = Choices(input);
    let meta = if choices.flag() { any_text(&mut choices) } else { Some(any_meta(&mut choices)) };
    let Some(meta) = meta else { return };
    let written = meta.to_json();
    let again =
        Meta::parse(Path::new("a"), written.as_bytes()).unwrap_or_else(|error| panic!("{error}: {written}"));
    let said = |meta: &Meta| {
        let captures = meta.segments.iter();
        let captures: Vec<_> =
            captures.map(|segment| (segment.start, segment.global_index, segment.header_bytes)).collect();
        (meta.format, meta.antennas, meta.trailing_bytes, meta.dataset.clone(), captures)
    };
    assert_eq!(said(&again), said(&meta), "{written}");

    let is_packed = choices.byte() < 64;
    let is_known = choices.flag();
    let mut bytes = choices.take(choices.0.len().saturating_sub(8)).to_vec();
    let plain = bytes.len();
    if is_packed {
        bytes = zstd::encode_all(&bytes[..], 1).expect("it is in memory");
        let cut = choices.below(8 * bytes.len());
        bytes.truncate(cut.max(5));
        let damaged = choices.below(8 * bytes.len());
        if let Some(byte) = bytes.get_mut(damaged) {
            *byte ^= choices.byte();
        }
    }
    let is_packed = is_packed || looks_packed(&bytes);
    let length = is_known.then_some(bytes.len() as u64);
    let segments = meta.segments.len();
    let antennas = meta.antennas;
    let size = meta.format.size() * antennas;
    let source = Pieces { bytes, at: 0, step: 1 + usize::from(choices.byte()), calls: 0 };
    let mut reader = Reader::new("a".into(), meta, Box::new(source), length);
    let mut samples = vec![];
    let (mut gaps, mut flaws) = (0, 0);
    loop {
        let before = samples.len();
        match reader.read(&mut samples) {
            Ok(Piece::Samples(count)) => assert!(count > 0 && samples.len() == before + count * antennas),
            Ok(Piece::Gap(_)) => gaps += 1,
            Ok(Piece::Flaw(flaw)) => {
                flaws += 1;
                assert!(!flaw.to_string().is_empty());
            }
            Ok(Piece::End) => break,
            Err(error) => {
                assert!(error.to_string().contains("a: "));
                return;
            }
        }
        assert_eq!(samples.len() as u64, reader.position() * antennas as u64);
        assert!(reader.progress().is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
    assert_eq!(reader.read(&mut samples).expect("it has ended"), Piece::End);
    assert!(samples.iter().all(|sample| sample.re.is_finite() && sample.im.is_finite()));
    assert!(gaps < segments && flaws <= 3, "{gaps} gaps and {flaws} flaws");
    assert!(is_packed || samples.len() <= plain / size * antennas);
}

/// Whether bytes start like a zstd file. Such bytes are decompressed, and may give any number of samples.
fn looks_packed(bytes: &[u8]) -> bool {
    matches!(bytes, [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..])
}

/// Several recordings as the antennas of one receiver. Samples are finite, and each instant has a sample of every
/// antenna. Every gap has a known length. An antenna is left out before its end only if its description does not
/// contain the length of a gap. After the end, no samples are returned.
pub fn joined(input: &[u8]) {
    let mut choices = Choices(input);
    let (mut sources, mut antennas) = (vec![], 0);
    let (mut most, mut is_packed) = (0, false);
    for _ in 0..1 + choices.byte() % 3 {
        let mut meta = any_meta(&mut choices);
        meta.sample_rate_hz = 1e6;
        let count = choices.below(600);
        let bytes = choices.take(count).to_vec();
        antennas += meta.antennas;
        most += bytes.len() / (meta.format.size() * meta.antennas);
        is_packed |= looks_packed(&bytes);
        let length = choices.flag().then_some(bytes.len() as u64);
        let source = Pieces { bytes, at: 0, step: 1 + usize::from(choices.byte()), calls: 0 };
        let reader = Reader::new("a".into(), meta, Box::new(source), length);
        sources.push(("a".to_owned(), Box::new(reader) as Box<dyn Source>));
    }
    let parts = sources.len();
    let mut joined = Joined::new(sources).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(joined.antennas(), antennas);
    let (mut samples, mut instants, mut others) = (vec![], 0, 0);
    loop {
        let before = samples.len();
        match joined.read(&mut samples) {
            Ok(Piece::Samples(count)) => {
                assert!(count > 0 && samples.len() == before + count * antennas);
                instants += count;
            }
            Ok(Piece::Gap(lost)) => {
                assert!(lost.is_some_and(|lost| lost > 0));
                others += 1;
            }
            Ok(Piece::Flaw(flaw)) => {
                assert!(!flaw.to_string().is_empty());
                others += 1;
            }
            Ok(Piece::End) => break,
            Err(error) => {
                assert!(error.to_string().contains("a: "));
                return;
            }
        }
        samples
            .iter()
            .skip(before)
            .for_each(|sample| assert!(sample.re.is_finite() && sample.im.is_finite()));
    }
    assert_eq!(joined.read(&mut samples).expect("it has ended"), Piece::End);
    // Each of the recordings has flaws, and gaps between its captures.
    assert!(others <= parts * 12, "{others} gaps and flaws");
    assert!(is_packed || instants <= most, "{instants} instants of {most} in all recordings");
}

/// A description from random bytes, after a valid start, with which the parser reads further than with most random
/// bytes.
fn any_text(choices: &mut Choices<'_>) -> Option<Meta> {
    const FRONTS: [&str; 4] = [
        "",
        r#"{"global": {"core:datatype": "ci8", "core:sample_rate": 1e6"#,
        r#"{"global": {"core:datatype": "cf32_le", "core:sample_rate": 1e6}, "captures": [{"core:sample_start": 0}, {"#,
        r#"{"global": {"core:datatype": "cu8", "core:sample_rate": 1e6}, "captures": [{"core:sample_start": 0, "#,
    ];
    const BACKS: [&str; 4] = ["", "}}", "}]}", "}, \"captures\": [{\"core:sample_start\": 0}]}"];
    let (front, back) = (choices.of(&FRONTS), choices.of(&BACKS));
    let count = choices.below(200);
    let text = [front.as_bytes(), choices.take(count), back.as_bytes()].concat();
    let path = Path::new("a.sigmf-meta");
    Meta::parse(path, &text)
        .map_err(|error| assert!(error.to_string().starts_with("a.sigmf-meta"), "{error}"))
        .ok()
}

/// A description with drawn fields.
fn any_meta(choices: &mut Choices<'_>) -> Meta {
    let rate = f64::from(choices.float()).abs();
    let mut meta =
        Meta::raw(choices.of(&Format::ALL), if rate > 0.0 && rate.is_finite() { rate } else { 1e6 });
    meta.antennas = 1 + usize::from(choices.byte() % 4);
    meta.trailing_bytes = choices.number() >> 11 >> (choices.byte() % 48);
    meta.segments.clear();
    let mut start = 0;
    for _ in 0..1 + choices.byte() % 6 {
        meta.segments.push(Segment {
            start,
            global_index: choices.flag().then(|| choices.number() >> 11),
            header_bytes: if choices.flag() { choices.number() >> 11 >> (choices.byte() % 48) } else { 0 },
            frequency_hz: choices.flag().then_some(8e8),
        });
        start += 1 + choices.below(300) as u64;
    }
    meta
}

/// A reader that returns its bytes in pieces, and returns `Interrupted` at some calls.
struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    step: usize,
    calls: usize,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls % 7 == 3 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = out.len().min(self.step).min(self.bytes.len() - self.at);
        out[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

use super::super::Segment;
use super::*;

fn samples(count: usize) -> Vec<Complex32> {
    (0..count).map(|at| Complex32::new((at % 100) as f32 / 100.0, -((at % 7) as f32) / 7.0)).collect()
}

fn bytes(format: Format, count: usize) -> Vec<u8> {
    let mut bytes = vec![];
    format.write(&samples(count), &mut bytes);
    bytes
}

/// A source that returns one byte at a time, like a slow pipe.
struct Slow(io::Cursor<Vec<u8>>);

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(1);
        self.0.read(&mut out[..most])
    }
}

/// Returns a reader of a file, and a reader of a slow pipe.
fn both(meta: &Meta, bytes: &[u8]) -> [Reader; 2] {
    let length = bytes.len() as u64;
    let bytes = io::Cursor::new(bytes.to_vec());
    let slow = Box::new(Slow(bytes.clone()));
    [
        Reader::new("a".into(), meta.clone(), Box::new(bytes), Some(length)),
        Reader::new("a".into(), meta.clone(), slow, None),
    ]
}

/// Returns the number of samples, and all other pieces with their positions.
fn read_all(reader: &mut Reader) -> Result<(usize, Vec<(u64, Piece)>), Error> {
    let (mut all, mut told) = (vec![], vec![]);
    loop {
        match reader.read(&mut all)? {
            Piece::Samples(count) => assert!(count > 0),
            Piece::End => {
                assert_eq!(reader.read(&mut all)?, Piece::End, "the end is the end");
                return Ok((all.len(), told));
            }
            piece => told.push((reader.position(), piece)),
        }
    }
}

#[test]
fn lost_samples_are_told_where_they_are_missing() {
    let mut meta = Meta::raw(Format::Ci8, 1e6);
    let at = |start, global_index| Segment { start, global_index, ..Segment::default() };
    meta.segments =
        vec![at(0, Some(50)), at(100, Some(150)), at(200, Some(1250)), at(300, None), at(350, Some(7))];
    for mut reader in both(&meta, &bytes(Format::Ci8, 400)) {
        let gaps = [(200, Some(1000)), (300, None), (350, None)].map(|(at, lost)| (at, Piece::Gap(lost)));
        assert_eq!(read_all(&mut reader).unwrap(), (400, gaps.to_vec()));
    }
}

#[test]
fn headers_and_what_trails_are_no_samples() {
    let mut meta = Meta::raw(Format::Ci16, 1e6);
    let at = |start, header_bytes| Segment {
        start,
        global_index: Some(start),
        header_bytes,
        ..Segment::default()
    };
    (meta.segments, meta.trailing_bytes) = (vec![at(0, 5), at(6, 3)], 7);
    let samples = bytes(Format::Ci16, 10);
    let all = [&[9; 5], &samples[..24], &[9; 3], &samples[24..], &[9; 7]].concat();
    for mut reader in both(&meta, &all) {
        let mut read = vec![];
        while let Piece::Samples(_) = reader.read(&mut read).unwrap() {}
        let mut expected = vec![];
        Format::Ci16.read(&samples, &mut expected);
        assert_eq!(read, expected);
    }
    for mut reader in both(&meta, &[9; 4]) {
        let error = read_all(&mut reader).unwrap_err().to_string();
        assert_eq!(error, "a: captures[0].core:header_bytes: the file ends within this header of 5 bytes");
    }
}

#[test]
fn what_ends_too_early_says_so_once_and_gives_what_is_whole() {
    let meta = Meta::raw(Format::Cf32, 1e6);
    let all = bytes(Format::Cf32, 30_000);
    for mut reader in both(&meta, &all[..all.len() - 3]) {
        let cut = Piece::Flaw(Flaw::Sample { sample: 29_999, bytes: 5, size: 8 });
        assert_eq!(read_all(&mut reader).unwrap(), (29_999, vec![(29_999, cut)]));
    }
    let mut meta = Meta::raw(Format::Ci8, 1e6);
    meta.segments.push(Segment { start: 90, header_bytes: 4, ..Segment::default() });
    let cut = |sample| Piece::Flaw(Flaw::Capture { sample, capture: 1, start: 90 });
    for mut reader in both(&meta, &bytes(Format::Ci8, 60)) {
        assert_eq!(read_all(&mut reader).unwrap(), (60, vec![(60, cut(60))]));
    }
    for mut reader in both(&meta, &bytes(Format::Ci8, 91)) {
        assert_eq!(read_all(&mut reader).unwrap(), (90, vec![(90, Piece::Gap(None)), (90, cut(90))]));
    }
}

#[test]
fn compressed_samples_are_expanded_as_far_as_they_go() {
    let meta = Meta::raw(Format::Cf32, 1e6);
    // Random numbers as data, because they compress badly.
    let mut state = 1_u32;
    let mut chance = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    };
    let (mut plain, count) = (vec![], 100_000);
    let samples: Vec<_> = (0..count).map(|_| Complex32::new(chance(), chance())).collect();
    Format::Cf32.write(&samples, &mut plain);
    let mut packed = zstd::encode_all(&plain[..], 1).unwrap();
    for mut reader in both(&meta, &packed) {
        assert_eq!(read_all(&mut reader).unwrap(), (count, vec![]));
    }
    // A skippable frame at the start, as parallel compressors write it, followed by two frames.
    let skipped = [&[0x5A, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, 7, 7], &packed[..], &packed].concat();
    for mut reader in both(&meta, &skipped) {
        assert_eq!(read_all(&mut reader).unwrap(), (2 * count, vec![]));
    }

    let mut reader = both(&meta, &packed).into_iter().next().unwrap();
    let mut shares = vec![reader.progress().unwrap()];
    while let Piece::Samples(_) = reader.read(&mut vec![]).unwrap() {
        shares.push(reader.progress().unwrap());
    }
    assert!(shares.is_sorted() && shares[0] == 0.0 && shares.last() == Some(&1.0), "{shares:?}");
    assert!(shares.iter().any(|share| (0.3..0.7).contains(share)), "{shares:?}");

    let cut_at = packed.len() * 3 / 4;
    for mut reader in both(&meta, &packed[..cut_at]) {
        let (whole, told) = read_all(&mut reader).unwrap();
        assert!((count / 2..count).contains(&whole), "{whole} of {count} samples were whole");
        let cut = Flaw::Frame { bytes: cut_at as u64, samples: whole as u64 };
        assert_eq!(told, [(whole as u64, Piece::Flaw(cut))]);
    }
    packed[cut_at] ^= 0xFF;
    let damaged = both(&meta, &packed).map(|mut reader| read_all(&mut reader));
    for told in damaged {
        // Some errors remain undetected, because the file has no checksum.
        if let Err(error) = told {
            assert!(
                error.to_string().starts_with("cannot read a: compressed data are damaged, before byte"),
                "{error}"
            );
        }
    }
    let mut reader =
        Reader::of("a.zst".into(), meta, Bytes::new(None, true, || Ok(Box::new(&[1u8; 99][..]))));
    let error = read_all(&mut reader).unwrap_err().to_string();
    assert!(error.starts_with("cannot read a.zst: compressed data are damaged"), "{error}");
}

#[test]
fn what_is_no_number_becomes_zero_and_is_counted() {
    let meta = Meta::raw(Format::Cf32, 1e6);
    let values =
        [Complex32::new(1.0, f32::NAN), Complex32::new(f32::INFINITY, f32::NAN), Complex32::new(2.0, 3.0)];
    let mut bytes = vec![];
    Format::Cf32.write(&values, &mut bytes);
    for mut reader in both(&meta, &bytes) {
        let mut all = vec![];
        let mut flaws = vec![];
        loop {
            match reader.read(&mut all).unwrap() {
                Piece::Samples(_) => {}
                Piece::Flaw(Flaw::Strange { first, .. }) => flaws.push(first),
                piece => break assert_eq!(piece, Piece::End),
            }
        }
        assert_eq!(all, [Complex32::new(1.0, 0.0), Complex32::default(), values[2]]);
        assert_eq!(flaws, [0], "it is told once");
    }
}

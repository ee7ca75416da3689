//! Format detection: other data is never detected as a log without frames, and a log without frames always is. The logs
//! are skipped if the recordings are not available.

use crate::recordings_folder;

use airpace_diag::source::{Item, Reader};
use airpace_diag::{Format, Message};
use recordings_folder::{logs, recordings};

/// Pseudorandom number generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}

/// Detects the format of bytes that arrive in pieces of this size. Returns the format and the number of log packets.
fn in_pieces(bytes: &[u8], size: usize) -> (Format, usize) {
    let (mut reader, mut packets) = (Reader::default(), 0);
    let mut count = |item: Item<'_>| packets += usize::from(matches!(item, Item::Message(Message::Log(_))));
    for piece in bytes.chunks(size) {
        reader.push(piece, |_, item| count(item));
    }
    let form = reader.next_file(|_, item| count(item));
    reader.finish(|_, item| count(item));
    (form, packets)
}

/// Sizes of pieces (bytes): all bytes at once, and the sizes of reads from a file, from a pipe, and from a slow pipe.
const SIZES: [usize; 4] = [usize::MAX, 1 << 18, 1 << 16, 997];

/// Detects the format of bytes. The format must be the same for any size of pieces.
fn form(bytes: &[u8], name: &str) -> Format {
    let whole = in_pieces(bytes, bytes.len().max(1));
    assert_eq!(whole.0, Format::of(bytes), "{name}: alone and in a reader");
    for size in SIZES {
        assert_eq!(in_pieces(bytes, size.min(bytes.len().max(1))), whole, "{name} in pieces of {size}");
    }
    whole.0
}

/// A log without frames with the same packets, and the start offset of each packet.
fn without_frames(bytes: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut packets, mut begins) = (vec![], vec![]);
    Format::Hdlc.visit(bytes, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            begins.push(packets.len());
            let mut body = vec![];
            packet.write(false, &mut body);
            packets.extend_from_slice(&body[4..]);
        }
    });
    (packets, begins)
}

#[test]
fn a_stream_that_lost_all_bytes_of_a_value_is_no_log_of_bare_packets() {
    let Some(folder) = recordings() else { return };
    for log in logs(&folder) {
        let bytes = std::fs::read(&log).unwrap();
        // Values of the lost bytes: flag, escape, the commands of a log packet and of a wrapper, the escaped flag,
        // zero, and others.
        for lost in [0x7E, 0x7D, 0x10, 0x98, 0x5E, 0x00, 0x01, 0x0A, 0x0D, 0xB0, 0xFF] {
            let left: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != lost).collect();
            let name = format!("{} without {lost:#04X}", log.display());
            assert_eq!(form(&left, &name), Format::Hdlc, "{name}");
        }
        // Bodies of messages without frames and without escapes.
        let mut bodies = vec![];
        Format::Hdlc.visit(&bytes, |_, item| {
            if let Item::Message(Message::Log(packet)) = item {
                packet.write(false, &mut bodies);
            }
        });
        let name = format!("bodies of {}", log.display());
        assert_eq!(form(&bodies, &name), Format::Hdlc, "{name}");
    }
}

/// Bytes with random damage.
fn damage(bytes: &[u8], noise: &mut Noise) -> Vec<u8> {
    let from = noise.below(bytes.len());
    let length = 1 + noise.below(bytes.len() - from);
    let mut left = match noise.below(3) {
        0 => bytes.to_vec(),
        _ => bytes[from..from + length].to_vec(),
    };
    if noise.below(2) == 0 {
        left.retain(|byte| *byte != 0x7E);
    }
    let one_of = [2, 4, 10, 40, 200, 2_000][noise.below(6)];
    match noise.below(6) {
        // Change bytes.
        0 => left.iter_mut().for_each(|byte| {
            if noise.below(one_of) == 0 {
                *byte = noise.byte();
            }
        }),
        // Set bytes to zero.
        1 => left.iter_mut().for_each(|byte| {
            if noise.below(one_of) == 0 {
                *byte = 0;
            }
        }),
        // Flip bits.
        2 => left.iter_mut().for_each(|byte| {
            if noise.below(one_of) == 0 {
                *byte ^= 1 << noise.below(8);
            }
        }),
        // Remove bytes.
        3 => left.retain(|_| noise.below(one_of) > 0),
        // Remove all bytes with either of two values.
        4 => {
            let (one, other) = (noise.byte(), noise.byte());
            left.retain(|byte| *byte != one && *byte != other);
        }
        // Exchange ranges of bytes.
        _ => {
            for _ in 0..20 {
                let size = 1 + noise.below(left.len() / 2);
                let (one, other) = (noise.below(left.len() - size), noise.below(left.len() - size));
                let stretch = left[one..one + size].to_vec();
                left[other..other + size].copy_from_slice(&stretch);
            }
        }
    }
    left
}

#[test]
fn damaged_streams_are_no_logs_of_bare_packets() {
    const DAMAGES: u64 = 400;
    let Some(folder) = recordings() else { return };
    for log in logs(&folder) {
        let bytes = std::fs::read(&log).unwrap();
        for seed in 0..DAMAGES {
            let damaged = damage(&bytes, &mut Noise(seed * 7_919 + 5));
            let found = Format::of(&damaged);
            assert_ne!(found, Format::Dlf, "{} damaged by {seed}: {} bytes", log.display(), damaged.len());
            if seed % 20 == 0 {
                form(&damaged, &format!("{} damaged by {seed}", log.display()));
            }
        }
    }
}

#[test]
fn junk_and_patterns_are_no_logs_of_bare_packets() {
    for seed in 0..6_000 {
        let mut noise = Noise(seed);
        let length = 1 + noise.below(30_000);
        // Random bytes of 256, 16 or 3 different values, because small values and zeros are frequent in files.
        let values = [256, 256, 16, 3][noise.below(4)];
        let zeros = noise.below(3) * 2;
        let byte = |noise: &mut Noise| if noise.below(5) < zeros { 0 } else { noise.below(values) as u8 };
        let period = if seed % 2 == 0 { length } else { 1 + noise.below(400) };
        let pattern: Vec<u8> = (0..period).map(|_| byte(&mut noise)).collect();
        let mut junk: Vec<u8> = pattern.iter().copied().cycle().take(length).collect();
        if seed % 4 == 3 {
            // A repeating pattern with a counter.
            junk.iter_mut().enumerate().for_each(|(at, byte)| {
                if at % period == 0 {
                    *byte = (at / period) as u8;
                }
            });
        }
        assert_ne!(Format::of(&junk), Format::Dlf, "junk {seed}: {length} bytes of period {period}");
        if seed % 100 == 0 {
            form(&junk, &format!("junk {seed}"));
        }
    }
}

#[test]
fn a_log_of_bare_packets_is_read_short_damaged_or_without_its_begin() {
    let Some(folder) = recordings() else { return };
    for log in logs(&folder) {
        let name = log.display().to_string();
        let (packets, begins) = without_frames(&std::fs::read(&log).unwrap());
        assert_eq!(form(&packets, &name), Format::Dlf, "{name}");
        assert_eq!(in_pieces(&packets, 1 << 16).1, begins.len(), "{name}");
        let all = begins.len();
        // Take a small number of packets: in some logs, the first three packets differ in one byte, and their code has
        // no layout.
        for count in [4, 5, 20] {
            // Test complete packets, and then complete packets with a part of one more packet.
            assert_eq!(Format::of(&packets[..begins[count]]), Format::Dlf, "{count} packets of {name}");
            assert_eq!(Format::of(&packets[..begins[count] + 9]), Format::Dlf, "{count} packets of {name}");
        }
        // Remove the start of the file, at many offsets.
        for number in 0..40 {
            let from = begins[all / 50 * number] + 1 + number;
            assert_eq!(Format::of(&packets[from..]), Format::Dlf, "{name} from byte {from}");
        }
        // Remove a tenth of the file in its middle, set it to zero, or replace it by noise.
        let (from, to) = (packets.len() * 9 / 20, packets.len() * 11 / 20);
        let mut noise = Noise(all as u64);
        let lost = [&packets[..from], &packets[to..]].concat();
        let mut zeroed = packets.clone();
        zeroed[from..to].fill(0);
        let mut noisy = packets.clone();
        noisy[from..to].iter_mut().for_each(|byte| *byte = noise.byte());
        for (how, damaged) in [("lost", lost), ("zeroed", zeroed), ("noisy", noisy)] {
            let name = format!("{name}, its middle {how}");
            assert_eq!(form(&damaged, &name), Format::Dlf, "{name}");
            let read = in_pieces(&damaged, 1 << 16).1;
            let outside = begins.iter().filter(|begin| **begin < from || **begin > to).count();
            assert!(read + 8 >= outside, "{name}: {read} packets of {outside}");
        }
        // Change single bytes.
        for one_of in [2_000, 300] {
            let mut damaged = packets.clone();
            damaged.iter_mut().for_each(|byte| {
                if noise.below(one_of) == 0 {
                    *byte = noise.byte();
                }
            });
            assert_eq!(Format::of(&damaged), Format::Dlf, "{name}, one of {one_of} bytes changed");
        }
    }
}

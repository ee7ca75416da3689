//! What programs exchange with `/dev/diag`, the character device of a phone's own kernel: blocks around the stream's
//! bytes, and the arguments of its ioctls. This module only handles bytes; other code makes the calls.
//!
//! A read gives `data type (u32), count (u32)`, then `count` blocks, each `[token (i32)], length (u32), bytes`. The
//! token comes only before data of a modem on another chip. It is the negative of the modem's number, so that it cannot
//! be taken for a length. A frame may begin in one read and end in a later one.
//!
//! Source: Linux drivers/char/diag/diagchar_core.c and include/linux/diagchar.h, of Android's kernels (facts only)

use std::collections::BTreeMap;

use memchr::memrchr;

use crate::control::Buffering;
use crate::frame::{FLAG, LONGEST};

/// Data type of reads and writes of programs.
const USER_SPACE: u32 = 0x20;
/// Token before data that is written to a modem on another chip.
const REMOTE_TOKEN: i32 = -1;

/// Size of the buffer to read into.
///
/// Chosen: if a buffer cannot hold all data that waits, the driver fails the read instead of giving a part. Open tools
/// found a megabyte to be enough.
pub const READ_SIZE: usize = 1 << 20;

/// Number of the ioctl that switches where the driver sends its data.
pub const IOCTL_SWITCH_LOGGING: u32 = 7;
/// Number of the ioctl that tells which modems are on other chips: a u16 mask.
pub const IOCTL_REMOTE_DEVICES: u32 = 32;
/// Number of the ioctl that wakes a reader for the last time.
pub const IOCTL_END_READING: u32 = 9;
/// Number of the ioctl that votes for data without delay; see [`real_time_votes`].
pub const IOCTL_VOTE_REAL_TIME: u32 = 33;
/// Number of the ioctl that sets how the modem's buffer works; see [`buffering`].
pub const IOCTL_BUFFERING: u32 = 35;
/// Number of the ioctl that makes the modem send the content of its buffer; its argument is a byte, [`MODEM`].
///
/// Source: BISCAY §3.2.3
pub const IOCTL_DRAIN: u32 = 36;

/// The number of the modem among the driver's peripherals.
pub const MODEM: u8 = 0;
/// Logging mode in which a program reads the data: that of a memory device.
pub const MEMORY_DEVICE_MODE: u32 = 2;
/// Logging mode of a phone at rest: data goes to USB.
pub const USB_MODE: u32 = 1;

/// Where bytes of the stream came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The chip on which the driver runs.
    Local,
    /// A modem on a chip of its own; the modem's number, from 1.
    Remote(u32),
}

/// Why the rest of a read makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The read ends within a header, at this offset.
    Short(usize),
    /// The block at this offset claims to be longer than what was read.
    Overlong(usize),
}

/// The blocks of one read, in order. A read whose data is not for programs has none.
///
/// # Errors
/// In place of the first malformed block; nothing follows it.
pub fn blocks(read: &[u8]) -> impl Iterator<Item = Result<(Origin, &[u8]), Malformed>> {
    let word = |at: usize| -> Result<u32, Malformed> {
        let bytes = read.get(at..at + 4).ok_or(Malformed::Short(at))?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    };
    let header = word(0).and_then(|kind| Ok((kind, word(4)?)));
    let (mut left, mut refused) = match header {
        Ok((USER_SPACE, count)) => (count, None),
        Ok(_) => (0, None),
        Err(malformed) => (0, Some(malformed)),
    };
    let mut at = 8;
    let mut next = move || -> Result<(Origin, &[u8]), Malformed> {
        let token = word(at)? as i32;
        let origin = if token < 0 { Origin::Remote(token.unsigned_abs()) } else { Origin::Local };
        let length_at = if token < 0 { at + 4 } else { at };
        let length = word(length_at)? as usize;
        let begins = length_at + 4;
        let bytes = begins.checked_add(length).and_then(|ends| read.get(begins..ends));
        let bytes = bytes.ok_or(Malformed::Overlong(at))?;
        at = begins + length;
        Ok((origin, bytes))
    };
    std::iter::from_fn(move || {
        if let Some(malformed) = refused.take() {
            return Some(Err(malformed));
        }
        left = left.checked_sub(1)?;
        let block = next();
        if block.is_err() {
            left = 0;
        }
        Some(block)
    })
}

/// Makes one stream of the frames of all chips. A frame of one chip never begins inside a frame of another.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    /// Bytes of frames that have not ended, by origin.
    begun: BTreeMap<Origin, Vec<u8>>,
}

impl Merge {
    /// Appends to `stream` the frames that end in these bytes, flags included.
    pub fn push(&mut self, origin: Origin, bytes: &[u8], stream: &mut Vec<u8>) {
        let begun = self.begun.entry(origin).or_default();
        let ended = memrchr(FLAG, bytes).map_or(0, |flag| flag + 1);
        if ended > 0 {
            stream.append(begun);
            stream.extend_from_slice(&bytes[..ended]);
        }
        begun.extend_from_slice(&bytes[ended..]);
        // Every byte of a frame may have been escaped.
        if begun.len() > 2 * LONGEST {
            stream.append(begun);
        }
    }
}

/// What to write so that `frames` reach the modem; `is_remote` if the modem is on a chip of its own.
pub fn write(frames: &[u8], is_remote: bool) -> Vec<u8> {
    let mut bytes = USER_SPACE.to_le_bytes().to_vec();
    if is_remote {
        bytes.extend(REMOTE_TOKEN.to_le_bytes());
    }
    bytes.extend_from_slice(frames);
    bytes
}

/// The argument of [`IOCTL_SWITCH_LOGGING`] for `mode`, for all that the driver serves.
///
/// Every generation of the driver reads a prefix of the argument. Android 6 reads the mode; 7 and 8 the mode, the
/// peripherals and one byte; 9 all but the devices; 10 and later all.
pub fn switch_logging(mode: u32) -> [u8; 24] {
    /// Application processor and modem.
    const PERIPHERALS: u32 = 0b11;
    /// The chip on which the driver runs, and the first modem on a chip of its own.
    const DEVICES: u32 = 0b11;
    let mut argument = [0; 24];
    argument[..4].copy_from_slice(&mode.to_le_bytes());
    argument[4..8].copy_from_slice(&PERIPHERALS.to_le_bytes());
    // 8: mask of protection domains; 12: mode's parameter, id, domain, reserved; 16: peripheral. All stay 0.
    argument[20..].copy_from_slice(&DEVICES.to_le_bytes());
    argument
}

/// The arguments of [`IOCTL_VOTE_REAL_TIME`], one per generation of the driver: a reader of the memory device wants
/// data without delay, or no longer. A driver does not tell its generation, and takes the other generation's argument
/// for a vote of no process. So give both.
pub fn real_time_votes(wants: bool) -> [[u8; 8]; 2] {
    /// Process that reads the memory device.
    const MEMORY_DEVICE: u8 = 2;
    let wants = u8::from(wants);
    // The newer argument begins with the number of a client, which only the other process has.
    [[0, 0, 0, 0, MEMORY_DEVICE, 0, wants, 0], [MEMORY_DEVICE, 0, wants, 0, 0, 0, 0, 0]]
}

/// The argument of [`IOCTL_BUFFERING`] for the modem.
pub fn buffering(buffering: Buffering) -> [u8; 4] {
    /// Watermarks in percent; the modem looks at them only if it is to have some.
    const UNUSED: (u8, u8) = (85, 15);
    let (high, low) = match buffering {
        Buffering::Threshold { high, low } => (high, low),
        Buffering::Streaming | Buffering::Circular => UNUSED,
    };
    [MODEM, buffering.mode(), high, low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{self, Deframer, Framed, Framing};
    use proptest::prelude::*;

    /// A read with these blocks.
    fn read(blocks: &[(Origin, &[u8])]) -> Vec<u8> {
        let mut read = USER_SPACE.to_le_bytes().to_vec();
        read.extend((blocks.len() as u32).to_le_bytes());
        for (origin, bytes) in blocks {
            if let Origin::Remote(number) = origin {
                read.extend((-(*number as i32)).to_le_bytes());
            }
            read.extend((bytes.len() as u32).to_le_bytes());
            read.extend_from_slice(bytes);
        }
        read
    }

    #[test]
    fn blocks_of_both_chips_are_told_apart_by_their_tokens() {
        let read = read(&[(Origin::Local, &[1, 2]), (Origin::Remote(1), &[3]), (Origin::Local, &[])]);
        let found: Vec<_> = blocks(&read).collect();
        let expected: [Result<(Origin, &[u8]), _>; 3] =
            [Ok((Origin::Local, &[1, 2])), Ok((Origin::Remote(1), &[3])), Ok((Origin::Local, &[]))];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_read_that_was_cut_gives_what_came_whole_and_then_says_where_it_ends() {
        let whole = read(&[(Origin::Local, &[1, 2]), (Origin::Remote(1), &[3, 4])]);
        let found: Vec<_> = blocks(&whole[..whole.len() - 1]).collect();
        assert_eq!(found, [Ok((Origin::Local, &[1, 2][..])), Err(Malformed::Overlong(14))]);
        assert_eq!(blocks(&whole[..16]).last(), Some(Err(Malformed::Short(14))));
        assert_eq!(blocks(&whole[..3]).collect::<Vec<_>>(), [Err(Malformed::Short(0))]);
    }

    #[test]
    fn what_is_not_for_programs_has_no_blocks() {
        let mut read = read(&[(Origin::Local, &[1, 2])]);
        read[0] = 0x40;
        assert_eq!(blocks(&read).count(), 0);
    }

    #[test]
    fn frames_of_two_chips_that_are_read_in_turns_come_out_whole() {
        let mut frames = [vec![], vec![]];
        frame::encode(Framing::Hdlc, &[0x10, 0x7E, 3, 4, 5], &mut frames[0]);
        frame::encode(Framing::Hdlc, &[0x60, 0x7D, 9], &mut frames[1]);
        let (mut merge, mut stream) = (Merge::default(), vec![]);
        for cut in [0..2, 2..5, 5..30] {
            for (origin, frame) in [(Origin::Local, &frames[0]), (Origin::Remote(1), &frames[1])] {
                let ends = cut.end.min(frame.len());
                merge.push(origin, &frame[cut.start..ends], &mut stream);
            }
        }
        let mut bodies = vec![];
        Deframer::new(Framing::Hdlc).push(&stream, |_, framed| match framed {
            Framed::Body(body) => bodies.push(body.to_vec()),
            Framed::Fault(fault) => panic!("{fault:?}"),
        });
        assert_eq!(bodies, [vec![0x10, 0x7E, 3, 4, 5], vec![0x60, 0x7D, 9]]);
    }

    #[test]
    fn a_stream_without_frames_is_not_kept() {
        let (mut merge, mut stream) = (Merge::default(), vec![]);
        for _ in 0..20 {
            merge.push(Origin::Local, &[1; 100_000], &mut stream);
        }
        assert!(merge.begun[&Origin::Local].len() <= 2 * LONGEST, "memory is bounded");
        assert!(stream.len() > LONGEST, "the rest goes on to where it is counted");
    }

    #[test]
    fn arguments_have_the_drivers_bytes() {
        assert_eq!(write(&[0x7E], false), [0x20, 0, 0, 0, 0x7E]);
        assert_eq!(write(&[0x7E], true), [0x20, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x7E]);
        assert_eq!(real_time_votes(true), [[0, 0, 0, 0, 2, 0, 1, 0], [2, 0, 1, 0, 0, 0, 0, 0]]);
        assert_eq!(buffering(Buffering::Streaming), [0, 0, 85, 15]);
        assert_eq!(buffering(Buffering::THRESHOLD), [0, 1, 85, 15]);
        let argument = switch_logging(MEMORY_DEVICE_MODE);
        assert_eq!(argument[..8], [2, 0, 0, 0, 3, 0, 0, 0], "the prefix that Android 7 and 8 read");
        assert_eq!(argument[20..], [3, 0, 0, 0], "the devices, which Android 10 reads");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0u8..5) {
            if bytes.len() > 8 {
                bytes[..8].copy_from_slice(&[0x20, 0, 0, 0, count, 0, 0, 0]);
            }
            prop_assert!(blocks(&bytes).count() <= usize::from(count).max(1));
        }
    }
}

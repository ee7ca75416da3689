//! Data format of `/dev/diag`, the character device of a phone's own kernel: blocks around the stream's bytes, and the
//! arguments of its ioctls. This module only converts bytes; the caller makes the system calls.
//!
//! A read returns `data type (u32), count (u32)`, then `count` blocks, each `[token (i32)], length (u32), bytes`. The
//! token precedes only data of a modem on another chip. The token is the negated number of that modem, so that it
//! cannot be confused with a length. A frame may start in one read and end in a later read.
//!
//! Source: Linux drivers/char/diag/diagchar_core.c and include/linux/diagchar.h, of Android's kernels (facts only)

use std::collections::BTreeMap;

use memchr::memrchr;

use crate::control::Buffering;
use crate::frame::{FLAG, MAX_BODY};

/// Data type of reads and writes by user-space programs.
const USER_SPACE: u32 = 0x20;
/// Token before data that is written to the first modem on another chip.
const REMOTE_TOKEN: i32 = -1;

/// Size of the read buffer (bytes).
///
/// Chosen: if a buffer cannot hold all pending data, the driver fails the read instead of returning a part. Open-source
/// tools found a megabyte to be enough.
pub const READ_SIZE: usize = 1 << 20;

/// Number of the ioctl that selects the destination of the driver's data.
pub const IOCTL_SWITCH_LOGGING: u32 = 7;
/// Number of the ioctl that returns the mask (u16) of modems on other chips.
pub const IOCTL_REMOTE_DEVICES: u32 = 32;
/// Number of the ioctl that wakes a blocked reader for the last time.
pub const IOCTL_END_READING: u32 = 9;
/// Number of the ioctl that votes for delivery without delay; see [`real_time_votes`].
pub const IOCTL_VOTE_REAL_TIME: u32 = 33;
/// Number of the ioctl that sets the modem's buffering mode; see [`buffering`].
pub const IOCTL_BUFFERING: u32 = 35;
/// Number of the ioctl that drains the modem's buffer; its argument is a byte, [`MODEM`].
///
/// Source: BISCAY §3.2.3
pub const IOCTL_DRAIN: u32 = 36;

/// The number of the modem among the driver's peripherals.
pub const MODEM: u8 = 0;
/// Number of the logging mode in which a program reads the data: memory device mode.
pub const MEMORY_DEVICE_MODE: u32 = 2;
/// Number of the default logging mode of a phone: data goes to USB.
pub const USB_MODE: u32 = 1;

/// Origin of bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The chip on which the driver runs.
    Local,
    /// A modem on a separate chip, with its number, from 1.
    Remote(u32),
}

/// Reason why the rest of a read cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The read ends within a header, at this offset.
    Short(usize),
    /// The length of the block at this offset exceeds the bytes that were read.
    Overlong(usize),
}

/// The blocks of one read, in order. A read with another data type than user space has no blocks.
///
/// # Errors
/// In place of the first malformed block; the iterator then ends.
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

/// Merges the frames of all chips into one stream. Frames of different chips are never interleaved.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    /// Bytes of incomplete frames, by origin.
    begun: BTreeMap<Origin, Vec<u8>>,
}

impl Merge {
    /// Appends to `stream` the frames that are completed by these bytes, including their flags.
    pub fn push(&mut self, origin: Origin, bytes: &[u8], stream: &mut Vec<u8>) {
        let begun = self.begun.entry(origin).or_default();
        let ended = memrchr(FLAG, bytes).map_or(0, |flag| flag + 1);
        if ended > 0 {
            stream.append(begun);
            stream.extend_from_slice(&bytes[..ended]);
        }
        begun.extend_from_slice(&bytes[ended..]);
        // Escaping at most doubles the length of a frame. A longer frame is passed on for the deframer to reject.
        if begun.len() > 2 * MAX_BODY {
            stream.append(begun);
        }
    }
}

/// The bytes to write so that `frames` reach the modem; `is_remote` if the modem is on a separate chip.
pub fn write(frames: &[u8], is_remote: bool) -> Vec<u8> {
    let mut bytes = USER_SPACE.to_le_bytes().to_vec();
    if is_remote {
        bytes.extend(REMOTE_TOKEN.to_le_bytes());
    }
    bytes.extend_from_slice(frames);
    bytes
}

/// The argument of [`IOCTL_SWITCH_LOGGING`] for `mode`, for all peripherals and devices that the driver serves.
///
/// Every generation of the driver reads a prefix of the argument. Android 6 reads the mode; Android 7 and 8 read the
/// mode, the peripherals and one byte; Android 9 reads all fields except the devices; Android 10 and later read all
/// fields.
pub fn switch_logging(mode: u32) -> [u8; 24] {
    /// Mask of peripherals: application processor and modem.
    const PERIPHERALS: u32 = 0b11;
    /// Mask of devices: the chip on which the driver runs, and the first modem on a separate chip.
    const DEVICES: u32 = 0b11;
    let mut argument = [0; 24];
    argument[..4].copy_from_slice(&mode.to_le_bytes());
    argument[4..8].copy_from_slice(&PERIPHERALS.to_le_bytes());
    // The fields at other offsets stay 0: mask of protection domains (8); the mode's parameter, id, domain, reserved
    // (12); peripheral (16).
    argument[20..].copy_from_slice(&DEVICES.to_le_bytes());
    argument
}

/// The arguments of [`IOCTL_VOTE_REAL_TIME`], one for each of the two generations of the driver. With `wants`, the vote
/// requests delivery without delay for a reader of the memory device; otherwise, it withdraws that request. A driver
/// does not report its generation, and treats the other generation's argument as a vote of no process. Therefore pass
/// both.
pub fn real_time_votes(wants: bool) -> [[u8; 8]; 2] {
    /// Id of the process that reads the memory device.
    const MEMORY_DEVICE: u8 = 2;
    let wants = u8::from(wants);
    // The newer argument starts with a client number, which is 0 for the reader of the memory device.
    [[0, 0, 0, 0, MEMORY_DEVICE, 0, wants, 0], [MEMORY_DEVICE, 0, wants, 0, 0, 0, 0, 0]]
}

/// The argument of [`IOCTL_BUFFERING`] for the modem.
pub fn buffering(buffering: Buffering) -> [u8; 4] {
    /// Watermarks in percent for the modes in which the modem ignores them.
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

    /// The bytes of a read with these blocks.
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
    fn blocks_of_both_chips_are_distinguished_by_their_tokens() {
        let read = read(&[(Origin::Local, &[1, 2]), (Origin::Remote(1), &[3]), (Origin::Local, &[])]);
        let found: Vec<_> = blocks(&read).collect();
        let expected: [Result<(Origin, &[u8]), _>; 3] =
            [Ok((Origin::Local, &[1, 2])), Ok((Origin::Remote(1), &[3])), Ok((Origin::Local, &[]))];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cut_read_gives_its_whole_blocks_and_the_position_of_the_cut() {
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
        assert!(merge.begun[&Origin::Local].len() <= 2 * MAX_BODY, "memory is bounded");
        assert!(stream.len() > MAX_BODY, "the rest goes on to where it is counted");
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

//! `+ran`: a scheme that is not told of the time for which the radio held a packet back to repeat a block.
//!
//! A block that fails is sent again eight subframes later, and every later packet waits for it. For a scheme that
//! steers by delay, that looks like a queue. The device knows better: it hears its grants, and which of them failed.
//!
//! ```text
//!  reports ──▶ Blocks ─┐
//!  packets ────────────┴▶ RanReceiver: wait of each packet ──on ACKs──▶ RanController: RTT − wait ──▶ the scheme
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`blocks`] | transport blocks in the order of their data, and when each was released |
//! | [`receiver`] | the receiver's half, around the receiver half of the scheme |
//! | [`sender`] | the controller, around the controller of the scheme |
//!
//! A queue is never subtracted: the wait begins with the first transmission of the block that carries the packet.
//! Without reports, the wait is zero, and the scheme behaves as it does alone.
//!
//! Source: Gandalf, 2025, arXiv:2507.00337
//!
//! Differs: Gandalf also subtracts waits for grants. On the downlink no report says when a packet reached the base
//! station, so a wait for other users' grants cannot be told from a queue. `docs/papers/ran-delay.md` has the figures.

pub mod blocks;
pub mod receiver;
pub mod sender;

use std::time::Duration;

use airpace_core::Rider;

use crate::scheme::Ends;

use receiver::RanReceiver;
use sender::RanController;

/// What a choice has behind its scheme's name.
pub const SUFFIX: &str = "+ran";

/// One line for lists.
pub const SUMMARY: &str = "without the time for which the radio repeats blocks";

/// The first byte of the feedback: the version.
const VERSION: u8 = 1;

/// Bytes before those of the scheme's own receiver half: version, and the wait in microseconds, big-endian.
const HEAD: usize = 5;

/// The ends of `inner`, which see delays without the waits of the radio.
pub fn wrap(inner: Ends) -> Ends {
    Ends {
        controller: Box::new(RanController::new(inner.controller)),
        receiver: Some(Box::new(RanReceiver::new(inner.receiver))),
    }
}

/// The bytes on an ACK: the wait of the newest packet, then what the scheme's own receiver half says.
///
/// Chosen: what leaves no room for the wait is sent without it. No scheme says that much.
fn write(wait: Duration, inner: &Rider) -> Rider {
    let mut bytes = [0; Rider::CAPACITY];
    let wait_us = u32::try_from(wait.as_micros()).unwrap_or(u32::MAX);
    bytes[0] = VERSION;
    bytes[1..HEAD].copy_from_slice(&wait_us.to_be_bytes());
    let Some(rest) = bytes.get_mut(HEAD..HEAD + inner.as_bytes().len()) else { return Rider::EMPTY };
    rest.copy_from_slice(inner.as_bytes());
    Rider::new(&bytes[..HEAD + inner.as_bytes().len()]).unwrap_or_default()
}

/// The wait, and what the scheme's own receiver half says; `None` if the bytes are not feedback of this version.
fn read(bytes: &[u8]) -> Option<(Duration, &[u8])> {
    if *bytes.first()? != VERSION {
        return None;
    }
    let wait_us = u32::from_be_bytes(bytes.get(1..HEAD)?.try_into().ok()?);
    Some((Duration::from_micros(u64::from(wait_us)), &bytes[HEAD..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_layout_never_changes() {
        let inner = Rider::new(&[7, 8]).unwrap();
        assert_eq!(write(Duration::from_millis(8), &inner).as_bytes(), [1, 0, 0, 0x1F, 0x40, 7, 8]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_reading_never_panics(
            wait_us: u32,
            inner in prop::collection::vec(any::<u8>(), 0..=Rider::CAPACITY - HEAD),
            noise in prop::collection::vec(any::<u8>(), 0..=Rider::CAPACITY),
        ) {
            let wait = Duration::from_micros(u64::from(wait_us));
            let written = write(wait, &Rider::new(&inner).unwrap());
            prop_assert_eq!(read(written.as_bytes()), Some((wait, &inner[..])));
            let _ = read(&noise);
        }
    }
}

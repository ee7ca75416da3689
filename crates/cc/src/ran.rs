//! `+ran`: subtracts, from the delays that a scheme sees, the time for which the radio held a packet back to repeat a
//! block.
//!
//! A failed block is retransmitted eight subframes later, and all later packets wait for this block. A scheme that
//! reacts to delays mistakes this for a queue. The device can distinguish retransmissions from a queue: it decodes its
//! grants, and knows which blocks failed.
//!
//! ```text
//!  reports ──▶ Blocks ─┐
//!  packets ────────────┴▶ RanReceiver: wait of each packet ──on ACKs──▶ RanController: RTT − wait ──▶ the scheme
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`blocks`] | transport blocks in the order of their data, and the time of release of each |
//! | [`receiver`] | the receiver, which wraps the receiver of the scheme |
//! | [`sender`] | the controller, which wraps the controller of the scheme |
//!
//! A queue is never subtracted: the wait starts with the first transmission of the block that carries the packet.
//! Without reports, the wait is zero, and the scheme behaves as without `+ran`.
//!
//! Source: Gandalf, 2025, arXiv:2507.00337
//!
//! Differs: Gandalf also subtracts waits for grants. On the downlink no report contains the time when a packet reached
//! the base station, so a wait for other users' grants cannot be distinguished from a queue. `docs/papers/ran-delay.md`
//! has the figures.

pub mod blocks;
pub mod receiver;
pub mod sender;

use std::time::Duration;

use airpace_core::Rider;

use crate::scheme::Ends;

use receiver::RanReceiver;
use sender::RanController;

/// Suffix of the scheme's name in a choice.
pub const SUFFIX: &str = "+ran";

/// Description of `+ran` in lists of schemes, in one line.
pub const SUMMARY: &str = "without the time for which the radio repeats blocks";

/// The first byte of the feedback: the version.
const VERSION: u8 = 1;

/// Number of bytes before the feedback of the scheme's own receiver: version, and the wait in microseconds, big-endian.
const HEAD: usize = 5;

/// Wraps the endpoints `inner`, which then see delays without the waits of the radio.
pub fn wrap(inner: Ends) -> Ends {
    Ends {
        controller: Box::new(RanController::new(inner.controller)),
        receiver: Some(Box::new(RanReceiver::new(inner.receiver))),
    }
}

/// Encodes the bytes on an ACK: the wait of the newest packet, then the feedback of the scheme's own receiver.
///
/// Chosen: feedback that leaves no space for the wait is replaced by empty feedback. No scheme has such long feedback.
fn write(wait: Duration, inner: &Rider) -> Rider {
    let mut bytes = [0; Rider::CAPACITY];
    let wait_us = u32::try_from(wait.as_micros()).unwrap_or(u32::MAX);
    bytes[0] = VERSION;
    bytes[1..HEAD].copy_from_slice(&wait_us.to_be_bytes());
    let Some(rest) = bytes.get_mut(HEAD..HEAD + inner.as_bytes().len()) else { return Rider::EMPTY };
    rest.copy_from_slice(inner.as_bytes());
    Rider::new(&bytes[..HEAD + inner.as_bytes().len()]).unwrap_or_default()
}

/// The wait, and the feedback of the scheme's own receiver; `None` if the bytes are not feedback of this version.
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

//! Properties of the parser of QUIC frames, tested with random bytes. The same function is a fuzz target of `fuzz/`.

#[path = "../../../fuzz/src/quic.rs"]
mod quic;

use proptest::prelude::*;

proptest! {
    #[test]
    fn frames(input in prop::collection::vec(any::<u8>(), 0..200)) {
        quic::frames(&input);
    }

    // Bytes below 0x40 are complete one-byte variable-length integers, so that most inputs start with valid frames.
    #[test]
    fn likely_frames(input in prop::collection::vec(0_u8..0x40, 0..200)) {
        quic::frames(&input);
    }
}

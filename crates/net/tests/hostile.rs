//! Properties of the parsers of datagrams, QUIC frames, report lines and orders, tested with random bytes. The same
//! functions are fuzz targets of `fuzz/`.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/net.rs"]
mod net;
#[path = "../../../fuzz/src/quic.rs"]
mod quic;

use proptest::prelude::*;

proptest! {
    #[test]
    fn datagrams(input in prop::collection::vec(any::<u8>(), 0..1_500)) {
        net::datagrams(&input);
    }

    #[test]
    fn frames(input in prop::collection::vec(any::<u8>(), 0..200)) {
        quic::frames(&input);
    }

    // Bytes below 0x40 are complete one-byte variable-length integers, so that most inputs start with valid frames.
    #[test]
    fn likely_frames(input in prop::collection::vec(0_u8..0x40, 0..200)) {
        quic::frames(&input);
    }

    #[test]
    fn lines(input in prop::collection::vec(any::<u8>(), 0..200)) {
        net::lines(&input);
    }

    #[test]
    fn order(input in prop::collection::vec(any::<u8>(), 0..120)) {
        net::order(&input);
    }
}

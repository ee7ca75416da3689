//! Properties of the parsers of datagrams and orders, tested with random bytes. The same functions are fuzz targets of
//! `fuzz/`. Orders need the applications of this crate, and both share a pair of endpoints.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/transport.rs"]
mod transport;

use proptest::prelude::*;

proptest! {
    #[test]
    fn datagrams(input in prop::collection::vec(any::<u8>(), 0..1_500)) {
        transport::datagrams(&input);
    }

    #[test]
    fn order(input in prop::collection::vec(any::<u8>(), 0..120)) {
        transport::order(&input);
    }
}

//! What must hold for any datagrams, lines of reports and orders, tested on random ones. The same functions are fuzz
//! targets of `fuzz/`.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/net.rs"]
mod net;

use proptest::prelude::*;

proptest! {
    #[test]
    fn datagrams(input in prop::collection::vec(any::<u8>(), 0..1_500)) {
        net::datagrams(&input);
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

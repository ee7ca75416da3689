//! Properties of the parser of report lines, tested with random bytes. The same function is a fuzz target of `fuzz/`.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/lines.rs"]
mod lines;

use proptest::prelude::*;

proptest! {
    #[test]
    fn lines(input in prop::collection::vec(any::<u8>(), 0..200)) {
        lines::lines(&input);
    }
}

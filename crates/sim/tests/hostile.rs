//! Properties of scenarios from random bytes. The same function is a fuzz target of `fuzz/`.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/scenario.rs"]
mod scenario;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scenarios(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        scenario::scenario(&bytes);
    }
}

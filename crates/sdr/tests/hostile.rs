//! Properties that must hold for recordings made of random bytes. A fuzz target in `fuzz/` uses the same functions.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/iq.rs"]
mod iq;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn recordings(
        choices in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 60),
        bytes in prop::collection::vec(any::<u8>(), 0..4000),
    ) {
        iq::recording(&[choices, bytes].concat());
    }

    #[test]
    fn joined_recordings(
        choices in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 60),
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        iq::joined(&[choices, bytes].concat());
    }
}

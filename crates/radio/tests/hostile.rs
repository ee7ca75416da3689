//! Invariants for arbitrary reports and lines, tested with random input. The fuzz targets in `fuzz/` use the same
//! functions.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/radio.rs"]
mod radio;

use proptest::prelude::*;

/// Generates random bytes: either any values, or small values, which reach more of the code.
fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..most),
        prop::collection::vec(0u8..40, 0..most),
        prop::collection::vec(prop_oneof![0u8..8, 28u8..36, any::<u8>()], 0..most),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reports(input in bytes(60)) {
        radio::report(&input);
    }

    #[test]
    fn fusions(input in bytes(400)) {
        radio::fusion(&input);
    }
}

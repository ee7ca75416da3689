//! Properties of the emulator for arbitrary packets of programs, tested with random input. The same function is a fuzz
//! target of `fuzz/`.

#[path = "../../../fuzz/src/emu.rs"]
mod emu;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 16_384, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn interfaces(
        // Small bytes are numbers of extension headers.
        input in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(prop_oneof![0u8..8, 40u8..64, any::<u8>()], 0..400),
        ]
    ) {
        emu::interface(&input);
    }
}

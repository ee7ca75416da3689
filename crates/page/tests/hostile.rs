//! Invariants of any run folder, tested with random bytes. The same function is a fuzz target of `fuzz/`.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/folder.rs"]
mod folder;
#[path = "../../../fuzz/src/sweep.rs"]
mod sweep;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn run_folders(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        folder::folder(&bytes);
    }

    #[test]
    fn sweeps(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        sweep::sweep(&bytes);
    }
}

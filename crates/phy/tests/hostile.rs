//! Invariants for arbitrary samples and bits, tested with random input. The fuzz targets in `fuzz/` use the same
//! functions.

#[path = "../../../fuzz/src/choices.rs"]
mod choices;
#[path = "../../../fuzz/src/phy.rs"]
mod phy;
#[path = "../../../fuzz/src/samples.rs"]
mod samples;

use proptest::prelude::*;

/// Random bytes: any values, and small values, which reach more of the code.
fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..most),
        prop::collection::vec(0u8..40, 0..most),
        prop::collection::vec(prop_oneof![0u8..8, 28u8..36, any::<u8>()], 0..most),
    ]
}

/// Number of random cases. A failing case is printed, and is then added as a test to the module that it concerns.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(4096))]

    #[test]
    fn messages(input in prop::collection::vec(any::<u8>(), 20)) {
        phy::message(&input);
    }

    #[test]
    fn follows(input in bytes(600)) {
        phy::follow(&input);
    }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn trellises(input in bytes(6000)) {
        phy::trellis(&input);
    }

    #[test]
    fn evidences(input in bytes(900)) {
        phy::evidence(&input);
    }

    #[test]
    fn any_samples(input in bytes(400)) {
        samples::samples(&input);
    }

    #[test]
    fn damaged_cells(input in bytes(120)) {
        samples::cell(&input);
    }
}

#[test]
fn what_is_not_damaged_is_read() {
    let messages = samples::messages_undamaged();
    assert!(messages > 100, "of two messages in each of 60 subframes {messages} are read");
}

/// A receiver that returns to a cell continues with this cell's numbers. This is no jump for the cell.
#[test]
fn a_return_to_a_cell_is_no_jump_of_its_numbers() {
    samples::cell(&[
        9, 38, 0, 0, 0, 0, 42, 0, 6, 193, 228, 208, 150, 156, 122, 252, 99, 210, 156, 112, 113, 32, 18, 92,
        197, 113, 24, 182, 209, 37, 172, 136, 97, 205, 220, 194, 18, 168, 226, 61, 108, 130, 77, 100, 191,
        75, 74, 73, 16, 139, 162, 163, 108, 150, 20, 19,
    ]);
}

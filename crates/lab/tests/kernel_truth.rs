//! Comparison of Airpace's Reno, CUBIC and BBR with Linux's, over recorded links with a deep drop-tail queue.
//!
//! `src/kernel_truth/linux-6.18.csv` contains the kernel's metrics, one line per run of 60 s.
//! `docs/evaluation/kernel-truth.md` describes the measurement. After an intended change of behaviour, `AIRPACE_UPDATE=1`
//! rewrites this page.

use std::path::Path;

use airpace_lab::kernel_truth::Measured;
use airpace_lab::kernel_truth::ours::{BY_THE_RFC, HELD, compare};
use airpace_lab::kernel_truth::page::{known, page};

#[test]
fn reno_cubic_and_bbr_do_what_linux_does() {
    let Some(traces) = airpace_testing::recordings("traces") else { return };
    let measured = Measured::reference();
    let [held, mut by_the_rfc] =
        [&HELD[..], &BY_THE_RFC].map(|twins| compare(&traces, &measured, twins, &|_, _| {}).unwrap());
    by_the_rfc.retain(|it| !it.is_path());
    for comparison in &held {
        let row = comparison.cells().join(" | ");
        match known(&comparison.condition) {
            None => assert!(
                comparison.is_within(),
                "this is not within 5 % of throughput and 15 % or 5 ms of delay: {row}"
            ),
            Some(known) => assert!(
                !comparison.is_within(),
                "this is within the bounds now; take it off the list of exceptions ({}): {row}",
                known.because
            ),
        }
    }
    let made = page(&measured, &held, &by_the_rfc);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evaluation/kernel-truth.md");
    if std::env::var_os("AIRPACE_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap();
    let differs = made.lines().zip(there.lines()).find(|(made, there)| made != there);
    assert_eq!(differs, None, "docs/evaluation/kernel-truth.md is not what this makes; set AIRPACE_UPDATE=1");
    assert_eq!(made.lines().count(), there.lines().count());
}

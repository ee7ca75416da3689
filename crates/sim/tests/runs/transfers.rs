//! Scenario tests of transfers: repeated downloads over new connections or a single connection, with and without
//! requests.

use crate::common;

use airpace_event::TransferStep;
use airpace_sim::SCHEMES;
use common::{Notebook, run, scenario};

/// Returns a scenario of twenty downloads of 100 kB, one every second, over an idle cell.
fn pages(more: &str) -> String {
    format!(
        "duration_s = 21\n[cell]\nprbs = 100\nbler.model = \"pbe\"\n[[device]]\n\
         radio.channel = {{ layers = 2, sinr_db = 16.5 }}\n\
         [[flow]]\nrtt_ms = 42\nbytes = 100_000\nevery_ms = 1000\nstart_up_bytes = 15_000\nstart_s = 0.3\nstop_s = 20.2\n{more}"
    )
}

/// Returns the time from the start of each transfer to `step`, in ms.
fn times_ms(notes: &Notebook, step: TransferStep) -> Vec<f64> {
    let at = |number: u64, step: TransferStep| {
        let its = |one: &&airpace_event::Transfer| one.number == number && one.step == step;
        notes.transfers.iter().find(its).map(|one| one.time.as_secs_f64() * 1e3)
    };
    (0..).map_while(|number| Some(at(number, step)? - at(number, TransferStep::Began)?)).collect()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// Returns the means, over a run's transfers, of the times from the start to the start-up point and to the last byte,
/// in ms.
fn means_ms(scheme: &str, more: &str) -> (f64, f64) {
    let (_, notes) = run(&scenario(&pages(more)), scheme, 1);
    let complete = times_ms(&notes, TransferStep::Complete);
    assert!(
        complete.len() >= 19,
        "{scheme}: the downloads arrive, if there is time for the last: {complete:?}"
    );
    (mean(&times_ms(&notes, TransferStep::StartedUp)), mean(&complete))
}

#[test]
fn steps_come_in_order_and_transfers_one_after_the_other() {
    for connection in ["new", "same"] {
        let (stats, notes) = run(&scenario(&pages(&format!("connection = \"{connection}\"\n"))), "cubic", 1);
        let steps: Vec<_> = notes.transfers.iter().map(|one| (one.number, one.step)).collect();
        assert!(steps.is_sorted(), "{connection}: {steps:?}");
        assert_eq!(steps.len(), 20 * 4, "{connection}: each transfer has its four steps");
        // A transfer has 66 full packets and one packet of 1000 bytes; no packet is lost in this cell, so the few
        // further packets are probes.
        assert!((20 * 67..20 * 70).contains(&stats.flows[0].sent), "{connection}: {:?}", stats.flows[0]);
    }
}

#[test]
fn a_connection_that_goes_on_knows_its_path() {
    let (_, new) = means_ms("cubic", "connection = \"new\"\n");
    let (_, same) = means_ms("cubic", "connection = \"same\"\n");
    assert!(same < 0.8 * new, "a window that is open already: {same} ms, from slow start {new} ms");
}

#[test]
fn a_transfer_that_takes_too_long_delays_the_next() {
    let text = "duration_s = 10\n[internet]\nrate_mbps = 8\nbuffer.ms = 100\n[[flow]]\nrtt_ms = 40\n\
                bytes = 1_000_000\nevery_ms = 500\n";
    let (_, notes) = run(&scenario(text), "cubic", 1);
    let steps = |step| notes.transfers.iter().filter(move |one| one.step == step).map(|one| one.time);
    let began: Vec<_> = steps(TransferStep::Began).collect();
    let complete: Vec<_> = steps(TransferStep::Complete).collect();
    assert!((8..=10).contains(&complete.len()), "a megabyte takes a second: {}", complete.len());
    assert!(
        began[1..].iter().zip(&complete).all(|(next, before)| next == before),
        "the next follows at once"
    );
}

/// The request needs half a round-trip time, 21 ms, plus the wait for a subframe. The times after the request depend on
/// the scheme.
#[test]
fn a_request_tells_pbe_what_the_phone_measures_and_harms_nobody() {
    const WAY_MS: f64 = 21.0;
    for scheme in SCHEMES.iter().map(|scheme| scheme.name).filter(|name| !["pbe", "cbr"].contains(name)) {
        let ((_, without), (_, with)) = (means_ms(scheme, ""), means_ms(scheme, "request_bytes = 400\n"));
        assert!(
            with - WAY_MS <= 1.1 * without,
            "{scheme}: {without} ms to the last byte without a request, {with} ms with one"
        );
    }
    let ((blind_start, blind), (start, whole)) =
        (means_ms("pbe", ""), means_ms("pbe", "request_bytes = 400\n"));
    println!(
        "pbe: start-up {blind_start} ms, with a request {start}; last byte {blind} ms, with a request {whole}"
    );
    assert!(
        start - WAY_MS < 0.7 * blind_start,
        "start-up: {blind_start} ms blind, {start} ms with a request"
    );
    assert!(whole - WAY_MS < blind, "last byte: {blind} ms blind, {whole} ms with a request");
    let (paper, paper_asked) =
        (means_ms("pbe@paper", "").1, means_ms("pbe@paper", "request_bytes = 400\n").1);
    assert!((paper_asked - WAY_MS - paper).abs() < 0.1 * paper, "the text has no such feedback");
}

#[test]
fn a_lost_request_is_repeated() {
    let text = "duration_s = 30\n[reverse]\nloss = 0.3\n[[flow]]\nrtt_ms = 40\nbytes = 3000\nevery_ms = 1000\n\
                request_bytes = 400\n";
    let (_, notes) = run(&scenario(text), "cubic", 1);
    let first = times_ms(&notes, TransferStep::FirstByte);
    assert!(first.len() >= 12, "transfers go on: {}", first.len());
    let repeated = first.iter().filter(|ms| **ms > 1000.0).count();
    assert!(repeated >= 2, "three in ten requests are lost: {first:?}");
    assert!(first.iter().any(|ms| *ms < 50.0), "most come at once: {first:?}");
}

//! Tests that no packet causes a memory allocation between the port's bytes and the samples.

#[path = "logs/recordings_folder/mod.rs"]
mod recordings_folder;

use airpace_diag::kpi::{Extractor, KPIS, Subscription};
use airpace_diag::{Deframer, Framed, Framing, Message};
use recordings_folder::{logs, recordings};

/// Processes a log in pieces of the sizes that a port returns; returns the number of samples.
fn take(deframer: &mut Deframer, extractor: &mut Extractor, bytes: &[u8]) -> usize {
    let mut samples = 0;
    for piece in bytes.chunks(4_096) {
        deframer.push(piece, |_, framed| {
            if let Framed::Body(body) = framed
                && let Some(Message::Log(packet)) = Message::read(body)
            {
                extractor.push(&packet, |_| samples += 1);
            }
        });
    }
    samples
}

#[test]
fn no_packet_of_any_log_makes_an_allocation() {
    let Some(folder) = recordings() else { return };
    let subscription = Subscription::new(KPIS.iter().map(|kpi| kpi.name)).unwrap();
    for path in logs(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        let mut deframer = Deframer::new(Framing::Hdlc);
        let mut extractor = Extractor::new(&subscription);
        let mut samples = 0;
        let first = allocation_counter::measure(|| samples = take(&mut deframer, &mut extractor, &bytes));
        assert!(samples > 0, "{path:?} has KPIs");
        // The buffer for frames split across two pieces grows to the maximum frame length.
        assert!(first.count_total < 20, "{path:?}: {} allocations at first", first.count_total);
        let again = allocation_counter::measure(|| samples = take(&mut deframer, &mut extractor, &bytes));
        assert_eq!(again.count_total, 0, "{path:?}: all room is there by now");
    }
}

//! Time at which messages are output: immediately, or after evidence. Output messages always contain the time of their
//! transmission.

use crate::crowd;

use std::collections::BTreeMap;

use airpace_phy::dci::{Audience, Extras};
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::Rnti;
use crowd::Scene;

const RATE_HZ: u64 = 7_680_000;
const SUBFRAME: u64 = RATE_HZ / 1000;

/// An output message.
struct Left {
    rnti: Rnti,
    /// Subframe of the message.
    index: u64,
    /// Last decoded subframe at the time of output.
    now: u64,
    /// Samples from the start of that subframe to the last pushed sample.
    pushed: u64,
}

/// All outputs of a decoder for a busy cell, and the transmitted messages by subframe.
fn leave(patience: u64) -> (Vec<Left>, BTreeMap<u64, Vec<Rnti>>) {
    let cell = Cell {
        pci: 17,
        bandwidth: Bandwidth::from_prbs(25).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let (extras, fading) = (Extras::NONE, None);
    let (users, tries, subframes) = (40, 3, 400);
    let scene = Scene { cell, fft_size: 512, users, tries, extras, snr_db: 20.0, fading, subframes, seed: 4 };
    let (samples, sent) = scene.play();
    let mut of_subframe = BTreeMap::<u64, Vec<Rnti>>::new();
    sent.iter().for_each(|(index, sent)| of_subframe.entry(*index).or_default().push(sent.rnti));

    let mut options = Options::new(RATE_HZ);
    options.caution.patience = patience;
    let mut decoder = Decoder::new(options).expect("a rate for a cell");
    let (mut left, mut pushed) = (Vec::new(), 0);
    for piece in samples.chunks(SUBFRAME as usize / 16) {
        decoder.push(piece);
        pushed += piece.len() as u64;
        while let Some(output) = decoder.pop() {
            let Output::Subframe(reading) = output else { continue };
            let since = pushed - reading.sample.max(0) as u64;
            left.extend(reading.found.iter().chain(&reading.late).map(|found| Left {
                rnti: found.rnti,
                index: found.index,
                now: reading.index,
                pushed: since,
            }));
        }
    }
    (left, of_subframe)
}

#[test]
fn what_is_for_a_known_user_leaves_before_its_subframe_ends() {
    const PATIENCE: u64 = 100;
    let (left, sent) = leave(PATIENCE);
    let mut known = BTreeMap::new();
    let mut at_once = 0;
    for message in left.iter().filter(|message| message.now > 30) {
        // A user is known from its second message on, even if the first message is ambiguous.
        let first = *known.entry(message.rnti).or_insert(message.index);
        let is_known = Audience::of(message.rnti) == Some(Audience::Everyone) || message.index > first;
        assert!(
            message.pushed <= SUBFRAME,
            "the control region of subframe {} was read {} samples after it began",
            message.now,
            message.pushed
        );
        assert!(!is_known || message.index == message.now, "a known user's message waited");
        at_once += u64::from(is_known);
        assert!(message.now - message.index <= PATIENCE, "a message waited for longer than it may");
        assert!(sent[&message.index].contains(&message.rnti), "its time is that at which it was sent");
    }
    assert!(at_once > 500, "only {at_once} messages were for known users");
}

#[test]
fn patience_is_the_longest_that_a_message_waits() {
    for patience in [0, 10] {
        let (left, sent) = leave(patience);
        let longest = left.iter().map(|message| message.now - message.index).max();
        assert!(longest <= Some(patience), "with {patience} one waited for {longest:?} subframes");
        let all = sent.values().map(Vec::len).sum::<usize>();
        assert!(100 * left.len() >= 97 * all, "with {patience} only {} of {all} leave", left.len());
    }
}

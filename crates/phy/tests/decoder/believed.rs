//! Accepted messages in unknown cells: how many the decoder accepts, and how many of them are correct.

use crate::blind;
use crate::crowd;
use crate::recordings;

use airpace_core::Streams;
use airpace_phy::dci::{Carrier, Extras, Format, Payload};
use airpace_phy::evidence::{Caution, Evidence};
use airpace_phy::found::Found;
use airpace_phy::impair::DelayProfile;
use airpace_phy::pdcch::{self, CceRange, TransmittedMessage};
use airpace_phy::search::Search;
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, Observation, PhichDuration, PhichResource, Ports};
use airpace_radio::Rnti;
use crowd::Scene;
use proptest::prelude::*;
use recordings::{Description, Row, data};

/// Comparison of accepted and transmitted messages.
#[derive(Default)]
struct Score {
    sent: u32,
    found: u32,
    output: u32,
    format_right: u32,
    /// Number of messages with the correct format. Formats that cannot be distinguished by their bits count as one.
    likeness_right: u32,
    prbs_right: u32,
    size_right: u32,
    sized: u32,
    process_right: u32,
    processed: u32,
}

fn is(row: &Row, found: &Found) -> bool {
    (found.rnti.0, u64::from(found.place.cces), u64::from(found.place.cce))
        == (row.number("rnti"), row.number("L"), row.number("ncce"))
        && found.payload.to_string() == row.text("bits")
}

/// Formats 1B and 1D differ only in the meaning of one bit. 2A and 2B are often identical. 3 and 3A differ in the
/// configuration of a group's devices.
fn likeness(format: &str) -> &str {
    match format {
        "1D" => "1B",
        "2B" => "2A",
        "3A" => "3",
        other => other,
    }
}

impl Score {
    fn of(rows: &[Row], believed: &[Found]) -> Score {
        let mut score = Score { sent: rows.len() as u32, output: believed.len() as u32, ..Score::default() };
        for found in believed {
            let here = rows.iter().filter(|row| row.number::<u64>("sf") == found.index);
            let truth = here.clone().find(|row| is(row, found));
            let Some(row) = truth else {
                continue;
            };
            score.found += 1;
            let format = row.text("format");
            score.format_right += u32::from(found.format() == format);
            score.likeness_right += u32::from(likeness(found.format()) == likeness(format));
            let prbs = found.prbs.unwrap_or_default();
            let prbs_right =
                format.starts_with('3') || prbs == [row.prbs("prb_slot0"), row.prbs("prb_slot1")];
            score.prbs_right += u32::from(prbs_right);
            if let Some(dci) = found.dci {
                // Power commands to a group that were decoded as a grant have no row in the reference.
                if row.text("harq").is_empty() {
                    continue;
                }
                if likeness(found.format()) == likeness(format) {
                    score.processed += 1;
                    score.process_right += u32::from(dci.harq == Some(row.number("harq")));
                }
                for (block, column) in ["tbs0", "tbs1"].into_iter().enumerate() {
                    if row.text("mcs_table") != "256qam" {
                        score.sized += 1;
                        let sent: u64 = row.number_or_zero(column);
                        score.size_right += u32::from(dci.tbs[block].0 == sent);
                    }
                }
            }
        }
        score
    }
}

fn believed(name: &str) -> Option<Score> {
    let folder = data("radio")?;
    let about = Description::load(&folder, name);
    let mut out = blind::believed(about.rate_hz(), &about.raw_samples(&folder, name));
    // Converts to the subframe numbers of the reference table.
    let first = u64::from(about.sfn) * 10 + about.subframe as u64;
    out.iter_mut().for_each(|found| found.index = found.index.wrapping_sub(first));
    let rows = recordings::truth(&folder, name);
    let score = Score::of(&rows, &out);
    let share = |part: u32, of: u32| 100.0 * f64::from(part) / f64::from(of.max(1));
    println!(
        "{name}: {} of {} found ({:.2} %), {} false ({:.2} %), format {:.2} %, PRBs {:.2} %, TBS {:.2} %",
        score.found,
        score.sent,
        share(score.found, score.sent),
        score.output - score.found,
        share(score.output - score.found, score.output),
        share(score.format_right, score.found),
        share(score.prbs_right, score.found),
        share(score.size_right, score.sized),
    );
    Some(score)
}

/// Accepted messages of a scene: number of correct ones, number of wrong ones, and expected number of wrong ones
/// according to the confidences.
struct Heard {
    sent: usize,
    found: usize,
    others: usize,
    doubt: f64,
    /// Confidence of each accepted message, and whether it is correct.
    believed: Vec<(f64, bool)>,
}

fn hear(scene: &Scene) -> Heard {
    let (samples, sent) = scene.play();
    let all = blind::believed(scene.fft_size as u64 * 15_000, &samples);
    let is_true = |found: &Found| {
        sent.iter().any(|(index, sent)| {
            *index == found.index
                && (sent.rnti, sent.payload, sent.place) == (found.rnti, found.payload, found.place)
        })
    };
    let believed: Vec<_> = all.iter().map(|found| (f64::from(found.confidence), is_true(found))).collect();
    let found = believed.iter().filter(|(_, is_true)| *is_true).count();
    let heard = Heard {
        sent: sent.len(),
        found,
        others: believed.len() - found,
        doubt: believed.iter().map(|(confidence, _)| 1.0 - confidence).sum(),
        believed,
    };
    println!(
        "{} PRBs, {:?}, {} dB: {} of {} found, {} others, {:.2} expected",
        scene.cell.bandwidth.prbs(),
        scene.cell.ports,
        scene.snr_db,
        heard.found,
        heard.sent,
        heard.others,
        heard.doubt,
    );
    heard
}

fn scene(prbs: u16, fft_size: usize, ports: Ports, snr_db: f64) -> Scene {
    let cell = Cell {
        pci: 301,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let extras = Extras::NONE;
    Scene { cell, fft_size, users: 20, tries: 30, extras, snr_db, fading: None, subframes: 60, seed: 1 }
}

/// Cells of our own transmitter, with high and low load, and one, two and four ports: another make than in the
/// recordings.
#[test]
fn all_that_we_send_is_believed_and_nothing_else() {
    for (prbs, fft_size, ports) in [(6, 128, Ports::One), (25, 512, Ports::Two), (50, 1024, Ports::Four)] {
        let busy = scene(prbs, fft_size, ports, 20.0);
        for scene in [busy, Scene { tries: 2, subframes: 100, ..busy }] {
            let heard = hear(&scene);
            assert_eq!((heard.found, heard.others), (heard.sent, 0), "{prbs} PRBs, {} tries", scene.tries);
        }
    }
}

/// Fading cells, with the models of TS 36.101. All subcarriers of a narrow cell with one port may fade for some
/// milliseconds.
#[test]
fn fading_cells_are_believed() {
    for (prbs, fft_size, ports, profile, doppler_hz, least) in [
        (6, 128, Ports::One, DelayProfile::Etu, 70.0, 0.99),
        (25, 384, Ports::One, DelayProfile::Epa, 5.0, 0.98),
        (25, 384, Ports::Four, DelayProfile::Etu, 70.0, 0.99),
        (50, 768, Ports::Two, DelayProfile::Eva, 70.0, 0.99),
        (50, 768, Ports::Four, DelayProfile::Eva, 5.0, 0.99),
    ] {
        let fading = Some((profile, doppler_hz));
        let heard = hear(&Scene { fading, subframes: 100, ..scene(prbs, fft_size, ports, 20.0) });
        let found = heard.found as f64 / heard.sent as f64;
        assert!(
            found >= least,
            "{prbs} PRBs, {ports:?}, {profile:?} {doppler_hz} Hz: only {found:.4} is found"
        );
        assert!(100 * heard.others <= heard.believed.len(), "{} are false", heard.others);
    }
}

/// At a Doppler shift of 1 kHz the channel differs between the slots. The channel estimate is then poor, but no message
/// must be decoded as a different message.
#[test]
fn fast_receivers_are_served_and_nothing_is_invented() {
    for (prbs, fft_size, ports, profile, doppler_hz, least) in [
        (100, 1536, Ports::Two, DelayProfile::Eva, 1000.0, 0.98),
        (100, 1536, Ports::Two, DelayProfile::Etu, 1000.0, 0.97),
        (50, 768, Ports::One, DelayProfile::Eva, 1000.0, 0.95),
        (25, 384, Ports::Four, DelayProfile::Etu, 500.0, 0.96),
        (25, 384, Ports::Two, DelayProfile::Eva, 300.0, 0.97),
    ] {
        let fading = Some((profile, doppler_hz));
        let base = scene(prbs, fft_size, ports, 15.0);
        let heard = hear(&Scene { fading, tries: 12, subframes: 300, seed: 3, ..base });
        let found = heard.found as f64 / heard.sent as f64;
        assert!(found >= least, "{prbs} PRBs, {ports:?}, {profile:?} {doppler_hz} Hz: {found:.4} is found");
        assert_eq!(heard.others, 0, "{prbs} PRBs, {ports:?}, {profile:?} {doppler_hz} Hz");
    }
}

/// Confidences are probabilities, even if noise makes many messages uncertain.
#[test]
fn confidences_are_true() {
    let mut believed = Vec::new();
    for snr_db in [6.0, 4.0, 2.0, 0.0] {
        for (tries, seed) in [(30, 1), (2, 2)] {
            let scene = scene(25, 512, Ports::Two, snr_db);
            believed.extend(hear(&Scene { tries, seed, subframes: 100, ..scene }).believed);
        }
    }
    println!("confidence   believed  mean confidence  true");
    for (low, high) in [(0.0, 0.9), (0.9, 0.97), (0.97, 0.99), (0.99, 0.999), (0.999, 1.0)] {
        let bin: Vec<_> =
            believed.iter().filter(|(confidence, _)| (low..high).contains(confidence)).collect();
        let count = bin.len().max(1) as f64;
        let mean = bin.iter().map(|(confidence, _)| confidence).sum::<f64>() / count;
        let share = bin.iter().filter(|(_, is_true)| *is_true).count() as f64 / count;
        println!("{low:5}-{high:5}  {:8}  {mean:15.4}  {share:.4}", bin.len());
        assert!(bin.len() < 30 || (mean - share).abs() < 0.1, "{mean} is believed, {share} is true");
    }
    let others = believed.iter().filter(|(_, is_true)| !is_true).count();
    assert!(100 * others <= believed.len(), "{others} of {} are false", believed.len());
}

/// Noise that is proportional to the signal (echoes, Doppler) does not appear on silent CCEs. A silent CCE after a
/// message must not count as a part of the message because half of its bits agree by chance.
#[test]
fn a_message_does_not_go_on_into_silence() {
    const EXPECTED: f32 = 16.0;
    let mut rng = Streams::new(9).stream("phy.silence");
    let carrier = Carrier::symmetric(50, Ports::Two);
    let mut search = Search::new(&carrier);
    let place = |cces| CceRange { cce: 4, cces };
    let is_searched =
        |rnti: &Rnti| [1, 2].into_iter().all(|cces| pdcch::in_search_space(*rnti, 3, 20, place(cces)));
    let size = carrier.size(Format::F2A, Extras::NONE);
    for rnti in (1000..).map(Rnti).filter(is_searched).take(100) {
        for cces in [1, 2] {
            let payload = Payload::new(rng.next_u64() & ((1 << size) - 1), size).expect("cut to size");
            let sent = TransmittedMessage { rnti, payload, place: place(cces) };
            let mut llrs: Vec<f32> =
                (0..20 * 72).map(|_| 0.1 * (2.0 * EXPECTED).sqrt() * rng.normal() as f32).collect();
            for (llr, bit) in llrs[sent.place.bits()].iter_mut().zip(sent.coded()) {
                *llr += if bit == 0 { EXPECTED } else { -EXPECTED };
            }
            let expected = vec![EXPECTED; 20];
            let observation =
                Observation { number: 3, cfi: 1, llrs, expected, snr_db: 9.0, ..Observation::default() };
            let found = search.candidates(&observation, |_| -8.0);
            let candidate = found.iter().find(|candidate| candidate.message.rnti == rnti);
            let candidate = candidate.expect("a message without a wrong bit is found");
            assert_eq!(candidate.message, sent);
            assert!(candidate.lead > 14.0, "its length is as sure as anything: {}", candidate.lead);
        }
    }
}

/// Optional fields of Release 10 change sizes. The decoder learns them for each user.
#[test]
fn users_with_fields_of_release_10_are_believed() {
    for at in 1..8u8 {
        let extras = Extras {
            carrier_indicator: at & 1 != 0,
            long_csi_request: at & 2 != 0,
            srs_request: at & 4 != 0,
        };
        let heard = hear(&Scene { extras, ..scene(25, 512, Ports::Two, 20.0) });
        // Several formats have the same size; this may cost the first messages of a user.
        assert!(100 * heard.found >= 99 * heard.sent, "{extras:?}: {} of {}", heard.found, heard.sent);
        assert_eq!(heard.others, 0, "{extras:?}");
    }
}

/// Recorded messages are accepted. In recordings of fading cells, a few messages may be lost.
#[test]
fn recorded_messages_are_believed_and_no_others() {
    for (name, least) in [
        ("pub_g06_1p", 0.99),
        ("pub_g100_2p", 0.99),
        ("pub_g25_2p_clean", 0.99),
        ("pub_g50_2p", 0.98),
        ("pub_n25", 0.98),
        ("pub_p15_tm1", 0.99),
    ] {
        let Some(score) = believed(name) else { return };
        let share = |part: u32, of: u32| f64::from(part) / f64::from(of.max(1));
        assert!(share(score.found, score.sent) >= least, "{name}: too few are found");
        assert!(share(score.output - score.found, score.output) <= 0.01, "{name}: too many are false");
        assert!(share(score.likeness_right, score.found) >= 0.99, "{name}: formats are wrong");
        assert!(share(score.format_right, score.found) >= 0.9, "{name}: formats are not told apart");
        assert!(share(score.prbs_right, score.found) >= 0.99, "{name}: PRBs are wrong");
        // A retransmitted block has the size of its first transmission, if that was accepted.
        assert!(share(score.size_right, score.sized) >= 0.995, "{name}: sizes of blocks are wrong");
        assert_eq!(score.process_right, score.processed, "{name}: HARQ processes, also of uplink grants");
    }
}

/// Number of decoded messages for each aggregation level, with white noise and one port.
///
/// The bound is the performance of a 16-bit soft decoder that knows all RNTIs and has perfect timing and a perfect
/// channel estimate.
#[test]
fn noise_is_borne_as_well_as_by_a_decoder_that_knows_everything() {
    for (snr_db, bound) in
        [(-2.0, [0.0, 0.23, 0.87, 0.97]), (0.0, [0.06, 0.78, 1.0, 1.0]), (2.0, [0.47, 0.98, 1.0, 1.0])]
    {
        let scene = Scene { subframes: 200, ..scene(25, 512, Ports::One, snr_db) };
        let (samples, sent) = scene.play();
        let all = blind::believed(scene.fft_size as u64 * 15_000, &samples);
        let mut tallies = [(0, 0); 4];
        // Exclude the subframes in which users are not yet known.
        for (index, sent) in sent.iter().filter(|(index, _)| *index > 100) {
            let is_it = |found: &&Found| {
                found.index == *index
                    && (found.place, found.payload, found.rnti) == (sent.place, sent.payload, sent.rnti)
            };
            let tally = &mut tallies[sent.place.cces.trailing_zeros() as usize];
            tally.0 += u32::from(all.iter().any(|found| is_it(&found)));
            tally.1 += 1;
        }
        println!("{snr_db} dB: {tallies:?}");
        for ((found, of), bound) in tallies.into_iter().zip(bound) {
            // Allow for five lost messages by chance.
            assert!(f64::from(found) >= bound * f64::from(of) - 5.0, "{found} of {of} at {snr_db} dB");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// No panic for any input. No message is accepted from random bits.
    #[test]
    fn bits_of_chance_are_not_believed(
        seed in any::<u64>(), nats in 0.0f32..100.0, snr_db in -20.0f32..60.0, cces in 0usize..90,
        odd in prop::sample::select(vec![0.0, f32::NAN, f32::INFINITY, f32::MIN, 1e-40]),
    ) {
        let carrier = Carrier::symmetric(50, Ports::Two);
        let mut rng = Streams::new(seed).stream("phy.chance");
        let mut search = Search::new(&carrier);
        let mut evidence = Evidence::new(1, carrier, Caution::default());
        let mut out = Vec::new();
        for number in 0..10 {
            let bits = 72 * cces + rng.below(72) as usize;
            let mut llrs: Vec<f32> = (0..bits).map(|_| rng.normal() as f32 * nats).collect();
            let at = rng.below(bits.max(1) as u64) as usize;
            if let Some(llr) = llrs.get_mut(at) {
                *llr = odd;
            }
            let observation = Observation { number, cfi: 3, llrs, snr_db, ..Observation::default() };
            evidence.advance(number as u64);
            let candidates = search.candidates(&observation, |rnti| evidence.history().prior(rnti, 0.0));
            evidence.judge(number as u64, &observation, candidates, &mut out);
        }
        evidence.finish(&mut out);
        prop_assert!(out.len() <= 1, "{out:?}");
    }
}

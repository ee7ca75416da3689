//! Impairments of real radios, one at a time: the cell is found, followed, and found again.

use crate::air;

use air::{AMPLITUDE, Air, Outcome, Score, cell, listen};
use airpace_core::Streams;
use airpace_phy::encode::{Encoder, Subframe};
use airpace_phy::impair::{Conditions, DelayProfile, Impair, noise_power};
use airpace_phy::ladder::Rung;
use airpace_phy::listen::{Listener, ListenerEvent, Options};
use airpace_phy::ofdm::Modulator;
use airpace_phy::resample::Resampler;
use airpace_phy::{Cell, Complex32, CyclicPrefix, Numerology, PhichDuration, Ports};
use proptest::prelude::*;

const FFT_SIZE: usize = 512;
const RATE_HZ: u64 = 7_680_000;

/// Noise for an SNR of 20 dB, at the sample rate of the cells in these tests.
fn good() -> Conditions {
    Conditions { noise_power: noise_power(20.0, FFT_SIZE, AMPLITUDE), ..Conditions::perfect(RATE_HZ as f64) }
}

/// Transmits and receives. Checks that the lock takes at most 20 ms, and that almost no subframe or message is lost.
fn goes_well(cell: Cell, conditions: Conditions, subframes: usize) -> (Outcome, Score) {
    let mut air = Air::new(cell, FFT_SIZE, conditions, 3);
    let mut samples = Vec::new();
    air.send(subframes, &mut samples);
    let outcome = listen(Options::new(RATE_HZ), &samples);
    let score = outcome.score(&air.sent);
    assert_eq!(outcome.locks.len(), 1, "one cell, once");
    let lock = &outcome.locks[0];
    assert_eq!(lock.cell, cell);
    assert!(lock.after <= RATE_HZ / 50, "locked after {} samples", lock.after);
    assert!(score.heard + 1 >= score.sent, "subframes were lost: {score:?}");
    assert_eq!((score.invented, score.wrong_cfi), (0, 0), "{score:?}");
    assert!(score.recall >= 0.99, "{score:?}");
    (outcome, score)
}

#[test]
fn carriers_five_kilohertz_off_are_found_and_followed() {
    for cfo_hz in [-5000.0, 5000.0, 11_000.0] {
        let conditions = Conditions { cfo_hz, ..good() };
        let (outcome, _) = goes_well(cell(214, 25, Ports::Two), conditions, 60);
        let found = outcome.listener.tracker().expect("followed").place().cfo_hz;
        assert!((found - cfo_hz).abs() < 10.0, "{found} Hz");
    }
}

#[test]
fn clocks_that_drift_are_followed() {
    let conditions = Conditions { drift_ppm: 2.0, cfo_hz: 4000.0, ..good() };
    let (outcome, _) = goes_well(cell(87, 25, Ports::One), conditions, 1000);
    let drift = outcome.listener.tracker().expect("followed").place().drift;
    let expected = -2e-6 * RATE_HZ as f64 / 1000.0;
    assert!((drift - expected).abs() < 0.01, "{drift} samples per subframe");
    // A hundred times the allowed error: a receiver without a frequency reference.
    goes_well(cell(87, 25, Ports::One), Conditions { drift_ppm: -20.0, ..good() }, 300);
}

#[test]
fn a_voltage_at_the_converter_does_no_harm() {
    // A DC offset with the power of the whole cell. The carrier offset moves it away from the centre of the cell's
    // band.
    let dc = Complex32::new(0.15, -0.1);
    goes_well(cell(5, 25, Ports::Two), Conditions { dc, cfo_hz: 3300.0, ..good() }, 60);
}

#[test]
fn clipped_peaks_do_no_harm() {
    // The root mean square of an idle cell is about 0.07; one in ten samples is clipped.
    goes_well(cell(300, 25, Ports::One), Conditions { clip: 0.1, ..good() }, 60);
}

#[test]
fn moving_receivers_are_served() {
    for (profile, doppler_hz, ports) in [
        (DelayProfile::Epa, 5.0, Ports::Two),
        (DelayProfile::Eva, 70.0, Ports::Two),
        (DelayProfile::Etu, 5.0, Ports::Two),
        (DelayProfile::Etu, 70.0, Ports::Two),
        (DelayProfile::Etu, 70.0, Ports::Four),
    ] {
        let noise_power = noise_power(25.0, FFT_SIZE, AMPLITUDE);
        let conditions = Conditions { profile, doppler_hz, noise_power, cfo_hz: 700.0, ..good() };
        let mut air = Air::new(cell(214, 25, ports), FFT_SIZE, conditions, 8);
        let mut samples = Vec::new();
        air.send(300, &mut samples);
        let outcome = listen(Options::new(RATE_HZ), &samples);
        let score = outcome.score(&air.sent);
        assert!(score.heard + 2 >= score.sent && score.invented == 0, "{profile:?}: {score:?}");
        let mean_db = outcome.observations.iter().map(|heard| heard.snr_db).sum::<f32>() / score.heard as f32;
        println!(
            "{profile:?} {mean_db} dB; {score:?}; spread {:?}",
            outcome.listener.tracker().map(|t| t.estimator().spread_s())
        );
        assert!(mean_db > 12.0, "{profile:?}: the channel is learnt with {mean_db:.1} dB of error and noise");
        assert!(score.wrong_cfi <= 2, "{profile:?}: {score:?}");
        assert!(score.recall >= 0.95, "{profile:?}: {score:?}");
    }
}

#[test]
fn a_second_cell_eight_decibels_below_is_ignored() {
    let mut first = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 21);
    let mut samples = Vec::new();
    first.send(100, &mut samples);
    let quiet = Conditions { noise_power: 0.0, cfo_hz: 350.0, ..good() };
    let mut second = Air::new(cell(56, 25, Ports::Two), FFT_SIZE, quiet, 22);
    let mut others = Vec::new();
    second.send(100, &mut others);
    let share = 10f32.powf(-8.0 / 20.0);
    for (sample, other) in samples.iter_mut().skip(33_333).zip(&others) {
        *sample += other * share;
    }
    let outcome = listen(Options::new(RATE_HZ), &samples);
    let score = outcome.score(&first.sent);
    assert_eq!(outcome.locks.len(), 1);
    assert_eq!(outcome.locks[0].cell.pci, 214);
    assert!(score.heard >= 99 && score.invented == 0, "{score:?}");
    // The other cell's messages disturb some messages of the tracked cell: those on one CCE with almost no redundancy.
    assert!(score.wrong_cfi == 0 && score.recall > 0.9, "{score:?}");
    // If the user requests the weaker cell by its identity, the decoder finds it anyway.
    let mut options = Options::new(RATE_HZ);
    options.pci = Some(56);
    let outcome = listen(options, &samples);
    assert_eq!(outcome.locks.first().map(|lock| lock.cell.pci), Some(56));
}

#[test]
fn samples_that_are_lost_without_a_word_cost_the_time_to_find_the_cell_again() {
    let mut air = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
    let mut samples = Vec::new();
    air.send(60, &mut samples);
    samples.truncate(samples.len() - 55_555);
    let mut rest = Vec::new();
    air.send(60, &mut rest);
    samples.extend(rest);
    let outcome = listen(Options::new(RATE_HZ), &samples);
    let score = outcome.score(&air.sent);
    assert_eq!((outcome.locks.len(), outcome.losses), (2, 1));
    // 55,555 samples are slightly more than seven subframes.
    assert!(score.heard >= 120 - 7 - 4, "{score:?}");
    assert!(score.invented == 0 && score.wrong_cfi <= 1 && score.recall > 0.985, "{score:?}");
}

#[test]
fn samples_that_are_said_to_be_lost_cost_nothing_else() {
    let mut air = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
    let mut samples = Vec::new();
    air.send(150, &mut samples);
    let listener = Listener::new(Options::new(RATE_HZ)).expect("a rate that is enough");
    let mut outcome = Outcome { listener, locks: Vec::new(), observations: Vec::new(), losses: 0 };
    let (first, second) = (RATE_HZ as usize * 40 / 1000 + 1234, RATE_HZ as usize * 100 / 1000 + 77);
    outcome.listener.push(&samples[..first]);
    outcome.listener.skip((second - first) as u64);
    outcome.drain();
    outcome.listener.push(&samples[second..]);
    outcome.listener.finish();
    outcome.drain();
    let score = outcome.score(&air.sent);
    assert_eq!((outcome.locks.len(), outcome.losses), (1, 0));
    assert!(score.heard >= 40 + 49 && score.invented == 0, "{score:?}");
    assert!(score.wrong_cfi == 0 && score.recall > 0.99, "{score:?}");
}

#[test]
fn what_came_before_an_early_gap_is_read_all_the_same() {
    let ms = RATE_HZ as usize / 1000;
    // Three cases: too few samples before the gap to find the cell, with a gap shorter and a gap longer than a search
    // block; and enough samples before the gap.
    for (before, lost) in [(3, 4), (4, 300), (30, 300)] {
        let mut air = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
        let mut samples = Vec::new();
        air.send(60 + before + lost, &mut samples);
        let listener = Listener::new(Options::new(RATE_HZ)).expect("a rate that is enough");
        let mut outcome = Outcome { listener, locks: Vec::new(), observations: Vec::new(), losses: 0 };
        let (first, second) = (before * ms + 1234, (before + lost) * ms + 77);
        for piece in samples[..first].chunks(ms / 4) {
            outcome.listener.push(piece);
            outcome.drain();
        }
        outcome.listener.skip((second - first) as u64);
        for piece in samples[second..].chunks(ms / 4) {
            outcome.listener.push(piece);
            outcome.drain();
        }
        outcome.listener.finish();
        outcome.drain();
        let score = outcome.score(&air.sent);
        assert_eq!((outcome.locks.len(), outcome.losses), (1, 0));
        assert!(score.heard >= before + 59, "{before} ms before a gap of {lost}: {score:?}");
        assert!(score.invented == 0 && score.wrong_cfi == 0 && score.recall > 0.99, "{score:?}");
    }
}

#[test]
fn after_a_gap_of_minutes_the_cell_is_searched_again() {
    let mut air = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
    let mut samples = Vec::new();
    air.send(40, &mut samples);
    let listener = Listener::new(Options::new(RATE_HZ)).expect("a rate that is enough");
    let mut outcome = Outcome { listener, locks: Vec::new(), observations: Vec::new(), losses: 0 };
    for lost in [100 * RATE_HZ, u64::MAX] {
        outcome.listener.push(&samples);
        outcome.listener.skip(lost);
    }
    outcome.listener.push(&samples);
    outcome.listener.finish();
    outcome.drain();
    assert_eq!((outcome.locks.len(), outcome.losses), (3, 2));
    assert!(outcome.observations.len() >= 3 * 39, "{} were heard", outcome.observations.len());
}

#[test]
fn another_cell_after_a_handover_is_found() {
    let mut before = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
    let mut after = Air::new(cell(301, 15, Ports::One), FFT_SIZE, Conditions { cfo_hz: -900.0, ..good() }, 5);
    (after.sfn, after.number) = (700, 3);
    let mut samples = Vec::new();
    before.send(50, &mut samples);
    after.send(50, &mut samples);
    let outcome = listen(Options::new(RATE_HZ), &samples);
    let found: Vec<u16> = outcome.locks.iter().map(|lock| lock.cell.pci).collect();
    assert_eq!(found, [214, 301]);
    let (first, second) = (outcome.score(&before.sent), outcome.score(&after.sent));
    assert!(first.heard >= 49 && second.heard >= 46, "{first:?} {second:?}");
    assert_eq!(second.invented, first.heard, "subframes are of one cell or the other");
}

#[test]
fn a_jump_of_the_frame_number_is_noticed_with_the_next_frame() {
    let mut air = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
    let mut samples = Vec::new();
    air.send(60, &mut samples);
    air.sfn = 900;
    air.send(60, &mut samples);
    let outcome = listen(Options::new(RATE_HZ), &samples);
    let score = outcome.score(&air.sent);
    assert_eq!((outcome.locks.len(), outcome.losses), (1, 0));
    assert!(score.heard >= 119 && score.invented == 0, "{score:?}");
}

#[test]
fn any_rate_beyond_the_cells_will_do() {
    // 2.4 Msps and 10 Msps are rates of common receivers. 4 Msps covers 15 PRBs with a very narrow transition band.
    for (prbs, fft_size, rate_hz) in
        [(6, 128, 2_400_000), (15, 256, 4_000_000), (25, 512, 10_000_000), (25, 512, 6_500_003)]
    {
        let own_hz = fft_size as u64 * 15_000;
        let conditions = Conditions {
            noise_power: noise_power(20.0, fft_size, AMPLITUDE),
            ..Conditions::perfect(own_hz as f64)
        };
        let mut air = Air::new(cell(214, prbs, Ports::Two), fft_size, conditions, 6);
        let mut own = Vec::new();
        air.send(60, &mut own);
        let half_band_hz = u64::from(prbs) * 90_000 + 15_000;
        let mut samples = Vec::new();
        Resampler::new(own_hz, rate_hz, half_band_hz).expect("rates that fit").push(&own, &mut samples);
        let outcome = listen(Options::new(rate_hz), &samples);
        let score = outcome.score(&air.sent);
        assert_eq!(outcome.locks.first().map(|lock| lock.cell), Some(*air.cell()));
        assert!(score.heard >= 58 && score.invented == 0 && score.wrong_cfi == 0, "{score:?}");
        // Cells with six PRBs have too few CCEs for much redundancy.
        assert!(score.recall >= 0.98, "{score:?}");
    }
}

#[test]
fn other_cells_prefixes_and_phichs_are_found() {
    for (cp, ports, duration) in [
        (CyclicPrefix::Extended, Ports::One, PhichDuration::Normal),
        (CyclicPrefix::Extended, Ports::Two, PhichDuration::Extended),
        (CyclicPrefix::Normal, Ports::Four, PhichDuration::Extended),
        (CyclicPrefix::Extended, Ports::Four, PhichDuration::Normal),
    ] {
        let cell = Cell { cp, phich_duration: duration, ..cell(499, 25, ports) };
        goes_well(cell, Conditions { cfo_hz: 1500.0, ..good() }, 60);
    }
}

#[test]
fn a_cell_hardly_above_the_noise_is_found_and_kept() {
    let noise_power = noise_power(-1.0, FFT_SIZE, AMPLITUDE);
    let mut air = Air::new(cell(214, 25, Ports::One), FFT_SIZE, Conditions { noise_power, ..good() }, 9);
    let mut samples = Vec::new();
    air.send(400, &mut samples);
    let outcome = listen(Options::new(RATE_HZ), &samples);
    let score = outcome.score(&air.sent);
    assert_eq!((outcome.locks.len(), outcome.losses), (1, 0));
    assert!(score.heard >= 399 && score.invented == 0, "{score:?}");
}

#[test]
fn a_perfect_radio_beside_the_antenna_is_no_trouble() {
    let (outcome, _) = goes_well(cell(214, 25, Ports::Two), Conditions { noise_power: 0.0, ..good() }, 40);
    assert!(outcome.observations.iter().flat_map(|heard| &heard.llrs).all(|llr| llr.is_finite()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_comes_in_whatever_pieces_is_survived(
        rate_hz in 1_920_000u64..6_000_000,
        pieces in prop::collection::vec((0usize..30_000, 0u64..3, any::<u64>(), -40i32..40), 1..12),
    ) {
        let mut listener = Listener::new(Options::new(rate_hz)).expect("a rate that is enough");
        let mut air = Air::new(cell(9, 6, Ports::One), 128, Conditions::perfect(1_920_000.0), 1);
        for (count, kind, seed, exponent) in pieces {
            let mut rng = Streams::new(seed).stream("phy.pieces");
            let mut samples = Vec::new();
            match kind {
                0 => listener.skip(seed % 100_000),
                1 => air.send(count / 2000, &mut samples),
                _ => samples.extend((0..count).map(|_| Complex32::new(rng.normal() as f32, rng.normal() as f32))),
            }
            let size = 2f32.powi(exponent);
            samples.iter_mut().for_each(|sample| *sample *= size);
            listener.push(&samples);
            while listener.pop().is_some() {}
        }
        listener.finish();
        while listener.pop().is_some() {}
        prop_assert!(listener.pop().is_none());
    }
}

#[test]
fn a_gap_of_weeks_is_over_at_once() {
    let mut air = Air::new(cell(9, 6, Ports::One), 128, Conditions::perfect(1_920_000.0), 1);
    let mut listener = Listener::new(Options::new(1_920_000)).expect("a rate that is enough");
    let (mut early, mut late) = (Vec::new(), Vec::new());
    // Too few samples to find the cell, then a gap of weeks.
    air.send(3, &mut early);
    listener.push(&early);
    listener.skip(u64::MAX);
    air.send(40, &mut late);
    listener.push(&late);
    listener.finish();
    let heard: Vec<_> = std::iter::from_fn(|| listener.pop()).collect();
    let subframes = heard.iter().filter(|heard| matches!(heard, ListenerEvent::Subframe(_))).count();
    assert!(subframes >= 38, "{subframes} of 40 subframes after the gap are heard");
    assert!(listener.ladder().gaps < 20, "nobody counts the subframes of weeks: {}", listener.ladder().gaps);
}

#[test]
fn rates_and_offsets_beyond_all_reason_are_refused_or_cut() {
    for rate_hz in [0, 1_919_999, 500_000_001, u64::MAX] {
        let refused = Listener::new(Options::new(rate_hz)).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains(&rate_hz.to_string())));
    }
    for max_cfo_hz in [f64::NAN, f64::INFINITY, -1.0] {
        let mut options = Options::new(1_920_000);
        options.max_cfo_hz = max_cfo_hz;
        let mut listener = Listener::new(options).expect("a rate that is enough");
        listener.push(&vec![Complex32::new(0.1, 0.0); 20_000]);
        assert!(listener.pop().is_none());
    }
}

#[test]
fn noise_is_no_cell() {
    let mut samples = Vec::new();
    let conditions = Conditions { noise_power: 0.01, ..Conditions::perfect(1_920_000.0) };
    Impair::new(conditions, 1, &Streams::new(2)).push(&[vec![Complex32::default(); 1_500_000]], &mut samples);
    let outcome = listen(Options::new(1_920_000), &samples);
    assert_eq!(outcome.locks.len(), 0);
    let (rung, hint) = outcome.listener.ladder().broken().expect("there is no cell");
    assert!(rung <= Rung::Broadcast, "{rung:?}: {hint}");
}

#[test]
fn silence_and_nonsense_are_survived() {
    let nan = Complex32::new(f32::NAN, f32::INFINITY);
    for value in [Complex32::default(), Complex32::new(1.0, 1.0), nan] {
        let outcome = listen(Options::new(1_920_000), &vec![value; 100_000]);
        assert_eq!(outcome.locks.len(), 0);
    }
    // Within the samples of a cell, silence and invalid samples cost only the affected subframes.
    let mut air = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
    let mut samples = Vec::new();
    air.send(80, &mut samples);
    samples[300_000..310_000].fill(nan);
    let score = listen(Options::new(RATE_HZ), &samples).score(&air.sent);
    assert!(score.heard >= 78 && score.invented == 0, "{score:?}");
    assert!(score.wrong_cfi <= 2 && score.recall > 0.97, "{score:?}");
}

#[test]
fn cells_that_share_a_carrier_between_both_directions_are_recognised() {
    let cell = cell(44, 6, Ports::One);
    let numerology = Numerology::nominal(cell.bandwidth, cell.cp);
    let mut encoder = Encoder::new(cell);
    let mut modulator = Modulator::new(numerology);
    let mut samples = Vec::new();
    let mut primary = Vec::new();
    for at in 0..30 {
        let number = at % 10;
        let subframe =
            Subframe { sfn: at as u16 / 10, number, cfi: 1, messages: &[], answers: &[], data: &[] };
        let mut grid = encoder.grids(&subframe).expect("a subframe that can be sent")[0].clone();
        // Source: TS 36.211 §6.11.1.2 and §6.11.2.2: frame structure type 2.
        if number % 5 == 0 {
            primary = grid.symbol(6).to_vec();
            let secondary = grid.symbol(5).to_vec();
            grid.symbol_mut(5).fill(Complex32::default());
            grid.symbol_mut(6).fill(Complex32::default());
            grid.symbol_mut(13).copy_from_slice(&secondary);
        } else if number % 5 == 1 {
            grid.symbol_mut(2).copy_from_slice(&primary);
        }
        modulator.modulate(&grid, 0.02, &mut samples);
    }
    let outcome = listen(Options::new(1_920_000), &samples);
    assert_eq!(outcome.locks.len(), 0);
    let (_, hint) = outcome.listener.ladder().broken().expect("it is not decoded");
    assert!(hint.contains("TDD"), "{hint}");
}

#[test]
fn a_cell_too_wide_for_the_samples_is_named() {
    let mut air = Air::new(cell(214, 25, Ports::Two), FFT_SIZE, good(), 4);
    let mut own = Vec::new();
    air.send(40, &mut own);
    let mut samples = Vec::new();
    Resampler::new(RATE_HZ, 1_920_000, 600_000).expect("a lower rate").push(&own, &mut samples);
    let outcome = listen(Options::new(1_920_000), &samples);
    let (rung, hint) = outcome.listener.ladder().broken().expect("it is not decoded");
    assert_eq!(
        (rung, hint.as_str()),
        (Rung::Bandwidth, "cell 214 has 25 PRBs, sent from 2 ports: record at 5.76 Msps or more")
    );
}

#[test]
fn hours_need_no_more_memory_than_seconds() {
    let conditions =
        Conditions { noise_power: noise_power(20.0, 128, AMPLITUDE), ..Conditions::perfect(1_920_000.0) };
    let mut air = Air::new(cell(9, 6, Ports::One), 128, conditions, 4);
    let mut samples = Vec::new();
    air.send(200, &mut samples);
    let listener = Listener::new(Options::new(1_920_000)).expect("a rate that is enough");
    let mut outcome = Outcome { listener, locks: Vec::new(), observations: Vec::new(), losses: 0 };
    let mut most = 0;
    // Every loop is a jump of the frame number, and a jump in time by about a sample.
    for _ in 0..20 {
        for piece in samples.chunks(5000) {
            outcome.listener.push(piece);
            outcome.drain();
            outcome.observations.clear();
            most = most.max(outcome.listener.samples_held());
        }
    }
    assert!(most < 1_920_000 / 4, "{most} samples were held at once");
    assert!(outcome.listener.ladder().subframes > 3900, "{:?}", outcome.listener.ladder());
}

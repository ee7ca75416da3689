//! Properties that must hold for any samples of a radio.
//!
//! No function in this file may panic on any input. The comment of a function describes what else it checks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use airpace_core::{Direction, Streams, Time};
use airpace_phy::decoder::{Decoder, Options, Output, Reading};
use airpace_phy::impair::{Conditions, noise_power};
use airpace_phy::station::Station;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::choices::Choices;

/// A decoder whose output is checked.
struct Watched {
    decoder: Decoder,
    rate_hz: u64,
    /// Number of samples of the longest push. The decoder must store these samples until it can process them.
    longest: usize,
    last: Option<(u64, i64)>,
    /// For each cell: the difference between the decoder's subframe numbers and the cell's own, which wrap around.
    shifts: BTreeMap<u16, i64>,
    subframes: u64,
    messages: usize,
}

impl Watched {
    fn new(options: Options) -> Option<Watched> {
        let rate_hz = options.listen.rate_hz;
        let decoder = Decoder::new(options).ok()?;
        Some(Watched {
            decoder,
            rate_hz,
            longest: 0,
            last: None,
            shifts: BTreeMap::new(),
            subframes: 0,
            messages: 0,
        })
    }

    fn push(&mut self, samples: &[Complex32]) {
        self.longest = self.longest.max(samples.len());
        self.decoder.push(samples);
        self.pop();
    }

    fn skip(&mut self, count: u64) {
        self.decoder.skip(count);
        self.pop();
    }

    /// Takes all output. Checks that the numbers of subframes increase, and that samples are released after use.
    fn pop(&mut self) {
        while let Some(output) = self.decoder.pop() {
            match output {
                Output::Subframe(reading) => self.read(&reading),
                Output::Late(late) => {
                    // Late messages may belong to subframes that were not returned, because their reception was
                    // uncertain.
                    assert!(late.iter().all(|found| (0.0..=1.0).contains(&found.confidence)));
                    self.messages += late.len();
                }
                Output::Locked(lock) => assert!(lock.frame_start.is_finite() && lock.cfo_hz.is_finite()),
                Output::Lost | Output::Moved(_) => {}
            }
        }
        // The maximum is a quarter of a second, raw and resampled, and one more block of each.
        let most = self.rate_hz as usize / 2 + 2 * self.longest + 4 * (1 << 14);
        let held = self.decoder.samples_held();
        assert!(held <= most, "{held} samples are held at {} per second", self.rate_hz);
    }

    fn read(&mut self, reading: &Reading) {
        let here = (reading.index, reading.sample);
        assert!(self.last.is_none_or(|last| last.0 < here.0), "{here:?} comes after {:?}", self.last);
        self.last = Some(here);
        self.subframes += 1;
        assert!((1..=3).contains(&reading.cfi) && reading.subframe < 10 && reading.sfn < 1024);
        let own = u64::from(reading.sfn) * 10 + u64::from(reading.subframe);
        let shift = (reading.index as i64 - own as i64).rem_euclid(10_240);
        let goes_on = self.shifts.insert(reading.pci, shift).is_none_or(|last| last == shift);
        assert!(goes_on || reading.leap != 0, "{own} is number {}, but no leap was reported", reading.index);
        assert!(!reading.snr_db.is_nan());
        for found in &reading.found {
            assert_eq!(found.index, reading.index);
            assert!(found.place.range().end <= reading.cces && (0.0..=1.0).contains(&found.confidence));
        }
        assert!(reading.late.iter().all(|found| found.index < reading.index));
        let grants = reading.found.iter().filter(|found| found.dci.is_some()).count();
        let report = reading.report(CarrierId(0), Time::ZERO);
        assert_eq!(
            report.idle_prbs().is_some(),
            reading.unread().is_empty(),
            "PRBs of unread messages cannot be counted as idle"
        );
        assert!(reading.missed.is_possible(), "{:?}", reading.missed);
        assert_eq!(report.dcis.len(), grants);
        self.messages += reading.found.len() + reading.late.len();
    }

    fn finish(&mut self) {
        self.decoder.finish();
        self.pop();
        assert_eq!(self.decoder.pop(), None, "nothing should come after the end");
        let ladder = *self.decoder.ladder();
        assert!(
            ladder.messages as usize == self.messages && ladder.subframes == self.subframes,
            "{ladder:?}"
        );
        let _ = ladder.broken();
    }
}

/// Random samples, at any rate, in pieces of any length, with any losses.
pub fn samples(input: &[u8]) {
    let mut choices = Choices(input);
    let rate_hz = match choices.byte() {
        0 => choices.number(),
        kind @ 1..100 => 1_920_000 * u64::from(1 + kind % 16),
        _ => 1_920_000 + choices.number() % 30_000_000,
    };
    let mut options = Options::new(rate_hz);
    options.listen.pci = choices.flag().then(|| asked(&mut choices));
    if choices.byte() == 0 {
        options.listen.max_cfo_hz = f64::from(choices.float());
    }
    let Some(mut decoder) = Watched::new(options) else { return };
    // Longer inputs take much time and test nothing more.
    let mut left: usize = 400_000;
    while !choices.is_over() && left > 0 {
        let count = choices.below(60_000).min(left);
        let kind = choices.byte();
        match kind % 8 {
            0 => decoder.skip(choices.number()),
            1 => {
                let bytes = choices.take(count);
                let number = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
                let pairs = bytes.chunks_exact(8);
                let samples: Vec<_> =
                    pairs.map(|pair| Complex32::new(number(&pair[..4]), number(&pair[4..]))).collect();
                decoder.push(&samples);
            }
            2 => decoder.push(&vec![Complex32::new(choices.float(), choices.float()); count]),
            kind => {
                let mut air = recorded(choices.byte(), choices.below(100_000), count);
                if kind == 3 {
                    noise(&mut air, u32::from(choices.byte()), 1.0);
                }
                let gain = choices.float();
                air.iter_mut().for_each(|sample| *sample *= gain);
                decoder.push(&air);
            }
        }
        left -= count;
    }
    decoder.finish();
}

/// The samples of a cell, damaged: cut, repeated, lost, scaled, rotated, clipped, mixed with noise or with another
/// cell's samples.
pub fn cell(input: &[u8]) {
    let mut choices = Choices(input);
    let which = choices.byte();
    let mut air = recorded(which, 0, usize::MAX);
    let rate_hz = 1_920_000;
    for _ in 0..choices.byte() % 6 {
        damage(&mut choices, &mut air);
    }
    let mut options = Options::new(rate_hz);
    options.listen.pci = (choices.byte() < 64).then(|| asked(&mut choices));
    let Some(mut decoder) = Watched::new(options) else { return };
    // Some samples are lost. The decoder may be notified of the loss, with a correct or a wrong number, or not at all.
    let mut rest = &air[..];
    while !rest.is_empty() {
        let piece = if choices.is_over() { rest.len() } else { 1 + choices.below(20_000) };
        let (now, later) = rest.split_at(piece.min(rest.len()));
        decoder.push(now);
        rest = later;
        if choices.byte() > 200 {
            let lost = choices.below(40_000).min(rest.len());
            rest = &rest[lost..];
            match choices.byte() % 3 {
                0 => {}
                1 => decoder.skip(lost as u64),
                _ => decoder.skip(choices.number()),
            }
        }
    }
    decoder.finish();
}

/// Identity of the cell to search for: mostly that of one of the recordings.
fn asked(choices: &mut Choices<'_>) -> u16 {
    match choices.byte() {
        byte @ 0..=191 => u16::from(byte % 4) * PCI_STEP,
        _ => choices.below(504) as u16,
    }
}

fn damage(choices: &mut Choices<'_>, air: &mut Vec<Complex32>) {
    let first = choices.below(1 << 16) * 2 % air.len().max(1);
    let count = choices.below(1 << 16).min(air.len() - first);
    let place = first..first + count;
    let here = &mut air[place.clone()];
    match choices.byte() % 12 {
        0 => drop(air.drain(place)),
        1 => {
            let again = here.to_vec();
            air.splice(first..first, again.into_iter().take(60_000));
        }
        2 => here.fill(Complex32::new(choices.float(), choices.float())),
        3 => {
            let gain = choices.float();
            here.iter_mut().for_each(|sample| *sample *= gain);
        }
        4 => {
            // Rotate the samples by an increasing angle, as a carrier offset that starts and ends suddenly does.
            let step = (f32::from(choices.byte() as i8) / 200.0).sin_cos();
            let mut turn = Complex32::new(1.0, 0.0);
            for sample in here {
                *sample *= turn;
                turn *= Complex32::new(step.1, step.0);
            }
        }
        5 => {
            let most = choices.float().abs();
            for sample in here {
                *sample = Complex32::new(sample.re.max(-most).min(most), sample.im.max(-most).min(most));
            }
        }
        6 => {
            let other = recorded(choices.byte(), choices.below(50_000), count);
            let gain = choices.float();
            here.iter_mut().zip(other).for_each(|(sample, other)| *sample += other * gain);
        }
        7 => noise(here, u32::from(choices.byte()), choices.float()),
        8 => {
            let dc = Complex32::new(choices.float(), choices.float());
            here.iter_mut().for_each(|sample| *sample += dc);
        }
        9 => here.reverse(),
        10 => here.iter_mut().for_each(|sample| *sample = sample.conj()),
        _ => {
            for _ in 0..16 {
                let at = choices.below(count);
                if let Some(sample) = here.get_mut(at) {
                    *sample = Complex32::new(choices.float(), choices.float());
                }
            }
        }
    }
}

fn noise(air: &mut [Complex32], seed: u32, loud: f32) {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    air.iter_mut().for_each(|sample| *sample += Complex32::new(next(), next()) * loud);
}

/// Difference between the identities of the recordings' cells.
const PCI_STEP: u16 = 7;

/// Up to `count` samples of one of the recordings, starting at `from`.
fn recorded(which: u8, from: usize, count: usize) -> Vec<Complex32> {
    static ALL: LazyLock<Vec<Vec<Complex32>>> = LazyLock::new(|| {
        let of = |(at, (ports, cp))| record(at as u16 * PCI_STEP, ports, cp);
        let kinds = [
            (Ports::One, CyclicPrefix::Normal),
            (Ports::Two, CyclicPrefix::Normal),
            (Ports::Four, CyclicPrefix::Normal),
            (Ports::One, CyclicPrefix::Extended),
        ];
        kinds.into_iter().enumerate().map(of).collect()
    });
    let all = &ALL[usize::from(which) % ALL.len()];
    let from = from.min(all.len());
    all[from..].iter().take(count).copied().collect()
}

/// Sixty milliseconds of a small cell with two users, both of which get a grant in every subframe.
fn record(pci: u16, ports: Ports, cp: CyclicPrefix) -> Vec<Complex32> {
    let cell = Cell {
        pci,
        bandwidth: Bandwidth::ALL[0],
        ports,
        cp,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::Sixth,
    };
    let (fft_size, amplitude) = (128, 0.02);
    let conditions = Conditions {
        noise_power: noise_power(25.0, fft_size, amplitude),
        cfo_hz: 300.0,
        ..Conditions::perfect(1_920_000.0)
    };
    let streams = Streams::new(u64::from(pci));
    let mut station =
        Station::new(cell, fft_size, amplitude, conditions, 1020, &streams).expect("an FFT size");
    let mut air = vec![];
    for index in 0..60 {
        let down = Dci {
            rnti: Rnti(0x1234),
            format: DciFormat::F1,
            prbs: PrbSet::run(index as u16 % 3, 2),
            mcs: [Some(index as u8 % 28), None],
            ndi: [Some(index % 2 == 0), None],
            harq: Some(index as u8 % 8),
            layers: 1,
            ..Dci::default()
        };
        let up = Dci { rnti: Rnti(0x2345), direction: Direction::Uplink, format: DciFormat::F0, ..down };
        station.send(
            &RadioReport {
                carrier: CarrierId(0),
                slot: Slot::subframe_of_lte(index),
                time: Time::ZERO,
                scope: Scope::Everyone,
                carrier_prbs: Some(6),
                cfi: Some(2),
                symbols: None,
                dcis: vec![down, up],
                own: None,
                layer: BitLayer::Physical,
            },
            &mut air,
        );
    }
    air
}

/// Number of messages that are decoded from an undamaged recording. If it were 0, the target would test nothing.
pub fn messages_undamaged() -> usize {
    let mut decoder = Watched::new(Options::new(1_920_000)).expect("a rate that is enough");
    decoder.push(&recorded(1, 0, usize::MAX));
    decoder.finish();
    decoder.messages
}

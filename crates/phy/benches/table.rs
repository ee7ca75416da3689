//! Cost of a subframe, by bandwidth, noise, sample rate and stage: `cargo bench -p airpace-phy --bench table`.
//!
//! A row is a busy cell with two ports, decoded without prior knowledge by one thread. Each entry of the table has the
//! median and the 99th percentile of the CPU time per subframe, in microseconds. CPU time is hardly influenced by other
//! programs on the machine. The first three stages are measured separately, with known timing. `listening` is the
//! complete front end: these stages, tracking, the PBCH of every tenth subframe, and the copying of samples. `all` is
//! listening, search and evidence. A subframe lasts 1000 µs.

#[path = "../tests/decoder/crowd/mod.rs"]
mod crowd;

use airpace_phy::channel::Estimator;
use airpace_phy::dci::{Carrier, Extras};
use airpace_phy::evidence::{Caution, Evidence};
use airpace_phy::grid::Grid;
use airpace_phy::impair::DelayProfile;
use airpace_phy::listen::{Listener, ListenerEvent, Options};
use airpace_phy::ofdm::{Correction, Demodulator};
use airpace_phy::resample::Resampler;
use airpace_phy::search::Search;
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Numerology, Observation, Observer, PhichDuration,
    PhichResource, Ports,
};
use crowd::Scene;
use rustix::time::{ClockId, clock_gettime};

/// PRB pairs, and FFT size of the minimum sample rate.
const CARRIERS: [(u16, usize); 6] = [(6, 128), (15, 256), (25, 384), (50, 768), (75, 1152), (100, 1536)];

/// PRB pairs, FFT size of the transmitter, and sample rate of the recording.
const CONVERSIONS: [(u16, usize, u64); 7] = [
    (25, 384, 7_000_000),
    (25, 384, 10_000_000),
    (50, 768, 10_000_000),
    (50, 768, 12_500_000),
    (100, 1536, 20_000_000),
    (100, 1536, 25_000_000),
    (100, 2048, 30_720_000),
];

/// SNRs of the rows with fading (dB).
const FADING_DB: [f64; 4] = [20.0, 10.0, 6.0, 4.0];

const SUBFRAMES: u64 = 400;

/// Number of subframes at the start that are excluded from the costs. Until the cell is found, samples are buffered,
/// and then decoded all at once.
const FIRST: u64 = 100;

const STAGES: [&str; 7] = ["transforms", "channel", "soft bits", "listening", "search", "evidence", "all"];

/// CPU time of this thread (µs).
fn now_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Cost of each stage, for successive subframes.
#[derive(Default)]
struct Costs([Vec<f64>; STAGES.len()]);

impl Costs {
    fn line(&mut self) -> String {
        let each = self.0.iter_mut().map(|costs| {
            costs.sort_by(f64::total_cmp);
            let at = |share: usize| costs.get(costs.len() * share / 100).copied().unwrap_or(f64::NAN);
            format!("{:6.1} {:6.1}", at(50), at(99))
        });
        each.collect::<Vec<_>>().join("  ")
    }
}

/// Transform, channel and soft bits separately, with known timing and CFI.
fn alone(cell: Cell, fft_size: usize, samples: &[Complex32], costs: &mut Costs) {
    let numerology = Numerology::new(cell.bandwidth, cell.cp, fft_size).expect("an FFT size");
    let mut demodulator = Demodulator::new(numerology);
    let (mut estimator, observer) = (Estimator::new(&cell), Observer::new(cell));
    let mut grid = Grid::new(&cell);
    let phasors = vec![Complex32::new(1.0, 0.0); fft_size];
    let ramp = vec![Complex32::new(1.0 / fft_size as f32, 0.0); cell.bandwidth.subcarriers()];
    let correction = Correction {
        dc: Complex32::default(),
        phasors: &phasors,
        ramp: &ramp,
        turn: Complex32::new(1.0, 0.0),
    };
    for (index, subframe) in samples.chunks_exact(numerology.subframe_samples()).enumerate() {
        let number = index % 10;
        let begin = now_us();
        for symbol in [4, 0, 1, 2] {
            let window = &subframe[numerology.symbol_start(symbol)..][..fft_size];
            demodulator.symbol([window].into_iter(), &correction, grid.symbol_mut(symbol));
        }
        let transformed = now_us();
        estimator.begin();
        estimator.add(number, 4, &grid);
        estimator.add(number, 0, &grid);
        let channel = estimator.finish(number);
        let learnt = now_us();
        let mut observation = Observation { number, ..Observation::default() };
        observer.cfi([(&grid, channel)], &mut observation);
        observation.cfi = 3;
        observer.bits([(&grid, channel)], &mut observation);
        let read = now_us();
        for (costs, stage) in
            costs.0.iter_mut().zip([transformed - begin, learnt - transformed, read - learnt])
        {
            costs.push(stage);
        }
    }
}

/// A busy cell.
fn scene(
    prbs: u16,
    fft_size: usize,
    ports: Ports,
    snr_db: f64,
    fading: Option<(DelayProfile, f64)>,
) -> Scene {
    let cell = Cell {
        pci: 407,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let (extras, subframes) = (Extras::NONE, SUBFRAMES);
    Scene { cell, fft_size, users: 40, tries: 60, extras, snr_db, fading, subframes, seed: 1 }
}

/// A cell recorded at another rate, from samples to messages. Prints its row.
fn row(prbs: u16, fft_size: usize, rate_hz: u64, snr_db: f64, fading: Option<(DelayProfile, f64)>) {
    row_beside(&scene(prbs, fft_size, Ports::Two, snr_db, fading), rate_hz, None);
}

/// A cell with interference from another cell that has aligned frames and is weaker by 8 dB.
fn row_beside(scene: &Scene, rate_hz: u64, other: Option<&Scene>) {
    let Scene { cell, fft_size, snr_db, .. } = *scene;
    let prbs = cell.bandwidth.prbs();
    let (mut samples, sent) = scene.play();
    if let Some(other) = other {
        let share = 10f32.powf(-8.0 / 20.0);
        samples.iter_mut().zip(other.play().0).for_each(|(sample, other)| *sample += other * share);
    }
    let mut costs = Costs::default();
    alone(cell, fft_size, &samples, &mut costs);
    let own_hz = fft_size as u64 * 15_000;
    if rate_hz != own_hz {
        let mut resampler =
            Resampler::new(own_hz, rate_hz, u64::from(prbs) * 90_000 + 15_000).expect("rates that fit");
        let own = std::mem::take(&mut samples);
        resampler.push(&own, &mut samples);
    }
    let carrier = Carrier::symmetric(prbs, cell.ports);
    let mut listener = Listener::new(Options::new(rate_hz)).expect("a rate for a cell");
    let mut search = Search::new(&carrier);
    let mut evidence = Evidence::new(cell.pci, carrier, Caution::default());
    let (mut out, mut index) = (Vec::new(), 0u64);
    for samples in samples.chunks(rate_hz as usize / 1000) {
        let begin = now_us();
        listener.push(samples);
        while let Some(heard) = listener.pop() {
            let listened = now_us();
            let ListenerEvent::Subframe(observation) = heard else { continue };
            evidence.advance(index);
            let candidates = search.candidates(&observation, |rnti| evidence.history().prior(rnti, 0.0));
            let searched = now_us();
            let before = out.len();
            evidence.judge(index, &observation, candidates, &mut out);
            for found in &out[before..] {
                search.believe(found.rnti, found.payload.len(), found.place.cces);
            }
            let judged = now_us();
            if index >= FIRST {
                let stages = [listened - begin, searched - listened, judged - searched, judged - begin];
                costs.0[3..].iter_mut().zip(stages).for_each(|(costs, stage)| costs.push(stage));
            }
            index += 1;
        }
    }
    evidence.finish(&mut out);
    let grants = sent.len() as f64 / SUBFRAMES as f64;
    let recall = out.len() as f64 / sent.len() as f64;
    println!(
        "{prbs:4} {:6.2} {snr_db:4.0} {grants:7.1}  {}  {recall:7.4}  {:8}",
        rate_hz as f64 / 1e6,
        costs.line(),
        search.work().given_up,
    );
}

fn main() {
    println!(
        "Processor time of a subframe in us, median and 99th percentile, one thread; a subframe lasts 1000 us."
    );
    println!(
        "Busy cells of two ports; `found` is what is believed over what was sent. See benches/table.rs.\n"
    );
    let stages: Vec<String> = STAGES.iter().map(|stage| format!("{stage:>13}")).collect();
    println!("PRBs   Msps   dB  grants  {}    found  given up", stages.join("  "));
    for snr_db in [20.0, 10.0] {
        for (prbs, fft_size) in CARRIERS {
            row(prbs, fft_size, fft_size as u64 * 15_000, snr_db, None);
        }
        println!();
    }
    println!("Recorded at other rates:");
    for (prbs, fft_size, rate_hz) in CONVERSIONS {
        row(prbs, fft_size, rate_hz, 20.0, None);
    }
    println!("\nFading (EVA, 5 Hz):");
    for snr_db in FADING_DB {
        row(100, 1536, 23_040_000, snr_db, Some((DelayProfile::Eva, 5.0)));
    }
    println!("\nBeside a weaker cell of the same site (EPA, 5 Hz), by ports of both:");
    let fading = Some((DelayProfile::Epa, 5.0));
    for (prbs, fft_size) in [(50, 768), (100, 1536)] {
        for (own, others) in [
            (Ports::One, Ports::One),
            (Ports::One, Ports::Two),
            (Ports::Two, Ports::One),
            (Ports::Two, Ports::Two),
        ] {
            let own = scene(prbs, fft_size, own, 20.0, fading);
            let mut other = scene(prbs, fft_size, others, 200.0, fading);
            (other.cell.pci, other.seed) = (135, 2);
            row_beside(&own, fft_size as u64 * 15_000, Some(&other));
        }
    }
}

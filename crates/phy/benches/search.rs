//! Cost of the search for messages, with and without noise; and cost of its SIMD Viterbi decoder compared with the
//! scalar decoder.

#[path = "../tests/decoder/crowd/mod.rs"]
mod crowd;

use std::hint::black_box;

use airpace_phy::coding::{RateMatcher, Viterbi};
use airpace_phy::dci::{Carrier, Extras};
use airpace_phy::evidence::{Caution, Evidence};
use airpace_phy::listen::{self, Listener, ListenerEvent};
use airpace_phy::search::Search;
use airpace_phy::search::lanes::{LANES, Lanes};
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Observation, PhichDuration, PhichResource, Ports,
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use crowd::Scene;

fn scene(prbs: u16, fft_size: usize, snr_db: f64) -> Scene {
    let cell = Cell {
        pci: 407,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let extras = Extras::NONE;
    Scene { cell, fft_size, users: 40, tries: 60, extras, snr_db, fading: None, subframes: 120, seed: 1 }
}

fn observations(scene: &Scene, samples: &[Complex32]) -> Vec<Observation> {
    let rate_hz = scene.fft_size as u64 * 15_000;
    let mut listener = Listener::new(listen::Options::new(rate_hz)).expect("a rate for a cell");
    listener.push(samples);
    listener.finish();
    let heard = std::iter::from_fn(|| listener.pop());
    heard.filter_map(|heard| if let ListenerEvent::Subframe(at) = heard { Some(at) } else { None }).collect()
}

/// Cost of the Viterbi decoder for one word, and for 32 words decoded in parallel.
fn trellis(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("trellis of 44 bits");
    let mut state = 1u32;
    let mut value = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 23) as i16 - 256
    };
    let word: Vec<[i16; 3]> = (0..44).map(|_| std::array::from_fn(|_| value())).collect();
    let mut viterbi = Viterbi::default();
    group.bench_function("one word, scalar", |bench| bench.iter(|| viterbi.decode(black_box(&word))));
    let mut lanes = Lanes::default();
    let matcher = RateMatcher::new(word.len());
    group.bench_function("thirty-two words in lanes", |bench| {
        bench.iter(|| {
            (0..LANES).for_each(|lane| lanes.set(lane, &matcher, black_box(word.as_flattened())));
            lanes.decode(black_box(LANES))
        });
    });
    group.finish();
}

/// A busy subframe of 100 PRB pairs; all messages are found by algebra.
fn clean(criterion: &mut Criterion) {
    let scene = scene(100, 1536, 20.0);
    let (samples, _) = scene.play();
    let heard = observations(&scene, &samples);
    let carrier = Carrier::symmetric(100, scene.cell.ports);
    let mut group = criterion.benchmark_group("a busy subframe");
    group.sample_size(30);
    let mut search = Search::new(&carrier);
    let mut at = 0;
    group.bench_function("search", |bench| {
        bench.iter(|| {
            at += 1;
            search.candidates(&heard[at % heard.len()], |_| -8.0).len()
        });
    });
    let found: Vec<_> = heard.iter().map(|at| search.candidates(at, |_| -8.0).to_vec()).collect();
    let mut evidence = Evidence::new(scene.cell.pci, carrier, Caution::default());
    let (mut out, mut index) = (Vec::new(), 0);
    group.bench_function("evidence", |bench| {
        bench.iter(|| {
            index += 1;
            out.clear();
            let at = index % heard.len();
            evidence.advance(index as u64);
            evidence.judge(index as u64, &heard[at], &found[at], &mut out);
            out.len()
        });
    });
    group.finish();
}

/// The same subframe with noise so strong that algebra finds almost nothing.
fn noisy(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a noisy subframe");
    group.sample_size(20);
    for snr_db in [10.0, 3.0] {
        let scene = scene(100, 1536, snr_db);
        let (samples, _) = scene.play();
        let heard = observations(&scene, &samples);
        let mut search = Search::new(&Carrier::symmetric(100, scene.cell.ports));
        let mut at = 0;
        group.bench_function(BenchmarkId::new("search", format!("{snr_db} dB")), |bench| {
            bench.iter(|| {
                at += 1;
                search.candidates(&heard[at % heard.len()], |_| -8.0).len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, trellis, clean, noisy);
criterion_main!(benches);

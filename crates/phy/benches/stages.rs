//! Cost of each stage of a receiver, for a cell with 100 PRB pairs and two ports.

#[path = "../tests/decoder/reference/mod.rs"]
mod reference;

use std::hint::black_box;

use airpace_core::Streams;
use airpace_phy::channel::Estimator;
use airpace_phy::coding::{RateMatcher, Viterbi};
use airpace_phy::dci::Payload;
use airpace_phy::encode::{Subframe, Transmitter};
use airpace_phy::grid::Grid;
use airpace_phy::listen::{Listener, ListenerEvent, Options};
use airpace_phy::ofdm::Demodulator;
use airpace_phy::pdcch::{CceRange, TransmittedMessage, coded};
use airpace_phy::resample::{Parts, Resampler};
use airpace_phy::sync::search::Search as CellSearch;
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Numerology, Observation, Observer, PhichDuration,
    PhichResource, Ports,
};
use airpace_radio::Rnti;
use criterion::{Criterion, criterion_group, criterion_main};
use reference::Receiver;

fn stages(criterion: &mut Criterion) {
    let cell = Cell {
        pci: 407,
        bandwidth: Bandwidth::from_prbs(100).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let message = |cce: u16| TransmittedMessage {
        rnti: Rnti(0xFFFF),
        payload: Payload::new(0x0F0_1234, 28).expect("28 bits"),
        place: CceRange { cce, cces: 4 },
    };
    let messages = [message(0), message(4), message(12)];
    let mut transmitter = Transmitter::new(cell, 2048, 1.0).expect("an FFT size");
    let mut ports = vec![Vec::new(); 2];
    let subframe = Subframe { sfn: 0, number: 1, cfi: 3, messages: &messages, answers: &[], data: &[] };
    transmitter.send(&subframe, &mut ports).expect("a subframe that can be sent");
    let samples: Vec<Complex32> = ports[0].iter().zip(&ports[1]).map(|(a, b)| a + b * 0.5).collect();
    let mut demodulator = Demodulator::new(Numerology::nominal(cell.bandwidth, cell.cp));
    let mut grid = Grid::new(&cell);

    criterion.bench_function("ofdm, three control symbols", |bench| {
        bench.iter(|| demodulator.demodulate(black_box(&samples), 3, &mut grid));
    });
    criterion.bench_function("channel of two ports from two symbols, learnt", |bench| {
        let mut estimator = Estimator::new(&cell);
        bench.iter(|| {
            estimator.begin();
            estimator.add(1, 4, black_box(&grid));
            estimator.add(1, 0, &grid);
            estimator.finish(1).noise()
        });
    });
    let observer = Observer::new(cell);
    let channel = reference::estimate(&cell, 1, 0, &grid);
    let mut observation = Observation { number: 1, cfi: 3, ..Observation::default() };
    criterion.bench_function("soft bits of 84 CCEs", |bench| {
        bench.iter(|| observer.bits([(black_box(&grid), &channel)], &mut observation));
    });
    front_half(criterion, cell);
    other_work(criterion);
    let bits = coded(messages[0].payload, messages[0].rnti, 288);
    let soft: Vec<i16> = bits.iter().map(|bit| 512 - 1024 * i16::from(*bit)).collect();
    let matcher = RateMatcher::new(44);
    let mut steps = Vec::new();
    criterion.bench_function("rate matching of 44 bits from four CCEs", |bench| {
        bench.iter(|| matcher.combine(black_box(&soft), &mut steps));
    });
    let mut viterbi = Viterbi::default();
    criterion.bench_function("viterbi of 44 bits", |bench| bench.iter(|| viterbi.decode(black_box(&steps))));
    let mut receiver = Receiver::new(cell, 0.9);
    criterion.bench_function("whole exhaustive subframe", |bench| {
        bench.iter(|| receiver.read(1, black_box(&grid)));
    });
}

/// Cost of the search without a cell, and at a sample rate without a matching FFT size.
fn other_work(criterion: &mut Criterion) {
    let mut rng = Streams::new(2).stream("phy.noise");
    let noise: Vec<Complex32> =
        (0..38_400).map(|_| Complex32::new(rng.normal() as f32, rng.normal() as f32)).collect();
    let mut search = CellSearch::new(12_000.0);
    criterion.bench_function("cell search among 20 ms", |bench| {
        bench.iter(|| search.find(black_box(&noise), 3).len());
    });
    // A symbol of a cell with 100 PRBs, recorded at 20 Msps.
    let resampler = Resampler::new(20_000_000, 21_120_000, 9_015_000).expect("rates that fit");
    let mut inputs = Parts::default();
    inputs.extend(&noise[..resampler.inputs(0, 1408).count()]);
    let mut out = vec![Complex32::default(); 1408];
    criterion.bench_function("a symbol at 20 Msps to 21.12", |bench| {
        bench.iter(|| resampler.resample(0, black_box(&inputs), &mut out));
    });
}

/// Cost of all stages from samples to observations of a tracked cell; the search for messages is not included.
fn front_half(criterion: &mut Criterion, cell: Cell) {
    let mut transmitter = Transmitter::new(cell, 2048, 0.01).expect("an FFT size");
    let mut ports = vec![Vec::new(); 2];
    for at in 0..80 {
        let (sfn, number) = (at / 10, usize::from(at % 10));
        let subframe = Subframe { sfn, number, cfi: 3, messages: &[], answers: &[], data: &[] };
        transmitter.send(&subframe, &mut ports).expect("a subframe that can be sent");
    }
    let mut rng = Streams::new(1).stream("phy.noise");
    let mut noise = || Complex32::new(rng.normal() as f32, rng.normal() as f32).scale(0.03);
    let samples: Vec<Complex32> =
        ports[0].iter().zip(&ports[1]).map(|(a, b)| a + b * 0.5 + noise()).collect();
    let mut listener = Listener::new(Options::new(30_720_000)).expect("a rate that is enough");
    listener.push(&samples);
    while listener.pop().is_some() {}
    let mut pieces = samples.chunks(30_720).cycle();
    criterion.bench_function("whole front half of a subframe", |bench| {
        bench.iter(|| {
            listener.push(pieces.next().expect("an endless cycle"));
            let mut heard = 0;
            while let Some(ListenerEvent::Subframe(observation)) = listener.pop() {
                heard += observation.cces();
            }
            heard
        });
        assert!(listener.cell().is_some(), "the cell was lost: {:?}", listener.ladder());
    });
}

criterion_group!(benches, stages);
criterion_main!(benches);

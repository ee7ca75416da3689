//! Cost of one tick of Sprout's receiver: the model moves, processes a count, and makes a forecast.
//!
//! `cargo bench -p airpace-cc --bench forecast`

use std::hint::black_box;

use airpace_cc::sprout::{Cautious, Model, Motion, Outage};
use criterion::{Criterion, criterion_group, criterion_main};

const PAPER: Motion = Motion { sigma: 200.0, outage: Outage::Kept };

fn forecast(criterion: &mut Criterion) {
    let cautious = Cautious::new(PAPER, 0.05);
    let mut model = Model::new(PAPER);
    let mut group = criterion.benchmark_group("sprout");
    group.bench_function("tick", |bencher| {
        let mut count = 0;
        bencher.iter(|| {
            count = (count + 7) % 20;
            model.evolve();
            model.observe(black_box(count));
            cautious.forecast(model.probabilities())
        });
    });
    group.bench_function("tables", |bencher| bencher.iter(|| Cautious::new(black_box(PAPER), 0.05)));
    group.finish();
}

criterion_group!(benches, forecast);
criterion_main!(benches);

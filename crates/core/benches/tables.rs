//! Benchmarks of the table look-ups that a cell makes for every grant.

use std::hint::black_box;

use airpace_core::tables::Modulation;
use airpace_core::tables::{CodeRate, lte, nr};
use criterion::{Criterion, criterion_group, criterion_main};

fn tables(criterion: &mut Criterion) {
    let table = lte::McsTable::Qam256;
    criterion.bench_function("LTE: block size of an MCS", |bencher| {
        bencher.iter(|| table.tbs(black_box(20), black_box(64), 1));
    });
    criterion.bench_function("LTE: highest MCS under the code rate", |bencher| {
        bencher.iter(|| table.highest_mcs(black_box(27), black_box(100), black_box(120)));
    });
    criterion.bench_function("NR: block size", |bencher| {
        let rate = CodeRate::from_2048ths(1833);
        bencher.iter(|| nr::tbs(black_box(39_312), Modulation::Qam256, black_box(rate), 4));
    });
}

criterion_group!(benches, tables);
criterion_main!(benches);

//! CPU time of one user's radio per subframe: the channel, link adaptation and one transport block's error.

use std::hint::black_box;

use airpace_core::tables::lte::McsTable;
use airpace_core::{Bits, Streams};
use airpace_path::cell::adaptation::{AdaptationConfig, LinkAdaptation};
use airpace_path::cell::bler::{Bler, BlerConfig, Block, SoftBuffer};
use airpace_path::cell::channel::fading::FadingProfile;
use airpace_path::cell::channel::{Channel, ChannelConfig, Grid};
use airpace_radio::Numerology;
use criterion::{Criterion, criterion_group, criterion_main};

fn channel(fading: FadingProfile) -> Channel {
    let config = ChannelConfig { sinr_db: Some(18.0), fading, speed_kmh: 3.0, ..ChannelConfig::default() };
    Channel::new(&config.plan().expect("a channel"), Grid::lte(100), 1_940.0, &Streams::new(1), "device")
}

fn adaptation(bler: &Bler) -> LinkAdaptation {
    LinkAdaptation::new(
        &AdaptationConfig::default().plan().expect("link adaptation"),
        bler,
        Grid::lte(100),
        &Streams::new(1),
        "adaptation",
    )
}

/// The fading channel of a carrier of NR with 273 PRBs at 30 kHz.
fn wide_channel(fading: FadingProfile) -> Channel {
    let config = ChannelConfig { sinr_db: Some(18.0), fading, speed_kmh: 3.0, ..ChannelConfig::default() };
    let grid = Grid::nr(273, Numerology::KHZ_30);
    Channel::new(&config.plan().expect("a channel"), grid, 3_500.0, &Streams::new(1), "device")
}

fn slots_of_nr(c: &mut Criterion) {
    for (name, profile) in
        [("tdl_a", FadingProfile::TdlA), ("tdl_c", FadingProfile::TdlC), ("tdl_d", FadingProfile::TdlD)]
    {
        let mut fading = wide_channel(profile);
        let mut slot = 0;
        c.bench_function(&format!("channel_of_273_prbs/{name}"), |b| {
            b.iter(|| {
                slot += 1;
                black_box(fading.at(slot).sinr_db)
            })
        });
        let mut fading = wide_channel(profile);
        let mut slot = 0;
        c.bench_function(&format!("channel_of_273_prbs_every_5_slots/{name}"), |b| {
            b.iter(|| {
                slot += 5;
                black_box(fading.at(slot).sinr_db)
            })
        });
    }
}

fn subframes(c: &mut Criterion) {
    let bler = Bler::new(&BlerConfig::default()).expect("an error model");
    let block = Block { table: McsTable::Qam64.into(), mcs: 20, bits: Bits(39_232) };
    let profiles = [
        ("static", FadingProfile::Flat),
        ("epa", FadingProfile::Epa),
        ("eva", FadingProfile::Eva),
        ("etu", FadingProfile::Etu),
    ];
    for (name, profile) in profiles {
        let mut fading = channel(profile);
        let mut subframe = 0;
        c.bench_function(&format!("channel/{name}"), |b| {
            b.iter(|| {
                subframe += 1;
                black_box(fading.at(subframe).sinr_db)
            })
        });

        let (mut fading, mut adaptation) = (channel(profile), adaptation(&bler));
        let mut subframe = 0;
        c.bench_function(&format!("reports_only/{name}"), |b| {
            b.iter(|| {
                subframe += 1;
                adaptation.update(subframe, &mut fading);
                black_box(adaptation.mcs(1))
            })
        });

        let mut fading = channel(profile);
        let mut subframe = 0;
        c.bench_function(&format!("block/{name}"), |b| {
            b.iter(|| {
                subframe += 1;
                let sinr_db = fading.at(subframe).effective_sinr_db(Grid::lte(100).all(), block.modulation());
                let mut held = SoftBuffer::default();
                held.add(block.modulation(), sinr_db);
                black_box(bler.error(block, &held))
            })
        });
    }
}

criterion_group!(benches, subframes, slots_of_nr);
criterion_main!(benches);

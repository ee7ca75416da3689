//! Memory is bounded: hours with new users need no more than seconds.

use airpace_core::Streams;
use airpace_phy::Observation;
use airpace_phy::Ports;
use airpace_phy::dci::{Carrier, Payload};
use airpace_phy::evidence::{Caution, Evidence};
use airpace_phy::pdcch::{CceRange, coded, in_search_space};
use airpace_phy::search::Search;
use airpace_radio::Rnti;
use allocation_counter::measure;

/// Number of CCEs in the control region.
const CCES: usize = 20;

/// A subframe with noise, and with grants to two new devices.
fn observation(index: u64, rng: &mut airpace_core::Rng) -> Observation {
    let number = (index % 10) as usize;
    let mut llrs: Vec<f32> = (0..CCES * 72).map(|_| 3.0 * rng.normal() as f32).collect();
    for _ in 0..2 {
        let rnti = Rnti(0x3D + rng.below(0xFF00) as u16);
        // Format 1 on 25 PRBs: some RBGs, any MCS that is not reserved.
        let bits = rng.below(1 << 13) << 14 | rng.below(29) << 9 | rng.below(1 << 9);
        let payload = Payload::new(bits, 27).expect("27 bits");
        let places = CceRange::all(CCES).filter(|place| place.cces == 2);
        let Some(place) = places.into_iter().find(|place| in_search_space(rnti, number, CCES, *place)) else {
            continue;
        };
        let sent = coded(payload, rnti, place.bits().len());
        for (llr, bit) in llrs[place.bits()].iter_mut().zip(sent) {
            *llr = 40.0 - 80.0 * f32::from(bit) + 3.0 * rng.normal() as f32;
        }
    }
    Observation {
        sfn: (index / 10 % 1024) as u16,
        number,
        sample: index as i64 * 7680,
        cfi: 2,
        llrs,
        snr_db: 13.0,
        ..Observation::default()
    }
}

#[test]
fn ever_new_users_are_forgotten() {
    let carrier = Carrier::symmetric(25, Ports::Two);
    let mut search = Search::new(&carrier);
    let mut evidence = Evidence::new(301, carrier, Caution::default());
    let mut rng = Streams::new(4).stream("phy.strangers");
    let (mut index, mut believed) = (0, 0);
    // Additional memory after this many subframes (bytes). Sometimes there is a gap between subframes.
    let mut grown = |subframes: u64| {
        let info = measure(|| {
            for _ in 0..subframes {
                index += if rng.chance(0.05) { 3 } else { 1 };
                let observation = observation(index, &mut rng);
                let mut out = Vec::new();
                evidence.advance(index);
                let candidates = search.candidates(&observation, |rnti| evidence.history().prior(rnti, 0.0));
                evidence.judge(index, &observation, candidates, &mut out);
                for found in &out {
                    search.believe(found.rnti, found.payload.len(), found.place.cces);
                }
                believed += out.len();
            }
        });
        info.bytes_current
    };
    // An idle connection is released after ten seconds: until then the number of users grows.
    let filling = grown(12_000);
    let later = grown(24_000);
    println!("{filling} bytes are held after 12 s, {later} more after 36 s; {believed} messages");
    assert!(believed > 30_000, "only {believed} messages are believed");
    assert!(later < filling / 4, "{later} bytes more than {filling} after three times as long");
}

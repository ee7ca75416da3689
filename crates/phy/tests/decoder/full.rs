//! Messages with 66 bits on one CCE of 72 bits, where a tone or a fade removes some elements.

use airpace_core::Streams;
use airpace_phy::dci::{Allocation, Payload};
use airpace_phy::dci::{Audience, Block, Carrier, Downlink, Extras, Format, Message, Spatial, pack};
use airpace_phy::evidence::{Caution, Evidence};
use airpace_phy::pdcch::{self, CceRange, TransmittedMessage};
use airpace_phy::search::Search;
use airpace_phy::{Observation, Ports};
use airpace_radio::Rnti;

const CCES: usize = 20;

/// A cell with 100 PRB pairs and four ports transmits every user's grants on one CCE. From subframe 100 on, four elements
/// of each CCE are missing.
#[test]
fn grants_that_fill_a_cce_are_read_without_a_group_of_its_elements() {
    let mut rng = Streams::new(9).stream("phy.full");
    let carrier = Carrier::symmetric(100, Ports::Four);
    let (mut search, mut evidence) =
        (Search::new(&carrier), Evidence::new(1, carrier, Caution { patience: 0, ..Caution::default() }));
    let users: Vec<Rnti> = (0..40).map(|_| Rnti(1000 + rng.below(60_000) as u16)).collect();
    let (mut all, mut read, mut invented) = (0, 0, 0);
    for index in 0..600 {
        let number = (index % 10) as usize;
        let mut sent: Vec<TransmittedMessage> = Vec::new();
        for _ in 0..3 {
            let rnti = users[rng.below(users.len() as u64) as usize];
            let places: Vec<CceRange> = pdcch::own_space(rnti, number, CCES, 1).collect();
            let place = places[rng.below(places.len() as u64) as usize];
            let payload = grant(&carrier, (sent.len() as u32, rng.below(28) as u8, rng.below(8) as u8));
            assert_eq!(payload.len(), 50);
            if sent.iter().all(|other| other.rnti != rnti && !other.place.overlaps(place)) {
                sent.push(TransmittedMessage { rnti, payload, place });
            }
        }
        // Every bit is certain, except on the missing elements.
        let mut llrs: Vec<f32> = (0..72 * CCES).map(|_| 10.0 * rng.normal() as f32).collect();
        for sent in &sent {
            for (llr, bit) in llrs[sent.place.bits()].iter_mut().zip(sent.coded()) {
                *llr += if bit == 0 { 60.0 } else { -60.0 };
            }
        }
        if index >= 100 {
            for cce in llrs.chunks_exact_mut(72) {
                cce[8 * rng.below(9) as usize..][..8].fill(0.0);
            }
        }
        let heard = Observation {
            number,
            cfi: 1,
            llrs,
            expected: vec![60.0; CCES],
            snr_db: 15.0,
            ..Observation::default()
        };
        evidence.advance(index);
        let candidates = search.candidates(&heard, |rnti| evidence.history().prior(rnti, 0.0)).to_vec();
        let mut found = Vec::new();
        evidence.judge(index, &heard, &candidates, &mut found);
        found.iter().for_each(|found| search.believe(found.rnti, found.payload.len(), found.place.cces));
        let mut found: Vec<TransmittedMessage> = found
            .iter()
            .map(|found| TransmittedMessage { rnti: found.rnti, payload: found.payload, place: found.place })
            .collect();
        if index >= 100 {
            all += sent.len();
            read += sent.iter().filter(|sent| found.contains(sent)).count();
            found.retain(|found| !sent.contains(found));
            invented += found.len();
        }
    }
    println!("{read} of {all} are read, {invented} were not sent; {:?}", search.work());
    assert!(read * 100 >= all * 97, "{read} of {all} are read");
    assert!(invented * 200 <= all, "{invented} of {all} were not sent");
    assert!(search.work().by_users as usize * 2 > all, "without their users, they could not be read");
}

fn grant(carrier: &Carrier, (which, mcs, harq): (u32, u8, u8)) -> Payload {
    let block = |mcs| Block { mcs, ndi: mcs % 2 == 0, rv: 0 };
    let message = Downlink {
        format: Format::F2A,
        carrier: None,
        allocation: Allocation::Groups { map: 0xFF << (8 * which) },
        first: block(mcs),
        second: Some(block(mcs)),
        harq,
        tpc: 1,
        spatial: Spatial::Layers { swap: false, precoding: 0 },
        srs_request: None,
    };
    pack(carrier, Extras::NONE, Audience::User, &Message::Downlink(message))
}

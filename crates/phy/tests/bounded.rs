//! Maximum work of the search per subframe, for any noise power.

use airpace_core::Streams;
use airpace_phy::dci::Carrier;
use airpace_phy::search::{MAX_WORDS, Search};
use airpace_phy::{Observation, Ports};

/// A full control region of 100 PRB pairs with strong random bits and no message.
fn noise(seed: u64, ratio: f32) -> Observation {
    let mut rng = Streams::new(seed).stream("phy.noise");
    let mut bit = |_| {
        let sign = if rng.chance(0.5) { 1.0 } else { -1.0 };
        2.0 * ratio * sign + 2.0 * ratio.sqrt() * rng.normal() as f32
    };
    let llrs: Vec<f32> = (0..84 * 72).map(&mut bit).collect();
    let snr_db = 10.0 * ratio.log10();
    Observation { number: 1, cfi: 3, llrs, expected: vec![2.0 * ratio; 84], snr_db, ..Observation::default() }
}

#[test]
fn a_subframe_gets_so_many_words_and_no_more() {
    let mut search = Search::new(&Carrier::symmetric(100, Ports::Two));
    let (mut before, mut cut) = (search.work(), 0);
    for seed in 0..20 {
        search.candidates(&noise(seed, 3.0), |_| -16.0);
        let work = search.work();
        assert!(work.trellis - before.trellis <= MAX_WORDS as u64);
        assert_eq!(work.given_up - before.given_up, search.given_up() as u64);
        assert_eq!(work.cut - before.cut, u64::from(search.given_up() > 0));
        cut += usize::from(search.given_up() > 0);
        before = work;
    }
    println!("{cut} of 20 subframes were cut off; {before:?}");
    assert!(cut > 0, "no subframe was too much: {before:?}");
    // An idle subframe after noisy subframes is searched completely.
    let quiet = Observation { llrs: vec![0.0; 84 * 72], ..noise(1, 30.0) };
    search.candidates(&quiet, |_| -16.0);
    assert_eq!(search.given_up(), 0);
}

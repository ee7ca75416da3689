//! Estimates of undecoded messages: the table of decoding probabilities, and the resulting estimates in fading cells,
//! compared with the reference. Estimates may err only in the conservative direction.

use crate::blind;
use crate::crowd;

use airpace_core::{Rng, Streams};
use airpace_phy::dci::Payload;
use airpace_phy::dci::{
    Allocation, Audience, Block, Carrier, Downlink, Extras, Format, Message, Spatial, pack,
};
use airpace_phy::decoder::Output;
use airpace_phy::evidence::{Caution, Evidence};
use airpace_phy::impair::DelayProfile;
use airpace_phy::missed::{Account, chance, information, is_sent};
use airpace_phy::pdcch::{self, CceRange, LEVELS, TransmittedMessage};
use airpace_phy::search::Search;
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, Observation, PhichDuration, PhichResource, Ports};
use airpace_radio::Rnti;
use crowd::Scene;

const CCES: usize = 20;

/// A control region with these transmitted messages and white noise. `mean` is the mean log-likelihood ratio.
fn hear(rng: &mut Rng, number: usize, sent: &[TransmittedMessage], mean: f32) -> Observation {
    let noise = (2.0 * mean).sqrt();
    let mut llrs: Vec<f32> = (0..CCES * 72).map(|_| noise * rng.normal() as f32).collect();
    for sent in sent {
        for (llr, bit) in llrs[sent.place.bits()].iter_mut().zip(sent.coded()) {
            *llr += if bit == 0 { mean } else { -mean };
        }
    }
    let powers =
        llrs.chunks_exact(72).map(|cce| cce.iter().map(|llr| llr * llr).sum::<f32>() / (144.0 * mean));
    let (powers, expected) = (powers.collect(), vec![mean; CCES]);
    let snr_db = 10.0 * (mean / 2.0).log10();
    Observation { number, cfi: 1, llrs, expected, powers, snr_db, ..Observation::default() }
}

fn payload(rng: &mut Rng, carrier: &Carrier, format: Format) -> Payload {
    let block = |rng: &mut Rng| Block { mcs: rng.below(28) as u8, ndi: rng.chance(0.5), rv: 0 };
    let groups = airpace_core::tables::lte::rbg_count(carrier.prbs);
    let allocation = match format {
        Format::F1A => Allocation::Run { start: rng.below(10) as u16, len: 1 + rng.below(10) as u16 },
        _ => Allocation::Groups { map: 1 + rng.below((1 << groups) - 1) as u32 },
    };
    let spatial = match format {
        Format::F2A => Spatial::Layers { swap: false, precoding: 0 },
        _ => Spatial::Plain,
    };
    let first = block(rng);
    let second = (format == Format::F2A).then(|| block(rng));
    let (harq, tpc) = (rng.below(8) as u8, rng.below(4) as u8);
    let message =
        Downlink { format, carrier: None, allocation, first, second, harq, tpc, spatial, srs_request: None };
    pack(carrier, Extras::NONE, Audience::User, &Message::Downlink(message))
}

/// Number of decoded messages and of all messages to known users, with `level` CCEs and `bits` of information per bit, in
/// several bandwidths and formats.
fn share_read(rng: &mut Rng, level: u8, bits: f32, messages: u64) -> (u64, u64) {
    let (mut read, mut all) = (0, 0);
    for (prbs, format) in [(25, Format::F1A), (25, Format::F1), (50, Format::F2A), (100, Format::F1)] {
        let carrier = Carrier::symmetric(prbs, Ports::Two);
        let size = f32::from(carrier.size(format, Extras::NONE)) + 16.0;
        let part = bits * size / (72.0 * f32::from(level));
        // No cell uses a higher code rate.
        if 4.0 * size > 3.0 * 72.0 * f32::from(level) || part >= 0.999 {
            continue;
        }
        let mean = -3.0 * (1.0 - part).ln();
        assert!((information(mean) - part).abs() < 1e-3);
        let caution = Caution { patience: 0, ..Caution::default() };
        let (mut search, mut evidence) = (Search::new(&carrier), Evidence::new(1, carrier, caution));
        let users: Vec<Rnti> = (0..5).map(|user| Rnti(100 + 1009 * user)).collect();
        for index in 0..messages {
            let rnti = users[index as usize % users.len()];
            let number = (index % 10) as usize;
            let places: Vec<CceRange> = pdcch::own_space(rnti, number, CCES, level).collect();
            let place = places[rng.below(places.len() as u64) as usize];
            let sent = TransmittedMessage { rnti, payload: payload(rng, &carrier, format), place };
            // Receive the first 20 subframes without noise, so that the users become known.
            let is_clear = index < 20;
            let observation =
                hear(rng, number, std::slice::from_ref(&sent), if is_clear { 40.0 } else { mean });
            evidence.advance(index);
            let candidates =
                search.candidates(&observation, |rnti| evidence.history().prior(rnti, 0.0)).to_vec();
            let mut found = Vec::new();
            evidence.judge(index, &observation, &candidates, &mut found);
            found.iter().for_each(|found| search.believe(found.rnti, found.payload.len(), found.place.cces));
            if !is_clear {
                let is_it = |found: &airpace_phy::found::Found| {
                    (found.rnti, found.payload, found.place) == (sent.rnti, sent.payload, sent.place)
                };
                all += 1;
                read += u64::from(found.iter().any(is_it));
            }
        }
    }
    (read, all)
}

#[test]
fn the_table_of_chances_is_what_our_own_messages_have() {
    let mut rng = Streams::new(3).stream("phy.chances");
    for level in LEVELS {
        print!("L={level}:");
        for step in 0..9 {
            let bits = 0.8 + 0.2 * step as f32;
            let (read, all) = share_read(&mut rng, level, bits, 100);
            let share = read as f32 / all.max(1) as f32;
            print!("  {bits:.1}: {share:.2} ({:.2})", chance(level, bits));
            assert!(
                all == 0 || (share - chance(level, bits)).abs() < 0.15,
                "{level} CCEs, {bits:.1} bits: {share:.2} are read"
            );
        }
        println!();
    }
}

#[test]
fn transmissions_are_detected_by_their_power() {
    let mut rng = Streams::new(4).stream("phy.powers");
    let mut power = |ratio: f32, is_sent: bool| -> f32 {
        let signal = if is_sent { ratio.sqrt() } else { 0.0 };
        let of = |_| {
            let value = signal + rng.normal() as f32;
            value * value
        };
        (0..72).map(of).sum::<f32>() / 72.0
    };
    for ratio_db in [-3.0, 0.0, 3.0, 10.0] {
        let ratio = libm::exp10f(ratio_db / 10.0);
        let mut mean = |sent| (0..500).map(|_| is_sent(power(ratio, sent), ratio, 0.3)).sum::<f32>() / 500.0;
        let (silent, sent) = (mean(false), mean(true));
        println!("{ratio_db} dB: {silent:.3} where nothing was sent, {sent:.3} where something was");
        // If three of ten CCEs are occupied, the sum of the expected values equals the transmitted CCEs.
        let expected = 0.7 * silent + 0.3 * sent;
        assert!((expected - 0.3).abs() < 0.06, "{ratio_db} dB: {expected:.3} of 0.3");
    }
    assert_eq!(is_sent(f32::NAN, 1.0, 0.3), 1.0, "what is no number is no silence");
    assert!((is_sent(1.0, 0.0, 0.3) - 0.3).abs() < 0.01, "where nothing can be heard nothing is learnt");
}

/// Fading cells at a few decibels: over some hundreds of subframes, the estimate is accurate within some percent.
#[test]
fn the_estimate_of_missed_messages_is_right_on_average() {
    for (ports, snr_db, fading) in [
        (Ports::Two, 6.0, Some((DelayProfile::Epa, 5.0))),
        (Ports::Two, 4.0, Some((DelayProfile::Epa, 5.0))),
        (Ports::Two, 2.0, Some((DelayProfile::Eva, 70.0))),
        (Ports::One, 1.0, None),
        (Ports::Two, 0.0, Some((DelayProfile::Epa, 5.0))),
    ] {
        let cell = Cell {
            pci: 305,
            bandwidth: Bandwidth::from_prbs(25).expect("a bandwidth of LTE"),
            ports,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let scene = Scene {
            cell,
            fft_size: 384,
            users: 6,
            tries: 3,
            extras: Extras::NONE,
            snr_db,
            fading,
            subframes: 1000,
            seed: 8,
        };
        let (samples, sent) = scene.play();
        let (mut recall, mut read, mut all) = (0.0, 0, 0);
        let (mut cces, mut missed_cces, mut subframes) = (0.0, 0.0, 0);
        let mut messages = 0.0;
        for output in blind::decode(scene.fft_size as u64 * 15_000, &samples).0 {
            let Output::Subframe(reading) = output else { continue };
            // Exclude the subframes in which users are not yet known.
            if reading.index < 200 {
                continue;
            }
            let its: Vec<_> = sent.iter().filter(|(at, _)| *at == reading.index).collect();
            let is_read = |sent: &TransmittedMessage| {
                reading.found.iter().any(|found| (found.rnti, found.place) == (sent.rnti, sent.place))
            };
            subframes += 1;
            all += its.len();
            read += its.iter().filter(|(_, sent)| is_read(sent)).count();
            recall += reading.missed.recall * its.len() as f64;
            cces += reading.missed.cces;
            messages += reading.missed.messages;
            missed_cces += its
                .iter()
                .filter(|(_, sent)| !is_read(sent))
                .map(|(_, sent)| f64::from(sent.place.cces))
                .sum::<f64>();
        }
        let (told, share) = (recall / all as f64, read as f64 / all as f64);
        println!(
            "{ports:?}, {snr_db} dB, {fading:?}: {subframes} subframes, {share:.3} of {all} messages read, {told:.3} told; \
             {} messages missed, {messages:.0} told; {missed_cces} CCEs missed, {cces:.0} told",
            all - read
        );
        assert!((told - share).abs() < 0.15, "{share} of {all} messages are read, {told} are told");
        let off = (cces - missed_cces) / (missed_cces + 0.1 * subframes as f64);
        assert!(off.abs() < 0.3, "{missed_cces} CCEs are missed, {cces} are told");
        let missed = (all - read) as f64;
        let off = (messages - missed) / (missed + 0.05 * subframes as f64);
        assert!(off.abs() < 0.3, "{missed} messages are missed, {messages} are told");
    }
}

/// A cell transmits signalling on four CCEs, which is decoded, and data on one CCE with a code rate of 8/9. The latter is
/// almost never decoded if its 72 bits carry less information than the 48 bits of its payload.
#[test]
fn messages_of_a_kind_that_is_hardly_read_are_counted_as_missed() {
    let mut rng = Streams::new(6).stream("phy.hardly");
    let carrier = Carrier::symmetric(100, Ports::Two);
    let caution = Caution { patience: 0, ..Caution::default() };
    let (mut search, mut evidence) = (Search::new(&carrier), Evidence::new(1, carrier, caution));
    let mut account = Account::default();
    let (mut all, mut read, mut recall, mut missed, mut told) = (0, 0, 0.0, 0, 0.0);
    for index in 0..600 {
        let number = (index % 10) as usize;
        let take = |rnti, level, format, rng: &mut Rng| {
            let places: Vec<CceRange> = pdcch::own_space(rnti, number, CCES, level).collect();
            let place = places[rng.below(places.len() as u64) as usize];
            TransmittedMessage { rnti, payload: payload(rng, &carrier, format), place }
        };
        let signalling = take(Rnti(1234), 4, Format::F1A, &mut rng);
        let data = take(Rnti(4321), 1, Format::F2A, &mut rng);
        let mut sent = vec![signalling];
        if rng.chance(0.6) && !data.place.overlaps(signalling.place) {
            sent.push(data);
        }
        let observation = hear(&mut rng, number, &sent, 3.0);
        evidence.advance(index);
        let candidates = search.candidates(&observation, |rnti| evidence.history().prior(rnti, 0.0)).to_vec();
        let mut found = Vec::new();
        evidence.judge(index, &observation, &candidates, &mut found);
        found.iter().for_each(|found| search.believe(found.rnti, found.payload.len(), found.place.cces));
        let reported = account.take(&observation, &found);
        if index >= 200 {
            let is_read = |sent: &&TransmittedMessage| found.iter().any(|found| found.place == sent.place);
            let of_these = sent.iter().filter(is_read).count();
            (all, read, missed) = (all + sent.len(), read + of_these, missed + sent.len() - of_these);
            recall += reported.recall * sent.len() as f64;
            told += reported.messages;
        }
    }
    let (said, share) = (recall / all as f64, read as f64 / all as f64);
    println!("{read} of {all} messages are read, {said:.3} told; {missed} are missed, {told:.0} told");
    assert!(missed > 100 && (said - share).abs() < 0.1, "{share} of the messages are read, {said} are told");
    assert!((told / missed as f64 - 1.0).abs() < 0.2, "{missed} messages are missed, {told} are told");
}

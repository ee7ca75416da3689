//! Properties that must hold for any bits of a control channel, and for everything computed from them.
//!
//! No function in this file may panic on any input. The comment of a function describes what else it checks.

use std::cell::RefCell;
use std::collections::BTreeMap;

use airpace_core::tables::lte::McsTable;
use airpace_core::{Bits, Direction};
use airpace_phy::coding::{Codeword, RateMatcher, Viterbi};
use airpace_phy::dci::{Audience, Carrier, Extras, Format, Message, Payload, pack, parse};
use airpace_phy::evidence::{Caution, Evidence, Meanings};
use airpace_phy::follow::{Follower, OwnSide};
use airpace_phy::found::{Found, RntiKind};
use airpace_phy::grid::BITS_PER_CCE;
use airpace_phy::harq::{Granted, HarqMemory};
use airpace_phy::pbch::{self, FRAMES, Mib};
use airpace_phy::pdcch::{CceRange, LEVELS, TransmittedMessage};
use airpace_phy::search::lanes::{LANES, Lanes};
use airpace_phy::search::{Candidate, Search};
use airpace_phy::{Bandwidth, CyclicPrefix, Observation, PhichDuration, PhichResource, Ports};
use airpace_radio::{Dci, PrbSet, Rnti};

use super::choices::Choices;

fn extras(choices: &mut Choices<'_>) -> Extras {
    let bits = choices.byte();
    Extras { carrier_indicator: bits & 1 != 0, long_csi_request: bits & 2 != 0, srs_request: bits & 4 != 0 }
}

/// A payload of `size` bits.
fn payload(choices: &mut Choices<'_>, size: u8) -> Payload {
    let bits = u64::from_le_bytes([(); 8].map(|()| choices.byte()));
    let bits = if size == 0 { 0 } else { bits >> (64 - u32::from(size.min(64))) };
    Payload::new(bits, size.min(64)).expect("as many bits as the size")
}

/// An RNTI: of one of a few users, a common RNTI, or any number.
fn rnti(choices: &mut Choices<'_>) -> Rnti {
    match choices.byte() {
        at @ 0..8 => Rnti(0x1230 + u16::from(at)),
        8 => Rnti::SYSTEM_INFORMATION,
        9 => Rnti::PAGING,
        10 => Rnti(3),
        _ => Rnti(u16::from_le_bytes([choices.byte(), choices.byte()])),
    }
}

/// Payloads of messages: a parsed payload packs to the same bits and grants only PRBs of its carrier, and its grant can
/// be converted to a message again.
pub fn message(input: &[u8]) {
    let mut choices = Choices(input);
    let mut prbs = || 6 + choices.below(105) as u16;
    let (down, up) = (prbs(), prbs());
    let carrier = Carrier { prbs: down, uplink_prbs: up, ports: choices.of(&Ports::ALL) };
    let extras = extras(&mut choices);
    let audience = choices.of(&[Audience::User, Audience::Everyone]);
    let format = choices.of(&Format::ALL);
    let size = carrier.size(format, extras);
    assert!(size <= 64, "no message has more bits than a payload holds");
    // Sometimes the payload has a size that the format does not have.
    let other = choices.byte();
    let payload = payload(&mut choices, if other > 250 { other % 65 } else { size });
    assert_eq!(payload.to_string().parse(), Ok(payload));
    let Ok(message) = parse(&carrier, extras, audience, format, payload) else { return };
    assert_eq!(payload.len(), size);
    assert_eq!(message.format(), format);
    assert_eq!(pack(&carrier, extras, audience, &message), payload, "{message:?}");
    let whole = PrbSet::run(0, if matches!(message, Message::Uplink(_)) { up } else { down });
    for prbs in message.prbs(&carrier).unwrap_or_default() {
        assert!(prbs.without(whole).is_empty(), "{message:?} leaves the carrier");
    }
    let rnti = if audience == Audience::User { Rnti(0x1234) } else { Rnti::SYSTEM_INFORMATION };
    for table in [McsTable::Qam64, McsTable::Qam256] {
        let Some(dci) = message.to_dci(&carrier, rnti, table) else { continue };
        assert!(dci.mcs.iter().flatten().all(|&mcs| mcs < 32) && dci.layers <= 4, "{dci:?}");
        assert!(dci.tbs.iter().all(|&tbs| tbs <= Bits(400_000)), "{dci:?}");
        // The grant can be converted to a message again, though not always with the same fields.
        let Ok(again) = Message::of_dci(&carrier, &dci) else { continue };
        let back = again.to_dci(&carrier, rnti, table).expect("a grant");
        assert_eq!((back.prbs, back.mcs), (dci.prbs, dci.mcs), "{message:?} and {again:?}");
        let packed = pack(&carrier, Extras::NONE, audience, &again);
        assert_eq!(parse(&carrier, Extras::NONE, audience, again.format(), packed), Ok(again));
    }
    let is_commonly_read = audience == Audience::User || matches!(format, Format::F1A | Format::F1C);
    let is_read = (audience == Audience::Everyone) == (format == Format::F1C) || format == Format::F1A;
    if is_commonly_read && is_read && extras == Extras::NONE {
        let meanings = Meanings::new(carrier);
        let mut readings = meanings.of(audience, payload, true);
        assert!(readings.any(|reading| reading.message == message && !reading.cost.is_nan()));
    }
}

/// Soft values. Transmitted words are decoded correctly, each in its own lane and also by the decoder for single words,
/// even if other lanes contain noise. A decoded master information block is confirmed. A transmitted block is confirmed
/// if at most eight of its bits are wrong.
pub fn trellis(input: &[u8]) {
    let mut choices = Choices(input);
    let len = 1 + choices.below(140);
    let used = choices.below(LANES + 2);
    let loud = choices.byte();
    let soft = |choices: &mut Choices<'_>| {
        let value = i16::from_le_bytes([choices.byte(), choices.byte()]);
        if loud < 200 { value % (1 + i16::from(loud)) } else { value }
    };
    let mut lanes = Lanes::default();
    let mut scalar = Viterbi::default();
    let matcher = RateMatcher::new(len);
    let (mut steps, mut sent, mut alone) = (vec![], vec![], vec![]);
    for lane in 0..used.min(LANES) {
        let is_noise = choices.below(2) == 0;
        let word = (0..len).fold(0u128, |word, _| word << 1 | u128::from(choices.byte() & 1));
        let level = 1 + i16::from(choices.byte());
        let heard: Vec<i16> = if is_noise || len >= 128 {
            (0..choices.below(9 * len)).map(|_| soft(&mut choices)).collect()
        } else {
            let count = 3 * len + choices.below(3 * len);
            let bits = matcher.select(&Codeword::encode(word, len), count).collect::<Vec<_>>();
            bits.into_iter().map(|bit| level - 2 * level * i16::from(bit)).collect()
        };
        lanes.set(lane, &matcher, &heard);
        matcher.combine(&heard, &mut steps);
        alone.push(scalar.decode(&steps).word);
        // A word that is shorter than the code's memory cannot be distinguished from other words.
        sent.push((!is_noise && (7..128).contains(&len)).then_some(word));
    }
    let all = lanes.decode(used);
    for (lane, (decoded, sent)) in all.into_iter().zip(sent).enumerate() {
        if let Some(word) = sent {
            assert_eq!(decoded.word, word, "lane {lane} of words of {len} bits");
            assert_eq!(alone[lane], word, "alone, {len} bits");
        }
        if len < 128 {
            assert_eq!(decoded.word >> len, 0, "a word should have no more bits than were sent");
        }
    }

    let pci = choices.below(usize::from(airpace_phy::Cell::IDENTITIES)) as u16;
    let frames = 1 + choices.below(FRAMES);
    let count = choices.of(&[480, 432, 480, 7, 0]);
    let bits: Vec<Vec<i16>> = (0..frames).map(|_| (0..count).map(|_| soft(&mut choices)).collect()).collect();
    if let Some(pbch::Broadcast { mib, ports, sfn }) = pbch::combine(pci, &bits, &mut scalar) {
        assert_eq!(Mib::parse(mib.pack()), Some(mib));
        assert_eq!((sfn / 4 * 4, sfn < 1024), (mib.sfn, true));
        let confirmed = |soft: &[i16]| pbch::confirm(pci, soft, &mib, ports, sfn, &mut Viterbi::default());
        assert!(
            frames > 1 || confirmed(&bits[0]),
            "a block read from one frame should be confirmed by that frame"
        );
    }

    let cell = airpace_phy::Cell {
        pci,
        bandwidth: choices.of(&Bandwidth::ALL),
        ports: choices.of(&Ports::ALL),
        cp: choices.of(&[CyclicPrefix::Normal, CyclicPrefix::Extended]),
        phich_duration: PhichDuration::Normal,
        phich_resource: choices.of(&PhichResource::ALL),
    };
    let sfn = choices.below(1024) as u16;
    let quads = pbch::encode(&cell, sfn);
    let sent = quads.iter().flatten().flat_map(|symbol| [symbol.re, symbol.im]);
    let mut soft: Vec<i16> = sent.map(|level| (level * 100.0) as i16).collect();
    for _ in 0..8 {
        let at = choices.below(soft.len());
        soft[at] = -soft[at];
    }
    let mib = Mib::new(&cell, sfn);
    assert!(pbch::confirm(pci, &soft, &mib, cell.ports, sfn, &mut scalar), "{cell:?} frame {sfn}");
}

/// With any soft values in subframes: candidates start at positions that their aggregation level allows; accepted
/// messages share no CCE, have a probability as confidence, and are returned at most once; at the end, no message waits
/// for confirmation.
pub fn evidence(input: &[u8]) {
    let mut choices = Choices(input);
    let bandwidth = choices.of(&Bandwidth::ALL);
    let carrier = Carrier::symmetric(bandwidth.prbs(), choices.of(&Ports::ALL));
    let mut search = a_search(&carrier);
    let mut evidence = Evidence::new(1, carrier, Caution::default());
    let mut follower = Follower::new(Rnti(0x1230), 100);
    let mut taken: BTreeMap<u64, Vec<CceRange>> = BTreeMap::new();
    let mut index = choices.number() >> 4;
    for _ in 0..6 {
        if choices.is_over() {
            break;
        }
        index += 1 + choices.number() % 200;
        let cces = choices.below(90);
        let mut observation = Observation {
            sfn: (index / 10 % 1024) as u16,
            number: (index % 10) as usize,
            cfi: 1 + choices.byte() % 3,
            llrs: vec![choices.float(); cces * BITS_PER_CCE],
            snr_db: choices.float(),
            ..Observation::default()
        };
        let sent: Vec<TransmittedMessage> =
            (0..choices.byte() % 8).filter_map(|_| sent(&mut choices, &carrier, cces)).collect();
        for message in &sent {
            let loud = choices.float().abs();
            let place = &mut observation.llrs[message.place.bits()];
            for (llr, bit) in place.iter_mut().zip(message.coded()) {
                *llr = if bit == 0 { loud } else { -loud };
            }
        }
        for _ in 0..choices.byte() % 32 {
            let at = choices.below(observation.llrs.len());
            if let Some(llr) = observation.llrs.get_mut(at) {
                *llr = choices.float();
            }
        }
        evidence.advance(index);
        let history = evidence.history();
        let mut candidates = search.candidates(&observation, |rnti| history.prior(rnti, 0.0)).to_vec();
        for candidate in &candidates {
            let place = candidate.message.place;
            assert!(place.range().end <= cces && place.range().start.is_multiple_of(place.cces.into()));
            assert!(candidate.evidence <= place.bits().len() as f32 * 1.01, "{candidate:?}");
        }
        // These candidates stand for those of any other search.
        candidates.extend(sent.into_iter().map(|message| Candidate {
            message,
            evidence: choices.float(),
            lead: choices.float(),
            apart: choices.float(),
            rarity: choices.float(),
        }));
        let mut out = vec![];
        evidence.judge(index, &observation, &candidates, &mut out);
        check(&out, index, &mut taken, &mut follower, &mut search);
    }
    let mut out = vec![];
    evidence.finish(&mut out);
    check(&out, index, &mut taken, &mut follower, &mut search);
    assert_eq!(evidence.waiting(), 0);
}

/// A copy of a cached search, because creating a search takes longer than all other work.
fn a_search(carrier: &Carrier) -> Search {
    thread_local!(static MADE: RefCell<BTreeMap<(u16, usize), Search>> = RefCell::default());
    let key = (carrier.prbs, carrier.ports.count());
    MADE.with_borrow_mut(|made| made.entry(key).or_insert_with(|| Search::new(carrier)).clone())
}

/// A message at a random position among `cces` CCEs.
fn sent(choices: &mut Choices<'_>, carrier: &Carrier, cces: usize) -> Option<TransmittedMessage> {
    let level = choices.of(&LEVELS);
    let at = choices.below(cces / usize::from(level)) as u16 * u16::from(level);
    let place = CceRange { cce: at, cces: level };
    let size = carrier.size(choices.of(&Format::ALL), extras(choices));
    let sent = TransmittedMessage { rnti: rnti(choices), payload: payload(choices, size), place };
    (place.range().end <= cces).then_some(sent)
}

fn check(
    out: &[Found],
    index: u64,
    taken: &mut BTreeMap<u64, Vec<CceRange>>,
    follower: &mut Follower,
    search: &mut Search,
) {
    for found in out {
        assert!(found.index <= index && (0.0..=1.0).contains(&found.confidence), "{found:?}");
        let others = taken.entry(found.index).or_default();
        assert!(
            !others.iter().any(|other| other.overlaps(found.place)),
            "{found:?} overlaps the CCEs of another message"
        );
        others.push(found.place);
        assert!(found.dci.is_none_or(|dci| dci.rnti == found.rnti));
        search.believe(found.rnti, found.payload.len(), found.place.cces);
        let _ = (found.modulations(), found.allocation(), found.power_command(), found.format());
        let own = follower.take(found);
        assert_eq!(own.is_some(), found.dci.is_some() && found.rnti == follower.rnti());
    }
}

/// Messages in any order: a user's sums contain only the user's own grants, and a HARQ process returns the stored size.
pub fn follow(input: &[u8]) {
    let mut choices = Choices(input);
    let bandwidth = choices.of(&Bandwidth::ALL);
    let carrier = Carrier::symmetric(bandwidth.prbs(), choices.of(&Ports::ALL));
    let mut follower = Follower::new(Rnti(0x1231), choices.number());
    let mut side = OwnSide::new(Rnti(0x1231));
    let mut harq = HarqMemory::default();
    let (mut own, mut new_bits) = (0, 0);
    while !choices.is_over() {
        let index = choices.number();
        if choices.byte() < 16 {
            follower.advance(index);
            let own = side.radio(index, choices.float());
            assert!(own.and_then(|own| own.bits_per_prb).is_none_or(f64::is_finite));
            harq.retain(|rnti| rnti.0 & 1 == 1);
            continue;
        }
        let format = choices.of(&Format::ALL);
        let rnti = rnti(&mut choices);
        let Some(audience) = Audience::of(rnti) else { continue };
        let payload = payload(&mut choices, carrier.size(format, Extras::NONE));
        let Ok(message) = parse(&carrier, Extras::NONE, audience, format, payload) else { continue };
        let mut dci = message.to_dci(&carrier, rnti, choices.of(&[McsTable::Qam64, McsTable::Qam256]));
        if let Some(dci) = &mut dci {
            remember(&mut harq, index, dci);
        }
        let found = Found {
            pci: 1,
            index,
            sfn: (index / 10 % 1024) as u16,
            subframe: (index % 10) as u8,
            cfi: 1,
            rnti,
            kind: RntiKind::of(rnti, &message),
            payload,
            place: CceRange { cce: 0, cces: 1 },
            message,
            extras: Extras::NONE,
            prbs: message.prbs(&carrier),
            dci,
            table: McsTable::Qam64,
            is_table_known: false,
            is_format_known: true,
            snr_db: choices.float(),
            confidence: choices.float(),
        };
        side.hear(&found);
        if let Some(grant) = follower.take(&found) {
            assert!(u32::from(grant.again) + u32::from(grant.unknown) <= 4);
            own += 1;
            new_bits += grant.new_bits.0;
        }
        let sums = [Direction::Downlink, Direction::Uplink].map(|direction| {
            assert!((0.0..=1.0).contains(&follower.sums(direction).retransmitted()));
            let _ = follower.throughput(direction);
            follower.sums(direction)
        });
        assert!(
            sums[0].grants + sums[1].grants <= own && (sums[0].new_bits + sums[1].new_bits).0 <= new_bits
        );
    }
}

fn remember(harq: &mut HarqMemory, index: u64, dci: &mut Dci) {
    for block in 0..2 {
        let Some(mcs) = dci.mcs[block] else { continue };
        let size = (dci.tbs[block] > Bits(0)).then_some(dci.tbs[block]);
        let (direction, process) = (dci.direction, dci.harq.unwrap_or(0));
        let block_number = block as u8;
        let (ndi, sizes) = (dci.ndi[block].unwrap_or(false), [size; 2]);
        let granted = Granted { direction, process, block: block_number, ndi, mcs, sizes };
        let told = harq.grant(dci.rnti, index, granted, McsTable::Qam64);
        assert!(size.is_none() || told.size == size, "a grant that says its size is believed");
        assert!(size.is_some() || told.is_retransmission, "a reserved MCS sends again");
        let past = harq.past_grant(dci.rnti, direction, process, block_number, index);
        assert!(past.is_none_or(|past| past.at < index), "what was held is older");
        dci.tbs[block] = told.size.unwrap_or_default();
        dci.retransmission[block] = told.is_retransmission;
    }
}

//! All kinds of messages in all kinds of cells, decoded without prior knowledge from the first sample. Simulated cells
//! and recordings do not contain all of these kinds.
//!
//! Each user has one transmission mode, as cells configure them, and may get any message in format 1A: localised and
//! distributed grants, and PDCCH orders. Broadcasts are system information, pages and random access responses, in formats
//! 1A and 1C. Groups get power commands. No two grants share a PRB.

use crate::blind;

use std::collections::BTreeMap;

use airpace_core::tables::lte;
use airpace_core::{Rng, Streams};
use airpace_phy::dci::{
    Allocation, Audience, Block, Carrier, Compact, Downlink, Extras, Format, Gap, Message, Order, Payload,
    Power, Spatial, Uplink, pack, parse,
};
use airpace_phy::encode::{Data, Subframe, Transmitter};
use airpace_phy::found::Found;
use airpace_phy::impair::{Conditions, DelayProfile, Impair, noise_power};
use airpace_phy::pdcch::{CceRange, TransmittedMessage, in_common_space, own_space};
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{PrbSet, Rnti};

/// A cell, its users, and its reception quality.
#[derive(Clone, Copy)]
struct Row {
    prbs: u16,
    ports: Ports,
    cp: CyclicPrefix,
    phich: (PhichDuration, PhichResource),
    users: u16,
    /// Whether all RNTIs are assigned to other users with other modes in the middle of the run.
    reuse: bool,
    snr_db: f64,
    fading: (DelayProfile, f64),
    subframes: u64,
}

const ROW: Row = Row {
    prbs: 25,
    ports: Ports::Two,
    cp: CyclicPrefix::Normal,
    phich: (PhichDuration::Normal, PhichResource::One),
    users: 12,
    reuse: false,
    snr_db: 20.0,
    fading: (DelayProfile::Flat, 0.0),
    subframes: 80,
};

const WIDTHS: [u16; 6] = [6, 15, 25, 50, 75, 100];

#[test]
fn every_bandwidth_is_received_at_twenty_decibels() {
    for (prbs, ports) in WIDTHS.into_iter().zip(Ports::ALL.into_iter().cycle()) {
        check(&Row { prbs, ports, ..ROW }, 0.99);
    }
}

#[test]
fn every_bandwidth_is_received_at_five_decibels() {
    for (prbs, ports) in WIDTHS.into_iter().zip(Ports::ALL.into_iter().cycle().skip(1)) {
        check(&Row { prbs, ports, snr_db: 5.0, ..ROW }, 0.97);
    }
}

#[test]
fn extended_prefixes_are_received_at_every_bandwidth() {
    for (prbs, ports) in WIDTHS.into_iter().zip(Ports::ALL.into_iter().cycle().skip(2)) {
        check(&Row { prbs, ports, cp: CyclicPrefix::Extended, ..ROW }, 0.99);
    }
}

#[test]
fn four_fading_ports_are_received() {
    for (prbs, cp, fading) in [
        (6, CyclicPrefix::Normal, (DelayProfile::Epa, 5.0)),
        (15, CyclicPrefix::Normal, (DelayProfile::Eva, 70.0)),
        (50, CyclicPrefix::Extended, (DelayProfile::Etu, 70.0)),
        (75, CyclicPrefix::Normal, (DelayProfile::Eva, 5.0)),
        (100, CyclicPrefix::Normal, (DelayProfile::Etu, 30.0)),
    ] {
        check(&Row { prbs, ports: Ports::Four, cp, fading, ..ROW }, 0.95);
    }
}

#[test]
fn every_phich_configuration_is_received() {
    let durations = [PhichDuration::Normal, PhichDuration::Extended];
    for (at, resource) in PhichResource::ALL.into_iter().enumerate() {
        for duration in durations {
            let prbs = WIDTHS[at + usize::from(duration == PhichDuration::Extended)];
            check(&Row { prbs, phich: (duration, resource), ..ROW }, 0.99);
        }
    }
}

#[test]
fn many_users_and_reassigned_rntis_are_received() {
    check(&Row { prbs: 100, users: 150, ..ROW }, 0.99);
    check(&Row { prbs: 50, users: 150, ..ROW }, 0.99);
    check(&Row { prbs: 50, users: 10, reuse: true, subframes: 120, ..ROW }, 0.99);
}

/// Checks the minimum share of messages that are decoded with correct format, PRBs and MCS, and the maximum number of
/// wrong messages.
#[track_caller]
fn check(row: &Row, least: f64) {
    let (rate_hz, samples, sent) = play(row);
    let believed = blind::believed(rate_hz, &samples);
    let find = |original: &SentMessage| believed.iter().find(|found| is_sent(original, found));
    let mut kinds: BTreeMap<&str, [u32; 3]> = BTreeMap::new();
    for original in &sent {
        let kind = kinds.entry(original.kind).or_default();
        kind[0] += 1;
        if let Some(found) = find(original) {
            kind[1] += 1;
            kind[2] += u32::from(is_meant(original, found));
        }
    }
    let [all, found, right] =
        kinds.values().fold([0; 3], |sum, kind| std::array::from_fn(|at| sum[at] + kind[at]));
    let others: Vec<_> = believed
        .iter()
        .filter(|found| !sent.iter().any(|original| is_sent(original, found)))
        .map(|found| (found.index, found.format(), found.rnti, found.place, found.confidence))
        .collect();
    let misread: Vec<_> = sent
        .iter()
        .filter_map(|original| {
            find(original)
                .filter(|found| !is_meant(original, found))
                .map(|found| (original.message, found.message))
        })
        .collect();
    let about = format!(
        "{} PRBs, {:?}, {:?} prefix, {:?}, {} users, {} dB, {:?}: {found} of {all} found, {right} as meant; \
         by kind {kinds:?}; others {others:?}; misread {misread:?}",
        row.prbs, row.ports, row.cp, row.phich, row.users, row.snr_db, row.fading
    );
    println!("{about}");
    let share = |part: u32, of: u32| f64::from(part) / f64::from(of.max(1));
    assert!(share(found, all) >= least, "too few are found: {about}");
    assert!(share(right, found) >= 0.99, "too many are misread: {about}");
    assert!(share(others.len() as u32, believed.len() as u32) <= 0.01, "too many are false: {about}");
    let unheard: Vec<_> = kinds.iter().filter(|(_, [all, found, _])| *all >= 5 && 2 * found < *all).collect();
    assert!(unheard.is_empty(), "no kind is unheard: {unheard:?}: {about}");
}

/// A transmitted message, and its interpretation.
struct SentMessage {
    index: u64,
    sent: TransmittedMessage,
    message: Message,
    kind: &'static str,
}

/// Whether a decoded message is the transmitted one: same bits, RNTI and place.
fn is_sent(original: &SentMessage, found: &Found) -> bool {
    let SentMessage { index, sent, .. } = original;
    (*index, sent.rnti, sent.payload, sent.place) == (found.index, found.rnti, found.payload, found.place)
}

/// Whether a message with these bits was decoded with its correct interpretation. The bits do not distinguish 1B from 1D,
/// 2A from 2B, or 3 from 3A.
fn is_meant(original: &SentMessage, found: &Found) -> bool {
    match (&original.message, &found.message) {
        (Message::Downlink(sent), Message::Downlink(found)) => {
            let likeness = |format| match format {
                Format::F1D => Format::F1B,
                Format::F2B => Format::F2A,
                other => other,
            };
            likeness(sent.format) == likeness(found.format)
                && (sent.allocation, sent.first, sent.second, sent.tpc)
                    == (found.allocation, found.first, found.second, found.tpc)
        }
        (Message::Power(_), Message::Power(_)) => true,
        (sent, found) => sent == found,
    }
}

/// Sample rate, received samples and transmitted messages.
fn play(row: &Row) -> (u64, Vec<Complex32>, Vec<SentMessage>) {
    let bandwidth = Bandwidth::from_prbs(row.prbs).expect("a bandwidth of LTE");
    let cell = Cell {
        pci: 3 * row.prbs + row.users,
        bandwidth,
        ports: row.ports,
        cp: row.cp,
        phich_duration: row.phich.0,
        phich_resource: row.phich.1,
    };
    let fft_size =
        [128, 256, 384, 768, 1152, 1536][WIDTHS.iter().position(|prbs| *prbs == row.prbs).unwrap()];
    let rate_hz = fft_size as u64 * 15_000;
    let streams = Streams::new(u64::from(row.prbs) + u64::from(row.users));
    let amplitude = 1.0 / (fft_size as f32).sqrt();
    let mut transmitter = Transmitter::new(cell, fft_size, amplitude).expect("an FFT size");
    let (profile, doppler_hz) = row.fading;
    let noise_power = noise_power(row.snr_db, fft_size, amplitude);
    let conditions =
        Conditions { profile, doppler_hz, noise_power, cfo_hz: 400.0, ..Conditions::perfect(rate_hz as f64) };
    let mut impair = Impair::new(conditions, row.ports.count(), &streams);
    let mut town = Town::new(row, streams.stream("phy.kinds"));
    let (mut samples, mut all) = (Vec::new(), Vec::new());
    let mut ports = vec![Vec::new(); row.ports.count()];
    // Start shortly before the wrap of frame numbers.
    const FIRST: u64 = 1021;
    for at in 0..row.subframes {
        if row.reuse && at == row.subframes / 2 {
            town.change_hands();
        }
        let number = (at % 10) as usize;
        let least = cell.least_cfi();
        let cfi = least + town.rng.below(u64::from(4 - least)) as u8;
        let originals = town.subframe(at, transmitter.encoder().cces(cfi), row.snr_db);
        let messages: Vec<TransmittedMessage> = originals.iter().map(|original| original.sent).collect();
        let data: Vec<Data> = originals
            .iter()
            .filter(|original| !matches!(original.message, Message::Uplink(_)))
            .filter_map(|original| {
                Some(Data { rnti: original.sent.rnti, prbs: original.message.prbs(&town.carrier)? })
            })
            .collect();
        let sfn = ((FIRST + at / 10) % 1024) as u16;
        let subframe = Subframe { sfn, number, cfi, messages: &messages, answers: &[], data: &data };
        ports.iter_mut().for_each(Vec::clear);
        transmitter.send(&subframe, &mut ports).expect("a subframe that can be sent");
        impair.push(&ports, &mut samples);
        all.extend(
            originals
                .into_iter()
                .map(|original| SentMessage { index: FIRST * 10 + original.index, ..original }),
        );
    }
    (rate_hz, samples, all)
}

/// A user: its mode, and its last transmitted block in each HARQ process.
struct User {
    rnti: Rnti,
    mode: Format,
    processes: [[Block; 2]; 8],
    uplink: [Block; 8],
}

/// Users of a cell.
struct Town {
    carrier: Carrier,
    users: Vec<User>,
    groups: [(Rnti, Format); 2],
    rng: Rng,
}

impl Town {
    fn new(row: &Row, mut rng: Rng) -> Town {
        let carrier = Carrier::symmetric(row.prbs, row.ports);
        let groups = [(Rnti(0x2222), Format::F3), (Rnti(0x3333), Format::F3A)];
        let mut rntis: Vec<u16> = (0..row.users).map(|at| 0x0100 + at * 257).collect();
        rng.shuffle(&mut rntis);
        let users = rntis.into_iter().map(|rnti| User::new(Rnti(rnti), &carrier, &mut rng)).collect();
        Town { carrier, users, groups, rng }
    }

    fn change_hands(&mut self) {
        for user in &mut self.users {
            *user = User::new(user.rnti, &self.carrier, &mut self.rng);
        }
    }

    /// Messages of a subframe.
    fn subframe(&mut self, at: u64, cces: usize, snr_db: f64) -> Vec<SentMessage> {
        let mut originals: Vec<SentMessage> = Vec::new();
        let mut taken = [PrbSet::EMPTY; 3];
        let number = (at % 10) as usize;
        for _ in 0..24 {
            let Some((rnti, kind, message)) = self.message(at) else { continue };
            if originals.iter().any(|other| other.sent.rnti == rnti) {
                continue;
            }
            let audience = match message {
                Message::Power(_) => Audience::User,
                _ => Audience::of(rnti).expect("an RNTI in use"),
            };
            let payload = pack(&self.carrier, Extras::NONE, audience, &message);
            if parse(&self.carrier, Extras::NONE, audience, message.format(), payload) != Ok(message) {
                continue;
            }
            let wanted = message.prbs(&self.carrier).unwrap_or_default();
            let wanted = match message {
                Message::Uplink(_) => [PrbSet::EMPTY, PrbSet::EMPTY, wanted[0].union(wanted[1])],
                _ => [wanted[0], wanted[1], PrbSet::EMPTY],
            };
            let is_free = |(wanted, taken): (&PrbSet, &PrbSet)| wanted.without(*taken) == *wanted;
            if !wanted.iter().zip(&taken).all(is_free) {
                continue;
            }
            let is_common = audience == Audience::Everyone || matches!(message, Message::Power(_));
            let bits = usize::from(payload.len()) + 16;
            // In worse reception conditions, messages use a lower code rate.
            let (part, whole) = if snr_db < 10.0 { (3, 8) } else { (3, 4) };
            let places: Vec<CceRange> = [1, 2, 4, 8]
                .into_iter()
                .flat_map(|level| -> Vec<CceRange> {
                    if is_common {
                        let there = |place: &CceRange| place.cces == level && in_common_space(*place, cces);
                        CceRange::all(cces).filter(there).collect()
                    } else {
                        own_space(rnti, number, cces, level).collect()
                    }
                })
                .filter(|place| place.range().end <= cces && whole * bits <= part * place.bits().len())
                .filter(|place| !originals.iter().any(|other| other.sent.place.overlaps(*place)))
                .collect();
            if places.is_empty() {
                continue;
            }
            let place = places[self.rng.below(places.len() as u64) as usize];
            for (taken, wanted) in taken.iter_mut().zip(wanted) {
                *taken = taken.union(wanted);
            }
            self.commit(at, rnti, &message);
            originals.push(SentMessage {
                index: at,
                sent: TransmittedMessage { rnti, payload, place },
                message,
                kind,
            });
        }
        originals.sort_by_key(|original| original.sent.place);
        originals
    }

    /// A message for some user, if the random values give a valid one.
    fn message(&mut self, at: u64) -> Option<(Rnti, &'static str, Message)> {
        match self.rng.below(16) {
            0 => {
                let rnti = [Rnti::SYSTEM_INFORMATION, Rnti::PAGING, Rnti(1 + at as u16 % 10)];
                let rnti = rnti[self.rng.below(3) as usize];
                let (allocation, kind) = if self.rng.chance(0.5) {
                    (self.run(8)?, "1A to all")
                } else {
                    (self.distributed(8, 1)?, "1A distributed to all")
                };
                let block = Block { mcs: self.rng.below(20) as u8, ndi: false, rv: self.rng.below(4) as u8 };
                let tpc = self.rng.below(2) as u8;
                Some((rnti, kind, Message::Downlink(downlink(Format::F1A, allocation, block, 0, tpc))))
            }
            1 => {
                let rnti = [Rnti::SYSTEM_INFORMATION, Rnti::PAGING, Rnti(1 + at as u16 % 10)];
                let rnti = rnti[self.rng.below(3) as usize];
                let step = if self.carrier.prbs < 50 { 2 } else { 4 };
                let allocation = self.distributed(4 * step, step)?;
                let compact = Compact { allocation, i_tbs: self.rng.below(32) as u8 };
                Some((rnti, "1C", Message::Compact(compact)))
            }
            2 => {
                let (rnti, format) = self.groups[self.rng.below(2) as usize];
                let len = self.carrier.size(format, Extras::NONE);
                // Two bits each; 01 means no change. Format 3 leaves an odd bit at the end.
                let pair = |rng: &mut Rng| if rng.chance(0.3) { rng.below(4) } else { 1 };
                let bits = (0..len / 2).fold(0, |bits, _| bits << 2 | pair(&mut self.rng));
                let odd = if format == Format::F3 { 0 } else { len % 2 };
                let commands = Payload::new(bits << odd, len / 2 * 2 + odd)?;
                let kind = if format == Format::F3 { "3" } else { "3A" };
                Some((rnti, kind, Message::Power(Power { format, commands })))
            }
            3..7 => self.uplink(at),
            7..10 => self.fallback(),
            _ => self.of_mode(),
        }
    }

    fn uplink(&mut self, at: u64) -> Option<(Rnti, &'static str, Message)> {
        let Allocation::Run { start, len } = self.run(12)? else { return None };
        let hopping =
            self.rng.chance(0.1).then(|| self.rng.below(if self.carrier.prbs < 50 { 2 } else { 4 }) as u8);
        let user = self.rng.below(self.users.len() as u64) as usize;
        let user = &self.users[user];
        let ndi = !user.uplink[(at % 8) as usize].ndi;
        let message = Message::Uplink(Uplink {
            carrier: None,
            hopping,
            start,
            len: lte::pusch_size_within(len),
            mcs: self.rng.below(29) as u8,
            ndi,
            tpc: 1,
            cyclic_shift: self.rng.below(8) as u8,
            csi_request: u8::from(self.rng.chance(0.1)),
            srs_request: None,
        });
        Some((user.rnti, if hopping.is_some() { "0 hopping" } else { "0" }, message))
    }

    /// A message that any user may get in format 1A.
    fn fallback(&mut self) -> Option<(Rnti, &'static str, Message)> {
        let user = self.rng.below(self.users.len() as u64) as usize;
        let rnti = self.users[user].rnti;
        if self.rng.chance(0.15) {
            let order = Order { carrier: None, preamble: self.rng.below(64) as u8, mask: 0 };
            return Some((rnti, "1A order", Message::Order(order)));
        }
        let (allocation, kind) = match self.rng.below(3) {
            0 => (self.run(12)?, "1A"),
            _ => (self.distributed(16, 1)?, "1A distributed"),
        };
        let (harq, [block, _]) = self.users[user].blocks(&mut self.rng);
        Some((rnti, kind, Message::Downlink(downlink(Format::F1A, allocation, block, harq, 1))))
    }

    /// A grant in the format of a user's mode.
    fn of_mode(&mut self) -> Option<(Rnti, &'static str, Message)> {
        let user = self.rng.below(self.users.len() as u64) as usize;
        let format = self.users[user].mode;
        let (harq, [first, second]) = self.users[user].blocks(&mut self.rng);
        let is_run = matches!(format, Format::F1B | Format::F1D);
        let allocation = match self.rng.below(2) {
            _ if is_run => self.run(12)?,
            // Use subsets only if the carrier has enough RBGs.
            0 if self.carrier.prbs > 10 => self.subset(),
            _ => self.groups()?,
        };
        let tpmi = self.rng.below(if self.carrier.ports == Ports::Four { 16 } else { 4 }) as u8;
        let is_single = self.rng.chance(0.3);
        let has_two = matches!(format, Format::F2 | Format::F2A | Format::F2B);
        let message = Downlink {
            second: has_two.then_some(if is_single { Block::DISABLED } else { second }),
            spatial: match format {
                Format::F1B => Spatial::Beam { tpmi, reported: false },
                Format::F1D => Spatial::Shared { tpmi, offset: self.rng.chance(0.5) },
                Format::F2 | Format::F2A => {
                    Spatial::Layers { swap: !is_single && self.rng.chance(0.5), precoding: 0 }
                }
                Format::F2B => Spatial::Dual { scrambling: self.rng.chance(0.5) },
                _ => Spatial::Plain,
            },
            ..downlink(format, allocation, first, harq, 1)
        };
        Some((self.users[user].rnti, format.name(), Message::Downlink(message)))
    }

    fn run(&mut self, most: u16) -> Option<Allocation> {
        let start = self.rng.below(self.carrier.prbs.into()) as u16;
        let len = 1 + self.rng.below((self.carrier.prbs - start).min(most).into()) as u16;
        Some(Allocation::Run { start, len })
    }

    fn distributed(&mut self, most: u16, step: u16) -> Option<Allocation> {
        let gaps = [Gap::First, Gap::Second];
        let gap = gaps[self.rng.below(2) as usize];
        if !gap.exists(self.carrier.prbs) {
            return None;
        }
        let blocks = gap.virtual_blocks(self.carrier.prbs) / step;
        let start = self.rng.below(blocks.into()) as u16;
        let len = 1 + self.rng.below((blocks - start).min(most / step).into()) as u16;
        Some(Allocation::Distributed { gap, start: start * step, len: len * step })
    }

    fn groups(&mut self) -> Option<Allocation> {
        let groups = u64::from(lte::rbg_count(self.carrier.prbs));
        let map = (0..2).fold(0, |map, _| map | 1 << self.rng.below(groups));
        Some(Allocation::Groups { map })
    }

    fn subset(&mut self) -> Allocation {
        use airpace_phy::dci::allocation::subset_map_bits;
        let prbs = self.carrier.prbs;
        let bits = u64::from(subset_map_bits(prbs));
        let map = 1 << self.rng.below(bits) | 1 << self.rng.below(bits);
        let subsets = u64::from(lte::rbg_size(prbs));
        Allocation::Subset { subset: self.rng.below(subsets) as u8, shift: self.rng.chance(0.5), map }
    }

    /// Stores the blocks that were actually transmitted.
    fn commit(&mut self, at: u64, rnti: Rnti, message: &Message) {
        let Some(user) = self.users.iter_mut().find(|user| user.rnti == rnti) else { return };
        match message {
            Message::Uplink(uplink) => user.uplink[(at % 8) as usize].ndi = uplink.ndi,
            Message::Downlink(downlink) => {
                let process = &mut user.processes[usize::from(downlink.harq)];
                process[0] = downlink.first;
                if let Some(second) = downlink.second.filter(|second| !second.is_disabled()) {
                    process[1] = second;
                }
            }
            _ => {}
        }
    }
}

impl User {
    fn new(rnti: Rnti, carrier: &Carrier, rng: &mut Rng) -> User {
        let modes: &[Format] = match carrier.ports {
            Ports::One => &[Format::F1, Format::F1, Format::F2B],
            _ => &[Format::F1, Format::F1B, Format::F1D, Format::F2, Format::F2A, Format::F2B],
        };
        let mode = modes[rng.below(modes.len() as u64) as usize];
        User { rnti, mode, processes: Default::default(), uplink: Default::default() }
    }

    /// New data for a process, or sometimes a retransmission.
    fn blocks(&self, rng: &mut Rng) -> (u8, [Block; 2]) {
        let harq = rng.below(8) as u8;
        let is_again = rng.chance(0.1);
        let blocks = self.processes[usize::from(harq)].map(|last| match is_again && last.mcs > 0 {
            // A reserved MCS contains only the modulation.
            true => Block {
                mcs: if last.mcs < 29 { 29 + (last.mcs / 10).min(2) } else { last.mcs },
                rv: 2,
                ..last
            },
            false => Block { mcs: 1 + rng.below(28) as u8, ndi: !last.ndi, rv: 0 },
        });
        (harq, blocks)
    }
}

fn downlink(format: Format, allocation: Allocation, first: Block, harq: u8, tpc: u8) -> Downlink {
    let spatial = Spatial::Plain;
    Downlink { format, carrier: None, allocation, first, second: None, harq, tpc, spatial, srs_request: None }
}

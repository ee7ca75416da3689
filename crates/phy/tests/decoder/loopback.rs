//! Loopback on a perfect channel: messages → grid → samples → grid → the same messages.

use crate::reference;

use airpace_core::tables::lte;
use airpace_core::{Rng, Streams};
use airpace_phy::dci::{
    Allocation, Audience, Block, Carrier, Downlink, Extras, Format, Message, Order, Payload,
};
use airpace_phy::dci::{Power, Spatial, Uplink, pack, parse};
use airpace_phy::diversity::Quad;
use airpace_phy::encode::{Data, Refused, Subframe, Transmitter};
use airpace_phy::grid::{ControlRegion, Grid, Reg};
use airpace_phy::ofdm::Demodulator;
use airpace_phy::pdcch::{CceRange, TransmittedMessage, in_search_space};
use airpace_phy::phich::Answer;
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Numerology, Observation, Observer, PhichDuration,
    PhichResource, Ports, pbch, phich,
};
use airpace_radio::Rnti;
use reference::Receiver;

/// Channels from the ports to the receive antenna.
const GAINS: [Complex32; 4] = [
    Complex32::new(0.8, 0.3),
    Complex32::new(-0.2, 0.7),
    Complex32::new(0.5, -0.6),
    Complex32::new(-0.9, -0.1),
];

fn received(ports: &[Vec<Complex32>]) -> Vec<Complex32> {
    let at = |sample: usize| ports.iter().zip(GAINS).map(|(port, gain)| port[sample] * gain).sum();
    (0..ports[0].len()).map(at).collect()
}

/// Messages in many formats, as many as fit, each in its receiver's search space.
fn messages(rng: &mut Rng, carrier: &Carrier, subframe: usize, cces: usize) -> Vec<TransmittedMessage> {
    let mut sent: Vec<TransmittedMessage> = Vec::new();
    for _ in 0..40 {
        let rnti = match rng.below(12) {
            0 => Rnti::SYSTEM_INFORMATION,
            1 => Rnti(1 + rng.below(60) as u16),
            _ => Rnti(0x100 + rng.below(0xF000) as u16),
        };
        let audience = Audience::of(rnti).expect("an RNTI in use");
        let message = message(rng, carrier, audience);
        let payload = pack(carrier, Extras::NONE, audience, &message);
        assert_eq!(parse(carrier, Extras::NONE, audience, message.format(), payload), Ok(message));
        let bits = usize::from(payload.len()) + 16;
        // No base station uses a code rate with almost no redundancy.
        let possible: Vec<CceRange> = CceRange::all(cces)
            .filter(|place| 4 * bits <= 3 * place.bits().len())
            .filter(|place| in_search_space(rnti, subframe, cces, *place))
            .filter(|place| !sent.iter().any(|other| other.place.overlaps(*place)))
            .collect();
        if !possible.is_empty() {
            let place = possible[rng.below(possible.len() as u64) as usize];
            sent.push(TransmittedMessage { rnti, payload, place });
        }
    }
    sent.sort_by_key(|message| message.place);
    sent
}

fn message(rng: &mut Rng, carrier: &Carrier, audience: Audience) -> Message {
    let prbs = u64::from(carrier.prbs);
    let start = rng.below(prbs);
    let run = Allocation::Run { start: start as u16, len: 1 + rng.below(prbs - start) as u16 };
    let block = |rng: &mut Rng| Block { mcs: rng.below(29) as u8, ndi: rng.chance(0.5), rv: 0 };
    let grant = Downlink {
        format: Format::F1A,
        carrier: None,
        allocation: run,
        first: block(rng),
        second: None,
        harq: rng.below(8) as u8,
        tpc: rng.below(4) as u8,
        spatial: Spatial::Plain,
        srs_request: None,
    };
    if audience == Audience::Everyone {
        return Message::Downlink(grant);
    }
    let groups = u64::from(lte::rbg_count(carrier.prbs));
    let groups = Allocation::Groups { map: 1 + rng.below((1 << groups) - 1) as u32 };
    let two = |rng: &mut Rng, format| Downlink {
        format,
        allocation: groups,
        second: Some(block(rng)),
        spatial: Spatial::Layers { swap: false, precoding: 0 },
        ..grant
    };
    match rng.below(8) {
        0 => Message::Downlink(grant),
        1 => Message::Downlink(Downlink { format: Format::F1, allocation: groups, ..grant }),
        2 => Message::Downlink(two(rng, Format::F2)),
        3 => Message::Downlink(two(rng, Format::F2A)),
        4 => Message::Order(Order { carrier: None, preamble: rng.below(64) as u8, mask: 0 }),
        5 => Message::Downlink(Downlink {
            format: Format::F1D,
            spatial: Spatial::Shared { tpmi: rng.below(4) as u8, offset: false },
            ..grant
        }),
        6 => {
            let len = carrier.size(Format::F3A, Extras::NONE);
            let bits = rng.below(1 << len);
            Message::Power(Power {
                format: Format::F3A,
                commands: Payload::new(bits, len).expect("as many bits as the size"),
            })
        }
        _ => {
            let Allocation::Run { start, len } = run else { unreachable!("a run was drawn") };
            Message::Uplink(Uplink {
                carrier: None,
                hopping: None,
                start,
                len: lte::pusch_size_within(len),
                mcs: rng.below(29) as u8,
                ndi: rng.chance(0.5),
                tpc: 1,
                cyclic_shift: rng.below(8) as u8,
                csi_request: 0,
                srs_request: None,
            })
        }
    }
}

/// Transmits ten subframes of a cell, and decodes them. Returns the number of messages.
fn ring(cell: Cell, fft_size: usize, seed: u64) -> usize {
    let mut rng = Streams::new(seed).stream("phy.loopback");
    let carrier = Carrier::symmetric(cell.bandwidth.prbs(), cell.ports);
    let numerology = Numerology::new(cell.bandwidth, cell.cp, fft_size).expect("an FFT size");
    let mut transmitter = Transmitter::new(cell, fft_size, 0.02).expect("an FFT size");
    let mut demodulator = Demodulator::new(numerology);
    let mut receiver = Receiver::new(cell, 0.98);
    let observer = Observer::new(cell);
    let mut grid = Grid::new(&cell);
    let mut total = 0;
    for number in 0..10 {
        let sfn = 421;
        let least = cell.least_cfi();
        let cfi = least + rng.below(u64::from(4 - least)) as u8;
        let cces = transmitter.encoder().cces(cfi);
        let sent = messages(&mut rng, &carrier, number, cces);
        let data: Vec<Data> = sent
            .iter()
            .filter_map(|sent| {
                let audience = Audience::of(sent.rnti)?;
                let message = parse(&carrier, Extras::NONE, audience, Format::F1A, sent.payload).ok()?;
                Some(Data { rnti: sent.rnti, prbs: message.prbs(&carrier)? })
            })
            .collect();
        let answers = [
            Answer { group: 0, sequence: 1, ack: true },
            Answer { group: cell.phich_groups() - 1, sequence: 2, ack: false },
        ];
        let subframe = Subframe { sfn, number, cfi, messages: &sent, answers: &answers, data: &data };
        let mut ports = vec![Vec::new(); cell.ports.count()];
        transmitter.send(&subframe, &mut ports).expect("a subframe that can be sent");
        let samples = received(&ports);
        assert_eq!(samples.len(), numerology.subframe_samples());

        demodulator.demodulate(&samples, usize::MAX, &mut grid).expect("a whole subframe");
        // Normalise to an amplitude of one.
        for symbol in 0..grid.symbols() {
            grid.symbol_mut(symbol).iter_mut().for_each(|element| *element /= 0.02);
        }
        if number == 0 {
            let expected = Some(pbch::Broadcast { mib: pbch::Mib::new(&cell, sfn), ports: cell.ports, sfn });
            assert_eq!(receiver.broadcast(&grid), expected, "{cell:?}");
        }
        let reading = receiver.read(number, &grid);
        assert_eq!((reading.cfi, reading.cces), (cfi, cces), "{cell:?}");
        let found: Vec<TransmittedMessage> = reading.found.iter().map(|found| found.message).collect();
        assert_eq!(found, sent, "what was sent is read, no more and no less: {cell:?} subframe {number}");
        hears_answers(&cell, number, &grid, &answers);
        observes(&observer, number, cfi, &grid, &sent);
        total += sent.len();
    }
    total
}

/// The soft bits of every message have the signs of its transmitted bits.
fn observes(observer: &Observer, number: usize, cfi: u8, grid: &Grid, sent: &[TransmittedMessage]) {
    let channel = reference::estimate(observer.cell(), number, 0, grid);
    let mut observation = Observation { number, ..Observation::default() };
    observer.cfi([(grid, &channel)], &mut observation);
    assert_eq!(observation.cfi, cfi);
    let (margin, fit) = (observation.cfi_margin, observation.cfi_fit);
    assert!(margin > 10.0 && fit > 0.99, "without noise there is no doubt about the CFI: {margin}, {fit}");
    observer.bits([(grid, &channel)], &mut observation);
    assert_eq!(observation.cces(), observer.region(cfi).cces());
    for message in sent {
        let bits: Vec<u8> =
            observation.llrs[message.place.bits()].iter().map(|llr| u8::from(*llr < 0.0)).collect();
        assert_eq!(bits, message.coded(), "{:?} of subframe {number}", message.place);
        for cce in message.place.range() {
            let heard = observation.cce(cce).iter().map(|llr| llr.abs()).sum::<f32>() / 72.0;
            let share = heard / observation.expected[cce];
            assert!((share - 1.0).abs() < 0.02, "{share} of what is expected is heard of CCE {cce}");
        }
    }
}

fn hears_answers(cell: &Cell, subframe: usize, grid: &Grid, answers: &[Answer]) {
    let region = ControlRegion::new(cell, 1).expect("a CFI of 1");
    let h: [Quad; 4] = std::array::from_fn(|port| [GAINS[port]; 4]);
    for answer in answers {
        let unit: &[Reg; 3] = &region.phich[phich::unit(cell.cp, answer.group)];
        let y = [0, 1, 2].map(|i| grid.quad(&unit[i]));
        let scrambling = phich::scrambling(cell.pci, subframe);
        let (levels, full) = phich::levels(cell, &scrambling, answer.group, &y, &[h; 3]);
        let heard = levels[answer.sequence] / full;
        let expected = if answer.ack { 1.0 } else { -1.0 };
        assert!((heard - expected).abs() < 0.01, "{answer:?} sounds like {heard} in {cell:?}");
        let silent = levels[0] / full;
        assert!(silent.abs() < 0.01, "nobody was answered with sequence 0, yet it sounds like {silent}");
    }
}

fn cell(pci: u16, prbs: u16, ports: Ports) -> Cell {
    Cell {
        pci,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    }
}

#[test]
fn narrow_cells_come_back() {
    for (seed, ports) in Ports::ALL.into_iter().enumerate() {
        assert!(ring(cell(9, 6, ports), 128, seed as u64) > 0);
        assert!(ring(cell(503, 15, ports), 256, 10 + seed as u64) > 20);
    }
}

#[test]
fn middling_cells_come_back_at_unusual_sample_rates() {
    assert!(ring(cell(214, 25, Ports::Two), 384, 20) > 30);
    assert!(ring(cell(88, 50, Ports::Four), 768, 21) > 50);
}

#[test]
fn a_wide_cell_comes_back() {
    assert!(ring(cell(407, 100, Ports::Two), 1536, 30) > 100);
}

#[test]
fn extended_prefixes_and_phichs_come_back() {
    for (seed, ports) in Ports::ALL.into_iter().enumerate() {
        let base = cell(301, 25, ports);
        ring(Cell { cp: CyclicPrefix::Extended, ..base }, 512, 40 + seed as u64);
        ring(Cell { phich_duration: PhichDuration::Extended, ..base }, 512, 50 + seed as u64);
        let both = Cell { cp: CyclicPrefix::Extended, phich_duration: PhichDuration::Extended, ..base };
        ring(Cell { phich_resource: PhichResource::Two, ..both }, 512, 60 + seed as u64);
    }
}

#[test]
fn what_no_cell_could_send_is_refused() {
    let cell = cell(1, 6, Ports::One);
    let mut transmitter = Transmitter::new(cell, 128, 1.0).expect("an FFT size");
    let payload = Payload::new(5, 21).expect("21 bits");
    let at = |cce, cces| TransmittedMessage { rnti: Rnti(300), payload, place: CceRange { cce, cces } };
    let mut refused = |number, cfi, messages: &[TransmittedMessage]| {
        let subframe = Subframe { sfn: 0, number, cfi, messages, answers: &[], data: &[] };
        transmitter.send(&subframe, &mut [Vec::new()]).err()
    };
    assert_eq!(refused(0, 1, &[at(0, 1), at(1, 1)]), None);
    assert_eq!(refused(10, 1, &[]), Some(Refused::Number));
    assert_eq!(refused(0, 4, &[]), Some(Refused::Cfi { cfi: 4, least: 1 }));
    assert_eq!(refused(0, 3, &[at(4, 8)]), Some(Refused::Place { cce: 4, cces: 6 }));
    assert_eq!(refused(0, 3, &[at(0, 2), at(1, 1)]), Some(Refused::Overlap { cce: 1 }));
}

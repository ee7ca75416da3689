//! Captures of cells recorded by other projects match their README: `$AIRPACE_DATA/radio/captures`.

use crate::recordings;
use crate::reference;

use airpace_core::Direction;
use airpace_phy::channel::Estimator;
use airpace_phy::dci::{Audience, Carrier, Extras, Format, parse};
use airpace_phy::decoder::{Decoder, Options, Output, Reading};
use airpace_phy::found::RntiKind;
use airpace_phy::grid::{ControlRegion, Grid};
use airpace_phy::ladder::Rung;
use airpace_phy::modulation::soft_bits;
use airpace_phy::ofdm::Demodulator;
use airpace_phy::pdcch::{CceRange, descramble};
use airpace_phy::{
    Bandwidth, Cell, Channel, Complex32, CyclicPrefix, Numerology, PhichDuration, PhichResource, Ports, pbch,
    pcfich, phich,
};
use airpace_radio::DciFormat;
use recordings::data;
use reference::{Receiver, agreement};

/// Captures consist of 32-bit complex floats.
fn capture(name: &str) -> Option<Vec<Complex32>> {
    let bytes = std::fs::read(data("radio")?.join("captures").join(name)).expect("a capture");
    let number = |at: &[u8]| f32::from_le_bytes([at[0], at[1], at[2], at[3]]);
    Some(bytes.chunks_exact(8).map(|pair| Complex32::new(number(&pair[..4]), number(&pair[4..]))).collect())
}

/// All outputs of a decoder for some samples, without prior knowledge.
fn decode(rate_hz: u64, samples: &[Complex32]) -> (Decoder, Vec<Cell>, Vec<Reading>) {
    let mut decoder = Decoder::new(Options::new(rate_hz)).expect("a rate that is enough");
    decoder.push(samples);
    decoder.finish();
    let (mut cells, mut readings) = (vec![], vec![]);
    while let Some(output) = decoder.pop() {
        match output {
            Output::Locked(lock) => cells.push(lock.cell),
            Output::Subframe(reading) => readings.push(reading),
            Output::Late(late) => {
                for found in late {
                    let of = readings.iter_mut().find(|reading| reading.index == found.index);
                    of.expect("its subframe was read").found.push(found);
                }
            }
            Output::Lost | Output::Moved(_) => {}
        }
    }
    (decoder, cells, readings)
}

#[test]
fn a_narrow_cell_announces_its_system_information() {
    let Some(samples) = capture("signal.1.92M.amar.dat") else { return };
    let (_, cells, readings) = decode(1_920_000, &samples);
    let about: Vec<_> =
        cells.iter().map(|cell| (cell.pci, cell.bandwidth.prbs(), cell.ports.count())).collect();
    assert_eq!(about, [(1, 6, 1)]);
    assert!(readings.len() >= 9, "of ten milliseconds {} subframes were heard", readings.len());
    let second = readings.iter().find(|reading| reading.subframe == 2).expect("subframe 2");
    assert_eq!(second.cfi, 3);
    let announced: Vec<_> =
        second.found.iter().filter(|found| found.kind == RntiKind::SystemInformation).collect();
    let [found] = announced[..] else { panic!("one announcement: {announced:?}") };
    assert_eq!((found.format(), found.payload.len()), ("1A", 21));
    assert_eq!(found.place, CceRange { cce: 0, cces: 4 });
    // Source: TS 36.331 §5.2.1.2: the first block of system information comes in subframe 5 of every other frame.
    let others = readings.iter().flat_map(|reading| &reading.found).filter(|other| *other != found);
    let others: Vec<_> = others.map(|other| (other.sfn % 2, other.subframe, other.kind)).collect();
    assert_eq!(others, [(0, 5, RntiKind::SystemInformation)], "nothing else is sent");
}

/// A wide cell, received only in its middle six PRBs: these PRBs contain reference signals and the PBCH as in a narrow
/// cell.
#[test]
fn a_wide_cell_broadcasts_its_bandwidth() {
    let Some(samples) = capture("signal.1.92M.dat") else { return };
    let (decoder, cells, _) = decode(1_920_000, &samples);
    assert!(cells.is_empty());
    let (rung, hint) = decoder.ladder().broken().expect("the cell is too wide");
    assert_eq!(
        (rung, hint.as_str()),
        (Rung::Bandwidth, "cell 150 has 50 PRBs, sent from 2 ports: record at 9.60 Msps or more")
    );

    let middle = Cell { bandwidth: Bandwidth::ALL[0], ..WIDE };
    let mut grid = Grid::new(&middle);
    let mut demodulator = Demodulator::new(Numerology::nominal(middle.bandwidth, middle.cp));
    demodulator.demodulate(&samples, usize::MAX, &mut grid).expect("a whole subframe");
    let pbch::Broadcast { mib, ports, sfn } = Receiver::new(middle, 0.6).broadcast(&grid).expect("a MIB");
    assert_eq!((mib.pack(), ports, mib), (0x68_1C00, Ports::Two, pbch::Mib::new(&WIDE, sfn)));
}

/// Cell in two of the captures.
const WIDE: Cell = Cell {
    pci: 150,
    bandwidth: Bandwidth::ALL[3],
    ports: Ports::Two,
    cp: CyclicPrefix::Normal,
    phich_duration: PhichDuration::Normal,
    phich_resource: PhichResource::One,
};

/// Half a subframe of the same cell, at the cell's own rate: too short for the search, but enough to decode a known cell.
#[test]
fn half_a_subframe_of_a_known_cell_is_read() {
    let Some(mut samples) = capture("signal.10M.dat") else { return };
    let numerology = Numerology::nominal(WIDE.bandwidth, WIDE.cp);
    // The capture has the 7680 samples of a slot and one additional sample. The extra sample is the last: the
    // correlation of cyclic prefixes is larger if the slot starts at sample 0.
    assert_eq!(samples.len(), numerology.slot_samples() + 1);
    let [first, second] = [0, 1].map(|start| prefix_likeness(numerology, &samples[start..]));
    assert!(first.norm() > second.norm(), "the slot begins with the first sample");
    assert!(first.norm() > 0.7, "the prefixes are there: {first}");

    let turn_per_sample = -f64::from(first.arg()) / numerology.fft_size() as f64;
    for (at, sample) in samples.iter_mut().enumerate() {
        let (sin, cos) = (turn_per_sample * at as f64).sin_cos();
        *sample *= Complex32::new(cos as f32, sin as f32);
    }
    samples.resize(numerology.subframe_samples(), Complex32::default());
    let mut grid = Grid::new(&WIDE);
    let symbols = WIDE.cp.symbols_per_slot();
    Demodulator::new(numerology).demodulate(&samples, symbols, &mut grid).expect("a whole subframe");

    // Only the reference signals of subframe 0 give a consistent channel.
    let snr_db: Vec<f32> = (0..10).map(|number| channel(number, &grid).snr_db()).collect();
    assert!(snr_db[0] > 6.0 && snr_db[1..].iter().all(|other| *other < 3.0), "{snr_db:?}");
    let channel = channel(0, &grid);
    let region = ControlRegion::new(&WIDE, 1).expect("a CFI of 1");

    let indicator = channel.symbols(&WIDE, &grid, &region.pcfich);
    let indicator: [_; 4] = indicator.try_into().expect("four groups");
    let (cfi, fit) = pcfich::decode(&WIDE, 0, &indicator);
    // The README has CFI 2, the default of the current test program at the capture's origin. The default was 1 when the
    // program processed symbols of 1024 samples, as in this capture (srsLTE, pcfich_file_test.c of 2015). The 32-bit
    // codeword of CFI 1 fits well, the second symbol is silent, and the message below is present.
    assert!(cfi == 1 && fit > 0.9, "CFI {cfi} fits {fit}");
    let power = |symbol: usize| grid.symbol(symbol).iter().map(Complex32::norm_sqr).sum::<f32>();
    assert!(power(1) < 1e-3 * power(0), "the second symbol is empty");

    for group in 0..WIDE.phich_groups() {
        let unit = region.phich[phich::unit(WIDE.cp, group)];
        let (y, h) = (unit.map(|reg| grid.quad(&reg)), unit.map(|reg| channel.quads(&reg)));
        let (levels, full) = phich::levels(&WIDE, &phich::scrambling(WIDE.pci, 0), group, &y, &h);
        let loudest = levels.iter().fold(0.0_f32, |most, level| most.max(level.abs())) / full;
        assert!(loudest < 0.25, "nobody is answered: group {group} sounds like {loudest}");
    }

    let levels = channel.symbols(&WIDE, &grid, &region.pdcch);
    let mut levels: Vec<f32> = levels.iter().flatten().flat_map(|symbol| [symbol.re, symbol.im]).collect();
    descramble(WIDE.pci, 0, &mut levels);
    let found = Receiver::new(WIDE, 0.98).search(0, region.cces(), &levels);
    let grant = found.first().expect("a message").message;
    assert_eq!((grant.place, grant.payload.len()), (CceRange { cce: 0, cces: 2 }, 27));
    let mut soft = vec![];
    soft_bits(&levels[grant.place.bits()], &mut soft);
    assert!(agreement(&soft, &grant.coded()) > 0.98, "coded again it is what was heard");
    let carrier = Carrier::symmetric(50, Ports::Two);
    let (none, user) = (Extras::NONE, Audience::User);
    let message = parse(&carrier, none, user, Format::F0, grant.payload);
    let dci = message.expect("an uplink grant").to_dci(&carrier, grant.rnti, Default::default());
    let dci = dci.expect("a grant");
    assert_eq!((dci.direction, dci.format), (Direction::Uplink, DciFormat::F0));
}

/// Channel from both symbols of the slot with reference signals of subframe `number`.
fn channel(number: usize, grid: &Grid) -> Channel {
    let mut estimator = Estimator::new(&WIDE);
    for _ in 0..3 {
        estimator.begin();
        [4, 0].into_iter().for_each(|symbol| estimator.add(number, symbol, grid));
        estimator.finish(number);
    }
    estimator.channel().clone()
}

/// Correlation of cyclic prefixes with the ends of their symbols, over the non-silent symbols of a slot: 1 without noise.
fn prefix_likeness(numerology: Numerology, samples: &[Complex32]) -> Complex32 {
    let size = numerology.fft_size();
    let (mut likeness, mut power) = (Complex32::default(), 0.0);
    for symbol in [0, 4, 5] {
        let start = numerology.symbol_start(symbol);
        let prefix = start - numerology.prefix_samples(symbol)..start;
        for (early, late) in samples[prefix.clone()].iter().zip(&samples[prefix.start + size..]) {
            likeness += early.conj() * late;
            power += 0.5 * (early.norm_sqr() + late.norm_sqr());
        }
    }
    likeness / power
}

/// The signals of an NR cell differ from those of LTE: none of them counts as an LTE cell.
#[test]
fn nr_is_refused_in_plain_words() {
    for (name, rate_hz) in [
        ("ue_dl_nr_pci500_rb52_si_coreset0_idx6_s15.36e6.dat", 15_360_000),
        ("ue_dl_nr_pci500_rb52_rar_s15.36e6.dat", 15_360_000),
        ("ue_dl_nr_pci500_rb52_rnti0x100_s15.36e6.dat", 15_360_000),
        ("n78.fo35028.fs4608M.data", 46_080_000),
    ] {
        let Some(samples) = capture(name) else { return };
        let (decoder, cells, readings) = decode(rate_hz, &samples);
        assert_eq!((cells.len(), readings.len()), (0, 0), "{name}");
        let (rung, hint) = decoder.ladder().broken().expect("there is no cell of LTE");
        // A millisecond is too short for LTE as well.
        let why = if 100 * samples.len() as u64 >= rate_hz { "NR" } else { "too short" };
        assert!(rung < Rung::Broadcast && hint.contains(why), "{name} stops at {}: {hint}", rung.name());
    }
}

//! Recorded cells with known cell parameters and timing: messages of other transmitters are decoded.

use crate::recordings;
use crate::reference;

use std::collections::BTreeSet;

use airpace_phy::grid::{ControlRegion, Grid};
use airpace_phy::ofdm::Demodulator;
use airpace_phy::phich::{self, Answer};
use airpace_phy::sequence::{pss, sss};
use airpace_phy::{Complex32, Numerology, pbch};
use recordings::{Description, data};
use reference::Receiver;

/// Share of decoded messages, over all subframes. Also checks every CFI and every MIB.
fn recall(name: &str) -> Option<f64> {
    let folder = data("radio")?;
    let about = Description::load(&folder, name);
    let samples = about.samples(&folder, name);
    let numerology =
        Numerology::new(about.cell.bandwidth, about.cell.cp, about.fft_size).expect("an FFT size");
    let mut demodulator = Demodulator::new(numerology);
    let mut receiver = Receiver::new(about.cell, 0.6);
    let mut grid = Grid::new(&about.cell);
    let (mut sent, mut found, mut output) = (0, 0, 0);
    let rows = recordings::truth(&folder, name);
    for subframe in recordings::table(&folder, &format!("{name}.subframes.csv")) {
        let index: i64 = subframe.number("sf");
        let number: usize = subframe.number("subframe");
        let start = about.start + index * numerology.subframe_samples() as i64;
        let Some(here) = usize::try_from(start).ok().and_then(|start| samples.get(start..)) else { continue };
        if demodulator.demodulate(here, usize::MAX, &mut grid).is_none() {
            continue;
        }
        if number == 0 {
            let sfn = subframe.number("sfn");
            let expected =
                Some(pbch::Broadcast { mib: pbch::Mib::new(&about.cell, sfn), ports: about.cell.ports, sfn });
            assert_eq!(receiver.broadcast(&grid), expected, "the MIB of frame {sfn} in {name}");
        }
        let reading = receiver.read(number, &grid);
        assert_eq!(reading.cfi, subframe.number::<u8>("cfi"), "{name} subframe index {index}");
        output += reading.found.len();
        let read: BTreeSet<_> = reading
            .found
            .iter()
            .map(|found| {
                let message = found.message;
                (message.rnti.0, message.place.cces, message.place.cce, message.payload.to_string())
            })
            .collect();
        for row in rows.iter().filter(|row| row.number::<i64>("sf") == index) {
            let extras = ["cif", "csi2", "srs"].iter().any(|column| row.flag(column));
            if extras {
                continue;
            }
            let key = (row.number("rnti"), row.number("L"), row.number("ncce"), row.text("bits").to_owned());
            sent += 1;
            found += usize::from(read.contains(&key));
        }
    }
    assert!(sent > 30, "{name} has only {sent} messages");
    println!("{name}: {found} of {sent} messages, with {} others", output - found);
    Some(f64::from(found as u32) / f64::from(sent))
}

macro_rules! recordings {
    ($($name:ident: $least:expr,)*) => {$(
        #[test]
        fn $name() {
            if let Some(recall) = recall(stringify!($name)) {
                assert!(recall >= $least, "only {recall:.4} of the messages were found");
            }
        }
    )*};
}

recordings! {
    pub_g06_1p: 0.99,
    pub_g100_2p: 0.99,
    pub_g25_2p_clean: 0.99,
    pub_g50_2p: 0.98,
    pub_n25: 0.98,
    pub_p15_tm1: 0.99,
}

/// All HARQ feedback on the PHICH is detected correctly, with a large margin.
#[test]
fn recorded_answers_are_received() {
    let Some(folder) = data("radio") else { return };
    let mut heard = 0;
    for name in recordings::NAMES.into_iter().filter(|name| *name != "pub_p15_tm1") {
        let about = Description::load(&folder, name);
        let samples = about.samples(&folder, name);
        let numerology =
            Numerology::new(about.cell.bandwidth, about.cell.cp, about.fft_size).expect("an FFT size");
        let mut demodulator = Demodulator::new(numerology);
        let region = ControlRegion::new(&about.cell, 1).expect("a CFI of 1");
        let mut grid = Grid::new(&about.cell);
        for row in recordings::table(&folder, &format!("{name}.phich.csv")) {
            let index: i64 = row.number("sf");
            let number = (about.subframe + index as usize) % 10;
            let start = about.start + index * numerology.subframe_samples() as i64;
            let Some(here) = usize::try_from(start).ok().and_then(|start| samples.get(start..)) else {
                continue;
            };
            if demodulator.demodulate(here, usize::MAX, &mut grid).is_none() {
                continue;
            }
            // The recording of the live network contains the grant of each feedback. The generator's table contains its
            // PHICH resource.
            let (group, sequence) = if name == "pub_n25" {
                phich::resource(&about.cell, row.number("i_lowest_prb"), row.number("n_dmrs"))
            } else {
                (row.number("n_group"), row.number("n_seq"))
            };
            let answer = Answer { group, sequence, ack: row.flag("ack") };
            let channel = reference::estimate(&about.cell, number, 0, &grid);
            let unit = region.phich[phich::unit(about.cell.cp, answer.group)];
            let (y, h) = (unit.map(|reg| grid.quad(&reg)), unit.map(|reg| channel.quads(&reg)));
            let scrambling = phich::scrambling(about.cell.pci, number);
            let (levels, full) = phich::levels(&about.cell, &scrambling, answer.group, &y, &h);
            let level = levels[answer.sequence] / full;
            assert_eq!(
                level > 0.0,
                answer.ack,
                "{name} subframe index {index}: {answer:?} sounds like {level}"
            );
            heard += 1;
        }
    }
    assert!(heard > 250, "only {heard} answers");
}

/// The synchronisation signals of every half frame identify the cell and the half: they have the best match among all
/// identities.
#[test]
fn recorded_synchronisation_names_the_cell() {
    let Some(folder) = data("radio") else { return };
    for name in recordings::NAMES {
        let about = Description::load(&folder, name);
        let samples = about.samples(&folder, name);
        let numerology =
            Numerology::new(about.cell.bandwidth, about.cell.cp, about.fft_size).expect("an FFT size");
        let mut demodulator = Demodulator::new(numerology);
        let mut grid = Grid::new(&about.cell);
        let first = about.cell.bandwidth.subcarriers() / 2 - pss::LEN / 2;
        let mut halves = 0;
        for index in (0..).filter(|index| (about.subframe + index).is_multiple_of(5)) {
            let start = about.start + (index * numerology.subframe_samples()) as i64;
            let Ok(start) = usize::try_from(start) else { continue };
            let Some(here) = samples.get(start..) else { break };
            if demodulator.demodulate(here, 7, &mut grid).is_none() {
                break;
            }
            let primary = &grid.symbol(6)[first..first + pss::LEN];
            let secondary = &grid.symbol(5)[first..first + pss::LEN];
            let fit = |n_id_2: &u16| {
                let sent = pss::pss(*n_id_2);
                let gains: Vec<_> = primary.iter().zip(sent).map(|(got, sent)| got * sent.conj()).collect();
                // Neighbouring subcarriers have nearly the same channel; at the edges of the signal the difference may
                // be larger.
                gains.windows(2).map(|pair| pair[0].conj() * pair[1]).sum::<Complex32>().re
            };
            let n_id_2 = (0..3).max_by(|a, b| fit(a).total_cmp(&fit(b))).expect("three roots");
            assert_eq!(n_id_2, about.cell.n_id_2(), "{name} subframe index {index}");

            // The PSS provides the channel estimate for the SSS.
            let sent = pss::pss(n_id_2);
            let aligned: Vec<f32> =
                (0..pss::LEN).map(|n| (secondary[n] * (primary[n] * sent[n].conj()).conj()).re).collect();
            let fit = |&(n_id_1, half): &(u16, usize)| -> f32 {
                sss::sss(n_id_1, n_id_2, half).iter().zip(&aligned).map(|(sent, got)| sent * got).sum()
            };
            let found = (0..168)
                .flat_map(|n_id_1| [(n_id_1, 0), (n_id_1, 1)])
                .max_by(|a, b| fit(a).total_cmp(&fit(b)))
                .expect("336 signals");
            let half = (about.subframe + index) % 10 / 5;
            assert_eq!(found, (about.cell.n_id_1(), half), "{name} subframe index {index}");
            halves += 1;
        }
        assert!(halves >= 7, "{name} has only {halves} half frames");
    }
}

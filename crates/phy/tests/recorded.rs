//! Recorded cells, with cell and timing known: what another sender sent is what we read.

mod recordings;

use std::collections::BTreeSet;

use airpace_phy::grid::Grid;
use airpace_phy::ofdm::Demodulator;
use airpace_phy::receive::Receiver;
use airpace_phy::{Numerology, pbch};
use recordings::{Description, data};

/// The share of messages found, of all subframes; also held: every CFI and every MIB.
fn recall(name: &str) -> Option<f64> {
    let folder = data("radio")?;
    let about = Description::load(&folder, name);
    let samples = about.samples(&folder, name);
    let numerology =
        Numerology::new(about.cell.bandwidth, about.cell.cp, about.fft_size).expect("an FFT size");
    let mut demodulator = Demodulator::new(numerology);
    let mut receiver = Receiver::new(about.cell, 0.6);
    let mut grid = Grid::new(&about.cell);
    let (mut sent, mut found) = (0, 0);
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
            let expected = Some((pbch::Mib::new(&about.cell, sfn), about.cell.ports, sfn));
            assert_eq!(receiver.broadcast(&grid), expected, "the MIB of frame {sfn} in {name}");
        }
        let reading = receiver.read(number, &grid);
        assert_eq!(reading.cfi, subframe.number::<u8>("cfi"), "{name} subframe index {index}");
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
    println!("{name}: {found} of {sent}");
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

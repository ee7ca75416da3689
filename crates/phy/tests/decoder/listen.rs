//! Cell search and tracking from sample 0, without prior knowledge: cells are found, and every subframe is received.

use crate::recordings;
use crate::reference;

use std::collections::{BTreeMap, BTreeSet};

use airpace_phy::listen::{Listener, ListenerEvent, Lock, Options};
use airpace_phy::{Complex32, Observation};
use recordings::{Description, data};
use reference::Receiver;

/// All outputs of a listener for samples in blocks.
fn listen(options: Options, samples: &[Complex32]) -> (Listener, Vec<Lock>, Vec<Observation>) {
    let mut listener = Listener::new(options).expect("a rate that is enough");
    let (mut locks, mut observations) = (Vec::new(), Vec::new());
    let piece = options.rate_hz as usize / 1000;
    for piece in samples.chunks(piece).map(Some).chain([None]) {
        match piece {
            Some(samples) => listener.push(samples),
            None => listener.finish(),
        }
        while let Some(heard) = listener.pop() {
            match heard {
                ListenerEvent::Locked(lock) => locks.push(lock),
                ListenerEvent::Subframe(observation) => observations.push(observation),
                ListenerEvent::Moved(moved) => println!("{moved:?}"),
                ListenerEvent::Lost => println!("lost after {} samples", listener.ladder().samples),
            }
        }
    }
    (listener, locks, observations)
}

/// Runs the listener on a recording. Checks the lock, every subframe and its CFI against the reference. Returns the share
/// of decoded messages.
fn recall(name: &str) -> Option<f64> {
    let folder = data("radio")?;
    let about = Description::load(&folder, name);
    let samples = about.raw_samples(&folder, name);
    let options = Options::new(about.rate_hz());
    let (listener, locks, observations) = listen(options, &samples);
    assert_eq!(locks.len(), 1, "{name} is one cell without interruption");
    let lock = locks[0];
    assert_eq!(lock.cell, about.cell);
    assert!(lock.after <= about.rate_hz() / 50, "{name}: locked after {} samples", lock.after);
    assert!((lock.cfo_hz - about.cfo_hz).abs() < 60.0, "{name}: {} Hz", lock.cfo_hz);
    let place = listener.tracker().expect("still followed").place();
    assert!((place.cfo_hz - about.cfo_hz).abs() < 15.0, "{name}: {} Hz at the end", place.cfo_hz);

    let by_number: BTreeMap<(u16, usize), &Observation> =
        observations.iter().map(|observation| ((observation.sfn, observation.number), observation)).collect();
    assert_eq!(by_number.len(), observations.len(), "no subframe is heard twice");
    let rows = recordings::truth(&folder, name);
    let mut receiver = Receiver::new(about.cell, 0.6);
    let (mut sent, mut found, mut snr_db, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for subframe in recordings::table(&folder, &format!("{name}.subframes.csv")) {
        let index: i64 = subframe.number("sf");
        let start = about.start + index * about.rate_hz() as i64 / 1000;
        if start < 0 || start + about.rate_hz() as i64 / 1000 > samples.len() as i64 {
            continue;
        }
        let number = (subframe.number("sfn"), subframe.number("subframe"));
        let heard = by_number.get(&number).unwrap_or_else(|| panic!("{name}: {number:?} was not heard"));
        assert!((heard.sample - start).abs() <= about.rate_hz() as i64 / 500_000, "{name} {index}");
        if heard.cfi != subframe.number::<u8>("cfi") {
            wrong.push((index, heard.cfi, heard.cfi_margin));
            continue;
        }
        snr_db.push(heard.snr_db);
        let read: BTreeSet<_> = receiver
            .search(heard.number, heard.cces(), &heard.llrs)
            .iter()
            .map(|found| {
                let message = found.message;
                (message.rnti.0, message.place.cces, message.place.cce, message.payload.to_string())
            })
            .collect();
        for row in rows.iter().filter(|row| row.number::<i64>("sf") == index) {
            if ["cif", "csi2", "srs"].iter().any(|column| row.flag(column)) {
                continue;
            }
            let key = (row.number("rnti"), row.number("L"), row.number("ncce"), row.text("bits").to_owned());
            sent += 1;
            found += usize::from(read.contains(&key));
        }
    }
    snr_db.sort_by(f32::total_cmp);
    println!(
        "{name}: {found} of {sent} messages; locked after {:.1} ms; {:.1} dB ({:.1} to {:.1}); delay spread {:.2} µs; {:?} Hz",
        lock.after as f64 * 1e3 / about.rate_hz() as f64,
        snr_db[snr_db.len() / 2],
        snr_db[0],
        snr_db[snr_db.len() - 1],
        listener.tracker().map_or(0.0, |tracker| tracker.estimator().spread_s()) * 1e6,
        place.cfo_hz,
    );
    assert!(wrong.is_empty(), "{name}: wrong CFI (subframe, CFI, margin) {wrong:?}");
    assert!(sent > 30, "{name} has only {sent} messages");
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

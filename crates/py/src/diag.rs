//! Logs of modems to KPIs.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use airpace_diag::export::sample;
use airpace_diag::kpi::{Extractor, KPIS, Subscription};
use airpace_diag::source::{Item, Reader};
use airpace_diag::{Message, Radio};
use airpace_eval::tables::kpis::{Row, Rows};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::raise;
use crate::table::Table;

/// Bytes between two looks whether somebody wants to stop.
const PIECE: usize = 1 << 20;

/// The KPIs of logs: see `airpace.diag`. Also returns what could not be read, in sentences.
#[pyfunction]
#[pyo3(signature = (paths, *, kpis, radio))]
pub fn diag(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    kpis: Vec<String>,
    radio: u8,
) -> PyResult<(Table, Vec<String>)> {
    let subscription =
        Subscription::listed(kpis.iter().map(String::as_str), Radio(radio)).map_err(raise::value)?;
    let mut log = Log {
        extractor: Extractor::new(&subscription),
        subscription,
        rows: Rows::default(),
        name: vec![],
        packets: 0,
        faults: 0,
    };
    let mut reader = Reader::default();
    let mut piece = vec![0; PIECE];
    for path in &paths {
        let refused = |error: std::io::Error| {
            PyOSError::new_err(format!("cannot read `{}`: {error}; give a modem's log", path.display()))
        };
        let file = File::open(path).map_err(refused)?;
        let expanded = airpace_live::log::expanded(&path.display().to_string(), Box::new(file));
        let (_, mut bytes) = expanded.map_err(|error| PyOSError::new_err(error.to_string()))?;
        loop {
            py.check_signals()?;
            let count = bytes.read(&mut piece).map_err(refused)?;
            if count == 0 {
                break;
            }
            let (log, reader, piece) = (&mut log, &mut reader, &piece[..count]);
            py.detach(|| reader.push(piece, |_, item| log.take(item)));
        }
        reader.next_file(|_, item| log.take(item));
    }
    reader.finish(|_, item| log.take(item));
    if log.packets == 0 {
        return Err(raise::value(
            "no log packet was found: this is no log of a modem's diagnostic port (.qmdl, .qmdl2, .mi2log, .dlf or the \
             stream as it came)",
        ));
    }
    let mut unread: Vec<String> = vec![];
    for trouble in log.extractor.troubles() {
        unread.push(format!("{} packets of {trouble}", trouble.count));
    }
    if log.faults > 0 {
        unread.push(format!("{} stretches of the log are no message", log.faults));
    }
    Ok((Table::new(log.rows.into_table()), unread))
}

/// The KPIs that there are: name, unit, and what each is.
#[pyfunction]
pub fn kpis() -> Vec<(&'static str, &'static str, &'static str)> {
    KPIS.iter().map(|kpi| (kpi.name, kpi.unit, kpi.about)).collect()
}

struct Log {
    subscription: Subscription,
    extractor: Extractor,
    rows: Rows,
    /// A buffer for a name while it is written.
    name: Vec<u8>,
    packets: u64,
    faults: u64,
}

impl Log {
    fn take(&mut self, item: Item<'_>) {
        match item {
            Item::Message(Message::Log(packet)) => {
                self.packets += 1;
                let (subscription, rows, name) = (&self.subscription, &mut self.rows, &mut self.name);
                self.extractor.push(&packet, |sample| {
                    let wanted = subscription.wanted(sample.wanted);
                    name.clear();
                    sample::name(wanted, name);
                    rows.push(&Row {
                        // Times after the year 2262 become the last one that has a number.
                        unix_nanos: i64::try_from(sample.stamp.unix_nanos()).unwrap_or(i64::MAX),
                        kpi: &String::from_utf8_lossy(name),
                        value: sample.value,
                        unit: wanted.unit(),
                        radio: wanted.radio.0,
                        carrier: sample.carrier,
                        subframe: sample.subframe,
                    });
                });
            }
            Item::Message(Message::Cut { .. }) | Item::Fault(_) | Item::Skipped(_) | Item::Unfinished(_) => {
                self.faults += 1;
            }
            Item::Message(_) => {}
        }
    }
}

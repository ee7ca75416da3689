//! KPIs and granted bandwidth from logs of modems.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use airpace_core::Rate;
use airpace_core::count::count;
use airpace_diag::bandwidth::{Bandwidth, Point};
use airpace_diag::kpi::{Extractor, KPIS, Reason, Subscription, Trouble};
use airpace_diag::source::{Item, Reader};
use airpace_diag::{LogPacket, Message, Radio};

use airpace_tables::direction;
use airpace_tables::kpis::Rows;
use airpace_tables::windows::{Window, Windows};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::raise;
use crate::table::Table;

/// Number of bytes between checks of Python's signals.
const PIECE: usize = 1 << 20;

/// The name that selects every KPI.
const ALL: &str = "all";

/// The KPIs of logs: see `airpace.diag`. Also returns sentences on the parts that could not be read.
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
    let mut log = Log { extractor: Extractor::new(&subscription), subscription, rows: Rows::default() };
    let faults = read(py, &paths, &mut log)?;
    let is_all = kpis.iter().any(|name| name == ALL);
    let told = |trouble: &Trouble| match trouble.reason {
        // A request for all KPIs is a request for those that the log contains.
        Reason::MissingKpi(_) if is_all => None,
        Reason::MissingKpi(wanted) => {
            let (packets, code) = (count(trouble.count, "packet"), trouble.code);
            let wanted = log.subscription.wanted(wanted);
            let have = if trouble.count == 1 { "has" } else { "have" };
            Some(format!("{packets} of {code} {have} nothing for {wanted}: their version has no such field"))
        }
        _ => Some(format!("{} of {trouble}", count(trouble.count, "packet"))),
    };
    let mut unread: Vec<String> = log.extractor.troubles().iter().filter_map(told).collect();
    unread.extend(faults);
    Ok((Table::new(log.rows.into_table()), unread))
}

/// The bandwidth that the network granted: see `airpace.bandwidth`. Also returns sentences on the parts that could not be
/// read.
#[pyfunction]
#[pyo3(signature = (paths, *, every_ms))]
pub fn bandwidth(py: Python<'_>, paths: Vec<PathBuf>, every_ms: u32) -> PyResult<(Table, Vec<String>)> {
    let mut granted = Granted { bandwidth: Bandwidth::new(every_ms), windows: Windows::default() };
    let mut unread = read(py, &paths, &mut granted)?;
    let Granted { mut bandwidth, mut windows } = granted;
    bandwidth.finish().into_iter().for_each(|point| windows.push(window(&point)));
    let uncounted = bandwidth.uncounted().into_iter();
    unread.extend(uncounted.map(|(number, of, why)| format!("not counted: {} {why}", count(number, of))));
    Ok((Table::new(windows.into_table()), unread))
}

/// Converts a window to a row of the table.
fn window(point: &Point) -> Window {
    Window {
        time_ms: (point.window * point.every_ms()) as f64,
        radio: point.radio.0,
        direction: direction::word(point.direction),
        blocks_mbps: point.blocks.map(Rate::as_mbps),
        granted_mbps: point.granted.map(Rate::as_mbps),
        prbs: point.carriers.iter().map(|on| on.prbs).sum(),
    }
}

/// The available KPIs: name, unit and description of each.
#[pyfunction]
pub fn kpis() -> Vec<(&'static str, &'static str, &'static str)> {
    KPIS.iter().map(|kpi| (kpi.name, kpi.unit, kpi.about)).collect()
}

/// Reads logs as one. Returns a warning about the parts of the logs that are not messages, if there are any.
fn read(py: Python<'_>, paths: &[PathBuf], to: &mut impl Packets) -> PyResult<Vec<String>> {
    let (mut reader, mut tally, mut piece) = (Reader::default(), Tally::default(), vec![0; PIECE]);
    for path in paths {
        let refused = |error: std::io::Error| {
            let text = format!("cannot read `{}`: {error}; give a modem's log", path.display());
            raise::os(&error, &text, path)
        };
        let file = File::open(path).map_err(refused)?;
        let expanded = airpace_modem::log::expanded(&path.display().to_string(), Box::new(file));
        let (_, mut bytes) = expanded.map_err(|error| PyOSError::new_err(raise::explained(&error)))?;
        loop {
            py.check_signals()?;
            let count = bytes.read(&mut piece).map_err(refused)?;
            if count == 0 {
                break;
            }
            let (to, tally, reader, piece) = (&mut *to, &mut tally, &mut reader, &piece[..count]);
            py.detach(|| reader.push(piece, |_, item| tally.take(item, to)));
        }
        reader.next_file(|_, item| tally.take(item, to));
    }
    reader.finish(|_, item| tally.take(item, to));
    if tally.packets == 0 {
        return Err(raise::value(
            "no log packet was found: this is no log of a modem's diagnostic port (.qmdl, .qmdl2, .mi2log, \
             .dlf or the raw stream)",
        ));
    }
    let faults = (tally.faults > 0).then(|| format!("{} stretches of the log are no message", tally.faults));
    Ok(faults.into_iter().collect())
}

/// A consumer of the packets of a log.
trait Packets: Send {
    fn take(&mut self, packet: &LogPacket<'_>);
}

/// Counters of packets, and of stretches that are no messages.
#[derive(Default)]
struct Tally {
    packets: u64,
    faults: u64,
}

impl Tally {
    fn take(&mut self, item: Item<'_>, to: &mut impl Packets) {
        match item {
            Item::Message(Message::Log(packet)) => {
                self.packets += 1;
                to.take(&packet);
            }
            Item::Message(Message::Cut { .. }) | Item::Fault(_) | Item::Skipped(_) | Item::Unfinished(_) => {
                self.faults += 1;
            }
            Item::Message(_) => {}
        }
    }
}

struct Granted {
    bandwidth: Bandwidth,
    windows: Windows,
}

impl Packets for Granted {
    fn take(&mut self, packet: &LogPacket<'_>) {
        self.bandwidth.push(packet, |_| {});
        self.bandwidth.take().into_iter().for_each(|point| self.windows.push(window(&point)));
    }
}

struct Log {
    subscription: Subscription,
    extractor: Extractor,
    rows: Rows,
}

impl Packets for Log {
    fn take(&mut self, packet: &LogPacket<'_>) {
        let (subscription, rows) = (&self.subscription, &mut self.rows);
        self.extractor.push(packet, |sample| {
            rows.push_sample(&sample, subscription.wanted(sample.wanted));
        });
    }
}

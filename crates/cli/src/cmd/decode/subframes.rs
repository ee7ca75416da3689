//! Whole subframes: messages that waited for evidence are put where they belong before a subframe is counted.

use std::collections::BTreeMap;

use airpace_core::radio::Direction;
use airpace_core::{PrbSet, Rnti};
use airpace_phy::decoder::Reading;
use airpace_phy::evidence::Caution;
use airpace_phy::found::Found;
use serde_json::{Map, Value, json};

/// Subframes that may still get messages.
#[derive(Debug, Default)]
pub struct Held {
    waiting: BTreeMap<u64, Reading>,
}

impl Held {
    /// Takes a subframe; appends those that are whole now.
    pub fn push(&mut self, mut reading: Reading, whole: &mut Vec<Reading>) {
        self.add(std::mem::take(&mut reading.late));
        let newest = reading.index;
        self.waiting.insert(newest, reading);
        let patience = Caution::default().patience;
        while let Some(entry) = self.waiting.first_entry()
            && entry.key() + patience < newest
        {
            whole.push(entry.remove());
        }
    }

    /// Puts late messages where they belong.
    pub fn add(&mut self, late: Vec<Found>) {
        for found in late {
            if let Some(reading) = self.waiting.get_mut(&found.index) {
                reading.found.push(found);
            }
        }
    }

    /// The rest, when nothing more will come.
    pub fn finish(&mut self) -> impl Iterator<Item = Reading> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}

/// Downlink PRB pairs of a subframe that its messages grant.
pub fn used_prbs(reading: &Reading) -> PrbSet {
    let downlink = reading.found.iter().filter(|found| found.direction() == Some(Direction::Downlink));
    // Distributed grants take other pairs in the second slot.
    downlink.filter_map(|found| found.prbs).flatten().fold(PrbSet::EMPTY, PrbSet::union)
}

/// One JSON object: how full a subframe is, and by which messages.
pub fn json(pci: u16, reading: &Reading) -> Value {
    let used = used_prbs(reading).len();
    let mut formats = Map::new();
    for found in &reading.found {
        let count = formats.get(found.format()).and_then(Value::as_u64).unwrap_or(0);
        formats.insert(found.format().to_owned(), json!(count + 1));
    }
    let of = |direction| reading.found.iter().filter(|found| found.direction() == Some(direction)).count();
    let cces: u32 = reading.found.iter().map(|found| u32::from(found.place.cces)).sum();
    json!({
        "cell": pci,
        "index": reading.index,
        "sfn": reading.sfn,
        "subframe": reading.subframe,
        "cfi": reading.cfi,
        "cces": reading.cces,
        "cces_used": cces,
        "messages": reading.found.len(),
        "downlink": of(Direction::Downlink),
        "uplink": of(Direction::Uplink),
        "formats": formats,
        "prbs": reading.prbs,
        "prbs_used": used,
        "prbs_idle": reading.prbs.saturating_sub(used),
        "users": users(reading).len(),
        "snr_db": (f64::from(reading.snr_db) * 100.0).round() / 100.0,
    })
}

/// One line for people.
pub fn line(pci: u16, reading: &Reading) -> String {
    let used = used_prbs(reading).len();
    format!(
        "{pci:>4} {:>5}.{} {:>3}  {:>3} messages  {:>3} of {} PRBs used",
        reading.sfn,
        reading.subframe,
        reading.cfi,
        reading.found.len(),
        used,
        reading.prbs,
    )
}

/// Users that are granted something.
fn users(reading: &Reading) -> std::collections::BTreeSet<Rnti> {
    reading.found.iter().filter(|found| found.dci.is_some()).map(|found| found.rnti).collect()
}

//! Whole subframes: messages that waited for evidence are put where they belong before a subframe is counted.

use std::collections::BTreeMap;

use airpace_phy::decoder::Reading;
use airpace_phy::found::Found;

/// The subframes of one recording that may still get messages.
#[derive(Debug)]
pub struct PendingSubframes {
    /// Subframes for which a message may wait for evidence.
    patience: u64,
    waiting: BTreeMap<u64, Reading>,
}

impl PendingSubframes {
    /// Holds no subframe yet. A message may wait for evidence for `patience` subframes
    /// ([`Caution::patience`](airpace_phy::evidence::Caution)).
    pub fn new(patience: u64) -> PendingSubframes {
        PendingSubframes { patience, waiting: BTreeMap::new() }
    }

    /// Takes a subframe; its late messages go to the subframes that they are of. Appends to `whole` the subframes that can
    /// get no more messages, in their order.
    pub fn push(&mut self, mut reading: Reading, whole: &mut Vec<Reading>) {
        self.add(std::mem::take(&mut reading.late));
        let newest = reading.index;
        self.waiting.insert(newest, reading);
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().saturating_add(self.patience) <= newest
        {
            whole.push(entry.remove());
        }
    }

    /// Puts late messages where they belong. Those of subframes that are not held are dropped.
    pub fn add(&mut self, late: Vec<Found>) {
        for found in late {
            if let Some(reading) = self.waiting.get_mut(&found.index) {
                reading.found.push(found);
            }
        }
    }

    /// The rest in their order, when nothing more will come.
    pub fn finish(&mut self) -> impl Iterator<Item = Reading> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}

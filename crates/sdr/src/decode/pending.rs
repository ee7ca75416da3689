//! Complete subframes: messages that waited for evidence are added to their subframe before it is returned.

use std::collections::BTreeMap;

use airpace_phy::decoder::Reading;
use airpace_phy::found::Found;

/// Subframes of one recording that may still receive messages.
#[derive(Debug)]
pub struct PendingSubframes {
    /// Maximum number of subframes for which a message waits for evidence.
    patience: u64,
    waiting: BTreeMap<u64, Reading>,
}

impl PendingSubframes {
    /// Creates an empty buffer. A message may wait for evidence for `patience` subframes
    /// ([`Caution::patience`](airpace_phy::evidence::Caution)).
    pub fn new(patience: u64) -> PendingSubframes {
        PendingSubframes { patience, waiting: BTreeMap::new() }
    }

    /// Adds a subframe, and its late messages to their subframes. Appends the subframes that can receive no more messages
    /// to `whole`, in order.
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

    /// Adds late messages to their subframes. Messages of subframes that are not in the buffer are dropped.
    pub fn add(&mut self, late: Vec<Found>) {
        for found in late {
            if let Some(reading) = self.waiting.get_mut(&found.index) {
                reading.found.push(found);
            }
        }
    }

    /// Returns the remaining subframes in order, after the end of the input.
    pub fn finish(&mut self) -> impl Iterator<Item = Reading> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}

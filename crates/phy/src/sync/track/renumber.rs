//! Frame number update from the PBCH.

use super::{Stream, Tracker};
use crate::modulation::soft_bits;
use crate::pbch::{self, Broadcast, Mib};

impl Tracker {
    /// Decodes the PBCH. If it contains another frame number than expected, that frame number is used.
    pub(super) fn renumber(&mut self, stream: &Stream<'_>) {
        let last = self.last_broadcast_symbol();
        (last - 3..=last).for_each(|symbol| self.demodulate(stream, symbol));
        let cell = *self.cell();
        let symbols = self.antennas.symbols(&cell, self.place.number, &self.broadcast);
        let levels: Vec<f32> = symbols.iter().flatten().flat_map(|symbol| [symbol.re, symbol.im]).collect();
        let mut soft = Vec::new();
        soft_bits(&levels, &mut soft);
        let (expected, viterbi) = (self.place.sfn, &mut self.viterbi);
        let mut is_read =
            pbch::confirm(cell.pci, &soft, &Mib::new(&cell, expected), cell.ports, expected, viterbi);
        if !is_read
            && let Some(Broadcast { mib, ports, sfn }) = pbch::decode(cell.pci, &soft, viterbi)
            && (Mib { spare: 0, ..mib }, ports) == (Mib::new(&cell, sfn), cell.ports)
        {
            is_read = true;
            self.place.sfn = sfn;
        }
        self.health.observe_broadcast(is_read);
    }
}

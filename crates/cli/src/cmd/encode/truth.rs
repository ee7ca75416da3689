//! Writes the transmitted messages (ground truth), in the decoder's output format.

use std::io::Write;
use std::path::Path;

use airpace_core::Direction;
use airpace_core::tables::lte::McsTable;
use airpace_files::Whole;
use airpace_phy::Cell;
use airpace_phy::dci::{Audience, Carrier, Extras, Message, pack};
use airpace_phy::found::{Found, RntiKind};
use airpace_phy::harq::HarqMemory;
use airpace_phy::pdcch::TransmittedMessage;
use airpace_phy::schedule::Announcement;
use airpace_radio::{Dci, RadioReport};
use anyhow::Context;

use super::Args;
use crate::cmd::decode::message::{self, Name};
use crate::cmd::outputs;

/// A file of the transmitted messages.
pub struct Truth {
    file: Whole,
    pci: u16,
    carrier: Carrier,
    /// Number of subframes by which the cell's clock is ahead of the clock of the reports.
    offset: u64,
    snr_db: f32,
}

impl Truth {
    /// Creates a file for this cell.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, cell: &Cell, args: &Args) -> anyhow::Result<Truth> {
        let file = outputs::whole("--truth", path)?;
        Ok(Truth {
            file,
            pci: cell.pci,
            carrier: Carrier::symmetric(cell.bandwidth.prbs(), cell.ports),
            offset: u64::from(args.sfn) * 10,
            snr_db: args.combined_snr_db(),
        })
    }

    /// Writes the messages of a subframe.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, report: &RadioReport, announcement: &Announcement) -> anyhow::Result<()> {
        let index = report.slot.index + self.offset;
        for sent in &announcement.messages {
            let (dci, message) = self.meaning(report, sent).with_context(|| {
                format!("subframe {index}: what is sent to RNTI {} was never granted", sent.rnti.0)
            })?;
            let (sfn, subframe) = ((index / 10 % 1024) as u16, (index % 10) as u8);
            let harq = match dci.direction {
                Direction::Downlink => dci.harq.or(Some(0)),
                Direction::Uplink => Some(HarqMemory::uplink_process(sfn, subframe)),
            };
            let found = Found {
                pci: self.pci,
                index,
                sfn,
                subframe,
                cfi: announcement.cfi,
                rnti: sent.rnti,
                kind: RntiKind::of(sent.rnti, &message),
                payload: sent.payload,
                place: sent.place,
                message,
                extras: Extras::NONE,
                prbs: message.prbs(&self.carrier),
                dci: Some(Dci { harq, mcs: mcs(&message).unwrap_or(dci.mcs), ..as_sent(dci) }),
                table: McsTable::Qam64,
                is_table_known: true,
                is_format_known: true,
                snr_db: self.snr_db,
                confidence: 1.0,
            };
            let object = message::json(&found, Name::plain(&found));
            let written = writeln!(self.file, "{object}");
            written.map_err(|error| outputs::refused("--truth", self.file.path())(error))?;
        }
        Ok(())
    }

    /// The grant that a message contains: the user's grant that packs to the same bits.
    fn meaning(&self, report: &RadioReport, sent: &TransmittedMessage) -> Option<(Dci, Message)> {
        let audience = Audience::of(sent.rnti).unwrap_or(Audience::User);
        let own = report.dcis.iter().filter(|dci| dci.rnti == sent.rnti);
        own.filter_map(|dci| Some((*dci, Message::of_dci(&self.carrier, dci).ok()?)))
            .find(|(_, message)| pack(&self.carrier, Extras::NONE, audience, message) == sent.payload)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        let path = self.file.path().to_owned();
        self.file.finish().map_err(outputs::refused("--truth", &path))
    }
}

/// A grant as transmitted: fields that the cell leaves unset, as for users without HARQ, are zero.
fn as_sent(dci: Dci) -> Dci {
    let rv = [0, 1].map(|at| dci.rv[at].or(dci.is_sent(at).then_some(0)));
    let ndi = [0, 1].map(|at| dci.ndi[at].or(dci.is_sent(at).then_some(false)));
    Dci { rv, ndi, ..dci }
}

/// MCS of each block as contained in the message. For a retransmitted block it may be a reserved MCS.
fn mcs(message: &Message) -> Option<[Option<u8>; 2]> {
    match message {
        Message::Downlink(downlink) => Some(downlink.blocks().map(|block| block.map(|block| block.mcs))),
        _ => None,
    }
}

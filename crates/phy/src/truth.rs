//! The messages that a station transmits, as a perfect decoder would report them: the reference for decoders.

use airpace_core::Direction;
use airpace_core::tables::lte::McsTable;
use airpace_radio::{Dci, RadioReport, Rnti};

use crate::cell::Cell;
use crate::dci::{Audience, Carrier, Extras, Message, pack};
use crate::found::{Found, RntiKind};
use crate::harq::HarqMemory;
use crate::pdcch::TransmittedMessage;
use crate::schedule::Announcement;

/// A message without a grant in the report of its subframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeverGranted {
    /// Number of the subframe.
    pub index: u64,
    /// The user to which the message is addressed.
    pub rnti: Rnti,
}

impl std::fmt::Display for NeverGranted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "subframe {}: what is sent to RNTI {} was never granted", self.index, self.rnti.0)
    }
}

impl std::error::Error for NeverGranted {}

/// Converts what a station transmits to accepted messages.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    pci: u16,
    carrier: Carrier,
    /// Number of subframes by which the cell's clock is ahead of the clock of the reports.
    offset: u64,
    snr_db: f32,
}

impl Truth {
    /// The messages of this cell, whose first subframe has the system frame number `first_sfn`. `snr_db` is the
    /// signal-to-noise ratio at the receiver (dB).
    pub fn new(cell: &Cell, first_sfn: u16, snr_db: f32) -> Truth {
        Truth {
            pci: cell.pci,
            carrier: Carrier::symmetric(cell.bandwidth.prbs(), cell.ports),
            offset: u64::from(first_sfn) * 10,
            snr_db,
        }
    }

    /// The messages of a subframe: `report` contains its grants, `announcement` the messages that the station made of them.
    ///
    /// # Errors
    /// A message does not follow from a grant of the report.
    pub fn messages(
        &self,
        report: &RadioReport,
        announcement: &Announcement,
    ) -> Result<Vec<Found>, NeverGranted> {
        let index = report.slot.index + self.offset;
        let (sfn, subframe) = ((index / 10 % 1024) as u16, (index % 10) as u8);
        let found = |sent: &TransmittedMessage| {
            let meaning = self.meaning(report, sent);
            let (dci, message) = meaning.ok_or(NeverGranted { index, rnti: sent.rnti })?;
            let harq = match dci.direction {
                Direction::Downlink => dci.harq.or(Some(0)),
                Direction::Uplink => Some(HarqMemory::uplink_process(sfn, subframe)),
            };
            Ok(Found {
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
            })
        };
        announcement.messages.iter().map(found).collect()
    }

    /// The grant that a message contains: the user's grant that packs to the same bits.
    fn meaning(&self, report: &RadioReport, sent: &TransmittedMessage) -> Option<(Dci, Message)> {
        let audience = Audience::of(sent.rnti).unwrap_or(Audience::User);
        let own = report.dcis.iter().filter(|dci| dci.rnti == sent.rnti);
        own.filter_map(|dci| Some((*dci, Message::of_dci(&self.carrier, dci).ok()?)))
            .find(|(_, message)| pack(&self.carrier, Extras::NONE, audience, message) == sent.payload)
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

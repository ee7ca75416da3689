//! Scheduler of the control region: assigns messages to CCEs in their receivers' search spaces, and selects the CFI.

use airpace_core::Direction;
use airpace_radio::{Dci, RadioReport};

use crate::cell::Cell;
use crate::dci::{Audience, Carrier, EncodeError, Extras, Message, pack};
use crate::encode::Data;
use crate::grid::ControlRegion;
use crate::pdcch::{CceRange, LEVELS, TransmittedMessage, in_common_space, own_space};

/// Messages of one subframe with their CCEs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Announcement {
    /// Control format indicator.
    pub cfi: u8,
    /// Messages, without overlaps.
    pub messages: Vec<TransmittedMessage>,
    /// PRBs of the downlink grants, with their users.
    pub data: Vec<Data>,
    /// Grants for which no CCEs were free, as indices into the report; a real cell would not have made these grants.
    pub blocked: Vec<usize>,
    /// Grants that no message can express, as indices into the report, with the reason.
    pub unencodable: Vec<(usize, EncodeError)>,
}

/// Assigns the messages of a cell to CCEs, subframe by subframe.
#[derive(Clone, Debug)]
pub struct Scheduler {
    carrier: Carrier,
    least_cfi: u8,
    /// Number of CCEs at a CFI of 1, 2 and 3.
    cces: [usize; 3],
}

impl Scheduler {
    /// Creates a scheduler for a cell with equal bandwidth in uplink and downlink.
    pub fn new(cell: &Cell) -> Scheduler {
        let cces = [1, 2, 3].map(|cfi| ControlRegion::new(cell, cfi).map_or(0, |region| region.cces()));
        let carrier = Carrier::symmetric(cell.bandwidth.prbs(), cell.ports);
        Scheduler { carrier, least_cfi: cell.least_cfi(), cces }
    }

    /// Composes the messages for the grants of a report. `sinr_db` returns the SINR of each grant's device, which
    /// determines the aggregation level of its messages (see [`implied_sinr_db`]).
    ///
    /// The control region has the CFI of the report, or a larger CFI if the messages need more CCEs. Messages with the
    /// largest aggregation levels are placed first. If no candidate of a message's aggregation level is free, the
    /// scheduler tries a larger level, then a smaller level.
    ///
    /// Source: TS 36.213 §9.1.1 (candidates); the standard does not specify how a cell chooses among them.
    pub fn announce(&self, report: &RadioReport, sinr_db: impl Fn(&Dci) -> f64) -> Announcement {
        let mut announcement = Announcement::default();
        let mut said = vec![];
        for (index, dci) in report.dcis.iter().enumerate() {
            match self.say(dci, &sinr_db) {
                Ok((sent, message)) => said.push((index, sent, message)),
                Err(why) => announcement.unencodable.push((index, why)),
            }
        }
        said.sort_by_key(|(index, sent, _)| (std::cmp::Reverse(sent.place.cces), *index));
        let number = (report.slot.subframe() % 10) as usize;
        for cfi in report.cfi.unwrap_or(0).clamp(self.least_cfi, 3)..=3 {
            announcement.cfi = cfi;
            announcement.messages.clear();
            announcement.blocked.clear();
            for (index, sent, _) in &said {
                match self.place(sent, number, cfi, &announcement.messages) {
                    Some(place) => announcement.messages.push(TransmittedMessage { place, ..*sent }),
                    None => announcement.blocked.push(*index),
                }
            }
            if announcement.blocked.is_empty() {
                break;
            }
        }
        let blocked = &announcement.blocked;
        announcement.data = said
            .iter()
            .filter(|(index, ..)| {
                report.dcis[*index].direction == Direction::Downlink && !blocked.contains(index)
            })
            .filter_map(|(_, sent, message)| {
                Some(Data { rnti: sent.rnti, prbs: message.prbs(&self.carrier)? })
            })
            .collect();
        announcement
    }

    /// Composes the message of a grant, with its aggregation level but without its first CCE.
    fn say(
        &self,
        dci: &Dci,
        sinr_db: &impl Fn(&Dci) -> f64,
    ) -> Result<(TransmittedMessage, Message), EncodeError> {
        let message = Message::of_dci(&self.carrier, dci)?;
        let audience = Audience::of(dci.rnti).unwrap_or(Audience::User);
        let payload = pack(&self.carrier, Extras::NONE, audience, &message);
        let cces = match audience {
            // Chosen: the maximum, because all devices in the cell must decode it.
            Audience::Everyone => 8,
            Audience::User => level(payload.len(), sinr_db(dci)),
        };
        Ok((TransmittedMessage { rnti: dci.rnti, payload, place: CceRange { cce: 0, cces } }, message))
    }

    /// Returns a free candidate in the receiver's search space.
    fn place(
        &self,
        sent: &TransmittedMessage,
        subframe: usize,
        cfi: u8,
        taken: &[TransmittedMessage],
    ) -> Option<CceRange> {
        let cces = self.cces[usize::from(cfi) - 1];
        let wanted = sent.place.cces;
        let more = LEVELS.into_iter().filter(move |level| *level >= wanted);
        let fewer = LEVELS.into_iter().rev().filter(move |level| *level < wanted);
        more.chain(fewer).find_map(|level| {
            let is_free = |place: &CceRange| {
                place.range().end <= cces && !taken.iter().any(|other| other.place.overlaps(*place))
            };
            match Audience::of(sent.rnti) {
                Some(Audience::User) => own_space(sent.rnti, subframe, cces, level).find(is_free),
                _ => CceRange::all(cces)
                    .filter(|place| place.cces == level && in_common_space(*place, cces))
                    .find(is_free),
            }
        })
    }
}

/// SINR of a grant's device, derived from the grant: link adaptation selected as many bits as the device can decode. A
/// grant of unknown size counts as 0 dB. An uplink grant also counts as 0 dB, because its MCS belongs to the uplink.
///
/// Chosen: Shannon capacity of a layer plus 3 dB, over the 120 resource elements of a PRB pair that carry data.
pub fn implied_sinr_db(dci: &Dci) -> f64 {
    const DATA_ELEMENTS: f64 = 120.0;
    const GAP_DB: f64 = 3.0;
    let elements = DATA_ELEMENTS * f64::from(dci.prbs.len()) * f64::from(dci.layers.max(1));
    let bits = dci.bits().0 as f64;
    if dci.direction == Direction::Uplink || bits <= 0.0 || elements <= 0.0 {
        return 0.0;
    }
    GAP_DB + 10.0 * libm::log10(libm::pow(2.0, bits / elements) - 1.0)
}

/// Minimum aggregation level at which a message of `bits` is decodable at this SINR.
///
/// Chosen: the code rate (payload and CRC over 72 coded bits per CCE) that QPSK carries with an error rate of about 1
/// %. This code rate is computed as 2 dB above the Shannon limit, plus a margin of 2 dB for fading.
fn level(bits: u8, sinr_db: f64) -> u8 {
    const GAP_DB: f64 = 4.0;
    let capacity = libm::log2(1.0 + libm::pow(10.0, (sinr_db - GAP_DB) / 10.0));
    let coded_bits = |cces: u8| 72.0 * f64::from(cces);
    // Two coded bits are one QPSK symbol.
    let fits = |cces: &u8| 2.0 * f64::from(bits + 16) / coded_bits(*cces) <= capacity;
    LEVELS.into_iter().find(fits).unwrap_or(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{PhichDuration, PhichResource, Ports};
    use crate::dci::{Format, parse};
    use crate::numerology::{Bandwidth, CyclicPrefix};
    use crate::pdcch::in_search_space;
    use airpace_core::tables::lte::{self, McsTable};
    use airpace_core::{Rng, Streams, Time};
    use airpace_radio::{BitLayer, CarrierId, DciFormat, PrbSet, Rnti, Scope, Slot};

    const CELL: Cell = Cell {
        pci: 301,
        bandwidth: Bandwidth::ALL[5],
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };

    fn report(dcis: Vec<Dci>, subframe_index: u64) -> RadioReport {
        RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(subframe_index),
            time: Time::from_millis(subframe_index),
            scope: Scope::Everyone,
            carrier_prbs: Some(100),
            cfi: Some(1),
            symbols: None,
            dcis,
            own: None,
            layer: BitLayer::Physical,
        }
    }

    /// A subframe of `users` users with grants in both directions, and sometimes system information.
    fn busy(rng: &mut Rng, users: u16, subframe_index: u64) -> RadioReport {
        let mut dcis = vec![];
        let groups = lte::rbg_count(100);
        for user in 0..users {
            let rnti = Rnti(100 + 977 * user);
            let prbs = (0..groups)
                .filter(|group| group % users == user)
                .fold(PrbSet::EMPTY, |set, group| set.union(PrbSet::of_rbg(100, group)));
            let mcs = [Some(rng.below(29) as u8), None];
            dcis.push(Dci { rnti, prbs, mcs, ..Dci::default() });
            let run = PrbSet::run(user * 12, 12);
            dcis.push(Dci {
                rnti,
                prbs: run,
                mcs,
                direction: Direction::Uplink,
                format: DciFormat::F0,
                ..Dci::default()
            });
        }
        if rng.chance(0.2) {
            let prbs = PrbSet::run(0, 4);
            let mcs = [Some(5), None];
            dcis.push(Dci {
                rnti: Rnti::SYSTEM_INFORMATION,
                format: DciFormat::F1A,
                prbs,
                mcs,
                ..Dci::default()
            });
        }
        report(dcis, subframe_index)
    }

    #[test]
    fn every_message_lies_in_its_receivers_space_and_on_no_other() {
        let scheduler = Scheduler::new(&CELL);
        let mut rng = Streams::new(1).stream("schedule");
        let (mut said, mut blocked) = (0, 0);
        for subframe_index in 0..400 {
            let users = 1 + rng.below(8) as u16;
            let report = busy(&mut rng, users, subframe_index);
            let mut sinr = Streams::new(subframe_index).stream("sinr");
            let sinrs: Vec<f64> = (0..users).map(|_| sinr.range(-5.0, 25.0)).collect();
            let announced = scheduler.announce(&report, |dci| {
                sinrs[usize::from(dci.rnti.0.saturating_sub(100) / 977) % sinrs.len()]
            });
            assert_eq!(announced.unencodable, []);
            assert_eq!(announced.messages.len() + announced.blocked.len(), report.dcis.len());
            let cces = scheduler.cces[usize::from(announced.cfi) - 1];
            let number = (subframe_index % 10) as usize;
            for (at, sent) in announced.messages.iter().enumerate() {
                assert!(
                    sent.place.range().end <= cces && in_search_space(sent.rnti, number, cces, sent.place)
                );
                assert!(announced.messages[..at].iter().all(|other| !other.place.overlaps(sent.place)));
            }
            said += announced.messages.len();
            blocked += announced.blocked.len();
        }
        assert!(blocked * 20 < said, "few grants find no CCE: {blocked} of {said}");
    }

    #[test]
    fn the_messages_say_the_grants() {
        let scheduler = Scheduler::new(&CELL);
        let report = busy(&mut Streams::new(2).stream("grants"), 3, 7);
        let announced = scheduler.announce(&report, |_| 20.0);
        let mut found: Vec<_> = announced
            .messages
            .iter()
            .map(|sent| {
                let carrier = &scheduler.carrier;
                let format = match sent.payload.len() {
                    len if len == carrier.size(Format::F1, Extras::NONE) => Format::F1,
                    _ => carrier.uplink_or_downlink(sent.payload, Extras::NONE),
                };
                let audience = Audience::of(sent.rnti).unwrap();
                let message = parse(carrier, Extras::NONE, audience, format, sent.payload);
                let dci = message.unwrap().to_dci(carrier, sent.rnti, McsTable::Qam64).unwrap();
                (dci.rnti, dci.direction, dci.prbs.runs().collect::<Vec<_>>(), dci.mcs)
            })
            .collect();
        let mut granted: Vec<_> = report
            .dcis
            .iter()
            .map(|dci| (dci.rnti, dci.direction, dci.prbs.runs().collect::<Vec<_>>(), dci.mcs))
            .collect();
        found.sort();
        granted.sort();
        assert_eq!(found, granted);
    }

    #[test]
    fn a_device_with_worse_reception_gets_more_cces() {
        let levels = [-6.0, 0.0, 3.0, 7.0, 12.0, 25.0].map(|sinr_db| level(39, sinr_db));
        assert!(levels.is_sorted_by(|a, b| a >= b), "{levels:?}");
        assert_eq!((levels[0], levels[5]), (8, 1));
    }

    #[test]
    fn a_grant_of_more_bits_implies_a_better_channel() {
        let of = |mcs| {
            let prbs = PrbSet::run(0, 20);
            let tbs = [McsTable::Qam64.tbs(mcs, 20, 1).unwrap(), airpace_core::Bits(0)];
            implied_sinr_db(&Dci { prbs, tbs, layers: 1, ..Dci::default() })
        };
        let implied = [0, 9, 17, 28].map(of);
        assert!(implied.is_sorted(), "{implied:?}");
        assert!((-8.0..0.0).contains(&implied[0]) && (17.0..25.0).contains(&implied[3]), "{implied:?}");
        assert_eq!(implied_sinr_db(&Dci::default()), 0.0);
    }

    #[test]
    fn the_control_region_grows_with_what_there_is_to_say() {
        let scheduler = Scheduler::new(&CELL);
        let mut rng = Streams::new(3).stream("regions");
        let cfi = |users, rng: &mut Rng| scheduler.announce(&busy(rng, users, 3), |_| 6.0).cfi;
        assert!(cfi(1, &mut rng) < cfi(8, &mut rng));
    }
}

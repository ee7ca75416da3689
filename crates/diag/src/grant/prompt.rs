//! Radio reports of a running modem: log packets in, reports out, each as soon as its subframe is complete.
//!
//! A modem reports a subframe in several packets: each carrier and each direction has its own, and some come in
//! batches. A report that was returned cannot be changed. Therefore each report waits until every active carrier and
//! direction has reported the same or a later subframe, but at most [`HOLD`].

use airpace_core::Direction;
use airpace_radio::{CarrierId, RadioReport, Slot};

use super::report::Reports;
use super::{Grant, GrantReport, Grants, Rat, UPLINK_DELAY};
use crate::packet::{LogPacket, Radio};
use crate::stamp::Stamp;

/// Maximum time for which a report waits for other carriers and directions (subframes).
///
/// Chosen: modems batch records of the shared channels over some tens of milliseconds. With this limit, a report still
/// arrives before telemetry counts as stale.
pub const HOLD: u64 = 40;

/// Number of subframes without any report after which a carrier and direction counts as inactive.
///
/// Chosen: a second.
const IDLE: u64 = 1_000;

/// Offset added to the carrier numbers of NR. It avoids conflicts, because modems number the carriers of LTE and of NR
/// both from 0.
///
/// Source: TS 36.212 §5.3.3.1 (a carrier indicator of LTE has three bits)
const FIRST_OF_NR: u8 = 8;

/// Makes radio reports from a radio's log packets as they arrive.
#[derive(Debug)]
pub struct Prompt {
    grants: Grants,
    generations: [Generation; 2],
    /// Time and subframe of the first grant of any technology.
    first: Option<(Stamp, u64)>,
}

/// State of one radio access technology.
#[derive(Debug)]
struct Generation {
    reports: Reports,
    /// The newest subframe reported for each carrier and direction.
    newest: Vec<((CarrierId, Direction), u64)>,
    /// Offset added to the subframe numbers of this technology, so that LTE and NR have the same number at the same
    /// time.
    shift: Option<i64>,
}

impl Prompt {
    /// Creates a converter for the packets of this radio.
    pub fn new(radio: Radio) -> Prompt {
        let generation =
            || Generation { reports: Reports::new(radio).without_waiting(), newest: vec![], shift: None };
        Prompt { grants: Grants::new(), generations: [generation(), generation()], first: None }
    }

    /// Takes the next packet.
    pub fn push(&mut self, packet: &LogPacket<'_>) {
        let Prompt { grants, generations, first } = self;
        grants.push(packet, |told| {
            if let GrantReport::Grant(grant) = told {
                generations[usize::from(grant.rat == Rat::Nr)].push(&grant, first);
            }
        });
    }

    /// The complete reports, in the order of their subframes for each technology.
    pub fn take(&mut self) -> Vec<RadioReport> {
        let [lte, nr] = &mut self.generations;
        let mut reports = lte.take(0);
        reports.extend(nr.take(FIRST_OF_NR));
        reports
    }

    /// Number of grants that were dropped because the report of their subframe had already been returned.
    pub fn left_out(&self) -> u64 {
        self.generations.iter().map(|generation| generation.reports.left_out()).sum()
    }
}

impl Generation {
    fn push(&mut self, grant: &Grant, first: &mut Option<(Stamp, u64)>) {
        // Use the subframe of the DCI, as the reports do.
        let is_earlier = grant.rat == Rat::Lte && grant.direction == Direction::Uplink;
        let subframe = grant.subframe.saturating_sub(if is_earlier { UPLINK_DELAY } else { 0 });
        let (began, number) = *first.get_or_insert((grant.time, grant.subframe));
        self.shift.get_or_insert_with(|| {
            let passed = (grant.time.nanos() as i64 - began.nanos() as i64) as f64 * 1e-6;
            number as i64 + libm::round(passed) as i64 - grant.subframe as i64
        });
        let place = (grant.carrier, grant.direction);
        match self.newest.iter_mut().find(|(other, _)| *other == place) {
            // Subframe numbers never decrease at a change of the cell, so the maximum is the newest subframe.
            Some((_, newest)) => *newest = subframe.max(*newest),
            None => self.newest.push((place, subframe)),
        }
        self.reports.push(grant);
    }

    fn take(&mut self, first_carrier: u8) -> Vec<RadioReport> {
        let Some(newest) = self.newest.iter().map(|(_, newest)| *newest).max() else { return vec![] };
        self.newest.retain(|(_, told)| told + IDLE >= newest);
        let all_told = self.newest.iter().map(|(_, newest)| *newest).min().unwrap_or(newest);
        let mut reports = self.reports.take(all_told.max(newest.saturating_sub(HOLD)) + 1);
        let shift = self.shift.unwrap_or(0);
        for report in &mut reports {
            let slots = report.slot.numerology.slots_per_subframe() as i64;
            let index = report.slot.index.saturating_add_signed(shift.saturating_mul(slots));
            report.slot = Slot { index, ..report.slot };
            report.carrier = CarrierId(report.carrier.0 + first_carrier);
        }
        reports
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Bits;
    use airpace_radio::Numerology;
    use proptest::prelude::*;

    use super::*;
    use crate::grant::{Block, Source};
    use crate::packet::LogCode;

    /// A grant in a subframe long after the start of its clock.
    fn grant(rat: Rat, carrier: u8, direction: Direction, subframe: u64) -> Grant {
        let begin = if rat == Rat::Lte { 5_000_000_000 } else { 2_000_000_000 };
        let block = Block {
            bits: Some(Bits(800)),
            mcs: None,
            modulation: None,
            rv: None,
            ndi: None,
            crc: None,
            again: false,
        };
        let time = Stamp::from_nanos(begin + subframe * 1_000_000);
        Grant {
            radio: Radio::FIRST,
            rat,
            direction,
            carrier: CarrierId(carrier),
            source: Source::SharedChannel,
            code: LogCode(0xB173),
            stamp: time,
            time,
            subframe,
            numerology: Numerology::default(),
            slot: 0,
            carrier_prbs: None,
            prbs: 4,
            prb_set: None,
            layers: 1,
            harq: None,
            format: None,
            blocks: [Some(block), None],
        }
    }

    fn push(prompt: &mut Prompt, grant: &Grant) {
        let at = usize::from(grant.rat == Rat::Nr);
        prompt.generations[at].push(grant, &mut prompt.first);
    }

    /// Subframe, carrier and grants of each report.
    fn told(reports: &[RadioReport]) -> Vec<(u64, u8, usize)> {
        reports.iter().map(|it| (it.slot.subframe(), it.carrier.0, it.dcis.len())).collect()
    }

    #[test]
    fn a_report_comes_with_the_packet_if_there_is_no_other_source() {
        let mut prompt = Prompt::new(Radio::FIRST);
        assert!(prompt.take().is_empty());
        for subframe in [10_000, 10_001, 10_004] {
            push(&mut prompt, &grant(Rat::Lte, 0, Direction::Downlink, subframe));
        }
        let all = told(&prompt.take());
        assert_eq!(all, [(10_000, 0, 1), (10_001, 0, 1), (10_002, 0, 0), (10_003, 0, 0), (10_004, 0, 1)]);
        assert!(prompt.take().is_empty() && prompt.left_out() == 0);
    }

    #[test]
    fn another_direction_is_waited_for_but_not_long() {
        let mut prompt = Prompt::new(Radio::FIRST);
        // The uplink is reported twenty subframes later; a grant precedes its transmission by four subframes.
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Uplink, 10_004));
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Downlink, 10_000));
        assert_eq!(told(&prompt.take()), [(10_000, 0, 2)]);
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Downlink, 10_020));
        assert!(prompt.take().is_empty(), "the uplink may have been granted something meanwhile");
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Uplink, 10_014));
        assert_eq!(told(&prompt.take()).last(), Some(&(10_010, 0, 1)));
        // The uplink sends no more reports.
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Downlink, 10_060));
        assert_eq!(
            told(&prompt.take()).last(),
            Some(&(10_020, 0, 1)),
            "it waits no longer than 40 subframes"
        );
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Downlink, 12_000));
        assert_eq!(told(&prompt.take()).last(), Some(&(12_000, 0, 1)), "and after a second not at all");
        assert_eq!(prompt.left_out(), 0);
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Uplink, 11_990));
        assert_eq!(prompt.left_out(), 1, "what comes too late is counted");
    }

    #[test]
    fn both_generations_have_one_clock() {
        let mut prompt = Prompt::new(Radio::FIRST);
        push(&mut prompt, &grant(Rat::Lte, 0, Direction::Downlink, 10_000));
        // The NR clock started three seconds earlier.
        push(&mut prompt, &grant(Rat::Nr, 0, Direction::Downlink, 13_000));
        push(&mut prompt, &grant(Rat::Nr, 0, Direction::Downlink, 13_005));
        let all = told(&prompt.take());
        assert_eq!((all[0], all[1], *all.last().unwrap()), ((10_000, 0, 1), (10_000, 8, 1), (10_005, 8, 1)));
    }

    proptest! {
        /// Streams arrive in any order with lags below the hold, in batches of any size: every grant is reported exactly
        /// once, and the subframes of each carrier are in order.
        #[test]
        fn no_grant_is_lost_or_told_twice(
            lags in prop::array::uniform4(0u64..20), batch in 1u64..20, looks in 1u64..10,
        ) {
            let mut prompt = Prompt::new(Radio::FIRST);
            let places = [(0, Direction::Downlink), (0, Direction::Uplink), (1, Direction::Downlink), (3, Direction::Uplink)];
            let mut reports = vec![];
            for now in 0..400u64 {
                for (&lag, &(carrier, direction)) in lags.iter().zip(&places) {
                    // At the end of a batch, all of its subframes are reported at once.
                    if now >= lag + batch && (now - lag).is_multiple_of(batch) && now < 350 {
                        for subframe in now - lag - batch..now - lag {
                            let on_air = 10_000 + subframe + if direction == Direction::Uplink { 4 } else { 0 };
                            push(&mut prompt, &grant(Rat::Lte, carrier, direction, on_air));
                        }
                    }
                }
                if now.is_multiple_of(looks) && now > 60 {
                    reports.extend(prompt.take());
                }
            }
            reports.extend(prompt.take());
            prop_assert_eq!(prompt.left_out(), 0);
            for carrier in [0, 1, 3] {
                let own: Vec<_> = reports.iter().filter(|it| it.carrier.0 == carrier).collect();
                prop_assert!(own.windows(2).all(|pair| pair[1].slot.index == pair[0].slot.index + 1));
                let grants = if carrier == 0 { 2 } else { 1 };
                prop_assert!(own.len() > 250 && own[50..own.len() - 60].iter().all(|it| it.dcis.len() == grants));
            }
        }
    }
}

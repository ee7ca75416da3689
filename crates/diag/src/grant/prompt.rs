//! Radio reports of a running modem: log packets in, reports out, each as soon as its subframe is complete.
//!
//! A modem reports a subframe in several packets: each carrier and each direction has its own, and some come in
//! batches. A report that was returned cannot be changed. Therefore each report waits until every active carrier and
//! direction has reported the same or a later subframe, but at most [`HOLD`](super::report::HOLD).

use airpace_radio::RadioReport;

use super::report::{Reports, Until};
use super::{GrantReport, Grants};
use crate::packet::{LogPacket, Radio};

/// Makes radio reports from a radio's log packets as they arrive.
#[derive(Debug)]
pub struct Prompt {
    grants: Grants,
    reports: Reports,
}

impl Prompt {
    /// Creates a converter for the packets of this radio.
    pub fn new(radio: Radio) -> Prompt {
        Prompt { grants: Grants::new(), reports: Reports::new(radio).without_waiting() }
    }

    /// Takes the next packet.
    pub fn push(&mut self, packet: &LogPacket<'_>) {
        let Prompt { grants, reports } = self;
        grants.push(packet, |report| {
            if let GrantReport::Grant(grant) = report {
                reports.push(&grant);
            }
        });
    }

    /// The complete reports, in the order of their subframes.
    pub fn take(&mut self) -> Vec<RadioReport> {
        self.reports.take(Until::Complete)
    }

    /// Number of grants that were dropped because the report of their subframe had already been returned.
    pub fn left_out(&self) -> u64 {
        self.reports.left_out()
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::{Bits, Direction};
    use airpace_radio::{CarrierId, Numerology};
    use proptest::prelude::*;

    use super::*;
    use crate::grant::{Block, Grant, Rat, Source};
    use crate::packet::LogCode;
    use crate::stamp::Stamp;

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
        prompt.reports.push(grant);
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

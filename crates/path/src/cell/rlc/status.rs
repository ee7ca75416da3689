//! STATUS exchange of acknowledged mode: polls of the sender, STATUS PDUs of the receiver, and their length.
//!
//! The STATUS about the data of one direction is sent in the transport blocks of the opposite direction.
//!
//! Source: TS 36.322 §5.2.2, §5.2.3; TS 38.322 §5.3.3, §5.3.4
//!
//! Differs: a STATUS for which HARQ fails is not repeated, and t-PollRetransmit never expires; data for which HARQ fails
//! is retransmitted after `RlcConfig::status_delay_ms`, independent of the STATUS.

use std::time::Duration;

use airpace_core::Time;

use super::super::config::RlcConfig;
use super::framing::Framing;

/// Sender and receiver of the STATUS exchange for the data of one direction.
#[derive(Clone, Debug)]
pub(super) struct StatusExchange {
    poll_pdus: u32,
    poll_bytes: u64,
    prohibit: Duration,
    framing: Framing,
    /// Number of PDUs since the last poll. `bytes` is the number of bytes since then.
    pdus: u32,
    bytes: u64,
    /// Time from which on a STATUS of the receiver is due; `None` if none is due.
    wanted_at: Option<Time>,
    /// Time from which on t-StatusProhibit permits a STATUS.
    allowed_at: Time,
}

/// Time from a poll until the receiver can send its STATUS.
///
/// Chosen: the time from a transport block of LTE to its HARQ acknowledgement.
const ANSWER: Duration = Duration::from_millis(4);

impl StatusExchange {
    pub(super) fn new(config: &RlcConfig, framing: Framing) -> StatusExchange {
        StatusExchange {
            poll_pdus: config.poll_pdus,
            poll_bytes: config.poll_bytes,
            prohibit: Duration::from_millis(config.status_prohibit_ms.into()),
            framing,
            pdus: 0,
            bytes: 0,
            wanted_at: None,
            allowed_at: Time::ZERO,
        }
    }

    /// Records that the sender puts `bytes` of data in `pdus` PDUs into a block. Returns whether the last of these PDUs
    /// polls. `is_last`: no more data is queued.
    ///
    /// Source: TS 36.322 §5.2.2.1
    pub(super) fn polls(&mut self, pdus: u32, bytes: u32, is_last: bool) -> bool {
        self.pdus += pdus;
        self.bytes += u64::from(bytes);
        let polls = is_last || self.pdus >= self.poll_pdus || self.bytes >= self.poll_bytes;
        if polls {
            (self.pdus, self.bytes) = (0, 0);
        }
        polls
    }

    /// Records that the receiver was polled at `now`.
    pub(super) fn polled(&mut self, now: Time) {
        self.want(now + ANSWER);
    }

    /// Requests a report of a gap by the receiver from `from` on, when t-Reordering has expired.
    pub(super) fn want(&mut self, from: Time) {
        self.wanted_at = Some(self.wanted_at.map_or(from, |at| at.min(from)));
    }

    /// Length of the STATUS that the receiver sends at `now`, including its MAC subheader; `None` if it sends
    /// none. The STATUS reports `missing` PDUs as lost.
    pub(super) fn take(&mut self, now: Time, missing: usize) -> Option<u32> {
        self.wanted_at.filter(|&at| at.max(self.allowed_at) <= now)?;
        self.wanted_at = None;
        self.allowed_at = now + self.prohibit;
        Some(self.framing.status_bytes(missing) + self.framing.per_status)
    }

    /// Uses the headers of another technology from now on.
    pub(super) fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Resets the exchange (handover).
    pub(super) fn reset(&mut self) {
        (self.pdus, self.bytes, self.wanted_at, self.allowed_at) = (0, 0, None, Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::config::Rat;
    use super::*;

    fn exchange() -> StatusExchange {
        let config =
            RlcConfig { poll_pdus: 4, poll_bytes: 5000, status_prohibit_ms: 60, ..RlcConfig::default() };
        StatusExchange::new(&config, Framing::new(Rat::Lte, &config))
    }

    #[test]
    fn a_sender_polls_after_so_many_pdus_or_bytes_and_with_its_last() {
        let mut exchange = exchange();
        let polls: Vec<bool> = (0..8).map(|_| exchange.polls(1, 100, false)).collect();
        assert_eq!(polls, [false, false, false, true, false, false, false, true]);
        assert!(!exchange.polls(1, 4999, false) && exchange.polls(1, 1, false));
        assert!(exchange.polls(1, 1, true));
    }

    #[test]
    fn a_receiver_answers_polls_at_most_once_in_the_prohibit_time() {
        let mut exchange = exchange();
        let mut sent = vec![];
        for ms in 0..200 {
            exchange.polled(Time::from_millis(ms));
            sent.extend(exchange.take(Time::from_millis(ms), 0).map(|_| ms));
        }
        assert_eq!(sent, [4, 64, 124, 184]);
    }
}

//! Where the peer is, and whether it really is there.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airpace_core::Time;

/// What may be sent to an address that was not validated, for each byte that came from there.
///
/// Source: RFC 9000 §8.1, §9.3.1
const AMPLIFICATION: u64 = 3;

/// The longest pause between two questions.
///
/// Chosen: an outage of 10 s is over for the transfer soon after it is over for the path.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A question that is repeated until it is answered.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    token: u64,
    /// When it is asked next.
    next: Time,
    asked: u32,
}

impl Question {
    /// A question that is asked at `when` first. Nobody can foresee `token`.
    pub fn new(token: u64, when: Time) -> Question {
        Question { token, next: when, asked: 0 }
    }

    /// When it is due.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The bytes to be answered, if it is due; then it waits for the answer, twice as long at each try.
    pub fn poll(&mut self, now: Time, first_pause: Duration) -> Option<u64> {
        if self.next > now {
            return None;
        }
        let pause = first_pause.saturating_mul(1 << self.asked.min(16));
        self.next = now + pause.min(LONGEST_PAUSE);
        self.asked += 1;
        Some(self.token)
    }

    /// Whether this answers it.
    pub fn is_answered_by(&self, token: u64) -> bool {
        self.asked > 0 && self.token == token
    }
}

/// An address of the peer, and ours that it was seen with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub peer: SocketAddr,
    pub local: Option<IpAddr>,
}

/// Where a connection's packets go.
#[derive(Debug)]
pub struct Path {
    ends: Ends,
    /// While the address is not validated.
    trial: Option<Trial>,
}

#[derive(Debug)]
struct Trial {
    /// Where the peer was before.
    before: Ends,
    question: Question,
    gives_up: Time,
    received: u64,
    sent: u64,
}

impl Path {
    /// A validated path.
    pub fn new(ends: Ends) -> Path {
        Path { ends, trial: None }
    }

    /// Where packets go now.
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// Our address has changed; the new one is not known.
    pub fn forget_local(&mut self) {
        self.ends.local = None;
    }

    /// Whether so many bytes may be sent.
    pub fn allows(&self, bytes: usize) -> bool {
        self.trial
            .as_ref()
            .is_none_or(|trial| trial.sent + bytes as u64 <= trial.received.saturating_mul(AMPLIFICATION))
    }

    /// So many bytes were sent.
    pub fn on_sent(&mut self, bytes: usize) {
        if let Some(trial) = &mut self.trial {
            trial.sent += bytes as u64;
        }
    }

    /// An authentic datagram of `bytes` bytes came from `from`; `is_newest` says that the peer had sent none later. The
    /// peer is where its newest datagram comes from. `token` is for the question whether it is.
    ///
    /// Source: RFC 9000 §9.3
    pub fn on_datagram(
        &mut self,
        now: Time,
        from: Ends,
        bytes: usize,
        is_newest: bool,
        token: u64,
        patience: Duration,
    ) {
        if from.peer == self.ends.peer {
            self.ends.local = from.local.or(self.ends.local);
            if let Some(trial) = &mut self.trial {
                trial.received += bytes as u64;
            }
            return;
        }
        if !is_newest {
            return;
        }
        let before = self.trial.as_ref().map_or(self.ends, |trial| trial.before);
        self.ends = from;
        self.trial = (before.peer != from.peer).then(|| Trial {
            before,
            question: Question::new(token, now),
            gives_up: now + patience,
            received: bytes as u64,
            sent: 0,
        });
    }

    /// An answer came. Returns the address that it validates.
    pub fn on_pong(&mut self, token: u64) -> Option<SocketAddr> {
        let trial = self.trial.take_if(|trial| trial.question.is_answered_by(token));
        trial.map(|_| self.ends.peer)
    }

    /// The question to ask at the new address now.
    pub fn poll_question(&mut self, now: Time, first_pause: Duration) -> Option<u64> {
        self.trial.as_mut()?.question.poll(now, first_pause)
    }

    /// Goes back to the address before if the new one does not answer.
    pub fn on_timeout(&mut self, now: Time) {
        if let Some(trial) = self.trial.take_if(|trial| trial.gives_up <= now) {
            self.ends = trial.before;
        }
    }

    /// When something is to be done; `may_ask` says whether that can be a question.
    pub fn next(&self, may_ask: bool) -> Option<Time> {
        let trial = self.trial.as_ref()?;
        Some(if may_ask { trial.question.next().min(trial.gives_up) } else { trial.gives_up })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    fn ends(port: u16) -> Ends {
        Ends { peer: SocketAddr::from(([192, 0, 2, 1], port)), local: None }
    }

    fn moved() -> Path {
        let mut path = Path::new(ends(1));
        path.on_datagram(Time::ZERO, ends(2), 100, true, 77, PATIENCE);
        path
    }

    #[test]
    fn a_new_address_gets_little_until_it_answers() {
        let mut path = moved();
        assert_eq!(path.ends(), ends(2));
        assert!(path.allows(300) && !path.allows(301));
        path.on_sent(200);
        assert!(!path.allows(101));
        path.on_datagram(Time::ZERO, ends(2), 50, false, 78, PATIENCE);
        assert!(path.allows(250));
        assert_eq!(path.on_pong(77), None, "nobody can answer what was not asked");
        assert_eq!(path.poll_question(Time::ZERO, Duration::from_millis(100)), Some(77));
        assert_eq!(path.poll_question(Time::from_millis(99), Duration::from_millis(100)), None);
        assert_eq!(path.on_pong(76), None);
        assert_eq!(path.on_pong(77), Some(ends(2).peer));
        assert!(path.allows(1_000_000) && path.next(true).is_none());
    }

    #[test]
    fn the_peer_is_not_lost_to_who_repeats_its_packets_from_elsewhere() {
        let mut path = moved();
        path.on_datagram(Time::ZERO, ends(1), 100, true, 78, PATIENCE);
        assert_eq!(path.ends(), ends(1));
        assert!(path.allows(1_000_000), "this address was validated before");
        let mut path = moved();
        path.on_datagram(Time::ZERO, ends(3), 100, false, 78, PATIENCE);
        assert_eq!(path.ends(), ends(2), "an old packet moves nobody");
        path.on_datagram(Time::ZERO, ends(3), 100, true, 78, PATIENCE);
        path.on_timeout(Time::ZERO + PATIENCE);
        assert_eq!(path.ends(), ends(1), "nobody answered there");
        assert!(path.allows(1_000_000));
    }
}

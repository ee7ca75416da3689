//! The peer's address, and its validation after a change.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airpace_core::Time;

/// Maximum number of bytes sent to an unvalidated address, per byte received from that address.
///
/// Source: RFC 9000 §8.1, §9.3.1
const AMPLIFICATION: u64 = 3;

/// Maximum interval between two Pings of a [`PathProbe`].
///
/// Chosen: after an outage of 10 s, the transfer resumes soon after the path does.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// A Ping that is repeated until its Pong arrives.
#[derive(Clone, Copy, Debug)]
pub struct PathProbe {
    token: u64,
    /// Instant of the next Ping.
    next: Time,
    asked: u32,
}

impl PathProbe {
    /// Creates a probe whose first Ping is due at `when`. `token` must be unpredictable.
    pub fn new(token: u64, when: Time) -> PathProbe {
        PathProbe { token, next: when, asked: 0 }
    }

    /// Instant at which the next Ping is due.
    pub fn poll_timeout(&self) -> Time {
        self.next
    }

    /// Returns the token to send if a Ping is due. The interval to the next Ping doubles with each attempt.
    pub fn poll(&mut self, now: Time, first_pause: Duration) -> Option<u64> {
        if self.next > now {
            return None;
        }
        let pause = first_pause.saturating_mul(1 << self.asked.min(16));
        self.next = now + pause.min(MAX_PAUSE);
        self.asked += 1;
        Some(self.token)
    }

    /// Whether a Pong with this token answers a Ping of this probe.
    pub fn is_answered_by(&self, token: u64) -> bool {
        self.asked > 0 && self.token == token
    }
}

/// An address of the peer, and the local address at which its packets arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEnds {
    pub peer: SocketAddr,
    pub local: Option<IpAddr>,
}

/// The addresses of a connection's packets.
#[derive(Debug)]
pub struct Path {
    ends: PathEnds,
    /// State of the validation of a new peer address; `None` if the current address is validated.
    trial: Option<Trial>,
}

#[derive(Debug)]
struct Trial {
    /// Addresses to which the path returns if the validation fails.
    before: PathEnds,
    question: PathProbe,
    gives_up: Time,
    received: u64,
    sent: u64,
}

impl Path {
    /// Creates a validated path.
    pub fn new(ends: PathEnds) -> Path {
        Path { ends, trial: None }
    }

    /// Returns the current addresses.
    pub fn ends(&self) -> PathEnds {
        self.ends
    }

    /// Notes that the local address has changed and that the new address is unknown.
    pub fn forget_local(&mut self) {
        self.ends.local = None;
    }

    /// Whether the amplification limit permits sending this many bytes.
    pub fn allows(&self, bytes: usize) -> bool {
        self.trial
            .as_ref()
            .is_none_or(|trial| trial.sent + bytes as u64 <= trial.received.saturating_mul(AMPLIFICATION))
    }

    /// Counts sent bytes against the amplification limit.
    pub fn on_sent(&mut self, bytes: usize) {
        if let Some(trial) = &mut self.trial {
            trial.sent += bytes as u64;
        }
    }

    /// Processes the addresses of an authentic datagram of `bytes` bytes. The peer's address is the source of its
    /// newest datagram; `is_newest` means that no datagram with a higher counter has arrived. A new address is
    /// validated by Pings with this `token`, for at most `patience`.
    ///
    /// Source: RFC 9000 §9.3
    pub fn on_datagram(
        &mut self,
        now: Time,
        from: PathEnds,
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
            question: PathProbe::new(token, now),
            gives_up: now + patience,
            received: bytes as u64,
            sent: 0,
        });
    }

    /// Processes a Pong. Returns the address that it validates.
    pub fn on_pong(&mut self, token: u64) -> Option<SocketAddr> {
        let trial = self.trial.take_if(|trial| trial.question.is_answered_by(token));
        trial.map(|_| self.ends.peer)
    }

    /// Returns the token of a Ping that is due at the new address.
    pub fn poll_question(&mut self, now: Time, first_pause: Duration) -> Option<u64> {
        self.trial.as_mut()?.question.poll(now, first_pause)
    }

    /// Returns to the previous address if the new one does not answer in time.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(trial) = self.trial.take_if(|trial| trial.gives_up <= now) {
            self.ends = trial.before;
        }
    }

    /// Returns the next deadline. `may_ask` is whether the amplification limit permits a Ping.
    pub fn poll_timeout(&self, may_ask: bool) -> Option<Time> {
        let trial = self.trial.as_ref()?;
        Some(if may_ask { trial.question.poll_timeout().min(trial.gives_up) } else { trial.gives_up })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    fn ends(port: u16) -> PathEnds {
        PathEnds { peer: SocketAddr::from(([192, 0, 2, 1], port)), local: None }
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
        assert!(path.allows(1_000_000) && path.poll_timeout(true).is_none());
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
        path.handle_timeout(Time::ZERO + PATIENCE);
        assert_eq!(path.ends(), ends(1), "nobody answered there");
        assert!(path.allows(1_000_000));
    }
}

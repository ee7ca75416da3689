//! The application above a sender: when it runs, how fast it writes, and how much data it has.

use std::time::Duration;

use airpace_cc::endpoint::{Backlog, Sender};
use airpace_core::{Bytes, Rate, Time};

use airpace_scenario::Flow;

/// Number of full packets that an application with pauses keeps written ahead of its sender while the application is
/// on. Bytes that are unsent when a pause starts are withdrawn.
///
/// Chosen: two packets, one to be sent and one that shows that the first packet is not the last.
const PACKETS_AHEAD: u64 = 2;

/// The application of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    start: Time,
    stop: Time,
    pauses: Option<(Duration, Duration)>,
    /// Size of the application's writes and time between them; with `None`, the application writes as fast as the
    /// sender accepts data.
    writes: Option<(Bytes, Duration)>,
    /// Data that the application has not written yet; `None` is unlimited.
    left: Option<Bytes>,
    /// Bytes that the application keeps written ahead of the sender, if it writes as fast as the sender accepts data.
    ahead: Bytes,
    is_on: bool,
    next_write: Time,
    next_turn: Time,
}

impl Traffic {
    /// Creates the application of `flow`. The application starts `late` after the time in the scenario, and writes
    /// packets of size `mss`.
    pub(crate) fn new(flow: &Flow, late: Duration, mss: Bytes) -> Traffic {
        let start = flow.start() + late;
        let seconds = Duration::from_secs_f64;
        let writes = flow.rate_mbps.map(|mbps| (mss, Rate::from_mbps(mbps).time_for(mss)));
        Traffic {
            start,
            stop: flow.stop(),
            pauses: flow.on_s.zip(flow.off_s).map(|(on, off)| (seconds(on), seconds(off))),
            writes,
            left: flow.size(),
            ahead: Bytes(PACKETS_AHEAD * mss.0),
            is_on: false,
            next_write: start,
            next_turn: start,
        }
    }

    /// Returns the sender's backlog before the application first runs.
    pub(crate) fn backlog(&mut self) -> Backlog {
        match (self.pauses, self.writes, self.left) {
            (None, None, None) => Backlog::Unlimited,
            (None, None, Some(_)) => Backlog::Limited(self.left.replace(Bytes::ZERO).unwrap_or_default()),
            _ => Backlog::Limited(Bytes::ZERO),
        }
    }

    /// Returns the application's start time.
    pub(crate) fn start(&self) -> Time {
        self.start
    }

    /// Returns the time at which the application stops permanently.
    pub(crate) fn stop(&self) -> Time {
        self.stop
    }

    /// Returns the time at which [`Traffic::wake`] must be called next.
    pub(crate) fn poll_timeout(&self) -> Time {
        let write = if self.is_on && self.writes.is_some() { self.next_write } else { Time::NEVER };
        write.min(self.next_turn).min(self.stop)
    }

    /// Processes the application's events that are due at `now`: it switches on or off, writes data, or stops.
    pub(crate) fn wake(&mut self, now: Time, sender: &mut Sender) {
        if now >= self.stop {
            sender.close();
            (self.is_on, self.next_turn, self.stop) = (false, Time::NEVER, Time::NEVER);
            return;
        }
        while self.next_turn <= now {
            self.is_on = !self.is_on;
            self.next_write = self.next_turn;
            self.next_turn = match self.pauses {
                Some((on, off)) => self.next_turn + if self.is_on { on } else { off },
                None => Time::NEVER,
            };
            if !self.is_on {
                self.take_back(sender);
            }
        }
        if let (true, Some((bytes, gap))) = (self.is_on, self.writes) {
            while self.next_write <= now {
                sender.offer(self.take(bytes));
                self.next_write += gap;
            }
        }
    }

    /// Lets an application with pauses write ahead of the sender, if the application is on and writes as fast as the
    /// sender accepts data.
    pub(crate) fn top_up(&mut self, sender: &mut Sender) {
        if self.pauses.is_none() || self.writes.is_some() || !self.is_on {
            return;
        }
        if let Backlog::Limited(waiting) = sender.backlog()
            && waiting < self.ahead
        {
            sender.offer(self.take(self.ahead - waiting));
        }
    }

    /// Takes at most this many bytes of what the application still has to write.
    pub(crate) fn take_most(&mut self, most: Bytes) -> Bytes {
        if self.is_on { self.take(most) } else { Bytes::ZERO }
    }

    /// Withdraws the bytes written ahead but not sent when a pause starts; the application writes them after the pause.
    fn take_back(&mut self, sender: &mut Sender) {
        if self.writes.is_some() {
            return;
        }
        if let Backlog::Limited(waiting) = sender.backlog() {
            let taken = waiting.min(self.ahead);
            sender.set_backlog(Backlog::Limited(waiting - taken));
            if let Some(left) = &mut self.left {
                *left += taken;
            }
        }
    }

    fn take(&mut self, wanted: Bytes) -> Bytes {
        let Some(left) = &mut self.left else { return wanted };
        let taken = wanted.min(*left);
        *left -= taken;
        taken
    }
}

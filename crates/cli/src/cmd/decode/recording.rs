//! The state of one recording while it is decoded.

use airpace_core::Direction;
use airpace_eval::tables::decoded::Gain;
use airpace_phy::decoder::Reading;
use airpace_phy::follow::Follower;
use airpace_phy::found::Found;
use airpace_radio::{CarrierId, Rnti};
use airpace_sdr::decode::{End, PendingSubframes};
use serde_json::{Value, json};

use super::Args;
use super::stats::Stats;
use super::users::Users;
use crate::terminal::count;

/// The number of subframes over which the throughput of the user who is followed is computed.
const WINDOW: u64 = 1000;

/// One recording.
pub struct Recording {
    /// Its name, as the user gave it.
    pub name: String,
    /// Its index among all recordings.
    pub carrier: CarrierId,
    /// Samples per second.
    pub rate_hz: f64,
    /// Its statistics.
    pub stats: Stats,
    /// Sums per user, with `--users`.
    pub users: Users,
    /// Subframes that may still get messages.
    pub pending: PendingSubframes,
    /// What is known in the end.
    pub end: Option<Box<End>>,
    /// The user who is followed, and what that user got.
    pub followed: Option<Followed>,
    /// The last subframe, and when it began, in milliseconds from the first sample.
    last: (u64, f64),
}

impl Recording {
    /// A recording of which nothing is known yet. Messages wait for `patience` subframes at most.
    pub fn new((name, carrier): (String, CarrierId), rate_hz: f64, args: &Args, patience: u64) -> Recording {
        Recording {
            name,
            carrier,
            rate_hz,
            stats: Stats::default(),
            users: Users::default(),
            pending: PendingSubframes::new(patience),
            end: None,
            followed: args.rnti.map(|rnti| Followed::new(Follower::new(rnti, WINDOW))),
            last: (0, 0.0),
        }
    }

    /// Notes that a subframe is reached. Returns when it began, in milliseconds from the first sample.
    pub fn advance(&mut self, reading: &Reading) -> f64 {
        let at_ms = reading.sample as f64 * 1e3 / self.rate_hz;
        self.last = (reading.index, at_ms);
        if let Some(followed) = &mut self.followed {
            followed.follower.advance(reading.index);
        }
        at_ms
    }

    /// When a subframe began, in milliseconds from the first sample.
    pub fn time_ms(&self, index: u64) -> f64 {
        let (last, last_ms) = self.last;
        last_ms + index as f64 - last as f64
    }
}

/// The user who is followed, and what that user got in total.
pub struct Followed {
    follower: Follower,
    /// Messages to the user, including those that grant nothing.
    heard: u64,
    totals: [Total; 2],
}

/// What the user who is followed got in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    grants: u64,
    new_bits: u64,
    again: u64,
    unknown: u64,
}

/// What the user who is followed gets by a grant, as JSON.
pub fn json(gain: &Gain) -> Value {
    json!({
        "new_bits": gain.new_bits,
        "retransmission": gain.retransmission,
        "again": gain.again,
        "unknown": gain.unknown,
        "throughput_bps": gain.throughput_bps,
    })
}

impl Followed {
    fn new(follower: Follower) -> Followed {
        Followed { follower, heard: 0, totals: [Total::default(); 2] }
    }

    /// Takes a message to the user who is followed. If it is a grant, returns what the user gets by it.
    pub fn take(&mut self, found: &Found) -> Option<Gain> {
        self.heard += 1;
        let own = self.follower.take(found)?;
        let total = &mut self.totals[usize::from(own.dci.direction == Direction::Uplink)];
        total.grants += 1;
        total.new_bits += own.new_bits.0;
        total.again += u64::from(own.again);
        total.unknown += u64::from(own.unknown);
        let sent = own.dci.mcs.iter().zip(own.dci.retransmission).filter(|(mcs, _)| mcs.is_some());
        Some(Gain {
            new_bits: own.new_bits.0,
            retransmission: sent.map(|(_, again)| again).collect(),
            again: own.again,
            unknown: own.unknown,
            throughput_bps: self.follower.throughput(own.dci.direction).as_bps(),
        })
    }

    /// The RNTI of the user.
    pub fn rnti(&self) -> Rnti {
        self.follower.rnti()
    }

    /// Whether any message was ever sent to the user.
    pub fn was_heard(&self) -> bool {
        self.heard > 0
    }

    /// What the user got in total, over so many subframes.
    pub fn summary(&self, subframes: u64) -> String {
        let of = |name: &str, total: &Total| {
            format!(
                "{name} {}, {:.3} Mbit/s, {} sent again, {} of unknown size",
                count(total.grants, "grant"),
                total.new_bits as f64 / subframes.max(1) as f64 / 1e3,
                count(total.again, "block"),
                total.unknown
            )
        };
        let [down, up] = &self.totals;
        format!("over {}: {}; {}", count(subframes, "subframe"), of("down", down), of("up", up))
    }
}

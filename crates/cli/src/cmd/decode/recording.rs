//! The state of one recording while it is decoded.

use airpace_core::Direction;
use airpace_phy::decoder::Reading;
use airpace_phy::follow::Follower;
use airpace_phy::found::Found;
use airpace_radio::{CarrierId, Rnti};
use airpace_sdr::decode::{End, PendingSubframes};
use airpace_tables::decoded::Gain;
use serde_json::{Value, json};

use super::Args;
use super::stats::Stats;
use super::users::Users;
use crate::terminal::count;

/// Number of subframes over which the throughput of the followed user is computed.
const WINDOW: u64 = 1000;

/// Decoding state of one recording.
pub struct Recording {
    /// Name of the recording, as given by the user.
    pub name: String,
    /// Index of the recording among all recordings.
    pub carrier: CarrierId,
    /// Samples per second.
    pub rate_hz: f64,
    /// Statistics for `--stats`.
    pub stats: Stats,
    /// Sums per user, with `--users`.
    pub users: Users,
    /// Subframes for which further messages may be decoded.
    pub pending: PendingSubframes,
    /// Final state of the decoder, once the recording has ended.
    pub end: Option<Box<End>>,
    /// The followed user and the user's totals, with `--rnti`.
    pub followed: Option<Followed>,
    /// Index and start of the last subframe, the start in milliseconds from the first sample.
    last: (u64, f64),
}

impl Recording {
    /// A recording before decoding. Messages are held back for at most `patience` subframes.
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

    /// Records that the decoder has reached a subframe. Returns the start of the subframe, in milliseconds from the
    /// first sample.
    pub fn advance(&mut self, reading: &Reading) -> f64 {
        let at_ms = reading.sample as f64 * 1e3 / self.rate_hz;
        self.last = (reading.index, at_ms);
        if let Some(followed) = &mut self.followed {
            followed.follower.advance(reading.index);
        }
        at_ms
    }

    /// Start of a subframe, in milliseconds from the first sample.
    pub fn time_ms(&self, index: u64) -> f64 {
        let (last, last_ms) = self.last;
        last_ms + index as f64 - last as f64
    }
}

/// The followed user and the user's totals.
pub struct Followed {
    follower: Follower,
    /// Number of messages to the user, including those without a grant.
    heard: u64,
    totals: [Total; 2],
}

/// Totals of the followed user in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    grants: u64,
    new_bits: u64,
    again: u64,
    unknown: u64,
}

/// The bits that a grant gives to the followed user, as JSON.
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

    /// Processes a message to the followed user. If the message is a grant, returns the user's gain.
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

    /// Whether any message to the user has been decoded.
    pub fn was_heard(&self) -> bool {
        self.heard > 0
    }

    /// Summary of the user's totals over this many subframes.
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

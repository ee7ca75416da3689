//! The state of one recording while it is decoded.

use airpace_core::{Direction, Rate};
use airpace_phy::decoder::Reading;
use airpace_phy::follow::{Follower, OwnGrant};
use airpace_phy::found::Found;
use airpace_radio::{CarrierId, Rnti};

use super::tally::Tally;
use super::users::Users;
use super::{End, PendingSubframes};

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
    /// Counters.
    pub tally: Tally,
    /// Sums per user.
    pub users: Users,
    /// Subframes for which further messages may be decoded.
    pub pending: PendingSubframes,
    /// Final state of the decoder, once the recording has ended.
    pub end: Option<Box<End>>,
    /// The followed user and the user's totals.
    pub followed: Option<Followed>,
    /// Index and start of the last subframe, the start in milliseconds from the first sample.
    last: (u64, f64),
}

impl Recording {
    /// A recording before decoding, in which the user `followed` is followed. Messages are held back for at most `patience`
    /// subframes.
    pub fn new(
        (name, carrier): (String, CarrierId),
        rate_hz: f64,
        followed: Option<Rnti>,
        patience: u64,
    ) -> Recording {
        Recording {
            name,
            carrier,
            rate_hz,
            tally: Tally::default(),
            users: Users::default(),
            pending: PendingSubframes::new(patience),
            end: None,
            followed: followed.map(|rnti| Followed::new(Follower::new(rnti, WINDOW))),
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
pub struct Total {
    /// Number of grants.
    pub grants: u64,
    /// Bits of initial transmissions.
    pub new_bits: u64,
    /// Number of retransmitted blocks.
    pub again: u64,
    /// Number of retransmitted blocks of unknown size.
    pub unknown: u64,
}

impl Followed {
    fn new(follower: Follower) -> Followed {
        Followed { follower, heard: 0, totals: [Total::default(); 2] }
    }

    /// Processes a message to the followed user. If the message is a grant, returns it, and the throughput of new bits up to
    /// this message in its direction.
    pub fn take(&mut self, found: &Found) -> Option<(OwnGrant, Rate)> {
        self.heard += 1;
        let own = self.follower.take(found)?;
        let total = &mut self.totals[usize::from(own.dci.direction == Direction::Uplink)];
        total.grants += 1;
        total.new_bits += own.new_bits.0;
        total.again += u64::from(own.again);
        total.unknown += u64::from(own.unknown);
        let throughput = self.follower.throughput(own.dci.direction);
        Some((own, throughput))
    }

    /// The RNTI of the user.
    pub fn rnti(&self) -> Rnti {
        self.follower.rnti()
    }

    /// Whether any message to the user has been decoded.
    pub fn was_heard(&self) -> bool {
        self.heard > 0
    }

    /// The user's totals of downlink and uplink.
    pub fn totals(&self) -> &[Total; 2] {
        &self.totals
    }
}

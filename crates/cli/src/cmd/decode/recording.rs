//! What is kept of one recording while it is decoded.

use airpace_core::radio::Direction;
use airpace_phy::decoder::Reading;
use airpace_phy::follow::{Follower, Own};
use airpace_phy::found::Found;
use serde_json::{Value, json};

use super::Args;
use super::cell::Ending;
use super::stats::Stats;
use super::subframes::Held;

/// Throughput of who is followed is over so many subframes.
const WINDOW: u64 = 1000;

/// One recording.
pub struct Recording {
    /// As it was named.
    pub name: String,
    /// Samples per second.
    pub rate_hz: f64,
    /// When it began, in milliseconds since the first did.
    pub begin_ms: f64,
    /// Its counts.
    pub stats: Stats,
    /// Subframes that may still get messages.
    pub held: Held,
    /// How it ended.
    pub end: Option<Result<Box<Ending>, anyhow::Error>>,
    /// Who is followed, and what it got.
    pub followed: Option<Followed>,
    /// The last subframe, and when it began, in milliseconds from the first sample.
    last: (u64, f64),
    /// Whose it was.
    pci: Option<u16>,
}

impl Recording {
    /// Nothing is known of it yet; messages wait for `patience` subframes at most.
    pub fn new(name: String, rate_hz: f64, args: &Args, patience: u64) -> Recording {
        Recording {
            name,
            rate_hz,
            begin_ms: 0.0,
            stats: Stats::default(),
            held: Held::new(patience),
            end: None,
            followed: args.rnti.map(|rnti| Followed::new(Follower::new(rnti, WINDOW))),
            last: (0, 0.0),
            pci: None,
        }
    }

    /// Comes to a subframe. Gives when it began, in milliseconds from the first sample.
    pub fn advance(&mut self, reading: &Reading) -> f64 {
        let at_ms = reading.sample as f64 * 1e3 / self.rate_hz;
        (self.last, self.pci) = ((reading.index, at_ms), Some(reading.pci));
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

    /// Whether its last subframe was this cell's.
    pub fn is_of(&self, pci: u16) -> bool {
        self.pci == Some(pci)
    }
}

/// Who is followed, and what it got in all.
pub struct Followed {
    follower: Follower,
    totals: [Total; 2],
}

/// What who is followed got, one way.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    grants: u64,
    new_bits: u64,
    again: u64,
    unknown: u64,
}

impl Followed {
    fn new(follower: Follower) -> Followed {
        Followed { follower, totals: [Total::default(); 2] }
    }

    /// Takes a message in; gives what it means if it is a grant of who is followed.
    pub fn take(&mut self, found: &Found) -> Option<Own> {
        let own = self.follower.take(found)?;
        let total = &mut self.totals[usize::from(own.dci.direction == Direction::Uplink)];
        total.grants += 1;
        total.new_bits += own.new_bits.0;
        total.again += u64::from(own.again);
        total.unknown += u64::from(own.unknown);
        Some(own)
    }

    /// What a grant means, and the throughput at its time.
    pub fn json(&self, own: &Own) -> Value {
        let sent = own.dci.mcs.iter().zip(own.dci.retransmission).filter(|(mcs, _)| mcs.is_some());
        json!({
            "new_bits": own.new_bits.0,
            "retransmission": sent.map(|(_, again)| again).collect::<Vec<_>>(),
            "again": own.again,
            "unknown": own.unknown,
            "throughput_bps": self.follower.throughput(own.dci.direction).as_bps(),
        })
    }

    /// The same for people.
    pub fn line(&self, own: &Own) -> String {
        let mbps = self.follower.throughput(own.dci.direction).as_bps() as f64 / 1e6;
        format!("new {} bits, {} sent again, {mbps:.3} Mbit/s", own.new_bits.0, own.again)
    }

    /// What it got in all, over so many subframes.
    pub fn summary(&self, subframes: u64) -> String {
        let of = |name: &str, total: &Total| {
            format!(
                "{name} {} grants, {:.3} Mbit/s, {} blocks sent again, {} of unknown size",
                total.grants,
                total.new_bits as f64 / subframes.max(1) as f64 / 1e3,
                total.again,
                total.unknown
            )
        };
        let [down, up] = &self.totals;
        format!("over {subframes} subframes: {}; {}", of("down", down), of("up", up))
    }
}

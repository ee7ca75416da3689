//! Counters of a recording while it is decoded.

use std::collections::BTreeMap;

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_phy::found::words::direction_of;
use airpace_phy::found::{Found, RntiKind};
use airpace_phy::load::used_prbs;
use airpace_radio::Rnti;

/// Kind of RNTI, direction and format of a message.
pub type Sort = (&'static str, &'static str, &'static str);

/// Counters of one recording.
#[derive(Debug, Default)]
pub struct Tally {
    /// Sums of the accepted messages of each sort.
    pub sorts: BTreeMap<Sort, Sum>,
    /// Number of messages to each user.
    pub users: BTreeMap<Rnti, u64>,
    subframes: u64,
    /// Number of decoded subframes with each control format indicator.
    pub cfis: BTreeMap<u8, u64>,
    /// PRB pairs of all completed subframes.
    pub prbs: u64,
    /// Granted downlink PRB pairs of all completed subframes.
    pub prbs_used: u64,
    /// Number of subframes that may contain unread messages, and number of CCEs of these messages.
    pub unread: (u64, u64),
    /// Sum of the signal-to-noise ratios of all decoded subframes, in dB.
    pub snr_db: f64,
    /// Number of gaps of samples.
    pub gaps: u64,
    /// Number of jumps of frame numbers.
    pub leaps: u64,
    /// Number of PHICH answers to uplink blocks.
    pub answers: u64,
    /// Number of these answers that are NACK.
    pub refusals: u64,
    /// Processor time.
    pub cost: Cost,
}

/// Sums of the messages of one sort.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Number of messages.
    pub messages: u64,
    /// Granted PRB pairs.
    pub prbs: u64,
    /// Bits of initial transmissions.
    pub new_bits: u64,
    /// Number of retransmitted blocks.
    pub again: u64,
    /// Sum of the probabilities that a message is wrong.
    pub doubt: f64,
}

impl Tally {
    /// Counts a message that is accepted.
    pub fn message(&mut self, found: &Found) {
        let sum = self.sorts.entry((found.kind.name(), direction_of(found), found.format())).or_default();
        sum.messages += 1;
        sum.doubt += 1.0 - f64::from(found.confidence);
        if let Some(dci) = &found.dci {
            sum.prbs += u64::from(dci.prbs.len());
            sum.new_bits += dci.new_bits().0;
            sum.again += (0..2).filter(|&at| dci.mcs[at].is_some() && dci.retransmission[at]).count() as u64;
        }
        if found.kind == RntiKind::User {
            *self.users.entry(found.rnti).or_default() += 1;
        }
    }

    /// Called when a cell was found.
    pub fn locked(&mut self) {
        self.cost.has_searched = true;
    }

    /// Counts a decoded subframe.
    pub fn heard(&mut self, reading: &Reading) {
        self.subframes += 1;
        *self.cfis.entry(reading.cfi).or_default() += 1;
        self.snr_db += f64::from(reading.snr_db);
        self.cost.subframe();
    }

    /// Counts a completed subframe, to which no further messages are added.
    pub fn whole(&mut self, reading: &Reading) {
        self.prbs += u64::from(reading.prbs);
        self.prbs_used += u64::from(used_prbs(reading));
        let unread = reading.unread().len() as u64;
        self.unread.0 += u64::from(unread > 0);
        self.unread.1 += unread;
    }

    /// Number of decoded subframes; `None` if there are none.
    pub fn subframes(&self) -> Option<u64> {
        (self.subframes > 0).then_some(self.subframes)
    }

    /// Counts an answer to an uplink block.
    pub fn answer(&mut self, answer: &Answered) {
        self.answers += 1;
        self.refusals += u64::from(!answer.ack);
    }

    /// Counts a gap of samples. Returns the number of gaps so far.
    pub fn gap(&mut self) -> u64 {
        self.gaps += 1;
        self.gaps
    }

    /// Counts a jump of frame numbers. Returns the number of jumps so far.
    pub fn leap(&mut self) -> u64 {
        self.leaps += 1;
        self.leaps
    }

    /// Adds processor time.
    pub fn spent(&mut self, us: f64) {
        self.cost.spent(us);
    }
}

/// Processor time per subframe. For percentiles, times above 100 ms count as 100 ms.
#[derive(Debug, Default)]
pub struct Cost {
    /// Number of subframes by processor time in whole microseconds.
    by_us: BTreeMap<u32, u64>,
    since_us: f64,
    subframes: u32,
    total_us: f64,
    /// Whether a cell was found since processor time was last added. The search's processor time must not count as that
    /// of a subframe.
    has_searched: bool,
    /// Processor time until cells were found (µs).
    pub search_us: f64,
}

impl Cost {
    const MAX_US: f64 = 1e5;

    fn subframe(&mut self) {
        self.subframes += 1;
    }

    /// Adds processor time: the cost of the subframes since the last call.
    fn spent(&mut self, us: f64) {
        self.since_us += us;
        if std::mem::take(&mut self.has_searched) {
            self.search_us += self.since_us;
            (self.since_us, self.subframes) = (0.0, 0);
        } else if self.subframes > 0 {
            self.total_us += self.since_us;
            let each = (self.since_us / f64::from(self.subframes)).clamp(0.0, Cost::MAX_US);
            *self.by_us.entry(each as u32).or_default() += u64::from(self.subframes);
            (self.since_us, self.subframes) = (0.0, 0);
        }
    }

    /// Median, 99th percentile and mean of the processor time per subframe (µs).
    pub fn summary(&self) -> Option<[f64; 3]> {
        let count: u64 = self.by_us.values().sum();
        let at = |share: f64| {
            let mut left = (count as f64 * share) as u64;
            for (&us, &subframes) in &self.by_us {
                if left < subframes {
                    return Some(f64::from(us));
                }
                left -= subframes;
            }
            None
        };
        Some([at(0.5)?, at(0.99)?, self.total_us / count as f64])
    }
}

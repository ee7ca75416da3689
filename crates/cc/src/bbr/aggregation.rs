//! ACK aggregation: the number of bytes that the path acknowledges in one burst, beyond those that BtlBw explains. The
//! window must include them, or aggregated ACKs would stop the sender.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

/// Number of rounds that each of the two buckets covers. A bucket contains the maximum of its rounds.
///
/// Source: Linux tcp_bbr.c
const BUCKET_ROUNDS: u8 = 5;

/// Maximum allowance for ACK aggregation: the bytes that BtlBw delivers in this time.
///
/// Source: Linux tcp_bbr.c
const CAP: Duration = Duration::from_millis(100);

/// Number of bytes after which an epoch ends in any case.
///
/// Source: Linux tcp_bbr.c, where it is 2^20 packets; an epoch that long says nothing of aggregation.
const EPOCH_LIMIT: Bytes = Bytes((1 << 20) * 1500);

/// The windowed maximum of the bytes acknowledged beyond those that BtlBw explains.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregation {
    epoch: Time,
    epoch_acked: Bytes,
    buckets: [Bytes; 2],
    bucket: usize,
    bucket_rounds: u8,
}

impl Aggregation {
    /// Processes one ACK.
    pub fn on_ack(&mut self, now: Time, acked: Bytes, btlbw: Rate, cwnd: Bytes, round_start: bool) {
        if round_start {
            self.bucket_rounds += 1;
            if self.bucket_rounds >= BUCKET_ROUNDS {
                self.bucket_rounds = 0;
                self.bucket = 1 - self.bucket;
                self.buckets[self.bucket] = Bytes::ZERO;
            }
        }
        let mut expected = btlbw.bytes_in(now - self.epoch);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_LIMIT {
            self.restart(now);
            expected = Bytes::ZERO;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.buckets[self.bucket] = self.buckets[self.bucket].max(extra);
    }

    /// Starts an epoch: earlier ACKs give no information about later ones.
    pub fn restart(&mut self, now: Time) {
        self.epoch = now;
        self.epoch_acked = Bytes::ZERO;
    }

    /// Bytes to add to the window.
    pub fn allowance(&self, btlbw: Rate) -> Bytes {
        self.buckets[0].max(self.buckets[1]).min(btlbw.bytes_in(CAP))
    }
}

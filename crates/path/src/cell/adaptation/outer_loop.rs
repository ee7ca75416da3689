//! The outer loop of link adaptation: it learns from lost blocks how far the reported SINR is off.

use super::AdaptationConfig;

/// Corrects the reported SINR until the wanted share of first transmissions is lost.
///
/// On a constant channel, the error curve is as steep as a cliff. A plain outer loop would try the next MCS again and
/// again, and each time lose the blocks of a round trip. So after the second failed attempt under the same CQI, the
/// offset is held below the one that failed, and twice as long after every further failure.
///
/// Chosen: the hold. On a channel that changes, the CQI changes too, and the loop behaves like the usual one.
#[derive(Clone, Debug)]
pub(in super::super) struct OuterLoop {
    offset_db: f64,
    down_db: f64,
    up_db: f64,
    least_db: f64,
    most_db: f64,
    /// Offsets with which the latest subframes were sent.
    sent_with_db: [f64; FEEDBACK_MS as usize],
    /// Losses of blocks sent up to this subframe belong to the latest attempt.
    attempt_ends: Option<u64>,
    /// Attempts that failed since the CQI changed.
    failed_attempts: u32,
    hold: Option<Hold>,
}

/// An offset that may not be exceeded yet.
#[derive(Clone, Copy, Debug)]
struct Hold {
    at_db: f64,
    /// Blocks to be received before the offset may be exceeded: in total, and still missing.
    patience: u32,
    left: u32,
}

impl OuterLoop {
    pub(in super::super) fn new(config: &AdaptationConfig) -> OuterLoop {
        let down_db = config.outer_loop_step_db;
        OuterLoop {
            offset_db: 0.0,
            down_db,
            up_db: down_db * config.outer_loop_target / (1.0 - config.outer_loop_target),
            least_db: config.outer_loop_min_db,
            most_db: config.outer_loop_max_db,
            sent_with_db: [0.0; FEEDBACK_MS as usize],
            attempt_ends: None,
            failed_attempts: 0,
            hold: None,
        }
    }

    /// Records the present offset for the blocks that are chosen in this subframe.
    pub(in super::super) fn subframe_begins(&mut self, subframe: u64) {
        self.sent_with_db[(subframe % FEEDBACK_MS) as usize] = self.offset_db;
    }

    /// Call it when the channel has changed: an MCS that failed may now succeed.
    pub(in super::super) fn channel_changed(&mut self) {
        self.failed_attempts = 0;
        self.hold = None;
    }

    /// Takes in whether a block chosen in subframe `sent`, at most [`FEEDBACK_MS`] ago, was received.
    pub(in super::super) fn on_first_transmission(&mut self, sent: u64, received: bool) {
        if received {
            self.rise()
        } else {
            self.fall(sent)
        }
        self.offset_db = self.offset_db.clamp(self.least_db, self.most_db);
    }

    /// The offset added to the SINR, in dB.
    pub(in super::super) fn offset_db(&self) -> f64 {
        self.offset_db
    }

    fn rise(&mut self) {
        self.offset_db += self.up_db;
        if let Some(hold) = &mut self.hold
            && hold.left > 0
            && self.offset_db >= hold.at_db
        {
            hold.left -= 1;
            self.offset_db = hold.at_db;
        }
    }

    fn fall(&mut self, sent: u64) {
        let new_attempt = self.attempt_ends.is_none_or(|end| sent > end);
        if new_attempt {
            self.attempt_ends = Some(sent + FEEDBACK_MS);
            self.failed_attempts += 1;
        }
        let failed_db = self.sent_with_db[(sent % FEEDBACK_MS) as usize];
        let patience = match self.hold {
            // An offset within the hold was believed safe, so every loss counts.
            Some(hold) if failed_db <= hold.at_db => None,
            Some(hold) => Some((2 * hold.patience).min(MOST_PATIENCE)),
            None if self.failed_attempts < 2 => None,
            None => Some(LEAST_PATIENCE),
        };
        if patience.is_none() || new_attempt {
            self.offset_db -= self.down_db;
        }
        if let (Some(patience), true) = (patience, new_attempt) {
            // Two codewords may have raised the offset twice since the subframe before.
            self.hold = Some(Hold { at_db: failed_db - 2.0 * self.up_db, patience, left: patience });
        }
    }
}

/// After so many subframes, every block chosen before a loss was known has been sent.
const FEEDBACK_MS: u64 = 8;

/// Received blocks before a hold ends: the first hold, and the longest.
const LEAST_PATIENCE: u32 = 16;
const MOST_PATIENCE: u32 = 4096;

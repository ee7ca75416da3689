//! Outer loop of link adaptation: estimates the offset of the reported SINR from lost blocks.

use super::AdaptationConfig;

/// Adjusts the offset of the reported SINR until the target share of first transmissions is lost.
///
/// On a constant channel, the error curve is very steep. A plain outer loop would retry the next MCS repeatedly, and each
/// time lose the blocks of a round trip. Therefore an MCS with too many lost blocks is not used again until a number of
/// blocks with lower MCSs were received; every further failure under the same CQI doubles that number.
///
/// The trial counts blocks, and the hold refers to an MCS. A hold on an offset alone may be above the threshold of the
/// failed MCS and would then keep that MCS: two runs on the same channel would settle at rates that differ by a sixth.
///
/// Chosen: the hold. On a varying channel, the CQI changes too, and the loop behaves like a plain outer loop.
#[derive(Clone, Debug)]
pub(in super::super) struct OuterLoop {
    offset_db: f64,
    target: f64,
    down_db: f64,
    up_db: f64,
    least_db: f64,
    most_db: f64,
    /// MCS and offset of the latest subframes.
    sent: [Step; FEEDBACK_MS as usize],
    trial: Option<Trial>,
    hold: Option<Hold>,
}

/// An MCS and the lowest offset, in dB, with which it is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct Step {
    pub mcs: u8,
    pub from_db: f64,
}

/// First transmissions with the highest MCS in recent use.
#[derive(Clone, Copy, Debug)]
struct Trial {
    mcs: u8,
    blocks: u32,
    lost: u32,
}

/// An MCS that must not be used yet.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// Upper bound of the offset in dB (exclusive).
    below_db: f64,
    mcs: u8,
    /// Number of blocks to be received before the MCS may be used again: in total, and remaining.
    patience: u32,
    left: u32,
}

impl OuterLoop {
    pub(in super::super) fn new(config: &AdaptationConfig) -> OuterLoop {
        let down_db = config.outer_loop_step_db;
        OuterLoop {
            offset_db: 0.0,
            target: config.outer_loop_target,
            down_db,
            up_db: down_db * config.outer_loop_target / (1.0 - config.outer_loop_target),
            least_db: config.outer_loop_min_db,
            most_db: config.outer_loop_max_db,
            sent: [Step::default(); FEEDBACK_MS as usize],
            trial: None,
            hold: None,
        }
    }

    /// Records the MCS and offset of the blocks in this subframe.
    pub(in super::super) fn subframe_begins(&mut self, subframe: u64, step: Step) {
        self.sent[(subframe % FEEDBACK_MS) as usize] = step;
    }

    /// Call it when the channel has changed: an MCS that failed may now succeed.
    pub(in super::super) fn channel_changed(&mut self) {
        self.trial = None;
        self.hold = None;
    }

    /// Processes whether a block chosen in subframe `sent`, at most [`FEEDBACK_MS`] ago, was received.
    pub(in super::super) fn on_first_transmission(&mut self, sent: u64, received: bool) {
        let step = self.sent[(sent % FEEDBACK_MS) as usize];
        if self.hold.is_some_and(|hold| hold.left > 0 && step.mcs >= hold.mcs) {
            // The block was sent before the hold started. Its loss is already taken into account.
            return;
        }
        if received {
            self.rise()
        } else {
            self.offset_db -= self.down_db;
        }
        if self.has_failed(step.mcs, received) {
            self.begin_hold(step);
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
            && self.offset_db >= hold.below_db
        {
            hold.left -= 1;
            self.offset_db = hold.below_db;
        }
    }

    /// Counts a block, and returns whether too many blocks with the highest MCS in recent use were lost.
    fn has_failed(&mut self, mcs: u8, received: bool) -> bool {
        let before = self.trial.filter(|trial| trial.mcs >= mcs);
        let trial = self.trial.insert(before.unwrap_or(Trial { mcs, blocks: 0, lost: 0 }));
        if mcs < trial.mcs {
            return false;
        }
        trial.blocks += 1;
        trial.lost += u32::from(!received);
        let limit = ALWAYS_ALLOWED + FAILED_OF_TARGET * self.target * f64::from(trial.blocks);
        if f64::from(trial.lost) > limit {
            return true;
        }
        if trial.blocks >= TRIAL_BLOCKS {
            trial.blocks /= 2;
            trial.lost /= 2;
            self.hold = self.hold.filter(|hold| mcs < hold.mcs);
        }
        false
    }

    fn begin_hold(&mut self, step: Step) {
        let patience = self.hold.map_or(MIN_PATIENCE, |hold| (2 * hold.patience).min(MAX_PATIENCE));
        let below_db = step.from_db - MARGIN_DB;
        self.hold = Some(Hold { below_db, mcs: step.mcs, patience, left: patience });
        self.offset_db = self.offset_db.min(below_db);
        self.trial = None;
    }
}

/// After this many subframes, all blocks chosen before the report of a loss have been sent.
const FEEDBACK_MS: u64 = 8;

/// Number of received blocks until a hold ends: for the first hold, and at most.
const MIN_PATIENCE: u32 = 16;
const MAX_PATIENCE: u32 = 4096;

/// An MCS has failed if the share of its lost blocks exceeds this multiple of the target.
///
/// Chosen: one and a half. With the usual target of a tenth, an MCS with that loss delivers one eighth fewer bits than
/// the next lower MCS without losses, so beyond the target the lower MCS is better; but chance alone must not count as a
/// failure.
const FAILED_OF_TARGET: f64 = 1.5;

/// Number of losses in a trial that never count as a failure, however few blocks the trial has.
///
/// Chosen: two. With the losses of the usual target, three of an MCS's first blocks are seldom lost; with an MCS beyond
/// the steep part of the curve, they always are before the first loss is reported.
const ALWAYS_ALLOWED: f64 = 2.0;

/// Number of blocks after which a trial has succeeded: the loop drops its hold, and continues to count from half of these
/// blocks.
const TRIAL_BLOCKS: u32 = 128;

/// Distance in dB between a threshold and the held offset below it: larger than rounding errors.
const MARGIN_DB: f64 = 1e-6;

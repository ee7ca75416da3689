//! Outer loop of link adaptation: estimates the offset of the reported SINR from lost blocks.

use super::AdaptationConfig;

/// Adjusts the offset of the reported SINR until the target share of first transmissions is lost.
///
/// On a constant channel, the curve of the error rate over the SINR is very steep. A plain outer loop would retry the
/// next MCS repeatedly, and each time lose the blocks of a round trip. Therefore an MCS with too many lost blocks is
/// not used again until a number of blocks with lower MCSs were received; every further failure under the same CQI
/// doubles this number.
///
/// A trial counts the blocks of an MCS, and a hold forbids an MCS. If a hold only limited the offset, the limit could
/// be above the threshold of the failed MCS, and this MCS would continue to be used. Two runs on the same channel would
/// then reach rates that differ by a sixth.
///
/// Chosen: the hold as a rule. On a varying channel, the CQI changes too, and the loop behaves like a plain outer loop.
#[derive(Clone, Debug)]
pub(in super::super) struct OuterLoop {
    offset_db: f64,
    target: f64,
    down_db: f64,
    up_db: f64,
    least_db: f64,
    most_db: f64,
    trial: Option<Trial>,
    hold: Option<Hold>,
}

/// An MCS and the lowest offset with which it is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// The MCS.
    pub mcs: u8,
    /// The lowest offset of the outer loop, in dB, with which this MCS is chosen.
    pub from_db: f64,
}

/// Counters of the first transmissions with the highest MCS that was used recently.
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
    /// Number of blocks to be received before the MCS may be used again. `left` is the number of these blocks that
    /// remain.
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
            trial: None,
            hold: None,
        }
    }

    /// Ends the trial and the hold. Called when the channel has changed, because an MCS that failed before may now
    /// succeed.
    pub(in super::super) fn channel_changed(&mut self) {
        self.trial = None;
        self.hold = None;
    }

    /// Processes the feedback for a block: whether its first transmission was received. `step` was valid when the MCS of
    /// the block was chosen.
    pub(in super::super) fn on_first_transmission(&mut self, step: Step, received: bool) {
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

/// Number of received blocks until the first hold ends. `MAX_PATIENCE` is the maximum of this number for later holds.
const MIN_PATIENCE: u32 = 16;
const MAX_PATIENCE: u32 = 4096;

/// An MCS has failed if its share of lost blocks exceeds the target share multiplied by this factor.
///
/// Chosen: one and a half. With more losses than the target, the next lower MCS is better: with the usual target of a
/// tenth, an MCS with that loss delivers one eighth fewer bits than the next lower MCS without losses. The factor
/// exceeds one so that random variation alone does not count as a failure.
const FAILED_OF_TARGET: f64 = 1.5;

/// Number of losses that are always permitted in a trial, even if the trial has few blocks.
///
/// Chosen: two. At the usual target loss, three losses among the first blocks of an MCS are rare. With an MCS beyond
/// the steep part of the curve, at least three blocks are always lost before the first loss is reported.
const ALWAYS_ALLOWED: f64 = 2.0;

/// Number of blocks after which a trial has succeeded: the outer loop removes its hold and halves the counters of the
/// trial.
const TRIAL_BLOCKS: u32 = 128;

/// A hold limits the loop's offset to a value that is this many dB below the step to the forbidden MCS. The difference
/// exceeds rounding errors.
const MARGIN_DB: f64 = 1e-6;

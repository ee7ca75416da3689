//! The outer loop of link adaptation: it learns from lost blocks how far the reported SINR is off.

use super::AdaptationConfig;

/// Corrects the reported SINR until the wanted share of first transmissions is lost.
///
/// On a constant channel, the error curve is as steep as a cliff. A plain outer loop would try the next MCS again and
/// again, and each time lose the blocks of a round trip. So an MCS of which too many blocks were lost is not used again
/// until a number of blocks of lower ones were received; every further failure under the same CQI doubles that number.
///
/// The trial counts blocks, and the hold names an MCS. A hold at an offset alone may lie above the step to the MCS that
/// failed, and then it keeps that MCS: two runs on the same channel would settle at rates that differ by a sixth.
///
/// Chosen: the hold. On a channel that changes, the CQI changes too, and the loop behaves like the usual one.
#[derive(Clone, Debug)]
pub(in super::super) struct OuterLoop {
    offset_db: f64,
    target: f64,
    down_db: f64,
    up_db: f64,
    least_db: f64,
    most_db: f64,
    /// What the latest subframes were sent with.
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

/// First transmissions with the highest MCS that was used lately.
#[derive(Clone, Copy, Debug)]
struct Trial {
    mcs: u8,
    blocks: u32,
    lost: u32,
}

/// An MCS that must not be used yet.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// Offsets stay below this.
    below_db: f64,
    mcs: u8,
    /// Blocks to be received before the MCS may be used again: in total, and still missing.
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

    /// Records what the blocks of this subframe are sent with.
    pub(in super::super) fn subframe_begins(&mut self, subframe: u64, step: Step) {
        self.sent[(subframe % FEEDBACK_MS) as usize] = step;
    }

    /// Call it when the channel has changed: an MCS that failed may now succeed.
    pub(in super::super) fn channel_changed(&mut self) {
        self.trial = None;
        self.hold = None;
    }

    /// Takes in whether a block chosen in subframe `sent`, at most [`FEEDBACK_MS`] ago, was received.
    pub(in super::super) fn on_first_transmission(&mut self, sent: u64, received: bool) {
        let step = self.sent[(sent % FEEDBACK_MS) as usize];
        if self.hold.is_some_and(|hold| hold.left > 0 && step.mcs >= hold.mcs) {
            // It was sent before the hold began, and the hold knows all that it could say.
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

    /// Counts a block, and returns whether too many were lost of the highest MCS that was used lately.
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
        let patience = self.hold.map_or(LEAST_PATIENCE, |hold| (2 * hold.patience).min(MOST_PATIENCE));
        let below_db = step.from_db - MARGIN_DB;
        self.hold = Some(Hold { below_db, mcs: step.mcs, patience, left: patience });
        self.offset_db = self.offset_db.min(below_db);
        self.trial = None;
    }
}

/// After so many subframes, every block chosen before a loss was known has been sent.
const FEEDBACK_MS: u64 = 8;

/// Received blocks before a hold ends: the first hold, and the longest.
const LEAST_PATIENCE: u32 = 16;
const MOST_PATIENCE: u32 = 4096;

/// An MCS has failed if more than this many times the target is lost of its blocks.
///
/// Chosen: one and a half. Of an MCS with the usual target of a tenth, an eighth part fewer bits are received than of an MCS
/// without losses that is one step lower, so beyond the target the lower one is better; but luck alone must not be a failure.
const FAILED_OF_TARGET: f64 = 1.5;

/// Losses of a trial that are no failure however few its blocks are.
///
/// Chosen: two. Of an MCS with the usual target's losses, three of the first blocks are seldom lost; of one beyond the cliff,
/// they always are before the first loss is known.
const ALWAYS_ALLOWED: f64 = 2.0;

/// After so many blocks, a trial has succeeded: the loop drops its hold, and counts half of these blocks on.
const TRIAL_BLOCKS: u32 = 128;

/// How far below a step the offset is held, in dB: more than errors of rounding.
const MARGIN_DB: f64 = 1e-6;

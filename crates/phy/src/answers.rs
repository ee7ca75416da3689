//! HARQ feedback on the PHICH for granted uplink blocks.
//!
//! A user that receives a grant in subframe n transmits in subframe n + 4. The cell sends an ACK or NACK on the PHICH
//! in n + 8, on a resource that follows from the grant. After a NACK without a new grant, the user retransmits the
//! block with the same parameters, and the cell sends feedback again eight subframes later.

use airpace_radio::Rnti;

use crate::cell::Cell;
use crate::dci::Message;
use crate::evidence::confidence;
use crate::found::Found;
use crate::harq::PROCESSES;
use crate::observation::AnswerHeard;
use crate::phich;

/// Subframes from an uplink grant to its feedback, and from a NACK to the next feedback: the block is transmitted after
/// four subframes, and its feedback follows after four more.
///
/// Source: TS 36.213 §8.0, §8.3 and §9.1.2
pub const ANSWER_AFTER: u64 = PROCESSES;

/// HARQ feedback for an uplink block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    /// User of the block.
    pub rnti: Rnti,
    /// Subframe number of the grant.
    pub granted: u64,
    /// Number of transmissions of the block with this grant: 1, or more after retransmissions without a new grant.
    pub attempt: u8,
    /// Whether the cell sent an ACK.
    pub ack: bool,
    /// Posterior probability of this feedback, 0…1.
    pub confidence: f32,
}

impl Answered {
    /// The feedback as a word: `ACK` or `NACK`.
    pub fn word(&self) -> &'static str {
        if self.ack { "ACK" } else { "NACK" }
    }
}

/// Pending HARQ feedback.
#[derive(Clone, Debug)]
pub struct Answers {
    cell: Cell,
    due: Vec<Due>,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    rnti: Rnti,
    granted: u64,
    /// Subframe of the feedback.
    at: u64,
    attempt: u8,
    /// Index of the feedback in [`crate::Observation::answers`].
    place: usize,
}

/// Minimum amplitude, relative to reference signals, for which feedback counts as transmitted.
///
/// Chosen: the middle between 0 (nothing transmitted) and 1 (feedback with the power of the reference signals).
const SENT: f32 = 0.5;

/// Maximum number of tracked transmissions of a block.
///
/// Source: TS 36.331 §6.3.2, the largest maxHARQ-Tx
const MAX_ATTEMPTS: u8 = 28;

impl Answers {
    /// Creates the state for a cell without grants.
    pub fn new(cell: Cell) -> Answers {
        Answers { cell, due: Vec::new() }
    }

    /// Discards pending feedback after a jump of the cell's subframe numbers, because the subframe of the feedback is
    /// then unknown.
    pub fn leap(&mut self) {
        self.due.clear();
    }

    /// Evaluates the feedback received in subframe `index`, then adds the grants of that subframe.
    pub fn read(&mut self, index: u64, heard: &[AnswerHeard], found: &[Found]) -> Vec<Answered> {
        let (now, later): (Vec<Due>, Vec<Due>) = self.due.iter().partition(|due| due.at <= index);
        self.due = later;
        let mut answered = Vec::new();
        for due in now.into_iter().filter(|due| due.at == index) {
            let Some(sound) = heard.get(due.place).filter(|sound| sound.amplitude.abs() > SENT) else {
                continue;
            };
            let ack = sound.llr > 0.0;
            answered.push(Answered {
                rnti: due.rnti,
                granted: due.granted,
                attempt: due.attempt,
                ack,
                confidence: confidence(sound.llr.abs() * std::f32::consts::LOG2_E),
            });
            if !ack && due.attempt < MAX_ATTEMPTS {
                self.due.push(Due { at: index + ANSWER_AFTER, attempt: due.attempt + 1, ..due });
            }
        }
        for found in found {
            self.expect(found);
        }
        answered
    }

    /// Adds pending feedback for a grant. It replaces the pending feedback of the same HARQ process.
    fn expect(&mut self, found: &Found) {
        let Message::Uplink(uplink) = &found.message else { return };
        let at = found.index + ANSWER_AFTER;
        self.due.retain(|due| due.rnti != found.rnti || due.at != at);
        let (group, sequence) =
            phich::resource(&self.cell, usize::from(uplink.start), usize::from(uplink.cyclic_shift));
        let place = group * phich::sequences(self.cell.cp) + sequence;
        self.due.push(Due { rnti: found.rnti, granted: found.index, at, attempt: 1, place });
    }
}

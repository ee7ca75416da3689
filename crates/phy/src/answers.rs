//! How a cell answers the users to whom it granted uplink blocks: whether it received their blocks.
//!
//! A user sends with a grant of subframe n in n + 4. The cell answers on the PHICH in n + 8, at a place that follows
//! from the grant. If the answer is no and no new grant comes with it, the user sends the block again as before, and
//! the cell answers after eight more subframes.

use airpace_radio::Rnti;

use crate::cell::Cell;
use crate::dci::Message;
use crate::evidence::confidence;
use crate::found::Found;
use crate::harq::PROCESSES;
use crate::observation::AnswerHeard;
use crate::phich;

/// Subframes from an uplink grant to its answer, and from a NACK to the next answer: the block is sent after four
/// subframes and answered after four more.
///
/// Source: TS 36.213 §8.0, §8.3 and §9.1.2
pub const ANSWER_AFTER: u64 = PROCESSES;

/// An answer to an uplink block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    /// Whose block.
    pub rnti: Rnti,
    /// Number of the subframe in which it was granted.
    pub granted: u64,
    /// How often the block was sent by that grant: 1, or more if it was sent again without a new grant.
    pub attempt: u8,
    /// Whether the cell received it.
    pub ack: bool,
    /// The probability that the cell gave this answer, 0…1.
    pub confidence: f32,
}

/// The answers that are due.
#[derive(Clone, Debug)]
pub struct Answers {
    cell: Cell,
    due: Vec<Due>,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    rnti: Rnti,
    granted: u64,
    /// Subframe of the answer.
    at: u64,
    attempt: u8,
    /// Its place among [`crate::Observation::answers`].
    place: usize,
}

/// From this amplitude on, an answer counts as sent.
///
/// Chosen: halfway between silence and the power of other control channels.
const SENT: f32 = 0.5;

/// A block is followed for at most this many attempts.
///
/// Source: TS 36.331 §6.3.2, the largest maxHARQ-Tx
const MOST_ATTEMPTS: u8 = 28;

impl Answers {
    /// For a cell that has granted nothing yet.
    pub fn new(cell: Cell) -> Answers {
        Answers { cell, due: Vec::new() }
    }

    /// The cell's own numbers leapt: it is not known any more when answers are due.
    pub fn leap(&mut self) {
        self.due.clear();
    }

    /// Takes the answers heard in subframe `index`, and then the grants of that subframe.
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
            if !ack && due.attempt < MOST_ATTEMPTS {
                self.due.push(Due { at: index + ANSWER_AFTER, attempt: due.attempt + 1, ..due });
            }
        }
        for found in found {
            self.expect(found);
        }
        answered
    }

    /// A new grant replaces what its HARQ process had.
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

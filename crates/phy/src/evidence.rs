//! Decision which candidates are accepted as messages.
//!
//! All evidence for or against a message is measured in bits (log2 of a likelihood ratio) and added:
//!
//! | evidence | bits |
//! | --- | --- |
//! | soft bits of its CCEs, against random bits ([`Candidate::evidence`]) | up to 72 per CCE |
//! | probability of its field values ([`reading`]); a payload without a valid meaning is dropped | about − its length |
//! | its place | − 6 |
//! | probability of its RNTI ([`history`]): active, known, expected after a random-access response, never seen | − 2 … − 22 |
//! | agreement of format and fields with the user's configuration ([`history`]) | 0 … − 24 |
//! | PRBs or a direction that another message of the subframe already has | − 4 … − 10 |
//!
//! The sum is the logarithm of the odds, which gives the confidence. A message for an RNTI that was never seen must
//! also be likelier than the similar words that noise may turn into it ([`Candidate::apart`]); each of these words has
//! another RNTI. Among messages that share CCEs, only the likeliest is kept.
//!
//! If the confidence in a message of an unknown user is too low, the message waits for another message to the same
//! RNTI. Two false messages have the same RNTI by chance in one of 2^16 cases, so the second message adds 16 bits. A
//! message of an unknown user with high confidence waits as well if its format is ambiguous, because the next message
//! mostly resolves the format. A message of a known user is output at once.

pub mod confidence;
pub mod history;
mod priors;
pub mod reading;
pub mod table;

pub use confidence::{Caution, confidence};
pub use history::{History, User};
pub use reading::{Meanings, Reading};

use std::collections::VecDeque;

use airpace_core::tables::lte::McsTable;
use airpace_core::{Bits, Direction};
use airpace_radio::{Dci, PrbSet, Rnti};

use crate::dci::{Audience, Carrier, Format, Message};
use crate::found::{Found, RntiKind};
use crate::harq::{Granted, HarqMemory};
use crate::observation::Observation;
use crate::pdcch;
use crate::search::Candidate;
use priors::PRIORS;
use table::Misses;

/// Minimum log2 likelihood ratio of a message's format to all other formats (bits) for output without waiting for more
/// messages.
const CLEAR: f32 = 4.0;

/// Minimum log2 likelihood ratio of a format to all other formats (bits) for reporting the format as known. At this
/// ratio, the format is wrong in less than one of 500 messages.
const SURE: f32 = 9.0;

/// Number of messages with sufficient confidence after which their user counts as present, even if their meaning is
/// ambiguous.
const SURELY_THERE: u32 = 2;

/// Minimum score of a message for waiting (bits).
const MIN_HOPE: f32 = -16.0;

/// Evaluation of one cell's candidates.
#[derive(Clone, Debug)]
pub struct Evidence {
    pci: u16,
    meanings: Meanings,
    caution: Caution,
    history: History,
    stranger: User,
    harq: HarqMemory,
    misses: Misses,
    /// Last received subframe, and the last subframe before it that was not received.
    heard: Option<u64>,
    unheard: u64,
    waiting: VecDeque<Judged>,
}

/// Candidate with at least one valid reading.
#[derive(Clone, Debug)]
struct Judged {
    candidate: Candidate,
    readings: Vec<Reading>,
    in_own_space: bool,
    at: Moment,
    /// Evidence for the message (bits), without the probability of its RNTI and the history of its user.
    alone: f32,
    /// Contribution of this message to its user's support (bits).
    own: f32,
    /// Contribution of this message to the odds that its RNTI is a group instead of a user (bits). `None` before it is
    /// added to the history.
    for_group: Option<f32>,
}

/// Subframe and reception conditions of a candidate.
#[derive(Clone, Copy, Debug)]
struct Moment {
    index: u64,
    sfn: u16,
    subframe: u8,
    cfi: u8,
    snr_db: f32,
}

impl Judged {
    /// log2 of the probability that the message has this reading, if it is addressed to `user`.
    fn weight(&self, user: &User, reading: &Reading) -> f32 {
        user.agrees(reading, self.for_group.unwrap_or_default()) - reading.cost
    }
}

impl Evidence {
    /// Evaluation for a cell without known users.
    pub fn new(pci: u16, carrier: Carrier, caution: Caution) -> Evidence {
        Evidence {
            pci,
            meanings: Meanings::new(carrier),
            caution,
            history: History::default(),
            stranger: User::stranger(),
            harq: HarqMemory::default(),
            misses: Misses::default(),
            heard: None,
            unheard: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Known users and their history.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Number of messages that wait for evidence.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Advances to subframe `index`.
    pub fn advance(&mut self, index: u64) {
        self.history.advance(index);
        if self.heard.replace(index).is_none_or(|last| last + 1 < index) {
            self.unheard = index.saturating_sub(1);
        }
        if index.is_multiple_of(1024) {
            let history = &self.history;
            self.harq.retain(|rnti| history.user(rnti).is_some());
        }
    }

    /// Reports that the cell's own frame numbers jumped by `by` subframes, forward or backward, before the current
    /// subframe.
    pub fn leap(&mut self, by: i64) {
        if let Some(index) = self.heard {
            self.harq.leap(index, by);
        }
    }

    /// Evaluates the candidates of one subframe. Appends the accepted messages, including those of earlier subframes
    /// that were waiting.
    pub fn judge(
        &mut self,
        index: u64,
        observation: &Observation,
        candidates: &[Candidate],
        out: &mut Vec<Found>,
    ) {
        let at = Moment {
            index,
            sfn: observation.sfn,
            subframe: observation.number as u8,
            cfi: observation.cfi,
            snr_db: observation.snr_db,
        };
        let mut consistent = self.consistent(at, observation.cces(), candidates);
        let mut heard = Vec::new();
        for judged in &mut consistent {
            heard.push(judged.candidate.message.rnti);
            if confidence(self.score(judged)) >= self.caution.new {
                self.hear(judged);
            }
        }
        // First release the waiting messages of these users: they may resolve the reading of the new messages.
        self.revisit(&heard, out);
        for judged in consistent {
            if self.is_ready(&judged) {
                self.release(judged, out);
            } else {
                self.wait(judged);
            }
        }
        self.revisit(&heard, out);
        self.expire(index, out);
    }

    /// Decides on all messages that are still waiting, as after their maximum waiting time. Call it at the end of a
    /// recording.
    pub fn finish(&mut self, out: &mut Vec<Found>) {
        self.expire(u64::MAX, out);
    }

    /// Selects the likeliest candidates that are compatible with each other.
    fn consistent(&self, at: Moment, cces: usize, candidates: &[Candidate]) -> Vec<Judged> {
        let mut open: Vec<(f32, Judged)> = candidates
            .iter()
            .filter_map(|candidate| {
                let judged = self.read(at, cces, candidate)?;
                Some((self.score(&judged), judged))
            })
            .collect();
        open.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut taken = Taken::default();
        let mut kept: Vec<Judged> = Vec::new();
        // The likeliest first: later candidates must not overlap, and pay for conflicting PRBs and directions.
        for (score, mut judged) in open {
            let place = judged.candidate.message.place;
            if kept.iter().any(|other| other.candidate.message.place.overlaps(place)) {
                continue;
            }
            let Some(message) = self.best_reading(&judged).map(|reading| reading.message) else { continue };
            let against = taken.against(self.meanings.carrier(), judged.candidate.message.rnti, &message);
            judged.alone += against;
            if score + against >= MIN_HOPE {
                if score + against > 0.0 {
                    taken.take(self.meanings.carrier(), judged.candidate.message.rnti, &message);
                }
                kept.push(judged);
            }
        }
        kept.sort_by_key(|judged| judged.candidate.message.place);
        kept
    }

    /// All readings of a candidate; `None` if it has none.
    fn read(&self, at: Moment, cces: usize, candidate: &Candidate) -> Option<Judged> {
        let message = candidate.message;
        let audience = Audience::of(message.rnti)?;
        let place = message.place;
        let in_own_space = pdcch::in_own_space(message.rnti, usize::from(at.subframe), cces, place);
        let in_common_space = pdcch::in_common_space(place, cces);
        let readings: Vec<Reading> = self
            .meanings
            .of(audience, message.payload, in_own_space)
            .filter(|reading| in_common_space || !matches!(reading.message, Message::Power(_)))
            .collect();
        let alone = candidate.surplus() + f32::from(message.payload.len());
        let is_known = !readings.is_empty();
        is_known.then_some(Judged {
            candidate: *candidate,
            readings,
            in_own_space,
            at,
            alone,
            own: 0.0,
            for_group: None,
        })
    }

    /// log2 of the odds of a candidate with its likeliest reading.
    fn score(&self, judged: &Judged) -> f32 {
        let rnti = judged.candidate.message.rnti;
        let user = self.user(rnti);
        let weights = judged.readings.iter().map(|reading| judged.weight(user, reading));
        let prior = self.history.prior(rnti, judged.own);
        let score = judged.alone + prior + weights.fold(f32::NEG_INFINITY, f32::max);
        // The similar words are for RNTIs that were never seen.
        confidence::all_true(score, judged.candidate.apart + (prior - PRIORS.rnti.new_user))
    }

    fn user(&self, rnti: Rnti) -> &User {
        self.history.user(rnti).unwrap_or(&self.stranger)
    }

    /// The likeliest reading; of equal readings, the last.
    fn best_reading(&self, judged: &Judged) -> Option<Reading> {
        let user = self.user(judged.candidate.message.rnti);
        let weights = judged.readings.iter().map(|reading| (judged.weight(user, reading), reading));
        weights.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, reading)| *reading)
    }

    /// Whether the confidence in a message is sufficient to output it now.
    fn is_ready(&self, judged: &Judged) -> bool {
        let rnti = judged.candidate.message.rnti;
        let confidence = confidence(self.score(judged));
        if Audience::of(rnti) == Some(Audience::Everyone) {
            return confidence >= self.caution.known;
        }
        match self.history.user(rnti) {
            Some(user) if user.believed > 0 => confidence >= self.caution.known,
            // A new user's message waits until its format is clear. If the user counts as present, only the choice
            // between user and group must be clear.
            user => {
                let is_there = user.is_some_and(|user| user.sure >= SURELY_THERE);
                let is_enough = is_there && self.is_surely_one(judged);
                confidence >= self.caution.new && (is_enough || self.is_worth_reading(judged))
            }
        }
    }

    /// Whether a message is clearly addressed to a user, or clearly addressed to a group.
    fn is_surely_one(&self, judged: &Judged) -> bool {
        let is_group = |format| matches!(format, Format::F3 | Format::F3A);
        self.is_clear(judged, CLEAR, |format, rival| is_group(format) == is_group(rival))
    }

    /// Whether the format of a message is clear, apart from the pair 1B and 1D, which cannot be distinguished.
    fn is_worth_reading(&self, judged: &Judged) -> bool {
        let is_beam = |format| matches!(format, Format::F1B | Format::F1D);
        self.is_clear(judged, CLEAR, |format, rival| is_beam(format) && is_beam(rival))
    }

    /// Whether a message's format is likelier by `margin` bits than all other possible formats of its bits. Formats for
    /// which `are_alike` is true are not compared.
    fn is_clear(&self, judged: &Judged, margin: f32, are_alike: impl Fn(Format, Format) -> bool) -> bool {
        let Some(best) = self.best_reading(judged) else { return false };
        let user = self.user(judged.candidate.message.rnti);
        let format = best.message.format();
        let rivals = judged.readings.iter().filter(|rival| {
            let rival = rival.message.format();
            rival != format && !are_alike(format, rival)
        });
        rivals.map(|rival| judged.weight(user, rival)).fold(f32::NEG_INFINITY, f32::max)
            <= judged.weight(user, &best) - margin
    }

    /// Updates the history of the RNTI, before the meaning of the message is clear.
    fn hear(&mut self, judged: &mut Judged) {
        let rnti = judged.candidate.message.rnti;
        judged.for_group = Some(self.history.hear(rnti, &judged.readings, judged.in_own_space));
    }

    fn wait(&mut self, mut judged: Judged) {
        let rnti = judged.candidate.message.rnti;
        // A retransmission of the block may be accepted before this message. The size of the retransmission is that of
        // this grant, so store this grant now.
        if confidence(self.score(&judged)) >= self.caution.last
            && let Some(reading) = self.best_reading(&judged)
        {
            let by_table = self.by_table(rnti, &reading.message);
            _ = self.grant(rnti, judged.at, &reading.message, &by_table);
        }
        // Evidence of this message alone, without the probability of its RNTI and the user's history.
        let reading = judged.readings.iter().map(|reading| -reading.cost).fold(f32::NEG_INFINITY, f32::max);
        let bits =
            confidence::all_true(judged.alone + reading, judged.candidate.apart - PRIORS.rnti.new_user);
        judged.own = self.history.suspect(rnti, judged.at.subframe, judged.candidate.message.place, bits);
        self.waiting.push_back(judged);
    }

    /// Checks the waiting messages of some users again.
    fn revisit(&mut self, heard: &[Rnti], out: &mut Vec<Found>) {
        // The output of one message may make another waiting message ready.
        loop {
            let ready = self
                .waiting
                .iter()
                .position(|judged| heard.contains(&judged.candidate.message.rnti) && self.is_ready(judged));
            let Some(judged) = ready.and_then(|at| self.waiting.remove(at)) else { break };
            self.release(judged, out);
        }
    }

    /// Decides on messages whose waiting time is over.
    fn expire(&mut self, now: u64, out: &mut Vec<Found>) {
        let patience = self.caution.patience;
        while self.waiting.front().is_some_and(|first| first.at.index.saturating_add(patience) <= now) {
            let Some(judged) = self.waiting.pop_front() else { break };
            if confidence(self.score(&judged)) >= self.caution.last {
                let rnti = judged.candidate.message.rnti;
                self.release(judged, out);
                self.revisit(&[rnti], out);
            }
        }
    }

    /// Accepts a message, and appends it to the output.
    fn release(&mut self, mut judged: Judged, out: &mut Vec<Found>) {
        if judged.for_group.is_none() {
            self.hear(&mut judged);
        }
        let Some(reading) = self.best_reading(&judged) else { return };
        let score = self.score(&judged);
        let is_format_known = self.is_clear(&judged, SURE, |_, _| false);
        let sent = judged.candidate.message;
        let at = judged.at;
        self.history.believe(sent.rnti, at.index, &judged.readings, &reading, judged.in_own_space);
        let message = reading.message;
        let by_table = self.by_table(sent.rnti, &message);
        self.weigh_table(sent.rnti, at.index, &message, &by_table);
        let (table, is_table_known) = self.table(sent.rnti, &message);
        let dci = self.grant(sent.rnti, at, &message, &by_table);
        out.push(Found {
            pci: self.pci,
            index: at.index,
            sfn: at.sfn,
            subframe: at.subframe,
            cfi: at.cfi,
            rnti: sent.rnti,
            kind: RntiKind::of(sent.rnti, &message),
            payload: sent.payload,
            place: sent.place,
            message,
            extras: reading::EXTRAS[reading.extras],
            prbs: message.prbs(self.meanings.carrier()),
            dci,
            table,
            is_table_known,
            is_format_known,
            snr_db: at.snr_db,
            confidence: confidence(confidence::all_true(score, judged.candidate.lead)),
        });
    }
}

impl Evidence {
    /// Updates the estimate of a user's MCS table from a downlink grant.
    fn weigh_table(&mut self, rnti: Rnti, index: u64, message: &Message, by_table: &[Option<Dci>; 2]) {
        let Message::Downlink(downlink) = message else { return };
        if has_fixed_table(rnti, message) {
            return;
        }
        let sizes = sizes(by_table);
        let past_grant =
            |at: usize| self.harq.past_grant(rnti, Direction::Downlink, downlink.harq, at as u8, index);
        let blocks =
            || downlink.blocks().into_iter().enumerate().filter_map(|(at, block)| Some((at, block?)));
        let mut is_missed = false;
        for (at, block) in blocks() {
            is_missed |= self.misses.learn(sizes[at], &block, past_grant(at));
        }
        for (at, block) in blocks() {
            let past = past_grant(at);
            // Subframes that were not received may have contained grants of this user.
            let is_unheard = past.is_some_and(|past| past.at < self.unheard);
            let missed = self.misses.bits(is_missed || is_unheard);
            self.history.weigh_table(rnti, table::evidence(&block, sizes[at], past, missed));
        }
    }

    /// MCS table of a message, and whether it is known.
    fn table(&self, rnti: Rnti, message: &Message) -> (McsTable, bool) {
        // A retransmitted block has the size of its first transmission, which may have been granted in another format.
        if has_fixed_table(rnti, message)
            && !(is_sent_again(message) && Audience::of(rnti) == Some(Audience::User))
        {
            return (McsTable::Qam64, true);
        }
        self.user(rnti).table()
    }

    /// The grant in a message, according to the tables up to 64QAM and up to 256QAM.
    fn by_table(&self, rnti: Rnti, message: &Message) -> [Option<Dci>; 2] {
        [McsTable::Qam64, McsTable::Qam256].map(|table| message.to_dci(self.meanings.carrier(), rnti, table))
    }

    /// The grant in a message, completed with the state of its HARQ process. Stores the grant in this process.
    fn grant(
        &mut self,
        rnti: Rnti,
        at: Moment,
        message: &Message,
        by_table: &[Option<Dci>; 2],
    ) -> Option<Dci> {
        let (table, _) = self.table(rnti, message);
        let mut dci = by_table[table as usize]?;
        if Audience::of(rnti) != Some(Audience::User) {
            return Some(dci);
        }
        if dci.direction == Direction::Uplink {
            dci.harq = Some(HarqMemory::uplink_process(at.sfn, at.subframe));
        }
        let Some(process) = dci.harq else { return Some(dci) };
        for (block, sizes) in sizes(by_table).into_iter().enumerate() {
            let (Some(mcs), Some(ndi)) = (dci.mcs[block], dci.ndi[block]) else { continue };
            let granted = Granted { direction: dci.direction, process, block: block as u8, ndi, mcs, sizes };
            let remembered = self.harq.grant(rnti, at.index, granted, table);
            dci.tbs[block] = remembered.size.unwrap_or_default();
            dci.retransmission[block] = remembered.is_retransmission;
        }
        Some(dci)
    }
}

/// Sizes of both blocks according to both tables; `None` for a reserved MCS.
fn sizes(by_table: &[Option<Dci>; 2]) -> [[Option<Bits>; 2]; 2] {
    [0, 1].map(|block| {
        std::array::from_fn(|table| by_table[table].map(|dci| dci.tbs[block]).filter(|size| size.0 > 0))
    })
}

/// Whether the table up to 64QAM applies to a message, independently of its user's configuration.
///
/// Source: TS 36.213 §7.1.7.1 and §8.6.1
fn has_fixed_table(rnti: Rnti, message: &Message) -> bool {
    match message {
        Message::Downlink(downlink) => {
            downlink.format == Format::F1A || Audience::of(rnti) != Some(Audience::User)
        }
        _ => true,
    }
}

/// Whether a block has a reserved MCS, which is only used for retransmissions.
fn is_sent_again(message: &Message) -> bool {
    matches!(message, Message::Downlink(downlink) if downlink.blocks().iter().flatten().any(|block| block.mcs > 28))
}

/// PRBs and directions that the accepted messages of a subframe use.
#[derive(Clone, Debug, Default)]
struct Taken {
    downlink: PrbSet,
    uplink: PrbSet,
    directions: Vec<(Rnti, bool)>,
}

impl Taken {
    /// Evidence against an additional message (bits).
    fn against(&self, carrier: &Carrier, rnti: Rnti, message: &Message) -> f32 {
        let Some([first, _]) = message.prbs(carrier) else { return 0.0 };
        let is_uplink = matches!(message, Message::Uplink(_));
        let (taken, cost) = if is_uplink {
            (self.uplink, PRIORS.conflict.uplink_prbs)
        } else {
            (self.downlink, PRIORS.conflict.downlink_prbs)
        };
        let shares = if taken.intersection(first).is_empty() { 0.0 } else { cost };
        let repeats =
            if self.directions.contains(&(rnti, is_uplink)) { PRIORS.conflict.direction } else { 0.0 };
        shares + repeats
    }

    fn take(&mut self, carrier: &Carrier, rnti: Rnti, message: &Message) {
        let Some([first, _]) = message.prbs(carrier) else { return };
        let is_uplink = matches!(message, Message::Uplink(_));
        let taken = if is_uplink { &mut self.uplink } else { &mut self.downlink };
        *taken = taken.union(first);
        self.directions.push((rnti, is_uplink));
    }
}

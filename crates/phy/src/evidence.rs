//! Which candidates to believe.
//!
//! Everything that speaks for or against a message is counted in bits, log2 of a ratio of likelihoods, and added up:
//!
//! | evidence | bits |
//! | --- | --- |
//! | what was heard in its CCEs, against bits of chance ([`Candidate::evidence`]) | up to 72 per CCE |
//! | what its fields might have said else ([`reading`]); a payload that means nothing is dropped | − its payload |
//! | its place | − 6 |
//! | how likely its RNTI is ([`history`]): active, known, expected after a random-access response, never seen | − 2 … − 22 |
//! | whether the format and fields are those that its user has ([`history`]) | 0 … − 24 |
//! | PRBs or a direction that another message of the subframe already took | − 8 … − 10 |
//!
//! The sum is the logarithm of the odds, and so gives the confidence. A message for an RNTI that was never seen must also be
//! likelier than the words that noise mistakes for it ([`Candidate::apart`]), each of which is for another. Of messages that
//! share CCEs, only the likeliest
//! is kept. A message of an unknown user that is not sure yet waits for another message to the same RNTI: two false
//! messages agree by chance once in 2^16 cases, which is 16 bits. A sure message of an unknown user waits too if its
//! format is not clear, because the next message mostly tells the format. A message of a known user leaves at once.

pub mod confidence;
pub mod history;
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
use table::Misses;

/// If two downlink grants of a subframe name the same PRB, this speaks against the weaker.
const PRBS_TAKEN: f32 = -8.0;

/// Two devices may send on the same PRBs, but rarely do.
const UPLINK_PRBS_TAKEN: f32 = -4.0;

/// A user has one grant per direction and subframe.
const DIRECTION_TAKEN: f32 = -10.0;

/// By how many bits one format must be likelier than all others, so that a message need not wait for more.
const CLEAR: f32 = 4.0;

/// By how many bits it must be likelier to be called known: it is the wrong one in less than one message of 500.
const SURE: f32 = 9.0;

/// After this many messages, each sure enough to leave, their user is surely there, whatever they mean.
const SURELY_THERE: u32 = 2;

/// A message with a lower score is not worth waiting for.
const LEAST_HOPE: f32 = -16.0;

/// The judge of one cell's candidates.
#[derive(Clone, Debug)]
pub struct Evidence {
    pci: u16,
    meanings: Meanings,
    caution: Caution,
    history: History,
    stranger: User,
    harq: HarqMemory,
    misses: Misses,
    /// The last subframe that was heard, and the last before it that was not.
    heard: Option<u64>,
    unheard: u64,
    waiting: VecDeque<Judged>,
}

/// A candidate that means something.
#[derive(Clone, Debug)]
struct Judged {
    candidate: Candidate,
    readings: Vec<Reading>,
    in_own_space: bool,
    at: Moment,
    /// What speaks for the message, without the probability of its RNTI and the habits of its user.
    alone: f32,
    /// What the message itself adds to its user's support.
    own: f32,
    /// How many bits the message itself spoke for a group instead of a user when it was heard; `None` before.
    for_group: Option<f32>,
}

/// When and how something was heard.
#[derive(Clone, Copy, Debug)]
struct Moment {
    index: u64,
    sfn: u16,
    subframe: u8,
    cfi: u8,
    snr_db: f32,
}

impl Judged {
    /// log2 of how likely the message has a reading, if it is for `user`.
    fn weight(&self, user: &User, reading: &Reading) -> f32 {
        user.agrees(reading, self.for_group.unwrap_or_default()) - reading.cost
    }
}

impl Evidence {
    /// For a cell of which no user is known yet.
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

    /// Which users are there.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Messages that wait for evidence.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Goes on to subframe `index`.
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

    /// The cell's own numbers leap by `by` subframes, forward or back, before the current subframe.
    pub fn leap(&mut self, by: i64) {
        if let Some(index) = self.heard {
            self.harq.leap(index, by);
        }
    }

    /// Judges the candidates of one subframe. Appends the messages that are believed, also those of earlier subframes.
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
        // Messages that wait for such a message leave before it, and so tell how to read it.
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

    /// Decides about the messages that still wait, as if their time were over: at the end of a recording.
    pub fn finish(&mut self, out: &mut Vec<Found>) {
        self.expire(u64::MAX, out);
    }

    /// The likeliest candidates that can be true together.
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
        for (score, mut judged) in open {
            let place = judged.candidate.message.place;
            if kept.iter().any(|other| other.candidate.message.place.overlaps(place)) {
                continue;
            }
            let Some(message) = self.best_reading(&judged).map(|reading| reading.message) else { continue };
            let against = taken.against(self.meanings.carrier(), judged.candidate.message.rnti, &message);
            judged.alone += against;
            if score + against >= LEAST_HOPE {
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

    /// log2 of the odds of a candidate, with the likeliest reading.
    fn score(&self, judged: &Judged) -> f32 {
        let rnti = judged.candidate.message.rnti;
        let user = self.user(rnti);
        let weights = judged.readings.iter().map(|reading| judged.weight(user, reading));
        let prior = self.history.prior(rnti, judged.own);
        let score = judged.alone + prior + weights.fold(f32::NEG_INFINITY, f32::max);
        // Its neighbours are for RNTIs that were never seen.
        confidence::all_true(score, judged.candidate.apart + (prior - history::NEW_USER))
    }

    fn user(&self, rnti: Rnti) -> &User {
        self.history.user(rnti).unwrap_or(&self.stranger)
    }

    /// The likeliest reading; of equals, the last.
    fn best_reading(&self, judged: &Judged) -> Option<Reading> {
        let user = self.user(judged.candidate.message.rnti);
        let weights = judged.readings.iter().map(|reading| (judged.weight(user, reading), reading));
        weights.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, reading)| *reading)
    }

    /// Whether a message is sure enough to leave now.
    fn is_ready(&self, judged: &Judged) -> bool {
        let rnti = judged.candidate.message.rnti;
        let confidence = confidence(self.score(judged));
        if Audience::of(rnti) == Some(Audience::Everyone) {
            return confidence >= self.caution.known;
        }
        match self.history.user(rnti) {
            Some(user) if user.believed > 0 => confidence >= self.caution.known,
            // A new user's message waits until its format is clear. If the user is surely there, it need only be clear
            // whether it is a user or a group.
            user => {
                let is_there = user.is_some_and(|user| user.sure >= SURELY_THERE);
                let is_enough = is_there && self.is_surely_one(judged);
                confidence >= self.caution.new && (is_enough || self.is_worth_reading(judged))
            }
        }
    }

    /// Whether it is clear that a message is for a user, or that it is for a group.
    fn is_surely_one(&self, judged: &Judged) -> bool {
        let is_group = |format| matches!(format, Format::F3 | Format::F3A);
        self.is_clear(judged, CLEAR, |format, rival| is_group(format) == is_group(rival))
    }

    /// Whether it is clear in which format a message is, or in which pair of formats that cannot be told apart.
    fn is_worth_reading(&self, judged: &Judged) -> bool {
        let is_beam = |format| matches!(format, Format::F1B | Format::F1D);
        self.is_clear(judged, CLEAR, |format, rival| is_beam(format) && is_beam(rival))
    }

    /// Whether a message's format is likelier by `margin` bits than all other formats that its bits may have. Rivals
    /// for which `are_alike` is true do not count.
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

    /// Learns to whom a message is sent, before its meaning is clear.
    fn hear(&mut self, judged: &mut Judged) {
        let rnti = judged.candidate.message.rnti;
        judged.for_group = Some(self.history.hear(rnti, &judged.readings, judged.in_own_space));
    }

    fn wait(&mut self, mut judged: Judged) {
        let rnti = judged.candidate.message.rnti;
        // A block that is sent again meanwhile may be clear sooner.
        if confidence(self.score(&judged)) >= self.caution.last
            && let Some(reading) = self.best_reading(&judged)
        {
            let by_table = self.by_table(rnti, &reading.message);
            _ = self.grant(rnti, judged.at, &reading.message, &by_table);
        }
        let reading = judged.readings.iter().map(|reading| -reading.cost).fold(f32::NEG_INFINITY, f32::max);
        let whence = (judged.at.subframe, judged.candidate.message.place);
        let bits = confidence::all_true(judged.alone + reading, judged.candidate.apart - history::NEW_USER);
        judged.own = self.history.suspect(rnti, whence, bits);
        self.waiting.push_back(judged);
    }

    /// Looks again at the waiting messages of users that were heard.
    fn revisit(&mut self, heard: &[Rnti], out: &mut Vec<Found>) {
        // A message that leaves may be the one for which another waited.
        loop {
            let ready = self
                .waiting
                .iter()
                .position(|judged| heard.contains(&judged.candidate.message.rnti) && self.is_ready(judged));
            let Some(judged) = ready.and_then(|at| self.waiting.remove(at)) else { break };
            self.release(judged, out);
        }
    }

    /// Decides about messages that have waited long enough.
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

    /// Believes a message.
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
    /// Learns from a downlink grant which MCS table its user has.
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
            // Subframes that were not heard may have held grants of this user.
            let is_unheard = past.is_some_and(|past| past.at < self.unheard);
            let missed = self.misses.bits(is_missed || is_unheard);
            self.history.weigh_table(rnti, table::evidence(&block, sizes[at], past, missed));
        }
    }

    /// The MCS table by which a message is to be read, and whether that is known.
    fn table(&self, rnti: Rnti, message: &Message) -> (McsTable, bool) {
        // A block that is sent again has the size of its first transmission, which another format may have granted.
        if has_fixed_table(rnti, message)
            && !(is_sent_again(message) && Audience::of(rnti) == Some(Audience::User))
        {
            return (McsTable::Qam64, true);
        }
        self.user(rnti).table()
    }

    /// What a message grants by the tables up to 64QAM and up to 256QAM.
    fn by_table(&self, rnti: Rnti, message: &Message) -> [Option<Dci>; 2] {
        [McsTable::Qam64, McsTable::Qam256].map(|table| message.to_dci(self.meanings.carrier(), rnti, table))
    }

    /// The grant of a message, completed by what its HARQ process holds. The process remembers the grant.
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

/// Sizes of both blocks by both tables; `None` where the MCS is reserved.
fn sizes(by_table: &[Option<Dci>; 2]) -> [[Option<Bits>; 2]; 2] {
    [0, 1].map(|block| {
        std::array::from_fn(|table| by_table[table].map(|dci| dci.tbs[block]).filter(|size| size.0 > 0))
    })
}

/// Whether a message is read by the table up to 64QAM whatever its user is configured with.
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

/// Whether the MCS of a block is one of those that only say how the block is sent again.
fn is_sent_again(message: &Message) -> bool {
    matches!(message, Message::Downlink(downlink) if downlink.blocks().iter().flatten().any(|block| block.mcs > 28))
}

/// What the messages of a subframe have already taken.
#[derive(Clone, Debug, Default)]
struct Taken {
    downlink: PrbSet,
    uplink: PrbSet,
    directions: Vec<(Rnti, bool)>,
}

impl Taken {
    /// What speaks against one more message.
    fn against(&self, carrier: &Carrier, rnti: Rnti, message: &Message) -> f32 {
        let Some([first, _]) = message.prbs(carrier) else { return 0.0 };
        let is_uplink = matches!(message, Message::Uplink(_));
        let (taken, cost) =
            if is_uplink { (self.uplink, UPLINK_PRBS_TAKEN) } else { (self.downlink, PRBS_TAKEN) };
        let shares = if taken.intersection(first).is_empty() { 0.0 } else { cost };
        let repeats = if self.directions.contains(&(rnti, is_uplink)) { DIRECTION_TAKEN } else { 0.0 };
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

//! Users of a cell: probabilities of the next message, estimated from past messages.

use std::collections::BTreeMap;

use airpace_core::tables::lte::McsTable;
use airpace_radio::Rnti;

use super::priors::PRIORS;
use super::reading::{EXTRAS, Reading};
use super::table;
use crate::dci::{Audience, Format};
use crate::pdcch::CceRange;

/// Number of subframes without a message after which a user is no longer active.
///
/// Chosen: 200 ms, as in the histogram of FALCON.
const ACTIVE: u64 = 200;

/// Number of subframes without a message after which a user is removed. A base station releases an idle connection
/// after about ten seconds.
const FORGET: u64 = 10_000;

/// Number of subframes after a random-access response in which messages of new users are more likely.
const AFTER_RESPONSE: u64 = 100;

/// Formats other than 0 and 1A. Each indicates a user's transmission mode.
///
/// Source: TS 36.213 §7.1 Table 7.1-5
const MODES: [Format; 6] = [Format::F1, Format::F1B, Format::F1D, Format::F2, Format::F2A, Format::F2B];

/// Formats of power commands to a group. Their messages resemble formats 0 and 1A and are sent in the common search
/// space. A group is distinguished from a user by the plausibility of its messages when read as formats 0 and 1A.
const COMMANDS: [Format; 2] = [Format::F3, Format::F3A];

/// Estimated state of one user.
#[derive(Clone, Debug)]
pub struct User {
    /// Subframe of the user's first message.
    pub first: u64,
    /// Subframe of the user's last message.
    pub last: u64,
    /// Number of accepted messages.
    pub believed: u64,
    /// Number of messages with sufficient confidence, whether accepted or waiting for an unambiguous format.
    pub sure: u32,
    /// Sum of the evidence for the user from all messages that were not accepted on their own (bits).
    pub support: f32,
    /// Messages that contribute to `support`: number of the subframe in its frame, CCEs, and contribution (bits). There
    /// is at most one entry for each pair of subframe number and CCEs.
    suspected: Vec<(u8, CceRange, f32)>,
    modes: [f32; MODES.len()],
    extras: [f32; EXTRAS.len()],
    /// log2 of the odds that the RNTI is a group with power commands, not a user.
    group: f32,
    /// Log2 probabilities of [`COMMANDS`], relative to the likelier format, if the RNTI is a group.
    commands: [f32; COMMANDS.len()],
    /// log2 of the odds that the user's MCS table goes up to 256QAM.
    wide_table: f32,
}

impl User {
    /// User without any message.
    pub fn stranger() -> User {
        User::new(0)
    }

    fn new(now: u64) -> User {
        let mut extras = [PRIORS.user.extras; EXTRAS.len()];
        extras[0] = 0.0;
        User {
            first: now,
            last: now,
            believed: 0,
            sure: 0,
            support: 0.0,
            suspected: Vec::new(),
            modes: PRIORS.user.modes,
            extras,
            group: PRIORS.user.group,
            commands: [0.0; COMMANDS.len()],
            wide_table: PRIORS.table.large,
        }
    }

    /// log2 of the probability of a reading, given the user's history. The contribution `own` of the message itself to
    /// `group` is subtracted.
    pub fn agrees(&self, reading: &Reading, own: f32) -> f32 {
        let format = reading.message.format();
        let group = self.group - own;
        if let Some(command) = command_of(format) {
            return group.min(0.0) + self.commands[command];
        }
        let mode = mode_of(format).map_or(0.0, |mode| self.modes[mode]);
        mode + self.extras[reading.extras] - group.max(0.0)
    }

    /// The likelier MCS table, and whether the user's grants determined it. Without evidence, it is the table up to
    /// 64QAM.
    pub fn table(&self) -> (McsTable, bool) {
        if self.wide_table > 0.0 {
            (McsTable::Qam256, self.wide_table > table::TOLD)
        } else {
            (McsTable::Qam64, self.wide_table < PRIORS.table.large - table::TOLD)
        }
    }

    /// Updates the odds that the RNTI is a group from all readings of one message. Returns the change (bits).
    fn learn_group(&mut self, readings: &[Reading], in_own_space: bool) -> f32 {
        let before = self.group;
        let group = best(readings, is_command);
        self.group = if group.is_finite() {
            // Evidence from the field values, and from the search space.
            let content = group - best(readings, |reading| !is_command(reading));
            let place = if in_own_space { 0.0 } else { PRIORS.user.common_place };
            (self.group + content.clamp(PRIORS.user.impossible, -PRIORS.user.impossible) + place)
                .clamp(PRIORS.user.floor, -PRIORS.user.floor)
        } else {
            (self.group + PRIORS.user.impossible).max(PRIORS.user.floor)
        };
        self.group - before
    }

    /// Updates formats and fields from all readings of one message; `chosen` is the likeliest reading.
    fn learn(&mut self, readings: &[Reading], chosen: &Reading, in_own_space: bool) {
        let best = |of: &dyn Fn(&Reading) -> bool| best(readings, of);
        if is_command(chosen) {
            update(&mut self.commands, |command| {
                best(&|reading| command_of(reading.message.format()) == Some(command))
            });
        }
        if mode_of(chosen.message.format()).is_some() {
            update(&mut self.modes, |mode| best(&|reading| mode_of(reading.message.format()) == Some(mode)));
        }
        if in_own_space {
            update(&mut self.extras, |extras| best(&|reading| reading.extras == extras));
        }
    }
}

/// log2 of the probability of the likeliest reading among those selected by `of`, from the field values alone.
fn best(readings: &[Reading], of: impl Fn(&Reading) -> bool) -> f32 {
    let costs = readings.iter().filter(|reading| of(reading)).map(|reading| -reading.cost);
    costs.fold(f32::NEG_INFINITY, f32::max)
}

fn is_command(reading: &Reading) -> bool {
    command_of(reading.message.format()).is_some()
}

/// Bayes' rule for competing explanations (bits). The best score stays at zero.
fn update(scores: &mut [f32], of: impl Fn(usize) -> f32) {
    let best = (0..scores.len()).map(&of).fold(f32::NEG_INFINITY, f32::max);
    for (at, score) in scores.iter_mut().enumerate() {
        *score += (of(at) - best).max(PRIORS.user.impossible);
    }
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).max(PRIORS.user.floor));
}

fn mode_of(format: Format) -> Option<usize> {
    MODES.iter().position(|mode| *mode == format)
}

fn command_of(format: Format) -> Option<usize> {
    COMMANDS.iter().position(|command| *command == format)
}

/// All users of a cell.
#[derive(Clone, Debug, Default)]
pub struct History {
    users: BTreeMap<Rnti, User>,
    now: u64,
    active: usize,
    known: usize,
    last_response: Option<u64>,
}

impl History {
    /// Advances to subframe `now`.
    pub fn advance(&mut self, now: u64) {
        self.now = now;
        if now.is_multiple_of(16) {
            self.users.retain(|_, user| {
                now.saturating_sub(user.last) <= if user.believed > 0 { FORGET } else { 2 * ACTIVE }
            });
            let known = self.users.values().filter(|user| user.believed > 0);
            self.known = known.clone().count();
            self.active = known.filter(|user| now.saturating_sub(user.last) <= ACTIVE).count();
        }
    }

    /// The user of an RNTI, if a message was attributed to it.
    pub fn user(&self, rnti: Rnti) -> Option<&User> {
        self.users.get(&rnti)
    }

    /// Users with at least one accepted message.
    pub fn known(&self) -> impl Iterator<Item = (Rnti, &User)> {
        self.users.iter().filter(|(_, user)| user.believed > 0).map(|(rnti, user)| (*rnti, user))
    }

    /// log2 of the probability that the next message is addressed to `rnti`. The contribution `own` (bits) is
    /// subtracted from the user's support.
    pub fn prior(&self, rnti: Rnti, own: f32) -> f32 {
        match (Audience::of(rnti), rnti) {
            (None, _) => f32::NEG_INFINITY,
            (_, Rnti::SYSTEM_INFORMATION) => PRIORS.rnti.system_information,
            (_, Rnti::PAGING) => PRIORS.rnti.paging,
            (Some(Audience::Everyone), Rnti(1..=Audience::LAST_RA_RNTI)) => PRIORS.rnti.response,
            (Some(Audience::Everyone), _) => PRIORS.rnti.multicast,
            (Some(Audience::User), _) => self.user_prior(rnti, own),
        }
    }

    fn user_prior(&self, rnti: Rnti, own: f32) -> f32 {
        let is_expected =
            self.last_response.is_some_and(|last| self.now.saturating_sub(last) <= AFTER_RESPONSE);
        let new = PRIORS.rnti.new_user + if is_expected { PRIORS.rnti.expected_user } else { 0.0 };
        let Some(user) = self.users.get(&rnti) else { return new };
        // Active users share half of the probability. The other known users share 1/16.
        let one_of = |count: usize| -libm::log2f(count.max(1) as f32);
        if user.believed == 0 {
            (new + (user.support - own).max(0.0)).min(PRIORS.rnti.likely_user)
        } else if self.now.saturating_sub(user.last) <= ACTIVE {
            one_of(self.active) - 1.0
        } else {
            one_of(self.known) - 4.0
        }
    }

    /// Adds a message that is addressed to `rnti` with sufficient confidence, independently of its reading. Returns its
    /// contribution to the odds of a group (bits).
    pub fn hear(&mut self, rnti: Rnti, readings: &[Reading], in_own_space: bool) -> f32 {
        if Audience::of(rnti) != Some(Audience::User) {
            return 0.0;
        }
        let user = self.users.entry(rnti).or_insert_with(|| User::new(self.now));
        user.sure = user.sure.saturating_add(1);
        user.learn_group(readings, in_own_space)
    }

    /// Adds a message that is not accepted on its own yet. `place` are its CCEs, and `number` is the number of the
    /// subframe in its frame. Returns the message's own contribution to its user's support (bits).
    ///
    /// Signals that another cell repeats in every frame, such as reference signals, disturb the same bits in each
    /// frame. A false message due to such signals is then repeated as well. So a second message on the same CCEs in the
    /// same subframe of a frame contributes nothing.
    pub fn suspect(&mut self, rnti: Rnti, number: u8, place: CceRange, surplus: f32) -> f32 {
        if Audience::of(rnti) != Some(Audience::User) {
            return 0.0;
        }
        let user = self.users.entry(rnti).or_insert_with(|| User::new(self.now));
        user.last = user.last.max(self.now);
        let same = user.suspected.iter().find(|(other, at, _)| (*other, *at) == (number, place));
        if let Some((_, _, own)) = same {
            return *own;
        }
        let own = (surplus + PRIORS.user.recurrence).max(0.0);
        user.support += own;
        user.suspected.push((number, place, own));
        own
    }

    /// Adds the evidence (bits) of one of the user's blocks for the MCS table up to 256QAM.
    pub fn weigh_table(&mut self, rnti: Rnti, bits: f32) {
        if let Some(user) = self.users.get_mut(&rnti) {
            user.wide_table = (user.wide_table + bits).clamp(PRIORS.user.floor, -PRIORS.user.floor);
        }
    }

    /// Updates the user's history from an accepted message of subframe `at`. `chosen` is the likeliest of its readings.
    pub fn believe(
        &mut self,
        rnti: Rnti,
        at: u64,
        readings: &[Reading],
        chosen: &Reading,
        in_own_space: bool,
    ) {
        match Audience::of(rnti) {
            Some(Audience::User) => {
                let user = self.users.entry(rnti).or_insert_with(|| User::new(at));
                user.first = user.first.min(at);
                user.last = user.last.max(at);
                user.believed += 1;
                user.learn(readings, chosen, in_own_space);
            }
            Some(Audience::Everyone) if rnti.0 <= Audience::LAST_RA_RNTI => self.last_response = Some(at),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::Meanings;
    use super::*;
    use crate::Ports;
    use crate::dci::Carrier;

    /// log2 of the odds that a message is a command, given the history of its user, without the message's `own`
    /// contribution.
    fn command_bits(user: &User, readings: &[Reading], own: f32) -> f32 {
        let best = |commands| {
            let of = readings.iter().filter(|reading| is_command(reading) == commands);
            of.map(|reading| user.agrees(reading, own) - reading.cost).fold(f32::NEG_INFINITY, f32::max)
        };
        best(true) - best(false)
    }

    #[test]
    fn messages_to_a_group_tell_of_each_other_and_not_twice_of_themselves() {
        // 15 PRB pairs: commands of two bits each that are also valid as a grant in format 1A.
        let carrier = Carrier::symmetric(15, Ports::Two);
        let payload = "1001010101010001010101".parse().expect("bits");
        let readings: Vec<_> = Meanings::new(carrier).of(Audience::User, payload, false).collect();
        let alone = command_bits(&User::stranger(), &readings, 0.0);
        assert!(alone < 0.0, "alone it is rather a user's: {alone}");

        let mut history = History::default();
        let group = Rnti(0x2222);
        let mut after = |own: &mut f32| {
            *own = history.hear(group, &readings, false);
            command_bits(history.user(group).expect("it was heard"), &readings, *own)
        };
        let mut own = 0.0;
        let first = after(&mut own);
        assert!((first - alone).abs() < 1e-3, "what it spoke itself does not count again: {first}, {alone}");
        assert!(own > 0.0, "it speaks for a group");
        let later: Vec<f32> = (0..4).map(|_| after(&mut own)).collect();
        assert!(later.is_sorted() && later[3] > 0.0, "with others it is a group's: {later:?}");
    }

    #[test]
    fn what_is_repeated_every_frame_is_not_counted_again() {
        let mut history = History::default();
        let rnti = Rnti(0x3333);
        let place = |cce| CceRange { cce, cces: 1 };
        let first = history.suspect(rnti, 8, place(0), 15.0);
        let again = history.suspect(rnti, 8, place(0), 15.0);
        assert_eq!((first, again), (12.0, 12.0));
        assert_eq!(history.prior(rnti, again), PRIORS.rnti.new_user, "nothing else speaks for the user");
        let elsewhere = history.suspect(rnti, 8, place(3), 10.0);
        assert_eq!(history.prior(rnti, elsewhere), PRIORS.rnti.new_user + 12.0, "the first does, once");
    }
}

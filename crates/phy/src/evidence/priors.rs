//! Prior probabilities of a cell's messages, used by [`super::Evidence`] (bits).
//!
//! Chosen: estimates of how base stations behave, mostly round numbers. No single value was measured. The recordings
//! with known grants test all values together: `docs/evaluation/decoder.md` lists the shares of decoded and of wrong
//! messages.

/// All priors.
pub(super) struct Priors {
    pub(super) rnti: RntiPriors,
    pub(super) user: UserPriors,
    pub(super) fields: FieldPriors,
    pub(super) table: TablePriors,
    pub(super) conflict: ConflictPriors,
}

/// Prior probabilities of the receiver of a message (log2).
///
/// Chosen: one message in 32 is system information, and a cell pages or answers random access less often.
pub(super) struct RntiPriors {
    /// The message is system information.
    pub(super) system_information: f32,
    /// The message is a paging message.
    pub(super) paging: f32,
    /// The message is a random-access response.
    pub(super) response: f32,
    /// The message is addressed to another RNTI for everyone (multicast).
    pub(super) multicast: f32,
    /// The message is addressed to a given RNTI that was never seen. One message in 64 is a new user's, and there are 2^16
    /// RNTIs.
    pub(super) new_user: f32,
    /// Increase of `new_user` after a random-access response (bits).
    pub(super) expected_user: f32,
    /// Maximum prior of a user that has no accepted message yet.
    pub(super) likely_user: f32,
}

/// Priors for the similarity of a user's messages (bits).
///
/// Chosen: estimates, see the module.
pub(super) struct UserPriors {
    /// Correction of a message's evidence when it supports later messages of its user. A user with one message mostly
    /// has more messages. So a message that was nearly accepted supports the next message by its own evidence plus this
    /// number, which is log2 of the frequency with which messages recur.
    pub(super) recurrence: f32,
    /// log2 of the prior odds that an RNTI is a group.
    pub(super) group: f32,
    /// Evidence for a group, from a message in the common search space that is not in the user's own search space.
    pub(super) common_place: f32,
    /// Minimum of the evidence about a user's configuration; its maximum is the negative of this value. The
    /// configuration may change, so the evidence must not grow without limit.
    pub(super) floor: f32,
    /// Evidence of a message against a mode or combination of fields with which it is impossible.
    pub(super) impossible: f32,
    /// log2 of the prior odds that a user has a given combination of fields of Release 10.
    pub(super) extras: f32,
    /// log2 of the frequency of each mode among users, relative to the most frequent mode, in the order of the modes'
    /// formats 1, 1B, 1D, 2, 2A, 2B. Formats 1B and 1D differ only in their name and in the meaning of one bit: only this
    /// prior distinguishes them.
    pub(super) modes: [f32; 6],
}

/// Frequency of each value of a field among a base station's messages: −log2 of the share.
///
/// Chosen: the shares are round; for any scheduler, they are right within a factor of two.
pub(super) struct FieldPriors {
    /// Blocks with a reserved MCS (6 %).
    pub(super) reserved_mcs: f32,
    /// Blocks with any other MCS.
    pub(super) plain_mcs: f32,
    /// Redundancy version 0 (90 %) among blocks without a reserved MCS.
    pub(super) first_version: f32,
    /// The other redundancy versions.
    pub(super) later_version: f32,
    /// Allocations by RBGs (75 %).
    pub(super) groups: f32,
    /// Allocations by a subset of PRBs.
    pub(super) subset: f32,
    /// Allocations of all RBGs (25 % of the allocations by RBGs).
    pub(super) all_groups: f32,
    /// Allocations of a contiguous run of RBGs (35 % of the allocations by RBGs).
    pub(super) run_of_groups: f32,
    /// Allocations of any set of RBGs (40 % of the allocations by RBGs).
    pub(super) any_groups: f32,
    /// Localised runs (80 %).
    pub(super) localised: f32,
    /// Distributed runs (20 %).
    pub(super) distributed: f32,
    /// Uplink grants with hopping (5 %).
    pub(super) hops: f32,
    /// Uplink grants without hopping.
    pub(super) stays: f32,
    /// Grants without one of the two blocks (25 % for each block).
    pub(super) one_block: f32,
    /// Grants with both blocks.
    pub(super) both_blocks: f32,
    /// PDCCH orders among messages of the same size.
    pub(super) order: f32,
    /// Format 2A grants with one block whose swap flag, which then has no meaning, is set (2 %).
    pub(super) idle_flag_set: f32,
    /// Format 2A grants with one block whose swap flag is clear.
    pub(super) idle_flag_clear: f32,
}

/// Priors for the MCS tables and retransmissions of a user's blocks: log2 of shares or odds.
///
/// Chosen: estimates, see the module.
pub(super) struct TablePriors {
    /// Odds that a user has the table up to 256QAM.
    pub(super) large: f32,
    /// New data with a redundancy version other than 0.
    pub(super) later_version: f32,
    /// Share of blocks with the same size as before, among blocks without a reserved MCS whose new-data indicator did
    /// not toggle. Such blocks are retransmissions with an unchanged MCS.
    pub(super) again_plain: f32,
    /// Share of blocks whose earlier size is unknown because their first transmission was missed, among the same blocks
    /// as for `again_plain`.
    pub(super) again_unknown: f32,
    /// Probability that a grant was missed, if there is an indication: the decoder did not receive a subframe in
    /// between, or the other block of the grant shows that a grant was missed.
    pub(super) surely_missed: f32,
    /// One new block in this many has an indicator that did not toggle, because the grant before it was missed.
    pub(super) blocks_per_miss: u32,
    /// Retransmissions with a toggled indicator.
    pub(super) toggled_again: f32,
    /// Frequency of a given reserved MCS, relative to that of a given other MCS.
    pub(super) reserved: f32,
    /// Retransmissions with redundancy version 0, relative to the other versions.
    pub(super) first_version_again: f32,
    /// Retransmissions with another modulation. A base station may change the modulation when it grants other PRBs.
    pub(super) other_modulation: f32,
}

/// Evidence against the weaker of two grants of a subframe that exclude each other (bits).
///
/// Chosen: estimates, see the module.
pub(super) struct ConflictPriors {
    /// Two downlink grants contain the same PRB.
    pub(super) downlink_prbs: f32,
    /// Two uplink grants contain the same PRB. Two devices may transmit on the same PRBs, but this is rare.
    pub(super) uplink_prbs: f32,
    /// Two grants of a user for the same direction. A user has at most one grant per direction.
    pub(super) direction: f32,
}

/// The priors in use.
pub(super) const PRIORS: Priors = Priors {
    rnti: RntiPriors {
        system_information: -5.0,
        paging: -6.0,
        response: -10.0,
        multicast: -14.0,
        new_user: -22.0,
        expected_user: 3.0,
        likely_user: -6.0,
    },
    user: UserPriors {
        recurrence: -3.0,
        group: -5.0,
        common_place: 1.5,
        floor: -24.0,
        impossible: -12.0,
        extras: -8.0,
        modes: [0.0, -2.5, -2.0, 0.0, 0.0, -1.5],
    },
    fields: FieldPriors {
        reserved_mcs: 4.06,
        plain_mcs: 0.09,
        first_version: 0.15,
        later_version: 3.32,
        groups: 0.42,
        subset: 2.0,
        all_groups: 2.0,
        run_of_groups: 1.51,
        any_groups: 1.32,
        localised: 0.32,
        distributed: 2.32,
        hops: 4.32,
        stays: 0.07,
        one_block: 2.0,
        both_blocks: 1.0,
        order: 6.0,
        idle_flag_set: 5.64,
        idle_flag_clear: 0.03,
    },
    table: TablePriors {
        large: -2.8,
        later_version: -5.5,
        again_plain: -3.5,
        again_unknown: -4.5,
        surely_missed: -2.0,
        blocks_per_miss: 128,
        toggled_again: -6.0,
        reserved: -1.7,
        first_version_again: -2.0,
        other_modulation: -1.0,
    },
    conflict: ConflictPriors { downlink_prbs: -8.0, uplink_prbs: -4.0, direction: -10.0 },
};

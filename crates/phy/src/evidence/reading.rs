//! Possible meanings of a payload, and the probability that a base station transmits exactly these field values.

use airpace_core::tables::lte;

use super::priors::PRIORS;
use crate::dci::allocation::{Allocation, Gap, subset_bits, subset_map_bits};
use crate::dci::{
    Audience, Block, Carrier, Downlink, Extras, Format, Message, Payload, Spatial, Uplink, parse,
};

/// Combinations of the fields of Release 10 that a user may have.
pub const EXTRAS: [Extras; 8] = {
    let mut all = [Extras::NONE; 8];
    let mut at = 0;
    while at < 8 {
        all[at] = Extras {
            carrier_indicator: at & 1 != 0,
            long_csi_request: at & 2 != 0,
            srs_request: at & 4 != 0,
        };
        at += 1;
    }
    all
};

/// One possible meaning of a payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Decoded fields.
    pub message: Message,
    /// Index in [`EXTRAS`] of the combination with which the payload was parsed.
    pub extras: usize,
    /// −log2 of the probability that a base station transmits these field values in a message of this format.
    pub cost: f32,
}

/// Possible meanings of payloads of each size on one carrier.
#[derive(Clone, Debug)]
pub struct Meanings {
    carrier: Carrier,
    /// Combinations of extras and formats, by payload size.
    by_size: Vec<Vec<(usize, Format)>>,
    /// log2 of the number of PRB runs that an uplink grant may have.
    uplink_runs_bits: f32,
}

impl Meanings {
    /// Meanings of payloads on a carrier.
    pub fn new(carrier: Carrier) -> Meanings {
        let mut by_size = vec![Vec::new(); 65];
        for (at, &extras) in EXTRAS.iter().enumerate() {
            for format in Format::ALL {
                // Format 1C is for broadcast messages, 3 and 3A for groups. These formats have no fields that are
                // configured per user.
                let is_common = matches!(format, Format::F1C | Format::F3 | Format::F3A);
                if at == 0 || !is_common {
                    by_size[usize::from(carrier.size(format, extras)).min(64)].push((at, format));
                }
            }
        }
        Meanings { carrier, by_size, uplink_runs_bits: uplink_runs_bits(carrier.uplink_prbs) }
    }

    /// The carrier.
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// All meanings of a payload for an audience. Only messages in a user's own search space may have `extras`.
    pub fn of(
        &self,
        audience: Audience,
        payload: Payload,
        extras: bool,
    ) -> impl Iterator<Item = Reading> + '_ {
        let possible = self.by_size.get(usize::from(payload.len())).map_or(&[][..], Vec::as_slice);
        possible.iter().filter_map(move |&(at, format)| {
            let is_for_them = match audience {
                Audience::Everyone => at == 0 && matches!(format, Format::F1A | Format::F1C),
                Audience::User => (at == 0 || extras) && format != Format::F1C,
            };
            if !is_for_them {
                return None;
            }
            let message = parse(&self.carrier, EXTRAS[at], audience, format, payload).ok()?;
            let cost = self.cost(EXTRAS[at], audience, &message);
            Some(Reading { message, extras: at, cost })
        })
    }
}

impl Meanings {
    /// −log2 of the probability that a base station transmits these field values in a message of this format.
    fn cost(&self, extras: Extras, audience: Audience, message: &Message) -> f32 {
        let carrier = &self.carrier;
        let indicator = extras.carrier_indicator_bits() as f32;
        indicator
            + match message {
                Message::Uplink(uplink) => self.uplink_runs_bits + uplink_cost(extras, uplink),
                Message::Downlink(downlink) => downlink_cost(carrier, extras, audience, downlink),
                Message::Compact(compact) => {
                    let Allocation::Distributed { gap, .. } = compact.allocation else {
                        return f32::INFINITY;
                    };
                    let steps =
                        u32::from(gap.virtual_blocks(carrier.prbs) / if carrier.prbs < 50 { 2 } else { 4 });
                    carrier.gap_bits() as f32 + runs_bits(steps) + 5.0
                }
                Message::Order(_) => PRIORS.fields.order + 10.0,
                Message::Power(power) => f32::from(power.commands.len()),
            }
    }
}

/// Cost of all fields except the PRBs (bits).
fn uplink_cost(extras: Extras, uplink: &Uplink) -> f32 {
    // log2(3) = 1.58 for one of three reserved MCS, log2(29) = 4.86 for one of 29 other MCS.
    let hops = if uplink.hopping.is_some() { PRIORS.fields.hops + 1.0 } else { PRIORS.fields.stays };
    let mcs =
        if uplink.mcs > 28 { PRIORS.fields.reserved_mcs + 1.58 } else { PRIORS.fields.plain_mcs + 4.86 };
    let requests = (extras.csi_request_bits() + extras.srs_request_bits()) as f32;
    // The constants are the bits of four fields: the flag between formats 0 and 1A (1), new-data indicator (1), power
    // command (2) and cyclic shift (3).
    1.0 + hops + mcs + 1.0 + 2.0 + 3.0 + requests
}

fn downlink_cost(carrier: &Carrier, extras: Extras, audience: Audience, downlink: &Downlink) -> f32 {
    let allocation = match downlink.allocation {
        Allocation::Groups { map } => {
            let groups = lte::rbg_count(carrier.prbs);
            groups_bits(u32::from(groups), map) + if carrier.prbs > 10 { PRIORS.fields.groups } else { 0.0 }
        }
        Allocation::Subset { .. } => {
            PRIORS.fields.subset + (subset_bits(carrier.prbs) + 1 + subset_map_bits(carrier.prbs)) as f32
        }
        Allocation::Run { .. } => PRIORS.fields.localised + runs_bits(u32::from(carrier.prbs)),
        Allocation::Distributed { gap, .. } => {
            let blocks = u32::from(gap.virtual_blocks(carrier.prbs));
            PRIORS.fields.distributed
                + runs_bits(blocks)
                + f32::from(u8::from(Gap::Second.exists(carrier.prbs)))
        }
    };
    let harq_and_power = 3.0 + 2.0;
    let rest = match downlink.spatial {
        Spatial::Plain if downlink.format == Format::F1A => 1.0 + extras.srs_request_bits() as f32,
        Spatial::Plain => 0.0,
        Spatial::Beam { .. } | Spatial::Shared { .. } => carrier.tpmi_bits() as f32 + 1.0,
        Spatial::Layers { swap, precoding: _ } => {
            let both = downlink.blocks().iter().all(Option::is_some);
            // Source: TS 36.212 §5.3.3.1.5A: with one block the swap flag is reserved.
            let flag = match (downlink.format, both, swap) {
                (_, true, _) => 1.0,
                (Format::F2A, false, true) => PRIORS.fields.idle_flag_set,
                (Format::F2A, false, false) => PRIORS.fields.idle_flag_clear,
                (_, false, true) => 2.0,
                (_, false, false) => 0.42,
            };
            // About half of the values of the field are used.
            flag + carrier.precoding_bits(downlink.format).saturating_sub(1) as f32
        }
        Spatial::Dual { .. } => 1.0,
    };
    let blocks = match downlink.second {
        None => block_cost(&downlink.first),
        Some(_) => match downlink.blocks() {
            [Some(first), Some(second)] => {
                PRIORS.fields.both_blocks + block_cost(&first) + block_cost(&second)
            }
            // The new-data indicator of the block that is not transmitted may have either value.
            [Some(one), None] | [None, Some(one)] => PRIORS.fields.one_block + block_cost(&one) + 1.0,
            [None, None] => f32::INFINITY,
        },
    };
    let everyone = match audience {
        // Source: TS 36.212 §5.3.3.1.3: in broadcast messages, HARQ process and power command are almost entirely
        // reserved.
        Audience::Everyone => -3.0,
        Audience::User => 0.0,
    };
    allocation + harq_and_power + rest + blocks + everyone
}

/// Cost of MCS, new-data indicator and redundancy version (bits).
fn block_cost(block: &Block) -> f32 {
    // log2(3) = 1.58 for one of three reserved MCS or later versions, log2(29) = 4.86 for one of 29 other MCS.
    let mcs_and_version = match (block.mcs > 28, block.rv == 0) {
        (true, _) => PRIORS.fields.reserved_mcs + 1.58 + 2.0,
        (false, true) => PRIORS.fields.plain_mcs + 4.86 + PRIORS.fields.first_version,
        (false, false) => PRIORS.fields.plain_mcs + 4.86 + PRIORS.fields.later_version + 1.58,
    };
    mcs_and_version + 1.0
}

/// Cost of the granted RBGs in a map of `groups` RBGs (bits). A single user often has all RBGs; several users often
/// have one run each.
fn groups_bits(groups: u32, map: u32) -> f32 {
    let granted = map.count_ones();
    let is_run = granted > 0 && map.leading_zeros() + granted + map.trailing_zeros() == u32::BITS;
    match (granted == groups, is_run) {
        (true, _) => PRIORS.fields.all_groups,
        (false, true) => PRIORS.fields.run_of_groups + runs_bits(groups),
        (false, false) => PRIORS.fields.any_groups + groups as f32,
    }
}

/// log2 of the number of contiguous runs among `blocks` blocks.
fn runs_bits(blocks: u32) -> f32 {
    libm::log2f((blocks * (blocks + 1) / 2).max(1) as f32)
}

/// log2 of the number of PRB runs that an uplink grant may have.
fn uplink_runs_bits(prbs: u16) -> f32 {
    let runs: u32 = (1..=prbs)
        .filter(|&len| lte::pusch_size_within(len) == len)
        .map(|len| u32::from(prbs - len) + 1)
        .sum();
    libm::log2f(runs.max(1) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ports;

    fn best(prbs: u16, bits: &str, with_extras: bool) -> Vec<(Format, f32)> {
        let payload: Payload = bits.parse().expect("bits");
        let carrier = Carrier::symmetric(prbs, Ports::Two);
        let mut all: Vec<_> = Meanings::new(carrier)
            .of(Audience::User, payload, with_extras)
            .map(|reading| (reading.message.format(), reading.cost))
            .collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        all
    }

    #[test]
    fn a_set_padding_bit_rules_formats_out() {
        // 27 bits with 25 PRB pairs: format 1 uses all of them, formats 1B and 1D end with padding.
        let formats = |bits| best(25, bits, false).into_iter().map(|(format, _)| format).collect::<Vec<_>>();
        assert_eq!(formats("011111111111111110010010001"), [Format::F1]);
        assert!(formats("000001000001110110100010100").contains(&Format::F1D));
    }

    #[test]
    fn one_block_with_the_flag_of_two_is_rather_2b() {
        // 25 PRB pairs, 36 bits: one block; the swap flag is the twentieth bit.
        let set = best(25, "000000100000001010111100110000000001", false);
        assert_eq!(set[0].0, Format::F2B, "{set:?}");
        let clear = best(25, "000000100000001010101100110000000001", false);
        assert_eq!(clear[0].0, Format::F2A, "{clear:?}");
    }

    #[test]
    fn what_a_message_costs_is_about_its_bits() {
        for (bits, len) in [("0010001010001001010010001000", 28), ("1000010010100010111010010001", 28)] {
            let all = best(100, bits, false);
            let cost = all[0].1;
            assert!((cost - len as f32).abs() < 5.0, "{bits} costs {cost} bits");
        }
    }
}

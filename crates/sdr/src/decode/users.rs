//! Totals of each user over a recording.

use std::collections::BTreeMap;

use airpace_core::Direction;
use airpace_phy::found::Found;
use airpace_radio::Rnti;
use serde_json::{Value, json};

/// Sums of one user in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Number of grants.
    pub grants: u64,
    /// Granted PRB pairs.
    pub prbs: u64,
    /// Bits of initial transmissions.
    pub new_bits: u64,
    /// Number of retransmitted blocks.
    pub again: u64,
}

impl Sums {
    /// Throughput of new bits over this many subframes of 1 ms, in Mbit/s.
    pub fn mbps(&self, subframes: u64) -> f64 {
        self.new_bits as f64 / subframes.max(1) as f64 / 1e3
    }
}

/// Sums of one user.
#[derive(Clone, Copy, Debug, Default)]
pub struct User {
    /// Name of the kind of the user's RNTI.
    pub kind: &'static str,
    /// Number of all messages, including those without a grant.
    pub messages: u64,
    /// Sums of downlink and uplink.
    pub ways: [Sums; 2],
}

/// Sums of the users of a recording. If the cell assigns an RNTI to a second phone later, both phones count as one
/// user.
#[derive(Debug, Default)]
pub struct Users(BTreeMap<Rnti, User>);

impl Users {
    /// Adds a message.
    pub fn take(&mut self, found: &Found) {
        let user = self.0.entry(found.rnti).or_default();
        user.kind = found.kind.name();
        user.messages += 1;
        let Some(dci) = found.dci else { return };
        let sums = &mut user.ways[usize::from(dci.direction == Direction::Uplink)];
        sums.grants += 1;
        sums.prbs += u64::from(dci.prbs.len());
        let sent = (0..2).filter(|&at| dci.mcs[at].is_some());
        sums.again += sent.filter(|&at| dci.retransmission[at]).count() as u64;
        sums.new_bits += dci.new_bits().0;
    }

    /// The users, sorted by the number of new bits, the largest first.
    pub fn sorted(&self) -> Vec<(Rnti, &User)> {
        let mut users: Vec<_> = self.0.iter().map(|(rnti, user)| (*rnti, user)).collect();
        let bits = |user: &User| user.ways.iter().map(|sums| sums.new_bits).sum::<u64>();
        users.sort_by_key(|(_, user)| std::cmp::Reverse((bits(user), user.messages)));
        users
    }

    /// The users as one JSON object each, with rates over this many subframes. `called` returns the name of a user in the
    /// output: the RNTI or its pseudonym.
    pub fn objects(&self, subframes: u64, mut called: impl FnMut(Rnti) -> Rnti) -> Vec<Value> {
        self.sorted().into_iter().map(|(rnti, user)| object(called(rnti), user, subframes)).collect()
    }
}

fn object(called: Rnti, user: &User, subframes: u64) -> Value {
    let of = |sums: &Sums| {
        json!({
            "grants": sums.grants,
            "prbs": sums.prbs,
            "new_bits": sums.new_bits,
            "again": sums.again,
            "mbps": sums.mbps(subframes),
        })
    };
    json!({
        "rnti": called.0,
        "rnti_type": user.kind,
        "messages": user.messages,
        "down": of(&user.ways[0]),
        "up": of(&user.ways[1]),
    })
}

/// An object in the form of [`Users::objects`], for a user without grants. It contains the names of all fields.
pub fn nobody() -> Value {
    object(Rnti(0), &User::default(), 0)
}

/// Flattens an object of [`Users::objects`] for a row of a table: `down.mbps` becomes `down_mbps`.
pub fn flat(object: Value) -> Value {
    let Value::Object(fields) = object else { return object };
    let flat = fields.into_iter().flat_map(|(name, value)| match value {
        Value::Object(inner) => {
            inner.into_iter().map(|(of, value)| (format!("{name}_{of}"), value)).collect()
        }
        value => vec![(name, value)],
    });
    Value::Object(flat.collect())
}

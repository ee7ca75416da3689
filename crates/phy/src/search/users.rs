//! Messages whose CCE does not name their word, by the users to whom they may have been sent.
//!
//! A base station may put 66 bits, a payload of 50 and its CRC, onto the 72 bits of one CCE. If a tone or a fade takes four
//! elements of it, 64 bits are left, and four words fit them. But the CRC is masked with an RNTI, and of the few known users
//! that would look there, mostly none but the right one has a word that fits: with the mask given, only the payload is
//! unknown. Its bits are taken from the surest of what was heard; the others tell whether they fit.
//!
//! Source: Fossorier and Lin, Soft-Decision Decoding Based on Ordered Statistics, IEEE Trans. Inf. Theory 41(5), 1995 (of
//! order one)

use super::*;

/// Words of a higher code rate are looked for. Those of lower rates the trellis reads.
///
/// Chosen: without trying others.
const LEAST_RATE: f32 = 0.6;

/// What was heard of a CCE must tell at least so many bits more than the payload has.
///
/// Chosen: of ten, four and none, each finds more than the one before. Two less than none find little more.
const LEAST_SPARE: f32 = 0.0;

/// A bit of this size, in nats, is wrong once in 55 cases.
const SURE: f32 = 4.0;

impl Size {
    /// Whether a CCE that tells so many bits may hold a message of this size that its user would name.
    fn is_named_by_user(&self, information: f32) -> bool {
        let rate = self.code.len() as f32 / BITS_PER_CCE as f32;
        self.is_users
            && self.seen > 0
            && rate > LEAST_RATE
            && (rate <= RARE_RATE || self.short > 0)
            && information >= f32::from(self.code.size()) + LEAST_SPARE
    }
}

impl Search {
    /// Looks for messages of known users at places of one CCE that nothing explains yet.
    pub(super) fn by_users(&mut self, subframe: usize, prior: &impl Fn(Rnti) -> f32) {
        let mut are_placed = false;
        for cce in 0..self.region.len() {
            let place = Place { cce: cce as u16, cces: 1 };
            if !self.is_worth_decoding(place) || self.is_likely[cce] {
                continue;
            }
            let information = self.region.information(place.range());
            if !self.sizes.iter().any(|size| size.is_named_by_user(information)) {
                continue;
            }
            if !std::mem::replace(&mut are_placed, true) {
                self.tidy(prior);
                self.place_users(subframe);
            }
            let listeners = std::mem::take(&mut self.listeners[cce]);
            if !listeners.is_empty() {
                self.by_users_at(subframe, cce, &listeners, prior);
            }
            self.listeners[cce] = listeners;
        }
    }

    /// Lists by CCE which users look for a message on it alone.
    fn place_users(&mut self, subframe: usize) {
        let cces = self.region.len();
        self.listeners.iter_mut().for_each(Vec::clear);
        self.listeners.resize_with(cces.max(self.listeners.len()), Vec::new);
        for rnti in &self.users {
            for place in pdcch::own_space(*rnti, subframe, cces, 1) {
                self.listeners[usize::from(place.cce)].push(*rnti);
            }
        }
    }

    fn by_users_at(&mut self, subframe: usize, cce: usize, listeners: &[Rnti], prior: &impl Fn(Rnti) -> f32) {
        let information = self.region.information(cce..cce + 1);
        let (order, sure) = self.region.surest(cce, SURE);
        let hard = self.region.hard(cce);
        for size in 0..self.sizes.len() {
            if !self.sizes[size].is_named_by_user(information) || !self.is_open(cce) {
                continue;
            }
            self.work.trials += 1;
            let Some(words) = self.sizes[size].code.by_mask(hard, &order, sure) else { continue };
            for rnti in listeners {
                let soft = self.region.soft(cce * BITS_PER_CCE..(cce + 1) * BITS_PER_CCE);
                let Some(nearest) = words.nearest(rnti.0, hard, sure, soft) else { continue };
                let word = self.sizes[size].code.word(nearest.payload, rnti.0);
                let found = self.consider(subframe, size, cce, (word, None), prior);
                self.work.by_users += u64::from(found);
            }
        }
    }
}

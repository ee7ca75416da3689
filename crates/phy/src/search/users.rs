//! Search for messages of known users in single CCEs whose bits do not determine a word.
//!
//! A base station may put 66 bits (a payload of 50 bits and its CRC) onto the 72 bits of one CCE. Each resource element of
//! the CCE carries two bits. If a tone or a fade destroys four of them, 64 bits are left, and four words match these
//! bits. The RNTI resolves this ambiguity, because the CRC is masked with it. Few known users search this CCE, and
//! usually a word matches for the right user only: with a given mask, only the payload is unknown. The payload is
//! computed from the bits with the largest soft values. The other bits are used as a check.
//!
//! Source: Fossorier and Lin, Soft-Decision Decoding Based on Ordered Statistics, IEEE Trans. Inf. Theory 41(5), 1995
//! (with order one)

use super::*;

/// Minimum code rate of the words that this search tries. The trellis decodes words of lower rates.
///
/// Chosen: other values were not tried.
const MIN_RATE: f32 = 0.6;

/// Minimum information in a CCE beyond the length of the payload (bits).
///
/// Chosen: with 4 bits, the search finds more messages than with 10 bits, and with 0 bits still more. With −2 bits, it
/// finds few additional messages.
const MIN_SPARE: f32 = 0.0;

/// Magnitude of a soft bit that counts as reliable (nats): one in 55 such bits is wrong.
const SURE: f32 = 4.0;

impl Size {
    /// Whether a CCE with `information` bits may contain a message of this size that is determined once its RNTI is
    /// known.
    fn is_named_by_user(&self, information: f32) -> bool {
        let rate = self.code.len() as f32 / BITS_PER_CCE as f32;
        self.is_users
            && self.seen > 0
            && rate > MIN_RATE
            && (rate <= RARE_RATE || self.short > 0)
            && information >= f32::from(self.code.size()) + MIN_SPARE
    }
}

impl Search {
    /// Searches for messages of known users in single CCEs that no candidate explains yet.
    pub(super) fn by_users(&mut self, subframe: usize, prior: &impl Fn(Rnti) -> f32) {
        let mut are_placed = false;
        for cce in 0..self.region.len() {
            let place = CceRange { cce: cce as u16, cces: 1 };
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

    /// Lists for each CCE the users whose search space contains it as a single CCE.
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
                let found = self.consider(subframe, size, cce, word, None, prior);
                self.work.by_users += u64::from(found);
            }
        }
    }
}

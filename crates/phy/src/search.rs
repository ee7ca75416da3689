//! Search for candidate messages in the soft bits of one subframe. The search covers all places and sizes without
//! decoding each combination.
//!
//! Here, a *word* is a payload with its CRC, before convolutional coding. A *place* is a start CCE with an aggregation
//! level.
//!
//! 1. CCEs in which nothing was transmitted are skipped.
//! 2. **By algebra** ([`code`]): for each size, the bits of a CCE determine the word of a message that starts there.
//!    The other bits of the CCE and the next CCEs show whether this message was transmitted, and on how many CCEs. This
//!    method finds a message that was received without bit errors, at the cost of some table look-ups. The CCEs of such
//!    a message are not searched further.
//! 3. **By trellis** ([`lanes`]): the remaining places are decoded, thirty-two words at once. The highest aggregation
//!    level comes first, because a message found there explains many CCEs. Words are not decoded at places with no more
//!    than noise, at places that are too short for the size, and at places with such a high SNR that algebra has found
//!    every message. At places where coded bits repeat, words are decoded only if the repetitions agree.
//! 4. **By users** (`users`): few known users search a given single CCE. At single CCEs that are still unexplained,
//!    these users are tried. A known RNTI determines the mask of the CRC, so sixteen fewer bits must be received.
//!
//! The trellis decodes at most [`MAX_WORDS`] words per subframe. If more words are worth decoding, the words with the
//! least information in their soft bits beyond the length of the word are dropped. [`Work::given_up`] counts the
//! dropped words.
//!
//! The evidence for a candidate is measured in bits: see [`Candidate::evidence`]. The trellis returns the likeliest
//! word. The ratio of the word's likelihood to that of similar words is used too (`rivals`).
//!
//! Chosen: public decoders decode every candidate with a trellis (463 in a subframe of 100 PRB pairs), or skip places
//! depending on earlier results. Algebra skips no place and needs no history.

pub mod code;
pub mod lanes;
mod paths;
mod rivals;
mod soft;
mod users;

use airpace_radio::Rnti;

use crate::dci::{Audience, Carrier, Extras, Format};
use crate::grid::BITS_PER_CCE;
use crate::observation::Observation;
use crate::pdcch::{self, CceRange, LEVELS, TransmittedMessage};
use code::Code;
use lanes::{LANES, Lanes};
use rivals::Margins;
use soft::{Agreement, PARTS, SoftRegion};

/// Possible message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Payload, RNTI and CCEs of the message.
    pub message: TransmittedMessage,
    /// Evidence for this message in its CCEs, against random bits or no transmission (bits): log2 of the likelihood
    /// ratio. The evidence is at most one bit per coded bit. For any soft bits, some word reaches as much evidence as
    /// its own length, because that many bits are free to fit random input. Only evidence above the length supports the
    /// message.
    pub evidence: f32,
    /// Minimum log2 likelihood ratio of this aggregation level to the other levels at this CCE that the user searches
    /// (bits). Infinite if no other level is possible.
    pub lead: f32,
    /// log2 of the likelihood ratio of this word to all similar words together that noise may confuse with it (bits).
    /// Infinite if the ratio was not computed. The similar words have other RNTIs. The ratio matters only if this RNTI
    /// is as unlikely as theirs.
    pub apart: f32,
    /// −log2 of the share of the cell's messages of this size that use this aggregation level, if the code rate is
    /// unusually high. Few cells fill most bits of a single CCE.
    pub rarity: f32,
}

impl Candidate {
    /// log2 of the likelihood ratio of this message to all messages of its size: `evidence` minus the bits for all
    /// alternatives of payload, place, format and code rate. The caller adds the probability of the RNTI.
    pub fn surplus(&self) -> f32 {
        self.evidence - f32::from(self.message.payload.len()) - PLACE_BITS - self.rarity
    }
}

/// Approximate number of bits to choose a place (one of 22) and a format (one of three that a device searches).
const PLACE_BITS: f32 = 6.0;

/// Code rate above which few base stations transmit.
///
/// Chosen: devices need not try to decode messages with a code rate above 3/4 (TS 36.213 §7.1.7 has no such limit for
/// control, but schedulers do).
const RARE_RATE: f32 = 0.8;

/// Prior of the code rate: 63 messages of a size below [`RARE_RATE`] for each message above it, that is 6 bits.
const NOT_RARE: f32 = 63.0;

/// Minimum surplus plus log2 of the RNTI's probability (bits) for keeping a candidate.
const MIN_BITS: f32 = -14.0;

/// Minimum score (bits) for accepting that a candidate explains its CCEs. These CCEs are not searched further if the
/// candidate has at most [`FEW_WRONG`] wrong bits.
const CERTAIN_BITS: f32 = 10.0;

/// Maximum number of wrong hard bits of a candidate that explains its CCEs: with so few wrong bits, no other word is as
/// close. The limit does not apply to the likeliest of all words at the place, which the trellis returns.
const FEW_WRONG: u32 = 3;

/// Minimum score (bits) of a candidate whose CCEs are excluded from the search by users.
///
/// Chosen: without this exclusion, the same number of messages is found, but the search by users tries eight times as
/// many CCEs at 6 dB.
const LIKELY_BITS: f32 = 6.0;

/// Threshold of log2 of an RNTI's probability: above it, the RNTI counts as known.
const KNOWN_BITS: f32 = -15.0;

/// Minimum evidence minus length (bits) of a decoded word for which similar words of known users are tried.
const DOUBTED_BITS: f32 = -8.0;

/// Maximum number of words per subframe that the trellis decodes: eight batches.
///
/// Chosen: a cell of 100 PRB pairs at 4 dB needs half of this number on average.
pub const MAX_WORDS: usize = 8 * LANES;

/// Minimum number of queued words for decoding a batch before the next aggregation level. Fewer words wait for words of
/// that level.
const WORTH_A_BATCH: usize = 12;

/// Maximum expected number of bit errors in a CCE for the search by algebra. The search needs about 44 correct bits.
///
/// Chosen: with a limit of six errors, algebra finds one seventh more messages (100 PRB pairs, 6 dB). The trellis finds
/// these messages too, and the total cost is higher.
const MAX_WRONG_BY_ALGEBRA: f32 = 4.0;

/// Minimum agreement of repeated coded bits at a place: below it, the trellis does not decode the place.
const MIN_REPEATS: f32 = 0.2;

/// Minimum number of repeated coded bits for applying [`MIN_REPEATS`].
const ENOUGH_REPEATS: usize = 60;

/// Payload size of messages.
#[derive(Clone)]
struct Size {
    code: Code,
    /// Whether messages to broadcast RNTIs (system information, paging, random-access response) may have this size.
    is_everyones: bool,
    /// Whether messages to a user may have this size.
    is_users: bool,
    /// Whether only messages with fields of Release 10 have this size. Such messages never occur in the common search
    /// space.
    is_extra: bool,
    /// Number of accepted messages of this size. The most frequent size is tried first.
    seen: u32,
    /// Number of accepted messages of this size on a single CCE.
    short: u32,
}

impl Size {
    /// −log2 of the share of messages of this size that are sent on `cces` CCEs, if the code rate is above
    /// [`RARE_RATE`]; otherwise 0.
    fn rarity(&self, cces: u8) -> f32 {
        if self.code.len() as f32 <= RARE_RATE * (usize::from(cces) * BITS_PER_CCE) as f32 {
            return 0.0;
        }
        // Ratio of all accepted messages to the accepted messages on one CCE; each count includes its prior.
        libm::log2f((self.seen as f32 + NOT_RARE + 1.0) / (self.short as f32 + 1.0)).clamp(0.0, 6.0)
    }
}

/// Counters of a search since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// CCEs of all searched subframes.
    pub cces: u64,
    /// CCEs in which a transmission seems possible.
    pub active: u64,
    /// Candidates found by algebra.
    pub by_algebra: u64,
    /// Words decoded by the trellis.
    pub trellis: u64,
    /// Candidates found by the trellis.
    pub by_trellis: u64,
    /// Words decoded by the trellis that may be mistaken for a known user's word.
    pub doubted: u64,
    /// Candidates found among known users' words that are similar to a word in `doubted`.
    pub by_doubt: u64,
    /// Candidates found by trying known users.
    pub by_users: u64,
    /// Number of attempts, by CCE and message size, to find a message of a known user.
    pub trials: u64,
    /// Words that were worth decoding but exceeded [`MAX_WORDS`].
    pub given_up: u64,
    /// Subframes in which words exceeded [`MAX_WORDS`].
    pub cut: u64,
}

/// Message search in the subframes of one carrier.
#[derive(Clone)]
pub struct Search {
    sizes: Vec<Size>,
    region: SoftRegion,
    /// CCEs explained by a candidate with at least [`CERTAIN_BITS`].
    explained: Vec<bool>,
    /// CCEs explained by a candidate with more than [`LIKELY_BITS`].
    is_likely: Vec<bool>,
    lanes: Lanes,
    /// Places of one aggregation level that are worth decoding, with the information in their soft bits (bits).
    loud: Vec<(CceRange, f32)>,
    /// Words of one aggregation level that are worth decoding: size, place, and information in the soft bits minus the
    /// length of the word (bits).
    queue: Vec<(usize, CceRange, f32)>,
    /// Size and place of the words in the lanes.
    batch: Vec<(usize, CceRange)>,
    found: Vec<Candidate>,
    /// Bitmap of RNTIs for which a message was accepted.
    known: Vec<u64>,
    /// List of the RNTIs in `known`.
    users: Vec<Rnti>,
    /// Support of the soft bits for each coded bit of a word (bits).
    margins: Margins,
    /// For each CCE: known users whose search space contains it as a single CCE.
    listeners: Vec<Vec<Rnti>>,
    /// Whether inactive users were already removed from `users` in this subframe.
    is_tidy: bool,
    /// Words of this subframe that the trellis decodes (`words`), and words that are worth decoding but exceed
    /// [`MAX_WORDS`] (`given_up`).
    words: usize,
    given_up: usize,
    work: Work,
}

impl Search {
    /// Search for the payload sizes of all formats on a carrier, with and without the fields of Release 10.
    pub fn new(carrier: &Carrier) -> Search {
        let mut sizes: Vec<Size> = Vec::new();
        let combinations = (0..8u8).map(|bits| Extras {
            carrier_indicator: bits & 1 != 0,
            long_csi_request: bits & 2 != 0,
            srs_request: bits & 4 != 0,
        });
        for extras in combinations {
            for format in Format::ALL {
                if format == Format::F1C && extras != Extras::NONE {
                    continue;
                }
                let size = carrier.size(format, extras);
                let at = sizes.iter().position(|known| known.code.size() == size).unwrap_or_else(|| {
                    let is_extra = extras != Extras::NONE;
                    let code = Code::new(size);
                    sizes.push(Size {
                        code,
                        is_everyones: false,
                        is_users: false,
                        is_extra,
                        seen: 0,
                        short: 0,
                    });
                    sizes.len() - 1
                });
                sizes[at].is_users |= format != Format::F1C;
                sizes[at].is_everyones |=
                    extras == Extras::NONE && matches!(format, Format::F1A | Format::F1C);
            }
        }
        Search {
            sizes,
            region: SoftRegion::default(),
            explained: Vec::new(),
            is_likely: Vec::new(),
            lanes: Lanes::default(),
            loud: Vec::new(),
            queue: Vec::new(),
            batch: Vec::new(),
            found: Vec::new(),
            known: vec![0; 1 << 10],
            users: Vec::new(),
            margins: Margins::default(),
            listeners: Vec::new(),
            is_tidy: false,
            words: 0,
            given_up: 0,
            work: Work::default(),
        }
    }

    /// Counters since the creation of the search.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Number of words of the last subframe that were worth decoding but exceeded [`MAX_WORDS`]. Messages in them are
    /// not found.
    pub fn given_up(&self) -> usize {
        self.given_up
    }

    /// Candidates of one subframe. `prior` is log2 of the probability that a message is addressed to an RNTI.
    pub fn candidates(&mut self, observation: &Observation, prior: impl Fn(Rnti) -> f32) -> &[Candidate] {
        let subframe = observation.number;
        self.region.load(observation);
        let cces = self.region.len();
        self.explained.clear();
        self.explained.resize(cces, false);
        self.is_likely.clear();
        self.is_likely.resize(cces, false);
        self.found.clear();
        (self.words, self.given_up, self.is_tidy) = (0, 0, false);
        self.sizes.sort_by_key(|size| (size.is_extra, std::cmp::Reverse(size.seen)));
        self.work.cces += cces as u64;
        self.work.active += (0..cces).filter(|&cce| self.region.is_active(cce)).count() as u64;
        // Algebra tries every size before the trellis starts: the more CCEs are explained, the fewer remain to be
        // decoded.
        for size in 0..self.sizes.len() {
            if !self.sizes[size].is_extra || self.sizes[size].seen > 0 {
                self.by_algebra(subframe, size, &prior);
            }
        }
        for level in LEVELS.into_iter().rev() {
            self.by_trellis(subframe, level, &prior);
        }
        self.decode(subframe, &prior);
        self.by_users(subframe, &prior);
        self.work.given_up += self.given_up as u64;
        self.work.cut += u64::from(self.given_up > 0);
        for size in 0..self.sizes.len() {
            if self.sizes[size].is_extra && self.sizes[size].seen == 0 {
                self.by_algebra(subframe, size, &prior);
            }
        }
        &self.found
    }

    /// Reports an accepted message: its RNTI, payload size and number of CCEs. Later searches use them as prior
    /// information.
    pub fn believe(&mut self, rnti: Rnti, size: u8, cces: u8) {
        let known = &mut self.known[usize::from(rnti.0) / 64];
        if *known >> (rnti.0 % 64) & 1 == 0 {
            *known |= 1 << (rnti.0 % 64);
            self.users.push(rnti);
        }
        if let Some(known) = self.sizes.iter_mut().find(|known| known.code.size() == size) {
            known.seen = known.seen.saturating_add(1);
            known.short = known.short.saturating_add(u32::from(cces == 1));
        }
    }

    fn is_open(&self, cce: usize) -> bool {
        self.region.is_active(cce) && !self.explained[cce]
    }

    /// Whether any receiver searches for messages of a size at a place.
    fn is_for_anyone(&self, size: &Size, place: CceRange) -> bool {
        size.is_users || pdcch::in_common_space(place, self.region.len())
    }

    fn by_algebra(&mut self, subframe: usize, size: usize, prior: &impl Fn(Rnti) -> f32) {
        for cce in 0..self.region.len() {
            if !self.is_open(cce)
                || !self.sizes[size].is_users && !cce.is_multiple_of(4)
                || self.region.expected_wrong(cce) > MAX_WRONG_BY_ALGEBRA
            {
                continue;
            }
            let mut words = self.sizes[size].code.words(self.region.hard(cce));
            let both = [words.next(), words.next()];
            drop(words);
            for word in both.into_iter().flatten() {
                let found = self.consider(subframe, size, cce, word, None, prior);
                self.work.by_algebra += u64::from(found);
            }
        }
    }

    /// Decodes all sizes at places of aggregation level `level`.
    fn by_trellis(&mut self, subframe: usize, level: u8, prior: &impl Fn(Rnti) -> f32) {
        let cces = self.region.len();
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        let mut loud = std::mem::take(&mut self.loud);
        loud.clear();
        let places = (0..cces / usize::from(level)).map(|at| at as u16 * u16::from(level));
        let worth =
            places.map(|cce| CceRange { cce, cces: level }).filter(|place| self.is_worth_decoding(*place));
        loud.extend(worth.map(|place| (place, self.region.information(place.range()))));
        for (at, size) in self.sizes.iter().enumerate().filter(|(_, size)| !size.is_extra || size.seen > 0) {
            let fits = loud.iter().filter(|(place, _)| self.fits(size, *place));
            queue.extend(fits.map(|&(place, information)| (at, place, information - size.code.len() as f32)));
        }
        self.loud = loud;
        let left = MAX_WORDS - self.words;
        if queue.len() > left {
            // Most information beyond the length of the word first, ties in a fixed order.
            queue.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        }
        for &(size, place, _) in &queue {
            if !place.range().all(|cce| self.is_open(cce)) {
                continue;
            }
            if self.words == MAX_WORDS {
                self.given_up += 1;
                continue;
            }
            self.words += 1;
            let soft = self.region.soft(place.bits());
            self.lanes.set(self.batch.len(), self.sizes[size].code.matcher(), soft);
            self.batch.push((size, place));
            if self.batch.len() == LANES {
                self.decode(subframe, prior);
            }
        }
        // Messages found at these places may explain the CCEs of lower levels. A few words alone do not fill a batch.
        if self.batch.len() >= WORTH_A_BATCH {
            self.decode(subframe, prior);
        }
        self.queue = queue;
    }

    /// Whether a place contains more than noise, and no candidate explains any of its CCEs. If the first CCE is free of
    /// bit errors, algebra has already found the word.
    fn is_worth_decoding(&self, place: CceRange) -> bool {
        !self.region.is_clear(usize::from(place.cce))
            && place.range().all(|cce| self.is_open(cce))
            && self.region.is_loud(place.range())
    }

    /// Whether the soft bits at a place may contain a word of a size: any repeated coded bits must agree.
    fn fits(&self, size: &Size, place: CceRange) -> bool {
        let (len, bits) = (size.code.len(), place.bits());
        if len as f32 > RARE_RATE * bits.len() as f32 || !self.is_for_anyone(size, place) {
            return false;
        }
        // The circular buffer has three coded bits per bit of the word. All further received bits are repetitions.
        let repeated = bits.len().saturating_sub(3 * len);
        repeated < ENOUGH_REPEATS || self.region.repeats(bits, 3 * len) > MIN_REPEATS
    }

    /// Decodes all words of the batch in parallel.
    fn decode(&mut self, subframe: usize, prior: &impl Fn(Rnti) -> f32) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        self.work.trellis += batch.len() as u64;
        let decoded = self.lanes.decode(batch.len());
        for (&(size, place), decoded) in batch.iter().zip(decoded) {
            if decoded.bites && place.range().all(|cce| self.is_open(cce)) {
                let found =
                    self.consider(subframe, size, usize::from(place.cce), decoded.word, Some(place), prior);
                self.work.by_trellis += u64::from(found);
                if found {
                    self.compare_with_rivals(size, decoded.word, prior);
                }
                self.doubt(subframe, size, place, decoded.word, prior);
            }
        }
        self.batch = batch;
        self.batch.clear();
    }

    /// In strong noise, the trellis may confuse a word with a similar word. If the decoded word is for no known RNTI,
    /// the similar words of known RNTIs become candidates as well.
    fn doubt(
        &mut self,
        subframe: usize,
        size: usize,
        place: CceRange,
        word: u128,
        prior: &impl Fn(Rnti) -> f32,
    ) {
        let code = &self.sizes[size].code;
        let Some((_, mask)) = code.open(word) else { return };
        let cces = place.range().zip(code.cces(word));
        let agreements = cces.filter_map(|(cce, bits)| self.region.agreement(cce, bits));
        let evidence: i32 = agreements.map(|agreement| agreement.evidence).sum();
        let spare = evidence as f32 / PARTS - code.len() as f32;
        if spare < DOUBTED_BITS || prior(Rnti(mask)) > KNOWN_BITS {
            return;
        }
        self.work.doubted += 1;
        self.tidy(prior);
        for at in 0..self.users.len() {
            let rnti = self.users[at];
            let count = self.sizes[size].code.mistakes(mask ^ rnti.0).len();
            for which in 0..count {
                let mistake = self.sizes[size].code.mistakes(mask ^ rnti.0)[which];
                let found =
                    self.consider(subframe, size, usize::from(place.cce), word ^ mistake.word, None, prior);
                self.work.by_doubt += u64::from(found);
            }
        }
    }

    /// Removes users without a recent message, once per subframe.
    fn tidy(&mut self, prior: &impl Fn(Rnti) -> f32) {
        if std::mem::replace(&mut self.is_tidy, true) {
            return;
        }
        let Search { users, known, .. } = self;
        users.retain(|rnti| {
            let is_known = prior(*rnti) > KNOWN_BITS;
            if !is_known {
                known[usize::from(rnti.0) / 64] &= !(1 << (rnti.0 % 64));
            }
            is_known
        });
    }

    /// Evaluates a word that may start at a CCE. The aggregation level with the best agreement, among the levels that
    /// the receiver searches at this CCE, becomes the candidate. At the place `decoded`, the trellis has found this
    /// word as the likeliest. Returns whether the word is a new candidate.
    fn consider(
        &mut self,
        subframe: usize,
        size: usize,
        cce: usize,
        word: u128,
        decoded: Option<CceRange>,
        prior: &impl Fn(Rnti) -> f32,
    ) -> bool {
        let Size { code, is_everyones, is_users, is_extra, .. } = &self.sizes[size];
        let Some((payload, rnti)) = code.open(word) else { return false };
        let rnti = Rnti(rnti);
        let for_them = match Audience::of(rnti) {
            None => false,
            Some(Audience::User) => *is_users,
            Some(Audience::Everyone) => *is_everyones,
        };
        if !for_them {
            return false;
        }
        let cces = self.region.len();
        let mut best: Option<Candidate> = None;
        let (mut sum, mut wrong, mut at) = (Agreement::default(), 0, cce);
        // Agreement of the CCEs after the CCEs of the best aggregation level so far.
        let mut more = Agreement::default();
        let mut is_near = false;
        let mut bits = code.cces(word);
        for level in LEVELS {
            let place = CceRange { cce: cce as u16, cces: level };
            if !cce.is_multiple_of(usize::from(level)) || place.range().end > cces {
                break;
            }
            // Agreement of the additional CCEs of this level. Stop if a CCE disagrees, or is already explained.
            while at < place.range().end {
                let here = bits.next().unwrap_or_default();
                let Some(agreement) = self.region.agreement(at, here).filter(|_| self.is_open(at)) else {
                    break;
                };
                more += agreement;
                wrong += self.region.wrong(at, here);
                at += 1;
            }
            if at < place.range().end {
                break;
            }
            if !pdcch::in_search_space(rnti, subframe, cces, place)
                || *is_extra
                    && pdcch::in_common_space(place, cces)
                    && !pdcch::in_own_space(rnti, subframe, cces, place)
            {
                continue;
            }
            // A candidate on more CCEs replaces the candidate on fewer CCEs only if its additional CCEs continue the
            // message.
            let gain = if best.is_some() { more.goes_on(&sum) } else { f32::INFINITY };
            if let Some(best) = best.as_mut().filter(|_| gain <= 0.0) {
                best.lead = best.lead.min(-gain);
                continue;
            }
            sum += std::mem::take(&mut more);
            let lead = best.map_or(gain, |best| best.lead.min(gain));
            let message = TransmittedMessage { rnti, payload, place };
            let rarity = self.sizes[size].rarity(level);
            best = Some(Candidate { message, evidence: sum.worth(), lead, apart: f32::INFINITY, rarity });
            is_near = wrong <= FEW_WRONG;
        }
        let Some(candidate) = best else { return false };
        let score = candidate.surplus() + prior(rnti);
        if score < MIN_BITS || self.found.iter().any(|known| known.message == candidate.message) {
            return false;
        }
        let is_likeliest = decoded == Some(candidate.message.place);
        if score > CERTAIN_BITS && (is_near || is_likeliest) {
            candidate.message.place.range().for_each(|cce| self.explained[cce] = true);
        }
        if score > LIKELY_BITS {
            candidate.message.place.range().for_each(|cce| self.is_likely[cce] = true);
        }
        self.found.push(candidate);
        true
    }
}

//! From soft bits of a subframe to candidate messages: every place, every size, without decoding them all.
//!
//! 1. The search skips a CCE in which nothing was sent.
//! 2. **By algebra** ([`code`]): for each size, a CCE's bits name the word that a message beginning there would have.
//!    Its other bits and the next CCEs tell whether the message is there, and how long it is. This finds a message that
//!    was heard without a wrong bit, at the cost of some table look-ups. Its CCEs need no further search.
//! 3. **By trellis** ([`lanes`]): the rest is decoded place by place, thirty-two at once, the longest places first: a
//!    message that is found there explains many CCEs. The search leaves out places with no more than noise, sizes for
//!    which a place is too short, and places that were heard so well that algebra has found everything. Of places so
//!    long that coded bits repeat, it decodes only those whose repetitions agree.
//!
//! 4. **By users** (`users`): at a place of one CCE that is still unexplained, the users that look there are few. With the
//!    mask of the CRC given, sixteen bits fewer must be heard.
//!
//! A subframe gets at most [`MOST_WORDS`] words of the trellis. If more would be worth decoding, the search gives up
//! those that are least likely to be read: those whose bits tell least beyond what the word needs. It counts them in
//! [`Work::given_up`].
//!
//! What a candidate is worth is counted in bits of evidence: see [`Candidate::evidence`]. The trellis names the likeliest
//! word; how much likelier it is than its neighbours counts too (`rivals`).
//!
//! Chosen: public decoders send every candidate through a trellis (463 in a subframe of 100 PRB pairs), or skip places
//! because of what they found before. Algebra skips no place and needs no history.

pub mod code;
pub mod lanes;
mod rivals;
mod soft;
mod users;

use airpace_radio::Rnti;

use crate::dci::{Audience, Carrier, Extras, Format};
use crate::grid::BITS_PER_CCE;
use crate::observation::Observation;
use crate::pdcch::{self, LEVELS, Place, Sent};
use code::Code;
use lanes::{LANES, Lanes};
use rivals::Margins;
use soft::{Agreement, PARTS, SoftRegion};

/// A message that may have been sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// What the message says, to whom, and where.
    pub message: Sent,
    /// How much better this message explains what was heard in its CCEs than random bits or silence do, in bits: log2
    /// of the ratio of likelihoods. At most one per coded bit. Some word always reaches as many bits as its own length,
    /// because chance has that many bits to choose. Only evidence beyond that speaks for the message.
    pub evidence: f32,
    /// By how many bits this number of CCEs is likelier than a smaller or larger number; infinite if its user looks
    /// nowhere else.
    pub lead: f32,
    /// By how many bits this word is likelier than all words together that noise mistakes for it; infinite where that was
    /// not asked. They are for other RNTIs, which matters if this one's is as unlikely as theirs.
    pub apart: f32,
    /// −log2 of how often the cell sends messages of this size so: on one CCE, hardly any cell fills most of its bits.
    pub rarity: f32,
}

impl Candidate {
    /// The evidence for this message among all messages of its size, log2 of a ratio: `evidence` less the bits for
    /// everything else that its payload, place and kind might have been. The probability of its RNTI is still to be
    /// added.
    pub fn surplus(&self) -> f32 {
        self.evidence - f32::from(self.message.payload.len()) - PLACE_BITS - self.rarity
    }
}

/// The approximate bits of a place (one of 22) and a format (one of three that a device listens for).
const PLACE_BITS: f32 = 6.0;

/// Hardly any base station sends above this code rate.
///
/// Chosen: devices need not try to decode above 3/4 (TS 36.213 §7.1.7 has no such limit for control, but schedulers do).
const RARE_RATE: f32 = 0.8;

/// So many messages of a size are taken for sent below that rate before any is heard, and one above it: six bits.
const NOT_RARE: f32 = 63.0;

/// Candidates whose surplus, with their RNTI's probability, is below this are not worth remembering.
const LEAST_BITS: f32 = -14.0;

/// A candidate with this score is so certain that its CCEs are not searched further …
const CERTAIN_BITS: f32 = 10.0;

/// … if at most this many of its bits were heard wrong, or if it is the likeliest of all words at its place: then no
/// other word is as near.
const FEW_WRONG: u32 = 3;

/// CCEs of a candidate with this score are not looked at for known users.
///
/// Chosen: without it, as many messages are found, and eight times as many CCEs are looked at for them at 6 dB.
const LIKELY_BITS: f32 = 6.0;

/// An RNTI with a higher probability than this, as log2, counts as known.
const KNOWN_BITS: f32 = -15.0;

/// A word whose evidence less its length is at least this may be near a true word.
const DOUBTED_BITS: f32 = -8.0;

/// At most this many words of a subframe go through the trellis: eight batches.
///
/// Chosen: a cell of 100 PRB pairs at 4 dB needs half of it in the mean.
pub const MOST_WORDS: usize = 8 * LANES;

/// So many words are decoded before the next number of CCEs is looked at.
const WORTH_A_BATCH: usize = 12;

/// Where more bits than this of a CCE are wrong on average, algebra finds nothing: it needs some 44 right ones.
///
/// Chosen: with six, it found a seventh more in a cell of 100 PRB pairs at 6 dB, which the trellis finds too; all in all,
/// that cost more than it spared.
const MOST_WRONG_BY_ALGEBRA: f32 = 4.0;

/// A place is decoded only if the agreement of its repeated bits is at least this.
const LEAST_REPEATS: f32 = 0.2;

/// How many repeated bits this takes.
const ENOUGH_REPEATS: usize = 60;

/// Messages of one size.
#[derive(Clone)]
struct Size {
    code: Code,
    /// Whether everyone's messages have it too.
    is_everyones: bool,
    /// Whether users' messages have it.
    is_users: bool,
    /// Whether only messages with fields of Release 10 have it: they are never in the common search space.
    is_extra: bool,
    /// Messages seen, for the most frequent size to be tried first.
    seen: u32,
    /// Those of them that were on one CCE.
    short: u32,
}

impl Size {
    /// −log2 of how often messages of this size are sent on `cces` CCEs, if their code rate is rare.
    fn rarity(&self, cces: u8) -> f32 {
        if self.code.len() as f32 <= RARE_RATE * (usize::from(cces) * BITS_PER_CCE) as f32 {
            return 0.0;
        }
        libm::log2f((self.seen as f32 + NOT_RARE + 1.0) / (self.short as f32 + 1.0)).clamp(0.0, 6.0)
    }
}

/// Counts of what a search did, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// CCEs heard.
    pub cces: u64,
    /// CCEs in which something seemed to have been sent.
    pub active: u64,
    /// Candidates that algebra found.
    pub by_algebra: u64,
    /// Words that the trellis decoded.
    pub trellis: u64,
    /// Candidates that the trellis found.
    pub by_trellis: u64,
    /// Words of the trellis that may be a known user's word, mistaken.
    pub doubted: u64,
    /// Candidates that were found behind such words.
    pub by_doubt: u64,
    /// Candidates that were found because their users are known.
    pub by_users: u64,
    /// CCEs and sizes for which words of known users were made.
    pub trials: u64,
    /// Words that were worth decoding, but too many for their subframe.
    pub given_up: u64,
    /// Subframes with such words.
    pub cut: u64,
}

/// Searches subframes of one carrier.
#[derive(Clone)]
pub struct Search {
    sizes: Vec<Size>,
    region: SoftRegion,
    /// CCEs that a certain candidate explains.
    explained: Vec<bool>,
    /// CCEs that a likely candidate explains.
    is_likely: Vec<bool>,
    lanes: Lanes,
    /// Places of one number of CCEs that are worth a trellis, and how many bits were heard there.
    loud: Vec<(Place, f32)>,
    /// Sizes and places of one number of CCEs that are worth a trellis, and by how many bits what was heard tells more
    /// than the word needs.
    queue: Vec<(usize, Place, f32)>,
    /// Those in the lanes.
    batch: Vec<(usize, Place)>,
    found: Vec<Candidate>,
    /// RNTIs to which messages were believed to be sent, one bit each.
    known: Vec<u64>,
    /// The same as a list.
    users: Vec<Rnti>,
    /// By how many bits what was heard speaks for each coded bit of a word.
    margins: Margins,
    /// By CCE: those that look for messages on it alone.
    listeners: Vec<Vec<Rnti>>,
    /// Whether users that were not heard for long have been dropped from it in this subframe.
    is_tidy: bool,
    /// Words of this subframe that went through the trellis, and that were too many.
    words: usize,
    given_up: usize,
    work: Work,
}

impl Search {
    /// For all formats' sizes on a carrier, with and without the fields of Release 10.
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

    /// What the search has done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Words of the last subframe that were worth decoding but were given up, because there were more than
    /// [`MOST_WORDS`]. Messages behind them are not found.
    pub fn given_up(&self) -> usize {
        self.given_up
    }

    /// Candidates of one subframe. `prior` is log2 of the probability that a message is for an RNTI.
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
        // Algebra tries every size before the trellis does: the more CCEs are explained, the fewer are left to decode.
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

    /// Tells the search that a message of a size to an RNTI was believed, on so many CCEs. The search then looks for all
    /// three more thoroughly.
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

    /// Whether anyone looks for messages of a size at a place.
    fn is_for_anyone(&self, size: &Size, place: Place) -> bool {
        size.is_users || pdcch::in_common_space(place, self.region.len())
    }

    fn by_algebra(&mut self, subframe: usize, size: usize, prior: &impl Fn(Rnti) -> f32) {
        for cce in 0..self.region.len() {
            if !self.is_open(cce)
                || !self.sizes[size].is_users && !cce.is_multiple_of(4)
                || self.region.expected_wrong(cce) > MOST_WRONG_BY_ALGEBRA
            {
                continue;
            }
            let mut words = self.sizes[size].code.words(self.region.hard(cce));
            let both = [words.next(), words.next()];
            drop(words);
            for word in both.into_iter().flatten() {
                let found = self.consider(subframe, size, cce, (word, None), prior);
                self.work.by_algebra += u64::from(found);
            }
        }
    }

    /// Decodes all sizes at places of `level` CCEs.
    fn by_trellis(&mut self, subframe: usize, level: u8, prior: &impl Fn(Rnti) -> f32) {
        let cces = self.region.len();
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        let mut loud = std::mem::take(&mut self.loud);
        loud.clear();
        let places = (0..cces / usize::from(level)).map(|at| at as u16 * u16::from(level));
        let worth =
            places.map(|cce| Place { cce, cces: level }).filter(|place| self.is_worth_decoding(*place));
        loud.extend(worth.map(|place| (place, self.region.information(place.range()))));
        for (at, size) in self.sizes.iter().enumerate().filter(|(_, size)| !size.is_extra || size.seen > 0) {
            let fits = loud.iter().filter(|(place, _)| self.fits(size, *place));
            queue.extend(fits.map(|&(place, information)| (at, place, information - size.code.len() as f32)));
        }
        self.loud = loud;
        let left = MOST_WORDS - self.words;
        if queue.len() > left {
            queue.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        }
        for &(size, place, _) in &queue {
            if !place.range().all(|cce| self.is_open(cce)) {
                continue;
            }
            if self.words == MOST_WORDS {
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
        // What is found at these places may explain shorter ones. A few words are not worth a batch of their own.
        if self.batch.len() >= WORTH_A_BATCH {
            self.decode(subframe, prior);
        }
        self.queue = queue;
    }

    /// Whether more than noise was heard at a place, and nothing there is explained. Where the first CCE is clear,
    /// algebra has already named the word.
    fn is_worth_decoding(&self, place: Place) -> bool {
        !self.region.is_clear(usize::from(place.cce))
            && place.range().all(|cce| self.is_open(cce))
            && self.region.is_loud(place.range())
    }

    /// Whether what was heard at a place may be a word of a size. Where coded bits repeat, they must agree.
    fn fits(&self, size: &Size, place: Place) -> bool {
        let (len, bits) = (size.code.len(), place.bits());
        if len as f32 > RARE_RATE * bits.len() as f32 || !self.is_for_anyone(size, place) {
            return false;
        }
        let repeated = bits.len().saturating_sub(3 * len);
        repeated < ENOUGH_REPEATS || self.region.repeats(bits, 3 * len) > LEAST_REPEATS
    }

    /// Decodes everything in the batch, side by side.
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
                    self.consider(subframe, size, usize::from(place.cce), (decoded.word, Some(place)), prior);
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

    /// In strong noise, the trellis may have mistaken a word for its neighbour. If the decoded word is for no known
    /// RNTI, this weighs those of its neighbours that are for a known one.
    fn doubt(
        &mut self,
        subframe: usize,
        size: usize,
        place: Place,
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
                    self.consider(subframe, size, usize::from(place.cce), (word ^ mistake.word, None), prior);
                self.work.by_doubt += u64::from(found);
            }
        }
    }

    /// Forgets users to which nothing was sent for long, once per subframe.
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

    /// Weighs a word that may begin at a CCE. Of the numbers of CCEs at which its receiver would look, it takes the one
    /// that agrees most. At the place `decoded` this word is the likeliest of all. Returns whether the word is a new
    /// candidate.
    fn consider(
        &mut self,
        subframe: usize,
        size: usize,
        cce: usize,
        (word, decoded): (u128, Option<Place>),
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
        // The agreement of the CCEs behind those of the best place.
        let mut more = Agreement::default();
        let mut is_near = false;
        let mut bits = code.cces(word);
        for level in LEVELS {
            let place = Place { cce: cce as u16, cces: level };
            if !cce.is_multiple_of(usize::from(level)) || place.range().end > cces {
                break;
            }
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
            let gain = if best.is_some() { more.goes_on(&sum) } else { f32::INFINITY };
            if let Some(best) = best.as_mut().filter(|_| gain <= 0.0) {
                best.lead = best.lead.min(-gain);
                continue;
            }
            sum += std::mem::take(&mut more);
            let lead = best.map_or(gain, |best| best.lead.min(gain));
            let message = Sent { rnti, payload, place };
            let rarity = self.sizes[size].rarity(level);
            best = Some(Candidate { message, evidence: sum.worth(), lead, apart: f32::INFINITY, rarity });
            is_near = wrong <= FEW_WRONG;
        }
        let Some(candidate) = best else { return false };
        let score = candidate.surplus() + prior(rnti);
        if score < LEAST_BITS || self.found.iter().any(|known| known.message == candidate.message) {
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

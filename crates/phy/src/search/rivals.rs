//! Likelihood ratio of a decoded word to the similar words that noise may confuse with it.
//!
//! The trellis returns the likeliest word, and any word is valid for some RNTI. So a wrong word that is similar to the
//! transmitted word has nearly as much evidence: the evidence only shows that a word similar to this one was
//! transmitted. Only the few coded bits in which two similar words differ can distinguish them.
//!
//! Chosen: public decoders have no such test. Only paths that change at most 20 coded bits count; other limits were not
//! tried.

use super::paths::light;
use super::*;
use crate::coding::Codeword;

/// Coded bits that change in the differences of lowest weight between words.
#[derive(Clone, Debug)]
pub struct Rivals {
    /// For each path that leaves the correct path at the word's lowest bit: the coded bits that it changes, as pairs of
    /// stream and bit.
    paths: Vec<Vec<(u8, u8)>>,
    /// Length of a word (bits).
    len: usize,
}

/// Support of the soft bits for each coded bit of a word (bits), by stream.
#[derive(Clone, Debug, Default)]
pub struct Margins {
    /// The values of each stream twice in succession. So a path that wraps around the end of the word is a contiguous
    /// range.
    streams: [Vec<f32>; 3],
    sums: Vec<f32>,
}

impl Margins {
    /// Resets the support to zero, for a word of `len` bits.
    pub fn reset(&mut self, len: usize) {
        for stream in &mut self.streams {
            stream.clear();
            stream.resize(2 * len, 0.0);
        }
    }

    /// Adds the support of one soft bit for the coded bit at index 3 · bit + stream.
    pub fn add(&mut self, place: usize, margin: f32) {
        let stream = &mut self.streams[place % 3];
        let len = stream.len() / 2;
        stream[place / 3] += margin;
        stream[place / 3 + len] += margin;
    }
}

impl Rivals {
    /// Computes the paths for words of `len` bits.
    pub fn new(len: usize) -> Rivals {
        let places = |pattern: u128| {
            let coded = Codeword::encode(pattern, len);
            let bits = coded.steps().iter().zip(0u8..).flat_map(|(step, bit)| {
                step.iter()
                    .zip(0u8..)
                    .filter(|(is_changed, _)| **is_changed == 1)
                    .map(move |(_, stream)| (stream, bit))
            });
            bits.collect()
        };
        Rivals { paths: light(len).into_iter().map(places).collect(), len }
    }

    /// log2 of the likelihood ratio of a word to all similar words together (bits).
    pub fn apart(&self, margins: &mut Margins) -> f32 {
        let (mut all, Margins { streams, sums }) = (0.0, margins);
        sums.resize(self.len, 0.0);
        for path in &self.paths {
            sums.fill(0.0);
            for &(stream, bit) in path {
                // Margins of this coded bit for all cyclic shifts of the path.
                let turned = &streams[usize::from(stream)][usize::from(bit)..];
                sums.iter_mut().zip(turned).for_each(|(sum, margin)| *sum += margin);
            }
            // Likelihood ratio of each shifted path: two to the power of minus its margin.
            all += sums.iter().map(|sum| exp2(-sum)).sum::<f32>();
        }
        -libm::log2f(all)
    }
}

/// 2 to the power of `bits`, at most 6 % too large.
#[inline(always)]
fn exp2(bits: f32) -> f32 {
    // Interpolates linearly between powers of two: the integer part becomes the exponent of the float, the fraction its
    // mantissa.
    f32::from_bits(((bits.clamp(-126.0, 126.0) + 127.0) * 8_388_608.0) as u32)
}

impl Search {
    /// Computes `apart` of the last candidate, if its RNTI is not known. A known RNTI is stronger evidence than this
    /// comparison.
    pub(super) fn compare_with_rivals(&mut self, size: usize, word: u128, prior: &impl Fn(Rnti) -> f32) {
        let Some(candidate) = self.found.last_mut() else { return };
        if prior(candidate.message.rnti) > KNOWN_BITS {
            return;
        }
        let (code, place) = (&self.sizes[size].code, candidate.message.place);
        let coded = Codeword::encode(word, code.len());
        let bits = coded.steps().as_flattened();
        self.margins.reset(code.len());
        let soft = self.region.soft(place.bits());
        for (at, soft) in code.matcher().places().iter().map(|at| usize::from(*at)).cycle().zip(soft) {
            self.margins.add(at, self.region.loss(*soft, bits[at]));
        }
        candidate.apart = code.rivals().apart(&mut self.margins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If every coded bit supports the word by one bit, the nearest words, which differ in fifteen coded bits, are 15
    /// bits less likely. Several such words start at each bit of the word.
    #[test]
    fn neighbours_are_as_far_as_the_bits_in_which_they_differ() {
        let rivals = Rivals::new(43);
        let mut margins = Margins::default();
        let mut apart = |of: &dyn Fn(usize) -> f32| {
            margins.reset(43);
            (0..129).for_each(|place| margins.add(place, of(place)));
            rivals.apart(&mut margins)
        };
        let least = rivals.paths.iter().map(Vec::len).min();
        assert_eq!(least, Some(15));
        let [near, far, farther] = [0.1, 1.0, 2.0].map(|margin| apart(&|_| margin));
        assert!(near < -5.0, "{near} bits");
        assert!((5.0..10.0).contains(&far), "{far} bits");
        assert!(farther > 20.0, "{farther} bits");
        // If fifteen differing bits have no information, both words are equally likely.
        let lightest = rivals.paths.iter().find(|path| path.len() == 15).expect("one of the lightest");
        let places =
            lightest.iter().map(|&(stream, bit)| (usize::from(bit) + 40) % 43 * 3 + usize::from(stream));
        let places: Vec<usize> = places.collect();
        let one = apart(&|place| if places.contains(&place) { 0.0 } else { 5.0 });
        assert!((-1.0..=0.1).contains(&one), "{one} bits");
    }

    #[test]
    fn powers_of_two_are_close() {
        for at in -400..=40 {
            let bits = at as f32 / 10.0;
            let off = exp2(bits) / libm::exp2f(bits);
            assert!((0.999..1.07).contains(&off), "{bits}: {off}");
        }
        assert!(exp2(f32::NEG_INFINITY) < 1e-37 && exp2(f32::NAN).is_finite());
    }
}

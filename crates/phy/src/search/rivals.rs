//! How far a decoded word is from those that noise mistakes for it.
//!
//! The trellis names the likeliest word, and any word is for some RNTI. So a word of noise that is near a true one looks as
//! good as the true one would: its evidence says that something was sent, and that it sounds like this word. Whether it is
//! this word or one of its neighbours, only the few coded bits tell in which they differ.
//!
//! Chosen: public decoders ask nothing of the kind. Only the lightest paths count, those of at most 20 coded bits; without
//! trying others.

use super::code::light;
use super::*;
use crate::coding::Codeword;

/// What the lightest paths through the trellis change.
#[derive(Clone, Debug)]
pub struct Rivals {
    /// For each path that leaves the true one at the word's lowest bit: the coded bits that it changes, as stream and bit.
    paths: Vec<Vec<(u8, u8)>>,
    /// Bits of a word.
    len: usize,
}

/// By how many bits what was heard speaks for a word's coded bits, by stream.
#[derive(Clone, Debug, Default)]
pub struct Margins {
    /// All of them, twice, so that a path that goes on at the word's beginning is a range too.
    streams: [Vec<f32>; 3],
    sums: Vec<f32>,
}

impl Margins {
    /// For a word of `len` bits of which nothing was heard.
    pub fn reset(&mut self, len: usize) {
        for stream in &mut self.streams {
            stream.clear();
            stream.resize(2 * len, 0.0);
        }
    }

    /// Something was heard of a coded bit, at 3 · bit + stream.
    pub fn add(&mut self, place: usize, margin: f32) {
        let stream = &mut self.streams[place % 3];
        let len = stream.len() / 2;
        stream[place / 3] += margin;
        stream[place / 3 + len] += margin;
    }
}

impl Rivals {
    /// For words of `len` bits.
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

    /// By how many bits a word is likelier than all of its neighbours together.
    pub fn apart(&self, margins: &mut Margins) -> f32 {
        let (mut all, Margins { streams, sums }) = (0.0, margins);
        sums.resize(self.len, 0.0);
        for path in &self.paths {
            sums.fill(0.0);
            for &(stream, bit) in path {
                let turned = &streams[usize::from(stream)][usize::from(bit)..];
                sums.iter_mut().zip(turned).for_each(|(sum, margin)| *sum += margin);
            }
            all += sums.iter().map(|sum| exp2(-sum)).sum::<f32>();
        }
        -libm::log2f(all)
    }
}

/// 2 to the power of a number, 6 % too large at most.
#[inline(always)]
fn exp2(bits: f32) -> f32 {
    // The exponent of a float, and a line between powers.
    f32::from_bits(((bits.clamp(-126.0, 126.0) + 127.0) * 8_388_608.0) as u32)
}

impl Search {
    /// Says of the last candidate how far it is from its neighbours, if its RNTI is not known. A known one speaks for it more
    /// than they can.
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

    /// Where every bit speaks for the word by one bit, its nearest neighbours, which differ in fifteen, are 15 bits away, and
    /// there are several at each of its bits.
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
        // Fifteen bits of which nothing is known leave as much for one word as for another.
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

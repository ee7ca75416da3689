//! Tests of the triple buffer: in a model checker, which tries every order of accesses that the memory model allows,
//! and on real hardware.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;

/// Words whose values show whether they belong to the same publication.
fn words_of(number: u64) -> [u64; 2] {
    [number, number * 1_000]
}

/// A word for the model checker, with or without fences.
#[derive(Debug)]
struct Modelled<const ACQUIRES: bool, const RELEASES: bool>(loom::sync::atomic::AtomicU64);

impl<const ACQUIRES: bool, const RELEASES: bool> Default for Modelled<ACQUIRES, RELEASES> {
    fn default() -> Self {
        Modelled(loom::sync::atomic::AtomicU64::new(0))
    }
}

impl<const ACQUIRES: bool, const RELEASES: bool> Word for Modelled<ACQUIRES, RELEASES> {
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn acquire_fence() {
        if ACQUIRES {
            loom::sync::atomic::fence(Ordering::Acquire);
        }
    }

    fn release_fence() {
        if RELEASES {
            loom::sync::atomic::fence(Ordering::Release);
        }
    }
}

/// Runs one writer of `publications` publications and a reader with two attempts, in every order that the memory model
/// allows.
fn model<const ACQUIRES: bool, const RELEASES: bool>(publications: u64) {
    loom::model(move || {
        let slot = loom::sync::Arc::new(Slot::<Modelled<ACQUIRES, RELEASES>, 2>::default());
        let writer = {
            let slot = slot.clone();
            loom::thread::spawn(move || (1..=publications).for_each(|n| slot.publish(n, &words_of(n))))
        };
        let mut before = 0;
        for _ in 0..2 {
            if let Some(Some((number, words))) = slot.try_read() {
                assert_eq!(words, words_of(number), "a reading is whole");
                assert!(number >= before, "readings never go back");
                before = number;
            }
        }
        writer.join().expect("the writer ends");
        let last = slot.try_read().expect("nobody writes any more");
        assert_eq!(last, Some((publications, words_of(publications))), "the last publication stays");
    });
}

#[test]
fn no_order_of_accesses_lets_a_reader_see_a_torn_reading() {
    // The fourth publication uses the same buffer as the first.
    model::<true, true>(4);
}

#[test]
#[should_panic(expected = "a reading is whole")]
fn the_model_finds_torn_readings_where_the_reader_has_no_fences() {
    model::<false, true>(4);
}

#[test]
#[should_panic(expected = "a reading is whole")]
fn the_model_finds_torn_readings_where_the_writer_has_no_fences() {
    model::<true, false>(4);
}

#[test]
fn readers_on_the_machine_never_see_a_torn_or_older_reading() {
    let slot = Arc::new(Slot::<AtomicU64, 7>::default());
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (slot, is_over) = (slot.clone(), is_over.clone());
            std::thread::spawn(move || {
                let (mut before, mut distinct) = (0, 0u64);
                while !is_over.load(Ordering::Relaxed) {
                    let Some((number, words)) = slot.read() else { continue };
                    assert!(
                        words.iter().zip(1..).all(|(word, at)| *word == number * at),
                        "{number}: {words:?}"
                    );
                    assert!(number >= before, "publication {number} after {before}");
                    distinct += u64::from(number > before);
                    before = number;
                }
                distinct
            })
        })
        .collect();
    const PUBLICATIONS: u64 = 2_000_000;
    for number in 1..=PUBLICATIONS {
        slot.publish(number, &std::array::from_fn(|at| number * (at as u64 + 1)));
    }
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("a reader saw only whole readings");
    }
    assert_eq!(slot.read().map(|(number, _)| number), Some(PUBLICATIONS));
}

#[test]
fn a_writer_that_stops_in_the_midst_of_a_publication_leaves_the_one_before() {
    let slot = Slot::<AtomicU64, 2>::default();
    assert_eq!(slot.read(), None, "nothing is published yet");
    (1..=4).for_each(|number| slot.publish(number, &words_of(number)));
    // State during the fifth publication: the buffer is claimed and partly filled.
    slot.buffer(5).claimed.store(5, Ordering::Relaxed);
    slot.buffer(5).words[0].store(77, Ordering::Relaxed);
    assert_eq!(slot.read(), Some((4, words_of(4))));
}

#[test]
fn a_writer_that_breaks_the_rules_does_not_catch_readers_in_a_loop() {
    let slot = Slot::<AtomicU64, 2>::default();
    slot.latest.store(5, Ordering::Relaxed);
    assert_eq!(slot.read(), None, "buffer 5 mod 3 never carries the number that `latest` names");
}

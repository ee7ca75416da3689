//! Which subframes of several recordings are the same.

use clap::ValueEnum;

/// What tells that two subframes are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Align {
    /// Their numbers, if recordings that began at once agree on them; else their time.
    Auto,
    /// Their frame and subframe numbers, whenever the recordings began.
    Sfn,
    /// Their time since the recordings' beginnings, as if these were at once.
    Time,
}

/// Frame numbers of two recordings that began at once differ by no more than this many subframes if both cells count
/// frames alike.
///
/// Chosen: people do not start two receivers within a tenth of a second by hand, programs do.
const ALIKE: i64 = 100;

/// Subframes after which frame numbers begin again.
const WRAP: i64 = 10_240;

/// How a recording's subframes stand to those of the first that was heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// What is added to their numbers.
    pub subframes: i64,
    /// When the recording began, in milliseconds since the first one did.
    pub begin_ms: f64,
    /// What the user should know of it.
    pub doubt: Option<String>,
}

/// Finds out how recordings stand to each other: by the first subframe of each.
#[derive(Debug)]
pub struct Alignment {
    align: Align,
    /// A subframe of the recording that was heard first: its number, and when it was.
    reference: Option<(u64, f64)>,
    is_known: Vec<bool>,
}

impl Alignment {
    /// Of so many recordings.
    pub fn new(align: Align, recordings: usize) -> Alignment {
        Alignment { align, reference: None, is_known: vec![false; recordings] }
    }

    /// Subframe `index` of a recording began `at_ms` after its first sample. Gives its shift, once.
    ///
    /// Source: TS 36.300 §5.5 (cells that can be aggregated count frames alike)
    pub fn hear(&mut self, recording: usize, index: u64, at_ms: f64) -> Option<Shift> {
        if std::mem::replace(&mut self.is_known[recording], true) {
            return None;
        }
        let (first, first_ms) = *self.reference.get_or_insert((index, at_ms));
        let by_time = first as i64 + (at_ms - first_ms).round() as i64 - index as i64;
        let apart = (by_time + WRAP / 2).rem_euclid(WRAP) - WRAP / 2;
        let by_number = by_time - apart;
        let (subframes, doubt) = match self.align {
            Align::Sfn => (by_number, None),
            Align::Time => (by_time, None),
            Align::Auto if apart.abs() <= ALIKE => (by_number, None),
            Align::Auto => (by_time, Some(doubt(apart))),
        };
        let begin_ms = first_ms + (index as i64 + subframes - first as i64) as f64 - at_ms;
        Some(Shift { subframes, begin_ms, doubt })
    }
}

fn doubt(apart: i64) -> String {
    format!(
        "counts frames otherwise than the first, or began {:.1} s {} it: they are brought together by their samples' time, \
         as if both began at once. Carriers of one base station count alike: say --align sfn; --align time if this is right",
        apart.unsigned_abs() as f64 / 1e3,
        if apart < 0 { "after" } else { "before" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shift of a second recording whose frames are at `index` when the first one's are at 100, both after 10 ms.
    fn second(align: Align, index: u64) -> Shift {
        let mut alignment = Alignment::new(align, 2);
        let first = alignment.hear(0, 100, 10.0).expect("the first time");
        assert_eq!((first.subframes, first.begin_ms, alignment.hear(0, 101, 11.0)), (0, 0.0, None));
        alignment.hear(1, index, 10.0).expect("the first time")
    }

    #[test]
    fn recordings_that_began_about_at_once_are_aligned_by_number() {
        let shift = second(Align::Auto, 140);
        assert_eq!((shift.subframes, shift.begin_ms, shift.doubt), (0, 40.0, None));
        let wrapped = second(Align::Auto, 10_240 + 90);
        assert_eq!((wrapped.subframes, wrapped.begin_ms), (-10_240, -10.0), "frame numbers began again");
    }

    #[test]
    fn others_are_taken_to_have_begun_at_once_unless_it_is_said_that_cells_count_alike() {
        let shift = second(Align::Auto, 3100);
        assert_eq!((shift.subframes, shift.begin_ms), (-3000, 0.0));
        let doubt = shift.doubt.expect("it may be wrong");
        assert!(doubt.contains("3.0 s after") && doubt.contains("--align sfn"), "{doubt}");
        let alike = second(Align::Sfn, 3100);
        assert_eq!((alike.subframes, alike.begin_ms, alike.doubt), (0, 3000.0, None));
        let at_once = second(Align::Time, 140);
        assert_eq!((at_once.subframes, at_once.begin_ms), (-40, 0.0));
    }
}

//! Aligns the subframe numbers of several recordings, so that simultaneous subframes have equal numbers.
//!
//! Every recording has its own subframe numbers. Cells may have different frame numbers at the same time, and recordings
//! may start at different times. [`Alignment`] determines an offset for the numbers of each recording, so that
//! simultaneous subframes have the same number. [`Fusion`](crate::fusion::Fusion) then merges their reports.

/// Method by which recordings are aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Aligns by subframe numbers, if the numbers match a simultaneous start of the recordings; otherwise by time.
    #[default]
    Auto,
    /// Aligns by frame and subframe numbers, independently of the start of the recordings.
    Sfn,
    /// Aligns by the time since the start of each recording, as if all recordings had started at once.
    Time,
}

/// Maximum difference of frame numbers (subframes) between two recordings with the same start, if the cells have equal
/// frame numbers.
///
/// Chosen: people cannot start two receivers by hand within a tenth of a second, but programs can do this.
const ALIKE: i64 = 100;

/// Maximum delay (subframes) that frame numbers may indicate after silence. After silence, subframes of a recording may
/// be late because they waited in a pipe. If the frame numbers indicate a longer delay, the numbers are ignored, and
/// the recording is aligned with the newest subframe of the other recordings.
///
/// Chosen: half a cycle of frame numbers. No pipe buffers the samples of a radio over this many subframes.
const MAX_STEP_BACK: i64 = WRAP / 2;

/// Number of subframes after which frame numbers wrap.
const WRAP: i64 = 10_240;

/// Offset of a recording's subframe numbers from the subframe numbers of the first recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Offset to add to the recording's subframe numbers.
    pub subframes: i64,
    /// Start of the recording relative to the start of the first recording (ms).
    pub begin_ms: f64,
    /// Possible error of the alignment, for a warning to the user.
    pub doubt: Option<Doubt>,
}

/// [`Align::Auto`] aligned a recording by time, but the recording's frame numbers do not match the frame numbers of the
/// first recording, so the alignment may be wrong. Either the cells have different frame numbers at the same time, or
/// the recordings did not start at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Difference of the frame numbers in subframes, −5,120…5,119. If the cells have equal frame numbers, the recording
    /// started this many milliseconds before the first recording, or after it if the difference is negative.
    pub apart: i64,
}

/// A jump in a recording's frame numbers.
#[derive(Clone, Copy, Debug)]
pub struct Leap {
    /// Subframe number of the subframe after the jump.
    pub index: u64,
    /// Start of that subframe, relative to the recording's first sample (ms).
    pub at_ms: f64,
    /// Size of the jump in subframes, in addition to the elapsed time.
    pub by: i64,
    /// Whether the recording shows the same cell before and after the jump.
    pub is_same_cell: bool,
}

/// Determines the offset of each recording from the recording's first subframe, and again after possible changes.
///
/// Recordings are identified by their index, from 0. The subframes of a recording must be added in order, with numbers
/// that do not wrap. All methods panic if `recording` is not below the number of recordings.
#[derive(Debug)]
pub struct Alignment {
    align: Align,
    /// Number and time (ms) of the first subframe of the first recording.
    reference: Option<(u64, f64)>,
    all: Vec<Known>,
}

/// State of a recording.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Offset added to the recording's subframe numbers.
    shift: Option<i64>,
    /// Number of the recording's last subframe in the shared numbering.
    last: i64,
    /// Whether the recording was silent, and its subframes are not yet within [`ALIKE`] of the newest subframe of the
    /// other recordings.
    is_behind: bool,
    /// Newest subframe of the other recordings at the time when, after silence, this recording was assumed to be
    /// simultaneous with that subframe. Subframes of this recording that arrive in one burst were buffered, so none of
    /// these subframes is newer than that subframe.
    placed: Option<i64>,
}

impl Alignment {
    /// Creates an alignment of `recordings` recordings.
    pub fn new(align: Align, recordings: usize) -> Alignment {
        Alignment { align, reference: None, all: vec![Known::default(); recordings] }
    }

    /// Adds subframe `index` of a recording. The subframe started `at_ms` milliseconds after the recording's first
    /// sample. Returns the recording's offset from this subframe on, if the offset is new or changes: at the first
    /// subframe, and while the recording catches up after silence.
    ///
    /// Source: TS 36.300 §5.5 (cells that can be aggregated have equal frame numbers)
    pub fn hear(&mut self, recording: usize, index: u64, at_ms: f64) -> Option<Shift> {
        let newest = self.newest_beside(recording);
        let known = &mut self.all[recording];
        if let Some(shift) = known.shift {
            known.last = index as i64 + shift;
            known.is_behind &= known.last + ALIKE < newest;
            known.placed = known.placed.filter(|placed| newest <= placed + ALIKE);
            // The last of the buffered subframes, not the first, is simultaneous with the newest subframe of the other
            // recordings.
            let ahead = known.last - newest;
            return (known.placed.is_some() && ahead > 0).then(|| {
                let shift = self.set(recording, index, at_ms, shift - ahead);
                self.all[recording].placed = Some(newest);
                shift
            });
        }
        let (first, first_ms) = *self.reference.get_or_insert((index, at_ms));
        let by_time = first as i64 + (at_ms - first_ms).round() as i64 - index as i64;
        let apart = (by_time + WRAP / 2).rem_euclid(WRAP) - WRAP / 2;
        let by_number = by_time - apart;
        let (subframes, doubt) = match self.align {
            Align::Sfn => (by_number, None),
            Align::Time => (by_time, None),
            Align::Auto if apart.abs() <= ALIKE => (by_number, None),
            Align::Auto => (by_time, Some(Doubt { apart })),
        };
        Some(Shift { doubt, ..self.set(recording, index, at_ms, subframes) })
    }

    /// Reports that a recording is silent and the other recordings do not wait for it. The next jump of this recording
    /// may change its offset.
    pub fn stall(&mut self, recording: usize) {
        self.all[recording].is_behind = true;
    }

    /// Reports a jump of a recording's frame numbers, while its subframe numbers continue by the time of its samples.
    /// Returns the offset from the jump on, if the offset changes. Call [`Alignment::hear`] with the subframe after the
    /// jump first.
    ///
    /// The offset changes only if samples may be missing without a notification: with [`Align::Sfn`], or after silence.
    /// In these cases, the recording is aligned by its frame numbers, if the result is not later than the newest
    /// subframe of the other recordings. Otherwise, the newest subframe of this recording is aligned with the newest
    /// subframe of the other recordings.
    pub fn leap(&mut self, recording: usize, leap: Leap) -> Option<Shift> {
        let Known { shift, is_behind, .. } = self.all[recording];
        let shift = shift?;
        let newest = self.newest_beside(recording);
        let may_be_missing = leap.is_same_cell && leap.by > 0;
        let by_number = shift + leap.by;
        let by_now = newest + 1 - leap.index as i64;
        let latest = by_now + ALIKE;
        let lain = (latest - by_number).rem_euclid(WRAP);
        let is_known = leap.is_same_cell && lain <= MAX_STEP_BACK && latest - lain > shift;
        let subframes = if is_behind {
            if is_known { latest - lain } else { by_now.max(shift) }
        } else if self.align == Align::Sfn && may_be_missing {
            by_number
        } else {
            shift
        };
        let placed = (is_behind && !is_known).then_some(newest);
        (subframes != shift).then(|| {
            let shift = self.set(recording, leap.index, leap.at_ms, subframes);
            self.all[recording].placed = placed;
            shift
        })
    }

    fn set(&mut self, recording: usize, index: u64, at_ms: f64, subframes: i64) -> Shift {
        let last = index as i64 + subframes;
        self.all[recording] = Known { shift: Some(subframes), last, is_behind: false, placed: None };
        let (first, first_ms) = self.reference.unwrap_or((index, at_ms));
        Shift { subframes, begin_ms: first_ms + (last - first as i64) as f64 - at_ms, doubt: None }
    }

    /// Newest subframe of the other recordings.
    fn newest_beside(&self, recording: usize) -> i64 {
        let others =
            self.all.iter().enumerate().filter(|(at, known)| *at != recording && known.shift.is_some());
        others.map(|(_, known)| known.last).max().unwrap_or(i64::MIN / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the offset of a second recording with subframe `index` while the first recording has subframe 100, both
    /// at 10 ms after their first sample.
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
        assert_eq!((wrapped.subframes, wrapped.begin_ms), (-10_240, -10.0), "the frame numbers have wrapped");
    }

    #[test]
    fn others_are_taken_to_have_begun_at_once_unless_it_is_said_that_cells_count_alike() {
        let shift = second(Align::Auto, 3100);
        assert_eq!((shift.subframes, shift.begin_ms), (-3000, 0.0));
        assert_eq!(shift.doubt, Some(Doubt { apart: -3000 }), "the alignment may be wrong");
        let alike = second(Align::Sfn, 3100);
        assert_eq!((alike.subframes, alike.begin_ms, alike.doubt), (0, 3000.0, None));
        let at_once = second(Align::Time, 140);
        assert_eq!((at_once.subframes, at_once.begin_ms), (-40, 0.0));
    }

    fn leap(index: u64, by: i64) -> Leap {
        Leap { index, at_ms: index as f64, by, is_same_cell: true }
    }

    #[test]
    fn a_leap_changes_nothing_unless_numbers_are_believed() {
        for (align, to, shift) in [
            (Align::Auto, leap(500, 3000), None),
            (Align::Time, leap(500, 3000), None),
            (Align::Sfn, leap(500, -3000), None),
            (Align::Sfn, Leap { is_same_cell: false, ..leap(500, 3000) }, None),
            (Align::Sfn, leap(500, 3000), Some(Shift { subframes: 3000, begin_ms: 3000.0, doubt: None })),
        ] {
            let mut alignment = Alignment::new(align, 2);
            (0..2).for_each(|recording| _ = alignment.hear(recording, 0, 0.0));
            assert_eq!(alignment.leap(1, to), shift, "{align:?}: {to:?}");
        }
    }

    #[test]
    fn a_recording_that_was_silent_for_a_while_continues_at_the_time_of_the_others() {
        for (to, subframes) in [
            (leap(501, 2020), 2020),
            (leap(501, 1700), 1700),
            (leap(501, 1700 - WRAP), 1700),
            (leap(501, 4000), 2000),
            (leap(501, -700), 2000),
            (Leap { is_same_cell: false, ..leap(501, 2020) }, 2000),
        ] {
            let mut alignment = Alignment::new(Align::Auto, 2);
            (0..2).for_each(|recording| _ = alignment.hear(recording, 0, 0.0));
            alignment.stall(1);
            alignment.hear(0, 2500, 2500.0);
            alignment.hear(1, 500, 500.0);
            let shift = alignment.leap(1, to).expect("it is not where it was");
            assert_eq!((shift.subframes, shift.begin_ms), (subframes, subframes as f64), "{to:?}");
            assert_eq!(alignment.leap(1, leap(502, -700)), None, "the recording has caught up");
        }
    }

    #[test]
    fn the_newest_of_what_comes_at_once_after_silence_is_beside_the_others() {
        let mut alignment = Alignment::new(Align::Auto, 2);
        (0..2).for_each(|recording| _ = alignment.hear(recording, 0, 0.0));
        alignment.stall(1);
        alignment.hear(0, 2500, 2500.0);
        alignment.hear(1, 500, 500.0);
        alignment.leap(1, leap(501, -700)).expect("it is not where it was");
        let mut shift = 2000;
        for index in 502..=800 {
            shift = alignment.hear(1, index, index as f64).map_or(shift, |shift| shift.subframes);
        }
        assert_eq!(shift, 2500 - 800, "300 subframes came at once");
        for index in 801..2000 {
            alignment.hear(0, index + 1700, index as f64);
            assert_eq!(
                alignment.hear(1, index, index as f64),
                None,
                "the recording continues with the others"
            );
        }
        assert_eq!(alignment.hear(1, 2010, 2010.0), None, "a subframe may be early");
    }
}

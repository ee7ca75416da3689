//! Finds the subframes of several recordings that were on the air at the same time.
//!
//! Every recording numbers its own subframes. Cells may count frames differently, and recordings may begin at
//! different times. [`Alignment`] finds what must be added to the numbers of each recording, so that subframes that
//! were on the air at the same time have the same number. [`Fusion`](crate::fusion::Fusion) then brings their reports
//! together.

/// How subframes of different recordings are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// By their numbers, if recordings that began at once agree on them; otherwise by their time.
    #[default]
    Auto,
    /// By their frame and subframe numbers, whenever the recordings began.
    Sfn,
    /// By their time since the recordings' beginnings, as if all had begun at once.
    Time,
}

/// Frame numbers of two recordings that began at once differ by no more than this many subframes if both cells count
/// frames alike.
///
/// Chosen: people do not start two receivers by hand within a tenth of a second, but programs do.
const ALIKE: i64 = 100;

/// After silence, a recording's subframes may be late, because they waited in a pipe. Their frame numbers tell how late
/// they are, up to this many subframes. If the numbers tell more, they are not trusted: the recording is placed next to the
/// others.
///
/// Chosen: half of a cycle of frame numbers. No pipe holds that many of a radio's samples.
const MOST_LAIN: i64 = WRAP / 2;

/// After this many subframes, frame numbers begin again.
const WRAP: i64 = 10_240;

/// How a recording's subframes are related to those of the first recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// What must be added to their numbers.
    pub subframes: i64,
    /// When the recording began, in milliseconds since the first one did.
    pub begin_ms: f64,
    /// What the user should know about it.
    pub doubt: Option<Doubt>,
}

/// [`Align::Auto`] aligned a recording by time, and that may be wrong: its frame numbers do not match those of the
/// first recording. Either the cells count frames differently, or the recordings did not begin at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Subframes by which the frame numbers differ, −5,120…5,119. If the cells count alike, the recording began this
    /// many milliseconds before the first one, or after it if the number is negative.
    pub apart: i64,
}

/// A leap in a recording's frame numbers.
#[derive(Clone, Copy, Debug)]
pub struct Leap {
    /// The subframe after the leap.
    pub index: u64,
    /// When that subframe began, in milliseconds after the recording's first sample.
    pub at_ms: f64,
    /// The size of the leap in subframes, beyond the time that passed.
    pub by: i64,
    /// Whether the cell is still the same as before.
    pub is_same_cell: bool,
}

/// Finds how recordings are related: by the first subframe of each, and again when it may have changed.
///
/// Recordings are identified by their index, from 0. The subframes of one recording must come in order, with numbers
/// that do not wrap with the frame numbers. All methods panic if `recording` is not below the number of recordings.
#[derive(Debug)]
pub struct Alignment {
    align: Align,
    /// The first subframe of the first recording: its number and its time.
    reference: Option<(u64, f64)>,
    all: Vec<Known>,
}

/// What is known about a recording.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// What is added to its numbers.
    shift: Option<i64>,
    /// The last of its subframes, in the shared numbering.
    last: i64,
    /// It was silent for a while, and its subframes are not yet within [`ALIKE`] of the newest of the others.
    is_behind: bool,
    /// The newest subframe of the other recordings when, after silence, this recording was placed next to it by assumption.
    /// Subframes of this recording that come in one burst had waited, so none of them is newer than that.
    placed: Option<i64>,
}

impl Alignment {
    /// Aligns `recordings` recordings.
    pub fn new(align: Align, recordings: usize) -> Alignment {
        Alignment { align, reference: None, all: vec![Known::default(); recordings] }
    }

    /// Subframe `index` of a recording began `at_ms` milliseconds after its first sample. Returns the recording's
    /// shift from this subframe on, if it is new or changes: at the first subframe, and while the recording catches
    /// up after silence.
    ///
    /// Source: TS 36.300 §5.5 (cells that can be aggregated count frames alike)
    pub fn hear(&mut self, recording: usize, index: u64, at_ms: f64) -> Option<Shift> {
        let newest = self.newest_beside(recording);
        let known = &mut self.all[recording];
        if let Some(shift) = known.shift {
            known.last = index as i64 + shift;
            known.is_behind &= known.last + ALIKE < newest;
            known.placed = known.placed.filter(|placed| newest <= placed + ALIKE);
            // The last of the subframes that had waited is placed next to the others' newest one, not the first.
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

    /// A recording is silent, and the others do not wait for it. Its next leap may change its shift.
    pub fn stall(&mut self, recording: usize) {
        self.all[recording].is_behind = true;
    }

    /// The frame numbers of a recording leap, while its subframe numbers continue with the time of its samples.
    /// Returns its shift from then on, if that changes. The subframe after the leap was given to [`Alignment::hear`]
    /// before.
    ///
    /// The shift changes only if samples may be missing without notice: with [`Align::Sfn`], or after silence. The
    /// recording is then placed where its numbers say, if that is not later than the others are now. Otherwise its
    /// newest subframe is placed next to theirs.
    pub fn leap(&mut self, recording: usize, leap: Leap) -> Option<Shift> {
        let Known { shift, is_behind, .. } = self.all[recording];
        let shift = shift?;
        let newest = self.newest_beside(recording);
        let may_be_missing = leap.is_same_cell && leap.by > 0;
        let by_number = shift + leap.by;
        let by_now = newest + 1 - leap.index as i64;
        let latest = by_now + ALIKE;
        let lain = (latest - by_number).rem_euclid(WRAP);
        let is_known = leap.is_same_cell && lain <= MOST_LAIN && latest - lain > shift;
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

    /// The newest subframe of the others.
    fn newest_beside(&self, recording: usize) -> i64 {
        let others =
            self.all.iter().enumerate().filter(|(at, known)| *at != recording && known.shift.is_some());
        others.map(|(_, known)| known.last).max().unwrap_or(i64::MIN / 2)
    }
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
    fn a_recording_that_said_nothing_for_a_while_goes_on_where_the_others_are() {
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

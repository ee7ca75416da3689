//! Averages of a cell's signal quality over a longer time than the duration of a fade.

/// Means over all subframes in which the cell was received, or over about the last [`MAX_SUBFRAMES`] of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usual {
    /// Signal-to-noise ratio, in dB.
    pub(super) snr_db: f32,
    /// Received power of one antenna port.
    pub(super) loudness: f32,
    /// Number of subframes averaged, up to [`MAX_SUBFRAMES`].
    pub(super) subframes: u32,
}

/// Maximum number of subframes in the averages.
///
/// Chosen: a fade at walking pace, including its onset, takes up to 200 ms. An average over only 50 subframes shows the low
/// SNR of the fade when the cell is lost in it, and the cell would not be held.
const MAX_SUBFRAMES: u32 = 1000;

impl Usual {
    /// Adds a subframe in which the cell was received.
    pub(super) fn hear(&mut self, snr_db: f32, loudness: f32) {
        self.subframes = (self.subframes + 1).min(MAX_SUBFRAMES);
        let share = 1.0 / self.subframes as f32;
        self.snr_db += (snr_db - self.snr_db) * share;
        self.loudness += (loudness - self.loudness) * share;
    }
}

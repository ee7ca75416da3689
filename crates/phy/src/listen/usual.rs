//! How well a cell is usually heard: averages over subframes, which outlast its fades.

/// The means of all subframes in which a cell was heard, and of about [`MOST`] once there are more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usual {
    /// Signal to noise ratio, in dB.
    pub(super) snr_db: f32,
    /// The power with which a port is received.
    pub(super) loudness: f32,
    /// How many subframes it was heard in, up to [`MOST`].
    pub(super) subframes: u32,
}

/// Chosen: a fade at walking pace and the way into it take up to 200 ms. Averaged over 50 subframes, the ratio is that of
/// the fade when a cell is lost in it, and the cell was not held.
const MOST: u32 = 1000;

impl Usual {
    /// Takes a subframe in which the cell was heard.
    pub(super) fn hear(&mut self, snr_db: f32, loudness: f32) {
        self.subframes = (self.subframes + 1).min(MOST);
        let share = 1.0 / self.subframes as f32;
        self.snr_db += (snr_db - self.snr_db) * share;
        self.loudness += (loudness - self.loudness) * share;
    }
}

//! `--align`: how subframes of several recordings are matched, and the warning if the match may be wrong.

use airpace_radio::align::{self, Doubt};
use clap::ValueEnum;

/// Criterion by which subframes of several recordings are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Align {
    /// By frame numbers if they agree, assuming simultaneous starts; otherwise by time.
    Auto,
    /// By frame and subframe numbers, with any start times of the recordings.
    Sfn,
    /// By the time since the start of each recording, assuming simultaneous starts.
    Time,
}

impl From<Align> for align::Align {
    fn from(align: Align) -> align::Align {
        match align {
            Align::Auto => align::Align::Auto,
            Align::Sfn => align::Align::Sfn,
            Align::Time => align::Align::Time,
        }
    }
}

/// The warning about a recording that may be misaligned. It is printed after the recording's name.
pub fn words(doubt: Doubt) -> String {
    format!(
        "has other frame numbers than the first recording, or began {:.1} s {} it: the two are aligned by \
         the time of their samples, as if they began together. If both are carriers of one base station, \
         give --align sfn; otherwise confirm with --align time",
        doubt.apart.unsigned_abs() as f64 / 1e3,
        if doubt.apart < 0 { "after" } else { "before" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_says_when_the_recording_began_and_what_to_do() {
        let said = words(Doubt { apart: -3000 });
        assert!(said.contains("3.0 s after") && said.contains("--align sfn"), "{said}");
    }
}

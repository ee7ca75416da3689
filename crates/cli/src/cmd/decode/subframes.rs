//! Completed subframes as text: their load and their messages.

use airpace_phy::decoder::Reading;
use airpace_phy::load::{Load, formats};

/// The heading above [`line()`]s.
pub const HEAD: &str = "cell sfn.sf cfi messages DL UL users PRBs idle CCEs  of unread snr  format:messages";

/// The subframe as one line of text.
pub fn line(reading: &Reading) -> String {
    let load = Load::of(reading);
    let formats = formats(reading);
    let formats = formats.into_iter().map(|(format, count)| format!("{format}:{count}"));
    format!(
        "{:>4} {:>6} {:>3} {:>8} {:>2} {:>2} {:>5} {:>4} {:>4} {:>4} {:>3} {:>6} {:>3.0}  {}",
        reading.pci,
        format!("{}.{}", reading.sfn, reading.subframe),
        reading.cfi,
        reading.found.len(),
        load.downlink,
        load.uplink,
        load.users,
        load.prbs_used,
        load.prbs_idle.map_or_else(|| "?".to_owned(), |idle| idle.to_string()),
        load.cces_used,
        reading.cces,
        load.cces_unread,
        reading.snr_db,
        formats.collect::<Vec<_>>().join(" "),
    )
    .trim_end()
    .to_owned()
}

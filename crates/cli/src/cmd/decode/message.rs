//! DCI message as text.

use std::io::IsTerminal;

use airpace_phy::found::Found;
use airpace_phy::found::words::{Block, blocks, direction_of, harq, ranges};
use airpace_phy::pseudonym::Name;
use airpace_radio::PrbSet;
use airpace_tables::decoded::Gain;

use crate::terminal::columns;

/// Ranges of PRBs as text: `0-3 8-11`.
fn ranges_text(prbs: PrbSet) -> String {
    let range = |[first, last]: [u16; 2]| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges(prbs).into_iter().map(range).collect::<Vec<_>>().join(" ")
}

/// Width of output that does not go to a terminal (columns).
const USUAL_WIDTH: usize = 100;
/// Minimum width of lines (columns). Narrower terminals wrap the lines.
const MIN_WIDTH: usize = 80;
/// Minimum width for all fields and some PRBs (columns).
const FULL_WIDTH: usize = 120;

/// A field of a line: heading, width, alignment, and the minimum line width that contains the field, without and with
/// the columns for a followed user's gain.
struct Field {
    head: &'static str,
    width: usize,
    is_left: bool,
    from: usize,
    from_with_gain: usize,
}

const fn field(head: &'static str, width: usize, is_left: bool, from: usize, from_with_gain: usize) -> Field {
    Field { head, width, is_left, from, from_with_gain }
}

/// The fields before the PRBs. Narrow lines omit the fields that few users need; `--json` and `--csv` contain all
/// fields.
const FIELDS: [Field; 18] = [
    field("cell", 4, false, 0, 0),
    field("sfn.sf", 6, false, 0, 0),
    field("rnti", 5, false, 0, 0),
    field("type", 4, true, 0, 0),
    field("dir", 3, true, 0, 0),
    field("format", 6, true, 0, 0),
    field("cfi", 3, false, FULL_WIDTH, FULL_WIDTH),
    field("CCEs", 4, false, USUAL_WIDTH, FULL_WIDTH),
    field("alloc", 5, true, FULL_WIDTH, FULL_WIDTH),
    field("n_prb", 5, false, 0, USUAL_WIDTH),
    field("mcs", 5, true, 0, 0),
    field("rv", 3, true, 0, USUAL_WIDTH),
    field("ndi", 3, true, USUAL_WIDTH, FULL_WIDTH),
    field("harq", 4, false, 0, USUAL_WIDTH),
    field("tpc", 3, false, FULL_WIDTH, FULL_WIDTH),
    field("tbs", 11, true, 0, 0),
    field("snr", 3, false, USUAL_WIDTH, FULL_WIDTH),
    field("conf", 5, false, 0, USUAL_WIDTH),
];

/// Layout of text lines.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    width: usize,
    has_gain: bool,
}

impl Layout {
    /// A layout for the terminal's width minus `margin` columns. With `has_gain`, the gain of a followed user replaces
    /// the PRBs.
    pub fn of_output(margin: usize, has_gain: bool) -> Layout {
        let columns = if std::io::stdout().is_terminal() { columns() } else { USUAL_WIDTH };
        Layout { width: columns.saturating_sub(margin).max(MIN_WIDTH - margin), has_gain }
    }

    fn shown(self) -> impl Iterator<Item = (usize, &'static Field)> {
        // Rounding up compensates for a margin of three columns.
        let width = self.width.next_multiple_of(20);
        let from = move |field: &Field| if self.has_gain { field.from_with_gain } else { field.from };
        FIELDS.iter().enumerate().filter(move |(_, field)| from(field) <= width)
    }

    fn row(self, cells: &[String], end: &str) -> String {
        let cell = |(at, field): (usize, &Field)| match field.is_left {
            true => format!("{:<1$}", cells[at], field.width),
            false => format!("{:>1$}", cells[at], field.width),
        };
        let cells: Vec<String> = self.shown().map(cell).collect();
        format!("{} {end}", cells.join(" ")).trim_end().to_owned()
    }

    /// The heading above [`Layout::line`]s.
    pub fn head(self) -> String {
        let end = if self.has_gain { gain_row("new bits", "again", "Mbit/s") } else { "prb".to_owned() };
        self.row(&FIELDS.map(|field| field.head.to_owned()), &end)
    }

    /// The message as one line of text.
    pub fn line(self, found: &Found, name: Name, gain: Option<&Gain>) -> String {
        let cells = cells(found, name);
        let end = match gain {
            _ if !self.has_gain => {
                let taken: usize = self.shown().map(|(_, field)| field.width + 1).sum();
                cut(&prbs_text(found), self.width.saturating_sub(taken))
            }
            Some(gain) => gain_row(
                &gain.new_bits.to_string(),
                &gain.again.to_string(),
                &format!("{:.3}", gain.throughput_bps as f64 / 1e6),
            ),
            None => String::new(),
        };
        self.row(&cells, &end)
    }
}

/// The gain of a followed user from a grant: new bits, retransmitted blocks, throughput.
fn gain_row(new_bits: &str, again: &str, mbps: &str) -> String {
    format!("{new_bits:>8} {again:>5} {mbps:>7}")
}

/// The first ranges of `text` that fit into `room` columns, with an ellipsis if some do not.
fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for range in text.split(' ') {
        if kept.len() + range.len() + 2 > room {
            break;
        }
        kept += range;
        kept += " ";
    }
    kept.trim_end_matches([' ', '|']).to_owned() + "…"
}

fn prbs_text(found: &Found) -> String {
    found.prbs.map_or(String::new(), |[first, second]| match first == second {
        true => ranges_text(first),
        false => format!("{} | {}", ranges_text(first), ranges_text(second)),
    })
}

/// The fields of a message, in the order of [`FIELDS`].
fn cells(found: &Found, name: Name) -> [String; FIELDS.len()] {
    let blocks = blocks(found);
    let each = |of: &dyn Fn(&Block) -> String| blocks.iter().map(of).collect::<Vec<_>>().join("/");
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let place = match name.is_pseudonym {
        true => format!("{}", found.place.cces),
        false => format!("{}@{}", found.place.cces, found.place.cce),
    };
    [
        found.pci.to_string(),
        format!("{}.{}", found.sfn, found.subframe),
        name.rnti.0.to_string(),
        found.kind.name().to_owned(),
        direction_of(found).to_owned(),
        found.format().to_owned(),
        found.cfi.to_string(),
        place,
        found.allocation().unwrap_or("-").to_owned(),
        or_dash(found.prbs.map(|[first, _]| first.len().to_string())),
        each(&|block| block.mcs.to_string()),
        each(&|block| or_dash(block.rv.map(|rv| rv.to_string()))),
        each(&|block| or_dash(block.ndi.map(|ndi| u8::from(ndi).to_string()))),
        or_dash(harq(found).map(|process| process.to_string())),
        or_dash(found.power_command().map(|tpc| tpc.to_string())),
        each(&|block| or_dash(block.tbs_bits.map(|bits| bits.to_string()))),
        format!("{:.0}", found.snr_db),
        format!("{:.3}", found.confidence),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal_with_the_widest_values() {
        for (width, has_gain) in
            [(80, false), (80, true), (77, true), (100, false), (100, true), (120, false), (200, true)]
        {
            let layout = Layout { width, has_gain };
            // The widest values of all fields except format and transport blocks, whose widest values are rare.
            let cells = FIELDS.map(|field| "9".repeat(field.width));
            let end = if has_gain { gain_row("75376", "0", "150.752") } else { "99-99…".to_owned() };
            let line = layout.row(&cells, &end);
            assert!(line.chars().count() <= width, "{width}: {} columns: {line}", line.len());
            assert!(layout.head().len() <= width, "{}", layout.head());
        }
    }

    #[test]
    fn ranges_that_do_not_fit_are_left_out_as_a_whole() {
        assert_eq!(cut("0-3 8-11 16-19", 14), "0-3 8-11 16-19");
        assert_eq!(cut("0-3 8-11 16-19", 13), "0-3 8-11…");
        assert_eq!(cut("0-3 | 8-11", 8), "0-3…");
    }
}

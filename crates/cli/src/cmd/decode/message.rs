//! A message as JSON and as text: `airpace decode` finds messages, `airpace encode` sends them.

use airpace_phy::found::Found;
use airpace_phy::found::words::Block;
pub use airpace_phy::found::words::{blocks, direction_of, harq, mcs_table, ranges};
use airpace_radio::{PrbSet, Rnti};
use serde_json::{Value, json};

/// Runs of PRBs as text: `0-3 8-11`.
fn ranges_text(prbs: PrbSet) -> String {
    let range = |[first, last]: [u16; 2]| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges(prbs).into_iter().map(range).collect::<Vec<_>>().join(" ")
}

/// The name of a message's user in the output: its RNTI or a pseudonym. With a pseudonym, the CCEs must not give the
/// RNTI away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The RNTI or its pseudonym.
    pub rnti: Rnti,
    /// Whether it is a pseudonym.
    pub is_pseudonym: bool,
}

impl Name {
    /// The RNTI itself.
    pub fn plain(found: &Found) -> Name {
        Name { rnti: found.rnti, is_pseudonym: false }
    }
}

/// One JSON object. Lists have an entry per enabled transport block; `prb` has one per slot, of `[first, last]` pairs.
pub fn json(found: &Found, name: Name) -> Value {
    let blocks = blocks(found);
    let each = |of: &dyn Fn(&Block) -> Value| blocks.iter().map(of).collect::<Vec<_>>();
    json!({
        "cell": found.pci,
        "index": found.index,
        "sfn": found.sfn,
        "subframe": found.subframe,
        "cfi": found.cfi,
        "rnti": name.rnti.0,
        "rnti_type": found.kind.name(),
        "dir": direction_of(found),
        "format": found.format(),
        "format_known": found.is_format_known,
        "l": found.place.cces,
        // The RNTI decides which CCEs a user searches, so the position can give the RNTI away.
        "ncce": (!name.is_pseudonym).then_some(found.place.cce),
        "bits": found.payload.to_string(),
        "alloc": found.allocation(),
        "prb": found.prbs.map(|slots| slots.map(ranges)),
        "n_prb": found.prbs.map(|[first, _]| first.len()),
        "mcs": each(&|block| json!(block.mcs)),
        "rv": each(&|block| json!(block.rv)),
        "ndi": each(&|block| json!(block.ndi.map(u8::from))),
        "modulation": each(&|block| json!(block.modulation)),
        "tbs": each(&|block| json!(block.tbs_bits)),
        "mcs_table": mcs_table(found),
        "mcs_table_known": mcs_table(found).map(|_| found.is_table_known),
        "harq": harq(found),
        "tpc": found.power_command(),
        "snr_db": rounded(found.snr_db, 100.0),
        "confidence": rounded(found.confidence, 1e6),
    })
}

/// As many digits as are meaningful; `null` if it is not a number.
pub fn rounded(number: f32, digits: f64) -> Value {
    json!((f64::from(number) * digits).round() / digits)
}

/// The heading above [`line()`]s.
pub const HEAD: &str = "cell  sfn.sf cfi  rnti type dir format    CCEs  alloc n_prb  mcs    rv   ndi  harq tpc  \
                        tbs            snr  conf   prb";

/// One line for people.
pub fn line(found: &Found, name: Name) -> String {
    let blocks = blocks(found);
    let each = |of: &dyn Fn(&Block) -> String| blocks.iter().map(of).collect::<Vec<_>>().join("/");
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let place = match name.is_pseudonym {
        true => format!("{}", found.place.cces),
        false => format!("{}@{}", found.place.cces, found.place.cce),
    };
    let prbs = found.prbs.map_or(String::new(), |[first, second]| match first == second {
        true => ranges_text(first),
        false => format!("{} | {}", ranges_text(first), ranges_text(second)),
    });
    format!(
        "{:>4} {:>5}.{} {:>3} {:>5} {:<4} {:<3} {:<8} {:>5}  {:<5} {:>5}  {:<6} {:<4} {:<4} {:>4} {:>3}  {:<13} {:>4.0} {:>5.3}  {}",
        found.pci,
        found.sfn,
        found.subframe,
        found.cfi,
        name.rnti.0,
        found.kind.name(),
        direction_of(found),
        found.format(),
        place,
        found.allocation().unwrap_or("-"),
        or_dash(found.prbs.map(|[first, _]| first.len().to_string())),
        each(&|block| block.mcs.to_string()),
        each(&|block| or_dash(block.rv.map(|rv| rv.to_string()))),
        each(&|block| or_dash(block.ndi.map(|ndi| u8::from(ndi).to_string()))),
        or_dash(harq(found).map(|process| process.to_string())),
        or_dash(found.power_command().map(|tpc| tpc.to_string())),
        each(&|block| or_dash(block.tbs_bits.map(|bits| bits.to_string()))),
        found.snr_db,
        found.confidence,
        prbs,
    )
    .trim_end()
    .to_owned()
}

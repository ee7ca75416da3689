//! A message as JSON and as text: `airpace decode` finds messages, `airpace encode` sends them.

use airpace_core::Direction;
use airpace_core::tables::Modulation;
use airpace_core::tables::lte::McsTable;
use airpace_phy::dci::{Audience, Message};
use airpace_phy::found::Found;
use airpace_radio::{DciFormat, PrbSet, Rnti};
use serde_json::{Value, json};

/// One transport block that is granted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its MCS.
    pub mcs: u8,
    /// Redundancy version; `None` if the format does not contain it.
    pub rv: Option<u8>,
    /// New-data indicator; `None` for messages to everyone.
    pub ndi: Option<bool>,
    /// Modulation, if the grant or the first transmission gives it.
    pub modulation: Option<&'static str>,
    /// Its size; `None` if only the first transmission gives it and was not received.
    pub tbs_bits: Option<u64>,
}

/// The blocks that are sent: none, one or two.
pub fn blocks(found: &Found) -> Vec<Block> {
    let Some(dci) = &found.dci else { return vec![] };
    let modulations = found.modulations();
    let is_for_one = Audience::of(found.rnti) == Some(Audience::User);
    let block = |at: usize| {
        Some(Block {
            mcs: dci.mcs[at]?,
            rv: (dci.format != DciFormat::F1C).then_some(dci.rv[at]).flatten(),
            ndi: is_for_one.then_some(dci.ndi[at]).flatten(),
            modulation: modulations[at].map(modulation),
            tbs_bits: (dci.tbs[at].0 > 0).then_some(dci.tbs[at].0),
        })
    };
    (0..2).filter_map(block).collect()
}

/// The HARQ process; `None` for messages to everyone.
pub fn harq(found: &Found) -> Option<u8> {
    found.dci.filter(|_| Audience::of(found.rnti) == Some(Audience::User)).and_then(|dci| dci.harq)
}

fn modulation(modulation: Modulation) -> &'static str {
    match modulation {
        Modulation::Qpsk => "QPSK",
        Modulation::Qam16 => "16QAM",
        Modulation::Qam64 => "64QAM",
        Modulation::Qam256 => "256QAM",
    }
}

/// The MCS table from which a grant's sizes are read: `64qam` or `256qam`; `None` where no table is used.
pub fn mcs_table(found: &Found) -> Option<&'static str> {
    let has_one = matches!(found.message, Message::Downlink(_) | Message::Uplink(_));
    has_one.then_some(match found.table {
        McsTable::Qam64 => "64qam",
        McsTable::Qam256 => "256qam",
    })
}

/// `DL` or `UL`; `-` for commands to a group. An order has a direction too: it is written as a downlink grant.
pub fn direction_of(found: &Found) -> &'static str {
    match found.message {
        Message::Order(_) => direction(Some(Direction::Downlink)),
        _ => direction(found.direction()),
    }
}

/// `DL`, `UL`, or `-` where nothing is granted.
pub fn direction(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::Downlink) => "DL",
        Some(Direction::Uplink) => "UL",
        None => "-",
    }
}

/// Runs of PRBs as `[first, last]`.
pub fn ranges(prbs: PrbSet) -> Vec<[u16; 2]> {
    prbs.runs().map(|(start, len)| [start, start + len - 1]).collect()
}

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

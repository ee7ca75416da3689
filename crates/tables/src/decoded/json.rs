//! What was decoded, as JSON objects, with the names of the tables' columns.

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_phy::found::Found;
use airpace_phy::found::words::{Block, blocks, direction_of, harq, mcs_table, ranges};
use airpace_phy::load::{Load, formats};
use airpace_phy::pseudonym::Name;
use airpace_radio::Rnti;
use serde_json::{Value, json};

use super::Gain;

/// The message as a JSON object. Lists have one entry per enabled transport block; `prb` has one entry per slot, which
/// is a list of `[first, last]` pairs.
pub fn message(found: &Found, name: Name) -> Value {
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
        // The RNTI determines which CCEs a user searches, so the position restricts the possible RNTIs.
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

/// Rounds to a multiple of `1 / digits`. The result is `null` if the number is not finite.
fn rounded(number: f32, digits: f64) -> Value {
    json!((f64::from(number) * digits).round() / digits)
}

/// The bits that a grant gives to the followed user, as JSON.
pub fn gain(gain: &Gain) -> Value {
    json!({
        "new_bits": gain.new_bits,
        "retransmission": gain.retransmission,
        "again": gain.again,
        "unknown": gain.unknown,
        "throughput_bps": gain.throughput_bps,
    })
}

/// The answer as a JSON object. `rnti` is the user's RNTI or its pseudonym.
pub fn answer(reading: &Reading, answer: &Answered, rnti: Rnti) -> Value {
    json!({
        "cell": reading.pci,
        "index": reading.index,
        "sfn": reading.sfn,
        "subframe": reading.subframe,
        "rnti": rnti.0,
        "phich": answer.word(),
        "granted": answer.granted,
        "attempt": answer.attempt,
        "snr_db": rounded(reading.snr_db, 100.0),
        "confidence": rounded(answer.confidence, 1e6),
    })
}

/// One JSON object: the load and the messages of a subframe.
pub fn subframe(reading: &Reading) -> Value {
    let load = Load::of(reading);
    json!({
        "cell": reading.pci,
        "index": reading.index,
        "sfn": reading.sfn,
        "subframe": reading.subframe,
        "cfi": reading.cfi,
        "cces": reading.cces,
        "cces_used": load.cces_used,
        "cces_unread": load.cces_unread,
        "messages": reading.found.len(),
        "downlink": load.downlink,
        "uplink": load.uplink,
        "formats": formats(reading),
        "prbs": reading.prbs,
        "prbs_used": load.prbs_used,
        "prbs_idle": load.prbs_idle,
        "users": load.users,
        "snr_db": rounded(reading.snr_db, 100.0),
    })
}

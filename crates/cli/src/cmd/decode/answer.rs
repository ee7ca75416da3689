//! PHICH answer to an uplink transport block, as JSON and as text.

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_radio::Rnti;
use serde_json::{Value, json};

use super::message::rounded;

/// The answer as a word: `ACK` or `NACK`.
pub fn word(answer: &Answered) -> &'static str {
    if answer.ack { "ACK" } else { "NACK" }
}

/// The answer as a JSON object. `rnti` is the user's RNTI or its pseudonym.
pub fn json(reading: &Reading, answer: &Answered, rnti: Rnti) -> Value {
    json!({
        "cell": reading.pci,
        "index": reading.index,
        "sfn": reading.sfn,
        "subframe": reading.subframe,
        "rnti": rnti.0,
        "phich": word(answer),
        "granted": answer.granted,
        "attempt": answer.attempt,
        "snr_db": rounded(reading.snr_db, 100.0),
        "confidence": rounded(answer.confidence, 1e6),
    })
}

/// The answer as one line of text, aligned with the columns of messages.
pub fn line(reading: &Reading, answer: &Answered, rnti: Rnti) -> String {
    let again = match answer.attempt {
        1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    format!(
        "{:>4} {:>6} {:>5} C    UL  {}: the block granted {} subframes ago{again}",
        reading.pci,
        format!("{}.{}", reading.sfn, reading.subframe),
        rnti.0,
        word(answer),
        reading.index - answer.granted,
    )
}

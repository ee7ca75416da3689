//! PHICH answer to an uplink transport block, as text.

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_radio::Rnti;

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
        answer.word(),
        reading.index - answer.granted,
    )
}

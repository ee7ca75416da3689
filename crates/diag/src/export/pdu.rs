//! NR RRC messages as exported PDUs: the name of Wireshark's dissector, followed by the message. Wireshark 4.0 supports
//! this format, but not version 3 of GSMTAP.
//!
//! Source: Wireshark epan/exported_pdu.h; names of dissectors: Wireshark packet-nr-rrc.c

/// A message with its dissector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The name of Wireshark's dissector.
    pub dissector: &'static str,
    /// The message in the format that the dissector expects.
    pub message: Vec<u8>,
}

/// The exported form of an NR message on the channel with this name; `None` if Wireshark has no dissector for it.
///
/// Reconfiguration complete messages are logged without a channel: this function adds the bits that precede them on
/// UL-DCCH.
pub fn nr_rrc(channel: &str, message: &[u8]) -> Option<Exported> {
    let dissector = match channel {
        "BCCH-BCH" => "nr-rrc.bcch.bch",
        "BCCH-DL-SCH" => "nr-rrc.bcch.dl.sch",
        "DL-CCCH" => "nr-rrc.dl.ccch",
        "DL-DCCH" => "nr-rrc.dl.dcch",
        "MCCH" => "nr-rrc.mcch",
        "PCCH" => "nr-rrc.pcch",
        "UL-CCCH" => "nr-rrc.ul.ccch",
        "UL-CCCH1" => "nr-rrc.ul.ccch1",
        "UL-DCCH" => "nr-rrc.ul.dcch",
        "RRCReconfiguration" => "nr-rrc.rrc_reconf",
        "RadioBearerConfig" => "nr-rrc.radiobearerconfig",
        "UE-MRDC-Capability" => "nr-rrc.ue_mrdc_cap",
        "UE-NR-Capability" => "nr-rrc.ue_nr_cap",
        "RRCReconfigurationComplete" => {
            return Some(Exported { dissector: "nr-rrc.ul.dcch", message: behind_five_bits(1, message) });
        }
        _ => return None,
    };
    Some(Exported { dissector, message: message.to_vec() })
}

/// Prepends five bits to a bit string: no extension (0), then the type of the message.
///
/// Source: TS 38.331 §6.2.1 (UL-DCCH-Message)
fn behind_five_bits(kind: u8, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 1);
    let mut before = kind << 3;
    for &byte in message {
        out.push(before | byte >> 5);
        before = byte << 3;
    }
    out.push(before);
    out
}

impl Exported {
    /// Appends the format of a capture with link type 252: tags in network byte order, padded to whole words, then the
    /// message.
    pub fn write(&self, out: &mut Vec<u8>) {
        const NAME: u16 = 12;
        const END: [u8; 4] = [0; 4];
        let length = self.dissector.len().next_multiple_of(4);
        out.extend(NAME.to_be_bytes());
        // Names of dissectors are short, so their length fits 16 bits.
        out.extend((length as u16).to_be_bytes());
        out.extend(self.dissector.as_bytes());
        out.resize(out.len() + length - self.dissector.len(), 0);
        out.extend(END);
        out.extend(&self.message);
    }

    /// Length (bytes) of the exported form that [`Exported::write`] appends.
    pub fn length(&self) -> usize {
        8 + self.dissector.len().next_multiple_of(4) + self.message.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_follows_the_name_of_its_dissector() {
        let exported = nr_rrc("PCCH", &[0xAA, 0xBB]).unwrap();
        let mut out = vec![];
        exported.write(&mut out);
        assert_eq!(out, b"\x00\x0C\x00\x0Cnr-rrc.pcch\x00\x00\x00\x00\x00\xAA\xBB");
        assert_eq!(out.len(), exported.length());
        assert_eq!(nr_rrc("PDSCH", &[1]), None);
    }

    #[test]
    fn a_bare_completion_becomes_a_message_of_its_channel() {
        let exported = nr_rrc("RRCReconfigurationComplete", &[0b1010_0000, 0b1111_0001]).unwrap();
        assert_eq!(exported.dissector, "nr-rrc.ul.dcch");
        assert_eq!(exported.message, [0b0000_1101, 0b0000_0111, 0b1000_1000]);
    }
}

//! Types of RRC messages, determined from their first bits.
//!
//! Source: TS 38.331 §6.2.1

/// Type of an RRC message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageType {
    /// Number of the type within its channel.
    pub number: u8,
    /// Name of the type.
    pub name: &'static str,
}

/// The type of an NR message on the channel with this name, for example `DL-DCCH`. `None` if the list of message types
/// of the channel is not known here, if the message has a later extension, or if the message is empty. Modems also log
/// two messages without a channel, as LTE carries them. For these, `channel` is the message name, and the returned
/// number is that of the type on the message's NR channel.
///
/// The first bit of a message is 0 unless it belongs to an extension; the number of the type follows. On BCCH-BCH, a
/// message has only the first bit and no type number.
pub fn nr_message(channel: &str, message: &[u8]) -> Option<MessageType> {
    let first = *message.first()?;
    match channel {
        "RRCReconfiguration" => return Some(MessageType { number: 0, name: DL_DCCH[0] }),
        "RRCReconfigurationComplete" => return Some(MessageType { number: 1, name: UL_DCCH[1] }),
        _ => {}
    }
    let (bits, names): (u32, &[&str]) = match channel {
        "BCCH-BCH" => (0, &["mib"]),
        "BCCH-DL-SCH" => (1, &["systemInformation", "systemInformationBlockType1"]),
        "PCCH" => (1, &["paging"]),
        "DL-CCCH" => (2, &["rrcReject", "rrcSetup"]),
        "UL-CCCH" => {
            (2, &["rrcSetupRequest", "rrcResumeRequest", "rrcReestablishmentRequest", "rrcSystemInfoRequest"])
        }
        "UL-CCCH1" => (2, &["rrcResumeRequest1"]),
        "DL-DCCH" => (4, DL_DCCH),
        "UL-DCCH" => (4, UL_DCCH),
        _ => return None,
    };
    if first & 0x80 != 0 {
        return None;
    }
    let number = (first & 0x7F) >> (7 - bits);
    Some(MessageType { number, name: names.get(usize::from(number))? })
}

const DL_DCCH: &[&str] = &[
    "rrcReconfiguration",
    "rrcResume",
    "rrcRelease",
    "rrcReestablishment",
    "securityModeCommand",
    "dlInformationTransfer",
    "ueCapabilityEnquiry",
    "counterCheck",
    "mobilityFromNRCommand",
    "dlDedicatedMessageSegment",
    "ueInformationRequest",
    "dlInformationTransferMRDC",
    "loggedMeasurementConfiguration",
];

const UL_DCCH: &[&str] = &[
    "measurementReport",
    "rrcReconfigurationComplete",
    "rrcSetupComplete",
    "rrcReestablishmentComplete",
    "rrcResumeComplete",
    "securityModeComplete",
    "securityModeFailure",
    "ulInformationTransfer",
    "locationMeasurementIndication",
    "ueCapabilityInformation",
    "counterCheckResponse",
    "ueAssistanceInformation",
    "failureInformation",
    "ulInformationTransferMRDC",
    "scgFailureInformation",
    "scgFailureInformationEUTRA",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bits_tell_the_type() {
        let name = |channel, first: u8| nr_message(channel, &[first, 0]).map(|kind| (kind.number, kind.name));
        assert_eq!(name("UL-DCCH", 0b0000_0111), Some((0, "measurementReport")));
        assert_eq!(name("UL-DCCH", 0b0111_1000), Some((15, "scgFailureInformationEUTRA")));
        assert_eq!(name("DL-DCCH", 0b0010_1000), Some((5, "dlInformationTransfer")));
        assert_eq!(name("BCCH-DL-SCH", 0b0111_1111), Some((1, "systemInformationBlockType1")));
        assert_eq!(name("BCCH-BCH", 0b0111_1111), Some((0, "mib")));
        assert_eq!(name("UL-CCCH", 0b0110_0000), Some((3, "rrcSystemInfoRequest")));
        assert_eq!(name("PCCH", 0b0100_0000), None, "spare");
        assert_eq!(name("DL-DCCH", 0b1000_0000), None, "an extension");
        assert_eq!(
            name("RRCReconfiguration", 0xFF),
            Some((0, "rrcReconfiguration")),
            "bare messages have no such bits"
        );
        assert_eq!(name("RRCReconfigurationComplete", 0), Some((1, "rrcReconfigurationComplete")));
        assert_eq!(name("RadioBearerConfig", 0), None, "a part of a message");
        assert_eq!(nr_message("UL-DCCH", &[]), None);
    }
}

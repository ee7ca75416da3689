//! Parser for messages: log packets, and other messages by their command code.

use std::fmt;

use crate::stamp::Stamp;

/// Command code of a log packet.
pub(crate) const LOG: u8 = 0x10;
/// Command code of a wrapper, a message that names its radio.
pub(crate) const WRAPPER: u8 = 0x98;
/// Length of the wrapper's header, `0x98 01 00 00, radio (u32)`.
pub(crate) const WRAPPER_HEADER: usize = 8;
/// Length of the prefix of a log packet, `0x10, pending, length, length`.
const LOG_PREFIX: usize = 4;
/// Length of the packet's own header, `length, code, stamp`, which is also used in `.dlf` files.
const PACKET_HEADER: usize = 12;

/// Log code: identifies the kind of log packet. The upper four bits are the equipment id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogCode(pub u16);

impl LogCode {
    /// The equipment id; 0xB means LTE and NR.
    pub fn equipment(self) -> u8 {
        (self.0 >> 12) as u8
    }

    /// The number of the item within its equipment.
    pub fn item(self) -> u32 {
        u32::from(self.0 & 0xFFF)
    }

    /// Name of the radio access technology of the code's packets, from the equipment id in the code; `None` for codes of
    /// no or several technologies.
    pub fn rat(self) -> Option<&'static str> {
        match self.0 {
            0x4000..0x5000 | 0x7000..0x8000 => Some("UMTS"),
            0x5000..0x6000 => Some("GSM"),
            0xB000..0xB800 => Some("LTE"),
            0xB800..0xC000 => Some("NR"),
            // Equipment 1 is CDMA, and also contains codes that belong to no equipment.
            _ => None,
        }
    }
}

impl fmt::Display for LogCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04X}", self.0)
    }
}

/// A phone's modem instance: 1 for the first SIM, 2 for the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Radio(pub u8);

impl Radio {
    /// The modem of the first SIM; also used if a packet names no radio.
    pub const FIRST: Radio = Radio(1);

    /// The radio for the id in a wrapper; ids 0 and 0xFFFFFFFF mean the first radio.
    pub(crate) fn of_wrapper(id: u32) -> Radio {
        match id {
            0 | u32::MAX => Radio::FIRST,
            id => Radio(u8::try_from(id).unwrap_or(u8::MAX)),
        }
    }
}

/// A log packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPacket<'a> {
    /// The radio that sent the packet.
    pub radio: Radio,
    /// Log code: the kind of report.
    pub code: LogCode,
    /// Time of the report by the modem's clock.
    pub stamp: Stamp,
    /// The content. The layout depends on the code and on a version number in the content.
    pub payload: &'a [u8],
}

/// A message, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A log packet.
    Log(LogPacket<'a>),
    /// A log packet whose length field exceeds the bytes that are present.
    Cut {
        /// Log code of the packet.
        code: LogCode,
        /// Length of the payload according to the length field (bytes).
        said: usize,
        /// Number of bytes of the payload that are present.
        has: usize,
    },
    /// A message of any other kind: an answer, an event, a debug text.
    Other {
        /// Command code of the message.
        command: u8,
        /// The whole message, including the command code.
        body: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads the body of a frame; `None` if the body is empty.
    pub fn read(body: &'a [u8]) -> Option<Message<'a>> {
        let (radio, inner) = match body.split_at_checked(WRAPPER_HEADER) {
            Some((header, inner)) if header[0] == WRAPPER && !inner.is_empty() => {
                (Radio::of_wrapper(u32::from_le_bytes([header[4], header[5], header[6], header[7]])), inner)
            }
            _ => (Radio::FIRST, body),
        };
        let &command = inner.first()?;
        match inner.get(LOG_PREFIX..) {
            Some(packet) if command == LOG && packet.len() >= PACKET_HEADER => {
                Some(read_packet(radio, packet).0)
            }
            _ => Some(Message::Other { command, body: inner }),
        }
    }

    /// Reads the packet at the start of a `.dlf` file's bytes. Returns the packet and its length in bytes, or `None` if
    /// there is no packet.
    pub fn read_dlf(bytes: &'a [u8]) -> Option<(Message<'a>, usize)> {
        let length = usize::from(u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]));
        (length >= PACKET_HEADER && bytes.len() >= PACKET_HEADER).then(|| read_packet(Radio::FIRST, bytes))
    }
}

/// Reads `length, code, stamp, payload`. Returns the message and its length in bytes. `packet` must contain the complete
/// header.
fn read_packet(radio: Radio, packet: &[u8]) -> (Message<'_>, usize) {
    let (header, rest) = packet.split_at(PACKET_HEADER);
    let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
    let code = LogCode(u16::from_le_bytes([header[2], header[3]]));
    let said = length.saturating_sub(PACKET_HEADER);
    let Some(payload) = rest.get(..said) else {
        return (Message::Cut { code, said, has: rest.len() }, packet.len());
    };
    let stamp: [u8; 8] = header[4..].try_into().expect("the header ends with eight bytes of time");
    let stamp = Stamp(u64::from_le_bytes(stamp));
    (Message::Log(LogPacket { radio, code, stamp, payload }), PACKET_HEADER + said)
}

impl LogPacket<'_> {
    /// Appends the message that carries this packet, in the form in which a modem sends it. If `names_radio` is set,
    /// the message is in a wrapper that names the radio.
    ///
    /// # Panics
    /// If the payload is longer than 65,523 bytes, because the length field cannot express this length.
    pub fn write(&self, names_radio: bool, out: &mut Vec<u8>) {
        if names_radio {
            out.extend([WRAPPER, 1, 0, 0]);
            out.extend(u32::from(self.radio.0).to_le_bytes());
        }
        let length = u16::try_from(PACKET_HEADER + self.payload.len()).expect("a log packet is that short");
        out.extend([LOG, 0]);
        out.extend(length.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.extend(self.code.0.to_le_bytes());
        out.extend(self.stamp.0.to_le_bytes());
        out.extend_from_slice(self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PACKET: LogPacket<'_> =
        LogPacket { radio: Radio(2), code: LogCode(0xB173), stamp: Stamp(7), payload: &[36, 1, 2] };

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let mut wrapped = vec![];
        PACKET.write(true, &mut wrapped);
        assert_eq!(Message::read(&wrapped), Some(Message::Log(PACKET)));
        let mut bare = vec![];
        PACKET.write(false, &mut bare);
        assert_eq!(Message::read(&bare), Some(Message::Log(LogPacket { radio: Radio::FIRST, ..PACKET })));
        assert_eq!(Message::read_dlf(&bare[4..]).unwrap().1, 15);
    }

    #[test]
    fn a_packet_shorter_than_its_length_field_is_cut_and_other_messages_are_named() {
        let mut bytes = vec![];
        PACKET.write(false, &mut bytes);
        bytes.pop();
        assert_eq!(Message::read(&bytes), Some(Message::Cut { code: LogCode(0xB173), said: 3, has: 2 }));
        assert_eq!(Message::read(&[0x79, 1]), Some(Message::Other { command: 0x79, body: &[0x79, 1] }));
        assert_eq!(Message::read(&[]), None);
    }

    #[test]
    fn radios_zero_and_none_are_the_first() {
        assert_eq!([0, 1, 2, u32::MAX].map(Radio::of_wrapper), [Radio(1), Radio(1), Radio(2), Radio(1)]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), kind in 0usize..3) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = [LOG, WRAPPER, *first][kind];
            }
            Message::read(&bytes);
            Message::read_dlf(&bytes);
        }
    }
}

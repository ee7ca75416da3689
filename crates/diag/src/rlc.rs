//! LTE RLC headers in acknowledged mode, which 0xB082 and 0xB092 contain as `header`; the data is not logged.
//!
//! Source: TS 36.322 §6.2.1.4 to §6.2.1.6 and §6.2.2

use std::fmt;

/// Kind of RLC PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// A data PDU or a segment of it.
    Data(Data),
    /// A status PDU: reception status of the sender of this PDU.
    Status {
        /// The first sequence number that is neither received nor reported as missing.
        ack_sn: u16,
    },
    /// A control PDU of another type, which no release defines.
    Control {
        /// Control PDU type.
        cpt: u8,
    },
}

/// The header of a data PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Whether the polling bit is set: the receiver must send a status PDU.
    pub polls: bool,
    /// Framing info: 2 if the first byte is not the start of an SDU, plus 1 if the last byte is not the end of an SDU.
    pub framing: u8,
    /// Whether length fields follow.
    pub is_extended: bool,
    /// Sequence number.
    pub sn: u16,
    /// The segment, if the PDU was segmented for retransmission.
    pub segment: Option<Segment>,
}

/// A segment of a data PDU. Only retransmissions are segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whether this segment is the last one of its PDU.
    pub is_last: bool,
    /// Offset of the segment in the data of the PDU (bytes).
    pub offset: u16,
}

/// An item in the list of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Length in bytes of an SDU, or of a part of an SDU, in a data PDU. The last length is not listed.
    Length(u16),
    /// A missing PDU.
    Nack {
        /// Sequence number.
        sn: u16,
        /// The first and the last missing byte, if only a part is missing. The maximum value of the last byte means the
        /// end of the PDU.
        part: Option<(u16, u16)>,
    },
}

/// Error: the header ends too early, or its sequence numbers have a length that acknowledged mode does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Offset in bits of the header's end.
    pub at_bit: usize,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the RLC header cannot be followed beyond bit {}", self.at_bit)
    }
}

impl std::error::Error for Broken {}

/// Reads a header whose sequence numbers have `sn_bits` bits, 10 or 16, and visits the items of its list.
///
/// Chosen: length fields have 11 bits. No log was available with 15 bits, which the network may configure.
///
/// # Errors
/// If the header ends too early. Items before the error have been visited.
pub fn visit(sn_bits: u64, header: &[u8], mut visit: impl FnMut(Item)) -> Result<Pdu, Broken> {
    let is_wide = match sn_bits {
        10 => false,
        16 => true,
        _ => return Err(Broken { at_bit: 0 }),
    };
    let sn_bits = if is_wide { 16 } else { 10 };
    let mut bits = Bits { bytes: header, at: 0 };
    if !bits.flag()? {
        let cpt = bits.take(3)? as u8;
        if cpt != 0 {
            return Ok(Pdu::Control { cpt });
        }
        let ack_sn = bits.take(sn_bits)?;
        let mut goes_on = bits.flag()?;
        while goes_on {
            let sn = bits.take(sn_bits)?;
            goes_on = bits.flag()?;
            let offset_bits = if is_wide { 16 } else { 15 };
            let part =
                if bits.flag()? { Some((bits.take(offset_bits)?, bits.take(offset_bits)?)) } else { None };
            visit(Item::Nack { sn, part });
        }
        return Ok(Pdu::Status { ack_sn });
    }
    let is_segment = bits.flag()?;
    let polls = bits.flag()?;
    let framing = bits.take(2)? as u8;
    let is_extended = bits.flag()?;
    // With 16-bit sequence numbers, two bits follow at this position. In a segment, the first of these bits marks the
    // last segment.
    let early = if is_wide { bits.take(2)? } else { 0 };
    let sn = bits.take(sn_bits)?;
    let segment = match (is_segment, is_wide) {
        (false, _) => None,
        (true, true) => Some(Segment { is_last: early & 2 != 0, offset: bits.take(16)? }),
        (true, false) => Some(Segment { is_last: bits.flag()?, offset: bits.take(15)? }),
    };
    let mut goes_on = is_extended;
    while goes_on {
        goes_on = bits.flag()?;
        visit(Item::Length(bits.take(11)?));
    }
    Ok(Pdu::Data(Data { polls, framing, is_extended, sn, segment }))
}

/// Bit reader, starting from the highest bit of the first byte.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// Reads the next `count` bits, at most 16.
    fn take(&mut self, count: usize) -> Result<u16, Broken> {
        if self.at + count > 8 * self.bytes.len() {
            return Err(Broken { at_bit: 8 * self.bytes.len() });
        }
        let number = (self.at..self.at + count)
            .fold(0, |number, bit| number << 1 | u16::from(self.bytes[bit / 8] >> (7 - bit % 8) & 1));
        self.at += count;
        Ok(number)
    }

    fn flag(&mut self) -> Result<bool, Broken> {
        Ok(self.take(1)? == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(sn_bits: u64, header: &[u8]) -> Result<(Pdu, Vec<Item>), Broken> {
        let mut items = vec![];
        visit(sn_bits, header, |item| items.push(item)).map(|pdu| (pdu, items))
    }

    #[test]
    fn a_data_pdu_has_its_number_and_the_lengths_of_what_is_in_it() {
        let data = Data { polls: false, framing: 3, is_extended: true, sn: 81, segment: None };
        assert_eq!(
            all(10, &[0b1001_1100, 81, 0x01, 0x30]),
            Ok((Pdu::Data(data), vec![Item::Length(19)])),
            "one length, then four bits of padding"
        );
        let two = [0b1011_1100, 81, 0b1000_0001, 0b0011_0000, 0b0000_0101];
        let items = vec![Item::Length(19), Item::Length(5)];
        assert_eq!(all(10, &two), Ok((Pdu::Data(Data { polls: true, ..data }), items)));
        assert_eq!(all(10, &[0b1001_1100, 81, 1]), Err(Broken { at_bit: 24 }), "the length is not all there");
    }

    #[test]
    fn a_segment_has_its_offset() {
        let segment = |is_last, offset| Some(Segment { is_last, offset });
        let data =
            |segment| Pdu::Data(Data { polls: true, framing: 0, is_extended: false, sn: 0x103, segment });
        let short = [0b1110_0001, 0x03, 0x81, 0x02];
        assert_eq!(all(10, &short), Ok((data(segment(true, 0x102)), vec![])));
        let wide = [0b1110_0010, 0x01, 0x03, 0x81, 0x02];
        assert_eq!(all(16, &wide), Ok((data(segment(true, 0x8102)), vec![])));
    }

    #[test]
    fn a_status_lists_what_is_missing() {
        // Acknowledged up to 65; missing: all of 60, and bytes 5 to the end of 62.
        let mut bits = String::from("0000");
        bits += &format!("{:010b}1", 65);
        bits += &format!("{:010b}10", 60);
        bits += &format!("{:010b}01{:015b}{:015b}", 62, 5, 0x7FFF);
        let header: Vec<u8> = (0..bits.len().div_ceil(8))
            .map(|byte| {
                let bits = &bits[8 * byte..(8 * byte + 8).min(bits.len())];
                u8::from_str_radix(bits, 2).unwrap() << (8 - bits.len())
            })
            .collect();
        let nacks = vec![Item::Nack { sn: 60, part: None }, Item::Nack { sn: 62, part: Some((5, 0x7FFF)) }];
        assert_eq!(all(10, &header), Ok((Pdu::Status { ack_sn: 65 }, nacks)));
        assert!(all(10, &header[..5]).is_err());
        assert_eq!(all(16, &[0, 0x04, 0x10]), Ok((Pdu::Status { ack_sn: 65 }, vec![])));
    }

    #[test]
    fn other_kinds_and_lengths_are_not_guessed() {
        assert_eq!(all(10, &[0b0011_0000]), Ok((Pdu::Control { cpt: 3 }, vec![])));
        assert_eq!(all(12, &[0x80, 0]), Err(Broken { at_bit: 0 }));
        assert_eq!(all(10, &[]), Err(Broken { at_bit: 0 }));
    }

    proptest! {
        #[test]
        fn what_is_listed_is_bounded_by_the_bytes(
            header in prop::collection::vec(any::<u8>(), 0..40),
            sn_bits in prop::sample::select(vec![10, 16]),
        ) {
            let mut items = 0;
            let _ = visit(sn_bits, &header, |_| items += 1);
            prop_assert!(items * 12 <= 8 * header.len());
        }
    }
}

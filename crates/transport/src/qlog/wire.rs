//! Parser of QUIC's variable-length integers, packet headers and transport parameters.

/// Reads QUIC fields from the front of a byte slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Returns the bytes that were not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }

    /// Reads a variable-length integer of 1, 2, 4 or 8 bytes; the first two bits encode the length.
    ///
    /// Source: RFC 9000 §16
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = *self.rest.first()?;
        let taken = self.take(1 << (first >> 6))?;
        let first = u64::from(first & 0x3f);
        Some(taken[1..].iter().fold(first, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads bytes that are preceded by their number.
    pub(super) fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(count)
    }

    /// Reads a connection ID that is preceded by its length.
    ///
    /// Source: RFC 9000 §17.2
    pub(super) fn connection_id(&mut self) -> Option<&'a [u8]> {
        let count = self.byte()?;
        self.take(u64::from(count))
    }
}

/// A packet number space.
///
/// Source: RFC 9000 §12.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    Initial,
    Handshake,
    Application,
}

/// A packet type.
///
/// Source: RFC 9000 §17
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    OneRtt,
}

impl Kind {
    /// Returns the packet number space of this packet type.
    pub(crate) fn space(self) -> Space {
        match self {
            Kind::Initial | Kind::Retry => Space::Initial,
            Kind::Handshake => Space::Handshake,
            Kind::ZeroRtt | Kind::OneRtt => Space::Application,
        }
    }
}

/// The fields of a packet header that a log needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    pub(crate) kind: Kind,
    pub(crate) destination: &'a [u8],
    /// Source connection ID, which only long headers contain.
    pub(crate) source: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// Reads a header without header protection. A short header must end with its packet number.
    ///
    /// Source: RFC 9000 §17.2, §17.3.1
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Header<'a>> {
        let first = *bytes.first()?;
        if first & 0x80 == 0 {
            let number = usize::from(first & 0x03) + 1;
            let destination = bytes.get(1..bytes.len().checked_sub(number)?)?;
            return Some(Header { kind: Kind::OneRtt, destination, source: None });
        }
        let kind = match first >> 4 & 0x03 {
            0 => Kind::Initial,
            1 => Kind::ZeroRtt,
            2 => Kind::Handshake,
            _ => Kind::Retry,
        };
        let mut reader = Reader::new(bytes.get(5..)?);
        let destination = reader.connection_id()?;
        Some(Header { kind, destination, source: Some(reader.connection_id()?) })
    }
}

/// The encoded transport parameters of one endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters<'a>(&'a [u8]);

/// Source: RFC 9000 §18.2
impl<'a> Parameters<'a> {
    pub(crate) const ORIGINAL_DESTINATION: u64 = 0x00;
    pub(crate) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(crate) const INITIAL_SOURCE: u64 = 0x0f;

    pub(crate) fn new(bytes: &'a [u8]) -> Parameters<'a> {
        Parameters(bytes)
    }

    /// Returns the value of a parameter, if present.
    pub(crate) fn bytes(&self, id: u64) -> Option<&'a [u8]> {
        let mut reader = Reader::new(self.0);
        loop {
            let (read, value) = (reader.number()?, reader.counted()?);
            if read == id {
                return Some(value);
            }
        }
    }

    /// Returns the value of a numeric parameter, if present.
    pub(crate) fn number(&self, id: u64) -> Option<u64> {
        Reader::new(self.bytes(id)?).number()
    }

    /// Returns the ACK delay exponent, or its default of 3.
    pub(crate) fn ack_delay_exponent(&self) -> u64 {
        self.number(Parameters::ACK_DELAY_EXPONENT).unwrap_or(3)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard() {
        // Source: RFC 9000 §A.1
        for (bytes, number) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!((reader.number(), reader.rest()), (Some(number), &[][..]));
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).number(), None, "cut");
        }
    }

    #[test]
    fn the_headers_of_the_standard_are_read() {
        // Source: RFC 9001 §A.2 (client's Initial), §A.4 (Retry), §A.5 (short header)
        let initial = [
            0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0, 0x44, 0x9e, 0, 0, 0, 2,
        ];
        let header = Header::read(&initial).unwrap();
        assert_eq!((header.kind, header.source), (Kind::Initial, Some(&[][..])));
        assert_eq!(header.destination, [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
        let retry = [0xff, 0, 0, 0, 1, 0, 8, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74];
        assert_eq!(Header::read(&retry).unwrap().kind, Kind::Retry);
        let short = [0x42, 0x00, 0xbf, 0xf4];
        assert_eq!(
            Header::read(&short).unwrap(),
            Header { kind: Kind::OneRtt, destination: &[], source: None }
        );
    }

    #[test]
    fn parameters_are_found_by_their_numbers() {
        let bytes = [0x01, 2, 0x40, 0x25, 0x0f, 3, 7, 8, 9, 0x0a, 1, 5];
        let parameters = Parameters::new(&bytes);
        assert_eq!(parameters.number(1), Some(37));
        assert_eq!(parameters.bytes(Parameters::INITIAL_SOURCE), Some(&[7, 8, 9][..]));
        assert_eq!((parameters.ack_delay_exponent(), parameters.number(4)), (5, None));
        assert_eq!(Parameters::new(&bytes[..bytes.len() - 1]).ack_delay_exponent(), 3, "cut");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), id: u8) {
            if let Some(header) = Header::read(&bytes) {
                prop_assert!(header.destination.len() + header.source.map_or(0, <[u8]>::len) < bytes.len());
            }
            if let Some(value) = Parameters::new(&bytes).bytes(u64::from(id)) {
                prop_assert!(value.len() + 2 <= bytes.len());
            }
        }
    }
}

//! Parser for `.dlf` files: consecutive log packets without flags or checksums. The start of a packet is inferred from
//! the packets that follow.
//!
//! The format is detected from headers, not from bytes: in a `.dlf` file, nearly every sequence of bytes that could be
//! a header directly follows the previous packet. A damaged stream or random bytes contain a few long apparent packets,
//! and possible headers inside them.

use crate::log;
use crate::packet::LogCode;
use crate::stamp::Stamp;

/// Length of a packet's header, `length, code, stamp`.
pub(super) const HEADER: usize = 12;
/// Number of consecutive packets, all stamped within a day, that are accepted as packets and not as coincidence.
///
/// Chosen: in random bytes, one in a million apparent packets is followed by a second apparent packet, and none is
/// followed by a third.
const ENOUGH: usize = 3;
/// Equipment ids in use: for 1x, WCDMA, GSM, UMTS, LTE and NR, TD-SCDMA.
const EQUIPMENTS: [u8; 6] = [0x1, 0x4, 0x5, 0x7, 0xB, 0xD];
/// Nanoseconds of a day.
const DAY_NANOS: u64 = 86_400_000_000_000;
/// Maximum pause between two successive packets of a log (ns).
///
/// Chosen: a recorded log that was switched on from time to time has pauses of up to 64 days.
const MAX_PAUSE_NANOS: u64 = 365 * DAY_NANOS;
/// Maximum pause between successive packets of a modem whose clock is not set (ns).
///
/// Chosen: in the recorded logs, such a modem sends a packet every few seconds; in payloads, bytes that resemble the
/// stamps of three such packets are hours apart.
const MAX_COUNT_NANOS: u64 = 60_000_000_000;
/// Number of days from 1980 to 2100.
const DAYS: u64 = 120 * 365 + 30;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    length: usize,
    code: LogCode,
    stamp: Stamp,
}

impl Header {
    /// Reads a header; `None` if no packet can start like this, or if there are too few bytes.
    fn read(bytes: &[u8]) -> Option<Header> {
        let (&[low, high, code_low, code_high, ref stamp @ ..], _) = bytes.split_first_chunk::<HEADER>()?;
        let header = Header {
            length: usize::from(u16::from_le_bytes([low, high])),
            code: LogCode(u16::from_le_bytes([code_low, code_high])),
            stamp: Stamp(u64::from_le_bytes(*stamp)),
        };
        let is_possible = header.length >= HEADER
            && header.code.equipment() > 0
            && header.stamp.is_regular()
            && header.stamp.nanos() < DAYS * DAY_NANOS;
        is_possible.then_some(header)
    }

    /// Reads a header that may indicate a packet: its equipment id is in use.
    fn read_possible(bytes: &[u8]) -> Option<Header> {
        Header::read(bytes).filter(|header| EQUIPMENTS.contains(&header.code.equipment()))
    }

    /// Whether the header alone indicates a packet.
    ///
    /// Chosen: a stamp from before the clock was set consists mostly of zeros, which are common in payloads too. For such
    /// a stamp, the code must have a layout.
    fn is_evident(self) -> bool {
        self.stamp.is_set() || self.has_layout()
    }

    fn has_layout(self) -> bool {
        log::code(self.code).is_some()
    }

    /// Whether a packet with this header and another packet differ. `one` and `two` are the bytes from their starts on.
    ///
    /// Chosen: in a repeating pattern, one or two bytes may be counters, in the time or in the payload. A difference
    /// only in the time, or only in the payload, therefore does not count. Such a difference counts if there is no
    /// payload, or if the code has a layout, because few codes have a layout.
    fn differs(self, other: Header, one: &[u8], two: &[u8]) -> bool {
        const COUNTER_BYTES: usize = 2;
        if (self.length, self.code) != (other.length, other.code) {
            return true;
        }
        let pairs = one.iter().zip(two).take(self.length).skip(HEADER);
        let different = pairs.filter(|(one, two)| one != two).count();
        let is_later = self.stamp != other.stamp;
        different > COUNTER_BYTES
            || different > 0 && (is_later || self.has_layout())
            || self.length == HEADER && is_later
    }

    fn is_near(self, stamp: Stamp) -> bool {
        self.stamp.is_set() == stamp.is_set() && self.stamp.nanos().abs_diff(stamp.nanos()) < DAY_NANOS
    }

    /// Whether the packet follows a packet with this time: it is later than `last` by at most [`MAX_PAUSE_NANOS`].
    fn is_later(self, last: Stamp) -> bool {
        let pause = self.stamp.nanos().checked_sub(last.nanos());
        last.is_set() && pause.is_some_and(|nanos| nanos < MAX_PAUSE_NANOS)
    }

    /// Whether this packet and the previous packet `last` together are evidence for packets of a modem whose clock is
    /// not set: the time still increases from packet to packet.
    fn counts_on(self, last: Header) -> bool {
        let pause = self.stamp.nanos().checked_sub(last.stamp.nanos());
        self.stamp.nanos() < DAY_NANOS && pause.is_some_and(|nanos| nanos < MAX_COUNT_NANOS)
    }

    /// Whether the packet may directly follow a packet with this time. The modem's clock may have been set in between.
    fn follows(self, last: Stamp) -> bool {
        self.is_near(last) || self.is_later(last) || self.stamp.is_set() != last.is_set()
    }
}

/// Condition for accepting consecutive packets.
#[derive(Clone, Copy, Debug)]
enum Chain {
    /// At least [`ENOUGH`] packets at a position where a packet is expected: at the start of a file, or directly after
    /// a packet.
    Begin,
    /// At least [`ENOUGH`] packets after bytes that are not a packet; one of these packets is evident.
    Anywhere,
    /// All packets up to the end of the file.
    AtEnd,
    /// At least [`ENOUGH`] packets within the claimed length of a packet with this time. One of these packets is
    /// evident, and the first packet is near this time or evident.
    ///
    /// Chosen: payloads contain old packets, including complete ones; one or two packets that lead to the end of the
    /// file are no evidence.
    Inside(Stamp),
}

/// Whether consecutive packets start here; `None` if more bytes are needed.
fn is_chain(bytes: &[u8], chain: Chain) -> Option<bool> {
    let mut rest = bytes;
    let mut last: Option<Header> = None;
    let mut is_evident = matches!(chain, Chain::Begin | Chain::AtEnd);
    let mut is_counting = true;
    for seen in 0..ENOUGH {
        // At the end of the file: two packets that lead to the end, or one packet that fills the rest of the file.
        let at_end = |is_enough: bool| matches!(chain, Chain::AtEnd).then_some(is_enough);
        if rest.len() < HEADER {
            return at_end(seen >= 2 || seen == 1 && rest.is_empty());
        }
        let Some(header) = Header::read_possible(rest) else { return Some(false) };
        let is_in_time = match (last, chain) {
            (Some(last), _) => {
                let has_learned =
                    header.stamp.is_set() && last.stamp.nanos() < DAY_NANOS && last.is_evident();
                header.is_near(last.stamp) || header.is_later(last.stamp) || has_learned
            }
            (None, Chain::Inside(time)) => header.is_near(time) || header.is_evident(),
            (None, _) => true,
        };
        if !is_in_time {
            return Some(false);
        }
        is_evident |= header.is_evident();
        is_counting &= last.is_none_or(|last| header.counts_on(last));
        match rest.get(header.length..) {
            Some(next) => rest = next,
            None => return at_end(seen >= 2),
        }
        last = Some(header);
    }
    Some(is_evident || is_counting)
}

/// Result of a search for the start of packets.
enum Found {
    /// Packets start at this byte.
    Here(usize),
    /// Packets do not start before this byte; more bytes are needed.
    NotBefore(usize),
}

/// Searches for a chain of packets that starts in `begins`.
fn find(bytes: &[u8], begins: std::ops::Range<usize>, chain: Chain) -> Found {
    for at in begins.clone() {
        match is_chain(&bytes[at..], chain) {
            Some(true) => return Found::Here(at),
            Some(false) => {}
            None => return Found::NotBefore(at),
        }
    }
    Found::NotBefore(begins.end)
}

/// Consecutive packets from some byte on.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Number of packets that end at the start of another packet or at the end of the file.
    packets: usize,
    /// Length of these packets (bytes).
    bytes: usize,
    /// Number of bytes of a further packet that is cut by the end of the file.
    cut: usize,
    /// Number of possible headers inside the packets with a time near that of the packets.
    strays: usize,
    /// Whether the packets differ from each other. The apparent packets of a repeating pattern do not differ.
    is_varied: bool,
    /// Whether the packets fill the whole file.
    is_file: bool,
}

impl Run {
    /// Follows the packets from the start of `bytes`. Returns an error, the number of bytes to skip, if there are no
    /// packets or if they may be chance. `is_whole`: `bytes` extend to the end of the file. `is_begin`: `bytes` are the
    /// start of the file, and there is no other evidence of its format.
    fn follow(bytes: &[u8], is_whole: bool, is_begin: bool) -> Result<Run, usize> {
        let mut run = Run { packets: 0, bytes: 0, cut: 0, strays: 0, is_varied: false, is_file: false };
        let first = Header::read_possible(bytes).ok_or(1_usize)?;
        let (mut header, mut evident) = (first, 0);
        while let Some(rest) = bytes.get(run.bytes + header.length..) {
            let next = Header::read_possible(rest).filter(|next| next.is_near(header.stamp));
            if next.is_none() && !(is_whole && rest.is_empty()) {
                break;
            }
            run.packets += 1;
            evident += usize::from(header.is_evident());
            run.bytes += header.length;
            let Some(next) = next else {
                run.is_file = is_begin;
                break;
            };
            run.is_varied |= first.differs(next, bytes, rest);
            header = next;
        }
        let is_enough = match run.packets {
            0 => false,
            // Accept a single packet if it fills the whole file and its code has a layout.
            1 => run.is_file && first.has_layout(),
            // Do not require a layout: codes without a layout are common in real logs.
            _ => run.is_varied && 2 * evident >= run.packets,
        };
        if !is_enough {
            return Err(if run.packets > 1 { run.bytes } else { 1 });
        }
        let is_cut = is_whole && run.bytes < bytes.len() && bytes.len() < run.bytes + header.length + HEADER;
        let holds_packets = || strays(&bytes[run.bytes + 1..], header.stamp) > 0;
        if is_cut && run.packets >= ENOUGH && header.is_evident() && !holds_packets() {
            run.cut = bytes.len() - run.bytes;
        }
        let mut at = 0;
        while at < run.bytes
            && let Some(header) = Header::read(&bytes[at..])
        {
            run.strays += strays(&bytes[at + 1..at + header.length], header.stamp);
            at += header.length;
        }
        Ok(run)
    }
}

/// Number of possible headers in `bytes` with a time near `time`.
fn strays(bytes: &[u8], time: Stamp) -> usize {
    let is_header = |bytes| {
        Header::read_possible(bytes).is_some_and(|header| header.is_evident() && header.is_near(time))
    };
    bytes.windows(HEADER).filter(|bytes| is_header(bytes)).count()
}

/// Whether these bytes are consecutive packets, apart from a few damaged parts. `is_whole`: `bytes` extend to the end
/// of the file. `is_alone`: there is no other evidence of the file's format.
///
/// Chosen: runs of packets must contain half of the bytes, or start at the first byte; and there must be more packets
/// in runs than possible headers elsewhere.
pub(super) fn is_packets(bytes: &[u8], is_whole: bool, is_alone: bool) -> bool {
    let (mut at, mut between) = (0, 0);
    let (mut packets, mut in_runs, mut elsewhere) = (0, 0, 0);
    let mut begins_with_run = false;
    let mut time: Option<Stamp> = None;
    while at < bytes.len() {
        match Run::follow(&bytes[at..], is_whole, is_alone && at == 0) {
            Ok(run) => {
                begins_with_run |= at == 0;
                let begins = Header::read(&bytes[at..]).map(|header| header.stamp);
                // Headers between two runs are compared with the time of the first run.
                elsewhere += time.or(begins).map_or(0, |time| strays(&bytes[between..at], time)) + run.strays;
                packets += run.packets;
                in_runs += run.bytes + run.cut;
                time = begins;
                at += run.bytes + run.cut;
                between = at;
            }
            Err(bytes) => at += bytes,
        }
    }
    elsewhere += time.map_or(0, |time| strays(&bytes[between..], time));
    let is_most = 2 * in_runs >= bytes.len();
    packets > elsewhere && (is_most || is_alone && begins_with_run)
}

/// Determines the next step if no packet directly follows the last packet; `begin` is the condition for packets at this
/// position. Bytes are skipped up to the first position at which more bytes could reveal a packet, even at the end of
/// the file. The result thus does not depend on the size of the pieces.
fn look_for(bytes: &[u8], begin: Chain, is_all: bool) -> Step {
    match is_chain(bytes, begin) {
        Some(true) => return Step::Packet,
        None if !is_all || bytes.is_empty() => return Step::More,
        None if is_chain(bytes, Chain::AtEnd) == Some(true) => return Step::Packet,
        _ => {}
    }
    match find(bytes, 1..bytes.len(), Chain::Anywhere) {
        Found::Here(at) | Found::NotBefore(at) => Step::Skip(at),
    }
}

/// Classification of the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A packet.
    Packet,
    /// Bytes that are not a packet, with their number.
    Skip(usize),
    /// A packet that is cut by the end of the file.
    Cut,
    /// There are too few bytes for a decision, or none.
    More,
}

/// Classifies the next bytes, after a packet with time `last`. `is_behind`: the bytes directly follow that packet or the
/// start of the file. `is_all`: there are no further bytes.
///
/// If another packet follows at the end of a packet's length, the length is accepted. Otherwise the length may be
/// wrong, and packets that start inside this length are preferred, if they satisfy [`Chain::Inside`]. If there are no
/// such packets, the packet is accepted, and the bytes after it are not a packet. If the file ends before the end of
/// the length, the packet is cut.
pub(super) fn step(bytes: &[u8], last: Option<Stamp>, is_behind: bool, is_all: bool) -> Step {
    let linked = |bytes: &[u8], last| Header::read(bytes).filter(|header| header.follows(last));
    let Some(header) = last.and_then(|last| linked(bytes, last)) else {
        return look_for(bytes, if is_behind { Chain::Begin } else { Chain::Anywhere }, is_all);
    };
    let next = bytes.get(header.length..).unwrap_or_default();
    if linked(next, header.stamp).is_some() || (is_all && bytes.len() == header.length) {
        return Step::Packet;
    }
    if next.len() < HEADER && !is_all {
        return Step::More;
    }
    let claimed = header.length.min(bytes.len());
    let mut from = 1;
    loop {
        match find(bytes, from..claimed, Chain::Inside(header.stamp)) {
            Found::Here(at) => return Step::Skip(at),
            Found::NotBefore(at) if at < claimed && !is_all => return Step::More,
            // Up to this position, there are too few packets before the end of the file.
            Found::NotBefore(at) if at < claimed => from = at + 1,
            Found::NotBefore(_) if bytes.len() < header.length => return Step::Cut,
            Found::NotBefore(_) => return Step::Packet,
        }
    }
}

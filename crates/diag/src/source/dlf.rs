//! Log packets one after the other, without marks or checksums: what follows a packet tells where it begins.

use crate::packet::LogCode;
use crate::stamp::Stamp;

/// `length, code, stamp` at the start of a packet.
pub(super) const HEADER: usize = 12;
/// This many packets that lead from one to the next, all stamped within a day, are not chance.
///
/// Chosen: in random bytes, one in a million seeming packets leads to a second, and none to a third.
const ENOUGH: usize = 3;
/// Equipments that have log packets in the field: 1x, WCDMA, GSM, UMTS, LTE and NR, TD-SCDMA.
const EQUIPMENTS: [u8; 6] = [0x1, 0x4, 0x5, 0x7, 0xB, 0xD];
/// Nanoseconds of a day.
const DAY_NANOS: u64 = 86_400_000_000_000;
/// From 1980 to 2100, in days.
const DAYS: u64 = 120 * 365 + 30;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    length: usize,
    code: LogCode,
    stamp: Stamp,
}

impl Header {
    /// Reads a header; `None` if no packet can begin like this, or if there are too few bytes.
    fn read(bytes: &[u8]) -> Option<Header> {
        let (&[low, high, code_low, code_high, ref stamp @ ..], _) = bytes.split_first_chunk::<HEADER>()?;
        let header = Header {
            length: usize::from(u16::from_le_bytes([low, high])),
            code: LogCode(u16::from_le_bytes([code_low, code_high])),
            stamp: Stamp(u64::from_le_bytes(*stamp)),
        };
        (header.length >= HEADER && header.code.equipment() > 0 && header.stamp.nanos() < DAYS * DAY_NANOS)
            .then_some(header)
    }

    fn is_near(self, stamp: Stamp) -> bool {
        self.stamp.is_set() == stamp.is_set() && self.stamp.nanos().abs_diff(stamp.nanos()) < DAY_NANOS
    }

    /// Whether the packet may come right after one of this time. The modem may have learned the time in between.
    fn follows(self, last: Stamp) -> bool {
        self.is_near(last) || self.stamp.is_set() != last.is_set()
    }
}

/// Whether packets that lead from one to the next begin here; `None` if more bytes are needed.
pub(super) fn is_chain(bytes: &[u8], is_all: bool) -> Option<bool> {
    chain(bytes, is_all).map(|length| length > 0)
}

/// The bytes of the packets that lead from one to the next here, 0 if there are none; `None` if more bytes are needed.
fn chain(bytes: &[u8], is_all: bool) -> Option<usize> {
    let mut rest = bytes;
    let mut last: Option<Stamp> = None;
    for seen in 0..ENOUGH {
        if rest.len() < HEADER {
            // Two packets that lead to the end, or one that is everything there is.
            let is_enough = seen >= 2 || seen == 1 && rest.is_empty();
            return is_all.then_some(if is_enough { bytes.len() - rest.len() } else { 0 });
        }
        let Some(header) = Header::read(rest) else { return Some(0) };
        if !EQUIPMENTS.contains(&header.code.equipment()) || last.is_some_and(|last| !header.is_near(last)) {
            return Some(0);
        }
        match rest.get(header.length..) {
            Some(next) => rest = next,
            None => return is_all.then_some(if seen >= 2 { bytes.len() - rest.len() } else { 0 }),
        }
        last = Some(header.stamp);
    }
    Some(bytes.len() - rest.len())
}

/// Where packets begin, at this byte or after.
enum Found {
    /// At this byte.
    Here(usize),
    /// Not before this byte; more bytes are needed.
    NotBefore(usize),
}

/// Looks for a chain that begins in `begins`.
fn find(bytes: &[u8], begins: std::ops::Range<usize>, is_all: bool) -> Found {
    for at in begins.clone() {
        match is_chain(&bytes[at..], is_all) {
            Some(true) => return Found::Here(at),
            Some(false) => {}
            None => return Found::NotBefore(at),
        }
    }
    Found::NotBefore(begins.end)
}

/// Whether chains make up most of these bytes.
///
/// Chosen: a few packets that seem to lead from one to the next can also be what damage made of something else; a
/// `.dlf` file that has lost more than half of its bytes is not known as one.
pub(super) fn is_mostly_chains(bytes: &[u8]) -> bool {
    let (mut at, mut chained) = (0, 0);
    while at < bytes.len() {
        // An undecided place at the end hides none of the chains before it.
        let length = chain(&bytes[at..], false).unwrap_or(0);
        chained += length;
        at += length.max(1);
    }
    chained > 0 && 2 * chained >= bytes.len()
}

/// Tells what comes next where no packet follows the last one. Bytes are skipped up to the first where more bytes could show a
/// packet, also if there are no more: what a file holds does not depend on the pieces in which it comes.
fn look_for(bytes: &[u8], is_all: bool) -> Step {
    match find(bytes, 0..bytes.len(), false) {
        Found::Here(0) => Step::Packet,
        Found::NotBefore(0) if !is_all || bytes.is_empty() => Step::More,
        Found::NotBefore(0) if is_chain(bytes, true) == Some(true) => Step::Packet,
        Found::NotBefore(0) => match find(bytes, 1..bytes.len(), false) {
            Found::Here(at) | Found::NotBefore(at) => Step::Skip(at),
        },
        Found::Here(at) | Found::NotBefore(at) => Step::Skip(at),
    }
}

/// What some bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A packet.
    Packet,
    /// This many bytes that are not a packet.
    Skip(usize),
    /// A packet that is cut by the end of the file.
    Cut,
    /// Too few bytes to tell, or none.
    More,
}

/// Tells what comes next, after a packet of time `last`. `is_all`: there are no more bytes than these.
///
/// If another packet follows where a packet's length leads, its length counts. Otherwise the length may be wrong, and
/// packets that begin within the claimed bytes are preferred. If there are none, the packet counts, and bytes that are
/// not a packet follow it.
pub(super) fn step(bytes: &[u8], last: Option<Stamp>, is_all: bool) -> Step {
    let linked = |bytes: &[u8], last| Header::read(bytes).filter(|header| header.follows(last));
    let Some(header) = last.and_then(|last| linked(bytes, last)) else {
        return look_for(bytes, is_all);
    };
    let next = bytes.get(header.length..).unwrap_or_default();
    if linked(next, header.stamp).is_some() || (is_all && bytes.len() == header.length) {
        return Step::Packet;
    }
    if next.len() < HEADER && !is_all {
        return Step::More;
    }
    let claimed = header.length.min(bytes.len());
    match find(bytes, 1..claimed, is_all) {
        Found::Here(at) => Step::Skip(at),
        Found::NotBefore(at) if at < claimed => Step::More,
        Found::NotBefore(_) if bytes.len() < header.length => Step::Cut,
        Found::NotBefore(_) => Step::Packet,
    }
}

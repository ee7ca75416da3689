//! Log packets one after the other, without marks or checksums: what follows a packet tells where it begins.
//!
//! Whether a file is made of such packets is decided by headers, not by bytes: in a file that is, nearly every header that
//! can be found is where the packet before it ends. What a damaged stream or chance leads to is a few long "packets", with
//! the headers of the stream's own packets inside.

use crate::log;
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
/// Chosen: a recorded log that was switched on now and then has pauses of up to 64 days.
const LONGEST_PAUSE_NANOS: u64 = 365 * DAY_NANOS;
/// Chosen: in the recorded logs, a modem that has just begun to count sends a packet each few seconds; in their payloads, what
/// looks like the stamps of three such packets lies hours apart.
const LONGEST_COUNT_NANOS: u64 = 60_000_000_000;
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
        let is_possible = header.length >= HEADER
            && header.code.equipment() > 0
            && header.stamp.is_regular()
            && header.stamp.nanos() < DAYS * DAY_NANOS;
        is_possible.then_some(header)
    }

    /// Reads a header that can be evidence of a packet: its code is of an equipment in the field.
    fn read_possible(bytes: &[u8]) -> Option<Header> {
        Header::read(bytes).filter(|header| EQUIPMENTS.contains(&header.code.equipment()))
    }

    /// Whether it is evidence by itself.
    ///
    /// Chosen: a stamp of before the modem knew the time is mostly zeros, which are common in payloads too. There, the
    /// code must have a layout.
    fn is_evident(self) -> bool {
        self.stamp.is_set() || self.has_layout()
    }

    fn has_layout(self) -> bool {
        log::code(self.code).is_some()
    }

    /// Whether packets that begin with this header and another are two. `one` and `two` are the bytes from there on.
    ///
    /// Chosen: in a pattern that repeats, a byte or two may count on, in the time or in the payload. Such a difference does not
    /// count, unless both differ, there is no payload, or the code has a layout: few codes have one.
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

    /// Whether the packet may come some time after one of this time, in a log with pauses.
    fn is_later(self, last: Stamp) -> bool {
        let pause = self.stamp.nanos().checked_sub(last.nanos());
        last.is_set() && pause.is_some_and(|nanos| nanos < LONGEST_PAUSE_NANOS)
    }

    /// Whether this and a packet of this header before it count as evidence together: a modem that does not know the time
    /// counts on from one to the next.
    fn counts_on(self, last: Header) -> bool {
        let pause = self.stamp.nanos().checked_sub(last.stamp.nanos());
        self.stamp.nanos() < DAY_NANOS && pause.is_some_and(|nanos| nanos < LONGEST_COUNT_NANOS)
    }

    /// Whether the packet may come right after one of this time. The modem may have learned the time in between.
    fn follows(self, last: Stamp) -> bool {
        self.is_near(last) || self.is_later(last) || self.stamp.is_set() != last.is_set()
    }
}

/// What counts as packets that lead from one to the next.
#[derive(Clone, Copy, Debug)]
enum Chain {
    /// Enough packets where a packet should begin: at the begin of a file, or behind a packet.
    Begin,
    /// Enough packets behind bytes that are none; one of them is evident.
    Anywhere,
    /// As many as there are up to the end of the file.
    AtEnd,
    /// Enough packets inside what a header of this time claims as its own: one is evident, and the first is of its time
    /// or evident.
    ///
    /// Chosen: payloads hold packets of old, whole ones too; one or two that lead to the end of the file are no evidence.
    Inside(Stamp),
}

/// Whether packets that lead from one to the next begin here; `None` if more bytes are needed.
fn is_chain(bytes: &[u8], chain: Chain) -> Option<bool> {
    let mut rest = bytes;
    let mut last: Option<Header> = None;
    let mut is_evident = matches!(chain, Chain::Begin | Chain::AtEnd);
    let mut is_counting = true;
    for seen in 0..ENOUGH {
        // Two packets that lead to the end, or one that is everything there is.
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

/// Where packets begin, at this byte or after.
enum Found {
    /// At this byte.
    Here(usize),
    /// Not before this byte; more bytes are needed.
    NotBefore(usize),
}

/// Looks for a chain that begins in `begins`.
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

/// Packets that lead from one to the next, from some byte on.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Packets that end where another begins, or where the file ends.
    packets: usize,
    /// Their bytes.
    bytes: usize,
    /// Bytes of one more, which the end of the file cuts.
    cut: usize,
    /// Headers within them that could begin a packet of their time.
    strays: usize,
    /// Whether they differ. Those of a pattern that repeats do not.
    is_varied: bool,
    /// Whether they are the whole file.
    is_file: bool,
}

impl Run {
    /// Follows the packets from the start of `bytes`, unless they are none or could be chance. `is_whole`: the file
    /// ends where `bytes` do. `is_begin`: it begins where they do, and nothing else tells what it is. Otherwise, how many
    /// bytes to go on after.
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
            // One packet that is everything there is.
            1 => run.is_file && first.has_layout(),
            // Codes without a layout are common in real logs.
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

/// Headers in `bytes` that could begin packets of about this time.
fn strays(bytes: &[u8], time: Stamp) -> usize {
    let is_header = |bytes| {
        Header::read_possible(bytes).is_some_and(|header| header.is_evident() && header.is_near(time))
    };
    bytes.windows(HEADER).filter(|bytes| is_header(bytes)).count()
}

/// Whether these bytes are packets one after the other, apart from a few damaged places. `is_whole`: the file ends where
/// they do. `is_alone`: nothing else tells what the file is.
///
/// Chosen: runs of packets make up half of the bytes, or begin at the first byte; and no more headers lie elsewhere than
/// in runs.
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
                // What lies between two runs is of the time of the first.
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

/// Tells what comes next where no packet follows the last one; `begin` is what counts as packets right here. Bytes are
/// skipped up to the first where more bytes could show a packet, also if there are no more: what a file holds does not
/// depend on the pieces in which it comes.
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

/// Tells what comes next, after a packet of time `last`. `is_behind`: nothing lies between that packet, or the begin of the
/// file, and these bytes. `is_all`: there are no more bytes than these.
///
/// If another packet follows where a packet's length leads, its length counts. Otherwise the length may be wrong, and
/// packets that begin within the claimed bytes are preferred, if they are enough. If there are none, the packet counts, and
/// bytes that are not a packet follow it; or it is cut, if the file ends before.
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
            // Up to the end of the file there are too few packets.
            Found::NotBefore(at) if at < claimed => from = at + 1,
            Found::NotBefore(_) if bytes.len() < header.length => return Step::Cut,
            Found::NotBefore(_) => return Step::Packet,
        }
    }
}

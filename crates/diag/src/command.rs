//! Requests to a modem and its answers, as bodies of frames, for both endpoints of the port.
//!
//! Source: Linux drivers/char/diag/diag_masks.h and diagfwd.c, of Android's kernels

use std::fmt;

use crate::control::{Addressed, Control};
use crate::mask::{EQUIPMENTS, Mask};

mod code {
    pub const VERSION: u8 = 0x00;
    pub const PROTOCOL: u8 = 0x1C;
    pub const SUBSYSTEM: u8 = 0x4B;
    pub const EVENTS: u8 = 0x60;
    pub const LOGS: u8 = 0x73;
    pub const BUILD: u8 = 0x7C;
    pub const EVENT_MASK: u8 = 0x81;
    pub const SET_EVENT_MASK: u8 = 0x82;
}

mod operation {
    pub const OFF: u32 = 0;
    pub const ITEMS: u32 = 1;
    pub const SET: u32 = 3;
    pub const READ: u32 = 4;
}

/// Subsystem "diag", command 0x218: switches HDLC off.
const PLAIN_FRAMING: [u8; 4] = [code::SUBSYSTEM, 0x12, 0x18, 0x02];
/// Framing version in the answer to [`PLAIN_FRAMING`].
const PLAIN_VERSION: u8 = 1;
/// This crate's own command: the first subsystem id reserved for device makers, command 0.
const CONTROL: [u8; 4] = [code::SUBSYSTEM, 250, 0, 0];

/// A request from the host to the modem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Get the identity: dates and numbers of the software.
    Version,
    /// Get the identity: names of the software and of the model.
    Build,
    /// Get the version of the protocol.
    Protocol,
    /// Report all events or none.
    Events(bool),
    /// Get the event mask: the events that the modem reports.
    EventMask,
    /// Report only these events.
    SetEventMask(EventMask),
    /// Send no log packets.
    LogsOff,
    /// Get the number of items of each equipment.
    LogItems,
    /// Get the log mask of an equipment.
    LogMask(u8),
    /// Send only these log packets of the mask's equipment.
    SetLogMask(Mask),
    /// Use the plain framing, starting with the answer.
    PlainFraming,
    /// A control packet sent in-band. This request is specific to this crate: see [`control`](crate::control).
    Control(Control),
}

/// Event mask: the events that are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventMask {
    /// Number of events in the mask.
    pub count: u16,
    /// Bits of the mask: event `n` is bit `n % 8` of byte `n / 8`.
    pub bits: Vec<u8>,
}

/// An answer of the modem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Answer to [`Request::Version`].
    Version(Release),
    /// Answer to [`Request::Build`].
    Build(Build),
    /// Answer to [`Request::Protocol`].
    Protocol(u16),
    /// Answer to [`Request::Events`].
    Events,
    /// Answer to [`Request::EventMask`]; `None` if the modem cannot return the mask.
    EventMask(Option<EventMask>),
    /// Answer to [`Request::SetEventMask`].
    SetEventMask(Status),
    /// Answer to [`Request::LogsOff`].
    LogsOff(Status),
    /// Answer to [`Request::LogItems`].
    LogItems(Status, [u32; EQUIPMENTS]),
    /// Answer to [`Request::LogMask`]; `None` if the modem cannot return the mask.
    LogMask(Status, Option<Mask>),
    /// Answer to [`Request::SetLogMask`]: the mask that the modem has set.
    SetLogMask(Status, Option<Mask>),
    /// Answer to [`Request::PlainFraming`]: whether the modem accepts it.
    PlainFraming(bool),
    /// Answer to [`Request::Control`]: whether the modem accepts it. The modem does not answer a drain.
    Control(bool),
    /// Answer to any request that the modem refuses, with the bytes of that request.
    Refused(Refusal, Vec<u8>),
}

/// Status of a request about logs: 0 means success.
pub type Status = u32;

/// Dates of a modem's software.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Compile time, as `Jan 01 2024 12:00:00`.
    pub compiled: String,
    /// Release time.
    pub released: String,
    /// Directory of the software.
    pub directory: String,
}

/// Names of a modem's software.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Software version.
    pub software: String,
    /// Name of the phone's model.
    pub model: String,
}

/// Reason why a modem refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The modem does not support the command.
    Command,
    /// A parameter of the request is invalid.
    Parameters,
    /// The request is too short or too long.
    Length,
    /// The request is not allowed in the modem's current mode.
    Mode,
}

impl Refusal {
    const ALL: [(Refusal, u8); 4] = [
        (Refusal::Command, 0x13),
        (Refusal::Parameters, 0x14),
        (Refusal::Length, 0x15),
        (Refusal::Mode, 0x18),
    ];
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Command => "it does not support the command",
            Refusal::Parameters => "it does not accept the parameters",
            Refusal::Length => "it does not accept the length",
            Refusal::Mode => "not in its present mode",
        })
    }
}

impl Request {
    /// The bytes of the request.
    pub fn body(&self) -> Vec<u8> {
        match self {
            Request::Version => vec![code::VERSION],
            Request::Build => vec![code::BUILD],
            Request::Protocol => vec![code::PROTOCOL],
            Request::Events(on) => vec![code::EVENTS, u8::from(*on)],
            Request::EventMask => vec![code::EVENT_MASK],
            Request::SetEventMask(mask) => mask.write(vec![code::SET_EVENT_MASK, 0, 0, 0]),
            Request::LogsOff => logs(&[operation::OFF]),
            Request::LogItems => logs(&[operation::ITEMS]),
            Request::LogMask(equipment) => logs(&[operation::READ, u32::from(*equipment)]),
            Request::SetLogMask(mask) => {
                let mut body = logs(&[operation::SET, u32::from(mask.equipment()), mask.items()]);
                body.extend_from_slice(mask.bytes());
                body
            }
            Request::PlainFraming => PLAIN_FRAMING.to_vec(),
            Request::Control(control) => {
                let mut body = CONTROL.to_vec();
                control.write(Addressed::Peripheral, &mut body);
                body
            }
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// The reason why the modem must refuse the request.
    pub fn read(body: &[u8]) -> Result<Request, Refusal> {
        let (&command, rest) = body.split_first().ok_or(Refusal::Length)?;
        match command {
            code::VERSION => Ok(Request::Version),
            code::BUILD => Ok(Request::Build),
            code::PROTOCOL => Ok(Request::Protocol),
            code::EVENTS => match rest {
                [on @ 0..=1] => Ok(Request::Events(*on == 1)),
                [_] => Err(Refusal::Parameters),
                _ => Err(Refusal::Length),
            },
            code::EVENT_MASK => Ok(Request::EventMask),
            code::SET_EVENT_MASK => EventMask::read(rest.get(3..).unwrap_or_default())
                .map(Request::SetEventMask)
                .ok_or(Refusal::Length),
            code::LOGS => {
                let mut words = Words(rest.get(3..).ok_or(Refusal::Length)?);
                let mut word = || words.next().ok_or(Refusal::Length);
                match word()? {
                    operation::OFF => Ok(Request::LogsOff),
                    operation::ITEMS => Ok(Request::LogItems),
                    operation::READ => Ok(Request::LogMask(equipment(word()?).ok_or(Refusal::Parameters)?)),
                    operation::SET => {
                        let (equipment, items) = (equipment(word()?).ok_or(Refusal::Parameters)?, word()?);
                        Mask::read(equipment, items, words.0).map(Request::SetLogMask).ok_or(Refusal::Length)
                    }
                    _ => Err(Refusal::Parameters),
                }
            }
            _ if body == PLAIN_FRAMING => Ok(Request::PlainFraming),
            _ => {
                let control = body.strip_prefix(&CONTROL).ok_or(Refusal::Command)?;
                Control::read(control)
                    .map(|(control, _)| Request::Control(control))
                    .ok_or(Refusal::Parameters)
            }
        }
    }

    /// Whether `answer` answers this request.
    pub fn is_answered_by(&self, answer: &Answer) -> bool {
        match (self, answer) {
            (Request::Version, Answer::Version(_))
            | (Request::Build, Answer::Build(_))
            | (Request::Protocol, Answer::Protocol(_))
            | (Request::Events(_), Answer::Events)
            | (Request::EventMask, Answer::EventMask(_))
            | (Request::SetEventMask(_), Answer::SetEventMask(_))
            | (Request::LogsOff, Answer::LogsOff(_))
            | (Request::LogItems, Answer::LogItems(..))
            | (Request::PlainFraming, Answer::PlainFraming(_))
            | (Request::Control(_), Answer::Control(_)) => true,
            (Request::LogMask(equipment), Answer::LogMask(_, mask)) => {
                mask.as_ref().is_none_or(|mask| mask.equipment() == *equipment)
            }
            // A late answer to an earlier request repeats the mask of that earlier request.
            (Request::SetLogMask(asked), Answer::SetLogMask(status, mask)) => {
                mask.as_ref().is_none_or(|mask| {
                    mask.equipment() == asked.equipment() && (*status != 0 || mask.is_same(asked))
                })
            }
            (_, Answer::Refused(_, refused)) => {
                let body = self.body();
                let same = refused.len().min(body.len());
                refused[..same] == body[..same]
            }
            _ => false,
        }
    }
}

impl Answer {
    /// The bytes of the answer.
    pub fn body(&self) -> Vec<u8> {
        match self {
            Answer::Version(release) => release.write(),
            Answer::Build(build) => {
                let mut body = vec![0; 12];
                body[0] = code::BUILD;
                for text in [&build.software, &build.model] {
                    body.extend(text.bytes().filter(|&byte| byte != 0));
                    body.push(0);
                }
                body
            }
            Answer::Protocol(version) => {
                let [low, high] = version.to_le_bytes();
                vec![code::PROTOCOL, low, high]
            }
            Answer::Events => vec![code::EVENTS, 0, 0],
            Answer::EventMask(Some(mask)) => mask.write(vec![code::EVENT_MASK, 0, 0, 0]),
            Answer::EventMask(None) => vec![code::EVENT_MASK, 1, 0, 0],
            Answer::SetEventMask(status) => vec![code::SET_EVENT_MASK, *status as u8, 0, 0],
            Answer::LogsOff(status) => logs(&[operation::OFF, *status]),
            Answer::LogItems(status, items) => {
                let mut body = logs(&[operation::ITEMS, *status]);
                body.extend(items.iter().flat_map(|items| items.to_le_bytes()));
                body
            }
            Answer::LogMask(status, mask) => answered_mask(operation::READ, *status, mask.as_ref()),
            Answer::SetLogMask(status, mask) => answered_mask(operation::SET, *status, mask.as_ref()),
            Answer::PlainFraming(accepted) => {
                [&PLAIN_FRAMING[..], &[PLAIN_VERSION, u8::from(!accepted)]].concat()
            }
            Answer::Control(accepted) => [&CONTROL[..], &[u8::from(!accepted)]].concat(),
            Answer::Refused(refusal, request) => {
                let code = Refusal::ALL.iter().find(|(own, _)| own == refusal).map(|(_, code)| *code);
                let code = code.expect("the list has all refusals");
                [&[code][..], request].concat()
            }
        }
    }

    /// Reads an answer; `None` if the message is not an answer.
    pub fn read(body: &[u8]) -> Option<Answer> {
        let (&command, rest) = body.split_first()?;
        if let Some((refusal, _)) = Refusal::ALL.iter().find(|(_, code)| *code == command) {
            return Some(Answer::Refused(*refusal, rest.to_vec()));
        }
        match command {
            code::VERSION => Some(Answer::Version(Release::read(rest))),
            code::BUILD => {
                let mut texts = rest.get(11..).unwrap_or_default().split(|&byte| byte == 0).map(text);
                let mut text = || texts.next().unwrap_or_default();
                Some(Answer::Build(Build { software: text(), model: text() }))
            }
            code::PROTOCOL => match rest {
                [] => None,
                [version] => Some(Answer::Protocol(u16::from(*version))),
                [low, high, ..] => Some(Answer::Protocol(u16::from_le_bytes([*low, *high]))),
            },
            // A longer message with this command code is an event.
            code::EVENTS => (rest.len() <= 2).then_some(Answer::Events),
            code::EVENT_MASK => Some(Answer::EventMask(match rest {
                [0, _, _, mask @ ..] => EventMask::read(mask),
                _ => None,
            })),
            code::SET_EVENT_MASK => Some(Answer::SetEventMask(u32::from(*rest.first()?))),
            code::LOGS => {
                let mut words = Words(rest.get(3..)?);
                let (operation, status) = (words.next()?, words.next()?);
                let mut mask = || Mask::read(equipment(words.next()?)?, words.next()?, words.0);
                match operation {
                    operation::OFF => Some(Answer::LogsOff(status)),
                    operation::ITEMS => {
                        Some(Answer::LogItems(status, std::array::from_fn(|_| words.next().unwrap_or(0))))
                    }
                    operation::READ => Some(Answer::LogMask(status, mask())),
                    operation::SET => Some(Answer::SetLogMask(status, mask())),
                    _ => None,
                }
            }
            _ => {
                if let Some(rest) = body.strip_prefix(&PLAIN_FRAMING) {
                    return Some(Answer::PlainFraming(rest == [PLAIN_VERSION, 0]));
                }
                body.strip_prefix(&CONTROL).map(|rest| Answer::Control(rest == [0]))
            }
        }
    }
}

impl EventMask {
    /// Whether no event is reported.
    pub fn is_off(&self) -> bool {
        self.bits.iter().all(|&byte| byte == 0)
    }

    fn write(&self, mut body: Vec<u8>) -> Vec<u8> {
        body.extend(self.count.to_le_bytes());
        body.extend_from_slice(&self.bits);
        body
    }

    fn read(bytes: &[u8]) -> Option<EventMask> {
        let (count, bits) = bytes.split_first_chunk::<2>()?;
        let count = u16::from_le_bytes(*count);
        Some(EventMask { count, bits: bits.get(..usize::from(count).div_ceil(8))?.to_vec() })
    }
}

impl Release {
    /// Widths of the text fields in the answer: date and time of compilation, date and time of release, directory.
    const TEXTS: [usize; 5] = [11, 8, 11, 8, 8];
    /// Length of the numbers after the text fields in the answer (bytes).
    const NUMBERS: usize = 8;

    fn write(&self) -> Vec<u8> {
        let mut body = vec![code::VERSION];
        let date_and_time = |text: &str| {
            let (date, time) = text.split_at_checked(Self::TEXTS[0]).unwrap_or((text, ""));
            [date.to_owned(), time.trim_start().to_owned()]
        };
        let [compiled, released] = [&self.compiled, &self.released].map(|text| date_and_time(text));
        let texts = compiled.into_iter().chain(released).chain([self.directory.clone()]);
        for (text, width) in texts.zip(Self::TEXTS) {
            body.extend(text.bytes().chain(std::iter::repeat(b' ')).take(width));
        }
        body.extend([0; Self::NUMBERS]);
        body
    }

    fn read(rest: &[u8]) -> Release {
        let mut at = 0;
        let [date, time, released_date, released_time, directory] = Self::TEXTS.map(|width| {
            let bytes = rest.get(at..(at + width).min(rest.len())).unwrap_or_default();
            at += width;
            text(bytes)
        });
        let joined = |date: String, time: String| format!("{date} {time}").trim().to_owned();
        Release { compiled: joined(date, time), released: joined(released_date, released_time), directory }
    }
}

fn logs(words: &[u32]) -> Vec<u8> {
    let mut body = vec![code::LOGS, 0, 0, 0];
    body.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    body
}

fn answered_mask(operation: u32, status: Status, mask: Option<&Mask>) -> Vec<u8> {
    let mut body = logs(&[operation, status]);
    if let Some(mask) = mask {
        body.extend(u32::from(mask.equipment()).to_le_bytes());
        body.extend(mask.items().to_le_bytes());
        body.extend_from_slice(mask.bytes());
    }
    body
}

fn equipment(id: u32) -> Option<u8> {
    u8::try_from(id).ok().filter(|&id| usize::from(id) < EQUIPMENTS)
}

/// The printable ASCII characters of a text up to its first zero byte.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let readable = bytes.iter().filter(|byte| (0x20..0x7F).contains(*byte));
    readable.map(|&byte| char::from(byte)).collect::<String>().trim().to_owned()
}

/// Iterator over little-endian words of four bytes.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }
}

#[cfg(test)]
mod tests;

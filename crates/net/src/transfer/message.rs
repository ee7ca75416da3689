//! What the two sides of a transfer say to each other: frames on the connection's stream.
//!
//! ```text
//!  frame    kind 1 byte · length 4 bytes, most significant first · so many bytes
//!  kind 0   hello: version 1 byte, proof 32 bytes          first on each side
//!  kind 1   one message as a JSON object                   at most 64 KiB
//!  kind 2   bytes of a file                                at most 32 KiB
//! ```
//!
//! | push: the client sends | pull: the server sends |
//! | --- | --- |
//! | `request` → , ← `accepted` | `request` with names → , ← `accepted` |
//! | `offer` →, ← `have` | ← `offer`, `have` → |
//! | `begin`, bytes, `end` → or `skip` →, ← `stored` | ← `begin`, bytes, `end` or `skip`, `stored` → |
//!
//! Offers run ahead of what is stored by at most [`AHEAD`] files. An error is the connection's close, with a
//! [`Code`] and a sentence.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of this protocol.
pub const VERSION: u8 = 1;

/// Bytes of a file in one frame, at most.
///
/// Chosen: long enough that frames cost nothing, short enough that two hundred connections hold few bytes.
pub const MOST_DATA: usize = 32 * 1024;

/// Bytes of a message, at most.
pub const MOST_MESSAGE: usize = 64 * 1024;

/// Bytes before a frame's content.
pub const HEAD: usize = 5;

/// How many files may be on offer that are not stored.
pub const AHEAD: u64 = 64;

/// The most bytes of the text of a scheme.
pub const MOST_SCHEME: usize = 512;

/// Why a side closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// All is done.
    Fine,
    /// The other side does not know the key.
    Key,
    /// The other side broke the protocol, or speaks another version of it.
    Protocol,
    /// What was asked for is not done here.
    Refused,
    /// A file cannot be written.
    Store,
    /// A file cannot be read, or has changed.
    Source,
    /// Too much is going on; later it may work.
    Busy,
    /// A person stopped it. It can be resumed.
    Stopped,
    /// A code that this version does not know.
    Unknown(u32),
}

impl Code {
    const KNOWN: [Code; 8] = [
        Code::Fine,
        Code::Key,
        Code::Protocol,
        Code::Refused,
        Code::Store,
        Code::Source,
        Code::Busy,
        Code::Stopped,
    ];

    /// The number on the wire.
    pub fn number(self) -> u32 {
        match self {
            Code::Unknown(number) => number,
            known => Code::KNOWN.iter().position(|code| *code == known).unwrap_or_default() as u32,
        }
    }

    /// The code with this number.
    pub fn of(number: u32) -> Code {
        let known = usize::try_from(number).ok().and_then(|number| Code::KNOWN.get(number));
        known.copied().unwrap_or(Code::Unknown(number))
    }

    /// Whether the same request may succeed later.
    pub fn may_pass(self) -> bool {
        matches!(self, Code::Busy | Code::Stopped)
    }
}

/// Why a transfer cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of reason.
    pub code: Code,
    /// The reason, and what to do about it.
    pub sentence: String,
}

impl Fault {
    /// A reason.
    pub fn new(code: Code, sentence: impl Into<String>) -> Fault {
        Fault { code, sentence: sentence.into() }
    }

    /// The other side broke the protocol.
    pub fn protocol(what: impl fmt::Display) -> Fault {
        Fault::new(
            Code::Protocol,
            format!("the other side broke the protocol: {what}; is it another version?"),
        )
    }

    /// The sentence, cut to what a connection's close can carry.
    pub fn short(&self) -> &str {
        let mut end = self.sentence.len().min(400);
        while !self.sentence.is_char_boundary(end) {
            end -= 1;
        }
        &self.sentence[..end]
    }
}

/// Which way files go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the client to the server.
    Push,
    /// From the server to the client.
    Pull,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase", deny_unknown_fields)]
pub enum Message {
    /// The client's first word after the proofs.
    Request {
        /// The same for all connections of one transfer, 32 hexadecimal digits.
        transfer: String,
        /// Which way.
        way: Way,
        /// The scheme of the sending side, as users spell it.
        scheme: String,
        /// How many files come (push).
        files: u64,
        /// Their bytes, if known (push).
        bytes: Option<u64>,
        /// The files that are wanted (pull).
        names: Vec<String>,
    },
    /// The server does it.
    Accepted {
        /// How many files come.
        files: u64,
        /// Their bytes, if known.
        bytes: Option<u64>,
    },
    /// A file can come.
    Offer(Offer),
    /// What the receiving side has of it.
    Have(Have),
    /// Bytes of the file follow, from this offset on.
    Begin {
        /// Which file.
        index: u64,
        /// Where.
        offset: u64,
    },
    /// The file is as the receiving side has it.
    Skip {
        /// Which file.
        index: u64,
    },
    /// All bytes of the file that began last have been sent.
    End {
        /// How many it has in all.
        bytes: u64,
        /// Their SHA-256.
        sha256: Hash,
    },
    /// So many bytes of a stream were taken in: the sender need not hold them any longer.
    Reached {
        /// Which file.
        index: u64,
        /// From its beginning.
        bytes: u64,
    },
    /// The file is whole, its hash is right, and it survives a crash.
    Stored {
        /// Which file.
        index: u64,
    },
}

/// A file on offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Its number, from 0.
    pub index: u64,
    /// Its name in the folder.
    pub name: String,
    /// Its bytes; none if it is a stream whose end is not known.
    pub bytes: Option<u64>,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: Option<i64>,
    /// Whether it is a program.
    pub program: bool,
}

/// What a receiving side has of a file on offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Have {
    /// Its number.
    pub index: u64,
    /// So many bytes of it.
    pub bytes: u64,
    /// Their SHA-256; none if there are none.
    pub sha256: Option<Hash>,
    /// Whether that is a file of the same name and length that is complete.
    pub whole: bool,
    /// Whether such a file may be replaced, if it is another.
    pub replaceable: bool,
}

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of what a context has taken in.
    pub fn of(context: ring::digest::Context) -> Hash {
        let mut hash = [0; 32];
        hash.copy_from_slice(context.finish().as_ref());
        Hash(hash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        unhex(&text).map(Hash).ok_or_else(|| serde::de::Error::custom("a SHA-256 has 64 hexadecimal digits"))
    }
}

/// Reads hexadecimal digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let is_hex =
        text.len() == 2 * N && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(is_hex.then(|| &text[2 * place..2 * place + 2])?, 16).ok()?;
    }
    Some(bytes)
}

/// A frame that arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The other side's first word.
    Hello {
        /// The version that it speaks.
        version: u8,
        /// Its proof of knowing the key.
        proof: &'a [u8],
    },
    /// A message.
    Message(Message),
    /// Bytes of a file.
    Data(&'a [u8]),
}

/// Finds the frame at the beginning of `bytes`, and how long it is with its head; `None` if more bytes are needed.
///
/// # Errors
/// What is wrong with it, in a sentence.
pub fn parse(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, String> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let (least, most) = match head[0] {
        // A later version may say more.
        0 => (33, 1024),
        1 => (2, MOST_MESSAGE),
        2 => (1, MOST_DATA),
        kind => return Err(format!("a frame of kind {kind} came, which this version does not know")),
    };
    if !(least..=most).contains(&length) {
        return Err(format!("a frame of kind {} with {length} bytes came, which no such frame has", head[0]));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    let frame = match head[0] {
        0 => Frame::Hello { version: body[0], proof: &body[1..33] },
        1 => Frame::Message(
            serde_json::from_slice(body).map_err(|error| format!("a message cannot be read: {error}"))?,
        ),
        _ => Frame::Data(body),
    };
    Ok(Some((frame, HEAD + length)))
}

/// Appends the first frame of a side.
pub fn put_hello(out: &mut Vec<u8>, proof: &[u8; 32]) {
    out.extend_from_slice(&[0, 0, 0, 0, 33, VERSION]);
    out.extend_from_slice(proof);
}

/// Appends a message.
pub fn put(out: &mut Vec<u8>, message: &Message) {
    let body = serde_json::to_vec(message).expect("messages have text keys only");
    out.push(1);
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(&body);
}

/// Appends bytes of a file that `read` gives; it gets room for [`MOST_DATA`]. Nothing is appended if it gives none.
///
/// # Errors
/// That of `read`.
pub fn put_data<E>(out: &mut Vec<u8>, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
    let start = out.len();
    out.resize(start + HEAD + MOST_DATA, 0);
    let got = read(&mut out[start + HEAD..]);
    let length = *got.as_ref().unwrap_or(&0);
    out.truncate(if length == 0 { start } else { start + HEAD + length });
    if length > 0 {
        out[start] = 2;
        out[start + 1..start + HEAD].copy_from_slice(&(length as u32).to_be_bytes());
    }
    got
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What must hold for any bytes.
    pub fn check(bytes: &[u8]) {
        let Ok(Some((frame, length))) = parse(bytes) else { return };
        assert!(length <= bytes.len() && length <= HEAD + MOST_MESSAGE);
        if let Frame::Message(message) = frame {
            let mut again = Vec::new();
            put(&mut again, &message);
            assert_eq!(parse(&again), Ok(Some((Frame::Message(message), again.len()))));
        }
    }

    #[test]
    fn every_message_comes_back() {
        let hash = Hash([0xa5; 32]);
        let offer =
            Offer {
                index: 3, name: "手机 \"a\"".to_owned(), bytes: None, modified: Some(-1), program: true
            };
        let have = Have { index: 3, bytes: u64::MAX, sha256: Some(hash), whole: true, replaceable: false };
        let request = Message::Request {
            transfer: "ab".to_owned(),
            way: Way::Pull,
            scheme: "pbe".to_owned(),
            files: 2,
            bytes: Some(5),
            names: vec!["a".to_owned()],
        };
        let messages = [
            request,
            Message::Accepted { files: 2, bytes: None },
            Message::Offer(offer),
            Message::Have(have),
            Message::Begin { index: 1, offset: 2 },
            Message::Skip { index: 9 },
            Message::End { bytes: 7, sha256: hash },
            Message::Reached { index: 0, bytes: 1 },
            Message::Stored { index: 1 },
        ];
        let mut all = Vec::new();
        messages.iter().for_each(|message| put(&mut all, message));
        let mut rest = &all[..];
        for message in messages {
            assert!((1..10).all(|cut| parse(&rest[..cut]) == Ok(None)), "a part of a frame is none yet");
            let (frame, length) = parse(rest).unwrap().unwrap();
            assert_eq!(frame, Frame::Message(message));
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn long_frames_are_refused_before_they_are_waited_for() {
        for kind in 0..=3 {
            assert!(parse(&[kind, 0xff, 0xff, 0xff, 0xff]).is_err());
        }
        assert!(parse(&[2, 0, 0, 0, 0]).is_err(), "no empty frames: they would cost nothing to send");
    }

    #[test]
    fn codes_keep_their_numbers() {
        for number in 0..20 {
            assert_eq!(Code::of(number).number(), number);
        }
        assert_eq!((Code::of(1), Code::of(7), Code::of(8)), (Code::Key, Code::Stopped, Code::Unknown(8)));
    }
}

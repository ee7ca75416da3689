//! Wire protocol of a transfer: frames on the connection's stream.
//!
//! ```text
//!  frame    kind 1 byte · length 4 bytes, most significant first · content of this length
//!  kind 0   hello: version 1 byte, proof 32 bytes          first frame of each endpoint
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
//! At most [`AHEAD`] offered files are not stored yet. An error closes the connection with a [`Code`] and a sentence.

use std::fmt;

use airpace_core::Refused;
use airpace_core::remedy::{Remedy, explain_plainly};
use serde::{Deserialize, Serialize};

/// Version of this protocol.
pub const VERSION: u8 = 1;

/// Maximum file data per frame (bytes).
///
/// Chosen: large enough that the frame overhead is negligible, small enough that the buffers of two hundred connections
/// stay small.
pub const MAX_DATA: usize = 32 * 1024;

/// Maximum length of a message (bytes).
pub const MAX_MESSAGE: usize = 64 * 1024;

/// Length of a frame header (bytes).
pub const HEAD: usize = 5;

/// Maximum number of files that are offered and not stored yet.
pub const AHEAD: u64 = 64;

/// Maximum length of a scheme's text (bytes).
pub const MAX_SCHEME: usize = 512;

/// Reason for closing a connection, as sent to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The transfer is complete.
    Fine,
    /// The peer does not have the key.
    Key,
    /// The peer violated the protocol or uses another version of it.
    Protocol,
    /// This endpoint does not allow the request.
    Refused,
    /// A file cannot be written.
    Store,
    /// A file cannot be read, or has changed.
    Source,
    /// A temporary failure: the endpoint is overloaded, or a file or transfer is in use. A later attempt may succeed.
    Busy,
    /// A person stopped the transfer. It can be resumed.
    Stopped,
    /// A code that this version does not define.
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

    /// Number of the code on the wire.
    pub fn number(self) -> u32 {
        match self {
            Code::Unknown(number) => number,
            known => Code::KNOWN.iter().position(|code| *code == known).unwrap_or_default() as u32,
        }
    }

    /// Code with this number.
    pub fn of(number: u32) -> Code {
        let known = usize::try_from(number).ok().and_then(|number| Code::KNOWN.get(number));
        known.copied().unwrap_or(Code::Unknown(number))
    }

    /// Whether the same request may succeed later.
    pub fn may_pass(self) -> bool {
        matches!(self, Code::Busy | Code::Stopped)
    }
}

/// Error that ends a transfer or a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the error.
    pub code: Code,
    /// Reason.
    pub sentence: String,
    /// What the user can do.
    pub remedy: Option<Remedy>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.remedy.as_ref().map(|remedy| remedy as &(dyn std::error::Error + 'static))
    }
}

impl Fault {
    /// Creates an error.
    pub fn new(code: Code, sentence: impl Into<String>) -> Fault {
        Fault { code, sentence: sentence.into(), remedy: None }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn but(self, remedy: Remedy) -> Fault {
        Fault { remedy: Some(remedy), ..self }
    }

    /// Creates an error about a protocol violation by the peer.
    pub fn protocol(what: impl fmt::Display) -> Fault {
        Fault::new(
            Code::Protocol,
            format!("the other side broke the protocol: {what}; use the same version at both ends"),
        )
    }

    /// The sentence and the remedy, cut to the 400 bytes that the connection's close message carries.
    pub fn short(&self) -> String {
        let mut text = explain_plainly(self);
        let end = (0..=text.len().min(400)).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text
    }
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Files are sent from the client to the server.
    Push,
    /// Files are sent from the server to the client.
    Pull,
}

/// A message. The comments call the endpoint that sends files the sender, in both directions of transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase", deny_unknown_fields)]
pub enum Message {
    /// Client: requests a transfer, after the proofs.
    Request {
        /// Identifier that all connections of a transfer share, 32 hexadecimal digits.
        transfer: String,
        /// Direction of the transfer.
        way: Way,
        /// Congestion control scheme of the sender, in the users' notation.
        scheme: String,
        /// Number of files that the client sends (push).
        files: u64,
        /// Total number of bytes, if known (push).
        bytes: Option<u64>,
        /// Names of the requested files (pull).
        names: Vec<String>,
    },
    /// Server: accepts the request.
    Accepted {
        /// Number of files in the transfer.
        files: u64,
        /// Total number of bytes, if known.
        bytes: Option<u64>,
    },
    /// Sender: offers a file.
    Offer(Offer),
    /// Receiver: reports how much of an offered file it already has.
    Have(Have),
    /// Sender: data of the file follows, starting at this offset.
    Begin {
        /// Index of the file.
        index: u64,
        /// Offset of the first byte.
        offset: u64,
    },
    /// Sender: the receiver already has the complete file, and no data follows.
    Skip {
        /// Index of the file.
        index: u64,
    },
    /// Sender: all data of the current file has been sent.
    End {
        /// Length of the whole file.
        bytes: u64,
        /// SHA-256 of the whole file.
        sha256: Hash,
    },
    /// Receiver: this many bytes of a stream have been accepted, so the sender can release them.
    Reached {
        /// Index of the stream.
        index: u64,
        /// Number of bytes from the start of the stream.
        bytes: u64,
    },
    /// Receiver: the file is complete, its hash is correct, and it survives a crash.
    Stored {
        /// Index of the file.
        index: u64,
    },
}

/// A file that the sender offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Index of the file, from 0.
    pub index: u64,
    /// Name of the file, relative to the receiver's folder.
    pub name: String,
    /// Length in bytes; `None` for a stream of unknown length.
    pub bytes: Option<u64>,
    /// Time of the last modification, in nanoseconds since 1970.
    pub modified: Option<i64>,
    /// Whether the file is executable by its owner.
    pub program: bool,
}

/// Receiver's report on the part of an offered file that it already has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Have {
    /// Index of the file.
    pub index: u64,
    /// Number of bytes that the receiver has.
    pub bytes: u64,
    /// SHA-256 of these bytes; `None` if there are none.
    pub sha256: Option<Hash>,
    /// Whether these bytes are a complete file with the same name and length.
    pub whole: bool,
    /// Whether a complete file with other content may be replaced.
    pub replaceable: bool,
}

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Finishes a hash computation.
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

/// Parses lower-case hexadecimal digits; `None` unless there are exactly 2·`N`.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let is_hex =
        text.len() == 2 * N && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(is_hex.then(|| &text[2 * place..2 * place + 2])?, 16).ok()?;
    }
    Some(bytes)
}

/// A received frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The peer's first frame.
    Hello {
        /// Protocol version of the peer.
        version: u8,
        /// The peer's proof that it has the key.
        proof: &'a [u8],
    },
    /// A message.
    Message(Message),
    /// Data of a file.
    Data(&'a [u8]),
}

/// Parses the frame at the start of `bytes`. Returns the frame and its length including the header, or `None` if more bytes
/// are needed.
///
/// # Errors
/// A sentence about the violation.
pub fn parse(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Refused> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let (least, most) = match head[0] {
        // A later version may append fields to the hello.
        0 => (33, 1024),
        1 => (2, MAX_MESSAGE),
        2 => (1, MAX_DATA),
        kind => return Err(format!("it sent a frame of the unknown kind {kind}").into()),
    };
    if !(least..=most).contains(&length) {
        return Err(
            format!("it sent a frame of kind {} with the wrong length of {length} bytes", head[0]).into()
        );
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

/// Appends the first frame of an endpoint.
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

/// Appends a frame with the file data that `read` writes into a buffer of [`MAX_DATA`] bytes. Appends nothing if `read`
/// returns 0 or an error.
///
/// # Errors
/// The error of `read`.
pub fn put_data<E>(out: &mut Vec<u8>, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
    let start = out.len();
    out.resize(start + HEAD + MAX_DATA, 0);
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

    /// Properties that hold for arbitrary bytes.
    pub fn check(bytes: &[u8]) {
        let Ok(Some((frame, length))) = parse(bytes) else { return };
        assert!(length <= bytes.len() && length <= HEAD + MAX_MESSAGE);
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

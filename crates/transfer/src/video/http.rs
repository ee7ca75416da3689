//! Heads of HTTP/1.1 messages, parsed and composed without sockets. Only the part of HTTP that a video needs: requests without
//! content, and responses whose length the head states.
//!
//! Source: RFC 9112; RFC 9110

use std::fmt::Write;

use httparse::{EMPTY_HEADER, Header};

/// Maximum length of a head in bytes.
///
/// Chosen: the usual limit of HTTP servers for a request line with its header fields.
pub const MAX_HEAD_BYTES: usize = 8_192;

/// Maximum number of header fields.
///
/// Chosen: twice as many as browsers send.
const MAX_FIELDS: usize = 64;

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Requests head and content.
    Get,
    /// Requests the head only.
    Head,
}

/// A request without content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, with its query.
    pub path: String,
    /// Whether the connection stays open after the response.
    pub persists: bool,
}

/// Status of a response of the server.
///
/// Source: RFC 9110 §15; RFC 6585 §5 (431)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The request succeeded.
    Ok,
    /// The request is malformed.
    BadRequest,
    /// The server has nothing at this path.
    NotFound,
    /// The server knows GET and HEAD only.
    MethodNotAllowed,
    /// The server accepts no content of requests.
    ContentTooLarge,
    /// The head is too long.
    HeadTooLarge,
    /// The server has no free connection.
    Unavailable,
    /// The request has another version of HTTP.
    VersionNotSupported,
}

impl Status {
    /// The number of the status.
    pub fn code(self) -> u16 {
        self.words().0
    }

    fn words(self) -> (u16, &'static str) {
        match self {
            Status::Ok => (200, "OK"),
            Status::BadRequest => (400, "Bad Request"),
            Status::NotFound => (404, "Not Found"),
            Status::MethodNotAllowed => (405, "Method Not Allowed"),
            Status::ContentTooLarge => (413, "Content Too Large"),
            Status::HeadTooLarge => (431, "Request Header Fields Too Large"),
            Status::Unavailable => (503, "Service Unavailable"),
            Status::VersionNotSupported => (505, "HTTP Version Not Supported"),
        }
    }
}

/// Reason why a request is refused. The text is also the content of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The bytes are not a request of HTTP.
    #[error("the request is no request of HTTP/1.1: {0}")]
    Malformed(&'static str),
    /// The head is longer than [`MAX_HEAD_BYTES`], or has too many fields.
    #[error("the head of the request has more than {MAX_HEAD_BYTES} bytes or {MAX_FIELDS} fields")]
    TooLong,
    /// The version is not HTTP/1.0 or HTTP/1.1.
    #[error("this server uses HTTP/1.1 only")]
    Version,
    /// The method is neither GET nor HEAD.
    #[error("this server answers the methods GET and HEAD only")]
    Method,
    /// The request has content.
    #[error("this server accepts no request with content")]
    Content,
}

impl RequestError {
    /// The status of the response.
    pub fn status(&self) -> Status {
        match self {
            RequestError::Malformed(_) => Status::BadRequest,
            RequestError::TooLong => Status::HeadTooLarge,
            RequestError::Version => Status::VersionNotSupported,
            RequestError::Method => Status::MethodNotAllowed,
            RequestError::Content => Status::ContentTooLarge,
        }
    }
}

/// Parses the request with which `received` starts, and returns it with the length of its head. `None` if more bytes are needed.
///
/// # Errors
/// The request is refused. The connection must be closed after the response, because the start of the next request is unknown.
///
/// Source: RFC 9112 §3; RFC 9112 §6; RFC 9112 §9.3
pub fn parse_request(received: &[u8]) -> Result<Option<(Request, usize)>, RequestError> {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(received) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
        Ok(httparse::Status::Partial) if received.len() < MAX_HEAD_BYTES => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooLong),
        Err(httparse::Error::Version) => return Err(RequestError::Version),
        Err(_) => return Err(RequestError::Malformed("a line of its head has another form")),
    };
    let is_1_1 = head.version == Some(1);
    let hosts = values(head.headers, "Host").count();
    if hosts > 1 || (is_1_1 && hosts == 0) {
        return Err(RequestError::Malformed("it must have one field `Host`"));
    }
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => return Err(RequestError::Method),
    };
    let has_content = values(head.headers, "Content-Length").any(|value| value.trim_ascii() != b"0");
    if has_content || values(head.headers, "Transfer-Encoding").next().is_some() {
        return Err(RequestError::Content);
    }
    let path = head.path.and_then(path_of).ok_or(RequestError::Malformed("its target is no path"))?;
    let persists = is_1_1 && !closes(head.headers);
    Ok(Some((Request { method, path: path.to_owned(), persists }, length)))
}

/// The path of a request target: the target itself, or the part after the authority of an `http` URL.
///
/// Source: RFC 9112 §3.2.1; RFC 9112 §3.2.2
fn path_of(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return Some(target);
    }
    let (scheme, rest) = target.split_at_checked("http://".len())?;
    if !scheme.eq_ignore_ascii_case("http://") {
        return None;
    }
    Some(rest.find('/').map_or("/", |start| &rest[start..]))
}

/// Composes the request of a path.
///
/// Source: RFC 9112 §3; RFC 9110 §7.2 (Host)
pub fn compose_request(path: &str, host: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: airpace\r\nAccept: */*\r\n\r\n").into_bytes()
}

/// Composes the head of a response whose content has `length` bytes.
///
/// Source: RFC 9112 §4; RFC 9110 §8.6 (Content-Length); RFC 9111 §5.2.2.5 (no-store)
///
/// Differs: the head has no `Date`.
pub fn compose_response(status: Status, media_type: &str, length: u64, persists: bool) -> Vec<u8> {
    let (code, reason) = status.words();
    let mut head = format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n"
    );
    if status == Status::MethodNotAllowed {
        head += "Allow: GET, HEAD\r\n";
    }
    if !persists {
        head += "Connection: close\r\n";
    }
    // Writing to a string cannot fail.
    let _ = write!(head, "\r\n");
    head.into_bytes()
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The number of the status.
    pub status: u16,
    /// Length of the content in bytes; `None` if the head does not state it.
    pub length: Option<u64>,
    /// Whether the connection stays open after the response.
    pub persists: bool,
}

/// Reason why a response cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The bytes are not a response of HTTP.
    #[error("the response is no response of HTTP/1.1")]
    Malformed,
    /// The head is longer than [`MAX_HEAD_BYTES`], or has too many fields.
    #[error("the head of the response has more than {MAX_HEAD_BYTES} bytes or {MAX_FIELDS} fields")]
    TooLong,
    /// The status is not 200.
    #[error("the server answers with the status {0}")]
    Status(u16),
    /// The head has no usable `Content-Length`.
    #[error("the server does not state the length of its response (Content-Length)")]
    NoLength,
    /// The content has another length than expected.
    #[error("the response has {stated} bytes, and {expected} were expected")]
    Length {
        /// Length that the head states.
        stated: u64,
        /// Length that the client expects, or the maximum length that it accepts.
        expected: u64,
    },
    /// More bytes arrived than the head states.
    #[error("the server sends more bytes than it has stated")]
    Surplus,
}

/// Parses the head of a response with which `received` starts, and returns it with its length. `None` if more bytes are needed.
///
/// # Errors
/// The bytes are not a response, or its head is too long, or states several lengths.
///
/// Source: RFC 9112 §4; RFC 9112 §6.3; RFC 9112 §9.3
pub fn parse_response(received: &[u8]) -> Result<Option<(ResponseHead, usize)>, ResponseError> {
    let mut fields = [EMPTY_HEADER; MAX_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let length = match head.parse(received) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
        Ok(httparse::Status::Partial) if received.len() < MAX_HEAD_BYTES => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(ResponseError::TooLong),
        Err(_) => return Err(ResponseError::Malformed),
    };
    let status = head.code.ok_or(ResponseError::Malformed)?;
    let persists = head.version == Some(1) && !closes(head.headers);
    Ok(Some((ResponseHead { status, length: content_length(head.headers)?, persists }, length)))
}

/// Length of a response's content. A transfer coding has precedence, and makes the length unknown.
///
/// Source: RFC 9112 §6.3
fn content_length(fields: &[Header<'_>]) -> Result<Option<u64>, ResponseError> {
    if values(fields, "Transfer-Encoding").next().is_some() {
        return Ok(None);
    }
    let mut length = None;
    for value in values(fields, "Content-Length") {
        let value = value.trim_ascii();
        // `u64::from_str` would accept a sign.
        let digits = std::str::from_utf8(value).ok().filter(|_| value.iter().all(u8::is_ascii_digit));
        let number = digits.and_then(|digits| digits.parse().ok()).ok_or(ResponseError::Malformed)?;
        if length.is_some_and(|before: u64| before != number) {
            return Err(ResponseError::Malformed);
        }
        length = Some(number);
    }
    Ok(length)
}

/// The values of all fields with this name.
fn values<'h>(fields: &'h [Header<'_>], name: &'static str) -> impl Iterator<Item = &'h [u8]> {
    fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
}

/// Whether a field `Connection` contains the option `close`.
///
/// Source: RFC 9112 §9.6
fn closes(fields: &[Header<'_>]) -> bool {
    let mut options = values(fields, "Connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii);
    options.any(|option| option.eq_ignore_ascii_case(b"close"))
}

/// Length of a response's content that a client accepts, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedLength {
    /// Exactly this length.
    Exactly(u64),
    /// At most this length.
    UpTo(u64),
}

/// A response with the status 200, as its bytes arrive.
#[derive(Clone, Debug)]
pub struct ResponseReader {
    accepted: AcceptedLength,
    /// Received part of the head.
    received: Vec<u8>,
    /// Length of the heads of interim responses before this head.
    interim_bytes: usize,
    head: Option<ResponseHead>,
    /// Number of bytes of the content that have not arrived.
    left: u64,
}

impl ResponseReader {
    /// A response whose content must have an accepted length, before its first byte has arrived.
    pub fn new(accepted: AcceptedLength) -> ResponseReader {
        ResponseReader { accepted, received: vec![], interim_bytes: 0, head: None, left: 0 }
    }

    /// Processes received bytes, and returns those that belong to the content. Interim responses (status 1xx) are skipped.
    ///
    /// # Errors
    /// The response cannot be used.
    ///
    /// Source: RFC 9110 §15.2 (interim responses)
    pub fn push<'b>(&mut self, mut bytes: &'b [u8]) -> Result<&'b [u8], ResponseError> {
        while self.head.is_none() {
            let before = self.received.len();
            let room = MAX_HEAD_BYTES.saturating_sub(self.interim_bytes + before);
            let taken = bytes.len().min(room);
            self.received.extend_from_slice(&bytes[..taken]);
            let Some((head, length)) = parse_response(&self.received)? else {
                return if taken == room { Err(ResponseError::TooLong) } else { Ok(&[]) };
            };
            // The bytes before were no complete head, so the head ends within the new bytes.
            bytes = &bytes[length - before..];
            self.received.clear();
            if (100..200).contains(&head.status) {
                self.interim_bytes += length;
            } else {
                self.left = self.check(&head)?;
                self.head = Some(head);
            }
        }
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(ResponseError::Surplus)?;
        Ok(bytes)
    }

    /// Returns the length of the content if the response can be used.
    fn check(&self, head: &ResponseHead) -> Result<u64, ResponseError> {
        if head.status != Status::Ok.code() {
            return Err(ResponseError::Status(head.status));
        }
        let stated = head.length.ok_or(ResponseError::NoLength)?;
        match self.accepted {
            AcceptedLength::Exactly(expected) if stated != expected => {
                Err(ResponseError::Length { stated, expected })
            }
            AcceptedLength::UpTo(expected) if stated > expected => {
                Err(ResponseError::Length { stated, expected })
            }
            _ => Ok(stated),
        }
    }

    /// Whether the whole content has arrived.
    pub fn is_complete(&self) -> bool {
        self.head.is_some() && self.left == 0
    }

    /// Number of bytes of the content that have not arrived; `None` before the head has arrived.
    pub fn left(&self) -> Option<u64> {
        self.head.map(|_| self.left)
    }

    /// Whether the connection stays open after the response.
    pub fn persists(&self) -> bool {
        self.head.is_some_and(|head| head.persists)
    }
}

#[cfg(test)]
mod tests;

//! Incremental parser of a client's request to the proxy: SOCKS5 or HTTP CONNECT, distinguished by the first byte.
//!
//! Source: RFC 1928; RFC 9110 §9.3.6

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Maximum length of a request (bytes).
///
/// Chosen: the usual limit of HTTP servers for a request line with its header fields.
const MAX_REQUEST_BYTES: usize = 8_192;

/// SOCKS: protocol version, the only supported authentication method (none), and the reply for "no acceptable method".
const VERSION: u8 = 5;
const NO_PROOF: u8 = 0;
const NO_METHOD: u8 = 0xff;

/// SOCKS: command code that requests a TCP connection.
const CONNECT: u8 = 1;

/// Target of a connection that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An IP address and port.
    Address(SocketAddr),
    /// A host name that the proxy resolves, and a port.
    Name(String, u16),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Address(address) => address.fmt(f),
            Target::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// Protocol of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// SOCKS5.
    Socks,
    /// HTTP.
    Http,
}

/// Reason why a client's request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is malformed or too long.
    NotUnderstood,
    /// The request is for something other than a TCP connection.
    NoSuchThing,
    /// The proxy does not allow this target or this authentication method.
    NotAllowed,
    /// The target refused the connection.
    Refused,
    /// There is no route to the target, or its name has no address.
    Unreachable,
    /// The target did not answer in time.
    TimedOut,
    /// Any other failure.
    Failed,
}

impl Refusal {
    /// Maps the error of a connection attempt to a reason.
    pub fn of(error: &std::io::Error) -> Refusal {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::ConnectionRefused => Refusal::Refused,
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Refusal::Unreachable,
            ErrorKind::TimedOut => Refusal::TimedOut,
            _ => Refusal::Failed,
        }
    }

    /// Source: RFC 1928 §6
    fn of_socks(self) -> u8 {
        match self {
            Refusal::NotUnderstood | Refusal::Failed => 1,
            Refusal::NotAllowed => 2,
            Refusal::Unreachable | Refusal::TimedOut => 4,
            Refusal::Refused => 5,
            Refusal::NoSuchThing => 7,
        }
    }

    /// Source: RFC 9110 §15
    fn of_http(self) -> &'static str {
        match self {
            Refusal::NotUnderstood => "400 Bad Request",
            Refusal::NotAllowed => "403 Forbidden",
            Refusal::NoSuchThing => "405 Method Not Allowed",
            Refusal::Refused | Refusal::Unreachable | Refusal::Failed => "502 Bad Gateway",
            Refusal::TimedOut => "504 Gateway Timeout",
        }
    }

    /// Body of the HTTP error response, which a browser shows.
    fn in_words(self) -> &'static str {
        match self {
            Refusal::NotUnderstood => "airpace proxy does not understand this request.\n",
            Refusal::NotAllowed => "airpace proxy may not connect to this address.\n",
            Refusal::NoSuchThing => {
                "airpace proxy carries connections: ask it by CONNECT (curl --proxytunnel) or by SOCKS 5.\n"
            }
            Refusal::Refused => "The server refuses the connection.\n",
            Refusal::Unreachable => "The server cannot be reached, or its name is not known.\n",
            Refusal::Failed => "airpace proxy cannot make the connection.\n",
            Refusal::TimedOut => "The server does not answer.\n",
        }
    }
}

/// Reply to a client's request: the connection is established, or it is refused.
pub fn answer(language: Language, result: Result<(), Refusal>) -> Vec<u8> {
    match (language, result) {
        (Language::Socks, result) => {
            let code = result.err().map_or(0, Refusal::of_socks);
            // The local address of the connection to the server is left out (zeros): clients do not need it.
            vec![VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
        }
        (Language::Http, Ok(())) => b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
        (Language::Http, Err(why)) => {
            let allow = if why == Refusal::NoSuchThing { "Allow: CONNECT\r\n" } else { "" };
            let (status, said) = (why.of_http(), why.in_words());
            let length = said.len();
            format!(
                "HTTP/1.1 {status}\r\n{allow}Content-Type: text/plain\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{said}"
            )
            .into_bytes()
        }
    }
}

/// Next step of handling a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for more bytes.
    More,
    /// Send these bytes to the client, then continue.
    Say(Vec<u8>),
    /// The request is complete.
    Wants(Language, Target),
}

/// Parser state of a client's request.
#[derive(Debug, Default)]
pub struct Asking {
    came: Vec<u8>,
    has_greeted: bool,
}

impl Asking {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.came.extend_from_slice(bytes);
    }

    /// Parses the received bytes and returns the next step.
    ///
    /// # Errors
    /// The request is malformed, too long, or not for a TCP connection. The bytes are the reply to send before closing.
    pub fn step(&mut self) -> Result<Next, (Vec<u8>, Refusal)> {
        let (language, next) = match self.came.first() {
            None => return Ok(Next::More),
            Some(&VERSION) => (Language::Socks, self.socks()),
            Some(_) => (Language::Http, self.http()),
        };
        let refuse = |why| Err((answer(language, Err(why)), why));
        match next {
            Ok(Next::More) if self.came.len() > MAX_REQUEST_BYTES => refuse(Refusal::NotUnderstood),
            Ok(next) => Ok(next),
            Err(Refusal::NotAllowed) if !self.has_greeted && language == Language::Socks => {
                Err((vec![VERSION, NO_METHOD], Refusal::NotAllowed))
            }
            Err(why) => refuse(why),
        }
    }

    /// Bytes received after the request; they are for the server.
    pub fn rest(self) -> Vec<u8> {
        self.came
    }

    /// Source: RFC 1928 §3; RFC 1928 §4
    fn socks(&mut self) -> Result<Next, Refusal> {
        if !self.has_greeted {
            let Some(&count) = self.came.get(1) else { return Ok(Next::More) };
            let Some(methods) = self.came.get(2..2 + usize::from(count)) else { return Ok(Next::More) };
            if !methods.contains(&NO_PROOF) {
                return Err(Refusal::NotAllowed);
            }
            self.came.drain(..2 + usize::from(count));
            self.has_greeted = true;
            return Ok(Next::Say(vec![VERSION, NO_PROOF]));
        }
        let [_, command, _, kind, rest @ ..] = &self.came[..] else { return Ok(Next::More) };
        let (name, rest) = match kind {
            1 => (4, rest),
            4 => (16, rest),
            3 => match rest.split_first() {
                Some((&length, rest)) => (usize::from(length), rest),
                None => return Ok(Next::More),
            },
            _ => return Err(Refusal::NotUnderstood),
        };
        let Some((name, [high, low, ..])) = rest.split_at_checked(name) else { return Ok(Next::More) };
        let port = u16::from_be_bytes([*high, *low]);
        let target = match kind {
            3 => target(std::str::from_utf8(name).map_err(|_| Refusal::NotUnderstood)?, port)?,
            _ => {
                let ip = match <[u8; 4]>::try_from(name) {
                    Ok(four) => IpAddr::V4(Ipv4Addr::from(four)),
                    Err(_) => {
                        let sixteen = <[u8; 16]>::try_from(name).map_err(|_| Refusal::NotUnderstood)?;
                        IpAddr::V6(Ipv6Addr::from(sixteen))
                    }
                };
                Target::Address(SocketAddr::new(ip, port))
            }
        };
        if *command != CONNECT {
            return Err(Refusal::NoSuchThing);
        }
        let rest = rest.len() - name.len() - 2;
        self.came.drain(..self.came.len() - rest);
        Ok(Next::Wants(Language::Socks, target))
    }

    fn http(&mut self) -> Result<Next, Refusal> {
        if !self.came.iter().all(u8::is_ascii) && self.came.len() < 16 {
            return Err(Refusal::NotUnderstood);
        }
        let Some(end) = self.came.windows(4).position(|four| four == b"\r\n\r\n") else {
            // A line that does not start like an HTTP method is refused without waiting for its end.
            let line = self.came.split(|byte| *byte == b' ').next().unwrap_or_default();
            let is_word = line.iter().all(u8::is_ascii_uppercase);
            return if is_word { Ok(Next::More) } else { Err(Refusal::NotUnderstood) };
        };
        let text = std::str::from_utf8(&self.came[..end]).map_err(|_| Refusal::NotUnderstood)?;
        let mut words = text.lines().next().unwrap_or_default().split(' ');
        let (method, place, version) = (words.next(), words.next(), words.next());
        if !version.is_some_and(|version| version.starts_with("HTTP/1.")) || words.next().is_some() {
            return Err(Refusal::NotUnderstood);
        }
        if method != Some("CONNECT") {
            return Err(Refusal::NoSuchThing);
        }
        let (name, port) = place.and_then(|place| place.rsplit_once(':')).ok_or(Refusal::NotUnderstood)?;
        let port = port.parse().map_err(|_| Refusal::NotUnderstood)?;
        let target = target(name.trim_start_matches('[').trim_end_matches(']'), port)?;
        self.came.drain(..end + 4);
        Ok(Next::Wants(Language::Http, target))
    }
}

/// Parses a host, which is a name or an IP address.
fn target(name: &str, port: u16) -> Result<Target, Refusal> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(Target::Address(SocketAddr::new(ip, port)));
    }
    // Source: RFC 1035 §2.3.4; underscores are common
    let is_name = (1..=253).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if is_name { Ok(Target::Name(name.to_owned(), port)) } else { Err(Refusal::NotUnderstood) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes sent to the client, the parsed request, and the bytes received after it.
    type Asked = (Vec<u8>, Result<(Language, Target), Refusal>, Vec<u8>);

    /// Parses `bytes` in pieces of `step` bytes.
    fn ask(bytes: &[u8], step: usize) -> Asked {
        let (mut asking, mut heard) = (Asking::default(), vec![]);
        let mut pieces = bytes.chunks(step);
        while let Some(piece) = pieces.next() {
            asking.push(piece);
            loop {
                match asking.step() {
                    Ok(Next::More) => break,
                    Ok(Next::Say(said)) => heard.extend(said),
                    Ok(Next::Wants(language, target)) => {
                        pieces.for_each(|piece| asking.push(piece));
                        return (heard, Ok((language, target)), asking.rest());
                    }
                    Err((said, why)) => {
                        heard.extend(said);
                        return (heard, Err(why), vec![]);
                    }
                }
            }
        }
        (heard, Err(Refusal::Failed), vec![])
    }

    #[test]
    fn socks_and_http_ask_for_addresses_and_names() {
        let address = |text: &str| Target::Address(text.parse().unwrap());
        let name = |text: &str, port| Target::Name(text.to_owned(), port);
        let questions: [(&[u8], Language, Target); 6] = [
            (
                b"\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
                Language::Socks,
                address("127.0.0.1:80"),
            ),
            (b"\x05\x01\x00\x05\x01\x00\x03\x09a-b.c_d.e\x01\xbb", Language::Socks, name("a-b.c_d.e", 443)),
            (
                b"\x05\x01\x00\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x16",
                Language::Socks,
                address("[2001:db8::1]:22"),
            ),
            (
                b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
                Language::Http,
                name("example.org", 443),
            ),
            (b"CONNECT [2001:db8::1]:8080 HTTP/1.0\r\n\r\n", Language::Http, address("[2001:db8::1]:8080")),
            (b"CONNECT 192.0.2.1:1 HTTP/1.1\r\n\r\n", Language::Http, address("192.0.2.1:1")),
        ];
        for (bytes, language, target) in questions {
            let whole = [bytes, b"rest"].concat();
            for step in [1, 2, 3, whole.len()] {
                let (heard, got, rest) = ask(&whole, step);
                assert_eq!(got, Ok((language, target.clone())), "in steps of {step}");
                assert_eq!(rest, b"rest");
                assert_eq!(heard, if language == Language::Socks { &b"\x05\x00"[..] } else { b"" });
            }
        }
    }

    #[test]
    fn what_is_not_done_is_said_in_the_clients_language() {
        let refused = |bytes: &[u8]| {
            let (heard, got, _) = ask(bytes, bytes.len());
            (heard, got.unwrap_err())
        };
        assert_eq!(refused(b"\x05\x01\x02"), (b"\x05\xff".to_vec(), Refusal::NotAllowed), "a password");
        let (heard, why) = refused(b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50");
        assert_eq!((&heard[2..4], why), (&b"\x05\x07"[..], Refusal::NoSuchThing), "BIND");
        let (heard, why) = refused(b"GET http://example.org/ HTTP/1.1\r\n\r\n");
        assert!(heard.starts_with(b"HTTP/1.1 405 ") && why == Refusal::NoSuchThing);
        for bytes in [
            &b"CONNECT example.org HTTP/1.1\r\n\r\n"[..],
            b"CONNECT ex ample.org:1 HTTP/1.1\r\n\r\n",
            b"CONNECT /etc/passwd:1 HTTP/1.1\r\n\r\n",
            b"CONNECT a:99999 HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x02\x00",
            b"connect me",
            &[b'A'; MAX_REQUEST_BYTES + 1],
        ] {
            let (heard, why) = refused(bytes);
            assert!(heard.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&heard));
            assert_eq!(why, Refusal::NotUnderstood);
        }
    }

    proptest! {
        /// Arbitrary bytes in arbitrary pieces never cause a panic, and a valid request has the same result for every size
        /// of the pieces.
        #[test]
        fn no_bytes_do_harm(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 1..2_000),
                prop::collection::vec(any::<u8>(), 0..600).prop_map(|tail| [b"\x05\x01\x00\x05\x01\x00".to_vec(), tail].concat()),
                prop::collection::vec(any::<u8>(), 0..600).prop_map(|tail| [b"CONNECT ".to_vec(), tail].concat()),
            ],
            step in 1usize..700,
        ) {
            let (_, all_at_once, rest) = ask(&bytes, bytes.len());
            let (_, in_steps, other) = ask(&bytes, step);
            if all_at_once.is_ok() {
                prop_assert_eq!((all_at_once, rest), (in_steps, other));
            }
        }
    }
}

//! URLs of files: `https://host:port/path`.

use std::fmt;
use std::net::Ipv6Addr;

use airpace_core::{Refused, Remedy};

use super::request::{self, MAX_REQUEST_BYTES};

/// Default port of `https`.
///
/// Source: RFC 9110 §4.2.2
pub const DEFAULT_PORT: u16 = 443;

/// URL of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host name or IP address; an IPv6 address is stored without its brackets.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// Path and query as they are sent in the request: percent-encoded.
    pub path: String,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// A sentence that states the problem and the correct form.
    ///
    /// Source: RFC 3986 §3
    pub fn parse(text: &str) -> Result<Url, Refused> {
        let wrong = |why: &str| format!("`{}` is no URL of a file: {why}", airpace_core::plain::plain(text));
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(wrong("write https://HOST:PORT/PATH").into());
        };
        if !scheme.eq_ignore_ascii_case("https") {
            return Err(wrong("it must begin with https://, as QUIC is always encrypted").into());
        }
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(wrong("hq-interop has no users; remove what is before the `@`").into());
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, port) = inner.split_once(']').ok_or_else(|| wrong("the `[` is not closed"))?;
                if host.parse::<Ipv6Addr>().is_err() {
                    return Err(wrong("between the brackets there must be an address of IPv6").into());
                }
                (host, port)
            }
            None => {
                let at = authority.find(':').unwrap_or(authority.len());
                let (host, port) = authority.split_at(at);
                if port.matches(':').count() > 1 {
                    return Err(
                        wrong("write an address of IPv6 in brackets, as in https://[::1]:4433/file").into()
                    );
                }
                (host, port)
            }
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(
                wrong("the host must be a name or an address, of letters, digits, `-`, `_` and `.`").into()
            );
        }
        let port = match port {
            "" => DEFAULT_PORT,
            port => match port.strip_prefix(':').map(str::parse) {
                Some(Ok(port)) if port > 0 => port,
                _ => return Err(wrong("the port must be a number from 1 to 65535").into()),
            },
        };
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if !path.bytes().all(|byte| byte.is_ascii_graphic() || byte >= 0x80) {
            return Err(
                wrong("write a space in the path as %20, and other such characters in the same way").into()
            );
        }
        if path.len() + 6 > MAX_REQUEST_BYTES {
            return Err(wrong("the path is too long").into());
        }
        request::decode(&path).map_err(|error| wrong(&error.to_string()))?;
        Ok(Url { host: host.to_owned(), port, path })
    }

    /// Name for storing the file: the last component of the path, decoded.
    ///
    /// # Errors
    /// The last component is not a valid file name; the error is a sentence.
    pub fn file_name(&self) -> Result<String, Refused> {
        let path = self.path.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        let name = request::decode(last).map_err(|error| Refused::new(error.to_string()))?;
        match name.as_str() {
            "" => Ok("index.html".to_owned()),
            "." | ".." => {
                Err(Refused::new(format!("{self} ends in `{name}`, which is no name of a file"))
                    .but(to_stdout()))
            }
            _ if name.contains(['/', '\0']) => {
                let what = "a part with an encoded `/` or NUL, which is no name of a file";
                Err(Refused::new(format!("{self} ends in {what}")).but(to_stdout()))
            }
            _ => Ok(name),
        }
    }

    /// Whether both URLs have the same host and port.
    pub fn is_beside(&self, other: &Url) -> bool {
        self.host.eq_ignore_ascii_case(&other.host) && self.port == other.port
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = airpace_core::plain::plain(&self.path);
        match self.host.contains(':') {
            true => write!(f, "https://[{}]:{}{path}", self.host, self.port),
            false => write!(f, "https://{}:{}{path}", self.host, self.port),
        }
    }
}

/// The remedy if the name of a URL is no name of a file.
fn to_stdout() -> Remedy {
    Remedy::new("write it to standard output with").value("out", "-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> (String, u16, String) {
        let url = Url::parse(text).unwrap();
        (url.host, url.port, url.path)
    }

    #[test]
    fn a_url_has_host_port_and_path() {
        let whole = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(parsed("https://example.org/a/b%20c?d#e"), whole("example.org", 443, "/a/b%20c?d"));
        assert_eq!(parsed("HTTPS://127.0.0.1:4433"), whole("127.0.0.1", 4433, "/"));
        assert_eq!(parsed("https://[::1]:4433/x"), whole("::1", 4433, "/x"));
        assert_eq!(parsed("https://[2001:db8::7]/"), whole("2001:db8::7", 443, "/"));
        assert_eq!(parsed("https://host?q"), whole("host", 443, "/?q"));
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_remedy() {
        let cases = [
            ("example.org/a", "write https://"),
            ("http://example.org/a", "must begin with https://"),
            ("https://me@host/a", "no users"),
            ("https://::1/a", "in brackets"),
            ("https://[::1/a", "not closed"),
            ("https://[host]/a", "address of IPv6"),
            ("https:///a", "the host must be"),
            ("https://ho st/a", "the host must be"),
            ("https://host:0/a", "from 1 to 65535"),
            ("https://host:70000/a", "from 1 to 65535"),
            ("https://[::1]4433/a", "from 1 to 65535"),
            ("https://host/a b", "%20"),
            ("https://host/%4", "two hexadecimal digits"),
        ];
        for (text, part) in cases {
            let error = Url::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_file_has_the_last_part_of_the_path_as_its_name() {
        let name = |text: &str| Url::parse(text).unwrap().file_name();
        assert_eq!(name("https://h/a/b%20c?d"), Ok("b c".to_owned()));
        assert_eq!(name("https://h/a/"), Ok("index.html".to_owned()));
        for wrong in ["https://h/..", "https://h/%2e%2e", "https://h/..%2fb", "https://h/a%00"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_url_or_refused(text in "(https://)?[\\[\\]a-c0-9:@/%?# .\u{e4}]{0,40}") {
            if let Ok(url) = Url::parse(&text) {
                prop_assert_eq!(Url::parse(&url.to_string()), Ok(url.clone()));
                if let Ok(name) = url.file_name() {
                    prop_assert!(!name.contains('/') && name != ".." && name != "." && !name.is_empty());
                }
            }
        }
    }
}

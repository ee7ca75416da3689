//! The request line for a file, and the file names in it.

use crate::name;

/// Maximum length of a request with its line end (bytes).
///
/// Chosen: the maximum length of a path on Linux.
pub const MAX_REQUEST_BYTES: usize = 4096;

/// Error in a request or a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request has more than [`MAX_REQUEST_BYTES`] bytes.
    #[error("the request is longer than {MAX_REQUEST_BYTES} bytes")]
    TooLong,
    /// The request is not of the form `GET /path`.
    #[error("the request is not of the form `GET /path`")]
    Malformed,
    /// A `%` lacks its two hexadecimal digits, or the bytes are not UTF-8.
    #[error("the path has a `%` without two hexadecimal digits after it, or is no UTF-8")]
    Encoding,
    /// The path leads out of the folder, or does not name a file.
    #[error("the path names no file inside the folder")]
    Outside,
    /// The path names a hidden file, or a file that `airpace recv` has not received completely.
    #[error("hidden files and files of incomplete transfers are not served")]
    Hidden,
}

/// Formats the request for a path.
pub fn compose(path: &str) -> Vec<u8> {
    format!("GET {path}\r\n").into_bytes()
}

/// Extracts the path, still percent-encoded, from a complete request. The line end may be missing, because the end of the
/// stream marks the end of the request.
///
/// # Errors
/// The request is too long or malformed.
///
/// Source: RFC 1945 §5.1
pub fn parse(request: &[u8]) -> Result<&str, RequestError> {
    if request.len() > MAX_REQUEST_BYTES {
        return Err(RequestError::TooLong);
    }
    let line = request.strip_suffix(b"\n").unwrap_or(request);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let path = line.strip_prefix(b"GET ").ok_or(RequestError::Malformed)?;
    let is_plain = path.starts_with(b"/") && path.iter().all(|byte| byte.is_ascii_graphic() || *byte >= 0x80);
    match std::str::from_utf8(path) {
        Ok(path) if is_plain => Ok(path),
        Ok(_) => Err(RequestError::Malformed),
        Err(_) => Err(RequestError::Encoding),
    }
}

/// Converts a path into a file name: decoded components separated by `/`, without a leading `/`. No component leads
/// upwards. A path that ends in `/` names the `index.html` of that folder.
///
/// # Errors
/// The encoding is wrong, the path leads out of the folder, or the file must not be served.
///
/// Source: RFC 3986 §2.1 (percent-encoding), §3.4 (a query is no part of the path)
pub fn file_of(path: &str) -> Result<String, RequestError> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut parts = Vec::new();
    for part in path.strip_prefix('/').ok_or(RequestError::Outside)?.split('/') {
        // Each component is decoded separately. An encoded `/` or `..` would be part of a name, and such names are refused.
        let part = decode(part)?;
        if part == "." || part == ".." || part.contains(['/', '\0']) {
            return Err(RequestError::Outside);
        }
        if part.starts_with('.') || name::is_of_incomplete(&part) {
            return Err(RequestError::Hidden);
        }
        parts.push(part);
    }
    if let Some(last) = parts.last_mut().filter(|last| last.is_empty()) {
        last.push_str("index.html");
    }
    match parts.iter().any(String::is_empty) {
        true => Err(RequestError::Outside),
        false => Ok(parts.join("/")),
    }
}

/// Decodes percent-encoding: replaces each sequence such as `%41` by its byte.
///
/// # Errors
/// A `%` lacks its two hexadecimal digits, or the bytes are not UTF-8.
pub fn decode(text: &str) -> Result<String, RequestError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                match (digit(), digit()) {
                    (Some(high), Some(low)) => (high << 4 | low) as u8,
                    _ => return Err(RequestError::Encoding),
                }
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| RequestError::Encoding)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_names_its_path() {
        assert_eq!(parse(b"GET /a/b.txt\r\n"), Ok("/a/b.txt"));
        assert_eq!(parse(b"GET /a\n"), Ok("/a"));
        assert_eq!(parse(b"GET /a"), Ok("/a"), "the stream's end is enough");
        assert_eq!(parse(&compose("/x%20y")), Ok("/x%20y"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for wrong in [
            "",
            "GET",
            "GET ",
            "GET a\r\n",
            "get /a\r\n",
            "POST /a\r\n",
            "GET /a HTTP/1.0\r\n",
            "GET /a\0\r\n",
        ] {
            assert_eq!(parse(wrong.as_bytes()), Err(RequestError::Malformed), "{wrong:?}");
        }
        assert_eq!(parse(b"GET /\xff\r\n"), Err(RequestError::Encoding));
        assert_eq!(parse(&compose(&"/a".repeat(MAX_REQUEST_BYTES))), Err(RequestError::TooLong));
    }

    #[test]
    fn a_path_names_a_file_inside_the_folder() {
        assert_eq!(file_of("/a/b%20c?query#part"), Ok("a/b c".to_owned()));
        assert_eq!(file_of("/"), Ok("index.html".to_owned()));
        assert_eq!(file_of("/a/"), Ok("a/index.html".to_owned()));
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        for path in
            ["/..", "/../etc/passwd", "/a/../../b", "/%2e%2e/b", "/a/%2E./b", "/./a", "//etc/passwd", "/a//b"]
        {
            assert_eq!(file_of(path), Err(RequestError::Outside), "{path}");
        }
        for path in ["/..%2fb", "/%2fetc%2fpasswd", "/a%00b", "a", ""] {
            assert_eq!(file_of(path), Err(RequestError::Outside), "{path}");
        }
        for path in ["/%", "/%4", "/%zz", "/%ff"] {
            assert_eq!(file_of(path), Err(RequestError::Encoding), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            if let Ok(path) = parse(&bytes) {
                let again = compose(path);
                prop_assert_eq!(parse(&again), Ok(path));
            }
        }

        #[test]
        fn every_file_that_a_path_names_is_inside(path in "(/|%2[fFeE]|\\.|%00|[a-c%?]){0,12}") {
            if let Ok(name) = file_of(&path) {
                let parts: Vec<&str> = name.split('/').collect();
                let is_name = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains('\0');
                prop_assert!(parts.iter().all(is_name), "{path} names {name}");
            }
        }
    }
}

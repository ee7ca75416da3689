use proptest::prelude::*;

use super::*;

fn request(text: &str) -> Result<Option<(Request, usize)>, RequestError> {
    parse_request(text.as_bytes())
}

#[test]
fn a_request_is_complete_with_its_empty_line() {
    let text = "GET /3/17 HTTP/1.1\r\nHost: a\r\n\r\n";
    for length in 0..text.len() {
        assert_eq!(request(&text[..length]), Ok(None), "{length} bytes");
    }
    let expected = Request { method: Method::Get, path: "/3/17".to_owned(), persists: true };
    assert_eq!(request(&format!("{text}GET /next")), Ok(Some((expected.clone(), text.len()))));
    assert_eq!(
        parse_request(&compose_request("/3/17", "a")).map(|read| read.map(|(read, _)| read)),
        Ok(Some(expected))
    );
}

#[test]
fn a_connection_persists_unless_the_client_closes_it() {
    let persists = |text: &str| request(text).map(|read| read.map(|(read, _)| read.persists));
    assert_eq!(persists("GET / HTTP/1.1\r\nhost: a\r\nConnection: TE, Close\r\n\r\n"), Ok(Some(false)));
    assert_eq!(persists("GET / HTTP/1.1\r\nhost: a\r\nConnection: keep-alive\r\n\r\n"), Ok(Some(true)));
    assert_eq!(persists("HEAD / HTTP/1.0\r\n\r\n"), Ok(Some(false)));
}

#[test]
fn a_target_may_be_a_url() {
    let path = |text: &str| request(text).map(|read| read.map(|(read, _)| read.path));
    assert_eq!(path("GET http://b:80/1/2 HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(Some("/1/2".to_owned())));
    assert_eq!(path("GET HTTP://b HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(Some("/".to_owned())));
    for target in ["*", "b:443", "ftp://b/", "é1234567"] {
        let refused = path(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(matches!(refused, Err(RequestError::Malformed(_))), "{target}: {refused:?}");
    }
}

#[test]
fn a_refused_request_gets_its_status() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(MAX_HEAD_BYTES));
    let fields = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS));
    for (text, status) in [
        ("\u{16}\u{3}\u{1}", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", 413),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (&long, 431),
        (&long[..MAX_HEAD_BYTES], 431),
        (&fields, 431),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    ] {
        let refused = request(text).expect_err("it is refused");
        assert_eq!(refused.status().code(), status, "{text:?}: {refused}");
    }
}

#[test]
fn a_response_can_be_read_by_the_client() {
    let head = compose_response(Status::Ok, "text/plain", 7, true);
    let mut reader = ResponseReader::new(AcceptedLength::Exactly(7));
    let (first, rest) = head.split_at(20);
    assert_eq!(reader.push(first), Ok(&[][..]));
    assert_eq!(reader.left(), None);
    assert_eq!(reader.push(&[rest, b"con"].concat()), Ok(&b"con"[..]));
    assert_eq!((reader.left(), reader.is_complete()), (Some(4), false));
    assert_eq!(reader.push(b"tent"), Ok(&b"tent"[..]));
    assert!(reader.is_complete() && reader.persists());
    assert_eq!(reader.push(b"!"), Err(ResponseError::Surplus), "a byte too many");
}

#[test]
fn interim_responses_are_skipped_up_to_the_length_of_a_head() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
    let mut reader = ResponseReader::new(AcceptedLength::UpTo(9));
    let text = format!("{interim}{interim}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(reader.push(text.as_bytes()), Ok(&b"ok"[..]));
    assert!(reader.is_complete());
    let mut reader = ResponseReader::new(AcceptedLength::UpTo(9));
    let endless = (0..MAX_HEAD_BYTES).find_map(|_| reader.push(interim.as_bytes()).err());
    assert_eq!(endless, Some(ResponseError::TooLong));
}

#[test]
fn a_response_that_cannot_be_used_is_an_error() {
    let long = format!("HTTP/1.1 200 OK\r\na: {}", "a".repeat(MAX_HEAD_BYTES));
    for (text, error) in [
        ("SSH-2.0-OpenSSH_9.6\r\n", ResponseError::Malformed),
        ("HTTP/1.1 404 Not Found\r\n\r\n", ResponseError::Status(404)),
        ("HTTP/1.1 200 OK\r\n\r\n", ResponseError::NoLength),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n",
            ResponseError::NoLength,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", ResponseError::Length { stated: 6, expected: 7 }),
        ("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n", ResponseError::Length { stated: 8, expected: 7 }),
        ("HTTP/1.1 200 OK\r\nContent-Length: +7\r\n\r\n", ResponseError::Malformed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 8\r\n\r\n", ResponseError::Malformed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", ResponseError::Malformed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n12345678", ResponseError::Surplus),
        (&long, ResponseError::TooLong),
    ] {
        let mut reader = ResponseReader::new(AcceptedLength::Exactly(7));
        assert_eq!(reader.push(text.as_bytes()), Err(error), "{text:?}");
    }
}

proptest! {
    /// The result does not depend on the boundaries of reads.
    #[test]
    fn a_response_may_arrive_in_pieces(
        content in prop::collection::vec(any::<u8>(), 0..50),
        cuts in prop::collection::vec(1usize..40, 1..9),
    ) {
        let length = content.len() as u64;
        let bytes = [compose_response(Status::Ok, "a/b", length, false), content.clone()].concat();
        let mut reader = ResponseReader::new(AcceptedLength::UpTo(50));
        let (mut rest, mut received, mut cuts) = (&bytes[..], vec![], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, left) = rest.split_at(rest.len().min(*cuts.next().expect("a cycle")));
            received.extend_from_slice(reader.push(piece).expect("a good response"));
            rest = left;
        }
        prop_assert_eq!(received, content);
        prop_assert!(reader.is_complete() && !reader.persists());
    }
}

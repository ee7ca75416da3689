//! Properties of the parsers of untrusted HTTP messages, tested with random bytes. The same functions are a fuzz target of `fuzz/`.

#[path = "../../../fuzz/src/http.rs"]
mod http;

use proptest::prelude::*;

/// Text that resembles a head.
const HEAD: &str = "((GET|HEAD|PUT) (/|/1/2|\\*|http://a/) HTTP/1\\.[019]|HTTP/1\\.1 (1|2|4)[0-9]{1,3} [a-z]{0,3})(\r\n|\n)\
                    ((Host|Content-Length|Connection|Transfer-Encoding|a)(: |:| : )[0-9a-z,\u{e9}\u{0}]{0,6}(\r\n|\n|\r)){0,5}\
                    (\r\n|\n)?[a-z]{0,20}";

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1usize..50) {
        http::head(&bytes);
        http::response(&bytes, piece);
        http::head(&[b"GET /", &bytes[..]].concat());
        http::response(&[b"HTTP/1.1 200 OK\r\nContent-Length:", &bytes[..]].concat(), piece);
    }

    #[test]
    fn text_like_a_head(text in HEAD, piece in 1usize..50) {
        http::head(text.as_bytes());
        http::response(text.as_bytes(), piece);
    }

    #[test]
    fn good_responses(content in prop::collection::vec(any::<u8>(), 0..120), length in 0usize..120, piece in 1usize..50) {
        let head = format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        http::response(&[head.as_bytes(), &content].concat(), piece);
    }
}

//! Properties of the parser of untrusted requests, tested with random bytes. The same function is a fuzz target of `fuzz/`.

#[path = "../../../fuzz/src/hq.rs"]
mod hq;

use proptest::prelude::*;

proptest! {
    #[test]
    fn requests(path in "(/|\\.|%2[eEfF]|%00|%|[a-c?# ]|\u{e9}){0,20}", end in "(\r\n|\n|)") {
        hq::request(format!("GET /{path}{end}").as_bytes());
    }

    #[test]
    fn urls(text in "https://(\\[[0-9a-f:]{0,6}\\]|[a-c.@:0-9]{0,8})(:[0-9]{0,6})?(/|\\.|%2[eEfF]|[a-c?# \u{e9}]){0,12}") {
        hq::request(text.as_bytes());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        hq::request(&bytes);
        hq::request(&[b"GET /", &bytes[..]].concat());
    }
}

//! Properties of the parser of a transfer peer's frames, tested with random bytes. The same function is a fuzz target of
//! `fuzz/`.

#[path = "../../../fuzz/src/transfer.rs"]
mod transfer;

use proptest::prelude::*;

proptest! {
    /// Frames with a valid header, so that the random content reaches the code behind the header check.
    #[test]
    fn frames(
        frames in prop::collection::vec((0_u8..4, "\\PC{0,60}", prop::bool::ANY), 0..8),
        rest in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut bytes = Vec::new();
        for (kind, text, is_message) in frames {
            let body = match is_message {
                true => format!("{{\"say\":\"offer\",\"index\":1,\"name\":{text:?},\"bytes\":3,\"modified\":null,\"program\":true}}"),
                false => text,
            };
            bytes.push(kind);
            bytes.extend_from_slice(&(body.len() as u32).to_be_bytes());
            bytes.extend_from_slice(body.as_bytes());
        }
        bytes.extend_from_slice(&rest);
        transfer::frames(&bytes);
        transfer::frames(&rest);
    }

    #[test]
    fn names(text in "[./\\\\:a-zA-Z~ \\x00\u{e9}]{0,20}") {
        transfer::frames(text.as_bytes());
    }
}

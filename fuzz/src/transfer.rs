//! Parser of the frames that peers of a transfer send.

use airpace_transfer::message::{self, Frame};
use airpace_transfer::name::Name;

/// A stream of a transfer's frames: a parsed message is unchanged after it is written and parsed again. A file with an
/// accepted name is inside its folder.
pub fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, length))) = message::parse(rest) {
        assert!(length > 0 && length <= rest.len());
        if let Frame::Message(said) = frame {
            let mut again = Vec::new();
            message::put(&mut again, &said);
            let length = again.len();
            assert_eq!(message::parse(&again), Ok(Some((Frame::Message(said), length))));
        }
        rest = &rest[length..];
    }
    if let Ok(name) =
        std::str::from_utf8(bytes).map_err(|_| ()).and_then(|text| Name::parse(text).map_err(|_| ()))
    {
        let stays = |part| matches!(part, std::path::Component::Normal(_));
        assert!(std::path::Path::new(name.as_str()).components().all(stays));
    }
}

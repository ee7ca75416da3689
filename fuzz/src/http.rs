//! Requests that the video server receives, and responses that its client receives.

use airpace_transfer::video::description::{segment_of, segment_path};
use airpace_transfer::video::http::{
    AcceptedLength, MAX_HEAD_BYTES, ResponseReader, compose_request, parse_request, parse_response,
};

/// Maximum length of a response that the client accepts, in bytes.
const MAX_CONTENT: u64 = 100;

/// The head of a request or a response lies within the received bytes, and never waits for more than [`MAX_HEAD_BYTES`]. A path
/// is unchanged after it is written and parsed again.
pub fn head(bytes: &[u8]) {
    match parse_request(bytes) {
        Ok(Some((request, length))) => {
            assert!(length <= bytes.len().min(MAX_HEAD_BYTES));
            let text = compose_request(&request.path, "a");
            let again = parse_request(&text).ok().flatten().map(|(again, _)| again.path);
            assert!(text.len() > MAX_HEAD_BYTES || again.as_ref() == Some(&request.path));
            if let Some((representation, segment)) = segment_of(&request.path) {
                assert_eq!(segment_path(representation, segment), request.path);
            }
        }
        Ok(None) => assert!(bytes.len() < MAX_HEAD_BYTES),
        Err(error) => assert!(error.status().code() >= 400),
    }
    match parse_response(bytes) {
        Ok(Some((head, length))) => {
            assert!(length <= bytes.len().min(MAX_HEAD_BYTES) && head.status < 1_000);
        }
        Ok(None) => assert!(bytes.len() < MAX_HEAD_BYTES),
        Err(_) => {}
    }
}

/// A response has the same content, or the same error, whether its bytes arrive at once or in pieces of `piece` bytes. The
/// content is not longer than accepted.
pub fn response(bytes: &[u8], piece: usize) {
    let at_once = content(bytes, bytes.len().max(1));
    assert_eq!(content(bytes, piece.max(1)), at_once);
    assert!(at_once.is_none_or(|content| content.len() as u64 <= MAX_CONTENT));
}

/// The content of a response; `None` if it cannot be used.
fn content(bytes: &[u8], piece: usize) -> Option<Vec<u8>> {
    let mut reader = ResponseReader::new(AcceptedLength::UpTo(MAX_CONTENT));
    let mut content = vec![];
    for part in bytes.chunks(piece) {
        content.extend_from_slice(reader.push(part).ok()?);
    }
    Some(content)
}

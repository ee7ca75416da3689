//! Requests that the server of hq-interop receives, and URLs that people type.

use std::path::{Component, Path};

use airpace_transfer::hq::request;
use airpace_transfer::hq::url::Url;

/// A parsed request is unchanged after it is written and parsed again. A file that a request names is inside its
/// folder. A parsed URL can be printed and parsed again.
pub fn request(bytes: &[u8]) {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    if let Ok(path) = request::parse(bytes) {
        let again = request::compose(path);
        assert!(again.len() > request::MAX_REQUEST_BYTES || request::parse(&again) == Ok(path));
        if let Ok(name) = request::file_of(path) {
            assert!(!name.contains('\0') && Path::new(&name).components().all(is_name), "{name:?}");
            assert_eq!(Path::new(&name).components().count(), name.split('/').count(), "{name:?}");
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(url) = Url::parse(text) {
        // Characters that could control a terminal are printed in an escaped form.
        if url.path.is_ascii() {
            assert_eq!(Url::parse(&url.to_string()), Ok(url.clone()));
        }
        assert!(request::parse(&request::compose(&url.path)) == Ok(url.path.as_str()));
        if let Ok(name) = url.file_name() {
            assert!(Path::new(&name).components().all(is_name) && !name.contains('/'), "{name:?}");
        }
    }
}

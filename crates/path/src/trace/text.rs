//! Lines and fields of text files, and their display in error messages.

/// The lines that are not empty, trimmed, with their numbers. A byte-order mark is removed from the first line.
pub(super) fn lines(file: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let trimmed = file.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    (1..).zip(trimmed).filter(|(_, text)| !text.is_empty())
}

pub(super) fn fields(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    row.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// The first 40 characters of a text, for an error message.
pub(super) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(40).collect()
}

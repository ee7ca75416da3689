//! Validation of file names from the peer.
//!
//! A name is relative to the folder of `airpace recv`, with `/` between its components. This module checks the text only.
//! [`airpace_files::Inside`] checks when a file is opened that no symbolic link leads out of the folder.

use std::fmt;

use ring::digest::{SHA256, digest};

/// Suffix of the name of an incomplete file.
pub const PART: &str = ".airpace-part";

/// Suffix of the name of an incomplete file's journal.
pub const JOURNAL: &str = ".airpace-part.json";

/// Maximum length of a name component (bytes).
///
/// Source: Linux include/uapi/linux/limits.h (`NAME_MAX`)
const MAX_PART: usize = 255;

/// Length of the prefix of a long name that the name of its incomplete file keeps (bytes). The prefix is followed by `~`,
/// 32 hexadecimal digits of the name's hash and the suffix ([`JOURNAL`] is the longest).
const KEPT: usize = MAX_PART - JOURNAL.len() - 33;

/// Maximum length of a whole name (bytes).
const MAX_BYTES: usize = 1024;

/// Maximum number of components of a name, including the file itself.
const MAX_PARTS: usize = 32;

/// A valid name: it stays in its folder, has no hidden component, and is not the name of an incomplete file or its journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Reason why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The name is absolute, has a component that is empty, `.` or `..`, or contains a drive letter or a backslash.
    Leaves,
    /// The name or one of its components is too long, or it has too many components.
    Long,
    /// A component starts with a dot.
    Hidden,
    /// The name contains invisible or control characters.
    Unseen,
    /// The name has the suffix of an incomplete file or its journal.
    Ours,
}

impl Name {
    /// Validates a name.
    ///
    /// # Errors
    /// The name is not safe to use in the folder.
    pub fn parse(text: &str) -> Result<Name, NameError> {
        if text.len() > MAX_BYTES || text.split('/').count() > MAX_PARTS {
            return Err(NameError::Long);
        }
        // A Windows path must not have another meaning here than on Windows.
        let is_drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
        if is_drive || text.contains('\\') {
            return Err(NameError::Leaves);
        }
        for part in text.split('/') {
            if matches!(part, "" | "." | "..") {
                return Err(NameError::Leaves);
            }
            if part.len() > MAX_PART {
                return Err(NameError::Long);
            }
            // Programs read such files as their configuration: `.profile`, `.ssh/authorized_keys`.
            if part.starts_with('.') {
                return Err(NameError::Hidden);
            }
            if part.contains(['\n', '\t']) || airpace_core::plain::plain(part) != part {
                return Err(NameError::Unseen);
            }
            if is_of_incomplete(part) {
                return Err(NameError::Ours);
            }
        }
        Ok(Name(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name of the file while it is incomplete.
    pub fn part(&self) -> String {
        format!("{}{PART}", self.stem())
    }

    /// Name of the file's journal, which exists while the file is incomplete.
    pub fn journal(&self) -> String {
        format!("{}{JOURNAL}", self.stem())
    }

    /// Common prefix of the names of the incomplete file and its journal: the name itself, or, if a suffix would make it
    /// too long, its start and its hash.
    fn stem(&self) -> String {
        let (folders, last) = match self.0.rfind('/') {
            Some(at) => self.0.split_at(at + 1),
            None => ("", self.0.as_str()),
        };
        if last.len() + JOURNAL.len() <= MAX_PART {
            return self.0.clone();
        }
        let kept = (0..=KEPT).rev().find(|at| last.is_char_boundary(*at)).unwrap_or(0);
        let hash = digest(&SHA256, last.as_bytes());
        let digits: String = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{folders}{}~{digits}", &last[..kept])
    }
}

/// Whether a component has the suffix of an incomplete file or its journal.
pub fn is_of_incomplete(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    lower.ends_with(PART) || lower.ends_with(JOURNAL)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Leaves => "its name leads out of the folder; send it under a plain name",
            NameError::Long => {
                "its name is too long: a part may have 255 bytes, and the whole 1024 bytes in 32 parts; send it under a \
                 shorter one"
            }
            NameError::Hidden => {
                "its name begins with a dot, and programs obey such files; send it under another name"
            }
            NameError::Unseen => "its name has characters that are not shown; send it under another name",
            NameError::Ours => "its name is that of an incomplete transfer; send it under another name",
        })
    }
}

impl std::error::Error for NameError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_mean_more_than_a_file_of_the_folder_are_refused() {
        for name in ["a", "movie 2.mp4", "größe/手机.txt", "a..b", "a/b/c"] {
            assert_eq!(Name::parse(name).map(|name| name.as_str().to_owned()), Ok(name.to_owned()));
        }
        for name in
            ["", "/", "/etc/passwd", "..", "../a", "a/..", "a/../b", "a//b", "a/", ".", "./a", "C:a", "a\\b"]
        {
            assert_eq!(Name::parse(name), Err(NameError::Leaves), "{name:?}");
        }
        for name in [".bashrc", ".ssh/authorized_keys", "a/.git", "..."] {
            assert_eq!(Name::parse(name), Err(NameError::Hidden), "{name:?}");
        }
        for name in ["a\0b", "a\nb", "a\x1b[2Jb", "a\u{202e}b", "a\u{7f}"] {
            assert_eq!(Name::parse(name), Err(NameError::Unseen), "{name:?}");
        }
        for name in ["a.airpace-part", "a.airpace-part.json", "b/a.AIRPACE-PART", "a.airpace-part/b"] {
            assert_eq!(Name::parse(name), Err(NameError::Ours), "{name:?}");
        }
        for name in
            ["a".repeat(256), "a/".repeat(600) + "a", "a/".repeat(40) + "a", format!("a/{}", "ü".repeat(200))]
        {
            assert_eq!(Name::parse(&name), Err(NameError::Long), "{name:?}");
        }
    }

    #[test]
    fn a_name_may_be_as_long_as_the_file_system_allows() {
        let names =
            ["a".repeat(237), "a".repeat(255), format!("{}{}", "a".repeat(251), "🙂"), "ü".repeat(127)];
        let mut seen = std::collections::BTreeSet::new();
        for name in names.iter().flat_map(|last| [last.clone(), format!("folder/{last}")]) {
            let checked = Name::parse(&name).unwrap();
            for own in [checked.part(), checked.journal()] {
                let (folders, last) = own.rsplit_once('/').unwrap_or(("", &own));
                assert_eq!(folders, name.rsplit_once('/').map_or("", |(folders, _)| folders));
                assert!(last.len() <= 255 && is_of_incomplete(last), "{own}");
                assert!(seen.insert(own), "another name");
            }
        }
        let twins = ["b", "c"].map(|end| Name::parse(&format!("{}{end}", "a".repeat(250))).unwrap().part());
        assert_ne!(twins[0], twins[1]);
        assert_eq!(Name::parse("film").unwrap().part(), "film.airpace-part");
    }

    proptest! {
        /// Names composed of the pieces from which dangerous names are made.
        #[test]
        fn whatever_is_accepted_stays_inside(pieces in prop::collection::vec(
            prop::sample::select(vec!["..", ".", "/", "a", "\\", "C:", "\0", "~", "\n", " ", ".airpace-part", "é", "\u{2066}"]),
            0..12,
        )) {
            let text = pieces.concat();
            let Ok(name) = Name::parse(&text) else { return Ok(()) };
            let path = std::path::Path::new(name.as_str());
            let stays = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            prop_assert!(stays && path.is_relative(), "{text:?}");
            prop_assert_eq!(path.components().count(), text.split('/').count());
            prop_assert!(!text.contains(['\0', '\n', '\\']));
            prop_assert!(Name::parse(&name.part()).is_err() && Name::parse(&name.journal()).is_err());
        }
    }
}

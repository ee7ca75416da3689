//! Names of files that come from the other side.
//!
//! A name is relative to the folder of `airpace recv`, with `/` between its parts. What is checked here is the text;
//! that no link leads out of the folder is checked when a file is opened ([`airpace_files::Inside`]).

use std::fmt;

use ring::digest::{SHA256, digest};

/// End of the name of a file that is not complete.
pub const PART: &str = ".airpace-part";

/// End of the name of what is known about a file that is not complete.
pub const JOURNAL: &str = ".airpace-part.json";

/// Bytes of a part of a name.
///
/// Source: Linux include/uapi/linux/limits.h (`NAME_MAX`)
const MOST_PART: usize = 255;

/// Bytes of the beginning of a long name that the name of its incomplete file keeps. Behind it come `~`, 32 digits of the
/// name's hash and [`JOURNAL`].
const KEPT: usize = MOST_PART - JOURNAL.len() - 33;

/// Bytes of a whole name.
const MOST_BYTES: usize = 1024;

/// Folders of a name, with the file itself.
const MOST_PARTS: usize = 32;

/// A name that stays in its folder, and that is no hidden file and none of our own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It is absolute, or a part of it is empty, `.` or `..`, or it is of another system.
    Leaves,
    /// It, or one of its parts, is too long.
    Long,
    /// A part begins with a dot.
    Hidden,
    /// It has characters that are not shown.
    Unseen,
    /// It is that of an incomplete file.
    Ours,
}

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// It could name something that it must not.
    pub fn parse(text: &str) -> Result<Name, NameError> {
        if text.len() > MOST_BYTES || text.split('/').count() > MOST_PARTS {
            return Err(NameError::Long);
        }
        // A name of Windows must not mean something else here than there.
        let is_drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
        if is_drive || text.contains('\\') {
            return Err(NameError::Leaves);
        }
        for part in text.split('/') {
            if matches!(part, "" | "." | "..") {
                return Err(NameError::Leaves);
            }
            if part.len() > MOST_PART {
                return Err(NameError::Long);
            }
            // `.profile`, `.ssh/authorized_keys`: programs obey them.
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

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the file while it is not complete.
    pub fn part(&self) -> String {
        format!("{}{PART}", self.stem())
    }

    /// The name of what is known about it while it is not complete.
    pub fn journal(&self) -> String {
        format!("{}{JOURNAL}", self.stem())
    }

    /// What the names of the incomplete file and its journal begin with: the name, or the beginning and a hash of a name
    /// that is too long to get an end.
    fn stem(&self) -> String {
        let (folders, last) = match self.0.rfind('/') {
            Some(at) => self.0.split_at(at + 1),
            None => ("", self.0.as_str()),
        };
        if last.len() + JOURNAL.len() <= MOST_PART {
            return self.0.clone();
        }
        let kept = (0..=KEPT).rev().find(|at| last.is_char_boundary(*at)).unwrap_or(0);
        let hash = digest(&SHA256, last.as_bytes());
        let digits: String = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{folders}{}~{digits}", &last[..kept])
    }
}

/// Whether a part of a name is that of an incomplete file or of its journal.
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
        /// Texts of the pieces that dangerous names are made of.
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

//! How files are written and foreign ones are opened: the only place of the project that does either by a path that a
//! user or a stranger has chosen.
//!
//! | what | for | how |
//! | --- | --- | --- |
//! | [`Whole`] | what is made once | under a random name beside its own, which it gets when it is whole |
//! | [`Growing`] | what others read while it grows | in place, emptied when its first bytes come |
//! | [`open`], [`read_to_string`] | what strangers may have prepared | plain files of a bounded size, and nothing that waits |
//! | [`Place`] | telling whether two names are one file | by device and number |
//!
//! Nothing is written through a link that lies where a file is to be: it is refused, with the name that it leads to. Links
//! among the folders on the way are the user's own affair.

mod growing;
mod open;
mod place;
mod special;
mod whole;

pub use growing::Growing;
pub use open::{open, read_to_string};
pub use place::Place;
pub use whole::{Whole, replace, unfinished, write};

use std::io::{Error, ErrorKind};

/// What helps where the system does not write, as the end of a sentence; `option` is what names the file.
pub fn remedy(error: &Error, option: &str) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("make room there, or choose another disk with {option}")
        }
        _ => format!("choose a place that you may write to with {option}"),
    }
}

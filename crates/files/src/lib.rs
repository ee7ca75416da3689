//! How files are written and foreign files are opened: the only place in the project that does either with a path that
//! a user or a stranger has chosen.
//!
//! | what | for | how |
//! | --- | --- | --- |
//! | [`Whole`] | what is made once | under a random name beside its own, which it gets when it is whole |
//! | [`Growing`] | what others read while it grows | in place, emptied when its first bytes come |
//! | [`new_file`] | logs of programs in a run folder | in place; never over anything |
//! | [`unnamed`] | what would take too much memory while a program runs | without a name: it is gone with the process |
//! | [`open`], [`read_to_string`] | what strangers may have prepared | plain files of a bounded size, and nothing that waits |
//! | [`read_at_most`], [`text_at_most`] | what comes through a pipe or a decoder | of a bounded size |
//! | [`read_recording`] | recordings that users name | of a bounded size, also expanded; `-` is standard input |
//! | [`set_kernel`], [`set_process`], [`join_group`] | settings of the kernel and of this process | as the files in `/proc` that they are |
//! | [`Inside`] | names that a stranger has chosen | never out of one folder, through no link, and to no key |
//! | [`HandedOut`] | a file that a stranger gets | examined for private keys before its bytes are given |
//! | [`new_secret`], [`read_secret`] | keys | readable by their owner only |
//! | [`make_own_folder`], [`is_own_folder`] | folders whose content root trusts | no link, and nobody else may write there |
//! | [`Place`] | telling whether two names are one file | by device and number |
//!
//! If a link lies where a file is to be written, the write is refused, and the error names the link's target. Links
//! among the folders of the path are the user's own affair.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod growing;
mod handed_out;
mod inside;
mod kernel;
mod new;
mod open;
mod own;
mod place;
mod private_key;
mod recording;
mod secret;
mod special;
mod unnamed;
mod whole;
mod withheld;

pub use growing::Growing;
pub use handed_out::HandedOut;
pub use inside::{Inside, Lies, set_about};
pub use kernel::{join_group, set_kernel, set_process};
pub use new::new_file;
pub use open::{open, read_at_most, read_to_string, text_at_most};
pub use own::{is_own_folder, make_own_folder};
pub use place::Place;
pub use recording::{read_recording, recording_remedy};
pub use secret::{new_secret, read_secret};
pub use unnamed::unnamed;
pub use whole::{Whole, replace, unfinished, write};

use std::io::{Error, ErrorKind};

use rustix::io::Errno;

/// Advice for a failed write, as the end of a sentence; `option` names the option for the file.
pub fn remedy(error: &Error, option: &str) -> String {
    if let Some(remedy) = limit(error) {
        return remedy.to_owned();
    }
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("make room there, or choose another disk with {option}")
        }
        _ => format!("choose a place that you may write to with {option}"),
    }
}

/// Advice if a file was refused because too many are open, whatever its name is: as the end of a sentence.
pub fn limit(error: &Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => {
            Some("this process has as many files open as it may: raise the limit with `ulimit -n`")
        }
        Errno::NFILE => Some("the machine has as many files open as it may: end other programs"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_open_files_is_no_matter_of_the_place() {
        let of = |errno: Errno| remedy(&errno.into(), "--out");
        assert!(of(Errno::MFILE).contains("ulimit -n"));
        assert!(of(Errno::NFILE).contains("end other programs"));
        assert!(of(Errno::NOSPC).contains("make room") && of(Errno::ACCESS).contains("write to with --out"));
    }
}

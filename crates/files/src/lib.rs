//! Writing of files and opening of untrusted files: the only code in the project that does so with a path that was chosen
//! by a user or an untrusted peer.
//!
//! | item | purpose | method |
//! | --- | --- | --- |
//! | [`Whole`] | files that are written once | under a random temporary name in the same folder, renamed when complete |
//! | [`Growing`] | files that are read while they grow | in place, emptied at the first write |
//! | [`new_file`] | logs of programs in a run folder | in place; never replaces anything |
//! | [`unnamed`] | data that would take too much memory while a program runs | unnamed: removed with the process |
//! | [`open`], [`read_to_string`] | files that an untrusted user may have prepared | plain files of limited size; never blocks |
//! | [`read_at_most`], [`text_at_most`] | output of a pipe or a decoder | of limited size |
//! | [`read_recording`] | recordings that users name | of limited size, also decompressed; `-` is standard input |
//! | [`set_kernel`], [`set_process`], [`join_group`] | settings of the kernel and of this process | as the files in `/proc` |
//! | [`Inside`] | names that an untrusted peer chose | never outside of one folder, through a link, or to a key |
//! | [`HandedOut`] | files that are sent to an untrusted peer | examined for private keys before their bytes are returned |
//! | [`new_secret`], [`read_secret`] | keys | readable by their owner only |
//! | [`make_own_folder`], [`is_own_folder`] | folders whose content root trusts | no link, and not writable by others |
//! | [`record::Record`] | removal of what an installation wrote | by a list of its files, which names no others |
//! | [`Place`] | detection of two names of one file | by device and inode |
//!
//! If the path of a file to be written is a link, the write is refused, and the error contains the link's target. Links
//! among the folders of the path are permitted.

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
pub mod record;
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

use airpace_core::Remedy;
use rustix::io::Errno;

/// Returns the remedy for a failed write; `parameter` names the parameter with the file's path.
pub fn remedy(error: &Error, parameter: &str) -> Remedy {
    if let Some(remedy) = limit(error) {
        return Remedy::new(remedy);
    }
    let text = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room there, or choose another disk with",
        _ => "choose a place that you may write to with",
    };
    Remedy::new(text).parameter(parameter.to_owned())
}

/// Returns the remedy if a file was refused because too many files are open, as the end of a sentence.
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
        let of = |errno: Errno| remedy(&errno.into(), "out").to_string();
        assert!(of(Errno::MFILE).contains("ulimit -n"));
        assert!(of(Errno::NFILE).contains("end other programs"));
        assert!(of(Errno::NOSPC).contains("make room") && of(Errno::ACCESS).contains("write to with `out`"));
    }
}

//! Files that are new.

use std::fs::{File, OpenOptions};
use std::io::Result;
use std::path::Path;

/// Makes a file that was not there, in a folder of ours. It is written as it comes, so that it can be read after a crash.
///
/// # Errors
/// If something has that name already, a link too.
pub fn new_file(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

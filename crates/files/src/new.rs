//! Creation of new files.

use std::fs::{File, OpenOptions};
use std::io::Result;
use std::path::Path;

/// Creates a file that did not exist, in a trusted folder. Bytes are written directly, so that they can be read after a
/// crash.
///
/// # Errors
/// An object has that name already, possibly a link.
pub fn new_file(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

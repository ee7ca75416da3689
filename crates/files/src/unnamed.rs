//! Files without a name.

use std::fs::File;
use std::io::Result;
use std::path::Path;

/// Creates a file in this folder that only this process can access, for data that would take too much memory. The
/// operating system removes it with the process.
///
/// # Errors
/// Nothing can be created in the folder.
pub fn unnamed(folder: &Path) -> Result<File> {
    tempfile::tempfile_in(folder)
}

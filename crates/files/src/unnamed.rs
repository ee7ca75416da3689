//! Files without a name.

use std::fs::File;
use std::io::Result;
use std::path::Path;

/// A file in this folder that only this process knows, for what would take too much memory. The operating system removes it
/// with the process.
///
/// # Errors
/// If nothing can be created in the folder.
pub fn unnamed(folder: &Path) -> Result<File> {
    tempfile::tempfile_in(folder)
}

//! Files that have their name only once they are whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written as `NAME.part`, beside what may have its name already. Where it is not ended, nothing of
/// it is left.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    /// None where the name is that of a pipe or device, which is written at once.
    part: Option<PathBuf>,
    out: BufWriter<File>,
}

impl Whole {
    /// Begins the file.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(path: &Path) -> std::io::Result<Whole> {
        let is_special = path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        let part = (!is_special).then(|| {
            let mut name = path.as_os_str().to_owned();
            name.push(".part");
            PathBuf::from(name)
        });
        let out = BufWriter::new(File::create(part.as_deref().unwrap_or(path))?);
        Ok(Whole { path: path.to_owned(), part, out })
    }

    /// The name that it gets.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, in place of what had it before.
    ///
    /// # Errors
    /// If the rest cannot be written, or the name not be given.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.out.flush()?;
        if let Some(part) = &self.part {
            std::fs::rename(part, &self.path)?;
        }
        self.part = None;
        Ok(())
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Whoever gives a file up does not ask how that went.
            let _ = std::fs::remove_file(part);
        }
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_the_old_file_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let read = || std::fs::read_to_string(&path).ok();
        let begin = |text: &str| {
            let mut file = Whole::create(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        };
        let first = begin("first");
        assert_eq!(read(), None);
        first.finish().unwrap();
        drop(begin("half"));
        assert_eq!(read().as_deref(), Some("first"));
        begin("second").finish().unwrap();
        assert_eq!(read().as_deref(), Some("second"));
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn what_is_no_file_is_written_as_it_is() {
        let mut device = Whole::create(Path::new("/dev/null")).unwrap();
        device.write_all(b"gone").unwrap();
        device.finish().unwrap();
        assert!(!Path::new("/dev/null.part").exists());
    }
}

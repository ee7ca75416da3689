//! Records of completed runs in the folder `cells/` of a sweep: one line per run ([`Record`]), in append-only files.
//!
//! Every process that works on a sweep creates its own file, and appends a line when a run has ended. If the process is
//! killed, at most the last line is incomplete. Readers ignore an incomplete line, and its run is repeated. The files may
//! also contain runs of other matrices, because a run is found by its key.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use airpace_core::Remedy;
use airpace_files::{Inside, new_file};
use airpace_tables::FileError;

use super::record::{Key, Record};
use crate::error::{RunError, another_folder};

/// Name of the folder.
pub(super) const CELLS: &str = "cells";
/// Suffix of the names of the record files.
const ENDING: &str = ".log";
/// Maximum length of a line (bytes).
///
/// Chosen: several times the length for a thousand flows with their metrics.
const MAX_LINE: u64 = 1 << 22;

/// Position of a record.
#[derive(Clone, Copy)]
struct Place {
    key: Key,
    file: u32,
    offset: u64,
    bytes: u32,
}

/// Index of the records of a folder by key.
pub(super) struct Index {
    files: Vec<(PathBuf, File)>,
    /// Positions of the records, sorted by key, without duplicates.
    places: Vec<Place>,
}

impl Index {
    /// Indexes all records below the folder of a sweep.
    pub(super) fn read(root: &Path) -> Result<Index, RunError> {
        let mut index = Index { files: vec![], places: vec![] };
        for path in logs(root)? {
            index.add(path)?;
        }
        index.places.sort_by_key(|place| place.key);
        index.places.dedup_by_key(|place| place.key);
        Ok(index)
    }

    fn add(&mut self, path: PathBuf) -> Result<(), RunError> {
        let file = airpace_files::open(&path).map_err(FileError::read(&path))?;
        let mut reader = BufReader::with_capacity(1 << 16, file.try_clone().map_err(FileError::read(&path))?);
        let number = self.files.len() as u32;
        let (mut line, mut offset) = (vec![], 0_u64);
        for count in 1_u64.. {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            let bytes = read.map_err(FileError::read(&path))?;
            if line.last() != Some(&b'\n') {
                if bytes as u64 == MAX_LINE {
                    return Err(malformed(&path, format!("line {count} has more than {MAX_LINE} bytes")));
                }
                // The end of the file, or a line that its process did not complete before it was killed.
                break;
            }
            let text = std::str::from_utf8(&line).map_err(|error| error.to_string());
            // Verify the checksums of all lines before any run is executed, so that a damaged file is reported now and
            // not at the end.
            let parts = text.and_then(|text| Record::parts(text.trim_end_matches('\n')));
            let (key, _) = parts.map_err(|reason| malformed(&path, format!("line {count}: {reason}")))?;
            self.places.push(Place { key, file: number, offset, bytes: bytes as u32 });
            offset += bytes as u64;
        }
        self.files.push((path, file));
        Ok(())
    }

    fn find(&self, key: Key) -> Option<&Place> {
        let at = self.places.binary_search_by_key(&key, |place| place.key).ok()?;
        Some(&self.places[at])
    }

    /// Whether this run has a record.
    pub(super) fn has(&self, key: Key) -> bool {
        self.find(key).is_some()
    }

    /// The record of a run; `None` if there is none.
    pub(super) fn record(&self, key: Key) -> Result<Option<Record>, RunError> {
        let Some(place) = self.find(key) else { return Ok(None) };
        let (path, file) = &self.files[place.file as usize];
        let mut line = vec![0; place.bytes as usize];
        file.read_exact_at(&mut line, place.offset).map_err(FileError::read(path))?;
        let text = std::str::from_utf8(&line).map_err(|error| malformed(path, error.to_string()))?;
        let record = Record::parse(text.trim_end_matches('\n'));
        record.map(Some).map_err(|reason| malformed(path, format!("run {key}: {reason}")))
    }
}

fn malformed(path: &Path, reason: String) -> RunError {
    RunError::Damaged {
        path: path.to_owned(),
        reason,
        remedy: Remedy::new("remove this file, and its runs are made again"),
    }
}

/// Whether the folder contains record files.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn has_records(root: &Path) -> Result<bool, RunError> {
    logs(root).map(|logs| !logs.is_empty())
}

/// The record files, sorted by name.
fn logs(root: &Path) -> Result<Vec<PathBuf>, RunError> {
    let folder = root.join(CELLS);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(FileError::read(&folder))?,
    };
    let mut found = vec![];
    for entry in entries {
        let path = entry.map_err(FileError::read(&folder))?.path();
        if number_of(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn number_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(ENDING)?.parse().ok()
}

/// The record file of this process, and the lock on the sweep's folder.
pub(super) struct Log {
    root: PathBuf,
    /// The record file, which is created with the first record.
    out: Mutex<Option<Out>>,
    /// Lock on the sweep's folder, held for as long as this process works on the sweep.
    _lock: File,
}

/// The file, and the end of its last complete line (byte offset).
struct Out {
    path: PathBuf,
    file: File,
    end: u64,
}

impl Log {
    /// Locks the folder of a sweep.
    pub(super) fn claim(root: &Path) -> Result<Log, RunError> {
        let lock = Inside::open(root).and_then(|inside| inside.change(&format!("{CELLS}/lock")));
        let lock = lock.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => RunError::Busy {
                path: root.to_owned(),
                remedy: Remedy::new("wait for its end, or").and(another_folder()),
            },
            _ => FileError::write("make a file in", root)(error).into(),
        })?;
        Ok(Log { root: root.to_owned(), out: Mutex::default(), _lock: lock })
    }

    /// Appends a record.
    pub(super) fn add(&self, record: &Record) -> Result<(), RunError> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if out.is_none() {
            let last = logs(&self.root)?.iter().filter_map(|path| number_of(path)).max().unwrap_or(0);
            let path = self.root.join(CELLS).join(format!("{:04}{ENDING}", last + 1));
            let file = new_file(&path).map_err(FileError::write("make the file", &path))?;
            *out = Some(Out { path, file, end: 0 });
        }
        let Out { path, file, end } = out.as_mut().expect("it was begun");
        let line = record.line();
        if let Err(error) = file.write_all_at(line.as_bytes(), *end) {
            // The disk may be full. Truncate the incomplete line, so that the next line does not follow it.
            let _ = file.set_len(*end);
            return Err(FileError::write("write", path)(error).into());
        }
        *end += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(byte: u8) -> Record {
        Record { key: Key([byte; 16]), result: Ok(vec![]) }
    }

    #[test]
    fn records_are_found_again_whoever_wrote_them() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [[3, 1], [2, 3]] {
            let log = Log::claim(folder.path()).unwrap();
            for byte in bytes {
                log.add(&record(byte)).unwrap();
            }
        }
        let index = Index::read(folder.path()).unwrap();
        assert_eq!(index.files.len(), 2, "a file for each process");
        for byte in 1..=3 {
            assert_eq!(index.record(Key([byte; 16])).unwrap(), Some(record(byte)));
        }
        assert!(!index.has(Key([4; 16])));
        assert_eq!(index.record(Key([4; 16])).unwrap(), None);
    }

    #[test]
    fn a_torn_line_is_left_out_and_a_foreign_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::claim(folder.path()).unwrap();
        log.add(&record(1)).unwrap();
        log.add(&record(2)).unwrap();
        let path = folder.path().join("cells/0001.log");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let index = Index::read(folder.path()).unwrap();
        assert!(index.has(Key([1; 16])) && !index.has(Key([2; 16])), "the torn line's run is made again");
        fs::write(&path, "something else\n").unwrap();
        let said = Index::read(folder.path()).err().unwrap().to_string();
        assert!(said.contains("line 1: it does not begin with a key"), "{said}");
        fs::write(&path, format!("{} []\n", Key([1; 16]))).unwrap();
        let said = Index::read(folder.path()).err().unwrap().to_string();
        assert!(said.contains("checksum"), "{said}");
        fs::write(&path, [0xFF, b'\n']).unwrap();
        assert!(Index::read(folder.path()).is_err(), "no text");
    }

    #[test]
    fn two_processes_do_not_work_on_one_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let first = Log::claim(folder.path()).unwrap();
        let said = Log::claim(folder.path()).err().unwrap().to_string();
        assert!(said.contains("another sweep writes into"), "{said}");
        drop(first);
        Log::claim(folder.path()).unwrap();
    }
}

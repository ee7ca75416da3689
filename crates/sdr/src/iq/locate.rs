//! Search for the files that a name refers to.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use airpace_core::Remedy;

use super::bytes::Bytes;
use super::{Error, Format, Meta};

/// File name extensions of SigMF.
const META: &str = ".sigmf-meta";
const DATA: &str = ".sigmf-data";
const ARCHIVE: &str = ".sigmf";
const COLLECTION: &str = ".sigmf-collection";
const ZSTD: &str = ".zst";

/// Error text for a folder whose name is not the start of a recording's name.
const FOLDER: &str = "is a folder; give a file of samples";

/// Maximum size of a description, in bytes.
const MAX_META: u64 = 1 << 28;

/// Maximum length of an extension entry in an archive, in bytes.
///
/// Chosen: many times the maximum length of a path.
const MAX_EXTENSION: u64 = 1 << 16;

/// Samples that have not been read yet, and their description.
pub struct Located {
    /// Path of the file of samples, for errors.
    pub path: PathBuf,
    /// Description of the samples.
    pub meta: Meta,
    /// The bytes.
    pub bytes: Bytes,
}

/// Finds the samples and the description for a user's `path`. The path may be either file of a SigMF recording, the
/// common start of their names, an archive of both files, raw samples, or `-` for standard input. `raw` describes raw
/// samples, and overrides a description.
///
/// # Errors
/// A file is missing or cannot be read, or the format or the rate of the samples is unknown.
pub fn locate(path: &Path, raw: (Option<f64>, Option<Format>)) -> Result<Located, Error> {
    if path == Path::new("-") {
        let meta = undescribed(path, raw)?;
        let bytes = Bytes::new(None, false, || Ok(Box::new(io::stdin())));
        let bytes = if is_file(&io::stdin()) { bytes.not_live() } else { bytes };
        return Ok(Located { path: path.to_owned(), meta, bytes });
    }
    let with = |ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
    let is_name_only = !path.exists() || path.is_dir();
    let text = path.to_string_lossy();
    if let Some(stem) = text.strip_suffix(META) {
        of_meta(path, stem, raw)
    } else if text.ends_with(COLLECTION) {
        let what = "a collection has no samples of its own: give its recordings".to_owned();
        Err(Error::Archive { path: path.to_owned(), what })
    } else if text.ends_with(ARCHIVE) {
        of_archive(path, raw)
    } else if is_name_only && with(META).exists() {
        of_meta(&with(META), &text, raw)
    } else if is_name_only && with(ARCHIVE).exists() {
        of_archive(&with(ARCHIVE), raw)
    } else {
        of_data(path, raw)
    }
}

/// Returns all existing files to which `path` may refer as the name of a recording. Overwriting one of these files may
/// destroy the recording.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let text = path.to_string_lossy();
    let plain = text.strip_suffix(ZSTD).unwrap_or(&text);
    let stem = [META, DATA, ARCHIVE].iter().find_map(|ending| plain.strip_suffix(ending)).unwrap_or(plain);
    let meta = PathBuf::from(format!("{stem}{META}"));
    let packed = |path: &Path| PathBuf::from(format!("{}{ZSTD}", path.display()));
    let mut files = vec![path.to_owned(), meta.clone()];
    let mut data = vec![PathBuf::from(format!("{stem}{DATA}")), PathBuf::from(format!("{stem}{ARCHIVE}"))];
    if meta.is_file()
        && let Ok(Meta { dataset: Some(name), .. }) = read_meta(&meta, (Some(1.0), Some(Format::Ci8)))
    {
        data.push(meta.with_file_name(name));
    }
    files.extend(data.iter().map(|path| packed(path)));
    files.extend(data);
    files.retain(|file| file.exists());
    files
}

/// The remedy if nothing describes samples.
fn rate_and_format() -> Remedy {
    Remedy::new("give")
        .parameter("rate")
        .text("(samples per second) and")
        .parameter("format")
        .text(format!("({})", Format::NAMES))
}

/// Returns the description of samples without a description file.
fn undescribed(path: &Path, raw: (Option<f64>, Option<Format>)) -> Result<Meta, Error> {
    match raw {
        (Some(rate), Some(format)) => Ok(Meta::raw(format, rate)),
        _ if path.is_dir() => Err(Error::Io { path: path.to_owned(), cause: io::Error::other(FOLDER) }),
        _ if path.metadata().is_ok_and(|about| about.is_file() && about.len() == 0) => Err(Error::Io {
            path: path.to_owned(),
            cause: io::Error::other("is empty: there are no samples in it"),
        }),
        _ => Err(Error::Undescribed { path: path.to_owned(), remedy: rate_and_format() }),
    }
}

/// Finds the samples for a description, whose name is `stem` and an extension.
fn of_meta(path: &Path, stem: &str, raw: (Option<f64>, Option<Format>)) -> Result<Located, Error> {
    let meta = read_meta(path, raw)?;
    let plain = match &meta.dataset {
        Some(name) => path.with_file_name(name),
        None => PathBuf::from(format!("{stem}{DATA}")),
    };
    let packed = PathBuf::from(format!("{}{ZSTD}", plain.display()));
    let data = if !plain.exists() && packed.exists() { packed } else { plain };
    if !data.exists() {
        return Err(Error::NoData { meta: path.to_owned(), data });
    }
    Ok(Located { bytes: of_file(&data)?, path: data, meta })
}

/// Finds the description for a file of samples.
fn of_data(path: &Path, raw: (Option<f64>, Option<Format>)) -> Result<Located, Error> {
    std::fs::metadata(path).map_err(Error::io(path))?;
    let text = path.to_string_lossy();
    let stem = text.strip_suffix(ZSTD).unwrap_or(&text).strip_suffix(DATA);
    let described = stem.map(|stem| PathBuf::from(format!("{stem}{META}")));
    let meta = match described {
        Some(meta) if meta.exists() => read_meta(&meta, raw)?,
        Some(meta) => undescribed(path, raw).map_err(|_| {
            let remedy = Remedy::new("to read it as raw samples, give")
                .parameter("rate")
                .text("and")
                .parameter("format");
            Error::NoMeta { path: path.to_owned(), meta, remedy }
        })?,
        None => undescribed(path, raw)?,
    };
    Ok(Located { path: path.to_owned(), meta, bytes: of_file(path)? })
}

fn read_meta(path: &Path, raw: (Option<f64>, Option<Format>)) -> Result<Meta, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    parse_meta(path, file, raw)
}

fn parse_meta(path: &Path, source: impl Read, raw: (Option<f64>, Option<Format>)) -> Result<Meta, Error> {
    let mut text = vec![];
    source.take(MAX_META).read_to_end(&mut text).map_err(Error::io(path))?;
    Meta::parse_but(path, &text, raw)
}

/// Opens a file at once, so that errors are detected now. A pipe is opened at its first read, because opening it blocks
/// until a program writes.
fn of_file(path: &Path) -> Result<Bytes, Error> {
    let about = path.metadata().map_err(Error::io(path))?;
    if about.is_dir() {
        let cause = io::Error::other(FOLDER);
        return Err(Error::Io { path: path.to_owned(), cause });
    }
    let is_packed = path.to_string_lossy().ends_with(ZSTD);
    if !about.is_file() {
        let path = path.to_owned();
        return Ok(Bytes::new(None, is_packed, move || Ok(Box::new(File::open(path)?))));
    }
    let file = File::open(path).map_err(Error::io(path))?;
    Ok(Bytes::new(Some(about.len()), is_packed, || Ok(Box::new(file))))
}

/// Returns whether an open descriptor is a file, and not a pipe, socket or device.
fn is_file(open: &impl AsFd) -> bool {
    let file = open.as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|file| file.metadata()).is_ok_and(|of_file| of_file.is_file())
}

/// Finds the only recording of an archive, and reads it inside the archive.
///
/// Source: SigMF specification, "SigMF Archives": a tar file with a folder for each recording
fn of_archive(path: &Path, raw: (Option<f64>, Option<Format>)) -> Result<Located, Error> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let (mut meta, mut data) = (None, None);
    let mut extension = Extension::default();
    let mut at = 0;
    loop {
        file.seek(SeekFrom::Start(at)).map_err(Error::io(path))?;
        let mut archive = tar::Archive::new(&file);
        // Read all entries as stored, one by one. This function itself parses extension entries, which apply to the
        // next entry, up to a maximum length.
        let mut entries = archive.entries().map_err(Error::io(path))?.raw(true);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(Error::io(path))?;
        let first = at + entry.raw_file_position();
        let is_extension = Extension::is_in(&entry);
        let count = if is_extension { entry.size() } else { extension.size.unwrap_or(entry.size()) };
        at = first.saturating_add(count).checked_next_multiple_of(512).unwrap_or(u64::MAX);
        if is_extension {
            extension.read(path, &mut entry)?;
            continue;
        }
        let Extension { name, .. } = std::mem::take(&mut extension);
        let name = match name {
            Some(name) => name,
            None => entry.path().map_err(Error::io(path))?.into_owned(),
        };
        let text = name.to_string_lossy().into_owned();
        let within = path.join(&name);
        let is_second = if text.ends_with(META) {
            meta.replace(parse_meta(&within, entry, raw)?).is_some()
        } else if text.ends_with(DATA) || text.ends_with(&format!("{DATA}{ZSTD}")) {
            data.replace((within, (first, count))).is_some()
        } else {
            false
        };
        if is_second {
            let what =
                "the archive holds several recordings: unpack it with `tar xf` and give them one by one";
            return Err(Error::Archive { path: path.to_owned(), what: what.to_owned() });
        }
    }
    let Some((meta, (data, (first, count)))) = meta.zip(data) else {
        let what = format!("the archive holds no recording, that is, no pair of *{META} and *{DATA}");
        return Err(Error::Archive { path: path.to_owned(), what });
    };
    file.seek(SeekFrom::Start(first)).map_err(Error::io(path))?;
    let is_packed = data.to_string_lossy().ends_with(ZSTD);
    let bytes = Bytes::new(Some(count), is_packed, move || Ok(Box::new(file.take(count))));
    Ok(Located { path: data, meta, bytes })
}

/// Fields of an extension entry of an archive. They apply to the next entry, whose own header has no space for these
/// values.
///
/// Source: IEEE 2018, POSIX.1-2017, `pax`, "pax Extended Header"; GNU 2021, tar 1.34, type `L`
#[derive(Default)]
struct Extension {
    name: Option<PathBuf>,
    size: Option<u64>,
}

impl Extension {
    fn is_in(entry: &tar::Entry<'_, &File>) -> bool {
        let kind = entry.header().entry_type();
        kind.is_pax_local_extensions() || kind.is_gnu_longname()
    }

    fn read(&mut self, path: &Path, entry: &mut tar::Entry<'_, &File>) -> Result<(), Error> {
        if entry.size() > MAX_EXTENSION {
            let what =
                format!("the archive has an entry's name of {} bytes: unpack it with `tar xf`", entry.size());
            return Err(Error::Archive { path: path.to_owned(), what });
        }
        let is_pax = entry.header().entry_type().is_pax_local_extensions();
        let mut bytes = vec![];
        entry.take(MAX_EXTENSION).read_to_end(&mut bytes).map_err(Error::io(path))?;
        if !is_pax {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            self.name = Some(OsStr::from_bytes(&bytes[..end]).into());
            return Ok(());
        }
        for record in tar::PaxExtensions::new(&bytes) {
            let record = record.map_err(Error::io(path))?;
            match record.key_bytes() {
                b"path" => self.name = Some(OsStr::from_bytes(record.value_bytes()).into()),
                b"size" => self.size = record.value().ok().and_then(|size| size.parse().ok()),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::remedy::explain_plainly;

    use super::super::{Piece, Reader, Writer};
    use super::*;
    use airpace_phy::Complex32;

    fn samples() -> Vec<Complex32> {
        (0..20_000).map(|at| Complex32::new((at % 100) as f32 / 100.0, -((at % 7) as f32) / 7.0)).collect()
    }

    fn read_all(path: &Path) -> Vec<Complex32> {
        let mut reader = Reader::open(path, (None, None)).unwrap_or_else(|error| panic!("{error}"));
        let mut all = vec![];
        while let Piece::Samples(_) = reader.read(&mut all).unwrap() {}
        all
    }

    /// Creates `cell.sigmf-data` and `cell.sigmf-meta` in a new folder.
    fn recorded() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut writer =
            Writer::create(&folder.path().join("cell"), Meta::raw(Format::Cf32, 1.92e6)).unwrap();
        writer.write(&samples()).unwrap();
        writer.finish().unwrap();
        folder
    }

    fn refused(path: &Path) -> String {
        explain_plainly(&Reader::open(path, (None, None)).unwrap_err())
    }

    #[test]
    fn a_recording_has_many_names() {
        let folder = recorded();
        let path = |name: &str| folder.path().join(name);
        for name in ["cell", "cell.sigmf-meta", "cell.sigmf-data"] {
            assert_eq!(read_all(&path(name)), samples(), "{name}");
        }
        // Create a folder with the same name as the recording, as an unpacked archive contains.
        std::fs::create_dir(path("cell")).unwrap();
        assert_eq!(read_all(&path("cell")), samples());

        let packed = zstd::encode_all(&std::fs::read(path("cell.sigmf-data")).unwrap()[..], 1).unwrap();
        std::fs::write(path("cell.sigmf-data.zst"), packed).unwrap();
        std::fs::remove_file(path("cell.sigmf-data")).unwrap();
        for name in ["cell", "cell.sigmf-meta", "cell.sigmf-data.zst"] {
            assert_eq!(read_all(&path(name)), samples(), "{name}");
        }
    }

    #[test]
    fn an_archive_of_one_recording_is_one() {
        let folder = recorded();
        let path = |name: &str| folder.path().join(name);
        let archive = |name: &str, holds: &[&str]| {
            let mut archive = tar::Builder::new(File::create(path(name)).unwrap());
            for (at, file) in holds.iter().enumerate() {
                archive.append_path_with_name(path(file), format!("cell{}/{file}", at / 2)).unwrap();
            }
            archive.finish().unwrap();
        };
        archive("all.sigmf", &["cell.sigmf-data", "cell.sigmf-meta"]);
        for name in ["all.sigmf", "all"] {
            assert_eq!(read_all(&path(name)), samples(), "{name}");
        }
        archive("two.sigmf", &["cell.sigmf-data", "cell.sigmf-meta", "cell.sigmf-meta"]);
        assert!(refused(&path("two.sigmf")).contains("two.sigmf: the archive holds several"));
        archive("half.sigmf", &["cell.sigmf-data"]);
        // Test names of more than a hundred bytes, in both forms of extension entries, and a name whose declared length
        // is that of the whole archive.
        let long = "n".repeat(300);
        let mut gnu = tar::Builder::new(File::create(path("long.sigmf")).unwrap());
        for end in ["data", "meta"] {
            let name = format!("{long}/cell.sigmf-{end}");
            gnu.append_path_with_name(path(&format!("cell.sigmf-{end}")), name).unwrap();
        }
        gnu.finish().unwrap();
        assert_eq!(read_all(&path("long.sigmf")), samples());
        let mut pax = tar::Builder::new(File::create(path("pax.sigmf")).unwrap());
        for end in ["data", "meta"] {
            let (name, file) = (format!("{long}/cell.sigmf-{end}"), format!("cell.sigmf-{end}"));
            let size = std::fs::metadata(path(&file)).unwrap().len().to_string();
            let records = [("path", name.as_bytes()), ("size", size.as_bytes())];
            pax.append_pax_extensions(records).unwrap();
            pax.append_path_with_name(path(&file), end).unwrap();
        }
        pax.finish().unwrap();
        assert_eq!(read_all(&path("pax.sigmf")), samples());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::GNULongName);
        header.set_size(1 << 40);
        header.set_cksum();
        std::fs::write(path("endless.sigmf"), header.as_bytes()).unwrap();
        assert!(refused(&path("endless.sigmf")).contains("an entry's name of 1099511627776 bytes"));
        assert!(refused(&path("half.sigmf")).contains("no recording"));
        std::fs::write(path("none.sigmf"), vec![7; 2000]).unwrap();
        assert!(refused(&path("none.sigmf")).contains("none.sigmf: "));
    }

    #[test]
    fn a_description_may_name_its_samples() {
        let folder = recorded();
        let path = |name: &str| folder.path().join(name);
        std::fs::rename(path("cell.sigmf-data"), path("cell.iq")).unwrap();
        assert!(refused(&path("cell.sigmf-meta")).contains("there is no"));
        let of = |dataset: &str| {
            let text = format!(
                r#"{{"global": {{"core:datatype": "cf32_le", "core:sample_rate": 1.92e6, "core:dataset": "{dataset}"}}}}"#
            );
            std::fs::write(path("cell.sigmf-meta"), text).unwrap();
        };
        of("cell.iq");
        assert_eq!(read_all(&path("cell")), samples());
        of("../cell.iq");
        assert!(refused(&path("cell")).contains("core:dataset"));
        of("other.iq");
        assert!(refused(&path("cell")).contains("other.iq"));
    }

    #[test]
    fn what_nobody_describes_is_refused_with_what_to_give() {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join("a.bin");
        std::fs::write(&raw, [0; 16]).unwrap();
        assert!(refused(&raw).contains("give `rate`"), "{}", refused(&raw));
        let lonely = folder.path().join("b.sigmf-data");
        std::fs::write(&lonely, [0; 16]).unwrap();
        assert!(refused(&lonely).contains("b.sigmf-meta"));
        let given = (Some(1e6), Some(Format::Ci8));
        for path in [&raw, &lonely] {
            let (mut reader, mut all) = (Reader::open(path, given).unwrap(), vec![]);
            while let Piece::Samples(_) = reader.read(&mut all).unwrap() {}
            assert_eq!(all.len(), 8);
        }
        std::fs::write(folder.path().join("d.raw"), "").unwrap();
        assert!(refused(&folder.path().join("d.raw")).contains("is empty"));
        assert!(refused(folder.path()).contains("is a folder"));
        let folder_error = Reader::open(folder.path(), given).unwrap_err();
        assert!(folder_error.to_string().contains("is a folder"), "{folder_error}");
        assert!(refused(&folder.path().join("c.sigmf-collection")).contains("its recordings"));
    }

    #[test]
    fn what_is_given_wins_over_the_description() {
        let folder = recorded();
        let meta = folder.path().join("cell.sigmf-meta");
        let reader = Reader::open(&meta, (Some(3.84e6), None)).unwrap();
        assert_eq!((reader.meta().sample_rate_hz, reader.meta().format), (3.84e6, Format::Cf32));
        // If the caller gives a value, the description's value may be missing or invalid.
        std::fs::write(&meta, r#"{"global": {"core:datatype": "ri8", "core:sample_rate": "?"}}"#).unwrap();
        let reader = Reader::open(&meta, (Some(1e6), Some(Format::Ci8))).unwrap();
        assert_eq!((reader.meta().sample_rate_hz, reader.meta().format), (1e6, Format::Ci8));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_that_nobody_writes_to_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let mut reader = Reader::open(&pipe, (Some(1e6), Some(Format::Ci8))).unwrap();
        assert_eq!(reader.progress(), None);
        // The reader opens the pipe at its first read. The writer waits for that, so it needs its own thread.
        let writer = std::thread::spawn(move || std::fs::write(pipe, [127, 0, 0, 127]));
        let mut all = vec![];
        while let Piece::Samples(_) = reader.read(&mut all).unwrap() {}
        writer.join().unwrap().unwrap();
        assert_eq!(all, [Complex32::new(1.0, 0.0), Complex32::new(0.0, 1.0)]);
    }
}

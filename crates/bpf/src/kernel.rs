//! Loads a scheme into the kernel and removes it. Flows that use it when it is removed keep it until they end.
//!
//! ```text
//! /sys/fs/bpf/airpace/biscay/link      as long as it is there, sockets may choose the scheme
//!                            feed      what the radio grants, written by a feeder
//!                            tuning    options
//!                            totals    what all flows count together
//! ```

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel, ReferencesType};

use crate::feed::Feed;
use crate::mapped::Mapped;
use crate::twin::KernelTuning;

/// The name by which sockets choose the scheme.
pub const BISCAY: &str = "biscay";

/// The compiled programs; empty if the build had no compiler for them.
#[cfg(has_programs)]
const PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/biscay.bpf.o"));
#[cfg(not(has_programs))]
const PROGRAMS: &[u8] = &[];

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Where the pinned parts lie.
const PINS: &str = "/sys/fs/bpf/airpace";

/// Why a scheme cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The build had no clang.
    #[error(
        "this program was built without the kernel's part: install clang (Debian: apt-get install clang) and build again"
    )]
    NoPrograms,
    /// The kernel does not describe its types.
    #[error(
        "the kernel has no {BTF}: it was built without CONFIG_DEBUG_INFO_BTF, and cannot take these programs"
    )]
    NoBtf,
    /// Its types lack what the programs need.
    #[error(
        "the kernel's description of its types has no `{0}`: it is too old (6.1 is the oldest that is known to do)"
    )]
    TooOld(&'static str),
    /// The caller may not.
    #[error(
        "the kernel does not let this user load programs: run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    Privileges,
    /// There is one already.
    #[error(
        "the kernel has a congestion control `{BISCAY}` already: `airpace kernel unload {BISCAY}` removes it"
    )]
    Exists,
    /// Something else.
    #[error("the kernel does not take the programs ({what}): {error}; {said}")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: libbpf_rs::Error,
        /// The last lines of libbpf and of the kernel's verifier.
        said: String,
    },
    /// A file of the kernel's.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

/// A loaded scheme. Unless it is pinned, it is removed with this value.
pub struct Kernel {
    object: Object,
    link: Link,
}

/// What all flows of a scheme counted since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Flows that began.
    pub flows: u64,
    /// ACKs.
    pub acks: u64,
    /// Times that the kernel was about to send.
    pub sends: u64,
    /// Times that a flow went to FALLBACK.
    pub fallbacks: u64,
    /// Times that a flow returned from FALLBACK.
    pub returns: u64,
    /// Times that a flow went to FALLBACK because the feed was older than 100 ms, or unknown.
    pub silences: u64,
}

/// What a program costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Its name.
    pub name: String,
    /// Instructions that the kernel's verifier went through.
    pub verified: u64,
    /// Calls, and nanoseconds in them, while `kernel.bpf_stats_enabled` was 1.
    pub calls: u64,
    /// See above.
    pub nanos: u64,
}

impl Kernel {
    /// Loads BISCAY with these options.
    ///
    /// # Errors
    /// [`LoadError`] says what to do.
    pub fn load(tuning: &KernelTuning) -> Result<Kernel, LoadError> {
        if PROGRAMS.is_empty() {
            return Err(LoadError::NoPrograms);
        }
        if !Path::new(BTF).exists() {
            return Err(LoadError::NoBtf);
        }
        let argument = sample_argument()?;
        libbpf_rs::set_print(Some((PrintLevel::Warn, note)));
        let refused = |what| move |error: libbpf_rs::Error| refused(what, error);
        let mut open = ObjectBuilder::default().open_memory(PROGRAMS).map_err(refused("open"))?;
        for mut map in open.maps_mut() {
            if map.name().to_string_lossy().contains("rodata.kernel") {
                map.set_initial_value(&argument.to_ne_bytes()).map_err(refused("constants"))?;
            }
        }
        let mut object = open.load().map_err(refused("load"))?;
        let key = 0u32.to_ne_bytes();
        let options = object.maps().find(|map| map.name() == "tuning");
        let options = options.ok_or(LoadError::TooOld("map `tuning`"))?;
        options.update(&key, tuning.as_bytes(), MapFlags::ANY).map_err(refused("options"))?;
        let scheme = object.maps_mut().find(|map| map.name() == BISCAY);
        let mut scheme = scheme.ok_or(LoadError::TooOld("map of the scheme"))?;
        let link = scheme.attach_struct_ops().map_err(refused("attach"))?;
        Ok(Kernel { object, link })
    }

    /// Keeps the scheme in the kernel when this value and the program are gone.
    ///
    /// # Errors
    /// If there is no file system for it at `/sys/fs/bpf`, or something is pinned there already.
    pub fn pin(&mut self) -> Result<(), LoadError> {
        let folder = Path::new(PINS).join(BISCAY);
        fs::create_dir_all(&folder).map_err(|error| LoadError::File { path: folder.clone(), error })?;
        let refused = |error| refused("pin", error);
        for mut map in self.object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if ["feed", "tuning", "totals"].contains(&name.as_str()) {
                map.pin(folder.join(name)).map_err(refused)?;
            }
        }
        self.link.pin(folder.join("link")).map_err(refused)
    }

    /// The array for a feeder.
    ///
    /// # Errors
    /// If the system does not map it.
    pub fn feed(&self) -> io::Result<Feed> {
        let map = self.object.maps().find(|map| map.name() == "feed").ok_or(io::ErrorKind::NotFound)?;
        Feed::map(map.as_fd())
    }

    /// What its flows counted.
    ///
    /// # Errors
    /// If the system does not map the array.
    pub fn totals(&self) -> io::Result<Totals> {
        let map = self.object.maps().find(|map| map.name() == "totals").ok_or(io::ErrorKind::NotFound)?;
        read_totals(map.as_fd())
    }

    /// What each of its programs costs.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn costs(&self) -> io::Result<Vec<Cost>> {
        let cost = |program: libbpf_rs::Program<'_>| {
            let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd()))?;
            let number = |key: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
                line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
            };
            Ok(Cost {
                name: program.name().to_string_lossy().into_owned(),
                verified: number("verified_insns"),
                calls: number("run_cnt"),
                nanos: number("run_time_ns"),
            })
        };
        self.object.progs().map(cost).collect()
    }
}

/// A scheme that was pinned.
pub struct Pinned {
    feed: MapHandle,
    totals: MapHandle,
}

impl Pinned {
    /// Opens it; `None` if there is none.
    ///
    /// # Errors
    /// If the caller may not.
    pub fn open() -> Result<Option<Pinned>, LoadError> {
        let folder = Path::new(PINS).join(BISCAY);
        if !folder.join("link").exists() {
            return Ok(None);
        }
        let open =
            |name| MapHandle::from_pinned_path(folder.join(name)).map_err(|error| refused("open", error));
        Ok(Some(Pinned { feed: open("feed")?, totals: open("totals")? }))
    }

    /// The array for a feeder.
    ///
    /// # Errors
    /// If the system does not map it.
    pub fn feed(&self) -> io::Result<Feed> {
        Feed::map(self.feed.as_fd())
    }

    /// What its flows counted.
    ///
    /// # Errors
    /// If the system does not map the array.
    pub fn totals(&self) -> io::Result<Totals> {
        read_totals(self.totals.as_fd())
    }
}

/// Removes a pinned scheme. Returns whether there was one.
///
/// # Errors
/// If the caller may not.
pub fn unload() -> Result<bool, LoadError> {
    let folder = Path::new(PINS).join(BISCAY);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| LoadError::File { path, error }
    };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(&folder)(error)),
    };
    for entry in entries {
        let path = entry.map_err(failed(&folder))?.path();
        fs::remove_file(&path).map_err(failed(&path))?;
    }
    fs::remove_dir(&folder).map_err(failed(&folder))?;
    Ok(true)
}

/// The words of `struct totals` of `biscay.bpf.c`.
fn read_totals(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<Totals> {
    let memory: Mapped<11> = Mapped::new(fd, false)?;
    let word = |word: usize| memory.words()[word].load(Relaxed);
    let [flows, acks, sends, fallbacks, returns, silences] = [5, 6, 7, 8, 9, 10].map(word);
    Ok(Totals { flows, acks, sends, fallbacks, returns, silences })
}

/// Which argument of `cong_control` is the rate sample: the last one, of two or, from Linux 6.10 on, of four.
fn sample_argument() -> Result<u32, LoadError> {
    let btf = Btf::from_vmlinux().map_err(|error| refused("types", error))?;
    let operations = btf.type_by_name::<types::Struct<'_>>("tcp_congestion_ops");
    let operations = operations.ok_or(LoadError::TooOld("struct tcp_congestion_ops"))?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"));
    let member = member.ok_or(LoadError::TooOld("cong_control"))?;
    let pointer = btf.type_by_id::<types::Ptr<'_>>(member.ty).ok_or(LoadError::TooOld("cong_control"))?;
    let call = btf.type_by_id::<types::FuncProto<'_>>(pointer.referenced_type().type_id());
    Ok(call.ok_or(LoadError::TooOld("cong_control"))?.iter().count().saturating_sub(1) as u32)
}

fn refused(what: &'static str, error: libbpf_rs::Error) -> LoadError {
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => LoadError::Privileges,
        libbpf_rs::ErrorKind::AlreadyExists => LoadError::Exists,
        _ => LoadError::Refused { what, error, said: said() },
    }
}

/// What libbpf said since it was last asked.
static SAID: Mutex<Vec<String>> = Mutex::new(vec![]);

/// Lines of libbpf and the verifier that an error shows.
///
/// Chosen: the verifier's own error and the instruction before it.
const LAST_LINES: usize = 8;

fn note(_: PrintLevel, text: String) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.extend(text.lines().map(|line| line.trim().to_owned()));
}

fn said() -> String {
    let said = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
    said[said.len().saturating_sub(LAST_LINES)..].join("; ")
}

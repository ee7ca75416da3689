//! The C interface, as declared in `include/od.h` and described in the manual pages.
//!
//! Functions return −1 or `NULL` and set `errno`. No panic unwinds into C. The caller is responsible for pointers: each
//! pointer from C is null or points to data of the type that the header declares.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use crate::error::Error;
use crate::reader::{Od, Place, Reading};

/// `OD_AFTER_GAP`: readings may be missing between this reading and the previous reading.
pub const AFTER_GAP: u32 = 1;

/// `OD_ABI`: version number of this interface. Every addition increments it; nothing is ever changed or removed.
pub const ABI: c_int = 2;

/// `OD_ALL_CARRIERS`: all carriers of a KPI.
pub const ALL_CARRIERS: c_int = -1;

/// `od`: a connection to a daemon, with the program's number of leases on each row.
#[derive(Debug)]
pub struct Handle {
    od: Od,
    leases: Box<[AtomicU32]>,
    /// Generation of each row at its last lease.
    generations: Box<[AtomicU32]>,
}

/// `struct od_kpi`: a KPI that the daemon offers.
#[derive(Debug)]
#[repr(C)]
pub struct CKpi {
    /// Size of this struct, set by the library (bytes).
    pub size: u32,
    /// Reserved; always 0.
    pub reserved: u32,
    /// Name for `od_subscribe`.
    pub name: *const c_char,
    /// Unit of the values.
    pub unit: *const c_char,
    /// Short description of the KPI.
    pub about: *const c_char,
}

/// `struct od_reading`: the C form of [`Reading`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct CReading {
    /// Size of this struct, set by the caller (bytes).
    pub size: u32,
    /// [`AFTER_GAP`] or 0.
    pub flags: u32,
    /// See [`Reading::value`].
    pub value: f64,
    /// See [`Reading::sequence`].
    pub sequence: u64,
    /// See [`Reading::modem_ns`].
    pub modem_ns: u64,
    /// See [`Reading::arrival_ns`].
    pub arrival_ns: u64,
    /// See [`Reading::published_ns`].
    pub published_ns: u64,
    /// See [`Reading::subframe`]; −1 if it is not known.
    pub subframe: i32,
    /// See [`Reading::carrier`].
    pub carrier: u8,
    /// See [`Reading::radio`].
    pub radio: u8,
    /// Reserved; always 0.
    pub reserved: u16,
    /// See [`Reading::gaps`].
    pub gaps: u64,
}

impl CReading {
    #[inline]
    fn of(reading: &Reading) -> CReading {
        CReading {
            size: size_of::<CReading>() as u32,
            flags: if reading.is_after_gap { AFTER_GAP } else { 0 },
            value: reading.value,
            sequence: reading.sequence,
            modem_ns: reading.modem_ns,
            arrival_ns: reading.arrival_ns,
            published_ns: reading.published_ns,
            subframe: reading.subframe.map_or(-1, i32::from),
            carrier: reading.carrier,
            radio: reading.radio,
            reserved: 0,
            gaps: reading.gaps,
        }
    }
}

/// An error that a function reports to C: the function returns −1 or `NULL` and sets `errno`.
enum Failure {
    /// An error with a text for [`od_strerror`].
    Described(Error),
    /// An error number without a text.
    Plain(Errno),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Described(error)
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Plain(errno)
    }
}

thread_local! {
    /// Error number of this thread's last failure if `LAST_WORDS` contains its text; otherwise 0.
    static LAST: Cell<c_int> = const { Cell::new(0) };
    static LAST_WORDS: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Connects to the daemon whose folder is `dir`; if `dir` is `NULL`, to the daemon of the default folder. Returns
/// `NULL` and sets `errno` on failure.
///
/// # Safety
/// `dir` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_open(dir: *const c_char) -> *mut Handle {
    guard(null_mut(), || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let dir = unsafe { text(dir) };
        let od = Od::open(dir.map(|dir| Path::new(OsStr::from_bytes(dir.to_bytes()))))?;
        let zeros = || (0..od.capacity()).map(|_| AtomicU32::new(0)).collect();
        let (leases, generations) = (zeros(), zeros());
        Ok(Box::into_raw(Box::new(Handle { od, leases, generations })))
    })
}

/// Closes a handle from [`od_open`]; its subscriptions end.
///
/// # Safety
/// `od` is null or a handle from [`od_open`], and no thread uses the handle at the same time or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_close(od: *mut Handle) -> c_int {
    guard(-1, || {
        if od.is_null() {
            return Err(Errno::INVAL.into());
        }
        // SAFETY: the caller guarantees that `od_open` returned this box, and that this is its last use.
        drop(unsafe { Box::from_raw(od) });
        Ok(0)
    })
}

/// Calls `each` for every KPI that the daemon offers, until `each` returns a non-zero value. Returns the number of
/// calls.
///
/// # Safety
/// `od` is null or an open handle; `each` is null or a function that returns normally.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_list(
    od: *const Handle,
    each: Option<unsafe extern "C" fn(*const CKpi, *mut c_void) -> c_int>,
    context: *mut c_void,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let handle = unsafe { open(od) }?;
        let each = each.ok_or(Errno::INVAL)?;
        let mut calls = 0;
        for kpi in handle.od.kpis()? {
            let texts = [kpi.name, kpi.unit, kpi.about].map(words);
            let [name, unit, about] = texts.each_ref().map(|text| text.as_ptr());
            let info = CKpi { size: size_of::<CKpi>() as u32, reserved: 0, name, unit, about };
            calls += 1;
            // SAFETY: the caller guarantees the condition on `each`; the strings outlive the call.
            if unsafe { each(&info, context) } != 0 {
                break;
            }
        }
        Ok(calls)
    })
}

/// Subscribes to a KPI; returns the identifier for reading it.
///
/// # Safety
/// `od` is null or an open handle, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_subscribe(od: *const Handle, name: *const c_char) -> c_int {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let (handle, name) = unsafe { (open(od)?, text(name).ok_or(Errno::INVAL)?) };
        handle.subscribe(name.to_str().map_err(|_| Errno::INVAL)?)
    })
}

/// Subscribes to a KPI of a carrier, or of [`ALL_CARRIERS`]; returns the identifier for reading it.
///
/// # Safety
/// `od` is null or an open handle, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_subscribe_carrier(
    od: *const Handle,
    name: *const c_char,
    carrier: c_int,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let (handle, name) = unsafe { (open(od)?, text(name).ok_or(Errno::INVAL)?) };
        let name = name.to_str().map_err(|_| Errno::INVAL)?;
        match carrier {
            ALL_CARRIERS => handle.subscribe(&format!("{name}#all")),
            0.. => handle.subscribe(&format!("{name}#{carrier}")),
            _ => Err(Errno::INVAL.into()),
        }
    })
}

/// Ends a subscription. A KPI with two subscriptions can be read until both have ended.
///
/// # Safety
/// `od` is null or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_unsubscribe(od: *const Handle, kpi: c_int) -> c_int {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let handle = unsafe { open(od) }?;
        let slot = u32::try_from(kpi).map_err(|_| Errno::BADF)?;
        let leases = handle.leases.get(slot as usize).ok_or(Errno::BADF)?;
        let one_less = |leases: u32| leases.checked_sub(1);
        leases.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).map_err(|_| Errno::BADF)?;
        handle.od.release(slot)?;
        Ok(0)
    })
}

/// Returns the latest reading in `reading`. Makes no system call and takes no lock.
///
/// # Safety
/// `od` is null or an open handle; `reading` is null or points to at least as many bytes as its `size` specifies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_latest(od: *const Handle, kpi: c_int, reading: *mut CReading) -> c_int {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let (handle, room) = unsafe { (open(od)?, room(reading)?) };
        let latest = handle.od.latest(handle.place(kpi)?).ok_or(Errno::AGAIN)?;
        // SAFETY: `reading` has at least `room` bytes.
        unsafe { put(&latest, reading, room) };
        Ok(0)
    })
}

/// Waits for a reading with a sequence number above `after`, at most `timeout_ns`; a negative timeout is infinite.
///
/// # Safety
/// As [`od_latest`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_wait(
    od: *const Handle,
    kpi: c_int,
    after: u64,
    timeout_ns: i64,
    reading: *mut CReading,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let (handle, room) = unsafe { (open(od)?, room(reading)?) };
        let next = handle.od.wait(handle.place(kpi)?, after, duration(timeout_ns))?;
        // SAFETY: `reading` has at least `room` bytes.
        unsafe { put(&next, reading, room) };
        Ok(0)
    })
}

/// Waits until readings of any KPI were published after batch `*seen`, and sets `*seen` to the latest batch.
///
/// # Safety
/// `od` is null or an open handle; `seen` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_wait_any(od: *const Handle, seen: *mut u32, timeout_ns: i64) -> c_int {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let (handle, seen) = unsafe { (open(od)?, seen.as_mut().ok_or(Errno::INVAL)?) };
        *seen = handle.od.wait_any(*seen, duration(timeout_ns))?;
        Ok(0)
    })
}

/// Time since the packet with this reading was received, in ns. Makes no system call.
///
/// # Safety
/// `reading` is null or points to a reading that `od_latest` or `od_wait` filled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_age_ns(reading: *const CReading) -> i64 {
    guard(-1, || {
        // SAFETY: the caller meets the conditions in `# Safety`.
        let reading = unsafe { reading.as_ref() }.ok_or(Errno::INVAL)?;
        Ok(crate::clock::now_ns().saturating_sub(reading.arrival_ns).try_into().unwrap_or(i64::MAX))
    })
}

/// Returns 1 if the daemon runs and its last heartbeat is younger than 100 ms, otherwise 0. Makes no system call.
///
/// # Safety
/// `od` is null or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn od_alive(od: *const Handle) -> c_int {
    // SAFETY: the caller meets the conditions in `# Safety`.
    guard(-1, || Ok(c_int::from(unsafe { open(od) }?.od.is_alive())))
}

/// Returns a text for an error number that a function of this library has stored in `errno`; never `NULL`.
///
/// If the number is the error number of the thread's last failure, the text describes this failure and is valid until
/// the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn od_strerror(errnum: c_int) -> *const c_char {
    let is_last = LAST.try_with(|last| last.get() == errnum).unwrap_or(false);
    let in_particular = LAST_WORDS.try_with(|words| words.borrow().as_ref().map(|words| words.as_ptr()));
    in_particular
        .ok()
        .flatten()
        .filter(|_| is_last)
        .unwrap_or_else(|| in_general(Errno::from_raw_os_error(errnum.clamp(1, 4_095))).as_ptr())
}

/// Returns the library's version, `MAJOR.MINOR.PATCH`.
#[unsafe(no_mangle)]
pub extern "C" fn od_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zeros in it"),
        };
    VERSION.as_ptr()
}

/// Returns the library's interface version.
#[unsafe(no_mangle)]
pub extern "C" fn od_abi() -> c_int {
    ABI
}

impl Handle {
    /// Requests a lease on a KPI; returns the identifier for reading it.
    fn subscribe(&self, name: &str) -> Result<c_int, Failure> {
        let Place { slot, generation } = self.od.lease(name)?;
        self.generations[slot as usize].store(generation, Ordering::Relaxed);
        self.leases[slot as usize].fetch_add(1, Ordering::Release);
        Ok(slot as c_int)
    }

    /// Row and generation of a subscribed KPI.
    #[inline]
    fn place(&self, kpi: c_int) -> Result<Place, Errno> {
        let slot = u32::try_from(kpi).map_err(|_| Errno::BADF)?;
        let leases = self.leases.get(slot as usize).ok_or(Errno::BADF)?;
        if leases.load(Ordering::Acquire) == 0 {
            return Err(Errno::BADF);
        }
        Ok(Place { slot, generation: self.generations[slot as usize].load(Ordering::Relaxed) })
    }
}

/// Runs the body of a C function. Converts a failure or a panic into the value `failed` and `errno`.
#[inline]
fn guard<T>(failed: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    // Unwind safety: state that a panic leaves incomplete is dropped by the unwinding, or is an atomic word.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => done,
        Ok(Err(failure)) => {
            fail(&failure);
            failed
        }
        Err(_) => {
            fail(&Failure::Plain(Errno::IO));
            failed
        }
    }
}

/// The text of an error for a program in C, with the remedy.
fn explained(error: &Error) -> String {
    match error {
        Error::NoDaemon { .. } => format!("{error}; start one with `airpace diag serve`"),
        _ => error.to_string(),
    }
}

#[cold]
fn fail(failure: &Failure) {
    let number = match failure {
        // Allocate and free nothing in this branch: a read may fail in a signal handler.
        Failure::Plain(errno) => {
            let _ = LAST.try_with(|last| last.set(0));
            errno.raw_os_error()
        }
        Failure::Described(error) => {
            let number = error.errno().raw_os_error();
            // A terminating thread has already destroyed its thread-local error text.
            let is_kept = LAST_WORDS.try_with(|last| last.replace(Some(words(explained(error))))).is_ok();
            let _ = LAST.try_with(|last| last.set(if is_kept { number } else { 0 }));
            number
        }
    };
    errno::set_errno(errno::Errno(number));
}

/// # Safety
/// `od` is null or an open handle.
#[inline]
unsafe fn open<'a>(od: *const Handle) -> Result<&'a Handle, Errno> {
    // SAFETY: the caller meets the conditions in `# Safety`.
    unsafe { od.as_ref() }.ok_or(Errno::INVAL)
}

/// # Safety
/// `text` is null or a C string.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller meets the conditions in `# Safety`.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Size of `struct od_reading` in interface version 1 (bytes). A smaller value means that the program has not set
/// `size`.
const MIN_READING_BYTES: u32 = 64;
const _: () = assert!(size_of::<CReading>() >= MIN_READING_BYTES as usize);

/// Number of bytes of a reading that the program's buffer holds, according to its header version.
///
/// # Safety
/// `reading` is null or points to at least as many bytes as `(*reading).size` specifies.
#[inline]
unsafe fn room(reading: *const CReading) -> Result<u32, Errno> {
    if reading.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: `size` is the first field, and no other field is read.
    let size = unsafe { (&raw const (*reading).size).read() };
    if size < MIN_READING_BYTES { Err(Errno::INVAL) } else { Ok(size.min(size_of::<CReading>() as u32)) }
}

/// Copies the first `room` bytes of a reading to the caller, and sets the `size` of the copy to `room`.
///
/// # Safety
/// `into` points to `room` bytes, and `room` is a result of [`room`].
#[inline]
unsafe fn put(reading: &Reading, into: *mut CReading, room: u32) {
    let reading = CReading { size: room, ..CReading::of(reading) };
    // SAFETY: source and destination are at least `room` bytes long, and the source is a local variable.
    unsafe { (&raw const reading).cast::<u8>().copy_to_nonoverlapping(into.cast(), room as usize) };
}

/// Converts a timeout; a negative number means infinite.
fn duration(timeout_ns: i64) -> Duration {
    u64::try_from(timeout_ns).map_or(Duration::MAX, Duration::from_nanos)
}

/// Converts a text to a C string; removes zero bytes.
fn words(text: String) -> CString {
    let mut bytes = text.into_bytes();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

/// General text for an error number that this library may store in `errno`.
fn in_general(errno: Errno) -> &'static CStr {
    match errno {
        Errno::AGAIN => c"nothing has been published yet",
        Errno::BADF => c"not subscribed to that KPI",
        Errno::INTR => c"interrupted by a signal",
        Errno::INVAL => c"an argument is NULL, not a name, or a struct whose size is not set",
        Errno::IO => c"an error in libOD itself; please report what it printed",
        Errno::NOENT => c"no daemon there, or no KPI of that name",
        Errno::CONNREFUSED => c"no daemon there: the one that was has died",
        Errno::ACCESS => c"the daemon's folder may not be entered",
        Errno::NOSPC => c"the daemon has no place for another KPI",
        Errno::DQUOT => c"as many subscriptions as a program may have",
        Errno::USERS => c"as many programs are connected as may be",
        Errno::PROTO => c"the daemon does not keep to the protocol",
        Errno::PROTONOSUPPORT => c"daemon and library are of different versions",
        Errno::STALE => c"the daemon has stopped or sends no heartbeat; open it again once it runs",
        Errno::TIMEDOUT => c"nothing came in time",
        _ => c"no error that libOD has a word for; see strerror(3)",
    }
}

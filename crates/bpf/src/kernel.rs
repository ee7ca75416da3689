//! Loads congestion control schemes into the kernel and removes them. Flows that use a removed scheme keep it until they
//! end.
//!
//! ```text
//! /sys/fs/bpf/airpace/biscay/link      while it exists, sockets may choose the scheme
//!                            ops       in kernels before 6.4: sockets may choose the scheme until the map's entry is deleted
//!                            feed      the radio's bandwidth, written by a feeder (all but MORC)
//!                            options   reads and writes PBE-CC's TCP option for a control group (only PBE-CC)
//!                            room      makes space for the option at a network device to which it is attached (only PBE-CC)
//!                            totals    counters over all flows
//!                            host      active flows of the host (all but MORC)
//!                            shares    data of split policies other than equality
//!                            counter   link of the program that counts the host's flows
//!                            owners    link of the program that records the creator of each socket
//!                            flows     reading it iterates over the flows and returns the state of each
//!                            relay     bounds the windows of downloads (only the relay)
//!                            lift      removes these bounds (only the relay)
//! ```

mod asked;
mod counted;
mod pinned;
mod relay;
mod shown;

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use airpace_core::remedy::{Remedy, UserTask};
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::feed::{CellFeed, Feed};
use crate::messages;
use crate::room::RoomProgram;
use crate::twin::KernelTuning;
use crate::twin::morc::MorcTuning;
use crate::twin::pbe::PbeTuning;
use asked::{is_locked, pins, sample_argument};
pub use asked::{may_load, readiness, turn};
pub use counted::{Cost, Totals};
pub use pinned::{Pinned, unload};
use pinned::{read_host, read_totals};
use relay::Relay;
pub use shown::FlowStatus;

/// The name by which sockets choose BISCAY.
pub const BISCAY: &str = "biscay";

/// The name by which sockets choose MORC.
pub const MORC: &str = "morc";

/// The name by which sockets choose PBE-CC.
pub const PBE: &str = "pbe";

/// Name of the relay: BISCAY for downloads from senders without BISCAY. Sockets do not choose the relay by this name.
pub const RELAY: &str = "biscay@window";

/// The schemes that sockets choose.
pub const SCHEMES: [&str; 3] = [BISCAY, MORC, PBE];

/// The schemes that users can load.
pub const LOADABLE: [&str; 4] = [BISCAY, RELAY, MORC, PBE];

/// The compiled programs; empty if the build had no compiler for them.
macro_rules! programs {
    ($name:literal) => {
        match () {
            #[cfg(has_programs)]
            () => include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")).as_slice(),
            #[cfg(not(has_programs))]
            () => [0_u8; 0].as_slice(),
        }
    };
}

/// Whether the build had a compiler for the programs.
fn has_programs() -> bool {
    !programs!("biscay").is_empty()
}

/// A scheme with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelScheme {
    /// BISCAY.
    Biscay(KernelTuning),
    /// BISCAY for downloads from senders without BISCAY.
    Relay(KernelTuning),
    /// MORC.
    Morc(MorcTuning),
    /// PBE-CC.
    Pbe(PbeTuning),
    /// The kernel's own BBR, called by a program. It is used to measure the cost per ACK of a program that only calls
    /// BBR; users do not need it.
    KernelBbr,
}

impl KernelScheme {
    /// The name by which sockets choose the scheme, or, for the relay, the name for users.
    pub fn name(&self) -> &'static str {
        match self {
            KernelScheme::Biscay(_) => BISCAY,
            KernelScheme::Relay(_) => RELAY,
            KernelScheme::Morc(_) => MORC,
            KernelScheme::Pbe(_) => PBE,
            KernelScheme::KernelBbr => "airpace_bbr",
        }
    }

    fn programs(&self) -> &'static [u8] {
        match self {
            KernelScheme::Biscay(_) => programs!("biscay"),
            KernelScheme::Relay(_) => programs!("window"),
            KernelScheme::Morc(_) => programs!("morc"),
            KernelScheme::Pbe(_) => programs!("pbe"),
            KernelScheme::KernelBbr => programs!("probe"),
        }
    }

    fn options(&self) -> &[u8] {
        match self {
            KernelScheme::Biscay(tuning) | KernelScheme::Relay(tuning) => tuning.as_bytes(),
            KernelScheme::Morc(tuning) => tuning.as_bytes(),
            KernelScheme::Pbe(tuning) => tuning.as_bytes(),
            KernelScheme::KernelBbr => &[],
        }
    }

    /// Whether applications share the bandwidth instead of flows.
    fn counts_apps(&self) -> bool {
        matches!(self, KernelScheme::Biscay(tuning) | KernelScheme::Relay(tuning) if tuning.counts_apps())
    }

    /// Whether the scheme requires [`Kernel::count_flows`].
    pub fn needs_counts(&self) -> bool {
        matches!(self, KernelScheme::Biscay(tuning) | KernelScheme::Relay(tuning) if tuning.needs_counts())
    }

    fn open(&self) -> Result<OpenObject, LoadError> {
        if self.programs().is_empty() {
            return Err(LoadError::NoPrograms);
        }
        libbpf_rs::set_print(Some((PrintLevel::Warn, messages::keep)));
        let opened = ObjectBuilder::default().open_memory(self.programs());
        opened.map_err(|error| refused(self.name(), "open", error))
    }

    /// The names of the scheme's programs and of its maps, in the form in which the kernel lists them after they are
    /// loaded.
    ///
    /// # Errors
    /// The build had no compiler for the programs.
    pub fn names(&self) -> Result<[Vec<String>; 2], LoadError> {
        let shown =
            |name: &std::ffi::OsStr| name.to_string_lossy().chars().take(MAX_NAME - 1).collect::<String>();
        let open = self.open()?;
        Ok([
            open.progs().map(|program| shown(program.name())).collect(),
            open.maps().map(|map| shown(map.name())).collect(),
        ])
    }
}

/// Maximum length of the name of a program or map in the kernel, including the final zero.
///
/// Source: Linux include/uapi/linux/bpf.h (BPF_OBJ_NAME_LEN)
const MAX_NAME: usize = 16;

/// The program that reads and writes PBE-CC's option.
const OPTIONS: &str = "pbe_options";

/// The programs that count the host's flows: sent flows, or received flows.
const COUNTERS: [&str; 2] = ["count_egress", "count_ingress"];

/// The program of the relay that limits windows. `LIFT` is the program that removes these limits.
const BOUND: &str = "window_relay";
const LIFT: &str = "window_lift";

/// The program that records the creator of each socket. `APPS` is the map of the applications found by this program.
const OWNER: &str = "count_owner";
const APPS: &str = "device_apps";

const BOUNDS: &str = "relay";

/// For PBE-CC: the program that counts receiving sockets. `ROOM` is the program that replaces a SACK block by PBE-CC's
/// option.
const DOWNLOADS: &str = "pbe_downloads";
const ROOM: &str = "pbe_room";

/// The program that iterates over the flows. `FLOWS` is the name of the file from which the flows are read.
const SHOW: &str = "show_flows";
const FLOWS: &str = "flows";

const OPS: &str = "ops";

/// Flag of a scheme that is active as long as its link exists. Kernels before 6.4 do not support links of such
/// programs.
///
/// Source: Linux include/uapi/linux/bpf.h
const LINK_FLAG: u32 = 1 << 13;

/// Type information of the BBR module. The file exists if the module is loaded.
const BBR_MODULE: &str = "/sys/kernel/btf/tcp_bbr";

const BTF: &str = "/sys/kernel/btf/vmlinux";

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Mount point of the kernel's file system for programs and maps.
const PINS_ROOT: &str = "/sys/fs/bpf";

impl LoadError {
    fn no_btf() -> LoadError {
        LoadError::NoBtf(outside_the_kernel())
    }

    fn privileges() -> LoadError {
        LoadError::Privileges(outside_the_kernel())
    }
}

/// The remedy if a kernel takes no programs.
fn outside_the_kernel() -> Remedy {
    Remedy::new("the same schemes run outside the kernel in")
        .task(UserTask::Simulate)
        .text("and")
        .task(UserTask::Send)
}

/// Reasons why a scheme cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The build had no clang.
    #[error(
        "this program was built without the kernel's part: install clang (Debian: apt-get install clang) and build again"
    )]
    NoPrograms,
    /// The kernel provides no type information (BTF).
    #[error(
        "there is no {BTF}: /sys is not mounted, or the kernel was built without CONFIG_DEBUG_INFO_BTF and cannot take these \
         programs"
    )]
    NoBtf(#[source] Remedy),
    /// The kernel's types lack a member that the programs need.
    #[error(
        "the kernel's description of its types has no `{0}`: it is too old (6.1 is the oldest that is known to do)"
    )]
    TooOld(&'static str),
    /// The caller lacks privileges.
    #[error(
        "the kernel does not permit this user to load eBPF programs or to list loaded ones: run as root, or with CAP_BPF, \
         CAP_PERFMON and CAP_NET_ADMIN (`pbe`, `biscay@window` and `run` use control groups and need CAP_SYS_ADMIN too); a \
         locked-down kernel permits it to no user ({LOCKDOWN} shows this state if securityfs is mounted)"
    )]
    Privileges(#[source] Remedy),
    /// The kernel is locked down.
    #[error(
        "the kernel is locked down ({LOCKDOWN}: confidentiality), and accepts no programs, even from root: \
         boot without lockdown=confidentiality"
    )]
    Lockdown,
    /// There is no file system in which schemes can be pinned.
    #[error(
        "there is no BPF file system at {PINS_ROOT}, in which schemes stay: `mount -t bpf -o mode=0700 bpf {PINS_ROOT}` \
         (systemd does it at each start)"
    )]
    NoPins,
    /// Other users can write to the folder of schemes.
    #[error("schemes cannot stay in `{}`: {error}", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// The reason why other users have access to the folder.
        error: io::Error,
    },
    /// A congestion control of this name exists already.
    #[error("the kernel has a congestion control `{name}` already")]
    Exists {
        /// Name of the congestion control.
        name: &'static str,
        /// The remedy: remove the existing congestion control.
        #[source]
        remedy: Remedy,
    },
    /// Any other reason.
    #[error("the kernel rejects the programs ({what}): {error}; {said}")]
    Refused {
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        error: libbpf_rs::Error,
        /// The last lines of libbpf and of the kernel's verifier.
        said: String,
    },
    /// An error of a file of the kernel.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// A loaded scheme. Dropping this value removes the scheme, unless it is pinned.
pub struct Kernel {
    name: &'static str,
    object: Object,
    /// The link of the scheme; `None` if sockets do not choose the scheme.
    link: Option<Link>,
    /// The links of the programs that limit the windows of downloads, once they are attached.
    relay: Relay,
    /// The link of the program that reads and writes the TCP option.
    options: Option<Link>,
    /// Whether the kernel supports links of congestion control programs.
    has_links: bool,
    /// The link of the program that counts the host's flows. `owners` is the link of the program that records the
    /// creators of sockets.
    counter: Option<Link>,
    owners: Option<Link>,
    /// Whether applications share the bandwidth instead of flows.
    counts_apps: bool,
}

impl Kernel {
    /// Loads a scheme.
    ///
    /// # Errors
    /// The scheme cannot be loaded; [`LoadError`] explains the remedy.
    pub fn load(part: &KernelScheme) -> Result<Kernel, LoadError> {
        Kernel::load_into(part, true)
    }

    /// Loads a scheme as if programs could not call the kernel's BBR: for tests of `bbr.h`, which replaces the kernel's
    /// BBR.
    ///
    /// # Errors
    /// The scheme cannot be loaded; [`LoadError`] explains the remedy.
    pub fn load_without_bbr(part: &KernelScheme) -> Result<Kernel, LoadError> {
        Kernel::load_into(part, false)
    }

    fn load_into(part: &KernelScheme, may_have_bbr: bool) -> Result<Kernel, LoadError> {
        let name = part.name();
        let mut open = part.open()?;
        if !Path::new(BTF).exists() {
            return Err(LoadError::no_btf());
        }
        // In lockdown, the helper that reads kernel memory is missing, and the verifier's messages do not name this reason.
        if is_locked() {
            return Err(LoadError::Lockdown);
        }
        let refused = |what| move |error: libbpf_rs::Error| refused(name, what, error);
        let types = Btf::from_vmlinux().map_err(refused("types"))?;
        // BBR is built into the kernel, or in a module that has been loaded.
        let is_built_in = types.type_by_name::<types::Func<'_>>("bbr_main").is_some();
        let has_bbr = may_have_bbr && (is_built_in || Path::new(BBR_MODULE).exists());
        let found = [sample_argument(&types)?, u32::from(has_bbr)].map(u32::to_ne_bytes).concat();
        let has_links = types.type_by_name::<types::Struct<'_>>("bpf_struct_ops_link").is_some();
        for mut map in open.maps_mut() {
            let map_name = map.name().to_string_lossy().into_owned();
            if map_name == name && !has_links {
                map.set_map_flags(map.map_flags() & !LINK_FLAG).map_err(refused("flags"))?;
            }
            let constants = match map_name.as_str() {
                ".rodata.kernel" => found.as_slice(),
                ".rodata.tuning" => part.options(),
                _ => continue,
            };
            map.set_initial_value(constants).map_err(refused("constants"))?;
        }
        if !part.counts_apps() {
            open.progs_mut().filter(|program| program.name() == OWNER).for_each(|mut owner| {
                owner.set_autoload(false);
            });
            for mut apps in open.maps_mut().filter(|map| map.name() == APPS) {
                apps.set_max_entries(1).map_err(refused("no applications"))?;
            }
        }
        let mut object = open.load().map_err(refused("load"))?;
        // The relay is not a congestion control.
        let scheme = object.maps_mut().find(|map| map.name() == name);
        let link =
            scheme.map(|mut scheme| scheme.attach_struct_ops().map_err(refused("attach"))).transpose()?;
        let relay = Relay { link: None, lift: None };
        Ok(Kernel {
            name,
            object,
            link,
            relay,
            options: None,
            has_links,
            counter: None,
            owners: None,
            counts_apps: part.counts_apps(),
        })
    }

    /// From now on, connections of programs in the control group `group` (version 2) and in groups below it exchange
    /// PBE-CC's feedback and share the radio's measured capacity. Use the root group for the whole host.
    ///
    /// # Errors
    /// The scheme exchanges no feedback, or the kernel does not attach its programs to the group.
    pub fn exchange(&mut self, group: BorrowedFd<'_>) -> Result<(), LoadError> {
        self.options = Some(self.attach(OPTIONS, group, "exchange what receivers measure")?);
        self.counter = Some(self.attach(DOWNLOADS, group, "count what receives")?);
        Ok(())
    }

    /// Limits the windows of downloads according to the radio's grants. This applies to TCP connections that programs
    /// in the control group `group` (version 2) and in groups below it make from now on.
    ///
    /// # Errors
    /// This is not the relay, or the kernel does not attach its program to the group.
    pub fn bound_downloads(&mut self, group: BorrowedFd<'_>) -> Result<(), LoadError> {
        let lift = self.object.progs_mut().find(|program| program.name() == LIFT);
        let lift = lift.ok_or(LoadError::NoPrograms)?.attach();
        let lift = lift.map_err(|error| refused(self.name, "go through sockets", error))?;
        let link = self.attach(BOUND, group, "bound windows")?;
        self.relay = Relay { link: Some(link), lift: Some(lift) };
        Ok(())
    }

    /// Removes the limits of all downloads, and sets no more limits. Dropping this value has the same effect, unless
    /// the relay was pinned.
    ///
    /// # Errors
    /// The kernel does not permit this process to iterate over its sockets.
    pub fn lift(&mut self) -> Result<(), LoadError> {
        self.relay.end().map_err(|error| refused(self.name, "lift", error))
    }

    /// The program that makes space for PBE-CC's option at network devices.
    ///
    /// # Errors
    /// The scheme has no option, or the system has no free file descriptor.
    pub fn room(&self) -> io::Result<RoomProgram> {
        let found = self.object.progs().find(|found| found.name() == ROOM);
        let program = found.ok_or(io::ErrorKind::NotFound)?.as_fd().try_clone_to_owned()?;
        Ok(RoomProgram::of(program))
    }

    /// Counts all TCP and UDP flows that programs in the control group `group` (version 2) send, not only the scheme's
    /// flows. For the relay, counts the flows that these programs receive. Use the root group for the whole host.
    ///
    /// # Errors
    /// The scheme counts no flows, or the kernel does not attach its program to the group.
    pub fn count_flows(&mut self, group: BorrowedFd<'_>) -> Result<(), LoadError> {
        if self.counts_apps {
            self.owners = Some(self.attach(OWNER, group, "note who makes sockets")?);
        }
        let counter =
            COUNTERS.into_iter().find(|name| self.object.progs().any(|program| program.name() == *name));
        let counter = counter.ok_or(LoadError::NoPrograms)?;
        self.counter = Some(self.attach(counter, group, "count the host's flows")?);
        Ok(())
    }

    /// Attaches one of the scheme's programs to a control group.
    fn attach(&self, program: &str, group: BorrowedFd<'_>, what: &'static str) -> Result<Link, LoadError> {
        let found = self.object.progs_mut().find(|found| found.name() == program);
        let link = found.ok_or(LoadError::NoPrograms)?.attach_cgroup(group.as_raw_fd());
        link.map_err(|error| refused(self.name, what, error))
    }

    /// The number of the host's active flows as of the last packet; `None` if flows are not counted, or no flow is
    /// active.
    ///
    /// # Errors
    /// The operating system does not map the array.
    pub fn active_flows(&self) -> io::Result<Option<u64>> {
        read_host(self.data(".data.host")?.as_fd())
    }

    /// Keeps the scheme in the kernel after this value and the process are gone.
    ///
    /// # Errors
    /// There is no BPF file system at `/sys/fs/bpf`, the scheme is already pinned, or other users can write to its
    /// folder.
    pub fn pin(&mut self) -> Result<(), LoadError> {
        let folder = pins().ok_or(LoadError::NoPins)?.join(self.name);
        // Removes a partially pinned scheme, but not a folder of another user.
        self.pin_into(&folder).inspect_err(|error| {
            if !matches!(error, LoadError::Foreign { .. }) {
                drop(unload(self.name));
            }
        })
    }

    fn pin_into(&mut self, folder: &Path) -> Result<(), LoadError> {
        for path in [folder.parent(), Some(folder)].into_iter().flatten() {
            airpace_files::make_own_folder(path)
                .map_err(|error| LoadError::Foreign { path: path.to_owned(), error })?;
        }
        let name = self.name;
        let refused = |what| move |error| refused(name, what, error);
        for mut map in self.object.maps_mut() {
            let map_name = map.name().to_string_lossy().into_owned();
            let pinned = match map_name.strip_prefix(".data.") {
                Some(data) => data,
                None if map_name == name && !self.has_links => OPS,
                None => continue,
            };
            map.pin(folder.join(pinned)).map_err(refused("pin"))?;
        }
        for mut program in self.object.progs_mut().filter(|program| program.name() == ROOM) {
            program.pin(folder.join("room")).map_err(refused("pin"))?;
        }
        let mut shown = self.show().map(Some).map_err(refused("show flows"))?;
        let links = [
            (&mut shown, FLOWS),
            (&mut self.options, "options"),
            (&mut self.owners, "owners"),
            (&mut self.counter, "counter"),
            (&mut self.relay.lift, "lift"),
            (&mut self.relay.link, BOUNDS),
        ];
        for (link, file) in links {
            if let Some(link) = link {
                link.pin(folder.join(file)).map_err(refused("pin"))?;
            }
        }
        self.relay.stay();
        let Some(link) = &mut self.link else { return Ok(()) };
        if self.has_links {
            return link.pin(folder.join("link")).map_err(refused("pin"));
        }
        link.disconnect();
        Ok(())
    }

    /// An iterator over the flows, which runs when it is read.
    fn show(&self) -> libbpf_rs::Result<Link> {
        let absent = || libbpf_rs::Error::from(io::Error::from(io::ErrorKind::NotFound));
        let found = self.object.progs_mut().find(|found| found.name() == SHOW).ok_or_else(absent)?;
        let at_sockets = if self.name == RELAY { "downloads" } else { "flows" };
        let flows = self.object.maps().find(|map| map.name() == at_sockets);
        found.attach_iter(flows.ok_or_else(absent)?.as_fd())
    }

    /// The array for a feeder.
    ///
    /// # Errors
    /// The scheme needs no array, or the operating system does not map the array.
    pub fn feed(&self) -> io::Result<Feed> {
        Feed::map(self.data(".data.feed")?.as_fd())
    }

    /// The array for a feeder of PBE-CC.
    ///
    /// # Errors
    /// This scheme is not PBE-CC, or the operating system does not map the array.
    pub fn cell(&self) -> io::Result<CellFeed> {
        CellFeed::map(self.data(".data.feed")?.as_fd())
    }

    fn data(&self, name: &str) -> io::Result<libbpf_rs::Map<'_>> {
        Ok(self.object.maps().find(|map| map.name() == name).ok_or(io::ErrorKind::NotFound)?)
    }

    /// The counters of the scheme's flows.
    ///
    /// # Errors
    /// The operating system does not map the array.
    pub fn totals(&self) -> io::Result<Totals> {
        read_totals(self.data(".data.totals")?.as_fd())
    }

    /// The CPU cost of each of the scheme's programs.
    ///
    /// # Errors
    /// `/proc` cannot be read.
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
        let is_loaded = |program: &libbpf_rs::Program<'_>| self.counts_apps || program.name() != OWNER;
        self.object.progs().filter(is_loaded).map(cost).collect()
    }
}

pub(crate) fn refused(name: &'static str, what: &'static str, error: libbpf_rs::Error) -> LoadError {
    let said = messages::take();
    match error.kind() {
        // The verifier writes messages only for callers that may load programs.
        libbpf_rs::ErrorKind::PermissionDenied if said.contains(VERIFIED) && !said.contains(UNREAD) => {
            LoadError::Refused { what, error, said }
        }
        libbpf_rs::ErrorKind::PermissionDenied if is_locked() => LoadError::Lockdown,
        libbpf_rs::ErrorKind::PermissionDenied => LoadError::privileges(),
        libbpf_rs::ErrorKind::AlreadyExists => LoadError::Exists {
            name,
            remedy: Remedy::new("remove it by")
                .task(UserTask::UnloadKernel(name.to_owned()))
                .text(format!(", where {PINS_ROOT} is that with which it was loaded")),
        },
        _ => LoadError::Refused { what, error, said },
    }
}

/// Start of the verifier's last message.
///
/// Source: Linux kernel/bpf/verifier.c (print_verification_stats)
const VERIFIED: &str = "processed ";

/// Start of the message if the kernel refused before the verifier read an instruction, as a kernel that is locked down
/// does.
const UNREAD: &str = "processed 0 insns";

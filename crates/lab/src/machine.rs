//! Examination of this machine: whether it can run the emulator, what the emulator carries on it, and what to do about what is
//! missing.

use std::path::PathBuf;
use std::time::Duration;

use airpace_core::remedy::{Refused, explain_plainly};
use airpace_emu::Session;
use airpace_emu::machine::{self, Lack, Lateness};
use airpace_emu::session::{Far, Reach, SessionPlan};
use airpace_run::shell::quote;

use crate::error::LabError;
use crate::part::Executable;
use crate::selftest::{self, Carried};
use crate::stage;

/// A feature or program that may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Short name of the feature.
    pub name: &'static str,
    /// Whether it is there.
    pub is_there: bool,
    /// What was found, or why it is missing.
    pub detail: String,
    /// Instructions to add the feature if it is missing. If possible, this text is a complete command.
    pub remedy: String,
}

impl Finding {
    /// A finding about a feature that is there.
    pub fn present(name: &'static str, detail: &str) -> Finding {
        Finding { name, is_there: true, detail: detail.to_owned(), remedy: String::new() }
    }
}

/// Duration of the timer measurements, with and without real-time priority.
const TIMERS_FOR: Duration = Duration::from_secs(2);

/// Whether the emulator can run on this machine. Takes no measurements.
pub fn emulator() -> Finding {
    let lack = match machine::is_privileged() {
        true => machine::tun().err(),
        false => machine::tun().and_then(|()| machine::user_namespaces()).err(),
    };
    Finding {
        name: "emulator",
        is_there: lack.is_none(),
        detail: match &lack {
            None => "unmodified programs behind an emulated network".to_owned(),
            Some(Lack { why, .. }) => format!("the emulator cannot run: {why}. What to do:"),
        },
        remedy: lack.map(|lack| lack.remedy).unwrap_or_default(),
    }
}

/// Findings and measurements.
pub struct Examined {
    /// What the emulator needs, and whether it is there.
    pub findings: Vec<Finding>,
    /// Timer lateness of a thread with real-time priority, and of a thread without.
    pub timers: [Option<Lateness>; 2],
    /// Results of the emulator's tests, or the reason why they did not run.
    pub carried: Result<Vec<Carried>, LabError>,
}

/// Number of steps of [`examine`].
pub const STEPS: usize = 2 + selftest::TESTS.len();

/// Performs all checks and measurements; takes about 25 s, during which the machine should be idle. `progress` is called
/// before each step with the number of finished steps, and with the test of the step if it is one of the emulator's.
pub fn examine(mut progress: impl FnMut(usize, Option<&selftest::Test>)) -> Examined {
    let mut timers = [None; 2];
    for (at, (is_first, measured)) in [true, false].into_iter().zip(&mut timers).enumerate() {
        progress(at, None);
        *measured = machine::lateness(is_first, TIMERS_FOR).ok();
    }
    let findings = findings();
    let run = |(at, test)| {
        progress(timers.len() + at, Some(test));
        selftest::run(&Executable::this()?, test)
    };
    let carried = selftest::TESTS.iter().enumerate().map(run).collect();
    Examined { findings, timers, carried }
}

fn findings() -> Vec<Finding> {
    let is_privileged = machine::is_privileged();
    let of = |name: &'static str, has: &str, lacks: &str, lack: Option<Lack>| match lack {
        None => Finding::present(name, has),
        Some(Lack { why, remedy }) => {
            Finding { name, is_there: false, detail: format!("{lacks}: {why}. With them:"), remedy }
        }
    };
    let mut all = vec![
        of(
            "namespaces",
            if is_privileged { "with the rights of root" } else { "in a user namespace, without root" },
            "no user namespaces",
            if is_privileged { None } else { machine::user_namespaces().err() },
        ),
        of("/dev/net/tun", "packet devices can be made", "no packet devices", machine::tun().err()),
    ];
    all.extend(session());
    all.extend([real_time(), memory(), pasta(is_privileged), controls()]);
    all
}

/// Findings about the kernel features and permissions for a session.
fn session() -> Vec<Finding> {
    let begun = Executable::this().and_then(|executable| {
        let inside = stage::inside(&executable);
        let plan = SessionPlan { inside, devices: 1, far: Far::Host { or_own: true } };
        Ok(Session::begin(&plan)?)
    });
    let (session, _interfaces) = match begun {
        Ok(session) => session,
        Err(error) => {
            let detail = Refused::of(&error).to_string();
            return vec![Finding { name: "session", is_there: false, detail, remedy: String::new() }];
        }
    };
    let outside = match session.reach() {
        Reach::Host => Some("programs reach this machine and the outside; the kernel translates addresses"),
        Reach::Relay { udp: true } => {
            Some("programs reach this machine and the outside; their connections end at the far side")
        }
        Reach::Relay { udp: false } => {
            Some("programs reach this machine and the outside by TCP; their connections end at the far side")
        }
        Reach::Here => Some("programs reach what the device of the emulator around this one reaches"),
        Reach::Own => None,
    };
    let doubts: Vec<String> = session.doubts().iter().map(|doubt| explain_plainly(doubt)).collect();
    let doubts = doubts.join("; ");
    vec![
        match session.in_process_namespace() {
            true => Finding::present("processes", "the kernel ends all programs of a run"),
            false => Finding {
                name: "processes",
                is_there: false,
                detail: "no namespaces of processes (parts of /proc are hidden): programs of a run are looked for \
                         and ended one by one"
                    .to_owned(),
                remedy: String::new(),
            },
        },
        Finding {
            name: "outside",
            is_there: outside.is_some(),
            detail: match outside {
                Some(way) if doubts.is_empty() => way.to_owned(),
                Some(way) => format!("{way}. But {doubts}"),
                None => doubts,
            },
            remedy: if in_path("pasta").is_none() { package_line("passt", "passt") } else { String::new() },
        },
    ]
}

fn real_time() -> Finding {
    let lack = machine::real_time().err();
    Finding {
        name: "priority",
        is_there: lack.is_none(),
        detail: match &lack {
            None => format!(
                "the emulator's thread runs before others (SCHED_FIFO {})",
                machine::REAL_TIME_PRIORITY
            ),
            Some(Lack { why, .. }) => format!(
                "no real-time priority, so packets are late when the machine is busy: {why}. Remedy: {}, or",
                limit("rtprio 99")
            ),
        },
        remedy: capabilities(),
    }
}

fn memory() -> Finding {
    let lack = machine::memory_lock().err();
    Finding {
        name: "memory",
        is_there: lack.is_none(),
        detail: match &lack {
            None => "the emulator's memory is kept from the disk".to_owned(),
            Some(Lack { why, .. }) => format!(
                "the emulator's memory may be moved to disk: {why}. What keeps it: {}, or",
                limit("memlock unlimited")
            ),
        },
        remedy: capabilities(),
    }
}

/// Instructions for raising a limit of this user.
fn limit(what: &str) -> String {
    let user = std::env::var("USER").ok().filter(|name| !name.is_empty());
    let user = user.unwrap_or_else(|| "USER".to_owned());
    format!("a line `{user} - {what}` in /etc/security/limits.conf and a new login")
}

/// Command that gives the program both capabilities (real-time priority, memory lock) for all users. A program with
/// file capabilities keeps only capabilities that its file names. The program needs the inheritable capabilities on a
/// device of another emulator.
///
/// Source: man-pages capabilities(7) ("Transformation of capabilities during execve()")
fn capabilities() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "airpace".into());
    format!(
        "sudo setcap 'cap_sys_nice,cap_ipc_lock=ep cap_sys_admin,cap_net_admin,cap_net_raw,cap_net_bind_service=ei' {}",
        quote(&program.to_string_lossy())
    )
}

fn pasta(is_privileged: bool) -> Finding {
    let found = in_path("pasta");
    Finding {
        name: "pasta",
        is_there: found.is_some(),
        detail: match found {
            Some(path) => format!("carries packets to the outside without root: {}", path.display()),
            None if is_privileged => {
                "not installed; root needs it nowhere, other users for the outside:".to_owned()
            }
            None => "not installed; without root it carries packets to the outside:".to_owned(),
        },
        remedy: package_line("passt", "passt"),
    }
}

/// Finding about the kernel's congestion controls.
fn controls() -> Finding {
    let read = |what: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{what}_congestion_control"));
        text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(", ")
    };
    let has = read("available");
    Finding {
        name: "kernel's TCP",
        is_there: has.contains("bbr"),
        detail: match has.contains("bbr") {
            true => has,
            false => format!("{has}; for bbr too:"),
        },
        remedy: "sudo modprobe tcp_bbr".to_owned(),
    }
}

/// A command that installs a Debian package, or a sentence if the system does not use apt-get.
pub fn package_line(package: &str, what: &str) -> String {
    let install = format!("apt-get update && apt-get install -y {package}");
    if in_path("apt-get").is_none() {
        format!("install {what} with your system's package manager")
    } else if rustix::process::geteuid().is_root() {
        install
    } else if in_path("sudo").is_some() {
        format!("sudo sh -c '{install}'")
    } else {
        format!("su -c '{install}'")
    }
}

/// The folder of recordings that `AIRPACE_DATA` names, if it contains a subfolder `traces`.
pub fn data_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("AIRPACE_DATA")?);
    folder.join("traces").is_dir().then(|| folder.canonicalize().unwrap_or(folder))
}

/// Number of threads that can run at the same time.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The path of a program, as a shell would find it.
pub fn in_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

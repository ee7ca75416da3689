//! `airpace doctor --emu`: measures the emulator's capacity on this machine, and shows how to increase it.

use std::io::Write;
use std::time::Duration;

use airpace_core::Refused;
use airpace_emu::machine::{self, Lack, Lateness};
use airpace_emu::session::{Far, Reach, SessionPlan};
use airpace_emu::{Audit, Session};
use airpace_lab::selftest::{self, Carried};
use airpace_lab::{Executable, stage};
use airpace_run::shell::quote;
use serde_json::{Value, json};

use super::{Finding, in_path, package_line, present};
use crate::explain::explained;
use crate::terminal::{self, Paint, Table};

/// Duration of the timer measurements, with and without real-time priority.
const TIMERS_FOR: Duration = Duration::from_secs(2);

/// Finding of `airpace doctor` without `--emu`: whether `airpace emu` can run on this machine.
pub fn line() -> Finding {
    let lack = match machine::is_privileged() {
        true => machine::tun().err(),
        false => machine::tun().and_then(|()| machine::user_namespaces()).err(),
    };
    Finding {
        name: "emulator",
        is_there: lack.is_none(),
        detail: match &lack {
            None => {
                "unmodified programs behind an emulated network: `airpace emu`; what this machine carries: \
                     `airpace doctor --emu`"
                    .to_owned()
            }
            Some(Lack { why, .. }) => format!("`airpace emu` cannot run: {why}. What to do:"),
        },
        remedy: lack.map(|lack| lack.remedy).unwrap_or_default(),
    }
}

/// Findings and measurements.
pub struct Examined {
    pub findings: Vec<Finding>,
    /// Timer lateness of a thread with real-time priority, and of a thread without.
    timers: [Option<Lateness>; 2],
    /// Results of the emulator's tests, or the reason why they did not run.
    carried: Result<Vec<Carried>, String>,
}

/// Performs all checks and measurements; takes about 25 s.
pub fn examine() -> Examined {
    let bar = terminal::progress(false);
    bar.set_length(2 + selftest::TESTS.len() as u64);
    bar.set_message("timers");
    let mut timers = [None; 2];
    for (is_first, measured) in [true, false].into_iter().zip(&mut timers) {
        *measured = machine::lateness(is_first, TIMERS_FOR).ok();
        bar.inc(1);
    }
    let findings = findings();
    let mut carried = Ok(vec![]);
    for test in &selftest::TESTS {
        bar.set_message(format!("{} Mbit/s {}", test.rate_mbps, test.way()));
        match Executable::this().and_then(|executable| selftest::run(&executable, test)) {
            Ok(measured) => drop(carried.as_mut().map(|all: &mut Vec<Carried>| all.push(measured))),
            Err(error) => {
                carried = Err(Refused::of(&error).to_string());
                break;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Examined { findings, timers, carried }
}

fn findings() -> Vec<Finding> {
    let is_privileged = machine::is_privileged();
    let of = |name: &'static str, has: &str, lacks: &str, lack: Option<Lack>| match lack {
        None => present(name, has),
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
    let doubts: Vec<String> = session.doubts().iter().map(|doubt| explained(doubt)).collect();
    let doubts = doubts.join("; ");
    vec![
        match session.in_process_namespace() {
            true => present("processes", "the kernel ends all programs of a run"),
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
                "no real-time priority, so packets come late when the machine is busy: {why}. What gives it: {}, or",
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

impl Examined {
    /// The results as members of the object that `--json` prints.
    pub fn json(&self) -> Value {
        let timers: Vec<Value> = [true, false]
            .into_iter()
            .zip(&self.timers)
            .filter_map(|(has, late)| {
                let late = late.as_ref()?;
                Some(json!({
                    "realtime_priority": has,
                    "late_p50_us": late.p50_us,
                    "late_p99_us": late.p99_us,
                    "late_p999_us": late.p999_us,
                    "late_max_us": late.max_us,
                }))
            })
            .collect();
        let carried: Vec<Value> = self.carried.iter().flatten().map(Carried::json).collect();
        let error = self.carried.as_ref().err();
        json!({ "timers": timers, "throughput": carried, "throughput_error": error })
    }

    /// Prints the findings and measurements.
    pub fn write(&self, out: &mut dyn Write, paint: Paint) -> anyhow::Result<()> {
        writeln!(out, "\nHow late timers wake a thread, in µs:")?;
        let mut table = Table::new(&["thread", "p50", "p99", "p99.9", "max"], 1);
        for (name, late) in ["with priority", "without"].into_iter().zip(&self.timers) {
            let number = |of: fn(&Lateness) -> f64| {
                late.as_ref().map_or("-".to_owned(), |it| format!("{:.0}", of(it)))
            };
            table.row(vec![
                name.to_owned(),
                number(|it| it.p50_us),
                number(|it| it.p99_us),
                number(|it| it.p999_us),
                number(|it| it.max_us),
            ]);
        }
        table.write(out, paint)?;
        let carried = match &self.carried {
            Err(error) => {
                writeln!(out, "\n{}", terminal::fit(&format!("The emulator does not run: {error}")))?;
                return Ok(());
            }
            Ok(carried) => carried,
        };
        writeln!(out, "\nWhat the emulator carries (TCP through a link of this rate, both in Mbit/s):")?;
        let head = ["link", "way", "goodput", "packets/s", "late p50, ms", "p99.9", "core", "fit"];
        let mut table = Table::new(&head, 0);
        for it in carried {
            let Audit { lateness_p50_ms, lateness_p999_ms, cpu, .. } = it.audit;
            table.row(vec![
                it.test.rate_mbps.to_string(),
                it.test.way().to_owned(),
                format!("{:.1}", it.goodput_mbps),
                format!("{:.0}", it.packets_per_s()),
                format!("{lateness_p50_ms:.2}"),
                format!("{lateness_p999_ms:.2}"),
                format!("{:.0} %", cpu * 100.0),
                if it.audit.is_fit() { "yes" } else { "no" }.to_owned(),
            ]);
        }
        table.write(out, paint)?;
        let mut told: Vec<&str> = vec![];
        for reason in carried.iter().flat_map(|it| &it.audit.unfit_because) {
            // Print one sentence per kind of reason.
            let kind = |text: &str| text.chars().filter(|it| !it.is_ascii_digit()).collect::<String>();
            if !told.iter().any(|it| kind(it) == kind(reason)) {
                told.push(reason);
            }
        }
        for reason in told {
            writeln!(out, "{}", terminal::hang("Not fit: ", reason, 9, terminal::columns()))?;
        }
        Ok(())
    }
}

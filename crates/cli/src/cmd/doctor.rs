//! `airpace doctor`: prints the capabilities of this build and this machine, and remedies for missing ones.

mod emu;
mod kernel;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use airpace_lab::machine::{self, Finding, data_folder, in_path, package_line};
use airpace_run::Host;
use airpace_run::shell::quote;
use airpace_sdr::radio;
use serde_json::json;

use super::Verdict;
use crate::called;
use crate::installation;
use crate::terminal::{Paint, columns, hang};

/// Prints the capabilities of this build and this machine, and remedies for missing ones.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace doctor\n         airpace doctor --emu\n         airpace doctor --json"
)]
pub struct Args {
    /// Measures this machine's fitness for the emulator (`airpace emu`): rights, timers, throughput.
    ///
    /// The measurement takes half a minute, during which the machine should be idle.
    #[arg(long)]
    emu: bool,
    /// Prints one JSON object instead of lines for people.
    #[arg(long)]
    json: bool,
}

/// Column in which details start.
const INDENT: usize = 20;
/// Indentation of details on a terminal that is narrower than [`NARROW`]: details are below their name.
const NARROW_INDENT: usize = 5;
const NARROW: usize = 60;

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let host = Host::here("", 1);
    let machine = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("commit", env!("AIRPACE_COMMIT").to_owned()),
        ("build", build()),
        ("system", host.platform),
        ("processor", host.processor),
        ("cores", host.processors.to_string()),
    ];
    let examined = args.emu.then(emu::examine);
    let findings = match &examined {
        Some(examined) => &examined.findings,
        None => &findings(called::checkout().as_deref()),
    };
    if args.json {
        let mut object = serde_json::Map::new();
        for (key, value) in machine {
            object.insert(key.to_owned(), json!(value));
        }
        object["cores"] = json!(host.processors);
        let findings: serde_json::Map<_, _> = findings
            .iter()
            .map(|it| {
                let remedy = if it.is_there { "" } else { &it.remedy };
                (it.name.to_owned(), json!({ "present": it.is_there, "detail": it.detail, "remedy": remedy }))
            })
            .collect();
        object.insert("features".to_owned(), findings.into());
        if let Some(examined) = &examined {
            object.insert("emulator".to_owned(), emu::json(examined));
        }
        writeln!(out, "{}", serde_json::Value::from(object))?;
        return Ok(Verdict::Fine);
    }
    let paint = Paint::stdout();
    let columns = columns();
    let indent = if columns < NARROW { NARROW_INDENT } else { INDENT };
    for (key, value) in machine {
        writeln!(out, "{}", hang(&format!("{key:<12} "), &value, NARROW_INDENT, columns))?;
    }
    writeln!(out)?;
    for finding in findings {
        let has_remedy = !finding.is_there && !finding.remedy.is_empty();
        let lead = format!("{}  {:<14} ", if finding.is_there { "yes" } else { "no " }, finding.name);
        let told = hang(&lead, &finding.detail, indent, columns);
        let (mark, rest) = told.split_at("yes".len());
        let mark = match finding.is_there {
            true => paint.good(mark),
            // A missing feature without a remedy is not shown as bad.
            false if !has_remedy => mark.to_owned(),
            false => paint.bad(mark),
        };
        writeln!(out, "{mark}{rest}")?;
        // Do not wrap commands, so that they can be pasted.
        if has_remedy {
            writeln!(out, "{:indent$}{}", "", finding.remedy)?;
        }
    }
    if let Some(examined) = &examined {
        emu::write(examined, out, paint)?;
    }
    Ok(Verdict::Fine)
}

/// Build options of this binary.
fn build() -> String {
    let speed =
        if cfg!(debug_assertions) { "debug: slow; `./airpace` builds the fast one" } else { "release" };
    let linked = if cfg!(target_feature = "crt-static") { ", static" } else { "" };
    let package = installation::package().map(|package| format!(", {package}")).unwrap_or_default();
    format!("{speed}{linked}{package}")
}

fn findings(checkout: Option<&Path>) -> Vec<Finding> {
    let mut findings = vec![
        Finding::present("simulator", "simulated cells and trace replay, on a virtual clock"),
        Finding::present(
            "modem logs",
            &format!(
                "recorded logs, live ports, the daemon, a modem to test against: {}",
                called::command("diag")
            ),
        ),
        Finding::present(
            "recorded radio",
            &format!("the control channel of LTE cells in radio samples: {}", called::command("decode")),
        ),
        Finding::present(
            "transports",
            &format!(
                "its schemes over real networks, by UDP and QUIC: {}, {}",
                called::command("send"),
                called::command("agree")
            ),
        ),
        emulator(),
        command(),
        modem(),
        wireshark(),
        recordings(),
        live_radio(),
    ];
    findings.extend(checkout.map(wasm_target));
    findings.push(kernel::line());
    findings.push(proxy());
    findings
}

/// Whether the emulator runs here, and the commands for it.
fn emulator() -> Finding {
    let mut finding = machine::emulator();
    if finding.is_there {
        finding.detail += &format!(
            ": {}; what this machine carries: {}",
            called::command("emu"),
            called::command("doctor --emu")
        );
    }
    finding
}

/// Finding about the program on PATH: whether there is one, and whether it is this program.
fn command() -> Finding {
    let found = in_path("airpace");
    let is_this = |path: &Path| path.canonicalize().ok() == std::env::current_exe().ok();
    Finding {
        name: "command",
        is_there: found.is_some(),
        detail: match found {
            Some(path) if is_this(&path) => format!("found by shells: {}", path.display()),
            Some(path) => format!("shells find another one than this: {}", path.display()),
            None => {
                "no `airpace` is on PATH; installing puts one there, with manual and completions".to_owned()
            }
        },
        remedy: format!("{} install", called::name()),
    }
}

fn modem() -> Finding {
    let ports = modem_ports();
    Finding {
        name: "modem",
        is_there: !ports.is_empty(),
        detail: match &ports[..] {
            [] => {
                "no serial device and no /dev/diag; one may still be behind --tcp. Without, a modem to test \
                   against:"
                    .to_owned()
            }
            ports => {
                let names: Vec<_> = ports.iter().map(|port| port.display().to_string()).collect();
                format!("ports on which one may be: {}", names.join(", "))
            }
        },
        remedy: format!("{} diag modem competitor", called::name()),
    }
}

fn wireshark() -> Finding {
    let found = ["wireshark", "tshark"].into_iter().find_map(in_path);
    Finding {
        name: "wireshark",
        is_there: found.is_some(),
        detail: match found {
            Some(path) => format!("opens captures of `diag decode --pcap`: {}", path.display()),
            None => "nothing to open captures of `diag decode --pcap` with".to_owned(),
        },
        remedy: package_line("tshark", "Wireshark"),
    }
}

fn recordings() -> Finding {
    let named = std::env::var_os("AIRPACE_DATA").filter(|folder| !folder.is_empty());
    let found = data_folder();
    Finding {
        name: "recordings",
        is_there: found.is_some(),
        detail: match (&found, named) {
            (Some(folder), _) => format!("recorded traces in {}", folder.display()),
            (None, Some(folder)) => {
                format!("AIRPACE_DATA is {}, which has no folder traces", Path::new(&folder).display())
            }
            (None, None) => {
                "no folder of recorded traces; the demo makes a trace of its own. If you have some, \
                             as DIR/traces/*.down:"
                    .to_owned()
            }
        },
        remedy: "export AIRPACE_DATA=DIR".to_owned(),
    }
}

/// Finding about the radios that SoapySDR detects, if the program was built with it.
fn live_radio() -> Finding {
    let devices = radio::devices();
    Finding {
        name: "live radio",
        is_there: devices.as_ref().is_ok_and(|devices| !devices.is_empty()),
        detail: match devices {
            Ok(devices) if devices.is_empty() => {
                "built with SoapySDR, which finds no radio: plug one in; drivers:".to_owned()
            }
            Ok(devices) => format!("radios for `decode --device`: {}", devices.join("; ")),
            Err(_) if !radio::IS_BUILT => {
                "left out of this build: `decode` reads recordings, `--device` is refused. With it:"
                    .to_owned()
            }
            Err(error) => error.to_string(),
        },
        // A static binary cannot load the drivers of radios, so only another build can support live radio.
        remedy: match radio::IS_BUILT {
            true => package_line("soapysdr-module-all", "SoapySDR's modules"),
            false => build_with("sdr"),
        },
    }
}

/// Finding about the proxy that splits TCP, which only some builds contain.
fn proxy() -> Finding {
    let is_built = cfg!(feature = "proxy");
    let command = called::command("proxy");
    Finding {
        name: "proxy",
        is_there: is_built,
        detail: match is_built {
            true => format!("TCP connections split, with another congestion control on each leg: {command}"),
            false => format!("left out of this build: the proxy that splits TCP ({command}). With it:"),
        },
        remedy: build_with("proxy"),
    }
}

/// The command that builds this program with a feature of cargo.
fn build_with(feature: &str) -> String {
    match called::checkout() {
        Some(_) => format!("AIRPACE_FEATURES={feature} {} doctor", called::name()),
        None => format!(
            "git clone {} && cd airpace && AIRPACE_FEATURES={feature} ./airpace doctor",
            env!("CARGO_PKG_REPOSITORY")
        ),
    }
}

/// Finding about the target for which the tests build the pure crates. It matters only in a checkout of the sources.
fn wasm_target(checkout: &Path) -> Finding {
    let rustc = rust_program("rustc");
    let asked = rustc.and_then(|rustc| {
        // The command runs in the checkout, to check the checkout's toolchain. This check must not download anything.
        let mut command = Command::new(rustc);
        command
            .args(["--print", "sysroot"])
            .current_dir(checkout)
            .env("RUSTUP_AUTO_INSTALL", "0")
            .output()
            .ok()
    });
    let sysroot = asked.and_then(|answer| Some(PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim())));
    let is_there =
        sysroot.is_some_and(|sysroot| sysroot.join("lib/rustlib/wasm32-unknown-unknown/lib").is_dir());
    Finding {
        name: "wasm32 target",
        is_there,
        detail: match is_there {
            true => "the tests can build the pure crates for wasm32",
            false => "the tests build the pure crates for wasm32; ./test installs it, or:",
        }
        .to_owned(),
        remedy: match rust_program("rustup") {
            // The command has the full path of rustup if rustup is not on PATH, and runs in the checkout.
            Some(rustup) => format!(
                "(cd {} && {} target add wasm32-unknown-unknown)",
                quote(&checkout.to_string_lossy()),
                quote(&if in_path("rustup").is_some() { "rustup".into() } else { rustup.to_string_lossy() })
            ),
            None => quote(&checkout.join("test").to_string_lossy()),
        },
    }
}

/// A program of Rust: on PATH, or in rustup's folder, which is not on PATH after a fresh installation.
fn rust_program(name: &str) -> Option<PathBuf> {
    let home =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cargo = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
    in_path(name).or_else(|| Some(cargo?.join("bin").join(name)).filter(|path| path.is_file()))
}

/// Ports on which there may be a modem: `/dev/diag`, and serial devices by their persistent names.
fn modem_ports() -> Vec<PathBuf> {
    let by_id =
        std::fs::read_dir("/dev/serial/by-id").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut ports: Vec<PathBuf> = by_id.collect();
    ports.sort();
    ports.extend(Some(PathBuf::from("/dev/diag")).filter(|driver| driver.exists()));
    ports
}

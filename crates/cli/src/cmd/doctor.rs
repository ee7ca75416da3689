//! `airpace doctor`: what this build and this machine can do, and how to get the rest.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use airpace_eval::Host;
use airpace_live::radio;
use serde_json::json;

use super::Verdict;
use crate::terminal::Paint;

/// Tells what this build and this machine can do, and how to get the rest.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace doctor\n         airpace doctor --json")]
pub struct Args {
    /// One JSON object instead of lines for people.
    #[arg(long)]
    json: bool,
}

/// Something that may be there or not.
struct Finding {
    name: &'static str,
    is_there: bool,
    detail: String,
    /// What to do if it is missing and wanted.
    remedy: &'static str,
}

/// Tells.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let host = Host::here("", 1);
    let machine = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("commit", env!("AIRPACE_COMMIT").to_owned()),
        (
            "build",
            if cfg!(debug_assertions) { "debug: slow; `./airpace` builds the fast one" } else { "release" }
                .to_owned(),
        ),
        ("system", host.platform),
        ("processor", host.processor),
        ("cores", host.processors.to_string()),
    ];
    let findings = findings();
    if args.json {
        let mut object = serde_json::Map::new();
        for (key, value) in machine {
            object.insert(key.to_owned(), json!(value));
        }
        object["cores"] = json!(host.processors);
        let findings: serde_json::Map<_, _> = findings
            .iter()
            .map(|it| {
                (
                    it.name.to_owned(),
                    json!({ "present": it.is_there, "detail": it.detail, "remedy": it.remedy }),
                )
            })
            .collect();
        object.insert("features".to_owned(), findings.into());
        writeln!(out, "{}", serde_json::Value::from(object))?;
        return Ok(Verdict::Fine);
    }
    let paint = Paint::stdout();
    for (key, value) in machine {
        writeln!(out, "{key:<12} {value}")?;
    }
    writeln!(out)?;
    for finding in findings {
        let mark = if finding.is_there { paint.good("yes") } else { paint.bad("no ") };
        writeln!(out, "{mark}  {:<14} {}", finding.name, finding.detail)?;
        if !finding.is_there && !finding.remedy.is_empty() {
            writeln!(out, "{:20}{}", "", finding.remedy)?;
        }
    }
    Ok(Verdict::Fine)
}

fn findings() -> Vec<Finding> {
    let recordings = data_folder();
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(in_path);
    let wasm = wasm_target();
    let ports = modem_ports();
    let wireshark = ["wireshark", "tshark"].into_iter().find_map(in_path);
    vec![
        Finding {
            name: "simulator",
            is_there: true,
            detail: "simulated cells and trace replay, on a virtual clock".to_owned(),
            remedy: "",
        },
        Finding {
            name: "modem logs",
            is_there: true,
            detail: "recorded logs, live ports, the daemon, a modem to test against: `airpace diag`"
                .to_owned(),
            remedy: "",
        },
        Finding {
            name: "recorded radio",
            is_there: true,
            detail: "the control channel of LTE cells in radio samples: `airpace decode`".to_owned(),
            remedy: "",
        },
        Finding {
            name: "modem",
            is_there: !ports.is_empty(),
            detail: match &ports[..] {
                [] => "no serial device and no /dev/diag; a modem may still be behind --tcp".to_owned(),
                ports => {
                    let names: Vec<_> = ports.iter().map(|port| port.display().to_string()).collect();
                    format!("ports on which one may be: {}", names.join(", "))
                }
            },
            remedy: "plug one in that has a diagnostic port, or try `airpace diag modem`",
        },
        Finding {
            name: "wireshark",
            is_there: wireshark.is_some(),
            detail: wireshark.map_or_else(
                || "nothing to open captures of `diag decode --pcap` with".to_owned(),
                |path| format!("opens captures of `diag decode --pcap`: {}", path.display()),
            ),
            remedy: "apt-get install wireshark",
        },
        Finding {
            name: "recordings",
            is_there: recordings.is_some(),
            detail: recordings.map_or_else(
                || "no folder of recorded traces; the demo makes a trace of its own".to_owned(),
                |folder| format!("recorded traces in {}", folder.display()),
            ),
            remedy: "set AIRPACE_DATA to a folder that has traces/*.down",
        },
        Finding {
            name: "screenshots",
            is_there: chromium.is_some(),
            detail: chromium.map_or_else(
                || "no Chromium to take pictures of reports; any browser shows them".to_owned(),
                |path| format!("Chromium for pictures of reports: {}", path.display()),
            ),
            remedy: "apt-get install chromium",
        },
        Finding {
            name: "wasm32 target",
            is_there: wasm.is_some(),
            detail: wasm.unwrap_or_else(|| "Rust cannot build for wasm32; ./test needs it".to_owned()),
            remedy: "rustup target add wasm32-unknown-unknown",
        },
        live_radio(),
        absent("live", "no runs over real networks (UDP, QUIC, TUN): this version simulates only"),
        absent("kernel", "no controllers in the kernel (BPF struct_ops): not in this version"),
    ]
}

/// Radios that SoapySDR knows, if this was built with it.
fn live_radio() -> Finding {
    let devices = radio::devices();
    Finding {
        name: "live radio",
        is_there: devices.as_ref().is_ok_and(|devices| !devices.is_empty()),
        detail: match devices {
            Ok(devices) if devices.is_empty() => {
                "built with SoapySDR, which finds no radio: `decode` reads recordings".to_owned()
            }
            Ok(devices) => format!("radios for `decode --device`: {}", devices.join("; ")),
            Err(_) if !radio::IS_BUILT => "built without SoapySDR: `decode` reads recordings".to_owned(),
            Err(error) => error.to_string(),
        },
        remedy: match radio::IS_BUILT {
            true => "plug one in, and install its driver: apt-get install soapysdr-module-all",
            false => radio::REMEDY,
        },
    }
}

/// Ports on which a modem may listen: `/dev/diag`, and serial devices by names that stay.
fn modem_ports() -> Vec<PathBuf> {
    let by_id =
        std::fs::read_dir("/dev/serial/by-id").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut ports: Vec<PathBuf> = by_id.collect();
    ports.sort();
    ports.extend(Some(PathBuf::from("/dev/diag")).filter(|driver| driver.exists()));
    ports
}

/// What the project plans and this version does not have: nothing can be installed for it.
fn absent(name: &'static str, detail: &str) -> Finding {
    Finding { name, is_there: false, detail: detail.to_owned(), remedy: "" }
}

/// The folder of recordings that `AIRPACE_DATA` names, if it holds traces.
pub fn data_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("AIRPACE_DATA")?);
    folder.join("traces").is_dir().then(|| folder.canonicalize().unwrap_or(folder))
}

/// How many threads can run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Where a program is, as a shell would find it.
pub fn in_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

fn wasm_target() -> Option<String> {
    let asked = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    sysroot
        .join("lib/rustlib/wasm32-unknown-unknown/lib")
        .is_dir()
        .then(|| "pure crates can be checked for wasm32".to_owned())
}

//! Compiles the C ports for the host and, if the crate can load programs, the programs for the kernel.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const HEADERS: &[&str] = &[
    "fixed.h",
    "intf.h",
    "bbr_state.h",
    "bbr.h",
    "biscay_state.h",
    "biscay.h",
    "active.h",
    "split.h",
    "window.h",
    "feed.h",
    "count.h",
    "pcc.h",
    "morc_state.h",
    "morc.h",
    "pbe_state.h",
    "pbe_buffer.h",
    "pbe_guard.h",
    "pbe.h",
    "pbe_receiver.h",
    "pbe_option.h",
    "pbe_exchange.h",
    "kernel.h",
    "sock.h",
    "scheme.h",
    "shown.h",
    "sockops.h",
    "fallback.h",
];

const PROGRAMS: &[&str] = &["biscay.bpf", "morc.bpf", "pbe.bpf", "probe.bpf", "run.bpf", "window.bpf"];

fn main() {
    for file in HEADERS.iter().chain(&["host.c"]) {
        println!("cargo::rerun-if-changed=src/bpf/{file}");
    }
    for program in PROGRAMS {
        println!("cargo::rerun-if-changed=src/bpf/{program}.c");
    }
    println!("cargo::rerun-if-env-changed=AIRPACE_CLANG");
    println!("cargo::rustc-check-cfg=cfg(has_programs)");
    // The C ports are optimized as in the kernel, also in debug builds.
    cc::Build::new()
        .file("src/bpf/host.c")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("airpace_twins");
    if env::var_os("CARGO_FEATURE_LOAD").is_some() {
        if let Err(said) = programs() {
            // In a package build, missing programs are an error, because users of a package cannot rebuild it with
            // clang.
            assert!(env::var_os("CARGO_FEATURE_PACKAGED").is_none(), "no programs for the kernel: {said}");
            println!("cargo::warning=no programs for the kernel: {said}");
        } else {
            println!("cargo::rustc-cfg=has_programs");
        }
    }
}

/// Compiles the programs. Without a compiler, the build continues, and the loader reports the missing programs.
fn programs() -> Result<(), String> {
    let clang = env::var("AIRPACE_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    // The programs contain the names of their sources. With relative names, the compiled bytes do not depend on the
    // folder.
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    for program in PROGRAMS {
        let output = Command::new(&clang)
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
            .arg(format!("-fdebug-prefix-map={here}=."))
            .args(["-c", &format!("src/bpf/{program}.c"), "-o"])
            .arg(folder.join(format!("{program}.o")))
            .output()
            .map_err(|error| format!("{clang}: {error} (Debian: apt-get install clang)"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error")).unwrap_or("no message");
            return Err(format!("{clang} fails: {first}"));
        }
    }
    Ok(())
}

//! Compiles the twins for the host and, if the crate is to load programs, the programs for the kernel.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const HEADERS: &[&str] = &["fixed.h", "intf.h", "biscay.h", "kernel.h"];

fn main() {
    for file in HEADERS.iter().chain(&["host.c", "biscay.bpf.c"]) {
        println!("cargo::rerun-if-changed=src/bpf/{file}");
    }
    println!("cargo::rerun-if-env-changed=AIRPACE_CLANG");
    println!("cargo::rustc-check-cfg=cfg(has_programs)");
    // Optimised as in the kernel, also in builds for debugging.
    cc::Build::new()
        .file("src/bpf/host.c")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("airpace_twins");
    if env::var_os("CARGO_FEATURE_LOAD").is_some() {
        programs();
    }
}

/// Compiles the programs. Without a compiler, the build goes on, and the loader says what is missing.
fn programs() {
    let clang = env::var("AIRPACE_CLANG").unwrap_or_else(|_| "clang".to_owned());
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let output = Command::new(&clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"])
        .args(["-c", "src/bpf/biscay.bpf.c", "-o"])
        .arg(folder.join("biscay.bpf.o"))
        .output();
    match output {
        Ok(output) if output.status.success() => println!("cargo::rustc-cfg=has_programs"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error")).unwrap_or("no message").to_owned();
            println!("cargo::warning=no programs for the kernel: {clang} fails: {first}");
        }
        Err(error) => {
            println!(
                "cargo::warning=no programs for the kernel: {clang}: {error} (Debian: apt-get install clang)"
            );
        }
    }
}

//! Compiles the twins for the host.

fn main() {
    for file in ["fixed.h", "intf.h", "biscay.h", "host.c"] {
        println!("cargo::rerun-if-changed=src/bpf/{file}");
    }
    // Optimised as in the kernel, also in builds for debugging.
    cc::Build::new()
        .file("src/bpf/host.c")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("airpace_twins");
}

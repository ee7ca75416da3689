//! Gives `libod.so` its name for the dynamic linker: programs linked against it ask for this version's interface.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libod.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}

//! Sets the soname of `libod.so`: programs linked against the library request this interface version from the dynamic
//! linker.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libod.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}

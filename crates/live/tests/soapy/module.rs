//! The radio for tests, compiled as a module of SoapySDR.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where SoapySDR looks for modules beside those that are installed.
pub const PLUGIN_PATH: &str = "SOAPY_SDR_PLUGIN_PATH";

/// Compiles the radio for tests into a folder; `None`, and a word on why, where that cannot be done.
pub fn build(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../live/tests/soapy/file_device.cpp");
    let module = folder.join("libairpace_file.so");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
    match compiler.arg(&module).arg(source).arg("-lSoapySDR").output() {
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "the module compiles: {said}");
            Some(module)
        }
        Err(error) => {
            eprintln!("skipped: the radio for tests cannot be compiled: c++: {error}");
            None
        }
    }
}

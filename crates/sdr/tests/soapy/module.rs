//! The test radio, compiled as a module of SoapySDR.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable with a folder in which SoapySDR searches for additional modules.
pub const PLUGIN_PATH: &str = "SOAPY_SDR_PLUGIN_PATH";

/// Compiles the test radio into a folder; `None` if there is no compiler.
pub fn build(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdr/tests/soapy/file_device.cpp");
    let module = folder.join("libairpace_file.so");
    if !airpace_testing::has_program("c++", "g++") {
        return None;
    }
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]);
    let done = compiler.arg(&module).arg(source).arg("-lSoapySDR").output().expect("the compiler starts");
    assert!(done.status.success(), "the module compiles: {}", String::from_utf8_lossy(&done.stderr));
    Some(module)
}

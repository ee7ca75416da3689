//! Stores in the binary the commit that it is built from, for `airpace doctor` and manifests.

use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=AIRPACE_COMMIT={commit}");
    // HEAD's log grows with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// The output of git; `None` outside a repository or without git.
fn git(arguments: &[&str]) -> Option<String> {
    let answer =
        Command::new("git").args(arguments).output().ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8(answer.stdout).ok()?.trim().to_owned())
}

//! Headless browser for tests of the page, if one is installed.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use airpace_testing::one_of_programs;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Script that is inserted into a copy of the page. It measures the drawn elements.
const PROBE: &str = include_str!("probe.js");
/// Page with one frame per width. It collects the measurements of the copies in the frames, and puts them into its title.
const AROUND: &str = r#"<!doctype html><title>waiting</title><script>
const told = [];
addEventListener("message", (event) => {
  told.push(JSON.parse(event.data));
  const bytes = new TextEncoder().encode(JSON.stringify(told));
  document.title = "facts:" + btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
});
</script>"#;

/// Chromium with its own profile folder.
pub struct Browser {
    program: &'static str,
    folder: PathBuf,
}

impl Browser {
    /// The first installed browser; `None` if none is installed.
    pub fn find(folder: &Path) -> Option<Browser> {
        let program = one_of_programs(&["chromium", "chromium-browser", "google-chrome"], "chromium")?;
        Some(Browser { program, folder: folder.to_owned() })
    }

    /// Measurements of the probe on `page`, for each of these widths.
    pub fn measure(&self, page: &str, widths: &[u32], is_dark: bool) -> Vec<Value> {
        // The content security policy of the page stays in force, with the probe added.
        let page = page.replacen("script-src ", "script-src 'nonce-probe' ", 1);
        // The plotting library contains a `</body>` tag as text. The last one is the page's own.
        let (before, after) = page.rsplit_once("</body>").expect("the page ends");
        let page = format!("{before}<script nonce=\"probe\">{PROBE}</script></body>{after}");
        fs::write(self.folder.join("probed.html"), page).unwrap();
        let mut around = AROUND.to_owned();
        for width in widths {
            write!(
                around,
                r#"<iframe src="probed.html" width="{width}" height="900" style="border:0"></iframe>"#
            )
            .unwrap();
        }
        let path = self.folder.join("around.html");
        fs::write(&path, around).unwrap();
        // Chromium's virtual clock jumps ahead when no work is pending. The measurements are therefore independent of the
        // speed of the machine.
        let told = self.run(&["--virtual-time-budget=60000", "--dump-dom"], is_dark, &path);
        let (_, facts) =
            told.split_once("<title>facts:").unwrap_or_else(|| panic!("the page sent nothing: {told:.2000}"));
        let facts = STANDARD.decode(facts.split('<').next().unwrap()).expect("base64");
        let facts: Vec<Value> = serde_json::from_slice(&facts).expect("facts are JSON");
        assert_eq!(facts.len(), widths.len(), "every width reported");
        facts
    }

    /// Prints `page` to a PDF file and returns its path.
    pub fn print(&self, page: &Path, is_dark: bool) -> PathBuf {
        let pdf = self.folder.join("printed.pdf");
        let to = format!("--print-to-pdf={}", pdf.display());
        self.run(&["--virtual-time-budget=60000", "--no-pdf-header-footer", &to], is_dark, page);
        pdf
    }

    fn run(&self, options: &[&str], is_dark: bool, page: &Path) -> String {
        // A hanging browser must not block the tests. The timeout of five minutes is a hundred times the usual duration.
        let mut command = Command::new("timeout");
        command.args(["300", self.program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.arg(format!("--user-data-dir={}", self.folder.join("browser").display()));
        command.arg(format!("--blink-settings=preferredColorScheme={}", if is_dark { 0 } else { 1 }));
        command.args(options).arg(format!("file://{}", page.display())).env("HOME", &self.folder);
        let output = command.output().expect("coreutils' timeout");
        assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }
}

//! A browser without a window, where the machine has one.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use airpace_testing::one_of_programs;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What is put into a copy of the page: it measures what is drawn.
const PROBE: &str = include_str!("probe.js");
/// Collects what the copies in its frames measured, one per width, into its title.
const AROUND: &str = r#"<!doctype html><title>waiting</title><script>
const told = [];
addEventListener("message", (event) => {
  told.push(JSON.parse(event.data));
  const bytes = new TextEncoder().encode(JSON.stringify(told));
  document.title = "facts:" + btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
});
</script>"#;

/// Chromium, in a folder of its own.
pub struct Browser {
    program: &'static str,
    folder: PathBuf,
}

impl Browser {
    /// `None` where there is none.
    pub fn find(folder: &Path) -> Option<Browser> {
        let program = one_of_programs(&["chromium", "chromium-browser", "google-chrome"], "chromium")?;
        Some(Browser { program, folder: folder.to_owned() })
    }

    /// What the probe measured of `page` at each of these widths.
    pub fn measure(&self, page: &str, widths: &[u32], is_dark: bool) -> Vec<Value> {
        // The page's own policy stays in force; the probe is let in by name.
        let page = page.replacen("script-src ", "script-src 'nonce-probe' ", 1);
        // The plotting library holds such a tag as text; the page's own is the last.
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
        // Chromium's own clock: it runs ahead where nothing is left to do, so a slow machine measures the same.
        let told = self.run(&["--virtual-time-budget=60000", "--dump-dom"], is_dark, &path);
        let (_, facts) =
            told.split_once("<title>facts:").unwrap_or_else(|| panic!("the page told nothing: {told:.2000}"));
        let facts = STANDARD.decode(facts.split('<').next().unwrap()).expect("base64");
        let facts: Vec<Value> = serde_json::from_slice(&facts).expect("facts are JSON");
        assert_eq!(facts.len(), widths.len(), "every width told");
        facts
    }

    /// `page` as it is printed.
    pub fn print(&self, page: &Path, is_dark: bool) -> PathBuf {
        let pdf = self.folder.join("printed.pdf");
        let to = format!("--print-to-pdf={}", pdf.display());
        self.run(&["--virtual-time-budget=60000", "--no-pdf-header-footer", &to], is_dark, page);
        pdf
    }

    fn run(&self, options: &[&str], is_dark: bool, page: &Path) -> String {
        // A browser that hangs must not hold up the tests: five minutes are a hundred times what it needs.
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

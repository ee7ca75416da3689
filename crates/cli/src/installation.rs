//! Files of an installation and their paths; the layout is the same for `airpace install` and for packages.
//!
//! ```text
//! PREFIX/
//! ├── bin/airpace
//! ├── share/man/man1/airpace*.1                  a page per command
//! ├── share/bash-completion/completions/airpace, share/zsh/site-functions/_airpace,
//! │   share/fish/vendor_completions.d/airpace.fish
//! ├── share/doc/airpace/                         licences and the guide
//! └── share/airpace/installed.json               list of files for `airpace uninstall`; not in packages
//! ```

mod record;

use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use airpace_core::Refused;
use airpace_files::{Whole, remedy};
use anyhow::Context;

pub use record::{RECORD, Record};

/// Documents of the repository that are installed, with their paths below `share/doc/airpace`.
const DOCUMENTS: &[(&str, &str)] = &[
    ("LICENSE-APACHE", include_str!("../../../LICENSE-APACHE")),
    ("LICENSE-MIT", include_str!("../../../LICENSE-MIT")),
    ("guide/agree.md", include_str!("../../../docs/guide/agree.md")),
    ("guide/diag.md", include_str!("../../../docs/guide/diag.md")),
    ("guide/emulator.md", include_str!("../../../docs/guide/emulator.md")),
    ("guide/first-run.md", include_str!("../../../docs/guide/first-run.md")),
    ("guide/install.md", include_str!("../../../docs/guide/install.md")),
    ("guide/kernel.md", include_str!("../../../docs/guide/kernel.md")),
    ("guide/keys.md", include_str!("../../../docs/guide/keys.md")),
    ("guide/kpis.md", include_str!("../../../docs/guide/kpis.md")),
    ("guide/libod.md", include_str!("../../../docs/guide/libod.md")),
    ("guide/phones.md", include_str!("../../../docs/guide/phones.md")),
    ("guide/proxy.md", include_str!("../../../docs/guide/proxy.md")),
    ("guide/python.md", include_str!("../../../docs/guide/python.md")),
    ("guide/radio.md", include_str!("../../../docs/guide/radio.md")),
    ("guide/run-folder.md", include_str!("../../../docs/guide/run-folder.md")),
    ("guide/scenarios.md", include_str!("../../../docs/guide/scenarios.md")),
    ("guide/schemes.md", include_str!("../../../docs/guide/schemes.md")),
    ("guide/sweeps.md", include_str!("../../../docs/guide/sweeps.md")),
    ("guide/traces.md", include_str!("../../../docs/guide/traces.md")),
    ("guide/transfer.md", include_str!("../../../docs/guide/transfer.md")),
];

/// One file of an installation.
pub struct Item {
    /// Path of the file below the prefix.
    pub place: PathBuf,
    /// Contents of the file.
    pub contents: Vec<u8>,
    /// Whether the file is executable.
    pub is_program: bool,
}

/// All files of an installation of `binary`, sorted by path. `texts` are the manual pages and completions, by path. The
/// result is the same for the same binary on any machine.
///
/// # Errors
/// The binary cannot be read.
pub fn items(binary: &Path, texts: Vec<(String, Vec<u8>)>) -> anyhow::Result<Vec<Item>> {
    let program = std::fs::read(binary)
        .with_context(|| format!("cannot read `{}`, which is to be installed", binary.display()))?;
    let text =
        |(place, contents): (String, Vec<u8>)| Item { place: place.into(), contents, is_program: false };
    let mut items = vec![Item { place: PathBuf::from("bin/airpace"), contents: program, is_program: true }];
    let document =
        |(name, words): &(&str, &str)| (format!("share/doc/airpace/{name}"), with_whole_links(words).into());
    items.extend(texts.into_iter().chain(DOCUMENTS.iter().map(document)).map(text));
    items.sort_by(|a, b| a.place.cmp(&b.place));
    Ok(items)
}

/// A page of the guide, in which links to files that are not installed lead to the repository, at the commit of this
/// binary.
fn with_whole_links(page: &str) -> String {
    let tree = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/", env!("AIRPACE_COMMIT"));
    // Links in pages are relative to `docs/guide`.
    page.replace("](../../", &format!("]({tree}/")).replace("](../", &format!("]({tree}/docs/"))
}

/// Writes one file below `root` atomically. Replaces an existing file, even a running program.
///
/// # Errors
/// The file cannot be written; the message contains its path.
pub fn write(root: &Path, item: &Item) -> anyhow::Result<()> {
    let path = root.join(&item.place);
    let folder = path.parent().unwrap_or(root);
    let mode = if item.is_program { 0o755 } else { 0o644 };
    let written = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut file = Whole::replace(&path)?;
        file.write_all(&item.contents)?;
        file.set_rights(mode)?;
        file.finish()
    };
    written().map_err(cannot_write(&path))
}

/// Name of the kind of package for which this binary was built (`the Debian package`, `the static tarball`). The
/// scripts that build packages set `AIRPACE_PACKAGE` at compile time. `None` for builds from a checkout.
pub fn package() -> Option<&'static str> {
    option_env!("AIRPACE_PACKAGE").filter(|package| !package.is_empty())
}

/// The error for a path to which the installation cannot write.
fn cannot_write(path: &Path) -> impl Fn(Error) -> anyhow::Error {
    move |error| {
        let or_root = error.kind() == ErrorKind::PermissionDenied;
        let remedy = remedy(&error, "prefix");
        let remedy = if or_root { remedy.text(", or start as root") } else { remedy };
        Refused::new(format!("cannot write `{}`", path.display())).but(remedy.caused_by(error)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_pages_link_to_what_is_installed_or_to_the_repository() {
        let names: Vec<&str> = DOCUMENTS.iter().map(|(name, _)| *name).collect();
        let mut links = 0;
        for (name, words) in DOCUMENTS.iter().filter(|(name, _)| name.starts_with("guide/")) {
            let page = with_whole_links(words);
            for link in page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
            {
                let file = link.split('#').next().expect("a first part");
                let is_there = file.is_empty() || names.contains(&format!("guide/{file}").as_str());
                assert!(is_there || link.starts_with("https://"), "{name}: `{link}` leads nowhere");
                links += 1;
            }
        }
        assert!(links > 10, "there are links to look at");
    }

    #[test]
    fn every_page_of_the_guide_is_installed() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let mut pages: Vec<String> = std::fs::read_dir(guide)
            .expect("the guide")
            .map(|entry| format!("guide/{}", entry.expect("an entry").file_name().display()))
            .collect();
        pages.sort();
        let installed: Vec<&str> =
            DOCUMENTS.iter().map(|(name, _)| *name).filter(|name| name.starts_with("guide/")).collect();
        assert_eq!(installed, pages);
    }
}

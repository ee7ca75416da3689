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

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpace_core::Refused;
use airpace_files::record::{InstallError, Item};
use airpace_files::remedy;
use airpace_run::shell::quote;
use anyhow::{Context, anyhow};

use crate::called;

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
    ("guide/nr.md", include_str!("../../../docs/guide/nr.md")),
    ("guide/phones.md", include_str!("../../../docs/guide/phones.md")),
    ("guide/proxy.md", include_str!("../../../docs/guide/proxy.md")),
    ("guide/python.md", include_str!("../../../docs/guide/python.md")),
    ("guide/radio.md", include_str!("../../../docs/guide/radio.md")),
    ("guide/reproduce.md", include_str!("../../../docs/guide/reproduce.md")),
    ("guide/run-folder.md", include_str!("../../../docs/guide/run-folder.md")),
    ("guide/scenarios.md", include_str!("../../../docs/guide/scenarios.md")),
    ("guide/schemes.md", include_str!("../../../docs/guide/schemes.md")),
    ("guide/sweeps.md", include_str!("../../../docs/guide/sweeps.md")),
    ("guide/traces.md", include_str!("../../../docs/guide/traces.md")),
    ("guide/transfer.md", include_str!("../../../docs/guide/transfer.md")),
    ("guide/video.md", include_str!("../../../docs/guide/video.md")),
];

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

/// Name of the kind of package for which this binary was built (`the Debian package`, `the static tarball`). The
/// scripts that build packages set `AIRPACE_PACKAGE` at compile time. `None` for builds from a checkout.
pub fn package() -> Option<&'static str> {
    option_env!("AIRPACE_PACKAGE").filter(|package| !package.is_empty())
}

/// The error of an installation, with the option that helps.
pub fn refused(error: InstallError) -> anyhow::Error {
    match error {
        InstallError::Write { path, source } => {
            let or_root = source.kind() == ErrorKind::PermissionDenied;
            let remedy = remedy(&source, "prefix");
            let remedy = if or_root { remedy.text(", or start as root") } else { remedy };
            Refused::new(format!("cannot write `{}`", path.display())).but(remedy.caused_by(source)).into()
        }
        InstallError::Strangers { paths } => {
            let paths: Vec<_> = paths.iter().map(|path| quote(&path.to_string_lossy())).collect();
            let more = match paths.len() {
                1 => String::new(),
                all => format!(" (and {} more)", all - 1),
            };
            anyhow!(
                "{}{more} is there and was not put there by {}; if a package did, remove the package, else: rm {}",
                paths[0],
                called::command("install"),
                paths.join(" ")
            )
        }
        InstallError::Record(error) => error.into(),
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

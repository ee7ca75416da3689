//! The folder of a reproduction.
//!
//! ```text
//! manifest.json     the experiments, the version, the host, and whether the reproduction is complete
//! index.html        all figures and numbers
//! figures/*.svg     the figures
//! results.json      the numbers
//! reproduction.md   the numbers as a page
//! runs/             finished runs
//! ```

use std::path::{Path, PathBuf};
use std::time::Instant;

use airpace_core::{Refused, Remedy};
use airpace_run::{Host, RunError};
use airpace_tables::FileError;
use serde_json::json;

use crate::against::results_json;
use crate::experiment::{Experiment, Reproduced, Size};
use crate::{gallery, markdown};

/// Maximum size of a manifest (bytes).
///
/// Chosen: a thousand times the size of one.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Command, version and machine of a reproduction, which repeat it.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The command, without the name of the folder.
    pub command: String,
    /// Version of the program.
    pub version: &'static str,
    /// Version and commit, or another name of the build.
    pub build: &'static str,
    /// How much was run.
    pub size: Size,
    /// Where it was run.
    pub host: Host,
}

/// The folder of a reproduction.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
    origin: Origin,
    began: Instant,
}

impl Folder {
    /// The folder `root` for results of this origin. Writes the manifest.
    ///
    /// # Errors
    /// The folder has other contents, or cannot be written.
    pub fn open(root: &Path, origin: Origin, experiments: &[&Experiment]) -> Result<Folder, RunError> {
        refuse_other(root)?;
        let folder = Folder { root: root.to_owned(), origin, began: Instant::now() };
        let ids: Vec<&str> = experiments.iter().map(|experiment| experiment.id).collect();
        folder.write_manifest(&ids, false)?;
        Ok(folder)
    }

    /// The folder of finished runs in `root`.
    pub fn runs(root: &Path) -> PathBuf {
        root.join("runs")
    }

    /// Path of the page.
    pub fn page(&self) -> PathBuf {
        self.root.join("index.html")
    }

    /// The folder of the figures.
    pub fn figures(&self) -> PathBuf {
        self.root.join("figures")
    }

    /// Writes the page, the figures, the table, the numbers and the manifest.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(&self, all: &[Reproduced]) -> Result<(), RunError> {
        let Origin { command, version, build, .. } = &self.origin;
        let figures = self.figures();
        std::fs::create_dir_all(&figures).map_err(FileError::write("make the folder", &figures))?;
        self.remove_figures()?;
        for picture in all.iter().flat_map(|one| &one.findings.pictures) {
            self.write(&format!("figures/{}.svg", picture.name), &picture.figure.svg())?;
        }
        self.write("results.json", &results_json(all))?;
        self.write("reproduction.md", &markdown::page(all, command, version))?;
        self.write("index.html", &gallery::page(all, command, build))?;
        let ids: Vec<&str> = all.iter().map(|one| one.experiment.id).collect();
        self.write_manifest(&ids, true)
    }

    /// Removes the figures of earlier pages.
    fn remove_figures(&self) -> Result<(), RunError> {
        let figures = self.figures();
        for entry in std::fs::read_dir(&figures).map_err(FileError::read(&figures))? {
            let path = entry.map_err(FileError::read(&figures))?.path();
            if path.extension().is_some_and(|ending| ending == "svg") {
                std::fs::remove_file(&path).map_err(FileError::write("remove", &path))?;
            }
        }
        Ok(())
    }

    fn write_manifest(&self, ids: &[&str], is_complete: bool) -> Result<(), RunError> {
        let Origin { command, version, build, size, host } = &self.origin;
        let wall_ms = if is_complete { self.began.elapsed().as_millis() as u64 } else { 0 };
        let host = Host { wall_ms, ..host.clone() };
        let manifest = json!({
            "version": version, "build": build, "complete": is_complete, "command": command, "experiments": ids,
            "quick": *size == Size::Quick, "host": host,
        });
        self.write("manifest.json", &format!("{manifest:#}\n"))
    }

    fn write(&self, name: &str, contents: &str) -> Result<(), RunError> {
        std::fs::create_dir_all(&self.root).map_err(FileError::write("make the folder", &self.root))?;
        let path = self.root.join(name);
        airpace_files::replace(&path, contents).map_err(FileError::write("write", &path))?;
        Ok(())
    }
}

/// Refuses a folder with other contents. The folders of runs and sweeps have a manifest too.
fn refuse_other(folder: &Path) -> Result<(), RunError> {
    let Ok(mut entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let manifest = airpace_files::read_to_string(&folder.join("manifest.json"), MAX_MANIFEST_BYTES).ok();
    let manifest = manifest.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    if entries.next().is_some() && manifest.is_none_or(|manifest| manifest.get("experiments").is_none()) {
        let what = format!("`{}` is not empty and holds no reproduction", folder.display());
        let remedy = Remedy::new("give another folder with").parameter("out");
        return Err(RunError::Sweep(Refused::new(what).but(remedy)));
    }
    Ok(())
}

//! Report pages of runs and sweeps. The page of a run is `report.html`: one self-contained page, made from a run folder alone.
//!
//! All numbers on the page are computed here and embedded as JSON; the page only draws them. The page opens offline,
//! because styles, script and the plotting library are embedded too. The same folder gives the same bytes on every host:
//! facts about the host stay in `manifest.json`.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

mod agreement;
mod cells;
mod colour;
mod delays;
mod emulation;
mod error;
mod intervals;
mod overview;
mod packets;
mod scenario;
mod series;
mod states;
mod style;
pub mod sweep;
mod table;
mod transfers;
mod videos;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airpace_run::{Agreement, Manifest, Outcome, RunFolder, Summary};
use airpace_tables::Memory;
use airpace_tables::read::Source;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::Serialize;

use colour::Shade;
use emulation::EmulationData;
pub use error::PageError;
use overview::Overview;
use scenario::ScenarioData;
use states::StateLook;

const PAGE: &str = include_str!("../../../web/report.html");
const STYLE: &str = include_str!("../../../web/report.css");
/// Scripts of the page: code that figures share, then the figures in the order of the page, then the page itself.
const SCRIPT: &str = concat!(
    include_str!("../../../web/chart.js"),
    include_str!("../../../web/look.js"),
    include_str!("../../../web/connection.js"),
    include_str!("../../../web/tip.js"),
    include_str!("../../../web/emulation.js"),
    include_str!("../../../web/names.js"),
    include_str!("../../../web/figures/throughput_delay.js"),
    include_str!("../../../web/figures/course.js"),
    include_str!("../../../web/figures/emulated.js"),
    include_str!("../../../web/figures/delay_cdf.js"),
    include_str!("../../../web/figures/jain.js"),
    include_str!("../../../web/figures/prbs.js"),
    include_str!("../../../web/figures/granted.js"),
    include_str!("../../../web/figures/estimate.js"),
    include_str!("../../../web/figures/agreement_cdf.js"),
    include_str!("../../../web/figures/agreement_departures.js"),
    include_str!("../../../web/tables.js"),
    include_str!("../../../web/agreement.js"),
    include_str!("../../../web/files.js"),
    include_str!("../../../web/print.js"),
    include_str!("../../../web/report.js"),
);
const ECHARTS: &str = include_str!("../../../web/vendor/echarts.min.js");
/// Hash of [`ECHARTS`] for the content security policy of the page. Hashing the library (1 MB) for every page would take
/// longer than a short run.
const ECHARTS_SOURCE: &str = "'sha256-XOWIMiBWBiCWcqpbs3TWWZ7y+mELH4InGGUmDdNf5eo='";

/// All data of the page, serialised as JSON.
#[derive(Serialize)]
struct PageData<'a> {
    version: &'a str,
    command: String,
    seeds: &'a [u64],
    complete: bool,
    runs_ended: usize,
    /// Data of an emulated run; `None` for simulated runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    emulation: Option<EmulationData<'a>>,
    /// Ids of the figures to show exclusively; if empty, the whole page is shown.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    only: &'a [String],
    /// Markers of the schemes, as SVG paths in a box of 14 by 14.
    markers: BTreeMap<&'static str, &'static str>,
    /// Colours of text and backgrounds in print, by their names in the style sheet.
    paper: BTreeMap<&'static str, &'static str>,
    palette: Vec<Shade>,
    greys: Vec<Shade>,
    states: Vec<StateLook>,
    overview: Option<Overview>,
    scenarios: Vec<ScenarioData>,
}

/// Writes `report.html` into the run folder `root` and returns the path. If the run is incomplete, the page states this
/// and shows the completed runs.
///
/// # Errors
/// The folder is not a run folder, a table cannot be read, or the page cannot be written.
pub fn write(root: &Path) -> Result<PathBuf, PageError> {
    let folder = RunFolder::open(root)?;
    write_with(&folder, &folder.manifest()?)
}

/// Writes the page into the folder of a run that has ended, and then the manifest, which marks the folder as complete. If
/// the page cannot be written (full disk), the manifest is still written. Returns the path of the page.
///
/// # Errors
/// A table cannot be read, or the page or the manifest cannot be written.
pub fn complete(folder: &RunFolder, manifest: &Manifest) -> Result<PathBuf, PageError> {
    let page = write_with(folder, manifest);
    folder.write_manifest(manifest)?;
    page
}

/// Completes the folder of a matrix as [`complete`]; `None` if the matrix has no folder.
///
/// # Errors
/// Errors of [`complete`].
pub fn complete_matrix(outcome: &Outcome) -> Result<Option<PathBuf>, PageError> {
    let folder = outcome.folder.as_ref();
    folder.map(|folder| complete(folder, &outcome.manifest)).transpose()
}

/// Like [`write()`], with a `manifest` that is not yet in the folder.
fn write_with(folder: &RunFolder, manifest: &Manifest) -> Result<PathBuf, PageError> {
    let page = page(&data_with(folder, manifest, &[])?);
    Ok(folder.write("report.html", page.as_bytes())?)
}

/// Renders the page of a run folder.
///
/// # Errors
/// A file of the folder cannot be read.
pub fn render(folder: &RunFolder) -> Result<String, PageError> {
    Ok(page(&data(folder, &[])?))
}

/// Data of a run folder's page, as JSON. If `only` is not empty, the page shows only the figures with these ids.
///
/// # Errors
/// A file of the folder cannot be read.
pub fn data(folder: &RunFolder, only: &[String]) -> Result<String, PageError> {
    data_with(folder, &folder.manifest()?, only)
}

fn data_with(folder: &RunFolder, manifest: &Manifest, only: &[String]) -> Result<String, PageError> {
    let summary = match folder.summary() {
        // A matrix that was interrupted before its first run ended has no summary yet.
        Err(error) if !manifest.complete && error.is_missing_file() => Summary::default(),
        read => read?,
    };
    let agreement = folder.agreement()?;
    let tables = Source::Folder(folder.root());
    let material = Material { manifest, summary: &summary, tables, agreement: agreement.as_ref() };
    page_data(material, only)
}

/// Data of the page of a simulation whose tables are in memory, like [`data`] for a folder.
///
/// # Errors
/// A table that the figures need was not kept.
pub fn data_in_memory(
    manifest: &Manifest,
    summary: &Summary,
    memory: &Memory,
    only: &[String],
) -> Result<String, PageError> {
    let tables = Source::Memory(memory);
    page_data(Material { manifest, summary, tables, agreement: None }, only)
}

/// Ids of all figures that a page may have, in the order of the page.
pub fn figures() -> Vec<&'static str> {
    let of_each = SCRIPT.split("\nfigure({\n  id: \"").skip(1);
    of_each.filter_map(|rest| rest.split('"').next()).collect()
}

/// Renders the page from the JSON of [`data`] or [`data_in_memory`].
pub fn page(json: &str) -> String {
    let (json, policy) = (embedded(json), policy(&[ECHARTS_SOURCE, &script_source(SCRIPT)]));
    fill(
        PAGE,
        &[("policy", &policy), ("style", STYLE), ("echarts", ECHARTS), ("data", &json), ("script", SCRIPT)],
    )
}

/// Escapes JSON for embedding into a script element.
fn embedded(json: &str) -> String {
    // In a script element, only a `<` can end the data prematurely.
    json.replace('<', "\\u003c")
}

/// Content security policy of a page. It allows only the scripts with these sources, and no requests. Markup in a
/// scenario's names is therefore harmless.
fn policy(sources: &[&str]) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'",
        sources.join(" ")
    )
}

/// Policy source that allows a script of the page: the hash of the script.
fn script_source(script: &str) -> String {
    // The tags of script elements are on separate lines of the page. The hash covers everything between the tags.
    let hash = digest(&SHA256, format!("\n{script}\n").as_bytes());
    format!("'sha256-{}'", STANDARD.encode(hash))
}

/// Inputs of a page.
#[derive(Clone, Copy)]
struct Material<'a> {
    manifest: &'a Manifest,
    summary: &'a Summary,
    tables: Source<'a>,
    agreement: Option<&'a Agreement>,
}

fn page_data(material: Material<'_>, only: &[String]) -> Result<String, PageError> {
    if let Some(unknown) = only.iter().find(|id| !figures().contains(&id.as_str())) {
        return Err(PageError::NoFigure { name: unknown.clone(), known: figures() });
    }
    let Material { manifest, summary, .. } = material;
    let budget = series::Budget::of(summary);
    let scenarios = manifest
        .scenarios
        .iter()
        .map(|scenario| ScenarioData::read(material, scenario, budget))
        .collect::<Result<Vec<_>, _>>()?;
    let data = PageData {
        version: &manifest.version,
        command: scenario::whole_command(manifest),
        seeds: &manifest.seeds,
        complete: manifest.complete,
        runs_ended: summary.runs.len(),
        emulation: EmulationData::of(manifest),
        only,
        markers: style::MARKERS.into(),
        paper: style::paper(),
        palette: style::palette(),
        greys: style::greys(),
        states: states::looks(scenarios.iter().flat_map(ScenarioData::states)),
        overview: Overview::of(manifest, summary),
        scenarios,
    };
    Ok(serde_json::to_string(&data).expect("plain data with text keys"))
}

/// Replaces each `{{name}}` in `page` once, from left to right. Inserted text is not searched for further names.
fn fill(page: &str, parts: &[(&str, &str)]) -> String {
    let mut filled =
        String::with_capacity(page.len() + parts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the page closes its marks");
        let part = parts.iter().find(|(known, _)| *known == name);
        filled.push_str(before);
        filled.push_str(part.expect("the page marks only parts that there are").1);
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_the_plotting_library_that_the_page_holds() {
        assert_eq!(
            script_source(ECHARTS),
            ECHARTS_SOURCE,
            "the library has changed: put its hash into the constant"
        );
    }
}

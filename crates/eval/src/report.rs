//! `report.html`: one page, self-contained, made from a run folder alone.
//!
//! Every number on the page is computed here and embedded as JSON; the page only draws. It opens offline: styles,
//! script and the plotting library are embedded too. The same folder gives the same bytes on every host: facts about
//! the host stay in `manifest.json`.

mod agreement;
mod cells;
mod colour;
mod delays;
mod emulation;
mod overview;
mod packets;
mod scenario;
mod series;
mod states;
mod style;
pub(crate) mod sweep;
mod table;
mod transfers;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde::Serialize;

use crate::agreement::Agreement;
use crate::error::EvalError;
use crate::folder::{Manifest, RunFolder};
use crate::summary::Summary;
use crate::tables::Memory;
use crate::tables::read::Source;
use colour::Shade;
use emulation::EmulationData;
use overview::Overview;
use scenario::ScenarioData;
pub(crate) use series::cdf;
use states::StateLook;

const PAGE: &str = include_str!("../../../web/report.html");
const STYLE: &str = include_str!("../../../web/report.css");
/// The code that figures share, then the figures in the order of the page, then the page itself.
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
/// The hash of [`ECHARTS`] in the page's policy. Hashing its megabyte for every page would cost more than a short run.
const ECHARTS_SOURCE: &str = "'sha256-XOWIMiBWBiCWcqpbs3TWWZ7y+mELH4InGGUmDdNf5eo='";

/// Everything that the page shows.
#[derive(Serialize)]
struct PageData<'a> {
    version: &'a str,
    command: String,
    seeds: &'a [u64],
    complete: bool,
    runs_ended: usize,
    /// Of an emulated run.
    #[serde(skip_serializing_if = "Option::is_none")]
    emulation: Option<EmulationData<'a>>,
    /// The figures to show, by their ids, and nothing else; the whole page if there are none.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    only: &'a [String],
    /// The markers of schemes, as paths in a box of 14 by 14.
    markers: BTreeMap<&'static str, &'static str>,
    /// The colours of text and grounds on paper, by their names in the style sheet.
    paper: BTreeMap<&'static str, &'static str>,
    palette: Vec<Shade>,
    greys: Vec<Shade>,
    states: Vec<StateLook>,
    overview: Option<Overview>,
    scenarios: Vec<ScenarioData>,
}

/// Writes `report.html` into the run folder `root` and returns its path. If the run is incomplete, the page says so and
/// shows the runs that ended.
///
/// # Errors
/// A folder that is no run folder, a table that cannot be read, a page that cannot be written.
pub fn write(root: &Path) -> Result<PathBuf, EvalError> {
    let folder = RunFolder::open(root)?;
    write_with(&folder, &folder.manifest()?)
}

/// The same for a run of which `manifest` is true: it may be written after the page, so that a run folder is complete only
/// with its page.
pub(crate) fn write_with(folder: &RunFolder, manifest: &Manifest) -> Result<PathBuf, EvalError> {
    let page = page(&data_with(folder, manifest, &[])?);
    folder.write("report.html", page.as_bytes())
}

/// The page of a run folder.
///
/// # Errors
/// A file of the folder that cannot be read.
pub fn render(folder: &RunFolder) -> Result<String, EvalError> {
    Ok(page(&data(folder, &[])?))
}

/// What the page of a run folder shows, as JSON. `only` names figures: the page then shows these and nothing else.
///
/// # Errors
/// A file of the folder that cannot be read.
pub fn data(folder: &RunFolder, only: &[String]) -> Result<String, EvalError> {
    data_with(folder, &folder.manifest()?, only)
}

fn data_with(folder: &RunFolder, manifest: &Manifest, only: &[String]) -> Result<String, EvalError> {
    let summary = match folder.summary() {
        // If a matrix was interrupted before its first run ended, there is no summary yet.
        Err(EvalError::Read { source, .. }) if !manifest.complete && source.kind() == ErrorKind::NotFound => {
            Summary::default()
        }
        read => read?,
    };
    let agreement = folder.agreement()?;
    let tables = Source::Folder(folder.root());
    let material = Material { manifest, summary: &summary, tables, agreement: agreement.as_ref() };
    page_data(material, only)
}

/// What the page of a simulation shows whose tables are in memory, as [`data`] does for a folder.
///
/// # Errors
/// A table that the figures need and that was not kept.
pub fn data_in_memory(
    manifest: &Manifest,
    summary: &Summary,
    memory: &Memory,
    only: &[String],
) -> Result<String, EvalError> {
    let tables = Source::Memory(memory);
    page_data(Material { manifest, summary, tables, agreement: None }, only)
}

/// The ids of all figures that a page may have, in its order.
pub fn figures() -> Vec<&'static str> {
    let of_each = SCRIPT.split("\nfigure({\n  id: \"").skip(1);
    of_each.filter_map(|rest| rest.split('"').next()).collect()
}

/// The page that shows these data: those of [`data`] or [`data_in_memory`].
pub fn page(json: &str) -> String {
    let (json, policy) = (embedded(json), policy(&[ECHARTS_SOURCE, &script_source(SCRIPT)]));
    fill(
        PAGE,
        &[("policy", &policy), ("style", STYLE), ("echarts", ECHARTS), ("data", &json), ("script", SCRIPT)],
    )
}

/// Data, as JSON, as a page embeds it.
fn embedded(json: &str) -> String {
    // In a script element, only a `<` could end the data early.
    json.replace('<', "\\u003c")
}

/// The content security policy of a page: it runs the scripts of these sources and nothing else, and fetches
/// nothing. So names in a scenario that look like markup can do no harm.
fn policy(sources: &[&str]) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'",
        sources.join(" ")
    )
}

/// The source that allows a script of a page in its policy: the script's hash.
fn script_source(script: &str) -> String {
    // In the page, the tags of script elements stand on lines of their own. The hash is of everything between the tags.
    let hash = digest(&SHA256, format!("\n{script}\n").as_bytes());
    format!("'sha256-{}'", STANDARD.encode(hash))
}

/// What a page is made from.
#[derive(Clone, Copy)]
struct Material<'a> {
    manifest: &'a Manifest,
    summary: &'a Summary,
    tables: Source<'a>,
    agreement: Option<&'a Agreement>,
}

fn page_data(material: Material<'_>, only: &[String]) -> Result<String, EvalError> {
    if let Some(unknown) = only.iter().find(|id| !figures().contains(&id.as_str())) {
        return Err(EvalError::NoFigure { name: unknown.clone() });
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

/// `page` with each `{{name}}` replaced, once, from left to right. Replaced text is not searched again.
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

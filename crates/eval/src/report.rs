//! `report.html`: one page, self-contained, made from a run folder alone.
//!
//! Every number on the page is computed here and embedded as JSON; the page only draws. It opens offline: styles,
//! script and the plotting library are embedded too. The same folder gives the same bytes on every host: facts about
//! the host stay in `manifest.json`.

mod agreement;
mod cells;
mod colour;
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

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::EvalError;
use crate::folder::{Manifest, RunFolder};
use crate::summary::Summary;
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
    let page = render(&folder)?;
    folder.write("report.html", page.as_bytes())
}

/// The page of a run folder.
///
/// # Errors
/// A file of the folder that cannot be read.
pub fn render(folder: &RunFolder) -> Result<String, EvalError> {
    let manifest = folder.manifest()?;
    let summary = match folder.summary() {
        // If a matrix was interrupted before its first run ended, there is no summary yet.
        Err(EvalError::Read { source, .. }) if !manifest.complete && source.kind() == ErrorKind::NotFound => {
            Summary::default()
        }
        read => read?,
    };
    let data = page_data(folder, &manifest, &summary)?;
    let json = embedded(&data);
    let policy = policy(&[ECHARTS, SCRIPT]);
    Ok(fill(
        PAGE,
        &[("policy", &policy), ("style", STYLE), ("echarts", ECHARTS), ("data", &json), ("script", SCRIPT)],
    ))
}

/// Data as the page embeds it.
fn embedded(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).expect("plain data with text keys");
    // In a script element, only a `<` could end the data early.
    json.replace('<', "\\u003c")
}

/// The content security policy of a page: it runs the scripts that it holds and nothing else, and fetches
/// nothing. So names in a scenario that look like markup can do no harm.
fn policy(scripts: &[&str]) -> String {
    // In the page, the tags of script elements stand on lines of their own. The hash is of everything between the tags.
    let hash =
        |script: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(format!("\n{script}\n"))));
    let hashes: Vec<String> = scripts.iter().map(hash).collect();
    format!(
        "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
         form-action 'none'",
        hashes.join(" ")
    )
}

fn page_data<'a>(
    folder: &RunFolder,
    manifest: &'a Manifest,
    summary: &Summary,
) -> Result<PageData<'a>, EvalError> {
    let budget = series::Budget::of(summary);
    let scenarios = manifest
        .scenarios
        .iter()
        .map(|scenario| ScenarioData::read(folder, manifest, scenario, summary, budget))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(PageData {
        version: &manifest.version,
        command: scenario::whole_command(manifest),
        seeds: &manifest.seeds,
        complete: manifest.complete,
        runs_ended: summary.runs.len(),
        emulation: EmulationData::of(manifest),
        palette: style::palette(),
        greys: style::greys(),
        states: states::looks(scenarios.iter().flat_map(ScenarioData::states)),
        overview: Overview::of(manifest, summary),
        scenarios,
    })
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

//! The lists in the guide are complete and correct.

use std::collections::{BTreeMap, BTreeSet};

use airpace_cc::schemes::choices;
use airpace_diag::kpi::{KPIS, Kpi, Scope};
use airpace_diag::layout::{Code, Inner, Part, Verified, Version};
use airpace_diag::log::CODES;
use airpace_sim::builtin;

use super::read;

#[test]
fn every_scheme_and_preset_has_its_row() {
    let guide = read("docs/guide/schemes.md");
    let missing: Vec<_> =
        choices().into_iter().filter(|choice| !guide.contains(&format!("| `{choice}` |"))).collect();
    assert!(missing.is_empty(), "docs/guide/schemes.md has no row for {missing:?}");
}

#[test]
fn every_scenario_that_ships_is_named_in_a_guide() {
    let pages = ["docs/guide/scenarios.md", "docs/guide/first-run.md"].map(read);
    let is_named = |name: &str| pages.iter().any(|page| page.contains(name));
    let missing: Vec<_> = builtin().iter().map(|(name, _)| *name).filter(|name| !is_named(name)).collect();
    assert!(missing.is_empty(), "no guide names the scenarios {missing:?}");
}

#[test]
fn every_kpi_and_every_log_packet_has_its_row() {
    let guide = read("docs/guide/kpis.md");
    let rows = KPIS.iter().map(kpi_row).chain(CODES.iter().map(|code| code_row(code)));
    let missing: Vec<String> = rows.filter(|row| !guide.contains(&format!("{row}\n"))).collect();
    assert!(missing.is_empty(), "docs/guide/kpis.md lacks these rows:\n{}", missing.join("\n"));
}

/// Row of a KPI: name, unit, layer, scope of a sample, kind, source codes, and meaning. A code has a star if no version
/// of it that contains the KPI has been checked.
fn kpi_row(kpi: &Kpi) -> String {
    let mut codes = vec![];
    let mut checked = BTreeMap::new();
    for source in kpi.sources() {
        if !codes.contains(&source.code) {
            codes.push(source.code);
        }
        *checked.entry(source.code).or_insert(false) |= source.verified == Verified::Checked;
    }
    let codes: Vec<String> =
        codes.iter().map(|code| format!("{code}{}", if checked[code] { "" } else { "\\*" })).collect();
    let scope = match kpi.scope {
        Scope::Radio => "radio",
        Scope::Carrier => "carrier",
        Scope::Cell => "cell",
        Scope::Bearer => "bearer",
    };
    let kind = format!("{:?}", kpi.kind).to_lowercase();
    let (name, unit, layer, about) = (kpi.name, kpi.unit, kpi.layer, kpi.about);
    format!("| `{name}` | {unit} | {layer} | {scope} | {kind} | {} | {about} |", codes.join(", "))
}

/// Row of a log code: code, name, and versions grouped by how well they are verified. For codes with subpackets, the
/// versions are those of the subpackets.
fn code_row(code: &Code) -> String {
    let mut by: BTreeMap<Verified, Vec<String>> = BTreeMap::new();
    for layout in code.layouts {
        let versions = layout.versions.iter().map(Version::to_string);
        by.entry(layout.verified).or_default().extend(versions);
        subpackets(&layout.root, &mut by);
    }
    for versions in by.values_mut() {
        let mut seen = BTreeSet::new();
        versions.retain(|version| seen.insert(version.clone()));
    }
    let listed = |verified| by.get(&verified).map(|versions| versions.join(", ")).unwrap_or_default();
    format!(
        "| {} | {} | {} | {} | {} |",
        code.code,
        code.name,
        listed(Verified::Checked),
        listed(Verified::Read),
        listed(Verified::Guess)
    )
}

/// Adds the subpackets of a part as `(id.version)`.
fn subpackets(part: &Part, by: &mut BTreeMap<Verified, Vec<String>>) {
    match part.inner {
        Inner::Parts(parts) => parts.iter().for_each(|part| subpackets(part, by)),
        Inner::Choice(_, kinds) => {
            for kind in kinds {
                let names = kind.versions.iter().map(|version| format!("({}.{version})", kind.id));
                by.entry(kind.verified).or_default().extend(names);
                kind.parts.iter().for_each(|part| subpackets(part, by));
            }
        }
        Inner::Bytes => {}
    }
}

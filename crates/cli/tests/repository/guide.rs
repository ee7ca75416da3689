//! The guide names what there is.

use airpace_cc::scheme::choices;
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
    let pages =
        ["docs/guide/scenarios.md", "docs/guide/first-run.md", "docs/papers/pbe-evaluation.md"].map(read);
    let is_named = |name: &str| pages.iter().any(|page| page.contains(name));
    let missing: Vec<_> = builtin().iter().map(|(name, _)| *name).filter(|name| !is_named(name)).collect();
    assert!(missing.is_empty(), "no guide names the scenarios {missing:?}");
}

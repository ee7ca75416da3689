//! The picture of the crate graph in ARCHITECTURE.md, drawn from the dependencies of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::architecture::rows;
use super::{read, root};

const START: &str =
    "<!-- crate graph: AIRPACE_UPDATE=1 cargo test -p airpace-cli --test repository crate_graph -->\n";
const END: &str = "<!-- end of the crate graph -->\n";

/// The dependencies of `name` that none of its other dependencies has.
fn direct<'a>(name: &str, on: &'a BTreeMap<String, BTreeSet<String>>) -> Vec<&'a String> {
    let reached = |from: &str| {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            for further in &on[next] {
                if found.insert(further.as_str()) {
                    open.push(further);
                }
            }
        }
        found
    };
    let dependencies = &on[name];
    let indirect: BTreeSet<&str> = dependencies.iter().flat_map(|dependency| reached(dependency)).collect();
    dependencies.iter().filter(|dependency| !indirect.contains(dependency.as_str())).collect()
}

/// A Mermaid graph: a box per row of the table, and an arrow from each crate to the crates on which it depends. Arrows that
/// follow from other arrows are left out.
fn graph() -> String {
    let rows = rows();
    let on: BTreeMap<String, BTreeSet<String>> =
        rows.iter().map(|row| (row.name.clone(), row.dependencies.clone())).collect();
    let mut boxes: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows.iter().filter(|row| row.kind != "tests") {
        match boxes.iter_mut().find(|(kind, _)| *kind == row.kind) {
            Some((_, names)) => names.push(&row.name),
            None => boxes.push((&row.kind, vec![&row.name])),
        }
    }
    let mut text = String::from("```mermaid\nflowchart BT\n");
    for (index, (kind, names)) in boxes.iter().enumerate() {
        let _ = writeln!(text, "  subgraph row{index}[{kind}]\n    {}\n  end", names.join("\n    "));
    }
    for row in rows.iter().filter(|row| row.kind != "tests") {
        for dependency in direct(&row.name, &on) {
            let _ = writeln!(text, "  {} --> {dependency}", row.name);
        }
    }
    text + "```\n"
}

#[test]
fn the_picture_of_the_crate_graph_is_that_of_the_dependencies() {
    let page = read("ARCHITECTURE.md");
    let (before, rest) = page.split_once(START).expect("ARCHITECTURE.md has the start of the crate graph");
    let (drawn, after) = rest.split_once(END).expect("ARCHITECTURE.md has the end of the crate graph");
    let graph = graph();
    if std::env::var_os("AIRPACE_UPDATE").is_some() {
        std::fs::write(root().join("ARCHITECTURE.md"), [before, START, &graph, END, after].concat())
            .expect("ARCHITECTURE.md can be written");
        return;
    }
    assert_eq!(drawn, graph, "AIRPACE_UPDATE=1 cargo test -p airpace-cli --test repository crate_graph");
}

#[test]
fn an_arrow_that_follows_from_others_is_left_out() {
    let on = [("a", vec![]), ("b", vec!["a"]), ("c", vec!["a", "b"])];
    let on = on.map(|(name, on)| (name.to_owned(), on.into_iter().map(str::to_owned).collect()));
    assert_eq!(direct("c", &BTreeMap::from(on)), ["b"]);
}

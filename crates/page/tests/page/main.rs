//! Tests of the page in a real browser: drawn elements, overlaps, widths, and print.

mod agreement;
mod browser;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "other tests read whole folders")]
mod common;
mod sweep;

use std::fs;
use std::path::Path;
use std::process::Command;

use airpace_run::RunFolder;
use airpace_sim::SCHEMES;
use airpace_testing::has_program;
use serde_json::Value;

use browser::Browser;
use common::emulated::{EMULATED, emulate};
use common::{STORY, Temporary, patient, simulate, told};

/// Widths of phones and screens, in CSS pixels.
const WIDTHS: [u32; 4] = [1280, 1024, 768, 390];

/// The report of a story under every scheme, and under a second variant of one scheme.
fn with_every_scheme(folder: &Path, story: &str, seeds: &[u64]) -> String {
    let names: Vec<String> = SCHEMES.iter().map(|scheme| format!("\"{}\"", scheme.name)).collect();
    let all = format!("schemes = [{}, \"reno@linux\"]", names.join(", "));
    let story = story.replace(r#"schemes = ["reno", "bbr"]"#, &all);
    told(&story, Some(folder), seeds, 2).run_with(&simulate, &patient).unwrap();
    fs::read_to_string(airpace_page::write(folder).unwrap()).unwrap()
}

fn data_of(page: &str) -> Value {
    let (_, rest) = page.split_once(r#"id="data">"#).expect("a place for data");
    serde_json::from_str(rest.split_once("</script>").expect("the data end").0).expect("the data are JSON")
}

fn list<'a>(facts: &'a Value, name: &str) -> &'a [Value] {
    facts[name].as_array().unwrap_or_else(|| panic!("no list `{name}` in {facts}"))
}

#[test]
fn nothing_collides_or_runs_over_with_every_scheme() {
    let folder = Temporary::new("page-widths");
    let Some(browser) = Browser::find(&folder.0) else { return };
    let page = with_every_scheme(&folder.0, STORY, &[1, 2, 3]);
    for is_dark in [false, true] {
        for facts in browser.measure(&page, &WIDTHS, is_dark) {
            let width = &facts["width"];
            assert_eq!(facts["dark"], is_dark);
            assert_eq!(facts["overflow"], 0, "the page is wider than {width} pixels");
            let figures = list(&facts, "figures");
            assert!(figures.len() >= 6, "{figures:?}");
            for figure in figures {
                let id = &figure["id"];
                assert_eq!(figure["drawn"], true, "{id} at {width}");
                assert_eq!(figure["fits"], true, "{id} at {width}");
                assert_eq!(figure["svg"], "", "{id} as SVG at {width}");
                assert!(list(figure, "collisions").is_empty(), "{id} at {width}: {}", figure["collisions"]);
                assert!(list(figure, "outside").is_empty(), "{id} at {width}: {}", figure["outside"]);
            }
            for legend in list(&facts, "legends") {
                assert!(
                    list(legend, "alike").is_empty(),
                    "{} at {width}: entries that look alike: {}",
                    legend["id"],
                    legend["alike"]
                );
            }
            for table in list(&facts, "sticky") {
                assert_eq!(table["off"], 0, "the first column scrolled away at {width}: {table}");
            }
            if width == 390 {
                for table in list(&facts, "tables") {
                    let ends = table["first_number_ends"].as_f64().unwrap();
                    assert!(ends < table["width"].as_f64().unwrap(), "a phone shows no number: {table}");
                }
                assert!(list(&facts, "sticky").iter().any(|table| table["moved"] == 150), "a table scrolls");
            }
        }
    }
}

#[test]
fn figures_alone_are_drawn_and_nothing_else() {
    let folder = Temporary::new("page-alone");
    let Some(browser) = Browser::find(&folder.0) else { return };
    with_every_scheme(&folder.0, STORY, &[1]);
    let run = RunFolder::open(&folder.0).unwrap();
    let only = ["course".to_owned(), "delay-cdf".to_owned()];
    let page = airpace_page::page(&airpace_page::data(&run, &only).unwrap());
    for facts in browser.measure(&page, &WIDTHS, false) {
        assert_eq!(facts["overflow"], 0, "wider than {}", facts["width"]);
        let figures = list(&facts, "figures");
        let ids: Vec<&str> = figures.iter().filter_map(|figure| figure["id"].as_str()).collect();
        assert_eq!(ids, ["story.course", "story.delay-cdf"]);
        assert!(
            figures.iter().all(|figure| figure["drawn"] == true && figure["fits"] == true),
            "{figures:?}"
        );
    }
    let refused = airpace_page::data(&run, &["tables".to_owned()]).unwrap_err().to_string();
    assert!(refused.contains("throughput-delay"), "{refused}");
}

#[test]
fn every_scheme_has_its_name_beside_its_marker() {
    let folder = Temporary::new("page-names");
    let Some(browser) = Browser::find(&folder.0) else { return };
    let page = with_every_scheme(&folder.0, STORY, &[1]);
    for facts in browser.measure(&page, &WIDTHS, false) {
        let figure = &facts["figures"][0];
        assert_eq!(figure["id"], "story.throughput-delay");
        for scheme in SCHEMES {
            assert!(
                list(figure, "texts").iter().any(|text| text == scheme.name),
                "{} has no name at {} pixels",
                scheme.name,
                facts["width"]
            );
        }
    }
}

#[test]
fn a_tooltip_says_metric_and_unit_in_the_figures_order() {
    let folder = Temporary::new("page-tips");
    let Some(browser) = Browser::find(&folder.0) else { return };
    let page = with_every_scheme(&folder.0, STORY, &[1]);
    let facts = &browser.measure(&page, &[1280], false)[0];
    let tips = list(facts, "tips");
    let tip = |id: &str| {
        let id = format!("story.{id}");
        tips.iter().find(|tip| tip["id"] == *id).unwrap_or_else(|| panic!("{id} has no tooltip: {tips:?}"))
    };
    let heads = |id: &str| -> Vec<&str> {
        list(tip(id), "head").iter().skip(1).map(|head| head.as_str().unwrap()).collect()
    };
    assert_eq!(heads("course"), ["throughput (Mbit/s)", "queueing delay (ms)", "state"]);
    assert_eq!(list(tip("course"), "rows").len(), 3, "capacity and both phones");
    assert_eq!(heads("prb-share"), ["% of PRBs"]);
    assert_eq!(heads("granted"), ["granted (Mbit/s)", "retransmitted (Mbit/s)"]);
    let all = list(facts, "heads").iter().find(|each| each["id"] == "story.course").expect("a course");
    let instants: Vec<&str> = list(all, "heads").iter().map(|head| head.as_str().unwrap()).collect();
    let is_instant = |head: &str| {
        let time = head.strip_prefix("at ").and_then(|rest| rest.strip_suffix(" s"));
        time.is_some_and(|time| time.parse::<f64>().is_ok_and(f64::is_finite))
    };
    assert!(!instants.is_empty() && instants.iter().all(|head| is_instant(head)), "{instants:?}");
    assert_eq!(heads("estimate"), ["Mbit/s"]);
    let says = |id: &str, place: usize| -> Vec<String> {
        list(tip(id), "rows")[place].as_str().unwrap().split('\t').map(str::to_owned).collect()
    };
    let row = &data_of(&page)["scenarios"][0]["rows"][0];
    let (throughput, delay) = (&row["cells"][0]["text"], &row["cells"][1]["text"]);
    let read = |value: &Value, unit: &str| format!("{} {unit}", value.as_str().unwrap());
    assert_eq!(says("throughput-delay", 0), ["throughput".to_owned(), read(throughput, "Mbit/s")]);
    assert_eq!(says("throughput-delay", 2), ["one-way delay p95".to_owned(), read(delay, "ms")]);
    let named: Vec<String> =
        (0..list(tip("estimate"), "rows").len()).map(|place| says("estimate", place)[1].clone()).collect();
    assert!(named.iter().any(|name| name == "physical capacity C_p · phone"), "not cp_mbps: {named:?}");
}

#[test]
fn names_of_a_scenario_are_read_and_never_run() {
    let folder = Temporary::new("page-hostile");
    let Some(browser) = Browser::find(&folder.0) else { return };
    let hostile = "<img src=x onerror='window.harmed=1'>";
    let story = STORY
        .replace("label = \"phone\"", &format!("label = \"{hostile}\""))
        .replace(
            "label = \"other\"",
            &format!("label = \"{{a|b}} <script>window.harmed=2</script> {}\"", "on and ".repeat(12)),
        )
        .replace("Two phones share a cell", hostile)
        .replace("source = \"made up\"", &format!("source = \"{hostile}\""))
        .replace("reno moves data", hostile);
    let page = with_every_scheme(&folder.0, &story, &[1]);
    let facts = &browser.measure(&page, &[1280], false)[0];
    assert!(list(facts, "tips").len() >= 4, "tooltips were shown: {}", facts["tips"]);
    assert_eq!(facts["images"], 0, "a name was read as markup");
    assert_eq!(facts["harmed"], "undefined", "a name was run as code");
    for table in list(facts, "tables") {
        let ends = table["first_number_ends"].as_f64().unwrap();
        assert!(ends < table["width"].as_f64().unwrap() / 2.0, "a long name leaves no room: {table}");
    }
}

#[test]
fn an_emulated_run_s_page_collides_nowhere_with_long_names_and_many_connections() {
    let folder = Temporary::new("page-emulated");
    let Some(browser) = Browser::find(&folder.0) else { return };
    let run = folder.0.join("run");
    let page = fs::read_to_string(emulate(EMULATED, &run, |_| ()).folder.root().join("report.html")).unwrap();
    for facts in browser.measure(&page, &[1400, 1024, 768, 400], false) {
        let width = &facts["width"];
        assert_eq!(facts["overflow"], 0, "the page is wider than {width} pixels");
        let figures = list(&facts, "figures");
        let ids: Vec<&str> = figures.iter().map(|figure| figure["id"].as_str().unwrap()).collect();
        let wanted = [
            "street.link-0-down",
            "street.link-0-up",
            "street.link-1-down",
            "street.link-1-up",
            "street.delay-cdf",
            "street.prb-share",
            "street.prb-map",
            "street.granted",
        ];
        assert_eq!(ids, wanted, "no figure of states or estimates: nothing is known of them");
        for figure in figures {
            let id = &figure["id"];
            assert_eq!(
                (&figure["drawn"], &figure["fits"]),
                (&Value::Bool(true), &Value::Bool(true)),
                "{id} at {width}"
            );
            assert!(list(figure, "collisions").is_empty(), "{id} at {width}: {}", figure["collisions"]);
            assert!(list(figure, "outside").is_empty(), "{id} at {width}: {}", figure["outside"]);
            let is_long = |text: &&Value| {
                text.as_str().unwrap().parse::<f64>().is_ok() && text.as_str().unwrap().len() > 6
            };
            let long: Vec<&Value> = list(figure, "texts").iter().filter(is_long).collect();
            assert!(long.is_empty(), "{id} at {width}: labels that are not rounded: {long:?}");
        }
        for legend in list(&facts, "legends") {
            assert!(list(legend, "alike").is_empty(), "{} at {width}: {}", legend["id"], legend["alike"]);
        }
        for table in list(&facts, "tables") {
            let ends = table["first_number_ends"].as_f64().unwrap();
            assert!(
                ends < table["width"].as_f64().unwrap(),
                "a long name leaves no room at {width}: {table}"
            );
        }
        let tip =
            list(&facts, "tips").iter().find(|tip| tip["id"] == "street.link-0-down").expect("a tooltip");
        let heads: Vec<&str> = list(tip, "head").iter().skip(1).map(|head| head.as_str().unwrap()).collect();
        assert_eq!(heads, ["Mbit/s", "queueing (ms)", "dropped"]);
    }
}

#[test]
fn what_programs_are_called_is_read_and_never_run() {
    let folder = Temporary::new("page-programs");
    let Some(browser) = Browser::find(&folder.0) else { return };
    let hostile = "<img src=x onerror='window.harmed=1'> → </script><script>window.harmed=2</script>";
    let story = EMULATED
        .replace("label = \"phone\"", &format!("label = \"{hostile}\""))
        .replace("reno moves data", hostile);
    let run = folder.0.join("run");
    emulate(&story, &run, |emulation| {
        emulation.programs.iter_mut().for_each(|program| program.command = hostile.repeat(20));
        emulation.kernel = hostile.to_owned();
        emulation.audit.dropped.insert(hostile.to_owned(), 1);
        emulation.fit = false;
        emulation.unfit_because = vec![hostile.to_owned()];
    });
    // In a folder from an untrusted source, a connection may have any name.
    let path = run.join("summary.json");
    let mut summary: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    summary["runs"][0]["flows"][1]["flow"] = hostile.into();
    summary["runs"][0]["flows"][2]["flow"] =
        format!("tcp {}:1 → [{}]:2", "1".repeat(300), "f".repeat(300)).into();
    fs::write(&path, summary.to_string()).unwrap();
    let page = fs::read_to_string(airpace_page::write(&run).unwrap()).unwrap();
    for facts in browser.measure(&page, &[1400, 400], false) {
        assert!(list(&facts, "tips").len() >= 4, "tooltips were shown: {}", facts["tips"]);
        assert_eq!(facts["images"], 0, "a name was read as markup");
        assert_eq!(facts["harmed"], "undefined", "a name was run as code");
        assert_eq!(facts["overflow"], 0, "the page is wider than {} pixels", facts["width"]);
    }
}

#[test]
fn paper_has_every_figure_and_every_number() {
    let folder = Temporary::new("page-paper");
    let Some(browser) = Browser::find(&folder.0) else { return };
    let page = with_every_scheme(&folder.0, STORY, &[1, 2]);
    let data = data_of(&page);
    let pdf = browser.print(&folder.0.join("report.html"), true);
    if !has_program("pdftotext", "poppler-utils") || !has_program("pdftoppm", "poppler-utils") {
        return;
    }
    let output = Command::new("pdftotext").arg("-raw").arg(&pdf).arg("-").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // One text of each kind that appears only in a drawn figure.
    for figure in [
        "better ↗",
        "queueing delay (ms)",
        "part of packets",
        "Jain's index\n",
        "% of PRBs",
        "subframe (ms)",
        "part of intervals",
    ] {
        assert!(text.contains(figure), "no figure on paper says `{}`", figure.trim());
    }
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let scenario = &data["scenarios"][0];
    let cells = list(scenario, "rows").iter().flat_map(|row| list(row, "cells"));
    for text in cells.map(|cell| cell["text"].as_str().unwrap()) {
        let found = words.iter().position(|word| *word == text);
        words.swap_remove(found.unwrap_or_else(|| panic!("{text} of the table is not on paper")));
    }

    let pages = folder.0.join("paper");
    Command::new("pdftoppm").args(["-gray", "-r", "30"]).arg(&pdf).arg(&pages).status().unwrap();
    let mut count = 0;
    for entry in fs::read_dir(&folder.0).unwrap().flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "pgm") {
            let picture = fs::read(entry.path()).unwrap();
            let pixels = &picture[picture.len() - picture.len() * 9 / 10..];
            let mean = pixels.iter().map(|pixel| u64::from(*pixel)).sum::<u64>() / pixels.len() as u64;
            assert!(mean > 200, "{}: paper is dark ({mean} of 255)", entry.path().display());
            count += 1;
        }
    }
    assert!(count >= 3, "{count} pages");
}

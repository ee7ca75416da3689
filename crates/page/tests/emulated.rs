//! Run folder and page of an emulated run: contents of the page, which is made from the folder alone.

#[allow(dead_code, reason = "other tests simulate")]
mod common;

use std::fs;

use airpace_run::RunFolder;
use serde_json::Value;

use common::Temporary;
use common::emulated::{EMULATED, emulate};

fn data_of(page: &str) -> Value {
    let (_, rest) = page.split_once(r#"id="data">"#).expect("a place for data");
    serde_json::from_str(rest.split_once("</script>").expect("the data end").0).expect("the data are JSON")
}

#[test]
fn the_page_begins_with_what_ran_behind_what() {
    let folder = Temporary::new("emulated-page");
    emulate(EMULATED, &folder.0, |_| ());
    // To view the page: AIRPACE_KEEP_REPORT=/tmp/street cargo test -p airpace-page --test emulated
    if let Some(keep) = std::env::var_os("AIRPACE_KEEP_REPORT") {
        emulate(EMULATED, std::path::Path::new(&keep), |_| ());
    }
    let data = data_of(&fs::read_to_string(folder.0.join("report.html")).unwrap());
    let told = &data["emulation"];
    assert_eq!(told["fit"], true);
    let rows: Vec<[&str; 3]> = told["programs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["place", "command", "ended"].map(|key| row[key].as_str().unwrap()))
        .collect();
    assert_eq!(rows[0], ["the server's side", "iperf3 -s", "stopped at the run's end"]);
    assert_eq!(rows[1], ["phone (device 1)", "iperf3 -c 100.64.0.1 -R -t 11", "ended with success"]);
    assert_eq!(rows[3][2], "failed with status 1");
    assert_eq!(data["command"], "./airpace emulate street.toml --seed 3 -- iperf3 -c 100.64.0.1 -R");

    let street = &data["scenarios"][0];
    assert_eq!(street["name"], "street");
    assert_eq!(street["command"], data["command"], "one command made all of it");
    assert_eq!(street["not_judged"].as_array().unwrap().len(), 1);
    let links: Vec<&str> =
        street["links"].as_array().unwrap().iter().map(|link| link["name"].as_str().unwrap()).collect();
    let of_phone = ["to phone (device 1)", "from phone (device 1)"];
    assert_eq!(links, [of_phone[0], of_phone[1], "to tablet (device 2)", "from tablet (device 2)"]);
}

#[test]
fn curves_and_tables_of_the_page_have_the_same_bytes() {
    let folder = Temporary::new("emulated-curves");
    let summary = emulate(EMULATED, &folder.0, |_| ()).summary;
    let data = data_of(&fs::read_to_string(folder.0.join("report.html")).unwrap());
    let street = &data["scenarios"][0];
    let run = &summary.runs[0];
    assert_eq!(street["courses"].as_array().unwrap().len(), run.flows.len());
    assert!(
        run.flows.len() > 50 && run.flows[0].flow.starts_with("tcp 100.64.0.1:5201"),
        "{:?}",
        run.flows[0].flow
    );
    let span_s = street["interval_s"].as_f64().unwrap();
    for link in &run.links {
        let whose = (link.device, link.direction);
        let flows = run.flows.iter().enumerate().filter(|(_, flow)| (flow.device, flow.direction) == whose);
        let mbit: f64 = flows
            .flat_map(|(index, _)| street["courses"][index]["throughput_mbps"].as_array().unwrap())
            .filter_map(Value::as_f64)
            .map(|mbps| mbps * span_s)
            .sum();
        let wanted = link.metrics.throughput_mbps * run.duration_s;
        assert!(
            (mbit / wanted - 1.0).abs() < 0.01,
            "{whose:?}: {mbit} Mbit on the curves, {wanted} in the table"
        );
        assert!(link.metrics.utilization.is_some_and(|part| part > 0.0 && part < 1.0), "{link:?}");
    }
    let last = street["courses"][0]["throughput_mbps"].as_array().unwrap().len();
    assert_eq!(last, 124, "12.345678 s in steps of 100 ms");
    let cell = &street["cells"][0];
    assert_eq!(cell["users"], serde_json::json!(["device 0", "device 1", "background", "control", "idle"]));
}

#[test]
fn the_page_is_made_from_the_folder_alone_and_always_the_same() {
    let folder = Temporary::new("emulated-again");
    emulate(EMULATED, &folder.0, |_| ());
    let first = fs::read(folder.0.join("report.html")).unwrap();
    fs::remove_file(folder.0.join("report.html")).unwrap();
    airpace_page::write(&folder.0).unwrap();
    assert!(fs::read(folder.0.join("report.html")).unwrap() == first);
    assert!(first.len() < 4_000_000, "{} bytes", first.len());
    assert!(RunFolder::open(&folder.0).unwrap().remove().unwrap(), "every file belongs to the run");
}

#[test]
fn an_unfit_run_s_reasons_are_on_the_page() {
    let folder = Temporary::new("emulated-unfit");
    emulate(EMULATED, &folder.0, |emulation| {
        emulation.fit = false;
        emulation.unfit_because = vec!["The emulator was 12 ms late.".to_owned()];
    });
    let data = data_of(&fs::read_to_string(folder.0.join("report.html")).unwrap());
    assert_eq!(data["emulation"]["fit"], false);
    assert_eq!(data["emulation"]["unfit_because"][0], "The emulator was 12 ms late.");
}

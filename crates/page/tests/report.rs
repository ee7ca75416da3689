//! Tests of the report: it is complete, self-contained, and reproducible.

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use airpace_core::remedy::explain_plainly;
use airpace_core::{Direction, Time};
use airpace_event::{Event, Owner, Recorder, Subframe};
use airpace_radio::{Dci, DciFormat, Numerology, Slot};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use common::{STORY, Temporary, contents, patient, simulate, story, told};

fn data_of(page: &str) -> Value {
    let (_, rest) =
        page.split_once(r#"<script type="application/json" id="data">"#).expect("a place for data");
    let (data, _) = rest.split_once("</script>").expect("the data end");
    serde_json::from_str(data).expect("the data are JSON")
}

#[test]
fn a_page_is_made_from_the_folder_alone_and_always_the_same() {
    let folder = Temporary::new("page");
    story(Some(&folder.0), &[1, 2, 3], 2).run_with(&simulate, &patient).unwrap();
    let path = airpace_page::write(&folder.0).unwrap();
    let first = fs::read(&path).unwrap();
    // To view the page: AIRPACE_KEEP_REPORT=/tmp/story cargo test -p airpace-page --test report
    if let Some(keep) = std::env::var_os("AIRPACE_KEEP_REPORT") {
        fs::create_dir_all(&keep).unwrap();
        fs::write(std::path::Path::new(&keep).join("report.html"), &first).unwrap();
    }
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(folder.0.join("manifest.json")).unwrap()).unwrap();
    manifest["host"]["processor"] = "another".into();
    manifest["host"]["wall_ms"] = 1.into();
    fs::write(folder.0.join("manifest.json"), manifest.to_string()).unwrap();
    fs::remove_file(&path).unwrap();
    airpace_page::write(&folder.0).unwrap();
    assert!(fs::read(&path).unwrap() == first, "the host changes no byte of the page");
    let unfinished = |path: &std::path::Path| airpace_files::unfinished(path.file_name().unwrap()).is_some();
    assert!(!contents(&folder.0).iter().any(|(path, _)| unfinished(path)));
}

#[test]
fn the_page_fetches_nothing_and_stays_small() {
    let folder = Temporary::new("offline");
    story(Some(&folder.0), &[1], 1).run_with(&simulate, &patient).unwrap();
    let page = fs::read_to_string(airpace_page::write(&folder.0).unwrap()).unwrap();
    assert!(page.len() < 8_000_000, "{} bytes", page.len());
    for fetch in
        [" src=", "@import", "url(", "fetch(", "XMLHttpRequest", "<link rel=\"stylesheet\"", "import("]
    {
        let ours = page.replace(include_str!("../../../web/vendor/echarts.min.js"), "");
        assert!(!ours.contains(fetch), "the page would fetch something: {fetch}");
    }
    assert_eq!(page.matches("<script").count(), 3, "library, data and page; data cannot open another script");
    assert!(!page.contains("{{"), "every mark is filled");
}

#[test]
fn figures_make_no_markup_of_names() {
    for script in [
        include_str!("../../../web/chart.js"),
        include_str!("../../../web/look.js"),
        include_str!("../../../web/connection.js"),
        include_str!("../../../web/tip.js"),
        include_str!("../../../web/emulation.js"),
        include_str!("../../../web/tables.js"),
        include_str!("../../../web/agreement.js"),
        include_str!("../../../web/report.js"),
        include_str!("../../../web/figures/agreement_cdf.js"),
        include_str!("../../../web/figures/agreement_departures.js"),
        include_str!("../../../web/figures/course.js"),
        include_str!("../../../web/figures/emulated.js"),
        include_str!("../../../web/figures/delay_cdf.js"),
        include_str!("../../../web/figures/estimate.js"),
        include_str!("../../../web/figures/jain.js"),
        include_str!("../../../web/figures/prbs.js"),
        include_str!("../../../web/figures/throughput_delay.js"),
    ] {
        let title = script.lines().next().unwrap();
        for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "<b>", "<br>"] {
            assert!(!script.contains(markup), "{title}: `{markup}`; make nodes with `el` or `tip`");
        }
    }
}

#[test]
fn a_trace_is_called_what_it_is() {
    let made = TRACED.to_owned();
    let file = TRACED.replace("synth = { rate_mbps = 12, seconds = 2 }", "file = \"FILE\"");
    for (story, trace) in [(made, json!("made")), (file, json!({"file": "walk.down"}))] {
        let folder = Temporary::new("traced");
        fs::create_dir_all(&folder.0).unwrap();
        let given = folder.0.join("walk.down");
        fs::write(&given, "1\n2\n3\n").unwrap();
        let story = story.replace("FILE", given.to_str().unwrap());
        let out = folder.0.join("run");
        told(&story, Some(&out), &[1], 1).run_with(&simulate, &patient).unwrap();
        let page = fs::read_to_string(airpace_page::write(&out).unwrap()).unwrap();
        assert_eq!(data_of(&page)["scenarios"][0]["trace"], trace, "the page shows no folder");
    }
    let given = airpace_sim::builtin().iter().find(|(name, _)| *name == "trace").unwrap().1;
    let about = given.lines().find(|line| line.starts_with("about = ")).unwrap();
    assert!(
        !["recorded", "needs", "--set"].iter().any(|word| about.contains(word)),
        "the heading of a report whose trace was given: {about}"
    );
}

const TRACED: &str = r#"
name = "traced"
about = "A link that replays a trace"
duration_s = 2
schemes = ["reno"]

[trace]
synth = { rate_mbps = 12, seconds = 2 }

[[flow]]
label = "phone"
rtt_ms = 42
"#;

#[test]
fn every_figure_has_its_numbers() {
    let folder = Temporary::new("figures");
    let outcome = story(Some(&folder.0), &[1, 2], 2).run_with(&simulate, &patient).unwrap();
    let page = fs::read_to_string(airpace_page::write(&folder.0).unwrap()).unwrap();
    let data = data_of(&page);
    let scenario = &data["scenarios"][0];
    assert_eq!(scenario["command"], "airpace sim story.toml --seeds 1..2");
    assert_eq!(scenario["command_of_course"], "airpace sim story.toml --seeds 1");
    assert_eq!(scenario["rows"].as_array().unwrap().len(), 4, "two schemes, two flows");
    let row = &scenario["rows"][0];
    let mean =
        outcome.summary.runs[..2].iter().map(|run| run.flows[0].metrics.throughput_mbps).sum::<f64>() / 2.0;
    assert!(
        (row["cells"][0]["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-4,
        "the table's mean is that of the summary"
    );
    assert_eq!(
        row["cells"][0]["text"],
        airpace_run::numbers::shown("throughput_mbps").text(Some(mean)),
        "the page shows the digits that the terminal shows"
    );
    assert!(row["point"]["p25_mbps"].as_f64() <= row["point"]["p75_mbps"].as_f64());

    let course = &scenario["courses"][0];
    let intervals = course["throughput_mbps"].as_array().unwrap();
    assert_eq!(intervals.len(), 60, "6 s in steps of 100 ms");
    let total: f64 = intervals.iter().filter_map(Value::as_f64).sum::<f64>() / 60.0;
    let measured = outcome.summary.runs[0].flows[0].metrics.throughput_mbps;
    assert!(
        (total / measured - 1.0).abs() < 0.01,
        "the curve's total is that of the table: {total} and {measured}"
    );
    let cdf = course["one_way_delay_cdf"].as_array().unwrap();
    assert!(cdf.windows(2).all(|pair| pair[0][0].as_f64() <= pair[1][0].as_f64()));
    assert_eq!(cdf.last().unwrap()[1], 1.0);
    assert!(!course["stays"].as_array().unwrap().is_empty());
    let ends: Vec<f64> =
        course["stays"].as_array().unwrap().iter().map(|stay| stay[1].as_f64().unwrap()).collect();
    assert_eq!(*ends.last().unwrap(), 6.0, "the last stay lasts to the end");

    let cell = &scenario["cells"][0];
    for interval in 0..60 {
        let sum: f64 = cell["share_percent"]
            .as_array()
            .unwrap()
            .iter()
            .map(|user| user[interval].as_f64().unwrap())
            .sum();
        assert!((sum - 100.0).abs() < 0.1, "own, others and idle add up to 100 %: {sum}");
    }
    let granted = &cell["granted"][0];
    assert_eq!(granted["device"], 0);
    let mbit: f64 =
        granted["new_mbps"].as_array().unwrap().iter().map(|mbps| mbps.as_f64().unwrap() * 0.1).sum();
    // Transport blocks contain headers and padding in addition to packets, and the last ones carry packets that arrive
    // after the end.
    let delivered = measured * 6.0;
    assert!((1.0..1.25).contains(&(mbit / delivered)), "{mbit} Mbit granted, {delivered} delivered");
    let start = cell["map"]["start_ms"].as_f64().unwrap();
    assert!(
        (start + 100.0) % 1000.0 < 1.0,
        "the map shows the moment when the other phone comes or goes: {start}"
    );
    assert!(!scenario["jain"][0]["bytes"].as_array().unwrap().is_empty());
    assert_eq!(scenario["expectations"].as_array().unwrap().len(), 2);
}

/// Adds a second block of the same size to each grant of a device. Every third grant retransmits its first block.
struct TwoBlocks<'a> {
    to: &'a mut dyn Recorder,
    grants: u64,
    /// Bits of new blocks of device 0, and bits of its retransmitted blocks.
    bits: &'a [AtomicU64; 2],
}

impl Recorder for TwoBlocks<'_> {
    fn record(&mut self, event: Event<'_>) {
        let Event::Subframe(subframe) = event else { return self.to.record(event) };
        let mut report = subframe.report.clone();
        for (dci, owner) in report.dcis.iter_mut().zip(subframe.owners) {
            let Owner::Device(device) = owner else { continue };
            (dci.mcs[1], dci.tbs[1]) = (dci.mcs[0], dci.tbs[0]);
            dci.retransmission[0] = self.grants.is_multiple_of(3);
            self.grants += 1;
            for block in (0..2).filter(|_| device.0 == 0 && dci.direction == Direction::Downlink) {
                let sum = &self.bits[usize::from(dci.retransmission[block])];
                sum.fetch_add(dci.tbs[block].0, Ordering::Relaxed);
            }
        }
        self.to.record(Event::Subframe(&Subframe { report: &report, owners: subframe.owners }));
    }
}

/// Rewrites the table of the only run without this column.
fn remove_column(table: &Path, column: &str) {
    let is_part = |path: &Path| path.extension().is_some_and(|name| name == "parquet");
    let (part, _) = contents(table).into_iter().find(|(path, _)| is_part(path)).expect("a part");
    let path = table.join(part);
    let rows = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let place = rows.schema().index_of(column).unwrap();
    let rows: Vec<_> = rows.build().unwrap().map(Result::unwrap).collect();
    let without = |mut batch: arrow_array::RecordBatch| {
        batch.remove_column(place);
        batch
    };
    let rows: Vec<_> = rows.into_iter().map(without).collect();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), rows[0].schema(), None).unwrap();
    rows.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
}

#[test]
fn a_grant_with_a_new_and_a_repeated_block_counts_in_both_parts_of_the_granted_bandwidth() {
    let folder = Temporary::new("two-blocks");
    let bits = [const { AtomicU64::new(0) }; 2];
    let two_blocks = |scenario: &_,
                      scheme: &airpace_sim::SchemeSpec,
                      seed,
                      to: &mut dyn Recorder,
                      progress: &mut airpace_sim::Progress<'_>| {
        simulate(scenario, scheme, seed, &mut TwoBlocks { to, grants: 0, bits: &bits }, progress)
    };
    let reno_only = STORY.replace(r#"schemes = ["reno", "bbr"]"#, r#"schemes = ["reno"]"#);
    told(&reno_only, Some(&folder.0), &[1], 1).run_with(&two_blocks, &patient).unwrap();
    let [new, again] = bits.each_ref().map(|bits| bits.load(Ordering::Relaxed) as f64 / 1e6);
    let drawn = || {
        let data = data_of(&fs::read_to_string(airpace_page::write(&folder.0).unwrap()).unwrap());
        let cell = data["scenarios"][0]["cells"][0].clone();
        let mbit = |name: &str| {
            let mbps = cell["granted"][0][name].as_array().unwrap();
            mbps.iter().map(|mbps| mbps.as_f64().unwrap() * 0.1).sum::<f64>()
        };
        (mbit("new_mbps"), mbit("again_mbps"), cell["repeats_whole_grants"].clone())
    };
    let is_near = |drawn: f64, wanted: f64| (drawn / wanted - 1.0).abs() < 1e-3;

    let (drawn_new, drawn_again, whole) = drawn();
    assert!(again > 0.0 && is_near(drawn_new, new) && is_near(drawn_again, again), "{drawn_new}, not {new}");
    assert_eq!(whole, Value::Null, "the table tells the blocks of a grant apart");

    remove_column(&folder.0.join("prbs"), "new_bits");
    let (drawn_new, drawn_again, whole) = drawn();
    // In a third of the grants, a new block has the same size as the retransmitted block.
    assert!(is_near(drawn_new, new - again) && is_near(drawn_again, 2.0 * again), "{drawn_new}");
    assert_eq!(whole, true, "the page says that an older table does not tell the blocks of a grant apart");
}

#[test]
fn where_the_oracle_ran_the_page_has_each_scheme_s_share_of_it() {
    let folder = Temporary::new("share");
    let with_oracle = STORY.replace(r#"schemes = ["reno", "bbr"]"#, r#"schemes = ["reno", "bbr", "oracle"]"#);
    let outcome = told(&with_oracle, Some(&folder.0), &[1, 2], 2).run_with(&simulate, &patient).unwrap();
    let data = data_of(&fs::read_to_string(airpace_page::write(&folder.0).unwrap()).unwrap());
    let scenario = &data["scenarios"][0];
    let columns = scenario["columns"].as_array().unwrap();
    let place = columns.iter().position(|column| column["path"] == "share_of_oracle").expect("a column");
    let mbps = |scheme: &str, seed: u64| {
        let runs = &outcome.summary.runs;
        let run = runs.iter().find(|run| run.scheme == scheme && run.seed == seed).unwrap();
        run.flows[0].metrics.throughput_mbps
    };
    let mut checked = 0;
    for row in
        scenario["rows"].as_array().unwrap().iter().filter(|row| row["flow"] == scenario["flows"][0]["flow"])
    {
        let scheme = row["scheme"].as_str().unwrap();
        let wanted = [1, 2].map(|seed| mbps(scheme, seed) / mbps("oracle", seed)).iter().sum::<f64>() / 2.0;
        let mean = row["cells"][place]["mean"].as_f64().unwrap();
        assert!((mean / wanted - 1.0).abs() < 1e-3, "{scheme}: {mean}, not {wanted}");
        checked += 1;
    }
    assert_eq!(checked, 3);
}

#[test]
fn what_a_phone_sends_is_drawn_against_its_own_direction() {
    let folder = Temporary::new("both-ways");
    let both_ways = STORY.replace("label = \"other\"", "label = \"other\"\ndirection = \"up\"");
    told(&both_ways, Some(&folder.0), &[1], 1).run_with(&simulate, &patient).unwrap();
    let data = data_of(&fs::read_to_string(airpace_page::write(&folder.0).unwrap()).unwrap());
    let scenario = &data["scenarios"][0];
    let directions = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter().take(2);
        list.map(|entry| entry["direction"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(directions(&scenario["flows"]), ["down", "up"]);
    assert_eq!(directions(&scenario["capacities"]), ["down", "up"]);
    assert_eq!(directions(&scenario["cells"]), ["down", "up"]);
    assert_eq!(directions(&scenario["jain"]), Vec::<String>::new(), "one flow each way shares with nobody");
    for (place, own, other) in [(0, "device 0", "device 1"), (1, "device 1", "device 0")] {
        let cell = &scenario["cells"][place];
        let users = cell["users"].as_array().unwrap();
        let share = |name: &str| {
            let user = users.iter().position(|user| user == name).unwrap();
            cell["share_percent"][user].as_array().unwrap().iter().filter_map(Value::as_f64).sum::<f64>()
        };
        assert!(share(own) > 0.0 && share(other) == 0.0, "only {own} uses direction {place} of the cell");
    }
}

/// Turns each subframe into two slots of a carrier of NR with the TDD pattern DDDSU. Each downlink slot has the downlink
/// grants of the subframe, and the third slot of a period grants the uplink slot, two slots later.
struct NrSlots<'a>(&'a mut dyn Recorder);

impl Recorder for NrSlots<'_> {
    fn record(&mut self, event: Event<'_>) {
        let Event::Subframe(subframe) = event else { return self.0.record(event) };
        let first = 2 * subframe.report.slot.index;
        for index in [first, first + 1] {
            let mut report = subframe.report.clone();
            report.slot = Slot { numerology: Numerology::KHZ_30, index };
            report.time = Time::from_micros(500 * index);
            report.symbols = Some(if index % 5 == 4 { 0 } else { 13 });
            let is_granted = |direction| match direction {
                Direction::Downlink => index % 5 != 4,
                Direction::Uplink => index % 5 == 2,
            };
            let own = report.dcis.iter().zip(subframe.owners).filter(|(dci, _)| is_granted(dci.direction));
            let (dcis, owners): (Vec<Dci>, Vec<Owner>) = own
                .map(|(dci, owner)| {
                    let (format, offset) = match dci.direction {
                        Direction::Downlink => (DciFormat::Nr11, 0),
                        Direction::Uplink => (DciFormat::Nr01, 2),
                    };
                    (Dci { format, offset_slots: Some(offset), ..*dci }, *owner)
                })
                .unzip();
            report.dcis = dcis;
            self.0.record(Event::Subframe(&Subframe { report: &report, owners: &owners }));
        }
    }
}

#[test]
fn slots_of_nr_are_drawn_one_by_one() {
    let folder = Temporary::new("nr-slots");
    let both_ways = STORY.replace("label = \"other\"", "label = \"other\"\ndirection = \"up\"");
    let cell = "[cell]\nrat = \"nr\"\nband = \"n78\"\n\n[[device]]";
    let text = both_ways.replacen("[[device]]", cell, 1);
    let of_nr = |scenario: &_,
                 scheme: &airpace_sim::SchemeSpec,
                 seed,
                 to: &mut dyn Recorder,
                 progress: &mut airpace_sim::Progress<'_>| {
        simulate(scenario, scheme, seed, &mut NrSlots(to), progress)
    };
    told(&text, Some(&folder.0), &[1], 1).run_with(&of_nr, &patient).unwrap();
    let data = data_of(&fs::read_to_string(airpace_page::write(&folder.0).unwrap()).unwrap());
    for (place, direction, own) in [(0, "down", "device 0"), (1, "up", "device 1")] {
        let cell = &data["scenarios"][0]["cells"][place];
        assert_eq!(cell["direction"], direction);
        let nr = json!({"numerology": 1, "slots": 12_000, "downlink": 9_600});
        assert_eq!(cell["carriers"], json!([{"carrier": 0, "prbs": 100, "nr": nr}]));
        let users = cell["users"].as_array().unwrap();
        let user = users.iter().position(|user| user == own).unwrap();
        let most = |user: usize| {
            let shares = cell["share_percent"][user].as_array().unwrap().iter().filter_map(Value::as_f64);
            shares.fold(0.0, f64::max)
        };
        assert!((20.0..=100.0).contains(&most(user)), "{direction}: {} % of the PRBs", most(user));
        for interval in 0..60 {
            let sum: f64 =
                (0..users.len()).map(|user| cell["share_percent"][user][interval].as_f64().unwrap()).sum();
            assert!((sum - 100.0).abs() < 0.1, "{direction}: all users and idle PRBs add up to {sum} %");
        }
        let map = &cell["map"];
        assert_eq!(map["subframes"], 200);
        let slots: Vec<u64> =
            map["grants"].as_array().unwrap().iter().map(|grant| grant[0].as_u64().unwrap()).collect();
        assert!(slots.iter().all(|slot| *slot < 400 && (slot % 5 == 4) == (direction == "up")), "{slots:?}");
        assert!(slots.len() > 30 && slots.iter().any(|slot| *slot >= 200), "{direction}: {}", slots.len());
    }
}

#[test]
fn an_incomplete_run_gives_a_page_that_says_so() {
    let folder = Temporary::new("half");
    let failing = |scenario: &_,
                   scheme: &airpace_sim::SchemeSpec,
                   seed,
                   recorder: &mut dyn airpace_event::Recorder,
                   progress: &mut airpace_sim::Progress<'_>| {
        if scheme.text() == "bbr" {
            return Err("stopped".into());
        }
        simulate(scenario, scheme, seed, recorder, progress)
    };
    story(Some(&folder.0), &[1], 1).run_with(&failing, &patient).unwrap_err();
    let page = fs::read_to_string(airpace_page::write(&folder.0).unwrap()).unwrap();
    let data = data_of(&page);
    assert_eq!(data["complete"], false);
    assert_eq!(data["runs_ended"], 1);
    assert_eq!(data["scenarios"][0]["rows"].as_array().unwrap().len(), 2, "ended runs are shown");
}

#[test]
fn a_folder_without_a_run_is_named() {
    let folder = Temporary::new("nothing");
    let error = explain_plainly(&airpace_page::write(&folder.0).unwrap_err());
    assert!(error.contains("manifest.json") && error.contains("is this a run folder"), "{error}");
}

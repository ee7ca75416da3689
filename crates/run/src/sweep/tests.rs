//! Tests of sweeps, from the specification to the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use airpace_core::remedy::explain_plainly;
use airpace_sim::{Scenario, SchemeSpec};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use proptest::prelude::*;

use super::*;
use crate::flows::{self, FlowRow};
use crate::{Choice, Host, Matrix, RunError};

/// Scenario of a short run over a wire.
const STORY: &str = "name = \"story\"\nabout = \"one phone\"\nduration_s = 0.4\n[internet]\nrate_mbps = 10\nbuffer.ms = 100\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\n";

fn spec(sets: &[(&str, &str)], schemes: &[&str], seeds: &str) -> Spec {
    let spec = Spec {
        scenario: "story.toml".to_owned(),
        text: STORY.to_owned(),
        set: sets.iter().map(|(key, values)| Axis::parse(key, values).unwrap()).collect(),
        schemes: schemes.iter().map(|scheme| (*scheme).to_owned()).collect(),
        seeds: seeds.parse::<crate::seeds::Seeds>().unwrap().as_slice().to_vec(),
    };
    spec.check().unwrap();
    spec
}

fn small() -> Spec {
    spec(&[("internet.rate_mbps", "5,10"), ("flow.0.rtt_ms", "10..30/3")], &["reno", "bbr"], "1..2")
}

fn host(jobs: usize) -> Host {
    Host::here("airpace sweep", jobs)
}

const GO: &(dyn Fn(SweepProgress) -> ControlFlow<()> + Sync) = &|_| ControlFlow::Continue(());

/// A page in plain text: one line per scheme and point.
struct Listing(String);

impl SweepReport for Listing {
    fn new(_: About, own_flows: BTreeSet<u16>) -> Listing {
        Listing(format!("own schemes: {own_flows:?}\n"))
    }

    fn add(&mut self, scheme: usize, places: &[usize], ended: &[&[FlowRow]], lost: usize) {
        self.0 += &format!("{scheme} {places:?} {ended:?} {lost}\n");
    }

    fn render(self, failures: &[Failure<'_>]) -> String {
        format!("{}{failures:?}\n", self.0)
    }
}

fn finish(sweep: Sweep) -> SweepOutcome {
    sweep.finish::<Listing>(&mut |_, _, _| Ok(())).unwrap()
}

fn swept(spec: Spec, root: &Path, jobs: usize) -> SweepOutcome {
    let sweep = Sweep::open(Plan::new(spec).unwrap(), root, host(jobs)).unwrap();
    sweep.run(GO).unwrap();
    finish(sweep)
}

/// Everything that depends on the matrix only: files by name, and the manifest without the host part.
fn lasting(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in ["failures.json", "report.html"] {
        files.insert(name.to_owned(), fs::read(root.join(name)).unwrap());
    }
    for scheme in fs::read_dir(root.join("results")).unwrap() {
        let path = scheme.unwrap().path();
        files.insert(
            path.file_name().unwrap().to_str().unwrap().to_owned(),
            fs::read(path.join("part.parquet")).unwrap(),
        );
    }
    let manifest = manifest(root).unwrap().unwrap();
    let manifest = SweepManifest { host: Host::default(), ..manifest };
    files.insert("manifest.json".to_owned(), serde_json::to_vec(&manifest).unwrap());
    files
}

#[test]
fn the_last_key_changes_fastest_then_schemes_then_seeds_faster_still() {
    let plan = Plan::new(small()).unwrap();
    let line = |number: u64| {
        let cell = plan.cell(number);
        let sets: Vec<String> = plan.sets(cell.point).into_iter().map(|(_, value)| value).collect();
        format!("{number}: {} {} {}", sets.join(" "), plan.spec().schemes[cell.scheme], cell.seed)
    };
    let lines: Vec<String> = (0..plan.cells()).map(line).collect();
    assert_eq!(lines.len(), 2 * 3 * 2 * 2);
    assert_eq!(
        lines[..9].join("\n"),
        "0: 5 10 reno 1\n1: 5 10 reno 2\n2: 5 10 bbr 1\n3: 5 10 bbr 2\n4: 5 20 reno 1\n5: 5 20 reno 2\n6: 5 20 bbr 1\n\
         7: 5 20 bbr 2\n8: 5 30 reno 1"
    );
    assert_eq!(lines[23], "23: 10 30 bbr 2");
}

#[test]
fn variants_are_an_axis_and_each_run_is_that_of_its_variant() {
    let text = format!(
        "{STORY}[population]\nseed = 3\n[[population.stratum]]\nname = \"slow\"\ncount = 2\n\
         draw.internet.rate_mbps = {{ uniform = [2, 4] }}\n[[population.stratum]]\nname = \"1e3\"\ncount = 1\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("story.toml");
    fs::write(&file, &text).unwrap();
    let read = |set: Vec<Axis>| Spec::read(file.to_str().unwrap(), set, &["reno".to_owned()], None);
    let spec = read(vec![Axis::parse("flow.0.rtt_ms", "20,40").unwrap()]).unwrap();
    assert_eq!(spec.set[0].values, ["slow-1", "slow-2", "1e3-1"]);
    assert!(!spec.command().contains("variant"), "all variants need no option: {}", spec.command());
    let root = folder.path().join("sweep");
    let outcome = swept(spec.clone(), &root, 2);
    assert_eq!((outcome.cells, outcome.failed), (6, 0));
    let (_, table) = results(&root).unwrap();
    let rows = &table.batches[0];
    let names = rows.column_by_name("variant").unwrap().as_string::<i32>().clone();
    assert_eq!(
        names.iter().flatten().collect::<Vec<_>>(),
        ["slow-1", "slow-1", "slow-2", "slow-2", "1e3-1", "1e3-1"]
    );
    let rate = rows.column_by_name("throughput_mbps").unwrap().as_primitive::<Float64Type>();
    assert!(rate.value(0) < 4.0 && rate.value(5) > 4.0, "{rate:?}");
    let listed = fs::read_to_string(root.join("variants.toml")).unwrap();
    assert!(listed.contains("name = \"slow-1\"") && listed.contains("internet.rate_mbps"), "{listed}");

    let one = read(vec![Axis::parse("variant", "slow-2").unwrap()]).unwrap();
    assert!(one.command().contains("--set variant=slow-2"), "{}", one.command());
    let again = Sweep::open(Plan::new(one).unwrap(), &root, host(1)).unwrap();
    assert_eq!(again.todo().missing.len(), 0, "the run of this variant with the file's own rtt_ms is known");
    let said = read(vec![Axis::parse("variant", "slow-7").unwrap()]).unwrap_err().to_string();
    assert!(said.contains("has no variant `slow-7`; did you mean `slow-"), "{said}");
}

proptest! {
    #[test]
    fn every_combination_is_one_run(
        axes in prop::collection::vec(1..5_usize, 0..4),
        schemes in 1..4_usize,
        seeds in 1..5_u64,
    ) {
        let names = ["flow.0.rtt_ms", "internet.rate_mbps", "duration_s", "about"];
        let values = |count: &usize| (1..=*count).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        let sets: Vec<String> = axes.iter().map(values).collect();
        let sets: Vec<(&str, &str)> = names.into_iter().zip(sets.iter().map(String::as_str)).collect();
        let plan = Plan::new(spec(&sets, &["reno", "bbr", "cubic"][..schemes], &format!("1..{seeds}"))).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..plan.cells() {
            let cell = plan.cell(number);
            prop_assert!(cell.point < plan.points());
            prop_assert_eq!(plan.first_of(cell.point, cell.scheme) + cell.seed - 1, number);
            prop_assert!(seen.insert((plan.sets(cell.point), cell.scheme, cell.seed)), "once");
        }
        let all: u64 = axes.iter().map(|count| *count as u64).product::<u64>() * schemes as u64 * seeds;
        prop_assert_eq!(plan.cells(), all);
    }
}

#[test]
fn a_run_is_known_by_all_that_it_depends_on_and_by_nothing_else() {
    let key = |spec: Spec, number| {
        let plan = Plan::new(spec).unwrap();
        plan.key(&plan.digest(plan.cell(number).point).unwrap(), plan.cell(number))
    };
    let first = key(spec(&[("flow.0.rtt_ms", "10,20")], &["reno"], "1"), 0);
    assert_eq!(
        key(spec(&[("flow.0.rtt_ms", "30,10")], &["bbr", "reno"], "7,1"), 7),
        first,
        "in another matrix"
    );
    assert_eq!(key(spec(&[("flow.0.rtt_ms", "10")], &["reno"], "1"), 0), first);
    for (what, other) in [
        ("value", key(spec(&[("flow.0.rtt_ms", "10,20")], &["reno"], "1"), 1)),
        ("scheme", key(spec(&[("flow.0.rtt_ms", "10")], &["bbr"], "1"), 0)),
        ("option", key(spec(&[("flow.0.rtt_ms", "10")], &["reno@linux"], "1"), 0)),
        ("seed", key(spec(&[("flow.0.rtt_ms", "10")], &["reno"], "2"), 0)),
        ("key", key(spec(&[("flow.0.rtt_ms", "10"), ("duration_s", "0.3")], &["reno"], "1"), 0)),
    ] {
        assert_ne!(other, first, "another {what} is another run");
    }
}

#[test]
fn a_run_over_a_trace_is_known_by_the_contents_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.down");
    let story = STORY.replace("[internet]\nrate_mbps = 10\nbuffer.ms = 100\n", "[trace]\n");
    let key = |contents: &str| {
        fs::write(&trace, contents).unwrap();
        let set = vec![Axis::parse("trace.file", trace.to_str().unwrap()).unwrap()];
        let plan = Plan::new(Spec { text: story.clone(), set, ..spec(&[], &["reno"], "1") }).unwrap();
        plan.key(&plan.digest(0).unwrap(), plan.cell(0))
    };
    let first = key("1\n2\n3\n");
    assert_eq!(key("1\n2\n3\n"), first);
    assert_ne!(key("1\n2\n4\n"), first);
}

#[test]
fn threads_and_interruptions_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let root = |name: &str| folder.path().join(name);
    let outcome = swept(small(), &root("one"), 1);
    assert_eq!(outcome, SweepOutcome { cells: 24, failed: 0, earlier: 0 });
    let one = lasting(&root("one"));
    swept(small(), &root("two"), 2);
    assert!(lasting(&root("two")) == one, "two threads");

    // The sweep is stopped after some runs, a line is truncated as if the process had been killed, and the sweep is
    // resumed.
    let stop_after = |root: &Path, runs: u64| {
        let sweep = Sweep::open(Plan::new(small()).unwrap(), root, host(2)).unwrap();
        let before = sweep.progress().done;
        let ended = sweep.run(&|at| match at.done >= before + runs {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        assert!(matches!(ended, Err(RunError::Stopped { .. })), "{ended:?}");
        assert!(!manifest(root).unwrap().unwrap().complete);
        assert!(
            explain_plainly(&results(root).unwrap_err())
                .contains("the same sweep into the same folder continues it")
        );
    };
    stop_after(&root("again"), 5);
    let log = root("again").join("cells/0001.log");
    let mut text = fs::read(&log).unwrap();
    text.truncate(text.len() - 9);
    fs::write(&log, text).unwrap();
    stop_after(&root("again"), 6);
    let outcome = swept(small(), &root("again"), 1);
    assert!((10..=13).contains(&outcome.earlier), "{outcome:?}");
    assert!(lasting(&root("again")) == one, "two interruptions");

    // A completed sweep has no missing runs and does not change, even if the manifest was damaged or removed.
    let path = root("again").join("manifest.json");
    for damage in [None, Some(&b""[..]), Some(b"{\"sweep\": {\"sch"), Some(b"\xFF\xFE")] {
        match damage {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        assert!(results(&root("again")).is_err());
        assert_eq!(swept(small(), &root("again"), 1).earlier, 24, "{damage:?}");
        assert!(lasting(&root("again")) == one, "{damage:?}");
    }
    // A folder with other contents is rejected.
    fs::write(&path, "{}").unwrap();
    assert!(Sweep::open(Plan::new(small()).unwrap(), &root("again"), host(1)).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"{}");
}

#[test]
fn a_larger_matrix_in_the_same_folder_uses_what_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = |schemes: &[&str], seeds| spec(&[("flow.0.rtt_ms", "10,20")], schemes, seeds);
    swept(matrix(&["reno", "bbr"], "1"), folder.path(), 2);
    let outcome = swept(matrix(&["reno", "cubic"], "1..3"), folder.path(), 2);
    assert_eq!(outcome, SweepOutcome { cells: 12, failed: 0, earlier: 2 });
    assert!(!folder.path().join("results/scheme=bbr").exists(), "the results are those of the last matrix");
    assert_eq!(swept(matrix(&["reno", "bbr"], "1"), folder.path(), 2).earlier, 4, "no run is lost");
    fs::write(folder.path().join("results/mine.parquet"), "").unwrap();
    let again = Sweep::open(Plan::new(matrix(&["reno"], "1")).unwrap(), folder.path(), host(1));
    let said = again.err().unwrap().to_string();
    assert!(said.contains("mine.parquet` is not what"), "{said}");
}

fn column<'a>(table: &'a RecordBatch, name: &str) -> &'a dyn Array {
    table.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"))
}

#[test]
fn the_dataset_has_the_numbers_of_the_runs_themselves() {
    let folder = tempfile::tempdir().unwrap();
    swept(small(), folder.path(), 2);
    let (manifest, table) = results(folder.path()).unwrap();
    assert_eq!(manifest.cells, 24);
    let table = arrow_select::concat::concat_batches(&table.schema, &table.batches).unwrap();
    assert_eq!(table.num_rows(), 24);
    let sets =
        [("internet.rate_mbps".to_owned(), "10".to_owned()), ("flow.0.rtt_ms".to_owned(), "30.0".to_owned())];
    let scenario = Scenario::load(STORY, "story.toml", &sets).unwrap();
    let matrix = Matrix {
        scenarios: vec![Choice { argument: "story.toml".to_owned(), set: sets.to_vec(), scenario }],
        schemes: vec![SchemeSpec::parse("reno").unwrap(), SchemeSpec::parse("bbr").unwrap()],
        seeds: vec![1, 2],
        jobs: 1,
        out: None,
        program: String::new(),
        command: String::new(),
        qlog: false,
        again: None,
        page: false,
        further: vec![],
    };
    let wanted =
        flows::of(&matrix.run(&|_| ControlFlow::Continue(())).unwrap().summary.runs).batches.remove(0);
    let rates = column(&table, "internet.rate_mbps").as_primitive::<Int64Type>();
    let rtts = column(&table, "flow.0.rtt_ms").as_primitive::<Int64Type>();
    let of_point: Vec<usize> =
        (0..24).filter(|row| rates.value(*row) == 10 && rtts.value(*row) == 30).collect();
    assert_eq!(of_point.len(), 4);
    for (row, at) in of_point.into_iter().enumerate() {
        for name in ["scheme", "flow_label", "direction", "flow_scheme"] {
            let text = |table, row| airpace_tables::read::Words::of(table, name).word(row).to_owned();
            assert_eq!(text(&table, at), text(&wanted, row), "{name}");
        }
        let seed = |table, row| column(table, "seed").as_primitive::<UInt64Type>().value(row);
        assert_eq!(seed(&table, at), seed(&wanted, row));
        for name in flows::metric_names() {
            let value = |table: &RecordBatch, row| {
                let column = column(table, name).as_primitive::<Float64Type>();
                column.is_valid(row).then(|| column.value(row).to_bits())
            };
            assert_eq!(value(&table, at), value(&wanted, row), "{name}, bit for bit");
        }
    }
}

#[test]
fn what_cannot_run_is_listed_and_the_rest_runs() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = || spec(&[("flow.0.rtt_ms", "10,-5"), ("duration_s", "0.2,0.3")], &["reno"], "1..2");
    let outcome = swept(matrix(), folder.path(), 2);
    assert_eq!(outcome, SweepOutcome { cells: 8, failed: 4, earlier: 0 });
    let failures: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("failures.json")).unwrap()).unwrap();
    assert_eq!(failures.as_array().unwrap().len(), 4);
    assert_eq!(failures[0]["cell"], 4);
    assert_eq!(failures[0]["set"], "flow.0.rtt_ms=-5 duration_s=0.2");
    assert!(failures[0]["reason"].as_str().unwrap().contains("flow.0.rtt_ms=-5: "), "{}", failures[0]);
    let (_, table) = results(folder.path()).unwrap();
    assert_eq!(table.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 4);
    assert_eq!(swept(matrix(), folder.path(), 1).earlier, 4, "what had ended is found beside what failed");
}

#[test]
fn a_matrix_of_which_nothing_can_run_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new");
    let plan = Plan::new(spec(&[("flow.0.rtt", "10,20")], &["reno"], "1")).unwrap();
    let said = Sweep::open(plan, &root, host(1)).err().unwrap().to_string();
    assert_eq!(said, "flow.0.rtt=10: `flow.0.rtt` is not a key; did you mean `flow.0.rtt_ms`?");
    assert!(!root.exists(), "nothing is written");
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let said = Sweep::open(Plan::new(small()).unwrap(), folder.path(), host(1)).err().unwrap().to_string();
    assert!(said.contains("is not empty and holds no sweep"), "{said}");
}

#[test]
fn no_result_bears_the_name_of_a_scheme_that_ran_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let open = |spec| Sweep::open(Plan::new(spec).unwrap(), folder.path(), host(1));
    let said = explain_plainly(&open(spec(&[("flow.0.scheme", "reno,cubic")], &["bbr"], "1")).err().unwrap());
    assert!(
        said.contains("every flow has a scheme of its own") && said.contains("`scheme` of flow.0 out"),
        "{said}"
    );
    let two = format!("{STORY}[[flow]]\nlabel = \"other\"\nrtt_ms = 20\n");
    let of_two = |sets| Spec { text: two.clone(), ..spec(sets, &["bbr"], "1") };
    let error = open(of_two(&[("flow.0.scheme", "reno"), ("flow.1.scheme", "cubic")])).err().unwrap();
    let said = explain_plainly(&error);
    assert!(said.contains("one of flow.0 to flow.1"), "{said}");
    let sweep = open(of_two(&[("flow.0.scheme", "reno,cubic")])).unwrap();
    assert_eq!(sweep.own_flows().into_iter().collect::<Vec<_>>(), [0]);
    sweep.run(GO).unwrap();
    finish(sweep);
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.starts_with("own schemes: {0}\n"), "{page}");
}

#[test]
fn records_from_elsewhere_are_as_good_as_own_ones_if_they_are_of_the_same_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = |name: &str| folder.path().join(name);
    swept(small(), &root("here"), 1);
    let sweep = Sweep::open(Plan::new(small()).unwrap(), &root("there"), host(1)).unwrap();
    let text = serde_json::to_string(sweep.plan().spec()).unwrap();
    let worker = Plan::new(serde_json::from_str(&text).unwrap()).unwrap();
    let calls = AtomicU64::new(0);
    // The missing runs are executed in reverse order.
    for number in sweep.todo().missing.iter().rev() {
        let record = Runner::new(&worker).run(*number, &|_| {
            calls.fetch_add(1, Ordering::Relaxed);
            false
        });
        let line = record.unwrap().line();
        sweep.add(*number, Record::parse(line.trim_end()).unwrap()).unwrap();
    }
    assert!(calls.into_inner() > 0, "a run tells how far it is");
    finish(sweep);
    assert!(lasting(&root("there")) == lasting(&root("here")));

    let other = Sweep::open(Plan::new(small()).unwrap(), &root("other"), host(1)).unwrap();
    let foreign = Record { key: Key([7; 16]), result: Ok(vec![]) };
    other.add(0, foreign).unwrap();
    assert_eq!(other.progress().failed, 1, "a record of another run is not taken");
}

#[test]
fn the_folder_of_another_scenario_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    swept(spec(&[("duration_s", "0.2")], &["reno"], "1"), folder.path(), 1);
    let before = fs::read(folder.path().join("manifest.json")).unwrap();
    let mut other = spec(&[("duration_s", "0.2")], &["reno"], "1");
    other.text = format!("name = \"elsewhere\"\n{}", other.text.replace("name = ", "# name = "));
    let refused = Sweep::open(Plan::new(other).unwrap(), folder.path(), Host::here("", 1));
    let reason = refused.err().expect("it would replace the results").to_string();
    assert!(reason.contains("whose results a sweep of `elsewhere` would replace"), "{reason}");
    assert_eq!(fs::read(folder.path().join("manifest.json")).unwrap(), before);
}

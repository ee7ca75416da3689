//! Tests of the recorded traces outside the repository (`AIRPACE_DATA`), compared with their known properties.

use airpace_core::remedy::explain_plainly;
use airpace_path::trace::Trace;

/// The content of a file of the recorded traces; `None` if they are not available.
fn file(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(airpace_testing::recordings(&format!("traces/{name}"))?).expect("a trace"))
}

fn trace(name: &str) -> Option<Trace> {
    Some(Trace::parse(&file(name)?, None).expect("a trace"))
}

#[test]
fn every_trace_adds_up_to_what_its_readme_says() {
    let Some(readme) = file("README.md") else { return };
    let readme = String::from_utf8(readme).expect("text");
    let table = readme.lines().skip_while(|line| !line.starts_with("| file | opportunities")).skip(2);
    let mut checked = 0;
    for row in table.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].trim_matches('`');
        let Some(trace) = trace(name) else { return };
        let info = trace.info();
        let near = |cell: usize, value: f64, digits: f64| {
            let told: f64 = cells[cell].parse().expect("a number");
            assert!((value - told).abs() <= 0.501 * digits, "{name}: {value} is not {told}");
        };
        assert_eq!(info.opportunities.to_string(), cells[1], "{name}");
        near(2, info.seconds, 0.1);
        near(3, info.mean_mbps, 0.01);
        near(4, info.sd_1s_mbps, 0.01);
        assert_eq!(info.seconds_below_100_kbps.to_string(), cells[5], "{name}");
        checked += 1;
    }
    assert_eq!(checked, 16);
}

#[test]
fn the_longest_hole_of_a_drive_is_found() {
    let Some(trace) = trace("Verizon-EVDO-driving.down") else { return };
    assert_eq!(trace.longest_hole().length.as_millis(), 11_567);
    assert!((trace.info().longest_hole_s - 11.567).abs() < 1e-9);
}

/// `count` rows of a table of rates, from row `skip` on, with its header.
fn rows(table: &[u8], skip: usize, count: usize) -> Vec<u8> {
    let lines: Vec<&[u8]> = table.split_inclusive(|&byte| byte == b'\n').collect();
    [&lines[..1], &lines[1 + skip..][..count]].concat().concat()
}

#[test]
fn a_table_of_rates_becomes_the_trace_that_others_made_of_it() {
    let Some(table) = file("rates/lumos5g-104-driving.csv") else { return };
    let Some(known) = trace("lumos5g-104-driving.down") else { return };
    let ours = Trace::parse(&rows(&table, 0, 60), None).expect("a table of rates");
    assert!(ours == known, "{} chances against {}", ours.times_ms().len(), known.times_ms().len());
}

#[test]
fn a_table_of_several_rates_is_read_by_the_column_asked_for() {
    let Some(table) = file("rates/ucc5g-static-20200214.csv") else { return };
    let Some(known) = trace("ucc5g-static-20200214.down") else { return };
    let part = rows(&table, 40, 60);
    let ours = Trace::parse(&part, Some("dl_mbps")).expect("a table of rates");
    assert!(ours == known, "{} chances against {}", ours.times_ms().len(), known.times_ms().len());
    let error = explain_plainly(&Trace::parse(&part, None).unwrap_err());
    assert_eq!(
        error,
        "line 1: the header names 2 rates; choose one of them by name (`column`): dl_mbps, ul_mbps"
    );
}

#[test]
fn a_trace_survives_being_written_and_read() {
    let Some(trace) = trace("ATT-LTE-driving-2016.up") else { return };
    assert!(Trace::parse(trace.to_mahimahi().as_bytes(), None).expect("a trace") == trace);
    let table = trace.to_rates_csv();
    let smooth = Trace::parse(table.as_bytes(), None).expect("a table of rates").to_rates_csv();
    let rates = |table: &str| -> Vec<f64> {
        table.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().parse().expect("a rate")).collect()
    };
    let (before, after) = (rates(&table), rates(&smooth));
    assert_eq!(before.len(), after.len());
    // An opportunity at the very end of a second may move to the next second because of rounding.
    assert!(
        before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 0.0121),
        "a row may differ by one chance, which is 0.012 Mbit/s"
    );
}

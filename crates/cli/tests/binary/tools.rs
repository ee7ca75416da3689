//! Commands that support the others: help, lists, `airpace doctor`, manual pages.

use std::process::Stdio;

use super::{Shell, keys};

#[test]
fn help_starts_with_an_example_and_mistakes_are_explained() {
    let shell = Shell::new();
    assert!(shell.run(&["--help"]).fine().starts_with("Example: airpace "));
    assert!(shell.run(&["trace", "info", "--help"]).fine().starts_with("Example: airpace trace info "));
    shell.run(&["lists"]).refused(&["lists", "list"]);
    shell.run(&["list", "shemes"]).refused(&["schemes"]);
}

#[test]
fn schemes_and_scenarios_are_listed_for_people_and_programs() {
    let shell = Shell::new();
    let told = shell.run(&["list", "schemes"]).fine();
    assert!(told.contains("bbr") && told.contains("cubic") && told.contains("pbe@paper"), "{told}");
    assert!(told.lines().count() < 70 && !told.contains(":cwnd_slack_ms"), "short without options: {told}");
    let all = shell.run(&["list", "schemes", "--options"]).fine();
    assert!(all.contains(":cwnd_slack_ms=measured") && all.contains(":ecn=off"), "{all}");
    let two = shell.run(&["list", "schemes", "morc", "pbe"]).fine();
    assert!(two.starts_with("morc") && two.contains(":target_ms=") && two.contains(":floor=on"), "{two}");
    assert!(!two.contains("\nbbr"), "only those that were named: {two}");
    assert_eq!(shell.run(&["list", "schemes", "pbe", "--json"]).json().len(), 1);
    shell.run(&["list", "schemes", "pbee"]).refused(&["`pbee`", "pbe"]);
    shell.run(&["list", "scenarios", "pbe"]).refused(&["list schemes"]);
    shell.run(&["list", "kpis", "--options"]).refused(&["list schemes"]);

    let schemes = shell.run(&["list", "schemes", "--json"]).json();
    let pbe = schemes.iter().find(|scheme| scheme["name"] == "pbe").expect("pbe is listed");
    assert_eq!(
        keys(pbe),
        ["colour", "marker", "name", "options", "presets", "source", "summary", "takes_ran"]
    );
    assert_eq!(pbe["presets"][0]["name"], "paper");

    let scenarios = shell.run(&["list", "scenarios", "--json"]).json();
    assert!(scenarios.iter().any(|scenario| scenario["name"] == "competitor"));
    for scenario in &scenarios {
        assert!(
            scenario["source"].as_str().is_some_and(|source| !source.is_empty()),
            "{scenario} names its source"
        );
        assert!(
            scenario["about"].as_str().is_some_and(|about| !about.is_empty()),
            "{scenario} says what it is about"
        );
        assert!(scenario["duration_s"].as_f64().is_some_and(|seconds| seconds > 0.0), "{scenario}");
    }
    let kpis = shell.run(&["list", "kpis", "--json"]).json();
    let rsrp = kpis.iter().find(|kpi| kpi["name"] == "lte.rsrp").expect("lte.rsrp is listed");
    assert_eq!(keys(rsrp), ["about", "codes", "kind", "layer", "name", "scope", "unit"]);
    assert_eq!((&rsrp["unit"], &rsrp["kind"]), (&"dBm".into(), &"level".into()));
    let told = shell.run(&["list", "kpis"]).fine();
    for kpi in &kpis {
        let name = kpi["name"].as_str().unwrap();
        let line = told.lines().find(|line| line.split_whitespace().next() == Some(name)).expect(name);
        assert!(line.ends_with(kpi["about"].as_str().unwrap()), "a pipe gets one line of each KPI: {line}");
    }
    let told = shell.run(&["list", "scenarios"]).fine();
    assert_eq!(told.matches("needs --set trace=FILE").count(), 1, "scenarios say what they need: {told}");
    assert!(told.contains("competitor") && !told.contains('\x1b'), "no colours without a terminal: {told}");
}

#[test]
fn doctor_tells_what_is_there_and_how_to_get_the_rest() {
    let shell = Shell::new();
    let told = shell.run(&["doctor"]).fine();
    for word in ["version", "commit", "cores", "simulator", "recordings", "AIRPACE_DATA"] {
        assert!(told.contains(word), "doctor tells of {word}: {told}");
    }
    let doctor = &shell.run(&["doctor", "--json"]).json()[0];
    assert_eq!(doctor["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(doctor["features"]["simulator"]["present"], true);
    assert_eq!(doctor["features"]["transports"]["present"], true);
    assert_eq!(doctor["features"]["recordings"]["present"], false, "what is missing is reported as missing");

    std::fs::create_dir_all(shell.path("data/traces")).unwrap();
    let mut command = shell.command(&["doctor", "--json"]);
    let done = super::Done::of(command.env("AIRPACE_DATA", shell.path("data")), &["doctor", "--json"]);
    assert_eq!(done.json()[0]["features"]["recordings"]["present"], true, "AIRPACE_DATA is looked at");
}

#[cfg(not(feature = "proxy"))]
#[test]
fn without_the_proxy_it_says_how_to_get_it() {
    let shell = Shell::new();
    assert!(shell.run(&["proxy", "--help"]).fine().contains("--client-leg"), "its help is there");
    let words = ["proxy", "--client-leg", "bbr", "--allow", "10.0.0.0/8"];
    shell.run(&words).refused(&["without the proxy", "--features proxy", "AIRPACE_FEATURES=proxy"]);
    let doctor = &shell.run(&["doctor", "--json"]).json()[0]["features"]["proxy"];
    assert_eq!(doctor["present"], false);
    assert!(
        doctor["remedy"].as_str().unwrap().ends_with("AIRPACE_FEATURES=proxy ./airpace doctor"),
        "{doctor}"
    );
    airpace_testing::skipped("the proxy is not in this build (cargo test --features airpace-cli/proxy)");
}

#[test]
fn manual_pages_cover_every_command() {
    let shell = Shell::new();
    assert!(shell.run(&["man"]).fine().contains(".TH airpace 1"));

    shell.run(&["man", "--out", "pages"]).fine();
    let page = shell.read("pages/airpace-trace-check.1");
    assert!(page.contains(".SH EXAMPLES") && page.contains("airpace trace check"), "{page}");
    for command in ["airpace", "airpace-list", "airpace-doctor", "airpace-trace-info"] {
        assert!(shell.path(&format!("pages/{command}.1")).is_file(), "{command}.1");
    }
    assert!(!shell.path("pages/airpace-complete.1").exists(), "a command that only shells call has no page");
    shell.write("file", "");
    shell.run(&["man", "--out", "file"]).refused(&["file", "--out"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let shell = Shell::new();
    let mut child = shell
        .command(&["trace", "synth", "--rate-mbps", "100", "--seconds", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let done = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&done.stderr), "", "nothing is said");
    assert_eq!(done.status.code(), Some(0));
}

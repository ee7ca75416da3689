//! `airpace trace`.

use super::{Done, Shell, keys, recordings};

#[test]
fn a_made_trace_is_what_was_asked_for() {
    let shell = Shell::new();
    shell
        .run(&[
            "trace",
            "synth",
            "--model",
            "constant",
            "--rate-mbps",
            "12",
            "--seconds",
            "10",
            "--out",
            "t.down",
        ])
        .fine();
    let info = &shell.run(&["trace", "info", "t.down", "--json"]).json()[0];
    assert_eq!(
        keys(info),
        ["longest_hole_s", "mean_mbps", "opportunities", "sd_1s_mbps", "seconds", "seconds_below_100_kbps"]
    );
    assert_eq!((info["mean_mbps"].as_f64(), info["seconds"].as_f64()), (Some(12.0), Some(10.0)));
    assert!(shell.run(&["trace", "info", "t.down"]).fine().contains("12.000 Mbit/s"));

    let words = ["trace", "synth", "--mean-mbps", "12", "--seed", "3", "--out", "m.down"];
    assert!(
        shell
            .run(&words)
            .fine()
            .contains("m.down: 60.000 s with 12.000 Mbit/s in the mean; over 100 ms 0.0 to ")
    );
    let info = &shell.run(&["trace", "info", "m.down", "--json"]).json()[0];
    assert_eq!((info["mean_mbps"].as_f64(), info["seconds"].as_f64()), (Some(12.0), Some(60.0)));
    let told = &shell.run(&[&words[..], &["--json"]].concat()).json()[0];
    assert_eq!(keys(told), ["least_mbps_100ms", "mean_mbps", "most_mbps_100ms", "out", "seconds"]);
    assert!(told["most_mbps_100ms"].as_f64() > Some(15.0), "the rate wanders: {told}");
    shell.run(&["trace", "synth", "--mean-mbps", "12", "--json"]).refused(&["--out a file"]);
    shell.run(&["trace", "synth"]).refused(&["--mean-mbps"]);
    let piped = shell.run(&["trace", "synth", "--mean-mbps", "12", "--seed", "3"]);
    assert!(piped.err.contains("12.000 Mbit/s in the mean"), "beside the trace: {}", piped.err);
    assert_eq!(piped.fine(), shell.read("m.down"));

    let made = |seed: &str| shell.run(&["trace", "synth", "--rate-mbps", "12", "--seed", seed]).fine();
    assert_eq!(made("7"), made("7"), "the same seed makes the same trace");
    assert_ne!(made("7"), made("8"));
}

#[test]
fn traces_convert_both_ways_through_pipes() {
    let shell = Shell::new();
    let made =
        shell.run(&["trace", "synth", "--model", "constant", "--rate-mbps", "6", "--seconds", "3"]).fine();
    let table = shell.run_with_input(&["trace", "convert", "-", "--to", "csv"], &made).fine();
    assert_eq!(table, "time_s,mbps\n0,6.000\n1,6.000\n2,6.000\n");
    let back = shell.run_with_input(&["trace", "convert", "-", "--to", "mahimahi"], &table).fine();
    assert_eq!(back, made, "a constant rate is converted without loss");
}

#[test]
fn a_kpi_trace_is_what_the_modem_would_have_said() {
    let shell = Shell::new();
    let steps: String = (1..=200).chain((202..=300).step_by(2)).map(|ms| format!("{ms}\n")).collect();
    shell.write("steps.up", &steps);
    let table = shell.run(&["trace", "kpi", "steps.up"]).fine();
    assert_eq!(table, "time_ms,bandwidth_mbps\n0,12\n100,12\n200,6\n");
    let piped = shell.run_with_input(&["trace", "kpi", "-", "--every-ms", "150"], &steps).fine();
    assert_eq!(piped, "time_ms,bandwidth_mbps\n0,12\n150,8\n");

    let told = &shell.run(&["trace", "kpi", "steps.up", "--out", "steps.kpi.csv", "--json"]).json()[0];
    assert_eq!(
        keys(told),
        ["every_ms", "least_mbps", "mean_mbps", "most_mbps", "out", "seconds", "values"],
        "{told}"
    );
    assert_eq!((told["values"].as_u64(), told["least_mbps"].as_f64()), (Some(3), Some(6.0)));
    assert_eq!(shell.read("steps.kpi.csv"), table);

    shell.run(&["trace", "kpi", "steps.up", "--json"]).refused(&["--json", "give --out a file"]);
    shell.run(&["trace", "kpi", "steps.up", "--every-ms", "0"]).refused(&["--every-ms"]);
    shell.run(&["trace", "kpi", "missing.up"]).refused(&["missing.up", "give an existing file"]);
}

#[test]
fn broken_traces_are_refused_with_file_line_and_remedy() {
    let shell = Shell::new();
    shell.write("back.down", "1\n5\n3\n");
    shell.run(&["trace", "info", "back.down"]).refused(&["back.down", "line 3", "never decrease"]);
    shell.write("words.down", "1\nx2\n");
    shell.run(&["trace", "info", "words.down"]).refused(&["words.down", "line 2", "x2"]);
    shell.write("empty.down", "");
    shell.run(&["trace", "info", "empty.down"]).refused(&["empty.down", "empty"]);
    shell.run(&["trace", "info", "missing.down"]).refused(&["missing.down", "give an existing file"]);
    shell.run(&["trace", "synth", "--rate-mbps", "0"]).refused(&["--rate-mbps", "above 0"]);
}

/// Twelve packets at once into a queue of two packets over 12 Mbit/s, in the log format of mm-link.
const LOG: &str = "# mahimahi mm-link (Uplink) [t.down] > log\n# queue: droptail [packets=2]\n# base timestamp: 0\n\
                   1 + 1504\n1 + 1504\n1 + 1504\n1 d 1 1504\n2 - 1504 1\n3 - 1504 2\n";

#[test]
fn a_trace_that_only_the_folder_of_recordings_has_is_named_with_its_path() {
    let shell = Shell::new();
    std::fs::create_dir_all(shell.path("data/traces")).unwrap();
    shell.write("data/traces/city.down", "1\n2\n3\n");
    for line in [
        "trace info city.down",
        "sim trace --set trace=city.down --scheme cubic",
        "sim trace --set trace.file=city.down --scheme cubic",
        "emu link city.down city.down -- true",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let done = Done::of(shell.command(&words).env("AIRPACE_DATA", shell.path("data")), &words);
        let path = shell.path("data/traces/city.down");
        done.refused(&["city.down", "a name is a path", &format!("give `{}`", path.display())]);
        shell.run(&words).refused(&["city.down", "give an existing file, or - for standard input"]);
    }
}

#[test]
fn a_log_that_agrees_is_fine_and_one_that_differs_is_told_line_by_line() {
    let shell = Shell::new();
    shell
        .run(&[
            "trace",
            "synth",
            "--model",
            "constant",
            "--rate-mbps",
            "12",
            "--seconds",
            "5",
            "--out",
            "t.down",
        ])
        .fine();
    shell.write("log", LOG);
    let told = shell.run(&["trace", "check", "log", "--trace", "t.down"]).fine();
    assert!(told.contains("2 departures and 1 drop in the log: our link did the same"), "{told}");

    shell.write("log", &LOG.replace("3 - 1504 2", "4 - 1504 3"));
    let differs = shell.run(&["trace", "check", "log", "--trace", "t.down"]);
    assert_eq!(differs.code, Some(1), "a difference is an expectation that failed");
    assert!(differs.out.contains("line 9") && differs.out.contains("departure at 3 ms"), "{}", differs.out);

    shell.run(&["trace", "check", "t.down", "--trace", "t.down"]).refused(&["t.down", "line 1", "mm-link"]);
}

#[test]
fn our_link_does_what_mahimahi_did() {
    let Some(data) = recordings() else { return };
    let shell = Shell::new();
    let trace = data.join("traces/TMobile-LTE-short.down");
    for scheme in ["cubic", "sprout"] {
        let log = data.join(format!("golden_mmlink/TMobile-LTE-short_{scheme}.mmlink.log.gz"));
        let words = ["trace", "check", log.to_str().unwrap(), "--trace", trace.to_str().unwrap(), "--json"];
        let comparison = &shell.run(&words).json()[0];
        assert!(comparison["departures"].as_u64() > Some(1000), "{scheme}: {comparison}");
        assert_eq!(comparison["differences"].as_array().map(Vec::len), Some(0), "{scheme}: {comparison}");
    }
}

#[test]
fn a_trace_to_which_the_output_is_appended_is_refused() {
    let shell = Shell::new();
    let text = "5\n10\n";
    for command in [&["trace", "info"][..], &["trace", "kpi"], &["trace", "convert", "--to", "csv"]] {
        shell.write("a.down", text);
        let words = [command, &["a.down"]].concat();
        let appended = std::fs::File::options().append(true).open(shell.path("a.down")).unwrap();
        let done = Done::of(shell.command(&words).stdout(std::process::Stdio::from(appended)), &words);
        done.refused(&["standard output would be written over a.down"]);
        assert_eq!(std::fs::read_to_string(shell.path("a.down")).unwrap(), text, "{words:?}");
    }
}

//! `airpace reproduce`.

use std::fs;

use super::Shell;

#[test]
fn an_experiment_gives_numbers_and_a_figure_and_its_runs_are_made_once() {
    let shell = Shell::new();
    // Lines are wrapped.
    let text = shell.run(&["reproduce", "biscay/fig10", "--quick"]).fine().replace('\n', " ");
    assert!(text.contains("out of the fallback, 10 Mbit/s") && text.contains("1 run; 1 made now"), "{text}");
    let page = shell.read("reproduction/index.html");
    assert!(page.contains("<svg") && page.contains("BISCAY Fig. 10") && !page.contains("NaN"));
    assert!(shell.read("reproduction/figures/biscay-fig10.svg").contains("<svg"));
    let results = shell.read("reproduction/results.json");
    let lines = shell.run(&["reproduce", "biscay/fig10", "--quick", "--json"]).json();
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line["experiment"] == "biscay/fig10" && line["verdict"].is_string()));
    assert_eq!(shell.read("reproduction/results.json"), results, "the same numbers");
    let text = shell.run(&["reproduce", "biscay/fig10", "--quick"]).fine().replace('\n', " ");
    assert!(text.contains("1 run; 0 made now"), "{text}");
}

#[test]
fn numbers_that_have_moved_fail() {
    let shell = Shell::new();
    let words = ["reproduce", "biscay/fig10", "--quick", "--quiet"];
    shell.run(&words).fine();
    let results = shell.read("reproduction/results.json");
    shell.write("before.json", &results);
    shell.run(&[&words[..], &["--against", "before.json", "--tolerance", "0"]].concat()).fine();
    let (first, _) = results.split_once("\"value\":").expect("a number");
    let rest = results[first.len()..].split_once(',').expect("more fields").1;
    shell.write("other.json", &format!("{first}\"value\":99,{rest}"));
    shell.run(&[&words[..], &["--against", "other.json"]].concat()).found_nothing(&["was 99"]);
    shell.write("none.json", "{}");
    shell
        .run(&[&words[..], &["--against", "none.json"]].concat())
        .refused(&["`none.json` is no results.json"]);
    shell
        .run(&[&words[..], &["--against", "before.json", "--tolerance=-1"]].concat())
        .refused(&["is no share"]);
}

#[test]
fn what_cannot_be_reproduced_says_why() {
    let shell = Shell::new();
    shell.run(&["reproduce", "pbe/fig144"]).refused(&["did you mean `pbe/fig14`?"]);
    fs::create_dir(shell.path("mine")).unwrap();
    shell.write("mine/thesis.txt", "years of work");
    let words = ["reproduce", "biscay/fig10", "--quick", "--out", "mine"];
    shell.run(&words).refused(&["`mine` is not empty and holds no reproduction"]);
    assert_eq!(fs::read_dir(shell.path("mine")).unwrap().count(), 1, "nothing was written");
    fs::create_dir_all(shell.path("sweep/runs")).unwrap();
    shell.write("sweep/manifest.json", "{ \"sweep\": {} }");
    let words = ["reproduce", "biscay/fig10", "--quick", "--out", "sweep"];
    shell.run(&words).refused(&["holds no reproduction"]);
    assert_eq!(
        shell.read("sweep/manifest.json"),
        "{ \"sweep\": {} }",
        "the manifest of another folder stays"
    );
}

#[test]
fn variants_and_members_of_a_population_are_listed_and_swept() {
    let shell = Shell::new();
    let text = "name = \"small\"\nduration_s = 1\n[internet]\nrate_mbps = 10\nbuffer.ms = 100\n[[flow]]\nrtt_ms = 20\n\
                [[population.stratum]]\nname = \"a\"\ncount = 2\ndraw = { \"flow.0.rtt_ms\" = { whole = [10, 90] } }\n";
    shell.write("small.toml", text);
    let listed = shell.run(&["list", "variants", "small.toml", "--json"]).json();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1]["name"], "a-2");
    let swept = shell.run(&["sweep", "small.toml", "--scheme", "cubic", "--json", "--quiet"]).json();
    let rtts: Vec<_> =
        swept.iter().map(|run| (&run["set"]["variant"], run["throughput_mbps"].as_f64())).collect();
    assert!(rtts.len() == 2 && rtts.iter().all(|(_, rate)| rate.is_some_and(|rate| rate > 1.0)), "{rtts:?}");
    shell.run(&["list", "variants"]).refused(&["give one scenario"]);
    shell.run(&["sweep", "small.toml", "--set", "variant=a-3"]).refused(&["has no variant `a-3`"]);
}

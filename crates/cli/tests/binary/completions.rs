//! Completion: in real shells on a real terminal, and the candidates that the program returns to shells.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Done, Shell};

/// The completion candidates that the program returns, without the explanations.
fn answers(words: &[&str]) -> Vec<String> {
    let shell = Shell::new();
    for file in ["mine.toml", "other.txt"] {
        shell.write(file, "");
    }
    std::fs::create_dir(shell.folder.path().join("folder")).expect("a folder");
    let told = shell.run(&[&["complete", "--"], words].concat()).fine();
    told.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn schemes_presets_options_scenarios_keys_and_kpis_are_known() {
    assert_eq!(answers(&["doc"]), ["doctor"]);
    let schemes = answers(&["sim", "trace", "--scheme", "pbe"]);
    assert!(schemes.contains(&"pbe".to_owned()) && schemes.contains(&"pbe@paper".to_owned()), "{schemes:?}");
    assert_eq!(answers(&["sim", "trace", "--scheme", "pbe@pap"]), ["pbe@paper"]);
    assert_eq!(answers(&["sim", "trace", "--scheme", "copa+"]), ["copa+ran", "copa+ran@pantheon"]);
    assert_eq!(
        answers(&["sim", "trace", "--scheme", "bbr,pbe@pap"]),
        ["bbr,pbe@paper"],
        "also after a comma"
    );
    assert_eq!(answers(&["sim", "trace", "--scheme=pbe@pap"]), ["--scheme=pbe@paper"]);
    let all = "all".to_owned();
    assert!(answers(&["sim", "trace", "--scheme", "al"]).contains(&all));
    assert!(!answers(&["encode", "trace", "--scheme", "al"]).contains(&all), "it takes a single scheme");
    let options = answers(&["sim", "trace", "--scheme", "pbe@paper:"]);
    assert!(
        !options.is_empty() && options.iter().all(|option| option.starts_with("pbe@paper:")),
        "{options:?}"
    );
    assert_eq!(answers(&["sim", "decoder-in"]), ["decoder-in-the-loop"]);
    assert_eq!(answers(&["sim", "min"]), ["mine.toml"], "and files of one's own");
    assert!(answers(&["sim", "oth"]).is_empty(), "other files are not offered");
    assert!(answers(&["sim", "trace", "--set", "cell.pr"]).contains(&"cell.prbs=".to_owned()));
    assert!(
        answers(&["diag", "watch", "--kpi", "lte.rsrp,lte.rsr"]).contains(&"lte.rsrp,lte.rsrq".to_owned())
    );
    assert_eq!(answers(&["diag", "deco"]), ["decode"]);
    assert!(
        answers(&["report", ""]).contains(&"folder/".to_owned()),
        "run folders, below the working directory"
    );
}

/// Starts a shell on a terminal that `script` creates, runs `setup` in it, types `keys`, and returns the resulting
/// command line. The last keys make the shell print this line into the file `line`.
fn typed(program: &str, arguments: &str, setup: &str, keys: &str) -> Option<String> {
    if !airpace_testing::has_program("script", "bsdutils") || !airpace_testing::has_program(program, program)
    {
        return None;
    }
    let shell = Shell::new();
    let binary = Path::new(env!("CARGO_BIN_EXE_airpace")).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").expect("PATH"));
    // Without a limit, the test would wait forever if a shell did not respond. The slowest machine takes seconds.
    let mut child = Command::new("timeout")
        .args(["--foreground", "300", "script", "-qec", &format!("{program} {arguments}"), "/dev/null"])
        .current_dir(shell.folder.path())
        .env("PATH", path)
        .env("HOME", shell.folder.path())
        .env("TERM", "xterm")
        .env_remove("ZDOTDIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("script starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    // The shell assembles the word from parts, because the terminal also echoes the input, which must not match.
    stdin.write_all(format!("{setup}; printf 'RE%s' ADY\r").as_bytes()).expect("keys");
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"READY") && matches!(stdout.read(&mut byte), Ok(1)) {
        seen.push(byte[0]);
    }
    // These keys move to the start and to the end of the line in every shell.
    stdin.write_all(format!("{keys}\x01printf '<%s>' \x05 > line\rexit\r").as_bytes()).expect("keys");
    // On some systems, reading to the end of a terminal fails after its shell has exited.
    let _ = stdout.read_to_end(&mut seen);
    child.wait().expect("the shell ends");
    let line = std::fs::read_to_string(shell.path("line"))
        .unwrap_or_else(|_| panic!("{program} printed no line: {}", String::from_utf8_lossy(&seen)));
    Some(line)
}

const LINES: [(&str, &str); 5] = [
    ("airpace doct\t", "<airpace><doctor>"),
    (
        "airpace sim decoder-in\t--scheme pbe@pap\t--seeds 1",
        "<airpace><sim><decoder-in-the-loop><--scheme><pbe@paper><--seeds><1>",
    ),
    ("airpace sim trace --scheme bbr,pbe@pap\t", "<airpace><sim><trace><--scheme><bbr,pbe@paper>"),
    ("airpace sim trace --scheme=pbe@pap\t", "<airpace><sim><trace><--scheme=pbe@paper>"),
    ("airpace sim trace --set cell.prb\t50", "<airpace><sim><trace><--set><cell.prbs=50>"),
];

#[test]
fn bash_completes() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/completions/airpace.bash");
    for (keys, line) in LINES {
        match typed("bash", "--norc --noprofile -i", &format!(". '{script}'"), keys) {
            Some(found) => assert_eq!(found, line, "{keys:?}"),
            None => return,
        }
    }
}

#[test]
fn zsh_completes() {
    let setup = format!(
        "autoload -Uz compinit; compinit -u -D; . '{}'",
        concat!(env!("CARGO_MANIFEST_DIR"), "/completions/_airpace")
    );
    for (keys, line) in LINES {
        match typed("zsh", "-f -i", &setup, keys) {
            Some(found) => assert_eq!(found, line, "{keys:?}"),
            None => return,
        }
    }
}

#[test]
fn zsh_completes_from_its_path_of_functions() {
    let functions = concat!(env!("CARGO_MANIFEST_DIR"), "/completions");
    let setup = format!("fpath=('{functions}' $fpath); autoload -Uz compinit; compinit -u -D");
    if let Some(found) = typed("zsh", "-f -i", &setup, "airpace doct\t") {
        assert_eq!(found, "<airpace><doctor>");
    }
}

#[test]
fn fish_completes() {
    if !airpace_testing::has_program("fish", "fish") {
        return;
    }
    let shell = Shell::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/completions/airpace.fish");
    let binary = Path::new(env!("CARGO_BIN_EXE_airpace")).parent().expect("a folder");
    for (line, wanted) in [
        ("airpace doct", "doctor"),
        ("airpace sim decoder-in", "decoder-in-the-loop"),
        ("airpace sim trace --scheme pbe@pap", "pbe@paper"),
        ("airpace sim trace --scheme bbr,pbe@pap", "bbr,pbe@paper"),
        ("airpace sim trace --scheme=pbe@pap", "--scheme=pbe@paper"),
        ("airpace sim trace --set cell.prb", "cell.prbs="),
    ] {
        let ask = format!("set -p PATH '{}'; source '{script}'; complete -C '{line}'", binary.display());
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", &ask])
            .env("HOME", shell.folder.path())
            .current_dir(shell.folder.path());
        let told = Done::of(&mut fish, &[line]).fine();
        let answers: Vec<_> = told.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect();
        assert_eq!(answers, [wanted], "{line}");
    }
}

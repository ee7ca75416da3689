//! Output on terminals of different widths: the real binary on a pseudo-terminal.

use std::fs::File;
use std::io::Read;

use rustix::pty;
use rustix::termios::{Winsize, tcsetwinsize};

use super::Shell;

/// Two flows; one of them has a long name and a scheme of its own.
const NAMES: &str = "name = \"names\"\nabout = \"Two phones, of which one has a name that takes some room in a table\"\n\
                     duration_s = 1.5\n[internet]\nrate_mbps = 10\nbuffer.ms = 100\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\n\
                     [[flow]]\nlabel = \"another-phone-with-a-long-name\"\nscheme = \"cbr:rate_mbps=2\"\nrtt_ms = 40\n\
                     [[expect]]\nsay = \"light is slow, which is an expectation of some length\"\nscheme = \"cubic\"\n\
                     metric = \"throughput_mbps\"\nat_least = 99\n";

impl Shell {
    /// Output of a command on a terminal of this many columns, including standard error, and its exit code.
    fn on_terminal(&self, words: &[&str], columns: u16, variables: &[(&str, &str)]) -> (String, Option<i32>) {
        let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&terminal).unwrap();
        pty::unlockpt(&terminal).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let screen = || File::options().read(true).write(true).open(&name).unwrap();
        let mut command = self.command(words);
        command.env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
        let mut child = command.stdout(screen()).stderr(screen()).spawn().expect("the binary starts");
        // Only the command may keep the terminal open. If this process kept its copy, reading would never end.
        drop(command);
        let (mut shown, mut buffer, mut terminal) = (Vec::new(), [0; 4_096], File::from(terminal));
        // Reading from a terminal fails once no process has it open.
        while let Ok(count @ 1..) = terminal.read(&mut buffer) {
            shown.extend(&buffer[..count]);
        }
        let code = child.wait().expect("it ends").code();
        (String::from_utf8(shown).expect("UTF-8").replace("\r\n", "\n"), code)
    }
}

/// The text without control sequences. Overwritten text counts as separate lines.
fn plain(shown: &str) -> String {
    let mut plain = String::new();
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).expect("a sequence ends with a letter");
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    plain.replace('\r', "\n")
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn a_run_fits_terminals_of_40_columns_and_more_and_loses_no_number() {
    let shell = Shell::new();
    shell.write("names.toml", NAMES);
    let words = ["sim", "names.toml", "--scheme", "cubic,reno", "--seeds", "1..2", "--out", "run"];
    let [narrow, usual, wide] = [40, 80, 200].map(|columns| {
        let (shown, code) = shell.on_terminal(&words, columns, &[]);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("\x1b[1m"), "a terminal that can paint is painted: {shown}");
        let text = plain(&shown);
        assert!(widest(&text) <= usize::from(columns), "{columns} columns:\n{text}");
        text
    });
    let numbers = |text: &str| {
        let is_number = |word: &&str| word.starts_with(|c: char| c == '±' || c.is_ascii_digit());
        let after = text.split_once("Mbit/s").expect("a table").1.split_once("Means over").expect("a note").0;
        let mut numbers: Vec<String> =
            after.split_whitespace().filter(is_number).map(str::to_owned).collect();
        // In blocks `p95` appears once per row, in a table only once.
        numbers.sort();
        numbers
    };
    assert_eq!(numbers(&usual), numbers(&wide), "{usual}\n{wide}");
    assert_eq!(numbers(&narrow), numbers(&wide), "{narrow}\n{wide}");
    let is_row = |line: &&str| line.starts_with("cubic") || line.starts_with("reno");
    let (table, _) = usual.split_once("Means over").expect("a note");
    assert_eq!(table.lines().filter(is_row).count(), 4, "80 columns show a table:\n{usual}");

    let piped = shell.run(&words).out;
    assert!(widest(&piped) <= 80 && !piped.contains('\x1b'), "a pipe is 80 columns wide:\n{piped}");
}

#[test]
fn lists_fit_terminals_of_40_columns_and_more() {
    let shell = Shell::new();
    for what in ["scenarios", "schemes", "kpis"] {
        for columns in [40, 80, 120, 200] {
            let (shown, code) = shell.on_terminal(&["list", what], columns, &[]);
            let text = plain(&shown);
            assert_eq!(code, Some(0), "{text}");
            assert!(widest(&text) <= usize::from(columns), "list {what}, {columns} columns:\n{text}");
        }
    }
}

#[test]
fn what_is_said_of_logs_and_of_the_machine_fits_terminals_of_40_columns_and_more() {
    let shell = Shell::new();
    shell.run(&["diag", "encode", "stationary-idle", "--seconds", "0.5", "--out", "a.qmdl"]).fine();
    let machine = shell.run(&["doctor", "--json"]).json().remove(0);
    let features = machine["features"].as_object().expect("features").values();
    let remedies: Vec<&str> = features.map(|feature| feature["remedy"].as_str().expect("text")).collect();
    for columns in [40, 60, 80, 120] {
        for words in [&["doctor"][..], &["diag", "info", "a.qmdl"], &["diag", "bandwidth", "a.qmdl"]] {
            let (shown, code) = shell.on_terminal(words, columns, &[]);
            let text = plain(&shown);
            assert_eq!(code, Some(0), "{text}");
            for line in text.lines().filter(|line| line.chars().count() > usize::from(columns)) {
                let line = line.trim_start();
                let is_whole = remedies.contains(&line) || !line.contains(' ');
                assert!(
                    is_whole,
                    "{words:?}, {columns} columns: {line}\nonly what is to be pasted may be wider"
                );
            }
        }
    }
}

#[test]
fn names_of_others_neither_move_nor_paint_nor_turn_what_stands_beside_them() {
    let shell = Shell::new();
    let evil = "\\u001B[2J\\u001B[31mevil\\u0007\\u202Elive";
    shell.write(
        "names.toml",
        &NAMES.replace("another-phone-with-a-long-name", evil).replace("Two phones", evil),
    );
    let words = ["sim", "names.toml", "--scheme", "cubic", "--out", "run"];
    let (shown, _) = shell.on_terminal(&words, 80, &[("NO_COLOR", "1")]);
    // The bar moves the cursor only within its line.
    assert!(
        !shown.contains("\x1b[2J") && !shown.contains("\x1b[31m") && !shown.contains('\x07'),
        "{shown:?}"
    );
    assert!(!shown.contains('\u{202e}') && shown.contains("evil"), "{shown:?}");
    let piped = shell.run(&["runs", "--in", "."]).fine();
    assert!(!piped.contains('\x1b'), "{piped:?}");
    let refused = shell.run(&["report", "no\x1b[2Jwhere"]).refused(&["\\u{1b}[2Jwhere"]);
    assert!(!refused.contains('\x1b'), "{refused:?}");
}

#[test]
fn colours_are_left_out_where_they_are_not_welcome() {
    let shell = Shell::new();
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (shown, _) = shell.on_terminal(&["list", "scenarios"], 80, &[variable]);
        assert!(shown.contains("competitor") && !shown.contains('\x1b'), "{variable:?}: {shown}");
    }
    let (shown, _) = shell.on_terminal(&["list", "scenarios"], 0, &[]);
    assert!(widest(&plain(&shown)) <= 80, "a terminal that does not know its width has 80 columns: {shown}");
}

//! `airpace sample`; the samples in the repository are those that the program makes.

use std::path::Path;

use super::Shell;

#[test]
fn samples_are_what_the_commands_that_are_told_make() {
    let shell = Shell::new();
    let told = shell.run(&["sample", "--out", "written", "--json"]).json();
    assert_eq!(told.len(), 2, "a modem's log and a radio recording: {told:?}");
    for sample in &told {
        let made_by = sample["made_by"].as_str().expect("a command");
        let words: Vec<&str> = made_by.split_whitespace().skip(1).collect();
        shell.run(&words).fine();
        for file in sample["files"].as_array().expect("files") {
            let written = shell.path(file.as_str().expect("a path"));
            let name = Path::new(&written).file_name().expect("a name").to_str().expect("a plain name");
            let (written, made) =
                (std::fs::read(&written).unwrap(), std::fs::read(shell.path(name)).unwrap());
            assert!(written.len() < 500_000, "{name} ships: {} bytes are too many", written.len());
            assert!(
                written == made,
                "{name} is not what the program makes now; if it is to change, in crates/cli/samples: {made_by}"
            );
        }
        let first = sample["first"].as_str().expect("a command");
        let words: Vec<&str> = first.split_whitespace().skip(1).collect();
        assert!(shell.run(&words).fine().lines().count() > 5, "{first} has something to tell");
    }
}

#[test]
fn a_file_that_is_there_is_not_replaced_by_a_sample() {
    let shell = Shell::new();
    let told = shell.run(&["sample", "phone"]).fine();
    assert!(told.starts_with("phone.qmdl: ") && !shell.path("cell.sigmf-meta").exists(), "one alone: {told}");
    shell.run(&["sample"]).fine();
    shell.write("phone.qmdl", "mine");
    shell.run(&["sample"]).refused(&["`phone.qmdl` is there and is another file", "--out DIR"]);
    assert_eq!(shell.read("phone.qmdl"), "mine");
    shell.run(&["sample", "--out", "phone.qmdl"]).refused(&["cannot make the folder `phone.qmdl`", "--out"]);
}

//! Installation and removal, and the name by which the program refers to itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Done, Shell};

/// All paths below a folder, in order; folders end with a slash.
fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(root).expect("below").display().to_string();
            match path.is_dir() {
                true => {
                    found.push(name + "/");
                    folders.push(path);
                }
                false => found.push(name),
            }
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary folder's name is text")
}

#[test]
fn what_is_installed_is_removed_without_a_trace() {
    let shell = Shell::new();
    shell.write("mine", "");
    let before = tree(shell.folder.path());
    let prefix = shell.path("a new/place");
    shell.run(&["install", "--prefix", text(&prefix)]).fine();
    let installed = tree(&prefix);
    for file in [
        "bin/airpace",
        "share/man/man1/airpace.1",
        "share/man/man1/airpace-trace-check.1",
        "share/bash-completion/completions/airpace",
        "share/zsh/site-functions/_airpace",
        "share/fish/vendor_completions.d/airpace.fish",
        "share/doc/airpace/LICENSE-MIT",
        "share/doc/airpace/guide/install.md",
    ] {
        assert!(installed.iter().any(|path| path == file), "{file} is there: {installed:?}");
    }

    shell.run(&["install", "--prefix", text(&prefix)]).fine();
    assert_eq!(tree(&prefix), installed, "a second installation changes nothing");

    let own = Done::of(Command::new(prefix.join("bin/airpace")).arg("uninstall"), &["uninstall"]);
    assert!(own.fine().contains("Removed airpace"));
    assert_eq!(tree(shell.folder.path()), before, "folders that were made are gone as well");
}

#[test]
fn what_others_put_there_stays() {
    let shell = Shell::new();
    let prefix = shell.path("place");
    std::fs::create_dir_all(prefix.join("share/man/man1")).unwrap();
    std::fs::create_dir_all(prefix.join("bin")).unwrap();
    shell.write("place/bin/airpace", "a stranger");
    shell.run(&["install", "--prefix", "place"]).refused(&["place/bin/airpace is there", "rm "]);
    assert_eq!(shell.read("place/bin/airpace"), "a stranger");
    assert_eq!(tree(&prefix), ["bin/", "bin/airpace", "share/", "share/man/", "share/man/man1/"]);

    std::fs::remove_file(prefix.join("bin/airpace")).unwrap();
    shell.run(&["install", "--prefix", "place"]).fine();
    shell.write("place/share/man/man1/other.1", "a page");
    shell.write("place/share/doc/airpace/notes", "of my own");
    let told = shell.run(&["uninstall", "--prefix", "place"]).fine();
    assert!(told.contains("place/share/doc/airpace stays: "), "{told}");
    assert_eq!(told.lines().count(), 2, "folders that were there before are not mentioned: {told}");
    assert_eq!(
        tree(&prefix),
        [
            "bin/",
            "share/",
            "share/doc/",
            "share/doc/airpace/",
            "share/doc/airpace/notes",
            "share/man/",
            "share/man/man1/",
            "share/man/man1/other.1"
        ]
    );
}

#[test]
fn every_shell_is_told_how_it_completes_where_it_does_not_look() {
    let shell = Shell::new();
    for (name, line) in [
        ("bash", "/place/share/bash-completion/completions/airpace"),
        ("zsh", "/place/share/zsh/site-functions/_airpace"),
        ("fish", "source "),
    ] {
        let words = ["install", "--prefix", "place"];
        let done = Done::of(shell.command(&words).env("SHELL", format!("/usr/bin/{name}")), &words);
        let told = done.fine();
        assert!(told.contains(&format!("For {name} to complete it:")) && told.contains(line), "{told}");
    }
    let share = shell.path("place/share");
    let words = ["install", "--prefix", "place"];
    let mut command = shell.command(&words);
    command.env("SHELL", "/usr/bin/fish").env("XDG_DATA_DIRS", &share);
    let told = Done::of(&mut command, &words).fine();
    assert!(!told.contains("to complete it"), "fish looks there: {told}");
}

#[test]
fn a_later_version_leaves_nothing_of_an_earlier_one() {
    let shell = Shell::new();
    shell.run(&["install", "--prefix", "place"]).fine();
    // An earlier version had one more manual page.
    shell.write("place/share/man/man1/airpace-old.1", "");
    let record = shell.read("place/share/airpace/installed.json");
    let earlier = record.replace("\"files\": [", "\"files\": [\n    \"share/man/man1/airpace-old.1\",");
    let version = env!("CARGO_PKG_VERSION");
    shell.write("place/share/airpace/installed.json", &earlier.replace(version, "0.0.1"));
    let told = shell.run(&["install", "--prefix", "place"]).fine();
    assert!(told.contains("in place of 0.0.1"), "{told}");
    assert!(!shell.path("place/share/man/man1/airpace-old.1").exists());
    assert_eq!(
        shell.read("place/share/airpace/installed.json"),
        record,
        "the record is that of a first installation"
    );
}

#[test]
fn without_an_installation_or_a_right_to_write_it_says_what_to_do() {
    let shell = Shell::new();
    shell.run(&["uninstall", "--prefix", "nowhere"]).refused(&[
        "nothing was installed",
        "nowhere",
        "--prefix DIR",
    ]);
    shell.write("file", "");
    shell.run(&["install", "--prefix", "file/below"]).refused(&["file/below", "--prefix"]);
    assert_eq!(tree(shell.folder.path()), ["file"], "a failed installation is undone");
}

#[test]
fn a_record_that_names_what_lies_elsewhere_removes_nothing() {
    let shell = Shell::new();
    shell.run(&["install", "--prefix", "place"]).fine();
    shell.write("mine", "");
    let record = shell.read("place/share/airpace/installed.json");
    shell.write("place/share/airpace/installed.json", &record.replace("bin/airpace", "../mine"));
    shell.run(&["uninstall", "--prefix", "place"]).refused(&["nothing was removed"]);
    assert!(shell.path("mine").exists() && shell.path("place/bin/airpace").exists());
}

#[test]
fn packages_get_the_same_files_without_a_record() {
    let shell = Shell::new();
    shell.run(&["install", "--prefix", "place"]).fine();
    let mut expected = tree(&shell.path("place"));
    expected.retain(|path| !path.starts_with("share/airpace/"));
    shell.write("other-binary", "of another machine");
    let words = ["install", "--prefix", "/usr", "--destdir", "stage", "--binary", "other-binary", "--json"];
    let told = &shell.run(&words).json()[0];
    assert_eq!(tree(&shell.path("stage/usr")), expected);
    assert_eq!(
        told["files"].as_array().map(Vec::len),
        Some(expected.iter().filter(|path| !path.ends_with('/')).count())
    );
    assert_eq!(shell.read("stage/usr/bin/airpace"), "of another machine");
}

#[test]
fn it_says_how_shells_will_find_it_and_the_line_works() {
    let shell = Shell::new();
    let home = shell.path("a home");
    std::fs::create_dir_all(&home).unwrap();
    let mut command = shell.command(&["install", "--prefix", "a home/.local"]);
    command.env("HOME", &home).env("SHELL", "/bin/bash").env("PATH", "/usr/bin:/bin");
    let told = Done::of(&mut command, &["install"]).fine();
    let line =
        told.lines().find(|line| line.starts_with("  echo ")).unwrap_or_else(|| panic!("a line: {told}"));
    let bash = |script: &str| {
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).env("HOME", &home).env("PATH", "/usr/bin:/bin").current_dir(&home);
        Done::of(&mut bash, &[script]).fine()
    };
    bash(line);
    let found = bash(". ~/.bashrc; command -v airpace");
    assert_eq!(PathBuf::from(found.trim()), home.canonicalize().unwrap().join(".local/bin/airpace"));
}

#[test]
fn hints_help_and_runs_say_what_the_user_must_type() {
    let shell = Shell::new();
    let from_checkout = |words: &[&str]| {
        let mut command = shell.command(words);
        command.env("AIRPACE_COMMAND", "./airpace").env("AIRPACE_CHECKOUT", shell.folder.path());
        Done::of(&mut command, words)
    };
    assert!(from_checkout(&["--help"]).fine().starts_with("Example: ./airpace demo\n"));
    let help = from_checkout(&["sim", "--help"]).fine();
    assert!(help.contains("Usage: ./airpace sim ") && help.contains("`./airpace list scenarios`"), "{help}");
    from_checkout(&["sim", "nonsense-of-mine"]).refused(&["`./airpace list scenarios`"]);
    assert!(from_checkout(&["list", "scenarios"]).fine().contains("`./airpace sim NAME`"));
    assert!(
        from_checkout(&["man"]).fine().contains("airpace demo"),
        "a manual is read after the installation"
    );

    let by_path = Done::of(
        Command::new(env!("CARGO_BIN_EXE_airpace")).arg("--help").env_remove("AIRPACE_COMMAND"),
        &[],
    );
    assert!(
        by_path.fine().contains(concat!(env!("CARGO_BIN_EXE_airpace"), " demo")),
        "a path that was typed is said"
    );

    let quick = ["--seeds", "1", "--set", "duration_s=1", "--scheme", "reno", "--quiet", "--out"];
    let run = |folder: &str, by: &dyn Fn(&[&str]) -> Done| {
        let words = [&["sim", "stationary-idle"], &quick[..], &[folder]].concat();
        let done = by(&words);
        assert_ne!(done.code, Some(2), "{}", done.err);
        shell.read(&format!("{folder}/report.html"))
    };
    let installed = run("one", &|words| shell.run(words));
    let checkout = run("two", &from_checkout);
    assert!(checkout.contains("\"./airpace sim stationary-idle"), "the page's commands can be pasted");
    assert_eq!(installed, checkout.replace("./airpace", "airpace"), "nothing else differs");
}

#[test]
fn uninstall_follows_no_link_that_came_later() {
    let shell = Shell::new();
    std::fs::create_dir_all(shell.path("dotfiles")).unwrap();
    std::fs::create_dir_all(shell.path("place")).unwrap();
    std::os::unix::fs::symlink(shell.path("dotfiles"), shell.path("place/bin")).unwrap();
    shell.run(&["install", "--prefix", "place"]).fine();
    assert!(shell.path("dotfiles/airpace").exists(), "the user's own link is followed");
    std::fs::rename(shell.path("place/share/man"), shell.path("moved")).unwrap();
    std::fs::create_dir_all(shell.path("theirs/man1")).unwrap();
    shell.write("theirs/man1/airpace.1", "precious");
    std::os::unix::fs::symlink(shell.path("theirs"), shell.path("place/share/man")).unwrap();
    shell.run(&["uninstall", "--prefix", "place"]).refused(&["is a link to", "was none when"]);
    assert_eq!(shell.read("theirs/man1/airpace.1"), "precious");
    assert!(shell.path("dotfiles/airpace").exists(), "nothing was removed");
    std::fs::remove_file(shell.path("place/share/man")).unwrap();
    shell.run(&["uninstall", "--prefix", "place"]).fine();
    assert!(!shell.path("dotfiles/airpace").exists());
}

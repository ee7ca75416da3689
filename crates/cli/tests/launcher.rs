//! `./airpace` builds only if necessary, works from any folder, and installs missing tools on a new machine.
//!
//! The script is real. Cargo and the installers are stand-ins that record their command lines.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

/// A repository in a folder with spaces in its name, and all programs that its launcher can find.
struct Machine {
    folder: TempDir,
}

const CARGO: &str = r#"#!/bin/sh
echo "cargo $*" >> "$CALLS"
case $1 in
--version) echo "cargo 1.95.0 (0000000 2026-01-01)" ;;
build)
    [ ! -e "$BROKEN" ] || { echo "error: this does not compile" >&2; exit 101; }
    printf '#!/bin/sh\necho "ran:$*"\necho "data:$AIRPACE_DATA"\necho "called:$AIRPACE_COMMAND"\n' > "$CARGO_TARGET_DIR/release/airpace"
    chmod +x "$CARGO_TARGET_DIR/release/airpace" ;;
esac
"#;

impl Machine {
    /// A new Debian machine, for a user who cannot become root.
    fn without_root() -> Machine {
        let machine = Machine::fresh();
        machine.program("id", "#!/bin/sh\necho 1000\n");
        machine.program("apt-get", "#!/bin/sh\necho \"apt-get $*\" >> \"$CALLS\"\n");
        machine
    }

    /// `df` reports this many MB free everywhere, except below folders named `large`, which have 200 GB free.
    fn with_room(self, megabytes: u32) -> Machine {
        let head = "Filesystem 1024-blocks Used Available Capacity Mounted on";
        self.program(
            "df",
            &format!(
                "#!/bin/sh\necho '{head}'\ncase $2 in */large*) echo '/dev/vdb 250000000 1 200000000 1% /large' ;;\n\
                 *) echo '/dev/vda 250000000 1 {megabytes}000 96% /' ;; esac\n"
            ),
        );
        self
    }

    /// A machine with a compiler and Rust.
    fn ready() -> Machine {
        let machine = Machine::fresh();
        machine.program("cc", "#!/bin/sh\nexit 0\n");
        machine.program("cargo", CARGO);
        machine
    }

    /// A new Debian machine with git and a network.
    fn fresh() -> Machine {
        let machine = Machine { folder: tempfile::tempdir().expect("a temporary folder") };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for folder in [".ci", "crates/core", "scenarios", "web"] {
            fs::create_dir_all(machine.root().join(folder)).expect("a folder");
        }
        for file in ["airpace", ".ci/toolchain", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"] {
            airpace_testing::copy_program(&source.join(file), &machine.root().join(file));
        }
        fs::write(machine.root().join("crates/core/lib.rs"), "").expect("a source");
        for tool in [
            "awk",
            "cat",
            "chmod",
            "df",
            "dirname",
            "du",
            "env",
            "find",
            "head",
            "mkdir",
            "mktemp",
            "mv",
            "cut",
            "readlink",
            "rm",
            "sed",
            "sh",
            "sha256sum",
            "touch",
            "tr",
            "uname",
        ] {
            machine.link(tool);
        }
        machine.program("id", "#!/bin/sh\necho 0\n");
        machine
    }

    /// Adds a program of the test machine to the PATH.
    fn link(&self, tool: &str) {
        let real = std::env::split_paths(&std::env::var_os("PATH").expect("PATH"))
            .map(|folder| folder.join(tool))
            .find(|path| path.is_file())
            .unwrap_or_else(|| panic!("{tool} is on this machine"));
        fs::create_dir_all(self.tools()).expect("a folder");
        symlink(real, self.tools().join(tool)).expect("a link");
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("a repository")
    }

    fn tools(&self) -> PathBuf {
        self.folder.path().join("tools")
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn broken(&self) -> PathBuf {
        self.folder.path().join("broken")
    }

    /// Creates a stand-in for a program. It replaces a link to the test machine's own program, because writing through
    /// the link would destroy this program.
    fn program(&self, name: &str, text: &str) {
        fs::create_dir_all(self.tools()).expect("a folder");
        let path = self.tools().join(name);
        if path.is_symlink() {
            fs::remove_file(&path).expect("a link that was made here");
        }
        airpace_testing::write_program(&path, text);
    }

    /// Makes `sha256sum` return the checksum of the expected installer for every download.
    fn trust_what_is_downloaded(&self) {
        let known = "sed -n \"s/^rustup_sha256_$(uname -m)=//p\" .ci/toolchain";
        self.program("sha256sum", &format!("#!/bin/sh\n{known}\n"));
    }

    /// Creates a script that sources the common part of `./airpace` and `./test`, and then runs `commands`.
    fn asks(&self, commands: &str) -> PathBuf {
        let script = self.root().join("asks");
        airpace_testing::write_program(
            &script,
            &format!("#!/bin/sh\nset -eu\n. ./.ci/toolchain\n{commands}\n"),
        );
        script
    }

    /// Runs `script` without a terminal.
    fn start(&self, script: &Path, from: &Path, arguments: &[&str]) -> Output {
        self.command(script, from, arguments).output().expect("the script starts")
    }

    fn command(&self, script: &Path, from: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(script);
        command
            .args(arguments)
            .current_dir(from)
            .env_clear()
            .env("PATH", self.tools())
            .env("HOME", self.home())
            .env("CALLS", self.folder.path().join("calls"))
            .env("BROKEN", self.broken())
            .env("TMPDIR", self.folder.path())
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs the launcher in the usual way: `./airpace ARGS`.
    fn airpace(&self, arguments: &[&str]) -> Output {
        self.start(&self.root().join("airpace"), &self.root(), arguments)
    }

    /// Number of cargo builds so far.
    fn builds(&self) -> usize {
        self.calls().lines().filter(|call| call.starts_with("cargo build")).count()
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default()
    }
}

/// Waits until the file system's clock has advanced, so that the next file is newer.
fn tick() {
    std::thread::sleep(Duration::from_millis(20));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_stand_in_leaves_the_program_that_it_stands_for() {
    let machine = Machine::fresh();
    let real = machine.folder.path().join("a real program");
    fs::write(&real, "real").unwrap();
    symlink(&real, machine.tools().join("real")).unwrap();
    machine.program("real", "#!/bin/sh\n");
    assert_eq!(fs::read_to_string(&real).unwrap(), "real");
}

#[test]
fn it_keeps_the_features_that_it_was_once_asked_for() {
    let machine = Machine::ready();
    machine.program("pkg-config", "#!/bin/sh\necho \"pkg-config $*\" >> \"$CALLS\"\n");
    machine.airpace(&["demo"]);
    let with = |features: &str| {
        let mut command = machine.command(&machine.root().join("airpace"), &machine.root(), &["demo"]);
        command.env("AIRPACE_FEATURES", features).output().expect("the script starts");
        machine.calls().lines().last().unwrap_or_default().contains("--features sdr")
    };
    assert!(with("sdr"), "they are built: {}", machine.calls());
    assert!(machine.calls().contains("pkg-config --exists SoapySDR"), "their library is looked for");
    machine.airpace(&["demo"]);
    assert_eq!(machine.builds(), 2, "they stay from then on");
    tick();
    fs::write(machine.root().join("crates/core/lib.rs"), "// changed").unwrap();
    machine.airpace(&["demo"]);
    assert!(machine.calls().lines().last().unwrap().contains("--features sdr"), "after changes too");
    assert!(!with(""), "until no features are asked for");
    assert_eq!(machine.builds(), 4);
}

#[test]
fn it_builds_once_and_again_after_every_change() {
    let machine = Machine::ready();
    let first = machine.airpace(&["sim", "two words"]);
    assert!(text(&first.stdout).starts_with("ran:sim two words\n"), "arguments reach the binary: {first:?}");
    assert_eq!(machine.builds(), 1, "the first start builds");

    machine.airpace(&["demo"]);
    assert_eq!(machine.builds(), 1, "the second does not");

    tick();
    fs::write(machine.root().join("crates/core/lib.rs"), "// changed").unwrap();
    machine.airpace(&["demo"]);
    assert_eq!(machine.builds(), 2, "an edit does");

    tick();
    fs::remove_file(machine.root().join("crates/core/lib.rs")).unwrap();
    machine.airpace(&["demo"]);
    assert_eq!(machine.builds(), 3, "and so does a removed file");

    tick();
    fs::write(machine.root().join("README.md"), "words").unwrap();
    machine.airpace(&["demo"]);
    assert_eq!(machine.builds(), 3, "an edit of a document does not");
}

#[test]
fn it_starts_from_elsewhere_and_through_a_link() {
    let machine = Machine::ready();
    let elsewhere = machine.folder.path().join("else where");
    fs::create_dir_all(&elsewhere).unwrap();
    symlink("../a repository/airpace", elsewhere.join("link")).unwrap();
    let started = machine.start(&elsewhere.join("link"), &elsewhere, &["doctor"]);
    assert!(text(&started.stdout).starts_with("ran:doctor\n"), "{started:?}");
    assert!(machine.root().join("target/release/airpace").exists(), "it builds in the repository");
}

#[test]
fn recordings_beside_the_repository_are_found() {
    let machine = Machine::ready();
    assert!(text(&machine.airpace(&["demo"]).stdout).contains("data:\n"), "there are no recordings");
    fs::create_dir_all(machine.folder.path().join("shared/data")).unwrap();
    assert!(text(&machine.airpace(&["demo"]).stdout).contains("/../shared/data\n"));
}

#[test]
fn a_failed_build_is_told_and_tried_again() {
    let machine = Machine::ready();
    fs::write(machine.broken(), "").unwrap();
    let failed = machine.airpace(&["demo"]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(text(&failed.stderr).contains("this does not compile"), "the compiler's words are shown");
    assert!(failed.stdout.is_empty(), "nothing is mistaken for a result");

    fs::remove_file(machine.broken()).unwrap();
    assert!(machine.airpace(&["demo"]).status.success(), "the next start builds again");
}

#[test]
fn a_fresh_machine_gets_what_it_lacks_and_is_told() {
    let machine = Machine::fresh();
    let tools = machine.tools();
    machine.program(
        "apt-get",
        &format!(
            "#!/bin/sh\necho \"apt-get $*\" >> \"$CALLS\"\ncase \"$*\" in *install*gcc*curl*)\n\
             printf '#!/bin/sh\\n' > '{0}/cc'; chmod +x '{0}/cc'; mv '{0}/curl-to-be' '{0}/curl' ;; esac\n",
            tools.display()
        ),
    );
    // An installer that installs the above stand-in for cargo.
    machine.program("cargo-to-be", CARGO);
    machine.program(
        "curl-to-be",
        "#!/bin/sh\necho \"curl $*\" >> \"$CALLS\"\nwhile [ \"$1\" != -o ]; do shift; done\n\
         printf '#!/bin/sh\\nmkdir -p \"$HOME/.cargo/bin\"; mv \"%s/cargo-to-be\" \"$HOME/.cargo/bin/cargo\"\\n' \"${PATH##*:}\" > \"$2\"\n",
    );
    machine.trust_what_is_downloaded();
    let started = machine.airpace(&["demo"]);
    let told = text(&started.stderr);
    assert!(text(&started.stdout).starts_with("ran:demo\n"), "{told}\n{}", machine.calls());
    assert!(
        told.contains("installing gcc libc6-dev curl") && told.contains("a C compiler"),
        "what and why: {told}"
    );
    assert!(told.contains("rustup") && told.contains("no cargo was found"), "what and why: {told}");
    let installs = machine.calls().lines().filter(|call| call.contains(" install ")).count();
    assert_eq!(installs, 1, "all packages at once: {}", machine.calls());
    assert!(machine.calls().contains("curl --proto =https"), "the official installer, over https only");
    assert!(told.contains("rustup 1."), "and which: {told}");
    let left = fs::read_dir(machine.home().join(".cargo")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["bin"], "the installer is gone");

    let before = machine.calls();
    assert!(machine.airpace(&["demo"]).status.success());
    assert_eq!(machine.calls(), before, "the second start installs, asks and builds nothing");
}

#[test]
fn the_python_package_is_installed_without_a_build_of_the_program() {
    const PYTHON: &str = r#"#!/bin/sh
[ "$2" = venv ] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/sh\necho "pip $*" >> "$CALLS"\n' > "$3/bin/pip"
chmod +x "$3/bin/pip"
"#;
    let machine = Machine::ready();
    machine.program("python3", PYTHON);
    let elsewhere = machine.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    let made = machine.start(&machine.root().join("airpace"), &elsewhere, &["python", "own venv"]);
    let said = text(&made.stderr);
    assert!(made.status.success(), "{said}");
    assert_eq!(machine.builds(), 0, "pip builds the module");
    let package = format!("{}[plots]", machine.root().display());
    assert!(
        machine.calls().contains(&format!("pip install --disable-pip-version-check {package}")),
        "{said}"
    );
    assert!(elsewhere.join("own venv/bin/pip").is_file(), "relative to the user's folder");
    assert!(said.contains(&format!(". '{}/own venv/bin/activate'", elsewhere.display())), "{said}");
}

#[test]
fn an_installer_of_another_checksum_is_not_started() {
    let machine = Machine::fresh();
    machine.program("cc", "#!/bin/sh\nexit 0\n");
    machine.program(
        "curl",
        "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nprintf '#!/bin/sh\\necho hello >> \"$CALLS\"\\n' > \"$2\"\n",
    );
    let failed = machine.airpace(&["demo"]);
    let told = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(2), "{told}");
    assert!(told.contains("is not rustup 1.") && told.contains("nothing of it was started"), "{told}");
    assert!(!machine.calls().contains("hello"), "{}", machine.calls());
    assert_eq!(fs::read_dir(machine.home().join(".cargo")).unwrap().count(), 0, "nothing of it is left");

    machine.program("uname", "#!/bin/sh\necho riscv64\n");
    let told = text(&machine.airpace(&["demo"]).stderr);
    assert!(
        told.contains("no installer of Rust for this machine") && told.contains("https://rustup.rs"),
        "{told}"
    );
}

#[test]
fn without_apt_it_says_what_to_install() {
    let machine = Machine::fresh();
    let failed = machine.airpace(&["demo"]);
    assert_eq!(failed.status.code(), Some(2));
    let told = text(&failed.stderr);
    assert!(
        told.contains("Install the equivalent of: gcc libc6-dev curl ca-certificates"),
        "all at once: {told}"
    );
}

/// Part of the message for a user without root: one command line that installs all missing packages.
const ALL: &str =
    "apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev curl ca-certificates";

#[test]
fn without_root_it_prints_the_one_line_that_installs_what_is_missing() {
    for sudo in [None, Some("#!/bin/sh\nexit 1\n")] {
        let machine = Machine::without_root();
        if let Some(sudo) = sudo {
            machine.program("sudo", sudo);
        }
        let failed = machine.airpace(&["demo"]);
        let told = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(2));
        assert_eq!(
            told.lines().filter(|line| line.trim() == ALL).count(),
            1,
            "by itself on its line: {told}"
        );
        assert!(told.contains("C compiler") && told.contains("curl downloads Rust"), "and why: {told}");
        assert_eq!(machine.calls(), "", "nothing is tried that cannot be done");

        // After root has run this line, a compiler and curl exist, and the remaining steps work without root.
        machine.program("cc", "#!/bin/sh\nexit 0\n");
        machine.program("curl", "#!/bin/sh\necho 'curl was started' >&2\nexit 6\n");
        let told = text(&machine.airpace(&["demo"]).stderr);
        assert!(told.contains("curl was started") && !told.contains("As root"), "{told}");
    }
}

#[test]
fn what_the_tests_want_beside_is_in_the_same_line() {
    let machine = Machine::without_root();
    let script = machine.asks("need_toolchain tshark soapysdr c_tools");
    let told = text(&machine.start(&script, &machine.root(), &[]).stderr);
    let line = format!("{ALL} tshark libsoapysdr-dev pkg-config g++ mandoc");
    assert!(told.lines().any(|said| said.trim() == line), "{told}");

    let machine = Machine::ready();
    machine.program("id", "#!/bin/sh\necho 1000\n");
    let script = machine.asks("need_toolchain tshark; echo goes on");
    let done = machine.start(&script, &machine.root(), &[]);
    assert_eq!(text(&done.stdout), "goes on\n", "a missing optional package is no reason to stop: {done:?}");
}

#[test]
fn before_rust_is_downloaded_it_says_how_much_and_where_to() {
    let machine = Machine::fresh();
    machine.program("cc", "#!/bin/sh\nexit 0\n");
    machine.program("curl", "#!/bin/sh\necho 'curl was started' >&2\nexit 6\n");
    let told = text(&machine.airpace(&["demo"]).stderr);
    let (before, _) = told.split_once("curl was started").unwrap_or_else(|| panic!("curl: {told}"));
    for part in ["downloads 170 MB", "takes 710 MB", "home/.rustup", "rustup self uninstall"] {
        assert!(before.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_toolchain_that_rustup_has_yet_to_get_is_told_as_well() {
    let machine = Machine::ready();
    let here = machine.folder.path().join("toolchain");
    machine.program(
        "rustup",
        &format!(
            "#!/bin/sh\necho \"rustup $*\" >> \"$CALLS\"\ncase $1 in run) [ -e '{0}' ] ;; toolchain) touch '{0}' ;; esac\n",
            here.display()
        ),
    );
    let started = machine.airpace(&["demo"]);
    let told = text(&started.stderr);
    assert!(started.status.success(), "{told}");
    assert!(told.contains("installing Rust 1.95.0") && told.contains("takes 710 MB"), "{told}");
    let calls = machine.calls();
    let before = calls.split("rustup toolchain install").next().unwrap_or_default();
    assert!(!before.contains("cargo build"), "cargo would have rustup get it without a word: {calls}");
}

#[test]
fn too_little_room_is_told_before_anything_is_installed() {
    let machine = Machine::fresh().with_room(1_500);
    let failed = machine.airpace(&["demo"]);
    let told = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(2), "{told}");
    assert!(told.contains("only 1.5 GB are free on /, and 1.6 GB are needed there"), "{told}");
    assert!(told.contains("export CARGO_TARGET_DIR=DIR") && told.contains("RUSTUP_HOME=DIR"), "{told}");
    assert_eq!(machine.calls(), "", "nothing was begun");

    let large = machine.folder.path().join("large");
    let mut command = machine.command(&machine.root().join("airpace"), &machine.root(), &["demo"]);
    let told = text(&command.env("CARGO_TARGET_DIR", large).output().expect("it starts").stderr);
    assert!(!told.contains("GB are free"), "Rust alone fits: {told}");

    let ready = Machine::ready().with_room(1_500);
    assert!(ready.airpace(&["demo"]).status.success(), "with Rust there, that is room enough");
}

#[test]
fn what_cannot_be_written_is_told_with_another_place() {
    let machine = Machine::ready();
    let file = machine.folder.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = |variable: &str, below: &str| {
        let mut command = machine.command(&machine.root().join("airpace"), &machine.root(), &["demo"]);
        let failed = command.env(variable, file.join(below)).output().expect("it starts");
        assert_eq!(failed.status.code(), Some(2));
        text(&failed.stderr)
    };
    let told = refused("CARGO_TARGET_DIR", "target");
    assert!(told.contains("cannot write to") && told.contains("export CARGO_TARGET_DIR="), "{told}");
    let told = refused("HOME", "home");
    assert!(
        told.contains("home/.cargo.") && told.contains("export CARGO_HOME=DIR RUSTUP_HOME=DIR"),
        "{told}"
    );
    let mut command = machine.command(&machine.root().join("airpace"), &machine.root(), &["demo"]);
    let told = text(&command.env_remove("HOME").output().expect("it starts").stderr);
    assert!(told.contains("HOME is not set"), "{told}");
}

#[test]
fn the_press_of_a_key_builds_nothing_and_neither_does_removing() {
    let machine = Machine::ready();
    let completed = machine.airpace(&["complete", "--", "doc"]);
    assert!(completed.status.success() && completed.stdout.is_empty(), "{completed:?}");
    assert_eq!(machine.calls(), "");
    machine.airpace(&["demo"]);
    tick();
    fs::write(machine.root().join("crates/core/lib.rs"), "// changed").unwrap();
    assert!(text(&machine.airpace(&["complete", "--", "doc"]).stdout).starts_with("ran:complete -- doc\n"));
    assert!(text(&machine.airpace(&["uninstall"]).stdout).starts_with("ran:uninstall\n"));
    assert_eq!(machine.builds(), 1);
}

#[test]
fn the_program_is_told_how_it_was_called() {
    let machine = Machine::ready();
    let called = |script: &Path, from: &Path| {
        let told = text(&machine.start(script, from, &["doctor"]).stdout);
        told.lines().find_map(|line| line.strip_prefix("called:")).unwrap_or_default().to_owned()
    };
    assert_eq!(called(Path::new("./airpace"), &machine.root()), "./airpace");
    assert_eq!(called(Path::new("../airpace"), &machine.root().join("crates")), "../airpace");
    symlink(machine.root().join("airpace"), machine.tools().join("airpace")).unwrap();
    assert_eq!(called(&machine.tools().join("airpace"), &machine.root()), "airpace", "the name on PATH");
    let mut by_shell = machine.command(Path::new("/bin/sh"), &machine.root(), &["airpace", "doctor"]);
    fs::remove_file(machine.tools().join("airpace")).unwrap();
    let told = text(&by_shell.output().expect("sh").stdout);
    assert!(told.contains("called:./airpace\n"), "{told}");
}

#[test]
fn too_little_room_for_the_tests_is_told_before_they_are_built() {
    let machine = Machine::ready().with_room(9_500);
    machine.program("du", "#!/bin/sh\necho '4100000 target'\n");
    fs::create_dir_all(machine.root().join("target")).unwrap();
    let script = machine.asks("want_space \"$1\"");
    let says = |gigabytes| {
        let asked = machine.start(&script, &machine.root(), &[gigabytes]);
        assert!(asked.status.success(), "it is no reason to stop: {asked:?}");
        text(&asked.stderr)
    };
    assert_eq!(says("13"), "", "what is built already needs no room again");
    let told = says("15");
    assert!(told.contains("only 9.5 GB are free on /, and 11.1 GB are needed there"), "{told}");
}

/// Stand-in for cargo under `./test`: the tests fail as soon as the lints, which would take ten minutes, have started.
const FAILING: &str = r#"#!/bin/sh
case $* in
--version) echo "cargo 1.95.0 (0000000 2026-01-01)" ;;
*--version | *--no-run | fmt*) ;;
clippy*) echo $$ > "$CALLS.new" && mv "$CALLS.new" "$CALLS" && exec sleep 600 ;;
test*) until [ -e "$CALLS" ]; do sleep 0.1; done; exit 101 ;;
*) exit 1 ;;
esac
"#;

#[test]
fn a_failed_test_run_leaves_no_lints_and_no_files_behind() {
    let machine = Machine::ready();
    machine.program("cargo", FAILING);
    machine.program("apt-get", "#!/bin/sh\n");
    machine.program("rustc", "#!/bin/sh\necho \"$HOME\"\n");
    fs::create_dir_all(machine.home().join("lib/rustlib/wasm32-unknown-unknown/lib")).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["test", ".ci/skipped", ".ci/checks", ".ci/tests"] {
        airpace_testing::copy_program(&source.join(file), &machine.root().join(file));
    }
    airpace_testing::write_program(&machine.root().join(".ci/deny"), "#!/bin/sh\n");
    for tool in ["date", "grep", "nice", "setsid", "sleep", "sort"] {
        machine.link(tool);
    }
    // `python3` may be a script that needs more programs, so the link is to the interpreter itself.
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let python = text(&asked.expect("python3 is on this machine").stdout);
    symlink(python.trim(), machine.tools().join("python3")).expect("a link");
    let failed = machine.start(&machine.root().join("test"), &machine.root(), &[]);
    let said = format!("{}{}", text(&failed.stdout), text(&failed.stderr));
    assert_eq!(failed.status.code(), Some(101), "{said}");
    let lints = fs::read_to_string(machine.folder.path().join("calls")).expect("the lints began");
    let lints = Path::new("/proc").join(lints.trim());
    // `./test` has sent SIGTERM to the lints before it exits. The process ends when the kernel delivers the signal.
    let began = std::time::Instant::now();
    while lints.exists() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!lints.exists(), "the lints still run: {said}");
    let left: Vec<_> = fs::read_dir(machine.folder.path())
        .expect("a folder")
        .map(|it| it.expect("one").file_name())
        .collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("tmp.")), "{left:?}");
}

//! `./airpace` builds exactly when it must, from anywhere, and installs what a fresh machine lacks.
//!
//! The script is real; cargo and the installers are stand-ins that write down how they were called.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

/// A repository in a folder with spaces in its name, and the only programs that its launcher can find.
struct Machine {
    folder: TempDir,
}

const CARGO: &str = r#"#!/bin/sh
echo "cargo $*" >> "$CALLS"
case $1 in
--version) echo "cargo 1.95.0 (0000000 2026-01-01)" ;;
build)
    [ ! -e "$BROKEN" ] || { echo "error: this does not compile" >&2; exit 101; }
    printf '#!/bin/sh\necho "ran:$*"\necho "data:$AIRPACE_DATA"\n' > "$CARGO_TARGET_DIR/release/airpace"
    chmod +x "$CARGO_TARGET_DIR/release/airpace" ;;
esac
"#;

impl Machine {
    /// With a compiler and Rust.
    fn ready() -> Machine {
        let machine = Machine::fresh();
        machine.program("cc", "#!/bin/sh\nexit 0\n");
        machine.program("cargo", CARGO);
        machine
    }

    /// As Debian comes, with git and a network.
    fn fresh() -> Machine {
        let machine = Machine { folder: tempfile::tempdir().expect("a temporary folder") };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for folder in [".ci", "crates/core", "scenarios", "web"] {
            fs::create_dir_all(machine.root().join(folder)).expect("a folder");
        }
        for file in ["airpace", ".ci/toolchain", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"] {
            fs::copy(source.join(file), machine.root().join(file)).expect("a copy");
        }
        fs::write(machine.root().join("crates/core/lib.rs"), "").expect("a source");
        for tool in [
            "cat", "chmod", "dirname", "env", "find", "head", "mkdir", "mktemp", "mv", "readlink", "rm",
            "sed", "sh", "touch",
        ] {
            machine.link(tool);
        }
        machine.program("id", "#!/bin/sh\necho 0\n");
        machine
    }

    /// Lets it find a program of this machine.
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

    fn broken(&self) -> PathBuf {
        self.folder.path().join("broken")
    }

    fn program(&self, name: &str, text: &str) {
        fs::create_dir_all(self.tools()).expect("a folder");
        let path = self.tools().join(name);
        fs::write(&path, text).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("an executable");
    }

    /// Starts `script`, without a terminal.
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
            .env("HOME", self.folder.path().join("home"))
            .env("CALLS", self.folder.path().join("calls"))
            .env("BROKEN", self.broken())
            .env("TMPDIR", self.folder.path())
            .stdin(std::process::Stdio::null());
        command
    }

    /// Starts the launcher as most do: `./airpace ARGS`.
    fn airpace(&self, arguments: &[&str]) -> Output {
        self.start(&self.root().join("airpace"), &self.root(), arguments)
    }

    /// How often cargo built so far.
    fn builds(&self) -> usize {
        self.calls().lines().filter(|call| call.starts_with("cargo build")).count()
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default()
    }
}

/// Lets the file system's clock tick, so that what is written next is newer.
fn tick() {
    std::thread::sleep(Duration::from_millis(20));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
    assert_eq!(machine.builds(), 2, "and are there from then on");
    tick();
    fs::write(machine.root().join("crates/core/lib.rs"), "// changed").unwrap();
    machine.airpace(&["demo"]);
    assert!(machine.calls().lines().last().unwrap().contains("--features sdr"), "after changes too");
    assert!(!with(""), "until none are asked for");
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
    assert_eq!(machine.builds(), 3, "and so does a file that went");

    tick();
    fs::write(machine.root().join("README.md"), "words").unwrap();
    machine.airpace(&["demo"]);
    assert_eq!(machine.builds(), 3, "words for people do not");
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
    assert!(text(&machine.airpace(&["demo"]).stdout).contains("data:\n"), "none are there");
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
            "#!/bin/sh\necho \"apt-get $*\" >> \"$CALLS\"\ncase \"$*\" in *gcc*) printf '#!/bin/sh\\n' > '{0}/cc'; chmod +x '{0}/cc' ;;\n\
             *curl*) mv '{0}/curl-to-be' '{0}/curl' ;; esac\n",
            tools.display()
        ),
    );
    // An installer that installs the cargo of above.
    machine.program("cargo-to-be", CARGO);
    machine.program(
        "curl-to-be",
        "#!/bin/sh\necho \"curl $*\" >> \"$CALLS\"\nwhile [ $# -gt 1 ]; do shift; done\n\
         printf 'mkdir -p \"$HOME/.cargo/bin\"; mv \"%s/cargo-to-be\" \"$HOME/.cargo/bin/cargo\"\\n' \"${PATH##*:}\" > \"$1\"\n",
    );
    let started = machine.airpace(&["demo"]);
    let told = text(&started.stderr);
    assert!(text(&started.stdout).starts_with("ran:demo\n"), "{told}\n{}", machine.calls());
    assert!(told.contains("installing gcc libc6-dev (a C compiler"), "what and why: {told}");
    assert!(told.contains("rustup") && told.contains("no cargo was found"), "what and why: {told}");
    assert!(machine.calls().contains("curl --proto =https"), "the official installer, over https only");

    let before = machine.calls();
    assert!(machine.airpace(&["demo"]).status.success());
    assert_eq!(machine.calls(), before, "the second start installs, asks and builds nothing");
}

#[test]
fn without_apt_it_says_what_to_install() {
    let machine = Machine::fresh();
    let failed = machine.airpace(&["demo"]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(text(&failed.stderr).contains("Install the equivalent of: gcc libc6-dev"), "{failed:?}");
}

#[test]
fn too_little_room_for_the_tests_is_told_before_they_are_built() {
    let machine = Machine::fresh();
    machine.link("awk");
    let head = "Filesystem 1024-blocks Used Available Capacity Mounted on";
    machine.program("df", &format!("#!/bin/sh\necho '{head}'\necho '/dev/vda 250000000 1 9500000 96% /'\n"));
    machine.program("du", "#!/bin/sh\necho '4100000 target'\n");
    let script = machine.root().join("asks");
    fs::write(&script, "#!/bin/sh\nset -eu\n. ./.ci/toolchain\nwant_space \"$1\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let says = |gigabytes| {
        let asked = machine.start(&script, &machine.root(), &[gigabytes]);
        assert!(asked.status.success(), "it is no reason to stop: {asked:?}");
        text(&asked.stderr)
    };
    assert_eq!(says("13"), "", "what is built already needs no room again");
    let told = says("15");
    assert!(told.contains("only 9 GB are free") && told.contains("up to 15 GB"), "{told}");
}

//! `./package` reports missing tools, names its outputs, and produces the same bytes in any folder. Both architectures
//! compute the same results.
//!
//! The scripts are real. Cargo and its outputs are stand-ins, except in the last test.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use tempfile::TempDir;

/// Stand-in for cargo. The program that it builds is a script that installs copies of its sources.
const CARGO: &str = r#"#!/bin/sh
case "$1 ${2-}" in
--version*) echo "cargo 1.95.0 (0000000 2026-01-01)" ;;
"deb --version" | "cyclonedx --version") [ -e "$TOOLS/plugins" ] ;;
build*)
    binary=$PWD/target/$MACHINE-unknown-linux-musl/dist/airpace
    mkdir -p "$(dirname "$binary")"
    cat > "$binary" <<'PROGRAM'
#!/bin/sh
# install --destdir DIR --prefix /usr
mkdir -p "$3/usr/bin" "$3/usr/share/doc/airpace" && cp "$0" "$3/usr/bin/airpace"
PROGRAM
    chmod +x "$binary" ;;
tree*) printf 'zstd v1.2.3|MIT\nairpace-cc v0.1.0 (%s)|MIT OR Apache-2.0\nbare v0.1.0|0BSD (*)\n' "$PWD" ;;
metadata*)
    mkdir -p "$TOOLS/zstd-1.2.3" "$TOOLS/bare-0.1.0"
    echo "These are zstd's terms." > "$TOOLS/zstd-1.2.3/LICENSE"
    for crate in zstd-1.2.3 bare-0.1.0; do printf '{"manifest_path":"%s/%s/Cargo.toml"},' "$TOOLS" "$crate"; done ;;
cyclonedx*) printf '{ "component": "%s/crates/cli" }\n' "$PWD" > crates/cli/airpace_bin.cdx.json ;;
esac
"#;

/// A checkout in a separate folder, and all programs that its scripts can find.
struct Machine {
    folder: TempDir,
    checkout: PathBuf,
}

impl Machine {
    /// A machine with git and Rust, but without the tools that only packages need.
    fn new(checkout: &str) -> Machine {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let machine = Machine { checkout: folder.path().join(checkout), folder };
        let parts = ["package", "packaging", ".ci/toolchain", "Cargo.toml", "README.md", "CHANGELOG.md"];
        for part in parts.into_iter().chain(["crates/cli/Cargo.toml"]) {
            machine.copy(part);
        }
        let tools = "awk cat chmod cp cut date df dirname du env find git grep gzip head mkdir mktemp mv rm sed sh \
                     sha256sum sort tar touch tr uname";
        for tool in tools.split_whitespace() {
            let path = std::env::var_os("PATH").expect("PATH");
            let real =
                std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|path| path.is_file());
            fs::create_dir_all(machine.tools()).expect("a folder");
            symlink(real.expect(tool), machine.tools().join(tool)).expect("a link");
        }
        machine.program("cc", "#!/bin/sh\n");
        machine.program("sudo", "#!/bin/sh\n");
        machine.program("id", "#!/bin/sh\necho 1000\n");
        machine.program("cargo", CARGO);
        machine.program("rustc", "#!/bin/sh\necho \"$TOOLS/sysroot\"\n");
        fs::write(machine.checkout.join(".gitignore"), "/target\n").expect("a file");
        machine.git(&["init", "-q"]);
        machine.git(&["add", "."]);
        machine.git(&["commit", "-q", "-m", "All of it"]);
        machine
    }

    /// A machine with all tools that packages of its own architecture need.
    fn ready(checkout: &str) -> Machine {
        let machine = Machine::new(checkout);
        fs::write(machine.tools().join("plugins"), "").expect("a file");
        for tool in "autoconf automake autopoint bison clang flex gawk make pkg-config".split_whitespace() {
            machine.program(tool, "#!/bin/sh\n");
        }
        let target = format!("sysroot/lib/rustlib/{}-unknown-linux-musl/lib", std::env::consts::ARCH);
        fs::create_dir_all(machine.tools().join(target)).expect("a folder");
        machine
    }

    fn tools(&self) -> PathBuf {
        self.folder.path().join("tools")
    }

    fn program(&self, name: &str, text: &str) {
        airpace_testing::write_program(&self.tools().join(name), text);
    }

    fn copy(&self, part: &str) {
        let (from, to) = (root().join(part), self.checkout.join(part));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        let copied = Command::new("cp").arg("-R").args([&from, &to]).status().expect("cp");
        assert!(copied.success(), "{part} is copied");
    }

    /// Runs git with a fixed author and time, so that two machines have the same commit.
    fn git(&self, words: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
            .args(words)
            .current_dir(&self.checkout)
            .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status();
        assert!(done.expect("git starts").success(), "git {words:?}");
    }

    fn package(&self, words: &[&str]) -> Output {
        Command::new(self.checkout.join("package"))
            .args(words)
            .env_clear()
            .env("PATH", self.tools())
            .env("HOME", self.folder.path())
            .env("TOOLS", self.tools())
            .env("MACHINE", std::env::consts::ARCH)
            .output()
            .expect("the script starts")
    }

    /// Names and contents of the created packages, sorted.
    fn made(&self) -> Vec<(String, Vec<u8>)> {
        let mut made = vec![];
        for version in fs::read_dir(self.checkout.join("target/package")).expect("packages") {
            let version = version.expect("an entry").path();
            for file in fs::read_dir(&version).expect("files") {
                let path = file.expect("an entry").path();
                let name = path.strip_prefix(version.parent().expect("a folder")).expect("a name");
                made.push((name.display().to_string(), fs::read(&path).expect("a file")));
            }
        }
        made.sort();
        made
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn all_that_is_missing_is_said_at_once_with_the_line_that_installs_it() {
    let machine = Machine::new("checkout");
    let refused = machine.package(&["all"]);
    let said = words(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    let line = said.lines().last().expect("a line");
    let parts: Vec<&str> = line.trim().split(" && ").collect();
    assert_eq!(parts.len(), 3, "packages, targets and tools: {said}");
    assert!(parts[0].starts_with("sudo apt-get install -y "), "{said}");
    for package in ["-linux-gnu libc6-dev-", "qemu-user-static", "buildah", " clang ", " autoconf "] {
        assert!(parts[0].contains(package), "{package}: {said}");
    }
    // The command line contains the full path of rustup, because the user's shell may not find it.
    let targets = "/bin/rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl";
    assert!(parts[1].ends_with(targets), "{said}");
    assert!(parts[2].starts_with("cargo install --locked cargo-cyclonedx@"), "{said}");
    assert!(parts[2].contains(" cargo-deb@"), "{said}");

    let ready = Machine::ready("checkout");
    let said = words(&ready.package(&["image", "--arch", std::env::consts::ARCH]));
    assert!(said.ends_with("sudo apt-get install -y --no-install-recommends buildah\n"), "only that: {said}");
}

#[test]
fn what_is_not_committed_is_packed_only_when_told_and_then_the_name_says_so() {
    let machine = Machine::ready("checkout");
    fs::write(machine.checkout.join("new.rs"), "").expect("a file");
    let words_of = ["tarball", "--arch", std::env::consts::ARCH];
    let refused = machine.package(&words_of);
    let said = words(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("?? new.rs") && said.contains("--dirty"), "{said}");
    assert!(!machine.checkout.join("target").exists(), "nothing was made");

    let made = machine.package(&[&words_of[..], &["--dirty"]].concat());
    assert!(made.status.success(), "{}", words(&made));
    assert!(
        machine.made().iter().all(|(name, _)| name.contains("-git20260102.") && name.contains(".dirty/"))
    );
}

#[test]
fn a_commit_gives_the_same_bytes_in_any_folder() {
    let words_of = ["tarball", "--arch", std::env::consts::ARCH];
    let [one, other] = ["one", "another-one/below"].map(|folder| {
        let machine = Machine::ready(folder);
        machine.git(&["tag", "v0.1.0"]);
        let made = machine.package(&words_of);
        assert!(made.status.success(), "{}", words(&made));
        let sums = machine.checkout.join("target/package/0.1.0");
        let checked = Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(sums)
            .output()
            .expect("sha256sum");
        assert!(checked.status.success(), "the checksums are those of the files: {}", words(&checked));
        machine
    });
    let names = |machine: &Machine| machine.made().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let arch = std::env::consts::ARCH;
    let expected = [
        "SHA256SUMS".to_owned(),
        format!("airpace-0.1.0-{arch}-linux.tar.gz"),
        format!("airpace-0.1.0-{arch}.cdx.json"),
    ];
    assert_eq!(names(&one), expected.map(|name| format!("0.1.0/{name}")));
    assert_eq!(one.made(), other.made());

    let out = one.folder.path().join("unpacked");
    fs::create_dir(&out).expect("a folder");
    let archive = one.checkout.join("target/package").join(&names(&one)[1]);
    let listed = Command::new("tar").arg("-tvzf").arg(&archive).output().expect("tar");
    let listed = String::from_utf8(listed.stdout).expect("text");
    assert!(listed.lines().all(|line| line.contains(" 0/0 ") && line.contains("2026-01-02")), "{listed}");
    assert!(
        Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&out).status().expect("tar").success()
    );
    let unpacked = out.join(format!("airpace-0.1.0-{arch}-linux"));
    assert!(unpacked.join("bin/airpace").is_file());
    let terms = fs::read_to_string(unpacked.join("share/doc/airpace/THIRD-PARTY")).expect("the licences");
    assert!(terms.contains("zstd 1.2.3: MIT") && terms.contains("These are zstd's terms."), "{terms}");
    assert!(terms.contains("without a text of their own:\n    bare 0.1.0: 0BSD"), "{terms}");
    assert!(!terms.contains("airpace-cc"), "our own crates need no notice: {terms}");
    let readme = fs::read_to_string(unpacked.join("share/doc/airpace/README.md")).expect("the readme");
    assert!(readme.contains("](guide/first-run.md)") && !readme.contains("](docs/"), "links lead somewhere");
}

#[test]
fn a_folder_in_which_libbpf_cannot_be_built_is_said_before_the_build() {
    let machine = Machine::ready("a folder with spaces");
    let refused = machine.package(&["tarball", "--arch", std::env::consts::ARCH]);
    let said = words(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("a folder whose name has a space"), "{said}");
}

#[test]
fn packages_hold_the_proxy_the_schemes_for_the_kernel_and_every_service() {
    let build = fs::read_to_string(root().join("packaging/build")).expect("a script");
    let asked =
        build.lines().find_map(|line| line.strip_prefix("features=")).expect("the features of packages");
    let manifest = |name: &str| {
        let text =
            fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("a manifest");
        text.parse::<toml::Table>().expect("TOML")
    };
    for feature in asked.split(',') {
        let (package, feature) = feature.split_once('/').expect("a crate and its feature");
        let found = &manifest(package.strip_prefix("airpace-").expect("our own"))["features"];
        assert!(found.get(feature).is_some(), "{package} has no feature {feature}");
    }
    for feature in ["airpace-cli/bpf", "airpace-bpf/packaged", "airpace-cli/proxy"] {
        assert!(asked.split(',').any(|name| name == feature), "{asked} lacks {feature}");
    }
    let assets = manifest("cli")["package"]["metadata"]["deb"]["assets"].to_string();
    assert!(assets.contains("packaging/systemd/*.service"), "{assets}");
    // The file names the licences of the dual-licensed schemes and of the linked libraries.
    let copyright = fs::read_to_string(root().join("packaging/copyright")).expect("the copyright");
    for file in fs::read_dir(root().join("crates/bpf/src/bpf")).expect("the programs") {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let licence = text.lines().find_map(|line| line.split_once("SPDX-License-Identifier: "));
        let Some((_, licence)) = licence else { continue };
        let licence = licence.trim_end_matches("*/").trim();
        assert_eq!(licence, "MIT OR GPL-2.0-only", "{}", path.display());
    }
    for part in ["License: MIT or GPL-2", "libelf", "LGPL-3+ or GPL-2+"] {
        assert!(copyright.contains(part), "{part}");
    }
}

/// A stand-in for airpace whose tables contain `WORD`.
const PROGRAM: &str = r#"#!/bin/sh
command=$1
for word; do
    case $command$last in
    sim--out) mkdir -p "$word" && echo WORD > "$word/part.parquet" ;;
    encode--out) echo samples > "$word.sigmf-data" ;;
    diag--out) echo packets > "$word" ;;
    esac
    last=$word
done
echo said
"#;

fn program(folder: &Path, name: &str, word: &str) -> PathBuf {
    let path = folder.join(name);
    airpace_testing::write_program(&path, &PROGRAM.replace("WORD", word));
    path
}

fn same_bytes(one: &Path, other: &Path) -> Output {
    Command::new(root().join("packaging/same-bytes")).args([one, other]).output().expect("the script starts")
}

#[test]
fn a_byte_that_differs_is_found_and_its_file_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [one, same, other] =
        [("one", "1"), ("same", "1"), ("other", "2")].map(|(name, word)| program(folder.path(), name, word));
    let alike = same_bytes(&one, &same);
    assert!(alike.status.success(), "{}", words(&alike));
    assert!(String::from_utf8_lossy(&alike.stdout).starts_with("the same bytes: "));
    let different = same_bytes(&one, &other);
    assert_eq!(different.status.code(), Some(1), "{}", words(&different));
    assert!(words(&different).contains("sim-competitor/part.parquet"), "{}", words(&different));
    let silent = program(folder.path(), "silent", "");
    fs::write(&silent, "#!/bin/sh\n").expect("a program");
    let nothing = same_bytes(&silent, &silent);
    assert_eq!(nothing.status.code(), Some(2), "nothing was compared: {}", words(&nothing));
    let broken = same_bytes(&one, &folder.path().join("none"));
    assert_eq!(broken.status.code(), Some(2), "{}", words(&broken));
}

/// The binary that `./package` has built for the other architecture, if it exists, was built from this tree, and can
/// run here.
fn foreign_binary() -> Result<PathBuf, String> {
    let foreign = if cfg!(target_arch = "aarch64") { "x86_64" } else { "aarch64" };
    let target = Path::new(env!("CARGO_BIN_EXE_airpace")).parent().and_then(Path::parent).expect("target/");
    let binary = target.join(format!("{foreign}-unknown-linux-musl/dist/airpace"));
    let remedy = format!("`./package tarball --arch {foreign}` builds one");
    let built = binary.metadata().and_then(|it| it.modified());
    let built = built.map_err(|_| format!("there is no airpace for {foreign}; {remedy}"))?;
    let tracked = Command::new("git")
        .args(["ls-files", "-z", "crates/*/src", "scenarios", "web", "Cargo.toml", "Cargo.lock"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("git does not tell what airpace is made of: {error}"))?;
    let tracked = String::from_utf8_lossy(&tracked.stdout).into_owned();
    let changed =
        |path: &str| root().join(path).metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::now());
    if let Some(newer) = tracked.split_terminator('\0').find(|path| changed(path) > built) {
        return Err(format!("the airpace for {foreign} is older than {newer}; {remedy}"));
    }
    let runs = Command::new(format!("qemu-{foreign}-static")).arg("--version").output();
    runs.map_err(|_| format!("there is no qemu-{foreign}-static; apt-get install qemu-user-static"))?;
    Ok(binary)
}

#[test]
fn another_architecture_computes_the_same_bytes() {
    let binary = match foreign_binary() {
        Ok(binary) => binary,
        Err(reason) => return airpace_testing::skipped(&reason),
    };
    let compared = same_bytes(Path::new(env!("CARGO_BIN_EXE_airpace")), &binary);
    assert!(compared.status.success(), "{}", words(&compared));
}

#[test]
fn services_run_commands_that_exist_and_name_manual_pages_that_exist() {
    let airpace =
        |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_airpace")).args(words).output().expect("it runs");
    let pages = tempfile::tempdir().expect("a temporary folder");
    let made = airpace(&["man", "--out", pages.path().to_str().expect("a path")]);
    assert!(made.status.success(), "{}", words(&made));
    let units = fs::read_dir(root().join("packaging/systemd")).expect("units");
    for unit in units.map(|unit| unit.expect("a unit").path()) {
        let text = fs::read_to_string(&unit).expect("a unit");
        let mut commands = 0;
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            if key == "Documentation" {
                let page = value.strip_prefix("man:").and_then(|page| page.strip_suffix("(1)"));
                let page = page.unwrap_or_else(|| panic!("{}: {value}", unit.display()));
                assert!(pages.path().join(format!("{page}.1")).exists(), "{}: {value}", unit.display());
            }
            if !["ExecStartPre", "ExecStart", "ExecStop"].contains(&key) {
                continue;
            }
            let line = value.replace("%i", "morc").replace("%f", "/reports").replace("%I", "tty0");
            let all: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(all[0], "/usr/bin/airpace", "{}", unit.display());
            // With `--help`, the program parses its arguments and does nothing else.
            let read = airpace(&[&all[1..], &["--help"]].concat());
            assert!(read.status.success(), "{}: {value}: {}", unit.display(), words(&read));
            commands += 1;
        }
        assert!(commands > 0, "{}", unit.display());
    }
}

#[test]
fn systemd_takes_the_services_as_they_are_written() {
    let program = env!("CARGO_BIN_EXE_airpace");
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return airpace_testing::skipped("there is no systemd-analyze; apt-get install systemd");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let units = fs::read_dir(root().join("packaging/systemd")).expect("units");
    // systemd checks whether the programs and the other requirements of a unit exist.
    let copies: Vec<PathBuf> = units
        .map(|unit| {
            let unit = unit.expect("a unit");
            let text = fs::read_to_string(unit.path()).expect("a unit").replace("/usr/bin/airpace", program);
            let copy = folder.path().join(unit.file_name());
            fs::write(&copy, text).expect("it is written");
            copy
        })
        .collect();
    for unit in copies {
        let said = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output();
        let said = said.expect("it runs");
        assert!(said.status.success() && said.stderr.is_empty(), "{}: {}", unit.display(), words(&said));
    }
}

//! Follows a page in a new folder.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::output;
use crate::page::{Block, Kind, Output, Page, Typed};
use crate::root;

/// Options for following pages.
pub struct How {
    /// Whether slow blocks are run as well.
    all: bool,
    /// Whether outputs are written into the pages.
    update: bool,
    binary: PathBuf,
}

/// Outcome of following a page.
#[derive(Default)]
pub struct Followed {
    /// Number of blocks that were run or kept as files.
    pub ran: usize,
    /// One line per block that was not run, with the reason.
    pub passed_over: Vec<String>,
    /// The errors.
    pub failed: Vec<String>,
}

impl How {
    pub fn from_environment() -> How {
        let wanted = std::env::var("AIRPACE_GUIDES").unwrap_or_default();
        assert!(
            ["", "all", "update"].contains(&wanted.as_str()),
            "AIRPACE_GUIDES is `all`, `update` or not set"
        );
        How { all: wanted == "all", update: wanted == "update", ..How::quick() }
    }

    /// Options to run the quick blocks, and to write nothing.
    pub fn quick() -> How {
        let built = || PathBuf::from(env!("CARGO_BIN_EXE_airpace"));
        let binary = std::env::var_os("AIRPACE_BINARY").map_or_else(built, PathBuf::from);
        How { all: false, update: false, binary: binary.canonicalize().expect("the binary") }
    }

    /// The reason why a block is not run, as the line to print; `None` if it is run.
    fn passes_over(&self, page: &Page, block: &Block) -> Option<String> {
        let at = format!("{}:{}", page.path, block.line);
        if let Some(why) = &block.not_run {
            return Some(format!("not run: {at}: {why}"));
        }
        if let Some(why) = block.slow.as_ref().filter(|_| !self.all) {
            return Some(format!("left to docs/try: {at}: {why}"));
        }
        let is_missing = |need: &&String| !is_there(need);
        block.needs.iter().find(is_missing).map(|need| format!("skipped: no {need} ({at})"))
    }
}

/// Whether a program is on the PATH, or a Python module can be imported.
fn is_there(need: &str) -> bool {
    let mut command = match need.strip_prefix("python:") {
        Some(module) => {
            let mut command = Command::new("python3");
            command.args(["-c", &format!("import {module}")]);
            command
        }
        None => {
            let mut command = Command::new("sh");
            command.args(["-c", "command -v \"$0\"", need]);
            command
        }
    };
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Follows a page. All blocks run in one shell, so that exports and background jobs persist for later blocks.
pub fn follow(page: &Page, how: &How) -> Followed {
    let workspace = Workspace::new(page, how);
    let mut followed = Followed::default();
    // The commands of the blocks, in order. The file with a command's index contains the output of the command.
    let mut typed: Vec<(&Block, &Typed)> = vec![];
    // `jobs` lists the background jobs that the page has left running.
    let mut script = String::from("set -eu -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    for block in &page.blocks {
        if let Some(why) = how.passes_over(page, block) {
            followed.passed_over.push(why);
            continue;
        }
        followed.ran += 1;
        match &block.kind {
            Kind::File(name, text) => {
                // The file is created in the order of the blocks: an earlier block may have removed its predecessor.
                let kept = workspace.said.join(format!("{}-{}", block.line, name.replace('/', "-")));
                fs::write(&kept, text).expect("a file to keep");
                script += &format!("cp '{}' '{name}'\n", kept.display());
            }
            Kind::Commands(commands) => {
                for command in commands {
                    script += &workspace.step(typed.len(), &command.text, block.exit);
                    typed.push((block, command));
                }
            }
            Kind::Python(python) => {
                let kept = workspace.said.join(format!("{}.py", block.line));
                fs::write(&kept, &python.text).expect("a file to keep");
                let words = format!("'{}' '{}'\n", python_itself(), kept.display());
                script += &workspace.step(typed.len(), &words, 0);
                typed.push((block, python));
            }
        }
    }
    script += &format!("echo {} > '{}'\n", typed.len(), workspace.reached.display());
    let (code, left) = workspace.run(&script, how);
    let reached =
        fs::read_to_string(&workspace.reached).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let mut said = vec![];
    for (number, (_, typed)) in typed.iter().enumerate().take(reached) {
        let came = fs::read_to_string(workspace.said.join(number.to_string())).unwrap_or_default();
        let Some(output) = &typed.output else { continue };
        if let Err(difference) = output::compare(&output.text, &came) {
            let Typed { text, .. } = typed;
            let (path, line) = (&page.path, output.line);
            followed.failed.push(format!("{path}:{line}: after `{}`\n    {difference}", text.trim_end()));
        }
        said.push((output, came));
    }
    if let Some((block, typed)) = typed.get(reached) {
        let came = fs::read_to_string(workspace.said.join(reached.to_string())).unwrap_or_default();
        let (path, line, text) = (&page.path, block.line, typed.text.trim_end());
        followed
            .failed
            .push(format!("{path}:{line}: ended with {code}:\n{text}\n  and said:\n{}{left}", tail(&came)));
    }
    if how.update {
        update(page, &said);
    }
    followed
}

/// Path of the Python interpreter itself. A wrapper on the PATH may need a home folder, which is missing here.
fn python_itself() -> String {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    asked.map(|asked| String::from_utf8_lossy(&asked.stdout).trim().to_owned()).unwrap_or_default()
}

/// The last 20 lines of a text, indented.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].iter().map(|line| format!("    {line}\n")).collect()
}

/// Writes the output into the page, from the end, so that the line numbers above remain valid.
fn update(page: &Page, said: &[(&Output, String)]) {
    let path = root().join(&page.path);
    let text = fs::read_to_string(&path).expect("a page");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (output, came) in said.iter().rev().filter(|(output, _)| output::is_literal(&output.text)) {
        let (from, count) = (output.line - 1, output.text.lines().count());
        lines.splice(from..from + count, came.lines().map(|line| line.trim_end().to_owned()));
    }
    fs::write(&path, lines.join("\n") + "\n").expect("a page");
}

/// The ports of this host that a page names, each with a free port to use instead, because others may follow the same
/// page on this machine.
fn free_ports(page: &Page) -> Vec<(String, String)> {
    const HOST: &str = "127.0.0.1:";
    let typed = page.blocks.iter().flat_map(|block| match &block.kind {
        Kind::Commands(commands) => commands.as_slice(),
        Kind::Python(_) | Kind::File(..) => &[],
    });
    let port = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    let named: BTreeSet<String> = typed.flat_map(|typed| typed.text.split(HOST).skip(1).map(port)).collect();
    // All sockets are kept until all ports are found, so that no two ports are the same.
    let held: Vec<TcpListener> =
        named.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    let free = held.iter().map(|held| held.local_addr().expect("its address").port());
    named.iter().zip(free).map(|(named, free)| (format!("{HOST}{named}"), format!("{HOST}{free}"))).collect()
}

/// Folder in which a page is followed.
struct Workspace {
    /// The page's folder, which is removed with its contents at the end.
    folder: tempfile::TempDir,
    /// Folder for the commands' output and input.
    said: PathBuf,
    /// File with the index of the running step.
    reached: PathBuf,
    /// Ports that the page names, and the ports that are used instead.
    ports: Vec<(String, String)>,
}

impl Workspace {
    fn new(page: &Page, how: &How) -> Workspace {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["bin", "home", "said", "here"] {
            fs::create_dir(path(name)).expect("a folder");
        }
        symlink(&how.binary, path("bin/airpace")).expect("a link");
        if page.is_in_checkout {
            let own = ["airpace", "runs", "target", ".git"];
            for entry in fs::read_dir(root()).expect("the repository").map(|entry| entry.expect("a file")) {
                if !own.contains(&entry.file_name().to_string_lossy().as_ref()) {
                    symlink(entry.path(), path("here").join(entry.file_name())).expect("a link");
                }
            }
            symlink(&how.binary, path("here/airpace")).expect("a link");
        }
        let (said, reached) = (path("said"), path("reached"));
        Workspace { folder, said, reached, ports: free_ports(page) }
    }

    /// The part of the script that runs one step and stores its output.
    fn step(&self, number: usize, text: &str, exit: i32) -> String {
        let (reached, said) = (self.reached.display(), self.said.join(number.to_string()));
        let text = self.ports.iter().fold(text.to_owned(), |text, (named, free)| text.replace(named, free));
        let group = format!("{{\n{text}}} > '{}' 2>&1 < /dev/null", said.display());
        let held = match exit {
            0 => group,
            code => format!("code=0\n{group} || code=$?\n[ $code -eq {code} ]"),
        };
        format!("echo {number} > '{reached}'\n{held}\n")
    }

    /// Runs the script. Returns how the script ended, and its output outside the steps.
    fn run(&self, script: &str, how: &How) -> (String, String) {
        let path = |name: &str| self.folder.path().join(name);
        fs::write(path("script"), script).expect("a script");
        fs::set_permissions(path("script"), fs::Permissions::from_mode(0o700)).expect("a script");
        let programs = std::env::var_os("PATH").unwrap_or_default();
        let all = [path("bin")].into_iter().chain(std::env::split_paths(&programs));
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let or_at_home =
            |name: &str, folder: &str| std::env::var_os(name).unwrap_or_else(|| home.join(folder).into());
        // A page that hangs is stopped. The limit is much longer than any page takes on the busiest machine.
        let most = if how.all { "2h" } else { "20m" };
        let output = Command::new("timeout")
            .args(["--kill-after=10", most, "bash"])
            .arg(path("script"))
            .current_dir(path("here"))
            .env("PATH", std::env::join_paths(all).expect("a PATH"))
            .env("CARGO_HOME", or_at_home("CARGO_HOME", ".cargo"))
            .env("RUSTUP_HOME", or_at_home("RUSTUP_HOME", ".rustup"))
            .env(
                "CARGO_TARGET_DIR",
                std::env::var_os("CARGO_TARGET_DIR").unwrap_or(root().join("target").into()),
            )
            .env("HOME", path("home"))
            .env_remove("AIRPACE_DATA")
            .stdin(Stdio::null())
            .output()
            .expect("bash and timeout");
        (output.status.to_string(), tail(&String::from_utf8_lossy(&output.stderr)))
    }
}

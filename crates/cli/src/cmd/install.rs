//! `airpace install` and `airpace uninstall`: copy the program, its manual and its completions to folders in which shells
//! search for them, and remove these files.

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_files::record::{Item, Record, install};
use airpace_lab::machine::in_path;
use anyhow::{Context, bail};
use serde_json::json;

use super::Verdict;
use super::completions::Shell;
use crate::called;
use crate::installation::{self, refused};
use crate::terminal::count;

/// Installs this program with its manual, its guide and completions for bash, zsh and fish.
///
/// Prints instructions if shells do not search the installation folders yet. `airpace uninstall` removes exactly the
/// installed files.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace install\n         airpace install --prefix /opt/airpace")]
pub struct Args {
    /// Installation folder, with DIR/bin, DIR/share/man, … [default: /usr/local for root, else ~/.local]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// For packages: writes the files below DIR/PREFIX, without a record of the installed files.
    #[arg(long, value_name = "DIR", requires = "prefix")]
    destdir: Option<PathBuf>,
    /// For packages: installs this binary instead of the running one, such as that of another architecture.
    #[arg(long, value_name = "FILE", requires = "destdir")]
    binary: Option<PathBuf>,
    /// Prints one JSON object: the prefix, the files, and whether a shell finds the program.
    #[arg(long)]
    json: bool,
}

/// Removes the files that `airpace install` wrote below a prefix, and no others.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace uninstall\n         airpace uninstall --prefix /opt/airpace")]
pub struct UninstallArgs {
    /// The prefix of the installation. [default: the prefix of this program, else the default of `airpace install`]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Prints one JSON object: the prefix, the removed files, and folders that remain because of other files.
    #[arg(long)]
    json: bool,
}

/// Runs `airpace install`.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let running = std::env::current_exe().context("the system does not report the path of this program")?;
    let pages =
        super::man::pages()?.into_iter().map(|(name, page)| (format!("share/man/man1/{name}.1"), page));
    let scripts = Shell::ALL.map(|shell| (shell.file().to_owned(), shell.script().into()));
    let items =
        installation::items(args.binary.as_deref().unwrap_or(&running), pages.chain(scripts).collect())?;
    if let (Some(destdir), Some(prefix)) = (&args.destdir, &args.prefix) {
        let root = destdir.join(prefix.strip_prefix("/").unwrap_or(prefix));
        items.iter().try_for_each(|item| item.write(&root)).map_err(refused)?;
        return said(args.json, out, &root, &items, || {
            Ok(format!(
                "{} below {}; no record was written.\n",
                count(items.len() as u64, "file"),
                root.display()
            ))
        });
    }
    let prefix = settled(&args.prefix.clone().map_or_else(usual_prefix, Ok)?)?;
    let before = install(&prefix, env!("CARGO_PKG_VERSION"), &items).map_err(refused)?;
    said(args.json, out, &prefix, &items, || {
        let over = match before.as_deref() {
            Some(version) if version != env!("CARGO_PKG_VERSION") => format!(", in place of {version}"),
            Some(_) => ", in place of the same version".to_owned(),
            None => String::new(),
        };
        let mut words =
            format!("Installed airpace {} in {}{over}.\n", env!("CARGO_PKG_VERSION"), prefix.display());
        words += &advice(&prefix);
        Ok(words)
    })
}

/// Runs `airpace uninstall`.
pub fn uninstall(args: &UninstallArgs, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let (prefix, record) = installed(args.prefix.as_deref())?;
    record.remove(&prefix)?;
    let left = record.folders_left();
    if args.json {
        writeln!(out, "{}", json!({ "prefix": prefix, "files": record.files, "folders_left": left }))?;
    } else {
        writeln!(out, "Removed airpace {} from {}.", record.version, prefix.display())?;
        for folder in left {
            writeln!(out, "{} stays: what is in it was not installed.", folder.display())?;
        }
    }
    Ok(Verdict::Fine)
}

/// The installation below the given prefix, or else below the prefix of this program or the default prefix.
fn installed(asked: Option<&Path>) -> anyhow::Result<(PathBuf, Record)> {
    let candidates = match asked {
        Some(prefix) => vec![settled(prefix)?],
        None => {
            own_prefix().into_iter().chain(usual_prefix().and_then(|prefix| settled(&prefix)).ok()).collect()
        }
    };
    for prefix in &candidates {
        if let Some(record) = Record::read(prefix)? {
            return Ok((prefix.clone(), record));
        }
    }
    let looked: Vec<_> = candidates.iter().map(|prefix| prefix.display().to_string()).collect();
    bail!(
        "nothing was installed by {} in {}; name the folder with --prefix DIR{}",
        called::command("install"),
        looked.join(" or "),
        match installation::package() {
            Some(package) => format!(" (this is {package}: what installed it removes it)"),
            None => String::new(),
        }
    )
}

/// Installation prefix of this program, if the program is in a folder `bin`.
pub fn own_prefix() -> Option<PathBuf> {
    let binary = std::env::current_exe().ok()?;
    let folder = binary.parent()?;
    folder.ends_with("bin").then(|| folder.parent().map(Path::to_owned))?
}

/// Default prefix.
fn usual_prefix() -> anyhow::Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/usr/local"));
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    Ok(PathBuf::from(home.context("HOME is not set; give the folder with --prefix DIR")?).join(".local"))
}

/// The absolute path with resolved links (as far as the path exists), so that all spellings of a path are equal.
fn settled(prefix: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(prefix).with_context(|| format!("`{}` is no folder", prefix.display()))?;
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let rest = path.strip_prefix(there).expect("an ancestor");
    let whole =
        there.canonicalize().with_context(|| format!("cannot enter `{}`", there.display()))?.join(rest);
    let is_plain = rest.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    anyhow::ensure!(
        is_plain && whole.to_str().is_some(),
        "`{}` cannot be a prefix; give --prefix a folder without `..` and with a valid UTF-8 name",
        prefix.display()
    );
    // Joining an empty path would leave a slash at the end.
    Ok(whole.components().collect())
}

fn said(
    is_json: bool,
    out: &mut dyn Write,
    root: &Path,
    items: &[Item],
    words: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<Verdict> {
    if is_json {
        let files: Vec<_> = items.iter().map(|item| &item.place).collect();
        let on_path = in_path("airpace") == Some(root.join("bin/airpace"));
        writeln!(out, "{}", json!({ "prefix": root, "files": files, "on_path": on_path }))?;
    } else {
        out.write_all(words()?.as_bytes())?;
    }
    Ok(Verdict::Fine)
}

/// Instructions for the user, so that shells find the files below `prefix`.
fn advice(prefix: &Path) -> String {
    let shell = std::env::var("SHELL").unwrap_or_default();
    let shell = Path::new(&shell).file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let file = match shell.as_str() {
        "bash" => "~/.bashrc",
        "zsh" => "~/.zshrc",
        "fish" => "~/.config/fish/config.fish",
        _ => "~/.profile",
    };
    let bin = prefix.join("bin");
    let mut words = String::new();
    let mut add = |why: &str, line: &str| {
        words.push_str(&format!("{why}\n  echo {} >> {file}\n", airpace_run::shell::quote(line)));
    };
    match in_path("airpace") {
        Some(found) if found == bin.join("airpace") => {}
        found => {
            let why = match found.filter(|_| is_on_path(&bin)) {
                Some(other) => {
                    format!("{} is found before it. For this one to be found first:", other.display())
                }
                None => format!("{} is not on PATH. For shells to find it:", bin.display()),
            };
            let line = match shell.as_str() {
                "fish" => format!("fish_add_path {}", airpace_run::shell::quote(&bin.to_string_lossy())),
                _ => format!("export PATH={}:\"$PATH\"", airpace_run::shell::quote(&bin.to_string_lossy())),
            };
            add(&why, &line);
        }
    }
    let of = |shell: Shell| airpace_run::shell::quote(&prefix.join(shell.file()).to_string_lossy());
    match shell.as_str() {
        "bash" if !bash_looks_there(prefix) => {
            add("For bash to complete it:", &format!(". {}", of(Shell::Bash)));
        }
        // When the script is sourced, it registers itself. `compinit` has to run before.
        "zsh" if !["/usr", "/usr/local"].map(Path::new).contains(&prefix) => {
            let line = format!("autoload -Uz compinit && compinit && . {}", of(Shell::Zsh));
            add("For zsh to complete it:", &line);
        }
        // fish searches XDG_DATA_HOME and XDG_DATA_DIRS, as bash-completion does.
        "fish" if !share_is_searched(prefix) => {
            add("For fish to complete it:", &format!("source {}", of(Shell::Fish)));
        }
        _ => {}
    }
    match words.is_empty() {
        true => "Try: airpace demo. Shells complete its options, schemes and scenarios; `man airpace` has the manual.\n".to_owned(),
        false => words + "Then open a new shell and try: airpace demo\n",
    }
}

fn is_on_path(folder: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|entry| entry == folder)
}

/// Whether bash loads completions from below this prefix, by the rules of bash-completion.
fn bash_looks_there(prefix: &Path) -> bool {
    Path::new("/usr/share/bash-completion/bash_completion").exists() && share_is_searched(prefix)
}

/// Whether `share` below this prefix is one of the user's or the system's data folders, as freedesktop.org defines
/// them.
fn share_is_searched(prefix: &Path) -> bool {
    let share = prefix.join("share");
    let words = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = words("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| words("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    let all = words("XDG_DATA_DIRS").unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    own.into_iter().chain(std::env::split_paths(&all)).any(|folder| folder == share)
}

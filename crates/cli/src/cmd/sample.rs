//! `airpace sample`: writes a modem's log and a radio recording, as inputs for the commands of the guides.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde_json::json;

use super::{Verdict, outputs};
use crate::called;

/// Writes a sample modem log and a sample radio recording, which are built into the program.
///
/// Both are generated from simulated cells, by the commands that are printed: no phone or network was recorded. A file that
/// already exists is not changed.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace sample\n         airpace sample phone --out samples")]
pub struct Args {
    /// The sample to write. [default: all]
    #[arg(value_enum)]
    name: Option<Name>,
    /// The output folder, created if missing. [default: this one]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON object per sample.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    /// A log of a modem's diagnostic port.
    Phone,
    /// Radio samples of a cell.
    Cell,
}

/// A sample that is built into the program.
struct Sample {
    name: Name,
    about: &'static str,
    /// The command that generated the sample, line by line, without the program's name.
    made_by: &'static [&'static str],
    /// The first command to try, without the program's name and the sample's first file.
    first: &'static str,
    files: &'static [(&'static str, &'static [u8])],
}

const SAMPLES: [Sample; 2] = [
    Sample {
        name: Name::Phone,
        about: "2 s of what a phone's modem logs of a download in a busy cell of 10 MHz",
        made_by: &[
            "diag encode stationary-busy --set cell.prbs=50",
            "--set flow.0.acks=cell --seconds 2 --out phone.qmdl",
        ],
        first: "diag info",
        files: &[("phone.qmdl", include_bytes!("../../samples/phone.qmdl"))],
    },
    Sample {
        name: Name::Cell,
        about: "100 ms of radio samples of a busy cell of 1.4 MHz",
        made_by: &[
            "encode stationary-busy --set cell.prbs=6",
            "--set flow.0.acks=cell --seconds 0.1 --snr 20 --format ci8 --out cell",
        ],
        first: "decode",
        files: &[
            ("cell.sigmf-meta", include_bytes!("../../samples/cell.sigmf-meta")),
            ("cell.sigmf-data", include_bytes!("../../samples/cell.sigmf-data")),
        ],
    },
];

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let folder = args.out.as_deref().unwrap_or(Path::new(""));
    if let Some(folder) = &args.out {
        outputs::folder("--out", folder)?;
    }
    for sample in SAMPLES.iter().filter(|sample| args.name.is_none_or(|name| name == sample.name)) {
        let paths: Vec<PathBuf> = sample.files.iter().map(|(name, _)| folder.join(name)).collect();
        for (path, (_, bytes)) in paths.iter().zip(sample.files) {
            put(path, bytes)?;
        }
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let Sample { about, made_by, first, .. } = sample;
        let name = called::name();
        let first = format!("{name} {first} {}", names[0]);
        if args.json {
            let made_by = format!("{name} {}", made_by.join(" "));
            writeln!(out, "{}", json!({"files": names, "about": about, "made_by": made_by, "first": first}))?;
        } else {
            writeln!(out, "{}: {about}", names.join(", "))?;
            writeln!(out, "  try it:   {first}")?;
            writeln!(out, "  made by:  {name} {}", made_by.join(" \\\n              "))?;
        }
    }
    Ok(Verdict::Fine)
}

/// Writes a file. Does nothing if a file with the same contents exists, and refuses to replace a file with other contents.
fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let there = File::open(path).and_then(|file| airpace_files::read_at_most(file, bytes.len() as u64));
    let another =
        || format!("`{}` is there and is another file; choose a folder with --out DIR", path.display());
    match there {
        Ok(there) if there == bytes => Ok(()),
        Ok(_) => bail!(another()),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => outputs::write("--out", path, bytes),
            ErrorKind::FileTooLarge => bail!(another()),
            _ => Err(outputs::refused("--out", path)(error)),
        },
    }
}

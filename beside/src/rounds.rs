//! The two processes of a flow, and rounds of flows.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use airpace_rt::clock;

use crate::Stack;
use crate::side::{Measured, NAME, WORD};

/// Time for slow start and all else of the beginning.
const BEGINNING: Duration = Duration::from_millis(700);

/// What was measured of a flow: at the sender, and at the receiver.
pub type Flow = (Measured, Measured);

/// Runs all stacks one after the other, so many times. Returns the flows of each stack.
pub fn run(stacks: &[&Stack], rounds: usize, lasts: Duration) -> Result<Vec<Vec<Flow>>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for a certificate: {error}"))?;
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(|error| error.to_string())?;
    let files = [("certificate.pem", made.cert.pem()), ("key.pem", made.signing_key.serialize_pem())];
    for (name, text) in &files {
        std::fs::write(folder.path().join(name), text).map_err(|error| format!("no certificate: {error}"))?;
    }
    let mut flows = vec![vec![]; stacks.len()];
    for round in 0..rounds {
        for (place, (name, _)) in stacks.iter().enumerate() {
            let flow = flow(name, folder.path(), lasts).map_err(|why| format!("{name}: {why}"))?;
            eprintln!(
                "round {} of {rounds}: {name} carries {:.2} Gbit/s",
                round + 1,
                flow.1.bytes as f64 * 8e-9 / flow.1.seconds
            );
            flows[place].push(flow);
        }
    }
    Ok(flows)
}

/// A process that is a side. It ends with this.
struct Process {
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(stack: &str, folder: &Path, peer: Option<&str>) -> Result<Process, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args([WORD, stack]).arg(folder.join("certificate.pem")).arg(folder.join("key.pem"));
        command.args(peer).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let says = child.stdout.take().ok_or("a side has no output")?;
        Ok(Process { child, says: BufReader::new(says) })
    }

    /// The next line that it prints.
    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.says.read_line(&mut line) {
            Ok(0) => Err("a side ended before its time".to_owned()),
            Ok(_) => Ok(line.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn tell(&mut self, text: &str) -> Result<(), String> {
        let mut stdin = self.child.stdin.take().ok_or("a side has no input")?;
        stdin.write_all(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn measured(&mut self) -> Result<Measured, String> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| format!("{line}: {error}"))
    }
}

fn flow(stack: &str, folder: &Path, lasts: Duration) -> Result<Flow, String> {
    let mut receiver = Process::start(stack, folder, None)?;
    let line = receiver.line()?;
    let address = line.strip_prefix("listening ").ok_or_else(|| format!("the receiver says {line}"))?;
    let mut sender = Process::start(stack, folder, Some(address))?;
    for side in [&mut sender, &mut receiver] {
        let line = side.line()?;
        if line != "connected" {
            return Err(format!("a side says {line}"));
        }
    }
    let from = clock::now() + BEGINNING;
    let instants = format!("{} {}\n", from.as_nanos(), (from + lasts).as_nanos());
    sender.tell(&instants)?;
    receiver.tell(&instants)?;
    let measured = (sender.measured()?, receiver.measured()?);
    if measured.0.packets == 0 || measured.1.packets == 0 {
        return Err("nothing was carried".to_owned());
    }
    Ok(measured)
}

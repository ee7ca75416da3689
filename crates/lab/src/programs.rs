//! Programs of an emulated run: their devices and how they ended.

use std::fs::File;
use std::path::Path;

use airpace_core::count::count;
use airpace_emu::session::{Far, Program, ProgramEnd, Session, Spot};
use airpace_run::manifest::{Exit, Program as Told};
use airpace_run::shell;
use airpace_tables::FileError;

use crate::error::LabError;

/// Which programs run, and where.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Command line of the main program; empty for a shell.
    pub words: Vec<String>,
    /// The device on which the main program runs, counted from 1.
    pub device: u64,
    /// Command lines that run at the far end until the run ends.
    pub servers: Vec<String>,
    /// Further command lines, each with its device, counted from 1.
    pub on: Vec<(usize, String)>,
    /// The network at the far end.
    pub far: Far,
    /// Maximum duration of the run (s); `None` until all programs have ended.
    pub seconds: Option<f64>,
}

/// Programs of a run in the order in which they are started.
pub struct Cast {
    list: Vec<Planned>,
}

struct Planned {
    program: Program,
    role: Role,
    /// Command line, quoted for a shell.
    line: String,
    end: Option<ProgramEnd>,
}

/// Role of a program in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A server: the run waits until the server listens, and stops the server at the end.
    Server,
    /// The run lasts until this program ends; the program does not get the terminal.
    Beside,
    /// Like [`Role::Beside`], but the program gets the terminal, and its status is that of the run.
    Main,
}

impl Cast {
    /// Creates the programs of a run of the scenario `name` with this number of devices.
    ///
    /// # Errors
    /// The scenario does not have the device.
    pub fn new(name: &str, devices: usize, programs: &Programs) -> Result<Cast, LabError> {
        let Programs { words, device, servers, on, .. } = programs;
        let directory = std::env::current_dir().map_err(LabError::step("there is no working folder"))?;
        let shell_line = |line: &str| ["sh", "-c", line].map(str::to_owned).to_vec();
        let spot = |number: u64| -> Result<Spot, LabError> {
            if number > devices as u64 {
                return Err(LabError::Refused(
                    format!(
                        "device {number}: the scenario has {}, counted from 1",
                        count(devices as u64, "device")
                    )
                    .into(),
                ));
            }
            Ok(Spot::Device((number - 1) as u8))
        };
        let mut list = vec![];
        let mut add = |words: Vec<String>, spot: Spot, role: Role, line: String| {
            let (environment, directory) = (vec![], directory.clone());
            list.push(Planned {
                program: Program { words, spot, environment, directory },
                role,
                line,
                end: None,
            });
        };
        for line in servers {
            add(shell_line(line), Spot::Far, Role::Server, line.clone());
        }
        for (number, line) in on {
            add(shell_line(line), spot(*number as u64)?, Role::Beside, line.clone());
        }
        let main = spot(*device)?;
        if words.is_empty() {
            let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
            add(vec![shell.clone()], main, Role::Main, shell);
            let environment = prompt(name, *device, devices);
            list.last_mut().expect("it was added").program.environment = environment;
        } else {
            let quoted: Vec<_> = words.iter().map(|word| shell::quote(word)).collect();
            add(words.to_vec(), main, Role::Main, quoted.join(" "));
        }
        Ok(Cast { list })
    }

    /// Adds environment variables to the programs on each device.
    pub fn tell<'a>(&mut self, variables: impl Fn(usize) -> &'a [(String, String)]) {
        for planned in &mut self.list {
            if let Spot::Device(index) = planned.program.spot {
                planned.program.environment.extend_from_slice(variables(usize::from(index)));
            }
        }
    }

    /// Starts all programs. Servers and programs on other devices write to files in `folder`. Returns warnings about
    /// servers that do not listen.
    ///
    /// # Errors
    /// A program cannot be started, or a server ended immediately.
    pub fn start(&mut self, session: &mut Session, folder: &Path) -> Result<Vec<String>, LabError> {
        let mut doubts = vec![];
        for (index, planned) in self.list.iter().enumerate() {
            let output = match planned.role {
                Role::Main => None,
                Role::Server | Role::Beside => Some(log(folder, index + 1)?),
            };
            match planned.role {
                Role::Server => {
                    let (_, is_listening) = session.serve(&planned.program, output.as_ref())?;
                    if !is_listening {
                        let log = folder.join(log_name(index + 1));
                        let line = &planned.line;
                        doubts.push(format!(
                            "`{line}` listens on no new port; its output is in {}",
                            log.display()
                        ));
                    }
                }
                Role::Beside | Role::Main => drop(session.launch(&planned.program, output.as_ref())?),
            }
        }
        Ok(doubts)
    }

    /// Records the end of a program. Returns whether all programs except the servers have ended.
    pub fn ended(&mut self, end: ProgramEnd) -> bool {
        if let Some(planned) = self.list.get_mut(end.program) {
            planned.end = Some(end);
        }
        self.list.iter().all(|planned| planned.role == Role::Server || planned.end.is_some())
    }

    /// Exit status of the main program. If this status is 0, the first non-zero status of another program. `None` if
    /// the main program was stopped.
    pub fn status(&self) -> Option<i32> {
        let main = self.list.iter().find(|planned| planned.role == Role::Main)?.end?.status();
        let mut others = self.list.iter().filter_map(|planned| planned.end).map(|end| end.status());
        Some(if main == 0 { others.find(|&status| status != 0).unwrap_or(0) } else { main })
    }

    /// Messages about failed programs other than the main program that ended by themselves. Their output is in
    /// `folder`.
    pub fn failures(&self, folder: &Path) -> Vec<String> {
        let failed = self.list.iter().enumerate().filter_map(|(index, planned)| {
            let status = planned.end.map(|end| end.status()).filter(|&status| status != 0)?;
            let log = folder.join(log_name(index + 1));
            let line = &planned.line;
            (planned.role != Role::Main)
                .then(|| format!("`{line}` ended with {status}; its output is in {}", log.display()))
        });
        failed.collect()
    }

    /// The programs in the form of the run's manifest.
    pub fn told(&self) -> Vec<Told> {
        let told = |planned: &Planned| Told {
            device: match planned.program.spot {
                Spot::Device(index) => Some(index.into()),
                Spot::Far => None,
            },
            command: planned.line.clone(),
            exit: match planned.end {
                None => Exit::Stopped,
                Some(ProgramEnd { code: Some(code), .. }) => Exit::Status(code),
                Some(ProgramEnd { signal, .. }) => Exit::Signal(signal.unwrap_or(0)),
            },
        };
        self.list.iter().map(told).collect()
    }
}

/// Creates the file for the output of the program with this number.
fn log(folder: &Path, number: usize) -> Result<File, LabError> {
    let path = folder.join(log_name(number));
    let make = || {
        std::fs::create_dir_all(path.parent().expect("it has a folder"))?;
        // Remove the file of an earlier run that used this folder.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        airpace_files::new_file(&path)
    };
    make().map_err(|source| FileError::write("write", &path)(source).into())
}

fn log_name(number: usize) -> String {
    format!("programs/{number}.log")
}

/// Environment variables of a shell whose prompt shows the scenario and the device.
fn prompt(name: &str, device: u64, devices: usize) -> Vec<(String, String)> {
    let place = if devices == 1 { name.to_owned() } else { format!("{name} device {device}") };
    // bash reads its own settings after these variables, so the prompt is changed just before it is shown first.
    let change = format!("PS1=\"[{place}] $PS1\"; unset PROMPT_COMMAND");
    vec![("PS1".to_owned(), format!("[{place}] $ ")), ("PROMPT_COMMAND".to_owned(), change)]
}

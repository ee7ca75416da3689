//! Properties that must hold for any run folder: rendering gives a page, or an error with a text. An untrusted user may
//! have written any byte of the folder.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Time};
use airpace_event::{Capacity, Event, Fate, Recorder};
use airpace_page::PageError;
use airpace_run::emulation::{EmulatedRun, Setup};
use airpace_run::manifest::{Emulation, Program};
use airpace_run::{Choice, Host, Matrix, RunFolder};
use airpace_sim::{Scenario, SchemeSpec};
use airpace_tables::connection::{Connection, End, Protocol};
use airpace_tables::departures::Departure;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::choices::Choices;

/// Scenario of a short run: two phones in a cell.
const STORY: &str = "name = \"story\"\nabout = \"two phones\"\nduration_s = 0.3\n[cell]\nprbs = 6\n[[device]]\n[[device]]\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\n[[flow]]\nlabel = \"other\"\ndevice = 1\nrtt_ms = 30\n";

/// The names of a folder's files and their contents.
pub(super) type Files = Vec<(PathBuf, Vec<u8>)>;

/// A valid folder of simulated runs.
fn simulated() -> &'static Files {
    static SOUND: OnceLock<Files> = OnceLock::new();
    SOUND.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let scenario = Scenario::load(STORY, "story.toml", &[]).expect("a scenario");
        let scheme = |text| SchemeSpec::parse(text).expect("a scheme");
        let matrix = Matrix {
            scenarios: vec![Choice { argument: "story.toml".to_owned(), set: vec![], scenario }],
            schemes: vec![scheme("pbe"), scheme("cubic")],
            seeds: vec![1, 2],
            jobs: 1,
            out: Some(folder.path().join("run")),
            program: "airpace".to_owned(),
            command: "airpace sim story.toml".to_owned(),
            qlog: false,
            again: None,
            page: false,
            further: vec![],
        };
        matrix.run(&|_| ControlFlow::Continue(())).expect("it runs");
        let mut files = vec![];
        collect(&folder.path().join("run"), Path::new(""), &mut files);
        files
    })
}

/// A valid folder of an emulated run.
fn emulated() -> &'static Files {
    static SOUND: OnceLock<Files> = OnceLock::new();
    SOUND.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("run");
        let scenario = Scenario::load(STORY, "story.toml", &[]).expect("a scenario");
        let setup = Setup {
            out: out.clone(),
            choice: Choice { argument: "story.toml".to_owned(), set: vec![], scenario },
            seed: 1,
            command: "airpace emulate story.toml".to_owned(),
            host: Host::default(),
        };
        let mut run = EmulatedRun::create(&setup).expect("a folder");
        for packet in 0..300 {
            let entered = Time::from_millis(packet);
            let (span, device, direction) =
                (Duration::from_millis(1), DeviceId(packet as u16 % 2), Direction::Downlink);
            run.record(Event::Capacity(Capacity {
                time: entered,
                span,
                device,
                direction,
                bytes: Bytes(2_000),
            }));
            let released = entered + Duration::from_millis(12);
            let client = std::net::Ipv6Addr::from_bits(u128::from(packet % 60)).into();
            run.depart(&Departure {
                device,
                direction,
                connection: Connection {
                    protocol: Protocol::of_number(packet as u8 % 20),
                    source: End::new([100, 64, 0, 1].into(), 443),
                    destination: End::portless(client),
                },
                bytes: Bytes(1_400),
                entered,
                released,
                handed: (packet % 9 > 0).then_some(released),
                propagation_delay: Duration::from_millis(10),
                fate: if packet % 9 > 1 { Fate::Delivered } else { Fate::Aqm },
                duplicate: false,
                marked: false,
            });
        }
        let programs =
            vec![Program { device: Some(0), command: "ping server".to_owned(), ..Program::default() }];
        let emulation = Emulation { programs, fit: true, ..Emulation::default() };
        let finished =
            run.finish(Time::from_micros(312_345), emulation).expect("a folder that can be written");
        airpace_page::complete(&finished.folder, &finished.manifest).expect("a page");
        let mut files = vec![];
        collect(&out, Path::new(""), &mut files);
        files
    })
}

pub(super) fn collect(folder: &Path, below: &Path, files: &mut Files) {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    for path in paths {
        let name = below.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => collect(&path, &name, files),
            false => files.push((name, fs::read(&path).expect("a file"))),
        }
    }
}

thread_local! {
    /// Folders whose files each input damages, and which are restored after each input.
    static FOLDERS: [TempDir; 2] = [placed(simulated()), placed(emulated())];
}

pub(super) fn placed(files: &Files) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    folder
}

/// A valid folder in which some files are damaged gives a page, or an error with a text.
pub fn folder(input: &[u8]) {
    let mut choices = Choices(input);
    FOLDERS.with(|[of_simulated, of_emulated]| {
        let (folder, sound) =
            if choices.flag() { (of_emulated, emulated()) } else { (of_simulated, simulated()) };
        let mut spoiled = vec![];
        for _ in 0..1 + choices.byte() % 3 {
            let (name, bytes) = &sound[choices.below(sound.len())];
            let path = folder.path().join(name);
            fs::write(&path, spoil(name, bytes, sound, &mut choices)).expect("a file");
            spoiled.push((path, bytes));
        }
        let folder = RunFolder::open(folder.path());
        let told = folder.map_err(PageError::from).and_then(|folder| airpace_page::render(&folder));
        match told {
            Ok(page) => assert!(page.contains("<html")),
            Err(error) => assert!(error.to_string().len() > 10, "{error}"),
        }
        for (path, bytes) in spoiled {
            fs::write(path, bytes).expect("a file");
        }
    });
}

/// Changed contents for a file.
pub(super) fn spoil(name: &Path, bytes: &[u8], sound: &Files, choices: &mut Choices<'_>) -> Vec<u8> {
    if name.extension().is_some_and(|ending| ending == "json") && choices.byte() < 200 {
        let mut value: Value = serde_json::from_slice(bytes).expect("it is sound");
        for _ in 0..1 + choices.byte() % 4 {
            change(&mut value, choices);
        }
        return value.to_string().into_bytes();
    }
    let mut bytes = bytes.to_vec();
    match choices.byte() % 4 {
        0 => bytes.truncate(choices.below(bytes.len() + 1)),
        1 => {
            let at = choices.below(bytes.len() + 1);
            let more = choices.below(64);
            bytes.splice(at..at, choices.take(more).iter().copied());
        }
        2 => {
            // Replace the contents by those of another file.
            bytes.clone_from(&sound[choices.below(sound.len())].1);
        }
        _ => {}
    }
    for _ in 0..choices.byte() % 8 {
        // The last bytes of a table file are its footer, which describes the contents.
        let near_the_end = choices.flag();
        let at = if near_the_end {
            bytes.len().saturating_sub(1 + choices.below(2_000))
        } else {
            choices.below(bytes.len())
        };
        if let Some(byte) = bytes.get_mut(at) {
            *byte = if choices.flag() { choices.byte() } else { *byte ^ (1 << (choices.byte() % 8)) };
        }
    }
    bytes
}

/// Replaces, removes or repeats an entry at a random position in a value.
fn change(value: &mut Value, choices: &mut Choices<'_>) {
    let goes_on = choices.byte() < 230;
    match value {
        Value::Array(values) if goes_on && !values.is_empty() => {
            let at = choices.below(values.len());
            match choices.byte() {
                0..20 => _ = values.remove(at),
                20..40 => values.push(values[at].clone()),
                _ => change(&mut values[at], choices),
            }
        }
        Value::Object(values) if goes_on && !values.is_empty() => {
            let key = values.keys().nth(choices.below(values.len())).expect("a key").clone();
            match choices.byte() {
                0..10 => _ = values.remove(&key),
                _ => change(&mut values[&key], choices),
            }
        }
        value => {
            *value = match choices.byte() % 16 {
                0 => Value::Null,
                1 => json!(-1),
                2 => json!(0),
                3 => json!(1e300),
                4 => json!(-1e300),
                5 => json!(5e-324),
                6 => json!(u64::MAX),
                7 => json!(i64::MIN),
                8 => json!(65_536),
                9 => json!(""),
                10 => json!("../../../etc/passwd"),
                11 => json!("</script><img src=x onerror=alert(1)>\u{1b}[2J\u{202e}"),
                12 => json!([]),
                13 => json!({}),
                14 => json!(true),
                _ => json!(choices.number()),
            }
        }
    }
}

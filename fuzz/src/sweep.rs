//! Properties that must hold for any folder of a sweep, any line of a record and any specification of a matrix.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;

use airpace_run::Host;
use airpace_run::sweep::{self, Axis, Key, Plan, Record, Spec, Sweep};
use tempfile::TempDir;

use super::choices::Choices;
use super::folder::{Files, collect, placed, spoil};

/// Scenario of a short run: one phone over a wire.
const STORY: &str =
    "name = \"story\"\nduration_s = 0.1\n[internet]\nrate_mbps = 10\nbuffer.ms = 50\n[[flow]]\nrtt_ms = 20\n";

fn spec() -> Spec {
    Spec {
        scenario: "story.toml".to_owned(),
        text: STORY.to_owned(),
        set: vec![Axis::parse("flow.0.rtt_ms", "20,30").expect("an axis")],
        schemes: vec!["reno".to_owned()],
        seeds: vec![1],
    }
}

/// Executes the missing runs of the sweep in this folder, and writes all files again.
fn make(root: &Path) -> Result<(), airpace_run::RunError> {
    let sweep = Sweep::open(Plan::new(spec())?, root, Host::default())?;
    sweep.run(&|_| ControlFlow::Continue(()))?;
    sweep.finish::<airpace_page::sweep::SweepPage>(&mut |_, _, _| Ok(())).map(drop)
}

/// The files of a valid folder.
fn sound() -> &'static Files {
    static SOUND: OnceLock<Files> = OnceLock::new();
    SOUND.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        make(folder.path()).expect("it runs");
        let mut files = vec![];
        collect(folder.path(), Path::new(""), &mut files);
        files
    })
}

thread_local! {
    /// The folder whose files each input damages, and which is restored after each input.
    static FOLDER: TempDir = placed(sound());
}

/// Input from an untrusted user: each parser accepts the input, or refuses it with a text.
pub fn sweep(input: &[u8]) {
    let mut choices = Choices(input);
    match choices.byte() % 4 {
        0 => words(&String::from_utf8_lossy(choices.0)),
        1 => record(&String::from_utf8_lossy(choices.0)),
        2 => matrix(&mut choices),
        _ => folder(&mut choices),
    }
}

/// The values of a key are unchanged after they are written and parsed again.
fn words(text: &str) {
    match Axis::parse("key", text) {
        Ok(axis) => {
            let typed = axis.to_string();
            let again = Axis::parse("key", typed.strip_prefix("key=").expect("its key"));
            assert_eq!(again, Ok(axis), "{typed}");
        }
        Err(reason) => assert!(reason.to_string().starts_with("key: "), "{reason}"),
    }
}

/// A parsed record is unchanged after it is written and parsed again. The line is also tested with a correct checksum,
/// so that more than the check of the checksum is tested.
fn record(line: &str) {
    let sealed = Record::sealed(Key([7; 16]), line);
    for line in [line, sealed.trim_end_matches('\n')] {
        if let Ok(record) = Record::parse(line) {
            assert_eq!(Record::parse(record.line().trim_end_matches('\n')), Ok(record));
        }
    }
}

/// A changed matrix is refused with a text, or its first and last runs belong to a point of the matrix.
fn matrix(choices: &mut Choices<'_>) {
    let sound = serde_json::to_vec(&spec()).expect("plain data");
    let text = spoil(
        Path::new("spec.json"),
        &sound,
        &vec![(Path::new("spec.json").to_owned(), sound.clone())],
        choices,
    );
    let Ok(spec) = serde_json::from_slice::<Spec>(&text) else { return };
    match Plan::new(spec) {
        Ok(plan) => {
            for number in [0, plan.cells() - 1] {
                let cell = plan.cell(number);
                assert!(cell.point < plan.points());
                if let Err(reason) = plan.digest(cell.point) {
                    assert!(reason.to_string().len() > 10, "{reason}");
                }
            }
        }
        Err(error) => assert!(error.to_string().len() > 10, "{error}"),
    }
}

/// A folder in which some files are damaged can be opened and its sweep can be executed again, or the error has a text.
fn folder(choices: &mut Choices<'_>) {
    FOLDER.with(|folder| {
        for _ in 0..1 + choices.byte() % 2 {
            let (name, bytes) = &sound()[choices.below(sound().len())];
            fs::write(folder.path().join(name), spoil(name, bytes, sound(), choices)).expect("a file");
        }
        for error in [sweep::results(folder.path()).err(), make(folder.path()).err()].into_iter().flatten() {
            assert!(error.to_string().len() > 10, "{error}");
        }
        let entries = fs::read_dir(folder.path().join("cells")).expect("a folder");
        entries.for_each(|entry| fs::remove_file(entry.expect("an entry").path()).expect("a file"));
        for (name, bytes) in sound() {
            fs::write(folder.path().join(name), bytes).expect("a file");
        }
    });
}

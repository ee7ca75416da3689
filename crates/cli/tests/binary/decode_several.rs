//! `airpace decode` of pipes, and of several recordings at once.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::Shell;
use super::decode::{by_place, lines, record};

/// Maximum wait for an event that must happen; long enough for a slow machine, so that a failing test ends.
const LONG: Duration = Duration::from_secs(120);

/// Format of raw samples as [`record`] makes them, and their number of bytes per subframe.
const RAW: [&str; 4] = ["--rate", "7.68e6", "--format", "ci16_le"];
const SUBFRAME: usize = 7680 * 4;

/// A running command whose output is read line by line.
struct Running {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Running {
    fn start(shell: &Shell, words: &[&str], stdin: Stdio) -> Running {
        let mut command = shell.command(words);
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let out = told(child.stdout.take().unwrap());
        let err = told(child.stderr.take().unwrap());
        Running { child, out, err }
    }

    /// Returns the next `count` lines; fails if they do not arrive.
    fn lines(&self, count: usize) -> Vec<Value> {
        let line =
            |at| self.out.recv_timeout(LONG).unwrap_or_else(|_| panic!("line {at} of {count} did not come"));
        lines(&(0..count).map(line).collect::<String>())
    }

    /// Waits until a word appears on standard error.
    fn hear(&self, word: &str) {
        while !self.err.recv_timeout(LONG).unwrap_or_else(|_| panic!("`{word}` is not said")).contains(word) {
        }
    }

    /// Returns the rest of the output, and the exit code.
    fn end(mut self) -> (Vec<Value>, String, Option<i32>) {
        let out: String = self.out.iter().collect();
        (lines(&out), self.err.iter().collect(), self.child.wait().unwrap().code())
    }
}

fn told(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while pipe.read_line(&mut line).unwrap_or(0) > 0 && tell.send(std::mem::take(&mut line)).is_ok() {}
    });
    told
}

/// A named pipe. The test opens the pipe once a reader has opened it.
struct Pipe(std::path::PathBuf);

impl Pipe {
    fn make(shell: &Shell, name: &str) -> Pipe {
        let path = shell.path(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a pipe");
        Pipe(path)
    }

    fn open(&self) -> File {
        File::options().write(true).open(&self.0).expect("its other end is open")
    }
}

fn samples(shell: &Shell, name: &str) -> Vec<u8> {
    std::fs::read(shell.path(&format!("{name}.sigmf-data"))).unwrap()
}

/// Messages transmitted before a subframe of the recording. The first subframe belongs to frame 1020.
fn sent_before(shell: &Shell, name: &str, subframe: u64) -> Vec<Value> {
    let is_early = |message: &Value| message["index"].as_u64() < Some(10_200 + subframe);
    lines(&shell.read(&format!("{name}.truth"))).into_iter().filter(is_early).collect()
}

#[test]
fn what_a_pipe_gave_is_printed_while_it_is_open() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    let mut running =
        Running::start(&shell, &[&["decode", "-", "--json"], &RAW[..]].concat(), Stdio::piped());
    let mut pipe = running.child.stdin.take().unwrap();
    pipe.write_all(&samples(&shell, "a")[..150 * SUBFRAME]).unwrap();
    // A message of a new user waits for at most 100 subframes, and a subframe is decoded together with a part of the
    // next one.
    let sent = sent_before(&shell, "a", 48);
    let found = running.lines(sent.len());
    assert!(!sent.is_empty());
    drop(pipe);
    let (rest, err, code) = running.end();
    assert_eq!(code, Some(0), "{err}");
    let all: Vec<_> = found.into_iter().chain(rest).collect();
    let is_early = |message: &Value| message["index"].as_u64() < Some(10_200 + 148);
    let early = by_place(all.into_iter().filter(is_early).collect());
    assert!(early.keys().eq(by_place(sent_before(&shell, "a", 148)).keys()), "and nothing is lost");
}

#[test]
fn a_live_cell_does_not_wait_for_another() {
    let shell = Shell::new();
    record(&shell, "a", &["--pci", "7"]);
    let pipes = ["low", "high"].map(|name| Pipe::make(&shell, name));
    // The other cell may be silent for a long time.
    let words = [&["decode", "low", "high", "--json", "--stall", "3600"], &RAW[..]].concat();
    let running = Running::start(&shell, &words, Stdio::null());
    let [mut low, high] = pipes.map(|pipe| pipe.open());
    low.write_all(&samples(&shell, "a")).unwrap();
    let sent = sent_before(&shell, "a", 98);
    let found = running.lines(sent.len());
    assert!(found.iter().all(|message| message["carrier"] == 0 && message["cell"] == 7));
    drop(low);
    drop(high);
    let (rest, err, code) = running.end();
    assert_eq!((code, err.contains("high: no cell could be read")), (Some(2), true), "{err}");
    let all: Vec<_> = found.into_iter().chain(rest).collect();
    assert!(by_place(all).keys().eq(by_place(lines(&shell.read("a.truth"))).keys()), "and nothing is lost");
}

#[test]
fn a_live_cell_that_stalls_is_named_and_the_others_reports_go_on() {
    let shell = Shell::new();
    record(&shell, "a", &["--pci", "7"]);
    record(&shell, "b", &["--pci", "8"]);
    let pipes = ["low", "high"].map(|name| Pipe::make(&shell, name));
    let words = ["decode", "low", "high", "--json", "--reports", "fused", "--stall", "0.3"];
    let running = Running::start(&shell, &[&words[..], &RAW].concat(), Stdio::null());
    let [mut low, mut high] = pipes.map(|pipe| pipe.open());
    let (of_low, of_high) = (samples(&shell, "a"), samples(&shell, "b"));
    low.write_all(&of_low[..150 * SUBFRAME]).unwrap();
    high.write_all(&of_high[..120 * SUBFRAME]).unwrap();
    running.hear("has sent nothing for 0.3 s");
    low.write_all(&of_low[150 * SUBFRAME..]).unwrap();
    high.write_all(&of_high[120 * SUBFRAME..]).unwrap();
    drop(low);
    drop(high);
    let (_, err, code) = running.end();
    assert_eq!(code, Some(0), "both cells were read: {err}");
    assert!(!err.contains("recording"), "pipes have names: {err}");
    let fused = lines(&shell.read("fused"));
    let of = |carrier: u64| {
        let reports = fused.iter().flat_map(|subframe| subframe["reports"].as_array().unwrap());
        reports.filter(|report| report["carrier"] == carrier).count()
    };
    assert!(of(0) >= 199, "{} of 200 subframes of the cell that never stalled", of(0));
    let numbers: Vec<_> = fused.iter().map(|subframe| subframe["subframe_index"].as_u64()).collect();
    assert!(numbers.is_sorted(), "subframes are in order");
}

#[test]
fn recordings_are_brought_together_and_a_silent_pipe_holds_up_nobody() {
    let shell = Shell::new();
    record(&shell, "low", &["--pci", "7"]);
    record(&shell, "high", &["--pci", "8", "--seed", "2"]);
    let both = ["decode", "low.sigmf-meta", "high.sigmf-meta", "--json", "--reports", "fused"];
    let done = shell.run(&both);
    let printed = done.out.clone();
    let found = done.json();
    assert_eq!(shell.run(&both).fine(), printed, "recordings give the same every time");
    for (carrier, name) in ["low", "high"].into_iter().enumerate() {
        let own = found.iter().filter(|message| message["carrier"] == carrier).cloned().collect();
        assert_eq!(by_place(own), by_place(lines(&shell.read(&format!("{name}.truth")))), "{name}");
    }
    let fused = lines(&shell.read("fused"));
    assert!(fused.len() >= 199);
    for subframe in &fused[..fused.len() - 1] {
        assert_eq!(subframe["reports"].as_array().map(Vec::len), Some(2), "both cells report {subframe}");
    }

    // A pipe that stays open and delivers too few samples for a subframe.
    let words = [&["decode", "low.sigmf-meta", "-", "--json", "--stall", "0.2"], &RAW[..]].concat();
    let mut running = Running::start(&shell, &words, Stdio::piped());
    let mut open = running.child.stdin.take().unwrap();
    open.write_all(&[0; 4000]).unwrap();
    running.lines(lines(&shell.read("low.truth")).len());
    running.hear("- has sent nothing for 0.2 s; the others continue");
    drop(open);
    let (rest, err, code) = running.end();
    assert_eq!((rest.len(), code), (0, Some(2)), "the silent one never had a cell: {err}");
}

/// Copies a recording without its first `subframes` subframes.
fn begin_later(shell: &Shell, from: &str, to: &str, subframes: usize) {
    let copy = |ending: &str| shell.path(&format!("{to}.{ending}"));
    std::fs::write(copy("sigmf-data"), &samples(shell, from)[subframes * SUBFRAME..]).unwrap();
    std::fs::copy(shell.path(&format!("{from}.sigmf-meta")), copy("sigmf-meta")).unwrap();
}

/// Number of merged subframes with the reports of both carriers, number of subframes with the report of only one
/// carrier, and fraction of the former subframes in which both reports have the same grants. Both cells transmit the
/// same grants in every subframe.
fn together(shell: &Shell, path: &Path) -> (usize, usize, f64) {
    let fused = lines(&shell.read(path.to_str().unwrap()));
    // A recording that started later does not contain earlier messages, so only fields that do not depend on these are
    // compared.
    let grants = |report: &Value| {
        let dcis = report["dcis"].as_array().unwrap().iter();
        dcis.map(|dci| ["rnti", "prb", "harq", "ndi"].map(|key| dci[key].clone())).collect::<Vec<_>>()
    };
    let both: Vec<_> = fused.iter().map(|subframe| subframe["reports"].as_array().unwrap()).collect();
    let of = |count| both.iter().filter(move |reports| reports.len() == count);
    let alike = of(2).filter(|reports| grants(&reports[0]) == grants(&reports[1])).count();
    (of(2).count(), of(1).count(), alike as f64 / of(2).count().max(1) as f64)
}

#[test]
fn recordings_that_began_at_different_times_are_brought_together_by_frame_numbers() {
    let shell = Shell::new();
    record(&shell, "low", &["--pci", "7"]);
    record(&shell, "high", &["--pci", "8"]);
    for (late, align) in [(50, "auto"), (110, "sfn")] {
        begin_later(&shell, "high", "late", late);
        let words =
            ["decode", "low.sigmf-meta", "late.sigmf-meta", "--json", "--reports", "fused", "--align", align];
        let done = shell.run(&words);
        assert!(!done.err.contains("otherwise"), "--align {align}: {}", done.err);
        done.fine();
        let (both, one, alike) = together(&shell, Path::new("fused"));
        assert!(alike > 0.95, "--align {align}: {alike} of the subframes hold the same grants");
        assert!(
            both + 4 >= 200 - late && both <= 200 - late && one + 4 >= late,
            "--align {align}: {both} subframes of both, {one} of one"
        );
    }
    // The decoder cannot determine whether the second recording started later or its cell counts frames differently.
    let done = shell.run(&["decode", "low.sigmf-meta", "late.sigmf-meta", "--json", "--reports", "fused"]);
    assert!(done.err.contains(
        "late.sigmf-meta has other frame numbers than the first recording, or began 0.1 s after it"
    ));
    assert!(done.err.contains("--align sfn"), "{}", done.err);
    let (both, _, alike) = together(&shell, Path::new("fused"));
    assert!(both >= 85 && alike < 0.5, "by time, as if both began at once: {alike} are alike");
}

/// Concatenates the samples of recordings.
fn join(shell: &Shell, parts: &[&str], to: &str) {
    let joined: Vec<u8> = parts.iter().flat_map(|part| samples(shell, part)).collect();
    std::fs::write(shell.path(&format!("{to}.sigmf-data")), joined).unwrap();
    std::fs::copy(shell.path(&format!("{}.sigmf-meta", parts[0])), shell.path(&format!("{to}.sigmf-meta")))
        .unwrap();
}

#[test]
fn a_cell_whose_frame_numbers_leap_stays_beside_the_others() {
    let shell = Shell::new();
    record(&shell, "steady", &["--pci", "7"]);
    record(&shell, "first", &["--pci", "8"]);
    let small = ["--set", "cell.prbs=25", "--set", "cell.crs_ports=2", "--snr", "20", "--seconds", "0.2"];
    for (name, pci, from) in [("on", "7", "16"), ("handed", "9", "500"), ("begun", "8", "3")] {
        let words = ["encode", "competitor", "--out", name, "--pci", pci, "--sfn", from];
        shell.run(&[&words[..], &small].concat()).fine();
    }
    join(&shell, &["steady", "on"], "low");
    for (second, word) in [("handed", "another cell"), ("begun", "the cell was restarted")] {
        join(&shell, &["first", second], "high");
        for align in ["auto", "time", "sfn"] {
            let words = ["decode", "low", "high", "--json", "--reports", "fused", "--align", align];
            let done = shell.run(&words);
            let told = done.err.matches("frame numbers leap").count();
            assert_eq!(told, 1, "{second}, --align {align}: {}", done.err);
            assert!(done.err.contains("high: after 0.2") && done.err.contains(word), "{}", done.err);
            let messages = done.json();
            let mut numbers = messages.iter().filter(|message| message["carrier"] == 1);
            assert!(
                numbers.all(|message| message["index"].as_u64() < Some(10_700)),
                "numbers go on with time"
            );
            let fused = lines(&shell.read("fused"));
            let reports: Vec<_> = fused.iter().map(|line| line["reports"].as_array().unwrap()).collect();
            let both: Vec<_> = reports.iter().filter(|reports| reports.len() == 2).collect();
            assert!(both.len() >= 380, "{second}, --align {align}: only {} of 400 are together", both.len());
            for reports in both {
                let [one, other] = [0, 1].map(|carrier| reports[carrier]["time_ms"].as_f64().unwrap());
                assert!((one - other).abs() < 1.5, "{one} ms and {other} ms are brought together");
            }
        }
    }
}

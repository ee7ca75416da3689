//! No command overwrites its input or writes through a link. The tests pass the command's own input to every option
//! that names an output file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;

use super::diag_made::{Log, nas, rrc};
use super::{Done, Shell};

/// Every option that names an output file: its command, the command's input, and the arguments. `IN` and `OUT` stand
/// for the two files.
const FILES: &[(&str, &str, &str)] = &[
    ("trace convert", "a.down", "trace convert IN --to csv --out OUT"),
    ("trace kpi", "a.down", "trace kpi IN --out OUT"),
    ("diag decode", "phone.qmdl", "diag decode IN --pcap OUT"),
    ("diag decode", "phone.qmdl", "diag decode IN --kpi all --parquet OUT"),
    ("diag bandwidth", "phone.qmdl", "diag bandwidth IN --reports OUT"),
    ("diag bandwidth", "phone.qmdl", "diag bandwidth IN --direction down --kpi-trace OUT"),
    ("diag encode", "small.toml", "diag encode IN --seconds 0.1 --out OUT"),
    ("encode", "small.toml", "encode IN --seconds 0.01 --out cell --truth OUT"),
    ("decode", "a.cf32", "decode --rate 1.92e6 --format cf32_le IN --parquet OUT"),
    ("decode", "a.cf32", "decode --rate 1.92e6 --format cf32_le IN --pcap OUT"),
    ("decode", "a.cf32", "decode --rate 1.92e6 --format cf32_le IN --reports OUT"),
    ("sim", "small.toml", "sim IN --scheme cubic --out OUT"),
    ("sim", "small.toml", "sim IN --scheme cubic --ack-trace OUT"),
    ("emu", "link.toml", "emu IN --mm-log OUT -- true"),
    ("emu", "link.toml", "emu IN --mm-back-log OUT -- true"),
    ("emu link", "a.down", "emu link a.down IN --mm-log OUT -- true"),
    ("emu link", "a.down", "emu link IN a.down --mm-back-log OUT -- true"),
    ("emu truth", "kernel.csv", "emu truth --traces . --from IN --page OUT"),
];

/// Options that name folders, or stems of several files. Separate tests cover them.
const FOLDERS: &[(&str, &str)] = &[
    ("diag decode", "unknown"),
    ("diag granularity", "out"),
    ("decode", "record"),
    ("demo", "out"),
    ("encode", "out"),
    ("man", "out"),
    ("sample", "out"),
    ("emu", "out"),
    ("sweep", "out"),
    ("reproduce", "out"),
    ("emu link", "out"),
    ("emu delay", "out"),
    ("emu loss", "out"),
    ("emu onoff", "out"),
    ("emu cellular", "out"),
    ("agree", "out"),
    ("emu agree", "out"),
    ("emu truth", "out"),
];

/// Options that name an input, or a path of something other than a result.
const NOT_WRITTEN: &[(&str, &str)] = &[
    ("reproduce", "against"),
    ("trace check", "trace"),
    ("install", "prefix"),
    ("install", "destdir"),
    ("install", "binary"),
    ("uninstall", "prefix"),
    ("runs", "in"),
    ("runs prune", "in"),
    ("diag serve", "dir"),
    ("diag watch", "od"),
    ("emu", "reports"),
    ("emu", "od"),
    ("emu link", "reports"),
    ("emu link", "od"),
    ("emu cellular", "uplink-offsets"),
    ("emu cellular", "downlink-offsets"),
    ("emu truth", "traces"),
    ("emu truth", "from"),
    ("kernel feed", "from"),
    // The tests of transfers cover received files; a key is created only if no file exists.
    ("recv", "key"),
    ("send", "key"),
    ("send", "into"),
];

const SMALL: &str = "name = \"small\"\nduration_s = 0.5\n[cell]\nprbs = 6\ncrs_ports = 1\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\nacks = \"cell\"\n";

impl Shell {
    /// Creates a folder with one file of every kind that commands read.
    fn with_inputs() -> Shell {
        let shell = Shell::new();
        shell.write("small.toml", SMALL);
        shell.run(&["trace", "synth", "--mean-mbps", "5", "--seconds", "2", "--out", "a.down"]).fine();
        let link = "name = \"link\"\nduration_s = 1\n[trace]\nfile = \"a.down\"\n[trace.back]\nfile = \"a.down\"\n[[flow]]\nrtt_ms = 20\n";
        shell.write("link.toml", link);
        let device = ["--set", "flow.0.acks=cell", "--seconds", "0.3"];
        let grants = [&["diag", "encode", "stationary-idle", "--out", "phone.qmdl"], &device[..]].concat();
        shell.run(&grants).fine();
        let grants = fs::read(shell.path("phone.qmdl")).unwrap();
        let log = Log(grants)
            .packet(1, 0, 0xB0C0, &rrc(8, 6_300, &[0x22, 0x01]))
            .packet(1, 10, 0xB0EC, &nas(&[7, 0x41]))
            .packet(1, 20, 0xB173, &[250, 1, 2, 3]);
        shell.write_bytes("phone.qmdl", &log.0);
        let kernel = "trace,queue_packets,scheme,run,throughput_mbps,queueing_mean_ms,queueing_p95_ms,dropped,\
                      lateness_p999_us\na.down,300,cubic,1,4.8,100,200,9,300\n";
        shell.write("kernel.csv", kernel);
        // A recording of zeros is valid.
        shell.write_bytes("a.cf32", &vec![0; 8 * 19_200]);
        shell
    }

    fn snapshot(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.is_file());
        files
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
            .collect()
    }

    fn run_line(&self, line: &str, input: &str, output: &str) -> Done {
        let words = line.split(' ').map(|word| match word {
            "IN" => input,
            "OUT" => output,
            word => word,
        });
        self.run(&words.collect::<Vec<_>>())
    }
}

#[test]
fn no_command_writes_over_what_it_reads() {
    let shell = Shell::with_inputs();
    for (_, input, line) in FILES {
        symlink(input, shell.path("link")).unwrap();
        fs::hard_link(shell.path(input), shell.path("hard")).unwrap();
        let before = shell.snapshot();
        let around = format!("../{}/{input}", shell.folder.path().file_name().unwrap().display());
        for (input, output) in [
            (*input, *input),
            (input, "link"),
            (input, "hard"),
            (input, &around),
            ("link", input),
            ("hard", input),
            ("link", "hard"),
        ] {
            let done = shell.run_line(line, input, output);
            assert_eq!(done.code, Some(2), "{line}, {input} to {output}: {}{}", done.err, done.out);
            assert!(!done.err.contains("panicked"), "{}", done.err);
            assert!(shell.snapshot() == before, "{line}, {input} to {output}: {}", done.err);
        }
        fs::remove_file(shell.path("link")).unwrap();
        fs::remove_file(shell.path("hard")).unwrap();
    }
}

#[test]
fn no_command_writes_through_a_link_and_what_was_there_stays_until_the_new_file_is_whole() {
    let shell = Shell::with_inputs();
    shell.write("victim", "precious");
    symlink("victim", shell.path("link")).unwrap();
    for (command, input, line) in FILES.iter().filter(|(command, ..)| *command != "sim") {
        let said = shell.run_line(line, input, "link").refused(&["link"]);
        assert!(said.contains("it is a link to `victim`"), "{line}: {said}");
        assert_eq!(shell.read("victim"), "precious", "{line}");

        // If the input is invalid, the existing file is not replaced.
        shell.write("old", "of before");
        shell.write("broken", "neither a log nor a scenario nor samples nor a trace\n");
        let done = shell.run_line(line, "broken", "old");
        if *command == "decode" {
            continue; // Any bytes are valid samples; it just finds no cell in them.
        }
        // The log could be read, but it contained no messages.
        let is_log = matches!(*command, "diag decode" | "diag bandwidth");
        let status = if is_log { 1 } else { 2 };
        assert_eq!(done.code, Some(status), "{line}: {}", done.out);
        assert_eq!(shell.read("old"), "of before", "{line}: {}", done.err);
    }
}

#[test]
fn folders_of_results_are_written_through_no_link_and_over_no_input() {
    let shell = Shell::with_inputs();
    shell.write("victim", "precious");
    // Get the names of the output files by writing to another folder first.
    shell.run(&["diag", "decode", "phone.qmdl", "--unknown", "kept"]).fine();
    shell.run(&["diag", "decode", "phone.qmdl", "--parquet", "tables"]).fine();
    shell.run(&["man", "--out", "pages"]).fine();
    shell.run(&["sample", "--out", "samples"]).fine();
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(shell.path(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    for (folder, words) in [
        ("kept", &["diag", "decode", "phone.qmdl", "--unknown", "trap"][..]),
        ("tables", &["diag", "decode", "phone.qmdl", "--parquet", "trap"]),
        ("pages", &["man", "--out", "trap"]),
        ("samples", &["sample", "--out", "trap"]),
    ] {
        let names = names(folder);
        assert!(!names.is_empty(), "{words:?}");
        for name in names {
            fs::create_dir(shell.path("trap")).unwrap();
            let trap = format!("trap/{name}");
            symlink("../victim", shell.path(&trap)).unwrap();
            shell.run(words).refused(&[&trap]);
            assert_eq!(shell.read("victim"), "precious", "{words:?}");
            fs::remove_file(shell.path(&trap)).unwrap();
            // Give the log itself the name of an output file.
            if words[0] == "diag" {
                fs::hard_link(shell.path("phone.qmdl"), shell.path(&trap)).unwrap();
                let before = fs::read(shell.path("phone.qmdl")).unwrap();
                shell.run(words).refused(&[&trap, "phone.qmdl, which is to be read"]);
                assert!(fs::read(shell.path("phone.qmdl")).unwrap() == before);
            }
            fs::remove_dir_all(shell.path("trap")).unwrap();
        }
    }
}

#[test]
fn recordings_are_written_over_no_input_and_through_no_link() {
    let shell = Shell::with_inputs();
    let encode = "encode small.toml --seconds 0.01 --out OUT";
    for end in ["data", "meta"] {
        let file = format!("cell.sigmf-{end}");
        fs::hard_link(shell.path("small.toml"), shell.path(&file)).unwrap();
        shell.run_line(encode, "", "cell").refused(&["small.toml, which is to be read"]);
        assert_eq!(shell.read("small.toml"), SMALL);
        fs::remove_file(shell.path(&file)).unwrap();
        shell.write("victim", "precious");
        symlink("victim", shell.path(&file)).unwrap();
        shell.run_line(encode, "", "cell").refused(&["it is a link to `victim`"]);
        assert_eq!(shell.read("victim"), "precious");
        fs::remove_file(shell.path(&file)).unwrap();
    }
}

#[test]
fn rights_of_a_file_stay_when_it_is_written_anew() {
    use std::os::unix::fs::PermissionsExt;
    let shell = Shell::with_inputs();
    shell.write("old", "secret");
    fs::set_permissions(shell.path("old"), fs::Permissions::from_mode(0o600)).unwrap();
    shell.run_line("trace convert IN --to csv --out OUT", "a.down", "old").fine();
    assert_eq!(shell.path("old").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(shell.read("old").starts_with("time_s,mbps"));
}

/// Options in the manual whose value is a file or folder.
fn options_with_paths() -> BTreeSet<(String, String)> {
    let shell = Shell::new();
    shell.run(&["man", "--out", "pages"]).fine();
    let mut options = BTreeSet::new();
    for page in fs::read_dir(shell.path("pages")).unwrap() {
        let path = page.unwrap().path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap().to_owned();
        let Some(command) = name.strip_prefix("airpace-") else { continue };
        let command = if ["diag-", "trace-", "emu-"].iter().any(|group| command.starts_with(group))
            || command == "runs-prune"
        {
            command.replacen('-', " ", 1)
        } else {
            command.to_owned()
        };
        for line in fs::read_to_string(&path).unwrap().lines().filter(|line| line.starts_with("\\fB\\-\\-")) {
            let plain = line.replace("\\fB", "").replace("\\fR", "").replace("\\fI", "").replace('\\', "");
            let is_path = ["<FILE>", "<OUT>", "<DIR>"].iter().any(|value| plain.contains(value));
            let option = plain.trim_start_matches("--").split([' ', '=', '[', ',']).next().unwrap();
            if is_path {
                options.insert((command.clone(), option.to_owned()));
            }
        }
    }
    options
}

#[test]
fn every_option_that_names_a_file_is_tried_here() {
    let options = options_with_paths();
    assert!(options.len() > 15, "the manual is read: {options:?}");
    for (command, option) in options {
        let is_tried =
            FILES.iter().any(|(of, _, line)| *of == command && line.contains(&format!("--{option} OUT")));
        let is_known = |list: &[(&str, &str)]| list.iter().any(|known| *known == (&*command, &*option));
        // This command reads no file.
        let is_made = (&*command, &*option) == ("trace synth", "out");
        assert!(
            is_tried || is_made || is_known(FOLDERS) || is_known(NOT_WRITTEN),
            "airpace {command} --{option} is in none of the lists above"
        );
    }
}

/// The error names a full disk below standard output: a command may write to several places.
#[test]
fn a_full_standard_output_is_named() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &Log::default().packet(1, 0, 0xB0EC, &nas(&[7, 0x41])).0);
    for words in ["diag decode phone.qmdl --json", "diag info phone.qmdl", "list schemes"] {
        let words: Vec<&str> = words.split(' ').collect();
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
        let done = Done::of(shell.command(&words).stdout(full), &words);
        done.refused(&["cannot write to standard output: No space left on device"]);
    }
}

/// The error names the file of an option on a full disk, with the remedy.
#[test]
fn a_full_disk_below_a_file_is_named_with_the_remedy() {
    let shell = Shell::with_inputs();
    shell.run(&["encode", "small.toml", "--seconds", "0.3", "--out", "cell"]).fine();
    // These commands are left out: without a signal, `decode` gives no output; runs need a folder, or the right to
    // emulate.
    let is_tried = |(command, ..): &&(&str, &str, &str)| {
        !matches!(*command, "decode" | "sim") && !command.starts_with("emu")
    };
    let files = FILES.iter().filter(is_tried).map(|(_, input, line)| (*input, *line));
    let mut failed = vec![];
    let recorded = ["--parquet OUT", "--users --csv --parquet OUT", "--pcap OUT", "--reports OUT"];
    let recorded = recorded.map(|option| format!("decode IN {option}"));
    let recorded = recorded.iter().map(|line| ("cell.sigmf-meta", line.as_str()));
    for (input, line) in
        files.chain(recorded).chain([("small.toml", "sim IN --scheme cubic --ack-trace OUT")])
    {
        let done = shell.run_line(line, input, "/dev/full");
        let option = line.split(' ').rev().nth(1).unwrap();
        let remedy = format!("make room there, or choose another disk with {option}");
        if done.code != Some(2) || !done.err.contains("`/dev/full`") || !done.err.contains(&remedy) {
            failed.push(format!("{line}: {:?} {}", done.code, done.err));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// If an input cannot be read, no output is left behind.
#[test]
fn a_log_that_is_not_there_leaves_no_folder() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &Log::default().packet(1, 0, 0xB0EC, &nas(&[7, 0x41])).0);
    for option in ["--parquet", "--unknown", "--pcap"] {
        for inputs in [&["missing.qmdl"][..], &["phone.qmdl", "missing.qmdl"]] {
            let words = [&["diag", "decode"], inputs, &[option, "kept"]].concat();
            shell.run(&words).refused(&["missing.qmdl", "give an existing file"]);
            assert!(!shell.path("kept").exists(), "{words:?}");
        }
    }
}

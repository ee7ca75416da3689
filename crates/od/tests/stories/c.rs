//! Tests of libOD for C programs: the tests install the library into a folder, find it by pkg-config, and use it with
//! the system's C compiler.
//!
//! If pkg-config or a C++ compiler is missing, the test reports this and skips that part; `./test` installs both.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use airpace_testing::{has_program, skipped};
use od::c::{ABI, AFTER_GAP, ALL_CARRIERS, CKpi, CReading};
use tempfile::TempDir;

use crate::daemon::Daemon;

/// Compiler flags under which the header must compile without warnings, in C and in C++.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow"];

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Installs libOD into a folder with its own script, from the libraries that these tests were built with.
fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = airpace_testing::shared_folder(env!("CARGO_TARGET_TMPDIR"), "libod");
        let this = std::env::current_exe().expect("this binary");
        let built = this.parent().expect("a folder that the libraries are in too");
        let mut install = Command::new(crate_dir().join("install"));
        succeed(install.arg(&prefix).arg("--built").arg(built));
        prefix
    })
}

/// Runs a command that must succeed, and returns its standard output.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}:\n{told}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// Output of pkg-config for the installed library; `None` if there is no pkg-config.
fn flags(question: &[&str]) -> Option<Vec<String>> {
    has_program("pkg-config", "pkg-config").then(|| {
        let mut ask = Command::new("pkg-config");
        let told = succeed(
            ask.args(question).arg("libod").env("PKG_CONFIG_PATH", installed().join("lib/pkgconfig")),
        );
        told.split_whitespace().map(str::to_owned).collect()
    })
}

/// Compiles a C program against the installed library; `None` if there is no pkg-config.
fn compile(source: impl AsRef<Path>, into: &Path) -> Option<PathBuf> {
    compile_with(source, into, &[])
}

/// Like [`compile`], but searches the headers in these folders of this crate before the installed headers.
fn compile_with(source: impl AsRef<Path>, into: &Path, headers: &[&str]) -> Option<PathBuf> {
    let program = into.join("program");
    let mut cc = Command::new("cc");
    // Example programs compile without further flags. Only programs with threads need `-pthread` and POSIX functions.
    let threads = source.as_ref().starts_with("tests").then_some("-pthread");
    cc.args(["-std=c99", "-O1"]).args(STRICT).args(threads).arg(crate_dir().join(source));
    cc.args(headers.iter().map(|folder| format!("-I{}", crate_dir().join(folder).display())));
    cc.args(flags(&["--cflags", "--libs"])?).arg("-o").arg(&program);
    succeed(&mut cc);
    Some(program)
}

/// A command for a program that is linked with the installed library.
fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env("LD_LIBRARY_PATH", installed().join("lib"));
    command
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn the_header_and_the_library_mean_the_same() {
    let folder = TempDir::new().expect("a folder");
    let Some(path) = compile("tests/c/header.c", folder.path()) else { return };
    let said: BTreeSet<_> = succeed(&mut program(&path)).lines().map(str::to_owned).collect();

    /// Lists the offset and size of each field, in the form in which `header.c` prints them.
    macro_rules! facts {
        ($c:literal, $rust:ident, $value:expr, [$($field:ident),*]) => {{
            let value: $rust = $value;
            let fields = vec![$(format!(
                concat!($c, ".", stringify!($field), " {} {}"),
                offset_of!($rust, $field),
                size_of_val(&value.$field)
            )),*];
            // The pattern contains every field, so a new field without a check does not compile.
            let $rust { $($field: _),* } = value;
            fields.into_iter().chain([format!("{} {}", $c, size_of::<$rust>())])
        }};
    }
    let none = std::ptr::null();
    let kpi = CKpi { size: 0, reserved: 0, name: none, unit: none, about: none };
    let reading = CReading {
        size: 0,
        flags: 0,
        value: 0.0,
        sequence: 0,
        modem_ns: 0,
        arrival_ns: 0,
        published_ns: 0,
        subframe: -1,
        carrier: 0,
        radio: 0,
        reserved: 0,
        gaps: 0,
    };
    let mut expected: BTreeSet<String> =
        facts!("od_kpi", CKpi, kpi, [size, reserved, name, unit, about]).collect();
    expected.extend(facts!(
        "od_reading",
        CReading,
        reading,
        [
            size,
            flags,
            value,
            sequence,
            modem_ns,
            arrival_ns,
            published_ns,
            subframe,
            carrier,
            radio,
            reserved,
            gaps
        ]
    ));
    expected.insert(format!("OD_AFTER_GAP {AFTER_GAP}"));
    expected.insert(format!("OD_ABI {ABI} {ABI}"));
    expected.insert(format!("OD_ALL_CARRIERS {ALL_CARRIERS}"));
    expected.insert(format!("OD_READING_INIT.size {}", size_of::<CReading>()));
    expected.insert("OD_READING_INIT.subframe -1".to_owned());
    assert_eq!(said, expected, "od.h and the library lay the structs out alike");
}

#[test]
fn the_header_declares_what_the_library_has_and_nothing_else() {
    let header = std::fs::read_to_string(crate_dir().join("include/od.h")).expect("readable");
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.ends_with(';') && !line.starts_with([' ', '/', '*']) && line.contains("od_"))
        .filter_map(|line| {
            let name = &line[line.find("od_")?..];
            Some(&name[..name.find('(')?])
        })
        .collect();
    assert!(declared.len() > 10, "only {declared:?} were found in the header");

    let symbols =
        succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(installed().join("lib/libod.so")));
    let exported: BTreeSet<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("od_"))
        .collect();
    assert_eq!(declared, exported);

    let pages: BTreeSet<String> = std::fs::read_dir(installed().join("share/man/man3"))
        .expect("installed")
        .map(|page| page.expect("readable").file_name().to_string_lossy().trim_end_matches(".3").to_owned())
        .collect();
    let missing: Vec<_> = declared.iter().filter(|name| !pages.contains(**name)).collect();
    assert!(missing.is_empty(), "no manual page is about {missing:?}");
}

#[test]
fn the_header_is_clean_as_c_and_as_cpp() {
    let Some(flags) = flags(&["--cflags"]) else { return };
    let folder = TempDir::new().expect("a folder");
    let source = folder.path().join("uses.c");
    let text = "#include <od.h>\n#include <od.h>\nint main(void) { struct od_reading r = OD_READING_INIT; return (int)r.reserved; }\n";
    std::fs::write(&source, text).expect("written");
    let mut languages = vec![("cc", "c", "c99"), ("cc", "c", "c11")];
    if has_program("c++", "g++") {
        languages.extend([("c++", "c++", "c++11"), ("c++", "c++", "c++20")]);
    }
    for (compiler, language, standard) in languages {
        let mut compile = Command::new(compiler);
        compile
            .args(["-x", language, &format!("-std={standard}"), "-fsyntax-only", "-Wconversion"])
            .args(STRICT);
        succeed(compile.args(&flags).arg(&source));
    }
}

#[test]
fn the_programs_that_readme_and_manual_show_compile() {
    let read = |path: &str| std::fs::read_to_string(crate_dir().join(path)).expect("readable");
    let between = |text: &str, from: &str, to: &str| {
        let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("there is no {from}"));
        rest.split_once(to).expect("it ends").0.to_owned()
    };
    let shown = [
        between(&read("README.md"), "```c\n", "```"),
        between(&read("man/libod.3"), ".Sh EXAMPLES", ".Ed").replace("\\e", "\\"),
    ];
    for text in shown {
        let folder = TempDir::new().expect("a folder");
        let source = folder.path().join("shown.c");
        let program = &text[text.find("#include").expect("a program")..];
        std::fs::write(&source, program).expect("written");
        let Some(path) = compile(&source, folder.path()) else { return };
        let output = self::program(&path).env("OD_DIR", folder.path()).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.starts_with("no daemon at "), "without a daemon it says so: {told}");
    }
}

#[test]
fn pkg_config_and_the_linker_know_the_versions() {
    let Some(version) = flags(&["--modversion"]) else { return };
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(installed().join("lib/libod.so")));
    assert!(dynamic.contains("[libod.so.0]"), "programs ask for this interface's version: {dynamic}");
}

#[test]
fn manual_pages_are_well_formed() {
    let pages: Vec<_> = std::fs::read_dir(crate_dir().join("man"))
        .expect("readable")
        .map(|page| page.expect("readable").path())
        .collect();
    assert!(pages.len() >= 5, "{pages:?}");
    if has_program("mandoc", "mandoc") {
        let output = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).args(&pages).output();
        let output = output.expect("mandoc runs");
        // Ignore messages about the index of the system's other manual pages.
        let told: Vec<_> = lines(&output).into_iter().filter(|line| !line.contains("makewhatis")).collect();
        assert!(told.is_empty(), "{told:#?}");
    }
}

#[test]
fn the_c_example_lists_kpis_and_prints_them_as_they_come() {
    let folder = TempDir::new().expect("a folder");
    let Some(odcat) = compile("examples/c/odcat.c", folder.path()) else { return };
    let mut daemon = Daemon::start(8);
    let listed = succeed(program(&odcat).arg("-d").arg(daemon.dir()));
    insta::assert_snapshot!(listed, @r"
    lte.rsrp                 dBm    reference signal received power of the serving cell
    lte.dl.grant             byte   bytes granted on the downlink in a subframe
    nr.snr                   dB     signal to noise ratio of the serving cell
    ");

    // Subscribe first, so that the rows are assigned and the first readings exist.
    let od = daemon.open();
    let _kpis = ["lte.rsrp", "nr.snr@2"].map(|name| od.subscribe(name).expect("there is one"));
    daemon.publish(0, -97.5);
    daemon.publish(1, 12.25);
    let mut odcat = program(&odcat);
    odcat.args(["-n", "6", "-d"]).arg(daemon.dir()).args(["lte.rsrp", "nr.snr@2"]);
    let printing = odcat.stdout(Stdio::piped()).spawn().expect("it starts");
    daemon.settle("the program has come", |state| *state.programs.lock().expect("not poisoned") == 2);
    daemon.publisher.gap();
    while !has_left(&daemon) {
        daemon.publish(0, -80.0);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let printed = printing.wait_with_output().expect("it ends");
    assert!(printed.status.success(), "six readings were printed: {printed:?}");
    let printed = lines(&printed);
    assert_eq!(printed.len(), 6, "{printed:#?}");
    for line in &printed {
        let words: Vec<_> = line.split(' ').collect();
        let [name, value, unit, "age", age, "ms", number, ..] = words[..] else { panic!("{line}") };
        match name {
            "lte.rsrp" => assert!(unit == "dBm" && (value == "-97.5" || value == "-80"), "{line}"),
            "nr.snr@2" => assert!(unit == "dB" && value == "12.25" && number == "#1", "{line}"),
            _ => panic!("nobody asked for {line}"),
        }
        assert!(age.parse::<f64>().is_ok_and(|age| age >= 0.0), "{line}");
        let is_first_after = value == "-80" && number == "#2";
        assert!(!is_first_after || line.ends_with("after a gap"), "{line}");
    }
}

fn has_left(daemon: &Daemon) -> bool {
    *daemon.state.programs.lock().expect("not poisoned") < 2
}

#[test]
fn the_c_example_says_in_words_what_went_wrong() {
    let folder = TempDir::new().expect("a folder");
    let Some(odcat) = compile("examples/c/odcat.c", folder.path()) else { return };
    let told = |dir: &Path, name: &str| {
        let output = program(&odcat).arg("-d").arg(dir).arg(name).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("text").replace(&dir.display().to_string(), "DIR")
    };
    let daemon = Daemon::start(8);
    assert_eq!(told(daemon.dir(), "lte.rsqr"), "odcat: lte.rsqr: there is no KPI `lte.rsqr`\n");
    let nobody = TempDir::new().expect("a folder");
    insta::assert_snapshot!(
        told(nobody.path(), "lte.rsrp"),
        @"odcat: open: no daemon at DIR/control: No such file or directory (os error 2); start one with `airpace diag serve`"
    );
}

#[test]
fn the_c_example_follows_no_fewer_names_than_it_was_given() {
    let folder = TempDir::new().expect("a folder");
    let Some(odcat) = compile("examples/c/odcat.c", folder.path()) else { return };
    let output = program(&odcat).args(["lte.rsrp"; 65]).output().expect("it runs");
    assert_eq!(
        output.status.code(),
        Some(2),
        "names that it left out would be missed by nobody but the user"
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, "odcat: 65 names are more than the 64 that it follows\n");
}

#[test]
fn every_function_does_what_its_manual_page_says() {
    let folder = TempDir::new().expect("a folder");
    let Some(api) = compile("tests/c/api.c", folder.path()) else { return };
    let mut daemon = Daemon::start(8);
    // Row 0 belongs to lte.rsrp.
    drop(daemon.open().subscribe("lte.rsrp").expect("there is one"));
    daemon.publish(0, -80.0);
    daemon.publish(0, -97.5);

    let mut api = program(&api);
    api.arg(daemon.dir()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = api.spawn().expect("it starts");
    let mut told = BufReader::new(running.stdout.take().expect("piped"));
    let mut line = String::new();
    told.read_line(&mut line).expect("text");
    assert_eq!(line, "stop the daemon\n");
    drop(daemon);
    running.stdin.take().expect("piped").write_all(b"\n").expect("it listens");
    line.clear();
    told.read_line(&mut line).expect("text");
    assert_eq!(line, "all is as the manual says\n");
    assert!(running.wait().expect("it ends").success());
}

#[test]
fn a_program_of_the_first_interface_goes_on() {
    let folder = TempDir::new().expect("a folder");
    let headers = ["tests/c/interface1"];
    let Some(path) = compile_with("tests/c/interface1/program.c", folder.path(), &headers) else { return };
    let mut daemon = Daemon::start(8);
    let _kpi = daemon.open().subscribe("lte.rsrp").expect("there is one");
    daemon.publish(0, -80.0);
    daemon.publish(0, -97.5);
    let told = succeed(program(&path).arg(daemon.dir()));
    assert_eq!(
        told,
        "lte.rsrp dBm\nlte.dl.grant byte\nnr.snr dB\n-97.5 dBm, reading 2 of carrier 0, radio 0, 0 gaps\n\
         waited: -97.5\nnothing newer: Connection timed out\nalive 1, age is sound 1\n"
    );
}

#[test]
fn a_program_that_is_stopped_or_killed_delays_nobody_and_its_leases_end() {
    let folder = TempDir::new().expect("a folder");
    let Some(odcat) = compile("examples/c/odcat.c", folder.path()) else { return };
    let mut daemon = Daemon::start(8);
    let mut odcat = program(&odcat);
    let mut running =
        odcat.arg("-d").arg(daemon.dir()).arg("lte.rsrp").stdout(Stdio::piped()).spawn().expect("it starts");
    let mut told = BufReader::new(running.stdout.take().expect("piped"));
    daemon.settle("the program has come", |state| *state.programs.lock().expect("not poisoned") == 1);
    let other = daemon.open().subscribe("lte.rsrp").expect("there is one");
    daemon.publish(0, 1.0);
    told.read_line(&mut String::new()).expect("it follows");

    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it is ours");
    for number in 2..=10_000 {
        assert_eq!(daemon.publish(0, f64::from(number)), u64::from(number as u32), "publishing goes on");
        assert_eq!(other.latest().expect("published").value, f64::from(number), "others read on");
    }
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it is ours");
    let mut line = String::new();
    while !line.contains("#10000") {
        line.clear();
        told.read_line(&mut line).expect("it goes on with the latest");
        assert!(!line.is_empty(), "it ended early");
    }

    running.kill().expect("it ran");
    running.wait().expect("it has ended");
    drop(other);
    daemon.settle("all leases have ended", |state| {
        *state.unsubscribed.lock().expect("not poisoned") == ["lte.rsrp"]
    });
}

#[test]
fn a_reader_makes_no_system_call() {
    let folder = TempDir::new().expect("a folder");
    let Some(path) = compile("tests/c/no_syscall.c", folder.path()) else { return };
    let mut daemon = Daemon::start(8);
    let _kpi = daemon.open().subscribe("lte.rsrp").expect("there is one");
    daemon.publish(0, -97.5);

    let clock = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let clock = clock.unwrap_or_default();
    if !["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"].contains(&clock.trim()) {
        skipped(&format!("this machine's clock, {}, cannot be read without a system call", clock.trim()));
        return;
    }
    let run = |more: &[&str]| {
        program(&path).arg(daemon.dir()).arg("lte.rsrp").args(more).output().expect("it starts")
    };
    let read = run(&[]);
    if read.status.code() == Some(77) {
        skipped(&format!("seccomp is not allowed here: {}", String::from_utf8_lossy(&read.stderr).trim()));
        return;
    }
    assert!(read.status.success(), "a call was made that the system does not allow: {read:?}");
    assert_eq!(lines(&read), ["a million readings, no system call"]);

    let waited = run(&["wait"]);
    let signal = std::os::unix::process::ExitStatusExt::signal(&waited.status);
    const SIGSYS: i32 = 31;
    assert_eq!(
        signal,
        Some(SIGSYS),
        "had it made a call, as waiting does, it would have been killed: {waited:?}"
    );
}

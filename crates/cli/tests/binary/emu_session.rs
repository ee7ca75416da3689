//! Sessions of `airpace emu`: all processes that a session starts are gone after it, however it ends, and a session
//! that cannot start is refused with one sentence.

use super::emu_machine::Machine;

/// Ways in which a session ends. `$emu` is the emulator, `$waiter` and `$first` are the processes that hold its
/// namespaces, and `$program` is the program.
const ENDS: [(&str, &str); 11] = [
    ("an interrupt", "kill -INT $emu"),
    ("a request to end", "kill -TERM $emu"),
    ("a closed terminal", "kill -HUP $emu"),
    ("a crash", "kill -ABRT $emu"),
    ("the emulator is killed", "kill -KILL $emu"),
    ("the outer holder is killed", "kill -KILL $waiter"),
    ("the inner holder is killed", "kill -KILL $first"),
    ("all of the process group are killed", "kill -KILL -$emu"),
    ("the emulator and the outer holder are killed", "kill -KILL $emu $waiter"),
    ("the program is killed", "kill -KILL $program"),
    ("requests to all of them", "kill -TERM $first $waiter $emu"),
];

/// Ends a session in each of these ways, and compares the state of the machine before and after it.
pub fn nothing_is_left(machine: &Machine, mode: &str, before: &str) {
    for (name, end) in ENDS {
        let script = format!("{before}\nstate >before\nbegin {mode}\n{end}\ngone\nunchanged\necho $status");
        let status = machine.check(&script, &[name]);
        let status: i32 = status.trim().parse().expect("a status");
        assert_ne!(status, 0, "{name}: the program did not end by itself");
    }
}

#[test]
fn nothing_is_left_of_an_isolated_session() {
    for machine in Machine::all() {
        nothing_is_left(&machine, "--far own", "");
    }
}

#[test]
fn nothing_is_left_of_an_isolated_session_without_rights() {
    for machine in Machine::all() {
        nothing_is_left(&machine, "--far own", "user=$without_rights");
    }
}

#[test]
fn nothing_is_left_where_proc_cannot_be_mounted() {
    // If a part of /proc is masked, as in containers, the kernel does not allow another mount of /proc.
    let Some(machine) = Machine::one() else { return };
    let before = "user=$without_rights; mount -t tmpfs none /proc/acpi || mount -t tmpfs none /proc/fs";
    nothing_is_left(&machine, "--far own", before);
}

#[test]
fn the_folder_of_a_killed_run_is_used_again() {
    for machine in Machine::all() {
        let script = "begin --far own\nkill -KILL $emu\ngone\n\
                      \"$airpace\" emu delay 1 --quiet --far own --out run -- true || [ $? = 3 ]\n\
                      [ -z \"$(find run -name '.*')\" ] || fail \"$(find run)\"";
        machine.check(script, &[]);
    }
}

#[test]
fn nothing_is_left_of_a_session_on_a_device_of_another() {
    for machine in Machine::all() {
        // The ways in which processes other than the emulator clean up.
        for (name, end) in ENDS.into_iter().filter(|(_, end)| end.contains("KILL")) {
            machine
                .write("inner", &format!(". $base/library\nstate >before\nbegin\n{end}\ngone\nunchanged\n"));
            for user in ["", "$without_rights"] {
                let script = format!(
                    "user=\"{user}\"\n$user \"$airpace\" emu delay 1 --quiet --far own --out outer -- sh $base/inner \
                     || [ $? = 3 ]"
                );
                machine.check(&script, &[name, user]);
            }
        }
    }
}

#[test]
fn a_program_that_ends_by_itself_takes_its_daemons_with_it() {
    for machine in Machine::all() {
        for user in ["", "$without_rights"] {
            let script = r#"
                state >before
                mkfifo held; cat held & reader=$!
                9>held $user "$airpace" emu delay 1 --quiet --far own --out run -- \
                    sh -c 'setsid sh -c "sleep 1000 & exec sleep 1000" & (setsid sleep 1000 &); exit 7' \
                    && status=0 || status=$?
                [ $status = 7 ] || fail "status $status"
                wait $reader
                unchanged
            "#;
            machine.check(&format!("user=\"{user}\"\n{script}"), &[user]);
        }
    }
}

/// Runs `airpace emu` with these arguments after these preparations; returns its status and its output. Checks that
/// nothing is left of the session.
fn refused(machine: &Machine, before: &str, arguments: &str) -> (Option<i32>, String) {
    let script = format!(
        "{before}\nstate >before\nmkfifo held; cat held & reader=$!\n\
         9>held $user \"$airpace\" emu {arguments} && status=0 || status=$?\nwait $reader\nunchanged\n\
         exit $status"
    );
    let done = machine.run(&script, &[]);
    assert!(!done.err.contains("panicked"), "{before}: {arguments}: {}", done.err);
    (done.code, done.out + &done.err)
}

#[test]
fn what_cannot_be_started_is_refused_in_one_sentence_and_leaves_nothing() {
    for machine in Machine::all() {
        for (arguments, said) in [
            ("delay 1 --far own --out run -- no-such-program", "cannot start `no-such-program`"),
            ("delay 1 --far own --out run -- /", "cannot start `/`"),
            ("delay 1 --far own --out /proc/run -- true", "--out"),
            ("delay 1 --far own --device 2 --out run -- true", "1 device"),
        ] {
            let (code, text) = refused(&machine, "", arguments);
            assert!(code == Some(2) && text.contains(said), "{arguments}: {text}");
        }
    }
}

/// Creates a trace.
const LINK: &str = r#"printf '1\n' >a.trace"#;

#[test]
fn a_place_that_cannot_hold_the_run_is_named() {
    for machine in Machine::all() {
        let flood = "delay 1 --far own --out full/run -- ping -q -f -c 20000 -l 3 -s 1400 100.64.0.1";
        for (before, arguments, said) in [
            // The disk is full from the start, or becomes full while packets are recorded.
            (
                "mkdir full; mount -t tmpfs -o size=4k none full; cat /dev/zero >full/x || true",
                "delay 1 --far own --out full/run -- true",
                "full/run",
            ),
            ("mkdir full; mount -t tmpfs -o size=300k none full", flood, "full/run"),
            (
                "mkdir full; mount -t tmpfs none full; mount -o remount,ro full",
                "delay 1 --far own --out full/run -- true",
                "full/run",
            ),
            (">file", "delay 1 --far own --out file -- true", "file"),
            ("mkdir other; >other/mine", "delay 1 --far own --out other -- true", "other"),
            (LINK, "link a.trace a.trace --far own --mm-log a.trace --out run -- true", "--mm-log"),
            (
                LINK,
                "link a.trace a.trace --far own --mm-log log --mm-back-log log --out run -- true",
                "--mm-back-log",
            ),
            (LINK, "link a.trace a.trace --far own --mm-log /dev/full --out run -- true", "/dev/full"),
            (LINK, "link a.trace a.trace --far own --mm-log none/log --out run -- true", "none/log"),
        ] {
            let (code, text) = refused(&machine, before, arguments);
            assert!(code == Some(2) && text.contains(said), "{before} {arguments}: {text}");
        }
    }
}

//! `airpace emu` from begin to end: what it starts is gone afterwards, however it ends, and what cannot be is refused with
//! one sentence.

use super::emu_machine::Machine;

/// How a session may end. `$emu` is the emulator, `$waiter` and `$first` are the processes that hold its namespaces,
/// `$program` is the program.
const ENDS: [(&str, &str); 9] = [
    ("an interrupt", "kill -INT $emu"),
    ("a request to end", "kill -TERM $emu"),
    ("a closed terminal", "kill -HUP $emu"),
    ("a crash", "kill -ABRT $emu"),
    ("the emulator is killed", "kill -KILL $emu"),
    ("the process that waits is killed", "kill -KILL $waiter; kill -TERM $emu"),
    ("the first process is killed", "kill -KILL $first"),
    ("the program is killed", "kill -KILL $program"),
    ("requests to all of them", "kill -TERM $first $waiter $emu"),
];

/// Runs a session in each of these ways to its end, and compares what there is before and after it.
pub fn nothing_is_left(mode: &str, before: &str) {
    let Some(machine) = Machine::new() else { return };
    for (name, end) in ENDS {
        let script = format!(
            "{before}\nstate >before\nbegin {mode}\n{end}\ngone\nstate >after\n\
             diff before after || fail 'something is left'\necho $status"
        );
        let status = machine.check(&script, &[name]);
        let status: i32 = status.trim().parse().expect("a status");
        assert_ne!(status, 0, "{name}: the program did not end by itself");
    }
}

#[test]
fn nothing_is_left_of_an_isolated_session() {
    nothing_is_left("--far own", "");
}

#[test]
fn nothing_is_left_of_an_isolated_session_without_rights() {
    nothing_is_left("--far own", "user=$without_rights");
}

#[test]
fn nothing_is_left_where_proc_cannot_be_mounted() {
    // Where a part of /proc is covered, as in containers, the kernel allows nobody to mount another one.
    nothing_is_left(
        "--far own",
        "user=$without_rights; mount -t tmpfs none /proc/acpi || mount -t tmpfs none /proc/fs",
    );
}

#[test]
fn nothing_is_left_of_a_session_on_a_device_of_another() {
    let Some(machine) = Machine::new() else { return };
    for (name, end) in ENDS {
        machine.write(
            "inner",
            &format!(
                ". ./library\nstate >before\nbegin\n{end}\ngone\nstate >after\n\
                 diff before after || fail 'something is left'\n"
            ),
        );
        for user in ["", "$without_rights"] {
            let script = format!(
                "user=\"{user}\"\n$user \"$airpace\" emu delay 1 --quiet --far own --out outer -- sh inner || [ $? = 3 ]"
            );
            machine.check(&script, &[name, user]);
        }
    }
}

#[test]
fn a_program_that_ends_by_itself_takes_its_daemons_with_it() {
    let Some(machine) = Machine::new() else { return };
    for user in ["", "$without_rights"] {
        let script = r#"
            state >before
            mkfifo held; cat held & reader=$!
            9>held $user "$airpace" emu delay 1 --quiet --far own --out run -- \
                sh -c 'setsid sh -c "sleep 1000 & exec sleep 1000" & (setsid sleep 1000 &); exit 7' && fail 'it ended well'
            [ $? = 7 ] || fail "status $?"
            wait $reader
            state >after; diff before after || fail 'something is left'
        "#;
        machine.check(&format!("user=\"{user}\"\n{script}"), &[user]);
    }
}

#[test]
fn what_cannot_be_started_is_refused_in_one_sentence_and_leaves_nothing() {
    let Some(machine) = Machine::new() else { return };
    for (name, begin, said) in [
        (
            "no program",
            "emu delay 1 --far own --out run -- no-such-program",
            "cannot start `no-such-program`",
        ),
        ("a folder as program", "emu delay 1 --far own --out run -- /", "cannot start `/`"),
        ("no place for the run", "emu delay 1 --far own --out /proc/run -- true", "--out"),
        ("no such device", "emu delay 1 --far own --device 2 --out run -- true", "one device"),
    ] {
        let script = format!(
            "state >before\nmkfifo held; cat held & reader=$!\n\
             9>held \"$airpace\" {begin} && status=0 || status=$?\nwait $reader\nstate >after\n\
             diff before after || fail 'something is left'\nexit $status"
        );
        let done = machine.run(&script, &[name]);
        done.refused(&[said]);
    }
}

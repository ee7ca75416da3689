//! Tests with processes of other users of the machine, which the kernel identifies.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use od::control::{MAX_PER_PROCESS, MAX_PER_USER};

use crate::daemon::{Daemon, Visitors};

/// User IDs that belong to no account of the machine.
const GREEDY: u32 = 54_321;
const MODEST: u32 = 54_322;

#[test]
fn another_user_of_the_machine_keeps_nobody_from_the_daemon() {
    if !rustix::process::geteuid().is_root() {
        return airpace_testing::skipped("root, to start processes of other users");
    }
    let daemon = Daemon::start(16);
    fs::set_permissions(daemon.dir(), Permissions::from_mode(0o755)).expect("it is ours");
    // Other users have no access to the folder of this binary.
    let shared = tempfile::tempdir().expect("a folder");
    fs::set_permissions(shared.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let binary = shared.path().join("stories");
    airpace_testing::copy_program(&std::env::current_exe().expect("this binary"), &binary);

    let names = |from: usize, count: usize| -> Vec<String> {
        (from..from + count).map(|radio| format!("lte.rsrp@{radio}")).collect()
    };
    let greedy =
        |at: usize| Visitors::start_as(GREEDY, &binary, daemon.dir(), MAX_PER_PROCESS, &names(10 * at, 10));
    let (_one, of_one) = greedy(0);
    let (_two, of_two) = greedy(1);
    assert_eq!(of_one + of_two, 6, "three eighths of sixteen rows, however many processes ask");
    daemon.settle("two processes are in", |state| *state.programs.lock().unwrap() == 2 * MAX_PER_PROCESS);
    let _three = Visitors::start_as(GREEDY, &binary, daemon.dir(), MAX_PER_PROCESS, &[]);
    daemon.settle("the user has no more", |state| *state.programs.lock().unwrap() == MAX_PER_USER);

    let (_modest, granted) = Visitors::start_as(MODEST, &binary, daemon.dir(), 4, &names(50, 4));
    assert_eq!(granted, 4, "another user has what he asks for");
    let own = daemon.open();
    let _kpis = ["nr.snr", "lte.dl.grant"].map(|name| own.subscribe(name).expect("and so has root"));
}

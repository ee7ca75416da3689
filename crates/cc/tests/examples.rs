//! The examples run, and refuse arguments that are not valid.

#[allow(dead_code, reason = "its main is that of a program")]
#[path = "../examples/own_controller.rs"]
mod own_controller;
#[allow(dead_code, reason = "its main is that of a program")]
#[path = "../examples/quinn_controller.rs"]
mod quinn_controller;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn an_own_controller_fills_the_link_with_a_shorter_queue_than_cubic() {
    let seen = own_controller::compare(&words("20 100 cubic")).expect("valid arguments");
    let [(own, with_own), (cubic, with_cubic)] = &seen[..] else { panic!("two schemes ran: {seen:?}") };
    assert_eq!((own.as_str(), cubic.as_str()), ("keeps-queue", "cubic"));
    assert!(with_own.utilization > 0.95 && with_cubic.utilization > 0.95, "both fill the link: {seen:?}");
    assert!(with_own.lost == 0 && with_cubic.lost > 0, "only cubic fills the queue: {seen:?}");
    assert!(with_own.rtt < with_cubic.rtt, "its queue is shorter: {seen:?}");
}

#[test]
fn the_own_controller_halves_its_window_where_the_queue_is_too_short() {
    let seen = own_controller::compare(&words("20 2")).expect("valid arguments");
    assert!(seen[0].1.lost > 0, "two packets of queue are less than it wants: {seen:?}");
    assert!(seen[0].1.utilization > 0.5, "it continues after losses: {seen:?}");
}

#[test]
fn a_controller_of_the_list_runs_inside_quinn() {
    for scheme in ["cubic", "bbr"] {
        let said = quinn_controller::run(&words(&format!("{scheme} 3"))).expect("a transfer over loopback");
        assert!(said.starts_with(&format!("{scheme}: 3000000 bytes in ")), "all bytes arrive: {said}");
    }
}

#[test]
fn bad_arguments_are_named() {
    for (args, says) in [
        ("fast", "MBIT_PER_S: `fast` is not a whole number of at least 1"),
        ("20 0", "QUEUE_PACKETS: `0` is not a whole number of at least 1"),
        ("20 10 cubik", "no scheme is called `cubik`; did you mean `cubic`?"),
    ] {
        let error = own_controller::compare(&words(args)).expect_err(args).to_string();
        assert!(error.starts_with(says), "{args}: {error}");
    }
    for (args, says) in [
        ("oracle", "oracle needs a simulator; choose another scheme"),
        ("cubic much", "MEGABYTES: `much` is not a whole number from 1 to 1000"),
        ("cubik", "no scheme is called `cubik`; did you mean `cubic`?"),
    ] {
        let error = quinn_controller::run(&words(args)).expect_err(args).to_string();
        assert!(error.starts_with(says), "{args}: {error}");
    }
}

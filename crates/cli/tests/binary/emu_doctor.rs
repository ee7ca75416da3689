//! `airpace doctor --emu`: its findings, its measurements, and its remedies for missing features.

use serde_json::Value;

use super::emu_machine::Machine;
use super::{Shell, keys};

#[test]
fn what_a_machine_carries_is_measured() {
    let doctor = Shell::new().run(&["doctor", "--emu", "--json"]).json().remove(0);
    let findings = doctor["features"].as_object().unwrap();
    for (name, finding) in findings {
        let is_there = finding["present"].as_bool().unwrap();
        assert!(!finding["detail"].as_str().unwrap().is_empty(), "{name}");
        assert!(!is_there || finding["remedy"] == "", "{name} is there and needs nothing");
    }
    let emulator = &doctor["emulator"];
    for timer in emulator["timers"].as_array().unwrap() {
        let of = |name: &str| timer[name].as_f64().unwrap();
        assert!(of("late_p50_us") > 0.0 && of("late_p50_us") <= of("late_max_us") * 1.001, "{timer}");
    }
    if let Value::String(why) = &emulator["throughput_error"] {
        return airpace_testing::skipped(why);
    }
    let tests = emulator["throughput"].as_array().unwrap();
    assert_eq!(tests.len(), 8);
    for test in tests {
        let goodput = test["goodput_mbps"].as_f64().unwrap();
        // A busy machine has a lower goodput.
        assert!(goodput > 0.0 && goodput < test["link_mbps"].as_f64().unwrap(), "{test}");
        assert!(test["packets_per_s"].as_f64().unwrap() > 0.0, "{test}");
        let reasons = test["unfit_because"].as_array().unwrap();
        assert_eq!(test["fit"].as_bool().unwrap(), reasons.is_empty(), "{test}");
    }
    assert!(keys(&doctor).contains(&"cores"));
}

/// Findings whose text does not depend on the machine that runs the tests.
fn findings(machine: &Machine, before: &str, names: &[&str]) -> String {
    let script = format!("{before}\n$user env COLUMNS=100 \"$airpace\" doctor --emu --json");
    let done = machine.run(&script, &[]);
    let doctor = done.json().remove(0);
    let mut text = String::new();
    for name in names {
        let finding = &doctor["features"][name];
        let word = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        text += &format!("{name}: {}, {}; {}\n", finding["present"], word("detail"), word("remedy"));
    }
    text += doctor["emulator"]["throughput_error"].as_str().unwrap_or_default();
    text
}

#[test]
fn what_is_lacking_comes_with_what_gives_it() {
    let Some(machine) = Machine::in_user_namespace() else { return };
    let names = ["namespaces", "/dev/net/tun", "session"];
    insta::assert_snapshot!("no_tun", findings(&machine, "mount -t tmpfs none /dev/net", &names));
    let none = "echo 0 >/proc/sys/user/max_user_namespaces; user=$without_rights";
    insta::assert_snapshot!("no_namespaces", findings(&machine, none, &names));
}

#[test]
fn the_command_that_gives_the_program_rights_gives_them_and_takes_none() {
    if !airpace_testing::has_program("setcap", "libcap2-bin") {
        return;
    }
    let Some(machine) = Machine::of_root() else { return };
    let lacking = "mount -t tmpfs none /dev/net; $without_rights \"$airpace\" doctor --emu --json";
    let doctor = machine.run(lacking, &[]).json().remove(0);
    let remedy = doctor["features"]["priority"]["remedy"].as_str().expect("a remedy");
    let command = remedy.strip_prefix("sudo ").expect("a command of root");
    let (command, _) = command.rsplit_once(' ').expect("the program");
    let script = format!(
        "cp \"$airpace\" airpace\n{command} airpace\n\
         $without_rights ./airpace emu delay 1 --quiet --far own --out run -- \
         \"$PWD/airpace\" emu delay 1 --quiet --out run2 -- \
         \"$PWD/airpace\" emu delay 1 --quiet --out run3 -- ping -c 1 100.64.0.1 || [ $? = 3 ]\n\
         cat run/manifest.json"
    );
    let out = machine.check(&script, &[]);
    for has in ["1 received", "\"realtime_priority\": true", "\"memory_locked\": true"] {
        assert!(out.contains(has), "{has}: {out}");
    }
}

//! The far side of `airpace emu` as the machine itself and the networks that it reaches: with rights, and without
//! rights by pasta.

use super::emu_machine::Machine;
use super::emu_session::nothing_is_left;

/// A server on this machine and one outside, and programs on a device that reach both.
const BOTH: &str = r#"
state >before
serve 0.0.0.0:5001
serve 198.51.100.1:5002 nsenter -t $there -n
$user "$airpace" emu delay 1 --out run -- sh -c '
    set -e
    "$0" emu-bulk connect $AIRPACE_BASE:5001 receive 1
    "$0" emu-bulk connect 198.51.100.1:5002 receive 1
    ping -c 1 -W 5 $AIRPACE_BASE >ping
' "$airpace" && status=0 || status=$?
[ $status = 0 ] || [ $status = 3 ] || fail "status $status"
unchanged
"#;

#[test]
fn programs_reach_the_machine_and_the_outside_with_rights() {
    for machine in Machine::all() {
        let done = machine.run(&format!("outside\n{BOTH}"), &[]);
        assert!(!done.err.contains("airpace: "), "{}: nothing is to be said: {}", machine.name, done.err);
        two_goodputs(&done.fine());
    }
}

#[test]
fn programs_reach_the_machine_and_the_outside_without_rights() {
    if !airpace_testing::has_program("pasta", "passt") {
        return;
    }
    for machine in Machine::all() {
        two_goodputs(&machine.check(&format!("outside\nuser=$without_rights\n{BOTH}"), &[]));
    }
}

fn two_goodputs(out: &str) {
    let numbers: Vec<f64> = out.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(numbers.len(), 2, "{out}");
}

#[test]
fn nothing_is_left_of_a_session_with_the_outside() {
    for machine in Machine::all() {
        nothing_is_left(&machine, "--far host", "outside");
    }
}

#[test]
fn nothing_is_left_of_a_session_with_the_outside_without_rights() {
    if !airpace_testing::has_program("pasta", "passt") {
        return;
    }
    let Some(machine) = Machine::one() else { return };
    nothing_is_left(&machine, "--far host", "outside; user=$without_rights");
}

/// Emulators that share the machine: each has separate devices and rules, and the last one restores the machine's
/// settings.
#[test]
fn several_emulators_share_the_machine_and_the_last_one_restores_it() {
    let script = r#"
        outside
        echo 0 >/proc/sys/net/ipv4/conf/all/accept_redirects
        state >before
        mkfifo go1 go2
        for n in 1 2; do
            "$airpace" emu delay 1 --quiet --far host --out run$n -- \
                sh -c 'ip -4 -br addr show airpace >address$1; echo ready >&8; read word <go$1' sh $n &
            eval emu$n=$!
            read -r word <&8
        done
        cmp -s address1 address2 && fail 'both have the same addresses'
        reach() {
            serve 198.51.100.1:5002 nsenter -t $there -n
            first=$(children $(children $emu2 | cut -d' ' -f1) | cut -d' ' -f1)
            nsenter -t $(children $first | cut -d' ' -f1) -n "$airpace" emu-bulk connect 198.51.100.1:5002 receive 1 >flow
        }
        reach
        echo >go1; wait $emu1 || [ $? = 3 ]
        [ $(cat /proc/sys/net/ipv4/ip_forward) = 1 ] || fail 'the first one has taken the way from the second'
        reach
        echo >go2; wait $emu2 || [ $? = 3 ]
        unchanged
    "#;
    for machine in Machine::all() {
        machine.check(script, &[]);
    }
}

#[test]
fn a_machine_that_passes_packets_on_anyway_goes_on_doing_so() {
    let script = r#"
        echo 1 >/proc/sys/net/ipv4/ip_forward
        "$airpace" emu delay 1 --quiet --far host --out run -- true || [ $? = 3 ]
        [ $(cat /proc/sys/net/ipv4/ip_forward) = 1 ] || fail 'the setting was changed'
    "#;
    for machine in Machine::all() {
        machine.check(script, &[]);
    }
}

/// A name server that answers every query with 192.0.2.7.
const NAMES: &str = r#"
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("listening", flush=True)
while True:
    question, asker = server.recvfrom(512)
    end = question.index(b"\0", 12) + 5
    answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07"
    is_a = question[end - 4:end - 2] == b"\0\x01"
    head = question[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if is_a else b"\0\0") + b"\0\0\0\0"
    server.sendto(head + question[12:end] + (answer if is_a else b""), asker)
"#;

#[test]
fn names_are_resolved_by_a_resolver_that_only_the_machine_reaches() {
    if !airpace_testing::has_program("python3", "python3") {
        return;
    }
    for machine in Machine::all() {
        machine.write("names.py", NAMES);
        machine.write("resolv.conf", "nameserver 127.0.0.1\noptions attempts:5\n");
        let mut users = vec![""];
        if airpace_testing::has_program("pasta", "passt") {
            users.push("$without_rights");
        }
        for user in users {
            let script = r#"
                outside
                [ -f /etc/resolv.conf ] || { echo 192.0.2.7; exit; }
                mount --bind $base/resolv.conf /etc/resolv.conf
                python3 $base/names.py >&8 & read -r word <&8
                $user "$airpace" emu delay 1 --quiet --far host --out run -- getent ahostsv4 some.example || [ $? = 3 ]
                cmp -s $base/resolv.conf /etc/resolv.conf || fail 'the list of the machine was changed'
            "#;
            let out = machine.check(&format!("user=\"{user}\"\n{script}"), &[user]);
            assert!(out.contains("192.0.2.7"), "{user}: {out}");
        }
    }
}

/// One sentence names each missing feature. Without the outside, a run continues; without any of the others, it does
/// not start.
#[test]
fn what_is_lacking_is_said_in_one_sentence() {
    // The settings that forbid namespaces belong to the machine's user namespace.
    let Some(machine) = Machine::in_user_namespace() else { return };
    for (name, before, command, code, said) in [
        (
            "no pasta",
            "user=\"$without_rights /usr/bin/env PATH=/nowhere\"",
            "--far auto -- /bin/true",
            0,
            "UDP (QUIC) does not reach the outside: pasta, which carries it without rights, is not installed (package passt)",
        ),
        ("no packet devices", "mount -t tmpfs none /dev/net", "-- true", 2, "--device /dev/net/tun"),
        (
            "no user namespaces",
            "echo 0 >/proc/sys/user/max_user_namespaces; user=$without_rights",
            "-- true",
            2,
            "sysctl user.max_user_namespaces=10000",
        ),
        (
            "no network namespaces",
            "echo 0 >/proc/sys/user/max_net_namespaces; user=$without_rights",
            "-- true",
            2,
            "sysctl user.max_net_namespaces=10000",
        ),
        (
            "no right to networks",
            "user='setpriv --ambient-caps=-net_admin --inh-caps=-net_admin'",
            "--far own -- true",
            0,
            "",
        ),
    ] {
        let script = format!(
            "echo >fake\n{before}\n$user \"$airpace\" emu delay 1 --out run {command} && status=0 || status=$?\n\
             [ $status != 3 ] || status=0; exit $status"
        );
        let done = machine.run(&script, &[name]);
        assert_eq!(done.code, Some(code), "{name}: {}{}", done.out, done.err);
        assert!(done.err.contains(said), "{name}: {}", done.err);
        let sentences = done.err.lines().filter(|line| line.starts_with("airpace: ")).count();
        assert_eq!(sentences, usize::from(!said.is_empty()), "{name}: {}", done.err);
    }
}

#[test]
fn a_packet_device_of_somebody_else_is_named() {
    let Some(machine) = Machine::of_root() else { return };
    let script = "cp -a /dev/net/tun tun; chmod 600 tun; mount --bind tun /dev/net/tun\n\
                  $without_rights \"$airpace\" emu delay 1 --out run -- true";
    machine.run(script, &[]).refused(&[
        "cannot open /dev/net/tun",
        "chmod 666 /dev/net/tun",
        "`airpace sim`",
    ]);
}

/// Conditions of a container started with `--device /dev/net/tun --cap-add NET_ADMIN --cap-add SYS_ADMIN`: some rights
/// of root, read-only settings, and masked parts of /proc.
///
/// Source: Docker documentation, "Linux kernel capabilities" of `docker run`; OCI runtime-spec config-linux.md (masked and read-only paths)
const CONTAINER: &str = r#"
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t tmpfs none /proc/acpi || mount -t tmpfs none /proc/fs
user="setpriv --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap,+net_admin,+sys_admin --inh-caps=-all"
"#;

#[test]
fn programs_reach_the_outside_from_a_container() {
    let Some(machine) = Machine::of_root() else { return };
    // A machine that runs containers may forward packets or not.
    for forward in ["0", "1"] {
        let setting = format!("echo {forward} >/proc/sys/net/ipv4/ip_forward");
        two_goodputs(&machine.check(&format!("outside\n{setting}\n{CONTAINER}\n{BOTH}"), &[forward]));
    }
}

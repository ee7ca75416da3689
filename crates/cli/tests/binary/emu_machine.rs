//! A machine of its own for tests of the emulator: namespaces in which the emulator is root or not, without touching the
//! machine that runs the tests. `unshare` (util-linux) and `ip` (iproute2) make it, without root where user namespaces
//! are allowed.

use std::process::Command;

use super::{Done, Shell};

/// What every script begins with: `. ./library`.
///
/// `state` prints what an emulator could leave behind. `begin ARGUMENTS` starts an emulator in the background whose
/// program starts others, some of them as daemons, and waits until they run; `gone` waits until no process of it is left:
/// all of them hold one end of a pipe open.
const LIBRARY: &str = r#"
set -eu
airpace=$AIRPACE_UNDER_TEST
fail() { echo "FAIL: $*"; exit 1; }
# Before a command: root runs it, or somebody without rights.
user=
without_rights="setpriv --bounding-set=-all --inh-caps=-all"
state() {
    ip -o link | cut -d: -f2 | sort
    ip -o addr | awk '{ print $2, $4 }' | sort
    ip route show table all | sort
    cat /proc/sys/net/ipv4/ip_forward
    if command -v nft >nft.path; then nft list ruleset 2>/dev/null || true; fi
    cut -d' ' -f4- /proc/self/mountinfo
    grep -c airpace /proc/net/unix || true
}
children() { cat /proc/$1/task/$1/children; }
begin() {
    rm -rf held said emu.pid emu.status
    mkfifo held said
    exec 8<>said
    cat held >gone.out & reader=$!
    (
        9>held $user "$airpace" emu delay 1 --quiet --out run "$@" -- \
            sh -c 'sleep 1000 & (setsid sleep 1000 &); echo $PPID >shell.parent; echo ready >&8; exec sleep 1000' &
        echo $! >emu.pid
        wait $! && status=0 || status=$?
        echo $status >emu.status
        echo ended >&8
    ) & wrapper=$!
    read -r word <&8
    [ "$word" = ready ] || { cat emu.status; fail "the emulator ended before its program ran"; }
    emu=$(cat emu.pid)
    waiter=$(children $emu | cut -d' ' -f1)
    first=$(children $waiter | cut -d' ' -f1)
    program=$(children $first | cut -d' ' -f1)
}
gone() {
    wait $reader
    read -r word <&8
    [ "$word" = ended ] || fail "$word was said"
    status=$(cat emu.status)
}
# The outside: a network namespace with a server's address, and this machine's way there.
outside() {
    unshare -n sh -c 'echo $$ >outside.pid; echo there >&7; exec sleep 1000' 7>&8 & 
    read -r word <&8
    there=$(cat outside.pid)
    ip link add lan type veth peer name wan netns $there
    sysctl -q net.ipv6.conf.lan.accept_dad=0
    ip addr add 192.0.2.2/24 dev lan
    ip link set lan up
    nsenter -t $there -n sh -c 'ip link set lo up; ip addr add 192.0.2.1/24 dev wan; ip link set wan up; ip addr add 198.51.100.1/32 dev lo'
    ip route add default via 192.0.2.1
}
# Serves one connection with bytes for 0.1 s; `there serve …` does so outside.
serve() {
    "$airpace" emu-flow listen "$1" send 0.1 >&8 &
    read -r word <&8
    [ "$word" = listening ] || fail "the server says $word"
}
ip link set lo up || true
"#;

/// A machine.
pub struct Machine {
    shell: Shell,
    unshare: Vec<&'static str>,
}

impl Machine {
    /// A new machine for each script; says why if there can be none.
    pub fn new() -> Option<Machine> {
        for program in ["unshare", "setpriv", "ip", "nsenter"] {
            let package = if program == "ip" { "iproute2" } else { "util-linux" };
            if !airpace_testing::has_program(program, package) {
                return None;
            }
        }
        if std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_err() {
            airpace_testing::skipped("/dev/net/tun cannot be opened");
            return None;
        }
        let ways = [
            &[
                "--user",
                "--map-root-user",
                "--net",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ][..],
            &["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"][..],
        ];
        let works = |way: &&&[&str]| {
            let tried = Command::new("unshare").args(**way).args(["ip", "link", "set", "lo", "up"]).output();
            tried.is_ok_and(|tried| tried.status.success())
        };
        match ways.iter().find(works) {
            Some(way) => {
                let shell = Shell::new();
                shell.write("library", LIBRARY);
                Some(Machine { shell, unshare: way.to_vec() })
            }
            None => {
                airpace_testing::skipped("no right to make namespaces of networks, mounts and processes");
                None
            }
        }
    }

    /// Puts a file where scripts begin.
    pub fn write(&self, name: &str, text: &str) {
        self.shell.write(name, text);
    }

    /// Runs a script in a new machine, with these words as `$1` and so on.
    pub fn run(&self, script: &str, words: &[&str]) -> Done {
        let text = format!(". ./library\n{script}");
        let mut command = Command::new("unshare");
        command
            .args(&self.unshare)
            .args(["sh", "-c", &text, "sh"])
            .args(words)
            .current_dir(self.shell.folder.path())
            .env("AIRPACE_UNDER_TEST", env!("CARGO_BIN_EXE_airpace"))
            .env("AIRPACE_COMMAND", "airpace")
            .env_remove("AIRPACE_DATA")
            .env_remove("AIRPACE_SPACE")
            .stdin(std::process::Stdio::null());
        Done::of(&mut command, words)
    }

    /// The same for a script that must not fail. Returns what it prints.
    #[track_caller]
    pub fn check(&self, script: &str, words: &[&str]) -> String {
        let done = self.run(script, words);
        assert_eq!(done.code, Some(0), "{words:?}: {}\n{}", done.out, done.err);
        done.out
    }
}

//! Isolated machines for tests of the emulator: namespaces in which a script has the rights of root, without effects on
//! the machine that runs the tests. `unshare`, `setpriv`, `nsenter` (util-linux) and `ip` (iproute2) create them.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{Done, Shell};

/// Library that every script includes with `. ./library`.
///
/// `state` prints the objects that an emulator could leave behind. `begin ARGUMENTS` starts an emulator in the
/// background whose program starts other programs, some of them as daemons, and waits until they run. `gone` waits
/// until none of these processes is left: all of them hold one end of a pipe open.
const LIBRARY: &str = r#"
set -eu
airpace=$AIRPACE_UNDER_TEST
export base=${base:-$PWD}
cd "$(mktemp -d "$base/work.XXXXXX")"
chmod 777 .
mkfifo said
exec 8<>said
ip link set lo up || true
fail() { echo "FAIL: $*"; exit 1; }
# Before a command: who has all rights runs it, or somebody without rights.
user=
state() {
    ip -o link | cut -d: -f2 | sort
    ip -o addr | awk '{ print $2, $4 }' | sort
    ip route show table all | sort
    cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/all/accept_redirects
    if command -v nft >nft.path; then nft list ruleset 2>nft.err || true; fi
    cut -d' ' -f4- /proc/self/mountinfo
    grep -c airpace /proc/net/unix || true
}
children() { cat /proc/$1/task/$1/children; }
begin() {
    mkfifo held
    cat held >gone.out & reader=$!
    (
        9>held setsid $user "$airpace" emu delay 1 --quiet --out run "$@" -- \
            sh -c 'sleep 1000 & (setsid sleep 1000 &); echo ready >&8; exec sleep 1000' &
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
    # What the program has left alone is a child of that process too, and pasta is.
    for program in $(children $first); do
        [ -z "$(children $program)" ] || break
    done
}
gone() {
    wait $reader
    read -r word <&8
    [ "$word" = ended ] || fail "$word was said"
    status=$(cat emu.status)
}
# An interface is gone a moment after the last process that had it.
unchanged() {
    for look in $(seq 500); do
        state >after
        ! cmp -s before after || return 0
        sleep 0.01
    done
    diff before after
    fail 'something is left'
}
# Whether the kernel has noticed that a device's cable is plugged in, and has changed the routes: some time later.
has_link() {
    routes=$(ip route show table all dev "$1"; ip -6 route show table all dev "$1" 2>/dev/null || true)
    case $routes in *linkdown*) return 1 ;; esac
    [ "$(cat "/proc/sys/net/ipv6/conf/$1/disable_ipv6" 2>/dev/null || echo 1)" = 1 ] && return 0
    case $routes in *ff00::/8*) return 0 ;; *) return 1 ;; esac
}
# The outside: a network namespace with a server's address, and this machine's way there.
outside() {
    unshare -n sh -c 'echo $$ >outside.pid; echo there >&8; exec sleep 1000' &
    read -r word <&8
    there=$(cat outside.pid)
    ip link add lan type veth peer name wan netns $there
    # Or the kernel adds addresses some time later.
    ip link set lan addrgenmode none
    ip addr add 192.0.2.2/24 dev lan
    ip link set lan up
    nsenter -t $there -n sh -c 'ip link set lo up; ip addr add 192.0.2.1/24 dev wan; ip link set wan up; ip addr add 198.51.100.1/32 dev lo'
    until has_link lan; do sleep 0.01; done
    ip route add default via 192.0.2.1
}
# Serves one connection with bytes for 0.1 s: `serve ADDRESS`, or `serve ADDRESS nsenter …` elsewhere.
serve() {
    address=$1; shift
    "$@" "$airpace" emu-bulk listen "$address" send 0.1 >&8 &
    read -r word <&8
    [ "$word" = listening ] || fail "the server says $word"
}
"#;

/// A kind of machine.
pub struct Machine {
    shell: Shell,
    /// The user who has the rights of root on this machine.
    pub name: &'static str,
    begin: Vec<&'static str>,
    without_rights: &'static str,
}

/// A user without rights, independent of the user who runs the tests.
const NOBODY: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];

const NAMESPACES: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Maximum duration of a script (s).
const ENDS_WITHIN: &str = "120";

impl Machine {
    /// All kinds of machines that can be created here: one in a user namespace, as an ordinary user; for root, also one
    /// of root. Prints which kinds are missing.
    pub fn all() -> Vec<Machine> {
        Machine::in_user_namespace().into_iter().chain(Machine::of_root()).collect()
    }

    /// One machine: of root if possible.
    pub fn one() -> Option<Machine> {
        Machine::all().pop()
    }

    /// A machine in a user namespace, in which an ordinary user has the rights of root.
    pub fn in_user_namespace() -> Option<Machine> {
        let is_root = rustix::process::geteuid().is_root();
        let nobody: &[&str] = if is_root { &NOBODY } else { &[] };
        let begin =
            [nobody, &["unshare", "--user", "--map-current-user", "--keep-caps"], &NAMESPACES].concat();
        Machine::new("an ordinary user", begin, "setpriv --ambient-caps=-all --inh-caps=-all")
    }

    /// A machine of root.
    pub fn of_root() -> Option<Machine> {
        if !rustix::process::geteuid().is_root() {
            airpace_testing::skipped("not root: only with the rights of an ordinary user");
            return None;
        }
        let without = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all";
        Machine::new("root", [&["unshare"][..], &NAMESPACES].concat(), without)
    }

    fn new(name: &'static str, begin: Vec<&'static str>, without_rights: &'static str) -> Option<Machine> {
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
        let shell = Shell::new();
        shell.write("library", LIBRARY);
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(shell.folder.path(), open).expect("the folder is ours");
        let machine = Machine { shell, name, begin, without_rights };
        let tried = machine.run("$without_rights \"$airpace\" --version", &[]);
        if tried.code != Some(0) {
            airpace_testing::skipped(&format!("no machine of {name} here: {}", tried.err.trim()));
            return None;
        }
        Some(machine)
    }

    /// Writes a file into `$base`.
    pub fn write(&self, name: &str, text: &str) {
        self.shell.write(name, text);
    }

    /// Runs a script on a new machine and in a new folder, with these words as `$1` and so on.
    pub fn run(&self, script: &str, words: &[&str]) -> Done {
        let text = format!(". ./library\n{script}");
        let mut command = Command::new("timeout");
        command
            .args(["--signal=KILL", ENDS_WITHIN])
            .args(&self.begin)
            .args(["sh", "-c", &text, "sh"])
            .args(words)
            .current_dir(self.shell.folder.path())
            .env("AIRPACE_UNDER_TEST", env!("CARGO_BIN_EXE_airpace"))
            .env("AIRPACE_COMMAND", "airpace")
            .env("without_rights", self.without_rights)
            .env_remove("AIRPACE_DATA")
            .env_remove("AIRPACE_SPACE")
            .stdin(std::process::Stdio::null());
        Done::of(&mut command, words)
    }

    /// Like [`Machine::run`], for a script that must succeed. Returns the text that the script printed.
    #[track_caller]
    pub fn check(&self, script: &str, words: &[&str]) -> String {
        let done = self.run(script, words);
        assert_eq!(done.code, Some(0), "{}, {words:?}: {}\n{}", self.name, done.out, done.err);
        done.out
    }
}

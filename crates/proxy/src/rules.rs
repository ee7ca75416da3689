//! Packet rules of a router that redirect connections to the proxy while the proxy runs.
//!
//! A process of `nft` owns the table of packet rules. This process runs below a shell that lives as long as the proxy.
//! If the proxy is killed, the shell removes the route and its rule, and `nft` ends, which removes the table.
//! Connections then bypass the proxy again.
//!
//! Source: Linux Documentation/networking/tproxy.rst; nftables nft(8)

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// Name of the proxy's nftables table.
const TABLE: &str = "airpace_proxy";

/// Firewall mark of packets for the proxy, and number of the routing table that delivers them locally.
///
/// Chosen: numbers that common tools do not use.
const MARK: u32 = 0x0a1b_0001;
const ROUTES: u32 = 41_501;

/// Maximum number of checks for the rules, at intervals of 10 ms.
const LOOKS: u32 = 300;

/// Reason why the rules cannot be activated.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// There is no interface of this name.
    #[error("there is no interface `{interface}`; `ip link` lists them")]
    NoInterface {
        /// Name of the interface.
        interface: String,
        /// What `ip` reported.
        source: CommandError,
    },
    /// The rules of another transparent proxy are active on this machine.
    #[error("another transparent proxy runs on this machine; end it first")]
    Taken,
    /// The kernel refuses the rules.
    #[error(
        "the kernel does not accept the rules of a transparent proxy; it needs root, and nft_tproxy and nft_socket"
    )]
    Refused(#[source] CommandError),
    /// The shell that guards the rules cannot be started.
    #[error("cannot run `sh`")]
    NoShell(#[source] io::Error),
    /// The standard input of `nft` is not open.
    #[error("`nft` does not accept commands")]
    NoInput,
    /// `nft` no longer reads commands.
    #[error("`nft` has ended")]
    Ended(#[source] io::Error),
    /// `nft` cannot be started.
    #[error("cannot run `nft`; install nftables")]
    NoNft(#[source] io::Error),
    /// The route of redirected packets cannot be set.
    #[error(transparent)]
    NoRoute(CommandError),
    /// `nft` accepted the rules, but they did not become active.
    #[error("`nft` accepted the rules of the proxy, but they are missing")]
    NotThere,
}

/// Reason why a program of the system failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The program cannot be started.
    #[error("cannot run `{program}`; install it")]
    NoProgram {
        /// Name of the program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The output of the program cannot be read.
    #[error("the output of `{program}` cannot be read")]
    Unheard {
        /// Name of the program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The program reported an error.
    #[error("{command}: {said}")]
    Failed {
        /// The program and its arguments.
        command: String,
        /// The first line of its error output.
        said: String,
    },
}

/// Active rules. They are removed when this value is dropped or the process ends.
pub struct Rules {
    guard: Child,
    /// Input of the shell that guards the rules. The rules stay active while this input is open.
    commands: Option<ChildStdin>,
}

/// Input of `nft`. Connections to the machine itself are not redirected.
fn script(interface: &str, ports: &[u16], port: u16) -> String {
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports =
        if ports.is_empty() { String::new() } else { format!("tcp dport {{ {} }} ", ports.join(", ")) };
    let begin = format!("add rule inet {TABLE} prerouting meta l4proto tcp");
    format!(
        "add table inet {TABLE} {{ flags owner; }}\n\
         add chain inet {TABLE} prerouting {{ type filter hook prerouting priority mangle; policy accept; }}\n\
         {begin} socket transparent 1 meta mark set {MARK:#x} accept\n\
         {begin} iifname \"{interface}\" fib daddr type != local {ports}tproxy to :{port} meta mark set {MARK:#x} accept\n"
    )
}

/// Script of the shell that guards the rules. `nft` reads the proxy's commands, and its table exists until the proxy
/// has ended and the route is removed. The script ignores Ctrl-C, which reaches all processes of a terminal, because it
/// must still clean up.
fn guard() -> String {
    let (mark, table) = (MARK, ROUTES);
    format!(
        "trap '' INT QUIT HUP TERM; {{ cat; for family in -4 -6; do \
         while ip $family rule del fwmark {mark} lookup {table}; do :; done; \
         ip $family route flush table {table}; done; }} 2>/dev/null | nft -i"
    )
}

impl Rules {
    /// Activates the rules: connections that arrive at `interface`, to `ports` or to any port, go to the proxy at
    /// `port`.
    ///
    /// # Errors
    /// No root, no `nft`, no such interface, missing kernel features, or another running proxy.
    pub fn set(interface: &str, ports: &[u16], port: u16) -> Result<Rules, RulesError> {
        run("ip", &["link", "show", "dev", interface], "")
            .map_err(|source| RulesError::NoInterface { interface: interface.to_owned(), source })?;
        if !comes(false)? {
            return Err(RulesError::Taken);
        }
        let script = script(interface, ports, port);
        run("nft", &["-c", "-f", "-"], &script).map_err(RulesError::Refused)?;
        let mut guard = Command::new("sh")
            .args(["-c", &guard()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(RulesError::NoShell)?;
        let mut commands = guard.stdin.take().ok_or(RulesError::NoInput)?;
        commands.write_all(script.as_bytes()).and_then(|()| commands.flush()).map_err(RulesError::Ended)?;
        let rules = Rules { guard, commands: Some(commands) };
        for family in ["-4", "-6"] {
            let (mark, table) = (MARK.to_string(), ROUTES.to_string());
            for words in [
                ["rule", "add", "fwmark", &mark, "lookup", &table].to_vec(),
                ["route", "add", "local", "default", "dev", "lo", "table", &table].to_vec(),
            ] {
                match run("ip", &[&[family], &words[..]].concat(), "") {
                    // Remains of a killed proxy of an earlier version.
                    Err(CommandError::Failed { said, .. }) if said.contains("File exists") => {}
                    // A machine without IPv6 carries no IPv6 connections.
                    Err(error) if family == "-4" => return Err(RulesError::NoRoute(error)),
                    _ => {}
                }
            }
        }
        if comes(true)? { Ok(rules) } else { Err(RulesError::NotThere) }
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.guard.wait();
    }
}

/// Waits until the rules are active, or until they are removed. Returns whether this happened within 3 s.
fn comes(wanted: bool) -> Result<bool, RulesError> {
    for _ in 0..LOOKS {
        if is_set()? == wanted {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

/// Whether the last of the rules is active.
fn is_set() -> Result<bool, RulesError> {
    let listed = Command::new("nft").args(["list", "table", "inet", TABLE]).output();
    let listed = listed.map_err(RulesError::NoNft)?;
    Ok(String::from_utf8_lossy(&listed.stdout).contains("tproxy"))
}

fn run(program: &str, words: &[&str], input: &str) -> Result<(), CommandError> {
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child =
        child.map_err(|source| CommandError::NoProgram { program: program.to_owned(), source })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that exits early has printed the reason.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|source| CommandError::Unheard { program: program.to_owned(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it failed").to_owned();
    Err(CommandError::Failed { command: format!("{program} {}", words.join(" ")), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_the_interface_the_ports_and_the_proxy() {
        let all = script("eth1", &[], 1_080);
        assert!(all.contains("iifname \"eth1\" fib daddr type != local tproxy to :1080 "), "{all}");
        let some = script("eth1", &[80, 443], 9);
        assert!(some.contains("!= local tcp dport { 80, 443 } tproxy to :9 "), "{some}");
    }
}

//! The rules by which a router's kernel hands connections over to the proxy, for as long as it runs.
//!
//! The table of packet rules belongs to a process of `nft` behind a shell that lives as long as the proxy: if the proxy is
//! killed, the shell removes the route and its rule, `nft` ends, and the table is gone with it. Connections go their own way
//! again.
//!
//! Source: Linux Documentation/networking/tproxy.rst; nftables nft(8)

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};

/// The name of our table of rules.
const TABLE: &str = "airpace_proxy";

/// The mark of packets that are for the proxy, and the routing table that keeps them here.
///
/// Chosen: numbers that common tools do not use.
const MARK: u32 = 0x0a1b_0001;
const ROUTES: u32 = 41_501;

/// How often it is looked whether the rules are there, 10 ms apart.
const LOOKS: u32 = 300;

/// Rules that hold until this is dropped, or the process ends.
pub struct Rules {
    guard: Child,
    /// While this is open, the rules hold.
    commands: Option<ChildStdin>,
}

/// Reads the name of an interface: one that could be mistaken for something else in a rule is refused.
pub fn interface(name: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte);
    match (1..16).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("give the name of an interface, as `ip link` lists them".to_owned()),
    }
}

/// What `nft` is told. Connections to the machine itself are left alone.
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

/// What the shell does that guards the rules: `nft` gets the proxy's commands, and its table lives until the proxy is gone
/// and the route is removed. Ctrl-C reaches all processes of a terminal, and this one has its work before it then.
fn guard() -> String {
    let (mark, table) = (MARK, ROUTES);
    format!(
        "trap '' INT QUIT HUP TERM; {{ cat; for family in -4 -6; do \
         while ip $family rule del fwmark {mark} lookup {table}; do :; done; \
         ip $family route flush table {table}; done; }} 2>/dev/null | nft -i"
    )
}

impl Rules {
    /// Sets them: what comes in by `interface`, to `ports` or to any, is for the proxy at `port`.
    ///
    /// # Errors
    /// One sentence: no root, no `nft`, no such interface, a kernel without what they need, another proxy that runs.
    pub fn set(interface: &str, ports: &[u16], port: u16) -> anyhow::Result<Rules> {
        run("ip", &["link", "show", "dev", interface], "")
            .with_context(|| format!("there is no interface `{interface}`; `ip link` lists them"))?;
        ensure!(comes(false)?, "another `airpace proxy --transparent` runs on this machine; end it first");
        let script = script(interface, ports, port);
        run("nft", &["-c", "-f", "-"], &script).context(
            "the kernel does not take the rules of a transparent proxy; it needs root, and nft_tproxy and nft_socket",
        )?;
        let mut guard = Command::new("sh")
            .args(["-c", &guard()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run `sh`")?;
        let mut commands = guard.stdin.take().context("`nft` takes no commands")?;
        commands.write_all(script.as_bytes()).and_then(|()| commands.flush()).context("`nft` has ended")?;
        let rules = Rules { guard, commands: Some(commands) };
        for family in ["-4", "-6"] {
            let (mark, table) = (MARK.to_string(), ROUTES.to_string());
            for words in [
                ["rule", "add", "fwmark", &mark, "lookup", &table].to_vec(),
                ["route", "add", "local", "default", "dev", "lo", "table", &table].to_vec(),
            ] {
                match run("ip", &[&[family], &words[..]].concat(), "") {
                    // A proxy of an earlier version that was killed has left it.
                    Err(error) if error.to_string().contains("File exists") => {}
                    // A machine without IPv6 carries none.
                    Err(error) if family == "-4" => return Err(error),
                    _ => {}
                }
            }
        }
        if comes(true)? {
            return Ok(rules);
        }
        bail!("`nft` took the rules of the proxy, and they are not there")
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.guard.wait();
    }
}

/// Waits until our rules are there, or until they are gone. Returns whether that came within 3 s.
fn comes(wanted: bool) -> anyhow::Result<bool> {
    for _ in 0..LOOKS {
        if is_set()? == wanted {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

/// Whether our last rule is there.
fn is_set() -> anyhow::Result<bool> {
    let listed = Command::new("nft").args(["list", "table", "inet", TABLE]).output();
    let listed = listed.context("cannot run `nft`; install nftables")?;
    Ok(String::from_utf8_lossy(&listed.stdout).contains("tproxy"))
}

fn run(program: &str, words: &[&str], input: &str) -> anyhow::Result<()> {
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.with_context(|| format!("cannot run `{program}`; install it"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().with_context(|| format!("`{program}` cannot be heard"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(anyhow!("{program} {}: {}", words.join(" "), said.lines().next().unwrap_or("it failed")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces_cannot_break_out_of_a_rule() {
        for name in ["eth0", "wlp2s0", "ap-dev0", "eth0.7", "veth1@if2"] {
            assert_eq!(interface(name), Ok(name.to_owned()));
        }
        for name in ["", "a\"b", "a b", "0123456789abcdef", "a;b", "a\n"] {
            assert!(interface(name).is_err(), "{name}");
        }
    }

    #[test]
    fn rules_name_the_interface_the_ports_and_the_proxy() {
        let all = script("eth1", &[], 1_080);
        assert!(all.contains("iifname \"eth1\" fib daddr type != local tproxy to :1080 "), "{all}");
        let some = script("eth1", &[80, 443], 9);
        assert!(some.contains("!= local tcp dport { 80, 443 } tproxy to :9 "), "{some}");
    }
}

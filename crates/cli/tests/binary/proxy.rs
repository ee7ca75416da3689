//! `airpace proxy`: connections that clients request from the proxy, and connections that a router redirects to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Shell;
use super::emu_machine::Machine;

/// A running proxy, and its output.
struct Running {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
    /// Address at which the proxy listens.
    at: SocketAddr,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut says = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut error = String::new();
            child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("the proxy ended: {error}");
        }
        let first: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(first["event"], "listening");
        let at = first["listen"].as_str().unwrap().parse().unwrap();
        Running { child, says, at }
    }

    /// Stops the proxy as Ctrl-C does. Returns its output.
    fn end(mut self) -> Vec<Value> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut said = String::new();
        self.says.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A server that returns all received bytes. The thread's result is the client's address as the server sees it.
fn echo(at: &str) -> (SocketAddr, std::thread::JoinHandle<SocketAddr>) {
    let listener = TcpListener::bind(at).unwrap();
    let at = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, client) = listener.accept().unwrap();
        let mut came = vec![];
        stream.read_to_end(&mut came).unwrap();
        stream.write_all(&came).unwrap();
        client
    });
    (at, thread)
}

/// Sends bytes to the echo server, and checks the returned bytes.
fn exchange(mut stream: TcpStream, bytes: usize) {
    let sent: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut back = vec![];
    stream.read_to_end(&mut back).unwrap();
    assert!(back == sent, "{} bytes came back", back.len());
}

/// Requests a connection from the proxy.
fn connect(proxy: SocketAddr, to: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).unwrap();
    write!(stream, "CONNECT {to} HTTP/1.1\r\n\r\n").unwrap();
    let mut said = [0; 39];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(std::str::from_utf8(&said).unwrap(), "HTTP/1.1 200 Connection established\r\n\r\n");
    stream
}

#[test]
fn a_connection_that_was_asked_for_is_carried_and_told_of() {
    let shell = Shell::new();
    let legs = ["--client-leg", "reno", "--server-leg", "reno"];
    let proxy = Running::start(shell.command(
        &[&["proxy", "--listen", "127.0.0.1:0", "--json", "--connections", "50"], &legs[..]].concat(),
    ));
    let (at, serving) = echo("127.0.0.1:0");
    exchange(connect(proxy.at, at), 2_000_000);
    serving.join().unwrap();
    // The server has closed its port.
    let mut refused = TcpStream::connect(proxy.at).unwrap();
    write!(refused, "CONNECT {at} HTTP/1.1\r\n\r\n").unwrap();
    let mut said = String::new();
    refused.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 502 "), "{said}");
    let told = proxy.end();
    let closed = told.iter().find(|told| told["event"] == "closed").expect("it tells of the connection");
    assert_eq!((&closed["up_bytes"], &closed["down_bytes"]), (&2_000_000.into(), &2_000_000.into()));
    assert!(told.iter().all(|told| told["unix_s"].as_f64().unwrap() > 1.7e9), "{told:?}");
    assert_eq!((&closed["target"], &closed["problem"]), (&at.to_string().into(), &Value::Null));
    let ended = told.last().unwrap();
    assert_eq!((&ended["event"], &ended["connections"]), (&"ended".into(), &1.into()));
    assert_eq!(ended["refused"], 1);
}

#[test]
fn what_cannot_be_is_refused_before_it_begins() {
    let shell = Shell::new();
    shell.run(&["proxy", "--listen", "0.0.0.0:0"]).refused(&["--allow"]);
    shell.run(&["proxy", "--client-leg", "nosuch"]).refused(&["`nosuch`", "modprobe"]);
    shell.run(&["proxy", "--allow", "10.0.0.0/99"]).refused(&["10.0.0.0/99", "192.0.2.0/24"]);
    shell.run(&["proxy", "--ports", "80"]).refused(&["--transparent"]);
    shell.run(&["proxy", "--transparent", "a b"]).refused(&["ip link"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    shell.run(&["proxy", "--listen", &at]).refused(&["is taken", "--listen"]);
}

/// This machine is a router between a phone (10.9.1.2, or fd09:1::2) and a server (198.51.100.1, or fd09:2::1).
const ROUTER: &str = r#"
outside
unshare -n sh -c 'echo $$ >phone.pid; echo there >&8; exec sleep 1000' &
read -r word <&8
phone=$(cat phone.pid)
ip link add radio type veth peer name cable netns $phone
ip addr add 10.9.1.1/24 dev radio
ip addr add fd09:1::1/64 dev radio nodad
ip addr add fd09:2::2/64 dev lan nodad
ip addr add fe80::2/64 dev lan nodad
ip link set radio up
nsenter -t $phone -n sh -c '
    ip link set lo up; ip link set cable up
    ip addr add 10.9.1.2/24 dev cable; ip addr add fd09:1::2/64 dev cable nodad
    ip route add default via 10.9.1.1; ip -6 route add default via fd09:1::1'
nsenter -t $there -n sh -c '
    ip addr add fd09:2::1/64 dev wan nodad
    ip route add 10.9.1.0/24 via 192.0.2.2; ip -6 route add fd09:1::/64 via fd09:2::2'
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
# A connection of the phone, and that the server takes the phone for its peer: `through ADDRESS TABLE SERVER:PORT PHONE`.
through() {
    serve $1 nsenter -t $there -n
    nsenter -t $phone -n "$airpace" emu-bulk connect $1 receive 1 >flow
    nsenter -t $there -n cat /proc/net/$2 >seen
    grep -q " $3 $4:" seen || { cat seen; fail "the server did not see the phone at $1"; }
}
proxy() {
    "$airpace" proxy --transparent radio --ports 5002,5003 --json --client-leg reno >>told 2>errors & proxy=$!
    for look in $(seq 500); do
        ! grep -q listening told || return 0
        ! grep -q 'nft_tproxy' errors || { echo "SKIP: $(cat errors)"; exit 0; }
        sleep 0.01
    done
    cat errors
    fail 'the proxy does not listen'
}
"#;

/// Runs a script on routers of each kind.
fn on_routers(script: &str) {
    for machine in Machine::all() {
        let said = machine.check(&format!("{ROUTER}\n{script}"), &[]);
        if let Some(why) = said.lines().find_map(|line| line.strip_prefix("SKIP: ")) {
            airpace_testing::skipped(&format!("{}: {why}", machine.name));
        }
    }
}

#[test]
fn a_router_takes_connections_over_and_both_ends_keep_their_addresses() {
    if !airpace_testing::has_program("nft", "nftables") {
        return;
    }
    let script = r#"
        proxy
        through 198.51.100.1:5002 tcp 016433C6:138A 0201090A
        # Who calls the proxy itself does not make it call itself.
        ! nsenter -t $phone -n "$airpace" emu-bulk connect 10.9.1.1:1080 receive 1 2>itself || fail 'it calls itself'
        # The caller may have gone before that is written down.
        for look in $(seq 500); do
            ! grep '"event":"refused"' told | grep -q 'proxy itself' || break
            sleep 0.01
        done
        grep '"event":"refused"' told | grep -q 'proxy itself' || { cat told; fail 'it says nothing of it'; }
        # A second one would take the same packets.
        ! "$airpace" proxy --transparent radio --listen 0.0.0.0:1081 2>second || fail 'there are two'
        grep -q 'another `airpace proxy --transparent`' second || { cat second; fail 'the second one says something else'; }
        kill -INT $proxy; wait $proxy
        grep '"event":"closed"' told | grep '"client":"10.9.1.2:' | grep -q '"target":"198.51.100.1:5002"' ||
            { cat told; fail 'it was not carried by the proxy'; }
        [ -z "$(nft list tables)" ] || fail 'rules are left'
        [ -z "$(ip rule list table 41501)" ] || fail 'a way is left'
        # Connections go their own way: without it, and after one that was killed.
        through 198.51.100.1:5002 tcp 016433C6:138A 0201090A
        rm told; proxy
        kill -KILL $proxy; ! wait $proxy
        for look in $(seq 500); do
            [ -n "$(nft list tables)" ] || break
            sleep 0.01
        done
        [ -z "$(ip rule list table 41501)" ] && [ -z "$(ip -6 rule list table 41501)" ] || fail 'a way is left after a kill'
        through 198.51.100.1:5002 tcp 016433C6:138A 0201090A
        rm told; proxy
        kill -HUP $proxy
        through 198.51.100.1:5002 tcp 016433C6:138A 0201090A
        kill -INT $proxy; wait $proxy
    "#;
    on_routers(script);
}

#[test]
fn a_router_takes_connections_of_ipv6_over_too() {
    if !airpace_testing::has_program("nft", "nftables") {
        return;
    }
    let script = r#"
        proxy
        # The kernel writes each four bytes of an address backwards.
        through [fd09:2::1]:5003 tcp6 020009FD000000000000000001000000:138B 010009FD000000000000000002000000
        kill -INT $proxy; wait $proxy
        grep '"event":"closed"' told | grep '"client":"\[fd09:1::2\]:' | grep -q '"target":"\[fd09:2::1\]:5003"' ||
            { cat told; fail 'it was not carried by the proxy'; }
    "#;
    on_routers(script);
}

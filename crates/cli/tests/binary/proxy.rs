//! `airpace proxy`: connections through it, asked for and taken over.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use airpace_testing::skipped;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Shell;

/// A proxy that runs, and what it says.
struct Running {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
    /// Where it listens.
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

    /// Ends it as Ctrl-C does. Returns all that it said.
    fn end(mut self) -> Vec<Value> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut said = String::new();
        self.says.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success());
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A server that sends back all that comes, and whom it took for its client.
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

/// Sends to the echo and checks what comes back.
fn exchange(mut stream: TcpStream, bytes: usize) {
    let sent: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut back = vec![];
    stream.read_to_end(&mut back).unwrap();
    assert!(back == sent, "{} bytes came back", back.len());
}

/// A connection that a proxy was asked for.
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
    // Nobody listens there any more.
    let mut refused = TcpStream::connect(proxy.at).unwrap();
    write!(refused, "CONNECT {at} HTTP/1.1\r\n\r\n").unwrap();
    let mut said = String::new();
    refused.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 502 "), "{said}");
    let told = proxy.end();
    let closed = told.iter().find(|told| told["event"] == "closed").expect("it tells of the connection");
    assert_eq!((&closed["up_bytes"], &closed["down_bytes"]), (&2_000_000.into(), &2_000_000.into()));
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

/// Runs `ip`; why it cannot, if it cannot.
fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// A phone, a router and a server, each in a network namespace of its own.
struct Line([String; 3]);

impl Line {
    fn new() -> Result<Line, String> {
        let id = std::process::id();
        let line = Line(["phone", "router", "server"].map(|what| format!("airpace-{what}-{id}")));
        for name in &line.0 {
            ip(&format!("netns add {name}"))?;
        }
        let ip = |words: &str| ip(words).unwrap();
        line.0.iter().for_each(|name| ip(&format!("-n {name} link set lo up")));
        let [phone, router, server] = &line.0;
        for (end, near, subnet) in [(phone, "radio", 1), (server, "net", 2)] {
            ip(&format!("-n {router} link add {near} type veth peer name cable netns {end}"));
            ip(&format!("-n {router} addr add 10.9.{subnet}.1/24 dev {near}"));
            ip(&format!("-n {end} addr add 10.9.{subnet}.2/24 dev cable"));
            ip(&format!("-n {router} link set {near} up"));
            ip(&format!("-n {end} link set cable up"));
            ip(&format!("-n {end} route add default via 10.9.{subnet}.1"));
        }
        line.inside(1, || airpace_files::set_kernel("net/ipv4/ip_forward", "1").unwrap());
        Ok(line)
    }

    /// Does something in a thread that has entered one of them. Sockets that are made there stay there.
    fn inside<T: Send>(&self, which: usize, work: impl FnOnce() -> T + Send) -> T {
        let file = std::fs::File::open(format!("/run/netns/{}", self.0[which])).unwrap();
        std::thread::scope(|scope| {
            let entered = scope.spawn(move || {
                let network = rustix::thread::LinkNameSpaceType::Network;
                rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(network))
                    .unwrap();
                work()
            });
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| _ = ip(&format!("netns del {name}")));
    }
}

#[test]
fn a_router_takes_connections_over_and_both_ends_keep_their_addresses() {
    let shell = Shell::new();
    let line = match Line::new() {
        Ok(line) => line,
        Err(why) => return skipped(&format!("no network namespaces: {why}")),
    };
    if Command::new("nft").arg("--version").output().is_err() {
        return skipped("nft is not installed");
    }
    let words = ["proxy", "--transparent", "radio", "--ports", "7001", "--json", "--client-leg", "reno"];
    let server = || line.inside(2, || echo("10.9.2.2:7001"));
    let through = |bytes| {
        let (at, serving) = server();
        let stream = line.inside(0, || TcpStream::connect(at).unwrap());
        let phone = stream.local_addr().unwrap();
        exchange(stream, bytes);
        assert_eq!(serving.join().unwrap(), phone, "the server sees the phone");
    };
    let proxy = line.inside(1, || Running::start(shell.command(&words)));
    through(1_000_000);
    // A second one would take the same packets.
    let second = [&words[..], &["--listen", "0.0.0.0:1081"]].concat();
    line.inside(1, || shell.run(&second).refused(&["another `airpace proxy --transparent`"]));
    let told = proxy.end();
    let closed = told.iter().find(|told| told["event"] == "closed").expect("it was carried by the proxy");
    assert_eq!((&closed["target"], &closed["down_bytes"]), (&"10.9.2.2:7001".into(), &1_000_000.into()));
    assert!(closed["client"].as_str().unwrap().starts_with("10.9.1.2:"));

    // Without it, and after one that was killed, connections go their own way.
    through(1_000);
    let mut killed = line.inside(1, || Running::start(shell.command(&words)));
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let is_there = || {
        let listed = line.inside(1, || Command::new("nft").args(["list", "tables"]).output().unwrap());
        String::from_utf8_lossy(&listed.stdout).contains("airpace_proxy")
    };
    for _ in 0..1_000 {
        if !is_there() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    through(1_000);
}

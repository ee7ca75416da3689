//! `airpace video serve` and `airpace video play` over the loopback.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Shell;

/// A video of four segments with one bitrate, which is played within half a second.
const SHORT: &str = "name = \"short\"\nduration_s = 3\n[internet]\nrate_mbps = 50\nbuffer.ms = 100\n\
                     [[flow]]\nlabel = \"other\"\nrtt_ms = 20\nrate_mbps = 1\n\
                     [[flow]]\nlabel = \"phone\"\nrtt_ms = 20\nrequest_bytes = 400\n\
                     [flow.video]\nduration_s = 0.4\nstart_up_buffer_s = 0.1\nrebuffer_s = 0.1\nmax_buffer_s = 1\n\
                     [flow.video.ladder]\nsegment_s = 0.1\n\
                     [[flow.video.ladder.representation]]\nbitrate_mbps = 2\nwidth = 640\nheight = 360\n";

/// A running server, and its events.
struct Serving {
    child: Child,
    events: BufReader<ChildStdout>,
    at: SocketAddr,
}

impl Serving {
    fn start(shell: &Shell, words: &[&str]) -> Serving {
        let words = [&["video", "serve", "--listen", "127.0.0.1:0", "--json"], words].concat();
        let mut child = shell.command(&words).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut events = BufReader::new(child.stdout.take().expect("its output"));
        let first = next(&mut events);
        assert_eq!(first["event"], "listening");
        let at = first["listen"].as_str().expect("text").parse().expect("an address");
        Serving { child, events, at }
    }

    /// Stops the server with this signal, and returns its remaining events.
    fn end(mut self, signal: Signal) -> Vec<Value> {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
        let mut rest = String::new();
        self.events.read_to_string(&mut rest).expect("text");
        assert!(self.child.wait().expect("it ends").success());
        rest.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    }
}

/// The next event of a server.
fn next(events: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    events.read_line(&mut line).expect("text");
    serde_json::from_str(&line).expect("an object; the server may have ended")
}

#[test]
fn a_video_over_sockets_has_the_segments_and_the_metrics_of_the_simulated_one() {
    let shell = Shell::new();
    shell.write("short.toml", SHORT);
    let scenario = ["--scenario", "short.toml"];
    let serving = Serving::start(&shell, &[&scenario[..], &["--seed", "3"]].concat());
    let at = serving.at.to_string();
    let played = shell.run(&[&["video", "play", &at, "--json"], &scenario[..]].concat()).json().remove(0);
    let text = shell.run(&[&["video", "play", &at], &scenario[..]].concat()).fine();
    assert!(text.contains("start-up s") && text.contains("to its end"), "{text}");
    assert_eq!((&played["ending"], &played["server"]), (&"complete".into(), &at.as_str().into()));
    assert_eq!(played["session"]["state"], "ended");

    let words = ["sim", "short.toml", "--scheme", "cubic", "--seeds", "3", "--out", "run", "--quiet"];
    shell.run(&words).fine();
    let summary: Value = serde_json::from_str(&shell.read("run/summary.json")).expect("JSON");
    let simulated = &summary["runs"][0]["flows"][1]["video"];
    let sizes = |video: &Value| -> Vec<u64> {
        let each = video["each"].as_array().expect("segments").iter();
        each.map(|one| one["bytes"].as_u64().expect("a size")).collect()
    };
    assert_eq!((sizes(simulated).len(), sizes(&played["video"])), (4, sizes(simulated)));
    assert_eq!(super::keys(simulated), super::keys(&played["video"]), "the names of all metrics");

    let events = serving.end(Signal::TERM);
    let sent: Vec<u64> = (events.iter())
        .filter(|event| event["event"] == "segment")
        .map(|event| event["bytes"].as_u64().expect("a size"))
        .collect();
    assert_eq!(sent, [sizes(simulated), sizes(simulated)].concat());
    let ended = events.last().expect("the end");
    assert_eq!(
        (&ended["event"], &ended["segments"], &ended["refused"]),
        (&"ended".into(), &8.into(), &0.into())
    );
}

#[test]
fn a_player_that_is_stopped_prints_its_report() {
    let shell = Shell::new();
    shell.write("short.toml", SHORT);
    let mut serving = Serving::start(&shell, &["--scenario", "short.toml", "--length", "600"]);
    let at = serving.at.to_string();
    let words = ["video", "play", &at, "--scenario", "short.toml", "--json"];
    let mut player = shell.command(&words).stdout(Stdio::piped()).spawn().expect("the binary starts");
    // The player requests the second segment when it has the first one.
    for _ in 0..2 {
        assert_eq!(next(&mut serving.events)["event"], "segment");
    }
    kill_process(Pid::from_child(&player), Signal::INT).expect("it runs");
    let mut text = String::new();
    player.stdout.take().expect("its output").read_to_string(&mut text).expect("text");
    assert_eq!(player.wait().expect("it ends").code(), Some(0));
    let report: Value = serde_json::from_str(&text).expect("an object");
    assert_eq!((&report["ending"], &report["error"]), (&"stopped".into(), &Value::Null));
    assert!(
        report["session"]["segments"].as_array().is_some_and(|segments| !segments.is_empty()),
        "{report}"
    );
    serving.end(Signal::INT);
}

#[test]
fn a_player_without_a_server_names_the_address_and_the_remedy() {
    let shell = Shell::new();
    let closed =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
    let done = shell.run(&["video", "play", &closed]);
    done.found_nothing(&[&closed, "cannot connect", "airpace video serve"]);
    let words = ["video", "play", &closed, "--json"];
    let report: Value = serde_json::from_str(&shell.run(&words).out).expect("an object");
    assert_eq!((&report["ending"], &report["session"]), (&"failed".into(), &Value::Null));
    assert!(report["error"].as_str().is_some_and(|error| error.contains(&closed)), "{report}");
    shell.run(&["video", "play", "no.such.host.invalid"]).found_nothing(&["no.such.host.invalid"]);
}

#[test]
fn impossible_arguments_are_refused() {
    let shell = Shell::new();
    shell
        .run(&["video", "serve", "--congestion-control", "nosuch"])
        .refused(&["`nosuch`", "it has", "modprobe"]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address").to_string();
    shell.run(&["video", "serve", "--listen", &at]).refused(&["is taken", "--listen"]);
    shell.run(&["video", "serve", "--scenario", "mobility"]).refused(&["mobility", "video-adaptive"]);
    shell.run(&["video", "serve", "--length", "0"]).refused(&["`duration_s` is 0"]);
    shell.run(&["video", "play", &at, "--rule", "bufer"]).refused(&["did you mean `buffer`?"]);
    shell.run(&["video", "play", "a:0"]).refused(&["HOST:PORT"]);
}

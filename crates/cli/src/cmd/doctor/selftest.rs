//! What the emulator carries: a private network with a link of a certain rate, and a TCP connection of this program's own
//! through it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_core::Direction;
use airpace_emu::record::Spool;
use airpace_emu::session::{Far, Program, SessionPlan, Spot};
use airpace_emu::turn::{Begins, Turn, Turned};
use airpace_emu::{Audit, Clock, Session, World};
use airpace_sim::Scenario;
use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

/// A test.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// The link's rate in both directions.
    pub rate_mbps: u32,
    direction: Direction,
}

/// The tests, in their order.
pub const TESTS: [Test; 8] = {
    use Direction::{Downlink, Uplink};
    [
        Test::new(10, Downlink),
        Test::new(10, Uplink),
        Test::new(100, Downlink),
        Test::new(100, Uplink),
        Test::new(300, Downlink),
        Test::new(300, Uplink),
        Test::new(1000, Downlink),
        Test::new(1000, Uplink),
    ]
};

/// How long each sends, in s.
const SECONDS: f64 = 2.0;

/// How long the connection may take beyond that until the test is given up.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// The port of the end that waits.
const PORT: u16 = 5001;

impl Test {
    const fn new(rate_mbps: u32, direction: Direction) -> Test {
        Test { rate_mbps, direction }
    }

    /// Which way the data goes.
    pub fn way(&self) -> &'static str {
        match self.direction {
            Direction::Downlink => "down",
            Direction::Uplink => "up",
        }
    }

    /// The network, as a scenario.
    fn scenario(&self) -> String {
        let Test { rate_mbps, .. } = self;
        let way = self.way();
        // A queue of a round trip's time and more, so that one connection fills the link.
        format!(
            "name = \"doctor\"\nduration_s = 60\n[internet]\nrate_mbps = {rate_mbps}\nbuffer.ms = 40\n[[flow]]\n\
             rtt_ms = 10\ndirection = \"{way}\"\n"
        )
    }
}

/// What was carried.
pub struct Carried {
    /// The test.
    pub test: Test,
    /// What came out of the connection.
    pub goodput_mbps: f64,
    /// How the emulator did.
    pub audit: Audit,
}

impl Carried {
    /// Packets that were carried, of both directions.
    pub fn packets_per_s(&self) -> f64 {
        self.audit.counts.packets_out as f64 / self.audit.seconds.max(1e-9)
    }

    /// As `--json` prints it.
    pub fn json(&self) -> Value {
        json!({
            "link_mbps": self.test.rate_mbps,
            "direction": self.test.way(),
            "goodput_mbps": self.goodput_mbps,
            "packets_per_s": self.packets_per_s(),
            "lateness_p50_ms": self.audit.lateness_p50_ms,
            "lateness_p99_ms": self.audit.lateness_p99_ms,
            "lateness_p999_ms": self.audit.lateness_p999_ms,
            "cpu_share": self.audit.cpu,
            "fit": self.audit.is_fit(),
            "unfit_because": self.audit.unfit_because,
        })
    }
}

/// The command that holds a session's namespaces.
pub fn inside() -> anyhow::Result<Vec<OsString>> {
    let program = std::env::current_exe().context("the program does not find itself")?;
    Ok(vec![program.into(), "emu-inside".into()])
}

/// Carries out a test.
///
/// # Errors
/// What the machine lacks, in one sentence.
pub fn run(test: &Test) -> anyhow::Result<Carried> {
    let scenario = Scenario::load(&test.scenario(), "doctor", &[])?;
    let world = World { plan: scenario.prepare()?.devices_network()?, devices: 1, seed: 1 };
    let folder = tempfile::tempdir().context("there is no folder for temporary files")?;
    let plan = SessionPlan { inside: inside()?, devices: 1, far: Far::Own };
    let (mut session, interfaces) = Session::begin(&plan)?;
    let spool = Spool::begin(folder.path())?;
    let stop = Arc::new(AtomicBool::new(false));
    let turn = Turn {
        interfaces,
        spool,
        reports: None,
        clock: Clock::start(),
        begins: Begins::AtOnce,
        stop: Arc::clone(&stop),
    };
    let turning = std::thread::Builder::new().name("turn".to_owned()).spawn(move || turn.run(&world))?;
    let measured = measure(test, &mut session, folder.path());
    let unread = session.end();
    stop.store(true, Ordering::Relaxed);
    let Turned { spool, mut audit, .. } =
        turning.join().map_err(|_| anyhow::anyhow!("the emulator's thread failed; please report this"))?;
    let goodput_mbps = measured?;
    audit.counts.unread = unread?;
    audit.counts.record_lost = spool.finish()?.lost;
    audit.judge();
    Ok(Carried { test: *test, goodput_mbps, audit })
}

/// Runs both ends of the connection. Returns the goodput in Mbit/s that the receiver prints.
fn measure(test: &Test, session: &mut Session, folder: &Path) -> anyhow::Result<f64> {
    let ends = ["listen", "connect"].map(|part| {
        let sends = (part == "listen") == (test.direction == Direction::Downlink);
        (part, if sends { "send" } else { "receive" })
    });
    let mut receiver = None;
    for (part, task) in ends {
        let address = format!("{}:{PORT}", session.space().address_v4());
        let program =
            std::env::current_exe()?.to_str().context("the program's path is not text in UTF-8")?.to_owned();
        let words = [&program, "emu-flow", part, &address, task, &SECONDS.to_string()].map(str::to_owned);
        let spot = if part == "listen" { Spot::Far } else { Spot::Device(0) };
        let program =
            Program { words: words.to_vec(), spot, environment: vec![], directory: folder.to_owned() };
        let output = airpace_files::new_file(&folder.join(part))?;
        match part {
            "listen" => drop(session.serve(&program, Some(&output))?),
            _ => drop(session.launch(&program, Some(&output))?),
        }
        if task == "receive" {
            receiver = Some(folder.join(part));
        }
    }
    let until = std::time::Instant::now() + Duration::from_secs_f64(SECONDS) + ENDS_WITHIN;
    let mut ended = 0;
    while ended < 2 {
        if std::time::Instant::now() > until {
            bail!("the test connection did not end; please report this");
        }
        let is_said = session.has_end() || {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            let handle = session.handle();
            poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
        };
        if is_said {
            session.wait()?;
            ended += 1;
        }
    }
    let path = receiver.context("one end receives")?;
    let text = std::fs::read_to_string(&path)?;
    let last = text.lines().last().unwrap_or_default();
    last.parse().with_context(|| format!("the test connection failed: {last}"))
}

//! Throughput test of the emulator: a private network with a link of a given rate, and a TCP connection of this program
//! through it.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use airpace_core::Direction;
use airpace_emu::bulk::PORT;
use airpace_emu::session::{Far, Spot};
use airpace_emu::turn::Begins;
use airpace_emu::{Audit, World};
use airpace_sim::Scenario;
use serde_json::{Value, json};

use crate::error::LabError;
use crate::part::{Executable, Part};
use crate::stage::{Played, Player, Stage};

/// A throughput test.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Rate of the link in both directions.
    pub rate_mbps: u32,
    direction: Direction,
}

/// The tests in the order of their execution.
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

/// Duration of each test (s).
const SECONDS: f64 = 2.0;

/// Maximum additional time for the connection before the test is aborted.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

impl Test {
    const fn new(rate_mbps: u32, direction: Direction) -> Test {
        Test { rate_mbps, direction }
    }

    /// Direction of the data.
    pub fn way(&self) -> &'static str {
        match self.direction {
            Direction::Downlink => "down",
            Direction::Uplink => "up",
        }
    }

    /// The network in the form of a scenario.
    fn scenario(&self) -> String {
        let Test { rate_mbps, .. } = self;
        let way = self.way();
        // A trace-driven link with a queue of more than a round-trip time, so that one connection fills the link.
        format!(
            "name = \"doctor\"\nduration_s = 60\n[trace]\ntelemetry = false\nlink.buffer.ms = 40\n\
             synth = {{ model = \"constant\", mean_mbps = {rate_mbps}, seconds = 1 }}\n[[flow]]\nrtt_ms = 10\n\
             direction = \"{way}\"\n"
        )
    }
}

/// Result of a test.
pub struct Carried {
    /// Parameters of the test.
    pub test: Test,
    /// Goodput of the connection.
    pub goodput_mbps: f64,
    /// Checks of the emulator during the test.
    pub audit: Audit,
}

impl Carried {
    /// Packets per second that the emulator delivered in both directions.
    pub fn packets_per_s(&self) -> f64 {
        self.audit.counts.packets_out as f64 / self.audit.seconds.max(1e-9)
    }

    /// The result in the form that `--json` prints.
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

/// Performs a test.
///
/// # Errors
/// A sentence that names the missing capability of the machine, or the failure of the test connection.
pub fn run(executable: &Executable, test: &Test) -> Result<Carried, LabError> {
    let scenario = Scenario::load(&test.scenario(), "doctor", &[])?;
    let world = World { plan: scenario.prepare_endless()?.devices_network()?, devices: 1, seed: 1 };
    let folder = tempfile::tempdir().map_err(LabError::step("there is no folder for temporary files"))?;
    let stage = Stage::make(executable, 1, Far::Own)?;
    let mut staged = stage.turn(&world, Begins::AtOnce, None, folder.path())?;
    let address = SocketAddr::new(staged.session.space().address_v4().into(), PORT);
    let end = |listens: bool, spot| {
        let sends = listens == (test.direction == Direction::Downlink);
        let part = Part::Bulk { listens, address, sends, seconds: SECONDS, control: None, is_wide: false };
        Player::part(executable, &part, spot, folder.path())
    };
    let (far, near) = (end(true, Spot::Far)?, end(false, Spot::Device(0))?);
    far.serve(&mut staged.session)?;
    near.start(&mut staged.session)?;
    let longest = Duration::from_secs_f64(SECONDS) + ENDS_WITHIN;
    let ends = staged.wait(&[0, 1], longest, &AtomicBool::new(false), |_| {})?;
    let Played { mut audit, record, .. } = staged.end()?;
    let receiver = match test.direction {
        Direction::Downlink => near,
        Direction::Uplink => far,
    };
    let said = receiver.said()?;
    if ends.iter().any(Option::is_none) {
        return Err(LabError::Refused("the test connection did not end; please report this".into()));
    }
    let last = said.lines().last().unwrap_or_default();
    let goodput_mbps = last
        .parse()
        .map_err(|_| LabError::Program { said: format!("the test connection failed: {last}") })?;
    audit.counts.record_lost = record.lost;
    audit.judge();
    Ok(Carried { test: *test, goodput_mbps, audit })
}

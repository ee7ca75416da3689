//! A small emulated run for tests of folder and page: programs behind two devices, on a virtual cell with a seeded
//! generator.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use airpace_core::{Bits, Bytes, DeviceId, Direction, Rng, Streams, Time};
use airpace_event::{Capacity, Event, Fate, Owner, Recorder, Subframe};
use airpace_radio::{BitLayer, CarrierId, Dci, PrbSet, RadioReport, Rnti, Scope, Slot};
use airpace_run::emulation::{EmulatedRun, Finished, Setup};
use airpace_run::manifest::{Audit, Emulation, Exit, ForeignFrames, Lateness, Program};
use airpace_run::{Choice, Host};
use airpace_sim::Scenario;
use airpace_tables::connection::{Connection, End, Protocol};
use airpace_tables::departures::Departure;

/// Scenario with two devices in a cell.
pub const EMULATED: &str = r#"
name = "street"
about = "A phone that downloads and a tablet that opens a page, in a cell with another user"
source = "made up"
duration_s = 60
schemes = ["reno"]

[[device]]
label = "phone"
[[device]]
label = "tablet"

[[flow]]
rtt_ms = 40
[[flow]]
device = 1
rtt_ms = 40

[[expect]]
say = "reno moves data"
scheme = "reno"
metric = "throughput_mbps"
at_least = 5
"#;

/// End of the run. It is not a round number, as in every real run.
const ENDED: Time = Time::from_micros(12_345_678);
const STEP: Duration = Duration::from_millis(1);
/// Delay of the empty network.
const EMPTY: Duration = Duration::from_millis(20);
const PRBS: u16 = 100;
const BITS_PER_PRB: f64 = 600.0;
/// Capacity of a queue, in packets.
const MAX_WAITING: usize = 120;

/// The emulated run of a scenario's text in the folder `out`. `change` may change the emulator's audit.
pub fn emulate(text: &str, out: &Path, change: impl FnOnce(&mut Emulation)) -> Finished {
    let scenario = Scenario::load(text, "street.toml", &[]).expect("a scenario");
    let mut run = EmulatedRun::create(&Setup {
        out: out.to_owned(),
        choice: Choice { argument: "street.toml".to_owned(), set: vec![], scenario },
        seed: 3,
        command: "airpace emulate street.toml --seed 3 -- iperf3 -c 100.64.0.1 -R".to_owned(),
        host: Host { program: "./airpace".to_owned(), ..Host::default() },
    })
    .expect("a folder");
    let mut world = World::new(3);
    world.run(&mut run);
    let program = |device, command: &str, exit| Program { device, command: command.to_owned(), exit };
    let mut emulation = Emulation {
        controls: vec![],
        programs: vec![
            program(None, "iperf3 -s", Exit::Stopped),
            program(Some(0), "iperf3 -c 100.64.0.1 -R -t 11", Exit::Status(0)),
            program(Some(0), "ping -i 0.2 100.64.0.1", Exit::Stopped),
            program(
                Some(1),
                "chromium --headless 'https://[fd00:aaaa:bbbb:cccc::64:1]/index.html?a&b'",
                Exit::Status(1),
            ),
        ],
        kernel: "6.18.5-test".to_owned(),
        realtime_priority: true,
        memory_locked: true,
        audit: world.audit(),
        foreign: ForeignFrames { arp: 4, not_for_us: 11, ..ForeignFrames::default() },
        fit: true,
        unfit_because: vec![],
    };
    change(&mut emulation);
    let finished = run.finish(ENDED, emulation).expect("a folder that can be written");
    airpace_page::complete(&finished.folder, &finished.manifest).expect("a page");
    finished
}

/// Transfer of one program. The window limits the bytes in flight.
struct Transfer {
    side: (usize, Direction),
    connection: Connection,
    begins: Time,
    to_send: u64,
    size: u64,
    window: f64,
    on_way: u64,
    /// Whether packets are acknowledged by small packets in the opposite direction.
    is_answered: bool,
    /// Interval between packets, for a transfer without a window.
    every: Option<Duration>,
    arrived: u64,
}

struct Waiting {
    entered: Time,
    bytes: u64,
    connection: Connection,
    transfer: Option<usize>,
}

struct World {
    rng: Rng,
    transfers: Vec<Transfer>,
    queues: BTreeMap<(usize, Direction), VecDeque<Waiting>>,
    credit: BTreeMap<(usize, Direction), f64>,
    dropped: BTreeMap<String, u64>,
    entered: u64,
    handed: u64,
    latest: Vec<f64>,
    most: usize,
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn transfer(side: (usize, Direction), connection: Connection, begins_ms: u64, to_send: u64) -> Transfer {
    Transfer {
        side,
        connection,
        begins: Time::from_millis(begins_ms),
        to_send,
        size: 1_400,
        window: 14_000.0,
        on_way: 0,
        is_answered: true,
        every: None,
        arrived: 0,
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Streams::new(seed).stream("fixture");
        let tcp = |source, destination| Connection { protocol: Protocol::Tcp, source, destination };
        let (server, phone) = (address("100.64.0.1"), address("100.68.0.1"));
        let (server_6, tablet) =
            (address("fd00:aaaa:bbbb:cccc::64:1"), address("fd00:aaaa:bbbb:cccc:dddd:eeee:ffff:68"));
        let download = tcp(End::new(server, 5_201), End::new(phone, 40_312));
        let ping = Connection {
            protocol: Protocol::Icmp,
            source: End::portless(phone),
            destination: End::portless(server),
        };
        let quic = Connection {
            protocol: Protocol::Udp,
            source: End::new(server_6, 443),
            destination: End::new(tablet, 51_000),
        };
        let mut transfers = vec![
            transfer((0, Direction::Downlink), download, 800, u64::MAX),
            Transfer {
                size: 84,
                every: Some(Duration::from_millis(200)),
                ..transfer((0, Direction::Uplink), ping, 100, u64::MAX)
            },
            transfer((1, Direction::Downlink), quic, 3_000, 6_000_000),
        ];
        // A web page: many small connections.
        for number in 0..90 {
            let one = tcp(End::new(server_6, 443), End::new(tablet, 52_000 + number));
            let begins_ms = 2_500 + rng.range(0.0, 3_000.0) as u64;
            let bytes = 2_000 + rng.range(0.0, 60_000.0) as u64;
            transfers.push(transfer((1, Direction::Downlink), one, begins_ms, bytes));
        }
        World {
            rng,
            transfers,
            queues: BTreeMap::new(),
            credit: BTreeMap::new(),
            dropped: BTreeMap::new(),
            entered: 0,
            handed: 0,
            latest: vec![],
            most: 0,
        }
    }

    fn run(&mut self, run: &mut EmulatedRun) {
        let mut now = Time::ZERO;
        for subframe in 0.. {
            if now >= ENDED {
                break;
            }
            self.send(now, run);
            self.serve(now, subframe, run);
            now += STEP;
        }
    }

    fn send(&mut self, now: Time, run: &mut EmulatedRun) {
        for index in 0..self.transfers.len() {
            let transfer = &mut self.transfers[index];
            if now < transfer.begins {
                continue;
            }
            let (side, connection, size) = (transfer.side, transfer.connection, transfer.size);
            if let Some(every) = transfer.every {
                transfer.begins += every;
                self.enter(now, side, Waiting { entered: now, bytes: size, connection, transfer: None }, run);
                continue;
            }
            let mut burst = 0;
            while self.transfers[index].to_send > 0 && burst < 12 {
                let transfer = &mut self.transfers[index];
                if transfer.on_way as f64 >= transfer.window {
                    break;
                }
                let bytes = size.min(transfer.to_send);
                transfer.to_send -= bytes;
                transfer.on_way += bytes;
                burst += 1;
                self.enter(
                    now,
                    side,
                    Waiting { entered: now, bytes, connection, transfer: Some(index) },
                    run,
                );
            }
        }
    }

    fn enter(&mut self, now: Time, side: (usize, Direction), waiting: Waiting, run: &mut EmulatedRun) {
        self.entered += 1;
        let queue = self.queues.entry(side).or_default();
        if queue.len() < MAX_WAITING {
            queue.push_back(waiting);
            self.most = self.most.max(queue.len());
        } else {
            self.end(now, side, &waiting, Fate::QueueFull, run);
        }
    }

    fn end(
        &mut self,
        now: Time,
        side: (usize, Direction),
        waiting: &Waiting,
        fate: Fate,
        run: &mut EmulatedRun,
    ) {
        let is_late = self.rng.chance(0.002);
        let late_ms = self.rng.range(0.01, 0.12) + if is_late { self.rng.range(0.3, 2.5) } else { 0.0 };
        let handed = now + Duration::from_secs_f64(late_ms * 1e-3);
        let handed = (fate == Fate::Delivered && handed < ENDED).then_some(handed);
        run.depart(&Departure {
            device: DeviceId(side.0 as u16),
            direction: side.1,
            connection: waiting.connection,
            bytes: Bytes(waiting.bytes),
            entered: waiting.entered,
            released: now,
            handed,
            propagation_delay: EMPTY,
            fate,
            duplicate: false,
            marked: false,
        });
        if handed.is_some() {
            self.handed += 1;
            self.latest.push(late_ms);
        } else {
            *self.dropped.entry(fate.name().to_owned()).or_default() += 1;
        }
        let Some(index) = waiting.transfer else { return };
        let transfer = &mut self.transfers[index];
        transfer.on_way -= waiting.bytes;
        if fate != Fate::Delivered {
            transfer.window = (transfer.window * 0.5).max(2_800.0);
            transfer.to_send = transfer.to_send.saturating_add(waiting.bytes);
            return;
        }
        transfer.window += 1_400.0 * 1_400.0 / transfer.window;
        transfer.arrived += 1;
        if transfer.is_answered && transfer.arrived.is_multiple_of(2) {
            let (connection, side) = (transfer.connection.reversed(), (side.0, side.1.opposite()));
            self.enter(now, side, Waiting { entered: now, bytes: 52, connection, transfer: None }, run);
        }
    }

    fn serve(&mut self, now: Time, subframe: u64, run: &mut EmulatedRun) {
        let wave = 1.0 + 0.5 * libm::sin(subframe as f64 * 0.001_3) + 0.05 * self.rng.normal();
        let bits_per_prb = BITS_PER_PRB * wave.max(0.1);
        let mut report = RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(subframe),
            time: now,
            scope: Scope::Everyone,
            carrier_prbs: Some(PRBS),
            cfi: Some(1),
            symbols: None,
            dcis: vec![],
            own: None,
            layer: BitLayer::Physical,
        };
        let mut owners = vec![];
        for direction in Direction::BOTH {
            let background =
                if direction == Direction::Downlink && (6_000..9_000).contains(&subframe) { 40 } else { 0 };
            let waits = |device: &usize| {
                self.queues.get(&(*device, direction)).is_some_and(|queue| !queue.is_empty())
            };
            let waiting: Vec<usize> = (0..2).filter(waits).collect();
            let share = (PRBS - background) / waiting.len().max(1) as u16;
            let mut first = background;
            let mut grant = |rnti, first, prbs: u16, owner| {
                let bits = Bits((f64::from(prbs) * bits_per_prb) as u64);
                let dci = Dci {
                    rnti: Rnti(rnti),
                    direction,
                    prbs: PrbSet::run(first, prbs),
                    mcs: [Some(18), None],
                    tbs: [bits, Bits(0)],
                    harq: Some(0),
                    ..Dci::default()
                };
                report.dcis.push(dci);
                owners.push(owner);
            };
            if background > 0 {
                grant(900, 0, background, Owner::Background(0));
            }
            for device in 0..2 {
                let is_served = waiting.contains(&device);
                // Uplinks carry a third of the downlink's bits per PRB.
                let part = if direction == Direction::Downlink { 1.0 } else { 0.33 };
                let bytes = f64::from(share) * bits_per_prb * part / 8.0;
                if is_served {
                    grant(100 + device as u16, first, share, Owner::Device(DeviceId(device as u16)));
                    first += share;
                }
                let whose = DeviceId(device as u16);
                let bytes_ = Bytes(bytes as u64);
                run.record(Event::Capacity(Capacity {
                    time: now,
                    span: STEP,
                    device: whose,
                    direction,
                    bytes: bytes_,
                }));
                let credit = self.credit.entry((device, direction)).or_default();
                *credit = if is_served { *credit + bytes } else { 0.0 };
            }
            for device in waiting {
                self.drain(now, (device, direction), run);
            }
        }
        run.record(Event::Subframe(&Subframe { report: &report, owners: &owners }));
    }

    fn drain(&mut self, now: Time, side: (usize, Direction), run: &mut EmulatedRun) {
        loop {
            let credit = self.credit[&side];
            let queue = self.queues.entry(side).or_default();
            let Some(head) = queue.front() else { return };
            if credit < head.bytes as f64 || now < head.entered + EMPTY {
                self.credit.insert(side, credit.min(3_000.0));
                return;
            }
            let head = queue.pop_front().expect("just seen");
            self.credit.insert(side, credit - head.bytes as f64);
            let fate = if self.rng.chance(0.000_3) { Fate::HarqFailure } else { Fate::Delivered };
            self.end(now, side, &head, fate, run);
        }
    }

    fn audit(&mut self) -> Audit {
        self.latest.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| self.latest.get((part * (self.latest.len() - 1) as f64) as usize).copied();
        Audit {
            lateness_ms: Lateness { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) },
            wait_ms: Lateness { p999: Some(0.2), max: Some(0.4), ..Lateness::default() },
            absence_max_ms: Some(0.3),
            missed_ticks: 0,
            cpu_share: Some(0.173),
            packets_in: self.entered,
            packets_out: self.handed,
            dropped: self.dropped.clone(),
            largest_backlog_packets: self.most as u64,
            largest_backlog_bytes: self.most as u64 * 1_400,
            records_lost: 0,
        }
    }
}

//! Runs a scheme over a real transport: two programs per flow, whose packets cross the scenario's network in real time.

use std::any::Any;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use airpace_cc::SchemeSpec;
use airpace_core::count::count;
use airpace_core::{Direction, FlowId, Packet, Refused, Time};
use airpace_emu::World;
use airpace_emu::connections::Connections;
use airpace_emu::replay::{Departure, Reader, replay};
use airpace_emu::session::{Far, Spot};
use airpace_emu::turn::Begins;
use airpace_event::{Arrived, Event, Recorder};
use airpace_run::wire;
use airpace_sim::{Prepared, Progress as Clock, Scenario};
use airpace_transfer::bulk::{Flow as Push, Order, Traffic, tcp};
use airpace_transfer::code;

use super::inside::{self, Look};
use super::kernel::{fed_by, needed};
use crate::error::{LabError, refuse};
use crate::over::Over;
use crate::part::{Executable, Part};
use crate::stage::{Played, Player, Stage, Staged};
use crate::telemetry::Telemetry;

/// Port of the first flow at both endpoints; further flows use the following ports.
const FIRST_PORT: u16 = 7_001;

/// Maximum time for programs to end after the run.
///
/// Chosen: even a busy machine closes all connections within this time.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// Loads a scheme into the kernel. Returns its name for the feeder, and a value that unloads the scheme when it is dropped.
pub type Load<'a> = &'a (dyn Fn(&SchemeSpec) -> Result<(&'static str, Box<dyn Any>), Refused> + Sync);

/// Parameters of a run over a transport.
pub struct Play<'a> {
    /// This program.
    pub executable: &'a Executable,
    /// Loads schemes into the kernel.
    pub load: Load<'a>,
    /// The scenario of the run.
    pub scenario: &'a Scenario,
    /// The scenario with its files.
    pub prepared: &'a Prepared,
    /// The scheme under test, labelled with its transport.
    pub scheme: &'a SchemeSpec,
    /// The transport of its flows.
    pub over: Over,
    /// Seed of the network's random numbers.
    pub seed: u64,
    /// Run folder.
    pub folder: &'a Path,
    /// Receives messages for the user during the run.
    pub tell: &'a (dyn Fn(&str) + Sync),
}

impl Play<'_> {
    /// Runs the scenario. Repeats an unfit run, in which the machine did not keep up, at most `again` times. Passes the
    /// packets of the last run to the recorder. Returns the reasons why the results must not be used.
    ///
    /// # Errors
    /// The machine cannot emulate the network, a program failed, or the run was interrupted.
    pub fn run(
        &self,
        again: u32,
        is_interrupted: &AtomicBool,
        recorder: &mut dyn Recorder,
        progress: &mut Clock<'_>,
    ) -> Result<Vec<String>, LabError> {
        let world = World {
            plan: self.prepared.devices_network()?,
            devices: self.scenario.device.len(),
            seed: self.seed,
        };
        let mut tries_left = again;
        let (Played { mut record, connections, mut audit, .. }, insides) = loop {
            let (mut played, insides) = self.once(&world, is_interrupted, progress)?;
            played.audit.judge();
            if played.audit.is_fit() || tries_left == 0 {
                break (played, insides);
            }
            tries_left -= 1;
            (self.tell)(&format!(
                "airpace: {}: {}; the run is made again, {} at most",
                self.scheme.text(),
                played.audit.unfit_because.join("; "),
                count(u64::from(tries_left) + 1, "time")
            ));
        };
        let mut data = Data { scenario: self.scenario, connections: &connections, recorder, packets: vec![] };
        data.packets.resize(self.scenario.flow.len(), 0);
        let replayed = replay(&world, &mut record, &mut data)
            .map_err(LabError::step("the record of packets cannot be read again"))?;
        insides.tell(self.scenario, recorder);
        audit.counts.record_lost += record.lost;
        if record.lost == 0 {
            audit.counts.differing = replayed.differing;
        }
        audit.judge();
        Ok(audit.unfit_because)
    }

    /// The scheme under test, without the label of its transport.
    fn bare_scheme(&self) -> Result<SchemeSpec, LabError> {
        let label = self.scheme.text();
        Ok(SchemeSpec::parse(wire::parts(label).map_or(label, |(scheme, _)| scheme))?)
    }

    /// Runs the scenario once.
    fn once(
        &self,
        world: &World,
        is_interrupted: &AtomicBool,
        progress: &mut Clock<'_>,
    ) -> Result<(Played, Insides), LabError> {
        let has_radio =
            self.scenario.cell.is_some() || self.scenario.trace.as_ref().is_some_and(|trace| trace.telemetry);
        // Paths of Unix sockets have a maximum length; the path of a run folder may be longer.
        let sockets =
            tempfile::tempdir().map_err(LabError::step("cannot make a folder for the radio's sockets"))?;
        let telemetry = Telemetry::open(has_radio.then(|| sockets.path()), None, world.devices)?;
        let radio = |device: usize| telemetry.environment(device).to_vec();
        let radios: Vec<_> = (0..world.devices).map(radio).collect();
        let (mut in_kernel, mut feeders) = (vec![], vec![]);
        if self.over == Over::Kernel {
            for (scheme, device) in needed(self.scenario, &self.bare_scheme()?)? {
                let (name, loaded) = (self.load)(&scheme).map_err(LabError::Refused)?;
                in_kernel.push(loaded);
                let Some(variable) = fed_by(&scheme) else { continue };
                let socket = radios[device].iter().find(|(known, _)| known == variable);
                let Some((_, socket)) = socket else {
                    refuse!("the scenario has no radio to feed `{}` from", scheme.text());
                };
                let words = ["kernel", "feed", name, "--from", socket].map(str::to_owned);
                let spot = Spot::Device(device as u8);
                feeders.push(Player::new(self.executable, &words, spot, self.folder)?);
            }
        }
        let (reports, teller) = match telemetry.start(SystemTime::now())? {
            Some((listeners, teller)) => (Some(listeners), Some(teller)),
            None => (None, None),
        };
        let stage = Stage::make(self.executable, world.devices, Far::Own)?;
        let mut staged = stage.turn(world, Begins::AtOnce, reports, self.folder)?;
        let started = staged.clock.start_instant().as_nanos();
        let far = staged.session.space().address_v4();
        let key = airpace_transport::key::Key::random().map_err(LabError::refused)?;
        let (mut servers, mut clients, mut names) = (vec![], vec![], vec![]);
        for (index, flow) in self.scenario.flow.iter().enumerate() {
            let scheme = flow.scheme.as_deref().map(SchemeSpec::parse).transpose()?;
            let scheme = scheme.map_or_else(|| self.bare_scheme(), Ok)?;
            let over = self.over.of_flow(flow)?;
            names.push(match over {
                Over::Kernel => tcp::INSPECTED.to_vec(),
                Over::Udp | Over::Quic => scheme.inspected()?,
            });
            let at = SocketAddr::new(far.into(), FIRST_PORT + index as u16);
            let secret = ("AIRPACE_KEY".to_owned(), code::print(&key));
            let part = |order: Option<Order>| Part::Flow { over, at, order };
            let mut server = Player::part(self.executable, &part(None), Spot::Far, self.folder)?;
            server.program.environment.push(secret.clone());
            let order = Order {
                flow: if flow.direction == Direction::Downlink { Push::Pull } else { Push::Push },
                scheme: scheme.text().to_owned(),
                traffic: Traffic {
                    zero_ns: Some(started),
                    start_s: flow.start_s,
                    stop_s: Some(flow.stop_s.unwrap_or(f64::INFINITY).min(self.scenario.duration_s)),
                    bytes: None,
                    on_off_s: flow.on_s.zip(flow.off_s),
                    rate_mbps: flow.rate_mbps,
                },
            };
            let device = usize::from(flow.device);
            let spot = Spot::Device(device as u8);
            let mut client = Player::part(self.executable, &part(Some(order)), spot, self.folder)?;
            client.program.environment.push(secret);
            client.program.environment.extend_from_slice(&radios[device]);
            servers.push(server);
            clients.push(client);
        }
        let players = [&feeders[..], &servers, &clients];
        let played = attend(&mut staged, players, self.scenario.duration(), is_interrupted, progress);
        let ended = staged.end();
        if let Some(teller) = teller {
            teller.join().map_err(|_| LabError::Thread("reports"))?;
        }
        drop(in_kernel);
        let said_by =
            |players: Vec<Player>| players.into_iter().map(Player::said).collect::<Result<Vec<_>, _>>();
        let (feeders, servers, clients) = (said_by(feeders)?, said_by(servers)?, said_by(clients)?);
        if let Err(error) = played {
            let said = [&feeders, &servers, &clients]
                .into_iter()
                .flatten()
                .filter_map(|said| said.lines().rfind(|line| !line.starts_with('{')))
                .collect::<Vec<_>>()
                .join("; ");
            if said.is_empty() && is_full(self.folder) {
                let folder = self.folder.display();
                refuse!("almost no space is left in `{folder}`; choose another folder: {error}");
            }
            return Err(if said.is_empty() {
                error
            } else {
                LabError::Program { said: format!("{said}: {error}") }
            });
        }
        let looks = |said: &String| inside::read(said);
        let servers = servers.iter().map(looks).collect::<Result<_, _>>()?;
        let clients = clients.iter().map(looks).collect::<Result<_, _>>()?;
        Ok((ended?, Insides { zero_ns: started, names, servers, clients }))
    }
}

/// Recorded internal states of both endpoints, per flow.
struct Insides {
    /// Start of the scenario, in ns of the monotonic clock.
    zero_ns: u64,
    names: Vec<Vec<&'static str>>,
    servers: Vec<Vec<Look>>,
    clients: Vec<Vec<Look>>,
}

impl Insides {
    fn tell(&self, scenario: &Scenario, recorder: &mut dyn Recorder) {
        for (index, flow) in scenario.flow.iter().enumerate() {
            let ends = (&self.servers[index], &self.clients[index]);
            let (sender, receiver) =
                if flow.direction == Direction::Downlink { ends } else { (ends.1, ends.0) };
            let starts = Time::ZERO + Duration::from_secs_f64(flow.start_s);
            let flow = inside::Flow {
                id: FlowId(index as u16),
                starts,
                names: &self.names[index],
                sender,
                receiver,
            };
            inside::tell(&flow, self.zero_ns, recorder);
        }
    }
}

/// Whether the file system is too full for the programs' output.
fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|there| there.f_bavail.saturating_mul(there.f_frsize) < 1 << 16)
}

/// Starts the programs, and waits until those of the flows have ended. A server whose peer's close message was lost may
/// still wait for this message at the end; it is stopped with the session, as feeders are.
fn attend(
    staged: &mut Staged,
    [feeders, servers, clients]: [&[Player]; 3],
    long: Duration,
    is_interrupted: &AtomicBool,
    progress: &mut Clock<'_>,
) -> Result<(), LabError> {
    let mut far = vec![];
    for server in servers {
        let (number, is_listening) = server.serve(&mut staged.session)?;
        if !is_listening {
            refuse!("a program of the far side does not listen");
        }
        far.push(number);
    }
    let (mut numbers, mut feeding) = (vec![], vec![]);
    for feeder in feeders {
        feeding.push(feeder.start(&mut staged.session)?);
    }
    for client in clients {
        numbers.push(client.start(&mut staged.session)?);
    }
    let stopped = AtomicBool::new(false);
    let progress = std::cell::RefCell::new(progress);
    let all = [&far[..], &numbers].concat();
    let ends = staged.wait(&all, long + ENDS_WITHIN, is_interrupted, |now| {
        if (progress.borrow_mut())(now) == ControlFlow::Break(()) {
            stopped.store(true, Ordering::Relaxed);
        }
    })?;
    let ended = |number: &usize| ends.get(*number).copied().flatten().and_then(|end| end.code);
    if let Some(code) = feeding.iter().find_map(ended) {
        refuse!("the kernel's feeder ended with {code}");
    }
    for number in all {
        match ends[number].and_then(|end| end.code) {
            Some(0) => {}
            Some(code) => refuse!("a program of a flow ended with {code}"),
            None if far.contains(&number) => {}
            None if is_interrupted.load(Ordering::Relaxed) => return Err(LabError::Interrupted),
            None => refuse!("a program of a flow did not end"),
        }
    }
    Ok(())
}

/// Records the data packets of the flows in the form in which a simulator's driver records them.
struct Data<'a> {
    scenario: &'a Scenario,
    connections: &'a Connections,
    recorder: &'a mut dyn Recorder,
    /// Number of packets per flow.
    packets: Vec<u64>,
}

impl Reader for Data<'_> {
    fn departed(&mut self, departure: &Departure) {
        let Some(ends) = self.connections.ends().get(departure.connection as usize) else { return };
        // The device's port identifies the flow in both directions.
        let Some(index) = ends.source_port.checked_sub(FIRST_PORT).map(usize::from) else { return };
        let Some(flow) = self.scenario.flow.get(index) else { return };
        if flow.direction != departure.direction {
            return;
        }
        let packet = Packet {
            flow: FlowId(index as u16),
            device: departure.device,
            number: self.packets[index],
            bytes: departure.bytes,
            sent: departure.arrived,
            ecn: airpace_core::Ecn::NotEct,
        };
        self.packets[index] += 1;
        self.recorder.record(Event::Arrived(Arrived {
            time: departure.due.max(Time::ZERO),
            packet,
            fate: departure.fate,
            duplicate: departure.duplicate,
            propagation_delay: departure.propagation_delay,
        }));
    }

    fn told(&mut self, event: &Event<'_>) {
        self.recorder.record(*event);
    }
}

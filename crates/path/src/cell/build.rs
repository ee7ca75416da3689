//! Builds a cell from a validated plan.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Streams, Time};
use airpace_event::Owner;
use airpace_radio::{CarrierId, PrbSet, Rnti, Scope};

use super::Cell;
use super::adaptation::{AdaptationPlan, CqiScope, LinkAdaptation};
use super::air::Air;
use super::background::{Arrivals, Control, Rntis, SESSION_PLACES, sinrs_db};
use super::bler::Bler;
use super::carrier::Carrier;
use super::carriers::Aggregation;
use super::channel::{Channel, ChannelPlan, Grid};
use super::config::{CellConfig, TelemetryConfig};
use super::handover::Handover;
use super::harq::Harq;
use super::lte;
use super::plan::{CellPlan, DevicePlan};
use super::region::DataRegion;
use super::rlc::Rlc;
use super::scheduler::{RbgGrid, Scheduler};
use super::telemetry::{Account, Telemetry};
use super::uplink::uplink;
use super::user::{Device, RadioLink, Session, Source, User};

impl CellPlan {
    /// Builds the cell. Device `i` is [`DeviceId`](airpace_core::DeviceId)`(i)`. Random numbers come from the streams
    /// `cell.…`.
    pub fn build(&self, streams: &Streams) -> Cell {
        cell(self, streams)
    }
}

fn cell(plan: &CellPlan, streams: &Streams) -> Cell {
    let CellPlan { config, bler, devices, .. } = plan;
    let mut builder = Builder { plan, config, bler, streams, rntis: Rntis::new(streams.stream("cell.rnti")) };
    let mut users: Vec<User> =
        devices.iter().enumerate().map(|(index, device)| builder.device(index, device)).collect();
    let best_block_bits = users.iter().map(best_block_bits).max().unwrap_or(1);
    let carriers = (0..usize::from(config.carriers))
        .map(|index| builder.carrier(index, devices.len(), &mut users))
        .collect();
    let draws_called = |what: &str| {
        let name = |index| format!("cell.device.{index}.{what}");
        (0..devices.len()).map(|index| streams.draws(&name(index))).collect()
    };
    let telemetry = Telemetry::new(&config.telemetry, Scope::Everyone, draws_called("telemetry"));
    let log = Telemetry::new(&TelemetryConfig::default(), Scope::Own, draws_called("log"));
    let mut rntis = builder.rntis;
    let uplink = uplink(plan, &users, streams, &mut rntis);
    let milliseconds = |ms: f64| Duration::from_nanos(libm::round(ms * 1e6) as u64);
    Cell {
        enb_processing: milliseconds(config.enb_processing_ms),
        ue_processing: milliseconds(config.ue_processing_ms),
        config: config.clone(),
        bler: bler.clone(),
        carriers,
        users,
        devices: devices.len(),
        rntis,
        subframe: 0,
        popped_at: Time::ZERO,
        best_block_bits,
        over: VecDeque::new(),
        refused: VecDeque::new(),
        telemetry,
        log,
        uplink,
        is_recording: false,
    }
}

/// Number of bits of a block over the whole band of a user's primary carrier, at the MCS for the maximum mean signal
/// level of the run. The result does not depend on the seed. A user that is always out of coverage has the lowest MCS.
fn best_block_bits(user: &User) -> u64 {
    let link = &user.links[0];
    let mcs = link.adaptation.nominal_mcs(link.channel.best_sinr_db(), 1).unwrap_or(0);
    link.block_size(mcs, DataRegion::Lte { cfi: 1 }).bits(link.channel.grid().prbs)
}

struct Builder<'a> {
    plan: &'a CellPlan,
    config: &'a CellConfig,
    bler: &'a Bler,
    streams: &'a Streams,
    rntis: Rntis,
}

impl Builder<'_> {
    fn device(&mut self, index: usize, plan: &DevicePlan) -> User {
        let device = &plan.config;
        let all: Vec<u8> = (0..self.config.carriers).collect();
        let usable = if device.carriers.is_empty() { &all } else { &device.carriers };
        let links = usable.iter().map(|&carrier| {
            let name = format!("cell.device.{index}.carrier.{carrier}");
            self.link(carrier, &plan.channel, &plan.adaptation, &name)
        });
        let links: Vec<_> = links.collect();
        let rng = self.streams.stream(&format!("cell.device.{index}.handover"));
        let source = Source::Device(Box::new(Device {
            rlc: Rlc::new(&self.config.rlc, Bytes(device.queue_bytes)),
            aggregation: Aggregation::new(&self.config.aggregation, links.len()),
            handover: Handover::new(&self.config.handover, &device.handover_s, rng),
        }));
        let owner = Owner::Device(airpace_core::DeviceId(index as u16));
        User { rnti: self.rntis.assign(), owner, source, links }
    }

    fn link(&self, carrier: u8, channel: &ChannelPlan, adaptation: &AdaptationPlan, name: &str) -> RadioLink {
        let grid = Grid::lte(self.config.carrier_prbs(carrier.into()));
        let frequency_mhz = self.config.carrier_frequency_ghz(carrier.into()) * 1e3;
        let mut channel = Channel::new(channel, grid, frequency_mhz, self.streams, name);
        let link_adaptation =
            LinkAdaptation::new(adaptation, self.bler, grid, self.streams, &format!("{name}.adaptation"));
        let (table, adaptation) = (adaptation.table(), adaptation.config());
        let is_selective = !channel.at(0).rbg_sinr_db.is_empty();
        RadioLink {
            carrier,
            has_subbands: is_selective && adaptation.cqi_scope == CqiScope::Subband,
            channel,
            adaptation: link_adaptation,
            harq: Harq::new(lte::PROCESSES),
            table,
            luck: self.streams.draws(&format!("{name}.errors")),
            average_bits: 1.0,
            wanted_in: None,
            served_in: None,
            served_prbs: 0,
            decoded: None,
        }
    }

    /// Builds a carrier and the background users on it.
    fn carrier(&mut self, index: usize, devices: usize, users: &mut Vec<User>) -> Carrier {
        let background = &self.config.background;
        let grid = RbgGrid::new(self.config.carrier_prbs(index), self.config.lena_compat);
        let mut live = Vec::new();
        for (user, place) in (0..).zip(&users[..devices]) {
            let links = (0..).zip(&place.links);
            live.extend(
                links.filter(|(_, link)| usize::from(link.carrier) == index).map(|(link, _)| (user, link)),
            );
        }
        for sinr_db in sinrs_db(
            background,
            background.full_buffer.into(),
            self.streams,
            &format!("cell.{index}.endless"),
        ) {
            live.push((users.len() as u16, 0));
            let user =
                self.background_user(index, users.len(), users.len() - devices, sinr_db, Source::Endless);
            users.push(user);
        }
        let places = if background.load() > 0.0 { SESSION_PLACES } else { 0 };
        let mut vacant = Vec::new();
        let mut prbs_per_bit = 0.0;
        for sinr_db in sinrs_db(background, places, self.streams, &format!("cell.{index}.sessions")) {
            vacant.push(users.len() as u16);
            let nobody = Source::Session(Session::default());
            let user = self.background_user(index, users.len(), users.len() - devices, sinr_db, nobody);
            prbs_per_bit += f64::from(grid.prbs) / best_block_bits(&user) as f64 / places as f64;
            users.push(user);
        }
        let name = |what: &str| format!("cell.{index}.{what}");
        let control_rntis: Vec<Rnti> = (0..background.population()).map(|_| self.rntis.assign()).collect();
        Carrier {
            air: Air::Lte(lte::Downlink::new(self.config)),
            scheduler: Scheduler::new(
                self.config.scheduler,
                self.config.pf_time_constant_ms,
                self.config.max_users_per_subframe,
                &grid,
                self.config.lena_compat,
                self.streams.draws(&name("scheduler")),
            ),
            control: Control::new(background, control_rntis, self.streams.stream(&name("control"))),
            arrivals: Arrivals::new(
                background,
                grid.prbs,
                prbs_per_bit,
                self.streams.draws(&name("arrivals")),
            ),
            live,
            vacant,
            due: VecDeque::new(),
            feedback: VecDeque::new(),
            account: Account::new(CarrierId(index as u8), grid.prbs),
            used: PrbSet::EMPTY,
            wanting: 0,
            uplink_grants: 0,
            candidates: Vec::new(),
            rates: Vec::new(),
            grid,
        }
    }

    fn background_user(
        &mut self,
        carrier: usize,
        user: usize,
        index: usize,
        sinr_db: f64,
        source: Source,
    ) -> User {
        let channel = ChannelPlan::at_sinr(sinr_db, self.config.background.layers);
        let link =
            self.link(carrier as u8, &channel, &self.plan.adaptation, &format!("cell.background.{user}"));
        User { rnti: self.rntis.assign(), owner: Owner::Background(index as u16), source, links: vec![link] }
    }
}

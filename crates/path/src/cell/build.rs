//! Builds a cell from a validated plan.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Streams, Time};
use airpace_event::Owner;
use airpace_radio::{CarrierId, PrbSet, Rnti, Scope};

use super::adaptation::{CqiScope, LinkAdaptation};
use super::air::Air;
use super::background::{Arrivals, Control, SESSION_PLACES, sinrs_db};
use super::bler::Bler;
use super::carrier::{Carrier, SlotShare};
use super::carriers::Aggregation;
use super::channel::{Channel, ChannelPlan, Grid};
use super::config::{CellConfig, Rat, TelemetryConfig};
use super::device::{Device, Leg};
use super::handover::{Coverage, Handover};
use super::harq::Harq;
use super::life_cycle::LifeCycle;
use super::plan::{AdaptationPlans, CellPlan, DevicePlan};
use super::region::DataRegion;
use super::rlc::{Framing, Rlc};
use super::rntis::Rntis;
use super::scheduler::{RbgGrid, Scheduler};
use super::telemetry::{Account, Telemetry};
use super::uplink::uplink;
use super::user::{RadioLink, RecentPrbs, Session, Source, User};
use super::{BestBlock, Cell, Exits, lte, nr};

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
    let mut airs: Vec<Air> = (0..config.carriers.into()).map(|index| air(config, index)).collect();
    let best_blocks = users.iter().flat_map(|user| best_blocks(user, &airs)).collect();
    let carriers: Vec<Carrier> = (0..)
        .zip(airs.drain(..))
        .map(|(index, air)| builder.carrier(index, air, devices.len(), &mut users))
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
        ticks_per_ms: carriers.iter().map(|carrier| carrier.air.slots_per_ms()).max().unwrap_or(1),
        carriers,
        users,
        devices: devices.len(),
        rntis,
        tick: 0,
        popped_at: Time::ZERO,
        best_blocks,
        over: Exits::default(),
        refused: VecDeque::new(),
        telemetry,
        log,
        uplink,
        is_recording: false,
    }
}

/// Air interface of a carrier of a valid configuration.
fn air(config: &CellConfig, carrier: usize) -> Air {
    match config.nr_carrier_of(carrier) {
        Some(nr) => Air::Nr(Box::new(nr::Downlink::new(&nr, &config.nr))),
        None => Air::Lte(lte::Downlink::new(config)),
    }
}

/// The largest block of the primary carrier of each of a device's legs: a block over the whole band, at the MCS for the
/// maximum mean signal level of the run. The result does not depend on the seed. A device that is always out of coverage has
/// the lowest MCS.
fn best_blocks(user: &User, airs: &[Air]) -> Vec<BestBlock> {
    let Source::Device(device) = &user.source else { return Vec::new() };
    let primary = device.legs().iter().map(|leg| &user.links[leg.links.start]);
    primary.map(|link| best_block_on(link, &airs[usize::from(link.carrier)])).collect()
}

/// The largest block of a link to a carrier with this air interface.
fn best_block_on(link: &RadioLink, air: &Air) -> BestBlock {
    let mcs = link.adaptation.nominal_mcs(link.channel.best_sinr_db(), 1).unwrap_or(0);
    let region = match air {
        Air::Lte(_) => DataRegion::Lte { cfi: 1 },
        Air::Nr(air) => air.full_region(),
    };
    let bits = link.block_size(mcs, region).bits(link.channel.grid().prbs);
    BestBlock { carrier: link.carrier, bits }
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
        let by_leg = self.config.carriers_by_leg(&device.carriers, !device.without_nr_s.is_empty());
        let links = by_leg.iter().flatten().map(|&carrier| {
            let name = format!("cell.device.{index}.carrier.{carrier}");
            self.link(carrier, &plan.channel, &plan.adaptation, &name)
        });
        let links: Vec<_> = links.collect();
        let rng = self.streams.stream(&format!("cell.device.{index}.handover"));
        let limit = Bytes(device.queue_bytes);
        let mut first = 0;
        let legs: Vec<Leg> = by_leg
            .iter()
            .map(|carriers| {
                let links = first..first + carriers.len();
                first = links.end;
                let framing = Framing::new(self.config.carrier_rat(carriers[0].into()), &self.config.rlc);
                Leg {
                    rlc: Rlc::new(&self.config.rlc, framing, limit),
                    aggregation: Aggregation::new(&self.config.aggregation, links.len()),
                    links,
                    usable_from: Time::ZERO,
                }
            })
            .collect();
        let handover = Handover::new(&self.config.handover, &device.handover_s, rng);
        let rng = self.streams.stream(&format!("cell.device.{index}.life_cycle"));
        let life = LifeCycle::new(&self.config.rrc, &self.config.drx, rng);
        let coverage = Coverage::without_nr(&device.without_nr_s);
        let dual = self.config.dual_connectivity();
        let source = Source::Device(Box::new(Device::new(legs, &dual, handover, coverage, life, limit)));
        let owner = Owner::Device(airpace_core::DeviceId(index as u16));
        User { rnti: self.rntis.assign(), owner, source, links }
    }

    fn link(
        &self,
        carrier: u8,
        channel: &ChannelPlan,
        adaptation: &AdaptationPlans,
        name: &str,
    ) -> RadioLink {
        let index = usize::from(carrier);
        let grid = self.grid(index);
        let nr = &self.config.nr;
        let (channel, adaptation, processes, code_block_groups) = match self.config.carrier_rat(index) {
            Rat::Lte => (channel.with_at_most(2), &adaptation.lte, lte::PROCESSES, 0),
            Rat::Nr => (channel.clone(), &adaptation.nr, nr.harq_processes.into(), nr.code_block_groups),
        };
        let frequency_mhz = self.config.carrier_frequency_ghz(index) * 1e3;
        let channel = channel.losses_if(self.config.is_blocked(index));
        let mut channel = Channel::new(&channel, grid, frequency_mhz, self.streams, name);
        let is_selective = !channel.at(0).rbg_sinr_db.is_empty();
        RadioLink {
            carrier,
            has_subbands: is_selective && adaptation.config().cqi_scope == CqiScope::Subband,
            channel,
            adaptation: LinkAdaptation::new(
                adaptation,
                self.bler,
                grid,
                self.streams,
                &format!("{name}.adaptation"),
            ),
            harq: Harq::new(processes),
            table: adaptation.table(),
            code_block_groups,
            luck: self.streams.draws(&format!("{name}.errors")),
            average_bits: 1.0,
            wanted_in: None,
            served_in: None,
            decoded: None,
            granted: RecentPrbs::default(),
        }
    }

    /// The PRBs of a carrier.
    fn grid(&self, carrier: usize) -> Grid {
        match self.config.nr_carrier_of(carrier) {
            Some(nr) => Grid::nr(nr.prbs, nr.numerology),
            None => Grid::lte(self.config.carrier_prbs(carrier)),
        }
    }

    /// Builds a carrier and the background users on it.
    fn carrier(&mut self, index: usize, air: Air, devices: usize, users: &mut Vec<User>) -> Carrier {
        let background = &self.config.background;
        let grid = match &air {
            Air::Lte(_) => RbgGrid::new(self.config.carrier_prbs(index), self.config.lena_compat),
            Air::Nr(_) => RbgGrid::of(self.grid(index)),
        };
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
            let bits = best_block_on(&user.links[0], &air).bits;
            prbs_per_bit += f64::from(grid.prbs) / bits as f64 / places as f64;
            users.push(user);
        }
        let name = |what: &str| format!("cell.{index}.{what}");
        let control_rntis: Vec<Rnti> = (0..background.population()).map(|_| self.rntis.assign()).collect();
        Carrier {
            scheduler: Scheduler::new(
                self.config.scheduler,
                self.config.pf_time_constant_ms * air.data_slots_per_ms(),
                self.config.max_users_per_subframe,
                &grid,
                self.config.lena_compat,
                self.streams.draws(&name("scheduler")),
            ),
            control: Control::new(background, control_rntis, self.streams.stream(&name("control"))),
            arrivals: Arrivals::new(
                background,
                f64::from(grid.prbs) * air.full_slots_per_ms(),
                prbs_per_bit,
                self.streams.draws(&name("arrivals")),
            ),
            live,
            vacant,
            due: VecDeque::new(),
            feedback: VecDeque::new(),
            accounts: (0..air.slots_per_ms())
                .map(|_| Account::new(CarrierId(index as u8), grid.prbs))
                .collect(),
            shares: (0..air.slots_per_ms()).map(|slot| SlotShare::unused(slot, air.region(slot))).collect(),
            air,
            used: PrbSet::EMPTY,
            last_data_slot: None,
            wanting: 0,
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

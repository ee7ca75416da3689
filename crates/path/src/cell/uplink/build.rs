//! Builds an uplink from a validated plan.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Streams};
use airpace_event::Owner;
use airpace_radio::PrbSet;

use super::super::background::{Arrivals, SESSION_PLACES, sinrs_db};
use super::super::bler::Bler;
use super::super::carriers::Aggregation;
use super::super::channel::{Channel, ChannelPlan, Grid, StreamNames};
use super::super::config::{CellConfig, Rat};
use super::super::nr;
use super::super::plan::{CellPlan, DevicePlan};
use super::super::rlc::{Framing, Rlc};
use super::super::rntis::Rntis;
use super::super::scheduler::{RbgGrid, Scheduler};
use super::super::user::{RecentPrbs, Session, User};
use super::super::{BestBlock, Exits};
use super::Uplink;
use super::adaptation::{Sounding, UplinkTable};
use super::air::UplinkAir;
use super::buffer_status::REPORT_BYTES;
use super::carrier::{PUSCH_SLOTS, SlotShare, UplinkCarrier};
use super::knowledge::Knowledge;
use super::sender::{Sender, SenderLeg};
use super::user::{Shared, Source, UplinkLink, UplinkUser};

/// The uplink of a cell. `downlink` contains the downlink's users, the scenario's `devices` first.
pub(in super::super) fn uplink(
    plan: &CellPlan,
    downlink: &[User],
    streams: &Streams,
    rntis: &mut Rntis,
) -> Uplink {
    let CellPlan { config, bler, devices, .. } = plan;
    let shared = Shared { config: config.uplink.clone(), bler: bler.clone() };
    let builder = Builder { config, bler, streams };
    let mut users = Vec::new();
    for (index, (device, user)) in devices.iter().zip(downlink).enumerate() {
        users.push(builder.device(index, device, user));
    }
    let carriers: Vec<UplinkCarrier> = (0..usize::from(config.carriers))
        .map(|carrier| builder.carrier(carrier, downlink.len(), devices.len(), &mut users, rntis))
        .collect();
    let milliseconds = |ms: f64| Duration::from_nanos(libm::round(ms * 1e6) as u64);
    Uplink {
        best_blocks: users[..devices.len()].iter().flat_map(|user| best_blocks(user, &carriers)).collect(),
        ticks_per_ms: carriers.iter().map(|carrier| carrier.air.slots_per_ms()).max().unwrap_or(1),
        carriers,
        users,
        devices: devices.len(),
        is_awake: false,
        enb_processing: milliseconds(config.enb_processing_ms),
        ue_processing: milliseconds(config.ue_processing_ms),
        over: Exits::default(),
        refused: VecDeque::new(),
        shared,
    }
}

/// The largest block on the first carrier of each of a device's legs.
fn best_blocks(user: &UplinkUser, carriers: &[UplinkCarrier]) -> Vec<BestBlock> {
    let Source::Device(sender, _) = &user.source else { return Vec::new() };
    let best_block = |place: usize| {
        let link = &user.links[place];
        let UplinkCarrier { air, table, region, .. } = &carriers[usize::from(link.carrier)];
        BestBlock { carrier: link.carrier, bits: best_block_bits(link, air, table, *region) }
    };
    sender.first_links().map(best_block).collect()
}

/// Number of bits of the largest block of a link at the maximum mean signal level of the run, without shadowing and
/// fading. A user that is always out of coverage has the lowest MCS.
fn best_block_bits(link: &UplinkLink, air: &UplinkAir, table: &UplinkTable, region: PrbSet) -> u64 {
    let most = air.size_within(region.len());
    let sinr_db = link.channel.best_sinr_db();
    let sizes = (1..=most).filter(|&prbs| air.size_within(prbs) == prbs);
    let bits = sizes.filter_map(|prbs| {
        let mcs = link.sounding.mcs_or_of(table, prbs, sinr_db)?;
        Some(table.block(mcs, prbs).bits.0)
    });
    bits.max().unwrap_or_else(|| table.block(0, most).bits.0)
}

/// The PRBs of a carrier that carry data.
fn region(config: &CellConfig, carrier: usize) -> PrbSet {
    let prbs = prbs_of(config, carrier);
    let edge = config.uplink.pucch_prbs_of(prbs);
    PrbSet::run(edge, prbs - 2 * edge)
}

/// Number of PRBs of an uplink carrier. The uplink of an NR carrier is as wide as its downlink.
fn prbs_of(config: &CellConfig, carrier: usize) -> u16 {
    let of_lte = config.uplink.prbs.filter(|_| config.carrier_rat(carrier) == Rat::Lte);
    of_lte.unwrap_or(config.carrier_prbs(carrier))
}

/// The PRBs of an uplink carrier and their groups.
fn grid_of(config: &CellConfig, carrier: usize) -> Grid {
    let prbs = prbs_of(config, carrier);
    match config.nr_carrier_of(carrier) {
        Some(nr) => Grid::nr(prbs, nr.numerology),
        None => Grid::lte(prbs),
    }
}

struct Builder<'a> {
    config: &'a CellConfig,
    bler: &'a Bler,
    streams: &'a Streams,
}

impl Builder<'_> {
    fn device(&self, index: usize, device: &DevicePlan, downlink: &User) -> UplinkUser {
        let uplink = &self.config.uplink;
        let usable: Vec<u8> = downlink.links.iter().map(|link| link.carrier).collect();
        let mut by_leg = self.config.uplink_legs(&usable, !device.config.without_nr_s.is_empty());
        by_leg.iter_mut().for_each(|carriers| carriers.truncate(uplink.carriers.into()));
        let links = by_leg.iter().flatten().map(|&carrier| {
            let downlink = format!("cell.device.{index}.carrier.{carrier}");
            let own = format!("cell.device.{index}.uplink.{carrier}");
            self.link(
                carrier,
                &device.channel,
                StreamNames { shadowing: &downlink, fading: &own },
                uplink.sinr_offset_db,
            )
        });
        let links: Vec<_> = links.collect();
        let mut first = 0;
        let legs = by_leg.iter().map(|carriers| {
            let links = first..first + carriers.len();
            first = links.end;
            let rat = self.config.carrier_rat(carriers[0].into());
            let aggregation = Aggregation::new(&self.config.aggregation, links.len());
            SenderLeg { rat, links, aggregation, framing: Framing::new(rat, &self.config.rlc) }
        });
        let legs: Vec<SenderLeg> = legs.collect();
        let rlc = Rlc::new(&self.config.rlc, legs[0].framing, Bytes(uplink.queue_bytes));
        let rng = self.streams.stream(&format!("cell.device.{index}.uplink.sr"));
        let sender = Box::new(Sender::new(uplink, rlc, legs, rng));
        UplinkUser {
            rnti: downlink.rnti,
            owner: Owner::Device(DeviceId(index as u16)),
            source: Source::Device(sender, Knowledge::default()),
            links,
        }
    }

    /// Builds the link of a user to a carrier. The names of the link's other random streams start with the name of the
    /// fading stream.
    fn link(&self, carrier: u8, channel: &ChannelPlan, names: StreamNames<'_>, offset_db: f64) -> UplinkLink {
        let grid = grid_of(self.config, carrier.into());
        let frequency_mhz = self.config.carrier_frequency_ghz(carrier.into()) * 1e3;
        let own = names.fading;
        let channel = channel.losses_if(self.config.is_blocked(carrier.into()));
        let channel = Channel::opposite(&channel, grid, frequency_mhz, self.streams, names, offset_db);
        UplinkLink {
            carrier,
            channel,
            sounding: Sounding::new(
                &self.config.uplink,
                &self.config.adaptation,
                self.bler,
                grid,
                self.streams,
                &format!("{own}.sounding"),
            ),
            luck: self.streams.draws(&format!("{own}.errors")),
            indicators: 0,
            busy: 0,
            average_bits: 1.0,
            wanted_in: None,
            sent: RecentPrbs::default(),
        }
    }

    /// Builds a carrier and its background users, whose numbers follow those of the downlink's users. `first` is the
    /// number of downlink users.
    fn carrier(
        &self,
        index: usize,
        first: usize,
        devices: usize,
        users: &mut Vec<UplinkUser>,
        rntis: &mut Rntis,
    ) -> UplinkCarrier {
        let region = region(self.config, index);
        let step_prbs = grid_of(self.config, index).rbg_prbs;
        let (air, table) = match self.config.nr_carrier_of(index) {
            Some(nr) => {
                let air = nr::Uplink::new(&nr, &self.config.nr);
                let table = self.config.nr.uplink_table();
                let table = UplinkTable::nr(&self.config.uplink, table, air.res_per_prb(), self.bler);
                (UplinkAir::Nr(Box::new(air)), table)
            }
            None => (UplinkAir::Lte, UplinkTable::lte(&self.config.uplink, self.bler)),
        };
        let name = |what: &str| format!("cell.{index}.uplink.{what}");
        let mut live = Vec::new();
        for (user, place) in (0..).zip(&users[..devices]) {
            let links = (0..).zip(&place.links).filter(|(_, link)| usize::from(link.carrier) == index);
            live.extend(links.map(|(link, _)| (user, link)));
        }
        let background = self.config.uplink.background.as_background();
        let places = if background.load() > 0.0 { SESSION_PLACES } else { 0 };
        let endless = sinrs_db(&background, background.full_buffer.into(), self.streams, &name("endless"));
        let sessions = sinrs_db(&background, places, self.streams, &name("sessions"));
        let mut vacant = Vec::new();
        let mut prbs_per_bit = 0.0;
        let sources = endless.into_iter().map(|sinr_db| (sinr_db, Source::Endless));
        let nobody = |sinr_db| (sinr_db, Source::Session(Session::default(), 0));
        for (sinr_db, source) in sources.chain(sessions.into_iter().map(nobody)) {
            let channel = ChannelPlan::at_sinr(sinr_db, 1);
            let user = users.len();
            let own = format!("cell.uplink.background.{}", user - devices);
            let user_of = UplinkUser {
                rnti: rntis.assign(),
                owner: Owner::Background((first + user - 2 * devices) as u16),
                links: vec![self.link(
                    index as u8,
                    &channel,
                    StreamNames { shadowing: &own, fading: &own },
                    0.0,
                )],
                source,
            };
            if matches!(user_of.source, Source::Endless) {
                live.push((user as u16, 0));
            } else {
                vacant.push(user as u16);
                let bits = best_block_bits(&user_of.links[0], &air, &table, region);
                prbs_per_bit += f64::from(region.len()) / bits as f64 / places as f64;
            }
            users.push(user_of);
        }
        let rbgs =
            RbgGrid { prbs: region.len(), rbg_prbs: step_prbs, rbgs: region.len().div_ceil(step_prbs) };
        let rat = self.config.carrier_rat(index);
        let framing = Framing::new(rat, &self.config.rlc);
        let configured_grant = self.config.nr.configured_grant.filter(|_| rat == Rat::Nr);
        let share = |slot| SlotShare { slot, has_data: air.has_data(slot), idle_prbs: region.len() };
        UplinkCarrier {
            shares: (0..air.slots_per_ms()).map(share).collect(),
            framing,
            header_bytes: u64::from(framing.per_block + framing.per_pdu + REPORT_BYTES),
            region,
            step_prbs,
            scheduler: Scheduler::new(
                self.config.scheduler,
                self.config.pf_time_constant_ms * air.data_slots_per_ms(),
                self.config.max_users_per_subframe,
                &rbgs,
                false,
                self.streams.draws(&name("scheduler")),
            ),
            arrivals: Arrivals::new(
                &background,
                f64::from(region.len()) * air.data_slots_per_ms(),
                prbs_per_bit,
                self.streams.draws(&name("arrivals")),
            ),
            live,
            vacant,
            air,
            table,
            pusch: vec![Vec::new(); PUSCH_SLOTS],
            lost: VecDeque::new(),
            feedback: VecDeque::new(),
            used: PrbSet::EMPTY,
            unsent: PrbSet::EMPTY,
            configured_grant,
            wanting: 0,
            granted_in: None,
            grants: Vec::new(),
            candidates: Vec::new(),
            spare: Vec::new(),
        }
    }
}

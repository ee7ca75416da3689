//! Busy cells of our own transmitter: users in many modes with random grants.
#![allow(dead_code)] // each test uses its part

use airpace_core::tables::lte;
use airpace_core::{Rng, Streams};
use airpace_phy::dci::{
    Allocation, Audience, Block, Carrier, Downlink, Extras, Format, Message, Spatial, Uplink, pack,
};
use airpace_phy::encode::{Subframe, Transmitter};
use airpace_phy::impair::{Conditions, DelayProfile, Impair, noise_power};
use airpace_phy::pdcch::{CceRange, TransmittedMessage, in_common_space, in_search_space};
use airpace_phy::{Cell, Complex32};
use airpace_radio::{PrbSet, Rnti};

/// Several users, each with one transmission mode. Selects random users and random grants for each subframe.
pub struct Crowd {
    carrier: Carrier,
    users: Vec<(Rnti, Format)>,
    rng: Rng,
    /// Optional fields of Release 10 that every user has.
    pub extras: Extras,
}

impl Crowd {
    /// Creates `users` users with random RNTIs and modes.
    pub fn new(carrier: Carrier, users: usize, seed: u64) -> Crowd {
        let mut rng = Streams::new(seed).stream("phy.crowd");
        let modes = [Format::F1, Format::F1, Format::F2, Format::F2A, Format::F1D];
        let user = |rng: &mut Rng| (Rnti(0x3D + rng.below(0xFF00) as u16), modes[rng.below(5) as usize]);
        Crowd { carrier, users: (0..users).map(|_| user(&mut rng)).collect(), rng, extras: Extras::NONE }
    }

    fn message(&mut self, mode: Format, free: &mut u32) -> Option<Message> {
        let rng = &mut self.rng;
        let block = |rng: &mut Rng| Block { mcs: rng.below(29) as u8, ndi: rng.chance(0.5), rv: 0 };
        if rng.chance(0.4) {
            let start = rng.below(u64::from(self.carrier.prbs)) as u16;
            let len =
                lte::pusch_size_within(1 + rng.below(u64::from(self.carrier.prbs - start).min(12)) as u16);
            return Some(Message::Uplink(Uplink {
                carrier: self.extras.carrier_indicator.then_some(0),
                hopping: None,
                start,
                len,
                mcs: rng.below(29) as u8,
                ndi: rng.chance(0.5),
                tpc: 1,
                cyclic_shift: rng.below(8) as u8,
                csi_request: 0,
                srs_request: self.extras.srs_request.then_some(false),
            }));
        }
        // Select an RBG that no user has yet.
        let groups = u32::from(lte::rbg_count(self.carrier.prbs));
        let group = free.trailing_ones();
        if group >= groups {
            return None;
        }
        *free |= 1 << group;
        let prbs = PrbSet::of_rbg(self.carrier.prbs, group as u16);
        let (start, len) = prbs.runs().next()?;
        let format = if rng.chance(0.2) { Format::F1A } else { mode };
        let is_run = matches!(format, Format::F1A | Format::F1D);
        let allocation = if is_run {
            Allocation::Run { start, len }
        } else {
            Allocation::Groups { map: 1 << (groups - 1 - group) }
        };
        Some(Message::Downlink(Downlink {
            format,
            carrier: self.extras.carrier_indicator.then_some(0),
            allocation,
            first: block(rng),
            second: matches!(format, Format::F2 | Format::F2A).then(|| block(rng)),
            harq: rng.below(8) as u8,
            tpc: rng.below(4) as u8,
            spatial: match format {
                Format::F1D => Spatial::Shared { tpmi: rng.below(4) as u8, offset: rng.chance(0.5) },
                Format::F2 | Format::F2A => Spatial::Layers { swap: rng.chance(0.5), precoding: 0 },
                _ => Spatial::Plain,
            },
            srs_request: (self.extras.srs_request && format == Format::F1A).then_some(false),
        }))
    }

    /// Messages of one subframe. Selects `tries` times a random user, and creates a grant if its search space has a free
    /// place.
    pub fn subframe(&mut self, number: usize, cces: usize, tries: usize) -> Vec<TransmittedMessage> {
        let mut sent: Vec<TransmittedMessage> = Vec::new();
        let mut free = 0;
        for _ in 0..tries {
            let (rnti, mode) = self.users[self.rng.below(self.users.len() as u64) as usize];
            if sent.iter().any(|other| other.rnti == rnti) {
                continue;
            }
            let Some(message) = self.message(mode, &mut free) else { continue };
            let payload = pack(&self.carrier, self.extras, Audience::User, &message);
            let bits = usize::from(payload.len()) + 16;
            let places: Vec<CceRange> = CceRange::all(cces)
                .filter(|place| 4 * bits <= 3 * place.bits().len())
                .filter(|place| in_search_space(rnti, number, cces, *place))
                // Messages of the common search space have no user-specific fields.
                .filter(|place| self.extras == Extras::NONE || !in_common_space(*place, cces))
                .filter(|place| !sent.iter().any(|other| other.place.overlaps(*place)))
                .collect();
            if !places.is_empty() {
                let place = places[self.rng.below(places.len() as u64) as usize];
                sent.push(TransmittedMessage { rnti, payload, place });
            }
        }
        sent.sort_by_key(|message| message.place);
        sent
    }
}

/// Channels from the ports of a cell to the receive antenna.
const GAINS: [Complex32; 4] = [
    Complex32::new(0.8, 0.3),
    Complex32::new(-0.2, 0.7),
    Complex32::new(0.5, -0.6),
    Complex32::new(-0.9, -0.1),
];

/// A cell with several users, and its reception conditions.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub cell: Cell,
    pub fft_size: usize,
    pub users: usize,
    /// Number of attempted grants per subframe.
    pub tries: usize,
    /// Optional fields of Release 10 that every user has.
    pub extras: Extras,
    pub snr_db: f64,
    /// Fading profile of the ports, and Doppler shift (Hz); `None` for static paths.
    pub fading: Option<(DelayProfile, f64)>,
    pub subframes: u64,
    pub seed: u64,
}

impl Scene {
    /// Received samples, and transmitted messages by subframe.
    pub fn play(&self) -> (Vec<Complex32>, Vec<(u64, TransmittedMessage)>) {
        let carrier = Carrier::symmetric(self.cell.bandwidth.prbs(), self.cell.ports);
        let mut crowd = Crowd::new(carrier, self.users, self.seed);
        crowd.extras = self.extras;
        let streams = Streams::new(self.seed);
        let mut noise = streams.stream("phy.noise");
        // A resource element has unit power before the channel.
        let amplitude = 1.0 / (self.fft_size as f32).sqrt();
        let mut transmitter = Transmitter::new(self.cell, self.fft_size, amplitude).expect("an FFT size");
        let ports = self.cell.ports.count();
        let mut fading = self.fading.map(|(profile, doppler_hz)| {
            let still = Conditions::perfect(self.fft_size as f64 * 15_000.0);
            let noise_power = noise_power(self.snr_db, self.fft_size, amplitude);
            Impair::new(Conditions { profile, doppler_hz, noise_power, ..still }, ports, &streams)
        });
        let power = GAINS[..ports].iter().map(|gain| f64::from(gain.norm_sqr())).sum::<f64>() / ports as f64;
        let sigma = libm::sqrt(power / 2.0 * libm::pow(10.0, -self.snr_db / 10.0)) as f32;
        let (mut samples, mut all) = (Vec::new(), Vec::new());
        for index in 0..self.subframes {
            let number = (index % 10) as usize;
            let least = self.cell.least_cfi();
            let cfi = least + crowd.rng.below(u64::from(4 - least)) as u8;
            let sent = crowd.subframe(number, transmitter.encoder().cces(cfi), self.tries);
            let sfn = (index / 10) as u16;
            let subframe = Subframe { sfn, number, cfi, messages: &sent, answers: &[], data: &[] };
            let mut out = vec![Vec::new(); ports];
            transmitter.send(&subframe, &mut out).expect("a subframe that can be sent");
            all.extend(sent.into_iter().map(|sent| (index, sent)));
            if let Some(fading) = &mut fading {
                fading.push(&out, &mut samples);
                continue;
            }
            samples.extend((0..out[0].len()).map(|at| {
                let n = Complex32::new(noise.normal() as f32, noise.normal() as f32) * sigma;
                out.iter().zip(GAINS).map(|(port, gain)| port[at] * gain).sum::<Complex32>() + n
            }));
        }
        (samples, all)
    }
}

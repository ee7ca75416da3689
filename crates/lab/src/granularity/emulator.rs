//! Emulated modem on a pseudo-terminal. It sends an RSRP packet every 10 ms, and the other packets of a busy phone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_core::{Rng, Streams, Time};
use airpace_diag::{Buffering, LogCode, ModemOptions, Radio, Stamp};
use airpace_modem::modem::{Door, Next, Stamped, TimedPacket, serve};
use od::clock::now_ns;

use super::kinds::{Kind, further};
use crate::error::{LabError, refuse};

/// Interval at which a modem reports RSRP.
///
/// Source: BISCAY §5.1 (the most frequent message)
pub const RSRP_EVERY: Duration = Duration::from_millis(10);

/// Packets that the modem sends.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of packets per second, RSRP included.
    pub packets_per_s: u32,
    /// Time for which the modem buffers packets.
    pub hold: Duration,
    /// Seed of the values.
    pub seed: u64,
    /// Number of kinds of packets that the daemon reads: RSRP, then grants, then others.
    pub kinds: usize,
}

/// A modem that runs on its own thread. Dropping the value stops the modem.
pub struct Emulator {
    device: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Starts a modem.
    ///
    /// # Errors
    /// The system offers no pseudo-terminals, or no thread can be started.
    pub fn start(load: Load) -> Result<Emulator, LabError> {
        let mut door = Door::terminal().map_err(LabError::step("cannot open a pseudo-terminal"))?;
        let Door::Terminal { path, .. } = &door else { refuse!("the opened port is not a pseudo-terminal") };
        let device = PathBuf::from(path);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let options =
            ModemOptions { buffering: Buffering::THRESHOLD, hold: load.hold, ..ModemOptions::default() };
        let mut packets = Packets::new(load);
        let speak = move || {
            // An error of the port is ignored here: the host detects the error, because the host receives nothing more.
            let _ = serve(&mut door, options, false, || Next::Packet(packets.next(now_ns())), &over, |_| {});
        };
        let thread = std::thread::Builder::new().name("modem".to_owned()).spawn(speak);
        let thread = thread.map_err(LabError::step("the system gives no further thread"))?;
        Ok(Emulator { device, is_over, thread: Some(thread) })
    }

    /// The path of the port that a host opens.
    pub fn device(&self) -> &Path {
        &self.device
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Converts a time of the host to the modem's clock. The result is years after 1980, as if the modem had received the
/// time from a network.
pub fn modem_ns(now_ns: u64) -> u64 {
    now_ns + 46 * 365 * 86_400 * 1_000_000_000
}

/// Generates the packets in order of time.
struct Packets {
    /// Time of the first request, in ns of the host's clock; `None` before the first request. Packet times are relative
    /// to this time.
    began_ns: Option<u64>,
    /// Due time of the next packet, relative to `began_ns`.
    due: Time,
    every: Duration,
    rsrp_due: Time,
    rsrp_dbm: f64,
    rng: Rng,
    /// Kinds of packets that are sent in turn with grants.
    further: Vec<Kind>,
    /// Number of packets without RSRP so far.
    others: usize,
}

impl Packets {
    fn new(load: Load) -> Packets {
        Packets {
            began_ns: None,
            due: Time::ZERO,
            every: Duration::from_secs(1) / load.packets_per_s,
            rsrp_due: Time::ZERO,
            rsrp_dbm: -95.0,
            rng: Streams::new(load.seed).stream("modem"),
            further: further(load.kinds),
            others: 0,
        }
    }

    /// Returns the next packet, stamped with its due time.
    fn next(&mut self, now_ns: u64) -> TimedPacket {
        let began_ns = *self.began_ns.get_or_insert(now_ns);
        let at = self.due;
        self.due += self.every;
        let (code, payload) = if at >= self.rsrp_due {
            self.rsrp_due += RSRP_EVERY;
            self.rsrp_dbm = (self.rsrp_dbm + self.rng.range(-0.5, 0.5)).clamp(-120.0, -70.0);
            (LogCode(0xB17F), serving_cell(self.rsrp_dbm))
        } else {
            self.others += 1;
            // One turn: grants, then each further kind.
            match (self.others % (self.further.len() + 1)).checked_sub(1).map(|index| &self.further[index]) {
                Some(kind) => (kind.code, kind.payload.clone()),
                None => (LogCode(0xB173), grant(at.as_millis(), 5 + self.rng.below(90) as u8)),
            }
        };
        let stamped = Stamped::Kept(Stamp::from_nanos(modem_ns(began_ns + at.as_nanos())));
        TimedPacket { at, radio: Radio::FIRST, code, stamped, payload }
    }
}

/// Log packet 0xB17F, version 5, which reports the serving cell.
fn serving_cell(rsrp_dbm: f64) -> Vec<u8> {
    let mut payload = vec![0; 36];
    payload[0] = 5;
    payload[4..8].copy_from_slice(&1_300u32.to_le_bytes());
    payload[8..10].copy_from_slice(&42u16.to_le_bytes());
    let raw = ((rsrp_dbm + 180.0) / 0.0625) as u32;
    payload[12..16].copy_from_slice(&raw.to_le_bytes());
    payload[16..20].copy_from_slice(&raw.to_le_bytes());
    payload
}

/// Log packet 0xB173, version 36, which reports transport blocks that were received without error in one subframe.
fn grant(millis: u64, prb: u8) -> Vec<u8> {
    let mut payload = vec![0; 44];
    payload[0] = 36;
    payload[1] = 1;
    let (frame, subframe) = ((millis / 10 % 1_024) as u16, (millis % 10) as u16);
    payload[4..6].copy_from_slice(&(frame << 4 | subframe).to_le_bytes());
    payload[6] = prb;
    payload[7] = 1;
    payload[8] = 1;
    // The first of the two blocks: received without error, for this phone.
    payload[16] = 0b1000_0000;
    payload[20..22].copy_from_slice(&(u16::from(prb) * 40).to_le_bytes());
    payload[22] = 15;
    payload[23] = prb;
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_diag::LogPacket;
    use airpace_diag::kpi::{Extractor, Subscription};

    #[test]
    fn the_packets_say_what_a_phone_would() {
        let load = Load { packets_per_s: 1_000, hold: Duration::from_secs(1), seed: 1, kinds: 2 };
        let mut packets = Packets::new(load);
        let subscription = Subscription::new(["lte.rsrp", "lte.dl.tb_bytes", "lte.dl.prb"]).unwrap();
        let mut extractor = Extractor::new(&subscription);
        let mut counts = [0; 3];
        let mut subframes = vec![];
        for _ in 0..1_000 {
            let TimedPacket { radio, code, stamped, payload, .. } = packets.next(7);
            let Stamped::Kept(stamp) = stamped else { panic!("it bears its own time") };
            extractor.push(&LogPacket { radio, code, stamp, payload: &payload }, |sample| {
                counts[sample.wanted] += 1;
                subframes.extend(sample.subframe);
                if sample.wanted == 0 {
                    assert!((-120.0..-69.0).contains(&sample.value), "{}", sample.value);
                }
            });
        }
        assert_eq!(counts, [100, 900, 900], "a hundred RSRPs, a grant in every other subframe");
        assert!(extractor.troubles().is_empty(), "{:?}", extractor.troubles());
        assert!(subframes.windows(2).all(|pair| pair[1] >= pair[0] || pair[1] < 10), "in their order");
    }
}

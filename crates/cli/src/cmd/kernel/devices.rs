//! The phone's network devices: at each, ACKs get room for what PBE-CC's receiver tells.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use airpace_bpf::room::{Attached, Room};

use crate::terminal::say;

/// How often new devices are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// Network devices of the namespace that the feeder is in.
const DEVICES: &str = "/proc/self/net/dev";

/// The devices at which the program is.
pub struct Devices {
    room: Room,
    /// `None`: the system refused it there.
    attached: BTreeMap<u32, Option<Attached>>,
    looked: Option<Instant>,
}

impl Devices {
    /// None yet.
    pub fn new(room: Room) -> Devices {
        Devices { room, attached: BTreeMap::new(), looked: None }
    }

    /// Attaches the program to what is new, from time to time.
    pub fn look(&mut self) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let present = present();
        self.attached.retain(|device, _| present.contains_key(device));
        for (device, name) in present {
            if self.attached.contains_key(&device) {
                continue;
            }
            let attached = self.room.attach(device);
            if let Err(error) = &attached {
                say(format_args!(
                    "airpace: no room for feedback beside three SACK blocks at {name}: {error}; feed as root"
                ));
            }
            self.attached.insert(device, attached.ok());
        }
    }
}

/// Removes what a feeder that was killed has left at the devices of this network namespace, in kernels before 6.6.
pub fn forget(room: &Room) {
    for device in present().into_keys() {
        // Where there is nothing, nothing is to be removed.
        let _ = room.detach_filter(device);
    }
}

/// The devices by their numbers, without the loopback.
fn present() -> BTreeMap<u32, String> {
    let text = std::fs::read_to_string(DEVICES).unwrap_or_default();
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let number = |name: String| Some((airpace_bpf::room::device_number(&name)?, name));
    names.filter(|name| name != "lo").filter_map(number).collect()
}

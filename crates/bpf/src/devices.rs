//! Network devices of the phone: a BPF program at each device adds space to ACKs for the feedback of PBE-CC's receiver.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use crate::room::{AttachedRoom, RoomProgram, device_number};

/// Interval between searches for new devices.
const LOOK: Duration = Duration::from_secs(1);

/// File that lists the network devices of the feeder's network namespace.
const DEVICES: &str = "/proc/self/net/dev";

/// The devices to which the program is attached.
pub struct Devices {
    room: RoomProgram,
    /// Attached program, by index of the device; `None` if the system refused to attach the program.
    attached: BTreeMap<u32, Option<AttachedRoom>>,
    looked: Option<Instant>,
}

impl Devices {
    /// Starts without devices.
    pub fn new(room: RoomProgram) -> Devices {
        Devices { room, attached: BTreeMap::new(), looked: None }
    }

    /// Attaches the program to new devices, at most once per second. Returns the names of devices at which the system
    /// refused it, each with the system's error.
    pub fn look(&mut self) -> Vec<(String, io::Error)> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return vec![];
        }
        self.looked = Some(Instant::now());
        let present = present();
        let mut refused = vec![];
        self.attached.retain(|device, _| present.contains_key(device));
        for (device, name) in present {
            if self.attached.contains_key(&device) {
                continue;
            }
            let attached = self.room.attach(device);
            self.attached.insert(device, attached.map_err(|error| refused.push((name, error))).ok());
        }
        refused
    }
}

/// Detaches the programs of a killed feeder from the devices of this network namespace, in kernels before 6.6.
pub fn forget(room: &RoomProgram) {
    for device in present().into_keys() {
        // The call fails for devices without an attached program; ignore this error.
        let _ = room.detach_filter(device);
    }
}

/// Names of the network devices by index, without the loopback device.
fn present() -> BTreeMap<u32, String> {
    let text = std::fs::read_to_string(DEVICES).unwrap_or_default();
    let names = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let number = |name: String| Some((device_number(&name)?, name));
    names.filter(|name| name != "lo").filter_map(number).collect()
}

//! Network devices of the phone: a BPF program at each device adds space to ACKs for the feedback of PBE-CC's receiver.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use airpace_bpf::room::{AttachedRoom, RoomProgram};

use crate::terminal::say;

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

    /// Attaches the program to new devices, at most once per [`LOOK`].
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
    let number = |name: String| Some((airpace_bpf::room::device_number(&name)?, name));
    names.filter(|name| name != "lo").filter_map(number).collect()
}

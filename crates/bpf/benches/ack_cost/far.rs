//! A path between two network namespaces that delays every packet, as a mobile network does.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::machine::{Namespace, ip};

mod sys {
    unsafe extern "C" {
        pub fn ioctl(fd: i32, request: u64, argument: *mut [u8; 40]) -> i32;
    }
}

/// Source: Linux include/uapi/linux/if_tun.h (TUNSETIFF, IFF_TUN, IFF_NO_PI)
const TUNSETIFF: u64 = 0x4004_54ca;
const TUN_WITHOUT_HEADER: i16 = 0x1001;

const NAME: &str = "far";

/// Size in bytes of the buffer for a packet; no packet in this benchmark is longer.
const MAX_PACKET_BYTES: usize = 2_048;

/// Creates a network device whose packets this program reads and writes.
fn device() -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let device = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open("/dev/net/tun")?;
    let mut request = [0; 40];
    request[..NAME.len()].copy_from_slice(NAME.as_bytes());
    request[16..18].copy_from_slice(&TUN_WITHOUT_HEADER.to_ne_bytes());
    // SAFETY: the driver reads and writes a structure of 40 bytes, which lives until it returns.
    let code = unsafe { sys::ioctl(device.as_raw_fd(), TUNSETIFF, &raw mut request) };
    if code == 0 { Ok(device) } else { Err(io::Error::last_os_error()) }
}

/// A path that exists for the lifetime of this value.
pub struct Far {
    /// The sender's network namespace, and the receiver's network namespace.
    pub ends: [Namespace; 2],
    stop: Arc<AtomicBool>,
    carrier: Option<JoinHandle<()>>,
}

impl Far {
    /// Creates a path between these addresses with this delay in each direction. `None` if namespaces cannot be
    /// created.
    pub fn new(addresses: [&str; 2], delay: Duration) -> Option<Far> {
        let ends = [Namespace::new("near")?, Namespace::new("far")?];
        let mut devices = vec![];
        for (end, [own, other]) in ends.iter().zip([addresses, [addresses[1], addresses[0]]]) {
            devices.push(end.inside(device).ok()?);
            ip(&["-n", end.name(), "addr", "add", own, "peer", other, "dev", NAME]).ok()?;
            ip(&["-n", end.name(), "link", "set", NAME, "mtu", "1500", "txqueuelen", "10000", "up"]).ok()?;
        }
        let devices: [File; 2] = devices.try_into().ok()?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let carrier = std::thread::spawn(move || carry(&devices, delay, &is_over));
        Some(Far { ends, stop, carrier: Some(carrier) })
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.carrier.take().into_iter().for_each(|carrier| carrier.join().expect("it does not panic"));
    }
}

/// Carries packets from each device to the other device, until `is_over`.
fn carry(devices: &[File; 2], delay: Duration, is_over: &AtomicBool) {
    let mut queues: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    let mut bytes = [0; MAX_PACKET_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let now = Instant::now();
        for (from, queue) in queues.iter_mut().enumerate() {
            while let Ok(length) = (&devices[from]).read(&mut bytes) {
                queue.push_back((now + delay, bytes[..length].to_vec()));
            }
            while queue.front().is_some_and(|(due, _)| *due <= now) {
                let packet = queue.pop_front().map(|(_, packet)| packet).unwrap_or_default();
                // A packet that the device rejects is lost, as on any path.
                let _ = (&devices[1 - from]).write(&packet);
            }
        }
        let next = queues.iter().filter_map(|queue| queue.front()).map(|(due, _)| *due).min();
        let wait = next.map_or(delay, |next| next.saturating_duration_since(now));
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as i64 };
        let mut waited = devices.each_ref().map(|device| PollFd::new(device, PollFlags::IN));
        let _ = poll(&mut waited, Some(&wait));
    }
}

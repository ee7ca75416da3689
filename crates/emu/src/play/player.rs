//! The program that sends packets of a schedule in real time, and notes when packets were sent and received.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use airpace_core::Direction;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use super::schedule::Schedule;
use super::{Punctual, instant_ns};
use crate::sys;
use airpace_rt::clock;

/// UDP port at both endpoints.
///
/// Chosen: in the range for private use.
///
/// Source: RFC 6335 §6
pub const PORT: u16 = 54_321;

/// Size of the IPv4 and UDP headers, in bytes.
const HEADERS: usize = 28;

/// Size of the socket buffers, in bytes.
///
/// Chosen: more than one burst, and more than what arrives while a receiver waits for a processor.
const SOCKET_BYTES: usize = 8 << 20;

/// The endpoint at which a player runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The far side, with the addresses of the devices.
    Far(Vec<Ipv4Addr>),
    /// The device with this index, with the address of the far side.
    Device(u16, Ipv4Addr),
}

/// A player's share of a schedule.
#[derive(Clone, Debug)]
pub struct Part {
    /// The player's endpoint.
    pub side: Side,
    /// Start of the schedule, in ns of the machine's monotonic clock.
    pub start_ns: u64,
    /// End of reception, in ns of the same clock.
    pub until_ns: u64,
}

/// Results of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Sent packets: number in the schedule, and send time in ns of the machine's monotonic clock.
    pub sent: Vec<(u32, u64)>,
    /// Received packets: number in the schedule, and the time at which the kernel received them, on the same clock.
    pub received: Vec<(u32, u64)>,
    /// Packets that the kernel did not accept.
    pub refused: u64,
    /// Whether the player's sending thread had real-time priority.
    pub is_first: bool,
    /// Instant at which the player was ready, in ns of the machine's monotonic clock.
    pub ready_ns: u64,
}

/// Plays one endpoint's share of a schedule to its end.
///
/// # Errors
/// A socket cannot be opened or used.
pub fn play(schedule: &Schedule, part: &Part) -> io::Result<Notes> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    // Without the right to force this size, use the size that the system's limit permits.
    if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BYTES).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BYTES)?;
    }
    if sockopt::set_socket_send_buffer_size_force(&socket, SOCKET_BYTES).is_err() {
        sockopt::set_socket_send_buffer_size(&socket, SOCKET_BYTES)?;
    }
    sys::stamp_arrivals(socket.as_fd())?;
    let ready_ns = clock::now().as_nanos();
    std::thread::scope(|scope| {
        let listening = std::thread::Builder::new().spawn_scoped(scope, || listen(&socket, part.until_ns))?;
        let notes = send(&socket, schedule, part)?;
        let received = listening.join().map_err(|_| io::Error::other("the thread that listens failed"))??;
        Ok(Notes { received, ready_ns, ..notes })
    })
}

/// Sends the packets of this endpoint, each at its time, and notes the send times.
fn send(socket: &UdpSocket, schedule: &Schedule, part: &Part) -> io::Result<Notes> {
    let (mut punctual, is_first) = Punctual::thread();
    let own: Vec<_> = schedule
        .packets()
        .iter()
        .enumerate()
        .filter_map(|(number, packet)| {
            let to = match (&part.side, packet.direction) {
                (Side::Far(devices), Direction::Downlink) => *devices.get(usize::from(packet.device.0))?,
                (Side::Device(index, far), Direction::Uplink) if *index == packet.device.0 => *far,
                _ => return None,
            };
            Some((number as u32, packet, SocketAddr::new(IpAddr::V4(to), PORT)))
        })
        .collect();
    let (mut sent, mut refused) = (Vec::with_capacity(own.len()), 0);
    let mut payload = [0; 65_536];
    for (number, packet, to) in own {
        let length = (packet.bytes.0 as usize).saturating_sub(HEADERS).clamp(8, payload.len());
        payload[..8].copy_from_slice(&u64::from(number).to_be_bytes());
        let at = punctual.wait_until(instant_ns(part.start_ns, packet.at));
        match socket.send_to(&payload[..length], to) {
            Ok(_) => sent.push((number, at)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => refused += 1,
            // An ICMP error for an earlier packet reports that the port is closed; the kernel returns it at the next
            // send.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => refused += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(Notes { sent, refused, is_first, ..Notes::default() })
}

/// Notes the packets that arrive until `until_ns`.
fn listen(socket: &UdpSocket, until_ns: u64) -> io::Result<Vec<(u32, u64)>> {
    let _ = Punctual::thread();
    let mut received = vec![];
    let mut room = vec![0; 65_536];
    loop {
        let left = Duration::from_nanos(until_ns.saturating_sub(clock::now().as_nanos()));
        if left.is_zero() {
            return Ok(received);
        }
        let step = left.min(Duration::from_millis(100));
        let timeout = Timespec { tv_sec: 0, tv_nsec: step.subsec_nanos().into() };
        let mut waiting = [PollFd::new(socket, PollFlags::IN)];
        if !poll(&mut waiting, Some(&timeout)).is_ok_and(|ready| ready > 0) {
            continue;
        }
        loop {
            match sys::receive_stamped(socket.as_fd(), &mut room) {
                Ok((length, at)) => {
                    let Some(number) = room[..length].first_chunk().map(|it| u64::from_be_bytes(*it)) else {
                        continue;
                    };
                    if let Ok(number) = u32::try_from(number) {
                        received.push((number, at.unwrap_or_else(|| clock::now().as_nanos())));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionRefused) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Notes {
    /// Returns the notes as text, one line per item.
    pub fn to_text(&self) -> String {
        let mut text =
            format!("ready {}\nfirst {}\nrefused {}\n", self.ready_ns, u8::from(self.is_first), self.refused);
        for (word, list) in [("sent", &self.sent), ("received", &self.received)] {
            list.iter().for_each(|(number, at)| text.push_str(&format!("{word} {number} {at}\n")));
        }
        text.push_str("end\n");
        text
    }

    /// Parses the output of [`Notes::to_text`]; `None` if the text is invalid or incomplete.
    pub fn parse(text: &str) -> Option<Notes> {
        let mut notes = Notes::default();
        let mut lines = text.lines();
        loop {
            let words: Vec<&str> = lines.next()?.split(' ').collect();
            match words[..] {
                ["ready", at] => notes.ready_ns = at.parse().ok()?,
                ["first", first] => notes.is_first = first == "1",
                ["refused", count] => notes.refused = count.parse().ok()?,
                ["sent", number, at] => notes.sent.push((number.parse().ok()?, at.parse().ok()?)),
                ["received", number, at] => notes.received.push((number.parse().ok()?, at.parse().ok()?)),
                ["end"] => return lines.next().is_none().then_some(notes),
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_and_half_of_them_are_not() {
        let notes = Notes {
            sent: vec![(0, 17), (3, 18_000_000_000)],
            received: vec![(7, 5)],
            refused: 2,
            is_first: true,
            ready_ns: 4,
        };
        let text = notes.to_text();
        assert_eq!(Notes::parse(&text), Some(notes));
        for cut in 0..text.len() - 1 {
            assert_eq!(Notes::parse(&text[..cut]), None, "{cut}");
        }
        assert_eq!(Notes::parse("the kernel is busy\nend\n"), None);
    }
}

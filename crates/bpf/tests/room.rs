//! A receiver's feedback reaches its sender even if ACKs are full of SACK blocks. The test inspects received packets on a
//! link with losses between two network namespaces. It is skipped if the kernel cannot load the programs.
#![cfg(feature = "load")]

mod machine;

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_bpf::feed::now;
use airpace_bpf::room::{AttachedRoom, RoomProgram, device_number};
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_core::Rate;
use airpace_testing::skipped;
use machine::{Flow, Group, Namespace, connected, loaded, pbe, wait_until, wire};
use socket2::{Domain, Protocol, Socket, Type};

const PHONE: Ipv4Addr = Ipv4Addr::new(10, 17, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 17, 0, 2);

/// Number of ACKs that are inspected in each phase of the test.
const ACKS: u64 = 3_000;

/// Counts of the options in the phone's pure ACKs, as the ACKs arrived at the server.
#[derive(Clone, Copy, Debug, Default)]
struct Acks {
    all: u64,
    /// Number of ACKs with PBE-CC's option.
    told: u64,
    /// Number of ACKs for each number of SACK blocks; the next field counts the ACKs that also carry PBE-CC's option.
    blocks: [u64; 5],
    blocks_told: [u64; 5],
    wrong_sums: u64,
}

/// Source: RFC 791 §3.1; RFC 9293 §3.1; RFC 2018 §3; RFC 6994 §3
impl Acks {
    fn take(&mut self, packet: &[u8]) {
        let Some(ip) = packet.get(14..).filter(|ip| ip.len() >= 40 && ip[0] == 0x45 && ip[9] == 6) else {
            return;
        };
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        if ip[12..16] != PHONE.octets() || ip.len() < length {
            return;
        }
        let tcp = &ip[20..length];
        let headers = usize::from(tcp[12] >> 4) * 4;
        if tcp.len() != headers || tcp[13] != 16 {
            return;
        }
        let (mut options, mut blocks, mut is_told) = (&tcp[20..], 0, false);
        while let [kind, rest @ ..] = options {
            match kind {
                0 => break,
                1 => options = rest,
                _ => {
                    let length = usize::from(rest[0]);
                    assert!((2..=options.len()).contains(&length), "an option of {length} bytes: {tcp:?}");
                    let (option, others) = options.split_at(length);
                    blocks += usize::from(*kind == 5) * (length - 2) / 8;
                    is_told |= *kind == 254 && length >= 8 && option[2..4] == [0xA1, 0x9B];
                    options = others;
                }
            }
        }
        self.all += 1;
        self.told += u64::from(is_told);
        self.blocks[blocks] += 1;
        self.blocks_told[blocks] += u64::from(is_told);
        self.wrong_sums += u64::from(sum(&ip[12..20], tcp) != 0xFFFF);
    }
}

/// The checksum of a segment with its pseudo header.
fn sum(addresses: &[u8], tcp: &[u8]) -> u16 {
    let words = addresses.chunks(2).chain(tcp.chunks(2));
    let all: u64 = words.map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0))).sum();
    let mut all = all + 6 + tcp.len() as u64;
    while all > 0xFFFF {
        all = (all >> 16) + (all & 0xFFFF);
    }
    all as u16
}

/// A thread that inspects the packets that arrive in a namespace, until this value is dropped.
struct Capture {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Acks>>,
    thread: Option<JoinHandle<()>>,
}

impl Capture {
    fn start(namespace: &Namespace) -> Capture {
        // ETH_P_ALL, in network byte order.
        let all = Protocol::from(i32::from(3_u16.to_be()));
        let mut socket = namespace.inside(|| Socket::new(Domain::PACKET, Type::RAW, Some(all)).unwrap());
        socket.set_recv_buffer_size(4 << 20).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Acks::default())));
        let (is_over, counts) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            let mut packet = vec![0; 70_000];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(length) = socket.read(&mut packet) {
                    counts.lock().unwrap().take(&packet[..length]);
                }
            }
        });
        Capture { stop, seen, thread: Some(thread) }
    }

    /// Inspects the next ACKs. The first set of ACKs is discarded, because some of its packets were waiting in the
    /// socket already.
    fn acks(&self) -> Acks {
        for _ in 0..2 {
            *self.seen.lock().unwrap() = Acks::default();
            wait_until("ACKs", || self.seen.lock().unwrap().all >= ACKS);
        }
        *self.seen.lock().unwrap()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Makes the namespace drop `percent` % of large received packets. Returns whether the kernel supports this rule.
fn lose(namespace: &Namespace, percent: u32) -> bool {
    let rule = format!("meta length > 500 numgen random mod 100 < {percent} drop");
    let rules =
        ["table ip lossy {", "chain some {", "type filter hook input priority 0", &rule, "}", "}"].join("\n");
    let output =
        Command::new("ip").args(["netns", "exec", namespace.name(), "nft", &rules]).output().unwrap();
    if !output.status.success() {
        skipped(&format!("no packet filter: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    output.status.success()
}

/// Disables the offloads of a namespace's device: the kernel then handles one packet at a time, with its own checksum.
fn without_offloads(namespace: &Namespace) {
    let words =
        ["netns", "exec", namespace.name(), "ethtool", "-K", "wire", "tx", "off", "tso", "off", "gso", "off"];
    let output = Command::new("ip").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn acks_full_of_sack_blocks_tell_what_the_phone_measures() {
    let Some((mut kernel, _turn)) = loaded(&pbe()) else { return };
    if !airpace_testing::has_program("ethtool", "ethtool") {
        return;
    }
    let Some([phone, server]) = wire("10.17.0.1", "10.17.0.2") else { return };
    let Some(group) = Group::enter() else { return };
    kernel.exchange(File::open(&group.path).unwrap().as_fd()).unwrap();
    [&phone, &server].into_iter().for_each(without_offloads);
    if !lose(&phone, 20) {
        return;
    }
    let mut feed = kernel.cell().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&stop);
    let feeds = std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            feed.tell(&Cell::constant(Rate::from_mbps(400.0), now()));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let listener = phone.inside(|| TcpListener::bind((PHONE, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let sender = server.inside(|| connected(Some("pbe"), address).unwrap());
    assert_eq!(sender.local_addr().unwrap().ip(), SERVER);
    let flow = Flow::of(sender, listener.accept().unwrap().0);
    let capture = Capture::start(&server);
    let room = kernel.room().unwrap();
    let number = phone.inside(|| device_number("wire")).unwrap();
    let attached: [fn(&RoomProgram, u32) -> std::io::Result<AttachedRoom>; 2] =
        [RoomProgram::attach_link, RoomProgram::attach_filter];
    for attach in attached {
        let before = capture.acks();
        println!("without: {before:?}");
        assert!(before.blocks[3] > 100, "so many are full: {before:?}");
        assert_eq!(before.blocks_told[3], 0, "and have no room: {before:?}");
        assert!(before.told * 20 < before.all * 19, "{before:?}");
        let end = phone.inside(|| attach(&room, number));
        let end = match end {
            Err(error) => {
                skipped(&format!("one of the two ways of attaching is not there: {error}"));
                continue;
            }
            Ok(end) => end,
        };
        let after = capture.acks();
        println!("with: {after:?}");
        assert_eq!(after.all, after.told, "each ACK tells: {after:?}");
        assert_eq!(before.wrong_sums + after.wrong_sums, 0);
        assert!(kernel.totals().unwrap().rooms > 100);
        flow.goes_on();
        phone.inside(move || drop(end));
    }
    assert!(!phone.inside(|| room.detach_filter(number)).unwrap(), "no filter is left behind");
    let without = capture.acks();
    assert_eq!(without.blocks_told[3], 0, "it ends with what is attached: {without:?}");
    stop.store(true, Ordering::Relaxed);
    feeds.join().unwrap();
}

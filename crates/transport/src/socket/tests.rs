//! Tests of a UDP socket over the loopback interface, and over a simulated kernel that refuses datagrams.

use std::sync::{Arc, Mutex};

use airpace_core::{Ecn, Time};
use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, poll};

use super::*;
use airpace_rt::clock;

/// A received datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Came {
    received: Time,
    from: SocketAddr,
    to: Option<IpAddr>,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// Waits until this many datagrams have arrived.
fn wait_for(socket: &mut Socket, count: usize) -> Vec<Came> {
    let mut came = vec![];
    while came.len() < count {
        poll(&mut [PollFd::new(&*socket, PollFlags::IN)], None).unwrap();
        socket.receive(|Inbound { received, from, to, ecn, bytes }| {
            came.push(Came { received, from, to, ecn, bytes: bytes.to_vec() });
        });
    }
    came
}

fn bind(at: &str) -> Socket {
    Socket::bind(at.parse().unwrap(), Buffers::default()).unwrap()
}

/// Returns the local IPv4 or IPv6 address at which a socket on the unspecified address is reachable.
fn here(socket: &Socket, ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), socket.local().port())
}

/// Returns pairs of sockets, with the address at which the first of each pair reaches the second.
fn pairs() -> Vec<(Socket, Socket, &'static str)> {
    let mut pairs = vec![(bind("127.0.0.1:0"), bind("127.0.0.1:0"), "127.0.0.1")];
    if Socket::bind("[::1]:0".parse().unwrap(), Buffers::default()).is_err() {
        airpace_testing::skipped("this machine has no IPv6");
        return pairs;
    }
    pairs.push((bind("[::1]:0"), bind("[::1]:0"), "::1"));
    pairs.push((bind("0.0.0.0:0"), bind("[::]:0"), "127.0.0.1"));
    pairs.push((bind("[::]:0"), bind("[::]:0"), "127.0.0.1"));
    pairs.push((bind("[::]:0"), bind("[::]:0"), "::1"));
    pairs
}

fn out(to: SocketAddr, segment: Option<usize>) -> Outbound {
    Outbound { to, from: None, ecn: Ecn::NotEct, segment }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn datagrams_of_any_size_and_number_arrive_whole_both_ways(
        groups in prop::collection::vec((1usize..1_500, 1usize..3_000, any::<bool>()), 1..8),
        by_one in any::<bool>(),
    ) {
        for (mut a, mut b, ip) in pairs() {
            if by_one {
                a.send_one_by_one();
            }
            for (segment, length, back) in &groups {
                let (from, to) = if *back { (&mut b, &mut a) } else { (&mut a, &mut b) };
                // Up to 40 datagrams; the last may be shorter.
                let length = (*length).max(1).min(segment * 40) * if length % 3 == 0 { segment.min(&20) } else { &1 };
                let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
                from.send(&out(here(to, ip), Some(*segment)), &bytes);
                let expected: Vec<&[u8]> = bytes.chunks(*segment).collect();
                let came = wait_for(to, expected.len());
                let ours = here(from, ip);
                prop_assert!(came.iter().all(|it| it.from == ours), "{:?} is not {ours}", came[0].from);
                prop_assert!(came.iter().all(|it| it.to == Some(ours.ip())));
                prop_assert_eq!(came.iter().map(|it| it.bytes.as_slice()).collect::<Vec<_>>(), expected);
            }
            let all = a.counts().sent + b.counts().sent;
            prop_assert_eq!(all, a.counts().received + b.counts().received);
            prop_assert_eq!(a.counts().overflows + b.counts().overflows + a.counts().all_refused(), 0);
        }
    }
}

#[test]
fn an_empty_datagram_is_a_datagram() {
    let (mut a, mut b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    a.send(&out(b.local(), None), &[]);
    a.send(&out(b.local(), Some(1_200)), &[1]);
    let came: Vec<Vec<u8>> = wait_for(&mut b, 2).into_iter().map(|it| it.bytes).collect();
    assert_eq!(came, [vec![], vec![1]]);
}

#[test]
fn marks_travel_both_ways_over_both_families() {
    for (mut a, mut b, ip) in pairs() {
        for ecn in [Ecn::Ce, Ecn::NotEct, Ecn::Ect, Ecn::Ce] {
            let (to_b, to_a) = (here(&b, ip), here(&a, ip));
            a.send(&Outbound { ecn, ..out(to_b, Some(100)) }, &[7; 1_000]);
            assert!(wait_for(&mut b, 10).iter().all(|came| came.ecn == ecn), "{ecn:?} by {ip}");
            b.send(&Outbound { ecn, ..out(to_a, None) }, &[7; 1_000]);
            assert_eq!(wait_for(&mut a, 1)[0].ecn, ecn, "{ip}");
        }
    }
}

#[test]
fn the_kernel_says_when_datagrams_came_not_when_they_were_taken() {
    // Tolerance of the comparison of the two clocks.
    let doubt = std::time::Duration::from_micros(200);
    for (mut a, mut b, ip) in pairs() {
        let to = here(&b, ip);
        let mut last = Time::ZERO;
        for _ in 0..20 {
            let before = clock::now();
            a.send(&out(to, Some(500)), &[3; 5_000]);
            let after = clock::now();
            // The datagrams wait in the kernel, and the socket reads them only after `after + 4 * doubt`.
            poll(&mut [PollFd::new(&b, PollFlags::IN)], None).unwrap();
            while clock::now() < after + 4 * doubt {}
            for came in wait_for(&mut b, 10) {
                assert!(
                    before <= came.received + doubt,
                    "{ip}: {:?} before it was sent",
                    before - came.received
                );
                assert!(
                    came.received <= after + doubt,
                    "{ip}: {:?} after it was sent",
                    came.received - after
                );
                assert!(came.received + doubt >= last, "{ip}: stamps do not go back");
                last = last.max(came.received);
            }
        }
    }
}

#[test]
fn what_a_full_buffer_drops_is_counted() {
    let small = Buffers { receive: Bytes(20_000), send: Bytes(1 << 20) };
    let mut b = Socket::bind("127.0.0.1:0".parse().unwrap(), small).unwrap();
    let mut a = bind("127.0.0.1:0");
    for _ in 0..500 {
        a.send(&out(b.local(), None), &[1; 1_000]);
    }
    let mut came = 0;
    while b.receive(|_| came += 1) > 0 {}
    // The next datagram reports how many are missing.
    a.send(&out(b.local(), None), &[2; 10]);
    came += wait_for(&mut b, 1).len() as u64;
    assert!(b.counts().overflows > 0, "500 kB do not fit");
    assert_eq!(came + b.counts().overflows, a.counts().sent);
}

#[test]
fn an_address_change_keeps_the_socket_going() {
    let (mut a, mut b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    a.send(&out(b.local(), None), &[1]);
    let first = wait_for(&mut b, 1)[0].from;
    a.rebind().unwrap();
    a.send(&out(b.local(), None), &[2]);
    let second = wait_for(&mut b, 1)[0].from;
    assert_ne!(first, second);
    assert_eq!(second, a.local());
    b.send(&out(second, None), &[3]);
    assert_eq!(wait_for(&mut a, 1)[0].bytes, [3]);
}

#[test]
fn it_leaves_from_the_address_that_it_came_to() {
    let (mut a, mut b) = (bind("0.0.0.0:0"), bind("0.0.0.0:0"));
    a.send(&out(here(&b, "127.0.0.3"), None), &[1]);
    let came = wait_for(&mut b, 1).remove(0);
    assert_eq!(came.to, Some("127.0.0.3".parse().unwrap()));
    b.send(&Outbound { from: came.to, ..out(came.from, None) }, &[2]);
    assert_eq!(wait_for(&mut a, 1)[0].from.ip(), came.to.unwrap());
}

/// Calls of a socket to a kernel that a test simulates.
#[derive(Default)]
struct Played {
    /// Results of the next calls; after these, every call succeeds.
    says: VecDeque<Option<i32>>,
    took: Vec<Vec<u8>>,
}

fn played(says: &[Option<i32>]) -> (Socket, Arc<Mutex<Played>>) {
    let played = Arc::new(Mutex::new(Played { says: says.iter().copied().collect(), took: vec![] }));
    let mut socket = bind("127.0.0.1:0");
    let kernel = Arc::clone(&played);
    socket.kernel = Box::new(move |_, leaving: &SendMeta, bytes: &[u8]| {
        let mut kernel = kernel.lock().unwrap();
        if let Some(Some(errno)) = kernel.says.pop_front() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        kernel.took.extend(
            bytes.chunks(leaving.segment.map_or(bytes.len(), usize::from).max(1)).map(<[u8]>::to_vec),
        );
        Ok(())
    });
    (socket, played)
}

const TO: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

#[test]
fn what_finds_no_room_waits_and_leaves_later_in_order() {
    let full = Some(libc::EAGAIN);
    let (mut socket, kernel) = played(&[None, full, full, None, full, None, None]);
    let bytes: Vec<u8> = (0..250u8).collect();
    socket.send(&out(TO, None), &bytes[..50]);
    assert!(!socket.is_full());
    socket.send(&out(TO, Some(20)), &bytes[50..170]);
    assert!(socket.is_full());
    socket.send(&out(TO, None), &bytes[170..]);
    for _ in 0..2 {
        socket.flush();
        assert!(socket.is_full(), "the kernel took nothing, then one group of two");
    }
    socket.flush();
    assert!(!socket.is_full());
    assert_eq!(kernel.lock().unwrap().took.concat(), bytes);
    assert_eq!((socket.counts().sent, socket.counts().waited, socket.counts().all_refused()), (8, 2, 0));
}

#[test]
fn a_device_that_takes_no_groups_gets_single_datagrams_and_it_is_said_once() {
    let (mut socket, kernel) = played(&[Some(libc::EIO), None, Some(libc::EAGAIN)]);
    let bytes: Vec<u8> = (0..200u8).collect();
    socket.send(&out(TO, Some(60)), &bytes);
    assert!(socket.is_full(), "there was room for one of four");
    socket.flush();
    socket.send(&out(TO, Some(60)), &bytes);
    let took = kernel.lock().unwrap().took.clone();
    assert_eq!(took.concat(), [bytes.clone(), bytes].concat());
    assert_eq!(took.iter().map(Vec::len).collect::<Vec<_>>(), [60, 60, 60, 20, 60, 60, 60, 20]);
    let (mut socket, _kernel) = played(&[Some(libc::EIO)]);
    socket.send(&out(TO, Some(60)), &[0; 200]);
    socket.send(&out(TO, Some(60)), &[0; 200]);
    let said = socket.notices();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("several datagrams per call"), "{said:?}");
    assert_eq!((socket.notices().len(), socket.counts().sent, socket.counts().send_calls), (0, 8, 8));
}

#[test]
fn datagrams_that_are_too_large_are_lost_and_groups_stay() {
    let (mut socket, _kernel) = played(&[Some(libc::EMSGSIZE); 4]);
    socket.send(&out(TO, Some(900)), &[0; 2_700]);
    assert_eq!(socket.counts().refused, [(libc::EMSGSIZE, 3)]);
    socket.send(&out(TO, Some(900)), &[0; 2_700]);
    assert_eq!((socket.counts().sent, socket.counts().send_calls), (3, 1), "in one call");
}

#[test]
fn a_network_that_is_gone_for_a_while_costs_datagrams_not_the_socket() {
    let outage =
        [libc::ENETUNREACH, libc::ENETDOWN, libc::EHOSTUNREACH, libc::ENOBUFS, libc::EPERM, libc::ENETDOWN];
    let (mut socket, kernel) = played(&outage.map(Some));
    for number in 0..8 {
        socket.send(&out(TO, None), &[number]);
    }
    assert_eq!(kernel.lock().unwrap().took, [[6], [7]]);
    assert_eq!((socket.counts().sent, socket.counts().all_refused()), (2, 6));
    assert!(socket.counts().refused.contains(&(libc::ENETDOWN, 2)));
    let (mut socket, kernel) = played(&[Some(libc::EINVAL)]);
    socket.send(&Outbound { from: Some("192.0.2.1".parse().unwrap()), ..out(TO, None) }, &[1]);
    assert_eq!(kernel.lock().unwrap().took, [[1]], "an address that is gone is not insisted on");
}

#[test]
fn what_cannot_be_bound_is_refused_with_the_remedy() {
    let taken = bind("127.0.0.1:0");
    let refusal = |at: SocketAddr| Socket::bind(at, Buffers::default()).unwrap_err().to_string();
    let said = refusal(taken.local());
    assert!(said.contains(&taken.local().to_string()) && said.contains("another port"), "{said}");
    let said = refusal("192.0.2.1:0".parse().unwrap());
    assert!(said.contains("an address of this machine"), "{said}");
    assert!(Socket::toward(TO, Buffers::default()).unwrap().local().is_ipv4());
}

//! Measured flow over kernel TCP, with the kernel's congestion control and the same traffic profiles as the other
//! transports.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use airpace_cc::controller::Inspect;
use airpace_core::{Bytes, Rate, Refused, Time};
use airpace_rt::sockopt::limit_unsent;
use airpace_rt::{clock, priority};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use super::tcp_info;
use super::traffic::Source;
use super::{CHUNK, Flow, MAX_ORDER, Order, PATTERN, RECORD_EVERY, Sample};
use airpace_transport::endpoint::{ConnectionId, Figures};
use airpace_transport::turn;

/// Names of the values in [`Sample::inspect`] for a kernel TCP connection. Its `state` is the state of loss recovery.
pub const INSPECTED: [&str; 3] = ["srtt_ms", "min_rtt_ms", "delivery_rate_mbps"];

/// Maximum number of unsent bytes in the kernel's send buffer.
///
/// Chosen: 10 ms of data at 100 Mbit/s, so that the sender does not run dry if this program wakes up late. A larger amount
/// would partly leave after the flow's stop time.
const UNSENT: u32 = 128 << 10;

/// Maximum time that a receiver waits for the end of a flow after its stop time. The closing packet may have been lost.
///
/// Chosen: longer than the delay of deep queues on recorded links.
const LINGERS: Duration = Duration::from_secs(5);

/// Sets the kernel's congestion control of a socket, or returns why it is not available.
pub type Choose<'a> = &'a mut dyn FnMut(BorrowedFd<'_>, &str) -> Result<(), Refused>;

/// Receives a sample of the sender every 10 ms.
pub type Record<'a> = &'a mut dyn FnMut(&Sample<'_>);

/// Byte counters of a flow at one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes of the flow that this endpoint wrote or read.
    pub bytes: Bytes,
    /// Number of received bytes that differ from the pattern.
    pub wrong: Bytes,
}

/// Connecting endpoint: sends the order, then sends or receives the flow until it ends.
///
/// # Errors
/// The kernel does not have the scheme, or the connection ended early.
pub fn ask(
    mut stream: TcpStream,
    order: &Order,
    choose: Choose<'_>,
    record: Record<'_>,
) -> Result<Carried, Refused> {
    let mut line = serde_json::to_vec(order).map_err(|error| error.to_string())?;
    line.push(b'\n');
    stream.write_all(&line).map_err(|error| format!("the order cannot be sent: {error}"))?;
    carry(&mut stream, order, order.flow == Flow::Push, choose, record)
}

/// Accepting endpoint: reads the order, then sends or receives the flow until it ends.
///
/// # Errors
/// The order cannot be read, or an error of [`ask`].
pub fn serve(mut stream: TcpStream, choose: Choose<'_>, record: Record<'_>) -> Result<Carried, Refused> {
    let (mut line, mut byte) = (vec![], [0]);
    // Read byte by byte, because the bytes after the order belong to the flow.
    loop {
        stream.read_exact(&mut byte).map_err(|error| format!("no order was received: {error}"))?;
        if byte[0] == b'\n' {
            break;
        }
        line.push(byte[0]);
        if line.len() > MAX_ORDER {
            return Err("the order does not end".into());
        }
    }
    let order: Order =
        serde_json::from_slice(&line).map_err(|error| format!("the order cannot be read: {error}"))?;
    carry(&mut stream, &order, order.flow == Flow::Pull, choose, record)
}

fn carry(
    stream: &mut TcpStream,
    order: &Order,
    sends: bool,
    choose: Choose<'_>,
    record: Record<'_>,
) -> Result<Carried, Refused> {
    let said = |error: std::io::Error| error.to_string();
    // Without real-time priority the flow still works, but this endpoint wakes up later on a busy machine.
    let _ = priority::set_realtime(turn::PRIORITY);
    stream.set_nonblocking(true).map_err(said)?;
    stream.set_nodelay(true).map_err(said)?;
    let source = Source::new(clock::now(), order.traffic);
    if !sends {
        return receive(stream, &source);
    }
    choose(stream.as_fd(), &order.scheme)?;
    limit_unsent(stream.as_fd(), UNSENT).map_err(said)?;
    send(stream, source, record)
}

fn send(stream: &mut TcpStream, mut source: Source, record: Record<'_>) -> Result<Carried, Refused> {
    let pattern: Vec<u8> = (0..CHUNK + PATTERN).map(|at| (at % PATTERN) as u8).collect();
    let (mut carried, mut next_record, mut has_finished) = (Carried::default(), Time::ZERO, false);
    let mut inspect = Inspect::default();
    let ended = |error: std::io::Error| format!("the connection ended before its time: {error}");
    loop {
        let now = clock::now();
        source.wake(now);
        if source.is_over() {
            // Unsent data is discarded: closing the socket makes the kernel drop it and send a reset to the peer.
            sockopt::set_socket_linger(&*stream, Some(Duration::ZERO)).map_err(|error| error.to_string())?;
            return Ok(carried);
        }
        let state = tcp_info::tcp_state(stream.as_fd()).map_err(|error| error.to_string())?;
        if now >= next_record {
            inspect.clear();
            let figures = figures(&state, &mut inspect);
            record(&Sample { now, connection: ConnectionId(0), figures, inspect: &inspect });
            let every = RECORD_EVERY.as_nanos() as u64;
            next_record = Time::from_nanos((now.as_nanos() / every + 1) * every);
        }
        let mut is_full = false;
        let mut unsent = u64::from(state.unsent);
        while !is_full && !has_finished {
            let rate = Some(Rate::from_bps(state.pacing_bps));
            let wanted = source.wanted(Bytes(unsent), rate).0.min(CHUNK as u64) as usize;
            if wanted == 0 {
                break;
            }
            let phase = (carried.bytes.0 % PATTERN as u64) as usize;
            match stream.write(&pattern[phase..phase + wanted]) {
                Ok(taken) => {
                    carried.bytes += Bytes(taken as u64);
                    unsent += taken as u64;
                    source.took(Bytes(taken as u64));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => is_full = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ended(error).into()),
            }
        }
        if source.has_written_all() && !has_finished {
            stream.shutdown(Shutdown::Write).map_err(ended)?;
            has_finished = true;
        }
        if has_finished {
            // The peer closes the connection once it has read the end of the stream.
            match stream.read(&mut [0]) {
                Ok(_) => return Ok(carried),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ended(error).into()),
            }
        }
        let wait = if has_finished { PollFlags::IN } else { PollFlags::empty() };
        let wait = if is_full { PollFlags::OUT } else { wait };
        let until = source.poll_timeout().map_or(next_record, |next| next.min(next_record));
        sleep(stream, wait, until)?;
    }
}

fn receive(stream: &mut TcpStream, source: &Source) -> Result<Carried, Refused> {
    let pattern: Vec<u8> = (0..CHUNK + PATTERN).map(|at| (at % PATTERN) as u8).collect();
    let (mut carried, mut room) = (Carried::default(), vec![0; CHUNK]);
    let gives_up = if source.stops() < Time::NEVER { source.stops() + LINGERS } else { Time::NEVER };
    loop {
        match stream.read(&mut room) {
            Ok(0) => return Ok(carried),
            Ok(count) => {
                let phase = (carried.bytes.0 % PATTERN as u64) as usize;
                let (came, right) = (&room[..count], &pattern[phase..phase + count]);
                if came != right {
                    carried.wrong += Bytes(came.iter().zip(right).filter(|(a, b)| a != b).count() as u64);
                }
                carried.bytes += Bytes(count as u64);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if clock::now() >= gives_up {
                    return Ok(carried);
                }
                sleep(stream, PollFlags::IN, gives_up)?;
            }
            // A sender whose stop time has passed resets its connection. Its clock may have started earlier than this one.
            // A sender that fails reports its error itself.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && source.stops() < Time::NEVER => {
                return Ok(carried);
            }
            Err(error) => return Err(format!("the connection ended before its time: {error}").into()),
        }
    }
}

/// Waits until the socket is ready or the time `until` is reached.
fn sleep(stream: &TcpStream, flags: PollFlags, until: Time) -> Result<(), Refused> {
    let left = (until - clock::now()).min(Duration::from_secs(3_600));
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut [PollFd::new(stream, flags)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.to_string().into()),
    }
}

fn figures(state: &tcp_info::TcpState, inspect: &mut Inspect) -> Figures {
    const MS_PER_US: f64 = 1e-3;
    let known = |us: u32| if us == 0 || us == u32::MAX { f64::NAN } else { f64::from(us) * MS_PER_US };
    // Source: Linux include/uapi/linux/tcp.h (enum tcp_ca_state)
    inspect.state =
        *["Open", "Disorder", "CWR", "Recovery", "Loss"].get(usize::from(state.recovery)).unwrap_or(&"");
    inspect.value(INSPECTED[0], known(state.srtt_us));
    inspect.value(INSPECTED[1], known(state.min_rtt_us));
    inspect.value(INSPECTED[2], state.delivery_bps as f64 / 1e6);
    let bytes = |packets: u32| Bytes(u64::from(packets) * u64::from(state.mss));
    let outstanding = state.unacked + state.retransmitted;
    Figures {
        cwnd: bytes(state.cwnd),
        pacing_rate: (state.pacing_bps < u64::MAX).then(|| Rate::from_bps(state.pacing_bps)),
        inflight: bytes(outstanding.saturating_sub(state.sacked + state.lost)),
        unsent: Bytes(state.unsent.into()),
        ..Figures::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::Traffic;
    use std::net::{TcpListener, TcpStream};

    fn nothing(_: BorrowedFd<'_>, _: &str) -> Result<(), Refused> {
        Ok(())
    }

    /// Runs both endpoints of a flow. Returns the byte counters of each and the number of the sender's samples.
    fn both(order: &Order) -> ([Result<Carried, Refused>; 2], usize) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let serving = std::thread::spawn(move || {
            let mut seen = 0;
            (serve(server, &mut nothing, &mut |_| seen += 1), seen)
        });
        let mut seen = 0;
        let asked = ask(client, order, &mut nothing, &mut |sample| {
            assert_eq!(sample.inspect.state, "Open");
            assert!(sample.figures.cwnd > Bytes(0));
            seen += 1;
        });
        let (served, seen_there) = serving.join().unwrap();
        ([asked, served], if order.flow == Flow::Push { seen } else { seen_there })
    }

    fn order(flow: Flow, traffic: Traffic) -> Order {
        Order { flow, scheme: "cubic".to_owned(), traffic }
    }

    #[test]
    fn a_flow_of_so_many_bytes_ends_at_both_ends_with_all_of_them() {
        for flow in [Flow::Push, Flow::Pull] {
            let traffic = Traffic { bytes: Some(3_000_001), ..Traffic::default() };
            let ([asked, served], samples) = both(&order(flow, traffic));
            let whole = Ok(Carried { bytes: Bytes(3_000_001), wrong: Bytes(0) });
            assert_eq!([asked, served], [whole.clone(), whole], "{flow:?}");
            assert!(samples > 0);
        }
    }

    #[test]
    fn a_flow_ends_when_its_time_is_over() {
        for (flow, sender) in [(Flow::Push, 0), (Flow::Pull, 1)] {
            let traffic = Traffic { stop_s: Some(0.2), rate_mbps: Some(80.0), ..Traffic::default() };
            let (ends, samples) = both(&order(flow, traffic));
            let ends = ends.map(Result::unwrap);
            assert!(ends[sender].bytes > Bytes(0), "{flow:?}");
            assert!(ends[1 - sender].bytes <= ends[sender].bytes);
            assert_eq!(ends[1 - sender].wrong, Bytes(0));
            assert!(samples > 0);
        }
    }

    #[test]
    fn a_scheme_that_cannot_be_chosen_is_said_by_who_sends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let mut refuse = |_: BorrowedFd<'_>, name: &str| Err(format!("no {name}")).map_err(Refused::from);
        let order = order(Flow::Push, Traffic { stop_s: Some(10.0), ..Traffic::default() });
        assert_eq!(ask(client, &order, &mut refuse, &mut |_| ()), Err("no cubic".into()));
        // The peer reads the end of a flow that never started.
        assert_eq!(serve(server, &mut nothing, &mut |_| ()).unwrap().bytes, Bytes(0));
    }

    #[test]
    fn an_order_that_is_none_is_refused() {
        for line in [&b"{}\n"[..], &[b'x'; MAX_ORDER + 2], b"\xff\n"] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().unwrap();
            client.write_all(line).unwrap();
            assert!(serve(server, &mut nothing, &mut |_| ()).unwrap_err().to_string().contains("order"));
        }
    }
}

//! HTTP server of the page, on a separate thread. The server handles several clients concurrently, with a time limit of
//! one second per client, so that an idle client does not block others.
//!
//! Chosen: no library. The server has only one page, and existing servers bring thread pools or a runtime into a process
//! that must not be disturbed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airpace_rt::clock::thread_cpu;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::{Metrics, page};

/// Maximum time for receiving a request and for sending its response.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of connections. A further connection replaces the oldest.
///
/// Chosen: more than the scrapers of any site; the pages for all connections take little memory.
const MAX_CONNECTIONS: usize = 64;
/// Maximum size of a request, in bytes.
const MAX_REQUEST: usize = 8_192;
/// Ratio of rest to work: the thread rests this many times as long as it has worked, so no flood of requests takes more
/// than a tenth of a core.
///
/// Chosen: a page takes a fraction of a millisecond, so an occasional request waits for a few milliseconds.
const REST: u32 = 9;
/// Maximum duration of an uninterrupted rest, so that slow clients are disconnected in time.
const MAX_REST: Duration = Duration::from_millis(100);
/// Maximum number of pages that the thread creates before it rests.
const MAX_PAGES_PER_TURN: usize = 8;
/// Content type of the page.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The server, which runs until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// Processor time that the thread has used.
    #[cfg(test)]
    worked_ns: Arc<AtomicU64>,
}

impl MetricsServer {
    /// Serves `metrics` at `address`.
    ///
    /// # Errors
    /// The address is in use, or not an address of this machine.
    pub fn start(address: SocketAddr, metrics: Arc<Metrics>) -> io::Result<MetricsServer> {
        MetricsServer::start_with(PATIENCE, address, metrics)
    }

    fn start_with(
        patience: Duration,
        address: SocketAddr,
        metrics: Arc<Metrics>,
    ) -> io::Result<MetricsServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let stopped = Arc::clone(&stop);
        let worked_ns = Arc::new(AtomicU64::new(0));
        let worked = Arc::clone(&worked_ns);
        let serve = move || serve(&listener, &stopped, &metrics, patience, &worked);
        let thread = Some(std::thread::Builder::new().name("metrics".to_owned()).spawn(serve)?);
        Ok(MetricsServer {
            address,
            stop,
            thread,
            #[cfg(test)]
            worked_ns,
        })
    }

    /// Returns the server's address, with the actual port if the system chose it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers requests until `stop` is signalled; counts the used processor time.
fn serve(
    listener: &TcpListener,
    stop: &OwnedFd,
    metrics: &Metrics,
    patience: Duration,
    worked_ns: &AtomicU64,
) {
    // The oldest connection is first.
    let mut connections: Vec<Connection> = vec![];
    let mut rest = Duration::ZERO;
    loop {
        let rested = Timespec::try_from(rest.min(MAX_REST)).ok();
        match poll(&mut [PollFd::new(stop, PollFlags::IN)], rested.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
        rest = rest.saturating_sub(MAX_REST);
        if !rest.is_zero() {
            continue;
        }
        let mut waits = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        waits
            .extend(connections.iter().map(|connection| PollFd::new(&connection.stream, connection.wants())));
        let left = connections.first().map(|oldest| patience.saturating_sub(oldest.since.elapsed()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut waits, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !waits[0].revents().is_empty() {
            return;
        }
        drop(waits);
        let began = thread_cpu();
        let mut pages = 0;
        // The connection is closed after an invalid request, or when the client leaves.
        connections.retain_mut(|connection| {
            if connection.since.elapsed() >= patience {
                return false;
            }
            let asks = connection.answer.is_none();
            if asks && pages == MAX_PAGES_PER_TURN {
                return true;
            }
            let progress = connection.go_on(metrics);
            pages += usize::from(asks && connection.answer.is_some());
            matches!(progress, Ok(Progress::Waits))
        });
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if connections.len() == MAX_CONNECTIONS {
                connections.remove(0);
            }
            connections.push(Connection { stream, since: Instant::now(), head: vec![], answer: None });
        }
        let worked = thread_cpu() - began;
        worked_ns.fetch_add(worked.as_nanos() as u64, Ordering::Relaxed);
        rest = worked * REST;
    }
}

/// A client's connection.
struct Connection {
    stream: TcpStream,
    since: Instant,
    /// The received part of the request.
    head: Vec<u8>,
    /// The part of the response that is not sent yet; `None` while the request is incomplete.
    answer: Option<Vec<u8>>,
}

/// State of a connection.
enum Progress {
    /// The server waits for the client.
    Waits,
    /// The response is sent.
    Done,
}

impl Connection {
    fn wants(&self) -> PollFlags {
        if self.answer.is_some() { PollFlags::OUT } else { PollFlags::IN }
    }

    /// Reads and writes as much as possible without blocking.
    fn go_on(&mut self, metrics: &Metrics) -> io::Result<Progress> {
        let mut buffer = [0; 1_024];
        while self.answer.is_none() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.head.extend_from_slice(&buffer[..count]),
                Err(error) if is_for_later(&error) => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
            if self.head.windows(4).any(|end| end == b"\r\n\r\n") {
                self.answer = Some(answer(&self.head, metrics));
            } else if self.head.len() > MAX_REQUEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        let Some(answer) = &mut self.answer else { return Ok(Progress::Waits) };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(answer.drain(..count)),
                Err(error) if is_for_later(&error) => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::Done)
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Returns the response to a request with this head.
fn answer(head: &[u8], metrics: &Metrics) -> Vec<u8> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", CONTENT_TYPE, page(metrics)),
        ("GET" | "HEAD", _) => {
            ("404 Not Found", "text/plain; charset=utf-8", "The page is at /metrics.\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "text/plain; charset=utf-8", "Only GET and HEAD.\n".to_owned()),
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method != "HEAD" {
        answer += &body;
    }
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Starts a server with this time limit for slow clients. An infinite limit prevents lost requests on a busy machine.
    fn server(patience: Duration, metrics: Metrics) -> MetricsServer {
        MetricsServer::start_with(patience, "127.0.0.1:0".parse().unwrap(), Arc::new(metrics)).unwrap()
    }

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let metrics = Metrics::new(1);
        metrics.packets.add(12);
        let server = server(Duration::MAX, metrics);
        let answer = asked(server.address(), "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains("\nairpace_diag_packets_total 12\n"), "{body}");
        assert!(asked(server.address(), "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(asked(server.address(), "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn silent_clients_more_than_there_is_room_for_keep_nobody_from_the_page_and_the_server_ends() {
        // The time limit is infinite: if a page waited for idle clients, it would never be sent.
        let server = server(Duration::MAX, Metrics::new(1));
        let silent = || TcpStream::connect(server.address()).unwrap();
        let _silent: Vec<_> = (0..MAX_CONNECTIONS + 8).map(|_| silent()).collect();
        for _ in 0..8 {
            let answer = asked(server.address(), "GET /metrics HTTP/1.0\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let address = server.address();
        drop(server);
        TcpStream::connect(address).unwrap_err();
    }

    #[test]
    fn a_client_that_stays_silent_is_hung_up_on() {
        let server = server(Duration::from_millis(10), Metrics::new(1));
        let mut silent: Vec<_> = (0..8).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        for stream in &mut silent {
            assert!(matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_)), "a silent client is hung up on");
        }
    }

    #[test]
    fn a_flood_of_requests_takes_no_more_than_a_tenth_of_a_core() {
        let server = server(Duration::MAX, Metrics::new(1_024));
        let worked = || server.worked_ns.load(Ordering::Relaxed);
        let (began, before) = (Instant::now(), worked());
        for _ in 0..200 {
            assert!(asked(server.address(), "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        }
        // The server rested after each response except the last one.
        let work = Duration::from_nanos((worked() - before) * 9 / 10);
        assert!(work * REST <= began.elapsed(), "{work:?} of work in {:?}", began.elapsed());
    }

    #[test]
    fn a_request_may_come_in_pieces() {
        let server = server(Duration::MAX, Metrics::new(1));
        let mut stream = TcpStream::connect(server.address()).unwrap();
        for piece in ["GET /met", "rics HTTP/1.1\r\n", "Host: here\r\n\r", "\n"] {
            stream.write_all(piece.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

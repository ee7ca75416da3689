//! Serves the page over HTTP, on a thread of its own: one request at a time, each within a second.
//!
//! Chosen: no library. All that is needed of HTTP is one page for whoever asks, and the servers that are there bring pools
//! of threads or a runtime into a process that must not be disturbed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::{Metrics, page};

/// How long a request may take to come, and its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest request.
const LONGEST_REQUEST: usize = 8_192;
/// What the page is.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the page until dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Serves `metrics` at `address`.
    ///
    /// # Errors
    /// An address that is taken, or not ours.
    pub fn start(address: SocketAddr, metrics: Arc<Metrics>) -> io::Result<MetricsServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let stopped = Arc::clone(&stop);
        let serve = move || {
            while !is_stopped(&listener, &stopped) {
                // Whoever does not ask as he should, or goes away, has only himself to blame.
                let _ = listener.accept().and_then(|(stream, _)| answer(stream, &metrics));
            }
        };
        let thread = Some(std::thread::Builder::new().name("metrics".to_owned()).spawn(serve)?);
        Ok(MetricsServer { address, stop, thread })
    }

    /// Where it serves: the port, where the system chose one.
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

/// Waits for a request, or the end.
fn is_stopped(listener: &TcpListener, stop: &OwnedFd) -> bool {
    let mut waits = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    match poll(&mut waits, None) {
        Ok(_) => !waits[1].revents().is_empty(),
        Err(rustix::io::Errno::INTR) => false,
        Err(_) => true,
    }
}

fn answer(mut stream: TcpStream, metrics: &Metrics) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = request_line(&mut stream)?;
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
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

/// The first line of a request, once all of its head has come.
fn request_line(stream: &mut TcpStream) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let (mut head, mut buffer) = (vec![], [0; 1_024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > LONGEST_REQUEST {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
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

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let metrics = Arc::new(Metrics::new(1));
        metrics.packets.add(12);
        let server = MetricsServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&metrics)).unwrap();
        let answer = asked(server.address(), "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.contains("\nairpace_diag_packets_total 12\n"), "{body}");
        assert!(asked(server.address(), "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(asked(server.address(), "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn a_client_that_says_nothing_is_not_waited_for_long_and_the_server_ends() {
        let server = MetricsServer::start("127.0.0.1:0".parse().unwrap(), Arc::new(Metrics::new(1))).unwrap();
        let _silent = TcpStream::connect(server.address()).unwrap();
        let answer = asked(server.address(), "GET /metrics HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let address = server.address();
        drop(server);
        TcpStream::connect(address).unwrap_err();
    }
}

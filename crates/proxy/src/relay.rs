//! Relay between the two connections of a client, in both directions. A FIN is passed on as a FIN, a reset as a reset.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::Instant;

use super::{Totals, legs};

/// Size of the relay buffer: maximum number of bytes that are read at once.
///
/// Chosen: a few packets more than arrive between two runs of a worker thread; the kernel buffers the rest.
const ROOM: usize = 64 << 10;

thread_local! {
    /// Relay buffer. Each thread has one buffer for all of its connections. Only bytes that the other connection does
    /// not accept are stored separately, by their own connection.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; ROOM].into());
}

/// Byte counters of one connection, and those of the whole proxy.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a> {
    pub up: &'a AtomicU64,
    pub down: &'a AtomicU64,
    pub all: &'a Totals,
}

/// Writes a reply to a client.
pub(super) async fn say(client: &mut TcpStream, words: &[u8]) -> io::Result<()> {
    client.write_all(words).await
}

/// Waits for data and passes it to `take`. No buffer is held while waiting. Returns the number of bytes; 0 at the end of
/// the stream.
pub(super) async fn read(from: &TcpStream, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
    loop {
        from.readable().await?;
        let read = SCRATCH.with_borrow_mut(|room| {
            let count = from.try_read(room)?;
            take(&room[..count]);
            Ok(count)
        });
        match read {
            Err(error) if is_nothing_yet(&error) => {}
            other => return other,
        }
    }
}

/// Relays both directions until both have ended, or no data came in either direction for `idle`, or `cut` completes.
/// `greeting` is sent to the client first, and `first` to the server.
pub(super) async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    greeting: &[u8],
    first: &[u8],
    counts: Counts<'_>,
    idle: Duration,
    cut: impl Future<Output = ()>,
) -> io::Result<()> {
    let result = tokio::select! {
        result = both(&mut client, &mut server, greeting, first, counts, idle) => result,
        () = cut => Err(io::Error::other("the proxy ended")),
    };
    if result.is_err() {
        legs::reset_when_closed(&client);
        legs::reset_when_closed(&server);
    }
    result
}

async fn both(
    client: &mut TcpStream,
    server: &mut TcpStream,
    greeting: &[u8],
    first: &[u8],
    counts: Counts<'_>,
    idle: Duration,
) -> io::Result<()> {
    client.write_all(greeting).await?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let active = Mutex::new(Instant::now());
    let up = pour(from_client, to_server, first, [counts.up, &counts.all.up], &active);
    let down = pour(from_server, to_client, &[], [counts.down, &counts.all.down], &active);
    tokio::select! {
        ended = async { tokio::try_join!(up, down) } => ended.map(|_| ()),
        () = nothing_comes(&active, idle) => {
            Err(io::Error::new(ErrorKind::TimedOut, format!("nothing was received for {} s", idle.as_secs())))
        }
    }
}

/// Waits until no data has come in either direction for `idle`.
async fn nothing_comes(active: &Mutex<Instant>, idle: Duration) {
    loop {
        let over = *active.lock().unwrap_or_else(PoisonError::into_inner) + idle;
        if over <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(over).await;
    }
}

/// Relays one direction until its end of stream.
async fn pour(
    from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    first: &[u8],
    counts: [&AtomicU64; 2],
    active: &Mutex<Instant>,
) -> io::Result<()> {
    let count = |bytes: usize| {
        counts.iter().for_each(|count| _ = count.fetch_add(bytes as u64, Ordering::Relaxed));
        *active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    };
    to.write_all(first).await?;
    count(first.len());
    loop {
        from.readable().await?;
        // Data that the other connection does not accept stays in the kernel's receive buffer, so that TCP flow control
        // slows the sender down.
        has_room(to.as_ref()).await?;
        let (bytes, left) = match carry(&from, &to) {
            Ok(carried) => carried,
            Err(error) if is_nothing_yet(&error) => continue,
            Err(error) => return Err(error),
        };
        if bytes == 0 {
            return to.shutdown().await;
        }
        to.write_all(&left).await?;
        count(bytes);
    }
}

/// Waits until the kernel accepts data for this connection.
async fn has_room(to: &TcpStream) -> io::Result<()> {
    loop {
        to.writable().await?;
        let takes = to.try_io(Interest::WRITABLE, || {
            let mut leg = [PollFd::new(to, PollFlags::OUT)];
            // A failed connection is also reported as ready: the write then returns the error.
            match poll(&mut leg, Some(&Timespec::default()))? {
                0 => Err(ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        match takes {
            Err(error) if is_nothing_yet(&error) => {}
            other => return other,
        }
    }
}

/// Relays the data that has arrived. Returns the number of bytes read (0 at the end of the stream) and the bytes that the
/// other connection did not accept.
fn carry(from: &ReadHalf<'_>, to: &WriteHalf<'_>) -> io::Result<(usize, Vec<u8>)> {
    SCRATCH.with_borrow_mut(|room| {
        let bytes = from.try_read(room)?;
        let written = match bytes {
            0 => 0,
            bytes => match to.try_write(&room[..bytes]) {
                Err(error) if is_nothing_yet(&error) => 0,
                written => written?,
            },
        };
        Ok((bytes, room[written..bytes].to_vec()))
    })
}

/// Whether the error only means that the call must be repeated: no data yet, or interrupted by a signal.
fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

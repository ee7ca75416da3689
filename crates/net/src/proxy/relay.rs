//! Bytes from one leg to the other, in both directions. An end is passed on as an end, and a reset as a reset.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::{Totals, legs};

/// Bytes that a direction holds at once.
///
/// Chosen: some packets more than a processor's turn brings; the kernel holds the rest.
const ROOM: usize = 64 << 10;

/// Where bytes are counted.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a> {
    pub up: &'a AtomicU64,
    pub down: &'a AtomicU64,
    pub all: &'a Totals,
}

/// Says something to a client.
pub(super) async fn say(client: &mut TcpStream, words: &[u8]) -> io::Result<()> {
    client.write_all(words).await
}

/// Carries both directions until both have ended. `greeting` goes to the client first, and `first` to the server.
pub(super) async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    greeting: &[u8],
    first: &[u8],
    counts: Counts<'_>,
) -> io::Result<()> {
    let result = both(&mut client, &mut server, greeting, first, counts).await;
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
) -> io::Result<()> {
    client.write_all(greeting).await?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let up = pour(from_client, to_server, first, [counts.up, &counts.all.up]);
    let down = pour(from_server, to_client, &[], [counts.down, &counts.all.down]);
    tokio::try_join!(up, down)?;
    Ok(())
}

/// One direction, to its end.
async fn pour(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    first: &[u8],
    counts: [&AtomicU64; 2],
) -> io::Result<()> {
    let count =
        |bytes: usize| counts.iter().for_each(|count| _ = count.fetch_add(bytes as u64, Ordering::Relaxed));
    to.write_all(first).await?;
    count(first.len());
    let mut room = vec![0; ROOM];
    loop {
        match from.read(&mut room).await? {
            0 => return to.shutdown().await,
            bytes => {
                to.write_all(&room[..bytes]).await?;
                count(bytes);
            }
        }
    }
}

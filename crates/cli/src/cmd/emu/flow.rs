//! One end of a TCP connection that carries as much as it can for some time: the source with which `airpace doctor --emu`
//! measures what the emulator carries.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::super::Verdict;

/// One end of a test connection of `airpace doctor --emu`, which starts it.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu-flow listen 100.64.0.1:9 send 2", hide = true)]
pub struct FlowArgs {
    /// Whether it waits for the connection or opens it.
    #[arg(value_enum)]
    part: Part,
    /// The address of the end that waits.
    address: SocketAddr,
    /// What it does.
    #[arg(value_enum)]
    task: Task,
    /// For how long it sends, in s.
    #[arg(value_parser = super::super::positive)]
    seconds: f64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Part {
    Listen,
    Connect,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Task {
    Send,
    Receive,
}

/// The share of the time that is not counted: the sender finds its rate.
const WARM_UP: f64 = 0.25;

/// Runs it to the end of the connection. The receiver prints its goodput in Mbit/s.
///
/// # Errors
/// A connection that cannot be made.
pub fn flow(args: &FlowArgs, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let failed = || format!("there is no connection by {}", args.address);
    let mut stream = match args.part {
        Part::Listen => {
            let listener = TcpListener::bind(args.address).with_context(failed)?;
            writeln!(out, "listening")?;
            out.flush()?;
            listener.accept().map(|accepted| accepted.0)
        }
        Part::Connect => TcpStream::connect(args.address),
    }
    .with_context(failed)?;
    match args.task {
        Task::Send => send(&mut stream, args.seconds)?,
        Task::Receive => writeln!(out, "{}", receive(&mut stream, args.seconds)?)?,
    }
    Ok(Verdict::Fine)
}

fn send(stream: &mut TcpStream, seconds: f64) -> anyhow::Result<()> {
    let chunk = [0; 64 << 10];
    let began = Instant::now();
    while began.elapsed().as_secs_f64() < seconds {
        match stream.write_all(&chunk) {
            // The receiver has seen enough.
            Err(error) if [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind()) => {
                break;
            }
            written => written?,
        }
    }
    Ok(())
}

/// Reads for so long. Returns the goodput in Mbit/s after the beginning.
fn receive(stream: &mut TcpStream, seconds: f64) -> anyhow::Result<f64> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut room = vec![0; 256 << 10];
    let (mut bytes, mut since, mut last) = (0, None, 0.0);
    let began = Instant::now();
    loop {
        let count = stream.read(&mut room)?;
        let now = began.elapsed().as_secs_f64();
        if count == 0 || now > seconds {
            break;
        }
        match since {
            None if now < seconds * WARM_UP => {}
            None => since = Some(now),
            Some(_) => (bytes, last) = (bytes + count as u64, now),
        }
    }
    let lasted = since.map_or(0.0, |since| last - since);
    Ok(if lasted > 0.0 { bytes as f64 * 8e-6 / lasted } else { 0.0 })
}

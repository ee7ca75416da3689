//! One connection of a transfer: the part that is common to client and server.

use std::time::Duration;

use airpace_core::{Refused, Time};

use super::channel::{Channel, Fill};
use super::message::{Fault, Frame, Message};
use super::progress::Tally;
use super::receiving::{Receiving, Wants};
use super::sending::Sending;
use airpace_transport::endpoint::Connection;
use airpace_transport::key::Key;

/// Polling interval while waiting for a disk, a pipe or a thread.
///
/// Chosen: shorter than a window of a transfer at 100 Mbit/s lasts, and negligible load on a machine.
const SOON: Duration = Duration::from_millis(2);

/// Label that both endpoints' proofs contain, besides the role and the channel binding.
const PROOF: &[u8] = b"airpace transfer 1";

/// Role of an endpoint. A proof is valid for one role only, so that a received proof cannot be sent back (reflection).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The endpoint that opened the connection.
    Client,
    /// The endpoint that accepted the connection.
    Server,
}

impl Role {
    fn name(self) -> &'static [u8] {
        match self {
            Role::Client => b"client",
            Role::Server => b"server",
        }
    }

    /// Computes this role's proof of having the key.
    pub fn prove(self, key: &Key, binding: &[u8; 32]) -> [u8; 32] {
        key.prove(&[PROOF, self.name(), binding])
    }

    /// Verifies this role's proof.
    pub fn verify(self, key: &Key, binding: &[u8; 32], proof: &[u8; 32]) -> bool {
        key.verify(&[PROOF, self.name(), binding], proof)
    }
}

/// File transfer over a connection.
#[derive(Default)]
pub enum Work {
    /// No transfer has started.
    #[default]
    None,
    /// Files are sent.
    Sending(Box<Sending>),
    /// Files are received.
    Receiving(Box<Receiving>),
}

impl Work {
    /// Counters of the transfer; `None` before it starts.
    pub fn tally(&self) -> Option<&Tally> {
        match self {
            Work::None => None,
            Work::Sending(sending) => Some(&sending.tally),
            Work::Receiving(receiving) => Some(&receiving.tally),
        }
    }

    /// Whether all files are stored.
    pub fn is_done(&self) -> bool {
        match self {
            Work::None => false,
            Work::Sending(sending) => sending.is_done(),
            Work::Receiving(receiving) => receiving.is_done(),
        }
    }
}

/// Input from the peer that the file transfer itself does not handle.
#[derive(Debug)]
pub enum Word {
    /// The peer's first frame: version and proof.
    Hello(u8, [u8; 32]),
    /// A message.
    Message(Message),
    /// The peer has ended its stream.
    End,
}

/// Reason why a connection is no longer usable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The connection is over; an event contains the reason.
    Lost,
    /// The transfer failed.
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

/// State of one connection.
#[derive(Default)]
pub struct Link {
    /// Frames of the connection.
    pub channel: Channel,
    /// File transfer over the connection.
    pub work: Work,
    /// Name and size of the files stored since the caller last emptied this list.
    pub stored: Vec<(String, u64)>,
    wants: Option<Wants>,
    is_over: bool,
}

impl Link {
    /// Reads, processes and writes frames until the peer sends something that the file transfer does not handle, or until
    /// no progress is possible. Reads at most `budget` file bytes that serve only for comparison.
    ///
    /// # Errors
    /// The transfer failed, or the connection is over.
    pub fn turn(
        &mut self,
        now: Time,
        connection: &mut dyn Connection,
        budget: &mut usize,
    ) -> Result<Option<Word>, Stop> {
        let lost = |_: Refused| Stop::Lost;
        loop {
            self.channel.flush(now, connection).map_err(lost)?;
            self.work(budget)?;
            let mut came = false;
            while self.channel.has_room() && !self.is_over {
                let Some((frame, length)) = self.channel.peek()? else {
                    match self.channel.fill(now, connection).map_err(lost)? {
                        Fill::Bytes => continue,
                        Fill::Nothing => break,
                        Fill::End => {
                            self.is_over = true;
                            return Ok(Some(Word::End));
                        }
                    }
                };
                let message = match frame {
                    Frame::Data(bytes) => {
                        let Work::Receiving(receiving) = &mut self.work else {
                            return Err(Fault::protocol("it sent data that belong to no file").into());
                        };
                        if !receiving.on_data(bytes)? {
                            break;
                        }
                        self.channel.consume(length);
                        came = true;
                        continue;
                    }
                    Frame::Hello { version, proof } => {
                        let mut own = [0; 32];
                        own.copy_from_slice(proof);
                        self.channel.consume(length);
                        return Ok(Some(Word::Hello(version, own)));
                    }
                    Frame::Message(message) => message,
                };
                self.channel.consume(length);
                came = true;
                match (&mut self.work, message) {
                    (Work::None, message) => return Ok(Some(Word::Message(message))),
                    (Work::Sending(sending), message) => sending.on_message(message)?,
                    (Work::Receiving(receiving), message) => receiving.on_message(message)?,
                }
            }
            self.work(budget)?;
            let put = !self.channel.is_flushed();
            self.channel.flush(now, connection).map_err(lost)?;
            // Repeat if the flush made room for further frames.
            let made_room = put && self.channel.is_flushed();
            if !came && !made_room {
                break;
            }
        }
        let wants = match &self.work {
            // An event reports when the connection accepts bytes again.
            _ if !self.channel.has_room() => Wants::Nothing,
            Work::None => Wants::Nothing,
            Work::Sending(sending) => sending.wants(),
            Work::Receiving(receiving) => receiving.wants(),
        };
        self.wants = Some(wants);
        Ok(None)
    }

    fn work(&mut self, budget: &mut usize) -> Result<(), Fault> {
        match &mut self.work {
            Work::None => Ok(()),
            Work::Sending(sending) => sending.work(budget, &mut self.channel),
            Work::Receiving(receiving) => {
                self.stored.extend(receiving.work(budget, &mut self.channel)?);
                Ok(())
            }
        }
    }

    /// Time of the next call of [`Link::turn`], if no event comes before.
    pub fn poll_timeout(&self, now: Time) -> Option<Time> {
        match self.wants? {
            Wants::Nothing => None,
            Wants::Soon => Some(now + SOON),
            Wants::Now => Some(now),
        }
    }
}

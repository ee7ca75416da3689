//! A connection that carries files: what both sides do in the same way.

use std::time::Duration;

use airpace_core::Time;

use super::channel::{Channel, Fill};
use super::message::{Fault, Frame, Message};
use super::progress::Tally;
use super::receiving::{Receiving, Wants};
use super::sending::Sending;
use crate::key::Key;
use crate::transport::Connection;

/// How long to wait before asking a disk, a pipe or a thread again.
///
/// Chosen: less than what a transfer of 100 Mbit/s needs for a window, and no load on a machine.
const SOON: Duration = Duration::from_millis(2);

/// What the proofs of both sides name, besides role and binding.
const PROOF: &[u8] = b"airpace transfer 1";

/// The side of a connection. A proof of one is none of the other, so that nobody can send back what it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Who began the connection.
    Client,
    /// Who was called.
    Server,
}

impl Role {
    fn name(self) -> &'static [u8] {
        match self {
            Role::Client => b"client",
            Role::Server => b"server",
        }
    }

    /// The proof that this side knows the key.
    pub fn prove(self, key: &Key, binding: &[u8; 32]) -> [u8; 32] {
        key.prove(&[PROOF, self.name(), binding])
    }

    /// Whether this side's proof is right.
    pub fn verify(self, key: &Key, binding: &[u8; 32], proof: &[u8; 32]) -> bool {
        key.verify(&[PROOF, self.name(), binding], proof)
    }
}

/// What moves over a connection.
#[derive(Default)]
pub enum Work {
    /// Nothing yet.
    #[default]
    None,
    /// Files go.
    Sending(Box<Sending>),
    /// Files come.
    Receiving(Box<Receiving>),
}

impl Work {
    /// What was done.
    pub fn tally(&self) -> Option<&Tally> {
        match self {
            Work::None => None,
            Work::Sending(sending) => Some(&sending.tally),
            Work::Receiving(receiving) => Some(&receiving.tally),
        }
    }

    /// Whether all is done.
    pub fn is_done(&self) -> bool {
        match self {
            Work::None => false,
            Work::Sending(sending) => sending.is_done(),
            Work::Receiving(receiving) => receiving.is_done(),
        }
    }
}

/// What the other side said that is not about a file.
#[derive(Debug)]
pub enum Word {
    /// Its first word: version and proof.
    Hello(u8, [u8; 32]),
    /// A message.
    Message(Message),
    /// It will say no more.
    End,
}

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is over by itself; an event says why.
    Lost,
    /// The transfer cannot go on.
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

/// One connection.
#[derive(Default)]
pub struct Link {
    /// Its frames.
    pub channel: Channel,
    /// What moves.
    pub work: Work,
    /// Files that were stored since somebody looked here.
    pub stored: Vec<(String, u64)>,
    wants: Option<Wants>,
    is_over: bool,
}

impl Link {
    /// Moves what can be moved, until the other side says something that is not about a file, or nothing moves any
    /// more. Reads at most `budget` bytes only to compare them.
    ///
    /// # Errors
    /// The transfer cannot go on, or the connection is over.
    pub fn turn(
        &mut self,
        now: Time,
        connection: &mut dyn Connection,
        budget: &mut usize,
    ) -> Result<Option<Word>, Stop> {
        let lost = |_: String| Stop::Lost;
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
                            return Err(Fault::protocol("bytes came that belong to no file").into());
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
            // Once more, if that made room for something to do.
            let made_room = put && self.channel.is_flushed();
            if !came && !made_room {
                break;
            }
        }
        let wants = match &self.work {
            // The connection says when there is room.
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

    /// When to turn it again, if nothing happens earlier.
    pub fn next(&self, now: Time) -> Option<Time> {
        match self.wants? {
            Wants::Nothing => None,
            Wants::Soon => Some(now + SOON),
            Wants::Now => Some(now),
        }
    }
}

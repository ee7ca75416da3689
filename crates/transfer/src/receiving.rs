//! Receiver of a transfer. It runs on the server (push) or on the client (pull).

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::rc::Rc;
use std::sync::mpsc::{self, TryRecvError};

use ring::digest::{Context, SHA256};

use super::channel::Channel;
use super::message::{AHEAD, Code, Fault, Hash, Have, Message, Offer};
use super::name::Name;
use super::progress::Tally;
use super::store::{Finisher, Incoming, Prefix, Store, There};

/// Maximum number of complete files that wait for the disk.
const FINISHING: usize = 8;

/// Number of bytes of a stream between two `Reached` messages.
const REACHED: u64 = 1 << 20;

/// State of the files received over one connection.
pub struct Receiving {
    transfer: String,
    files: u64,
    store: Rc<dyn Store>,
    finisher: Rc<Finisher>,
    /// Number of offered files.
    offered: u64,
    /// Offers that have not been checked against the store yet.
    queue: VecDeque<(Offer, Name)>,
    looking: Option<Looking>,
    /// Whether the next offered file is just being renamed to its final name, so that the check must be repeated.
    is_ending: bool,
    /// Files whose data may start, in order.
    ready: VecDeque<Ready>,
    current: Option<Current>,
    finishing: VecDeque<Finishing>,
    /// Whether received data could not be written for lack of room.
    is_full: bool,
    /// Counters of the transfer.
    pub tally: Tally,
}

/// A partial or complete file whose hash is being computed.
struct Looking {
    ready: Ready,
    file: std::fs::File,
    at: u64,
}

struct Ready {
    offer: Offer,
    name: Name,
    bytes: u64,
    context: Context,
    whole: bool,
    replaceable: bool,
}

struct Current {
    offer: Offer,
    name: Name,
    file: Box<dyn Incoming>,
    context: Context,
    at: u64,
    reached: u64,
}

struct Finishing {
    index: u64,
    name: Name,
    bytes: u64,
    /// Result of finishing the file; `None` if the file was already present.
    told: Option<mpsc::Receiver<Result<(), Fault>>>,
}

impl Receiving {
    /// Creates the receiver of this many files.
    pub fn new(
        transfer: String,
        files: u64,
        bytes: Option<u64>,
        store: Rc<dyn Store>,
        finisher: Rc<Finisher>,
    ) -> Receiving {
        Receiving {
            transfer,
            files,
            store,
            finisher,
            offered: 0,
            queue: VecDeque::new(),
            looking: None,
            is_ending: false,
            ready: VecDeque::new(),
            current: None,
            finishing: VecDeque::new(),
            is_full: false,
            tally: Tally { files, bytes, ..Tally::default() },
        }
    }

    /// Whether all files are stored.
    pub fn is_done(&self) -> bool {
        self.tally.stored == self.files
    }

    /// When to call [`Receiving::work`] again: there is work, or the receiver waits for a disk or the reader of a stream,
    /// which cause no event.
    pub fn wants(&self) -> Wants {
        if self.looking.is_some() || !self.queue.is_empty() && !self.is_ending {
            return Wants::Now;
        }
        if self.is_full || self.is_ending || !self.finishing.is_empty() {
            Wants::Soon
        } else {
            Wants::Nothing
        }
    }

    /// Processes a message.
    ///
    /// # Errors
    /// The message is out of order, or the file is refused.
    pub fn on_message(&mut self, message: Message) -> Result<(), Fault> {
        match message {
            Message::Offer(offer) => {
                if offer.index != self.offered
                    || offer.index >= self.files
                    || offer.index >= self.tally.stored + AHEAD
                {
                    return Err(Fault::protocol(format_args!(
                        "it offered file {} in the wrong order",
                        offer.index
                    )));
                }
                let refuse =
                    |error| Fault::new(Code::Refused, format!("`{}` is refused: {error}", offer.name));
                let name = Name::parse(&offer.name).map_err(refuse)?;
                self.offered += 1;
                self.queue.push_back((offer, name));
                Ok(())
            }
            Message::Begin { index, offset } => self.begin(index, offset),
            Message::Skip { index } => {
                let ready = self.take(index)?;
                if !ready.whole {
                    return Err(Fault::protocol("it skipped a file that the receiver does not have"));
                }
                self.tally.moved(ready.bytes);
                self.tally.resumed += ready.bytes;
                self.finishing.push_back(Finishing {
                    index,
                    name: ready.name,
                    bytes: ready.bytes,
                    told: None,
                });
                Ok(())
            }
            Message::End { bytes, sha256 } => self.end(bytes, sha256),
            _ => Err(Fault::protocol("it sent a message that only receivers send")),
        }
    }

    fn take(&mut self, index: u64) -> Result<Ready, Fault> {
        match self.ready.pop_front() {
            Some(ready) if ready.offer.index == index && self.current.is_none() => Ok(ready),
            _ => Err(Fault::protocol(format_args!("it started file {index} in the wrong order"))),
        }
    }

    fn begin(&mut self, index: u64, offset: u64) -> Result<(), Fault> {
        let ready = self.take(index)?;
        if offset != 0 && (offset != ready.bytes || ready.whole) {
            return Err(Fault::protocol(format_args!(
                "it started file {index} at byte {offset}, which was not requested"
            )));
        }
        if ready.whole && !ready.replaceable {
            return Err(Fault::protocol(format_args!("it started file {index}, which must not be replaced")));
        }
        let file = self.store.open(&self.transfer, &ready.offer, &ready.name, offset)?;
        let context = if offset == 0 { Context::new(&SHA256) } else { ready.context };
        self.tally.moved(offset);
        self.tally.resumed += offset;
        self.tally.name = ready.name.to_string();
        self.current = Some(Current {
            offer: ready.offer,
            name: ready.name,
            file,
            context,
            at: offset,
            reached: offset,
        });
        Ok(())
    }

    /// Processes data of the current file. Returns whether it was accepted; if not, the caller must pass it again.
    ///
    /// # Errors
    /// The data is out of order, or cannot be written.
    pub fn on_data(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        let Some(current) = &mut self.current else {
            return Err(Fault::protocol("it sent data that belong to no file"));
        };
        let after = current.at + bytes.len() as u64;
        if current.offer.bytes.is_some_and(|whole| after > whole) {
            return Err(Fault::protocol(format_args!(
                "`{}` has more bytes than were announced",
                current.name
            )));
        }
        if self.finishing.len() >= FINISHING {
            self.is_full = true;
            return Ok(false);
        }
        let written = current.file.write(bytes).map_err(|error| cannot_write(&current.name, &error))?;
        self.is_full = !written;
        if written {
            current.context.update(bytes);
            current.at = after;
            self.tally.moved(bytes.len() as u64);
        }
        Ok(written)
    }

    fn end(&mut self, bytes: u64, sha256: Hash) -> Result<(), Fault> {
        let Some(current) = self.current.take() else {
            return Err(Fault::protocol("it ended a file that it had not started"));
        };
        let is_length = bytes == current.at && current.offer.bytes.is_none_or(|whole| whole == bytes);
        if !is_length || Hash::of(current.context) != sha256 {
            current.file.discard();
            let sentence = format!(
                "`{}` arrived damaged ({} bytes, hash differs); the received data were removed, send it again",
                current.name, current.at
            );
            return Err(Fault::new(Code::Store, sentence));
        }
        let told = Some(self.finisher.finish(current.file));
        self.finishing.push_back(Finishing { index: current.offer.index, name: current.name, bytes, told });
        Ok(())
    }

    /// Computes hashes of present files, at most `budget` bytes, and reports finished files to the sender. Returns name and
    /// size of the files stored.
    ///
    /// # Errors
    /// A file cannot be read or stored.
    pub fn work(&mut self, budget: &mut usize, channel: &mut Channel) -> Result<Vec<(String, u64)>, Fault> {
        let mut stored = Vec::new();
        while let Some(first) = self.finishing.front() {
            match first.told.as_ref().map(mpsc::Receiver::try_recv) {
                None | Some(Ok(Ok(()))) => {}
                Some(Ok(Err(fault))) => return Err(fault),
                Some(Err(TryRecvError::Empty)) => break,
                Some(Err(TryRecvError::Disconnected)) => {
                    return Err(Fault::new(
                        Code::Store,
                        "the thread that waits for the disk is gone; start again",
                    ));
                }
            }
            channel.put(&Message::Stored { index: first.index });
            stored.push((first.name.to_string(), first.bytes));
            self.tally.stored += 1;
            self.finishing.pop_front();
        }
        if let Some(current) = &mut self.current
            && current.offer.bytes.is_none()
            && current.at >= current.reached + REACHED
        {
            current.reached = current.at;
            channel.put(&Message::Reached { index: current.offer.index, bytes: current.at });
        }
        self.look(budget, channel)?;
        Ok(stored)
    }

    fn look(&mut self, budget: &mut usize, channel: &mut Channel) -> Result<(), Fault> {
        while channel.has_room() {
            if let Some(looking) = &mut self.looking {
                let mut buffer = [0; 16 * 1024];
                while looking.at < looking.ready.bytes {
                    if *budget == 0 {
                        return Ok(());
                    }
                    let left = looking.ready.bytes - looking.at;
                    let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let count = match looking.file.read(&mut buffer[..most]) {
                        Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                        Ok(0) => {
                            return Err(Fault::new(
                                Code::Busy,
                                format!("`{}` became shorter", looking.ready.name),
                            ));
                        }
                        Ok(count) => count,
                        Err(error) => return Err(cannot_write(&looking.ready.name, &error)),
                    };
                    looking.ready.context.update(&buffer[..count]);
                    looking.at += count as u64;
                    self.tally.checked += count as u64;
                    *budget = budget.saturating_sub(count);
                }
            }
            if let Some(Looking { ready, .. }) = self.looking.take() {
                self.have(ready, channel);
                continue;
            }
            let Some((offer, name)) = self.queue.pop_front() else { return Ok(()) };
            let there = self.store.look(&self.transfer, &offer, &name)?;
            self.is_ending = there.is_none();
            let Some(There { bytes, prefix, whole, replaceable }) = there else {
                self.queue.push_front((offer, name));
                return Ok(());
            };
            let ready = |context| Ready { offer, name, bytes, context, whole, replaceable };
            match prefix {
                Prefix::Known(context) => self.have(ready(*context), channel),
                Prefix::File(file) => {
                    self.looking = Some(Looking { ready: ready(Context::new(&SHA256)), file, at: 0 });
                }
            }
        }
        Ok(())
    }

    fn have(&mut self, ready: Ready, channel: &mut Channel) {
        let has_any = ready.bytes > 0 || ready.whole;
        channel.put(&Message::Have(Have {
            index: ready.offer.index,
            bytes: ready.bytes,
            sha256: has_any.then(|| Hash::of(ready.context.clone())),
            whole: ready.whole,
            replaceable: ready.replaceable,
        }));
        self.ready.push_back(ready);
    }
}

/// Time at which a poll is needed, as no event triggers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wants {
    /// No poll; wait for the next event.
    Nothing,
    /// The poll is needed after a few milliseconds.
    Soon,
    /// The poll is needed immediately after the other connections were processed, because there is work.
    Now,
}

fn cannot_write(name: &Name, error: &std::io::Error) -> Fault {
    super::store::unwritable(name, error)
}

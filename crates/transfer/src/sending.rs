//! Sender of a transfer. It runs on the client (push) or on the server (pull).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::rc::Rc;

use ring::digest::Context;

use super::channel::Channel;
use super::message::{AHEAD, Code, Fault, Hash, Have, MAX_DATA, Message};
use super::progress::Tally;
use super::receiving::Wants;
use super::source::{Got, Outgoing, Sources};

/// State of the files sent over one connection.
pub struct Sending {
    sources: Rc<RefCell<dyn Sources>>,
    files: u64,
    offered: u64,
    /// The receiver's reports on offered files that have not started yet.
    haves: VecDeque<Have>,
    /// Index of the next file to start.
    next: u64,
    current: Option<Current>,
    /// Lengths of the offered files that have not started yet; `None` for streams.
    offers: VecDeque<Option<u64>>,
    wants: Wants,
    /// Counters of the transfer.
    pub tally: Tally,
}

struct Current {
    index: u64,
    file: Box<dyn Outgoing>,
    bytes: Option<u64>,
    context: Context,
    at: u64,
    stage: Stage,
    name: String,
}

enum Stage {
    /// The receiver's part of the file is compared with the local file.
    Checking(Have),
    Moving,
}

impl Sending {
    /// Creates the sender of all files of the sources.
    pub fn new(sources: Rc<RefCell<dyn Sources>>) -> Sending {
        let (files, bytes) = (sources.borrow().files(), sources.borrow().bytes());
        Sending {
            sources,
            files,
            offered: 0,
            haves: VecDeque::new(),
            next: 0,
            current: None,
            offers: VecDeque::new(),
            wants: Wants::Now,
            tally: Tally { files, bytes, ..Tally::default() },
        }
    }

    /// Whether the receiver has stored all files.
    pub fn is_done(&self) -> bool {
        self.tally.stored == self.files
    }

    /// When to call [`Sending::work`] again: there is work, or the sender waits for a source.
    pub fn wants(&self) -> Wants {
        self.wants
    }

    /// Processes a message.
    ///
    /// # Errors
    /// The message is out of order.
    pub fn on_message(&mut self, message: Message) -> Result<(), Fault> {
        match message {
            Message::Have(have) => {
                let expected = self.next + self.haves.len() as u64;
                if have.index != expected || have.index >= self.offered {
                    return Err(Fault::protocol(format_args!(
                        "it answered for file {} in the wrong order",
                        have.index
                    )));
                }
                self.haves.push_back(have);
            }
            Message::Stored { index } => {
                let has_ended =
                    index < self.next && self.current.as_ref().is_none_or(|current| index < current.index);
                if index != self.tally.stored || !has_ended {
                    return Err(Fault::protocol(format_args!(
                        "it confirmed file {index}, which it has not received"
                    )));
                }
                self.tally.stored += 1;
            }
            Message::Reached { index, bytes } => {
                if let Some(current) = self.current.as_mut().filter(|current| current.index == index) {
                    if bytes > current.at {
                        return Err(Fault::protocol("it confirmed bytes that were not sent"));
                    }
                    current.file.forget(bytes);
                }
            }
            _ => return Err(Fault::protocol("it sent a message that only senders send")),
        }
        Ok(())
    }

    /// Writes offers and file data into the channel while it has room. Reads at most `budget` bytes that serve only for
    /// comparison.
    ///
    /// # Errors
    /// A file cannot be read, or must not be sent.
    pub fn work(&mut self, budget: &mut usize, channel: &mut Channel) -> Result<(), Fault> {
        self.wants = Wants::Nothing;
        while channel.has_room() {
            if self.offered < self.files && self.offered < self.tally.stored + AHEAD {
                let offer = self.sources.borrow_mut().offer(self.offered)?;
                self.offers.push_back(offer.bytes);
                self.offered += 1;
                channel.put(&Message::Offer(offer));
                continue;
            }
            if self.current.is_none() && !self.begin()? {
                return Ok(());
            }
            let Some(mut current) = self.current.take() else { return Ok(()) };
            let turn = match current.stage {
                Stage::Checking(_) => current.check(budget, channel, &mut self.tally)?,
                Stage::Moving => current.send(channel, &mut self.tally)?,
            };
            match turn {
                Turn::Over => continue,
                Turn::More => self.current = Some(current),
                Turn::Rest(wants) => {
                    self.current = Some(current);
                    self.wants = wants;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<bool, Fault> {
        let Some(have) = self.haves.pop_front() else { return Ok(false) };
        let bytes = self.offers.pop_front().flatten();
        let mut sources = self.sources.borrow_mut();
        let name = sources.offer(have.index)?.name;
        let file = sources.open(have.index)?;
        let (start, context) = file.start();
        self.next += 1;
        self.tally.name.clone_from(&name);
        let index = have.index;
        if bytes.is_some_and(|whole| have.bytes > whole) || (have.bytes > 0 && have.sha256.is_none()) {
            return Err(Fault::protocol(format_args!(
                "it has more bytes of `{name}` than the file contains"
            )));
        }
        if start > have.bytes {
            let sentence = format!(
                "`{name}` cannot be resumed: the receiver lost bytes of a stream that cannot be read again"
            );
            return Err(Fault::new(Code::Source, sentence));
        }
        self.current =
            Some(Current { index, file, bytes, context, at: start, stage: Stage::Checking(have), name });
        Ok(true)
    }
}

/// Result of one step on the current file.
enum Turn {
    /// The file is finished: sent or skipped.
    Over,
    /// Continue with the next step.
    More,
    /// Stop for now and let other connections run.
    Rest(Wants),
}

impl Current {
    fn unreadable(&self, error: &std::io::Error) -> Fault {
        match error.kind() {
            // The file contains a private key.
            ErrorKind::PermissionDenied => {
                Fault::new(Code::Refused, format!("`{}` is not handed out: {error}", self.name))
            }
            _ => Fault::new(Code::Source, format!("`{}` cannot be read any more: {error}", self.name)),
        }
    }

    /// Compares the start of the local file with the receiver's part.
    fn check(&mut self, budget: &mut usize, channel: &mut Channel, tally: &mut Tally) -> Result<Turn, Fault> {
        let Stage::Checking(have) = &self.stage else { return Ok(Turn::More) };
        let have = have.clone();
        let mut buffer = [0; 16 * 1024];
        while self.at < have.bytes {
            if *budget == 0 {
                return Ok(Turn::Rest(Wants::Now));
            }
            let most = buffer.len().min(usize::try_from(have.bytes - self.at).unwrap_or(usize::MAX));
            match self.file.read(self.at, &mut buffer[..most]).map_err(|error| self.unreadable(&error))? {
                Got::Bytes(count) => {
                    self.context.update(&buffer[..count]);
                    self.at += count as u64;
                    tally.checked += count as u64;
                    *budget = budget.saturating_sub(count);
                }
                Got::Nothing => return Ok(Turn::Rest(Wants::Soon)),
                Got::End => break,
            }
        }
        let ours = Hash::of(self.context.clone());
        let is_same = self.at == have.bytes && have.sha256.is_none_or(|theirs| theirs == ours);
        if is_same && have.whole {
            self.file.check()?;
            tally.moved(have.bytes);
            tally.resumed += have.bytes;
            channel.put(&Message::Skip { index: self.index });
            return Ok(Turn::Over);
        }
        if have.whole && !have.replaceable {
            let sentence = format!("`{}` is there already, and is another file", self.name);
            return Err(Fault::new(Code::Refused, sentence).but(crate::store::overwrite()));
        }
        if !is_same || have.whole {
            let (start, context) = self.file.start();
            if start > 0 {
                let sentence =
                    format!("`{}` cannot be resumed: the receiver has other bytes of the stream", self.name);
                return Err(Fault::new(Code::Source, sentence));
            }
            (self.at, self.context) = (0, context);
        }
        tally.moved(self.at);
        tally.resumed += self.at;
        channel.put(&Message::Begin { index: self.index, offset: self.at });
        self.stage = Stage::Moving;
        Ok(Turn::More)
    }

    /// Sends the next frame of data.
    fn send(&mut self, channel: &mut Channel, tally: &mut Tally) -> Result<Turn, Fault> {
        let left = self.bytes.map_or(u64::MAX, |whole| whole - self.at);
        let most = MAX_DATA.min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut got = Got::End;
        if most > 0 {
            let (file, context, at) = (&mut self.file, &mut self.context, self.at);
            let read = channel.put_data(|into| {
                got = file.read(at, &mut into[..most])?;
                let Got::Bytes(count) = got else { return Ok(0) };
                context.update(&into[..count]);
                Ok(count)
            });
            read.map_err(|error| self.unreadable(&error))?;
        }
        match got {
            Got::Bytes(count) => {
                self.at += count as u64;
                tally.moved(count as u64);
                Ok(Turn::More)
            }
            Got::Nothing => Ok(Turn::Rest(Wants::Soon)),
            Got::End => {
                self.file.check()?;
                if let Some(whole) = self.bytes.filter(|whole| *whole != self.at) {
                    let sentence =
                        format!("`{}` ended after {} of {whole} bytes; send it again", self.name, self.at);
                    return Err(Fault::new(Code::Source, sentence));
                }
                let sha256 = Hash::of(self.context.clone());
                channel.put(&Message::End { bytes: self.at, sha256 });
                Ok(Turn::Over)
            }
        }
    }
}

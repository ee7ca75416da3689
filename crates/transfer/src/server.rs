//! Server of a transfer, which accepts connections: `airpace recv`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_cc::schemes::SchemeSpec;
use airpace_core::Time;
use airpace_core::plain::plain;
use airpace_core::remedy::{Remedy, UserTask, explain_plainly};
use airpace_files::Inside;

use super::guesses::Guesses;
use super::link::{Link, Role, Stop, Word, Work};
use super::message::{Code, Fault, MAX_SCHEME, Message, VERSION, Way, unhex};
use super::progress::{Progress, Stage as Seen, Tally};
use super::receiving::Receiving;
use super::sending::Sending;
use super::source::{Served, Sources};
use super::steering::{self, ends};
use super::store::{Finisher, Store};
use airpace_transport::app::App;
use airpace_transport::endpoint::{Closed, ConnectionId, Endpoint, Event};
use airpace_transport::key::Key;

/// Maximum number of concurrent connections.
///
/// Chosen: five times the number of concurrent transfers that the documentation promises. Each connection takes less than
/// 200 KiB.
const MAX_SESSIONS: usize = 1024;

/// Timeout for the client's proof and request, and for its close after the end of the transfer.
const HASTE: Duration = Duration::from_secs(15);

/// Silence after which a transfer yields its file to a newer transfer from the same address.
///
/// Chosen: longer than the retransmission of a lost packet takes on a path with an RTT of 300 ms.
const SILENCE: Duration = Duration::from_secs(1);

/// Maximum number of file bytes read per timeout event for comparison, over all connections.
const BUDGET: usize = 1 << 20;

/// Interval between progress notices.
const WATCH: Duration = Duration::from_millis(100);

/// Settings of a server.
pub struct Settings {
    /// Key that clients must have.
    pub key: Key,
    /// Storage for received files.
    pub store: Rc<dyn Store>,
    /// Folder whose files clients may pull; `None`: pulling is refused.
    pub serves: Option<Arc<Inside>>,
    /// Whether to stop after the first transfer that succeeds.
    pub once: bool,
    /// Whether radio reports of this machine are available.
    pub has_radio: bool,
    /// Request to stop in good order; checked about ten times per second.
    pub stop: Arc<AtomicBool>,
}

/// Event of a server, reported to its owner.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A client with the key starts a transfer.
    Begins {
        /// Address of the client.
        peer: SocketAddr,
        /// Direction of the transfer.
        way: Way,
        /// Number of files.
        files: u64,
        /// Total number of bytes, if known.
        bytes: Option<u64>,
        /// Congestion control scheme of the transfer.
        scheme: String,
    },
    /// Progress of a running transfer, about ten times per second.
    Moving(Box<Progress>),
    /// A file is complete and has its final name.
    Stored {
        /// Address of the client that sent the file.
        peer: SocketAddr,
        /// Name of the file.
        name: String,
        /// Length of the file in bytes.
        bytes: u64,
    },
    /// A transfer is complete.
    Done {
        /// Address of the client.
        peer: SocketAddr,
        /// Counters of the transfer.
        tally: Tally,
        /// Duration of the connection.
        took: Duration,
    },
    /// A transfer ended before it was complete; it can be resumed.
    Lost {
        /// Address of the client.
        peer: SocketAddr,
        /// Reason why the transfer ended.
        why: String,
    },
    /// A client was refused.
    Refused {
        /// Address of the client.
        peer: SocketAddr,
        /// Reason of the refusal.
        why: String,
    },
}

/// Server of any number of concurrent transfers.
pub struct Server {
    settings: Settings,
    tell: Box<dyn FnMut(&Notice)>,
    finisher: Rc<Finisher>,
    sessions: BTreeMap<ConnectionId, Session>,
    guesses: Guesses,
    /// Connection that was processed last with a remaining read budget; the next timeout event starts after it.
    last: ConnectionId,
    /// Time of the last progress notices.
    watched: Time,
    is_done: bool,
}

struct Session {
    peer: SocketAddr,
    link: Link,
    stage: Stage,
    /// Time of the next poll.
    due: Option<Time>,
    /// Deadline of the current stage.
    until: Option<Time>,
    began: Time,
    /// Number of received packets at the last progress notice, and the time of the last notice with a new packet.
    received: u64,
    heard: Option<Time>,
    transfer: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Hello,
    Request,
    Moving,
    /// All files are stored; the client closes.
    Done,
}

impl Server {
    /// Creates a server. `tell` receives its events.
    pub fn new(settings: Settings, tell: impl FnMut(&Notice) + 'static) -> Server {
        Server {
            settings,
            tell: Box::new(tell),
            finisher: Rc::new(Finisher::start()),
            sessions: BTreeMap::new(),
            guesses: Guesses::default(),
            last: ConnectionId(0),
            watched: Time::ZERO,
            is_done: false,
        }
    }

    /// Number of connections.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Closes all transfers in good order, so that they can be resumed.
    fn stop(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        for id in std::mem::take(&mut self.sessions).into_keys() {
            if let Some(connection) = endpoint.connection(id) {
                connection.close(
                    now,
                    Code::Stopped.number(),
                    "the receiver was stopped; start it again to go on",
                );
            }
        }
        self.is_done = true;
    }

    /// Frees a slot when all are taken. Among the connections without a proof of the key, closes the oldest connection
    /// of the address that has the most.
    fn give_up_unproved(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        let unproved = self.sessions.iter().filter(|(_, session)| session.stage == Stage::Hello);
        let unproved = unproved.map(|(&id, session)| (id, session.peer.ip(), session.began));
        let Some(oldest) = oldest_of_most(&unproved.collect::<Vec<_>>()) else { return };
        self.refuse(
            now,
            endpoint,
            oldest,
            &Fault::new(Code::Busy, "more connections arrived, and it had not proved that it knows the key"),
        );
    }

    /// Closes silent transfers from the address of `id`: their sender was probably killed and restarted, and one of
    /// these transfers still holds the file. The newer transfer finds the file free at its next attempt.
    fn give_up_silent(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId) {
        let Some(address) = self.sessions.get(&id).map(|session| session.peer.ip()) else { return };
        let silent = self.sessions.iter().filter(|(other, session)| {
            let is_silent = session.heard.is_some_and(|heard| now - heard >= SILENCE);
            **other != id && session.peer.ip() == address && session.stage == Stage::Moving && is_silent
        });
        let silent: Vec<ConnectionId> = silent.map(|(id, _)| *id).collect();
        let fault = Fault::new(Code::Busy, "it sends no packets, and its machine sends the same file again");
        for id in silent {
            self.refuse(now, endpoint, id, &fault);
        }
    }

    fn connected(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId) {
        let Some(connection) = endpoint.connection(id) else { return };
        let peer = connection.peer();
        if self.sessions.len() >= MAX_SESSIONS {
            self.give_up_unproved(now, endpoint);
        }
        let refusal = if self.sessions.len() >= MAX_SESSIONS {
            Some(Fault::new(Code::Busy, format!("{MAX_SESSIONS} transfers are running here; try later")))
        } else if self.guesses.must_wait(now, peer.ip()) {
            Some(Fault::new(Code::Busy, "too many wrong keys came from your address; wait a minute"))
        } else {
            None
        };
        if let Some(fault) = refusal {
            if let Some(connection) = endpoint.connection(id) {
                connection.close(now, fault.code.number(), &fault.short());
            }
            return;
        }
        let session = Session {
            peer,
            link: Link::default(),
            stage: Stage::Hello,
            due: None,
            until: Some(now + HASTE),
            began: now,
            received: 0,
            heard: None,
            transfer: String::new(),
        };
        self.sessions.insert(id, session);
    }

    /// Processes one connection.
    fn turn(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, budget: &mut usize) {
        while let (Some(session), Some(connection)) = (self.sessions.get_mut(&id), endpoint.connection(id)) {
            let turned = session.link.turn(now, connection, budget);
            for (name, bytes) in session.link.stored.drain(..) {
                (self.tell)(&Notice::Stored { peer: session.peer, name, bytes });
            }
            let fault = match turned {
                Ok(None) => {
                    session.due = session.link.poll_timeout(now);
                    if session.stage == Stage::Moving
                        && session.link.work.is_done()
                        && session.link.channel.is_flushed()
                    {
                        session.stage = Stage::Done;
                        session.until = Some(now + HASTE);
                        connection.finish(now);
                        let tally = session.link.work.tally().cloned().unwrap_or_default();
                        let took = now - session.began;
                        (self.tell)(&Notice::Done { peer: session.peer, tally, took });
                    }
                    return;
                }
                Ok(Some(word)) => match self.heard(now, endpoint, id, word) {
                    Ok(()) => continue,
                    Err(fault) => fault,
                },
                // An event contains the reason.
                Err(Stop::Lost) => {
                    session.due = None;
                    return;
                }
                Err(Stop::Fault(fault)) => fault,
            };
            if fault.code == Code::Busy {
                self.give_up_silent(now, endpoint, id);
            }
            self.refuse(now, endpoint, id, &fault);
        }
    }

    fn refuse(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, fault: &Fault) {
        if let Some(connection) = endpoint.connection(id) {
            connection.close(now, fault.code.number(), &fault.short());
        }
        let Some(session) = self.sessions.remove(&id) else { return };
        if fault.code == Code::Key {
            self.guesses.wrong(now, session.peer.ip());
        }
        let (peer, why) = (session.peer, plain(&explain_plainly(fault)).into_owned());
        let can_resume = !matches!(fault.code, Code::Refused | Code::Protocol);
        (self.tell)(&match session.stage {
            Stage::Moving | Stage::Done if can_resume => Notice::Lost { peer, why },
            _ => Notice::Refused { peer, why },
        });
    }

    fn heard(
        &mut self,
        now: Time,
        endpoint: &mut dyn Endpoint,
        id: ConnectionId,
        word: Word,
    ) -> Result<(), Fault> {
        let (Some(session), Some(connection)) = (self.sessions.get_mut(&id), endpoint.connection(id)) else {
            return Ok(());
        };
        match (session.stage, word) {
            (Stage::Hello, Word::Hello(version, proof)) => {
                let binding = connection.binding();
                if !Role::Client.verify(&self.settings.key, &binding, &proof) {
                    return Err(Fault::new(Code::Key, "the key is not the one that the receiver printed"));
                }
                if version != VERSION {
                    let sentence = format!(
                        "the receiver speaks version {VERSION} of the protocol, and the sender version {version}; \
                         use the same version of airpace on both sides"
                    );
                    return Err(Fault::new(Code::Protocol, sentence));
                }
                session.link.channel.put_hello(&Role::Server.prove(&self.settings.key, &binding));
                session.stage = Stage::Request;
                Ok(())
            }
            (
                Stage::Request,
                Word::Message(Message::Request { transfer, way, scheme, files, bytes, names }),
            ) => {
                if unhex::<16>(&transfer).is_none() || scheme.len() > MAX_SCHEME {
                    return Err(Fault::protocol("its request has an invalid field"));
                }
                let refuse = |why: String| Fault::new(Code::Refused, why);
                let spec = SchemeSpec::parse(&scheme)
                    .map_err(|error| refuse(format!("the receiver refuses: {error}")))?;
                let ends = ends(&spec)?;
                let (work, files, bytes) = match way {
                    Way::Push => {
                        if let Some(receiver) = &ends.receiver {
                            steering::can_receive(&spec, receiver.as_ref(), self.settings.has_radio)?;
                        }
                        connection.listen(ends.receiver);
                        let (store, finisher) = (Rc::clone(&self.settings.store), Rc::clone(&self.finisher));
                        let receiving = Receiving::new(transfer.clone(), files, bytes, store, finisher);
                        (Work::Receiving(Box::new(receiving)), files, bytes)
                    }
                    Way::Pull => {
                        let Some(folder) = &self.settings.serves else {
                            let remedy = Remedy::new("to allow it, start")
                                .task(UserTask::Receive)
                                .text("with")
                                .parameter("allow_pull");
                            return Err(refuse("this receiver hands out no files".to_owned()).but(remedy));
                        };
                        let served = Served::find(Arc::clone(folder), &names)?;
                        connection.steer(now, ends.controller);
                        let (files, bytes) = (served.files(), served.bytes());
                        (Work::Sending(Box::new(Sending::new(Rc::new(RefCell::new(served))))), files, bytes)
                    }
                };
                session.link.channel.put(&Message::Accepted { files, bytes });
                session.link.work = work;
                session.stage = Stage::Moving;
                session.until = None;
                session.transfer = transfer;
                let begins =
                    Notice::Begins { peer: session.peer, way, files, bytes, scheme: spec.text().to_owned() };
                (self.tell)(&begins);
                self.supersede(now, endpoint, id);
                Ok(())
            }
            // The client of a pull has received all and ends its stream.
            (Stage::Moving | Stage::Done, Word::End) => Ok(()),
            (_, Word::End) => Err(Fault::protocol("it ended its stream too early")),
            (_, Word::Hello(..) | Word::Message(_)) => {
                Err(Fault::protocol("it sent a message at the wrong time"))
            }
        }
    }

    /// Closes the earlier connections of a transfer whose client has reconnected. This endpoint may not have detected
    /// yet that these connections are lost.
    fn supersede(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId) {
        let transfer = self.sessions.get(&id).map(|session| session.transfer.clone()).unwrap_or_default();
        let earlier =
            self.sessions.iter().filter(|(other, session)| **other != id && session.transfer == transfer);
        let earlier: Vec<ConnectionId> = earlier.map(|(id, _)| *id).collect();
        let fault = Fault::new(Code::Busy, "the same transfer goes on over a newer connection");
        for id in earlier {
            self.refuse(now, endpoint, id, &fault);
        }
    }

    fn watch(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        self.watched = now;
        for (id, session) in &mut self.sessions {
            if session.stage != Stage::Moving {
                continue;
            }
            let Some(connection) = endpoint.connection(*id) else { continue };
            let received = connection.figures().received.packets;
            if received != session.received || session.heard.is_none() {
                (session.received, session.heard) = (received, Some(now));
            }
            let mut progress =
                Progress { stage: Seen::Moving, elapsed: now - session.began, ..Progress::default() };
            progress.look(connection, session.link.work.tally());
            (self.tell)(&Notice::Moving(Box::new(progress)));
        }
    }

    fn closed(&mut self, id: ConnectionId, why: &Closed) {
        let Some(session) = self.sessions.remove(&id) else { return };
        let peer = session.peer;
        let was_well = matches!(why, Closed::ByPeer { code: 0, .. } | Closed::Here);
        match session.stage {
            Stage::Done => self.is_done |= self.settings.once && was_well,
            Stage::Moving => (self.tell)(&Notice::Lost { peer, why: why.to_string() }),
            Stage::Hello | Stage::Request => (self.tell)(&Notice::Refused { peer, why: why.to_string() }),
        }
    }
}

/// Among connections with their addresses and start times: the oldest of the address with the most connections.
fn oldest_of_most(connections: &[(ConnectionId, IpAddr, Time)]) -> Option<ConnectionId> {
    let mut by_address = BTreeMap::<IpAddr, usize>::new();
    for (_, address, _) in connections {
        *by_address.entry(*address).or_default() += 1;
    }
    let (address, _) = by_address.into_iter().max_by_key(|(_, count)| *count)?;
    let of_address = connections.iter().filter(|(_, other, _)| *other == address);
    of_address.min_by_key(|(_, _, began)| *began).map(|(id, ..)| *id)
}

impl App for Server {
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, event: Event) {
        match event {
            Event::Connected => self.connected(now, endpoint, id),
            Event::Closed(why) => return self.closed(id, &why),
            Event::Moved(peer) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.peer = peer;
                }
            }
            Event::Flushed => {
                let stage = self.sessions.get(&id).map(|session| session.stage);
                self.is_done |= self.settings.once && stage == Some(Stage::Done);
            }
            Event::Readable | Event::Writable => {}
        }
        // Comparing file contents is left to the next timeout event, which shares the budget among all connections.
        self.turn(now, endpoint, id, &mut 0);
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        if self.settings.stop.load(Ordering::Relaxed) {
            return self.stop(now, endpoint);
        }
        if now >= self.watched + WATCH {
            self.watch(now, endpoint);
        }
        let late =
            self.sessions.iter().filter(|(_, session)| session.until.is_some_and(|until| until <= now));
        for (id, stage) in late.map(|(id, session)| (*id, session.stage)).collect::<Vec<_>>() {
            match stage {
                Stage::Done => {
                    if let Some(connection) = endpoint.connection(id) {
                        connection.close(now, Code::Fine.number(), "");
                    }
                    self.sessions.remove(&id);
                    self.is_done |= self.settings.once;
                }
                _ => self.refuse(now, endpoint, id, &Fault::new(Code::Busy, "no request arrived in time")),
            }
        }
        let is_due = |(_, session): &(&ConnectionId, &Session)| session.due.is_some_and(|due| due <= now);
        let due: Vec<ConnectionId> = self.sessions.iter().filter(is_due).map(|(id, _)| *id).collect();
        let first = due.partition_point(|id| *id <= self.last);
        let mut budget = BUDGET;
        for id in due[first..].iter().chain(&due[..first]) {
            if budget > 0 {
                self.last = *id;
            }
            self.turn(now, endpoint, *id, &mut budget);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let sessions = self.sessions.values().flat_map(|session| [session.due, session.until]).flatten();
        sessions.chain([self.watched + WATCH]).min()
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_most_unproved_connections_gives_one_up() {
        let connection =
            |id, host, second| (ConnectionId(id), IpAddr::from([10, 0, 0, host]), Time::from_secs(second));
        let held = [connection(1, 1, 0), connection(2, 2, 9), connection(3, 2, 4), connection(4, 2, 7)];
        assert_eq!(oldest_of_most(&held), Some(ConnectionId(3)));
        assert_eq!(oldest_of_most(&held[..1]), Some(ConnectionId(1)));
        assert_eq!(oldest_of_most(&[]), None);
    }
}

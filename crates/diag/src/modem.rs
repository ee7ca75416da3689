//! Emulated modem for tests: implements the modem's side of the diagnostic protocol, without a radio.
//!
//! ```text
//! host ──bytes──▶ push ──▶ requests ──answers──┐
//! packets to log ──▶ feed ─masks─▶ buffer ─time, watermark, drain─▶ pop ──bytes──▶ host
//! ```
//!
//! The modem keeps its masks when a host disconnects, as a real modem does; only the framing returns to HDLC. The
//! modem's memory is bounded: packets that do not fit are dropped and counted. The modem answers or counts every
//! request of the host.

mod buffer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use airpace_core::Time;

use crate::command::{Answer, Build, EventMask, Refusal, Release, Request};
use crate::control::{Buffering, Control};
use crate::frame::{self, Deframer, Framed, Framing};
use crate::mask::{EQUIPMENTS, Mask};
use crate::packet::{self, LogPacket, Radio};
use buffer::Buffer;

/// Properties of a modem.
#[derive(Clone, Debug)]
pub struct ModemOptions {
    /// Dates of the modem's software.
    pub release: Release,
    /// Names of the modem's software and of the phone's model.
    pub build: Build,
    /// Number of items of each equipment; 0 means that the modem has no such equipment.
    pub items: [u32; EQUIPMENTS],
    /// Number of events that the modem can report.
    pub events: u16,
    /// Buffering mode at the start.
    pub buffering: Buffering,
    /// Maximum time for which a packet is kept, if packets are kept until a watermark is reached.
    ///
    /// Source: BISCAY §3.2.3
    pub hold: Duration,
    /// Size of the packet buffer (bytes).
    pub memory: usize,
    /// Whether the modem offers plain framing.
    pub offers_plain: bool,
    /// Whether the modem supports in-band control packets; a real modem does not.
    pub understands_control: bool,
    /// Whether each packet names its radio. Packets of radios other than the first always name their radio.
    pub names_radio: bool,
}

impl Default for ModemOptions {
    /// Default properties: a modem that streams.
    fn default() -> ModemOptions {
        let mut items = [0; EQUIPMENTS];
        // The equipments are 1x and EV-DO, WCDMA, GSM, UMTS NAS, LTE and NR.
        for (equipment, count) in [(0x1, 0xA02), (0x4, 0x910), (0x5, 0x420), (0x7, 0x4FF), (0xB, 0xA20)] {
            items[equipment] = count;
        }
        ModemOptions {
            release: Release {
                compiled: "Jan 01 2026 00:00:00".to_owned(),
                released: "Jan 01 2026 00:00:00".to_owned(),
                directory: "airpace".to_owned(),
            },
            build: Build { software: "AIRPACE-MODEM".to_owned(), model: "emulated".to_owned() },
            items,
            events: 0xC00,
            buffering: Buffering::Streaming,
            hold: Duration::from_secs(1),
            // Chosen: the buffer holds a few seconds of all packets that an LTE modem logs. So the time limit `hold`
            // applies before the buffer is full.
            memory: 4 << 20,
            offers_plain: true,
            understands_control: true,
            names_radio: false,
        }
    }
}

/// Counters of a modem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModemStats {
    /// Requests received.
    pub requests: u64,
    /// Requests that the modem refused.
    pub refused: u64,
    /// Drain requests.
    pub drains: u64,
    /// Pieces of the stream that were not a request.
    pub faults: u64,
    /// Packets passed to [`Modem::feed`].
    pub fed: u64,
    /// Packets dropped because the masks do not select them.
    pub unasked: u64,
    /// Packets lost because the buffer was full or the packet was too long.
    pub lost: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent, including answers.
    pub bytes: u64,
}

/// An emulated modem.
#[derive(Clone, Debug)]
pub struct Modem {
    options: ModemOptions,
    framing: Framing,
    deframer: Deframer,
    /// Time at which the framing returns to HDLC, after bytes that are not a plain frame.
    recovers: Option<Time>,
    masks: Masks,
    /// Masks that were set for a single radio.
    masks_of: BTreeMap<Radio, Masks>,
    events: EventMask,
    buffer: Buffer,
    /// Pending answers, each with its framing.
    answers: VecDeque<(Framing, Vec<u8>)>,
    asked: VecDeque<Request>,
    stats: ModemStats,
}

type Masks = [Mask; EQUIPMENTS];

/// Time for which plain framing stays after bytes that are not a plain frame.
///
/// Source: Linux drivers/char/diag/diagfwd.c, of Android's kernels
const RECOVERS_AFTER: Duration = Duration::from_millis(200);
/// Maximum number of pending answers. A host that sends more requests without reading loses answers.
const MAX_ANSWERS: usize = 256;
/// Maximum number of requests that [`Modem::take_asked`] returns.
const MAX_ASKED: usize = 256;
/// Command code and header of a message that names its radio.
const WRAPPER: [u8; 4] = [0x98, 1, 0, 0];
/// Bytes around a payload in a message.
const OVERHEAD: usize = 24;

impl Modem {
    /// Creates a modem that has not received any request.
    pub fn new(options: ModemOptions) -> Modem {
        let masks = std::array::from_fn(|id| Mask::off(id as u8, options.items[id]));
        let bits = vec![0; usize::from(options.events).div_ceil(8)];
        Modem {
            buffer: Buffer::new(options.buffering, options.hold, options.memory),
            framing: Framing::Hdlc,
            deframer: Deframer::default(),
            recovers: None,
            masks,
            masks_of: BTreeMap::new(),
            events: EventMask { count: options.events, bits },
            answers: VecDeque::new(),
            asked: VecDeque::new(),
            stats: ModemStats::default(),
            options,
        }
    }

    /// Takes bytes from the host.
    pub fn push(&mut self, now: Time, bytes: &[u8]) {
        self.handle_timeout(now);
        // A request may change the framing of the bytes right after it.
        for piece in bytes.split_inclusive(|&byte| byte == frame::FLAG) {
            let mut bodies = vec![];
            let mut faults = 0;
            self.deframer.push(piece, |_, framed| match framed {
                Framed::Body(body) => bodies.push(body.to_vec()),
                Framed::Fault(_) => faults += 1,
            });
            self.stats.faults += faults;
            if faults > 0 && self.framing == Framing::Plain {
                self.recovers.get_or_insert(now + RECOVERS_AFTER);
            }
            for body in bodies {
                self.recovers = None;
                self.hear(&body);
            }
        }
    }

    /// Takes a packet that the modem logs if the masks select it.
    pub fn feed(&mut self, now: Time, packet: LogPacket<'_>) {
        self.handle_timeout(now);
        self.stats.fed += 1;
        let masks = self.masks_of.get(&packet.radio).unwrap_or(&self.masks);
        if !masks[usize::from(packet.code.equipment())].has(packet.code) {
            self.stats.unasked += 1;
            return;
        }
        if packet.payload.len() + OVERHEAD > usize::from(u16::MAX) {
            self.stats.lost += 1;
            return;
        }
        let mut body = Vec::with_capacity(packet.payload.len() + OVERHEAD);
        packet.write(self.options.names_radio || packet.radio != Radio::FIRST, &mut body);
        self.stats.lost += self.buffer.put(now, body);
    }

    /// Appends the bytes that are due to be sent to the host.
    pub fn pop(&mut self, now: Time, out: &mut Vec<u8>) {
        self.handle_timeout(now);
        let before = out.len();
        for (framing, answer) in self.answers.drain(..) {
            frame::encode(framing, &answer, out);
        }
        while let Some(body) = self.buffer.take() {
            frame::encode(self.framing, &body, out);
            self.stats.sent += 1;
        }
        self.stats.bytes += (out.len() - before) as u64;
    }

    /// Time at which [`pop`](Modem::pop) has more bytes, without further input; `None` if never.
    pub fn poll_timeout(&self) -> Option<Time> {
        if !self.answers.is_empty() {
            return Some(Time::ZERO);
        }
        self.recovers.into_iter().chain(self.buffer.poll_timeout()).min()
    }

    /// Handles the host's disconnection. Masks and buffered packets stay; the framing returns to HDLC.
    pub fn hang_up(&mut self) {
        self.set_framing(Framing::Hdlc);
        self.answers.clear();
    }

    /// The requests since the last call, without drains; at most the last 256 requests.
    pub fn take_asked(&mut self) -> Vec<Request> {
        self.asked.drain(..).collect()
    }

    /// Counters so far.
    pub fn stats(&self) -> ModemStats {
        self.stats
    }

    /// Current buffering mode.
    pub fn buffering(&self) -> Buffering {
        self.buffer.buffering
    }

    /// Current framing.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The masks for all radios that have at least one code on.
    pub fn masks(&self) -> impl Iterator<Item = &Mask> {
        self.masks.iter().filter(|mask| !mask.is_off())
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.recovers.is_some_and(|due| due <= now) {
            self.set_framing(Framing::Hdlc);
        }
        self.buffer.release(now);
    }

    fn set_framing(&mut self, framing: Framing) {
        self.recovers = None;
        self.framing = framing;
        self.deframer.set_framing(framing);
    }

    /// Executes a request and answers it.
    fn hear(&mut self, body: &[u8]) {
        self.stats.requests += 1;
        // A request in a wrapper is addressed to the radio in the wrapper. The answer has the same wrapper.
        let (wrapper, radio, body) = match body.split_at_checked(packet::WRAPPER_HEADER) {
            Some((header, inner)) if header.starts_with(&WRAPPER) => {
                let id = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
                (header, Some(Radio::of_wrapper(id)), inner)
            }
            _ => (&[][..], None, body),
        };
        let framing = self.framing;
        let answer = match Request::read(body) {
            Ok(request) => {
                if request == Request::Control(Control::Drain) {
                    self.stats.drains += 1;
                } else {
                    if self.asked.len() == MAX_ASKED {
                        self.asked.pop_front();
                    }
                    self.asked.push_back(request.clone());
                }
                self.answer(request, radio, body)
            }
            Err(refusal) => Some(Answer::Refused(refusal, body.to_vec())),
        };
        let Some(answer) = answer else { return };
        self.stats.refused += u64::from(matches!(answer, Answer::Refused(..)));
        let mut answer = [wrapper, &answer.body()].concat();
        answer.truncate(usize::from(u16::MAX));
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back((framing, answer));
        }
    }

    fn answer(&mut self, request: Request, radio: Option<Radio>, body: &[u8]) -> Option<Answer> {
        let refused = |refusal| Some(Answer::Refused(refusal, body.to_vec()));
        Some(match request {
            Request::Version => Answer::Version(self.options.release.clone()),
            Request::Build => Answer::Build(self.options.build.clone()),
            Request::Protocol => Answer::Protocol(8),
            Request::Events(on) => {
                self.events.bits.fill(if on { 0xFF } else { 0 });
                Answer::Events
            }
            Request::EventMask => Answer::EventMask(Some(self.events.clone())),
            Request::SetEventMask(mask) => {
                let count = self.events.bits.len().min(mask.bits.len());
                self.events.bits.fill(0);
                self.events.bits[..count].copy_from_slice(&mask.bits[..count]);
                Answer::SetEventMask(0)
            }
            Request::LogsOff => {
                self.change_masks(radio, |masks| {
                    masks.iter_mut().for_each(|mask| *mask = Mask::off(mask.equipment(), mask.items()));
                });
                Answer::LogsOff(0)
            }
            Request::LogItems => Answer::LogItems(0, self.options.items),
            Request::LogMask(equipment) => {
                let masks = radio.and_then(|radio| self.masks_of.get(&radio)).unwrap_or(&self.masks);
                let mask = &masks[usize::from(equipment)];
                match mask.items() {
                    0 => Answer::LogMask(1, None),
                    _ => Answer::LogMask(0, Some(mask.clone())),
                }
            }
            Request::SetLogMask(mask) => {
                let equipment = usize::from(mask.equipment());
                let items = self.options.items[equipment];
                if mask.items() == 0 || mask.items() > items {
                    return Some(Answer::SetLogMask(1, Some(mask)));
                }
                let whole = Mask::of(mask.equipment(), items, mask.codes());
                self.change_masks(radio, |masks| masks[equipment] = whole.clone());
                Answer::SetLogMask(0, Some(mask))
            }
            Request::PlainFraming if self.options.offers_plain => {
                self.set_framing(Framing::Plain);
                Answer::PlainFraming(true)
            }
            Request::PlainFraming => return refused(Refusal::Command),
            Request::Control(_) if !self.options.understands_control => return refused(Refusal::Command),
            Request::Control(control) => {
                self.buffer.control(control);
                if control == Control::Drain {
                    return None;
                }
                Answer::Control(true)
            }
        })
    }

    /// Changes the masks of one radio, or of all radios.
    fn change_masks(&mut self, radio: Option<Radio>, mut change: impl FnMut(&mut Masks)) {
        match radio {
            Some(radio) => change(self.masks_of.entry(radio).or_insert_with(|| self.masks.clone())),
            None => {
                change(&mut self.masks);
                self.masks_of.values_mut().for_each(change);
            }
        }
    }
}

//! A toy transport over a channel that loses, delays, reorders and duplicates packets. The bytes received at one end
//! must be the bytes that the application wrote at the other.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use airpace_cc::controller::Arrival;
use airpace_cc::endpoint::{AckFrame, AckPolicy, Acker, Backlog, Outbox, Sender, SenderConfig};
use airpace_cc::{SchemeSpec, Setup};
use airpace_core::{Bytes, FlowId, Rider, Rng, Streams, Time};
use proptest::prelude::*;

const MSS: Bytes = Bytes(1_500);
/// Bytes of a packet that the toy transport would need for addresses, packet number and offset.
const OVERHEAD: Bytes = Bytes(60);

/// Properties of the channel, for packets and ACKs.
#[derive(Clone, Copy, Debug)]
struct Channel {
    loss: f64,
    duplicate: f64,
    delay_ms: f64,
    /// An additional delay, drawn for each packet from zero up to this. Packets are reordered if it exceeds the gap
    /// between two packets.
    spread_ms: f64,
}

/// An application that writes data, and the maximum number of bytes that the outbox holds.
#[derive(Clone, Copy, Debug)]
struct Application {
    bytes: usize,
    bound: u64,
    /// Number of bytes that the application writes at once.
    write: usize,
}

/// A datagram on the channel.
enum Datagram {
    Data { number: u64, sent: Time, size: Bytes, offset: u64, bytes: Vec<u8>, header: Rider },
    Ack(AckFrame),
}

/// Both endpoints and the channel between them.
struct Toy {
    now: Time,
    rng: Rng,
    channel: Channel,
    under_way: BTreeMap<(Time, u64), Datagram>,
    launched: u64,

    sender: Sender,
    outbox: Outbox,
    /// Bytes that the application has written and that have not arrived. The first byte is at the offset `kept_from`.
    kept: VecDeque<u8>,
    kept_from: u64,

    acker: Acker,
    /// Data that arrived out of order, by offset.
    waiting: BTreeMap<u64, Vec<u8>>,
    received: Vec<u8>,
}

impl Toy {
    fn new(scheme: &str, ack: AckPolicy, channel: Channel, bound: u64, seed: u64) -> Toy {
        let streams = Streams::new(seed);
        let setup = Setup::new(MSS, streams.stream("controller"));
        let ends = SchemeSpec::parse(scheme).unwrap().build(&setup).unwrap();
        let config = SenderConfig::new(FlowId(0), MSS).with_ack(ack);
        Toy {
            now: Time::ZERO,
            rng: streams.stream("channel"),
            channel,
            under_way: BTreeMap::new(),
            launched: 0,
            sender: Sender::new(config, ends.controller, Backlog::NOTHING_CARRIED),
            outbox: Outbox::new(Bytes(bound), OVERHEAD),
            kept: VecDeque::new(),
            kept_from: 0,
            acker: Acker::new(ack, ends.receiver),
            waiting: BTreeMap::new(),
            received: vec![],
        }
    }

    /// Writes the first of `bytes`. Returns the number of bytes accepted.
    fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = self.outbox.hand_over(Bytes(bytes.len() as u64)).0 as usize;
        self.kept.extend(&bytes[..taken]);
        taken
    }

    /// Puts a datagram on the channel, which may lose, delay, reorder or duplicate it.
    fn launch(&mut self, make: impl Fn() -> Datagram) {
        let copies = 1 + u32::from(self.rng.chance(self.channel.duplicate));
        for _ in 0..copies {
            if self.rng.chance(self.channel.loss) {
                continue;
            }
            let delay_ms = self.channel.delay_ms + self.rng.range(0.0, self.channel.spread_ms.max(1e-9));
            self.launched += 1;
            let due = self.now + Duration::from_secs_f64(delay_ms * 1e-3);
            self.under_way.insert((due, self.launched), make());
        }
    }

    /// Sends all packets that may leave, and drops data that has arrived.
    fn drain(&mut self) {
        while let Some((transmit, range)) = self.outbox.poll_transmit(&mut self.sender, self.now) {
            let size = Bytes(range.end - range.start) + OVERHEAD;
            assert!(
                size == transmit.bytes || transmit.copy_of.is_some() && size < transmit.bytes,
                "{transmit:?}"
            );
            let place = (range.start - self.kept_from) as usize..(range.end - self.kept_from) as usize;
            let bytes: Vec<u8> = self.kept.range(place).copied().collect();
            let sent = self.now;
            self.launch(|| Datagram::Data {
                number: transmit.number,
                sent,
                size: transmit.bytes,
                offset: range.start,
                bytes: bytes.clone(),
                header: transmit.header,
            });
        }
        let arrived = self.outbox.arrived();
        self.kept.drain(..(arrived - self.kept_from) as usize);
        self.kept_from = arrived;
        assert_eq!(self.kept.len() as u64, self.outbox.held().0);
    }

    /// Adds the arrived data to the stream.
    fn reassemble(&mut self, offset: u64, bytes: Vec<u8>) {
        // A retransmitted interval may start where an older packet starts, and be shorter.
        if self.waiting.get(&offset).is_none_or(|known| known.len() < bytes.len()) {
            self.waiting.insert(offset, bytes);
        }
        while let Some(first) =
            self.waiting.first_entry().filter(|first| *first.key() <= self.received.len() as u64)
        {
            let (offset, bytes) = first.remove_entry();
            let known = self.received.len() - offset as usize;
            self.received.extend(bytes.get(known..).unwrap_or_default());
        }
    }

    /// Advances to the time of the next event, and processes it.
    fn step(&mut self) {
        let due = self.under_way.first_key_value().map(|(&(due, _), _)| due);
        let next = [due, self.sender.poll_timeout(), self.acker.poll_timeout()].into_iter().flatten().min();
        self.now = self.now.max(next.expect("a transport that has not delivered everything has a timer"));
        while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                Datagram::Data { number, sent, size, offset, bytes, header } => {
                    let mut arrival = Arrival::new(self.now, sent, number, size);
                    arrival.header = header.as_bytes();
                    self.acker.on_packet(&arrival);
                    self.reassemble(offset, bytes);
                }
                Datagram::Ack(frame) => {
                    self.sender.on_ack(self.now, &frame).expect("the channel only delivers real ACKs");
                    self.drain();
                }
            }
        }
        self.acker.handle_timeout(self.now);
        while let Some(frame) = self.acker.poll_ack(self.now) {
            self.launch(|| Datagram::Ack(frame));
        }
        if self.sender.poll_timeout().is_some_and(|due| due <= self.now) {
            self.sender.handle_timeout(self.now);
        }
        self.drain();
    }
}

/// The bytes that an application writes.
fn stream_of(length: usize, seed: u64) -> Vec<u8> {
    let mut rng = Streams::new(seed).stream("application");
    (0..length).map(|_| rng.below(256) as u8).collect()
}

/// Sends the whole stream, until the sender knows that everything has arrived.
fn carry(toy: &mut Toy, application: Application, stream: &[u8]) {
    let (mut written, mut may_write) = (0, true);
    while written < stream.len() || !toy.outbox.is_empty() {
        while may_write && written < stream.len() {
            let piece = &stream[written..stream.len().min(written + application.write)];
            let taken = toy.write(piece);
            written += taken;
            may_write = taken == piece.len();
        }
        toy.drain();
        assert!(
            toy.outbox.held() <= Bytes(application.bound),
            "no more bytes are held than the bound allows"
        );
        assert!(toy.received.len() <= written, "only bytes that were written arrive");
        let farthest = toy.waiting.last_key_value().map_or(0, |(&offset, bytes)| offset + bytes.len() as u64);
        assert!(
            farthest <= toy.received.len() as u64 + application.bound,
            "no more bytes wait at the far end than the bound allows"
        );
        toy.step();
        may_write |= toy.outbox.poll_room().is_some();
        assert!(
            toy.now < Time::from_millis(3_600_000),
            "an hour is enough for {application:?}: {}",
            toy.received.len()
        );
    }
}

#[test]
fn a_clean_channel_carries_a_stream_at_the_rate_that_the_bound_allows() {
    let channel = Channel { loss: 0.0, duplicate: 0.0, delay_ms: 20.0, spread_ms: 0.0 };
    let application = Application { bytes: 300_000, bound: 30_000, write: 10_000 };
    let stream = stream_of(application.bytes, 1);
    let mut toy = Toy::new("cbr:rate_mbps=100", AckPolicy::default(), channel, application.bound, 1);
    carry(&mut toy, application, &stream);
    assert_eq!(toy.received, stream);
    let round_trips = toy.now.as_millis() / 40;
    assert!(
        (10..=16).contains(&round_trips),
        "each round trip carries the bound, a tenth of the stream: {round_trips}"
    );
    assert_eq!(toy.sender.spurious_losses(), 0);
}

#[test]
fn a_channel_that_overtakes_makes_spurious_losses_and_loses_no_byte() {
    let channel = Channel { loss: 0.02, duplicate: 0.02, delay_ms: 20.0, spread_ms: 30.0 };
    let application = Application { bytes: 300_000, bound: 60_000, write: 7_000 };
    let stream = stream_of(application.bytes, 2);
    let mut toy = Toy::new("cbr:rate_mbps=20", AckPolicy::default(), channel, application.bound, 2);
    carry(&mut toy, application, &stream);
    assert!(toy.sender.spurious_losses() > 10, "{} spurious losses", toy.sender.spurious_losses());
    assert!(toy.received == stream, "the stream is the same, byte for byte");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// For any channel, the receiver gets exactly the bytes that were written, and neither endpoint ever holds more
    /// bytes than the bound.
    #[test]
    fn the_far_end_gets_the_very_same_stream(
        (loss, duplicate) in (0.0f64..0.4, 0.0f64..0.3),
        (delay_ms, spread_ms) in (0.1f64..80.0, 0.0f64..60.0),
        (bytes, bound, write) in (0usize..60_000, 1u64..40_000, 1usize..20_000),
        scheme in prop::sample::select(vec!["cubic", "reno", "bbr", "copa", "cbr:rate_mbps=8"]),
        (every, seed) in (1u32..4, any::<u64>()),
    ) {
        let channel = Channel { loss, duplicate, delay_ms, spread_ms };
        let application = Application { bytes, bound, write };
        let stream = stream_of(bytes, seed);
        let ack = AckPolicy { every, ..AckPolicy::default() };
        let mut toy = Toy::new(scheme, ack, channel, bound, seed);
        // With a bound of a few bytes, a packet carries only these few. A part of the stream is then sufficient.
        let stream = &stream[..stream.len().min(bound as usize * 100)];
        carry(&mut toy, application, stream);
        prop_assert!(toy.received == stream, "the stream is the same, byte for byte");
    }
}

use std::collections::VecDeque;

use airpace_core::Streams;

use super::pipe::{MSS, Sender};
use super::*;

/// A wire of one rate with a queue in front of it.
struct Path {
    rate: Rate,
    rtt: Duration,
    buffer: Bytes,
    free_at: Time,
    /// (when its ACK arrives, number)
    acks: VecDeque<(Time, u64)>,
    now: Time,
}

impl Path {
    fn new(mbps: f64, rtt_millis: u64, buffer: Bytes) -> Path {
        Path {
            rate: Rate::from_mbps(mbps),
            rtt: Duration::from_millis(rtt_millis),
            buffer,
            free_at: Time::ZERO,
            acks: VecDeque::new(),
            now: Time::ZERO,
        }
    }

    /// Runs for `millis` and gives the throughput and the states seen.
    fn run(&mut self, sender: &mut Sender<Bbr>, millis: u64) -> (f64, Vec<&'static str>) {
        let before = sender.delivered();
        let mut states = vec![sender.controller.state_name()];
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.now += Duration::from_micros(50);
            while self.acks.front().is_some_and(|&(at, _)| at <= self.now) {
                let (_, number) = self.acks.pop_front().unwrap();
                sender.ack(self.now, number, &[]);
                let state = sender.controller.state_name();
                if states.last() != Some(&state) {
                    states.push(state);
                }
            }
            while let Some((packet, _)) = sender.send(self.now) {
                let queued = self.rate.bytes_in(self.free_at - self.now);
                if queued + MSS <= self.buffer {
                    self.free_at = self.free_at.max(self.now) + self.rate.time_for(MSS);
                    self.acks.push_back((self.free_at + self.rtt, packet.number));
                }
            }
        }
        (Rate::from_bytes_per(sender.delivered() - before, Duration::from_millis(millis)).as_mbps(), states)
    }

    fn queueing(&self) -> Duration {
        self.free_at - self.now
    }
}

fn sender() -> Sender<Bbr> {
    Sender::new(Bbr::new(MSS, Streams::new(1).stream("flow.0"), Tuning::default()))
}

#[test]
fn it_finds_the_bandwidth_and_drains_what_the_search_queued() {
    let mut path = Path::new(50.0, 40, Bytes(10_000_000));
    let mut sender = sender();
    let (_, states) = path.run(&mut sender, 1_000);
    assert_eq!(states[..3], ["Startup", "Drain", "ProbeBW"]);
    let (mbps, _) = path.run(&mut sender, 3_000);
    assert!(mbps > 48.0, "the wire of 50 Mbit/s is used: {mbps}");
    let model = sender.controller.model();
    assert!((model.btlbw().as_mbps() - 50.0).abs() < 1.0, "{}", model.btlbw());
    assert!(model.rtprop().unwrap() < Duration::from_millis(42), "{:?}", model.rtprop());
    assert!(path.queueing() < Duration::from_millis(15), "{:?}", path.queueing());
}

#[test]
fn rtprop_is_looked_for_when_it_has_not_been_seen_for_ten_seconds() {
    let mut path = Path::new(20.0, 40, Bytes(10_000_000));
    let mut sender = sender();
    path.run(&mut sender, 2_000);
    // Longer from here on: the old RTprop is never seen again.
    path.rtt = Duration::from_millis(60);
    let (_, states) = path.run(&mut sender, 12_000);
    assert!(states.contains(&"ProbeRTT"), "{states:?}");
    assert_eq!(states.last(), Some(&"ProbeBW"));
    let rtprop = sender.controller.model().rtprop().unwrap();
    assert!(rtprop >= Duration::from_millis(60) && rtprop < Duration::from_millis(63), "{rtprop:?}");
    let (mbps, _) = path.run(&mut sender, 2_000);
    assert!(mbps > 19.0, "the window is restored after ProbeRTT: {mbps}");
}

#[test]
fn a_fall_of_the_rate_is_believed_after_ten_rounds() {
    let mut path = Path::new(40.0, 40, Bytes(2_000_000));
    let mut sender = sender();
    path.run(&mut sender, 2_000);
    path.rate = Rate::from_mbps(10.0);
    path.run(&mut sender, 4_000);
    assert!(sender.controller.model().btlbw() < Rate::from_mbps(11.0));
    let (mbps, _) = path.run(&mut sender, 1_000);
    assert!((9.0..=10.1).contains(&mbps), "{mbps}");
}

#[test]
fn a_shallow_buffer_costs_packets_but_not_the_rate() {
    let mut path = Path::new(20.0, 40, Bytes(30_000));
    let mut sender = sender();
    path.run(&mut sender, 2_000);
    let (mbps, _) = path.run(&mut sender, 4_000);
    assert!(mbps > 17.0, "{mbps}");
    assert!(sender.lost > Bytes::ZERO, "a probe overflows 12 ms of buffer");
}

#[test]
fn an_application_that_pauses_does_not_lower_the_bandwidth() {
    let mut path = Path::new(40.0, 40, Bytes(2_000_000));
    let mut sender = sender();
    path.run(&mut sender, 2_000);
    sender.app_rate = Some(Rate::from_mbps(2.0));
    path.run(&mut sender, 5_000);
    assert!(
        sender.controller.model().btlbw() > Rate::from_mbps(35.0),
        "a slow application says nothing of the path"
    );
    sender.app_rate = None;
    path.run(&mut sender, 50);
    let (mbps, _) = path.run(&mut sender, 320);
    assert!(mbps > 36.0, "and the full rate is there one round trip later: {mbps}");
}

#[test]
fn a_probe_never_exceeds_its_cap() {
    let mut path = Path::new(20.0, 40, Bytes(2_000_000));
    let mut sender = sender();
    path.run(&mut sender, 2_000);
    let probe = Probe { gain: STARTUP_GAIN, cap: Some(Rate::from_mbps(22.0)), while_growing: false };
    sender.controller.set_probe(probe);
    sender.controller.enter_probe_bw(path.now, Some(Rate::from_mbps(20.0)));
    let mut fastest = Rate::ZERO;
    for _ in 0..1_000 {
        path.run(&mut sender, 1);
        fastest = fastest.max(sender.controller.control().pacing_rate.unwrap());
    }
    assert!(fastest <= Rate::from_mbps(22.0), "{fastest}");
    assert!(fastest > Rate::from_mbps(21.0), "{fastest}");
}

#[test]
fn everything_lost_leaves_one_packet_and_recovery_gives_the_window_back() {
    let mut path = Path::new(20.0, 40, Bytes(2_000_000));
    let mut sender = sender();
    path.run(&mut sender, 2_000);
    let before = sender.controller.control().cwnd;
    sender.controller.on_loss(&Loss {
        now: path.now,
        packets: &[],
        lost: Bytes(60_000),
        prior_inflight: Bytes(60_000),
        inflight: Bytes::ZERO,
        next_number: 0,
        cause: LossCause::Persistent,
    });
    assert_eq!(sender.controller.control().cwnd, MSS);
    path.run(&mut sender, 100);
    assert!(
        sender.controller.control().cwnd.0 * 10 >= before.0 * 8,
        "{:?}",
        sender.controller.control().cwnd
    );
}

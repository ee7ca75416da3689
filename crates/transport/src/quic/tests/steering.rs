//! The controller decides when data are sent, and receives the reports it requires.

use std::sync::{Arc, Mutex};

use airpace_cc::controller::{Ack, Arrival, Control, Inspect, Loss, Receiver, Sent};
use airpace_core::Rider;

use super::*;

#[derive(Default)]
struct Heard {
    sent: Vec<(Time, u64)>,
    feedback: Vec<(Time, Vec<u8>, bool)>,
    order: Vec<&'static str>,
    arrivals: Vec<(u64, Time, Time, Vec<u8>)>,
}

/// A controller with a fixed rate and window that records its inputs.
struct Told {
    control: Control,
    heard: Arc<Mutex<Heard>>,
    count: u8,
}

impl Controller for Told {
    fn on_sent(&mut self, sent: &Sent) {
        self.count = self.count.wrapping_add(1);
        self.heard.lock().unwrap().sent.push((sent.now, sent.bytes.0));
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let mut heard = self.heard.lock().unwrap();
        heard.order.push("ack");
        if !ack.feedback.is_empty() {
            heard.feedback.push((ack.now, ack.feedback.to_vec(), true));
        }
    }

    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        self.heard.lock().unwrap().feedback.push((now, feedback.to_vec(), false));
    }

    fn on_loss(&mut self, _: &Loss<'_>) {
        self.heard.lock().unwrap().order.push("loss");
    }

    fn control(&self) -> Control {
        self.control
    }

    fn header(&self) -> Rider {
        Rider::new(&[self.count]).unwrap()
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Told";
    }
}

/// A receiver whose feedback contains the number of received packets.
struct Counting {
    count: u32,
    heard: Arc<Mutex<Heard>>,
}

impl Receiver for Counting {
    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        self.count += 1;
        let noted = (arrival.number, arrival.sent, arrival.now, arrival.header.to_vec());
        self.heard.lock().unwrap().arrivals.push(noted);
    }

    fn feedback(&mut self, _: Time) -> Rider {
        Rider::new(&self.count.to_be_bytes()).unwrap()
    }

    fn inspect(&self, _: &mut Inspect) {}
}

/// Runs a download with `control` over `path` for `span`. Returns the records of controller and receiver.
fn download(path: Path, control: Control, span: Duration) -> (Pair, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut pair = Pair::new(path);
    pair.connect();
    let now = pair.now;
    pair.connection(true).steer(now, Box::new(Told { control, heard: heard.clone(), count: 0 }));
    pair.connection(false).listen(Some(Box::new(Counting { count: 0, heard: heard.clone() })));
    pair.work[0].to_send = b"please".to_vec();
    pair.work[1].to_send = pattern(200_000_000);
    pair.run_for(span);
    (pair, heard)
}

fn paced(mbps: f64) -> Control {
    Control { cwnd: Bytes(u64::MAX >> 1), pacing_rate: Some(Rate::from_mbps(mbps)) }
}

#[test]
fn data_leaves_at_the_rate_that_the_controller_says() {
    for mbps in [2.0, 10.0, 50.0, 200.0] {
        let (pair, heard) = download(Path::clean(20), paced(mbps), Duration::from_secs(3));
        let (from, to) = (pair.now - Duration::from_secs(2), pair.now);
        let heard = heard.lock().unwrap();
        let bytes: u64 =
            heard.sent.iter().filter(|(at, _)| from <= *at && *at < to).map(|(_, bytes)| bytes).sum();
        let got = bytes as f64 * 8.0 / 2e6;
        assert!((got / mbps - 1.0).abs() < 0.01, "{got} Mbit/s in place of {mbps}");
        let wire = bytes_between(&pair, true, from, to).0 as f64 * 8.0 / 2e6;
        assert!((wire / mbps - 1.0).abs() < 0.01, "{wire} Mbit/s on the wire in place of {mbps}");
    }
}

#[test]
fn packets_of_a_slow_flow_leave_one_by_one() {
    let (pair, heard) = download(Path::clean(20), paced(10.0), Duration::from_secs(2));
    let heard = heard.lock().unwrap();
    let late: Vec<Time> =
        heard.sent.iter().map(|(at, _)| *at).filter(|at| *at > pair.now - Duration::from_secs(1)).collect();
    let gaps: Vec<f64> = late.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    let shortest = gaps.iter().copied().fold(f64::MAX, f64::min);
    assert!(shortest > 1.19 && longest < 1.21, "{shortest}..{longest} ms between packets of 1.2 ms");
}

/// noq's own token bucket holds at most 256 datagrams. Without this crate's pacer and with a large window, all
/// datagrams are sent at once.
#[test]
fn nothing_but_the_controller_holds_data_back() {
    let control = Control { cwnd: Bytes(1000 * 1500), pacing_rate: None };
    let (pair, heard) = download(Path::clean(100), control, Duration::from_millis(350));
    let heard = heard.lock().unwrap();
    let (mut at_once, mut most) = (BTreeMap::new(), 0);
    for (at, _) in &heard.sent {
        *at_once.entry(*at).or_insert(0u32) += 1;
        most = most.max(at_once[at]);
    }
    assert!(most >= 990, "at most {most} packets left at one instant");
    assert!(pair.sent.len() > 1000);
}

#[test]
fn feedback_comes_with_the_acknowledgement_and_losses_come_first() {
    let path = Path { loss: 0.03, ..Path::clean(20) };
    let (_, heard) = download(path, paced(5.0), Duration::from_secs(3));
    let heard = heard.lock().unwrap();
    let with_ack = heard.feedback.iter().filter(|(_, _, with_ack)| *with_ack).count();
    assert!(heard.feedback.len() > 800, "{} feedbacks about 1250 packets", heard.feedback.len());
    assert!(with_ack * 10 >= heard.feedback.len() * 9, "{with_ack} of {} with an ACK", heard.feedback.len());
    let mut counts =
        heard.feedback.iter().map(|(_, bytes, _)| u32::from_be_bytes(bytes[..].try_into().unwrap()));
    assert!(counts.clone().is_sorted(), "the newest wins");
    assert!(counts.next_back().unwrap() > 1000);
    let losses = heard.order.iter().filter(|what| **what == "loss").count();
    assert!(losses > 10, "{losses} losses");
    let first = heard.order.windows(2).filter(|pair| *pair == ["loss", "ack"]).count();
    assert!(first * 10 >= losses * 8, "{first} of {losses} losses came with an ACK and before it");
}

#[test]
fn each_packet_of_a_slow_flow_brings_its_stamp() {
    let (_, heard) = download(Path::clean(20), paced(5.0), Duration::from_secs(2));
    let heard = heard.lock().unwrap();
    assert!(heard.arrivals.len() > 700);
    for (index, (number, sent, now, header)) in heard.arrivals.iter().enumerate().skip(2) {
        assert_eq!(*number, index as u64, "every number once and in order");
        assert_eq!(*now - *sent, Duration::from_millis(20), "the path's delay");
        assert_eq!(header[..], [(index + 1) as u8], "what the controller said with this very packet");
    }
}

/// Schemes without a pacing rate, such as Sprout, count their packets by the headers.
#[test]
fn without_a_rate_each_packet_brings_its_header_too() {
    let control = Control { cwnd: Bytes(40 * 1500), pacing_rate: None };
    let (_, heard) = download(Path::clean(20), control, Duration::from_secs(1));
    let heard = heard.lock().unwrap();
    assert!(heard.arrivals.len() > 700, "{}", heard.arrivals.len());
    for (index, (number, _, _, header)) in heard.arrivals.iter().enumerate().skip(2) {
        assert_eq!((*number, &header[..]), (index as u64, &[(index + 1) as u8][..]));
    }
}

#[test]
fn the_receiving_side_is_neither_paced_nor_held() {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut pair = Pair::new(Path::clean(20));
    pair.connect();
    let now = pair.now;
    pair.connection(true).steer(now, Box::new(Told { control: paced(10.0), heard: heard.clone(), count: 0 }));
    // The client may send only one packet per 1.2 s.
    let slow = Control { cwnd: Bytes(1500), pacing_rate: Some(Rate::from_mbps(0.01)) };
    pair.connection(false).steer(now, Box::new(Told { control: slow, heard: heard.clone(), count: 0 }));
    pair.connection(false).listen(Some(Box::new(Counting { count: 0, heard })));
    pair.work[0].to_send = b"please".to_vec();
    pair.work[1].to_send = pattern(200_000_000);
    pair.run_for(Duration::from_secs(3));
    let from = pair.now - Duration::from_secs(1);
    let answers = pair.sent.iter().filter(|sent| !sent.from_server && sent.at >= from).count();
    assert!(answers > 800, "{answers} answers to 833 packets");
    let rtt = pair.connection(true).figures().rtt.unwrap();
    assert!(rtt.smoothed < Duration::from_millis(42), "no ACK waited: {:?}", rtt.smoothed);
}

#[test]
fn two_windows_full_of_data_still_acknowledge_each_other() {
    let mut pair = Pair::new(Path::clean(20));
    pair.connect();
    let now = pair.now;
    let control = Control { cwnd: Bytes(3000), pacing_rate: None };
    for server in [false, true] {
        let heard = Arc::new(Mutex::new(Heard::default()));
        pair.connection(server).steer(now, Box::new(Told { control, heard, count: 0 }));
        pair.work[usize::from(server)].to_send = pattern(150_000);
    }
    pair.transfer(Duration::from_secs(10));
}

#[test]
fn pbe_follows_its_receivers_reports() {
    let mut pair = Pair::new(Path::clean(20));
    pair.connect();
    let now = pair.now;
    let (controller, receiver) = scheme("pbe");
    pair.connection(true).steer(now, controller);
    pair.connection(false).listen(receiver);
    pair.work[0].to_send = b"please".to_vec();
    pair.work[1].to_send = pattern(3_000_000);
    pair.transfer(Duration::from_secs(60));
    let mut inspect = Inspect::default();
    pair.connection(true).inspect(&mut inspect);
    assert!(!inspect.values.is_empty() && !inspect.state.is_empty());
    assert!(pair.connection(false).figures().queueing_delay.is_some());
}

#[test]
fn a_fast_flow_is_acknowledged_once_per_millisecond() {
    let (pair, heard) = download(Path::clean(20), paced(100.0), Duration::from_secs(2));
    let from = pair.now - Duration::from_secs(1);
    let answers = pair.sent.iter().filter(|sent| !sent.from_server && sent.at >= from).count();
    assert!((900..=1_050).contains(&answers), "{answers} answers in a second");
    let heard = heard.lock().unwrap();
    let late = heard.feedback.iter().filter(|(at, ..)| *at >= from);
    assert!(late.filter(|(_, _, with_ack)| *with_ack).count() > 900, "each ACK brings feedback");
}

use airpace_core::{DeviceId, Ecn};
use proptest::prelude::*;

use super::*;

fn packet(number: u64, bytes: u64) -> Packet {
    let (flow, device, sent) = (FlowId(0), DeviceId(0), Time::ZERO);
    Packet { flow, device, number, bytes: Bytes(bytes), sent, ecn: Ecn::NotEct }
}

/// A link with these trains and a trace that has an opportunity in every millisecond.
fn link(trains: &str, config: &CellularConfig) -> CellularLink {
    let trains = Arc::new(Trains::parse(trains.as_bytes()).expect("trains"));
    let trace = Arc::new(Trace::from_times_ms((1..=1000).collect()).expect("a trace"));
    CellularLink::new(trains, trace, Arc::default(), config).expect("a link")
}

/// Pushes packets, given as (millisecond, bytes). Returns the number and the departure (ms) of each packet.
fn cross(link: &mut CellularLink, packets: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut out = vec![];
    let mut drain = |link: &mut CellularLink, until: Time| {
        while let Some(next) = link.poll_timeout().filter(|&next| next <= until) {
            while let Some(exit) = link.pop(next) {
                assert!(exit.time <= next, "{:?} at {next}", exit.time);
                out.push((exit.packet.number, exit.time.as_millis()));
            }
        }
    };
    for (number, &(ms, bytes)) in (0..).zip(packets) {
        drain(link, Time::from_millis(ms));
        link.push(Time::from_millis(ms), packet(number, bytes));
    }
    drain(link, Time::from_secs(1000));
    out
}

#[test]
fn a_packet_now_and_then_takes_the_base_delay_of_its_time() {
    let mut link = link("0 20 0\n1000 40 0\n2000 20 0\n", &CellularConfig::default());
    assert_eq!(link.base_delay(Bytes(1400)), Duration::from_millis(20));
    let seen = cross(&mut link, &[(0, 1396), (500, 100), (1250, 1396), (2000, 60)]);
    assert_eq!(seen, [(0, 20), (1, 530), (2, 1285), (3, 2020)]);
}

#[test]
fn a_few_packets_take_the_chances_of_a_train() {
    let mut link = link("0 20 0 3 3 9\n100000 20 0\n", &CellularConfig::default());
    // Four full packets at once: the train has four opportunities.
    let burst = [(50, 1396); 4];
    assert_eq!(cross(&mut link, &burst), [(0, 70), (1, 73), (2, 73), (3, 79)]);
    // Small packets share an opportunity. A full packet does not fit into the rest of an opportunity.
    let small = [(200, 600), (200, 600), (200, 600), (200, 1396)];
    assert_eq!(cross(&mut link, &small), [(0, 220), (1, 220), (2, 223), (3, 223)]);
    // An opportunity that has passed is lost; packets wait for a future opportunity.
    let later = [(400, 1396), (400, 1396), (403, 1396), (403, 1396), (410, 1396)];
    assert_eq!(cross(&mut link, &later), [(0, 420), (1, 423), (2, 423), (3, 429), (4, 430)], "it was idle");
}

#[test]
fn what_a_train_does_not_serve_waits_for_the_trace() {
    let mut link = link("0 20 0 50\n100000 20 0\n", &CellularConfig::default());
    let seen = cross(&mut link, &[(0, 1396); 6]);
    // The train serves two packets. The other packets are released at the end of the train and take the opportunities
    // of the trace, one per millisecond.
    assert_eq!(seen, [(0, 20), (1, 70), (2, 71), (3, 72), (4, 73), (5, 74)]);
    link.push(Time::from_millis(2000), packet(6, 1396));
    assert_eq!(link.poll_timeout(), Some(Time::from_millis(2020)), "then a train serves again");
}

#[test]
fn a_train_goes_on_until_the_link_was_idle_for_long_enough() {
    let patient = CellularConfig { light_after_ms: 100, ..CellularConfig::default() };
    let sent = [(0, 1396), (0, 1396), (60, 1396), (200, 1396)];
    let trains = "0 20 0 1\n100000 20 0\n";
    // At 60 ms, the train has long ended. At 200 ms, 140 ms have passed since the last packet.
    assert_eq!(cross(&mut link(trains, &patient), &sent), [(0, 20), (1, 21), (2, 81), (3, 220)]);
    let hasty = cross(&mut link(trains, &CellularConfig::default()), &sent);
    assert_eq!(hasty, [(0, 20), (1, 21), (2, 80), (3, 220)], "by default at once");
}

#[test]
fn a_packet_larger_than_a_chance_takes_several() {
    let mut link = link("0 20 0 4 8 12\n100000 20 0\n", &CellularConfig::default());
    let seen = cross(&mut link, &[(0, 2000), (0, 700), (0, 3000)]);
    assert_eq!(
        seen,
        [(0, 24), (1, 24), (2, 27)],
        "the train has no chance left for the last, which takes three of the trace"
    );
}

#[test]
fn an_offset_by_size_keeps_packets_in_order() {
    let trains = Arc::new(Trains::parse(b"0 20 0 2 4\n100000 20 0\n").unwrap());
    let trace = Arc::new(Trace::from_times_ms(vec![1]).unwrap());
    let offsets = Arc::new(SizeOffsets::parse(b"100 -6\n200 -3\n300 0\n").unwrap());
    let mut link = CellularLink::new(trains, trace, offsets, &CellularConfig::default()).unwrap();
    assert_eq!(link.base_delay(Bytes(60)), Duration::from_millis(14));
    assert_eq!(link.base_delay(Bytes(1396)), Duration::from_millis(20));
    assert_eq!(
        cross(&mut link, &[(0, 40), (100, 146), (200, 1396), (200, 60)]),
        [(0, 14), (1, 115), (2, 220), (3, 222)]
    );
}

#[test]
fn recordings_may_begin_in_the_middle() {
    let config = CellularConfig { start_s: Start::AtS(0.25), ..CellularConfig::default() };
    let mut link = link("0 20 0\n200 40 0\n300 60 0\n400 20 0\n", &config);
    assert_eq!(cross(&mut link, &[(0, 60), (100, 60), (150, 60)]), [(0, 50), (1, 140), (2, 170)]);
}

#[test]
fn a_link_that_cannot_be_is_refused() {
    let refusal = |config: &CellularConfig| {
        let trains = Arc::new(Trains::parse(b"0 20 0\n100 20 0\n").unwrap());
        let trace = Arc::new(Trace::from_times_ms(vec![1]).unwrap());
        CellularLink::new(trains, trace, Arc::default(), config).unwrap_err().to_string()
    };
    let plain = CellularConfig::default;
    let refusals = [
        refusal(&CellularConfig { opportunity_bytes: 4, ..plain() }),
        refusal(&CellularConfig { start_s: Start::AtS(-1.0), ..plain() }),
        refusal(&CellularConfig {
            buffer: BufferConfig { packets: Some(0), ..BufferConfig::default() },
            ..plain()
        }),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r"
    `opportunity_bytes` is 4, which the 4 header bytes of one packet use up; 1504 carries one of 1500
    `start_s` is -1; give a number of at least 0
    `buffer.packets` is 0: nothing could wait; give at least 1, or leave it out
    ");
}

/// A model of CellReplay's program for one direction: the program's computation for each packet read, and one iteration
/// of the program's loop per millisecond. Times are in whole milliseconds, and sizes include the header.
struct Program {
    trains: Vec<(u64, u64, Vec<u64>)>,
    heavy: Vec<u64>,
    after_ms: u64,
    // State of the trains.
    index: usize,
    base_of_trains: u64,
    delay: Option<u64>,
    began: u64,
    chance: usize,
    left: u64,
    last: u64,
    end: u64,
    /// Packets held for their delay: (release time, whether a train serves the packet, number, size).
    held: VecDeque<(u64, bool, u64, u64)>,
    // State of the trace.
    next_chance: usize,
    base_of_heavy: u64,
    queue: VecDeque<(u64, u64)>,
    output: Vec<u64>,
    in_link: u64,
}

impl Program {
    const SIZE: u64 = 1400;

    fn read(&mut self, now: u64, number: u64, size: u64) {
        let begins = self.delay.is_none_or(|delay| now + delay > self.last + self.after_ms);
        let (release, mut bypass);
        if begins {
            let mut relative = now - self.base_of_trains;
            while self.trains[self.index + 1].0 <= relative {
                self.index += 1;
                if self.index >= self.trains.len() - 1 {
                    self.base_of_trains += self.trains[self.index].0;
                    relative = now - self.base_of_trains;
                    self.index = 0;
                }
            }
            let ((from, first, _), (to, second, _)) =
                (&self.trains[self.index], &self.trains[self.index + 1]);
            let (gone, span) = ((relative - from) as i64, (to - from) as i64);
            let delay = *first as i64 * span + (*second as i64 - *first as i64) * gone;
            let delay = (delay / span) as u64;
            self.delay = Some(delay);
            (release, bypass) = (now + delay, true);
            self.began = now;
            self.chance = 0;
            self.left = Self::SIZE - size;
        } else {
            let chances = &self.trains[self.index].2;
            let since = now - self.began;
            while self.chance < chances.len() && since > chances[self.chance] {
                self.chance += 1;
                self.left = Self::SIZE;
            }
            if self.left < size {
                self.chance += 1;
                self.left = Self::SIZE;
            }
            self.left -= size;
            let delay = self.delay.unwrap();
            if self.chance >= chances.len() {
                bypass = false;
                release = (now + delay).max(now + chances[chances.len() - 1]);
            } else {
                bypass = true;
                release = now + delay + (chances[self.chance] - since);
            }
        }
        self.last = release;
        let mut release = release;
        if release < self.end {
            release = self.end;
            bypass = false;
        }
        self.end = release;
        self.held.push_back((release, bypass, number, size));
    }

    fn chances_up_to(&mut self, now: u64) {
        while self.heavy[self.next_chance] + self.base_of_heavy <= now {
            self.next_chance = (self.next_chance + 1) % self.heavy.len();
            if self.next_chance == 0 {
                self.base_of_heavy += self.heavy[self.heavy.len() - 1];
            }
            let mut room = Self::SIZE;
            while room > 0
                && let Some((number, left)) = self.queue.front_mut()
            {
                let sent = room.min(*left);
                room -= sent;
                *left -= sent;
                if *left == 0 {
                    self.output.push(*number);
                    self.queue.pop_front();
                }
            }
        }
    }

    /// One iteration of the program's loop. Adds (number, millisecond) of each packet written to `written`.
    fn turn(&mut self, now: u64, written: &mut Vec<(u64, u64)>) {
        self.chances_up_to(now);
        while let Some(&(release, bypass, number, size)) = self.held.front().filter(|held| held.0 <= now) {
            assert!(release <= now);
            self.held.pop_front();
            if bypass && self.in_link == 0 {
                written.push((number, now));
            } else {
                self.queue.push_back((number, size));
                self.in_link += 1;
            }
        }
        self.in_link -= self.output.len() as u64;
        written.extend(self.output.drain(..).map(|number| (number, now)));
    }
}

prop_compose! {
    fn any_trains()(
        gaps in prop::collection::vec(1_u64..400, 2..12),
        bodies in prop::collection::vec((5_u64..60, prop::collection::vec(0_u64..30, 0..8)), 12),
    ) -> Vec<(u64, u64, Vec<u64>)> {
        let mut time = 0;
        let mut trains = vec![];
        for (gap, (delay, mut chances)) in gaps.into_iter().zip(bodies) {
            chances.push(0);
            chances.sort_unstable();
            trains.push((time, delay, chances));
            time += gap;
        }
        trains
    }
}

proptest! {
    #[test]
    fn it_does_what_the_program_does(
        trains in any_trains(),
        mut heavy in prop::collection::vec(0_u64..200, 1..120),
        last in 1_u64..200,
        after_ms in prop_oneof![Just(0), 1_u32..150],
        arrivals in prop::collection::vec((0_u64..3_000, 1_u64..=1396), 1..300),
    ) {
        heavy.push(last);
        heavy.sort_unstable();
        let mut arrivals = arrivals;
        arrivals.sort_unstable_by_key(|(ms, _)| *ms);
        let text: String = trains
            .iter()
            .map(|(time, delay, chances)| {
                let chances: Vec<String> = chances.iter().map(u64::to_string).collect();
                format!("{time} {delay} {}\n", chances.join(" "))
            })
            .collect();
        let trace = Arc::new(Trace::from_times_ms(heavy.clone()).unwrap());
        let config = CellularConfig { light_after_ms: after_ms, ..CellularConfig::default() };
        let ours = Arc::new(Trains::parse(text.as_bytes()).unwrap());
        let mut link = CellularLink::new(ours, trace, Arc::default(), &config).unwrap();
        let mut program = Program {
            trains, heavy, after_ms: after_ms.into(), index: 0, base_of_trains: 0, delay: None, began: 0, chance: 0,
            left: 0, last: 0, end: 0, held: VecDeque::new(), next_chance: 0, base_of_heavy: 0, queue: VecDeque::new(),
            output: vec![], in_link: 0,
        };
        let (mut expected, mut sent) = (vec![], arrivals.iter().zip(0..).peekable());
        // After this time, all packets have left, even with the slowest trace, which has an opportunity every 200 ms.
        for now in 0..70_000 {
            program.turn(now, &mut expected);
            while let Some(((_, bytes), number)) = sent.next_if(|((at, _), _)| *at == now) {
                program.read(now, number, bytes + 4);
            }
        }
        prop_assert_eq!(expected.len(), arrivals.len());
        prop_assert_eq!(cross(&mut link, &arrivals), expected);
        prop_assert_eq!((link.backlog(), link.in_heavy, link.poll_timeout()), (Bytes::ZERO, 0, None));
    }

    #[test]
    fn packets_keep_their_order_and_take_their_base_delay(
        trains in any_trains(),
        arrivals in prop::collection::vec((0_u64..2_000_000, 1_u64..3000), 1..200),
        limit in prop::option::of(1_u64..10),
    ) {
        let text: String = trains.iter().map(|(time, delay, chances)| {
            let chances: Vec<String> = chances.iter().map(u64::to_string).collect();
            format!("{time} {delay} {}\n", chances.join(" "))
        }).collect();
        let buffer = BufferConfig { packets: limit, ..BufferConfig::default() };
        let mut link = link(&text, &CellularConfig { buffer, ..CellularConfig::default() });
        let mut arrivals = arrivals;
        arrivals.sort_unstable();
        let mut exits = vec![];
        for (number, &(us, bytes)) in (0..).zip(&arrivals) {
            let now = Time::from_micros(us);
            exits.extend(std::iter::from_fn(|| link.pop(now)));
            link.push(now, Packet { sent: now, ..packet(number, bytes) });
        }
        while let Some(next) = link.poll_timeout() {
            exits.extend(std::iter::from_fn(|| link.pop(next)));
        }
        prop_assert_eq!(exits.len(), arrivals.len());
        prop_assert_eq!((link.backlog(), link.in_heavy), (Bytes::ZERO, 0));
        prop_assert!(exits.windows(2).all(|two| two[0].time <= two[1].time), "exits come in order of time");
        let delivered: Vec<&Exit> = exits.iter().filter(|exit| exit.fate == Fate::Delivered).collect();
        prop_assert!(delivered.windows(2).all(|two| two[0].packet.number < two[1].packet.number));
        for exit in delivered {
            prop_assert!(exit.time >= exit.packet.sent + link.base_delay(exit.packet.bytes));
        }
    }
}

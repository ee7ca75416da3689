//! A session and a modem at the two endpoints of a line, in virtual time.

use std::collections::BTreeSet;
use std::time::Duration;

use airpace_core::Time;
use airpace_diag::command::{Refusal, Request};
use airpace_diag::session::{Missing, Original};
use airpace_diag::{
    Buffering, Drain, Framing, Line, LogCode, LogPacket, Mask, Modem, ModemOptions, Radio, Session,
    SessionOptions, Stamp, State, Trouble, frame,
};
use proptest::prelude::*;

const DCI: LogCode = LogCode(0xB130);
const RSRP: LogCode = LogCode(0xB193);
const NR: LogCode = LogCode(0xB97F);
const GSM: LogCode = LogCode(0x512F);

fn millis(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A line with a session and a modem at its endpoints, and the packets received over it.
struct Bench {
    line: Line,
    modem: Modem,
    now: Time,
    /// Packets received by the host, with their arrival times.
    came: Vec<(Time, LogCode, Radio)>,
    /// Number of pieces sent by the modem, and the numbers of the lost pieces.
    pieces: usize,
    lost: BTreeSet<usize>,
}

impl Bench {
    fn new(codes: &[LogCode], session: SessionOptions, modem: ModemOptions) -> Bench {
        let session = Session::new(codes.iter().copied().collect(), session);
        Bench {
            line: Line::new(session),
            modem: Modem::new(modem),
            now: Time::ZERO,
            came: vec![],
            pieces: 0,
            lost: BTreeSet::new(),
        }
    }

    /// Transfers bytes in both directions until neither endpoint has more to send at this time.
    fn exchange(&mut self) {
        loop {
            let (mut down, mut up) = (vec![], vec![]);
            self.line.pop(self.now, &mut down);
            self.modem.push(self.now, &down);
            self.modem.pop(self.now, &mut up);
            if down.is_empty() && up.is_empty() {
                return;
            }
            self.pieces += usize::from(!up.is_empty());
            if !up.is_empty() && self.lost.contains(&(self.pieces - 1)) {
                continue;
            }
            let (now, came) = (self.now, &mut self.came);
            self.line.push(now, &up, |packet| came.push((now, packet.code, packet.radio)));
        }
    }

    /// Runs until `until`. Every millisecond, the modem logs a packet of each of `codes` for each of `radios`.
    fn run(&mut self, until: Time, codes: &[LogCode], radios: &[Radio]) {
        let mut says = self.now;
        while self.now < until {
            self.exchange();
            if says <= self.now {
                says = self.now + Duration::from_millis(1);
                for (&code, &radio) in
                    codes.iter().flat_map(|code| radios.iter().map(move |radio| (code, radio)))
                {
                    let stamp = Stamp::from_nanos(self.now.as_nanos());
                    self.modem.feed(self.now, LogPacket { radio, code, stamp, payload: &[0x7E; 40] });
                }
                self.exchange();
            }
            let due = [self.line.poll_timeout(), self.modem.poll_timeout()].into_iter().flatten().min();
            self.now = due.unwrap_or(until).max(self.now).min(says).min(until);
        }
    }

    fn opened(mut self) -> Bench {
        self.run(millis(1), &[], &[]);
        assert_eq!(self.line.session.state(), State::Streaming, "a fair modem answers at once");
        self
    }

    fn codes(&self) -> BTreeSet<LogCode> {
        self.came.iter().map(|&(_, code, _)| code).collect()
    }

    /// Maximum and mean time between arrivals in milliseconds. Packets that arrive together count once.
    fn gaps(&self) -> (f64, f64) {
        let mut times: Vec<_> = self.came.iter().map(|&(at, _, _)| at).collect();
        times.dedup();
        let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect();
        (gaps.iter().copied().fold(0.0, f64::max), gaps.iter().sum::<f64>() / gaps.len() as f64)
    }

    /// Codes that are on in the modem, for all equipments.
    fn on(&self) -> Vec<LogCode> {
        self.modem.masks().flat_map(|mask| mask.codes().collect::<Vec<_>>()).collect()
    }
}

fn buffering() -> ModemOptions {
    ModemOptions { buffering: Buffering::THRESHOLD, ..ModemOptions::default() }
}

#[test]
fn only_requested_packets_come_in_plain_frames_with_their_source() {
    let mut bench = Bench::new(&[DCI, NR], SessionOptions::default(), ModemOptions::default()).opened();
    bench.run(millis(500), &[DCI, RSRP, NR, GSM], &[Radio::FIRST]);
    assert_eq!(bench.codes(), [DCI, NR].into(), "masks are honoured");
    assert_eq!((bench.modem.framing(), bench.line.session.framing()), (Framing::Plain, Framing::Plain));
    assert_eq!(bench.line.faults(), 0, "the change of framing costs no message");
    let identity = bench.line.session.identity();
    assert_eq!(identity.build.as_ref().unwrap().software, "AIRPACE-MODEM");
    assert_eq!(identity.release.as_ref().unwrap().compiled, "Jan 01 2026 00:00:00");
    let stats = bench.modem.stats();
    assert_eq!(stats.fed, stats.unasked + stats.sent, "every packet is accounted for");
    assert_eq!(stats.sent, bench.came.len() as u64);
}

#[test]
fn what_a_session_asks_reads_as_a_plan() {
    let mut bench = Bench::new(&[DCI, GSM], SessionOptions::default(), buffering()).opened();
    let mut asked: Vec<_> = bench.modem.take_asked();
    bench.line.session.leave();
    bench.run(millis(10), &[], &[]);
    asked.extend(bench.modem.take_asked());
    let asked: Vec<_> = asked
        .iter()
        .map(|request| match request {
            Request::SetLogMask(mask) => {
                let codes: Vec<_> = mask.codes().map(|code| code.to_string()).collect();
                format!("SetLogMask({}: {})", mask.equipment(), codes.join(" "))
            }
            other => format!("{other:?}"),
        })
        .collect();
    insta::assert_snapshot!(asked.join("\n"));
}

#[test]
fn a_modem_that_buffers_a_second_sends_in_bursts_a_second_apart() {
    let mut bench = Bench::new(&[DCI], SessionOptions::default(), buffering()).opened();
    bench.run(Time::from_secs(10), &[DCI], &[Radio::FIRST]);
    let (longest, mean) = bench.gaps();
    assert!(
        (990.0..=1_010.0).contains(&mean) && longest <= 1_010.0,
        "bursts {mean} ms apart, at most {longest}"
    );
}

#[test]
fn draining_every_ten_milliseconds_brings_packets_at_most_eleven_apart() {
    let drain = Drain::new(Some(Buffering::THRESHOLD), Some(Duration::from_millis(10)));
    let session = SessionOptions { drain: Some(drain), ..SessionOptions::default() };
    let mut bench = Bench::new(&[DCI], session, buffering()).opened();
    assert!(bench.line.session.is_draining());
    bench.run(Time::from_secs(10), &[DCI], &[Radio::FIRST]);
    let (longest, mean) = bench.gaps();
    assert!(
        longest <= 11.0 && mean >= 9.0,
        "{mean} ms apart, at most {longest}: by the drain and nothing else"
    );
    assert!((990..=1_001).contains(&bench.modem.stats().drains));
}

#[test]
fn streaming_can_be_asked_for_instead() {
    let session = SessionOptions {
        drain: Some(Drain::new(Some(Buffering::Streaming), None)),
        ..SessionOptions::default()
    };
    let mut bench = Bench::new(&[DCI], session, buffering()).opened();
    bench.run(Time::from_secs(2), &[DCI], &[Radio::FIRST]);
    assert!(bench.gaps().0 <= 1.0, "each packet comes as it is made");
}

#[test]
fn a_modem_without_control_in_band_is_left_as_it_buffers() {
    let drain = Drain::new(None, Some(Duration::from_millis(10)));
    let session = SessionOptions { drain: Some(drain), ..SessionOptions::default() };
    let modem = ModemOptions { understands_control: false, ..buffering() };
    let mut bench = Bench::new(&[DCI], session, modem).opened();
    bench.run(Time::from_secs(5), &[DCI], &[Radio::FIRST]);
    assert!(!bench.line.session.is_draining());
    assert_eq!(bench.modem.stats().refused, 1, "one refusal is enough");
    assert!(bench.gaps().0 > 900.0);
}

#[test]
fn a_modem_without_plain_framing_stays_in_hdlc() {
    let modem = ModemOptions { offers_plain: false, ..ModemOptions::default() };
    let mut bench = Bench::new(&[DCI], SessionOptions::default(), modem).opened();
    bench.run(millis(100), &[DCI], &[Radio::FIRST]);
    assert_eq!(bench.line.session.framing(), Framing::Hdlc);
    assert!(bench.came.len() >= 98 && bench.line.faults() == 0);
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    for lost in 0..15 {
        let mut bench = Bench::new(&[DCI, GSM], SessionOptions::default(), ModemOptions::default());
        bench.lost = [lost].into();
        bench.run(Time::from_secs(3), &[DCI], &[Radio::FIRST]);
        assert_eq!(bench.line.session.state(), State::Streaming, "without answer {lost}");
        assert_eq!(bench.codes(), [DCI].into(), "without answer {lost}");
        let framings = (bench.modem.framing(), bench.line.session.framing());
        assert_eq!(
            framings,
            (Framing::Plain, Framing::Plain),
            "without answer {lost}, even the one that changes it"
        );
    }
}

#[test]
fn who_loses_every_answer_is_silent() {
    let mut bench = Bench::new(&[DCI], SessionOptions::default(), ModemOptions::default());
    bench.lost = (0..100).collect();
    bench.run(Time::from_secs(20), &[DCI], &[Radio::FIRST]);
    assert_eq!(bench.line.session.state(), State::Failed(Trouble::Silent));
}

#[test]
fn a_host_is_answered_after_another_vanished_in_plain_framing() {
    let mut bench = Bench::new(&[DCI], SessionOptions::default(), ModemOptions::default()).opened();
    // This port does not report the host's disconnection: the modem continues in plain framing.
    let session = Session::new([RSRP].into(), SessionOptions::default());
    bench.line = Line::new(session);
    bench.run(bench.now + Duration::from_secs(3), &[DCI, RSRP], &[Radio::FIRST]);
    assert_eq!(bench.line.session.state(), State::Streaming);
    assert_eq!(bench.on(), [RSRP]);
    assert_eq!(bench.line.session.original().unwrap().logs, [Mask::of(0xB, 0xA20, [DCI])], "as it was left");
}

#[test]
fn a_modem_keeps_its_masks_and_packets_while_no_host_is_there() {
    let mut bench = Bench::new(&[DCI], SessionOptions::default(), buffering()).opened();
    bench.modem.hang_up();
    bench.modem.feed(bench.now, LogPacket { radio: Radio::FIRST, code: DCI, stamp: Stamp(1), payload: &[1] });
    let mut bytes = vec![];
    bench.modem.pop(bench.now + Duration::from_secs(1), &mut bytes);
    let mut whole = vec![];
    let mut body = vec![];
    LogPacket { radio: Radio::FIRST, code: DCI, stamp: Stamp(1), payload: &[1] }.write(false, &mut body);
    frame::encode(Framing::Hdlc, &body, &mut whole);
    assert_eq!(bytes, whole, "the next host gets it, in the framing that every host begins with");
}

#[test]
fn codes_beyond_the_items_are_missing_and_the_others_come() {
    let mut items = ModemOptions::default().items;
    items[0xB] = 0x200;
    items[5] = 0;
    let modem = ModemOptions { items, ..ModemOptions::default() };
    let mut bench = Bench::new(&[DCI, NR, GSM], SessionOptions::default(), modem).opened();
    bench.run(millis(100), &[DCI, NR, GSM], &[Radio::FIRST]);
    assert_eq!(bench.line.session.missing(), [(GSM, Missing::Equipment), (NR, Missing::Items(0x200))]);
    assert_eq!(bench.codes(), [DCI].into());
}

#[test]
fn what_is_wanted_may_change_while_it_streams() {
    let mut bench = Bench::new(&[DCI], SessionOptions::default(), ModemOptions::default()).opened();
    bench.run(millis(100), &[DCI, RSRP, GSM], &[Radio::FIRST]);
    bench.line.session.want([RSRP, GSM].into());
    bench.came.clear();
    bench.run(millis(200), &[DCI, RSRP, GSM], &[Radio::FIRST]);
    assert_eq!(bench.codes(), [RSRP, GSM].into());
    bench.line.session.want([].into());
    bench.run(millis(201), &[], &[]);
    assert!(bench.on().is_empty(), "an equipment of which nothing is wanted any more is turned off");
    assert_eq!(bench.line.session.state(), State::Streaming);
}

#[test]
fn leaving_gives_back_what_another_host_had_asked_for() {
    let mut bench = Bench::new(&[GSM, RSRP], SessionOptions::default(), ModemOptions::default()).opened();
    let mut on = vec![];
    frame::encode(Framing::Plain, &Request::Events(true).body(), &mut on);
    bench.modem.push(bench.now, &on);
    bench.modem.hang_up();

    bench.line = Line::new(Session::new([DCI].into(), SessionOptions::default()));
    bench.run(millis(10), &[], &[]);
    assert_eq!(bench.on(), [DCI]);
    bench.line.session.leave();
    bench.run(millis(20), &[], &[]);
    assert_eq!(bench.line.session.state(), State::Closed);
    assert_eq!(bench.on(), [GSM, RSRP]);

    bench.modem.hang_up();
    let original: Original = {
        bench.line = Line::new(Session::new([].into(), SessionOptions::default()));
        bench.run(millis(30), &[], &[]);
        bench.line.session.original().unwrap().clone()
    };
    assert!(original.events.is_some_and(|events| !events.is_off()), "events as well");
}

#[test]
fn a_host_that_crashed_is_undone_by_the_bytes_that_it_left() {
    let mut bench = Bench::new(&[GSM], SessionOptions::default(), ModemOptions::default()).opened();
    bench.modem.hang_up();
    bench.line = Line::new(Session::new([DCI].into(), SessionOptions::default()));
    assert!(bench.line.restore().is_empty(), "nothing is changed yet");
    bench.run(millis(10), &[], &[]);
    let undo = bench.line.restore();
    bench.modem.push(bench.now, &undo);
    assert_eq!(bench.on(), [GSM], "without a session, in the framing that it had agreed to");
}

#[test]
fn a_session_after_a_lost_port_still_knows_what_was_there_at_first() {
    let mut bench = Bench::new(&[GSM], SessionOptions::default(), ModemOptions::default()).opened();
    bench.modem.hang_up();
    bench.line = Line::new(Session::new([DCI].into(), SessionOptions::default()));
    bench.run(millis(10), &[], &[]);
    let original = bench.line.session.original().cloned();
    bench.modem.hang_up();
    bench.line =
        Line::new(Session::new([DCI].into(), SessionOptions { original, ..SessionOptions::default() }));
    bench.run(millis(20), &[], &[]);
    bench.line.session.leave();
    bench.run(millis(30), &[], &[]);
    assert_eq!(bench.on(), [GSM]);
}

#[test]
fn a_mask_may_be_set_for_one_radio_of_two() {
    let mut bench = Bench::new(&[DCI, RSRP], SessionOptions::default(), ModemOptions::default()).opened();
    let radios = [Radio(1), Radio(2)];
    bench.run(millis(20), &[DCI], &radios);
    assert!(
        radios.iter().all(|radio| bench.came.contains(&(millis(10), DCI, *radio))),
        "a bare request is for both"
    );

    let of_second =
        [&[0x98, 1, 0, 0, 2, 0, 0, 0][..], &Request::SetLogMask(Mask::of(0xB, 0xA20, [RSRP])).body()];
    let mut bytes = vec![];
    frame::encode(Framing::Plain, &of_second.concat(), &mut bytes);
    bench.modem.push(bench.now, &bytes);
    bench.came.clear();
    bench.run(millis(40), &[DCI, RSRP], &radios);
    let came: BTreeSet<_> = bench.came.iter().map(|&(_, code, radio)| (code, radio)).collect();
    assert_eq!(came, [(DCI, Radio(1)), (RSRP, Radio(1)), (RSRP, Radio(2))].into());
}

#[test]
fn a_host_that_does_not_read_loses_packets_and_the_modem_counts_them() {
    for buffering in [Buffering::Streaming, Buffering::THRESHOLD, Buffering::Circular] {
        let modem = ModemOptions { buffering, memory: 10_000, ..ModemOptions::default() };
        let mut bench = Bench::new(&[DCI], SessionOptions::default(), modem).opened();
        for at in 0..1_000u64 {
            let payload = at.to_le_bytes();
            bench.modem.feed(
                bench.now,
                LogPacket { radio: Radio::FIRST, code: DCI, stamp: Stamp(at), payload: &payload },
            );
        }
        let mut drain = vec![];
        frame::encode(Framing::Plain, &Request::Control(airpace_diag::Control::Drain).body(), &mut drain);
        bench.modem.push(bench.now, &drain);
        let (mut bytes, mut stamps) = (vec![], vec![]);
        bench.modem.pop(bench.now, &mut bytes);
        bench.line.push(bench.now, &bytes, |packet| stamps.push(packet.stamp.0));
        let stats = bench.modem.stats();
        assert_eq!((stats.sent + stats.lost, stats.sent), (1_000, 10_000 / 24), "{buffering:?}");
        let first = if buffering == Buffering::Circular { 1_000 - stats.sent } else { 0 };
        assert_eq!(
            stamps,
            (first..first + stats.sent).collect::<Vec<_>>(),
            "{buffering:?}: the oldest or the newest"
        );
    }
}

#[test]
fn a_watermark_lets_go_before_the_time_does() {
    let modem = ModemOptions { memory: 10_000, ..buffering() };
    let mut bench = Bench::new(&[DCI], SessionOptions::default(), modem).opened();
    bench.run(Time::from_secs(2), &[DCI], &[Radio::FIRST]);
    // The modem logs 56 bytes per millisecond: the watermark of 8,500 bytes is reached after 152 ms, and the following
    // 7,000 bytes take 125 ms.
    let (longest, mean) = bench.gaps();
    assert!(longest <= 153.0 && (124.0..=130.0).contains(&mean), "{mean} ms apart, at most {longest}");
    assert_eq!(bench.modem.stats().lost, 0);
}

#[test]
fn nonsense_is_refused_with_its_own_bytes() {
    let mut modem = Modem::new(ModemOptions::default());
    let mut bytes = vec![];
    frame::encode(Framing::Hdlc, &[0x27, 1, 2], &mut bytes);
    modem.push(Time::ZERO, &bytes);
    let mut answer = vec![];
    modem.pop(Time::ZERO, &mut answer);
    let mut expected = vec![];
    let refused = airpace_diag::command::Answer::Refused(Refusal::Command, vec![0x27, 1, 2]);
    frame::encode(Framing::Hdlc, &refused.body(), &mut expected);
    assert_eq!(answer, expected);
}

proptest! {
    #[test]
    fn no_host_makes_a_modem_panic_or_grow(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..60), 0usize..14, any::<bool>()), 1..60),
    ) {
        let mut modem = Modem::new(ModemOptions { memory: 5_000, ..buffering() });
        let mut now = Time::ZERO;
        let mut out = vec![];
        for (mut bytes, command, is_framed) in pieces {
            let commands = [0, 0x1C, 0x4B, 0x60, 0x73, 0x7C, 0x81, 0x82, 0x98, 0x10];
            if let (Some(first), Some(&command)) = (bytes.first_mut(), commands.get(command)) {
                *first = command;
            }
            if is_framed {
                let body = std::mem::take(&mut bytes);
                frame::encode(modem.framing(), &body, &mut bytes);
            }
            modem.push(now, &bytes);
            modem.feed(now, LogPacket { radio: Radio(bytes.len() as u8), code: DCI, stamp: Stamp(0), payload: &bytes });
            now += Duration::from_millis(bytes.len() as u64);
            modem.pop(now, &mut out);
            prop_assert!(out.len() <= 256 * 100 + 2 * 5_000 * 2, "{} bytes at once", out.len());
            out.clear();
        }
        let stats = modem.stats();
        prop_assert!(stats.fed >= stats.sent + stats.lost + stats.unasked);
    }
}

//! Tests of sessions against faulty modems. For a correct modem, see `tests/modem.rs`.

use super::*;
use crate::command::{Build, Refusal, Release};

const LTE: LogCode = LogCode(0xB139);
const NR: LogCode = LogCode(0xB97F);

/// Returns the peer's answer to a request; `None` means no answer.
type Peer<'a> = dyn FnMut(Request) -> Option<Answer> + 'a;

/// A modem that supports all requests of a session. It has LTE with few items, and all of its masks are off at the
/// start.
fn fair(request: Request) -> Option<Answer> {
    Some(match request {
        Request::Version => Answer::Version(Release::default()),
        Request::Build => Answer::Build(Build { software: "MPSS".to_owned(), model: String::new() }),
        Request::Protocol => Answer::Protocol(8),
        Request::Events(_) => Answer::Events,
        Request::EventMask => Answer::EventMask(None),
        Request::SetEventMask(_) => Answer::SetEventMask(0),
        Request::LogsOff => Answer::LogsOff(0),
        Request::LogItems => {
            let mut items = [0; EQUIPMENTS];
            items[0xB] = 0x200;
            Answer::LogItems(0, items)
        }
        Request::LogMask(equipment) => Answer::LogMask(0, Some(Mask::off(equipment, 0x200))),
        Request::SetLogMask(mask) => Answer::SetLogMask(0, Some(mask)),
        Request::PlainFraming => Answer::PlainFraming(true),
        Request::Control(_) => Answer::Refused(Refusal::Command, request.body()),
    })
}

/// Runs a session until no timer is due before `until`; returns all requests.
fn run(session: &mut Session, until: Time, peer: &mut Peer<'_>) -> Vec<Request> {
    let mut asked = vec![];
    let mut now = Time::ZERO;
    while let Some(due) = session.poll_timeout() {
        now = now.max(due);
        if now > until {
            break;
        }
        session.handle_timeout(now);
        while let Some(body) = session.poll_transmit() {
            let request = Request::read(&body).expect("a session asks nothing malformed");
            asked.push(request.clone());
            if let Some(answer) = peer(request) {
                let body = answer.body();
                session.on_message(now, &Message::read(&body).unwrap());
            }
        }
    }
    asked
}

fn session(codes: &[LogCode]) -> Session {
    let options = SessionOptions { check_after: None, ..SessionOptions::default() };
    Session::new(codes.iter().copied().collect(), options)
}

const LONG: Time = Time::from_secs(60);

#[test]
fn a_silent_port_is_a_problem_with_a_remedy() {
    let mut session = session(&[LTE]);
    let asked = run(&mut session, LONG, &mut |_| None);
    assert_eq!(
        asked,
        vec![Request::Version; TRIES as usize],
        "and nothing else is asked of who does not answer"
    );
    assert_eq!(session.state(), State::Failed(Trouble::Silent));
    insta::assert_snapshot!(Trouble::Silent, @"the port does not answer: is it the modem's DM port (often the first of several ttyUSB), and is no other program using it?");
    assert!(session.restore().is_empty(), "nothing was changed");
}

#[test]
fn a_port_that_only_sends_leaves_requests_unanswered() {
    let mut session = session(&[LTE]);
    session.on_message(Time::ZERO, &Message::Other { command: 0x79, body: &[0x79, 0] });
    run(&mut session, LONG, &mut |_| None);
    assert_eq!(session.state(), State::Failed(Trouble::Unanswered(Step::Version)));
}

#[test]
fn what_a_session_can_do_without_may_be_refused_or_met_with_silence() {
    let mut session = session(&[LTE]);
    run(&mut session, LONG, &mut |request| match request {
        Request::Build => None,
        Request::Protocol | Request::PlainFraming | Request::LogMask(_) | Request::EventMask => {
            Some(Answer::Refused(Refusal::Command, request.body()))
        }
        request => fair(request),
    });
    assert_eq!(session.state(), State::Streaming);
    assert_eq!(session.framing(), Framing::Hdlc);
    assert_eq!(session.original(), None, "masks before could not be read");
    assert_eq!(session.restore(), [Request::LogsOff.body()], "so all that can be given back is silence");
    assert!(session.missing().is_empty());
}

#[test]
fn a_modem_without_log_items_is_of_no_use() {
    let mut session = session(&[LTE]);
    run(&mut session, LONG, &mut |request| match request {
        Request::LogItems => Some(Answer::Refused(Refusal::Command, request.body())),
        request => fair(request),
    });
    assert_eq!(session.state(), State::Failed(Trouble::Refused(Step::Items, Refusal::Command)));
}

#[test]
fn codes_without_items_in_the_modem_are_reported() {
    let mut session = session(&[LTE, NR, LogCode(0x1010)]);
    let asked = run(&mut session, LONG, &mut |request| fair(request));
    assert_eq!(session.state(), State::Streaming);
    assert_eq!(session.missing(), [(LogCode(0x1010), Missing::Equipment), (NR, Missing::Items(0x200)),]);
    assert_eq!(asked.last(), Some(&Request::SetLogMask(Mask::of(0xB, 0x200, [LTE]))));
}

#[test]
fn a_refused_mask_is_reported_and_requested_once() {
    let mut session = session(&[LTE]);
    let asked = run(&mut session, LONG, &mut |request| match request {
        Request::SetLogMask(mask) => Some(Answer::SetLogMask(2, Some(Mask::off(mask.equipment(), 8)))),
        request => fair(request),
    });
    assert_eq!(session.missing(), [(LTE, Missing::Status(2))]);
    assert_eq!(asked.iter().filter(|request| matches!(request, Request::SetLogMask(_))).count(), 1);
    assert_eq!(session.state(), State::Streaming, "it is for the host to say whether that will do");
}

#[test]
fn a_modem_that_cannot_clear_all_masks_gets_each_set() {
    let mut session = session(&[LTE]);
    let asked = run(&mut session, LONG, &mut |request| match request {
        Request::LogsOff => Some(Answer::Refused(Refusal::Parameters, request.body())),
        Request::LogItems => {
            Some(Answer::LogItems(0, std::array::from_fn(|id| if id == 4 { 8 } else { 0x200 })))
        }
        Request::LogMask(4) => Some(Answer::LogMask(0, Some(Mask::of(4, 8, [LogCode(0x4003)])))),
        Request::LogMask(5) => Some(Answer::LogMask(1, None)),
        request => fair(request),
    });
    let set: Vec<_> = asked.into_iter().filter(|request| matches!(request, Request::SetLogMask(_))).collect();
    assert_eq!(
        set,
        [
            Request::SetLogMask(Mask::off(4, 8)),
            Request::SetLogMask(Mask::off(5, 0x200)),
            Request::SetLogMask(Mask::of(0xB, 0x200, [LTE])),
        ]
    );
}

#[test]
fn a_modem_that_restarted_is_noticed_by_its_silence_and_set_again() {
    let options = SessionOptions::default();
    let mut session = Session::new([LTE].into(), options);
    let mut mask = Mask::off(0xB, 0x200);
    let mut sets = 0;
    let mut restarts = 1;
    let mut peer = |request: Request| match request {
        Request::SetLogMask(new) => {
            sets += 1;
            mask = new.clone();
            Some(Answer::SetLogMask(0, Some(new)))
        }
        Request::LogMask(_) if sets == 1 && restarts > 0 => {
            restarts -= 1;
            mask = Mask::off(0xB, 0x200);
            Some(Answer::LogMask(0, Some(mask.clone())))
        }
        Request::LogMask(_) => Some(Answer::LogMask(0, Some(mask.clone()))),
        request => fair(request),
    };
    run(&mut session, Time::from_secs(30), &mut peer);
    assert_eq!((sets, restarts), (2, 0), "once at first, once after the restart");
    assert_eq!(session.state(), State::Streaming);
    assert_eq!(session.original(), Some(&Original::default()), "what it had before is not what we set");
}

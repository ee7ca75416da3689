use proptest::prelude::*;

use super::*;
use crate::packet::LogCode;

fn lte(codes: &[u16]) -> Mask {
    Mask::of(0xB, 0x200, codes.iter().map(|&code| LogCode(code)))
}

#[test]
fn a_mask_looks_as_on_the_wire() {
    let body = Request::SetLogMask(lte(&[0xB139])).body();
    assert_eq!(body[..16], [0x73, 0, 0, 0, 3, 0, 0, 0, 0xB, 0, 0, 0, 0, 2, 0, 0]);
    assert_eq!((body.len(), body[16 + 39]), (16 + 64, 2), "0xB139 is bit 1 of byte 39");
}

#[test]
fn every_request_is_read_as_it_was_written() {
    let events = EventMask { count: 11, bits: vec![3, 4] };
    for request in [
        Request::Version,
        Request::Build,
        Request::Protocol,
        Request::Events(true),
        Request::Events(false),
        Request::EventMask,
        Request::SetEventMask(events),
        Request::LogsOff,
        Request::LogItems,
        Request::LogMask(0xB),
        Request::SetLogMask(lte(&[0xB139, 0xB173])),
        Request::PlainFraming,
        Request::Control(Control::Drain),
    ] {
        assert_eq!(Request::read(&request.body()), Ok(request));
    }
}

#[test]
fn every_answer_is_read_as_it_was_written() {
    let release = Release {
        compiled: "Jan 01 2024 12:00:00".to_owned(),
        released: "Feb 02 2024 13:00:00".to_owned(),
        directory: "sdx55".to_owned(),
    };
    let build = Build { software: "MPSS.HE.1.0".to_owned(), model: "phone".to_owned() };
    for answer in [
        Answer::Version(release),
        Answer::Build(build),
        Answer::Protocol(8),
        Answer::Events,
        Answer::EventMask(Some(EventMask { count: 8, bits: vec![1] })),
        Answer::EventMask(None),
        Answer::SetEventMask(0),
        Answer::LogsOff(0),
        Answer::LogItems(0, std::array::from_fn(|id| id as u32 * 100)),
        Answer::LogMask(0, Some(lte(&[0xB0C0]))),
        Answer::LogMask(1, None),
        Answer::SetLogMask(0, Some(lte(&[0xB0C0]))),
        Answer::PlainFraming(true),
        Answer::PlainFraming(false),
        Answer::Control(true),
        Answer::Refused(Refusal::Length, vec![0x73]),
    ] {
        assert_eq!(Answer::read(&answer.body()), Some(answer));
    }
    assert_eq!(Answer::Version(Release::default()).body().len(), 55, "as kernels answer for a modem");
    assert_eq!(Answer::read(&[0x60, 4, 0, 1, 2, 3, 4]), None, "an event is no answer");
}

#[test]
fn a_late_answer_is_not_taken_for_that_of_a_newer_request() {
    let newer = Request::SetLogMask(lte(&[0xB139]));
    assert!(!newer.is_answered_by(&Answer::SetLogMask(0, Some(lte(&[0xB173])))));
    assert!(newer.is_answered_by(&Answer::SetLogMask(0, Some(lte(&[0xB139])))));
    assert!(newer.is_answered_by(&Answer::Refused(Refusal::Command, newer.body())));
    assert!(!newer.is_answered_by(&Answer::Refused(Refusal::Command, Request::LogItems.body())));
    assert!(!Request::LogMask(4).is_answered_by(&Answer::LogMask(0, Some(lte(&[])))));
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    assert_eq!(Request::read(&[]), Err(Refusal::Length));
    assert_eq!(Request::read(&[0x27, 1]), Err(Refusal::Command));
    assert_eq!(Request::read(&[0x73, 0]), Err(Refusal::Length));
    assert_eq!(Request::read(&logs(&[9])), Err(Refusal::Parameters));
    assert_eq!(Request::read(&logs(&[4, 16])), Err(Refusal::Parameters), "equipment 16");
    assert_eq!(Request::read(&logs(&[3, 0xB, 0x200])), Err(Refusal::Length), "the mask is missing");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), command in 0usize..10) {
        if let Some(first) = bytes.first_mut() {
            *first = [0, 0x1C, 0x4B, 0x60, 0x73, 0x7C, 0x81, 0x82, 0x13, *first][command];
        }
        if let Ok(request) = Request::read(&bytes) {
            prop_assert_eq!(Request::read(&request.body()), Ok(request));
        }
        if let Some(answer) = Answer::read(&bytes) {
            answer.body();
        }
    }
}

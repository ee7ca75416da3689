//! Parser of QUIC packets for the log.

use airpace_transport::qlog::frames::{Frame, Frames};

/// Frames follow each other without a gap and stay within the packet. A frame that is parsed alone is equal to the
/// frame in the packet. The iterator ends with the packet or after the first frame that cannot be parsed.
pub fn frames(payload: &[u8]) {
    let mut frames = Frames::new(payload);
    let mut at = 0;
    let mut carried = 0;
    while let Some(read) = frames.next() {
        let from = std::mem::replace(&mut at, frames.offset());
        let Ok(frame) = read else {
            assert_eq!((at, frames.next()), (payload.len(), None));
            return;
        };
        assert!(from < at && at <= payload.len());
        assert_eq!(Frames::new(&payload[from..at]).collect::<Vec<_>>(), [Ok(frame.clone())]);
        let bytes = (at - from) as u64;
        match frame {
            Frame::Ack { ranges, .. } => {
                assert!(ranges.iter().all(|(lowest, highest)| lowest <= highest));
                assert!(ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0), "with gaps between them");
                assert!(ranges.len() as u64 <= bytes);
            }
            Frame::Padding { bytes: padding } => assert_eq!(padding, bytes),
            Frame::Crypto { bytes: within, .. }
            | Frame::Stream { bytes: within, .. }
            | Frame::Datagram { bytes: within } => {
                assert!(within < bytes);
                carried += within;
            }
            _ => {}
        }
    }
    assert!(at == payload.len() && carried <= payload.len() as u64);
}

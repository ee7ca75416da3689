//! A log without frames that is cut at any byte yields its complete packets and no others. Skipped if the recordings are
//! not available.

use crate::recordings_folder;

use airpace_diag::Stamp;
use airpace_diag::source::Item;
use airpace_diag::{Format, LogCode, Message};
use recordings_folder::{logs, recordings};

/// A packet as returned by a reader.
type Packet = (LogCode, Stamp, Vec<u8>);

fn packets(form: Format, bytes: &[u8]) -> Vec<Packet> {
    let mut packets = vec![];
    form.visit(bytes, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            packets.push((packet.code, packet.stamp, packet.payload.to_vec()));
        }
    });
    packets
}

/// Pseudorandom number generator.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A log without frames with the same packets, the start offset of each packet, and the end offset of the last packet.
fn without_frames(bytes: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut packets, mut ends) = (vec![], vec![0]);
    Format::Hdlc.visit(bytes, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            let mut body = vec![];
            packet.write(false, &mut body);
            packets.extend_from_slice(&body[4..]);
            ends.push(packets.len());
        }
    });
    (packets, ends)
}

#[test]
fn a_log_cut_anywhere_holds_its_whole_packets_and_no_others() {
    const CUTS: usize = 400;
    let Some(folder) = recordings() else { return };
    let (mut cuts, mut refused) = (0, 0);
    for log in logs(&folder) {
        let bytes = std::fs::read(&log).unwrap();
        let all = packets(Format::Hdlc, &bytes);
        let (bytes, ends) = without_frames(&bytes);
        let mut noise = Noise(all.len() as u64);
        for number in 0..CUTS {
            let count = (20 + noise.below(100)).min(all.len());
            let first = noise.below(all.len() - count + 1);
            let last = first + count - 1;
            // Half of the cuts start inside a packet; nearly all cuts end inside a packet.
            let lost = number % 2 * noise.below(ends[first + 1] - ends[first]);
            let from = ends[first] + lost;
            let to = ends[last] + noise.below(ends[last + 1] - ends[last]);
            let cut = &bytes[from..to];
            let whole = &all[first + usize::from(lost > 0)..last];
            let found = packets(Format::Dlf, cut);
            // Payloads of one log contain old packets. If the start of a payload is cut, an old packet that extends to
            // the end of this payload looks like a packet of the log.
            let is_old = |packet: &Packet| packet.1.is_set() && whole[0].1.since(packet.1) > Some(60.0);
            let found = match found.split_first() {
                Some((begin, rest)) if lost > 0 && is_old(begin) => rest,
                _ => &found[..],
            };
            let invented: Vec<&Packet> = found.iter().filter(|packet| !all.contains(packet)).collect();
            let name = format!("{} from byte {from} to {to}", log.display());
            assert!(invented.is_empty(), "{name}: {invented:?}");
            assert_eq!(found.len(), whole.len(), "{name}");
            assert_eq!(found, whole, "{name}");
            cuts += 1;
            refused += usize::from(Format::of(cut) != Format::Dlf);
        }
    }
    // The format cannot be detected if a payload is longer than all complete packets, or contains more old packets.
    assert!(refused * 1_000 <= cuts, "{refused} of {cuts} are not taken for logs");
    println!("{cuts} cuts, {refused} not taken for logs");
}

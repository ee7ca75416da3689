//! Trains: service of a cellular link for a few packets at a time, recorded together with the trace of the same link
//! under full load.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Rng};

use super::chances::Trace;
use super::error::TraceError;
use super::text::{lines, shown};
use crate::config_error::{ConfigError, positive};

/// Maximum base delay of a train, and maximum duration of a train, in milliseconds.
///
/// Chosen: ten minutes, which is longer than any packet waits.
const MAX_TRAIN_MS: u64 = 600_000;

/// Maximum number of trains in a file. `MAX_CHANCES` is the maximum number of opportunities of a synthetic train.
///
/// Chosen: one train every 100 ms for eleven days, which needs some megabytes of memory.
const MAX_TRAINS: usize = 10_000_000;
const MAX_CHANCES: u32 = 10_000;

/// Size of the packets with which trains were recorded.
///
/// Source: CellReplay `cellular_queue.hh`
pub const TRAIN_PACKET: Bytes = Bytes(1400);

/// Packet trains in order of time. Each train contains the delay of its first packet (the base delay), and the
/// additional delay of each further packet.
///
/// The trains repeat. The last train marks the end of the recording, and its delay is used only for interpolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trains {
    trains: Vec<Train>,
}

/// Service of one train.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// Departure time of the train, in ms of the recording.
    pub time_ms: u64,
    /// One-way delay of the train's first packet, in ms.
    pub delay_ms: u64,
    /// Additional delay of each packet relative to the first, in ms: in ascending order, starting with the first
    /// packet. The list is never empty.
    pub chances_ms: Vec<u64>,
}

/// Model of synthetic trains, which are all equal except for their base delay.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainModel {
    /// The base delay, in whole ms.
    pub delay_ms: u64,
    /// The maximum base delay, in whole ms: the delay of each train is drawn between `delay_ms` and this value. If
    /// absent, all trains have `delay_ms`.
    pub delay_to_ms: Option<u64>,
    /// Number of packets of 1400 bytes in a train.
    pub packets: u32,
    /// Rate at which the packets of a train are served, in Mbit/s.
    pub mbps: f64,
    /// Interval between trains, in ms.
    pub every_ms: u32,
}

impl Trains {
    /// Reads the trains of CellReplay: one line per train, `time delay chance …`, in whole ms and separated by blanks.
    /// Times rise from 0.
    ///
    /// Source: CellReplay `cellular_queue.cc`, `generate_short_pdo_trace.py`
    /// Chosen: the opportunities of a train are sorted, because packets of a recorded train may have overtaken each
    /// other.
    ///
    /// # Errors
    /// The file is invalid; the error names the line, the problem, and the remedy.
    pub fn parse(file: &[u8]) -> Result<Trains, TraceError> {
        let mut trains: Vec<Train> = Vec::new();
        for (line, text) in lines(file) {
            let number = |field: &[u8]| {
                let value = std::str::from_utf8(field).ok().and_then(|text| text.parse::<u64>().ok());
                value.ok_or_else(|| {
                    let what = format!("`{}` is no time", shown(field));
                    TraceError::at(line, what, "a line is `time delay chance …`, in whole milliseconds")
                })
            };
            let mut fields = text.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
            let missing = |what: &str| {
                let what = format!("there is no {what}");
                TraceError::at(line, what, "a line is `time delay chance …`, with one chance at least")
            };
            let time_ms = number(fields.next().ok_or_else(|| missing("time"))?)?;
            let delay_ms = number(fields.next().ok_or_else(|| missing("delay"))?)?;
            let mut chances_ms = fields.map(number).collect::<Result<Vec<u64>, _>>()?;
            chances_ms.sort_unstable();
            let last_ms = *chances_ms.last().ok_or_else(|| missing("chance"))?;
            if delay_ms.max(last_ms) > MAX_TRAIN_MS {
                let what = format!("{} ms is more than ten minutes", delay_ms.max(last_ms));
                return Err(TraceError::at(line, what, "delays and chances are milliseconds of one train"));
            }
            match trains.last() {
                None if time_ms != 0 => {
                    let remedy = "the first train is sent at 0; subtract its time from all";
                    return Err(TraceError::at(line, format!("the first time is {time_ms}"), remedy));
                }
                Some(before) if time_ms <= before.time_ms => {
                    let what = format!("time {time_ms} after {}", before.time_ms);
                    return Err(TraceError::at(
                        line,
                        what,
                        "times rise; sort the lines by their first number",
                    ));
                }
                _ if time_ms > Trace::MAX_MS || trains.len() == MAX_TRAINS => {
                    let what = format!("train {} is sent at {time_ms} ms", trains.len() + 1);
                    let remedy =
                        format!("there are at most {MAX_TRAINS} trains in eleven days; cut the file");
                    return Err(TraceError::at(line, what, remedy));
                }
                _ => trains.push(Train { time_ms, delay_ms, chances_ms }),
            }
        }
        if trains.len() < 2 {
            let what = format!("there are {} trains", trains.len());
            return Err(TraceError::whole(what, "give two at least, each as a line `time delay chance …`"));
        }
        Ok(Trains { trains })
    }

    /// Generates trains according to `model` for `duration`.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub fn made(model: &TrainModel, duration: Duration, rng: &mut Rng) -> Result<Trains, ConfigError> {
        let refuse = |key: &str, reason: String| Err(ConfigError::new(key, reason));
        if model.delay_ms > MAX_TRAIN_MS {
            return refuse("delay_ms", format!("is {}; the most is {MAX_TRAIN_MS}", model.delay_ms));
        }
        let longest_ms = model.delay_to_ms.unwrap_or(model.delay_ms);
        if !(model.delay_ms..=MAX_TRAIN_MS).contains(&longest_ms) {
            let reason = format!("is {longest_ms}; give {} (`delay_ms`) to {MAX_TRAIN_MS}", model.delay_ms);
            return refuse("delay_to_ms", reason);
        }
        if !(1..=MAX_CHANCES).contains(&model.packets) {
            return refuse("packets", format!("is {}; give 1 to {MAX_CHANCES}", model.packets));
        }
        let gap = Rate::from_mbps(positive("mbps", model.mbps)?).time_for(TRAIN_PACKET);
        let chances_ms: Vec<u64> =
            (0..model.packets).map(|packet| (gap * packet).as_millis() as u64).collect();
        if chances_ms[chances_ms.len() - 1] > MAX_TRAIN_MS {
            return refuse(
                "mbps",
                format!("is {}: a train takes more than ten minutes; give more", model.mbps),
            );
        }
        let (every_ms, length_ms) = (u64::from(model.every_ms), duration.as_millis() as u64);
        if every_ms == 0 || every_ms > length_ms {
            return refuse("every_ms", format!("is {every_ms}; give 1 to {length_ms}, the whole length"));
        }
        if length_ms / every_ms >= MAX_TRAINS as u64 {
            return refuse("every_ms", format!("is {every_ms}: that makes more than {MAX_TRAINS} trains"));
        }
        let train = |number: u64| Train {
            time_ms: number * every_ms,
            delay_ms: model.delay_ms + rng.below(longest_ms - model.delay_ms + 1),
            chances_ms: chances_ms.clone(),
        };
        Ok(Trains { trains: (0..=length_ms / every_ms).map(train).collect() })
    }

    /// The trains; at least two.
    pub fn all(&self) -> &[Train] {
        &self.trains
    }

    /// Period in milliseconds after which the trains repeat, at least 1.
    pub fn period_ms(&self) -> u64 {
        self.trains[self.trains.len() - 1].time_ms
    }

    /// The minimum base delay, in ms.
    pub fn least_delay_ms(&self) -> u64 {
        self.trains.iter().map(|train| train.delay_ms).min().unwrap_or_default()
    }

    /// The index of the latest train at millisecond `ms` of the repeated recording, for a packet that starts a train;
    /// and the base delay in ms, interpolated between this train and the next train and rounded down.
    ///
    /// Source: CellReplay `cellular_queue.cc` (get_pkt_release_time_from_trace)
    pub fn at(&self, ms: u64) -> (usize, u64) {
        let within = ms % self.period_ms();
        let next = self.trains.partition_point(|train| train.time_ms <= within);
        let (place, next) = (next - 1, &self.trains[next]);
        let train = &self.trains[place];
        let (gone, span) = (within - train.time_ms, next.time_ms - train.time_ms);
        // The product does not overflow, because times and delays are bounded.
        (place, (train.delay_ms * (span - gone) + next.delay_ms * gone) / span)
    }
}

/// Delay offset as a function of the packet size. It is needed because trains are recorded with packets of one size.
/// Offsets may be negative.
///
/// Source: CellReplay `cellular_queue.cc` (get_psize_latency_offset)
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizeOffsets {
    /// Offsets in ms, for packets of 100, 200, … bytes.
    offsets_ms: Vec<f64>,
}

impl SizeOffsets {
    /// Reads a table without a header: `size offset` in bytes and ms, for sizes of 100, 200, … in this order.
    ///
    /// # Errors
    /// The file is invalid; the error names the line, the problem, and the remedy.
    pub fn parse(file: &[u8]) -> Result<SizeOffsets, TraceError> {
        let mut offsets_ms = Vec::new();
        for (line, text) in lines(file) {
            let size = 100 * (offsets_ms.len() as u64 + 1);
            let refuse = || {
                let remedy = format!("sizes go up by 100 from 100: this line is `{size} MILLISECONDS`");
                TraceError::at(line, format!("`{}` is no offset", shown(text)), remedy)
            };
            let fields = std::str::from_utf8(text).map_err(|_| refuse())?;
            let mut fields = fields.split_whitespace();
            let (named, offset) = (fields.next(), fields.next());
            if named.and_then(|named| named.parse().ok()) != Some(size) || fields.next().is_some() {
                return Err(refuse());
            }
            let offset_ms = offset.and_then(|offset| offset.parse::<f64>().ok());
            let is_sane = |offset: &f64| offset.abs() <= MAX_TRAIN_MS as f64;
            offsets_ms.push(offset_ms.filter(is_sane).ok_or_else(refuse)?);
        }
        if offsets_ms.is_empty() {
            return Err(TraceError::whole("there are no offsets", "give lines `100 MILLISECONDS`, `200 …`"));
        }
        Ok(SizeOffsets { offsets_ms })
    }

    /// The offset of a packet of this size, in whole ms: interpolated between the sizes of the table; outside the
    /// table, the offset of the nearest size.
    pub fn of(&self, size: Bytes) -> i64 {
        let Some(last) = self.offsets_ms.last() else { return 0 };
        let (step, rest) = (size.0 / 100, size.0 % 100);
        let offset_ms = match step.checked_sub(1).map(|below| below as usize) {
            None => self.offsets_ms[0],
            Some(below) if below + 1 >= self.offsets_ms.len() => *last,
            Some(below) => {
                let (from, to) = (self.offsets_ms[below], self.offsets_ms[below + 1]);
                from + rest as f64 / 100.0 * (to - from)
            }
        };
        libm::round(offset_ms) as i64
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;
    use airpace_core::remedy::explain_plainly;

    use super::*;

    #[test]
    fn trains_are_read_and_their_delay_moves_between_them() {
        let trains = Trains::parse(b"0 20 0 0 7 4\n100 30 0\r\n\n300 10 0 1\n").unwrap();
        assert_eq!(trains.all()[0].chances_ms, [0, 0, 4, 7], "in order");
        let met = |ms| {
            let (place, delay_ms) = trains.at(ms);
            (trains.all()[place].time_ms, delay_ms)
        };
        assert_eq!([met(0), met(50), met(99)], [(0, 20), (0, 25), (0, 29)], "rounded down");
        assert_eq!([met(100), met(200), met(299)], [(100, 30), (100, 20), (100, 10)]);
        assert_eq!([met(300), met(350)], [(0, 20), (0, 25)], "the last train begins the next repetition");
        assert_eq!((trains.period_ms(), trains.least_delay_ms()), (300, 10));
    }

    #[test]
    fn offsets_are_interpolated_between_sizes() {
        let offsets = SizeOffsets::parse(b"100 -4\n200 -2.4\n300 1\n").unwrap();
        let of = |size| offsets.of(Bytes(size));
        assert_eq!(
            [of(20), of(100), of(150), of(200), of(290), of(300), of(1400)],
            [-4, -4, -3, -2, 1, 1, 1]
        );
        assert_eq!(SizeOffsets::default().of(Bytes(700)), 0);
    }

    #[test]
    fn made_trains_have_the_delay_and_the_rate_asked_for() {
        let model = TrainModel { delay_ms: 15, delay_to_ms: Some(40), packets: 5, mbps: 2.8, every_ms: 50 };
        let make = |model: &TrainModel| {
            Trains::made(model, Duration::from_secs(20), &mut Streams::new(1).stream("x"))
        };
        let trains = make(&model).unwrap();
        assert_eq!((trains.all().len(), trains.period_ms()), (401, 20_000));
        assert!(trains.all().iter().all(|train| (15..=40).contains(&train.delay_ms)));
        assert_eq!(trains.least_delay_ms(), 15, "of 401 draws");
        assert_eq!(trains.all()[7].chances_ms, [0, 4, 8, 12, 16], "11,200 bits each 4 ms");
        let steady = make(&TrainModel { delay_to_ms: None, ..model.clone() }).unwrap();
        assert!(steady.all().iter().all(|train| train.delay_ms == 15));
        let refusal = |model: TrainModel| make(&model).unwrap_err().to_string();
        let refusals = [
            refusal(TrainModel { delay_to_ms: Some(14), ..model.clone() }),
            refusal(TrainModel { delay_ms: 700_000, delay_to_ms: None, ..model.clone() }),
            refusal(TrainModel { packets: 0, ..model.clone() }),
            refusal(TrainModel { mbps: 0.0, ..model.clone() }),
            refusal(TrainModel { mbps: 1e-5, ..model.clone() }),
            refusal(TrainModel { every_ms: 0, ..model.clone() }),
            refusal(TrainModel { every_ms: 20_001, ..model }),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
        `delay_to_ms` is 14; give 15 (`delay_ms`) to 600000
        `delay_ms` is 700000; the most is 600000
        `packets` is 0; give 1 to 10000
        `mbps` is 0; give a number above 0
        `mbps` is 0.00001: a train takes more than ten minutes; give more
        `every_ms` is 0; give 1 to 20000, the whole length
        `every_ms` is 20001; give 1 to 20000, the whole length
        ");
    }

    #[test]
    fn what_is_wrong_with_trains_is_said_with_line_and_remedy() {
        let trains = |text: &str| explain_plainly(&Trains::parse(text.as_bytes()).unwrap_err());
        let offsets = |text: &str| explain_plainly(&SizeOffsets::parse(text.as_bytes()).unwrap_err());
        let refusals = [
            trains(""),
            trains("0 20 0\n"),
            trains("5 20 0\n"),
            trains("0\n"),
            trains("0 20\n"),
            trains("0 20 0\n0 20 0\n"),
            trains("0 20.5 0\n"),
            trains("0 20 -1\n"),
            trains("0 20 600001\n"),
            trains("0 20 0\n9999999999 20 0\n"),
            offsets(""),
            offsets("200 1\n"),
            offsets("100 1\n200\n"),
            offsets("100 1 1\n"),
            offsets("100 NaN\n"),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r"
        there are 0 trains; give two at least, each as a line `time delay chance …`
        there are 1 trains; give two at least, each as a line `time delay chance …`
        line 1: the first time is 5; the first train is sent at 0; subtract its time from all
        line 1: there is no delay; a line is `time delay chance …`, with one chance at least
        line 1: there is no chance; a line is `time delay chance …`, with one chance at least
        line 2: time 0 after 0; times rise; sort the lines by their first number
        line 1: `20.5` is no time; a line is `time delay chance …`, in whole milliseconds
        line 1: `-1` is no time; a line is `time delay chance …`, in whole milliseconds
        line 1: 600001 ms is more than ten minutes; delays and chances are milliseconds of one train
        line 2: train 2 is sent at 9999999999 ms; there are at most 10000000 trains in eleven days; cut the file
        there are no offsets; give lines `100 MILLISECONDS`, `200 …`
        line 1: `200 1` is no offset; sizes go up by 100 from 100: this line is `100 MILLISECONDS`
        line 2: `200` is no offset; sizes go up by 100 from 100: this line is `200 MILLISECONDS`
        line 1: `100 1 1` is no offset; sizes go up by 100 from 100: this line is `100 MILLISECONDS`
        line 1: `100 NaN` is no offset; sizes go up by 100 from 100: this line is `100 MILLISECONDS`
        ");
    }
}

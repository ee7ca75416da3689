//! Integration of video quality, audio quality and stalls into a score (ITU-T P.1203.3), without its random forest.

/// Coefficients of the audiovisual quality of a second: constant, audio, video, and their product.
///
/// Source: ITU-T P.1203.3 (10/2017) §8.2 (av1 to av4)
const AUDIOVISUAL: [f64; 4] = [-0.00069084, 0.15374283, 0.97153861, 0.02461776];

/// Coefficients of the weights of seconds: late and bad seconds count more.
///
/// Source: ITU-T P.1203.3 (10/2017) Eq. 20, 21 (t1 to t5)
const WEIGHT: [f64; 5] =
    [0.00666620027943848, 0.0000404018840273729, 0.156497800436237, 0.143179744942738, 0.0238641564518876];

/// Coefficients of the bias by the worst seconds.
///
/// Source: ITU-T P.1203.3 (10/2017) Eq. 5, 7 (c1, c2, c23)
const NEGATIVE_BIAS: [f64; 3] = [1.87403625, 7.85416481, 0.01853820];

/// Coefficients of the penalty for oscillation: number of turns, and constant.
///
/// Source: ITU-T P.1203.3 (10/2017) Eq. 23 (comp1, comp2)
const OSCILLATION: [f64; 2] = [0.67756080, -8.05533303];

/// Coefficients of the penalty for changes of quality: spread times rate of changes, and constant.
///
/// Source: ITU-T P.1203.3 (10/2017) Eq. 26 (comp3, comp4)
const ADAPTATION: [f64; 2] = [0.17332553, -0.01035647];

/// Coefficients of the impact of stalls: their number, their total length and the mean interval between them.
///
/// Source: ITU-T P.1203.3 (10/2017) Eq. 29 (s1 to s3)
const STALLING: [f64; 3] = [9.35158684, 0.91890815, 11.0567558];

/// Weight of a stall long ago, and the time in seconds in which half of the difference to it has passed.
///
/// Source: ITU-T P.1203.3 (10/2017) §8.1.1.1 (c_ref7, c_ref8)
const MEMORY: [f64; 2] = [0.48412879, 10.0];

/// Coefficients of the factor for long stalls: slope per second and constant.
///
/// Source: ITU-T P.1203.3 Amendment 1 (01/2019) §8.4
const LONG_STALLS: [f64; 2] = [-0.066667, 2.0];

/// Audio quality below which it limits the audiovisual quality.
///
/// Source: ITU-T P.1203.3 Amendment 1 (01/2019) Eq. 17a
const LOW_AUDIO: f64 = 2.0;

/// Difference of video quality that is a change of quality.
///
/// Source: ITU-T P.1203.3 (10/2017) §8.1.2.3, §8.1.2.4
const CHANGE: f64 = 0.2;

/// Length of the moving average in which changes of direction are counted, in seconds.
///
/// Source: ITU-T P.1203.3 (10/2017) §8.1.2.4
const AVERAGE: usize = 5;

/// Distance of the samples of the moving average, in seconds.
///
/// Source: ITU-T P.1203.3 (10/2017) §8.1.2.4
const STEP: usize = 3;

/// Audio quality of each second of a session whose audio is not known.
///
/// Chosen: the best quality, as in the reference implementation.
const PERFECT_AUDIO: f64 = 5.0;

/// A time in which the viewer waited: the start-up delay, or a stall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Position in the video in seconds; 0 for the start-up delay.
    pub position_s: f64,
    /// Length in seconds.
    pub length_s: f64,
}

/// The outputs of the integration.
#[derive(Clone, Debug, PartialEq)]
pub struct Integration {
    /// Stalling quality (O.23), 1 to 5.
    pub stalling: f64,
    /// Audiovisual quality of each second (O.34), 1 to 5.
    pub audiovisual: Vec<f64>,
    /// Audiovisual quality of the session (O.35), without the stalls.
    pub without_stalls: f64,
    /// The score, 1 (bad) to 5 (excellent): the formula that has a weight of 75 % in O.46, without the random forest.
    pub score: f64,
}

/// Integrates the qualities of all seconds and the waits, in order of their positions. Without `audio`, the audio is
/// perfect; if audio and video have different lengths, the shorter one counts. `amendment_1` also applies Amendment 1: very
/// low audio quality, and stalls of more than 15 s in total, lower the score further.
///
/// Returns `None` if there is no second.
///
/// Source: ITU-T P.1203.3 (10/2017) §8, Amendment 1 (01/2019)
pub fn integrate(
    audio: Option<&[f64]>,
    video: &[f64],
    waits: &[Wait],
    amendment_1: bool,
) -> Option<Integration> {
    let seconds = audio.map_or(video.len(), |audio| audio.len().min(video.len()));
    if seconds == 0 {
        return None;
    }
    let audio_at = |second: usize| audio.map_or(PERFECT_AUDIO, |audio| audio[second]);
    let audiovisual: Vec<f64> = (video.iter().take(seconds).enumerate())
        .map(|(second, &video)| of_second(audio_at(second), video, amendment_1))
        .collect();
    let baseline = weighted_mean(&audiovisual);
    let penalties = negative_bias(&audiovisual, baseline) + changes(video, seconds);
    let without_stalls = baseline - penalties;
    let stalls = Stalls::new(waits, seconds as f64);
    let impact = stalls.impact(seconds as f64);
    let score = (1.0 + (without_stalls - 1.0) * impact).clamp(1.0, 5.0);
    let factor = if amendment_1 { stalls.long_stall_factor() } else { 1.0 };
    Some(Integration {
        stalling: 1.0 + 4.0 * impact,
        audiovisual,
        without_stalls,
        score: 1.0 + (score - 1.0) * factor,
    })
}

/// Audiovisual quality of one second.
///
/// Source: ITU-T P.1203.3 (10/2017) §8.2, Amendment 1 (01/2019) Eq. 17a
fn of_second(audio: f64, video: f64, amendment_1: bool) -> f64 {
    let [constant, by_audio, by_video, by_both] = AUDIOVISUAL;
    let mos = (constant + by_audio * audio + by_video * video + by_both * audio * video).clamp(1.0, 5.0);
    let limit = if amendment_1 { 1.0 - (LOW_AUDIO - audio).max(0.0) } else { 1.0 };
    1.0 + (mos - 1.0) * limit
}

/// Mean in which late and bad seconds count more.
///
/// Source: ITU-T P.1203.3 (01/2019) Eq. 19 to 21
fn weighted_mean(audiovisual: &[f64]) -> f64 {
    let [t1, t2, t3, t4, t5] = WEIGHT;
    let (mut sum, mut weights) = (0.0, 0.0);
    for (second, mos) in audiovisual.iter().enumerate() {
        let late = t1 + t2 * libm::exp(second as f64 / audiovisual.len() as f64 / t3);
        let weight = late * (t4 - t5 * mos);
        sum += weight * mos;
        weights += weight;
    }
    sum / weights
}

/// Penalty for seconds that are much worse than the mean `baseline`; recent ones count less than those long ago.
///
/// Source: ITU-T P.1203.3 (10/2017) Eq. 5 to 7
fn negative_bias(audiovisual: &[f64], baseline: f64) -> f64 {
    let [long_ago, half_life_s, gain] = NEGATIVE_BIAS;
    let mut differences: Vec<f64> = (audiovisual.iter().rev().enumerate())
        .map(|(age, mos)| (mos - baseline) * fading(long_ago, half_life_s, age as f64))
        .collect();
    differences.sort_by(f64::total_cmp);
    // The tenth percentile, linear between two values.
    let rank = 0.1 * (differences.len() - 1) as f64;
    let (below, above) = (libm::floor(rank) as usize, libm::ceil(rank) as usize);
    let tenth = differences[below] + (differences[above] - differences[below]) * (rank - below as f64);
    (-tenth).max(0.0) * gain
}

/// A weight that is 1 now and approaches `long_ago` with age; half of the difference passes in `half_life_s` seconds.
fn fading(long_ago: f64, half_life_s: f64, age_s: f64) -> f64 {
    long_ago + (1.0 - long_ago) * libm::exp2(-age_s / half_life_s)
}

/// Penalties for oscillation of the video quality, and for changes of it, in a session of this many seconds.
///
/// Source: ITU-T P.1203.3 (10/2017) Eq. 23, 24, 26, 27
fn changes(video: &[f64], seconds: usize) -> f64 {
    let (longest_s, turns) = directions(video);
    if longest_s as f64 / seconds as f64 >= 0.25 {
        return 0.0;
    }
    let highest = video.iter().copied().fold(f64::MIN, f64::max);
    let spread = highest - video.iter().copied().fold(f64::MAX, f64::min);
    let [by_turns, constant] = OSCILLATION;
    let size = (1.0 + libm::log10(spread + 0.001)).max(0.0);
    let oscillation = (size * libm::exp(by_turns * turns as f64 + constant)).clamp(0.0, 1.5);
    let pairs = video.windows(2).take(seconds - 1);
    let rate = pairs.filter(|pair| (pair[1] - pair[0]).abs() > CHANGE).count() as f64 / seconds as f64;
    let [by_rate, offset] = ADAPTATION;
    let adaptation = (by_rate * spread * rate + offset).clamp(0.0, 0.5);
    if longest_s < 30 { oscillation + adaptation } else { adaptation }
}

/// The longest time in seconds without a change of direction of the video quality, and the number of times in which the
/// quality rises or falls.
///
/// Source: ITU-T P.1203.3 (10/2017) §8.1.2.4, §8.1.2.5
fn directions(video: &[f64]) -> (usize, usize) {
    let smooth = moving_average(video);
    let samples: Vec<f64> = smooth.into_iter().step_by(STEP).collect();
    let (mut last_start, mut longest, mut turns, mut direction) = (0, 0, 0, 0);
    for (index, pair) in samples.windows(2).enumerate() {
        let difference = pair[1] - pair[0];
        let new = i32::from(difference > CHANGE) - i32::from(difference <= -CHANGE);
        if new != 0 && new != direction {
            longest = longest.max(index - last_start);
            (last_start, direction) = (index, new);
            turns += 1;
        }
    }
    let end = samples.len().saturating_sub(1);
    (longest.max(end - last_start) * STEP, turns)
}

/// Moving average over five seconds. The first and last value continue beyond the ends.
fn moving_average(video: &[f64]) -> Vec<f64> {
    let at = |index: usize| {
        // Index 0 is four seconds before the first value.
        let second = index.saturating_sub(AVERAGE - 1).min(video.len() - 1);
        video[second]
    };
    (0..video.len() + AVERAGE - 1)
        .map(|start| (start..start + AVERAGE).map(at).sum::<f64>() / AVERAGE as f64)
        .collect()
}

/// Statistics of the waits.
struct Stalls {
    number: f64,
    /// Total length in seconds; waits long ago count less.
    total_s: f64,
    /// Mean interval between the positions of two waits in seconds; 0 with less than two.
    interval_s: f64,
}

impl Stalls {
    /// Statistics of the waits within the first `seconds` of the video. Waits without length do not count.
    ///
    /// Source: ITU-T P.1203.3 (10/2017) §8.1.1
    fn new(waits: &[Wait], seconds: f64) -> Stalls {
        let counts = |wait: &&Wait| wait.length_s > 0.0 && wait.position_s <= seconds;
        let waits: Vec<&Wait> = waits.iter().filter(counts).collect();
        let [long_ago, half_life_s] = MEMORY;
        let weight = |wait: &Wait| fading(long_ago, half_life_s, seconds - wait.position_s);
        let interval_s = match waits[..] {
            [first, .., last] => (last.position_s - first.position_s) / (waits.len() - 1) as f64,
            _ => 0.0,
        };
        let total_s = waits.iter().map(|wait| wait.length_s * weight(wait)).sum();
        Stalls { number: waits.len() as f64, total_s, interval_s }
    }

    /// Factor of the quality above 1 in a video of this many seconds.
    ///
    /// Source: ITU-T P.1203.3 (10/2017) Eq. 29
    fn impact(&self, seconds: f64) -> f64 {
        let [s1, s2, s3] = STALLING;
        libm::exp(-self.number / s1 - self.total_s / seconds / s2 - self.interval_s / seconds / s3)
    }

    /// Further factor of the quality above 1, for long stalls.
    ///
    /// Source: ITU-T P.1203.3 Amendment 1 (01/2019) §8.4
    fn long_stall_factor(&self) -> f64 {
        let [slope, constant] = LONG_STALLS;
        (slope * self.total_s + constant).clamp(0.0, 1.0)
    }
}

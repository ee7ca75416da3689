//! The formulas of ITU-T P.1203 give the values that the reference implementation gives for its own examples.
//!
//! Source: itu-p1203 test/test.py, version 1.10.0 (expected outputs); itu-p1203 examples/ (inputs)

use airpace_video::Codec;
use airpace_video::p1203::audio::{AudioCodec, audio_quality};
use airpace_video::p1203::integration::{Integration, Wait, integrate};
use airpace_video::p1203::video::{Screen, VideoSegment, h264_quality, per_second};

const FULL_HD: u64 = 1920 * 1080;

/// Tolerance of video quality. The reference implementation interpolates the quality of a score in steps of 0.25; its own
/// tests allow 10⁻⁴.
const INTERPOLATED: f64 = 2e-5;

/// Tolerance of video quality if the window has one frame more or less.
const ONE_FRAME: f64 = 1.5e-3;

/// Tolerance where both compute the same formulas.
const EXACT: f64 = 1e-9;

fn near(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() < tolerance
}

fn all_near(ones: &[f64], others: &[f64], tolerance: f64) -> bool {
    ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| near(*one, *other, tolerance))
}

/// Values that are repeated, with their numbers.
fn runs(runs: &[(usize, f64)]) -> Vec<f64> {
    runs.iter().flat_map(|&(number, value)| vec![value; number]).collect()
}

/// The video of examples/mode0.json: four segments in Full HD, each with its representation.
fn mode0(representations: [usize; 4]) -> Vec<VideoSegment> {
    let segments = [(5.48, 691.72), (5.0, 4158.04), (5.0, 7172.66), (4.598, 6593.59)];
    (segments.into_iter().zip(representations))
        .map(|((length_s, bitrate_kbps), representation)| VideoSegment {
            length_s,
            bitrate_kbps,
            pixels: FULL_HD,
            fps: 25.0,
            codec: Codec::H264,
            representation,
        })
        .collect()
}

fn monitor() -> Screen {
    Screen { pixels: FULL_HD, handheld: false }
}

/// O.22 of examples/mode0.json.
fn mode0_video() -> Vec<f64> {
    runs(&[(5, 4.072543327408124), (5, 4.387760507756067), (5, 4.468355547928019), (5, 4.457277347608129)])
}

/// O.21 of examples/mode0.json.
fn mode0_audio() -> Vec<f64> {
    runs(&[(5, 4.5595879322084585), (5, 4.559587948700646), (5, 4.559587950522131), (5, 4.559587954215205)])
}

fn waits(waits: &[(f64, f64)]) -> Vec<Wait> {
    waits.iter().map(|&(position_s, length_s)| Wait { position_s, length_s }).collect()
}

fn integrated(audio: Option<&[f64]>, video: &[f64], at: &[(f64, f64)], amendment_1: bool) -> Integration {
    integrate(audio, video, &waits(at), amendment_1).expect("at least a second")
}

#[test]
fn video_quality_is_that_of_the_reference_implementation() {
    for (pixels, kbps, expected) in [
        (FULL_HD, 2801.27587623, 4.311),
        (852 * 480, 629.203792838, 2.664),
        (426 * 240, 224.771246112, 1.085),
    ] {
        let quality = h264_quality(pixels, FULL_HD, kbps, 30.0);
        assert!(near(quality, expected, 0.0005), "{kbps} kbit/s: {quality}, and three digits are {expected}");
    }
    let request = h264_quality(FULL_HD, FULL_HD, 1000.0, 25.0);
    assert!(near(request, 4.136734047915369, INTERPOLATED), "examples/request.json: {request}");
}

#[test]
fn each_second_has_the_quality_of_its_representation() {
    let apart = per_second(&mode0([0, 1, 2, 3]), monitor());
    assert!(all_near(&apart, &mode0_video(), INTERPOLATED), "examples/mode0.json: {apart:?}");

    let together = per_second(&mode0([1, 1, 1, 1]), monitor());
    let expected = [
        4.30516560172426,
        4.329739960430606,
        4.347946198589225,
        4.361959054902873,
        4.373070922914738,
        4.38125524673496,
        4.387473093999078,
        4.392752753500756,
        4.397294260217984,
        4.401511740115189,
        4.408172522275777,
        4.415400191213707,
        4.42295556167193,
        4.430851286042517,
        4.439104909169541,
        4.444770221275506,
        4.448072949690574,
        4.45176947859782,
        4.455952861200819,
        4.460718934572159,
    ];
    let name = "examples/mode0_with_representation_ids.json, a window of 20 s";
    // 275 times 0.04 s are less than 11 s in floating point, so that the reference implementation waits for one frame more
    // before it computes each of the first ten scores.
    assert!(all_near(&together[..10], &expected[..10], ONE_FRAME), "{name}: {together:?}");
    assert!(all_near(&together[10..], &expected[10..], INTERPOLATED), "{name}: {together:?}");
}

#[test]
fn audio_quality_is_that_of_the_reference_implementation() {
    for (kbps, expected) in [
        (8.0, 1.3202018830742475),
        (128.0, 4.553814018489559),
        (331.46, 4.5595879322084585),
        (333.57, 4.559587954215205),
    ] {
        let quality = audio_quality(AudioCodec::AacLc, kbps);
        assert!(near(quality, expected, EXACT), "{kbps} kbit/s: {quality}");
    }
    let lowest = audio_quality(AudioCodec::HeAac, 0.0);
    assert!(near(lowest, 1.05, EXACT), "no bitrate is the lowest quality: {lowest}");
}

#[test]
fn audiovisual_quality_is_that_of_the_reference_implementation() {
    let audio = mode0_audio();
    let switch = runs(&[(14, 4.417254506240065), (6, 3.3790478936345094)]);
    let mode1 = runs(&[
        (5, 3.6388712431005263),
        (5, 3.9788931026764653),
        (5, 4.391670686490885),
        (4, 4.40424388391557),
    ]);
    let mode3 = runs(&[(5, 3.8815643211227364), (5, 3.7669812860933813), (4, 3.671201338785246)]);
    let mode3_audio = runs(&[(5, 4.5595879322084585), (5, 4.559587948700646), (5, 4.55958795880896)]);
    let cases = [
        ("mode0", Some(&audio), mode0_video(), runs(&[(20, 5.0)]), 5.0),
        (
            "mode0_with_display_res_switch",
            Some(&audio),
            switch,
            runs(&[(14, 5.0), (6, 4.362476064297795)]),
            4.6109108271028205,
        ),
        ("mode1", Some(&audio), mode1, runs(&[(5, 4.6440688251727185), (14, 5.0)]), 4.909548628348856),
        (
            "mode1_without_audio_without_stalling",
            None,
            runs(&[(9, 2.7641848972245264)]),
            runs(&[(9, 3.7937758648099997)]),
            3.7937758648099993,
        ),
        (
            "mode3",
            Some(&mode3_audio),
            mode3,
            runs(&[(5, 4.907096052292074), (5, 4.78291263001335), (4, 4.679107719012344)]),
            4.758171591956921,
        ),
        (
            "mode3_without_audio_without_stalling",
            None,
            runs(&[(9, 1.17643751299321)]),
            runs(&[(9, 2.055784057874599)]),
            2.055784057874599,
        ),
    ];
    for (name, audio, video, audiovisual, without_stalls) in cases {
        let out = integrated(audio.map(Vec::as_slice), &video, &[], false);
        // The audio of the third to fifth example differs by 1e-8 between its last seconds.
        assert!(all_near(&out.audiovisual, &audiovisual, 1e-7), "O.34 of {name}: {:?}", out.audiovisual);
        assert!(near(out.without_stalls, without_stalls, 1e-7), "O.35 of {name}: {}", out.without_stalls);
        assert!(near(out.stalling, 5.0, EXACT), "O.23 of {name}: no stalls");
    }
}

#[test]
fn stalling_quality_is_that_of_the_reference_implementation() {
    type Case<'a> = (&'a str, &'a [f64], &'a [(f64, f64)], f64);
    let cases: [Case; 3] = [
        ("mode0_without_audio", &mode0_video(), &[(0.0, 2.0), (5.0, 2.0)], 3.7471461951950604),
        ("mode0_long_stalling", &mode0_video(), &[(0.0, 5.0), (5.0, 30.0)], 1.9003358607261784),
        ("request", &[4.136734047915369; 298], &[(0.0, 2.0)], 4.5816540429887915),
    ];
    for (name, video, stalls, expected) in cases {
        let out = integrated(None, video, stalls, false);
        assert!(near(out.stalling, expected, EXACT), "O.23 of {name}: {}", out.stalling);
        assert!(near(out.score, 1.0 + (out.without_stalls - 1.0) * (expected - 1.0) / 4.0, EXACT));
    }
    let beyond = integrated(None, &mode0_video(), &[(20.5, 9.0), (3.0, 0.0)], false);
    assert!(near(beyond.stalling, 5.0, EXACT), "stalls after the video, or without length, do not count");
}

#[test]
fn amendment_1_lowers_the_scores_of_bad_audio_and_long_stalls() {
    let audio = [1.3202018830742475; 20];
    let out = integrated(Some(&audio), &mode0_video(), &[], true);
    let expected = runs(&[
        (5, 2.0538718628057846),
        (5, 2.1552126687941744),
        (5, 2.1811235862152265),
        (5, 2.1775619981441725),
    ]);
    assert!(all_near(&out.audiovisual, &expected, EXACT), "O.34 of mode0_low_audio_quality: {out:?}");
    assert!(near(out.without_stalls, 2.14953312904681, EXACT), "O.35 of mode0_low_audio_quality");

    let long = &[(0.0, 5.0), (5.0, 30.0)];
    let [before, after] = [false, true].map(|amended| integrated(None, &mode0_video(), long, amended));
    assert_eq!(before.stalling, after.stalling, "O.23 is not amended");
    // Both stalls, weighted by their age of 20 and 15 s: 3.07 s and 20.00 s.
    let factor = 2.0 - 0.066667 * 23.061;
    assert!(near((after.score - 1.0) / (before.score - 1.0), factor, 1e-4), "{before:?} {after:?}");
}

/// O.46 is 0.028 + 0.981 · (0.75 · score + 0.25 · forest). The forest's mean opinion score is at least 1 and at most 5, which
/// bounds the score; and the documentation states how far the score is from O.46.
#[test]
fn scores_agree_with_the_outputs_of_the_whole_model() {
    let audio = mode0_audio();
    let switch = runs(&[(14, 4.417254506240065), (6, 3.3790478936345094)]);
    let mode1 = runs(&[
        (5, 3.6388712431005263),
        (5, 3.9788931026764653),
        (5, 4.391670686490885),
        (4, 4.40424388391557),
    ]);
    let mode3 = runs(&[(5, 3.8815643211227364), (5, 3.7669812860933813), (4, 3.671201338785246)]);
    let together = per_second(&mode0([1; 4]), monitor());
    let request = vec![4.136734047915369; 298];
    let request_audio = [4.553814018489559; 298];
    type Case<'a> = (&'a str, Option<&'a [f64]>, &'a [f64], &'a [(f64, f64)], f64);
    let cases: [Case; 9] = [
        ("mode0", Some(&audio), &mode0_video(), &[], 4.856602221536679),
        ("mode0_with_representation_ids", Some(&audio), &together, &[], 4.896823615011917),
        ("mode0_without_audio", None, &mode0_video(), &[(0.0, 2.0), (5.0, 2.0)], 3.8389490826337953),
        ("mode0_with_display_res_switch", Some(&audio), &switch, &[], 4.530011662639447),
        ("mode1", Some(&audio), &mode1, &[], 4.756207833696139),
        ("mode1_without_audio", None, &[2.7641848972245264; 9], &[], 3.763468407312627),
        ("mode3", Some(&audio[..15]), &mode3, &[], 4.627550774107801),
        ("mode3_without_audio", None, &[1.17643751299321; 9], &[], 2.069114653788577),
        ("request", Some(&request_audio), &request, &[(0.0, 2.0)], 4.49827464036625),
    ];
    for (name, audio, video, stalls, o46) in cases {
        let score = integrated(audio, video, stalls, false).score;
        let forest = ((o46 - 0.02833052) / 0.98117059 - 0.75 * score) / 0.25;
        println!(
            "{name}: score {score:.3}, O.46 {o46:.3}, difference {:+.3}, forest {forest:.3}",
            score - o46
        );
        assert!((1.0..=5.0).contains(&forest), "{name}: the forest would have returned {forest}");
        assert!((-0.10..0.16).contains(&(score - o46)), "{name}: score {score}, O.46 {o46}");
    }
    // P1203Pq(O21=[1, 2, 3, 4], O22=[2, 3, 4, 1], stalls of 1 s at 2 s and of 2 s at 3 s)
    let score =
        integrated(Some(&[1.0, 2.0, 3.0, 4.0]), &[2.0, 3.0, 4.0, 1.0], &[(2.0, 1.0), (3.0, 2.0)], false)
            .score;
    let forest = ((1.6962865586232978 - 0.02833052) / 0.98117059 - 0.75 * score) / 0.25;
    println!("test_pq: score {score:.3}, O.46 1.696, forest {forest:.3}");
    assert!((1.0..=5.0).contains(&forest), "four seconds: the forest would have returned {forest}");
}

#[test]
fn a_handheld_screen_and_a_better_codec_raise_low_scores() {
    let quality = |codec, handheld| {
        let segment = VideoSegment {
            length_s: 4.0,
            bitrate_kbps: 600.0,
            pixels: 960 * 540,
            fps: 30.0,
            codec,
            representation: 0,
        };
        per_second(&[segment], Screen { pixels: FULL_HD, handheld })
    };
    let h264 = quality(Codec::H264, false);
    assert_eq!(h264.len(), 4, "a score for each second");
    let x = h264[0];
    // The polynomials of P.1203.1 §8.4.1 and of the codec extension, as they are printed.
    let handheld = -0.60293 + 2.12382 * x - 0.36936 * x * x + 0.03409 * x * x * x;
    let hevc = -0.05196039 * x * x * x + 0.39430046 * x * x + 0.17486221 * x + 0.50008018;
    let vp9 = -0.04129014 * x * x * x + 0.30953836 * x * x + 0.32314399 * x + 0.5284358;
    assert!(near(quality(Codec::H264, true)[0], handheld, EXACT));
    assert!(near(quality(Codec::Hevc, false)[0], hevc, EXACT));
    assert!(near(quality(Codec::Vp9, false)[0], vp9, EXACT));
    assert!(handheld > x && hevc > x && vp9 > x, "{x}: {handheld}, {hevc}, {vp9}");
}

#[test]
fn oscillation_and_adaptation_are_penalised() {
    let switching: Vec<f64> = (0..120).map(|second| if second / 6 % 2 == 0 { 4.5 } else { 2.5 }).collect();
    let constant = integrated(None, &[3.5; 120], &[], false);
    assert!(
        near(constant.without_stalls, constant.audiovisual[0], EXACT),
        "a constant quality has no penalty"
    );
    let out = integrated(None, &switching, &[], false);
    // The value of another program, of P.1203.3 Eq. 5 to 27: 3.8989 on average, less 0.0137 for the worst seconds, 1.5 for 19
    // turns, and 0.0445 for changes.
    assert!(near(out.without_stalls, 2.3406500877178966, EXACT), "{}", out.without_stalls);
}

#[test]
fn nothing_seen_has_no_score() {
    assert_eq!(integrate(None, &[], &[], true), None);
    assert_eq!(integrate(Some(&[]), &[3.0], &[], true), None);
    assert!(per_second(&[], monitor()).is_empty());
    assert!(per_second(&mode0([0; 4])[..0], monitor()).is_empty());
}

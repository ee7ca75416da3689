//! Every invalid configuration has one error that names key and remedy.

use airpace_core::remedy::explain_plainly;
use airpace_core::{Streams, Time};
use airpace_video::p1203::audio::AudioCodec;
use airpace_video::quality::Audio;
use airpace_video::{Player, PlayerConfig, Viewing};
use proptest::prelude::*;

/// The error of the default configuration after a change.
fn refused(change: impl FnOnce(&mut PlayerConfig)) -> String {
    let mut config = PlayerConfig::default();
    change(&mut config);
    let player = Player::new(&config, Streams::new(1).draws("video"), Time::ZERO);
    explain_plainly(&player.expect_err("an invalid configuration"))
}

#[test]
fn errors_name_key_and_remedy() {
    let errors = [
        refused(|config| config.ladder.representation.clear()),
        refused(|config| config.ladder.representation.swap(3, 4)),
        refused(|config| config.ladder.representation[2] = config.ladder.representation[1]),
        refused(|config| config.ladder.representation[2].bitrate_mbps = f64::NAN),
        refused(|config| config.ladder.representation[0].bitrate_mbps = 0.0),
        refused(|config| config.ladder.representation[0].width = 0),
        refused(|config| config.ladder.representation[0].height = 100_000),
        refused(|config| config.ladder.representation[0].fps = -30.0),
        refused(|config| config.ladder.segment_s = 0.0),
        refused(|config| config.ladder.segment_s = f64::INFINITY),
        refused(|config| config.duration_s = 0.0),
        refused(|config| config.duration_s = f64::NAN),
        refused(|config| config.size_variation = -0.1),
        refused(|config| config.start_up_buffer_s = 0.0),
        refused(|config| config.rebuffer_s = f64::NAN),
        refused(|config| config.max_buffer_s = 0.0),
        refused(|config| config.max_buffer_s = 8.0),
        refused(|config| config.start_up_buffer_s = 48.0),
    ];
    insta::assert_snapshot!(errors.join("\n"));
    let audio = Some(Audio { codec: AudioCodec::AacLc, bitrate_kbps: f64::NAN });
    let viewings = [Viewing { width: 0, ..Viewing::default() }, Viewing { audio, ..Viewing::default() }];
    let errors = viewings.map(|viewing| explain_plainly(&viewing.validate().expect_err("an invalid screen")));
    assert_eq!(
        errors,
        [
            "`width` is 0; give 1 to 15360 pixels (3840 and 2160 are 4K)",
            "`audio.bitrate_kbps` is NaN; give 1 to 10000 kbit/s (128 is usual)"
        ]
    );
}

#[test]
fn a_configuration_is_read_from_a_file() {
    let text = "rule = \"buffer\"\nmax_buffer_s = 30\n[ladder]\nsegment_s = 2\n\
                [[ladder.representation]]\nbitrate_mbps = 1.5\nwidth = 1280\nheight = 720\ncodec = \"h264\"\n";
    let config: PlayerConfig = toml::from_str(text).expect("all keys exist");
    assert_eq!(config.validate(), Ok(()));
    assert_eq!((config.segments(), config.ladder.representation.len()), (60, 1));
    assert_eq!(config.ladder.representation[0].fps, 30.0, "the default frame rate");
    let defaults: PlayerConfig = toml::from_str("[ladder]\nsegment_s = 2\n").expect("a part of a table");
    assert_eq!(defaults.ladder.representation.len(), 12, "the default representations");
    for text in ["max_bufer_s = 3", "rule = \"guess\"", "[ladder]\nsegment = 2"] {
        let error = toml::from_str::<PlayerConfig>(text).expect_err("no such key or rule").to_string();
        assert!(error.contains("unknown"), "{error}");
    }
    let text = toml::to_string(&config).expect("TOML");
    assert_eq!(toml::from_str::<PlayerConfig>(&text).expect("the same format"), config);
}

proptest! {
    /// No configuration panics: it is refused, or its player starts.
    #[test]
    fn any_numbers_are_refused_or_played(values in proptest::array::uniform8(any::<f64>()), width in any::<u32>()) {
        let mut config = PlayerConfig::default();
        let [bitrate, fps, segment, duration, variation, start_up, rebuffer, max] = values;
        config.ladder.representation.truncate(1);
        config.ladder.representation[0].bitrate_mbps = bitrate;
        config.ladder.representation[0].fps = fps;
        config.ladder.representation[0].width = width;
        config.ladder.segment_s = segment;
        (config.duration_s, config.size_variation) = (duration, variation);
        (config.start_up_buffer_s, config.rebuffer_s, config.max_buffer_s) = (start_up, rebuffer, max);
        match Player::new(&config, Streams::new(1).draws("video"), Time::ZERO) {
            Ok(mut player) => prop_assert!(player.poll_action().is_some()),
            Err(error) => prop_assert!(explain_plainly(&error).contains(';'), "no remedy: {error}"),
        }
    }
}

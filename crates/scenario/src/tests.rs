use std::path::PathBuf;
use std::time::Duration;

use airpace_core::Bytes;
use airpace_core::remedy::explain_plainly;

use super::*;

const SMALL: &str = r#"
name = "small"
duration_s = 5
schemes = ["bbr"]

[[flow]]
rtt_ms = 40
"#;

/// Light service: trains of ten packets after a base delay of 20 ms.
const LIGHT: &str = "{ delay_ms = 20, mbps = 3 }";

fn load(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, String> {
    let sets: Vec<_> = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Scenario::load(text, "scenarios/small.toml", &sets).map_err(|error| explain_plainly(&error))
}

fn refusal(text: &str, sets: &[(&str, &str)]) -> String {
    load(text, sets).expect_err("must be refused")
}

/// Returns the error of a scenario that can be loaded but cannot be prepared for a run.
fn unready(text: &str, sets: &[(&str, &str)]) -> String {
    explain_plainly(&load(text, sets).expect("must load").prepare().expect_err("must be refused"))
}

#[test]
fn a_flow_and_a_duration_are_enough() {
    let scenario = load(SMALL, &[]).unwrap();
    assert_eq!(scenario.flow[0].label, "flow 0");
    assert_eq!(scenario.device.len(), 1, "one device comes with every scenario");
    assert!(scenario.flow[0].internet && scenario.flow[0].scheme.is_none());
    assert_eq!(scenario.duration(), Duration::from_secs(5));
}

#[test]
fn any_key_can_be_set_from_outside() {
    let scenario = load(
        SMALL,
        &[("duration_s", "2.5"), ("flow.0.rtt_ms", "162"), ("flow.0.label", "far"), ("trace", "x.down")],
    )
    .unwrap();
    assert_eq!((scenario.duration_s, scenario.flow[0].rtt_ms), (2.5, 162.0));
    assert_eq!(scenario.flow[0].label, "far", "a value that is not TOML is a string");
    let file = scenario.trace.clone().unwrap().file.unwrap();
    assert_eq!(
        file,
        PathBuf::from("x.down"),
        "the path of a file given from outside starts at the working directory"
    );
}

#[test]
fn files_named_in_a_scenario_are_seen_from_its_folder() {
    let text = format!("{SMALL}\n[trace]\nfile = \"x.down\"\n");
    let file = load(&text, &[]).unwrap().trace.clone().unwrap().file.unwrap();
    assert_eq!(file, PathBuf::from("scenarios/x.down"));
}

#[test]
fn each_direction_of_a_link_may_have_a_trace() {
    let text = format!(
        "{SMALL}\n[[flow]]\nrtt_ms = 40\ndirection = \"up\"\n[trace]\nfile = \"x.down\"\n\
         [trace.back]\nfile = \"x.up\"\n"
    );
    let scenario = load(&text, &[]).unwrap();
    let files: Vec<_> = scenario.files().collect();
    assert_eq!(files, ["scenarios/x.down", "scenarios/x.up"].map(std::path::Path::new));
    let scenario = load(&text, &[("trace.back", "/elsewhere/y.up")]).unwrap();
    assert_eq!(scenario.trace.as_ref().unwrap().back.as_ref().unwrap().file, Some("/elsewhere/y.up".into()));
    assert!(scenario.to_toml().contains("/elsewhere/y.up"));
}

#[test]
fn a_cellular_link_reads_as_mm_cellular_takes_it() {
    let text = format!(
        "{SMALL}\n[cellular.up]\nlight.file = \"up-light\"\nheavy.file = \"up-heavy\"\noffsets = \"up-offsets\"\n"
    );
    let sets = [
        ("cellular.down.light", "/down-light"),
        ("cellular.down.heavy", "/down-heavy"),
        ("cellular.down.link.light_after_ms", "50"),
    ];
    let scenario = load(&text, &sets).unwrap();
    let files: Vec<_> = scenario.files().map(|file| file.to_str().unwrap()).collect();
    let up = ["scenarios/up-light", "scenarios/up-heavy", "scenarios/up-offsets"];
    assert_eq!(files, [&["/down-light", "/down-heavy"][..], &up].concat());
    let link = &scenario.cellular.as_ref().unwrap().down.link;
    assert_eq!((link.light_after_ms, link.opportunity_bytes), (50, 1400));
}

#[test]
fn a_trace_can_be_recorded_in_a_simulated_cell() {
    let sets = [
        ("trace.recorded.seconds", "2"),
        ("trace.recorded.cell.prbs", "25"),
        ("trace.recorded.radio.channel", "{ sinr_db = 12, fading = \"epa\" }"),
    ];
    let of = |more: &[(&str, &str)]| load(SMALL, &[&sets, more].concat()).unwrap().prepare().unwrap();
    let recorded = |more: &[(&str, &str)]| of(more).recording().unwrap().clone();
    let one = recorded(&[]);
    assert_eq!((one.trace.period_ms(), one.kpis.len()), (2000, 2000));
    assert_eq!(one, recorded(&[]), "all schemes of a scenario meet the same trace");
    assert_ne!(one.trace, recorded(&[("trace.recorded.seed", "2")]).trace);
    assert_ne!(
        one.trace,
        recorded(&[("flow.0.direction", "up")]).trace,
        "the first flow's direction is recorded"
    );
    assert!(of(&[("trace.kpi_every_ms", "1")]).replays().is_empty(), "no file was read");
}

#[test]
fn a_scenario_survives_being_written_and_read() {
    let scenario = load(SMALL, &[("flow.0.rtt_ms", "162")]).unwrap();
    let again = load(&scenario.to_toml(), &[]).unwrap();
    assert_eq!(again.flow, scenario.flow);
    assert_eq!(again.to_toml(), scenario.to_toml());
}

#[test]
fn every_refusal_names_place_key_and_remedy() {
    let typo = SMALL.replace("rtt_ms", "rrt_ms");
    let one_way = format!("{SMALL}\n[[flow]]\nrtt_ms = 40\ndirection = \"up\"\n[trace]\nfile = \"x.down\"\n");
    let lost = SMALL.replace("rtt_ms = 40", "rtt_ms = 40\ndevice = 1");
    let refusals = [
        refusal(&typo, &[]),
        refusal("name = \n", &[]),
        refusal(&lost, &[]),
        refusal(SMALL, &[("duration", "3")]),
        refusal(SMALL, &[("duration_s", "0")]),
        refusal(SMALL, &[("duration_s", "long")]),
        refusal(SMALL, &[("flow.1.rtt_ms", "3")]),
        refusal(SMALL, &[("flow.0.rtt_ms.x", "3")]),
        refusal(SMALL, &[("flow..rtt_ms", "3")]),
        refusal(SMALL, &[("flow.0.rtt_ms", "-3")]),
        refusal(SMALL, &[("flow.0.bytes", "0")]),
        refusal(SMALL, &[("flow.0.on_s", "1")]),
        refusal(SMALL, &[("flow.0.start_s", "9")]),
        refusal(&SMALL.replace("rtt_ms = 40", ""), &[]),
        refusal(SMALL, &[("flow.0.device", "1.5")]),
        refusal(SMALL, &[("schemes", "[]")]),
        refusal(SMALL, &[("internet.rate_mbps", "0")]),
        refusal(SMALL, &[("internet.schedule", "[{ at_s = 1, rate_mbps = -1 }]")]),
        refusal(SMALL, &[("forward.los", "0.1")]),
        refusal(SMALL, &[("reverse.loss", "2")]),
        refusal(SMALL, &[("forward.delay_ms", "20")]),
        refusal(SMALL, &[("expect", "[{ say = \"s\", scheme = \"bbr\", metric = \"m\" }]")]),
        refusal(SMALL, &[("name", "a/b")]),
        refusal(SMALL, &[("forward.on_off.on_mean_s", "1")]),
        refusal(SMALL, &[("reverse.on_off", "{ on_mean_s = 1, off_mean_s = 0.0001 }")]),
        refusal(SMALL, &[("forward.on_off", "{ on_mean_s = 1, off_mean_s = 1, starts = \"of\" }")]),
        refusal(&one_way, &[]),
        refusal(SMALL, &[("trace", "x.up"), ("flow.0.acks", "cell")]),
        refusal(SMALL, &[("trace", "x.up"), ("trace.back.synth.seconds", "3")]),
        refusal(SMALL, &[("trace", "x.up"), ("trace.back.link.opportunity_bytes", "4")]),
        refusal(SMALL, &[("trace", "x.up"), ("trace.back.kpi", "x.csv")]),
        unready(SMALL, &[("trace.synth.mean_mbps", "3"), ("trace.back.link.start_s", "1")]),
        unready(SMALL, &[("trace.synth.mean_mbps", "3"), ("trace.back", "no-such.up")]),
        unready(SMALL, &[("trace.synth.mean_mbps", "3"), ("trace.back.synth", "{ mean_mbps = 1e-6 }")]),
        refusal(SMALL, &[("trace", "x.up"), ("trace.recorded.seconds", "3")]),
        refusal(SMALL, &[("trace.synth.mean_mbps", "3"), ("trace.recorded.seconds", "3")]),
        refusal(SMALL, &[("trace.kpi", "x.csv"), ("trace.recorded.seconds", "3")]),
        refusal(SMALL, &[("trace.recorded.seconds", "0")]),
        refusal(SMALL, &[("trace.recorded.cell.prbs", "7")]),
        refusal(SMALL, &[("trace.recorded.radio.carriers", "[3]")]),
        unready(SMALL, &[("trace.recorded.radio.channel.sinr_db", "-40"), ("trace.recorded.seconds", "1")]),
        refusal(SMALL, &[("trace", "x.up"), ("cellular.up.light", "x.up")]),
        refusal(SMALL, &[("cellular.up.light", "x.up"), ("device", "[{}, {}]")]),
        refusal(SMALL, &[("cellular.up.light.files", "x.up")]),
        refusal(SMALL, &[("cellular.up.light.synth.delay_ms", "20")]),
        refusal(SMALL, &[("cellular.up.link.opportunity_bytes", "3")]),
        refusal(SMALL, &[("cellular.up.link.buffer.discipline", "pi")]),
        refusal(SMALL, &[("cellular.up.heavy.synth.mean_mbps", "-1")]),
        unready(SMALL, &[("cellular.up.heavy.synth.mean_mbps", "1")]),
        unready(SMALL, &[("cellular.down.light.synth", LIGHT)]),
        unready(SMALL, &[("cellular.down.light", "no-such")]),
        unready(SMALL, &[("cellular.down.light", "Cargo.toml")]),
        unready(SMALL, &[("cellular.down.light.synth", "{ delay_ms = 20, mbps = 0 }")]),
        unready(SMALL, &[("cellular.down.light.synth", LIGHT), ("cellular.down.offsets", "Cargo.toml")]),
        unready(
            SMALL,
            &[
                ("cellular.down.light.synth", LIGHT),
                ("cellular.down.heavy.synth.mean_mbps", "12"),
                ("cellular.up.light.synth", LIGHT),
                ("cellular.up.heavy.synth.mean_mbps", "12"),
                ("flow.0.rtt_ms", "39"),
            ],
        ),
        load(SMALL, &[("cell.prbs", "50"), ("flow.0.rtt_ms", "4")])
            .and_then(|short| short.prepare().unwrap().devices_network().map_err(|error| error.to_string()))
            .expect_err("both ways take longer"),
    ];
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn changes_of_a_rate_come_in_order_and_need_a_rate() {
    let steps = ("flow.0.schedule", "[{ at_s = 2, rate_mbps = 6 }, { at_s = 3, rate_mbps = 0 }]");
    let flow = &load(SMALL, &[("flow.0.rate_mbps", "40"), steps]).unwrap().flow[0];
    assert_eq!(flow.schedule.iter().map(|step| step.at_s).collect::<Vec<_>>(), [2.0, 3.0]);
    for (rate, steps, said) in [
        (
            None,
            "[{ at_s = 2, rate_mbps = 6 }]",
            "that has none; add `rate_mbps`, the rate until the first change",
        ),
        (Some("40"), "[{ at_s = 0, rate_mbps = 6 }]", "not after `start_s` (0); set `rate_mbps`"),
        (
            Some("40"),
            "[{ at_s = 2, rate_mbps = 6 }, { at_s = 2, rate_mbps = 7 }]",
            "`flow.0.schedule.1.at_s` is 2, not after the change before (2); put the changes in order",
        ),
        (Some("40"), "[{ at_s = 2, rate_mbps = -6 }]", "`flow.0.schedule.0.rate_mbps` is -6"),
        (Some("40"), "[{ at_s = 2, rate_mbps = 1e6 }]", "the most that it may be is 100000"),
        (Some("40"), "[{ at_s = 2 }]", "rate_mbps"),
    ] {
        let mut sets = vec![("flow.0.schedule", steps)];
        sets.extend(rate.map(|rate| ("flow.0.rate_mbps", rate)));
        let text = refusal(SMALL, &sets);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn texts_have_an_end() {
    for (key, length, most) in [("name", 101, 100), ("flow.0.label", 201, 200), ("about", 10_001, 10_000)] {
        let text = refusal(SMALL, &[(key, &"x".repeat(length))]);
        assert!(text.contains(&format!("`{key}` has {length} characters; the most are {most}")), "{text}");
    }
}

#[test]
fn values_of_the_wrong_type_are_answered_in_the_words_of_a_scenario() {
    for (key, value, said) in [
        ("cell", "5", "`cell` is the wrong type: integer `5`, expected a table of keys"),
        ("flow", "3", "`flow` is the wrong type: integer `3`, expected a list"),
        ("name", "[1]", "`name` is the wrong type: a list, expected a string"),
        ("duration_s", "true", "`duration_s` is the wrong type: boolean `true`, expected a number"),
    ] {
        assert_eq!(refusal(SMALL, &[(key, value)]), format!("{key}={value}: {said}"));
    }
    let text = refusal(SMALL, &[("duration_s", &"9".repeat(300))]);
    assert!(text.len() < 300 && text.contains("99…"), "{text}");
}

#[test]
fn an_unknown_scheme_is_refused_with_the_list_of_those_that_exist() {
    let text = refusal(SMALL, &[("flow.0.scheme", "bbrr")]);
    assert!(text.starts_with("flow.0.scheme=bbrr: `flow.0.scheme` is `bbrr`"), "{text}");
    assert!(text.contains("did you mean `bbr`? There are pbe, biscay"), "{text}");
}

#[test]
fn every_built_in_scenario_loads_and_says_where_it_is_from() {
    for (name, text) in builtin() {
        let scenario = Scenario::load(text, name, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, *name);
        assert!(!scenario.about.is_empty() && !scenario.source.is_empty(), "{name} lacks about or source");
        assert!(!scenario.expect.is_empty(), "{name} expects nothing");
    }
}

#[test]
fn packets_must_have_a_size_that_fits_into_a_queue() {
    assert_eq!(load(SMALL, &[]).unwrap().flow[0].mss_bytes, 1500);
    assert!(load(SMALL, &[("flow.0.mss_bytes", "9000"), ("cell.prbs", "50")]).is_ok());
    let small = refusal(SMALL, &[("flow.0.mss_bytes", "40")]);
    assert!(small.contains("`flow.0.mss_bytes` is 40; give 100 to 9000"), "{small}");
    let queue = ("device", "[{ radio.queue_bytes = 2000 }]");
    let large = refusal(SMALL, &[("flow.0.mss_bytes", "4000"), ("cell.prbs", "50"), queue]);
    assert!(large.contains("the cell's queue holds 2000 bytes"), "{large}");
}

#[test]
fn a_proxy_makes_two_flows_of_one() {
    let split = load(SMALL, &[("flow.0.proxy.rtt_ms", "15"), ("flow.0.label", "phone")]).unwrap();
    let [device, server] = &split.flow[..] else { panic!("{} flows", split.flow.len()) };
    assert_eq!((device.label.as_str(), device.rtt_ms, device.internet), ("phone", 15.0, false));
    assert_eq!((server.label.as_str(), server.rtt_ms, server.internet), ("phone, server leg", 25.0, true));
    assert_eq!(server.scheme.as_deref(), Some("cubic"));
    assert!(server.ends_at_proxy() && server.part == Part::ToProxy { device_leg: 0, buffer: Bytes(6 << 20) });
    assert!(device.has_plain_wires() && !server.has_plain_wires());
    let again = Scenario::load(&split.to_toml(), "again.toml", &[]).unwrap();
    assert_eq!(again.flow, split.flow, "the text of the scenario has one flow");
}

#[test]
fn a_proxy_that_cannot_stand_there_is_refused() {
    for (sets, wanted) in [
        (&[("flow.0.proxy.rtt_ms", "40")][..], "flow.0.proxy.rtt_ms"),
        (&[("flow.0.proxy.rtt_ms", "0")], "flow.0.proxy.rtt_ms"),
        (&[("flow.0.proxy.internet", "phone")], "flow.0.proxy.internet"),
        (&[("flow.0.proxy.rtt_ms", "5"), ("flow.0.proxy.scheme", "cubik")], "flow.0.proxy.scheme"),
        (&[("flow.0.proxy.rtt_ms", "5"), ("flow.0.proxy.buffer_bytes", "100")], "flow.0.proxy.buffer_bytes"),
        (&[("flow.0.proxy.rtt_ms", "5"), ("flow.0.direction", "up")], "downloads only"),
        (&[("flow.0.proxy.rtt_ms", "5"), ("flow.0.rate_mbps", "2")], "beside `rate_mbps`"),
        (&[("flow.0.proxy.rtt_ms", "39.999"), ("forward.rate_mbps", "1")], "a leg to the server"),
        (&[("flow.0.proxy.rtt_ms", "2"), ("cell.prbs", "50")], "a leg to the device"),
    ] {
        let refused = refusal(SMALL, sets);
        assert!(refused.contains(wanted), "{sets:?}: {refused}");
    }
    let split = load(SMALL, &[("flow.0.proxy.rtt_ms", "15")]).unwrap();
    assert!(split.prepare_endless().unwrap_err().to_string().contains("flow.0.proxy"));
}

#[test]
fn a_video_needs_requests_and_nothing_that_sends_without_them() {
    let video = ("flow.0.video", "{}");
    let request = ("flow.0.request_bytes", "400");
    let ready = load(SMALL, &[video, request]).expect("a video with the default player");
    assert!(ready.flow[0].has_transfers() && ready.flow[0].transfer_size().is_none());
    let with = |key: &str, value: &str| refusal(SMALL, &[video, request, (key, value)]);
    for (key, value, said) in [
        ("flow.0.video.rule", "bufer", "did you mean `buffer`?"),
        ("flow.0.video.duration_s", "-1", "`flow.0.video.duration_s` is -1; give 0.1 to 86400 s"),
        ("flow.0.video.ladder.segment_s", "0", "`flow.0.video.ladder.segment_s` is 0; give 0.1 to 60 s"),
        ("flow.0.video.max_buffer_s", "3", "`flow.0.video.max_buffer_s` is 3, less than"),
        ("flow.0.video.ladder.segments_s", "4", "segments_s"),
        ("flow.0.viewing.width", "0", "`flow.0.viewing.width` is 0; give 1 to"),
        ("flow.0.bytes", "1000", "`flow.0.bytes` stands beside `video`"),
        ("flow.0.every_ms", "1000", "`flow.0.every_ms` stands beside `video`"),
        ("flow.0.rate_mbps", "2", "`flow.0.rate_mbps` stands beside `video`"),
        (
            "flow.0.direction",
            "up",
            "`flow.0.direction` is `up`, but the player of a `video` is at the device",
        ),
        ("flow.0.connection", "new", "`flow.0.connection` stands without `every_ms`"),
    ] {
        let text = with(key, value);
        assert!(text.contains(said), "{key}={value}: {text}");
    }
    let silent = refusal(SMALL, &[video]);
    assert!(silent.contains("`flow.0.request_bytes` is 0, but a player requests each segment"), "{silent}");
    let unseen = refusal(SMALL, &[("flow.0.viewing.width", "1280")]);
    assert!(unseen.contains("`flow.0.viewing` stands without `video`"), "{unseen}");
    let long =
        [video, request, ("flow.0.video.duration_s", "86400"), ("flow.0.video.ladder.segment_s", "0.1")];
    let text = refusal(SMALL, &long);
    assert!(text.contains("`flow.0.video` has too many segments"), "{text}");
}

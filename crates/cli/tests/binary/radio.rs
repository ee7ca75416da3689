//! `airpace decode --device`: radios. A build with the feature `sdr` uses a test radio that plays a file.

use super::Shell;
use super::decode::{by_place, lines, record};

#[cfg(not(feature = "sdr"))]
#[test]
fn without_soapysdr_it_says_how_to_get_it() {
    let shell = Shell::new();
    let words = ["decode", "--device", "driver=rtlsdr", "--freq", "806M"];
    let parts =
        ["driver=rtlsdr: this airpace was built without SoapySDR", "libsoapysdr-dev", "--features sdr"];
    shell.run(&words).refused(&parts);
    let doctor = &shell.run(&["doctor", "--json"]).json()[0]["features"]["live radio"];
    assert_eq!(doctor["present"], false);
    assert!(
        doctor["remedy"].as_str().unwrap().ends_with("AIRPACE_FEATURES=sdr ./airpace doctor"),
        "{doctor}"
    );
}

#[test]
fn what_is_said_of_a_radio_must_make_sense() {
    let shell = Shell::new();
    let refused = |words: &[&str], parts: &[&str]| shell.run(&[&["decode"], words].concat()).refused(parts);
    refused(&["--device", "rtlsdr"], &["--device `rtlsdr` is no KEY=VALUE", "driver=rtlsdr"]);
    refused(&["--device", "driver=rtlsdr,gain=loud"], &["--device gain=loud: give auto, or dB"]);
    refused(&["--device", "driver=rtlsdr", "--freq", "fast"], &["--freq", "1815.2M"]);
    refused(&["--device", "driver=rtlsdr", "--ppm", "x"], &["--ppm", "-1000 to 1000"]);
    refused(&["a.sigmf-meta", "--freq", "806M"], &["--device"]);
    refused(&[], &["FILE"]);

    // A recording next to radios is opened as usual.
    record(&shell, "a", &[]);
    assert!(!lines(&shell.run(&["decode", "a.sigmf-meta", "--json"]).fine()).is_empty());
    assert!(!by_place(lines(&shell.read("a.truth"))).is_empty());
}

#[cfg(feature = "sdr")]
#[path = "../../../sdr/tests/soapy/module.rs"]
mod module;

#[cfg(feature = "sdr")]
mod soapy {
    use std::collections::BTreeMap;
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    use super::super::{Done, Shell};
    use super::{by_place, lines, module, record};

    /// A shell in which SoapySDR finds the test radio. Its folder contains the test's files.
    struct Radio(Shell);

    impl Radio {
        /// Creates the shell; `None` if the test radio cannot be compiled, and then prints the reason.
        fn new() -> Option<Radio> {
            let shell = Shell::new();
            std::fs::create_dir(shell.path("modules")).unwrap();
            module::build(&shell.path("modules")).map(|_| Radio(shell))
        }

        fn command(&self, words: &[&str]) -> std::process::Command {
            let mut command = self.0.command(words);
            command.env(module::PLUGIN_PATH, self.0.path("modules"));
            command
        }

        fn run(&self, words: &[&str]) -> Done {
            Done::of(&mut self.command(words), words)
        }

        /// Creates the file that a radio plays: `NAME.sigmf-data`.
        fn record(&self, name: &str, more: &[&str]) {
            record(&self.0, name, &[&["--format", "cf32_le"], more].concat());
        }
    }

    /// Duration of a recording of 200 subframes. The last samples are missing, because the channel model retains them.
    const SPAN: &str = "199ms";

    /// Messages that must be found, because they are far from the end of the samples.
    fn early(messages: Vec<serde_json::Value>) -> BTreeMap<String, serde_json::Value> {
        by_place(
            messages.into_iter().filter(|message| message["index"].as_u64() < Some(FIRST + 198)).collect(),
        )
    }

    /// Number of the first subframe of a recording.
    const FIRST: u64 = 10_200;

    const TUNED: [&str; 4] = ["--freq", "806M", "--rate", "7.68e6"];

    #[test]
    fn a_radio_gives_what_its_recording_gives_and_keeps_it() {
        let Some(radio) = Radio::new() else { return };
        radio.record("a", &["--cfo", "-900"]);
        let of_file = radio.run(&["decode", "a.sigmf-meta", "--json", "--for", SPAN]).fine();
        let device =
            ["decode", "--json", "--device", "driver=airpace_file,path=a.sigmf-data", "--gain", "40"];
        let done = radio.run(&[&device[..], &TUNED, &["--for", SPAN, "--record", "kept"]].concat());
        let heading =
            "driver=airpace_file,path=a.sigmf-data listens at 806.0000 MHz at 7.68 Msps, gain 40.0 dB";
        assert!(done.err.contains(heading), "{}", done.err);
        assert_eq!(done.fine(), of_file, "a radio gives the same as the file");
        let kept = radio.run(&["decode", "kept.sigmf-meta", "--json"]).json();
        assert_eq!(early(kept), early(lines(&radio.0.read("a.truth"))), "and can be decoded again");
    }

    #[test]
    fn a_loss_is_told_and_counted_and_what_comes_behind_it_has_its_true_time() {
        let Some(radio) = Radio::new() else { return };
        radio.record("a", &[]);
        // Samples of subframes 100 to 105 of 200 are lost.
        let device = "driver=airpace_file,path=a.sigmf-data,faults=overflow:770000:40000";
        let words = ["decode", "--json", "--stats", "--device", device, "--for", SPAN];
        let done = radio.run(&[&words[..], &TUNED].concat());
        for word in
            ["samples were lost, 1 time so far", "give a lower --rate", "1 gap,", "40,000 reported as lost"]
        {
            assert!(done.err.contains(word), "`{word}` is told: {}", done.err);
        }
        let sent = lines(&radio.0.read("a.truth"));
        let is_far = |message: &serde_json::Value| {
            !(FIRST + 98..=FIRST + 108).contains(&message["index"].as_u64().unwrap())
        };
        let far = |all: Vec<serde_json::Value>| early(all.into_iter().filter(is_far).collect());
        assert_eq!(far(done.json()), far(sent), "all is read before and after the loss");
    }

    #[test]
    fn radios_and_recordings_are_decoded_side_by_side() {
        let Some(radio) = Radio::new() else { return };
        for (name, pci) in [("low", "7"), ("high", "8"), ("file", "9")] {
            radio.record(name, &["--pci", pci]);
        }
        let low = "driver=airpace_file,path=low.sigmf-data";
        let high = "driver=airpace_file,path=high.sigmf-data,freq=1700M,gain=10,antenna=RX2";
        let words = ["decode", "file.sigmf-meta", "--device", low, "--device", high, "--json", "--for", SPAN];
        let done = radio.run(&[&words[..], &TUNED, &["--record", "kept"]].concat());
        assert!(done.err.contains("1700.0000 MHz at 7.68 Msps, gain 10.0 dB, antenna RX2"), "{}", done.err);
        let found = done.json();
        for (carrier, name) in ["file", "low", "high"].into_iter().enumerate() {
            let own = found.iter().filter(|message| message["carrier"] == carrier).cloned().collect();
            assert_eq!(early(own), early(lines(&radio.0.read(&format!("{name}.truth")))), "{name}");
        }
        for carrier in ["1", "2"] {
            assert!(
                radio.0.path(&format!("kept-{carrier}.sigmf-meta")).is_file(),
                "carrier {carrier} is kept"
            );
        }
    }

    #[test]
    fn a_radio_that_goes_away_is_an_error_and_what_it_said_before_is_kept() {
        let Some(radio) = Radio::new() else { return };
        radio.record("a", &[]);
        let device = "driver=airpace_file,path=a.sigmf-data,faults=gone:1000000";
        let words = ["decode", "--json", "--device", device, "--parquet", "table"];
        let done = radio.run(&[&words[..], &TUNED].concat());
        let found = lines(&done.out);
        done.refused(&["driver=airpace_file", "gives no more samples", "unplugged"]);
        let there = |all: Vec<serde_json::Value>| {
            let is_there = |message: &serde_json::Value| message["index"].as_u64() < Some(FIRST + 129);
            by_place(all.into_iter().filter(is_there).collect())
        };
        let sent = there(lines(&radio.0.read("a.truth")));
        assert!(!sent.is_empty());
        assert_eq!(there(found), sent, "a million samples are 130 subframes");
        let table = std::fs::read(radio.0.path("table")).unwrap();
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "the table is whole");
    }

    #[test]
    fn ctrl_c_ends_a_radio_in_good_order() {
        let Some(radio) = Radio::new() else { return };
        radio.record("a", &[]);
        let device = "driver=airpace_file,path=a.sigmf-data,log=log";
        let words = ["decode", "--stats", "--device", device, "--parquet", "table"];
        let words = [&words[..], &TUNED].concat();
        let mut child = radio.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        for _ in 0..10 {
            out.read_line(&mut text).unwrap();
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        out.read_to_string(&mut text).unwrap();
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(0), "that is no error: {err}");
        assert!(err.contains("RNTIs") && err.contains("processor time"), "counts are told: {err}");
        let table = std::fs::read(radio.0.path("table")).unwrap();
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "the table is whole");
        assert!(radio.0.read("log").ends_with("on\noff\nclosed\n"), "the radio is switched off");
    }

    #[test]
    fn doctor_lists_radios_in_the_words_that_open_them() {
        let Some(radio) = Radio::new() else { return };
        let doctor = &radio.run(&["doctor", "--json"]).json()[0]["features"]["live radio"];
        assert_eq!(doctor["present"], true);
        assert!(doctor["detail"].as_str().unwrap().contains("driver=airpace_file"), "{doctor}");
        let missing = ["decode", "--device", "driver=rtlsdr"];
        radio
            .run(&[&missing[..], &TUNED].concat())
            .refused(&["driver=rtlsdr: cannot be opened", "airpace doctor"]);
    }
}

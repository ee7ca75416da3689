//! Tests of the whole use of a radio, from opening it to its last sample. SoapySDR searches for modules only once, so
//! every test runs again in a separate process in which the module is present from the start.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use airpace_core::remedy::explain_plainly;
use airpace_phy::Complex32;
use airpace_sdr::iq::{Error, Format, Piece, Source};
use airpace_sdr::radio::{self, Settings, Tuned};
use tempfile::TempDir;

use super::module;

const RATE_HZ: f64 = 1.92e6;

/// Runs the test again in a process in which SoapySDR finds the test radio. Returns `true` in that process, otherwise
/// `false`.
#[must_use]
fn is_at_the_radio(test: &str) -> bool {
    static MODULE: OnceLock<Option<PathBuf>> = OnceLock::new();
    if std::env::var_os(module::PLUGIN_PATH).is_some() {
        return true;
    }
    let built = MODULE.get_or_init(|| {
        let folder = airpace_testing::shared_folder(env!("CARGO_TARGET_TMPDIR"), "soapy");
        module::build(&folder).map(|_| folder)
    });
    let Some(folder) = built else { return false };
    let mut again = Command::new(std::env::current_exe().expect("a test has a path"));
    let again =
        again.args([&*format!("radio::{test}"), "--exact", "--nocapture"]).env(module::PLUGIN_PATH, folder);
    let done = again.output().expect("a test can be run again");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("1 passed") || !done.status.success(), "`{test}` is the name of a test: {said}");
    assert!(done.status.success(), "{said}");
    false
}

/// A file that a radio plays, and a log of the radio's settings.
struct Player {
    folder: TempDir,
    samples: Vec<Complex32>,
}

impl Player {
    fn new(count: usize) -> Player {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let samples: Vec<_> = (0..count).map(|at| Complex32::new(at as f32, 0.5)).collect();
        let mut bytes = vec![];
        Format::Cf32.write(&samples, &mut bytes);
        std::fs::write(folder.path().join("samples"), bytes).expect("a file");
        Player { folder, samples }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn told(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Opens a radio that plays the file, at 806 MHz and 1.92 Msps unless `more` contains other values.
    fn open(&self, more: &str) -> Result<(Box<dyn Source>, Tuned), Error> {
        let usual = Settings { frequency_hz: Some(806e6), rate_hz: Some(RATE_HZ), ..Settings::default() };
        let (path, log) = (self.folder.path().join("samples"), self.log());
        let words = format!("driver=airpace_file,path={},log={},{more}", path.display(), log.display());
        radio::open(&usual.with(&words).expect("settings"))
    }

    fn listen(&self, more: &str) -> Received {
        let (source, _) = self.open(more).unwrap_or_else(|error| panic!("{error}"));
        Received::until_it_fails(source)
    }

    #[track_caller]
    fn refused(&self, more: &str, parts: &[&str]) {
        let said = explain_plainly(&self.open(more).err().expect("it is refused"));
        parts
            .iter()
            .for_each(|part| assert!(said.contains(part), "`{more}` is refused with `{part}`: {said}"));
        assert!(said.starts_with("driver=airpace_file"), "it says which: {said}");
    }
}

/// Output of a radio up to its failure.
struct Received {
    samples: Vec<Complex32>,
    /// Position of each gap, and its length.
    gaps: Vec<(usize, Option<u64>)>,
    error: String,
}

impl Received {
    fn until_it_fails(mut source: Box<dyn Source>) -> Received {
        let (mut samples, mut gaps) = (vec![], vec![]);
        loop {
            match source.read(&mut samples) {
                Ok(Piece::Samples(_)) => {}
                Ok(Piece::Gap(lost)) => gaps.push((samples.len(), lost)),
                Ok(Piece::Flaw(flaw)) => panic!("{flaw}"),
                Ok(Piece::End) => panic!("a radio does not end by itself"),
                Err(error) => return Received { samples, gaps, error: explain_plainly(&error) },
            }
        }
    }
}

#[test]
fn a_radio_is_tuned_as_it_was_asked_to() {
    if !is_at_the_radio("a_radio_is_tuned_as_it_was_asked_to") {
        return;
    }
    let player = Player::new(10);
    let (source, tuned) = player.open("gain=42,antenna=RX2,channel=1,bandwidth=1.5M,agc=yes").unwrap();
    assert_eq!(tuned.to_string(), "806.0000 MHz at 1.92 Msps, gain 42.0 dB, antenna RX2");
    assert_eq!(source.sample_rate_hz(), RATE_HZ);
    drop(source);
    let expected = [
        "rate 1920000",
        "bandwidth 1500000",
        "frequency 806000000",
        "channel 1 antenna RX2",
        "gain by hand",
        "gain 42",
        "closed",
    ];
    assert_eq!(player.told(), expected, "and it is not switched on before somebody reads");

    // If the oscillator is fast by 50 ppm, lower settings give the requested frequency and rate.
    let player = Player::new(10);
    let (source, tuned) = player.open("ppm=50,agc=yes").unwrap();
    assert_eq!(tuned.to_string(), "806.0000 MHz at 1.92 Msps, gain by itself, antenna RX");
    assert_eq!(source.sample_rate_hz(), RATE_HZ);
    assert_eq!(player.told(), ["rate 1919904", "frequency 805959702", "gain by itself"]);
}

#[test]
fn what_nobody_asked_for_is_chosen_and_told() {
    if !is_at_the_radio("what_nobody_asked_for_is_chosen_and_told") {
        return;
    }
    let player = Player::new(10);
    let settings = |more: &str| {
        let path = player.folder.path().join("samples");
        let words = format!("driver=airpace_file,freq=806M,path={},{more}", path.display());
        Settings::default().with(&words).unwrap()
    };
    let (_, tuned) = radio::open(&settings("most_rate=3.2e6")).unwrap();
    assert_eq!(tuned.rate_hz, 1.92e6, "the highest rate that suits cells and that it has");
    assert_eq!(tuned.gain_db, Some(30.0), "the middle, where it does not find its gain by itself");
    assert_eq!(radio::open(&settings("")).unwrap().1.rate_hz, 23.04e6, "enough for any cell");
}

#[test]
fn what_a_radio_cannot_do_is_refused_with_what_it_can() {
    if !is_at_the_radio("what_a_radio_cannot_do_is_refused_with_what_it_can") {
        return;
    }
    let player = Player::new(10);
    player.refused("channel=2", &["channel=2: has receivers 0 to 1"]);
    player.refused("antenna=TX", &["no antenna `TX`, but RX, RX2"]);
    player.refused("gain=80", &["cannot amplify by 80 dB, but from 0 to 60 dB"]);
    player.refused("gain=auto", &["does not find its gain by itself: give one from 0 to 60 dB"]);
    player.refused("freq=2.6G", &["listens at 1800 MHz instead of 2600; it can at 24 to 1800"]);
    player.refused(
        "rate=23.04M,most_rate=3.2e6",
        &["cannot take 23.04 Msps, but 1 to 3.2", "; give another `rate`"],
    );
    let path = player.folder.path().join("nothing");
    player.refused(
        &format!("path={}", path.display()),
        &["cannot be opened", "the check of this machine", "cannot be read"],
    );

    let refused = |words: &str| {
        let settings = Settings::default().with(words).unwrap();
        explain_plainly(&radio::open(&settings).err().expect("it is refused"))
    };
    let path = player.folder.path().join("samples");
    let no_frequency = refused(&format!("driver=airpace_file,path={}", path.display()));
    assert!(no_frequency.contains("has no frequency to receive; give `freq`"), "{no_frequency}");
    let missing = refused("driver=rtlsdr,serial=1,freq=806M");
    assert!(missing.starts_with("driver=rtlsdr,serial=1: cannot be opened (SoapySDR"), "{missing}");
    let null = refused("type=null,freq=806M");
    assert!(null.contains("type=null: has no receiver"), "SoapySDR's null device: {null}");
}

#[test]
fn the_radios_that_are_there_are_listed_in_words_that_open_them() {
    if !is_at_the_radio("the_radios_that_are_there_are_listed_in_words_that_open_them") {
        return;
    }
    let found = radio::devices().unwrap();
    assert!(found.contains(&"driver=airpace_file (a file that is played)".to_owned()), "{found:?}");
}

#[test]
fn every_sample_comes_once_and_silence_is_an_error() {
    if !is_at_the_radio("every_sample_comes_once_and_silence_is_an_error") {
        return;
    }
    let player = Player::new(100_000);
    let received = player.listen("faults=quiet:50000:3");
    assert_eq!(received.samples, player.samples);
    assert_eq!(received.gaps, [], "waiting is no loss");
    assert!(received.error.contains("gave no samples for 3 s: unplug it"), "{}", received.error);
    let told = player.told();
    assert_eq!(told[told.len() - 2..], ["off", "closed"], "it is switched off");
}

#[test]
fn losses_are_as_long_as_a_radios_clock_says() {
    if !is_at_the_radio("losses_are_as_long_as_a_radios_clock_says") {
        return;
    }
    let player = Player::new(100_000);
    let received = player.listen("faults=lose:30000:777+overflow:50000:1234+corrupt:70000+gone:90000");
    let gaps = [(30_000, Some(777)), (50_000 - 777, Some(1234)), (70_000 - 777 - 1234, None)];
    assert_eq!(received.gaps, gaps);
    let whole = &player.samples;
    let expected = [&whole[..30_000], &whole[30_777..50_000], &whole[51_234..90_000]].concat();
    assert_eq!(received.samples, expected, "what comes after a loss is where it should be");
    assert!(received.error.contains("gives no more samples"), "{}", received.error);
    assert!(received.error.contains("plug it in again"), "{}", received.error);
}

#[test]
fn without_a_clock_that_can_be_believed_only_announced_losses_are_known() {
    if !is_at_the_radio("without_a_clock_that_can_be_believed_only_announced_losses_are_known") {
        return;
    }
    for clock in ["none", "bytes"] {
        let player = Player::new(100_000);
        let faults = "lose:30000:777+overflow:50000:1234+gone:90000";
        let received = player.listen(&format!("clock={clock},faults={faults}"));
        assert_eq!(received.gaps, [(50_000 - 777, None)], "clock={clock}");
        assert_eq!(received.samples.len(), 90_000 - 777 - 1234, "clock={clock}");
    }
}

#[test]
fn a_reader_that_is_too_slow_loses_samples_and_knows_how_many() {
    if !is_at_the_radio("a_reader_that_is_too_slow_loses_samples_and_knows_how_many") {
        return;
    }
    let (count, waits) = (2_000_000, (RATE_HZ * 0.5) as usize);
    let player = Player::new(count);
    let (mut source, _) = player.open(&format!("faults=quiet:{}:20", count - 100)).unwrap();
    let mut samples = vec![];
    assert!(matches!(source.read(&mut samples), Ok(Piece::Samples(_))), "it listens");
    // In the meantime, the radio plays all but the last samples, and then waits.
    while !player.told().contains(&"quiet".to_owned()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let before = samples.len();
    let received = Received::until_it_fails(source);
    let [(at, Some(lost))] = received.gaps[..] else {
        panic!("one loss of known length: {:?}", received.gaps)
    };
    assert!((waits - 4096..=waits + 4096).contains(&at), "half a second may wait, not {at} samples");
    assert_eq!(before + received.samples.len() + lost as usize, count, "every sample is given or counted");
    assert_eq!(received.samples.last(), player.samples.last());
}

#[test]
fn a_radio_that_nobody_reads_any_more_is_switched_off() {
    if !is_at_the_radio("a_radio_that_nobody_reads_any_more_is_switched_off") {
        return;
    }
    let player = Player::new(100_000);
    let (mut source, _) = player.open("").unwrap();
    assert!(matches!(source.read(&mut vec![]), Ok(Piece::Samples(_))));
    drop(source);
    let told = player.told();
    assert_eq!(told[told.len() - 3..], ["on", "off", "closed"], "before the reader goes on");
}

#[test]
fn two_receivers_of_a_radio_are_heard_side_by_side() {
    if !is_at_the_radio("two_receivers_of_a_radio_are_heard_side_by_side") {
        return;
    }
    let player = Player::new(50_000);
    let (source, _) = player.open("channel=1+0,gain=20,faults=overflow:20000:100+gone:40000").unwrap();
    assert_eq!(source.antennas(), 2);
    let received = Received::until_it_fails(source);
    assert_eq!(received.gaps, [(2 * 20_000, Some(100))], "a loss is as long on both");
    let came = player.samples[..20_000].iter().chain(&player.samples[20_100..40_000]);
    let expected: Vec<_> = came.flat_map(|sample| [Complex32::new(sample.im, sample.re), *sample]).collect();
    assert_eq!(received.samples, expected, "in the order in which they were asked for");
    assert_eq!(player.told().iter().filter(|line| *line == "gain 20").count(), 2, "both are set");
}

//! Telemetry that stops during a flow, or lacks required content: the sender falls back within a short time.

use airpace_cc::controller::Inspect;
use airpace_core::{Bits, Direction};
use airpace_radio::{BitLayer, CarrierId, Dci, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::*;

/// Rate of the path (Mbit/s).
const MBPS: f64 = 20.0;

/// Maximum time after the last useful report until the sender operates without reports.
const SOON: Duration = Duration::from_millis(100);

const MS: Duration = Duration::from_millis(1);

/// Returns a report of a subframe in which the cell grants all PRBs to this device, in both directions.
fn report(subframe: u64, scope: Scope) -> RadioReport {
    let own = Rnti(70);
    let bits = (MBPS * 1e3 / 0.985) as u64;
    let dci = |direction| Dci {
        rnti: own,
        direction,
        prbs: PrbSet::run(0, 50),
        mcs: [Some(10), None],
        tbs: [Bits(bits), Bits::ZERO],
        layers: 1,
        ..Dci::default()
    };
    RadioReport {
        carrier: CarrierId(0),
        time: Time::from_millis(subframe),
        slot: Slot::subframe_of_lte(subframe),
        scope,
        carrier_prbs: Some(50),
        cfi: Some(2),
        symbols: None,
        dcis: vec![dci(Direction::Downlink), dci(Direction::Uplink)],
        own: Some(OwnRadio {
            rnti: own,
            active: true,
            sinr_db: Some(15.0),
            bits_per_prb: Some(bits as f64 / 50.0),
            decoded: None,
            uplink_queue: None,
        }),
        layer: BitLayer::Physical,
    }
}

/// A flow from a server, with a scheme that uses the radio of one endpoint.
struct Flow {
    pair: Pair,
    /// Whether the server has the radio, as a phone does that uploads.
    is_upload: bool,
    subframe: u64,
}

impl Flow {
    /// Creates a flow that has run for two seconds with reports.
    fn begin(text: &str, is_upload: bool, delay_ms: u64) -> Flow {
        let mut pair =
            Pair::new(Path { link: Some((Rate::from_mbps(MBPS), Time::ZERO)), ..Path::clean(delay_ms) });
        pair.connect();
        let now = pair.now;
        let (controller, receiver) = scheme(text);
        pair.connection(true).steer(now, controller);
        pair.connection(false).listen(receiver);
        pair.work[0].to_send = b"please".to_vec();
        pair.work[1].to_send = pattern(40_000_000);
        let mut flow = Flow { pair, is_upload, subframe: 0 };
        flow.go_on(2_000, Some(Scope::Everyone));
        flow
    }

    /// Runs for up to `most_ms` milliseconds, each with a report of this scope, or without reports. Returns the time
    /// until the name of the sender's state first satisfied `wanted`.
    fn until(
        &mut self,
        most_ms: u64,
        scope: Option<Scope>,
        wanted: impl Fn(&str) -> bool,
    ) -> Option<Duration> {
        let begin = self.pair.now;
        (0..most_ms).find_map(|_| {
            self.subframe += 1;
            if let Some(scope) = scope {
                let report = report(self.subframe, scope);
                let is_upload = self.is_upload;
                self.pair.connection(is_upload).on_radio(&report);
            }
            self.pair.run_for(MS);
            wanted(self.state()).then(|| self.pair.now - begin)
        })
    }

    fn go_on(&mut self, ms: u64, scope: Option<Scope>) {
        self.until(ms, scope, |_| false);
    }

    fn state(&mut self) -> &'static str {
        let mut inspect = Inspect::default();
        Connection::inspect(self.pair.connection(true), &mut inspect);
        inspect.state
    }
}

fn is_fallback(state: &str) -> bool {
    state.starts_with("Fallback")
}

#[test]
fn a_download_of_pbe_falls_back_and_returns_on_paths_of_every_length() {
    for (delay_ms, scope) in [
        (2, None),
        (20, None),
        (40, None),
        (20, Some(Scope::Own)),
        (20, Some(Scope::EveryoneBut { unexplained: 2, missed: None })),
    ] {
        let mut flow = Flow::begin("pbe", false, delay_ms);
        assert!(!is_fallback(flow.state()), "with reports of everybody: {}", flow.state());
        let soon = flow.until(1_000, scope, is_fallback).expect("it falls back");
        assert!(soon <= SOON, "{scope:?}: after {soon:?} with {delay_ms} ms each way");
        assert!(soon >= 50 * MS, "a decoder may pause: {soon:?}");
        flow.go_on(300, scope);
        assert!(is_fallback(flow.state()), "and stays there: {}", flow.state());
        let back = flow.until(1_000, Some(Scope::Everyone), |state| !is_fallback(state));
        assert!(back.is_some_and(|back| back <= SOON), "{back:?}");
    }
}

#[test]
fn an_upload_of_biscay_falls_back_with_its_own_grants_gone_and_not_with_those_of_others() {
    let mut flow = Flow::begin("biscay", true, 20);
    flow.go_on(500, Some(Scope::Own));
    assert!(!is_fallback(flow.state()), "its own grants are all that it needs: {}", flow.state());
    let soon = flow.until(1_000, None, is_fallback).expect("it falls back");
    assert!(soon <= SOON, "after {soon:?}");
    let back = flow.until(3_000, Some(Scope::Own), |state| !is_fallback(state));
    assert!(back.is_some(), "it returns as soon as the bottleneck shows to be the cell");
}

#[test]
fn a_download_of_biscay_hears_of_it_half_a_round_trip_later() {
    let mut flow = Flow::begin("biscay", false, 20);
    assert!(!is_fallback(flow.state()), "{}", flow.state());
    let soon = flow.until(1_000, None, is_fallback).expect("it falls back");
    assert!(soon <= SOON + 25 * MS, "after {soon:?}");
}

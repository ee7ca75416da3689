//! Scenario tests of proxies that split a connection.

use crate::common;
use crate::watched;

use airpace_event::TransferStep;
use airpace_sim::{Scenario, SchemeSpec};
use common::{run, scenario};
use watched::{Watched, watch};

/// A download over 20 Mbit/s, with 80 ms to the server. `more` has keys of the flow and of its proxy.
fn download(more: &str) -> Scenario {
    scenario(&format!(
        "duration_s = 20\n[forward]\nloss = 0.0\n[internet]\nrate_mbps = 20\nbuffer.ms = 100\n[[flow]]\nrtt_ms = 80\n{more}"
    ))
}

/// Bytes that had arrived at the time `at_s`.
fn arrived(flow: &Watched, at_s: f64) -> u64 {
    flow.arrivals().iter().take_while(|(at, ..)| *at <= at_s).map(|(_, bytes, _)| bytes).sum()
}

#[test]
fn a_proxy_forwards_everything_and_adds_no_delay_to_a_path_that_loses_nothing() {
    let whole = watch(&download(""), "bbr", 1).swap_remove(0).mbps(5.0..20.0);
    let split = watch(&download("proxy = { rtt_ms = 20 }"), "bbr", 1);
    assert_eq!(split.len(), 2, "the server leg is a flow");
    let [to_device, to_proxy] = [0, 1].map(|flow| split[flow].mbps(5.0..20.0));
    assert!((to_device / whole - 1.0).abs() < 0.03, "{to_device} through the proxy, {whole} without");
    assert!((to_proxy / to_device - 1.0).abs() < 0.02, "{to_proxy} to the proxy, {to_device} from it");
}

#[test]
fn the_proxy_holds_no_more_than_its_buffer() {
    // The leg to the device has 5 Mbit/s, a fraction of what the server could send.
    let keys = "proxy = { rtt_ms = 20, internet = \"device\", buffer_bytes = 300_000 }";
    let mut text = download(keys).to_toml();
    text = text.replace("rate_mbps = 20", "rate_mbps = 5");
    let slow = Scenario::load(&text, "slow.toml", &[]).unwrap();
    let flows = watch(&slow, "cubic", 2);
    let mut most = 0;
    for tenth in 1..200 {
        let at_s = f64::from(tenth) * 0.1;
        let held = arrived(&flows[1], at_s) as i64 - arrived(&flows[0], at_s) as i64;
        assert!(held >= 0, "the device has {held} bytes that the proxy does not have");
        most = most.max(held);
    }
    assert!((200_000..=300_000).contains(&most), "{most} bytes are held");
    assert!(flows[0].mbps(5.0..20.0) > 4.7, "{}", flows[0].mbps(5.0..20.0));
}

#[test]
fn a_loss_near_the_device_costs_less_behind_a_proxy() {
    let lossy = |more: &str| {
        let text = download(more).to_toml().replace("loss = 0.0", "loss = 0.005");
        watch(&Scenario::load(&text, "lossy.toml", &[]).unwrap(), "cubic", 3).swap_remove(0).mbps(3.0..20.0)
    };
    let (whole, split) = (lossy(""), lossy("proxy = { rtt_ms = 10, internet = \"device\" }"));
    assert!(split > 2.0 * whole, "{split} with a proxy, {whole} without");
}

#[test]
fn a_transfer_is_complete_when_its_bytes_have_crossed_both_legs() {
    let times = |more: &str| {
        let (_, notes) = run(&download(&format!("bytes = 1_000_000\n{more}")), "cubic", 1);
        let steps: Vec<_> = notes.transfers.iter().map(|one| (one.flow.0, one.step)).collect();
        let all =
            [TransferStep::Began, TransferStep::FirstByte, TransferStep::StartedUp, TransferStep::Complete];
        assert_eq!(steps, all.map(|step| (0, step)), "only the device's flow has transfers");
        notes.transfers.last().unwrap().time.as_secs_f64()
    };
    let (whole, split) = (times(""), times("proxy = { rtt_ms = 40 }"));
    // 1 MB takes 0.4 s at 20 Mbit/s. Two short legs start faster than a long one.
    assert!(0.44 < split && split < whole && whole < 1.2, "{split} s with a proxy, {whole} s without");
}

#[test]
fn schemes_that_need_more_than_a_leg_has_are_refused() {
    let split = download("proxy = { rtt_ms = 20 }");
    let at_server = download("proxy = { rtt_ms = 20, scheme = \"pbe\" }");
    for (scenario, scheme) in [(&split, "oracle"), (&at_server, "bbr")] {
        let spec = SchemeSpec::parse(scheme).unwrap();
        let mut go_on = |_| std::ops::ControlFlow::Continue(());
        let refused =
            airpace_sim::run(scenario, &spec, 1, &mut airpace_event::Discard, &mut go_on).unwrap_err();
        assert!(refused.to_string().contains("split connection"), "{refused}");
    }
}

//! The controller that CONTRIBUTING.md shows, compiled and run.

mod contributing {
    pub mod aimd;
}
#[path = "schemes/plan/mod.rs"]
mod plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_cc::scheme::Options;
use airpace_cc::schemes::SCHEMES;
use contributing::aimd;
use plan::{Conditions, Plan};

#[test]
fn the_page_shows_this_very_file_and_it_is_short() {
    let page = include_str!("../../../CONTRIBUTING.md");
    let file = include_str!("contributing/aimd.rs");
    let shown = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let as_in_the_tree = file.replace("airpace_cc::", "crate::");
    assert_eq!(shown, Some(as_in_the_tree.as_str()), "the page and the file differ");
    assert!(file.lines().count() < 60, "the example of a controller fits on a page");
}

#[test]
fn a_controller_made_after_the_page_fills_a_link_and_halves_at_a_loss() {
    let mut plan = Plan::new(Conditions::default());
    let options = Options::defaults(&aimd::SCHEME);
    let flow = plan.start_ends(|setup| (aimd::SCHEME.build)(setup, &options).unwrap(), Backlog::Unlimited);
    plan.run_for(Duration::from_secs(40));
    plan.forget();
    plan.run_for(Duration::from_secs(20));
    assert!(plan.seen(flow).utilization > 0.95, "additive increase fills 20 Mbit/s");
    let before = plan.cwnd_packets(flow);
    plan.lose_next(flow);
    plan.run_for(Duration::from_millis(300));
    let after = plan.cwnd_packets(flow);
    assert!((0.45..0.65).contains(&(after / before)), "one loss takes half of {before}: {after}");
}

#[test]
fn its_name_colour_and_options_would_be_welcome_in_the_list() {
    for scheme in SCHEMES {
        assert_ne!(scheme.name, aimd::SCHEME.name);
        assert_ne!(scheme.style.colour, aimd::SCHEME.style.colour);
    }
}

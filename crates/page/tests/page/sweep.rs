//! Tests of a sweep's page.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use airpace_page::sweep::SweepPage;
use airpace_run::Host;
use airpace_run::sweep::{Axis, Plan, Spec, Sweep};

use super::browser::Browser;
use super::common::Temporary;
use super::{WIDTHS, list};

const HOSTILE: &str = "<img src=x onerror='window.harmed=1'> </script><script>window.harmed=2</script>";

/// The page of a sweep with two schemes over these values. The names of scenario and flow look like code.
fn page(folder: &Path, sets: &[(&str, &str)]) -> String {
    let text = format!(
        "name = \"story\"\nabout = \"{HOSTILE}\"\nduration_s = 0.3\n[internet]\nrate_mbps = 10\nbuffer.ms = 100\n\
         [[flow]]\nlabel = \"{HOSTILE}\"\nrtt_ms = 20\n[[flow]]\nlabel = \"other\"\nrtt_ms = 30\n"
    );
    let spec = Spec {
        scenario: "story.toml".to_owned(),
        text,
        set: sets.iter().map(|(key, values)| Axis::parse(key, values).unwrap()).collect(),
        schemes: vec!["reno".to_owned(), "bbr".to_owned()],
        seeds: vec![1, 2],
    };
    let sweep = Sweep::open(Plan::new(spec).unwrap(), folder, Host::default()).unwrap();
    sweep.run(&|_| ControlFlow::Continue(())).unwrap();
    sweep.finish::<SweepPage>(&mut |_, _, _| Ok(())).unwrap();
    fs::read_to_string(folder.join("report.html")).unwrap()
}

#[test]
fn maps_of_a_sweep_fit_every_screen_and_run_no_name() {
    let folder = Temporary::new("page-sweep");
    let Some(browser) = Browser::find(&folder.0) else { return };
    fs::create_dir_all(&folder.0).unwrap();
    let matrices: [&[(&str, &str)]; 4] = [
        &[("flow.0.rtt_ms", "10,20,-1"), ("internet.rate_mbps", "5..20/4")],
        &[("internet.rate_mbps", "1..40"), ("flow.0.rtt_ms", "10,20"), ("duration_s", "0.2,0.3")],
        &[("flow.0.rtt_ms", "10..60/6")],
        &[],
    ];
    for (number, sets) in matrices.into_iter().enumerate() {
        let page = page(&folder.0.join(number.to_string()), sets);
        for is_dark in [false, true] {
            for facts in browser.measure(&page, &WIDTHS, is_dark) {
                let width = &facts["width"];
                assert_eq!(facts["overflow"], 0, "matrix {number} is wider than {width} pixels");
                assert_eq!(facts["images"], 0, "a name was read as markup");
                assert_eq!(facts["harmed"], "undefined", "a name was run as code");
                let maps = if sets.len() > 1 { 2 } else { 1 };
                assert_eq!(list(&facts, "tables").len(), maps, "matrix {number}: a map for each scheme");
                for table in list(&facts, "sticky") {
                    // The cells of a heat map are separated by gaps.
                    let off = table["off"].as_f64().unwrap();
                    assert!((0.0..=2.0).contains(&off), "the first column scrolled away at {width}: {table}");
                }
                for table in list(&facts, "tables") {
                    let ends = table["first_number_ends"].as_f64().unwrap();
                    assert!(ends < table["width"].as_f64().unwrap(), "a phone shows no number: {table}");
                }
            }
        }
    }
}

//! Tests of schemes that a caller provides, in addition to the schemes of the list.

use std::sync::Arc;

use airpace_cc::scheme::{Ends, Setup};
use airpace_cc::schemes::SCHEMES;
use airpace_cc::{SchemeError, SchemeSpec};
use airpace_core::{Bytes, Refused};

fn setup() -> Setup {
    Setup::seeded(Bytes(1500), 3)
}

fn reno() -> SchemeSpec {
    SchemeSpec::parse("reno").expect("a scheme of the list")
}

#[test]
fn an_own_scheme_makes_its_own_ends() {
    let spec = SchemeSpec::own("my-reno", Arc::new(|setup| Ok(reno().build(setup).expect("reno's ends"))));
    let spec = spec.expect("a plain name");
    assert_eq!(spec.text(), "my-reno", "results are labelled with its name");
    let (own, built_in) = (spec.build(&setup()).expect("made"), reno().build(&setup()).expect("made"));
    assert_eq!(own.controller.control(), built_in.controller.control());
    assert_eq!(spec.inspected(), reno().inspected(), "what it shows is known before the run");
    assert!(SCHEMES.iter().all(|scheme| scheme.name != spec.scheme().name), "nobody can type it");
}

#[test]
fn names_that_would_be_mistaken_for_others_are_refused() {
    for name in ["", "pbe", "all", "presets", "a:b=1", "a@b", "a+ran", "a b", "a/b"] {
        let refused = SchemeSpec::own(name, Arc::new(|_| Err(Refused::new("not asked"))));
        assert_eq!(refused.expect_err(name), SchemeError::Name(name.to_owned()));
    }
}

#[test]
fn what_cannot_be_made_says_why() {
    let make = |_: &Setup| -> Result<Ends, Refused> { Err(Refused::new("it has no window")) };
    let spec = SchemeSpec::own("broken", Arc::new(make)).expect("a plain name");
    let error = spec.build(&setup()).map(drop).expect_err("it cannot be made").to_string();
    assert_eq!(error, "scheme `broken` cannot be made: it has no window");
}

//! The scenarios that come with the program.

/// Names and texts of the built-in scenarios, in the order in which lists show them.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    &BUILTIN
}

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

static BUILTIN: [(&str, &str); 38] = scenarios![
    "stationary-idle",
    "stationary-busy",
    "mobility",
    "competitor",
    "join-leave",
    "rtt-fairness",
    "friendly-bbr",
    "friendly-cubic",
    "two-flows",
    "four-phones",
    "wired-bottleneck",
    "misreport",
    "rate-weights",
    "buffering",
    "decoder-in-the-loop",
    "trace",
    "biscay-uplink",
    "biscay-three-flows",
    "biscay-wired-bottleneck",
    "biscay-trace",
    "biscay-links",
    "nr-idle",
    "nr-busy",
    "nr-uplink",
    "nr-endc",
    "nr-fr2-blockage",
    "nr-mobility",
    "nr-places",
    "pbe-places",
    "morc-random-loss",
    "morc-five-flows",
    "morc-fig4",
    "morc-table1",
    "morc-proxy",
    "short-flows",
    "video",
    "video-adaptive",
    "video-lab",
];

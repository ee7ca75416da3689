//! `airpace kernel`: Airpace's schemes as congestion controls of this Linux kernel.

#[cfg(feature = "bpf")]
mod feed;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(feature = "bpf")]
mod run;
#[cfg(feature = "bpf")]
mod source;
#[cfg(feature = "bpf")]
mod status;

use std::io::Write;

use airpace_cc::{SchemeError, SchemeSpec};

use super::Verdict;

/// Error message of a build without the feature `bpf`, with instructions to build with it.
#[cfg(not(feature = "bpf"))]
pub fn remedy() -> String {
    format!(
        "this program was built without the kernel's part: install clang, libelf-dev, zlib1g-dev and pkg-config and build \
         with `--features bpf`, or start AIRPACE_FEATURES=bpf ./airpace. {} and {} do without it",
        crate::called::command("sim"),
        crate::called::command("emu")
    )
}

/// Runs a scheme in this Linux kernel, as the TCP congestion control of unmodified programs.
///
/// `load` loads BISCAY, MORC or PBE-CC into the kernel, which requires root. A program selects the scheme for a socket
/// (TCP_CONGESTION, `iperf3 -C morc`), which requires no privileges. `feed` writes the radio's grants to BISCAY every
/// millisecond; if the last value is older than 100 ms, the kernel's own BBR controls the flow. MORC needs no feed. PBE-CC is
/// loaded on the phone and on the server; it is fed on the phone, and the phone's kernel sends feedback to the server.
/// `biscay@window` limits downloads from unmodified senders by the window that this machine advertises. `unload` is safe
/// while flows run.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace kernel load biscay && airpace kernel feed --mbps 20")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Loads a scheme, which stays loaded until it is unloaded or the machine restarts.
    #[command(before_help = "Example: airpace kernel load morc --default")]
    Load {
        /// `biscay`, `biscay@window` (downloads), `morc` or `pbe`, with options as in `airpace sim --scheme`.
        #[arg(default_value = "biscay", value_parser = spec, add = super::complete::in_the_kernel())]
        scheme: Box<SchemeSpec>,
        /// Makes the scheme the default of new TCP sockets in this network namespace, or in that of `--netns`.
        #[arg(long)]
        default: bool,
        /// Makes the scheme the default in the network namespace NAME (`ip netns`), also without `--default`.
        #[arg(long, value_name = "NAME")]
        netns: Option<String>,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Removes a scheme. Flows that use it keep it until they end.
    #[command(before_help = "Example: airpace kernel unload morc")]
    Unload {
        /// `biscay`, `biscay@window`, `morc` or `pbe`. [default: all loaded schemes]
        #[arg(value_parser = IN_THE_KERNEL)]
        scheme: Option<String>,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Prints the loaded schemes, the state of their flows and the age of the feed.
    #[command(before_help = "Example: airpace kernel status")]
    Status {
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Runs an unmodified program whose TCP connections use a loaded scheme; requires root.
    #[command(before_help = "Example: airpace kernel run morc -- iperf3 -c HOST")]
    Run {
        #[arg(value_parser = ["biscay", "morc", "pbe"])]
        scheme: String,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
        command: Vec<std::ffi::OsString>,
    },
    /// Feeds the radio's grants to BISCAY, or the cell's capacity to PBE-CC, until the input ends or Ctrl-C.
    #[command(before_help = "Example: airpace kernel feed --from reports.sock")]
    Feed {
        /// The scheme that is fed: `biscay` (uplink), `biscay@window` (downlink), or `pbe` on the phone.
        #[arg(default_value = "biscay", value_parser = ["biscay", "biscay@window", "pbe"])]
        scheme: String,
        #[command(flatten)]
        source: Source,
    },
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// Source of the radio reports: a socket, a modem, a radio, a recording or a file.
    ///
    /// Sources are a socket (`airpace emu --reports`), tcp:HOST:PORT, `-` (standard input), `od` or `od:DIR` (KPIs published
    /// by `airpace diag serve`), a modem's port (/dev/ttyUSB0, modem:tcp:HOST:PORT), a recording (cell.sigmf-meta,rnti=R), and
    /// a radio (driver=rtlsdr,freq=806M,rnti=R). A file of reports or an ACK trace (`airpace sim --ack-trace`) is replayed at
    /// its own pace.
    #[arg(long, value_name = "FROM")]
    from: Option<String>,
    /// Feeds this constant bandwidth in Mbit/s.
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    mbps: Option<f64>,
}

/// Schemes that have a version for the kernel, also in a build without them.
const IN_THE_KERNEL: [&str; 4] = ["biscay", "biscay@window", "morc", "pbe"];

/// Maximum rate that the kernel programs can represent: 2³⁴ bit/s, in Mbit/s.
const MAX_MBPS: f64 = 17_179.0;

fn bandwidth(text: &str) -> Result<f64, String> {
    let mbps = super::positive(text)?;
    if mbps <= MAX_MBPS { Ok(mbps) } else { Err(format!("give a number up to {MAX_MBPS}")) }
}

fn spec(word: &str) -> Result<Box<SchemeSpec>, SchemeError> {
    SchemeSpec::parse(word).map(Box::new).map_err(|error| match error {
        SchemeError::Scheme { name, .. } => SchemeError::Scheme { name, known: IN_THE_KERNEL.to_vec() },
        other => other,
    })
}

/// Runs the command.
#[cfg(feature = "bpf")]
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    match &args.what {
        What::Load { scheme, default, netns, json } => {
            let named = netns.clone().map(airpace_bpf::netns::Place::Named);
            loaded::load(scheme, named.or(default.then_some(airpace_bpf::netns::Place::Here)), *json, out)
        }
        What::Unload { scheme, json } => loaded::unload(scheme.as_deref(), *json, out),
        What::Status { json } => status::status(*json, out),
        What::Run { scheme, command } => run::run(scheme, command),
        What::Feed { scheme, source: Source { from, mbps } } => match (scheme.as_str(), from) {
            (airpace_bpf::kernel::PBE, Some(from)) => feed::pbe(from, out),
            (airpace_bpf::kernel::PBE, None) => feed::pbe_constant(mbps.unwrap_or_default(), out),
            (airpace_bpf::kernel::RELAY, Some(from)) => feed::relay(from, out),
            (airpace_bpf::kernel::RELAY, None) => {
                feed::biscay_constant(airpace_bpf::kernel::RELAY, mbps.unwrap_or_default(), out)
            }
            (_, Some(from)) => feed::biscay(from, out),
            (_, None) => feed::biscay_constant(airpace_bpf::kernel::BISCAY, mbps.unwrap_or_default(), out),
        },
    }
}

/// Returns an error that names the missing feature.
#[cfg(not(feature = "bpf"))]
pub fn run(args: &Args, _: &mut dyn Write) -> anyhow::Result<Verdict> {
    match &args.what {
        What::Load { .. } | What::Unload { .. } | What::Status { .. } | What::Run { .. } => {}
        What::Feed { source: Source { from, mbps }, .. } => debug_assert!(from.is_some() || mbps.is_some()),
    }
    anyhow::bail!(remedy())
}

//! `airpace list`: lists the schemes, scenarios, variants of a scenario, and KPIs.

use std::io::{IsTerminal, Write};

use airpace_cc::ran;
use airpace_cc::scheme::Scheme;
use airpace_cc::schemes::{self, SCHEMES};
use airpace_diag::kpi::{KPIS, Kind, Kpi, Scope};
use airpace_sim::{Scenario, Variants, builtin};
use anyhow::Context;
use serde_json::json;

use super::Verdict;
use crate::called;
use crate::terminal::{Paint, Table, columns, fit, hang};

/// Lists the schemes, the scenarios or the KPIs of this build, or the variants of a scenario.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace list schemes\n         airpace list schemes pbe bbr3\n         airpace list scenarios --json\n         airpace list variants morc-table1"
)]
pub struct Args {
    /// What to list.
    #[arg(value_enum)]
    what: What,
    /// Lists only these schemes, with their options; for `variants`, the scenario.
    names: Vec<String>,
    /// Also lists the options of all schemes.
    #[arg(long)]
    options: bool,
    /// Prints one JSON object per line.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Congestion controls, their presets and options.
    #[value(alias = "presets")]
    Schemes,
    /// Built-in experiments.
    Scenarios,
    /// Variants of a scenario, or the members of its population, with the keys that they set.
    Variants,
    /// Key performance indicators of a modem.
    Kpis,
}

/// Indentation of the description below a name (columns).
fn indent(columns: usize) -> usize {
    if columns < 60 { 4 } else { 10 }
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    anyhow::ensure!(
        matches!(args.what, What::Schemes) || !args.options,
        "--options is for {} only",
        called::command("list schemes")
    );
    anyhow::ensure!(
        matches!(args.what, What::Schemes | What::Variants) || args.names.is_empty(),
        "names are for {} and {} only",
        called::command("list schemes"),
        called::command("list variants")
    );
    match (args.what, args.json) {
        (What::Schemes, true) => {
            for scheme in named(&args.names)? {
                writeln!(out, "{}", scheme_as_json(scheme))?;
            }
        }
        (What::Schemes, false) => {
            list_schemes(&named(&args.names)?, args.options || !args.names.is_empty(), out)?;
        }
        (What::Scenarios, is_json) => list_scenarios(is_json, out)?,
        (What::Variants, is_json) => list_variants(&args.names, is_json, out)?,
        (What::Kpis, true) => {
            for kpi in KPIS {
                writeln!(out, "{}", kpi_as_json(kpi))?;
            }
        }
        (What::Kpis, false) => list_kpis(out)?,
    }
    Ok(Verdict::Fine)
}

/// The schemes with these names; all schemes if there are no names.
fn named(names: &[String]) -> anyhow::Result<Vec<&'static Scheme>> {
    if names.is_empty() {
        return Ok(SCHEMES.to_vec());
    }
    names.iter().map(|name| Ok(schemes::find(name)?)).collect()
}

fn list_schemes(schemes: &[&Scheme], with_options: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    let columns = columns();
    let indent = indent(columns);
    for scheme in schemes {
        let named = hang(&format!("{}  ", scheme.name), scheme.summary, indent, columns);
        writeln!(out, "{}", named.replacen(scheme.name, &paint.bold(scheme.name), 1))?;
        let with_ran = scheme.takes_ran.then(|| format!("{}{}  {}", scheme.name, ran::SUFFIX, ran::SUMMARY));
        let presets = scheme
            .presets
            .iter()
            .map(|preset| format!("{}@{}  {}", scheme.name, preset.name, preset.summary));
        let options = scheme
            .options
            .iter()
            .map(|option| format!(":{}={}  {}", option.name, option.default, option.summary));
        let source = with_options.then(|| scheme.source.to_owned());
        let options = with_options.then_some(options).into_iter().flatten();
        for line in source.into_iter().chain(with_ran).chain(presets).chain(options) {
            // Continuation lines are indented further.
            writeln!(out, "{}", hang(&" ".repeat(indent), &line, indent + 2, columns))?;
        }
    }
    let note = "A choice has the form NAME[+ran][@PRESET][:OPTION=VALUE]…; several are separated by commas.";
    let more = match with_options {
        true => String::new(),
        false => format!(" Options: {}, or --options for all.", called::command("list schemes NAME")),
    };
    writeln!(out, "\n{}", fit(&format!("{note}{more}")))?;
    Ok(())
}

fn list_scenarios(is_json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let (paint, columns) = (Paint::stdout(), columns());
    let indent = indent(columns);
    for (name, text) in builtin() {
        // The text is not loaded as a scenario, because some scenarios need a key from the user.
        let scenario: toml::Table = text.parse().with_context(|| format!("built-in scenario {name}"))?;
        let word = |key: &str| scenario.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        let seconds = scenario.get("duration_s").map(toml::Value::to_string).unwrap_or_default();
        if is_json {
            let object = json!({
                "name": name,
                "about": word("about"),
                "source": word("source"),
                "duration_s": seconds.parse::<f64>().ok(),
                "schemes": scenario.get("schemes"),
            });
            writeln!(out, "{object}")?;
        } else {
            let named =
                hang(&format!("{name}  "), &format!("{seconds} s, {}", word("source")), indent, columns);
            writeln!(out, "{}", named.replacen(name, &paint.bold(name), 1))?;
            let asks = if asks_for_trace(&scenario) { "; needs --set trace=FILE" } else { "" };
            writeln!(out, "{}", hang("", &format!("{}{asks}", word("about")), indent, columns))?;
        }
    }
    if !is_json {
        let run = called::command("sim NAME");
        let note = format!("Run one with {run}; a TOML file of your own runs as well.");
        writeln!(out, "\n{}", fit(&note))?;
    }
    Ok(())
}

fn list_variants(names: &[String], is_json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let [scenario] = names else {
        let command = called::command("list variants SCENARIO");
        anyhow::bail!("give one scenario, a name or a file: {command}");
    };
    let variants = Variants::read(&Scenario::text_of(scenario)?, scenario)?;
    let (paint, columns) = (Paint::stdout(), columns());
    for (index, name) in variants.names().enumerate() {
        if is_json {
            let set: serde_json::Map<_, _> =
                variants.set(index).map(|(key, value)| (key.to_owned(), json!(value))).collect();
            writeln!(out, "{}", json!({ "name": name, "set": set }))?;
        } else {
            let set: Vec<String> = variants.set(index).map(|(key, value)| format!("{key}={value}")).collect();
            let named = hang(&format!("{name}  "), &set.join(" "), indent(columns), columns);
            writeln!(out, "{}", named.replacen(name, &paint.bold(name), 1))?;
        }
    }
    if variants.names().next().is_none() && !is_json {
        writeln!(out, "{}", fit(&format!("`{scenario}` has no variants: it is one experiment.")))?;
    }
    Ok(())
}

/// Whether a scenario replays a trace that the user must give.
fn asks_for_trace(scenario: &toml::Table) -> bool {
    let trace = scenario.get("trace").and_then(toml::Value::as_table);
    trace.is_some_and(|trace| !trace.contains_key("file") && !trace.contains_key("synth"))
}

fn list_kpis(out: &mut dyn Write) -> anyhow::Result<()> {
    const NAME: usize = 1;
    let mut table = Table::new(&["KPI", "unit", "layer", "from", "about"], 5).with_whole(NAME);
    for kpi in KPIS {
        let codes = codes(kpi).join(" ");
        table.row(vec![
            kpi.name.to_owned(),
            kpi.unit.to_owned(),
            kpi.layer.to_string(),
            codes,
            kpi.about.to_owned(),
        ]);
    }
    table.write_for_programs(out, Paint::stdout())?;
    let note = format!(
        "Follow some with {} or {}; NAME@2 is the second SIM's.",
        called::command("diag decode LOG --kpi NAME,…"),
        called::command("diag watch")
    );
    writeln!(out, "\n{}", if std::io::stdout().is_terminal() { fit(&note) } else { note })?;
    Ok(())
}

/// The codes of the log packets that contain a KPI, the preferred one first.
fn codes(kpi: &Kpi) -> Vec<String> {
    let mut codes: Vec<_> = kpi.sources().iter().map(|source| source.code.to_string()).collect();
    codes.dedup();
    codes
}

fn kpi_as_json(kpi: &Kpi) -> serde_json::Value {
    json!({
        "name": kpi.name,
        "unit": kpi.unit,
        "layer": kpi.layer.to_string(),
        "about": kpi.about,
        "codes": codes(kpi),
        "scope": match kpi.scope {
            Scope::Radio => "radio",
            Scope::Carrier => "carrier",
            Scope::Cell => "cell",
            Scope::Bearer => "bearer",
        },
        "kind": match kpi.kind {
            Kind::Level => "level",
            Kind::Event => "event",
            Kind::Total => "total",
            Kind::Share => "share",
            Kind::Wait => "wait",
        },
    })
}

fn scheme_as_json(scheme: &Scheme) -> serde_json::Value {
    json!({
        "name": scheme.name,
        "summary": scheme.summary,
        "source": scheme.source,
        "colour": scheme.style.colour,
        "marker": scheme.style.marker,
        "takes_ran": scheme.takes_ran,
        "presets": scheme.presets.iter().map(|preset| json!({
            "name": preset.name,
            "summary": preset.summary,
            "set": preset.set.iter().map(|(option, value)| (option.to_string(), json!(value)))
                .collect::<serde_json::Map<_, _>>(),
        })).collect::<Vec<_>>(),
        "options": scheme.options.iter().map(|option| json!({
            "name": option.name,
            "default": option.default,
            "summary": option.summary,
        })).collect::<Vec<_>>(),
    })
}

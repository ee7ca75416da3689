//! The findings as a page in Markdown: one table per experiment.

use std::fmt::Write;

use crate::experiment::Reproduced;
use crate::fitted::FITTED;
use crate::number::Number;

/// Explanation of verdicts and numbers.
pub(crate) const LEGEND: &str = "A verdict follows from the rule in its row, which is part of the experiment: *reproduced* if \
    the rule holds, *in kind* if the direction agrees and the size does not, *differs* otherwise; *fitted* if a parameter was \
    fitted to the number. Numbers in brackets are the ends of the interval that holds the mean with 95 % confidence. A number \
    without brackets is no mean over several runs, or its interval is narrower than its digits. A dash is in place of the \
    paper's number if the paper makes the claim without one.";

/// The page. `command` makes it again; `version` is that of the program.
pub fn page(all: &[Reproduced], command: &str, version: &str) -> String {
    let mut page = format!(
        "# The papers' evaluations beside ours\n\n`{command}` (version {version}) made this page; do not edit it. {LEGEND}\n\n"
    );
    page += "## Fitted parameters\n\nThe papers do not state these parameters of their networks. Each was fitted to one number, \
             whose verdict is *fitted*, and holds for all schemes.\n\n| experiments | key | fitted to |\n| --- | --- | --- |\n";
    for fitted in FITTED {
        writeln!(page, "| {} | {} | {} |", fitted.experiments, fitted.key, fitted.to)
            .expect("text takes everything");
    }
    for one in all {
        let (Reproduced { experiment, findings, .. }, about) = (one, one.about());
        write!(page, "\n## {}: {}\n\nSource: {}.", experiment.id, experiment.title, experiment.source)
            .expect("text takes everything");
        if !about.is_empty() {
            write!(page, " {about}").expect("text takes everything");
        }
        page += "\n\n";
        page += &table(&findings.numbers);
        let causes = one.causes();
        if !causes.is_empty() {
            page += "\nWhy numbers differ:\n\n";
        }
        for cause in causes {
            writeln!(page, "- {cause}").expect("text takes everything");
        }
    }
    page
}

fn table(numbers: &[Number]) -> String {
    let mut table =
        "| number | paper | ours | rule | verdict |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for number in numbers {
        let ours = number.ours.map_or_else(|| "–".to_owned(), |ours| ours.to_string());
        let unit = if number.unit.is_empty() { String::new() } else { format!(" ({})", number.unit) };
        writeln!(
            table,
            "| {}{unit} | {} | {ours} | {} | {} |",
            number.what,
            number.paper_text(),
            number.rule,
            number.verdict()
        )
        .expect("text takes everything");
    }
    table
}

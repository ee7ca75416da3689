//! The findings as one page: figures in the papers' form, and the numbers below each.

use std::fmt::Write;

use crate::experiment::{Experiment, Reproduced};
use crate::fitted::FITTED;
use crate::markdown::LEGEND;
use crate::number::{Number, Verdict};

const STYLE: &str = include_str!("gallery.css");

/// The page as HTML, without scripts.
pub fn page(all: &[Reproduced], command: &str, version: &str) -> String {
    let counts = [Verdict::Reproduced, Verdict::InKind, Verdict::Differs, Verdict::Fitted, Verdict::Missing]
        .map(|verdict| {
            let numbers = all.iter().flat_map(|one| &one.findings.numbers);
            (verdict, numbers.filter(|number| number.verdict() == verdict).count())
        });
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("<b class=\"{}\">{count} {verdict}</b>", class(*verdict)))
        .collect();
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>The papers' evaluations beside ours</title><style>{STYLE}</style>\
         <h1>The papers' evaluations beside ours</h1><p>{}<p class=soft>Made by <code>{}</code>, version {}.\n<nav>",
        counts.join(" · "),
        escaped(command),
        escaped(version)
    );
    for one in all {
        let anchor = anchor(one.experiment);
        write!(html, "<a href=\"#{anchor}\">{}</a> ", escaped(one.experiment.id))
            .expect("text takes everything");
    }
    html += "</nav>\n<p class=soft>";
    html += &coded_emphasis(LEGEND);
    html.push('\n');
    for one in all {
        section(&mut html, one);
    }
    html += "<section><h2>Fitted parameters</h2><div class=scroll><table><tr><th>experiments<th>key<th>fitted to\n";
    for fitted in FITTED {
        let cells = [fitted.experiments, fitted.key, fitted.to].map(escaped);
        writeln!(html, "<tr><td>{}", cells.join("<td>")).expect("text takes everything");
    }
    html += "</table></div></section></html>\n";
    html
}

fn section(html: &mut String, one: &Reproduced) {
    let (Reproduced { experiment, findings, .. }, about) = (one, one.about());
    let anchor = anchor(experiment);
    write!(
        html,
        "<section id=\"{anchor}\"><h2>{}</h2><p class=soft>{} · {}{}",
        escaped(experiment.title),
        escaped(experiment.id),
        escaped(experiment.source),
        if about.is_empty() { String::new() } else { format!("<p>{}", coded(&about)) }
    )
    .expect("text takes everything");
    for picture in &findings.pictures {
        let wide = picture.figure.inline_svg(&format!("{}-w", picture.name));
        html.push_str("<figure>");
        if picture.figure.is_wide() {
            let narrow = picture.figure.stacked().inline_svg(&format!("{}-n", picture.name));
            write!(html, "<div class=wide>{wide}</div><div class=narrow>{narrow}</div>")
                .expect("text takes everything");
        } else {
            html.push_str(&wide);
        }
        let (title, caption) = (escaped(&picture.figure.title), escaped(&picture.figure.caption));
        write!(html, "<figcaption><b>{title}.</b> {caption}</figcaption></figure>")
            .expect("text takes everything");
    }
    html.push_str(&table(&findings.numbers));
    let causes = one.causes();
    if !causes.is_empty() {
        let items: Vec<String> = causes.iter().map(|cause| format!("<li>{}", coded(cause))).collect();
        write!(html, "<p>Why numbers differ:<ul>{}</ul>", items.concat()).expect("text takes everything");
    }
    html.push_str("</section>\n");
}

fn table(numbers: &[Number]) -> String {
    if numbers.is_empty() {
        return String::new();
    }
    let mut table =
        "<div class=scroll><table class=numbers><tr><th>number<th>paper<th>ours<th>verdict<th class=rule>rule\n".to_owned();
    for number in numbers {
        let ours = number.ours.map_or_else(|| "–".to_owned(), |ours| ours.to_string());
        let (verdict, unit) = (number.verdict(), number.unit);
        writeln!(
            table,
            "<tr><td>{} <span class=soft>{}</span><td>{}<td>{ours}<td class=\"{}\">{verdict}<td class=\"soft rule\">{}",
            escaped(&number.what),
            escaped(unit),
            number.paper_text(),
            class(verdict),
            number.rule
        )
        .expect("text takes everything");
    }
    table + "</table></div>"
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "good",
        Verdict::InKind => "kind",
        Verdict::Differs | Verdict::Missing => "bad",
        Verdict::Fitted => "soft",
    }
}

fn anchor(experiment: &Experiment) -> String {
    experiment.id.replace('/', "-")
}

/// The text as HTML. Parts between asterisks are emphasised.
fn coded_emphasis(text: &str) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escaped(part),
        _ => format!("<em>{}</em>", escaped(part)),
    };
    text.split('*').enumerate().map(part).collect()
}

/// The text as HTML. Parts between backquotes are code.
fn coded(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.map(part).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

//! Each equation and constant that Airpace claims to implement is cited in code, and each citation exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::{own_texts, read, root};

/// An entry in the list of a paper.
#[derive(Debug)]
struct Entry {
    /// Reason why no code cites the entry; `None` if some code must.
    exception: Option<String>,
}

/// A `Source:` in a file.
#[derive(Debug)]
struct Citation {
    at: String,
    text: String,
}

/// Papers without a list. Citations give the name of the scheme and a section.
const NAMED_PAPERS: &[(&str, &str)] = &[
    ("Allegro", "Dong et al., PCC: Re-architecting Congestion Control, NSDI 2015"),
    ("Copa", "Arun and Balakrishnan, Copa: Practical Delay-Based Congestion Control, NSDI 2018"),
    ("Sprout", "Winstein et al., Stochastic Forecasts Achieve High Throughput and Low Delay, NSDI 2013"),
    ("Vegas", "Brakmo and Peterson, TCP Vegas, IEEE JSAC 1995"),
    ("Verus", "Zaki et al., Adaptive Congestion Control for Unpredictable Cellular Networks, SIGCOMM 2015"),
    ("Vivace", "Dong et al., PCC Vivace: Online-Learning Congestion Control, NSDI 2018"),
];

/// Programs whose behaviour is a source. Citations name a file or a part of the program.
const PROGRAMS: &[&str] = &[
    "CellReplay",
    "dash.js",
    "ExoPlayer",
    "genericCC",
    "google/bbr",
    "itu-p1203",
    "itu-p1203-codecextension",
    "keithw/sprout",
    "libosmocore",
    "libutp",
    "mahimahi",
    "man-pages",
    "mobileinsight-core",
    "noq-proto",
    "ns-3",
    "passt",
    "PCC-Uspace",
    "pcc",
    "Random123",
    "SCAT",
    "SigMF",
    "sprout",
    "verus",
    "Wireshark",
];

/// Whether a source that is in no list has a known form. Standards name a document and a clause, programs a file.
fn has_known_form(source: &str) -> bool {
    let mut words = source.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match first {
        "RFC" => digits(second.trim_end_matches([',', ':', '.'])),
        "TS" | "TR" => second.split_once('.').is_some_and(|(series, number)| {
            digits(series) && number.split('-').all(|part| digits(part.trim_end_matches([',', ':', '.'])))
        }),
        "Linux" => [".c", ".h", ".rst", "tcp_"].iter().any(|part| second.contains(part)),
        "our" => second.starts_with("measurement"),
        "ITU-R" | "ITU-T" | "IEEE" | "IEC" | "WCAG" => !second.is_empty(),
        _ if PROGRAMS.contains(&first) => !second.is_empty(),
        _ if NAMED_PAPERS.iter().any(|(name, _)| *name == first) => second.starts_with('§'),
        _ => {
            // A draft by its name, or a publication as `Authors, venue year` or `Authors year`.
            first.starts_with("draft-")
                || source
                    .split(|c: char| !c.is_ascii_digit())
                    .any(|word| word.len() == 4 && ("1900".."2030").contains(&word))
        }
    }
}

/// All sources that a text names: `Source:` lines in comments, and `source = "…"` in a scenario.
///
/// Text in parentheses is an explanation. `;` separates several sources; other text may also follow a `;`.
fn citations(path: &str, text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let comment = line.trim_start().trim_start_matches(['/', '!', '#', '*', ' ']);
        let inline = ["// Source: ", "# Source: "].iter().find_map(|mark| Some(line.split_once(mark)?.1));
        let key = line.strip_prefix("source = \"").filter(|_| path.starts_with("scenarios/"));
        let cited =
            comment.strip_prefix("Source: ").or(inline).or(key.map(|rest| rest.trim_end_matches('"')));
        for (place, part) in
            cited.map(without_parentheses).iter().flat_map(|cited| cited.split(';')).enumerate()
        {
            let text = part.trim().trim_end_matches('.').to_owned();
            if place == 0 || is_listed(&text) || has_known_form(&text) {
                found.push(Citation { at: format!("{path}:{}", number + 1), text });
            }
        }
    }
    found
}

/// Removes the parts in parentheses from `text`. A parenthesis that is not closed extends to the end of the line.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0usize;
    let mut is_outside = |c: char| {
        depth += usize::from(c == '(');
        let is_outside = depth == 0;
        depth = depth.saturating_sub(usize::from(c == ')'));
        is_outside
    };
    text.chars().filter(|c| is_outside(*c)).collect()
}

/// Whether a citation refers to a paper with a list. The list must then contain the cited entry.
fn is_listed(citation: &str) -> bool {
    citation.split_whitespace().next().is_some_and(|first| listed_papers().iter().any(|paper| paper == first))
}

/// Papers with lists in `docs/papers/`, by the first word of their identifiers.
fn listed_papers() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let first_word = |id: &String| id.split_whitespace().next().unwrap_or_default().to_owned();
        lists()
            .iter()
            .flat_map(|(path, text)| parse_list(path, text))
            .map(|(id, _)| first_word(&id))
            .collect()
    })
}

/// The lists in `docs/papers/`: path and text.
fn lists() -> Vec<(String, String)> {
    let names = std::fs::read_dir(root().join("docs/papers")).expect("the folder of the papers' lists");
    let mut paths: Vec<_> = names
        .map(|name| format!("docs/papers/{}", name.expect("a name").file_name().to_string_lossy()))
        .filter(|path| path.ends_with(".toml"))
        .collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// The entry that a citation names: the longest identifier with which the citation starts.
fn entry_of<'a>(citation: &str, entries: &'a BTreeMap<String, Entry>) -> Option<&'a str> {
    let matches = entries.keys().filter(|id| {
        citation
            .strip_prefix(id.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',', ':', '(']) && !continues(rest))
    });
    matches.max_by_key(|id| id.len()).map(String::as_str)
}

/// Whether the text after an identifier is part of a longer identifier: `§4.2 Eq. 3` is not `§4.2`.
fn continues(rest: &str) -> bool {
    ["Eq.", "Fig.", "Table", "Alg.", "§"]
        .iter()
        .any(|word| rest.trim_start_matches([' ', ',']).starts_with(word))
}

/// Errors in citations, given the papers' lists.
fn complaints(citations: &[Citation], entries: &BTreeMap<String, Entry>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut cited = BTreeSet::new();
    for Citation { at, text } in citations {
        match entry_of(text, entries) {
            Some(id) => _ = cited.insert(id),
            None if is_listed(text) => {
                complaints.push(format!("{at} cites `{text}`, which docs/papers/ does not list"))
            }
            None if has_known_form(text) => {}
            None => {
                complaints.push(format!("{at} cites `{text}`: no RFC, TS, draft, program or dated paper"))
            }
        }
    }
    for (id, entry) in entries {
        match (&entry.exception, cited.contains(id.as_str())) {
            (None, false) => {
                complaints.push(format!("no code cites `{id}`, and its entry gives no exception"))
            }
            (Some(reason), true) => {
                complaints.push(format!("`{id}` is cited, yet its entry excepts it: {reason}"))
            }
            (Some(reason), false) if reason.trim().is_empty() => {
                complaints.push(format!("the exception of `{id}` has no reason"));
            }
            _ => {}
        }
    }
    complaints
}

/// Parses the list of a paper into its entries.
fn parse_list(path: &str, text: &str) -> BTreeMap<String, Entry> {
    let list: toml::Table = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
    let entries =
        list.get("entry").and_then(|it| it.as_array()).unwrap_or_else(|| panic!("{path} has no [[entry]]"));
    let mut found = BTreeMap::new();
    for entry in entries {
        let word = |key: &str| entry.get(key).and_then(|it| it.as_str()).map(str::to_owned);
        let id = word("id").unwrap_or_else(|| panic!("{path}: an entry has no id: {entry}"));
        assert!(word("what").is_some_and(|what| !what.is_empty()), "{path}: `{id}` does not say what it is");
        let earlier = found.insert(id.clone(), Entry { exception: word("exception") });
        assert!(earlier.is_none(), "{path}: `{id}` is there twice");
    }
    found
}

#[test]
fn every_equation_is_cited_and_every_citation_exists() {
    let mut entries = BTreeMap::new();
    for (path, text) in lists() {
        entries.extend(parse_list(&path, &text));
    }
    let Some(texts) = own_texts() else { return };
    let cited: Vec<_> = texts
        .iter()
        .filter(|(path, _)| {
            path.starts_with("crates/") && !path.starts_with("crates/cli/tests/")
                || path.starts_with("scenarios/")
        })
        .filter(|(path, _)| path.ends_with(".rs") || path.ends_with(".toml"))
        .flat_map(|(path, text)| citations(path, text))
        .collect();
    let complaints = complaints(&cited, &entries);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn made_up_and_missing_citations_are_found() {
    let list = "[[entry]]\nid = \"PBE-CC §4.2.1 Eq. 3\"\nwhat = \"capacity\"\n\
                [[entry]]\nid = \"PBE-CC §4.2.1\"\nwhat = \"the section\"\n\
                [[entry]]\nid = \"PBE-CC §9\"\nwhat = \"outlook\"\nexception = \"nothing to implement\"\n";
    let entries = parse_list("list", list);
    let told = |source: &str| complaints(&citations("file.rs", source), &entries);

    let whole = "/// Source: PBE-CC §4.2.1 Eq. 3\nlet x = 1; // Source: PBE-CC §4.2.1; RFC 9438 §4.3\n\
                 //! Source: TS 36.213 §7.1.7.2.1 Table 7.1.7.2.1-1\n/// Source: draft-ietf-ccwg-bbr §4\n\
                 // Source: Ha, Rhee, Xu 2008\n";
    assert!(told(whole).is_empty(), "sources that exist are fine: {:?}", told(whole));

    let made_up = format!("{whole}/// Source: PBE-CC §4.2.1 Eq. 77\n");
    assert!(
        told(&made_up)[0].contains("file.rs:6 cites `PBE-CC §4.2.1 Eq. 77`"),
        "an equation that is not there"
    );
    let explained = format!("{whole}/// Source: PBE-CC §4.2.1 (a; b); where the rest is silent\n");
    assert!(told(&explained).is_empty(), "words may explain a source: {:?}", told(&explained));
    let named = format!("{whole}/// Source: Copa §2.2; genericCC markoviancc\n");
    assert!(
        told(&named).is_empty(),
        "a paper by its scheme's name, a program by its part: {:?}",
        told(&named)
    );
    assert!(told(&format!("{whole}/// Source: Copa, somewhere\n"))[0].contains("Copa, somewhere"));
    let second = format!("{whole}/// Source: RFC 9438 §4.3; PBE-CC §77\n");
    assert!(told(&second)[0].contains("PBE-CC §77"), "the second of two sources");
    let vague = format!("{whole}/// Source: common sense\n");
    assert!(told(&vague)[0].contains("common sense"), "a source that cannot be looked up");
    assert!(
        told("/// Source: PBE-CC §4.2.1\n")[0].contains("no code cites `PBE-CC §4.2.1 Eq. 3`"),
        "an equation forgotten"
    );
    let excepted = format!("{whole}/// Source: PBE-CC §9\n");
    assert!(told(&excepted)[0].contains("excepts it"), "an exception that is none");
}

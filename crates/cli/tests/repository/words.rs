//! Comments, guides, help texts and docstrings are in plain English.
//!
//! Seven constructs mark sentences that readers had to read twice. All of them leave out the subject or use a verb of people
//! for data:
//!
//! | construct | example | plain form |
//! | --- | --- | --- |
//! | verb of speech | `a report that tells the rate` | a report that contains the rate |
//! | verb of hearing | `the cell is heard` | the cell is received |
//! | `what` as a noun | `what was sent arrives` | transmitted packets arrive |
//! | `begin` | `the run begins` | the run starts |
//! | fragment | `With no cell, silence.` | The output is empty if there is no cell. |
//! | `so many` | `after so many packets` | after this many packets |
//! | `of which` | `ten packets, of which two are lost` | ten packets; two are lost |
//!
//! Text between backticks and in code blocks is not counted.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{read, tracked_files};

/// Maximum number of constructs per thousand sentences of a row (a crate, the guides, the help texts, or Python).
///
/// Chosen: projects of the same kind in plain English have up to 7 of each construct. Each construct is right at some places
/// (a user says, a phase begins), so a limit of zero would only lead to paraphrases. Before the texts were revised, most rows
/// had several times this number.
const MAX_PER_THOUSAND: usize = 15;

/// Number of sentences in the message of a failure.
const SHOWN: usize = 12;

/// Minimum number of words of a sentence. Shorter ones are labels.
const MIN_WORDS: usize = 4;

/// A sentence of a text, with the number of the line in which it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sentence {
    line: usize,
    text: String,
}

/// Kind of text in a file: which of its lines are prose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prose {
    /// Comments of Rust.
    Rust,
    /// Comments of Rust that clap shows as help.
    Help,
    /// Comments of C.
    C,
    /// Comments and docstrings.
    Python,
    /// Whole file.
    Markdown,
}

/// Prose of one line. `None` if the line is code. `in_docstring` is the state of Python's docstrings between lines.
fn prose_of(line: &str, prose: Prose, in_docstring: &mut bool) -> Option<String> {
    let line = line.trim();
    let text = match prose {
        Prose::Markdown => line,
        Prose::Rust => line.strip_prefix("//")?.trim_start_matches(['/', '!']),
        Prose::Help => line.strip_prefix("///")?,
        Prose::C => line
            .strip_prefix("//")
            .or(line.strip_prefix("/*"))
            .or(line.strip_prefix('*'))?
            .trim_end_matches("*/"),
        Prose::Python => {
            let was_inside = *in_docstring;
            let quotes = line.matches("\"\"\"").count();
            *in_docstring ^= quotes % 2 == 1;
            if was_inside || line.starts_with("\"\"\"") {
                return Some(line.replace("\"\"\"", ""));
            }
            line.strip_prefix('#')?
        }
    };
    Some(text.trim().to_owned())
}

/// All sentences of a text. Paragraphs end at empty lines and at code; rows of tables are left out.
fn sentences(text: &str, prose: Prose) -> Vec<Sentence> {
    let mut all = vec![];
    let (mut is_code, mut in_docstring) = (false, false);
    let mut paragraph = vec![];
    for (number, line) in (1..).zip(text.lines()) {
        match prose_of(line, prose, &mut in_docstring) {
            Some(fence) if fence.starts_with("```") => {
                is_code = !is_code;
                split(&mut paragraph, &mut all);
            }
            Some(text) if !text.is_empty() => {
                if !is_code && !text.starts_with('|') {
                    paragraph.push((number, text));
                }
            }
            other => {
                is_code &= other.is_some();
                split(&mut paragraph, &mut all);
            }
        }
    }
    split(&mut paragraph, &mut all);
    all
}

/// Splits a paragraph into sentences, and empties it. A sentence ends at a stop in front of a capital letter or a name.
fn split(paragraph: &mut Vec<(usize, String)>, all: &mut Vec<Sentence>) {
    let mut sentence: Option<Sentence> = None;
    for (line, text) in paragraph.drain(..) {
        for word in text.split_whitespace() {
            let starts = word.starts_with(|first: char| first.is_uppercase() || "`[".contains(first));
            if starts
                && sentence.as_ref().is_some_and(|sentence| sentence.text.ends_with(['.', ';', '!', '?']))
            {
                all.extend(sentence.take());
            }
            match &mut sentence {
                Some(sentence) => {
                    sentence.text.push(' ');
                    sentence.text.push_str(word);
                }
                None => sentence = Some(Sentence { line, text: word.to_owned() }),
            }
        }
    }
    all.extend(sentence);
    all.retain(|sentence| sentence.text.split(' ').count() >= MIN_WORDS);
}

/// Names of the constructs in a sentence; each is named once.
fn constructs(sentence: &str) -> Vec<&'static str> {
    let outside_code: String = sentence.split('`').step_by(2).collect::<Vec<_>>().join(" code ");
    let lower = outside_code.to_lowercase();
    let first = outside_code.split(' ').next().unwrap_or_default();
    let is_fragment = ["Of", "Where", "With", "Beside", "Behind"].contains(&first);
    // Most sentences contain none of these letters. The check for whole words is slow in a build for tests.
    let letters = ["tell", "told", "say", "said", "hear", "what", "beg", "so ", "of wh"];
    if !is_fragment && !letters.iter().any(|part| lower.contains(part)) {
        return vec![];
    }
    let words: Vec<&str> =
        lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let has_pair =
        |first: &str, list: &[&str]| words.windows(2).any(|pair| pair[0] == first && list.contains(&pair[1]));
    let is_amount = |three: &[&str]| {
        three[0] == "so"
            && ["many", "much", "long", "often", "late", "far"].contains(&three[1])
            && !three.get(2).is_some_and(|next| ["as", "that"].contains(next))
    };
    let after_what =
        ["is", "was", "are", "were", "it", "they", "has", "the", "a", "may", "can", "must", "came", "comes"];
    let found = [
        ("verb of speech", has(&["tell", "tells", "told", "say", "says", "said"])),
        ("verb of hearing", has(&["hear", "hears", "heard"])),
        ("`what` as a noun", has_pair("what", &after_what)),
        ("`begin`", has(&["begin", "begins", "beginning", "began", "begun"])),
        ("fragment", is_fragment),
        ("`so many`", (0..words.len().saturating_sub(1)).any(|at| is_amount(&words[at..]))),
        ("`of which`", has_pair("of", &["which", "whom", "whose"])),
    ];
    found.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

/// Texts of one row: path, contents, kind.
type Texts = Vec<(String, String, Prose)>;

/// Complaint about a row that has too many constructs: file, line and text of its sentences with the most of them. A fraction
/// of a construct is rounded up, so that a small crate may have one.
fn complaint(row: &str, texts: &Texts) -> Option<String> {
    let mut count = 0;
    let mut marked = vec![];
    for (path, text, prose) in texts {
        for sentence in sentences(text, *prose) {
            count += 1;
            let found = constructs(&sentence.text);
            if !found.is_empty() {
                marked.push((found, path, sentence));
            }
        }
    }
    let total: usize = marked.iter().map(|(found, ..)| found.len()).sum();
    let allowed = (count * MAX_PER_THOUSAND).div_ceil(1000);
    if total <= allowed {
        return None;
    }
    let mut message =
        format!("{row}: {total} constructs in {count} sentences, at most {allowed}; for example:\n");
    marked.sort_by_key(|(found, ..)| std::cmp::Reverse(found.len()));
    for (found, path, Sentence { line, text }) in marked.iter().take(SHOWN) {
        writeln!(message, "  {path}:{line}: ({}) {text}", found.join(", ")).expect("a string");
    }
    Some(message)
}

/// Rows that a file belongs to, each with the kind of its prose.
fn rows(path: &str) -> Vec<(String, Prose)> {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let kind = match ending {
        "rs" => Prose::Rust,
        "c" | "h" => Prose::C,
        "py" => Prose::Python,
        "md" => Prose::Markdown,
        _ => return vec![],
    };
    let mut rows = vec![];
    match (path.strip_prefix("crates/").and_then(|rest| rest.split_once('/')), kind) {
        (Some((name, _)), Prose::Rust | Prose::C) => rows.push((format!("crate {name}"), kind)),
        (None, Prose::Markdown) if path.starts_with("docs/") || path == "README.md" => {
            rows.push(("guides".to_owned(), kind));
        }
        (None, Prose::Python) if path.starts_with("python/") => rows.push(("python".to_owned(), kind)),
        _ => {}
    }
    if path.starts_with("crates/cli/src/") && kind == Prose::Rust {
        rows.push(("help".to_owned(), Prose::Help));
    }
    rows
}

#[test]
fn comments_guides_help_and_docstrings_are_in_plain_english() {
    let Some(files) = tracked_files() else { return };
    let mut texts = BTreeMap::<String, Texts>::new();
    for path in files.into_iter().filter(|path| !path.contains("/vendor/")) {
        for (row, prose) in rows(&path) {
            texts.entry(row).or_default().push((path.clone(), read(&path), prose));
        }
    }
    assert!(["crate phy", "guides", "help", "python"].iter().all(|row| texts.contains_key(*row)), "all rows");
    let complaints: Vec<_> = texts.iter().filter_map(|(row, texts)| complaint(row, texts)).collect();
    assert!(complaints.is_empty(), "write these in plain English:\n{}", complaints.join("\n"));
}

#[test]
fn every_construct_is_found_outside_code() {
    let cases: [(&str, &[&str]); 9] = [
        ("A report that tells the rate.", &["verb of speech"]),
        ("The cell is heard by two antennas.", &["verb of hearing"]),
        ("The receiver counts what was sent.", &["`what` as a noun"]),
        ("The run begins at zero seconds.", &["`begin`"]),
        ("With no cell, silence is the output.", &["fragment"]),
        ("It stops after so many packets.", &["`so many`"]),
        ("Ten packets arrive, of which two are late.", &["`of which`"]),
        ("It waits so long that the packet expires, unlike `what is told`.", &[]),
        ("The receiver counts the transmitted packets.", &[]),
    ];
    for (sentence, expected) in cases {
        assert_eq!(constructs(sentence), expected, "{sentence}");
    }
}

#[test]
fn sentences_have_the_line_of_their_first_word() {
    let rust = "/// One sentence that spans\n/// two lines. The next sentence of it.\nlet code = 1; // no\n\n//! ```\n//! code that is no prose\n//! ```\n//! | a | row of a table |\n// Last comment of the file.\n";
    let found: Vec<_> = sentences(rust, Prose::Rust).into_iter().map(|one| (one.line, one.text)).collect();
    let expected = [
        (1, "One sentence that spans two lines."),
        (2, "The next sentence of it."),
        (9, "Last comment of the file."),
    ];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    let python = "def f():\n    \"\"\"Return the rate of a flow.\n\n    Two values in one tuple.\"\"\"\n    return 1\n";
    let lines: Vec<_> = sentences(python, Prose::Python).into_iter().map(|one| one.line).collect();
    assert_eq!(lines, [2, 4]);
    let c = "/* A comment of two\n * lines in C. */\nint x;\n";
    assert_eq!(sentences(c, Prose::C).len(), 1);
}

#[test]
fn a_row_in_dialect_is_refused_with_file_line_and_sentence() {
    let plain = "/// The receiver counts the transmitted packets.\n\n".repeat(100);
    let bad = "/// Of what was sent, so many packets are told of.\n";
    let row = |text: String| vec![("crates/sample/src/lib.rs".to_owned(), text, Prose::Rust)];
    assert_eq!(complaint("crate sample", &row(plain.clone())), None);
    let message = complaint("crate sample", &row(plain + bad)).expect("four constructs in 101 sentences");
    assert!(
        message.contains(
            "crates/sample/src/lib.rs:201: (verb of speech, `what` as a noun, fragment, `so many`) Of what was sent"
        ),
        "{message}"
    );
}

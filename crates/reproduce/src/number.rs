//! A number of a paper beside ours, and the rule by which it is judged.

use std::fmt;

use airpace_run::statistics::Estimate;
use serde::{Deserialize, Serialize};

/// A number of a paper beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Number {
    /// The measured quantity and its conditions.
    pub what: String,
    /// Unit; empty for a ratio.
    pub unit: &'static str,
    /// The paper's number; `None` if the paper makes the claim without a number.
    pub paper: Option<f64>,
    /// Our number; `None` if the runs have no value.
    pub ours: Option<Estimate>,
    /// The rule of the verdict.
    pub rule: Rule,
    /// Whether a parameter of our world was fitted to this number, so that it proves nothing.
    pub is_fitted: bool,
}

/// Rule by which our number is compared with the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// At most this factor above or below the paper's number.
    Factor(f64),
    /// On the same side of 1 as the paper's ratio, and at most this factor above or below it. A ratio on the same side that
    /// is farther away agrees in kind.
    Side(f64),
    /// At most this much above or below the paper's number, in its unit.
    Within(f64),
    /// At least this number.
    AtLeast(f64),
    /// At most this number.
    AtMost(f64),
}

/// Verdict on a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rule holds.
    Reproduced,
    /// The direction agrees, the size does not.
    InKind,
    /// The rule does not hold.
    Differs,
    /// The number was used to fit a parameter.
    Fitted,
    /// The runs have no value.
    Missing,
}

impl Number {
    /// A number of a paper, judged by `rule`.
    pub fn new(
        what: impl Into<String>,
        unit: &'static str,
        paper: f64,
        ours: Option<Estimate>,
        rule: Rule,
    ) -> Number {
        Number { paper: Some(paper), ..Number::claim(what, unit, ours, rule) }
    }

    /// A claim of a paper without a number. The rule is one with a bound of its own.
    pub fn claim(what: impl Into<String>, unit: &'static str, ours: Option<Estimate>, rule: Rule) -> Number {
        Number { what: what.into(), unit, paper: None, ours, rule, is_fitted: false }
    }

    /// The paper's number as text.
    pub fn paper_text(&self) -> String {
        self.paper.map_or_else(|| "–".to_owned(), four_digits)
    }

    /// The number, if a parameter was fitted to it.
    pub fn fitted(self) -> Number {
        Number { is_fitted: true, ..self }
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        match self.ours {
            None => Verdict::Missing,
            Some(_) if self.is_fitted => Verdict::Fitted,
            Some(ours) => self.rule.judge(self.paper.unwrap_or(f64::NAN), ours.value),
        }
    }
}

/// A number of a paper: with the digits that the paper prints, at most four.
fn four_digits(paper: f64) -> String {
    let decimals = (3 - libm::floor(libm::log10(paper.abs().max(1e-9))) as i32).clamp(0, 6) as usize;
    let text = format!("{paper:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

impl Rule {
    /// Judges our number.
    pub fn judge(self, paper: f64, ours: f64) -> Verdict {
        let is_near = |factor: f64| (1.0 / factor..=factor).contains(&(ours / paper));
        let holds = match self {
            Rule::Factor(factor) => is_near(factor),
            Rule::Side(factor) => {
                let is_same_side = (ours > 1.0) == (paper > 1.0);
                match (is_same_side, is_near(factor)) {
                    (true, true) => return Verdict::Reproduced,
                    (true, false) => return Verdict::InKind,
                    _ => false,
                }
            }
            Rule::Within(most) => (ours - paper).abs() <= most,
            Rule::AtLeast(least) => ours >= least,
            Rule::AtMost(most) => ours <= most,
        };
        if holds { Verdict::Reproduced } else { Verdict::Differs }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Factor(factor) => write!(f, "within a factor of {factor}"),
            Rule::Side(factor) => write!(f, "same side of 1, within a factor of {factor}"),
            Rule::Within(most) => write!(f, "± {most}"),
            Rule::AtLeast(least) => write!(f, "at least {least}"),
            Rule::AtMost(most) => write!(f, "at most {most}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Reproduced => "reproduced",
            Verdict::InKind => "in kind",
            Verdict::Differs => "differs",
            Verdict::Fitted => "fitted",
            Verdict::Missing => "no value",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_judges_without_looking_at_anything_else() {
        for (rule, paper, ours, verdict) in [
            (Rule::Factor(1.2), 55.0, 52.0, Verdict::Reproduced),
            (Rule::Factor(1.2), 55.0, 40.0, Verdict::Differs),
            (Rule::Side(1.5), 1.54, 1.43, Verdict::Reproduced),
            (Rule::Side(1.5), 1.54, 3.1, Verdict::InKind),
            (Rule::Side(1.5), 1.04, 0.9, Verdict::Differs),
            (Rule::Side(1.5), 1.04, 1.0, Verdict::Differs),
            (Rule::Side(1.3), 0.8, 0.79, Verdict::Reproduced),
            (Rule::Within(10.0), 18.0, 9.0, Verdict::Reproduced),
            (Rule::Within(10.0), 18.0, 7.0, Verdict::Differs),
            (Rule::AtLeast(0.95), 0.99, 0.95, Verdict::Reproduced),
            (Rule::AtMost(5.0), 3.0, 5.5, Verdict::Differs),
        ] {
            assert_eq!(rule.judge(paper, ours), verdict, "{rule} {paper} {ours}");
        }
    }

    #[test]
    fn a_number_of_a_paper_keeps_its_digits() {
        let texts = [10.35, 1.046, 0.0126, 0.5, 1000.0, 94.1, 0.0, 98.73, 0.0097].map(four_digits);
        assert_eq!(texts, ["10.35", "1.046", "0.0126", "0.5", "1000", "94.1", "0", "98.73", "0.0097"]);
    }

    #[test]
    fn a_fitted_number_and_a_missing_one_have_no_verdict_of_a_rule() {
        let ours = Some(Estimate { value: 55.0, interval: None });
        let number = |ours| Number::new("rate", "Mbit/s", 55.0, ours, Rule::Factor(1.1));
        assert_eq!(number(ours).fitted().verdict(), Verdict::Fitted);
        assert_eq!(number(None).verdict(), Verdict::Missing);
    }
}

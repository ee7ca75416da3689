//! The list of schemes, and the choice of one of them by text.
//!
//! A choice is written as `name[+ran][@preset][:option=value]…`, for example `pbe`, `pbe@paper`,
//! `pbe:floor=off:cwnd_slack_ms=6`, `cbr:rate_mbps=60`, `copa+ran@pantheon`. The module [`ran`] describes `+ran`.

use std::fmt;
use std::sync::Arc;

use airpace_core::{Bytes, Refused};

use crate::controller::Inspect;
use crate::scheme::{Ends, Options, Scheme, SchemeError, Setup, Style};
use crate::{
    allegro, bbr, bbr3, biscay, cbr, copa, cubic, ledbat, morc, oracle, pbe, ran, reno, sprout, vegas, verus,
    vivace,
};

/// All schemes, in the order of lists and tables. To add a scheme, write one file and add one line to this list.
#[rustfmt::skip]
pub static SCHEMES: &[&Scheme] = &[
    &pbe::SCHEME,
    &biscay::SCHEME,
    &morc::SCHEME,
    &bbr::SCHEME,
    &bbr3::SCHEME,
    &cubic::SCHEME,
    &reno::SCHEME,
    &vegas::SCHEME,
    &copa::SCHEME,
    &ledbat::SCHEME,
    &allegro::SCHEME,
    &vivace::SCHEME,
    &sprout::SCHEME,
    &verus::SCHEME,
    &oracle::SCHEME,
    &cbr::SCHEME,
];

/// A function that creates the two endpoints of a flow for a scheme that the caller provides.
pub type Make = Arc<dyn Fn(&Setup) -> Result<Ends, Refused> + Send + Sync>;

/// Placeholder scheme of the choices made with [`SchemeSpec::own`]. Users cannot type it, because it is not in the
/// list.
pub static OWN: Scheme = Scheme {
    name: "own",
    summary: "a controller that the caller brings along",
    source: "the caller's own program",
    style: Style { colour: "#808080", marker: "circle" },
    presets: &[],
    options: &[],
    takes_ran: false,
    build: |_, _| Err(SchemeError::Make("own".to_owned(), Refused::new("no function creates it"))),
};

/// A parsed choice: scheme, preset and options. Scheme, preset and options have been checked: all of them exist.
#[derive(Clone)]
pub struct SchemeSpec {
    /// Creates the endpoints if the scheme is the caller's own.
    own: Option<Make>,
    scheme: &'static Scheme,
    with_ran: bool,
    preset: Option<&'static str>,
    text: String,
    options: Options,
}

/// Every scheme, every scheme that accepts `+ran` with `+ran`, and every preset, in the form that users type.
pub fn choices() -> Vec<String> {
    let mut choices = vec![];
    for scheme in SCHEMES {
        choices.push(scheme.name.to_owned());
        choices.extend(scheme.takes_ran.then(|| with_ran_suffix(scheme)));
        choices.extend(scheme.presets.iter().map(|preset| format!("{}@{}", scheme.name, preset.name)));
    }
    choices
}

/// The scheme of this name.
///
/// # Errors
/// No scheme has this name.
pub fn find(name: &str) -> Result<&'static Scheme, SchemeError> {
    SCHEMES.iter().copied().find(|scheme| scheme.name == name).ok_or_else(|| SchemeError::Scheme {
        name: name.to_owned(),
        known: SCHEMES.iter().map(|scheme| scheme.name).collect(),
    })
}

fn with_ran_suffix(scheme: &Scheme) -> String {
    format!("{}{}", scheme.name, ran::SUFFIX)
}

impl SchemeSpec {
    /// The choices that a word stands for. `all`: every scheme. `presets`: every scheme without suffix, every scheme
    /// that accepts `+ran` with `+ran`, and every scheme with each of its presets. Any other word is one choice.
    ///
    /// # Errors
    /// The same errors as [`SchemeSpec::parse`].
    pub fn named(word: &str) -> Result<Vec<SchemeSpec>, SchemeError> {
        let texts = match word {
            "all" => SCHEMES.iter().map(|scheme| scheme.name.to_owned()).collect(),
            "presets" => choices(),
            one => vec![one.to_owned()],
        };
        texts.iter().map(|text| SchemeSpec::parse(text)).collect()
    }

    /// Parses a choice.
    ///
    /// # Errors
    /// The scheme, preset or option does not exist, or an option has an invalid value. If a name does not exist, the
    /// error contains this name, the most similar existing name, and all existing names.
    pub fn parse(text: &str) -> Result<SchemeSpec, SchemeError> {
        let mut parts = text.split(':');
        let head = parts.next().unwrap_or_default();
        let (name, preset) = head.split_once('@').map_or((head, None), |(name, preset)| (name, Some(preset)));
        let (name, suffix) = name.split_at(name.find('+').unwrap_or(name.len()));
        let scheme = find(name)?;
        let with_ran = suffix == ran::SUFFIX && scheme.takes_ran;
        if !suffix.is_empty() && !with_ran {
            let known =
                SCHEMES.iter().filter(|scheme| scheme.takes_ran).map(|scheme| with_ran_suffix(scheme));
            return Err(SchemeError::Suffix {
                scheme: scheme.name,
                suffix: suffix.to_owned(),
                known: known.collect(),
            });
        }
        let mut options = Options::defaults(scheme);
        let find = |wanted: &str| {
            let preset = scheme.presets.iter().find(|preset| preset.name == wanted);
            preset.ok_or_else(|| SchemeError::Preset {
                scheme: scheme.name,
                preset: wanted.to_owned(),
                known: scheme.presets.iter().map(|preset| preset.name).collect(),
            })
        };
        let preset = preset.map(find).transpose()?;
        for (option, value) in preset.map_or(&[][..], |preset| preset.set) {
            options.set(option, value)?;
        }
        let mut said = Vec::new();
        for part in parts {
            let (option, value) = part.split_once('=').ok_or_else(|| options.unknown(part))?;
            options.set(option, value)?;
            if said.contains(&option) {
                return Err(SchemeError::Twice(scheme.name, option.to_owned()));
            }
            said.push(option);
        }
        let preset = preset.map(|preset| preset.name);
        let spec = SchemeSpec { own: None, scheme, with_ran, preset, text: text.to_owned(), options };
        // The scheme is built once, so that an invalid value is reported now and not after a run has started.
        spec.build(&Setup::seeded(Bytes(1500), 0))?;
        Ok(spec)
    }

    /// A scheme that is not in the list. `make` creates its endpoints; results label it `name`.
    ///
    /// # Errors
    /// The name belongs to a scheme in the list, or is a reserved word, or it contains characters other than letters,
    /// digits, `_`, `-` and `.`.
    pub fn own(name: &str, make: Make) -> Result<SchemeSpec, SchemeError> {
        let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let is_taken = SCHEMES.iter().any(|scheme| scheme.name == name) || ["all", "presets"].contains(&name);
        if name.is_empty() || !name.chars().all(is_plain) || is_taken {
            return Err(SchemeError::Name(name.to_owned()));
        }
        Ok(SchemeSpec {
            own: Some(make),
            scheme: &OWN,
            with_ran: false,
            preset: None,
            text: name.to_owned(),
            options: Options::defaults(&OWN),
        })
    }

    /// The scheme.
    pub fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    /// Whether the waits for radio retransmissions are subtracted from the delays that the scheme sees.
    pub fn with_ran(&self) -> bool {
        self.with_ran
    }

    /// The preset, if one was named.
    pub fn preset(&self) -> Option<&'static str> {
        self.preset
    }

    /// The choice as the user typed it, or the label set by [`SchemeSpec::labelled`]. Results are labelled with this
    /// text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same choice with another label in results. The label distinguishes results from outside the simulator from
    /// results of the simulator.
    pub fn labelled(&self, label: String) -> SchemeSpec {
        SchemeSpec { text: label, ..self.clone() }
    }

    /// The values of all options. Options that the user did not set have their default values.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Creates the two endpoints of a flow.
    ///
    /// # Errors
    /// The value of an option cannot be read.
    pub fn build(&self, setup: &Setup) -> Result<Ends, SchemeError> {
        if let Some(make) = &self.own {
            return make(setup).map_err(|reason| SchemeError::Make(self.text.clone(), reason));
        }
        let ends = (self.scheme.build)(setup, &self.options)?;
        Ok(if self.with_ran { ran::wrap(ends) } else { ends })
    }

    /// The names of the values that controller and receiver report in [`crate::controller::Inspect`], the controller's
    /// first.
    ///
    /// # Errors
    /// The value of an option cannot be read.
    pub fn inspected(&self) -> Result<Vec<&'static str>, SchemeError> {
        let ends = self.build(&Setup::seeded(Bytes(1500), 0))?;
        let mut inspect = Inspect::default();
        ends.controller.inspect(&mut inspect);
        if let Some(receiver) = &ends.receiver {
            receiver.inspect(&mut inspect);
        }
        Ok(inspect.values.into_iter().map(|(name, _)| name).collect())
    }
}

impl fmt::Debug for SchemeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SchemeSpec").field(&self.text).finish()
    }
}

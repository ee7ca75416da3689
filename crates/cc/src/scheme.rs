//! The list of schemes that users choose by name, with their presets and options.
//!
//! A choice is written as `name[+ran][@preset][:option=value]…`, for example `pbe`, `pbe@paper`,
//! `pbe:floor=off:cwnd_slack_ms=6`, `cbr:rate_mbps=60`, `copa+ran@pantheon`. The module [`ran`] describes `+ran`.

use std::fmt;
use std::sync::Arc;

use airpace_core::nearest::instead;
use airpace_core::{Bytes, Rng, Streams};

use crate::controller::{Controller, Inspect, Receiver};
use crate::{
    allegro, bbr, bbr3, biscay, cbr, copa, cubic, ledbat, morc, oracle, pbe, ran, reno, sprout, vegas, verus,
    vivace,
};

/// All schemes, in the order of lists and tables. A new scheme is one file and one line here.
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

/// A congestion control scheme as users see it.
pub struct Scheme {
    /// The name that users type.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The paper or standard that describes the scheme.
    pub source: &'static str,
    /// Colour and marker of the scheme, the same in every figure.
    pub style: Style,
    /// Named sets of options, besides the default one.
    pub presets: &'static [Preset],
    /// The options and their default values.
    pub options: &'static [OptionSpec],
    /// Whether the scheme can be combined with `+ran`: it reacts to delays, and these contain the waits for radio
    /// retransmissions.
    pub takes_ran: bool,
    /// Creates the two endpoints of one flow.
    pub build: fn(&Setup, &Options) -> Result<Ends, SchemeError>,
}

/// Colour (from a palette that colour-blind readers can distinguish) and marker of a scheme in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// `#rrggbb`.
    pub colour: &'static str,
    /// One of `circle`, `rect`, `triangle`, `diamond`, `pin`, `arrow`, `roundRect`.
    pub marker: &'static str,
}

/// A named set of options.
pub struct Preset {
    /// The text after the `@`.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The options that differ from the default.
    pub set: &'static [(&'static str, &'static str)],
}

/// One option of a scheme.
pub struct OptionSpec {
    /// The option's name, which ends in its unit.
    pub name: &'static str,
    /// The value if the user gives none.
    pub default: &'static str,
    /// One line for lists.
    pub summary: &'static str,
}

/// Parameters from which every scheme builds the endpoints of a flow.
pub struct Setup {
    /// Bytes of a full-sized packet on the wire.
    pub mss: Bytes,
    /// The flow's own random number generator.
    pub rng: Rng,
}

/// The two endpoints of a flow.
pub struct Ends {
    /// The controller at the sender.
    pub controller: Box<dyn Controller>,
    /// The scheme's part at the receiver, if it has one.
    pub receiver: Option<Box<dyn Receiver>>,
}

/// Creates the two endpoints of a flow for a scheme that the caller provides. Its error is one sentence.
pub type Make = Arc<dyn Fn(&Setup) -> Result<Ends, String> + Send + Sync>;

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
    build: |_, _| Err(SchemeError::Scheme("own".to_owned())),
};

/// A parsed choice: scheme, preset and options. All of them are known to exist.
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

/// Maximum value of a numeric option.
///
/// Chosen: more than needed in any unit that is used. Larger values would only cost time and memory.
const MOST: f64 = 1e9;

/// The options of one choice; options that were not given have their default values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    scheme: &'static str,
    values: Vec<(&'static str, String)>,
}

/// The reason why a choice of scheme is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeError {
    /// No scheme of this name.
    Scheme(String),
    /// The scheme's name is followed by a suffix that this scheme does not accept.
    Suffix(&'static str, String),
    /// The scheme has no such preset.
    Preset(&'static str, String),
    /// The scheme has no such option.
    Option(&'static str, String),
    /// The option cannot have this value. The last string lists the valid values.
    Value(&'static str, String, String, String),
    /// The option is set twice.
    Twice(&'static str, String),
    /// The name is not allowed for an own scheme.
    Name(String),
    /// The caller's function failed to create an own scheme of this name; the second string is the reason.
    Make(String, String),
    /// The scheme uses the receiving device to control what that device receives, so it cannot control an upload.
    DownloadsOnly(String),
}

/// Every scheme, every scheme that accepts `+ran` with `+ran`, and every preset, in the form that users type.
pub fn choices() -> Vec<String> {
    let mut choices = vec![];
    for scheme in SCHEMES {
        choices.push(scheme.name.to_owned());
        choices.extend(scheme.takes_ran.then(|| format!("{}{}", scheme.name, ran::SUFFIX)));
        choices.extend(scheme.presets.iter().map(|preset| format!("{}@{}", scheme.name, preset.name)));
    }
    choices
}

impl SchemeSpec {
    /// The choices that a word stands for. `all`: every scheme. `presets`: every scheme without suffix, with `+ran` if
    /// it accepts it, and with every preset. Any other word is one choice.
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
    /// The error names the scheme, preset or option that does not exist, the most similar one that exists, and all of
    /// them.
    pub fn parse(text: &str) -> Result<SchemeSpec, SchemeError> {
        let mut parts = text.split(':');
        let head = parts.next().unwrap_or_default();
        let (name, preset) = head.split_once('@').map_or((head, None), |(name, preset)| (name, Some(preset)));
        let (name, suffix) = name.split_at(name.find('+').unwrap_or(name.len()));
        let scheme = *SCHEMES
            .iter()
            .find(|scheme| scheme.name == name)
            .ok_or_else(|| SchemeError::Scheme(name.to_owned()))?;
        let with_ran = suffix == ran::SUFFIX && scheme.takes_ran;
        if !suffix.is_empty() && !with_ran {
            return Err(SchemeError::Suffix(scheme.name, suffix.to_owned()));
        }
        let mut options = Options::defaults(scheme);
        let find = |wanted: &str| {
            let preset = scheme.presets.iter().find(|preset| preset.name == wanted);
            preset.ok_or_else(|| SchemeError::Preset(scheme.name, wanted.to_owned()))
        };
        let preset = preset.map(find).transpose()?;
        for (option, value) in preset.map_or(&[][..], |preset| preset.set) {
            options.set(option, value)?;
        }
        let mut said = Vec::new();
        for part in parts {
            let (option, value) =
                part.split_once('=').ok_or_else(|| SchemeError::Option(scheme.name, part.to_owned()))?;
            options.set(option, value)?;
            if said.contains(&option) {
                return Err(SchemeError::Twice(scheme.name, option.to_owned()));
            }
            said.push(option);
        }
        let preset = preset.map(|preset| preset.name);
        let spec = SchemeSpec { own: None, scheme, with_ran, preset, text: text.to_owned(), options };
        // Build the scheme once, so that an invalid value is reported now and not after a run has started.
        spec.build(&Setup { mss: Bytes(1500), rng: Streams::new(0).stream("parse") })?;
        Ok(spec)
    }

    /// A scheme that is not in the list. `make` creates its endpoints; results label it `name`.
    ///
    /// # Errors
    /// The name is that of a scheme in the list or a reserved word, or it contains characters other than letters,
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

    /// The same choice with another label in results. It is used to show results from outside the simulator next to
    /// those from the simulator.
    pub fn labelled(&self, label: String) -> SchemeSpec {
        SchemeSpec { text: label, ..self.clone() }
    }

    /// The options; those that were not given have their default values.
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
        let ends = self.build(&Setup { mss: Bytes(1500), rng: Streams::new(0).stream("inspected") })?;
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

impl Options {
    /// A scheme's options with their default values.
    pub fn defaults(scheme: &Scheme) -> Options {
        let values = scheme.options.iter().map(|option| (option.name, option.default.to_owned())).collect();
        Options { scheme: scheme.name, values }
    }

    /// Names and values of the options, in the order of the scheme's list.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.as_str()))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SchemeError> {
        let slot = self
            .values
            .iter_mut()
            .find(|(option, _)| *option == name)
            .ok_or_else(|| SchemeError::Option(self.scheme, name.to_owned()))?;
        slot.1 = value.to_owned();
        Ok(())
    }

    /// The value of option `name` as text.
    ///
    /// # Panics
    /// Panics if the scheme does not list `name` among its options. That is a bug in the scheme; any test that builds
    /// the scheme finds it.
    pub fn text(&self, name: &str) -> &str {
        let found = self.values.iter().find(|(option, _)| *option == name);
        &found.unwrap_or_else(|| panic!("{} lists no option `{name}`", self.scheme)).1
    }

    /// The value of option `name` as a number from `least` to one billion.
    ///
    /// # Errors
    /// The value is not such a number.
    pub fn number(&self, name: &str, least: f64) -> Result<f64, SchemeError> {
        match self.text(name).parse::<f64>() {
            Ok(number) if number > MOST => Err(self.refuse(name, format!("a number of at most {MOST}"))),
            Ok(number) if number >= least => Ok(number),
            _ => Err(self.refuse(name, format!("a number of at least {least}"))),
        }
    }

    /// The value of option `name` as a switch: `on` or `off`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn switch(&self, name: &str) -> Result<bool, SchemeError> {
        match self.text(name) {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(self.refuse(name, "`on` or `off`")),
        }
    }

    /// The error for an invalid value of option `name`; it lists the valid values.
    pub fn refuse(&self, name: &str, may_be: impl Into<String>) -> SchemeError {
        SchemeError::Value(self.scheme, name.to_owned(), self.text(name).to_owned(), may_be.into())
    }
}

impl fmt::Display for SchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |name: &'static str| SCHEMES.iter().filter(move |known| known.name == name);
        match self {
            SchemeError::Scheme(name) => {
                let names: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
                let instead = instead(name, &names, "there are");
                write!(f, "no scheme is called `{name}`{instead} (see `airpace list schemes`)")
            }
            SchemeError::Suffix(scheme, suffix) => {
                let takes = SCHEMES.iter().filter(|scheme| scheme.takes_ran);
                let takes: Vec<String> =
                    takes.map(|scheme| format!("`{}{}`", scheme.name, ran::SUFFIX)).collect();
                write!(f, "scheme `{scheme}` has no `{suffix}`; there are {}", takes.join(", "))
            }
            SchemeError::Preset(scheme, preset) => {
                let names: Vec<&str> =
                    of(scheme).flat_map(|known| known.presets).map(|preset| preset.name).collect();
                write!(f, "scheme `{scheme}` has no preset `{preset}`{}", instead(preset, &names, "it has:"))
            }
            SchemeError::Option(scheme, option) => {
                let names: Vec<&str> =
                    of(scheme).flat_map(|known| known.options).map(|option| option.name).collect();
                let instead = instead(option, &names, "options are spelled `:name=value`, and it has:");
                write!(f, "scheme `{scheme}` has no option `{option}`{instead}")
            }
            SchemeError::Twice(scheme, option) => {
                write!(f, "option `{option}` of scheme `{scheme}` is set twice; set it once")
            }
            SchemeError::Name(name) => write!(
                f,
                "an own scheme cannot be called `{name}`: give a name of letters, digits, `_`, `-` and `.` that no \
                 scheme of the list has"
            ),
            SchemeError::Make(name, reason) => write!(f, "scheme `{name}` cannot be made: {reason}"),
            SchemeError::DownloadsOnly(text) => write!(
                f,
                "`{text}` steers from the device what the device receives; for an upload choose the scheme without it"
            ),
            SchemeError::Value(scheme, option, value, may_be) => {
                write!(f, "option `{option}` of scheme `{scheme}` cannot be `{value}`; give {may_be}")
            }
        }
    }
}

impl std::error::Error for SchemeError {}

//! A scheme as users see it: its name, presets and options, and the function that builds the endpoints of a flow.
//!
//! The list of all schemes, and the choice of one by text, are in [`schemes`](crate::schemes).

use std::error::Error;
use std::fmt;

use airpace_core::nearest::instead;
use airpace_core::{Bytes, Refused, Rng};

use crate::controller::{Controller, Receiver};

/// A congestion control scheme as users see it.
pub struct Scheme {
    /// The name that users type.
    pub name: &'static str,
    /// Description in lists of schemes, in one line.
    pub summary: &'static str,
    /// The paper or standard that describes the scheme.
    pub source: &'static str,
    /// Colour and marker of the scheme, the same in every figure.
    pub style: Style,
    /// Named sets of options, besides the default set.
    pub presets: &'static [Preset],
    /// The options and their default values.
    pub options: &'static [OptionSpec],
    /// Whether the scheme can be combined with `+ran`: it reacts to delays, and the measured delays contain the waits
    /// for radio retransmissions.
    pub takes_ran: bool,
    /// Creates the two endpoints of one flow.
    pub build: fn(&Setup, &Options) -> Result<Ends, SchemeError>,
}

/// Colour (from a palette that colour-blind readers can distinguish) and marker of a scheme in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colour in the form `#rrggbb`.
    pub colour: &'static str,
    /// Marker shape: one of `circle`, `rect`, `triangle`, `diamond`, `pin`, `arrow`, `roundRect`.
    pub marker: &'static str,
}

/// A named set of options.
pub struct Preset {
    /// The text after the `@`.
    pub name: &'static str,
    /// Description in lists of schemes, in one line.
    pub summary: &'static str,
    /// The options that differ from the default.
    pub set: &'static [(&'static str, &'static str)],
}

/// One option of a scheme.
pub struct OptionSpec {
    /// The option's name, which ends in its unit.
    pub name: &'static str,
    /// The value that the option has if the user does not set it.
    pub default: &'static str,
    /// Description in lists of schemes, in one line.
    pub summary: &'static str,
}

/// Parameters from which every scheme builds the endpoints of a flow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// Bytes of a full-sized packet on the wire.
    pub mss: Bytes,
    /// The flow's own random number generator.
    pub rng: Rng,
}

impl Setup {
    /// Parameters of a flow with this packet size and random number generator. [`Rng::from_rand`] converts any
    /// generator that implements the traits of `rand_core`.
    pub fn new(mss: Bytes, rng: Rng) -> Setup {
        Setup { mss, rng }
    }

    /// Parameters of a flow with this packet size. Flows with equal seeds draw equal numbers, so each flow needs a seed
    /// of its own.
    pub fn seeded(mss: Bytes, seed: u64) -> Setup {
        Setup::new(mss, Rng::seeded(seed))
    }
}

/// The two endpoints of a flow.
pub struct Ends {
    /// The controller at the sender.
    pub controller: Box<dyn Controller>,
    /// The scheme's part at the receiver, if it has one.
    pub receiver: Option<Box<dyn Receiver>>,
}

/// Maximum value of a numeric option.
///
/// Chosen: more than needed in any unit that is used. Larger values would only need more time and memory.
const MAX_VALUE: f64 = 1e9;

/// The values of all options of one choice. Options that the user did not set have their default values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    scheme: &'static str,
    values: Vec<(&'static str, String)>,
}

/// The reason why a choice of scheme is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemeError {
    /// No scheme has this name.
    Scheme {
        /// The name that was not found.
        name: String,
        /// The names of all schemes.
        known: Vec<&'static str>,
    },
    /// The scheme's name is followed by a suffix that this scheme does not accept.
    Suffix {
        /// The scheme.
        scheme: &'static str,
        /// The suffix, with its `+`.
        suffix: String,
        /// All valid pairs of scheme and suffix.
        known: Vec<String>,
    },
    /// The scheme has no such preset.
    Preset {
        /// The scheme.
        scheme: &'static str,
        /// The preset that was not found.
        preset: String,
        /// The presets of the scheme.
        known: Vec<&'static str>,
    },
    /// The scheme has no such option.
    Option {
        /// The scheme.
        scheme: &'static str,
        /// The option that was not found.
        option: String,
        /// The options of the scheme.
        known: Vec<&'static str>,
    },
    /// The option cannot have this value. The last string lists the valid values.
    Value(&'static str, String, String, String),
    /// The option is set twice.
    Twice(&'static str, String),
    /// The name is not allowed for a scheme that the caller provides.
    Name(String),
    /// The caller's function failed to create the endpoints of the caller's scheme. The string is the name of the
    /// scheme.
    Make(String, Refused),
    /// The scheme uses the receiving device to control what that device receives, so it cannot control an upload.
    DownloadsOnly(String),
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

    /// Sets option `name`.
    ///
    /// # Errors
    /// The scheme has no such option.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), SchemeError> {
        match self.values.iter_mut().find(|(option, _)| *option == name) {
            Some((_, slot)) => {
                slot.clear();
                slot.push_str(value);
                Ok(())
            }
            None => Err(self.unknown(name)),
        }
    }

    /// The error for an option that the scheme does not have.
    pub(crate) fn unknown(&self, option: &str) -> SchemeError {
        let known = self.values.iter().map(|(name, _)| *name).collect();
        SchemeError::Option { scheme: self.scheme, option: option.to_owned(), known }
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
            Ok(number) if number > MAX_VALUE => {
                Err(self.refuse(name, format!("a number of at most {MAX_VALUE}")))
            }
            Ok(number) if number >= least => Ok(number),
            _ => Err(self.refuse(name, format!("a number of at least {least}"))),
        }
    }

    /// The value of option `name` as a switch: `on` or `off`.
    ///
    /// # Errors
    /// The value is neither `on` nor `off`.
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
        match self {
            SchemeError::Scheme { name, known } => {
                let instead = instead(name, known, "there are");
                write!(f, "no scheme is called `{name}`{instead}")
            }
            SchemeError::Suffix { scheme, suffix, known } => {
                let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
                write!(f, "scheme `{scheme}` has no `{suffix}`; there are {}", known.join(", "))
            }
            SchemeError::Preset { scheme, preset, known } => {
                let instead = instead(preset, known, "it has:");
                write!(f, "scheme `{scheme}` has no preset `{preset}`{instead}")
            }
            SchemeError::Option { scheme, option, known } => {
                let instead = instead(option, known, "options have the form `:name=value`; it has:");
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

impl Error for SchemeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // The text of this error contains the reason, but not the reason's remedy.
            SchemeError::Make(_, reason) => reason.source(),
            _ => None,
        }
    }
}

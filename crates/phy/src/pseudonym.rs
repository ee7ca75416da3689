//! Pseudonyms of users, from which their RNTIs cannot be recovered.

use std::collections::BTreeMap;

use airpace_radio::Rnti;

use crate::dci::Audience;
use crate::found::Found;

/// Name of a message's user: the RNTI or a pseudonym. If it is a pseudonym, an output must not contain the CCE position,
/// from which the RNTI can be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The RNTI or its pseudonym.
    pub rnti: Rnti,
    /// Whether it is a pseudonym.
    pub is_pseudonym: bool,
}

impl Name {
    /// The RNTI itself.
    pub fn plain(found: &Found) -> Name {
        Name { rnti: found.rnti, is_pseudonym: false }
    }
}

/// Assigns numbers to users in the order of their first appearance, starting with the first value that can be a C-RNTI.
/// RNTIs that address all users are not replaced.
///
/// The RNTI cannot be recovered from such a number. From a hash of the 16-bit RNTI, the RNTI could be recovered by
/// trying all values. The same recordings give the same pseudonyms, whatever the other options are. An RNTI has one
/// pseudonym in all cells of a run, because a device has one RNTI on all its carriers.
#[derive(Debug, Default)]
pub struct Pseudonyms {
    given: BTreeMap<Rnti, Rnti>,
}

impl Pseudonyms {
    /// The pseudonym of an RNTI, or the RNTI itself if it addresses everyone.
    pub fn of(&mut self, rnti: Rnti) -> Rnti {
        if Audience::of(rnti) != Some(Audience::User) {
            return rnti;
        }
        let next = Audience::LAST_RA_RNTI.saturating_add(1).saturating_add(self.given.len() as u16);
        *self.given.entry(rnti).or_insert(Rnti(next))
    }

    /// The name of a message's user.
    pub fn name(&mut self, found: &Found) -> Name {
        let is_pseudonym = Audience::of(found.rnti) == Some(Audience::User);
        Name { rnti: self.of(found.rnti), is_pseudonym }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_get_numbers_and_keep_them_and_everyones_rntis_stay() {
        let mut names = Pseudonyms::default();
        let heard = [4518, 65535, 20_000, 4518, 65534, 2].map(|rnti| names.of(Rnti(rnti)).0);
        assert_eq!(heard, [61, 65535, 62, 61, 65534, 2]);
    }
}

//! Dictionary-encoded string columns: words with few distinct values, labels of flows, and names with any number of
//! distinct values.

use std::sync::Arc;

use airpace_core::FlowId;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::{DataType, Field};

use crate::facts::FlowFacts;

/// Index of a word in the dictionary of a column.
#[derive(Clone, Copy)]
pub(super) struct Word(i32);

/// Buffer of a word column, as dictionary indices. Readers see a categorical column of strings.
#[derive(Default)]
pub struct Words {
    words: Vec<String>,
    keys: Vec<i32>,
}

impl Words {
    /// Arrow type of a word column.
    pub fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    /// Arrow field of a word column.
    pub fn field(name: &str) -> Field {
        Field::new(name, Words::data_type(), false)
    }

    /// A complete column of these words.
    pub fn column<'a>(words: impl Iterator<Item = &'a str>) -> ArrayRef {
        let mut column = Words::default();
        words.for_each(|word| {
            let word = column.word(word);
            column.push(word);
        });
        column.take()
    }

    /// The index of a word, which is added if it is new. The previous row's word is compared first, because it is the
    /// most likely one. A linear search is sufficient for few words.
    pub(super) fn word(&mut self, word: &str) -> Word {
        let last = self.keys.last().copied().filter(|key| self.words[*key as usize] == word);
        let known = last.or_else(|| self.words.iter().position(|known| known == word).map(|key| key as i32));
        Word(known.unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() as i32 - 1
        }))
    }

    /// Adds a row.
    pub(super) fn push(&mut self, word: Word) {
        self.keys.push(word.0);
    }

    /// Reserves capacity for `rows` more rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.keys.reserve(rows);
    }

    /// Removes and returns the rows. The dictionary is kept.
    pub(super) fn take(&mut self) -> ArrayRef {
        let keys = Int32Array::from(std::mem::take(&mut self.keys));
        let words = Arc::new(StringArray::from_iter_values(&self.words));
        Arc::new(DictionaryArray::<Int32Type>::new(keys, words))
    }
}

/// A flow, whose cell contains the flow's label.
#[derive(Clone, Copy)]
pub(super) struct Label(pub FlowId);

/// Buffer of a column of flow labels.
#[derive(Default)]
pub(super) struct Labels {
    words: Words,
    /// The word of each flow's label, by flow index.
    of_flow: Vec<Word>,
}

impl Labels {
    /// Registers the labels of a run's flows, in their order.
    pub(super) fn know(&mut self, flows: &[FlowFacts]) {
        self.of_flow = flows.iter().map(|flow| self.words.word(&flow.name)).collect();
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the flow is not in the run's facts, which is a bug of the driver.
    pub(super) fn push(&mut self, label: Label) {
        let word = self.of_flow.get(usize::from(label.0.0));
        self.words.push(*word.expect("a run's facts name every flow of its events"));
    }

    /// Reserves capacity for `rows` more rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.words.reserve(rows);
    }

    /// Removes and returns the rows. The dictionary is kept.
    pub(super) fn take(&mut self) -> ArrayRef {
        self.words.take()
    }
}

/// A name from an unlimited set.
pub(super) struct Name(pub Arc<str>);

/// Buffer of a column of names. Readers see a categorical column of strings, as for [`Words`]. Each row group has its own
/// dictionary, so that memory does not grow with the number of names.
#[derive(Default)]
pub(super) struct Names(StringDictionaryBuilder<Int32Type>);

impl Names {
    /// Adds a row.
    pub(super) fn push(&mut self, Name(name): Name) {
        self.0.append_value(name);
    }

    /// Removes and returns the rows and their dictionary.
    pub(super) fn take(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

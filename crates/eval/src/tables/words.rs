//! Columns of words: few different ones, labels of flows, or any number of names.

use std::sync::Arc;

use airpace_core::FlowId;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::{DataType, Field};

use crate::facts::FlowFacts;

/// The number of a word of one column.
#[derive(Clone, Copy)]
pub(super) struct Word(i32);

/// Collects words as numbers. Readers see a categorical column of strings.
#[derive(Default)]
pub(crate) struct Words {
    words: Vec<String>,
    keys: Vec<i32>,
}

impl Words {
    /// The Arrow type of such a column.
    pub(crate) fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    /// The Arrow field of such a column.
    pub(crate) fn field(name: &str) -> Field {
        Field::new(name, Words::data_type(), false)
    }

    /// A whole column of these words.
    pub(crate) fn column<'a>(words: impl Iterator<Item = &'a str>) -> ArrayRef {
        let mut column = Words::default();
        words.for_each(|word| {
            let word = column.word(word);
            column.push(word);
        });
        column.take()
    }

    /// The number of a word; a new word is added. Words are few, and the previous one is the likeliest.
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

    /// Makes room for this many more rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.keys.reserve(rows);
    }

    /// Takes the rows so far. The words stay.
    pub(super) fn take(&mut self) -> ArrayRef {
        let keys = Int32Array::from(std::mem::take(&mut self.keys));
        let words = Arc::new(StringArray::from_iter_values(&self.words));
        Arc::new(DictionaryArray::<Int32Type>::new(keys, words))
    }
}

/// A flow, by its label.
#[derive(Clone, Copy)]
pub(super) struct Label(pub FlowId);

/// Collects the labels of flows.
#[derive(Default)]
pub(super) struct Labels {
    words: Words,
    /// One word per flow.
    of_flow: Vec<Word>,
}

impl Labels {
    /// The labels of a run's flows, in their order.
    pub(super) fn know(&mut self, flows: &[FlowFacts]) {
        self.of_flow = flows.iter().map(|flow| self.words.word(&flow.name)).collect();
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the run's facts name no such flow. That is a mistake in the driver.
    pub(super) fn push(&mut self, label: Label) {
        let word = self.of_flow.get(usize::from(label.0.0));
        self.words.push(*word.expect("a run's facts name every flow of its events"));
    }

    /// Makes room for this many more rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        self.words.reserve(rows);
    }

    /// Takes the rows so far. The words stay.
    pub(super) fn take(&mut self) -> ArrayRef {
        self.words.take()
    }
}

/// A name, of which there may be any number.
pub(super) struct Name(pub Arc<str>);

/// Collects names. Readers see a categorical column of strings, as for [`Words`]. Each row group has words of its own, so
/// that memory does not grow with the number of names.
#[derive(Default)]
pub(super) struct Names(StringDictionaryBuilder<Int32Type>);

impl Names {
    /// Adds a row.
    pub(super) fn push(&mut self, Name(name): Name) {
        self.0.append_value(name);
    }

    /// Takes the rows so far, and their words.
    pub(super) fn take(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

//! Column buffers for numbers and `bool`. A row costs one append per column, while Arrow's builders do several times that
//! work per cell.

use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, NullBufferBuilder};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};

/// Buffer of a number column without nulls.
pub(super) struct Numbers<T: ArrowPrimitiveType>(Vec<T::Native>);

impl<T: ArrowPrimitiveType> Default for Numbers<T> {
    fn default() -> Numbers<T> {
        Numbers(Vec::new())
    }
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    /// Adds a cell.
    #[inline]
    pub(super) fn push(&mut self, value: T::Native) {
        self.0.push(value);
    }

    /// Reserves capacity for `cells` more cells.
    pub(super) fn reserve(&mut self, cells: usize) {
        self.0.reserve(cells);
    }

    /// Removes and returns the cells.
    pub(super) fn take(&mut self) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(std::mem::take(&mut self.0).into(), None))
    }
}

/// Buffer of a number column with nulls.
pub(super) struct OptionalNumbers<T: ArrowPrimitiveType> {
    /// Values of the cells; zero for null cells.
    values: Vec<T::Native>,
    is_valid: Vec<bool>,
}

impl<T: ArrowPrimitiveType> Default for OptionalNumbers<T> {
    fn default() -> OptionalNumbers<T> {
        OptionalNumbers { values: Vec::new(), is_valid: Vec::new() }
    }
}

impl<T: ArrowPrimitiveType> OptionalNumbers<T> {
    /// Adds a cell. `None` becomes null.
    #[inline]
    pub(super) fn push(&mut self, value: Option<T::Native>) {
        self.values.push(value.unwrap_or_default());
        self.is_valid.push(value.is_some());
    }

    /// Reserves capacity for `cells` more cells.
    pub(super) fn reserve(&mut self, cells: usize) {
        self.values.reserve(cells);
        self.is_valid.reserve(cells);
    }

    /// Removes and returns the cells.
    pub(super) fn take(&mut self) -> ArrayRef {
        let mut nulls = NullBufferBuilder::new(self.is_valid.len());
        nulls.append_slice(&std::mem::take(&mut self.is_valid));
        Arc::new(PrimitiveArray::<T>::new(std::mem::take(&mut self.values).into(), nulls.finish()))
    }
}

/// Buffer of a `bool` column without nulls.
#[derive(Default)]
pub(super) struct Booleans(Vec<bool>);

impl Booleans {
    /// Adds a cell.
    #[inline]
    pub(super) fn push(&mut self, value: bool) {
        self.0.push(value);
    }

    /// Reserves capacity for `cells` more cells.
    pub(super) fn reserve(&mut self, cells: usize) {
        self.0.reserve(cells);
    }

    /// Removes and returns the cells.
    pub(super) fn take(&mut self) -> ArrayRef {
        let mut bits = BooleanBufferBuilder::new(self.0.len());
        bits.append_slice(&std::mem::take(&mut self.0));
        Arc::new(BooleanArray::new(bits.finish(), None))
    }
}

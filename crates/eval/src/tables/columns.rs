//! Columns and the rows that fill them: a table is declared once, as the fields of its [`row!`].

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Float32Builder, Float64Builder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, Field};

use super::words::{Label, Labels, Word, Words};

/// What a field of a row may be: it knows its column's type and buffer.
pub(super) trait Cell {
    /// Gathers the column's cells.
    type Buffer: Default;

    /// The column's name and type.
    fn field(name: &str) -> Field;

    /// Adds this cell.
    fn push(self, buffer: &mut Self::Buffer);

    /// The cells so far, which leave the buffer.
    fn take(buffer: &mut Self::Buffer) -> ArrayRef;
}

macro_rules! cells {
    ($($type:ty, $buffer:ident, $data_type:ident;)*) => {$(
        impl Cell for $type {
            type Buffer = $buffer;

            fn field(name: &str) -> Field {
                Field::new(name, DataType::$data_type, false)
            }

            fn push(self, buffer: &mut $buffer) {
                buffer.append_value(self);
            }

            fn take(buffer: &mut $buffer) -> ArrayRef {
                Arc::new(buffer.finish())
            }
        }

        /// Null where there is none.
        impl Cell for Option<$type> {
            type Buffer = $buffer;

            fn field(name: &str) -> Field {
                Field::new(name, DataType::$data_type, true)
            }

            fn push(self, buffer: &mut $buffer) {
                buffer.append_option(self);
            }

            fn take(buffer: &mut $buffer) -> ArrayRef {
                Arc::new(buffer.finish())
            }
        }
    )*};
}

cells! {
    bool, BooleanBuilder, Boolean;
    u8, UInt8Builder, UInt8;
    u16, UInt16Builder, UInt16;
    u32, UInt32Builder, UInt32;
    u64, UInt64Builder, UInt64;
    f32, Float32Builder, Float32;
    f64, Float64Builder, Float64;
}

impl Cell for Word {
    type Buffer = Words;

    fn field(name: &str) -> Field {
        Words::field(name)
    }

    fn push(self, buffer: &mut Words) {
        buffer.push(self);
    }

    fn take(buffer: &mut Words) -> ArrayRef {
        buffer.take()
    }
}

impl Cell for Label {
    type Buffer = Labels;

    fn field(name: &str) -> Field {
        Words::field(name)
    }

    fn push(self, buffer: &mut Labels) {
        buffer.push(self);
    }

    fn take(buffer: &mut Labels) -> ArrayRef {
        buffer.take()
    }
}

/// The columns of a table: rows that are not yet written.
pub(super) trait Columns {
    /// Their names and types.
    fn fields(&self) -> Vec<Field>;

    /// Their cells so far, which leave them.
    fn take(&mut self) -> Vec<ArrayRef>;
}

/// Declares the row of a table (`Row`) and the columns that gather such rows (`Rows`).
macro_rules! row {
    ($(#[$doc:meta])* struct Row { $($column:ident: $type:ty,)* }) => {
        $(#[$doc])*
        struct Row {
            $($column: $type,)*
        }

        /// Rows that are not yet written, column by column.
        #[derive(Default)]
        pub(super) struct Rows {
            $($column: <$type as $crate::tables::columns::Cell>::Buffer,)*
        }

        impl Rows {
            fn push(&mut self, row: Row) {
                $($crate::tables::columns::Cell::push(row.$column, &mut self.$column);)*
            }
        }

        impl $crate::tables::columns::Columns for Rows {
            fn fields(&self) -> Vec<arrow_schema::Field> {
                vec![$(<$type as $crate::tables::columns::Cell>::field(stringify!($column)),)*]
            }

            fn take(&mut self) -> Vec<arrow_array::ArrayRef> {
                vec![$(<$type as $crate::tables::columns::Cell>::take(&mut self.$column),)*]
            }
        }
    };
}

pub(super) use row;

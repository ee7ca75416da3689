//! Typed columns and their rows. A table is declared once, by the fields of its [`row!`].

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
    UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::types::{
    Float32Type, Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, Field};

use super::numbers::{Booleans, Numbers, OptionalNumbers};
use super::words::{Label, Labels, Name, Names, Word, Words};

/// A type for the fields of a row. It defines the type and the buffer of the column.
pub(super) trait Cell {
    /// Buffer of the column's cells.
    type Buffer: Default;

    /// Name and type of the column.
    fn field(name: &str) -> Field;

    /// Adds this cell.
    fn push(self, buffer: &mut Self::Buffer);

    /// Reserves capacity for `cells` more cells in buffers that would otherwise copy their contents when they grow.
    fn reserve(_buffer: &mut Self::Buffer, _cells: usize) {}

    /// Removes and returns the cells in the buffer.
    fn take(buffer: &mut Self::Buffer) -> ArrayRef;
}

/// A type for the entries of a list.
pub(super) trait Item {
    /// Buffer of the entries.
    type Builder: ArrayBuilder + Default;

    /// Arrow type of the entries.
    const TYPE: DataType;

    /// Adds this entry.
    fn append(self, builder: &mut Self::Builder);
}

/// Implements [`Item`] for types whose entries are collected by Arrow's builders.
macro_rules! items {
    ($($type:ty, $builder:ident, $data_type:ident;)*) => {$(
        impl Item for $type {
            type Builder = $builder;

            const TYPE: DataType = DataType::$data_type;

            fn append(self, builder: &mut $builder) {
                builder.append_value(self);
            }
        }

        /// An entry that is null for `None`.
        impl Item for Option<$type> {
            type Builder = $builder;

            const TYPE: DataType = DataType::$data_type;

            fn append(self, builder: &mut $builder) {
                builder.append_option(self);
            }
        }
    )*};
}

items! {
    bool, BooleanBuilder, Boolean;
    u8, UInt8Builder, UInt8;
    u16, UInt16Builder, UInt16;
    u32, UInt32Builder, UInt32;
    u64, UInt64Builder, UInt64;
    i64, Int64Builder, Int64;
    f32, Float32Builder, Float32;
    f64, Float64Builder, Float64;
    &'static str, StringBuilder, Utf8;
    String, StringBuilder, Utf8;
}

macro_rules! number_cells {
    ($($type:ty, $arrow_type:ident, $data_type:ident;)*) => {$(
        impl Cell for $type {
            type Buffer = Numbers<$arrow_type>;

            fn field(name: &str) -> Field {
                Field::new(name, DataType::$data_type, false)
            }

            fn push(self, buffer: &mut Self::Buffer) {
                buffer.push(self);
            }

            fn reserve(buffer: &mut Self::Buffer, cells: usize) {
                buffer.reserve(cells);
            }

            fn take(buffer: &mut Self::Buffer) -> ArrayRef {
                buffer.take()
            }
        }

        /// A number cell that is null for `None`.
        impl Cell for Option<$type> {
            type Buffer = OptionalNumbers<$arrow_type>;

            fn field(name: &str) -> Field {
                Field::new(name, DataType::$data_type, true)
            }

            fn push(self, buffer: &mut Self::Buffer) {
                buffer.push(self);
            }

            fn reserve(buffer: &mut Self::Buffer, cells: usize) {
                buffer.reserve(cells);
            }

            fn take(buffer: &mut Self::Buffer) -> ArrayRef {
                buffer.take()
            }
        }
    )*};
}

number_cells! {
    u8, UInt8Type, UInt8;
    u16, UInt16Type, UInt16;
    u32, UInt32Type, UInt32;
    u64, UInt64Type, UInt64;
    i64, Int64Type, Int64;
    f32, Float32Type, Float32;
    f64, Float64Type, Float64;
}

impl Cell for bool {
    type Buffer = Booleans;

    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, false)
    }

    fn push(self, buffer: &mut Booleans) {
        buffer.push(self);
    }

    fn reserve(buffer: &mut Booleans, cells: usize) {
        buffer.reserve(cells);
    }

    fn take(buffer: &mut Booleans) -> ArrayRef {
        buffer.take()
    }
}

/// A `bool` cell that is null for `None`.
impl Cell for Option<bool> {
    type Buffer = BooleanBuilder;

    fn field(name: &str) -> Field {
        <bool as Cell>::field(name).with_nullable(true)
    }

    fn push(self, buffer: &mut BooleanBuilder) {
        buffer.append_option(self);
    }

    fn take(buffer: &mut BooleanBuilder) -> ArrayRef {
        Arc::new(buffer.finish())
    }
}

macro_rules! builder_cells {
    ($($type:ty, $builder:ident, $data_type:ident;)*) => {$(
        impl Cell for $type {
            type Buffer = $builder;

            fn field(name: &str) -> Field {
                Field::new(name, DataType::$data_type, false)
            }

            fn push(self, buffer: &mut $builder) {
                buffer.append_value(self);
            }

            fn take(buffer: &mut $builder) -> ArrayRef {
                Arc::new(buffer.finish())
            }
        }

        /// A cell that is null for `None`.
        impl Cell for Option<$type> {
            type Buffer = $builder;

            fn field(name: &str) -> Field {
                Field::new(name, DataType::$data_type, true)
            }

            fn push(self, buffer: &mut $builder) {
                buffer.append_option(self);
            }

            fn take(buffer: &mut $builder) -> ArrayRef {
                Arc::new(buffer.finish())
            }
        }
    )*};
}

builder_cells! {
    &'static str, StringBuilder, Utf8;
    String, StringBuilder, Utf8;
}

/// A cell that contains a list, which may be empty.
impl<T: Item> Cell for Vec<T> {
    type Buffer = ListBuilder<T::Builder>;

    fn field(name: &str) -> Field {
        Field::new(name, DataType::List(Arc::new(Field::new_list_field(T::TYPE, true))), false)
    }

    fn push(self, buffer: &mut Self::Buffer) {
        Some(self).push(buffer);
    }

    fn take(buffer: &mut Self::Buffer) -> ArrayRef {
        Arc::new(buffer.finish())
    }
}

/// A cell that contains a list and is null for `None`.
impl<T: Item> Cell for Option<Vec<T>> {
    type Buffer = ListBuilder<T::Builder>;

    fn field(name: &str) -> Field {
        <Vec<T> as Cell>::field(name).with_nullable(true)
    }

    fn push(self, buffer: &mut Self::Buffer) {
        let is_there = self.is_some();
        self.into_iter().flatten().for_each(|item| item.append(buffer.values()));
        buffer.append(is_there);
    }

    fn take(buffer: &mut Self::Buffer) -> ArrayRef {
        Arc::new(buffer.finish())
    }
}

impl Cell for Word {
    type Buffer = Words;

    fn field(name: &str) -> Field {
        Words::field(name)
    }

    fn push(self, buffer: &mut Words) {
        buffer.push(self);
    }

    fn reserve(buffer: &mut Words, cells: usize) {
        buffer.reserve(cells);
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

    fn reserve(buffer: &mut Labels, cells: usize) {
        buffer.reserve(cells);
    }

    fn take(buffer: &mut Labels) -> ArrayRef {
        buffer.take()
    }
}

impl Cell for Name {
    type Buffer = Names;

    fn field(name: &str) -> Field {
        Words::field(name)
    }

    fn push(self, buffer: &mut Names) {
        buffer.push(self);
    }

    fn take(buffer: &mut Names) -> ArrayRef {
        buffer.take()
    }
}

/// The columns of a table, with the rows that are not yet written.
pub(super) trait Columns {
    /// Names and types of the columns.
    fn fields(&self) -> Vec<Field>;

    /// Reserves capacity for `rows` more rows.
    fn reserve(&mut self, rows: usize);

    /// Removes and returns the cells of each column.
    fn take(&mut self) -> Vec<ArrayRef>;
}

/// The columns of `A`, followed by the columns of `B`.
impl<A: Columns, B: Columns> Columns for (A, B) {
    fn fields(&self) -> Vec<Field> {
        [self.0.fields(), self.1.fields()].concat()
    }

    fn reserve(&mut self, rows: usize) {
        self.0.reserve(rows);
        self.1.reserve(rows);
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        [self.0.take(), self.1.take()].concat()
    }
}

/// The columns of `C`, or no columns.
impl<C: Columns> Columns for Option<C> {
    fn fields(&self) -> Vec<Field> {
        self.as_ref().map_or_else(Vec::new, C::fields)
    }

    fn reserve(&mut self, rows: usize) {
        if let Some(columns) = self {
            columns.reserve(rows);
        }
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        self.as_mut().map_or_else(Vec::new, C::take)
    }
}

/// Declares the row of a table (`Row`) and the columns that collect such rows (`Rows`). Other names may be given to
/// both, and a public row is one that callers fill in.
macro_rules! row {
    ($(#[$doc:meta])* struct Row { $($column:ident: $type:ty,)* }) => {
        $crate::columns::row! { $(#[$doc])* struct Row in Rows { $($column: $type,)* } }
    };
    ($(#[$doc:meta])* struct $row:ident in $rows:ident { $($column:ident: $type:ty,)* }) => {
        $(#[$doc])*
        struct $row {
            $($column: $type,)*
        }

        $crate::columns::row! { @columns [] $row, $rows { $($column: $type,)* } }
    };
    ($(#[$doc:meta])* pub struct $row:ident in $rows:ident { $($(#[$of_column:meta])* $column:ident: $type:ty,)* }) => {
        $(#[$doc])*
        pub struct $row {
            $($(#[$of_column])* pub $column: $type,)*
        }

        $crate::columns::row! { @columns [pub(super)] $row, $rows { $($column: $type,)* } }
    };
    (@columns [$($of_push:tt)*] $row:ident, $rows:ident { $($column:ident: $type:ty,)* }) => {
        /// Rows that are not yet written, column by column.
        #[derive(Default)]
        pub(super) struct $rows {
            $($column: <$type as $crate::columns::Cell>::Buffer,)*
        }

        impl $rows {
            $($of_push)* fn push(&mut self, row: $row) {
                $($crate::columns::Cell::push(row.$column, &mut self.$column);)*
            }
        }

        impl $crate::columns::Columns for $rows {
            fn fields(&self) -> Vec<arrow_schema::Field> {
                vec![$(<$type as $crate::columns::Cell>::field(stringify!($column)),)*]
            }

            fn reserve(&mut self, rows: usize) {
                $(<$type as $crate::columns::Cell>::reserve(&mut self.$column, rows);)*
            }

            fn take(&mut self) -> Vec<arrow_array::ArrayRef> {
                vec![$(<$type as $crate::columns::Cell>::take(&mut self.$column),)*]
            }
        }
    };
}

pub(super) use row;

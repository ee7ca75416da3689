//! The pages of a Parquet file, checked before the Parquet library decodes them. The library panics on three kinds of
//! malformed pages: levels that are longer than their page, levels in the deprecated bit-packed encoding, and too few
//! bytes for the values of the encoding BYTE_STREAM_SPLIT.

use std::fs::File;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowGroups,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescPtr;

/// Maximum number of rows of a batch. It is the Parquet library's own default.
const ROWS_PER_BATCH: usize = 1_024;

/// Bytes of the number that precedes the levels of a data page of version 1 ("RLE" in `Encodings.md` of the Parquet format).
const LENGTH_BYTES: usize = 4;

/// An open Parquet file.
pub(super) struct ParquetTable {
    file: Arc<dyn FileReader>,
    schema: SchemaRef,
}

impl ParquetTable {
    /// Reads the metadata of a file.
    pub(super) fn open(file: File) -> Result<ParquetTable> {
        let file = SerializedFileReader::new(file)?;
        let metadata = Arc::new(file.metadata().clone());
        let schema = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new())?.schema().clone();
        Ok(ParquetTable { file: Arc::new(file), schema })
    }

    /// The Arrow schema that the file declares.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn metadata(&self) -> &ParquetMetaData {
        self.file.metadata()
    }

    /// The rows, with all columns or with these columns only.
    pub(super) fn batches(&self, columns: Option<&[&str]>) -> Result<ParquetRecordBatchReader> {
        let schema = self.metadata().file_metadata().schema_descr();
        let mask = match columns {
            Some(columns) => ProjectionMask::columns(schema, columns.iter().copied()),
            None => ProjectionMask::all(),
        };
        let levels = parquet_to_arrow_field_levels(schema, mask, Some(self.schema.fields()))?;
        let groups = CheckedGroups(Arc::clone(&self.file));
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, ROWS_PER_BATCH, None)
    }
}

/// The row groups of a file, with checked pages.
struct CheckedGroups(Arc<dyn FileReader>);

impl RowGroups for CheckedGroups {
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn column_chunks(&self, index: usize) -> Result<Box<dyn PageIterator>> {
        let column = self.metadata().file_metadata().schema_descr().column(index);
        Ok(Box::new(CheckedChunks { chunks: self.0.column_chunks(index)?, column }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        RowGroups::row_groups(&self.0)
    }

    fn metadata(&self) -> &ParquetMetaData {
        RowGroups::metadata(&self.0)
    }
}

/// The chunks of a column, with checked pages.
struct CheckedChunks {
    chunks: Box<dyn PageIterator>,
    column: ColumnDescPtr,
}

impl Iterator for CheckedChunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let column = Arc::clone(&self.column);
        let chunk = self.chunks.next()?;
        Some(chunk.map(|pages| Box::new(CheckedPages { pages, column }) as Box<dyn PageReader>))
    }
}

impl PageIterator for CheckedChunks {}

/// The pages of a chunk, each of them checked.
struct CheckedPages {
    pages: Box<dyn PageReader>,
    column: ColumnDescPtr,
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| checked(page, &self.column)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.pages.take_deferred_dictionary()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// The page, if the library can decode it without a panic. Its values are PLAIN if they were BYTE_STREAM_SPLIT.
fn checked(mut page: Page, column: &ColumnDescPtr) -> Result<Page> {
    let levels = bytes_of_levels(&page, column)?;
    if let Page::DataPage { buf, encoding, .. } | Page::DataPageV2 { buf, encoding, .. } = &mut page
        && *encoding == Encoding::BYTE_STREAM_SPLIT
    {
        let bytes_per_value = bytes_per_value(column)?;
        if !(buf.len() - levels).is_multiple_of(bytes_per_value) {
            return Err(of_column(
                column,
                "has a part of a value in the encoding BYTE_STREAM_SPLIT".to_owned(),
            ));
        }
        *buf = joined(buf, levels, bytes_per_value);
        *encoding = Encoding::PLAIN;
    }
    Ok(page)
}

/// Length of the repetition and definition levels, which precede the values of a page.
fn bytes_of_levels(page: &Page, column: &ColumnDescPtr) -> Result<usize> {
    match page {
        Page::DataPage { buf, def_level_encoding, rep_level_encoding, .. } => {
            let mut bytes = 0;
            for (max_level, encoding) in
                [(column.max_rep_level(), rep_level_encoding), (column.max_def_level(), def_level_encoding)]
            {
                if max_level > 0 {
                    if *encoding != Encoding::RLE {
                        return Err(of_column(
                            column,
                            format!("has levels in the encoding {encoding}, not RLE"),
                        ));
                    }
                    let length =
                        buf.get(bytes..bytes + LENGTH_BYTES).and_then(|length| length.try_into().ok());
                    let length = length.map(u32::from_le_bytes).ok_or_else(|| too_long(column))?;
                    bytes = bytes.saturating_add(LENGTH_BYTES).saturating_add(length as usize);
                }
            }
            within(bytes, buf, column)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let bytes = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            within(usize::try_from(bytes).unwrap_or(usize::MAX), buf, column)
        }
        Page::DictionaryPage { .. } => Ok(0),
    }
}

fn within(levels: usize, page: &Bytes, column: &ColumnDescPtr) -> Result<usize> {
    if levels <= page.len() { Ok(levels) } else { Err(too_long(column)) }
}

fn too_long(column: &ColumnDescPtr) -> ParquetError {
    of_column(column, "has levels that are longer than their page".to_owned())
}

/// Size of a value in the encoding BYTE_STREAM_SPLIT.
fn bytes_per_value(column: &ColumnDescPtr) -> Result<usize> {
    match column.physical_type() {
        Type::INT32 | Type::FLOAT => Ok(4),
        Type::INT64 | Type::DOUBLE => Ok(8),
        other => {
            Err(of_column(column, format!("has values of type {other} in the encoding BYTE_STREAM_SPLIT")))
        }
    }
}

/// A page with the values of BYTE_STREAM_SPLIT behind its levels, in the encoding PLAIN.
///
/// The first stream contains the first byte of each value, the second stream the second byte, and so on. PLAIN contains the
/// bytes of a value one after the other (`Encodings.md` of the Parquet format).
fn joined(page: &Bytes, levels: usize, bytes_per_value: usize) -> Bytes {
    let (levels, streams) = page.split_at(levels);
    let values = streams.len() / bytes_per_value;
    let mut plain = Vec::with_capacity(page.len());
    plain.extend_from_slice(levels);
    for value in 0..values {
        plain.extend((0..bytes_per_value).map(|byte| streams[byte * values + value]));
    }
    plain.into()
}

fn of_column(column: &ColumnDescPtr, reason: String) -> ParquetError {
    ParquetError::General(format!("the column `{}` {reason}", column.path().string()))
}

#[cfg(test)]
mod tests {
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    fn column(declaration: &str) -> ColumnDescPtr {
        let message = parse_message_type(&format!("message table {{ {declaration}; }}")).unwrap();
        SchemaDescriptor::new(Arc::new(message)).column(0)
    }

    fn data_page(buf: &[u8], encoding: Encoding, levels: Encoding) -> Page {
        let buf = Bytes::copy_from_slice(buf);
        Page::DataPage {
            buf,
            num_values: 2,
            encoding,
            def_level_encoding: levels,
            rep_level_encoding: levels,
            statistics: None,
        }
    }

    fn error(page: Page, declaration: &str) -> String {
        checked(page, &column(declaration)).unwrap_err().to_string()
    }

    #[test]
    fn split_values_are_joined_behind_their_levels() {
        let levels = [2, 0, 0, 0, 77, 78];
        let split: Vec<u8> = levels.into_iter().chain(1..=8).collect();
        let page = data_page(&split, Encoding::BYTE_STREAM_SPLIT, Encoding::RLE);
        let Page::DataPage { buf, encoding, .. } = checked(page, &column("OPTIONAL FLOAT delay_ms")).unwrap()
        else {
            unreachable!("a data page stays one");
        };
        assert_eq!(encoding, Encoding::PLAIN);
        assert_eq!(&buf[..], [2, 0, 0, 0, 77, 78, 1, 3, 5, 7, 2, 4, 6, 8]);
    }

    #[test]
    fn pages_on_which_the_library_panics_are_refused() {
        let (plain, split, rle) = (Encoding::PLAIN, Encoding::BYTE_STREAM_SPLIT, Encoding::RLE);
        let too_long = "the column `delay_ms` has levels that are longer than their page";
        for bytes in [&[][..], &[1, 0, 0], &[1, 0, 0, 0], &[255, 255, 255, 255, 0]] {
            let said = error(data_page(bytes, plain, rle), "OPTIONAL FLOAT delay_ms");
            assert!(said.contains(too_long), "{bytes:?}: {said}");
        }
        for (def_levels_byte_len, rep_levels_byte_len) in [(5, 0), (0, 5), (3, 2), (u32::MAX, u32::MAX)] {
            let page = Page::DataPageV2 {
                buf: Bytes::from_static(&[0; 4]),
                num_values: 2,
                encoding: plain,
                num_nulls: 0,
                num_rows: 2,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed: false,
                statistics: None,
            };
            assert!(error(page, "REQUIRED FLOAT delay_ms").contains(too_long));
        }
        #[expect(deprecated, reason = "a file may still use the encoding")]
        let bit_packed = data_page(&[0; 8], plain, Encoding::BIT_PACKED);
        let said = error(bit_packed, "OPTIONAL FLOAT delay_ms");
        assert!(said.contains("has levels in the encoding BIT_PACKED, not RLE"), "{said}");
        let said = error(data_page(&[0; 7], split, rle), "REQUIRED FLOAT delay_ms");
        assert!(said.contains("has a part of a value in the encoding BYTE_STREAM_SPLIT"), "{said}");
        let said = error(data_page(&[0; 8], split, rle), "REQUIRED BOOLEAN lost");
        assert!(said.contains("has values of type BOOLEAN in the encoding BYTE_STREAM_SPLIT"), "{said}");
    }
}

//! Columns of few values, encoded by their places in a dictionary: what the library does as well, ten times slower, as it
//! hashes the bytes of each value.
//!
//! *Invariant:* what is written is what the format calls `RLE_DICTIONARY`, all of it as one run of packed bits a page.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::write::LEVEL;

/// Values of a page.
const PAGE_VALUES: usize = 1 << 16;
/// Values that a dictionary may have.
pub(super) const MOST_VALUES: usize = 1 << 16;

/// A column chunk, encoded.
pub(super) struct Encoded {
    pub(super) bytes: Bytes,
    pub(super) result: ColumnCloseResult,
}

/// Encodes the column `description`, of which row `i` has the `places[i]`th of the `count` values in `dictionary`,
/// which are as in a plain page.
pub(super) fn encode(
    description: &ColumnDescPtr,
    dictionary: Vec<u8>,
    count: usize,
    places: &[u16],
) -> Result<Encoded> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let mut uncompressed = 0;
    let mut compressed = 0;
    let mut add = |page: CompressedPage| {
        let written = pages.write_page(page)?;
        uncompressed += written.uncompressed_size as i64;
        compressed += written.compressed_size as i64;
        Ok::<u64, ParquetError>(written.offset)
    };
    let length = dictionary.len();
    let values = u32::try_from(count).map_err(|error| ParquetError::External(Box::new(error)))?;
    let page = Page::DictionaryPage {
        buf: squeeze(&dictionary)?,
        num_values: values,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let dictionary_at = add(CompressedPage::new(page, length))?;
    let width = (usize::BITS - count.saturating_sub(1).leading_zeros()).max(1);
    let mut data_at = None;
    let mut data_pages = 0;
    for places in places.chunks(PAGE_VALUES) {
        let packed = pack(places, width);
        let page = Page::DataPage {
            buf: squeeze(&packed)?,
            num_values: places.len() as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let at = add(CompressedPage::new(page, packed.len()))?;
        data_at.get_or_insert(at);
        data_pages += 1;
    }
    let statistics = |page_type, encoding, count| PageEncodingStats {
        page_type,
        encoding,
        count,
    };
    let metadata = ColumnChunkMetaData::builder(Arc::clone(description))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_encodings(vec![
            Encoding::PLAIN,
            Encoding::RLE,
            Encoding::RLE_DICTIONARY,
        ])
        .set_page_encoding_stats(vec![
            statistics(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
            statistics(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, data_pages),
        ])
        .set_num_values(places.len() as i64)
        .set_total_uncompressed_size(uncompressed)
        .set_total_compressed_size(compressed)
        .set_dictionary_page_offset(Some(dictionary_at as i64))
        .set_data_page_offset(data_at.unwrap_or(dictionary_at) as i64)
        .build()?;
    Ok(Encoded {
        bytes: sink.into_inner()?.into(),
        result: ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: places.len() as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        },
    })
}

fn squeeze(bytes: &[u8]) -> Result<Bytes> {
    let squeezed = zstd::bulk::compress(bytes, LEVEL);
    squeezed
        .map(Bytes::from)
        .map_err(|error| ParquetError::External(Box::new(error)))
}

/// The width, and one run of so many bits a value.
fn pack(places: &[u16], width: u32) -> Vec<u8> {
    let groups = places.len().div_ceil(8);
    let mut packed = Vec::with_capacity(groups * width as usize + 16);
    packed.push(width as u8);
    let mut head = groups << 1 | 1;
    while head >= 0x80 {
        packed.push(head as u8 | 0x80);
        head >>= 7;
    }
    packed.push(head as u8);
    let start = packed.len();
    let (mut bits, mut held) = (0u64, 0);
    for &place in places {
        bits |= u64::from(place) << held;
        held += width;
        if held >= 32 {
            packed.extend((bits as u32).to_le_bytes());
            bits >>= 32;
            held -= 32;
        }
    }
    packed.extend(bits.to_le_bytes());
    // The last group is whole.
    packed.resize(start + groups * width as usize, 0);
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the values are, read back bit by bit.
    fn unpack(packed: &[u8], count: usize) -> (usize, Vec<u16>) {
        let width = usize::from(packed[0]);
        let head = 1
            + packed[1..]
                .iter()
                .position(|byte| byte & 0x80 == 0)
                .unwrap()
            + 1;
        let bits = &packed[head..];
        let bit = |at: usize| u16::from(bits[at / 8] >> (at % 8) & 1);
        let value = |n: usize| (0..width).map(|i| bit(n * width + i) << i).sum();
        (bits.len(), (0..count).map(value).collect())
    }

    #[test]
    fn packed_values_are_read_back_in_whole_groups() {
        for width in 1..=16u32 {
            for count in [1usize, 7, 8, 9, 63, 64, 65, 1000] {
                let places: Vec<u16> = (0..count)
                    .map(|n| (n * 40_503 % (1 << width)) as u16)
                    .collect();
                let packed = pack(&places, width);
                let (length, read) = unpack(&packed, count);
                assert_eq!(read, places, "{count} of {width} bits");
                assert_eq!(length, count.div_ceil(8) * width as usize);
            }
        }
    }
}

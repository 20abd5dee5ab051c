//! The arguments of `metes pages`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::quantity::positive_size;

/// Virtual memory in constant time: replay page operations, count instructions, compare systems
#[derive(Args)]
#[command(after_help = "Examples:
  metes pages replay operations.txt --pages 64 --frames 16
  metes pages bench
  metes pages compare program.touches")]
pub(crate) struct Pages {
    #[command(subcommand)]
    pub(crate) action: PagesAction,
}

#[derive(Subcommand)]
pub(crate) enum PagesAction {
    Replay(PagesReplay),
    Bench(PagesBench),
    Compare(PagesCompare),
    Operations(PagesOperations),
}

/// Say what each of a file's page operations meets, and what each read gives
///
/// One operation a line, # begins a comment: m,START,COUNT,r or rw makes a region without taking
/// frames; u,START frees the region that begins there; r,PAGE and w,PAGE,VALUE access a page. A
/// page that is touched for the first time takes a frame and reads 0. What is checked, in this
/// order: unmapped, rights, present, frame free. A region that ends beyond the pages is an overlap.
#[derive(Args)]
#[command(after_help = "Example: metes pages replay operations.txt --pages 64 --frames 16 --json")]
pub(crate) struct PagesReplay {
    /// The operations
    pub(crate) operations: PathBuf,
    /// Pages of the address space, up to 16777216
    #[arg(long, value_name = "COUNT")]
    pub(crate) pages: u32,
    /// Frames of the memory, up to 16777216
    #[arg(long, value_name = "COUNT")]
    pub(crate) frames: u32,
}

/// Count the instructions of map, unmap, page fault, find and access on 2^20 pages
///
/// Of each index and layout: the longest path through the code, which no call exceeds, beside the
/// most that any call of a random run took, single-stepped.
#[derive(Args)]
#[command(after_help = "Example: metes pages bench --json")]
pub(crate) struct PagesBench {
    /// Rounds of random operations that are counted
    #[arg(long, value_name = "COUNT", default_value_t = 2000)]
    pub(crate) calls: u64,
}

/// Replay where a program touches its blocks on constant-time pages and on a page table
///
/// The same TLSF places the blocks in both. Instructions are the most that each call can have
/// taken by what it did; the page table is unmapped page by page, at the end of the heap only.
#[derive(Args)]
#[command(
    after_help = "Example: metes record --accesses --touches program.touches -o program.trace.parquet -- ./program && metes pages compare program.touches"
)]
pub(crate) struct PagesCompare {
    /// Where a program touches its blocks: as `metes record --accesses --touches` writes it
    pub(crate) touches: PathBuf,
}

/// Write what a program's touches come to in page operations, for `metes pages replay` and the core
///
/// A heap over constant-time pages places the blocks. As many of the program's steps are written as fit
/// into the pages and come to at most so many operations.
#[derive(Args)]
#[command(
    after_help = "Example: metes pages operations program.touches --pages 1024 --page 8KiB --most 2000 > operations.txt"
)]
pub(crate) struct PagesOperations {
    /// Where a program touches its blocks: as `metes record --accesses --touches` writes it
    pub(crate) touches: PathBuf,
    /// Pages of the address space, up to 65536
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) pages: u32,
    /// Bytes of a page, a power of two from 256 to 2 MiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = positive_size)]
    pub(crate) page: u64,
    /// Operations at most
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub(crate) most: usize,
}

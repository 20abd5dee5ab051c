//! The map of a heap's addresses: cells, each a run of pages.
//!
//! Invariant: every page is in exactly one cell, and cells are in the order of addresses.

use metes_board::Page;
use serde::Serialize;

/// A run of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Pages of it.
    pub pages: u64,
    /// Those that have memory.
    pub mapped: u64,
    /// Those that have memory, no block, and work that may still use them.
    pub waiting: u64,
    /// Bytes that were asked for, of blocks that lie on it.
    pub used: u64,
}

/// How full a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fill {
    /// No page has memory.
    Unmapped,
    /// Memory under no block.
    Idle,
    /// Memory under no block, and work may still use some of it.
    Waiting,
    /// Blocks take less than a third.
    Little,
    /// Less than two thirds.
    Half,
    /// Less than all but a sixteenth.
    Much,
    /// All but a sixteenth at most.
    Full,
}

impl Cell {
    /// How full it is, if pages have so many bytes.
    #[must_use]
    pub fn fill(&self, page: u64) -> Fill {
        let share = self.used as f64 / (self.pages.max(1) as f64 * page as f64);
        match self {
            Cell {
                used: 0, mapped: 0, ..
            } => Fill::Unmapped,
            Cell {
                used: 0,
                waiting: 0,
                ..
            } => Fill::Idle,
            Cell { used: 0, .. } => Fill::Waiting,
            _ if share < 1.0 / 3.0 => Fill::Little,
            _ if share < 2.0 / 3.0 => Fill::Half,
            _ if share < 15.0 / 16.0 => Fill::Much,
            _ => Fill::Full,
        }
    }
}

/// At most so many cells, of equally many pages but for the last. O(pages).
#[must_use]
pub fn cells(pages: &[Page], most: usize) -> Vec<Cell> {
    let run = pages.len().div_ceil(most.max(1)).max(1);
    let cell = |run: &[Page]| Cell {
        pages: run.len() as u64,
        mapped: run.iter().filter(|page| page.mapped).count() as u64,
        waiting: run.iter().filter(|page| page.waiting).count() as u64,
        used: run.iter().map(|page| page.used).sum(),
    };
    pages.chunks(run).map(cell).collect()
}

/// Pages of the longest run on which no block lies, mapped or not. O(pages).
#[must_use]
pub fn largest_free_run(pages: &[Page]) -> u64 {
    let runs = pages.chunk_by(|page, next| (page.used == 0) == (next.used == 0));
    let free = runs.filter(|run| run[0].used == 0);
    free.map(|run| run.len() as u64).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(mapped: bool, used: u64, waiting: bool) -> Page {
        Page {
            mapped,
            used,
            waiting,
        }
    }

    #[test]
    fn cells_have_every_page_once() {
        let pages: Vec<Page> = (0..103)
            .map(|n| page(n % 2 == 0, n % 5, n % 10 == 0))
            .collect();
        for most in [1, 2, 7, 50, 103, 1000] {
            let cells = cells(&pages, most);
            assert!(cells.len() <= most);
            let sum = |of: fn(&Cell) -> u64| cells.iter().map(of).sum::<u64>();
            assert_eq!(sum(|cell| cell.pages), 103);
            assert_eq!(sum(|cell| cell.mapped), 52);
            assert_eq!(sum(|cell| cell.waiting), 11);
            assert_eq!(sum(|cell| cell.used), (0..103).map(|n| n % 5).sum::<u64>());
        }
        assert!(cells(&[], 4).is_empty());
    }

    #[test]
    fn fills_are_told_apart() {
        let fill = |mapped, waiting, used| {
            Cell {
                pages: 2,
                mapped,
                waiting,
                used,
            }
            .fill(300)
        };
        assert_eq!(fill(0, 0, 0), Fill::Unmapped);
        assert_eq!(fill(1, 0, 0), Fill::Idle);
        assert_eq!(fill(2, 1, 0), Fill::Waiting);
        assert_eq!(fill(2, 1, 1), Fill::Little);
        assert_eq!(fill(2, 0, 300), Fill::Half);
        assert_eq!(fill(2, 0, 500), Fill::Much);
        assert_eq!(fill(2, 0, 600), Fill::Full);
    }

    #[test]
    fn the_largest_run_without_a_block() {
        let free = page(true, 0, false);
        let used = page(true, 1, false);
        assert_eq!(largest_free_run(&[free, used, free, free, used]), 2);
        assert_eq!(largest_free_run(&[used]), 0);
        assert_eq!(largest_free_run(&[]), 0);
    }
}

//! The heaps under test. Invariant: each heap of the list is both checked and measured.

use crate::board::Board;
use crate::report::Report;
use crate::{Arena, cases, churn};

macro_rules! catalogue {
    ($($heap:ty),+ $(,)?) => {
        /// Runs every case on every heap.
        pub(crate) fn test_all(arena: &mut Arena, report: &mut Report<'_>) {
            $(cases::all::<$heap>(arena, report);)+
        }

        /// Measures the churn on every heap.
        pub(crate) fn measure_all(
            arena: &mut Arena,
            board: &mut impl Board,
            overhead: u32,
            report: &mut Report<'_>,
        ) {
            churn::head(report);
            $(churn::measure::<$heap>(arena, board, overhead, report);)+
        }
    };
}

catalogue!(crate::naive::Naive);

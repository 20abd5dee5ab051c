//! What there is to be shown of a heap at one moment.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use metes_board::{Board, Count, Error, Snapshot};
use serde::{Serialize, Serializer};

use crate::map::{Cell, cells, largest_free_run};

/// Points of the history: two minutes at two looks a second.
const POINTS: usize = 240;
/// The rates are of as long a time as this, if it was watched so long.
const SPAN: Duration = Duration::from_secs(2);

/// A quantity: what it is, has been at most, and by how much it rose and fell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Now.
    pub current: u64,
    /// At most.
    pub peak: u64,
    /// Sum of what was added.
    pub added: u64,
    /// Sum of what was taken away.
    pub removed: u64,
}

impl From<Count> for Counts {
    fn from(count: Count) -> Self {
        Counts {
            current: count.current,
            peak: count.peak,
            added: count.added,
            removed: count.removed,
        }
    }
}

/// Whose heap it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The beginning of its command line.
    pub program: String,
    /// Whether it, or the heap, is gone.
    pub ended: bool,
}

/// Pages by what they are for, and what was done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// Under blocks in use.
    pub live: u64,
    /// With memory, under none.
    pub idle: u64,
    /// Of the idle ones, those that issued work may still use, as far as the heap knows.
    pub waiting: u64,
    /// Memory that is mapped nowhere.
    pub spare: u64,
    /// Of the addresses, without memory.
    pub unmapped: u64,
    /// Maps of new and spare pages so far.
    pub mapped: u64,
    /// Moves of idle pages so far.
    pub moved: u64,
    /// Most of them by one request.
    pub most_moved: u64,
}

/// What happened a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Seconds that it is a mean of.
    pub seconds: f64,
    /// Allocations.
    pub allocations: f64,
    /// Frees.
    pub frees: f64,
    /// Bytes asked for.
    pub bytes: f64,
    /// Pages mapped or moved.
    pub pages: f64,
}

/// A point of the history.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Since the first look.
    pub seconds: f64,
    /// Bytes asked for, of blocks in use.
    pub used: u64,
    /// Bytes of the device's memory that the heap has.
    pub mapped: u64,
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.seconds, self.used, self.mapped).serialize(serializer)
    }
}

/// A heap at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// Of this document.
    pub version: u32,
    /// By which `metes device watch` knows the heap: process and number in it.
    pub heap: String,
    /// Whose it is.
    pub process: Process,
    /// Whose memory it is.
    pub device: String,
    /// Moments that the heap has shown so far, about one an operation.
    pub moment: u64,
    /// Most bytes of the device's memory.
    pub cap: u64,
    /// The first address.
    pub start: u64,
    /// Bytes of addresses.
    pub addresses: u64,
    /// Bytes of a page.
    pub page: u64,
    /// Blocks are multiples of so many bytes.
    pub granule: u64,
    /// Blocks in use: added by allocations, removed by frees.
    pub blocks: Counts,
    /// Bytes of them, in whole granules.
    pub allocated: Counts,
    /// Bytes of them that were asked for.
    pub requested: Counts,
    /// Bytes of the device's memory.
    pub reserved: Counts,
    /// Pages.
    pub pages: Pages,
    /// Bytes of the longest run of pages on which no block lies.
    pub largest_free_run: u64,
    /// Streams followed.
    pub streams: u64,
    /// Events recorded for frees.
    pub marks: u64,
    /// Waits of the host for a stream.
    pub waits: u64,
    /// Streams ordered behind another.
    pub orders: u64,
    /// Requests refused for lack of memory.
    pub refusals: u64,
    /// Requests tried again.
    pub retries: u64,
    /// Frees of what is no block in use.
    pub bad_frees: u64,
    /// Whether the heap sleeps.
    pub asleep: bool,
    /// Since an earlier look; none at the first.
    pub rates: Option<Rates>,
    /// The addresses.
    pub map: Vec<Cell>,
    /// Of the looks so far.
    pub history: Vec<Point>,
}

struct Look {
    at: Instant,
    allocations: u64,
    frees: u64,
    bytes: u64,
    pages: u64,
}

/// Looks at a heap again and again.
pub struct Watcher {
    board: Board,
    first: Instant,
    looks: VecDeque<Look>,
    history: VecDeque<Point>,
}

impl Watcher {
    /// Watches a heap from now on.
    #[must_use]
    pub fn new(board: Board) -> Self {
        Watcher {
            board,
            first: Instant::now(),
            looks: VecDeque::new(),
            history: VecDeque::with_capacity(POINTS),
        }
    }

    /// Where the heap shows itself.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The heap now, with a map of at most so many cells. O(pages).
    ///
    /// # Errors
    /// Those of [`Board::read`].
    pub fn look(&mut self, cells: usize) -> Result<View, Error> {
        // Before it is read: a heap that ends meanwhile is seen once more.
        let ended = self.board.ended();
        let snapshot = self.board.read()?;
        let now = Instant::now();
        let figures = &snapshot.figures;
        let look = Look {
            at: now,
            allocations: figures.blocks.added,
            frees: figures.blocks.removed,
            bytes: figures.requested.added,
            pages: figures.mapped + figures.moved,
        };
        let rates = self.rates(&look);
        self.looks.push_back(look);
        if self.history.len() == POINTS {
            self.history.pop_front();
        }
        self.history.push_back(Point {
            seconds: (now - self.first).as_secs_f64(),
            used: figures.requested.current,
            mapped: figures.reserved.current,
        });
        Ok(self.view(&snapshot, cells, ended, rates))
    }

    /// Means since the last look that is old enough; looks before that are forgotten.
    fn rates(&mut self, now: &Look) -> Option<Rates> {
        while self
            .looks
            .get(1)
            .is_some_and(|look| now.at - look.at >= SPAN)
        {
            self.looks.pop_front();
        }
        let before = self.looks.front()?;
        let seconds = (now.at - before.at).as_secs_f64();
        // Sums may have been set to 0 in between.
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        (seconds > 0.0).then(|| Rates {
            seconds,
            allocations: rate(now.allocations, before.allocations),
            frees: rate(now.frees, before.frees),
            bytes: rate(now.bytes, before.bytes),
            pages: rate(now.pages, before.pages),
        })
    }

    fn view(&self, snapshot: &Snapshot, most: usize, ended: bool, rates: Option<Rates>) -> View {
        let header = self.board.header();
        let figures = &snapshot.figures;
        let pages = &snapshot.pages;
        let count = |test: fn(&metes_board::Page) -> bool| {
            pages.iter().filter(|page| test(page)).count() as u64
        };
        View {
            version: 1,
            heap: format!("{}.{}", self.board.process(), header.serial),
            process: Process {
                pid: self.board.process(),
                program: header.program.clone(),
                ended,
            },
            device: header.device.clone(),
            moment: snapshot.number,
            cap: figures.cap,
            start: header.start,
            addresses: header.page * header.pages,
            page: header.page,
            granule: header.granule,
            blocks: figures.blocks.into(),
            allocated: figures.allocated.into(),
            requested: figures.requested.into(),
            reserved: figures.reserved.into(),
            pages: Pages {
                live: figures.live_pages,
                idle: figures.idle_pages,
                waiting: count(|page| page.waiting),
                spare: figures.spare_pages,
                unmapped: count(|page| !page.mapped),
                mapped: figures.mapped,
                moved: figures.moved,
                most_moved: figures.most_moved,
            },
            largest_free_run: largest_free_run(pages) * header.page,
            streams: figures.streams,
            marks: figures.marks,
            waits: figures.waits,
            orders: figures.orders,
            refusals: figures.refusals,
            retries: figures.retries,
            bad_frees: figures.bad_frees,
            asleep: figures.asleep == 1,
            rates,
            map: cells(pages, most),
            history: self.history.iter().copied().collect(),
        }
    }
}

//! A heap over pages of a backend, by addresses and by the device's names of streams.
//!
//! Invariant: the table has exactly the blocks in use of the heap; the counts are theirs.

use metes_device::backend::Backend;
use metes_device::backend::timeline::{Stream, Ticket, Timeline};
use metes_device::heap::Span;
use metes_device::sparse::{Pages, Plan, SparseRefusal};
use metes_device::stream_pages::SparseStreamHeap;
use metes_device::streams::{Crossing, Progress, Streams};

use crate::failure::{Failure, Status};
use crate::figures::{Block, Count, Holder, Options, Range, Statistics};
use crate::follow::{Follow, GRAPHS, PER_THREAD, WithGraphs};
use crate::graphs::{Graphs, Id};
use crate::history::{Action, Event, History};
use crate::table::{Entry, Graph, Table};

/// Streams that a heap tells apart; one more is that of graphs.
const MOST: usize = 63;

/// Blocks of up to so many bytes are small: where PyTorch, whose statistics have both, draws
/// the line.
const SMALL: u64 = 1 << 20;

/// A heap whose backend and timeline do not matter any more.
pub(crate) trait Device: Send {
    fn allocate(&mut self, bytes: u64, align: u64, stream: u64) -> Result<u64, Failure>;
    fn free(&mut self, address: u64) -> Result<(), Failure>;
    fn use_on(&mut self, address: u64, stream: u64) -> Result<(), Failure>;
    fn leave(&mut self, stream: u64) -> Result<(), Failure>;
    fn forget(&mut self, stream: u64) -> Result<(), Failure>;
    fn trim(&mut self, keep: u64) -> Result<u64, Failure>;
    fn sleep(&mut self) -> Result<(), Failure>;
    fn wake(&mut self) -> Result<(), Failure>;
    fn limit(&mut self, cap: u64) -> Result<(), Failure>;
    fn range(&self) -> metes_device::backend::Range;
    fn capacity(&self) -> Result<(u64, u64), Failure>;
    fn statistics(&self) -> Statistics;
    fn reset_peaks(&mut self);
    fn reset_totals(&mut self);
    fn retried(&mut self);
    fn requested(&self, address: u64) -> Result<u64, Failure>;
    fn holders(&self, visit: &mut dyn FnMut(Holder));
    fn blocks(&self, visit: &mut dyn FnMut(Block));
    fn mapped(&self, visit: &mut dyn FnMut(Range));
    fn history(&mut self) -> &mut History;
    fn begin_graph(&mut self, pool: Id) -> Result<(), Failure>;
    fn end_graph(&mut self, pool: Id);
    fn release_graph(&mut self, pool: Id) -> Result<(), Failure>;
    fn check(&self) -> Result<(), Failure>;
}

/// See the module.
pub(crate) struct Plug<B: Backend, T: Follow> {
    heap: SparseStreamHeap<B, WithGraphs<T>>,
    table: Table,
    /// The streams that the timeline follows, by their slots.
    names: Box<[Option<(u64, Stream)>]>,
    /// The stream that was asked for last.
    last: Option<(u64, Stream)>,
    statistics: Statistics,
    history: History,
    graphs: Graphs,
    /// Waits for all work of the device.
    synchronize: fn(&B) -> Result<(), Failure>,
}

impl<B: Backend + Send, T: Follow> Plug<B, T> {
    /// A heap over `backend`, whose streams `timeline` follows: as many as it is asked for.
    pub(crate) fn new(
        backend: B,
        options: &Options,
        timeline: impl FnOnce(&B, usize) -> Result<T, Failure>,
        synchronize: fn(&B) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let plan = plan(&backend, options)?;
        let streams = match options.streams {
            0 => MOST,
            streams if streams as usize > MOST => {
                return Err(Failure::invalid(format!(
                    "{streams} streams were asked for: ask for {MOST} at most"
                )));
            }
            streams => streams as usize,
        };
        let timeline = WithGraphs::new(timeline(&backend, streams)?);
        let crossing = match options.wait {
            0 => Crossing::Order,
            _ => Crossing::Wait,
        };
        let batch = match options.batch {
            0 => 32,
            batch => batch,
        };
        let table = Table::new(plan.blocks).ok_or_else(|| {
            Failure::invalid(format!(
                "the host has no memory for the records of {} blocks: ask for fewer",
                plan.blocks
            ))
        })?;
        let heap = SparseStreamHeap::new(backend, plan, timeline, Streams { batch, crossing })?;
        Ok(Plug {
            heap,
            table,
            names: vec![None; streams + 1].into_boxed_slice(),
            last: None,
            statistics: Statistics {
                cap: plan.cap,
                addresses: plan.addresses,
                page: plan.page,
                granule: plan.granule,
                ..Statistics::default()
            },
            history: History::default(),
            graphs: Graphs::default(),
            synchronize,
        })
    }

    fn stream(&mut self, raw: u64) -> Result<Stream, Failure> {
        if let Some((last, stream)) = self.last
            && last == raw
        {
            return Ok(stream);
        }
        if raw == PER_THREAD {
            return Err(Failure::new(
                Status::Stream,
                "the default stream of each thread is not one stream: name a stream, or the \
                 default stream of the device",
            ));
        }
        let stream = self.heap.timeline().follow(raw)?;
        self.names[stream.slot()] = Some((raw, stream));
        self.last = Some((raw, stream));
        Ok(stream)
    }

    /// A stream that is followed already.
    fn followed(&mut self, raw: u64) -> Result<Stream, Failure> {
        let mut names = self.names.iter().flatten();
        let found = names.find(|(name, _)| *name == raw && raw != GRAPHS);
        let (_, stream) = found.ok_or_else(|| {
            Failure::new(
                Status::Stream,
                format!("stream {raw:#x} was not used here, or left: nothing waits for it"),
            )
        })?;
        Ok(*stream)
    }

    fn unname(&mut self, stream: Stream) {
        self.names[stream.slot()] = None;
        self.last = None;
    }

    fn entry(&mut self, address: u64) -> Result<Entry, Failure> {
        let found = self.table.get(address);
        let used = found.filter(|entry| entry.graph.is_none_or(|graph| !graph.kept));
        used.ok_or_else(|| {
            self.statistics.bad_frees += 1;
            Failure::new(
                Status::BadFree,
                format!(
                    "no block in use begins at {address:#x}: it was freed before, or is not of \
                     this heap"
                ),
            )
        })
    }

    /// The pool that a request of a stream is of: one whose graph is being captured on it.
    fn pool_for(&mut self, stream: u64) -> Result<Option<u32>, Failure> {
        let Some(pool) = self.graphs.active() else {
            return Ok(None);
        };
        let joined = self.stream(stream)?;
        let capturing = self.heap.timeline().capturing(joined)?;
        Ok(capturing.then_some(pool))
    }

    /// Has a kept block of a pool serve a request.
    fn take_kept(&mut self, pool: u32, bytes: u64, align: u64) -> Option<u64> {
        let address = self.graphs.take(pool, bytes, align)?;
        let entry = self.table.get_mut(address)?;
        entry.graph = Some(Graph {
            pool,
            kept: false,
            requested: bytes,
        });
        self.count(bytes, Count::add);
        Some(address)
    }

    /// Keeps a block for its pool.
    fn keep(&mut self, entry: Entry, graph: Graph) {
        let Ok(span) = self.heap.span(entry.handle) else {
            return;
        };
        if let Some(entry) = self.table.get_mut(entry.address) {
            entry.graph = Some(Graph {
                kept: true,
                ..graph
            });
        }
        self.graphs.keep(graph.pool, span.requested, entry.address);
    }

    /// The figures that are not the pages' or the streams', and those.
    pub(crate) fn figures(&self) -> (&Statistics, Pages, Progress, bool) {
        let heap = &self.heap;
        (
            &self.statistics,
            heap.pages(),
            heap.progress(),
            heap.asleep(),
        )
    }

    /// Streams that are followed. O(those that can be).
    pub(crate) fn streams(&self) -> u64 {
        self.names.iter().flatten().count() as u64
    }

    /// Where the block at an address lies, in use or kept by a graph.
    pub(crate) fn span(&self, address: u64) -> Option<Span> {
        self.heap.span(self.table.get(address)?.handle).ok()
    }

    /// All blocks that lie somewhere, in use or kept by graphs. Linear.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.heap.in_use()
    }

    /// How many there are.
    pub(crate) fn lying(&self) -> usize {
        self.heap.used()
    }

    /// What was freed on a page waits for: streams by their slots, and a ticket.
    pub(crate) fn waits(&self, page: u64) -> Option<(u64, Ticket)> {
        self.heap.waits(page as usize)
    }

    /// The name of a slot's stream, and how far it came if it is known to have completed a
    /// ticket.
    pub(crate) fn came(&self, slot: usize, known: Ticket) -> Option<(u64, Ticket)> {
        let (name, _) = (*self.names.get(slot)?)?;
        Some((name, self.heap.came(slot, known)))
    }

    fn rounded(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.statistics.granule)
    }

    /// What of the counts follows the pages.
    fn count_pages(&mut self) {
        let Pages {
            live, idle, spare, ..
        } = self.heap.pages();
        let pages = if self.heap.asleep() { 0 } else { live };
        self.statistics
            .reserved
            .set((pages + idle + spare) * self.statistics.page);
    }

    /// Who has the memory, in words.
    fn explain(&self, bytes: u64, stream: u64, failure: &Failure) -> Failure {
        let Statistics { all, cap, page, .. } = self.statistics;
        let Pages { live, idle, .. } = self.heap.pages();
        let device = self.heap.backend().capacity().map_or_else(
            |error| error.to_string(),
            |capacity| {
                format!(
                    "{} of {} are free",
                    size(capacity.free),
                    size(capacity.total)
                )
            },
        );
        let mut text = format!(
            "Tried to allocate {} for stream {stream:#x}. Of a cap of {}, {} are under {} blocks \
             in use ({} requested), {} lie idle; of the device {device}. Held by:",
            size(bytes),
            size(cap),
            size(live * page),
            all.blocks.current,
            size(all.requested.current),
            size(idle * page),
        );
        let mut none = true;
        self.holders(&mut |holder| {
            let Holder {
                stream,
                bytes,
                blocks,
            } = holder;
            let name = match stream {
                u64::MAX => "streams that left".to_owned(),
                GRAPHS => "graphs".to_owned(),
                stream => format!("stream {stream:#x}"),
            };
            let comma = if none { "" } else { "," };
            text += &format!("{comma} {name}: {} in {blocks} blocks", size(bytes));
            none = false;
        });
        if none {
            text += " nobody";
        }
        Failure::new(failure.status, format!("{text}. {}.", failure.text))
    }

    fn count(&mut self, bytes: u64, count: impl Fn(&mut Count, u64)) {
        let rounded = self.rounded(bytes);
        let Statistics {
            small, large, all, ..
        } = &mut self.statistics;
        let part = if bytes <= SMALL { small } else { large };
        for blocks in [part, all] {
            count(&mut blocks.blocks, 1);
            count(&mut blocks.allocated, rounded);
            count(&mut blocks.requested, bytes);
        }
    }

    fn each_count(&mut self, mut visit: impl FnMut(&mut Count)) {
        let Statistics {
            small,
            large,
            all,
            reserved,
            ..
        } = &mut self.statistics;
        for blocks in [small, large, all] {
            blocks.each(&mut visit);
        }
        visit(reserved);
    }
}

impl<B: Backend + Send, T: Follow> Device for Plug<B, T> {
    fn allocate(&mut self, bytes: u64, align: u64, stream: u64) -> Result<u64, Failure> {
        let pool = self.pool_for(stream)?;
        if let Some(pool) = pool
            && let Some(address) = self.take_kept(pool, bytes, align.max(1))
        {
            self.history
                .note(Event::now(Action::Allocate, address, bytes, stream));
            return Ok(address);
        }
        let joined = self.stream(if pool.is_some() { GRAPHS } else { stream })?;
        let allocated = self.heap.allocate(joined, bytes, align.max(1));
        self.count_pages();
        let block = match allocated {
            Ok(block) => block,
            Err(error) => {
                let failure = Failure::from(error);
                if failure.status == Status::Capturing {
                    return Err(capturing(stream, failure.status));
                }
                if failure.status != Status::OutOfMemory {
                    return Err(failure);
                }
                self.statistics.refusals += 1;
                self.history
                    .note(Event::now(Action::Refusal, 0, bytes, stream));
                return Err(self.explain(bytes, stream, &failure));
            }
        };
        let address = self.heap.range().start + block.offset;
        self.table.insert(Entry {
            address,
            handle: block.place,
            stream,
            graph: pool.map(|pool| Graph {
                pool,
                kept: false,
                requested: bytes,
            }),
        });
        self.count(bytes, Count::add);
        self.history
            .note(Event::now(Action::Allocate, address, bytes, stream));
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<(), Failure> {
        let entry = self.entry(address)?;
        let bytes = self.requested(address)?;
        if let Some(graph) = entry.graph {
            if self.graphs.keeps(graph.pool) {
                self.keep(entry, graph);
                self.count(bytes, Count::remove);
                self.history
                    .note(Event::now(Action::Free, address, bytes, entry.stream));
                return Ok(());
            }
            // The graph is gone, and other work of its stream used the block since.
            self.use_on(address, entry.stream)?;
        }
        let freed = self.heap.free(entry.handle).map_err(Failure::from);
        if let Err(failure) = &freed
            && failure.status == Status::BadFree
        {
            return freed;
        }
        self.table.remove(address);
        self.count(bytes, Count::remove);
        self.count_pages();
        self.history
            .note(Event::now(Action::Free, address, bytes, entry.stream));
        freed
    }

    fn use_on(&mut self, address: u64, stream: u64) -> Result<(), Failure> {
        let entry = self.entry(address)?;
        let joined = self.stream(stream)?;
        Ok(self.heap.use_on(entry.handle, joined)?)
    }

    fn leave(&mut self, stream: u64) -> Result<(), Failure> {
        let joined = self.followed(stream)?;
        self.heap.leave(joined)?;
        self.unname(joined);
        Ok(())
    }

    fn forget(&mut self, stream: u64) -> Result<(), Failure> {
        let joined = self.followed(stream)?;
        self.heap.forget(joined);
        // The timeline may know the stream still; its work is over, so that this waits for
        // nobody, and where the device knows it no more there is nothing to be left.
        let _ = self.heap.timeline().leave(joined);
        self.unname(joined);
        Ok(())
    }

    fn trim(&mut self, keep: u64) -> Result<u64, Failure> {
        let trimmed = self.heap.trim(keep / self.statistics.page);
        self.count_pages();
        Ok(trimmed? * self.statistics.page)
    }

    fn sleep(&mut self) -> Result<(), Failure> {
        let slept = self.heap.sleep();
        self.count_pages();
        Ok(slept?)
    }

    fn wake(&mut self) -> Result<(), Failure> {
        let woken = self.heap.wake();
        self.count_pages();
        Ok(woken?)
    }

    fn limit(&mut self, cap: u64) -> Result<(), Failure> {
        let limited = self.heap.limit(cap - cap % self.statistics.page);
        limited.map_err(|refusal| match refusal {
            SparseRefusal::Pages {
                free: needed,
                cap: most,
                ..
            } => Failure::invalid(format!(
                "a cap of {} was asked for: blocks in use need {}, and the heap was made for {}",
                size(cap),
                size(needed * self.statistics.page),
                size(most * self.statistics.page),
            )),
            other => other.into(),
        })?;
        self.statistics.cap = self.heap.plan().cap;
        self.count_pages();
        Ok(())
    }

    fn range(&self) -> metes_device::backend::Range {
        self.heap.range()
    }

    fn capacity(&self) -> Result<(u64, u64), Failure> {
        let capacity = self.heap.backend().capacity()?;
        Ok((capacity.free, capacity.total))
    }

    fn statistics(&self) -> Statistics {
        let pages = self.heap.pages();
        let progress = self.heap.progress();
        Statistics {
            live_pages: pages.live,
            idle_pages: pages.idle,
            spare_pages: pages.spare,
            mapped: pages.mapped,
            moved: pages.moved,
            most_moved: pages.most_moved,
            marks: progress.marks,
            waits: progress.waits,
            orders: progress.orders,
            streams: self.streams(),
            asleep: self.heap.asleep().into(),
            ..self.statistics
        }
    }

    fn reset_peaks(&mut self) {
        self.each_count(|count| count.peak = count.current);
    }

    fn reset_totals(&mut self) {
        self.each_count(|count| (count.added, count.removed) = (0, 0));
        self.statistics.refusals = 0;
        self.statistics.retries = 0;
    }

    fn retried(&mut self) {
        self.statistics.retries += 1;
    }

    fn requested(&self, address: u64) -> Result<u64, Failure> {
        let none = || {
            Failure::new(
                Status::BadFree,
                format!("no block in use begins at {address:#x}"),
            )
        };
        let entry = self.table.get(address).ok_or_else(none)?;
        if let Some(graph) = entry.graph {
            return if graph.kept {
                Err(none())
            } else {
                Ok(graph.requested)
            };
        }
        let span = self.heap.span(entry.handle);
        span.map(|span| span.requested).map_err(|_| none())
    }

    fn holders(&self, visit: &mut dyn FnMut(Holder)) {
        for (stream, bytes, blocks) in self.heap.holders() {
            let named = stream.and_then(|stream| self.names[stream.slot()]);
            visit(Holder {
                stream: named.map_or(u64::MAX, |(raw, _)| raw),
                bytes,
                blocks,
            });
        }
    }

    fn blocks(&self, visit: &mut dyn FnMut(Block)) {
        for entry in self.table.entries() {
            let Ok(requested) = self.requested(entry.address) else {
                continue;
            };
            visit(Block {
                address: entry.address,
                size: self.rounded(requested),
                requested,
                stream: entry.stream,
            });
        }
    }

    fn mapped(&self, visit: &mut dyn FnMut(Range)) {
        self.heap.each_mapped(&mut |range| {
            visit(Range {
                address: range.start,
                bytes: range.bytes,
            });
        });
    }

    fn history(&mut self) -> &mut History {
        &mut self.history
    }

    fn begin_graph(&mut self, pool: Id) -> Result<(), Failure> {
        self.graphs.begin(pool)
    }

    fn end_graph(&mut self, pool: Id) {
        self.graphs.end(pool);
    }

    fn release_graph(&mut self, pool: Id) -> Result<(), Failure> {
        let Some(number) = self.graphs.release(pool) else {
            return Ok(());
        };
        // A graph may run on a stream that never asked for memory here.
        (self.synchronize)(self.heap.backend())?;
        for address in self.graphs.close(number) {
            let Some(entry) = self.table.get(address) else {
                continue;
            };
            self.table.remove(address);
            self.heap.free(entry.handle)?;
        }
        self.count_pages();
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        let wrong = |text: &str| Failure::new(Status::Broken, text);
        self.heap
            .check()
            .map_err(|error| Failure::new(Status::Broken, error))?;
        if self.table.used() != self.heap.used() {
            return Err(wrong("the table has other blocks than the heap"));
        }
        for entry in self.table.entries() {
            if self.heap.address(entry.handle) != Ok(entry.address) {
                return Err(wrong("a block is not where the table has it"));
            }
        }
        let blocks = self.heap.used() - self.graphs.kept();
        if self.statistics.all.blocks.current != blocks as u64 {
            return Err(wrong("blocks are miscounted"));
        }
        Ok(())
    }
}

/// Rounds what was asked for to what the backend can do, and fills in what was not.
fn plan(backend: &impl Backend, options: &Options) -> Result<Plan, Failure> {
    let page = match options.page {
        0 => backend.granularity().max(2 << 20),
        page => page,
    };
    if !page.is_power_of_two() {
        return Err(Failure::invalid(format!(
            "a page of {page} bytes is no power of two: take {}",
            page.checked_next_power_of_two().unwrap_or(2 << 20)
        )));
    }
    let capacity = backend.capacity()?;
    let cap = match options.cap {
        0 => capacity.free,
        cap if cap > capacity.total => {
            return Err(Failure::invalid(format!(
                "a cap of {} was asked for, the device has {}: ask for less",
                size(cap),
                size(capacity.total)
            )));
        }
        cap => cap,
    };
    let cap = cap - cap % page;
    if cap == 0 {
        return Err(Failure::new(
            Status::OutOfMemory,
            format!("no page of {} fits into the memory there is", size(page)),
        ));
    }
    let addresses = match options.addresses {
        0 => cap.saturating_mul(2),
        addresses => addresses.max(cap),
    };
    let addresses = addresses
        .checked_next_multiple_of(page)
        .ok_or_else(|| Failure::invalid(format!("{addresses} addresses are too many")))?;
    let mut granule = match options.granule {
        0 => 512,
        granule => granule,
    };
    // Granules are numbered with 32 bits.
    while options.granule == 0 && addresses / granule > u64::from(u32::MAX) {
        granule *= 2;
    }
    let blocks = match options.blocks {
        0 => 1 << 18,
        blocks => blocks,
    };
    Ok(Plan {
        addresses,
        cap,
        page,
        granule,
        blocks: blocks.min(addresses / granule.max(1)) as usize,
        moves: match options.moves {
            0 => u64::MAX,
            moves => moves,
        },
    })
}

/// Why nothing is allocated for a stream whose work has no time.
fn capturing(stream: u64, status: Status) -> Failure {
    Failure::new(
        status,
        format!(
            "stream {stream:#x}, or one whose memory is needed, is being captured into a graph, \
             which would use the block whenever it runs, whoever has it then: allocate before the \
             capture, or let another allocator have the graph's memory"
        ),
    )
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in units {
        if bytes >> shift > 0 {
            return format!("{:.2} {unit}", bytes as f64 / (1_u64 << shift) as f64);
        }
    }
    format!("{bytes} bytes")
}

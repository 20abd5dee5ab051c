//! Ranks as nodes: the fabric on which the protocol works.
//!
//! Invariant: each access is one of MPI's one-sided operations on the window of the node that it is about, and has taken
//! effect when it returns; what is the own rank's is no exception.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use metes_heap::RegionError;
use metes_mesh::{Fabric, HeapSpace, LocalHeap, Node, NotMade, Word};
use metes_mesh_replay::{Lists, Timed, account, bury, is_dead, words};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use crate::detect::Process;
use crate::heap::{Index, WindowHeap, sure};
use crate::layout::{Layout, Own};
use crate::times::Stopwatch;
use crate::window::{Window, WindowError};

/// How often a rank that waits looks whether the others live.
const LOOK: Duration = Duration::from_millis(5);

/// Ranks with a heap each.
#[derive(Debug)]
pub struct Ranks {
    pub(crate) window: Rc<Window>,
    pub(crate) layout: Layout,
    space: HeapSpace,
    rank: u32,
    heap: std::cell::UnsafeCell<WindowHeap>,
    /// Of each rank.
    processes: Vec<Process>,
    looked: Cell<Instant>,
}

/// Why there are no such ranks.
#[derive(Debug, thiserror::Error)]
pub enum NotJoined {
    /// There are no such windows.
    #[error("{0}; give a smaller heap")]
    Window(#[from] WindowError),
    /// There are no such heaps.
    #[error("{0}")]
    NotMade(#[from] NotMade),
}

impl Ranks {
    /// The nodes of `space`, a rank each, that do what `lists` say. Collective.
    ///
    /// # Errors
    /// [`NotJoined`] says what to give instead.
    pub fn new(
        world: &SimpleCommunicator,
        space: HeapSpace,
        lists: &Lists,
        index: Index,
    ) -> Result<Ranks, NotJoined> {
        let granules = space.size().div_ceil(WindowHeap::APART);
        let requests = (0..lists.nodes()).map(|node| lists.requests(node)).max();
        let layout = Layout::new(space.size(), granules, words(requests.unwrap_or(0)) as u64);
        let rank = world.rank() as u32;
        let window = Rc::new(Window::new(world, layout.bytes())?);
        let heap = WindowHeap::lay(&window, layout, rank, index).map_err(|error| match error {
            RegionError::TooSmall(lacks) => NotMade::TooSmall { lacks },
            _ => NotMade::TooLarge,
        });
        let own = Process::own();
        for (word, value) in [
            (Own::Process, own.number),
            (Own::Started, own.started),
            (Own::Host, own.host),
        ] {
            window.store(rank, layout.own(word), value)?;
        }
        // All is laid behind it, or nothing is.
        world.barrier();
        let heap = heap?;
        let process = |rank| -> Result<Process, WindowError> {
            let own = |word| window.load(rank, layout.own(word));
            Ok(Process {
                number: own(Own::Process)?,
                started: own(Own::Started)?,
                host: own(Own::Host)?,
            })
        };
        let processes = (0..space.nodes()).map(process);
        let processes = processes.collect::<Result<Vec<_>, _>>()?;
        Ok(Ranks {
            window,
            layout,
            space,
            rank,
            heap: std::cell::UnsafeCell::new(heap),
            processes,
            looked: Cell::new(Instant::now()),
        })
    }

    /// Looks, now and then, whether the processes of others have ended, and takes those for dead.
    pub(crate) fn look(&self) {
        let now = Instant::now();
        if now - self.looked.get() < LOOK {
            return;
        }
        self.looked.set(now);
        let here = self.processes[self.rank as usize];
        for (rank, process) in (0..).zip(&self.processes) {
            if rank != self.rank && !is_dead(self, rank) && process.has_ended(here) {
                bury(self, self, rank);
            }
        }
    }

    /// Tells what this rank has seen, and waits until all is added up: by the first that lives, which gets it.
    ///
    /// # Errors
    /// [`metes_mesh_replay::NotReplayed`]: what must not be was found.
    pub fn end(
        &self,
        lists: &Lists,
        watch: &Stopwatch,
    ) -> Result<Option<Timed>, metes_mesh_replay::NotReplayed> {
        let own = |rank, word| -> u64 { sure(self.window.load(rank, self.layout.own(word))) };
        let say = |rank, word, value: u64| {
            sure(self.window.store(rank, self.layout.own(word), value));
        };
        watch.tell(&self.window, self.rank, self.layout.times());
        say(self.rank, Own::Elapsed, watch.elapsed().as_nanos() as u64);
        say(self.rank, Own::Told, 1);
        loop {
            if own(self.rank, Own::Over) != 0 {
                return Ok(None);
            }
            let lives = |&rank: &u32| !is_dead(self, rank);
            let first = (0..self.space.nodes()).find(lives);
            let told = (0..self.space.nodes())
                .filter(lives)
                .all(|rank| own(rank, Own::Told) != 0);
            if first == Some(self.rank) && told {
                break;
            }
            self.look();
            std::thread::sleep(Duration::from_micros(200));
        }
        // SAFETY: those that live have told all, so they take no further step in the protocol.
        let timed = unsafe { account(self, self, lists) }.map(|replayed| {
            let mut all = Stopwatch::new();
            let ranks = 0..self.space.nodes();
            for rank in ranks.clone() {
                all.hear(&self.window, rank, self.layout.times());
            }
            let longest = ranks.map(|rank| own(rank, Own::Elapsed)).max();
            let seconds = longest.unwrap_or(0) as f64 * 1e-9;
            let done = replayed.operations - replayed.undone;
            Timed {
                operations_per_second: if seconds > 0.0 {
                    done as f64 / seconds
                } else {
                    0.0
                },
                seconds,
                latency: all.latencies(),
                replayed,
            }
        });
        for rank in 0..self.space.nodes() {
            say(rank, Own::Over, 1);
        }
        timed.map(Some)
    }

    /// Whether any rank has died: then there can be no collective end.
    pub fn some_died(&self) -> bool {
        (0..self.space.nodes()).any(|rank| is_dead(self, rank))
    }
}

impl Fabric for Ranks {
    type Heap = WindowHeap;

    fn space(&self) -> HeapSpace {
        self.space
    }

    fn load(&self, node: Node, word: Word) -> u64 {
        sure(self.window.load(node.0, self.layout.word(word)))
    }

    fn store(&self, node: Node, word: Word, value: u64) {
        sure(self.window.store(node.0, self.layout.word(word), value));
    }

    fn compare_exchange(&self, node: Node, word: Word, current: u64, new: u64) -> Result<(), u64> {
        let at = self.layout.word(word);
        let was = sure(self.window.compare_exchange(node.0, at, current, new));
        if was == current { Ok(()) } else { Err(was) }
    }

    fn tag(&self, node: Node, granule: u64) -> u16 {
        let tag: u32 = sure(self.window.load(node.0, self.layout.tag(granule)));
        tag as u16
    }

    fn set_tag(&self, node: Node, granule: u64, tag: u16) {
        let at = self.layout.tag(granule);
        sure(self.window.store(node.0, at, u32::from(tag)));
    }

    fn exchange_tag(&self, node: Node, granule: u64, current: u16, new: u16) -> Result<(), u16> {
        let (at, current) = (self.layout.tag(granule), u32::from(current));
        let was = sure(
            self.window
                .compare_exchange(node.0, at, current, new.into()),
        );
        if was == current {
            Ok(())
        } else {
            Err(was as u16)
        }
    }

    unsafe fn link(&self, node: Node, offset: u64) -> u64 {
        let mut link = [0; 8];
        let at = self.layout.heap() + offset;
        sure(self.window.get(node.0, at, &mut link));
        u64::from_ne_bytes(link)
    }

    unsafe fn set_link(&self, node: Node, offset: u64, link: u64) {
        let at = self.layout.heap() + offset;
        sure(self.window.put(node.0, at, &link.to_ne_bytes()));
    }

    unsafe fn with_heap<T>(&self, node: Node, change: impl FnOnce(&mut Self::Heap) -> T) -> T {
        // SAFETY: this process has one thread, and nothing that changes a heap calls this again.
        let heap = unsafe { &mut *self.heap.get() };
        heap.turn_to(node.0);
        change(heap)
    }

    fn relax(&self) {
        self.look();
        std::thread::yield_now();
    }
}

//! The reader's side of a board.
//!
//! Invariant: every value of a [`Snapshot`] was checked; no bytes of a file make a reader panic,
//! wait, or take more memory than a constant times the file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;

use crate::cells::{AtomicU64, Ordering};
use crate::error::Error;
use crate::figures::Figures;
#[cfg(target_os = "linux")]
use crate::find::Process;
use crate::header::{self, Header, STREAMS, Wrong};
use crate::layout::{HEADER, Layout, RECORD};
#[cfg(target_os = "linux")]
use crate::memory::Mapping;
use crate::protocol::{self, Missed};
use crate::writer::MAPPED;

/// How often a reader that was overtaken starts over.
const TRIES: usize = 1000;

/// A page of a heap's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Whether it has memory.
    pub mapped: bool,
    /// Bytes that were asked for, of blocks that lie on it. Blocks that a graph keeps count.
    pub used: u64,
    /// Whether it has memory, no block, and work that may still use it, as far as the heap
    /// knows: it asks how far a stream came only when it has to.
    pub waiting: bool,
}

/// A stream that the heap follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// As the device calls it.
    pub name: u64,
    /// Pages that wait for it, perhaps for others, too.
    pub pages: u64,
}

/// A heap at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Publications until then: operations of the heap, and one more.
    pub number: u64,
    /// Its figures.
    pub figures: Figures,
    /// All pages of its addresses, in order.
    pub pages: Vec<Page>,
    /// The streams that it follows.
    pub streams: Vec<Stream>,
}

#[derive(Debug)]
enum Words {
    #[cfg(target_os = "linux")]
    Live(Mapping),
    Copy(Box<[AtomicU64]>),
}

/// A board that was opened.
#[derive(Debug)]
pub struct Board {
    path: PathBuf,
    header: Header,
    layout: Layout,
    words: Words,
    #[cfg(target_os = "linux")]
    process: Option<Process>,
}

impl Board {
    /// Opens the board of a running process, or a copy of one. O(1), of a copy O(bytes).
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Foreign`], [`Error::Version`], [`Error::Damaged`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let read = |source: io::Error| Error::Read {
            path: path.to_owned(),
            source,
        };
        let foreign = || Error::Foreign {
            path: path.to_owned(),
        };
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // A pipe that nobody writes to does not keep us waiting.
            options.custom_flags(libc::O_NONBLOCK);
        }
        let mut file = options.open(path).map_err(read)?;
        let about = file.metadata().map_err(read)?;
        if !about.is_file() {
            return Err(foreign());
        }
        let mut first = [0; HEADER * 8];
        if let Err(error) = file.read_exact(&mut first) {
            return Err(match error.kind() {
                io::ErrorKind::UnexpectedEof => foreign(),
                _ => read(error),
            });
        }
        let mut words = [0; HEADER];
        for (word, bytes) in words.iter_mut().zip(first.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        }
        let damaged = |what: &str| Error::Damaged {
            path: path.to_owned(),
            what: what.to_owned(),
        };
        let present = match about.len() % 8 {
            0 => usize::try_from(about.len() / 8).unwrap_or(0),
            _ => 0,
        };
        let header = header::read(&words, present).map_err(|wrong| match wrong {
            Wrong::Foreign => foreign(),
            Wrong::Version(found) => Error::Version {
                path: path.to_owned(),
                found,
                supported: header::VERSION,
            },
            Wrong::Damaged(what) => damaged(what),
        })?;
        #[cfg(target_os = "linux")]
        let live = Mapping::of(&file, present)?.map(Words::Live);
        #[cfg(not(target_os = "linux"))]
        let live = None;
        let words = match live {
            Some(live) => live,
            None => Words::Copy(copy(&words, &mut file, present).map_err(
                |error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => damaged("it became shorter"),
                    _ => read(error),
                },
            )?),
        };
        Ok(Board {
            #[cfg(target_os = "linux")]
            process: Process::of(path),
            path: path.to_owned(),
            layout: header::layout(header.pages),
            header,
            words,
        })
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of its heap.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The process that has the heap, as this one numbers it; of a copy, as it numbered itself.
    #[must_use]
    pub fn process(&self) -> u32 {
        #[cfg(target_os = "linux")]
        if let Some(process) = self.process {
            return process.number;
        }
        self.header.process
    }

    fn words(&self) -> &[AtomicU64] {
        match &self.words {
            #[cfg(target_os = "linux")]
            Words::Live(mapping) => mapping.words(),
            Words::Copy(words) => words,
        }
    }

    /// Whether it is that of a heap, and no copy.
    #[must_use]
    pub fn live(&self) -> bool {
        !matches!(self.words, Words::Copy(_))
    }

    /// Whether the heap is gone, or its process. What can be read is its last moment.
    #[must_use]
    pub fn ended(&self) -> bool {
        if self.words()[self.layout.closed()].load(Ordering::Relaxed) != 0 {
            return true;
        }
        #[cfg(target_os = "linux")]
        if let Some(process) = self.process {
            return !process.runs();
        }
        false
    }

    /// The heap at one moment, between two of its operations. O(pages).
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Busy`].
    pub fn read(&self) -> Result<Snapshot, Error> {
        let damaged = |what: &str| Error::Damaged {
            path: self.path.clone(),
            what: what.to_owned(),
        };
        let tries = if self.live() { TRIES } else { 1 };
        for attempt in 0..tries {
            match protocol::read(self.words(), self.layout) {
                Ok(found) => return self.checked(&found).map_err(|what| damaged(&what)),
                Err(Missed::Damaged(what)) => return Err(damaged(what)),
                Err(Missed::Overtaken) if attempt % 10 == 9 => thread::yield_now(),
                Err(Missed::Overtaken) => {}
            }
        }
        match self.live() {
            true => Err(Error::Busy {
                path: self.path.clone(),
            }),
            false => Err(damaged("it was copied while the heap changed it")),
        }
    }

    fn checked(&self, found: &protocol::Found) -> Result<Snapshot, String> {
        let figures = Figures::read(&found.figures).ok_or("figures are missing")?;
        for (name, count) in figures.counts() {
            if count.current > count.peak {
                return Err(format!(
                    "{name}: {} exceeds its peak, {}",
                    count.current, count.peak
                ));
            }
        }
        let Header { page, pages, .. } = self.header;
        let sums = [figures.live_pages, figures.idle_pages, figures.spare_pages];
        let sum = sums.into_iter().try_fold(0, u64::checked_add);
        if sum.is_none_or(|sum| sum > pages) || figures.cap > page * pages {
            return Err("it has more memory than addresses".to_owned());
        }
        let (page_records, stream_records) = found.records.split_at(pages as usize * RECORD);
        let mut streams: Vec<Option<Stream>> = Vec::with_capacity(STREAMS);
        let mut came = [u64::MAX; STREAMS];
        for (slot, record) in stream_records.chunks_exact(RECORD).enumerate() {
            let [name, ticket, present] = record else {
                continue;
            };
            let stream = Stream {
                name: *name,
                pages: 0,
            };
            streams.push((*present == 1).then_some(stream));
            if *present == 1 {
                came[slot] = *ticket;
            }
        }
        let mut read = Vec::with_capacity(pages as usize);
        for (number, record) in page_records.chunks_exact(RECORD).enumerate() {
            let [word, waits, ticket] = record else {
                continue;
            };
            let used = word & !MAPPED;
            if used > page {
                return Err(format!(
                    "{used} bytes lie on page {number}, which has {page}"
                ));
            }
            let mapped = word & MAPPED != 0;
            let mut waiting = false;
            if mapped && used == 0 {
                for slot in (0..STREAMS).filter(|slot| waits >> slot & 1 == 1) {
                    if *ticket > came[slot] {
                        waiting = true;
                        if let Some(stream) = &mut streams[slot] {
                            stream.pages += 1;
                        }
                    }
                }
            }
            read.push(Page {
                mapped,
                used,
                waiting,
            });
        }
        Ok(Snapshot {
            number: found.figures[0],
            figures,
            pages: read,
            streams: streams.into_iter().flatten().collect(),
        })
    }
}

/// All words of a file whose first were read.
fn copy(first: &[u64; HEADER], file: &mut File, words: usize) -> io::Result<Box<[AtomicU64]>> {
    let mut copied: Vec<AtomicU64> = first.iter().map(|word| AtomicU64::new(*word)).collect();
    let mut bytes = vec![0; 1 << 16];
    while copied.len() < words {
        let most = ((words - copied.len()) * 8).min(bytes.len());
        file.read_exact(&mut bytes[..most])?;
        let more = bytes[..most]
            .chunks_exact(8)
            .map(|word| AtomicU64::new(u64::from_ne_bytes(word.try_into().unwrap_or_default())));
        copied.extend(more);
    }
    Ok(copied.into_boxed_slice())
}

//! Boards as a reader finds them: what was written is read, of one moment, and what no heap
//! writes is refused.
#![cfg(target_os = "linux")]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use metes_board::{About, Board, Count, Error, Figures, Page, Writer, find};

const PAGE: u64 = 1 << 21;
const START: u64 = 0x7000_0000_0000;

/// A board of so many pages, and how a reader has it.
fn made(pages: u64) -> (Writer, Board) {
    // Tests of this process run side by side.
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let writer = Writer::create(&About {
        serial,
        start: START,
        page: PAGE,
        pages,
        granule: 512,
        device: "a test",
    })
    .expect("a board");
    let own =
        |board: &Board| (board.process(), board.header().serial) == (std::process::id(), serial);
    let mut boards: Vec<Board> = find().into_iter().flatten().filter(own).collect();
    assert_eq!(boards.len(), 1, "a board is found once");
    (writer, boards.remove(0))
}

/// A linear congruential generator (Knuth's MMIX).
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Random blocks and pages, as a naive model has them.
struct Model {
    draw: Draw,
    blocks: Vec<(u64, u64)>,
    pages: Vec<Page>,
    figures: Figures,
}

impl Model {
    fn new(pages: usize) -> Self {
        Model {
            draw: Draw(7),
            blocks: Vec::new(),
            pages: vec![Page::default(); pages],
            figures: Figures {
                cap: pages as u64 * PAGE,
                ..Figures::default()
            },
        }
    }

    fn count(&mut self, offset: u64, bytes: u64, add: bool) {
        for (number, page) in (0..).zip(&mut self.pages) {
            let from = offset.max(number * PAGE);
            let to = (offset + bytes).min((number + 1) * PAGE);
            if from < to && add {
                page.used += to - from;
            } else if from < to {
                page.used -= to - from;
            }
        }
    }

    /// A block comes or goes, or a page does; the figures are of what there is.
    fn step(&mut self, writer: &mut Writer) {
        let pages = self.pages.len() as u64;
        match self.draw.below(3) {
            0 => {
                let bytes = 1 + self.draw.below(3 * PAGE);
                let offset = self.draw.below(pages * PAGE - bytes);
                let (first, last) = (offset / PAGE, (offset + bytes - 1) / PAGE);
                // No page is more than full.
                if (first..=last).all(|page| self.pages[page as usize].used == 0) {
                    self.blocks.push((offset, bytes));
                    self.count(offset, bytes, true);
                    writer.add(offset, bytes);
                }
            }
            1 if !self.blocks.is_empty() => {
                let number = self.draw.below(self.blocks.len() as u64) as usize;
                let (offset, bytes) = self.blocks.swap_remove(number);
                self.count(offset, bytes, false);
                writer.remove(offset, bytes);
            }
            _ => {
                let number = self.draw.below(pages);
                let page = &mut self.pages[number as usize];
                page.mapped = !page.mapped;
                writer.map(number, page.mapped);
            }
        }
        let used = self.blocks.iter().map(|(_, bytes)| bytes).sum();
        let mapped = self.pages.iter().filter(|page| page.mapped).count() as u64;
        self.figures.requested.current = used;
        self.figures.requested.peak = self.figures.requested.peak.max(used);
        self.figures.live_pages = mapped;
        self.figures.marks += 1;
        writer.publish(&self.figures);
    }
}

#[test]
fn what_is_written_is_read() {
    let (mut writer, board) = made(40);
    assert_eq!((board.header().start, board.header().pages), (START, 40));
    assert_eq!(board.header().device, "a test");
    assert!(
        board.header().program.starts_with("board-"),
        "{:?}",
        board.header()
    );
    assert_eq!(board.read().unwrap().number, 1);
    let mut model = Model::new(40);
    for step in 0..3000 {
        model.step(&mut writer);
        let found = board.read().unwrap();
        assert_eq!(found.number, 2 + step);
        assert_eq!(found.figures, model.figures);
        assert_eq!(found.pages, model.pages);
    }
}

#[test]
fn pages_wait_for_streams() {
    let (mut writer, board) = made(8);
    let waiting = |board: &Board| -> Vec<usize> {
        let pages = board.read().unwrap().pages;
        (0..8).filter(|page| pages[*page].waiting).collect()
    };
    for page in 0..6 {
        writer.map(page, true);
        writer.waits(page, [0b1, 0b10, 0b11, 0b100, 0, 0b1][page as usize], 5);
    }
    writer.add(5 * PAGE, 10);
    writer.stream(0, Some((0, 4)));
    writer.stream(1, Some((u64::MAX - 1, 5)));
    writer.publish(&Figures::default());
    // Page 3 waits for a stream that left, 5 has a block.
    assert_eq!(waiting(&board), [0, 2]);
    let streams = board.read().unwrap().streams;
    assert_eq!(streams.len(), 2);
    assert_eq!((streams[0].name, streams[0].pages), (0, 2));
    assert_eq!((streams[1].name, streams[1].pages), (u64::MAX - 1, 0));
    writer.stream(0, Some((0, 5)));
    writer.publish(&Figures::default());
    assert!(waiting(&board).is_empty());
    writer.stream(0, Some((0, 4)));
    writer.map(0, false);
    writer.map(0, true);
    writer.clear();
    writer.publish(&Figures::default());
    // What lay on page 0 is elsewhere, and page 5 is idle now.
    assert_eq!(waiting(&board), [2, 5]);
}

#[test]
fn a_busy_heap_is_seen_at_one_moment() {
    let (mut writer, board) = made(3000);
    let board = Arc::new(board);
    let stop = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&stop);
    let heap = thread::spawn(move || {
        let mut model = Model::new(3000);
        let mut steps: u64 = 1;
        while !own.load(Ordering::Relaxed) {
            model.step(&mut writer);
            steps += 1;
        }
        (steps, model, writer)
    });
    let mut moments = 0;
    let mut last = 0;
    while moments < 300 {
        let found = board.read().expect("rings are long enough for this heap");
        let used: u64 = found.pages.iter().map(|page| page.used).sum();
        let mapped = found.pages.iter().filter(|page| page.mapped).count() as u64;
        assert_eq!(used, found.figures.requested.current);
        assert_eq!(mapped, found.figures.live_pages);
        assert_eq!(found.number, found.figures.marks + 1);
        assert!(found.number >= last);
        moments += u32::from(found.number > last);
        last = found.number;
    }
    stop.store(true, Ordering::Relaxed);
    let (steps, model, writer) = heap.join().unwrap();
    let found = board.read().unwrap();
    assert_eq!((found.number, found.pages), (steps, model.pages));
    assert!(!board.ended());
    drop(writer);
    assert!(board.ended());
    assert_eq!(board.read().unwrap().number, steps, "the last moment stays");
}

#[test]
fn nobody_else_writes_or_cuts_it() {
    let (_writer, board) = made(4);
    assert_eq!(fs::metadata(board.path()).unwrap().len() % 8, 0);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(board.path()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(board.path())
        .unwrap();
    assert!(file.set_len(8).is_err(), "it cannot be cut");
    assert!(file.set_len(1 << 30).is_err(), "nor lengthened");
    // SAFETY: a question about an open file.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    if seals & libc::F_SEAL_FUTURE_WRITE != 0 {
        assert!(file.write_all(b"other").is_err(), "nor written");
    }
    board.read().unwrap();
}

/// The bytes of a board with something on it.
fn bytes() -> Vec<u8> {
    let (mut writer, board) = made(30);
    let mut model = Model::new(30);
    for _ in 0..100 {
        model.step(&mut writer);
    }
    fs::read(board.path()).unwrap()
}

/// A file that is gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let name = format!("metes-board-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn refused(path: &Path) -> String {
    match Board::open(path).and_then(|board| board.read()) {
        Ok(_) => panic!("{} is read", path.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_copy_is_read_as_it_was() {
    let file = Scratch::new("copy", &bytes());
    let board = Board::open(&file.0).unwrap();
    assert!(!board.live() && !board.ended());
    let found = board.read().unwrap();
    assert_eq!(found.number, 101);
    let used: u64 = found.pages.iter().map(|page| page.used).sum();
    assert_eq!(used, found.figures.requested.current);
}

#[test]
fn what_is_no_board_is_said() {
    let whole = bytes();
    let changed = |place: usize, value: u64| {
        let mut bytes = whole.clone();
        bytes[place * 8..][..8].copy_from_slice(&value.to_ne_bytes());
        bytes
    };
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("empty", Vec::new(), "is no board"),
        ("short", whole[..100].to_vec(), "is no board"),
        ("text", b"metes ".repeat(1000), "is no board"),
        (
            "version",
            changed(1, 2),
            "version 2, and this Metes reads version 1",
        ),
        (
            "cut",
            whole[..whole.len() - 8].to_vec(),
            "damaged or cut short",
        ),
        (
            "odd",
            whole[..whole.len() - 3].to_vec(),
            "damaged or cut short",
        ),
        (
            "long",
            [&whole[..], &[0; 8]].concat(),
            "damaged or cut short",
        ),
        ("pages", changed(8, u64::MAX), "damaged or cut short"),
        ("page", changed(7, 3), "no power of two"),
    ];
    for (name, bytes, said) in cases {
        let file = Scratch::new(name, &bytes);
        let error = refused(&file.0);
        assert!(error.contains(said), "{name}: {error}");
    }
    assert!(refused(Path::new("/")).contains("is no board"));
    assert!(refused(Path::new("/nowhere")).contains("No such file"));
    // One of a process that runs, with the usual name and nothing in it.
    // SAFETY: a text that ends with a zero.
    let empty = unsafe { libc::memfd_create(c"metes-device-heap".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(empty >= 0);
    assert!(refused(Path::new(&format!("/proc/self/fd/{empty}"))).contains("is no board"));
    assert!(find().iter().all(Result::is_ok));
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let whole = bytes();
    let path = Scratch::new("random", &[]);
    let mut draw = Draw(11);
    let (mut read, mut refused) = (0, 0);
    for round in 0..4000 {
        let mut bytes = whole.clone();
        // Where the counters are is where most can go wrong.
        let end = if round % 2 == 0 {
            bytes.len() as u64
        } else {
            1500
        };
        for _ in 0..1 + draw.below(6) {
            let place = draw.below(end) as usize;
            bytes[place] = match draw.below(4) {
                0 => 0,
                1 => 0xff,
                _ => draw.below(256) as u8,
            };
        }
        if round % 7 == 0 {
            bytes.truncate(draw.below(bytes.len() as u64) as usize);
        }
        File::create(&path.0).unwrap().write_all(&bytes).unwrap();
        match Board::open(&path.0).and_then(|board| board.read()) {
            Ok(snapshot) => {
                assert_eq!(snapshot.pages.len(), 30);
                assert!(snapshot.pages.iter().all(|page| page.used <= PAGE));
                let Count { current, peak, .. } = snapshot.figures.requested;
                assert!(current <= peak);
                read += 1;
            }
            Err(error) => {
                assert!(matches!(
                    error,
                    Error::Foreign { .. } | Error::Version { .. } | Error::Damaged { .. }
                ));
                refused += 1;
            }
        }
    }
    assert!(
        read > 100 && refused > 100,
        "{read} read, {refused} refused"
    );
}

#[test]
fn what_no_board_describes_is_refused() {
    let about = About {
        serial: 1 << 40,
        start: 0,
        page: PAGE,
        pages: 1,
        granule: 512,
        device: "",
    };
    for wrong in [
        About { pages: 0, ..about },
        About { page: 3, ..about },
        About {
            start: u64::MAX,
            ..about
        },
        About {
            pages: 1 << 33,
            ..about
        },
    ] {
        let refused = Writer::create(&wrong).map(drop);
        assert!(matches!(refused, Err(Error::Plan { .. })), "{wrong:?}");
    }
}

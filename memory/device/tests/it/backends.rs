//! Every backend that needs no device, against the naive model of the conformance suite; and
//! timelines in software.

use metes_device::backend::conformance::{Plan, Tally, check};
#[cfg(target_os = "linux")]
use metes_device::backend::guarded::Guarded;
use metes_device::backend::offsets::Offsets;
use metes_device::backend::timeline::{self, Manual, Timeline};
use metes_device::backend::{Backend, Capacity, Error, Memory, Range};

/// The answers that must have come for a trial to be worth something.
const ANSWERS: [&str; 20] = [
    "reserve: done",
    "reserve: empty",
    "reserve: granularity",
    "reserve: no addresses",
    "unreserve: done",
    "unreserve: mapped",
    "unreserve: not reserved",
    "create: done",
    "create: empty",
    "create: granularity",
    "create: out of memory",
    "map: done",
    "map: granularity",
    "map: in use",
    "map: mapped",
    "map: no memory",
    "map: not reserved",
    "unmap: not mapped",
    "release: in use",
    "release: no memory",
];

fn conforms(mut make: impl FnMut() -> Box<dyn Backend>) {
    let mut all = Tally::default();
    for seed in 0..200 {
        let plan = Plan {
            seed,
            calls: 1000,
            pages: 24,
            alone: true,
        };
        match check(&mut *make(), plan) {
            Ok(tally) => all.add(&tally),
            Err(failure) => panic!("{failure}"),
        }
    }
    for answer in ANSWERS {
        assert!(all.times(answer) > 100, "{answer} hardly came: {all:?}");
    }
}

#[test]
fn offsets_conform() {
    conforms(|| Box::new(Offsets::new(1 << 30, 1 << 16).unwrap()));
}

#[cfg(target_os = "linux")]
#[test]
fn guarded_memory_conforms() {
    conforms(|| Box::new(Guarded::new(1 << 30, 1 << 21).unwrap()));
}

/// A backend that forgets to refuse, or changes something when it refuses, is found.
#[test]
fn a_backend_that_does_not_conform_is_found() {
    #[derive(Debug)]
    struct Bad(Offsets, fn(&mut Offsets, u64, u64));

    impl Backend for Bad {
        fn name(&self) -> &'static str {
            "bad"
        }
        fn granularity(&self) -> u64 {
            self.0.granularity()
        }
        fn paged(&self) -> bool {
            true
        }
        fn alignment(&self) -> u64 {
            1
        }
        fn capacity(&self) -> Result<Capacity, Error> {
            self.0.capacity()
        }
        fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
            self.0.reserve(bytes)
        }
        fn unreserve(&mut self, range: Range) -> Result<(), Error> {
            self.0.unreserve(range)
        }
        fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
            self.0.create(bytes)
        }
        fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
            self.0.map(address, memory)
        }
        fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
            let answer = self.0.unmap(address, bytes);
            if answer.is_err() {
                (self.1)(&mut self.0, address, bytes);
            }
            answer
        }
        fn release(&mut self, memory: Memory) -> Result<(), Error> {
            self.0.release(memory)
        }
    }

    let found = |spoil: fn(&mut Offsets, u64, u64)| {
        (0..20)
            .filter(|&seed| {
                let mut bad = Bad(Offsets::new(1 << 30, 4096).unwrap(), spoil);
                let plan = Plan {
                    seed,
                    calls: 1000,
                    pages: 24,
                    alone: true,
                };
                check(&mut bad, plan).is_err()
            })
            .count()
    };
    assert_eq!(found(|_, _, _| ()), 0);
    // A refused unmapping that unmaps, one that leaks memory, one that reserves.
    assert!(found(|books, address, bytes| drop(books.unmap(address, bytes + 4096))) > 0);
    assert_eq!(found(|books, _, _| drop(books.create(4096))), 20);
    assert!(
        found(|books, _, _| {
            let all = books.capacity().unwrap().free;
            drop(books.create(all));
        }) > 0
    );
}

#[test]
fn impossible_pages_are_refused() {
    for page in [0, 3, 4097] {
        assert!(matches!(
            Offsets::new(1 << 20, page),
            Err(Error::Granularity { .. })
        ));
    }
    #[cfg(target_os = "linux")]
    assert!(matches!(
        Guarded::new(1 << 20, 2048),
        Err(Error::Granularity { .. })
    ));
}

#[test]
fn tickets_complete_in_order_and_as_told() {
    let mut timeline = Manual::new(3);
    let stream = timeline.join().unwrap();
    assert_eq!(timeline.completed(stream), Ok(0));
    timeline.mark(stream, 3).unwrap();
    timeline.mark(stream, 7).unwrap();
    assert_eq!(
        timeline.mark(stream, 7),
        Err(timeline::Error::Order {
            stream,
            ticket: 7,
            last: 7
        })
    );
    assert_eq!(
        timeline.wait(stream, 8),
        Err(timeline::Error::Unmarked {
            stream,
            ticket: 8,
            last: 7
        })
    );
    assert_eq!(timeline.completed(stream), Ok(0));
    timeline.complete(stream, 3).unwrap();
    assert_eq!(timeline.completed(stream), Ok(3));
    timeline.wait(stream, 5).unwrap();
    assert_eq!(timeline.completed(stream), Ok(5));
}

#[test]
fn ordered_streams_wait_for_each_other() {
    let mut timeline = Manual::new(3);
    let [a, b, c] = [(); 3].map(|()| timeline.join().unwrap());
    assert_eq!(timeline.join(), Err(timeline::Error::Streams(3)));
    timeline.mark(a, 1).unwrap();
    timeline.mark(b, 1).unwrap();
    timeline.order(b, a, 1).unwrap();
    timeline.mark(b, 2).unwrap();
    timeline.order(c, b, 2).unwrap();
    timeline.mark(c, 1).unwrap();
    // What was issued before the order is not held up.
    timeline.complete(b, 1).unwrap();
    assert_eq!(
        timeline.complete(b, 2),
        Err(timeline::Error::Held {
            stream: b,
            other: a,
            needed: 1
        })
    );
    // Waiting lets pass what has to.
    timeline.wait(c, 1).unwrap();
    let completed = [a, b, c].map(|stream| timeline.completed(stream).unwrap());
    assert_eq!(completed, [1, 2, 1]);
}

#[test]
fn captured_and_left_streams_are_refused() {
    let mut timeline = Manual::new(1);
    let stream = timeline.join().unwrap();
    timeline.mark(stream, 1).unwrap();
    timeline.capture(stream, true).unwrap();
    assert_eq!(timeline.capturing(stream), Ok(true));
    assert_eq!(
        timeline.mark(stream, 2),
        Err(timeline::Error::Capturing(stream))
    );
    timeline.capture(stream, false).unwrap();
    timeline.mark(stream, 2).unwrap();
    timeline.leave(stream).unwrap();
    let gone = timeline::Error::NoStream(stream);
    assert_eq!(timeline.mark(stream, 3), Err(gone.clone()));
    assert_eq!(timeline.completed(stream), Err(gone.clone()));
    let again = timeline.join().unwrap();
    assert_eq!(again.slot(), stream.slot());
    assert_eq!(timeline.completed(again), Ok(0));
    assert_eq!(timeline.completed(stream), Err(gone));
}

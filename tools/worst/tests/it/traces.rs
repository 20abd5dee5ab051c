//! What is saved replays as it was found.

use metes_explore::{Events, Replayer};
use metes_trace::read_parquet;
use metes_worst::{Request, WorstError, options_of, worst};

#[test]
fn saved_traces_replay_to_the_same_footprint() {
    let directory = tempfile::tempdir().unwrap();
    let request = Request {
        live: 40_000,
        largest: 900,
        smallest: 24,
        operations: 300_000,
        counted: 4000,
        ..Request::ON_HOST
    };
    for heap in ["tlsf", "first-fit", "buddy", "kingsley", "lea"] {
        let config = metes_config::spec(heap).unwrap();
        let found = worst(&config, &request, &mut |_, _| ()).unwrap();
        let names = found.save(directory.path()).unwrap();
        assert_eq!(names[0], "space.trace.parquet");
        let trace = read_parquet(&directory.path().join(names[0])).unwrap();
        let events = Events::try_from(&trace).unwrap();
        let (replay, _) = Replayer::new().replay(heap, &config.heap, &events, &options_of(&config));
        assert_eq!(replay.footprint, found.footprint, "{heap}");
        assert_eq!(replay.peak_live, found.peak_live, "{heap}");
        assert_eq!(replay.failed, 0);
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            assert_eq!(names.len(), 3);
            for (name, op) in [(names[1], "alloc"), (names[2], "free")] {
                let trace = read_parquet(&directory.path().join(name)).unwrap();
                assert_eq!(trace.ops().last().unwrap().name(), op);
            }
        }
    }
}

/// Counts are exact: they repeat to the last instruction, at least as much as
/// an empty call, and more for a heap that walks than for one that does not.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn instructions_repeat_and_follow_the_declarations() {
    let request = |live| Request {
        live,
        largest: 1024,
        smallest: 32,
        operations: 1,
        counted: 20_000,
        ..Request::ON_HOST
    };
    let count = |heap: &str, live| {
        let config = metes_config::spec(heap).unwrap();
        let found = worst(&config, &request(live), &mut |_, _| ()).unwrap();
        (
            found.instructions.allocate.unwrap(),
            found.instructions.free.unwrap(),
        )
    };
    let small = count("tlsf", 8 << 10);
    assert_eq!(small, count("tlsf", 8 << 10));
    assert!(small.0 > 20 && small.1 > 20);
    let walks = (count("first-fit", 8 << 10), count("first-fit", 32 << 10));
    assert!(walks.1.0 > 2 * walks.0.0, "{walks:?}");
    assert!(walks.1.0 > 2 * small.0);
}

#[test]
fn demands_that_contradict_themselves_are_refused() {
    let config = metes_config::spec("tlsf").unwrap();
    let fails = |change: fn(&mut Request)| {
        let mut request = Request::ON_HOST;
        change(&mut request);
        worst(&config, &request, &mut |_, _| ()).unwrap_err()
    };
    assert!(matches!(fails(|r| r.live = 0), WorstError::Zero { .. }));
    assert!(matches!(
        fails(|r| r.operations = 0),
        WorstError::Zero { .. }
    ));
    assert!(matches!(fails(|r| r.live = 100), WorstError::Live { .. }));
    assert!(matches!(
        fails(|r| r.smallest = 5000),
        WorstError::Sizes { .. }
    ));
    assert!(matches!(
        fails(|r| r.live = 1 << 40),
        WorstError::Large { .. }
    ));
    assert!(matches!(
        fails(|r| (r.live, r.smallest) = (1 << 30, 1)),
        WorstError::Blocks { .. }
    ));
}

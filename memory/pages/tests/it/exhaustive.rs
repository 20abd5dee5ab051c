//! Lemma 1, model-checked: every content that records and slots of a small space may have when it
//! is opened, and every sequence of operations up to a depth.
//!
//! A space of three pages (of tables with four, so that numbers beyond the space occur, too) is
//! begun with each garbage that can matter; from each beginning all operations are tried, breadth
//! first, and states that were met are not visited again. In each state every page is accessed
//! and compared with the naive model. Rights do not interact with garbage and are left out.

use std::collections::HashSet;

use metes_pages::{Access, Domain, Error, Frames, Rights, Space, Tables, Wide, index::Bitmap64};

use super::model::Model;

type Tiny = Space<Wide<4>, Bitmap64<1, 1, 1>>;

const PAGES: u32 = 3;

/// A space, its frames, and what they should be.
#[derive(Clone)]
struct State {
    space: Tiny,
    frames: Frames<[u32; 4]>,
    model: Model,
}

/// All that decides what a state does next.
type Key = (
    [(u32, u32, u32, u32, u32); 4],
    Vec<(u32, u32)>,
    Vec<(u32, u32)>,
    u32,
);

impl State {
    fn new(garbage: u32) -> Self {
        let mut tables = Wide::new();
        let mut digits = garbage;
        let mut digit = || {
            let digit = digits % 4;
            digits /= 4;
            digit
        };
        for page in 0..PAGES as usize {
            tables.scribble(page, [digit(), digit(), digit(), 0]);
        }
        let mut space = Space::new(tables, Bitmap64::new());
        space.open(PAGES, Domain::FIRST).expect("fits");
        let frames = Frames::new([0; 4], 4).expect("fit");
        Self {
            space,
            frames,
            model: Model::new(PAGES),
        }
    }

    fn key(&mut self) -> Key {
        let used = self.frames.used();
        let tables = self.space.tables_mut();
        let page = |page: u32| {
            let (region, position) = tables.record(page);
            let count = tables.header(page).count();
            (
                region,
                position,
                tables.slot(page),
                count,
                tables.frame(page, page),
            )
        };
        let regions = self
            .model
            .regions
            .iter()
            .map(|(&start, &(pages, _))| (start, pages));
        let mapped = self
            .model
            .mapped
            .iter()
            .map(|(&page, &frame)| (page, frame));
        (
            [0, 1, 2, 3].map(page),
            regions.collect(),
            mapped.collect(),
            used,
        )
    }

    /// Every page is what the model says.
    fn check(&self) {
        for page in 0..PAGES + 1 {
            let expected = self.model.access(page, Access::Write);
            assert_eq!(
                self.space.access(page, Access::Write),
                expected,
                "{:?}",
                self.model
            );
            assert_eq!(self.space.translate(page, Access::Write), expected.ok());
        }
    }

    /// Every state that one operation leads to.
    fn next(&self) -> Vec<State> {
        let mut states = Vec::new();
        for start in 0..PAGES {
            for pages in 1..=PAGES - start {
                let mut state = self.clone();
                let expected = state.model.map_region(start, pages, Rights::READ_WRITE);
                assert_eq!(
                    state.space.map_region(start, pages, Rights::READ_WRITE),
                    expected
                );
                states.extend(expected.is_ok().then_some(state));
            }
            let mut state = self.clone();
            let expected = state.model.unmap_region(start).map(|_| ());
            assert_eq!(state.space.unmap_region(start, &mut state.frames), expected);
            states.extend(expected.is_ok().then_some(state));

            let mut state = self.clone();
            let expected = state.model.may_map(start);
            match state.space.map_page(start, &mut state.frames) {
                Ok(mapped) => {
                    assert_eq!(expected, Ok(()));
                    let frame = mapped.frame;
                    assert!(state.model.mapped.values().all(|&used| used != frame));
                    state.model.mapped.insert(start, frame);
                    states.push(state);
                }
                Err(error) => assert_eq!(Err(error), expected),
            }
        }
        states
    }
}

/// Visits everything up to a depth from one garbage; how many states.
fn visit(garbage: u32, depth: u32) -> usize {
    let mut met = HashSet::new();
    let mut now = vec![State::new(garbage)];
    for _ in 0..depth {
        let mut then = Vec::new();
        for state in now {
            state.check();
            for mut next in state.next() {
                if met.insert(next.key()) {
                    then.push(next);
                }
            }
        }
        now = then;
    }
    now.iter().for_each(State::check);
    met.len()
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of thousands of beginnings")]
fn garbage_never_makes_a_page_valid() {
    // 4^9 beginnings: regions, positions and slots of three pages. `METES_DEPTH` goes deeper;
    // the daily run visits one beginning in 499 to depth 6.
    let depth = std::env::var("METES_DEPTH").ok();
    let (step, depth) = depth.map_or((499, 6), |depth| (1, depth.parse().expect("a number")));
    let states: usize = (0..1 << 18)
        .step_by(step)
        .map(|garbage| visit(garbage, depth))
        .sum();
    assert!(states > 500_000, "only {states} states");
    println!("{states} states");
    assert_eq!(
        Tiny::new(Wide::new(), Bitmap64::new()).access(0, Access::Read),
        Err(Error::Beyond)
    );
}

//! Random maps, resizes, touches and unmaps against a naive model of page ranges, with the kernel as the
//! judge of what has a frame.

use std::ptr::NonNull;

use metes_random::Random;
use metes_regions::{Error, Options, PAGE, Policy, Region, Regions, TABLE};
use proptest::prelude::*;

use crate::support::{POLICIES, read, resident, touch};

const ARENA: usize = 8 * TABLE;

/// A region as the model has it: what each page holds, zero where it was never written.
struct Own {
    region: Region,
    pages: Vec<u8>,
}

struct Model {
    regions: Regions,
    policy: Policy,
    own: Vec<Own>,
    /// Where the arena begins.
    base: NonNull<u8>,
}

impl Model {
    fn new(policy: Policy) -> Self {
        let regions = Regions::reserve(Options::new(ARENA * PAGE, policy)).unwrap();
        Model {
            base: regions.start(),
            regions,
            policy,
            own: Vec::new(),
        }
    }

    fn keeps(&self) -> bool {
        matches!(self.policy, Policy::Retain | Policy::Bounded(_))
    }

    /// The numbers of the pages of a region.
    fn range(&self, region: &Region) -> std::ops::Range<usize> {
        let first = (region.start.addr().get() - self.base.addr().get()) / PAGE;
        assert!(first + region.pages <= ARENA);
        first..first + region.pages
    }

    fn step(&mut self, operation: u8, which: usize, pages: usize) -> Result<(), TestCaseError> {
        let which = which % self.own.len().max(1);
        match operation {
            0 | 1 => self.map(pages)?,
            2 if !self.own.is_empty() => self.resize(which, pages)?,
            3 if !self.own.is_empty() => self.touch(which, pages),
            4 | 5 if !self.own.is_empty() => {
                let own = self.own.swap_remove(which);
                prop_assert_eq!(
                    self.regions.unmap(own.region.start).unwrap(),
                    own.pages.len()
                );
                let again = self.regions.unmap(own.region.start);
                prop_assert!(matches!(again, Err(Error::NotMapped(_))), "{:?}", again);
            }
            _ => {
                self.regions.pay(pages).unwrap();
            }
        }
        self.verify()
    }

    fn map(&mut self, pages: usize) -> Result<(), TestCaseError> {
        match self.regions.map(pages) {
            Ok(region) => {
                prop_assert_eq!(region.pages, pages);
                if !region.zeroed {
                    prop_assert!(self.keeps());
                    touch(&region, 0..pages, 0);
                }
                let pages = vec![0; pages];
                self.own.push(Own { region, pages });
            }
            Err(Error::Addresses { .. }) => {
                // Holes may be too short; an arena without regions is not.
                prop_assert!(!self.own.is_empty());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        Ok(())
    }

    fn resize(&mut self, which: usize, pages: usize) -> Result<(), TestCaseError> {
        let own = &mut self.own[which];
        match self.regions.resize(own.region.start, pages) {
            Ok(region) => {
                prop_assert_eq!(region.pages, pages);
                let held = own.pages.len();
                own.pages.resize(pages, 0);
                if !region.zeroed && held < pages {
                    prop_assert!(matches!(self.policy, Policy::Retain | Policy::Bounded(_)));
                    touch(&region, held..pages, 0);
                }
                own.region = region;
            }
            Err(Error::Addresses { .. }) => prop_assert!(pages > own.pages.len()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        Ok(())
    }

    fn touch(&mut self, which: usize, seed: usize) {
        let own = &mut self.own[which];
        let count = own.pages.len();
        let mut random = Random::new(seed as u64);
        let [from, to] = [(); 2].map(|()| random.below(count as u64 + 1) as usize);
        let range = from.min(to)..from.max(to);
        let value = seed as u8 | 1;
        touch(&own.region, range.clone(), value);
        own.pages[range].fill(value);
    }

    fn verify(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.regions.check(), Ok(()));
        let mut taken = vec![false; ARENA];
        let mut written = vec![false; ARENA];
        for own in &self.own {
            prop_assert_eq!(
                self.regions.pages(own.region.start).unwrap(),
                own.pages.len()
            );
            let range = self.range(&own.region);
            for (page, value) in range.zip(&own.pages) {
                prop_assert!(!std::mem::replace(&mut taken[page], true), "two regions");
                written[page] = *value != 0;
            }
        }
        let mapped: usize = self.own.iter().map(|own| own.pages.len()).sum();
        let statistics = self.regions.statistics();
        prop_assert_eq!(statistics.mapped, mapped);
        prop_assert_eq!(statistics.regions, self.own.len());
        // What was written has a frame, whatever the policy; what nobody has, has none where that is
        // promised, nor where nothing waits.
        let resident = resident(self.base, ARENA);
        let without_owner = (0..ARENA).filter(|&page| resident[page] && !taken[page]);
        let without_owner = without_owner.count();
        prop_assert!((0..ARENA).all(|page| resident[page] || !written[page]));
        match self.keeps() {
            true => prop_assert!(without_owner <= statistics.waiting),
            false => prop_assert_eq!(without_owner, 0),
        }
        prop_assert!(statistics.waiting <= statistics.most_waiting);
        // Pages that were never written read zero without a frame of their own.
        for own in &self.own {
            for (number, value) in own.pages.iter().enumerate().step_by(61) {
                prop_assert_eq!(read(own.region.start, number), *value);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn regions_are_those_of_a_naive_model(
        policy in prop::sample::select(&POLICIES[..]),
        steps in prop::collection::vec(
            (0u8..7, any::<usize>(), prop_oneof![1usize..40, 1usize..TABLE, 1usize..3 * TABLE]),
            1..60,
        ),
    ) {
        let mut model = Model::new(policy);
        for (operation, which, pages) in steps {
            model.step(operation, which, pages)?;
        }
        let own: Vec<_> = model.own.drain(..).collect();
        for Own { region, .. } in own {
            model.regions.unmap(region.start).unwrap();
        }
        model.verify()?;
        // All of it is one range again; what begins at a page table is looked for with room before it.
        model.map(ARENA - 2 * TABLE)?;
        prop_assert_eq!(model.own.len(), 1);
        model.verify()?;
    }
}

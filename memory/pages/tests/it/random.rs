//! Theorem 1 and Lemma 1: random operations on spaces whose tables are full of garbage, beside the
//! naive model. `METES_OPERATIONS` sets how many (10^8 in the campaign).

use std::collections::BTreeSet;

use metes_pages::{
    Access, DOMAINS, Domain, Error, Frame, Frames, Index, Layered20, Links, Narrow20, Origin,
    Packed, Packed20, PackedLinks, Pages12, Pages20, Rights, Space, Sparse, Table, Tables, Tlb,
    Wide, Zeroed, index::Bitmap64, zeroed,
};
use metes_random::Random;

use super::model::Model;

/// Tables that can be filled with whatever was in memory before.
trait Poison: Tables {
    fn poison(&mut self, random: &mut Random);
}

/// Records and slots of a page that look as real ones do: of a region somewhere before it, on a
/// stack that may be live. Headers stay zero: the lemma's one precondition.
fn garbage<T: Tables>(tables: &mut T, random: &mut Random) {
    // Miri takes some hundredths of a second a page.
    for page in (0..T::PAGES as u32).step_by(if cfg!(miri) { 61 } else { 1 }) {
        let start = random.below(u64::from(page) + 1) as u32;
        // Pushed on a stack that is then emptied: this writes record, slot and frame.
        tables.push(
            start,
            metes_pages::Header::FREE,
            page,
            random.below(64) as Frame,
        );
        tables.set_header(start, metes_pages::Header::FREE);
        tables.set_slot(page, random.below(T::PAGES as u64) as u32);
    }
}

impl<const PAGES: usize> Poison for Wide<PAGES> {
    fn poison(&mut self, random: &mut Random) {
        garbage(self, random);
        // Half of the entries hold numbers that no entry could: memory as it was.
        for page in (0..PAGES)
            .step_by(if cfg!(miri) { 61 } else { 1 })
            .filter(|_| random.next() & 1 == 0)
            .collect::<Vec<_>>()
        {
            self.scribble(page, [0; 4].map(|_: u32| random.next() as u32));
        }
    }
}

impl<const PAGES: usize> Poison for Packed<PAGES> {
    fn poison(&mut self, random: &mut Random) {
        garbage(self, random);
    }
}

/// Where tables do not come out of a box.
trait New {
    const SCARCE: bool = false;
    type Tables: Tables;
    type Index: Index;
    fn new(random: &mut Random) -> Box<Space<Self::Tables, Self::Index>>;
}

impl<T: Poison + Zeroed, I: Index + Zeroed> New for Space<T, I> {
    type Tables = T;
    type Index = I;
    fn new(random: &mut Random) -> Box<Self> {
        let mut space = zeroed::<Self>();
        space.tables_mut().poison(random);
        space
    }
}

/// Hierarchical tables whose memory is garbage, too.
struct Hierarchical;

type Directory = Space<Wide<64>, Bitmap64<1, 1, 1>>;

impl New for Hierarchical {
    const SCARCE: bool = true;
    type Tables = Sparse<'static, 4096, Wide<64>, Bitmap64<1, 1, 1>, [u32; 64]>;
    type Index = Bitmap64<64, 1, 1>;
    fn new(random: &mut Random) -> Box<Space<Self::Tables, Self::Index>> {
        let directory: Directory = *<Directory as New>::new(random);
        // Fewer tables than chunks, so that they run out.
        let memory = vec![Table::SPARE; 50].leak();
        let tables = Sparse::new(directory, [0; 64], memory, vec![0; 64].leak());
        Box::new(Space::new(tables.expect("they fit"), Bitmap64::new()))
    }
}

fn operations() -> u64 {
    let default = if cfg!(miri) { 100 } else { 200_000 };
    std::env::var("METES_OPERATIONS").map_or(default, |it| it.parse().expect("a number"))
}

/// One space beside its model.
struct Pair<'a, T, I> {
    space: &'a mut Space<T, I>,
    model: Model,
    tlb: Tlb<16>,
    /// Whether tables may run out.
    scarce: bool,
    /// Which domain it is, as a number.
    wrote: usize,
}

/// Drives spaces of one kind that share frames, and compares each answer.
fn drive<S, L>(seed: u64, spaces: usize, pages: u32, mut frames: Frames<L>, operations: u64)
where
    S: New,
    L: Links,
{
    let mut random = Random::new(seed);
    let mut boxes: Vec<_> = (0..spaces).map(|_| S::new(&mut random)).collect();
    let mut pairs: Vec<_> = boxes
        .iter_mut()
        .enumerate()
        .map(|(number, space)| {
            let domain = Domain::new((number / 2 * 7 % DOMAINS) as u8).expect("below");
            space.open(pages, domain).expect("fits");
            assert_eq!(space.open(pages, domain), Err(Error::Open));
            Pair {
                space,
                model: Model::new(pages),
                tlb: Tlb::default(),
                scarce: S::SCARCE,
                wrote: number / 2,
            }
        })
        .collect();
    let mut used = BTreeSet::<Frame>::new();
    // Which domain last had a frame.
    let mut last = vec![usize::MAX; frames.total() as usize];

    for step in 0..operations {
        let chosen = random.below(spaces as u64) as usize;
        let it = &mut pairs[chosen];
        // Mostly near what is there, sometimes anywhere, sometimes beyond.
        let near = u64::from(pages).min(2 << random.below(20));
        let mut page = match random.below(16) {
            0 => random.below(u64::from(pages) + 3) as u32,
            1 => pages - 1 - random.below(3) as u32,
            _ => random.below(near) as u32,
        };
        match random.below(10) {
            0 | 1 => {
                let longest = 1 << random.below(12);
                let length = random.below(longest) as u32;
                let rights = [
                    Rights::NONE,
                    Rights::READ,
                    Rights::READ_WRITE,
                    Rights::READ_WRITE,
                ];
                let rights = rights[random.below(4) as usize];
                let result = it.space.map_region(page, length, rights);
                if result == Err(Error::NoFrame) {
                    // No table is left: only where they are made as needed.
                    assert_eq!(it.model.clone().map_region(page, length, rights), Ok(()));
                    assert!(it.scarce);
                } else {
                    assert_eq!(result, it.model.map_region(page, length, rights));
                }
            }
            2 => {
                if random.below(4) != 0 {
                    // One that is there.
                    let next = it.model.regions.range(page..).next();
                    page = next.map_or(page, |(&start, _)| start);
                }
                let expected = it.model.unmap_region(page);
                let result = it.tlb.unmap_region(it.space, page, &mut frames);
                assert_eq!(
                    result,
                    expected.as_ref().map(|_| ()).map_err(|&error| error)
                );
                for frame in expected.unwrap_or_default() {
                    assert!(used.remove(&frame));
                }
            }
            3..6 => {
                if random.below(8) != 0 {
                    let next = it.model.regions.range(..=page).next_back();
                    page = next.map_or(page, |(&start, &(length, _))| {
                        start + random.below(u64::from(length)) as u32
                    });
                }
                let expected = it.model.may_map(page);
                match it.space.map_page(page, &mut frames) {
                    Ok(mapped) => {
                        assert_eq!(expected, Ok(()));
                        assert!(used.insert(mapped.frame), "a frame is used twice");
                        it.model.mapped.insert(page, mapped.frame);
                        let had = &mut last[mapped.frame as usize];
                        let origin = match *had {
                            usize::MAX => Origin::Fresh,
                            it_had if it_had == it.wrote => Origin::Own,
                            _ => Origin::Foreign,
                        };
                        assert_eq!(mapped.origin, origin, "step {step}");
                        *had = it.wrote;
                    }
                    Err(Error::NoFrame) => {
                        assert_eq!(expected, Ok(()));
                        assert!(it.scarce || used.len() == frames.total() as usize);
                    }
                    Err(error) => assert_eq!(Err(error), expected),
                }
            }
            _ => {
                let access = if random.next() & 1 == 0 {
                    Access::Read
                } else {
                    Access::Write
                };
                let expected = it.model.access(page, access);
                assert_eq!(it.space.access(page, access), expected, "step {step}");
                assert_eq!(it.space.translate(page, access), expected.ok());
                assert_eq!(
                    it.tlb.access(it.space, page, access),
                    expected,
                    "step {step}"
                );
                let region = it.space.region(page);
                assert_eq!(region.is_some(), page < pages);
                if let Some(region) = region {
                    assert!(region.start <= page && page - region.start < region.pages);
                    let allocated = it.model.region(page);
                    assert_eq!(region.rights, allocated.map(|(_, _, rights)| rights));
                    if let Some((start, length, _)) = allocated {
                        assert_eq!((region.start, region.pages), (start, length));
                        let mapped = it.model.mapped.range(start..start + length).count();
                        assert_eq!(region.mapped as usize, mapped);
                    }
                }
            }
        }
        assert_eq!(frames.used() as usize, used.len());
        assert_eq!(it.space.regions() as usize, it.model.regions.len());
        assert_eq!(it.space.mapped() as usize, it.model.mapped.len());
        if step % (operations / 16).max(1) == 0 {
            whole(it);
        }
    }
    for it in &mut pairs {
        whole(it);
    }
}

/// Every page, and that the regions are a partition in which no two free ones are neighbours.
fn whole<T: Tables, I: Index>(it: &Pair<'_, T, I>) {
    let step = if it.model.pages > 4096 || cfg!(miri) {
        61
    } else {
        1
    };
    for page in (0..it.model.pages).step_by(step) {
        let expected = it.model.access(page, Access::Read);
        assert_eq!(it.space.access(page, Access::Read), expected, "page {page}");
    }
    let (mut page, mut free) = (0, false);
    while page < it.model.pages {
        let region = it.space.region(page).expect("within");
        assert_eq!(region.start, page);
        assert!(
            !(free && region.rights.is_none()),
            "two free regions side by side"
        );
        free = region.rights.is_none();
        page += region.pages;
    }
    assert_eq!(page, it.model.pages);
}

fn links(count: usize) -> Vec<u32> {
    // Garbage: links of frames that were never used are not read.
    (0..count as u32)
        .map(|it| it.wrapping_mul(2_654_435_761))
        .collect()
}

type Small = Space<Wide<4096>, Bitmap64<64, 1, 1>>;

#[test]
fn a_small_space_agrees_with_the_model() {
    let _: fn() -> Small = Pages12::default;
    for seed in 0..if cfg!(miri) { 1 } else { 8 } {
        let frames =
            Frames::new(<[u32; 512]>::try_from(links(512)).expect("512"), 500).expect("fit");
        drive::<Space<Wide<4096>, Bitmap64<64, 1, 1>>, _>(seed, 1, 4001, frames, operations() / 8);
    }
}

#[test]
fn spaces_that_share_frames_agree_with_their_models() {
    let frames = Frames::new(<[u32; 256]>::try_from(links(256)).expect("256"), 256).expect("fit");
    drive::<Space<Wide<4096>, Bitmap64<64, 1, 1>>, _>(1, 5, 4096, frames, operations());
}

#[test]
fn packed_fields_agree_with_the_model() {
    let frames = Frames::new(PackedLinks::<100>::new(), 199).expect("fit");
    drive::<Space<Packed<4096>, Bitmap64<64, 1, 1>>, _>(2, 3, 4096, frames, operations());
}

#[test]
fn hierarchical_tables_agree_with_the_model() {
    let frames = Frames::new([0; 1024], 1000).expect("fit");
    drive::<Hierarchical, _>(7, 2, 4096, frames, operations());
}

#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of tables: the small spaces run the same code"
)]
fn a_million_pages_agree_with_the_model() {
    fn on<S: New>(seed: u64) {
        let frames = Frames::new(PackedLinks::<2000>::new(), 3999).expect("fit");
        drive::<S, _>(seed, 1, 1 << 20, frames, operations());
    }
    on::<Pages20>(3);
    on::<Packed20>(4);
    on::<Narrow20>(5);
    on::<Layered20>(6);
}

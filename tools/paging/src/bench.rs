//! Instructions of each operation on 2^20 pages: the longest path through the code where it has no
//! loop, and the most that any call of a long random run took.
//!
//! Invariant: a count is of one call of a function with a C interface, the call and its return
//! included; the longest path is at least as long as any call.

use metes_pages::{
    Access, Domain, Frames, Index, Layered20, Links, Narrow20, Packed20, PackedLinks, Pages20,
    Placement, Rights, Space, Tables, Zeroed, zeroed,
};
use metes_random::Random;
use metes_step::{Call, Stepper, longest_call};
use serde::Serialize;

use crate::conventional::PageTable;
use crate::placement::Blocks;

/// Pages, and frames, of the spaces measured.
pub const PAGES: u32 = 1 << 20;

/// Instructions of the operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Operations {
    /// Making a region: two splits.
    pub map: u64,
    /// Freeing a region: two unions, all pages invalid, all frames free.
    pub unmap: u64,
    /// Mapping a page: what a page fault does.
    pub map_page: u64,
    /// Asking the index for the region of a page.
    pub find: u64,
    /// An access to a page that is mapped.
    pub access: u64,
}

impl Operations {
    fn each(&mut self) -> [&mut u64; 5] {
        [
            &mut self.map,
            &mut self.unmap,
            &mut self.map_page,
            &mut self.find,
            &mut self.access,
        ]
    }
}

/// What was measured of one kind of space.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// The longest paths through the code, which no call exceeds; `None`: there is a loop in one.
    pub instructions_bound: Option<Operations>,
    /// The most that a call took.
    pub instructions_measured: Operations,
    /// Calls that were counted.
    pub calls: Operations,
    /// Bytes of the index.
    pub index_bytes: usize,
    /// Bytes of everything, the links of as many frames as pages included.
    pub bytes: usize,
    /// `bytes` as a multiple of a page table of one word a page.
    pub page_tables: f64,
}

impl Measured {
    /// The bound where there is one, else the most that was measured.
    pub fn instructions_max(&self) -> Operations {
        self.instructions_bound
            .unwrap_or(self.instructions_measured)
    }
}

/// Measures every kind of space: `calls` random operations of each.
///
/// # Errors
/// Where single steps are refused: no x86-64 Linux.
pub fn measure(calls: u64) -> std::io::Result<Vec<Measured>> {
    const FRAMES: usize = PAGES as usize;
    let mut stepper = Stepper::new()?;
    Ok(vec![
        kind::<_, _, [u32; FRAMES]>("64-ary", zeroed::<Pages20>, calls, &mut stepper),
        kind::<_, _, PackedLinks<{ FRAMES / 2 }>>(
            "64-ary, packed",
            zeroed::<Packed20>,
            calls,
            &mut stepper,
        ),
        kind::<_, _, [u32; FRAMES]>("32-ary", zeroed::<Narrow20>, calls, &mut stepper),
        kind::<_, _, [u32; FRAMES]>("layered tree", zeroed::<Layered20>, calls, &mut stepper),
    ])
}

/// The most instructions that parts of a call take, each the longest path through its code, or
/// exact where that is linear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Costs {
    /// Placing a block by TLSF, its records out of band.
    pub place: u64,
    /// Taking it back.
    pub release: u64,
    /// Making a region.
    pub map: u64,
    /// Freeing a region.
    pub unmap: u64,
    /// A page fault's work.
    pub map_page: u64,
    /// An access.
    pub access: u64,
    /// Of a page table: mapping a page.
    pub table_map_page: u64,
    /// Of a page table: an access.
    pub table_access: u64,
    /// Of a page table: unmapping no page.
    pub table_unmap: u64,
    /// Of a page table: unmapping one page more that is mapped.
    pub table_unmap_page: u64,
}

extern "C" fn place(blocks: &mut Blocks, bytes: u64) -> u64 {
    blocks.allocate(bytes, 1).unwrap_or(u64::MAX)
}

extern "C" fn release(blocks: &mut Blocks, offset: u64) -> u64 {
    blocks.free(offset).unwrap_or(u64::MAX)
}

extern "C" fn table_map_page(table: &mut PageTable, page: u32) -> usize {
    usize::from(table.map_page(page))
}

extern "C" fn table_access(table: &PageTable, page: u32) -> u32 {
    table.translate(page).unwrap_or(u32::MAX)
}

extern "C" fn table_unmap(table: &mut PageTable, start: u32, end: u32) -> usize {
    table.unmap(start, end);
    0
}

impl Costs {
    /// Counts them.
    ///
    /// # Errors
    /// Where single steps are refused: no x86-64 Linux.
    pub fn count() -> std::io::Result<Self> {
        type Links20 = [u32; PAGES as usize];
        type Table = metes_pages::Wide<{ PAGES as usize }>;
        type Map = metes_pages::index::Bitmap64<16384, 256, 4>;
        let mut stepper = Stepper::new()?;
        let longest = |function: *const ()| {
            // SAFETY: a function of this program.
            unsafe { longest_call(function as usize) }.map_err(std::io::Error::other)
        };
        let mut table = PageTable::new(PAGES);
        let at = &raw mut table as usize;
        let mut call = |function: *const (), second: usize, third: usize| {
            let call = Call {
                function: function as usize,
                arguments: [at, second, third, 0, 0],
            };
            // SAFETY: functions of this module that take the table, which lives longer, and one or
            // two numbers.
            unsafe { stepper.call(call) }.1
        };
        for page in 0..300 {
            call(table_map_page as *const (), page, 0);
        }
        let none = call(table_unmap as *const (), 300, 300);
        let (few, many) = (
            call(table_unmap as *const (), 0, 100),
            call(table_unmap as *const (), 100, 300),
        );
        Ok(Self {
            place: longest(place as *const ())?,
            release: longest(release as *const ())?,
            map: longest(map::<Table, Map> as *const ())?,
            unmap: longest(unmap::<Table, Map, Links20> as *const ())?,
            map_page: longest(map_page::<Table, Map, Links20> as *const ())?,
            access: longest(access::<Table, Map> as *const ())?,
            table_map_page: longest(table_map_page as *const ())?,
            table_access: longest(table_access as *const ())?,
            table_unmap: none,
            table_unmap_page: (many - few) / 100,
        })
    }
}

const REFUSED: usize = usize::MAX;

extern "C" fn map<T: Tables, I: Index>(space: &mut Space<T, I>, start: u32, pages: u32) -> usize {
    space
        .map_region(start, pages, Rights::READ_WRITE)
        .map_or(REFUSED, |()| 0)
}

extern "C" fn unmap<T: Tables, I: Index, L: Links>(
    space: &mut Space<T, I>,
    start: u32,
    frames: &mut Frames<L>,
) -> usize {
    space.unmap_region(start, frames).map_or(REFUSED, |()| 0)
}

extern "C" fn map_page<T: Tables, I: Index, L: Links>(
    space: &mut Space<T, I>,
    page: u32,
    frames: &mut Frames<L>,
) -> usize {
    space
        .map_page(page, frames)
        .map_or(REFUSED, |mapped| mapped.frame as usize)
}

extern "C" fn find<T: Tables, I: Index>(space: &Space<T, I>, page: u32) -> usize {
    space.find(page) as usize
}

extern "C" fn access<T: Tables, I: Index>(space: &Space<T, I>, page: u32, access: Access) -> u32 {
    space.translate(page, access).unwrap_or(u32::MAX)
}

/// Measures one kind of space.
fn kind<T, I, L>(
    name: &'static str,
    new: fn() -> Box<Space<T, I>>,
    calls: u64,
    stepper: &mut Stepper,
) -> Measured
where
    T: Tables + Zeroed,
    I: Index + Zeroed,
    L: Links + Zeroed,
{
    let functions = [
        map::<T, I> as *const () as usize,
        unmap::<T, I, L> as *const () as usize,
        map_page::<T, I, L> as *const () as usize,
        find::<T, I> as *const () as usize,
        access::<T, I> as *const () as usize,
    ];
    let mut bound = Operations::default();
    let mut bounded = true;
    for (function, most) in functions.into_iter().zip(bound.each()) {
        // SAFETY: a function of this program.
        match unsafe { longest_call(function) } {
            Ok(longest) => *most = longest,
            Err(_) => bounded = false,
        }
    }
    let mut measured = Operations::default();
    let mut counted = Operations::default();
    let mut run = Run {
        space: new(),
        frames: zeroed::<Frames<L>>(),
        regions: Vec::new(),
        mapped: Vec::new(),
        functions,
        stepper,
        most: &mut measured,
        calls: &mut counted,
    };
    run.frames.open(PAGES);
    run.space.open(PAGES, Domain::FIRST).expect("its own size");
    run.random(calls);
    run.sparse();
    Measured {
        name,
        instructions_bound: bounded.then_some(bound),
        instructions_measured: measured,
        calls: counted,
        index_bytes: size_of::<I>(),
        bytes: size_of::<Space<T, I>>() + size_of::<Frames<L>>(),
        page_tables: (size_of::<Space<T, I>>() + size_of::<Frames<L>>()) as f64
            / (4.0 * f64::from(PAGES)),
    }
}

/// One space in use.
struct Run<'a, T, I, L: Links> {
    space: Box<Space<T, I>>,
    frames: Box<Frames<L>>,
    /// Regions that are allocated: start and pages.
    regions: Vec<(u32, u32)>,
    /// Pages that were mapped once.
    mapped: Vec<u32>,
    functions: [usize; 5],
    stepper: &'a mut Stepper,
    most: &'a mut Operations,
    calls: &'a mut Operations,
}

impl<T: Tables, I: Index, L: Links> Run<'_, T, I, L> {
    /// Makes a call of the operation of this number, and counts it unless it was refused.
    fn call(&mut self, operation: usize, second: u32, third: usize) -> usize {
        let space = &raw mut *self.space as usize;
        let call = Call {
            function: self.functions[operation],
            arguments: [space, second as usize, third, 0, 0],
        };
        // SAFETY: one of `functions` with arguments of its types: the space and the frames live in
        // boxes of this run, which nothing else uses during the call.
        let (result, count) = unsafe { self.stepper.call(call) };
        let served = if operation == 4 {
            result as u32 != u32::MAX
        } else {
            result != REFUSED
        };
        if served {
            let most = &mut self.most.each()[operation];
            **most = count.max(**most);
            *self.calls.each()[operation] += 1;
        }
        result
    }

    fn map(&mut self, start: u32, pages: u32) {
        if self.call(0, start, pages as usize) != REFUSED {
            self.regions.push((start, pages));
        }
    }

    fn unmap(&mut self, number: usize) {
        let (start, _) = self.regions.swap_remove(number);
        let frames = &raw mut *self.frames as usize;
        let result = self.call(1, start, frames);
        assert_ne!(result, REFUSED, "a region that is there");
    }

    fn map_page(&mut self, page: u32) {
        let frames = &raw mut *self.frames as usize;
        if self.call(2, page, frames) != REFUSED {
            self.mapped.push(page);
        }
    }

    /// Regions of all sizes anywhere, some hundreds at a time.
    fn random(&mut self, calls: u64) {
        let mut random = Random::new(14);
        for _ in 0..calls {
            let page = random.below(u64::from(PAGES)) as u32;
            let longest = 1 << random.below(14);
            let pages = 1 + random.below(longest) as u32;
            self.map(page, pages.min(PAGES - page));
            if self.regions.len() > 500 {
                let number = random.below(self.regions.len() as u64) as usize;
                self.unmap(number);
            }
            let number = random.below(self.regions.len() as u64) as usize;
            let (start, pages) = self.regions[number];
            self.map_page(start + random.below(u64::from(pages)) as u32);
            self.call(3, page, 0);
            let number = random.below(self.mapped.len() as u64) as usize;
            self.call(4, self.mapped[number], Access::Write as usize);
        }
        while !self.regions.is_empty() {
            self.unmap(0);
        }
    }

    /// Few regions as far from each other as words of the index, so that searches go through all
    /// levels, up and down.
    fn sparse(&mut self) {
        let steps: [u32; 4] = [1 << 18, 1 << 15, 1 << 12, 1 << 6];
        for step in steps {
            for (first, second) in [(step, 2 * step), (2 * step - 1, 3 * step), (1, step + 1)] {
                self.map(first, 1);
                self.map(second, 1);
                self.map(second + step / 2, step / 4);
                for page in [first, first + 1, second, second - 1, PAGES - 1] {
                    self.call(3, page, 0);
                    self.map_page(page);
                    self.call(4, page, Access::Read as usize);
                }
                while !self.regions.is_empty() {
                    self.unmap(self.regions.len() / 2);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_takes_more_than_the_longest_path() {
        for mut measured in measure(100).expect("x86-64 Linux") {
            let mut bound = measured.instructions_bound.expect("no loop anywhere");
            let most = measured.instructions_measured.each().map(|most| *most);
            for (bound, most) in bound.each().into_iter().zip(most) {
                assert!(most != 0 && most <= *bound, "{measured:#?}");
            }
        }
    }

    #[test]
    fn a_page_table_is_unmapped_page_by_page() {
        let costs = Costs::count().expect("x86-64 Linux");
        println!("{costs:#?}");
        assert!(costs.table_unmap_page >= 3, "{costs:?}");
    }
}

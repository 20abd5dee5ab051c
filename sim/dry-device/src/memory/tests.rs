use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const PAGE: u64 = GRANULARITY;

fn memory(pages: u64) -> Memory {
    Memory::new(pages * PAGE, true).unwrap()
}

fn write(memory: &Memory, address: u64, bytes: &[u8]) -> Answer {
    memory.copy_in(
        address,
        bytes.as_ptr().expose_provenance() as u64,
        bytes.len() as u64,
    )
}

fn read(memory: &Memory, address: u64, size: usize) -> Answer<Vec<u8>> {
    let mut bytes = vec![0xee; size];
    let place = bytes.as_mut_ptr().expose_provenance() as u64;
    memory.copy_out(place, address, size as u64)?;
    Ok(bytes)
}

#[test]
fn sizes_must_be_pages() {
    let mut memory = memory(8);
    for size in [0, 1, PAGE - 1, PAGE + 4096] {
        assert_eq!(memory.reserve(size, 0, 0), Err(Code::InvalidValue));
        assert_eq!(memory.create(size), Err(Code::InvalidValue));
    }
    assert_eq!(memory.reserve(PAGE, 3, 0), Err(Code::InvalidValue));
    assert_eq!(memory.figures().reserved, 0);
    assert_eq!(memory.used(), 0);
}

#[test]
fn the_device_ends_somewhere() {
    let mut memory = memory(3);
    let two = memory.create(2 * PAGE).unwrap();
    assert_eq!(memory.create(2 * PAGE), Err(Code::OutOfMemory));
    assert_eq!(memory.figures().refused, 2 * PAGE);
    let block = memory.allocate(PAGE).unwrap();
    assert_eq!(memory.allocate(1), Err(Code::OutOfMemory));
    assert_eq!(memory.create(u64::MAX - PAGE + 1), Err(Code::OutOfMemory));
    assert_eq!(memory.allocate(u64::MAX), Err(Code::OutOfMemory));
    memory.release(two).unwrap();
    memory.free(block).unwrap();
    assert_eq!(memory.used(), 0);
    assert_eq!(memory.figures().peak_used, 3 * PAGE);
    // Addresses are not memory: there may be more of them than the device has.
    let range = memory.reserve(1000 * PAGE, 0, 0).unwrap();
    memory.unreserve(range, 1000 * PAGE).unwrap();
}

#[test]
fn small_blocks_share_pages() {
    let mut memory = memory(2);
    let blocks: Vec<u64> = (0..8).map(|_| memory.allocate(1000).unwrap()).collect();
    assert_eq!(memory.used(), PAGE);
    let large = memory.allocate(PAGE - 1).unwrap();
    assert_eq!(memory.used(), 2 * PAGE);
    for block in blocks {
        memory.free(block).unwrap();
    }
    assert_eq!(memory.used(), PAGE);
    memory.free(large).unwrap();
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_handle_lives_with_its_mappings() {
    let mut memory = memory(4);
    let range = memory.reserve(4 * PAGE, 0, 0).unwrap();
    let handle = memory.create(2 * PAGE).unwrap();
    memory.map(range, 2 * PAGE, 0, handle).unwrap();
    memory.release(handle).unwrap();
    assert_eq!(memory.release(handle), Err(Code::InvalidValue));
    assert_eq!(
        memory.map(range + 2 * PAGE, PAGE, 0, handle),
        Err(Code::InvalidValue)
    );
    assert_eq!(memory.used(), 2 * PAGE);
    // The mapping gives the handle back.
    assert_eq!(memory.retain(range + PAGE), Ok(handle));
    memory.unmap(range, 2 * PAGE).unwrap();
    assert_eq!(memory.used(), 2 * PAGE);
    memory.release(handle).unwrap();
    assert_eq!(memory.used(), 0);
    memory.unreserve(range, 4 * PAGE).unwrap();
}

#[test]
fn mappings_keep_to_their_reservation() {
    let mut memory = memory(8);
    let range = memory.reserve(4 * PAGE, 0, 0).unwrap();
    let handle = memory.create(2 * PAGE).unwrap();
    for (start, size, offset) in [
        (range + 1, PAGE, 0),
        (range, PAGE + 1, 0),
        (range, 0, 0),
        (range, PAGE, PAGE),
        (range, 3 * PAGE, 0),
        (range + 3 * PAGE, 2 * PAGE, 0),
        (range - PAGE, PAGE, 0),
    ] {
        assert_eq!(
            memory.map(start, size, offset, handle),
            Err(Code::InvalidValue)
        );
    }
    memory.map(range + PAGE, 2 * PAGE, 0, handle).unwrap();
    for start in [range, range + PAGE, range + 2 * PAGE] {
        assert_eq!(
            memory.map(start, 2 * PAGE, 0, handle),
            Err(Code::InvalidValue)
        );
    }
    // Twice the same memory is allowed.
    memory.map(range, PAGE, 0, handle).unwrap();
    assert_eq!(memory.unreserve(range, 4 * PAGE), Err(Code::InvalidValue));
    assert_eq!(memory.unreserve(range, 2 * PAGE), Err(Code::InvalidValue));
    assert_eq!(
        memory.unreserve(range + PAGE, PAGE),
        Err(Code::InvalidValue)
    );
    memory.unmap(range, 3 * PAGE).unwrap();
    memory.unreserve(range, 4 * PAGE).unwrap();
    assert_eq!(memory.unreserve(range, 4 * PAGE), Err(Code::InvalidValue));
}

#[test]
fn only_whole_mappings_are_unmapped_or_opened() {
    let mut memory = memory(8);
    let range = memory.reserve(8 * PAGE, 0, 0).unwrap();
    let handle = memory.create(2 * PAGE).unwrap();
    memory.map(range, 2 * PAGE, 0, handle).unwrap();
    memory.map(range + 2 * PAGE, 2 * PAGE, 0, handle).unwrap();
    memory.map(range + 5 * PAGE, 2 * PAGE, 0, handle).unwrap();
    for (start, size) in [
        (range, PAGE),
        (range + PAGE, PAGE),
        (range, 3 * PAGE),
        (range, 7 * PAGE),
        (range + 4 * PAGE, PAGE),
        (range, 0),
        (range, 9 * PAGE),
    ] {
        assert_eq!(memory.unmap(start, size), Err(Code::InvalidValue));
        assert_eq!(
            memory.set_access(start, size, Access::Read),
            Err(Code::InvalidValue)
        );
    }
    memory
        .set_access(range, 4 * PAGE, Access::ReadWrite)
        .unwrap();
    assert_eq!(memory.access(range + 4 * PAGE - 1), Ok(Access::ReadWrite));
    assert_eq!(memory.access(range + 4 * PAGE), Err(Code::InvalidValue));
    assert_eq!(memory.access(range + 5 * PAGE), Ok(Access::None));
    memory.unmap(range, 4 * PAGE).unwrap();
    // A new mapping needs access again.
    memory.map(range, 2 * PAGE, 0, handle).unwrap();
    assert_eq!(memory.access(range), Ok(Access::None));
}

#[test]
fn content_follows_the_memory_not_the_addresses() {
    let mut memory = memory(4);
    let range = memory.reserve(4 * PAGE, 0, 0).unwrap();
    let (first, second) = (memory.create(PAGE).unwrap(), memory.create(PAGE).unwrap());
    memory.map(range, PAGE, 0, first).unwrap();
    memory.map(range + PAGE, PAGE, 0, second).unwrap();
    assert_eq!(write(&memory, range, b"early"), Err(Code::IllegalAddress));
    memory
        .set_access(range, 2 * PAGE, Access::ReadWrite)
        .unwrap();
    // Across the border of two handles.
    let border = range + PAGE - 3;
    write(&memory, border, b"border").unwrap();
    assert_eq!(read(&memory, border, 6).unwrap(), b"border");
    memory.unmap(range, 2 * PAGE).unwrap();
    assert_eq!(read(&memory, border, 6), Err(Code::IllegalAddress));
    // The second handle elsewhere, twice.
    for at in [2, 3] {
        memory.map(range + at * PAGE, PAGE, 0, second).unwrap();
    }
    memory
        .set_access(range + 2 * PAGE, 2 * PAGE, Access::ReadWrite)
        .unwrap();
    assert_eq!(read(&memory, range + 2 * PAGE, 4).unwrap(), b"der\0");
    write(&memory, range + 3 * PAGE, b"alias").unwrap();
    assert_eq!(read(&memory, range + 2 * PAGE, 5).unwrap(), b"alias");
    memory
        .set_access(range + 3 * PAGE, PAGE, Access::Read)
        .unwrap();
    assert_eq!(
        write(&memory, range + 3 * PAGE, b"x"),
        Err(Code::IllegalAddress)
    );
    assert_eq!(read(&memory, range + 3 * PAGE, 5).unwrap(), b"alias");
}

#[test]
fn blocks_end_where_they_were_asked_to() {
    let mut memory = memory(4);
    let block = memory.allocate(1000).unwrap();
    memory.fill(block, &[7], 1000).unwrap();
    assert_eq!(memory.fill(block, &[7], 1001), Err(Code::IllegalAddress));
    assert_eq!(
        memory.fill(block + 4, &[1, 2, 3, 4], 6),
        Err(Code::InvalidValue)
    );
    memory.fill(block + 4, &[1, 2, 3, 4], 8).unwrap();
    assert_eq!(
        read(&memory, block + 2, 12).unwrap(),
        [7, 7, 1, 2, 3, 4, 1, 2, 3, 4, 7, 7]
    );
    let other = memory.allocate(1000).unwrap();
    memory.copy_within(other, block, 1000).unwrap();
    assert_eq!(read(&memory, other + 998, 2).unwrap(), [7, 7]);
    assert_eq!(memory.range(block + 999), Ok((block, 1000)));
    assert_eq!(memory.free(block + 1), Err(Code::InvalidValue));
    memory.free(block).unwrap();
    assert_eq!(memory.free(block), Err(Code::InvalidValue));
    assert_eq!(read(&memory, block, 1), Err(Code::IllegalAddress));
    // Memory that is given out again holds nothing of before.
    let again = memory.allocate(1000).unwrap();
    assert_eq!(read(&memory, again, 1000).unwrap(), vec![0; 1000]);
}

#[test]
fn a_host_pointer_that_is_none_is_refused() {
    let mut memory = memory(4);
    let block = memory.allocate(4096).unwrap();
    // Device addresses are no host memory.
    assert_eq!(memory.copy_in(block, block, 16), Err(Code::InvalidValue));
    assert_eq!(memory.copy_out(block, block, 16), Err(Code::InvalidValue));
    assert_eq!(memory.copy_in(block, 8, 16), Err(Code::InvalidValue));
}

#[test]
fn a_device_without_content_reads_as_zeros() {
    let mut memory = Memory::new(4 * PAGE, false).unwrap();
    let block = memory.allocate(64).unwrap();
    write(&memory, block, b"forgotten").unwrap();
    memory.fill(block, &[9], 64).unwrap();
    assert_eq!(read(&memory, block, 64).unwrap(), vec![0; 64]);
    assert_eq!(memory.fill(block, &[9], 65), Err(Code::IllegalAddress));
}

/// What a random sequence may do; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Reserve(u64),
    Unreserve(usize),
    Create(u64),
    Release(usize),
    Map(usize, u64, usize, u64),
    Unmap(usize, u64, u64),
    Open(usize, u64, u64),
    Allocate(u64),
    Free(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let some = 0..8_usize;
    prop_oneof![
        (1..6_u64).prop_map(Step::Reserve),
        some.clone().prop_map(Step::Unreserve),
        (1..4_u64).prop_map(Step::Create),
        some.clone().prop_map(Step::Release),
        (some.clone(), 0..6_u64, some.clone(), 1..4_u64)
            .prop_map(|(range, at, handle, size)| Step::Map(range, at, handle, size)),
        (some.clone(), 0..6_u64, 1..5_u64).prop_map(|(range, at, n)| Step::Unmap(range, at, n)),
        (some.clone(), 0..6_u64, 1..5_u64).prop_map(|(range, at, n)| Step::Open(range, at, n)),
        (1..3 * PAGE).prop_map(Step::Allocate),
        some.prop_map(Step::Free),
    ]
}

/// The rules of ranges, handles and mappings, page by page: slow and plain.
#[derive(Default)]
struct Plain {
    /// Pages of each range.
    ranges: BTreeMap<u64, u64>,
    /// Pages and references of each handle.
    handles: BTreeMap<u64, (u64, u64)>,
    /// By page: the handle and the first page of its mapping.
    pages: BTreeMap<u64, (u64, u64)>,
    blocks: BTreeMap<u64, u64>,
}

impl Plain {
    fn used(&self) -> u64 {
        let held = self.handles.iter().filter(|(handle, (_, references))| {
            *references > 0 || self.pages.values().any(|(mapped, _)| mapped == *handle)
        });
        let pages: u64 = held.map(|(_, (pages, _))| pages).sum();
        let own = self.blocks.values().filter(|size| **size >= PAGE / 2);
        let own: u64 = own.map(|size| size.div_ceil(PAGE)).sum();
        let shared = self.blocks.values().filter(|size| **size < PAGE / 2);
        let shared: u64 = shared.map(|size| size.next_multiple_of(512)).sum();
        (pages + own + shared.div_ceil(PAGE)) * PAGE
    }

    /// Pages from an address to the end of its range; the kernel may put ranges side by side.
    fn room(&self, start: u64) -> u64 {
        let range = self.ranges.range(..=start).next_back();
        range.map_or(0, |(first, pages)| {
            pages.saturating_sub((start - first) / PAGE)
        })
    }

    /// Whether a range of pages is mapped, by mappings that lie wholly within it.
    fn is_whole(&self, start: u64, pages: u64) -> bool {
        let within = pages <= self.room(start);
        let first = |at: u64| self.pages.get(&at).map(|(_, first)| *first);
        let after = start + pages * PAGE;
        within
            && (0..pages).all(|page| first(start + page * PAGE).is_some())
            && first(start) == Some(start)
            && (first(after).is_none() || first(after) == Some(after))
    }
}

/// The `index`-th key, counted around.
fn pick<V>(map: &BTreeMap<u64, V>, index: usize) -> Option<u64> {
    map.keys().nth(index % map.len().max(1)).copied()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn decides_as_the_plain_rules_do(steps in prop::collection::vec(step(), 1..120)) {
        let capacity = 9 * PAGE;
        let mut memory = memory(9);
        let mut plain = Plain::default();
        for step in steps {
            match step {
                Step::Reserve(pages) => {
                    let start = memory.reserve(pages * PAGE, 0, 0).unwrap();
                    plain.ranges.insert(start, pages);
                }
                Step::Unreserve(index) => {
                    let Some(range) = pick(&plain.ranges, index) else { continue };
                    let pages = plain.ranges[&range];
                    let end = range + pages * PAGE;
                    let empty = plain.pages.range(range..end).next().is_none();
                    prop_assert_eq!(memory.unreserve(range, pages * PAGE).is_ok(), empty);
                    if empty {
                        plain.ranges.remove(&range);
                    }
                }
                Step::Create(pages) => {
                    let fits = plain.used() + pages * PAGE <= capacity;
                    let made = memory.create(pages * PAGE);
                    prop_assert_eq!(made.is_ok(), fits);
                    if let Ok(handle) = made {
                        plain.handles.insert(handle, (pages, 1));
                    }
                }
                Step::Release(index) => {
                    let Some(handle) = pick(&plain.handles, index) else { continue };
                    let references = &mut plain.handles.get_mut(&handle).unwrap().1;
                    prop_assert_eq!(memory.release(handle).is_ok(), *references > 0);
                    *references = references.saturating_sub(1);
                }
                Step::Map(range, at, handle, pages) => {
                    let (Some(range), Some(handle)) =
                        (pick(&plain.ranges, range), pick(&plain.handles, handle))
                    else {
                        continue;
                    };
                    let start = range + at * PAGE;
                    let (size, references) = plain.handles[&handle];
                    let free = (0..pages).all(|page| !plain.pages.contains_key(&(start + page * PAGE)));
                    let allowed =
                        references > 0 && pages <= size && pages <= plain.room(start) && free;
                    let mapped = memory.map(start, pages * PAGE, 0, handle);
                    prop_assert_eq!(mapped.is_ok(), allowed);
                    if allowed {
                        for page in 0..pages {
                            plain.pages.insert(start + page * PAGE, (handle, start));
                        }
                    }
                }
                Step::Unmap(range, at, pages) => {
                    let Some(range) = pick(&plain.ranges, range) else { continue };
                    let start = range + at * PAGE;
                    let whole = plain.is_whole(start, pages);
                    prop_assert_eq!(memory.unmap(start, pages * PAGE).is_ok(), whole);
                    if whole {
                        for page in 0..pages {
                            plain.pages.remove(&(start + page * PAGE));
                        }
                    }
                }
                Step::Open(range, at, pages) => {
                    let Some(range) = pick(&plain.ranges, range) else { continue };
                    let start = range + at * PAGE;
                    let whole = plain.is_whole(start, pages);
                    let opened = memory.set_access(start, pages * PAGE, Access::ReadWrite);
                    prop_assert_eq!(opened.is_ok(), whole);
                }
                Step::Allocate(size) => {
                    let before = plain.used();
                    match memory.allocate(size) {
                        Ok(block) => {
                            plain.blocks.insert(block, size);
                        }
                        // Refused only if it would not fit.
                        Err(_) => {
                            plain.blocks.insert(0, size);
                            prop_assert!(plain.used() > capacity);
                            plain.blocks.remove(&0);
                            prop_assert_eq!(plain.used(), before);
                        }
                    }
                }
                Step::Free(index) => {
                    let Some(block) = pick(&plain.blocks, index) else { continue };
                    prop_assert!(memory.free(block).is_ok());
                    plain.blocks.remove(&block);
                }
            }
            prop_assert_eq!(memory.used(), plain.used());
            prop_assert!(memory.used() <= capacity);
            let figures = memory.figures();
            prop_assert_eq!(figures.mapped, plain.pages.len() as u64 * PAGE);
            prop_assert_eq!(figures.blocks, plain.blocks.len() as u64);
        }
    }
}

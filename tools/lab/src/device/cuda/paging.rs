//! What the driver takes to reserve, create, map, open, unmap and release pages.
//!
//! Two ways to so many bytes: as pages of the smallest size, one handle each, which is what a heap
//! over pages does; and as one handle.
//!
//! Invariant: before a page is unmapped the device has written all of it, so that what is unmapped
//! was in use.

use cudarc::driver::sys::{CUdeviceptr, CUmemGenericAllocationHandle};
use metes_device::backend::Error;

use super::super::bench::Effort;
use super::driver::Device;
use super::meter::{Distribution, Meter};
use super::{Measurement, PagingFigures};

/// Pages that are mapped at a time.
const PAGES: [u64; 3] = [1, 8, 64];

/// The calls, in order.
const CALLS: [&str; 7] = [
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemAddressFree",
];

/// Every way, round by round.
pub(super) fn paging(device: &Device, effort: Effort) -> Vec<Measurement<PagingFigures>> {
    let ways: Vec<(u64, u64)> = PAGES
        .iter()
        .map(|&pages| (pages, 1))
        .chain(PAGES[1..].iter().map(|&pages| (1, pages)))
        .collect();
    let mut found: Vec<[Vec<u64>; 7]> = ways.iter().map(|_| Default::default()).collect();
    let rounds = 20 * super::rounds(effort);
    let measured = (0..=rounds).try_for_each(|round| {
        for (&(handles, pages), found) in ways.iter().zip(&mut found) {
            let values = once(device, handles, pages)?;
            // The first round is not counted: a driver prepares much at first use.
            if round > 0 {
                for (all, value) in found.iter_mut().zip(values) {
                    all.push(value);
                }
            }
        }
        Ok::<(), Error>(())
    });
    let meter = Meter::of(device);
    let page = device.granularity().unwrap_or(0);
    let of_way = |((handles, pages), values): ((u64, u64), [Vec<u64>; 7])| {
        let name = match handles {
            1 => format!("1 handle of {pages} pages"),
            _ => format!("{handles} handles of a page"),
        };
        let name = name.replace("1 pages", "1 page");
        let figures = measured.clone().map_err(|error| error.to_string());
        let figures = figures.map(|()| {
            let each = CALLS.into_iter().zip(values.map(Distribution::of));
            PagingFigures {
                handles,
                bytes: handles * pages * page,
                calls: each
                    .clone()
                    .filter_map(|(call, of)| Some((call.to_owned(), meter.seconds(of)?)))
                    .collect(),
                driver_calls: each
                    .filter_map(|(call, of)| Some((call.to_owned(), meter.calls(of)?)))
                    .collect(),
            }
        });
        Measurement::of(&name, "", figures)
    };
    ways.into_iter().zip(found).map(of_way).collect()
}

/// What was taken of the device by one round, given back when it ends, also by an error.
struct Taken<'a> {
    device: &'a Device,
    range: Option<(CUdeviceptr, usize)>,
    handles: Vec<CUmemGenericAllocationHandle>,
    /// Mappings, in order of their addresses.
    mapped: Vec<(CUdeviceptr, usize)>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let Ok(paging) = self.device.paging() else {
            return;
        };
        // SAFETY: mappings, handles and addresses of ours that no work uses, each given back once.
        // What a driver refuses here leaves nothing to be done.
        unsafe {
            for (address, bytes) in self.mapped.drain(..) {
                (paging.cuMemUnmap)(address, bytes);
            }
            for handle in self.handles.drain(..) {
                (paging.cuMemRelease)(handle);
            }
            if let Some((address, bytes)) = self.range.take() {
                (paging.cuMemAddressFree)(address, bytes);
            }
        }
    }
}

/// `handles` handles of `pages` pages each, all of them once; what each kind of call took in all.
fn once(device: &Device, handles: u64, pages: u64) -> Result<[u64; 7], Error> {
    let paging = device.paging()?;
    let page = device.granularity()?;
    let each = (pages * page) as usize;
    let bytes = handles as usize * each;
    let (about, access) = (device.properties(), device.access());
    let meter = Meter::of(device);
    let mut taken = Taken {
        device,
        range: None,
        handles: Vec::with_capacity(handles as usize),
        mapped: Vec::with_capacity(handles as usize),
    };
    let mut found = [0; 7];

    let mut start = 0;
    let begin = meter.read();
    // SAFETY: a place for one address.
    let code = unsafe { (paging.cuMemAddressReserve)(&raw mut start, bytes, page as usize, 0, 0) };
    found[0] = meter.since(begin);
    device.check(CALLS[0], code)?;
    taken.range = Some((start, bytes));

    let begin = meter.read();
    for _ in 0..handles {
        let mut handle = 0;
        // SAFETY: a place for one handle, and properties that outlive the call.
        let code = unsafe { (paging.cuMemCreate)(&raw mut handle, each, &raw const about, 0) };
        device.check(CALLS[1], code)?;
        taken.handles.push(handle);
    }
    found[1] = meter.since(begin);

    let begin = meter.read();
    for (number, handle) in taken.handles.iter().enumerate() {
        let address = start + (number * each) as u64;
        // SAFETY: addresses that are reserved and free, and a handle of just that length.
        let code = unsafe { (paging.cuMemMap)(address, each, 0, *handle, 0) };
        device.check(CALLS[2], code)?;
        taken.mapped.push((address, each));
    }
    found[2] = meter.since(begin);

    let begin = meter.read();
    for (address, bytes) in &taken.mapped {
        // SAFETY: a mapping, whole, and one description.
        let code = unsafe { (paging.cuMemSetAccess)(*address, *bytes, &raw const access, 1) };
        device.check(CALLS[3], code)?;
    }
    found[3] = meter.since(begin);

    let stream = device.stream()?;
    stream.clear(start, bytes as u64)?;
    stream.synchronize()?;

    let begin = meter.read();
    while let Some((address, bytes)) = taken.mapped.pop() {
        // SAFETY: a mapping, whole, which no work uses any more.
        let code = unsafe { (paging.cuMemUnmap)(address, bytes) };
        device.check(CALLS[4], code)?;
    }
    found[4] = meter.since(begin);

    let begin = meter.read();
    while let Some(handle) = taken.handles.pop() {
        // SAFETY: a handle of ours, released once.
        let code = unsafe { (paging.cuMemRelease)(handle) };
        device.check(CALLS[5], code)?;
    }
    found[5] = meter.since(begin);

    taken.range = None;
    let begin = meter.read();
    // SAFETY: the addresses reserved above, in which nothing is mapped any more.
    let code = unsafe { (paging.cuMemAddressFree)(start, bytes) };
    found[6] = meter.since(begin);
    device.check(CALLS[6], code)?;
    Ok(found)
}

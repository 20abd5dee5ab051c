//! Which sizes packets have, and how many of each there are.

use metes_lab::Random;

/// Bytes of an acknowledgement: Ethernet, IPv4 and TCP headers with timestamps.
pub const ACKNOWLEDGEMENT: u32 = 66;
/// Bytes of a full Ethernet frame.
pub const FULL: u32 = 1514;
/// Bytes of the longest packet: 37 merged segments.
pub const LARGEST: u32 = HEADERS + 37 * SEGMENT;

/// Ethernet, IPv4 and TCP headers.
const HEADERS: u32 = 54;
/// Bytes of a full TCP segment.
const SEGMENT: u32 = 1460;

/// Signalling: connections opened and closed, selective acknowledgements.
const SIGNALS: [u32; 7] = [70, 74, 78, 82, 86, 90, 94];
/// Voice (214 bytes: 20 ms of it), names, tunnels, ends of transfers.
const DATAGRAMS: [u32; 30] = [
    102, 110, 118, 126, 142, 158, 174, 190, 214, 238, 270, 302, 350, 398, 446, 494, 566, 590, 654,
    718, 782, 846, 942, 1038, 1134, 1230, 1326, 1390, 1434, 1486,
];
/// Segments that the receiver has merged into one packet.
const MERGED: [u32; 20] = [
    2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 32, 37,
];

/// Shares of all packets, in thousandths; [`DATAGRAMS`] have the rest.
const FULL_SHARE: usize = 380;
const ACKNOWLEDGEMENT_SHARE: usize = 220;
const SIGNAL_SHARE: usize = 130;
const MERGED_SHARE: usize = 25;
/// Packets of one size come in runs, as those of one transfer do. Merged ones are
/// a run already.
const LONGEST_RUN: u64 = 8;

/// Every size and how many of so many packets have it, by rising size; from 6 000
/// packets on, each size occurs. Shares are exact to one packet.
pub fn sizes(packets: usize) -> Vec<(u32, usize)> {
    let share = |thousandths: usize| packets * thousandths / 1000;
    let full = share(FULL_SHARE);
    let acknowledgements = share(ACKNOWLEDGEMENT_SHARE);
    let signals = share(SIGNAL_SHARE);
    let merged = share(MERGED_SHARE);
    let datagrams = packets - full - acknowledgements - signals - merged;
    let mut sizes = vec![(ACKNOWLEDGEMENT, acknowledgements), (FULL, full)];
    sizes.extend(apportion(signals, SIGNALS.map(|size| (size, 1))));
    sizes.extend(apportion(datagrams, DATAGRAMS.map(|size| (size, 1))));
    // A packet of k segments is 1/k as frequent.
    let longest = MERGED[MERGED.len() - 1];
    let weights = MERGED.map(|count| (HEADERS + count * SEGMENT, 1000 * longest / count));
    sizes.extend(apportion(merged, weights));
    sizes.sort_unstable();
    sizes
}

/// Shares `total` by weight: each part is rounded down, and what is left goes to
/// the first ones, one each.
fn apportion<const N: usize>(total: usize, weights: [(u32, u32); N]) -> [(u32, usize); N] {
    let sum: usize = weights.iter().map(|&(_, weight)| weight as usize).sum();
    let mut shares = weights.map(|(size, weight)| (size, total * weight as usize / sum));
    let shared: usize = shares.iter().map(|&(_, share)| share).sum();
    for (_, share) in shares.iter_mut().take(total - shared) {
        *share += 1;
    }
    shares
}

/// The sizes of all packets in the order of their arrival: runs in random order.
pub(super) fn in_order(packets: usize, random: &mut Random) -> Vec<u32> {
    let mut runs = Vec::new();
    for (size, mut left) in sizes(packets) {
        while left > 0 {
            let longest = if size > FULL { 1 } else { LONGEST_RUN };
            let run = left.min(random.between(1, longest) as usize);
            runs.push((size, run));
            left -= run;
        }
    }
    random.shuffle(&mut runs);
    runs.into_iter()
        .flat_map(|(size, run)| std::iter::repeat_n(size, run))
        .collect()
}

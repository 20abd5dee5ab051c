//! Still-texture decoding by wavelets: what the visual texture coder of MPEG-4
//! asks of a heap.
//!
//! Mamagkakis et al. (EMSOFT 2006, section 7.2) give figures of the VTC: 14 sizes
//! from 32 bytes to 2 MB, most of them powers of two, at most 1841 blocks and
//! 6.8 MB live, most blocks of 1024 bytes, most accesses to blocks of 2048 bytes,
//! and the most allocated sizes in the order 1024, 2048, 512, 256, 128. A decoder
//! of a 512 x 512 image with chroma of half the width and height, which takes a
//! line buffer for each line that it transforms, has these lines: 1024 of 512
//! samples, 1536 of 256 (luma and chroma), 768 of 128, 384 of 64, 192 of 32. With
//! two buffers of 4-byte samples a line, that *is* the order, and so this is the
//! image that is decoded here:
//!
//! 1. Coefficients are decoded: planes, zero trees, rows of significance, coding
//!    contexts and buffered input are live together. Here is the peak.
//! 2. Planes are put together level by level with the (9,3) filters of the
//!    standard: each line is copied into a buffer, filtered into a second one (six
//!    taps a sample on average), and copied back.
//! 3. The planes become one of RGB.
//!
//! Accesses are counted in words of 4 bytes. All blocks beside the line buffers
//! are ours: chosen so that the paper's totals hold (see the tests).

use metes_trace::{Event, Op, Provenance, Trace, TraceBuilder};

/// Bytes of a word in which accesses are counted: one sample.
pub const WORD: u64 = 4;
/// Width and height of the luma plane, in samples.
const LUMA: u64 = 512;
const CHROMA: u64 = LUMA / 2;
/// Lines no longer than this are the lowest band; they are not split further.
const LOWEST: u64 = 32;
/// Filter taps a sample: nine for the low band, three for the high one.
const TAPS: u64 = (9 + 3) / 2;

const NODE: u64 = 32;
const STATE: u64 = 48;
const CONTEXT: u64 = 128;
const TREE: u64 = 1024;
const INPUT: [(u64, u64); 3] = [(4096, 14), (8192, 9), (16384, 8)];
const NODES: u64 = 256;
const STATES: u64 = 10;
const CONTEXTS: u64 = 256;
const TREES: u64 = 256;

/// One plane of the image.
#[derive(Clone, Copy)]
struct Plane {
    side: u64,
    coefficients: u64,
    output: u64,
}

/// The trace of one decoded image. O(events), some 20 000.
pub fn trace() -> Trace {
    let mut decoder = Decoder::default();
    let pixels = LUMA * LUMA;
    let image = decoder.take(3 * pixels);
    let planes = [LUMA, CHROMA, CHROMA].map(|side| Plane {
        side,
        coefficients: decoder.take(side * side * WORD),
        output: decoder.take(side * side * WORD),
    });
    decoder.decode(&planes);
    for plane in &planes {
        decoder.synthesise(plane);
    }
    for plane in &planes {
        // Each line of chroma serves two lines of luma.
        let uses = LUMA / plane.side;
        decoder.give(plane.output, plane.side * plane.side * uses, 0);
    }
    decoder.give(image, 0, 3 * pixels / WORD);
    decoder.finish()
}

/// The heap's side of the decoder.
#[derive(Default)]
struct Decoder {
    builder: TraceBuilder,
    /// Accesses that blocks have had, by serial number: reads, writes.
    touched: Vec<(u64, u64)>,
}

impl Decoder {
    fn take(&mut self, bytes: u64) -> u64 {
        let block = self.builder.alloc(0, 0, bytes, 16);
        self.touched.push((0, 0));
        block.expect("sizes are possible and blocks few")
    }

    /// The program reads and writes so many words of a block.
    fn touch(&mut self, block: u64, reads: u64, writes: u64) {
        let (all_reads, all_writes) = &mut self.touched[block as usize];
        *all_reads += reads;
        *all_writes += writes;
    }

    /// Frees a block after the last accesses to it.
    fn give(&mut self, block: u64, reads: u64, writes: u64) {
        self.touch(block, reads, writes);
        let (reads, writes) = self.touched[block as usize];
        let pushed = self.builder.push(Event {
            seq: self.builder.len() as u64,
            time_ns: 0,
            thread: 0,
            op: Op::Free,
            block,
            size: 0,
            align: 0,
            reads,
            writes,
            read_bytes: reads * WORD,
            write_bytes: writes * WORD,
            site: 0,
        });
        pushed.expect("a block is freed once");
    }

    /// Fills the coefficients of all planes.
    fn decode(&mut self, planes: &[Plane; 3]) {
        // Two words of zero-tree state for each coefficient of luma.
        let tree_words = 2 * LUMA * LUMA;
        let tree = self.take(tree_words * WORD);
        let mut rows = Vec::new();
        for plane in planes {
            // Four bits of significance for each coefficient.
            rows.extend((0..plane.side).map(|_| (self.take(plane.side / 2), plane.side / 2)));
        }
        let trees: Vec<u64> = (0..TREES).map(|_| self.take(TREE)).collect();
        let nodes: Vec<u64> = (0..NODES).map(|_| self.take(NODE)).collect();
        let states: Vec<u64> = (0..STATES).map(|_| self.take(STATE)).collect();
        let contexts: Vec<u64> = (0..CONTEXTS).map(|_| self.take(CONTEXT)).collect();
        let input: Vec<(u64, u64)> = INPUT
            .into_iter()
            .flat_map(|(size, count)| (0..count).map(move |_| size))
            .map(|size| (self.take(size), size))
            .collect();

        // Every coefficient is coded once: its context is read and adapted.
        let symbols: u64 = planes.iter().map(|plane| plane.side * plane.side).sum();
        for &context in &contexts {
            let each = symbols / CONTEXTS;
            self.give(context, each, CONTEXT / WORD + each);
        }
        for (block, size) in input {
            self.give(block, size / WORD, size / WORD);
        }
        for block in states {
            self.give(block, STATE / WORD, STATE / WORD);
        }
        for block in nodes {
            self.give(block, NODE / WORD, NODE / WORD);
        }
        for block in trees {
            self.give(block, TREE / WORD, TREE / WORD);
        }
        for (block, size) in rows {
            self.give(block, size / WORD, size / WORD);
        }
        self.give(tree, tree_words, tree_words);
        for plane in planes {
            self.touch(plane.coefficients, 0, plane.side * plane.side);
        }
    }

    /// Puts a plane together, from its lowest band up.
    fn synthesise(&mut self, plane: &Plane) {
        let mut side = LOWEST;
        while side <= plane.side {
            // Rows in the one plane, columns from it into the other.
            for _ in 0..side {
                self.line(side, plane.coefficients, plane.coefficients);
            }
            let target = if side == plane.side {
                plane.output
            } else {
                plane.coefficients
            };
            for _ in 0..side {
                self.line(side, plane.coefficients, target);
            }
            side *= 2;
        }
        self.give(plane.coefficients, 0, 0);
    }

    /// Filters one line of so many samples.
    fn line(&mut self, samples: u64, from: u64, to: u64) {
        let bands = self.take(samples * WORD);
        self.touch(from, samples, 0);
        let line = self.take(samples * WORD);
        self.give(bands, TAPS * samples, samples);
        self.touch(to, 0, samples);
        self.give(line, samples, samples);
    }

    fn finish(self) -> Trace {
        self.builder.finish(Provenance {
            command: vec!["texture".to_owned()],
            recorder: "generated".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            threads: 1,
            access_word: WORD as u32,
            ..Provenance::default()
        })
    }
}

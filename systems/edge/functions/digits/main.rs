//! Handwritten digits, read by a convolutional network of 8-bit weights: a request is images of 8 x 8 bytes, grey from 0 to
//! 16, row by row; the answer a line for each: the digit, and the ten outputs. `train.py` has made the weights.
//!
//! *Invariant:* integers alone: the same image has the same answer on every machine. Nothing is allocated after the request
//! is read, and the time depends on the number of images alone.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use metes_heap::{Tlsf, global::StaticHeap, lock::Single};

#[global_allocator]
static HEAP: StaticHeap<Single, Tlsf<16>, { 128 << 10 }, false> =
    // SAFETY: the module has one thread.
    StaticHeap::new(unsafe { Single::new() }, Tlsf::new());

/// Pixels of a side.
const SIDE: usize = 8;
/// Bytes of an image.
const IMAGE: usize = SIDE * SIDE;
/// Channels behind the first and the second convolution.
const FIRST: usize = 8;
const SECOND: usize = 16;

/// For each layer: its shift, biases of 32 bits, weights of 8.
static WEIGHTS: &[u8; weights()] = include_bytes!("weights.bin");

const fn layer(inputs: usize, outputs: usize) -> usize {
    1 + 4 * outputs + inputs * outputs
}

const fn weights() -> usize {
    layer(9, FIRST) + layer(9 * FIRST, SECOND) + layer(4 * SECOND, 10)
}

/// The weights of a layer.
struct Layer<const IN: usize, const OUT: usize> {
    shift: u32,
    biases: [i32; OUT],
    weights: [[i32; OUT]; IN],
}

impl<const IN: usize, const OUT: usize> Layer<IN, OUT> {
    /// Takes a layer from the front of `bytes`.
    fn take(bytes: &mut &[u8]) -> Layer<IN, OUT> {
        let mut layer = Layer {
            shift: u32::from(bytes[0]),
            biases: [0; OUT],
            weights: [[0; OUT]; IN],
        };
        let (biases, rest) = bytes[1..].split_at(4 * OUT);
        for (bias, four) in layer.biases.iter_mut().zip(biases.as_chunks().0) {
            *bias = i32::from_le_bytes(*four);
        }
        let (weights, rest) = rest.split_at(IN * OUT);
        for (weight, byte) in layer.weights.as_flattened_mut().iter_mut().zip(weights) {
            *weight = i32::from(*byte as i8);
        }
        *bytes = rest;
        layer
    }

    fn sums(&self, inputs: impl Iterator<Item = i32>) -> [i32; OUT] {
        let mut sums = self.biases;
        for (input, weights) in inputs.zip(&self.weights) {
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += input * weight;
            }
        }
        sums
    }

    /// What goes on: nothing below zero, and 8 bits.
    fn activated(&self, inputs: impl Iterator<Item = i32>) -> [i32; OUT] {
        self.sums(inputs)
            .map(|sum| (sum.max(0) >> self.shift).min(255))
    }
}

struct Network {
    first: Layer<9, FIRST>,
    second: Layer<{ 9 * FIRST }, SECOND>,
    last: Layer<{ 4 * SECOND }, 10>,
}

impl Network {
    fn read() -> Network {
        let mut bytes = WEIGHTS.as_slice();
        Network {
            first: Layer::take(&mut bytes),
            second: Layer::take(&mut bytes),
            last: Layer::take(&mut bytes),
        }
    }

    /// The ten outputs for an image.
    fn outputs(&self, image: &[u8]) -> [i32; 10] {
        let mut first = [[[0; FIRST]; 6]; 6];
        for (y, row) in first.iter_mut().enumerate() {
            for (x, value) in row.iter_mut().enumerate() {
                let window = window().map(|(i, j)| i32::from(image[(y + i) * SIDE + x + j]));
                *value = self.first.activated(window);
            }
        }
        let mut pooled = [[[0; SECOND]; 2]; 2];
        for y in 0..4 {
            for x in 0..4 {
                let window = window().flat_map(|(i, j)| first[y + i][x + j]);
                let values = self.second.activated(window);
                for (most, value) in pooled[y / 2][x / 2].iter_mut().zip(values) {
                    *most = value.max(*most);
                }
            }
        }
        self.last
            .sums(pooled.as_flattened().as_flattened().iter().copied())
    }
}

/// The places of a window of 3 x 3.
fn window() -> impl Iterator<Item = (usize, usize)> {
    (0..3).flat_map(|i| (0..3).map(move |j| (i, j)))
}

fn main() -> ExitCode {
    let mut request = Vec::with_capacity(16 << 10);
    let read = io::stdin().lock().read_to_end(&mut request);
    if read.is_err()
        || !request.len().is_multiple_of(IMAGE)
        || request.iter().any(|grey| *grey > 16)
    {
        eprintln!("send images of {IMAGE} bytes each, every byte from 0 to 16");
        return ExitCode::from(2);
    }
    let network = Network::read();
    let mut out = io::BufWriter::new(io::stdout().lock());
    for image in request.chunks_exact(IMAGE) {
        let outputs = network.outputs(image);
        // The first of the largest.
        let digit = (0..10)
            .rev()
            .max_by_key(|digit| outputs[*digit])
            .unwrap_or_default();
        let line = write!(out, "{digit}").and_then(|()| {
            outputs
                .iter()
                .try_for_each(|output| write!(out, " {output}"))
        });
        if line.and_then(|()| writeln!(out)).is_err() {
            return ExitCode::from(3);
        }
    }
    match out.flush() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(3),
    }
}

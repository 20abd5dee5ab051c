//! The edges of a picture: PNG in, PNG out. Blurs by a binomial of 5 x 5, and answers with the gradient's strength by Sobel.
//!
//! *Invariant:* no allocation takes longer than another: the heap is a TLSF heap of Metes in a static pool; a picture that
//! is none, or too large, ends with status 2 and one line.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use metes_heap::{Tlsf, global::StaticHeap, lock::Single};

#[global_allocator]
static HEAP: StaticHeap<Single, Tlsf<16>, { 3 << 19 }, false> =
    // SAFETY: the module has one thread.
    StaticHeap::new(unsafe { Single::new() }, Tlsf::new());

/// Most pixels.
const MOST: u32 = 1 << 17;

/// A picture of grey.
struct Grey {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut request = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut request);
    read.map_err(|error| error.to_string())?;
    // An empty request is the host's own, which measures.
    if request.is_empty() {
        return Ok(());
    }
    let answer = encoded(&sobel(&blurred(&decoded(&request)?)))?;
    let written = io::stdout().lock().write_all(&answer);
    written.map_err(|error| error.to_string())
}

fn decoded(bytes: &[u8]) -> Result<Grey, String> {
    let no_picture = |error: png::DecodingError| format!("the request is no PNG: {error}");
    let mut decoder = png::Decoder::new(io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(no_picture)?;
    let (width, height) = (reader.info().width, reader.info().height);
    if width < 3 || height < 3 || u64::from(width) * u64::from(height) > u64::from(MOST) {
        return Err(format!(
            "{width} x {height} pixels: send 3 x 3 at least, and {MOST} pixels at most"
        ));
    }
    let size = reader
        .output_buffer_size()
        .ok_or("the picture is too large")?;
    let mut pixels = vec![0; size];
    let info = reader.next_frame(&mut pixels).map_err(no_picture)?;
    let samples = info.color_type.samples();
    let grey = pixels[..info.buffer_size()]
        .chunks_exact(samples)
        .map(|pixel| match *pixel {
            // By ITU-R BT.601, in 256ths.
            [red, green, blue, ..] => {
                ((77 * u32::from(red) + 150 * u32::from(green) + 29 * u32::from(blue)) >> 8) as u8
            }
            _ => pixel[0],
        });
    Ok(Grey {
        width: width as usize,
        height: height as usize,
        pixels: grey.collect(),
    })
}

/// Blurred by 1 4 6 4 1, along rows and then along columns; pixels of the rim go on beyond it.
fn blurred(picture: &Grey) -> Grey {
    let rows = along(picture, 1, picture.width);
    along(&rows, picture.width, picture.height)
}

fn along(picture: &Grey, step: usize, length: usize) -> Grey {
    let pixels = (0..picture.pixels.len()).map(|at| {
        let place = at / step % length;
        let sum: u32 = [(1, -2), (4, -1), (6, 0), (4, 1), (1, 2)]
            .into_iter()
            .map(|(weight, by): (u32, isize)| {
                let near = (place as isize + by).clamp(0, length as isize - 1) as usize;
                weight * u32::from(picture.pixels[at - place * step + near * step])
            })
            .sum();
        ((sum + 8) >> 4) as u8
    });
    Grey {
        pixels: pixels.collect(),
        ..*picture
    }
}

/// The gradient's strength, as the sum of its parts; 0 at the rim.
fn sobel(picture: &Grey) -> Grey {
    let (width, height) = (picture.width, picture.height);
    let mut pixels = vec![0; width * height];
    for y in 1..height - 1 {
        let [above, here, below] =
            [y - 1, y, y + 1].map(|row| &picture.pixels[row * width..(row + 1) * width]);
        for x in 1..width - 1 {
            let at = |row: &[u8], x: usize| i32::from(row[x]);
            let across = at(above, x + 1) + 2 * at(here, x + 1) + at(below, x + 1)
                - at(above, x - 1)
                - 2 * at(here, x - 1)
                - at(below, x - 1);
            let down = at(below, x - 1) + 2 * at(below, x) + at(below, x + 1)
                - at(above, x - 1)
                - 2 * at(above, x)
                - at(above, x + 1);
            pixels[y * width + x] = (across.abs() + down.abs()).min(255) as u8;
        }
    }
    Grey { pixels, ..*picture }
}

fn encoded(picture: &Grey) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width as u32, picture.height as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let written = encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&picture.pixels));
    written.map_err(|error| error.to_string())?;
    Ok(bytes)
}

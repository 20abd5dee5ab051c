//! Grey pictures: read from files, cut out, or drawn.
//!
//! *Invariant:* a picture has as many bytes as pixels, and at least one; a seed draws the same picture for ever.

use std::path::Path;

use image::{ImageError, ImageReader};
use metes_random::Random;

/// A picture of bytes, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum NoPicture {
    /// The file is not there or cannot be read.
    #[error("{path}: {error}: give a PNG or PGM file that can be read")]
    Unread {
        /// Its path.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file is none of a picture.
    #[error("{path}: {error}: give a PNG or PGM file")]
    Malformed {
        /// Its path.
        path: String,
        /// What is wrong with it.
        error: ImageError,
    },
    /// A file of no pixels.
    #[error("{path} has no pixels: give a PNG or PGM file that has some")]
    Empty {
        /// Its path.
        path: String,
    },
    /// Something outside is asked for.
    #[error(
        "{asked_width} x {asked_height} pixels from ({x}, {y}) do not lie in a picture of {width} x {height}: ask for fewer"
    )]
    Outside {
        /// Where the part begins.
        x: usize,
        /// Where the part begins.
        y: usize,
        /// What is asked for.
        asked_width: usize,
        /// What is asked for.
        asked_height: usize,
        /// What there is.
        width: usize,
        /// What there is.
        height: usize,
    },
}

impl Picture {
    /// A picture of `pixels`, row by row; none if there are not as many, or none at all.
    #[must_use]
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Option<Picture> {
        let some = !pixels.is_empty() && width.checked_mul(height) == Some(pixels.len());
        some.then_some(Picture {
            width,
            height,
            pixels,
        })
    }

    /// Reads a PNG or PGM file, in grey: colours by their luminance.
    ///
    /// # Errors
    /// [`NoPicture`]
    pub fn read(path: &Path) -> Result<Picture, NoPicture> {
        let name = || path.display().to_string();
        let unread = |error| NoPicture::Unread {
            path: name(),
            error,
        };
        let reader = ImageReader::open(path).map_err(unread)?;
        let reader = reader.with_guessed_format().map_err(unread)?;
        let malformed = |error| NoPicture::Malformed {
            path: name(),
            error,
        };
        let grey = reader.decode().map_err(malformed)?.into_luma8();
        let (width, height) = (grey.width() as usize, grey.height() as usize);
        let empty = || NoPicture::Empty { path: name() };
        Picture::new(width, height, grey.into_raw()).ok_or_else(empty)
    }

    /// Draws a picture: a slope, rectangles and discs of random greys on it, and noise. It has flat parts, edges and
    /// corners, as pictures of the world have.
    ///
    /// # Panics
    /// When it is to have no pixels.
    #[must_use]
    pub fn generated(width: usize, height: usize, seed: u64) -> Picture {
        assert!(width > 0 && height > 0, "a picture has pixels");
        let mut random = Random::new(seed);
        let mut pixels: Vec<u8> = (0..width * height)
            .map(|at| (64 + 128 * (at % width) / width) as u8)
            .collect();
        for _ in 0..width * height / 1024 {
            let centre_x = random.below(width as u64) as i64;
            let centre_y = random.below(height as u64) as i64;
            let [half_width, half_height] = [(); 2].map(|()| random.between(3, 20) as i64);
            let (grey, disc) = (random.below(256) as u8, random.below(2) == 0);
            for (at, pixel) in pixels.iter_mut().enumerate() {
                let x = ((at % width) as i64 - centre_x).abs();
                let y = ((at / width) as i64 - centre_y).abs();
                let inside = if disc {
                    x * x + y * y <= half_width * half_width
                } else {
                    x <= half_width && y <= half_height
                };
                if inside {
                    *pixel = grey;
                }
            }
        }
        for pixel in &mut pixels {
            *pixel = pixel.saturating_add(random.below(5) as u8);
        }
        Picture {
            width,
            height,
            pixels,
        }
    }

    /// The part of `width` x `height` pixels from (`x`, `y`) on.
    ///
    /// # Errors
    /// [`NoPicture::Outside`]
    pub fn cropped(
        &self,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
    ) -> Result<Picture, NoPicture> {
        let within = |from: usize, size: usize, all: usize| {
            size > 0 && from.checked_add(size).is_some_and(|end| end <= all)
        };
        if !within(x, width, self.width) || !within(y, height, self.height) {
            return Err(NoPicture::Outside {
                x,
                y,
                asked_width: width,
                asked_height: height,
                width: self.width,
                height: self.height,
            });
        }
        let rows = (y..y + height).map(|row| &self.pixels[row * self.width + x..][..width]);
        Ok(Picture {
            width,
            height,
            pixels: rows.flatten().copied().collect(),
        })
    }

    /// Its columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Its rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Its pixels, row by row.
    #[must_use]
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The pixel at a place; outside, the nearest of the picture.
    #[must_use]
    pub fn nearest(&self, x: isize, y: isize) -> u8 {
        let x = x.clamp(0, self.width as isize - 1) as usize;
        let y = y.clamp(0, self.height as isize - 1) as usize;
        self.pixels[y * self.width + x]
    }

    pub(crate) fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "a picture of {} x {}", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_lies_there() {
        let picture = Picture::new(3, 2, vec![0, 1, 2, 10, 11, 12]).expect("six pixels");
        let part = picture.cropped(1, 0, 2, 2).expect("it lies within");
        assert_eq!(part.pixels(), [1, 2, 11, 12]);
        for (x, y, width, height) in [
            (2, 0, 2, 1),
            (0, 1, 1, 2),
            (0, 0, 0, 1),
            (usize::MAX, 0, 2, 1),
        ] {
            assert!(picture.cropped(x, y, width, height).is_err(), "{x}, {y}");
        }
    }

    #[test]
    fn the_nearest_pixel_stands_for_one_outside() {
        let picture = Picture::new(2, 2, vec![1, 2, 3, 4]).expect("four pixels");
        assert_eq!(picture.nearest(-3, -1), 1);
        assert_eq!(picture.nearest(9, 0), 2);
        assert_eq!(picture.nearest(1, 9), 4);
    }

    #[test]
    fn pixels_must_be_as_many_as_said() {
        assert!(Picture::new(2, 2, vec![0; 3]).is_none());
        assert!(Picture::new(0, 4, Vec::new()).is_none());
        assert!(Picture::new(usize::MAX, 2, vec![0; 2]).is_none());
    }
}

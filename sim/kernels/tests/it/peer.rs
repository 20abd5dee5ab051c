//! The kernels beside those of `imageproc`, on a drawn picture and, where `METES_IMAGES` names files of pictures, on those.
//!
//! *Invariant:* what the two have in common is equal to the bit: nothing is within a tolerance.

use image::{GrayImage, Luma};
use imageproc::corners::corners_fast9;
use imageproc::filter::filter;
use imageproc::integral_image::integral_image;
use imageproc::kernel::Kernel;
use metes_kernels::{Fast, Gaussian, Integral, Picture, record};

fn pictures() -> Vec<Picture> {
    let mut pictures = vec![
        Picture::generated(128, 96, 1),
        Picture::generated(16, 16, 2),
    ];
    let named = std::env::var_os("METES_IMAGES").unwrap_or_default();
    for path in std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()) {
        let whole = Picture::read(&path).expect("a picture that METES_IMAGES names");
        let whole_tiles = |size: usize| size / 16 * 16;
        let (width, height) = (whole_tiles(whole.width()), whole_tiles(whole.height()));
        pictures.push(whole.cropped(0, 0, width, height).expect("a tile at least"));
    }
    pictures
}

fn theirs(picture: &Picture) -> GrayImage {
    let (width, height) = (picture.width() as u32, picture.height() as u32);
    GrayImage::from_raw(width, height, picture.pixels().to_vec()).expect("as many pixels")
}

#[test]
fn corners_are_the_same() {
    for picture in pictures() {
        for threshold in [5, 20, 60] {
            let (mut found, _) = record(&mut Fast::new(&picture, threshold).expect("tiles"));
            found.sort();
            let found = found.iter().map(|corner| {
                let (x, y) = (corner.x as u32, corner.y as u32);
                (x, y, f32::from(corner.score))
            });
            let theirs = corners_fast9(&theirs(&picture), threshold);
            let theirs = theirs
                .iter()
                .map(|corner| (corner.x, corner.y, corner.score));
            assert!(found.eq(theirs), "{picture:?}, {threshold}");
        }
    }
}

#[test]
fn blurs_are_the_same() {
    let row = [1, 4, 6, 4, 1];
    let weights: Vec<i32> = row
        .iter()
        .flat_map(|down| row.map(|across| down * across))
        .collect();
    for picture in pictures() {
        let (found, _) = record(&mut Gaussian::new(&picture).expect("tiles"));
        let kernel = Kernel::new(&weights, 5, 5);
        let theirs: GrayImage = filter(&theirs(&picture), kernel, |sum: i32| {
            ((sum + 128) >> 8) as u8
        });
        assert!(found.pixels() == theirs.as_raw().as_slice(), "{picture:?}");
    }
}

#[test]
fn integrals_are_the_same() {
    for picture in pictures() {
        let (found, _) = record(&mut Integral::new(&picture).expect("tiles"));
        // Theirs begins with a row and a column of zeros.
        let theirs = integral_image::<Luma<u8>, u32>(&theirs(&picture));
        for (at, sum) in found.sums.iter().enumerate() {
            let (x, y) = (at % found.width, at / found.width);
            assert_eq!([*sum], theirs.get_pixel(x as u32 + 1, y as u32 + 1).0);
        }
    }
}

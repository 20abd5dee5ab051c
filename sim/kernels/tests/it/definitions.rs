//! Each kernel beside what it is by definition, written as plainly as can be, on random pictures.
//!
//! *Invariant:* nothing of the kernels' code is used in the definitions.

use metes_kernels::{Corner, Fast, Gaussian, Integral, Matrix, Picture, record};
use proptest::prelude::*;

fn pictures() -> impl Strategy<Value = Picture> {
    let drawn = (1..5_usize, 1..5_usize, any::<u64>())
        .prop_map(|(columns, rows, seed)| Picture::generated(16 * columns, 16 * rows, seed));
    let noise = (1..4_usize, 1..4_usize).prop_flat_map(|(columns, rows)| {
        prop::collection::vec(any::<u8>(), 256 * columns * rows).prop_map(move |pixels| {
            Picture::new(16 * columns, 16 * rows, pixels).expect("as many as said")
        })
    });
    prop_oneof![drawn, noise]
}

/// The circle of FAST, read off the picture in Rosten and Drummond's paper, row by row.
const CIRCLE: [(i32, i32); 16] = [
    (-1, -3),
    (0, -3),
    (1, -3),
    (2, -2),
    (3, -1),
    (3, 0),
    (3, 1),
    (2, 2),
    (1, 3),
    (0, 3),
    (-1, 3),
    (-2, 2),
    (-3, 1),
    (-3, 0),
    (-3, -1),
    (-2, -2),
];

/// Whether nine pixels in a row differ from the one in the middle by more than `threshold`, all to one side.
fn is_corner(picture: &Picture, x: usize, y: usize, threshold: i32) -> bool {
    let at = |dx: i32, dy: i32| {
        let (x, y) = (x as i32 + dx, y as i32 + dy);
        i32::from(picture.pixels()[y as usize * picture.width() + x as usize])
    };
    let middle = at(0, 0);
    (0..16).any(|begin| {
        let arc = || (begin..begin + 9).map(|number| CIRCLE[number % 16]);
        arc().all(|(dx, dy)| at(dx, dy) > middle + threshold)
            || arc().all(|(dx, dy)| at(dx, dy) < middle - threshold)
    })
}

fn corners(picture: &Picture, threshold: u8) -> Vec<Corner> {
    let mut corners = Vec::new();
    for y in 3..picture.height() - 3 {
        for x in 3..picture.width() - 3 {
            if is_corner(picture, x, y, threshold.into()) {
                let scores = (i32::from(threshold)..256).rev();
                let score = { scores }.find(|score| is_corner(picture, x, y, *score));
                let score = score.expect("it is one at the threshold") as u8;
                corners.push(Corner { y, x, score });
            }
        }
    }
    corners
}

fn blurred(picture: &Picture, x: usize, y: usize) -> u8 {
    // The row of Pascal's triangle.
    let weights = [1.0, 4.0, 6.0, 4.0, 1.0].map(|weight| weight / 16.0);
    let mut sum = 0.0;
    for (row, down) in weights.iter().enumerate() {
        for (column, across) in weights.iter().enumerate() {
            let x = (x as isize + column as isize - 2).clamp(0, picture.width() as isize - 1);
            let y = (y as isize + row as isize - 2).clamp(0, picture.height() as isize - 1);
            let pixel = picture.pixels()[y as usize * picture.width() + x as usize];
            sum += down * across * f64::from(pixel);
        }
    }
    // Sums of 256ths are exact; a half is rounded up.
    (sum + 0.5).floor() as u8
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn corners_are_nine_in_a_row(picture in pictures(), threshold in 0..80_u8) {
        let mut found = record(&mut Fast::new(&picture, threshold).expect("tiles")).0;
        found.sort();
        prop_assert_eq!(found, corners(&picture, threshold));
    }

    #[test]
    fn a_blur_is_a_sum_over_25(picture in pictures()) {
        let (found, _) = record(&mut Gaussian::new(&picture).expect("tiles"));
        for (at, pixel) in found.pixels().iter().enumerate() {
            let (x, y) = (at % picture.width(), at / picture.width());
            prop_assert_eq!(*pixel, blurred(&picture, x, y), "at {}, {}", x, y);
        }
    }

    #[test]
    fn an_integral_is_a_sum_of_all_before(picture in pictures()) {
        let (found, _) = record(&mut Integral::new(&picture).expect("tiles"));
        for (at, sum) in found.sums.iter().enumerate() {
            let (x, y) = (at % picture.width(), at / picture.width());
            let rows = picture.pixels().chunks_exact(picture.width()).take(y + 1);
            let all: u32 = rows.flat_map(|row| &row[..=x]).map(|pixel| u32::from(*pixel)).sum();
            prop_assert_eq!(*sum, all, "at {}, {}", x, y);
        }
    }

    #[test]
    fn a_product_is_rows_by_columns(blocks in 1..4_usize, seed in any::<u64>()) {
        let side = 16 * blocks;
        let mut random = metes_random::Random::new(seed);
        let mut matrix = || (0..side * side).map(|_| random.next() as i32).collect::<Vec<_>>();
        let (left, right) = (matrix(), matrix());
        let mut kernel = Matrix::new(side, left.clone(), right.clone()).expect("blocks");
        let (found, _) = record(&mut kernel);
        for (at, number) in found.numbers.iter().enumerate() {
            let (row, column) = (at / side, at % side);
            let sum = (0..side).map(|k| i64::from(left[row * side + k]) * i64::from(right[k * side + column]));
            // Modulo 2³², whatever the order.
            let sum = sum.fold(0_i64, i64::wrapping_add);
            prop_assert_eq!(*number, sum as i32, "at {}, {}", row, column);
        }
    }
}

#[test]
fn a_pictures_product_is_with_itself_turned() {
    let picture = Picture::generated(32, 48, 5);
    let (found, _) = record(&mut Matrix::of_picture(&picture).expect("tiles"));
    assert_eq!(found.side, 32);
    let row = |y: usize| &picture.pixels()[y * 32..][..32];
    for (at, number) in found.numbers.iter().enumerate() {
        let pairs = row(at / 32).iter().zip(row(at % 32));
        let sum: i32 = pairs.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        assert_eq!(*number, sum);
    }
}

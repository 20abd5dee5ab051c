//! Dynamic programming.
//!
//! *Invariant:* integers, without an overflow: paths are at most 999 n long.

use crate::arrays::{Checksum, matrix, vector};

pub(crate) fn floyd_warshall(n: usize) -> u64 {
    let mut path = matrix(n, n, |i, j| {
        let far = (i + j) % 13 == 0 || (i + j) % 7 == 0 || (i + j) % 11 == 0;
        if far { 999 } else { (i * j % 7 + 1) as i32 }
    });
    let mut through = vector(n, |_| 0);
    for k in 0..n {
        through.copy_from_slice(&path[k * n..(k + 1) * n]);
        for row in path.chunks_exact_mut(n) {
            let first = row[k];
            for (path, rest) in row.iter_mut().zip(&through) {
                *path = (*path).min(first + rest);
            }
        }
    }
    Checksum::new().of_integers(&path).end()
}

pub(crate) fn nussinov(n: usize) -> u64 {
    let sequence = vector(n, |i| ((i * i + i) % 5 % 4) as u8);
    let mut table = matrix(n, n, |_, _| 0i32);
    for i in (0..n).rev() {
        for j in i + 1..n {
            let mut best = table[i * n + j - 1].max(table[(i + 1) * n + j]);
            let pair = i32::from(j - i > 1 && sequence[i] + sequence[j] == 3);
            best = best.max(table[(i + 1) * n + j - 1] + pair);
            for k in i + 1..j {
                best = best.max(table[i * n + k] + table[(k + 1) * n + j]);
            }
            table[i * n + j] = best;
        }
    }
    Checksum::new().of_integers(&table).end()
}

//! Pictures from files, good and bad.
//!
//! *Invariant:* whatever a file holds, reading it ends in a picture or in an error that says what to give.

use std::path::PathBuf;

use metes_kernels::{Gaussian, NoPicture, NotTiled, Picture};

fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture");
    std::fs::write(&path, bytes).expect("it is written");
    (folder, path)
}

fn png(picture: &Picture) -> Vec<u8> {
    let (width, height) = (picture.width() as u32, picture.height() as u32);
    let grey = image::GrayImage::from_raw(width, height, picture.pixels().to_vec());
    let mut bytes = std::io::Cursor::new(Vec::new());
    let written = grey
        .expect("as many")
        .write_to(&mut bytes, image::ImageFormat::Png);
    written.expect("it is written");
    bytes.into_inner()
}

#[test]
fn a_picture_is_read_as_it_was_written() {
    let picture = Picture::generated(48, 32, 3);
    let (_folder, path) = file(&png(&picture));
    assert_eq!(Picture::read(&path).expect("a picture"), picture);
    let mut pgm = b"P5\n48 32\n255\n".to_vec();
    pgm.extend(picture.pixels());
    let (_folder, path) = file(&pgm);
    assert_eq!(Picture::read(&path).expect("a picture"), picture);
}

#[test]
fn what_is_no_picture_is_told() {
    let whole = png(&Picture::generated(32, 32, 3));
    let bad: [&[u8]; 6] = [
        b"",
        b"GIF89a",
        b"P5\n16 16\n255\nfew",
        b"P5\n4294967295 4294967295\n255\n",
        b"P5\n0 0\n255\n",
        &whole[..whole.len() / 2],
    ];
    for bytes in bad {
        let (_folder, path) = file(bytes);
        let error = Picture::read(&path).expect_err("no picture").to_string();
        assert!(error.contains("PGM file"), "{error}");
    }
    let missing = Picture::read("no/such/file.png".as_ref());
    assert!(matches!(missing, Err(NoPicture::Unread { .. })));
}

#[test]
fn what_is_not_of_tiles_is_told() {
    for (width, height) in [(15, 16), (16, 40), (1, 1)] {
        let refused = Gaussian::new(&Picture::generated(width, height, 1)).err();
        assert_eq!(refused, Some(NotTiled { width, height }));
    }
}

//! Tools that look on, beside something that knows nothing of them: each other, binutils, plain recounts.

mod disassemble;
mod snapshot;
mod tools;

use metes_leon3::Image;

/// Image `name`.
fn image(name: &str) -> Image {
    let bytes = std::fs::read(crate::images::image(name)).expect("the image was built");
    Image::read(&bytes).expect("an image")
}

//! Several cores: what they count together by `casa` is exact, and the same each time.

use metes_leon3::{Configuration, End, Image, Machine, Model, Stop};

use crate::images::image;

/// What `cores` cores print, and when the last one is done.
fn run(image: &Image, cores: usize, quantum: u64, model: Model) -> (String, u64, u64) {
    let configuration = Configuration {
        cores,
        quantum,
        model,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, image).expect("a machine");
    let stop = machine.run(1_000_000_000, &mut ());
    assert_eq!(stop, Stop::End(End::Halt { core: 0 }), "{cores} cores");
    let printed = String::from_utf8(machine.printed(0)).expect("text");
    (printed, machine.instructions(), machine.cycles())
}

#[test]
fn increments_by_casa_are_exact_on_any_cores() {
    let read =
        |name| Image::read(&std::fs::read(image(name)).expect("it was built")).expect("an image");
    let (casa, many) = (read("casa"), read("casa-64"));
    for (image, cores, quanta) in [
        (&casa, 2, &[1, 7, 64, 1000][..]),
        (&casa, 4, &[1, 7, 64, 1000]),
        (&casa, 16, &[1, 64]),
        (&many, 64, &[64]),
    ] {
        for &quantum in quanta {
            for model in [Model::Uniform, Model::Flat, Model::Caches] {
                let first = run(image, cores, quantum, model);
                let total = 2000 * cores;
                let expected =
                    format!("CPUs {cores}\ncounted {total}\nunder the lock {total}\nequal\n");
                assert_eq!(first.0, expected, "quantum {quantum}, {model:?}");
                assert_eq!(
                    first,
                    run(image, cores, quantum, model),
                    "quantum {quantum}, {model:?}"
                );
            }
        }
    }
}

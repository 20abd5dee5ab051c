//! Every index beside a sorted set.

use std::collections::BTreeSet;

use metes_pages::{
    Index, Zeroed,
    index::{Bitmap32, Bitmap64, Layered},
    zeroed,
};
use proptest::prelude::*;

/// Pages in clusters, at borders of words, and anywhere.
fn page(pages: u32) -> impl Strategy<Value = u32> {
    prop_oneof![
        0..pages,
        (0..pages / 64).prop_map(|word| word * 64),
        (0..pages / 64).prop_map(|word| word * 64 + 63),
        0..200u32,
        pages - 200..pages,
    ]
}

fn agrees<I: Index + Zeroed>(steps: &[(bool, u32)]) {
    let mut index = zeroed::<I>();
    let mut set = BTreeSet::from([0]);
    for &(insert, page) in steps {
        if insert {
            index.insert(page);
            set.insert(page);
        } else if page != 0 && set.remove(&page) {
            index.remove(page);
        }
        for page in [
            page,
            page.saturating_sub(1),
            (page + 1) % I::PAGES as u32,
            page / 2,
        ] {
            assert_eq!(index.contains(page), set.contains(&page));
            assert_eq!(
                Some(index.find(page)),
                set.range(..=page).next_back().copied()
            );
            assert_eq!(index.next(page), set.range(page + 1..).next().copied());
        }
    }
}

fn steps(pages: u32) -> impl Strategy<Value = Vec<(bool, u32)>> {
    // Few distinct pages, so that they are removed, too.
    proptest::collection::vec(page(pages), 1..40).prop_flat_map(|few| {
        proptest::collection::vec((any::<bool>(), proptest::sample::select(few)), 1..150)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn small_indexes_agree_with_a_set(steps in steps(4096)) {
        agrees::<Bitmap64<64, 1, 1>>(&steps);
        agrees::<Bitmap32<128, 4, 1>>(&steps);
        agrees::<Layered<128, 4, 1>>(&steps);
    }

    #[test]
    #[cfg_attr(miri, ignore = "megabytes of words: the small ones run the same code")]
    fn large_indexes_agree_with_a_set(steps in steps(1 << 20)) {
        agrees::<Bitmap64<16384, 256, 4>>(&steps);
        agrees::<Bitmap32<32_768, 1024, 32>>(&steps);
        agrees::<Layered<32_768, 1024, 32>>(&steps);
    }
}

#[test]
fn sizes_are_those_of_the_documents() {
    assert_eq!(size_of::<Bitmap64<16384, 256, 4>>(), 133_160);
    assert_eq!(size_of::<Bitmap32<32_768, 1024, 32>>(), 135_300);
    assert_eq!(size_of::<Layered<32_768, 1024, 32>>(), 143_756);
}

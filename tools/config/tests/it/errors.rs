//! What is refused, and what the refusal says.

use metes_config::{handle_heap, parse, spec};

#[track_caller]
fn refuses(text: &str, expected: &str) {
    let error = parse(text, "heap.toml").expect_err("this must be refused");
    assert_eq!(error.one_line(), expected);
    // The place exists, and the long form shows it.
    let place = error.place.as_ref().expect("a place");
    assert_eq!(text.lines().nth(place.line - 1).unwrap_or(""), place.text);
    assert!(error.to_string().contains('^'), "{error}");
}

#[track_caller]
fn refuses_spec(text: &str, expected: &str) {
    assert_eq!(
        spec(text).expect_err("this must be refused").one_line(),
        expected
    );
}

#[test]
fn the_line_is_shown() {
    let text = "# mine\n[heap]\nname = \"tlsf\"\nsecond_levl = 32\n";
    let error = parse(text, "my/heap.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "my/heap.toml:4:1: `tlsf` has no key `second_levl`\n  \
           |\n\
         4 | second_levl = 32\n  \
           | ^^^^^^^^^^^ did you mean `second_level`?"
    );
}

#[test]
fn unknown_words_are_refused_with_the_nearest() {
    refuses(
        "[heap]\nname = \"bestfit\"\n",
        "heap.toml:2:8: there is no heap named `bestfit` (did you mean `best-fit`?)",
    );
    refuses(
        "[haep]\nname = \"tlsf\"\n",
        "heap.toml:1:2: a heap.toml has no section `haep` (did you mean `heap`?)",
    );
    refuses(
        "[[pool]]\nkind = \"object\"\nsise = 16\n",
        "heap.toml:1:1: a pool of kind `object` needs a `size`",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[[pool]]\nkind = \"object\"\nsize = 16\nslap = 512\n",
        "heap.toml:6:1: an object pool has no key `slap` (did you mean `slab`?)",
    );
    refuses(
        "[heap]\nname = \"first-fit\"\norder = \"fiffo\"\n",
        "heap.toml:3:9: `order` cannot be `fiffo` (did you mean `fifo`?)",
    );
    refuses(
        "[heap]\nname = \"kingsley\"\nsecond_level = 4\n",
        "heap.toml:3:1: `kingsley` has no key `second_level` (known here: store, name)",
    );
}

#[test]
fn a_tree_says_what_it_does_not_take() {
    for (parameters, expected) in [
        (
            "search=tree,order=lifo",
            "heap:1:29: `search=tree` takes `order=address` only: leave out `order`, or `search`",
        ),
        (
            "search=tree,depth=50",
            "heap:1:23: `search=tree` has no list, searches everything, and always merges and splits: leave out `depth`, \
             or `search`",
        ),
        (
            "search=tree,coalesce_up_to=never",
            "heap:1:23: `search=tree` has no list, searches everything, and always merges and splits: leave out \
             `coalesce_up_to`, or `search`",
        ),
        (
            "search=tree,span=1KiB",
            "heap:1:28: span must be from 4 KiB to 32 GiB: what the memory may grow to",
        ),
        (
            "summary=class",
            "heap:1:11: `summary` is of the tree: give `search=tree`, or leave it out",
        ),
        (
            "search=list,span=1MiB",
            "heap:1:23: `span` is of the tree: give `search=tree`, or leave it out",
        ),
        (
            "search=tre",
            "heap:1:18: `search` cannot be `tre` (did you mean `tree`?)",
        ),
    ] {
        refuses_spec(&format!("first-fit:{parameters}"), expected);
    }
    assert!(spec("best-fit:search=tree").is_err());
}

#[test]
fn heaps_of_handles_are_told_from_heaps_of_pointers() {
    refuses_spec(
        "fragmented:block=64",
        "heap:1:1: `fragmented` gives handles, and here a program needs pointers: link it from \
         `metes_heap::fragmented`, or judge it by `metes bounds` and `metes replay`",
    );
    for text in [
        "fragmented",
        "fragmented:block=64",
        "fragmented:shape=chain",
        "fragmented:block=128,shape=chain",
    ] {
        let heap = handle_heap(text).expect("a heap of handles").unwrap();
        assert_eq!(heap.spec(), text);
    }
    assert_eq!(handle_heap("tlsf"), None);
    let refused = |text| handle_heap(text).expect("a heap of handles").unwrap_err();
    for (text, expected) in [
        (
            "fragmented:block=48",
            "heap:1:18: a block of 48 bytes: it must be a power of two from 16 to 65536",
        ),
        (
            "fragmented:shape=ring",
            "heap:1:18: `shape` cannot be `ring` (known here: chain, tree)",
        ),
        (
            "fragmented:blok=64",
            "heap:1:12: `fragmented` has no key `blok` (did you mean `block`?)",
        ),
        (
            "fragmented:block",
            "heap:1:12: `block` is not a parameter: write `key=value`",
        ),
    ] {
        assert_eq!(refused(text).one_line(), expected);
    }
}

#[test]
fn impossible_partitions_are_refused() {
    refuses_spec(
        "compact-fit:moving=no,page=10000",
        "heap:1:28: a page of 10000 bytes: it must be a power of two from 256 to 65536",
    );
    refuses_spec(
        "compact-fit:page=4096,largest=4096",
        "heap:1:31: the page of 4096 bytes is smaller than the largest class: 4096 bytes and 8 of \
         record; enlarge the page or lower the largest request",
    );
    refuses_spec(
        "compact-fit:moving=no,factor=0.9",
        "heap:1:30: a growth factor of 0.900: classes grow only above 1",
    );
    refuses_spec(
        "compact-fit:kappa=0",
        "heap:1:19: kappa is 0: the page being filled is not full; take at least 1",
    );
    refuses_spec(
        "compact-fit:increment=20000",
        "heap:1:23: an increment of 20000 bytes: take 1 to 16384, the bytes of a page",
    );
    refuses_spec(
        "compact-fit:moving=no,kappa=2",
        "heap:1:29: a finite `kappa` moves blocks: leave it out, or `moving=no`",
    );
    refuses_spec(
        "compact-fit:kappa=1,behind=tlsf",
        "heap:1:21: `compact-fit` has no key `behind` (known here: moving, kappa, page, smallest, \
         largest, factor, increment, mapped, pages)",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[partition]\n[[pool]]\nkind = \"object\"\nsize = 16\n",
        "heap.toml:3:1: a partition takes the place of object pools: leave out one of them",
    );
    refuses(
        "[heap]\nname = \"compact-fit\"\n[[pool]]\nkind = \"dedicated\"\nsize = 48\n",
        "heap.toml:2:8: compact-fit whose blocks move has neither pools nor memory levels beside \
         it: leave them out, or say `moving = \"no\"`",
    );
}

#[test]
fn impossible_values_are_refused() {
    refuses(
        "[heap]\nname = \"tlsf\"\nsecond_level = 31\n",
        "heap.toml:3:16: `second_level` must be a power of two from 1 to 32, not 31",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\nsecond_level = \"many\"\n",
        "heap.toml:3:16: `second_level` must be a whole number from 1 to 32, not `many`",
    );
    refuses(
        "[heap]\nname = \"best-fit\"\ndepth = 0\n",
        "heap.toml:3:9: `depth` must be a percentage from 1 to 100, not the number 0",
    );
    refuses(
        "[heap]\nname = \"best-fit\"\nmax_fit = 99\n",
        "heap.toml:3:11: `max_fit` must be a percentage of at least 100, not the number 99",
    );
    refuses(
        "[heap]\nname = \"best-fit\"\ncoalesce_up_to = \"4 kibi\"\n",
        "heap.toml:3:18: `4 kibi` is not a size: write bytes as in `4096`, or a unit as in `64 KiB`",
    );
    refuses(
        "[heap]\nname = \"best-fit\"\ncoalesce_up_to = -1\n",
        "heap.toml:3:18: `coalesce_up_to` must be a size in bytes that a machine word can hold, \
         not the number -1",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[arena]\nincrement = 1000\n",
        "heap.toml:4:13: `increment` must be a multiple of 16 from 16 to 1 GiB",
    );
    refuses(
        "heap = 3\n",
        "heap.toml:1:8: `heap` must be a section: write `[heap]` above its keys",
    );
    refuses(
        "pool = [1]\n",
        "heap.toml:1:9: each pool must be a section of its own: write `[[pool]]`",
    );
}

#[test]
fn pools_that_make_no_heap_are_refused() {
    refuses(
        "",
        "heap.toml:1:1: a heap needs a general pool: add `[heap]` with a `name`, or a `[[pool]]` \
         of kind \"general\"",
    );
    refuses(
        "[[pool]]\nkind = \"general\"\nindex = \"tlsf\"\nup_to = 512\n",
        "heap.toml:1:1: the last general pool must take every size: leave out its `up_to`",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n\n[[pool]]\nkind = \"general\"\nindex = \"buddy\"\n",
        "heap.toml:4:1: `[heap]` already names the heap that serves everything: leave out its \
         `name`, or this pool",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[[pool]]\nkind = \"dedicated\"\nsize = 57\n\
         [[pool]]\nkind = \"dedicated\"\nsize = 60\n",
        "heap.toml:6:1: dedicated pools must have rising sizes that need different blocks",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[[pool]]\nkind = \"object\"\nsize = 17\n",
        "heap.toml:3:1: object pools must have rising sizes, multiples of 16 up to \
         1024, and from 2 to 256 slots a slab",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[[pool]]\nkind = \"object\"\nsize = 16\nlevel = \"sram\"\n\
         [[level]]\nname = \"dram\"\nsize = \"1 GiB\"\n",
        "heap.toml:6:9: there is no memory level `sram`: add a `[[level]]` (did you mean `dram`?)",
    );
    let many: String = (1..=17)
        .map(|n| format!("[[pool]]\nkind = \"dedicated\"\nsize = {}\n", n * 16))
        .collect();
    refuses(
        &format!("[heap]\nname = \"tlsf\"\n{many}"),
        "heap.toml:51:1: there can be at most 16 dedicated pools",
    );
}

#[test]
fn specs_are_refused_at_the_column() {
    refuses_spec(
        "tlsf:secondlevel=8",
        "heap:1:6: `tlsf` has no key `secondlevel` (did you mean `second_level`?)",
    );
    refuses_spec(
        "tlsf:8",
        "heap:1:6: `8` is not a parameter: write `key=value`",
    );
    refuses_spec(
        "tlsf:",
        "heap:1:6: `` is not a parameter: write `key=value`",
    );
    refuses_spec(
        "best-fit:depth=50,depth=60",
        "heap:1:19: `depth` is given twice",
    );
    refuses_spec(
        "best-fit:depth=101",
        "heap:1:16: `depth` must be a percentage from 1 to 100, not `101`",
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let error = metes_config::resolve("/no/such/heap.toml").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read /no/such/heap.toml: "),
        "{error}"
    );
    let error = metes_config::resolve("no-such").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("there is no heap named `no-such`"),
        "{error}"
    );
}

#[test]
fn levels_that_do_not_hold_their_pools_are_refused() {
    let levels = "[[level]]\nname = \"near\"\nsize = 1000\n[[level]]\nname = \"far\"\n";
    let pools = |near: &str| {
        format!(
            "{levels}[[pool]]\nkind = \"general\"\n{near}[[pool]]\nkind = \"general\"\n\
             index = \"tlsf\"\nlevel = \"far\"\n"
        )
    };
    // One head: 16 + 16 + 8 in front of the first payload, which is aligned,
    // 8 behind, 32 for a block; 4096 at a time.
    refuses(
        &pools("index = \"best-fit\"\nup_to = 64\n"),
        "heap.toml:3:8: level `near` is 3096 bytes too small: the first region of its pool takes \
         4096 bytes, at an increment of 4096; give it more, or its pools fewer classes, or lower \
         the increment",
    );
    let fine = format!(
        "[arena]\nincrement = 16\n{}",
        pools("index = \"best-fit\"\nup_to = 64\n")
    );
    assert!(parse(&fine, "heap.toml").is_ok());
    refuses(
        &pools("index = \"best-fit\"\nup_to = 64\nfrom = 65\n"),
        "heap.toml:6:1: the smallest request of a general pool must not be above its largest",
    );
    refuses(
        &format!("{levels}[[pool]]\nkind = \"general\"\nindex = \"tlsf\"\nfrom = 100\nlevel = 1\n"),
        "heap.toml:6:1: no pool takes requests below 100 bytes: leave out the `from` of this pool, \
         the last one, or add a general pool for them behind it",
    );
    refuses(
        &pools("index = \"best-fit\"\nlevel = \"far\"\n"),
        "heap.toml:6:1: the upper bounds of general pools must rise, or pools that take the same \
         requests lie in different levels",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[[level]]\nname = \"all\"\nsize = \"65 GiB\"\n",
        "heap.toml:5:8: a memory level has at most 64 GiB: leave out the `size` of one without \
         limit",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[[pool]]\nkind = \"object\"\nsize = 16\nlevel = 1\n\
         [[pool]]\nkind = \"object\"\nsize = 32\n",
        "heap.toml:7:1: all object pools must lie in the same memory level",
    );
}

#[test]
fn pages_are_those_of_mapped_blocks() {
    refuses(
        "[heap]\nname = \"tlsf\"\n[arena]\npages = \"graveyrad\"\n",
        "heap.toml:4:9: `pages` cannot be `graveyrad` (did you mean `graveyard`?)",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[arena]\npages = \"bounded(0)\"\n",
        "heap.toml:4:9: `bounded(PAGES)` has a whole number of pages from 1 to 1048576, not `bounded(0)`",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\n[arena]\nmapped = \"no\"\npages = \"retain\"\n",
        "heap.toml:5:9: `pages` says what becomes of the pages of mapped blocks, and none is mapped: \
         leave it out, or give `mapped` a size",
    );
    refuses(
        "[heap]\nname = \"tlsf\"\nstore = \"ledger\"\n[arena]\npages = \"retain\"\n",
        "heap.toml:5:9: only heaps with boundary tags have mapped blocks: leave out `mapped` and `pages`, \
         or the `store`",
    );
    refuses_spec(
        "tlsf:pages=7",
        "heap:1:12: `pages` cannot be `7` (known here: retain, bounded, graveyard, immediate)",
    );
}

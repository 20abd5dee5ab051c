//! Heaps do under the packet program what was predicted of them.

use metes_cases::packets;
use metes_cases::prediction::Bench;

#[test]
fn emitted_heaps_are_as_predicted() {
    let packets = packets::packets(&packets::Options {
        packets: 2_000,
        seed: 3,
    });
    let bench = Bench::new(&packets).expect("there is a compiler");
    let heaps = [
        "tlsf",
        "kingsley",
        "first-fit:depth=10,max_fit=150,order=fifo",
    ];
    for (number, heap) in heaps.into_iter().enumerate() {
        let config = metes_config::spec(heap).expect("it is a heap");
        let compared = bench.compare(number as u64, &config).expect("it runs");
        assert!(compared.len() >= 8);
        for metric in &compared {
            assert!(metric.equal(), "{heap}: {metric:?}");
        }
        assert_eq!(compared[0].measured, "4000");
    }
}

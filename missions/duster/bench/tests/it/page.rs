//! The page's model against an invented mission, of which the truth is known.

use metes_duster::page::invented::Mission;
use metes_duster::page::{PLACES, Science};
use metes_duster_protocol::{MAX_PACKET, Telemetry, Time};
use serde_json::{Value, json};

fn taken(packets: &[Vec<u8>]) -> Science {
    let mut science = Science::new(PLACES);
    for packet in packets {
        science.take(packet);
    }
    science
}

/// Without what counts packets and bytes.
fn told(science: &Science) -> Value {
    let mut view = science.view(0);
    for key in ["packets", "bytes", "lost", "services", "now"] {
        view[key] = Value::Null;
    }
    for key in ["sweeps", "dust", "reports"] {
        for one in view[key].as_array_mut().expect("a list") {
            one["packet"] = Value::Null;
        }
    }
    view
}

#[test]
fn the_page_tells_the_truth() {
    let mission = Mission::new(1, 4);
    let view = taken(&mission.packets).view(0);
    let truth = &mission.truth;
    for (number, samples) in truth.samples.iter().enumerate() {
        let probe = &view["probes"][number];
        assert_eq!(probe["samples"], samples.len());
        assert_eq!(probe["missing"], 0);
        let low = probe["low"].as_array().expect("a column");
        let high = probe["high"].as_array().expect("a column");
        let low = low.iter().filter_map(Value::as_i64).min();
        let high = high.iter().filter_map(Value::as_i64).max();
        assert_eq!(low, samples.iter().min().map(|&one| one.into()));
        assert_eq!(high, samples.iter().max().map(|&one| one.into()));
    }
    for (number, steps) in truth.sweeps.iter().enumerate() {
        assert_eq!(view["sweeps"][number]["steps"], json!(steps));
        let fit = &view["sweeps"][number]["fit"];
        let temperature = fit["temperature"].as_f64().expect("a fit");
        assert!((temperature - 6000.0).abs() < 60.0, "{fit}");
    }
    let dust = view["dust"].as_array().expect("a list");
    assert_eq!(dust.len(), truth.dust.len());
    for (one, &(time, detected, peak, charge)) in dust.iter().zip(&truth.dust) {
        let said = [&one["time"], &one["detected"], &one["peak"], &one["charge"]];
        assert_eq!(json!(said), json!([time, detected, peak, charge]));
        assert_eq!(one["samples"][16], peak);
    }
    assert_eq!(view["counts"]["windows"], truth.windows.len());
    assert_eq!(view["mode"], "STANDBY");
    assert_eq!((&view["lost"], &view["unread"]), (&json!(0), &json!(0)));
}

#[test]
fn what_comes_twice_counts_once() {
    let mission = Mission::new(2, 3);
    let once = taken(&mission.packets);
    let mut twice = taken(&mission.packets);
    // Out of the store: with 129 as the subtype. Events do not come from there.
    for packet in mission.packets.iter().filter(|packet| packet[7] == 128) {
        twice.take(packet);
    }
    assert_eq!(told(&twice), told(&once));
}

#[test]
fn bytes_are_taken_in_any_pieces() {
    let mission = Mission::new(3, 2);
    let whole = taken(&mission.packets);
    let bytes = mission.bytes();
    for size in [1, 7, 1000, 100_000] {
        let mut pieces = Science::new(PLACES);
        for piece in bytes.chunks(size) {
            pieces.take_bytes(piece);
        }
        assert_eq!(pieces.view(0), whole.view(0), "{size}");
    }
}

#[test]
fn windows_without_a_time_take_that_of_their_samples() {
    let mission = Mission::new(7, 3);
    let timed = taken(&mission.packets).view(0)["windows"].clone();
    // Of packets of windows the time is 0, and they come after the samples.
    let is_window = |packet: &&Vec<u8>| packet[7..9] == [128, 128] && packet[19] == 3;
    let (windows, others): (Vec<_>, Vec<_>) = mission.packets.iter().partition(is_window);
    let mut science = Science::new(PLACES);
    for packet in others {
        science.take(packet);
    }
    for packet in windows {
        let mut bytes = vec![0; MAX_PACKET];
        bytes[..packet.len()].copy_from_slice(packet);
        bytes[29..37].fill(0);
        let kind = (packet[7], packet[8]);
        let time = Time::default();
        let sealed =
            metes_duster_protocol::telemetry::seal(&mut bytes, kind, packet.len() - 21, 0, time);
        science.take(&bytes[..sealed.expect("it fits")]);
    }
    assert_eq!(science.view(0)["windows"], timed);
}

#[test]
fn what_is_lost_is_told() {
    let mut mission = Mission::new(4, 2);
    let science = |packet: &Vec<u8>| packet[7..9] == [128, 128] && packet[19..21] == [0, 2];
    let at = mission.packets.iter().position(science).expect("samples") + 3;
    mission.packets.remove(at);
    let view = taken(&mission.packets).view(0);
    assert_eq!(view["probes"][2]["missing"], 384);
    assert_eq!(view["lost"], 1);
    // A damaged packet, garbage before it.
    mission.packets[at][30] ^= 1;
    let mut bytes = vec![0xff; 5];
    bytes.extend(mission.bytes());
    let mut science = Science::new(PLACES);
    science.take_bytes(&bytes);
    let view = science.view(0);
    assert_eq!(view["unread"], 6);
    assert_eq!(view["probes"][2]["missing"], 768);
}

#[test]
fn a_later_look_brings_what_is_new() {
    let mission = Mission::new(5, 2);
    let (early, late) = mission.packets.split_at(mission.packets.len() - 12);
    let mut science = taken(early);
    let known = science.view(0)["packets"].as_u64().expect("a number");
    assert_eq!(science.view(known)["reports"], json!([]));
    for packet in late {
        science.take(packet);
    }
    let view = science.view(known);
    // The last sweep has grown, the one before has not.
    assert_eq!(view["sweeps"].as_array().expect("a list").len(), 1);
    assert_eq!(view["sweeps"][0]["steps"], json!(mission.truth.sweeps[1]));
    assert_eq!(view["dust"], json!([]));
    // Whoever knows a unit that ran before is told all.
    assert_eq!(science.view(known + 1_000_000), science.view(0));
}

#[test]
fn any_bytes_are_taken() {
    let mut random = metes_random::Random::new(6);
    let mission = Mission::new(6, 1);
    let mut science = Science::new(16);
    for _ in 0..2000 {
        let pick = random.below(mission.packets.len() as u64) as usize;
        let mut packet = mission.packets[pick].clone();
        for _ in 0..random.between(1, 6) {
            let at = random.below(packet.len() as u64) as usize;
            packet[at] = random.next() as u8;
        }
        science.take(&packet);
        // With a right checksum, too.
        let length = packet.len();
        if length >= 21 {
            let kind = (packet[7], packet[8]);
            let mut bytes = vec![0; MAX_PACKET];
            bytes[..length].copy_from_slice(&packet);
            let sealed = metes_duster_protocol::telemetry::seal(
                &mut bytes,
                kind,
                length - 21,
                0,
                Time::default(),
            );
            let sealed = &bytes[..sealed.expect("it fits")];
            let _ = Telemetry::decode(sealed);
            science.take(sealed);
        }
    }
    assert!(science.page("", None).contains("</html>"));
}

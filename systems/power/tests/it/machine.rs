//! Machines as trees of files: what they offer, set and restored, refused where they cannot.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use metes_power::machine::{Machine, Reading, Saved, joules_of};

/// A machine with two policies, a memory controller and meters. What runs is a link to the most that may, as a kernel that
/// obeys would show it.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, format!("{text}\n")).expect("a file");
    };
    for policy in ["policy0", "policy1"] {
        let at = |file: &str| format!("devices/system/cpu/cpufreq/{policy}/{file}");
        write(
            &at("scaling_available_frequencies"),
            "1400000 600000 1000000 ",
        );
        write(&at("scaling_min_freq"), "600000");
        write(&at("scaling_max_freq"), "1400000");
        write(&at("scaling_governor"), "ondemand");
        write(&at("scaling_available_governors"), "ondemand performance");
        symlink("scaling_max_freq", tree.path().join(at("scaling_cur_freq"))).expect("a link");
    }
    let at = |file: &str| format!("class/devfreq/dmc0/{file}");
    write(&at("available_frequencies"), "200000000 500000000");
    write(&at("min_freq"), "200000000");
    write(&at("max_freq"), "500000000");
    write(&at("governor"), "simple_ondemand");
    symlink("max_freq", tree.path().join(at("cur_freq"))).expect("a link");
    for (zone, name, energy) in [
        ("intel-rapl:0", "package-0", "999000"),
        ("intel-rapl:0:0", "core", "5"),
    ] {
        let at = |file: &str| format!("class/powercap/{zone}/{file}");
        write(&at("name"), name);
        write(&at("energy_uj"), energy);
        write(&at("max_energy_range_uj"), "1000000");
    }
    write("class/hwmon/hwmon0/name", "ina226");
    write("class/hwmon/hwmon0/power1_input", "2500000");
    write("class/thermal/thermal_zone0/temp", "48250");
    write("class/thermal/thermal_zone1/temp", "51000");
    write(
        "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
        "3",
    );
    write(
        "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
        "4",
    );
    tree
}

fn text(tree: &Path, path: &str) -> String {
    fs::read_to_string(tree.join(path))
        .expect("a file")
        .trim()
        .to_owned()
}

const LEAST: &str = "devices/system/cpu/cpufreq/policy0/scaling_min_freq";
const MOST: &str = "devices/system/cpu/cpufreq/policy1/scaling_max_freq";

#[test]
fn what_a_machine_offers() {
    let tree = tree();
    let machine = Machine::find(tree.path(), None).expect("a machine");
    assert_eq!(machine.cpu_frequencies(), [600_000, 1_000_000, 1_400_000]);
    assert_eq!(machine.memory_frequencies(), [200_000, 500_000]);
    assert_eq!(machine.sensors.temperature(), Some(51.0));
    assert_eq!(machine.sensors.throttled(), Some(7));
    let named = machine.meters_named(None).expect("meters");
    let names: Vec<_> = named.iter().map(|meter| meter.name.as_str()).collect();
    assert_eq!(names, ["intel-rapl:0 package-0"]);
    let none = machine
        .meters_named(Some("none"))
        .expect_err("none")
        .to_string();
    assert!(none.contains("ina226 power1"), "{none}");
    let none = Machine::find(tree.path(), Some("emc"))
        .expect_err("none")
        .to_string();
    assert!(none.contains("there are dmc0"), "{none}");
}

#[test]
fn a_pair_is_set_and_comes_back() {
    let tree = tree();
    let machine = Machine::find(tree.path(), None).expect("a machine");
    let mut saved = machine.save().expect("readable");
    for (cpu, memory) in [
        (600_000, 500_000),
        (1_400_000, 200_000),
        (1_000_000, 200_000),
    ] {
        let applied = machine.set(cpu, Some(memory)).expect("offered");
        assert_eq!(applied.len(), 3);
        assert!(applied.iter().all(|applied| applied.holds()), "{applied:?}");
        assert_eq!(text(tree.path(), LEAST), cpu.to_string());
        assert_eq!(text(tree.path(), MOST), cpu.to_string());
        assert_eq!(
            text(tree.path(), "class/devfreq/dmc0/min_freq"),
            (memory * 1000).to_string()
        );
    }
    let restored = saved.restore();
    assert!(restored.failed.is_empty());
    assert_eq!(restored.files, 9);
    assert_eq!(text(tree.path(), LEAST), "600000");
    assert_eq!(text(tree.path(), MOST), "1400000");
    assert_eq!(
        text(tree.path(), "class/devfreq/dmc0/max_freq"),
        "500000000"
    );
    assert_eq!(saved.restore().files, 0);
}

#[test]
fn dropping_restores_and_a_file_does_after_a_kill() {
    let tree = tree();
    let file = tree.path().join("saved.toml");
    let machine = Machine::find(tree.path(), None).expect("a machine");
    {
        let _saved = machine.save().expect("readable");
        machine.set(600_000, None).expect("offered");
        assert_eq!(text(tree.path(), MOST), "600000");
    }
    assert_eq!(text(tree.path(), MOST), "1400000");
    let mut saved = machine.save().expect("readable");
    saved.keep(&file).expect("written");
    machine.set(600_000, Some(200_000)).expect("offered");
    // As if killed: nobody restores.
    std::mem::forget(saved);
    let again = machine.save().expect("readable").keep(&file);
    assert!(again.is_err(), "what must be restored is not overwritten");
    machine.set(600_000, Some(200_000)).expect("offered");
    let restored = Saved::from_file(&file).expect("saved").restore();
    assert!(restored.failed.is_empty());
    assert_eq!(text(tree.path(), MOST), "1400000");
    assert!(!file.exists());
}

#[test]
fn the_governor_userspace_is_used_where_there_is_one() {
    let tree = tree();
    for policy in ["policy0", "policy1"] {
        let at = tree.path().join("devices/system/cpu/cpufreq").join(policy);
        fs::write(
            at.join("scaling_available_governors"),
            "userspace ondemand\n",
        )
        .expect("a file");
        fs::write(at.join("scaling_setspeed"), "<unsupported>\n").expect("a file");
    }
    let machine = Machine::find(tree.path(), None).expect("a machine");
    let mut saved = machine.save().expect("readable");
    machine.set(1_000_000, None).expect("offered");
    let at = |file: &str| format!("devices/system/cpu/cpufreq/policy1/{file}");
    assert_eq!(text(tree.path(), &at("scaling_governor")), "userspace");
    assert_eq!(text(tree.path(), &at("scaling_setspeed")), "1000000");
    saved.restore();
    assert_eq!(text(tree.path(), &at("scaling_governor")), "ondemand");
}

#[test]
fn what_is_not_offered_sets_nothing() {
    let tree = tree();
    let machine = Machine::find(tree.path(), None).expect("a machine");
    let error = machine
        .set(600_000, Some(300_000))
        .expect_err("not offered");
    assert!(
        error.to_string().contains("dmc0 does not offer 300000 kHz"),
        "{error}"
    );
    assert_eq!(text(tree.path(), MOST), "1400000");
}

#[test]
fn a_frequency_that_was_not_applied_is_seen() {
    let tree = tree();
    let now = tree
        .path()
        .join("devices/system/cpu/cpufreq/policy0/scaling_cur_freq");
    fs::remove_file(&now).expect("a link");
    fs::write(&now, "700000\n").expect("a file");
    let machine = Machine::find(tree.path(), None).expect("a machine");
    let _saved = machine.save().expect("readable");
    let applied = machine.set(1_400_000, None).expect("offered");
    assert!(!applied[0].holds());
    assert!(applied[1].holds());
    assert_eq!(applied[0].is, Some(700_000));
}

#[test]
fn machines_without_controls_and_foreign_files_are_refused() {
    let empty = tempfile::tempdir().expect("a directory");
    let error = Machine::find(empty.path(), None)
        .expect_err("nothing")
        .to_string();
    assert!(
        error.contains("has no policy") && error.contains("--sysfs"),
        "{error}"
    );
    let tree = tree();
    let list = "devices/system/cpu/cpufreq/policy0/scaling_available_frequencies";
    for wrong in ["fast", "600000 0", "-1"] {
        fs::write(tree.path().join(list), wrong).expect("a file");
        assert!(Machine::find(tree.path(), None).is_err(), "{wrong}");
    }
    let saved = tree.path().join("mine.toml");
    for wrong in [
        "",
        "x = 1",
        "format = \"metes power settings 1\"\nroot = \"/a\"\n[[settings]]\npath = \"/b\"\ntext = \"1\"\n",
    ] {
        fs::write(&saved, wrong).expect("a file");
        assert!(Saved::from_file(&saved).is_err(), "{wrong}");
        assert_eq!(fs::read_to_string(&saved).expect("a file"), wrong);
    }
}

#[test]
fn a_continuous_range_is_taken_from_the_limits() {
    let tree = tree();
    for policy in ["policy0", "policy1"] {
        let at = tree.path().join("devices/system/cpu/cpufreq").join(policy);
        fs::remove_file(at.join("scaling_available_frequencies")).expect("a file");
        fs::write(at.join("cpuinfo_min_freq"), "400000\n").expect("a file");
        fs::write(at.join("cpuinfo_max_freq"), "3000000\n").expect("a file");
    }
    let machine = Machine::find(tree.path(), None).expect("a machine");
    assert_eq!(machine.cpu_frequencies(), [400_000, 3_000_000]);
    let _saved = machine.save().expect("readable");
    assert!(
        machine
            .set(1_234_000, None)
            .expect("between")
            .iter()
            .all(|applied| applied.holds())
    );
    assert!(machine.set(3_100_000, None).is_err());
}

#[test]
fn counters_wrap_once_and_powers_are_integrated() {
    let tree = tree();
    let machine = Machine::find(tree.path(), None).expect("a machine");
    let meter = machine.meters_named(None).expect("meters")[0];
    let before = meter.read().expect("readable");
    assert_eq!(before, Reading::Energy(999_000));
    fs::write(
        tree.path().join("class/powercap/intel-rapl:0/energy_uj"),
        "500\n",
    )
    .expect("a file");
    let after = meter.read().expect("readable");
    let course = meter
        .joules(&[(0.0, before), (1.0, after)])
        .expect("a range");
    assert_eq!(course, [(0.0, 0.0), (1.0, 0.0015)]);
    let half = joules_of(&course, 0.25, 0.75).expect("covered");
    assert!((half - 0.00075).abs() < 1e-15);
    assert_eq!(joules_of(&course, 0.0, 1.0), Some(0.0015));
    assert_eq!(joules_of(&course, 0.5, 1.5), None);
    assert_eq!(joules_of(&course, -0.5, 0.5), None);
    let power = machine
        .meters_named(Some("ina226 power1"))
        .expect("a meter")[0];
    assert_eq!(power.read().expect("readable"), Reading::Power(2_500_000));
    let powers = [(0.0, 2_000_000), (0.5, 4_000_000), (1.0, 4_000_000)];
    let powers = powers.map(|(time, power)| (time, Reading::Power(power)));
    let course = power.joules(&powers).expect("powers");
    assert_eq!(course.last(), Some(&(1.0, 3.5)));
}

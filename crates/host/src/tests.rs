//! Facts read from fixture files.

use super::*;
use ::driver::root::Fixture;
use record::DriverKind;

#[test]
fn classes() {
    let bare = Fixture::new("host-bare", &[("proc/cpuinfo", "flags\t\t: fpu vme\n")]);
    let guest = Fixture::new("host-guest", &[("proc/cpuinfo", "flags\t\t: fpu hypervisor vme\n")]);
    let board = Fixture::new("host-board", &[("sys/class/dmi/id/sys_vendor", "QEMU\n")]);
    for (told, fixture, want) in [
        (None, &bare, HostClass::Bare),
        (None, &guest, HostClass::Virtual),
        (None, &board, HostClass::Virtual),
        (Some("tcg"), &guest, HostClass::Tcg),
        (Some("icount"), &guest, HostClass::Icount),
        (Some("kvm"), &guest, HostClass::Kvm),
        (Some("nonsense"), &bare, HostClass::Bare),
    ] {
        assert_eq!(class::class_of(told, &fixture.root()), want, "{told:?}");
    }
}

#[test]
fn processors() {
    let cpu0 = "sys/devices/system/cpu/cpu0";
    let cache = |file| format!("{cpu0}/cache/index0/{file}");
    let fixture = Fixture::new(
        "host-cpu",
        &[
            ("proc/cpuinfo", "model name\t: A CPU\ncpu MHz\t\t: 1999.5\n"),
            (&cache("type"), "Data\n"),
            (&cache("level"), "1\n"),
            (&cache("size"), "32K\n"),
            (&cache("shared_cpu_map"), "00000000,00000003\n"),
            (&format!("{cpu0}/cpufreq/scaling_governor"), "performance\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n"),
        ],
    );
    let cpu = cpu::cpu(&fixture.root(), 2);
    assert_eq!((cpu.model.as_str(), cpu.mhz, cpu.count), ("A CPU", Some(1999.5), 2));
    assert_eq!(cpu.governor.as_deref(), Some("performance"));
    assert_eq!(cpu.scaling_enabled, Some(true), "one CPU of two is enough");
    let cache = &cpu.caches[0];
    assert_eq!((cache.size, cache.num_sharing, cache.level), (32 << 10, 2, 1));
    let nothing = cpu::cpu(&Root::at("/nonexistent"), 1);
    assert_eq!((nothing.mhz, nothing.scaling_enabled, nothing.governor), (None, None, None));
}

#[test]
fn preemption_models() {
    for (name, files, want) in [
        ("debugfs", &[("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n")][..], Some("full")),
        ("rt", &[("sys/kernel/realtime", "1\n")], Some("rt")),
        ("built", &[("proc/sys/kernel/version", "#1 SMP PREEMPT Debian\n")], Some("full")),
        ("dynamic", &[("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n")], None),
        (
            "asked",
            &[
                ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n"),
                ("proc/cmdline", "quiet preempt=none\n"),
            ],
            Some("none"),
        ),
        ("plain", &[("proc/sys/kernel/version", "#1 SMP Debian\n")], None),
        (
            "both",
            &[
                ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian\n"),
                ("sys/kernel/debug/sched/preempt", "(full) lazy\n"),
            ],
            Some("rt"),
        ),
        (
            "configured",
            &[
                ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n"),
                ("proc/sys/kernel/osrelease", "7.2.13\n"),
                ("boot/config-7.2.13", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n"),
            ],
            Some("voluntary"),
        ),
    ] {
        let fixture = Fixture::new(&format!("host-{name}"), files);
        assert_eq!(kernel::kernel(&fixture.root()).preemption.as_deref(), want, "{name}");
    }
}

#[test]
fn drivers() {
    let tracing = "sys/kernel/tracing/events";
    for (name, file, want) in [
        ("rust", format!("{tracing}/rust_binder/enable"), DriverKind::KernelRust),
        ("c", format!("{tracing}/binder/enable"), DriverKind::KernelC),
        ("module", "sys/module/binder_linux/refcnt".to_owned(), DriverKind::KernelC),
        ("neither", "sys/module/fuse/refcnt".to_owned(), DriverKind::Kernel),
    ] {
        let fixture = Fixture::new(&format!("host-{name}"), &[(&file, "0")]);
        assert_eq!(driver::kind(&fixture.root()), want, "{name}");
    }
}

#[test]
fn this_machine_has_a_name_a_kernel_and_memory() {
    let host = facts(HostClass::Bare);
    assert!(!host.kernel.release.is_empty());
    assert!(host.cpu.count >= 1);
    assert!(host.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    assert_eq!(host.load_avg.len(), 3);
}

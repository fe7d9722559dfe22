//! `binderperf vm build-kernel` and `vm kernels` up to the call of make, and everything that can go wrong. make and the
//! compiler are scripts; a kernel is what looks like one.
//! Not here: kernels that boot (`tests/guest/built`), the plan (`vm::build`).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{BINARY, Called, Folder, binderperf, call, command, contents, end, signal, wait_until};
use needs::{Need, need};

/// A `make` that writes down its words, makes a configuration of the options that it is given (without those that
/// contain NOTAKE), and an image that names its release.
const MAKE: &str = r#"#!/bin/sh
echo "$*" >>"$FAKE/calls"
for word; do
    case $word in
        O=*) objects=${word#O=} ;;
        KCONFIG_ALLCONFIG=*) options=${word#KCONFIG_ALLCONFIG=} ;;
        -C) ;;
        *) last=$word ;;
    esac
done
source=$2
case $last in
    allnoconfig) grep -v NOTAKE "$options" >"$objects/.config" ;;
    bzImage|Image)
        echo "  CC      kernel/fork.o"
        if [ -e "$FAKE/slow" ]; then
            touch "$objects/half.o"
            # Waits for another program and tells it of no signal, as mmdebstrap does.
            trap : TERM
            sh -c ': >"$FAKE/at-work"; while [ -d "$FAKE" ]; do sleep 0.05; done'
            exit 1
        fi
        if grep -q broken "$source/kernel.c"; then
            echo "kernel.c:1:1: error: unknown type name 'broken'" >&2
            echo "make: *** [Makefile:1: kernel.o] Error 1" >&2
            exit 2
        fi
        if [ -e "$FAKE/full" ]; then echo "as: No space left on device" >&2; exit 2; fi
        mkdir -p "$objects/arch/x86/boot"
        { head -c 514 /dev/zero; printf HdrS; head -c 8 /dev/zero; printf '\000\001'; head -c 240 /dev/zero
          printf '7.2.13-fake (made)\000'; head -c 4096 /dev/zero; } >"$objects/arch/x86/boot/bzImage"
        cat "$source/kernel.c" >"$objects/compiled" ;;
    *) exit 1 ;;
esac
"#;

const KCONFIG: &str = "config EXPERT\n\tbool \"expert\"\nconfig NOTAKE\n\tbool \"x\"\n\tdepends on EXPERT\n\
                       config TAKEN\n\tbool \"y\"\n";

/// A machine: programs, a cache and a source.
struct Machine {
    folder: Folder,
    path: String,
}

impl Machine {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let machine = Self {
            path: format!("{}:{}", folder.path("bin"), std::env::var("PATH").unwrap_or_default()),
            folder,
        };
        machine.program("make", MAKE);
        for program in ["flex", "bison", "bc", "gcc", "aarch64-linux-gnu-gcc"] {
            machine.program(program, "#!/bin/sh\ncat >/dev/null\n");
        }
        machine.folder.write("linux/Makefile", "VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 13\n");
        machine.folder.write("linux/Kconfig", KCONFIG);
        machine.folder.write("linux/kernel.c", "int main;\n");
        machine
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.folder.write(&format!("bin/{name}"), text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }

    fn variables(&self) -> [(&str, String); 3] {
        [
            ("PATH", self.path.clone()),
            ("FAKE", self.folder.path("")),
            ("XDG_CACHE_HOME", self.folder.path("cache")),
        ]
    }

    fn vm(&self, words: &[&str]) -> Called {
        let variables = self.variables();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        call(BINARY, &[&["vm"], words].concat(), &variables)
    }

    /// Builds from the folder `linux`, for x86-64.
    fn build(&self, words: &[&str]) -> Called {
        let source = self.folder.path("linux");
        self.vm(&[&["build-kernel", "--source", &source, "--arch", "x86_64", "--tools", "machine"], words]
            .concat())
    }

    /// Starts a build and returns when make is at work.
    fn start(&self) -> Child {
        self.folder.write("slow", "");
        let source = self.folder.path("linux");
        let words = ["vm", "build-kernel", "--source", &source, "--arch", "x86_64", "--tools", "machine"];
        let mut command = command(BINARY, &words);
        command.envs(self.variables()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        wait_until("make is at work", || self.has("at-work"));
        std::fs::remove_file(self.folder.path("slow")).expect("it is there");
        child
    }

    fn has(&self, path: &str) -> bool {
        Path::new(&self.folder.path(path)).exists()
    }

    fn built(&self, name: &str) -> String {
        contents(self.folder.path(&format!("cache/binderperf/kernels-2/built/{name}")))
    }
}

#[test]
fn a_folder_is_built_elsewhere_and_kept_under_a_name_that_says_what_it_is() {
    let machine = Machine::new("build");
    let out = machine.folder.path("image");
    let words = [
        "--preempt",
        "lazy",
        "--debug",
        "lockdep,kasan",
        "--set",
        "CONFIG_TAKEN=y",
        "--out",
        &out,
        "-j",
        "3",
    ];
    let called = machine.build(&words).ended(0);
    let name = "7.2.13-tree-c-lazy-lockdep-kasan-taken";
    assert_eq!(called.stdout, format!("built:{name}\n"), "{called}");
    let said: Vec<&str> = called.stderr.lines().collect();
    assert_eq!(said[0], format!("building {name}"), "{called}");
    assert!(said[said.len() - 1].starts_with(&format!("{name}: built in 0 min ")), "{called}");
    let config = machine.built(&format!("{name}/config"));
    for line in [
        "CONFIG_PREEMPT_LAZY=y",
        "CONFIG_PROVE_LOCKING=y",
        "CONFIG_KASAN=y",
        "CONFIG_TAKEN=y",
        "CONFIG_IKCONFIG_PROC=y",
    ] {
        assert!(config.lines().any(|one| one == line), "{line}: {config}");
    }
    assert!(
        config.contains("LOCALVERSION=\"-tree-c-lazy-lockdep-kasan-taken\"")
            && !config.contains("CONFIG_PREEMPT=y")
    );
    assert!(machine.built(&format!("{name}/build.log")).contains("kernel/fork.o"));
    assert!(Path::new(&out).is_file());
    let calls = contents(machine.folder.path("calls"));
    assert!(
        calls
            .lines()
            .all(|line| line.contains("ARCH=x86_64") && line.contains("/cache/binderperf/build/objects/")),
        "{calls}"
    );
    assert!(calls.ends_with("-j3 bzImage\n"), "{calls}");
    let mut left: Vec<_> = std::fs::read_dir(machine.folder.path("linux"))
        .expect("the source")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["Kconfig", "Makefile", "kernel.c"], "the source is as it was");
    let listed = machine.vm(&["kernels"]).ended(0);
    listed
        .printed(format!("built:{name}"))
        .printed("differs from the usual kernel: ")
        .printed("CONFIG_KASAN=y");
    let boot = machine.vm(&["--kernel", "built:7.2.13-none", "--", "guest-probe"]).ended(2);
    boot.complained("no kernel of that name was built");
    machine.vm(&["kernels", "--remove", &format!("built:{name}")]).ended(0);
    assert!(!machine.vm(&["kernels"]).ended(0).stdout.contains(name));
    machine.vm(&["kernels", "--remove", name]).ended(2).complained("the cache has none of that name");
    machine.vm(&["kernels", "--clean"]).ended(0).complained("removed 0.0 GB");
    assert!(!machine.has("cache/binderperf/build"));
}

#[test]
fn a_commit_is_built_once_and_a_patch_goes_to_a_copy() {
    let machine = Machine::new("build-git");
    let linux = machine.folder.path("linux");
    let git = |words: &[&str]| {
        let who = ["-C", &linux, "-c", "user.name=a", "-c", "user.email=a@b"];
        let done = Command::new("git").args(who).args(words).output().expect("git runs");
        assert!(done.status.success(), "{words:?}");
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    let first = machine.build(&[]).ended(0);
    assert!(first.stdout.starts_with("built:7.2.13-g") && first.stdout.ends_with("-c-full\n"), "{first}");
    let calls = contents(machine.folder.path("calls"));
    machine.build(&[]).ended(0).complained("in the cache");
    assert_eq!(calls, contents(machine.folder.path("calls")), "nothing was made");
    let patch = machine
        .folder
        .write("fix.patch", "--- a/kernel.c\n+++ b/kernel.c\n@@ -1 +1 @@\n-int main;\n+int patched;\n");
    let patched = machine.build(&["--patch", &patch]).ended(0);
    assert!(patched.stdout.contains("-c-full-patch:"), "{patched}");
    assert_eq!(contents(machine.folder.path("linux/kernel.c")), "int main;\n");
    assert_eq!(git(&["status", "--porcelain"]), "", "the tree is clean");
    let objects = machine.folder.path("cache/binderperf/build/objects");
    let compiled: Vec<String> = std::fs::read_dir(objects)
        .expect("objects")
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("compiled")).ok())
        .collect();
    assert!(compiled.contains(&"int patched;\n".to_owned()), "{compiled:?}");
    machine.folder.write("linux/.config", "");
    machine.folder.write("linux/.gitignore", ".config\n.gitignore\n");
    let called = machine.build(&["--refresh"]).ended(0);
    assert!(
        contents(machine.folder.path("calls")).lines().last().is_some_and(|line| line.contains("/copies/")),
        "a tree that was built in is copied: {called}"
    );
    machine
        .build(&[
            "--patch",
            &machine.folder.write("bad.patch", "--- a/kernel.c\n+++ b/kernel.c\n@@ -1 +1 @@\n-other\n+x\n"),
        ])
        .ended(2)
        .complained("does not apply: patching file kernel.c");
    machine.build(&["--patch", "/no/such/patch"]).ended(2).complained("reading it: ENOENT");
}

#[test]
fn bad_input_is_told_before_anything_is_made() {
    let machine = Machine::new("build-input");
    let junk = machine.folder.write("junk.tar", "no archive");
    let empty = machine.folder.path("bin");
    let cases: [(&[&str], u8, &str); 9] = [
        (&["--source", "/no/such/tree"], 2, "there is no such folder or archive"),
        (&["--source", &empty], 2, "there is no kernel's source in it"),
        (&["--source", &junk], 2, "no kernel can be built from"),
        (&["--source", "debian:seven"], 2, "a version is as in debian:7.2"),
        (&["--set", "CONFIG_X"], 2, "CONFIG_X=y is one"),
        (&["--set", "CONFIG_X=m"], 2, "modules are not built"),
        (&["--debug", "everything"], 2, "lockdep"),
        (&["--preempt", "fast"], 2, "voluntary"),
        (&["--jobs", "0"], 2, "--jobs"),
    ];
    for (words, status, says) in cases {
        machine
            .vm(&[&["build-kernel"], words].concat())
            .ended(status.into())
            .complained(says)
            .printed_nothing();
    }
    let called = machine.build(&["--set", "CONFIG_NOTAKE=y", "--set", "NOTAKE_EITHER=y"]).ended(2);
    called.complained("CONFIG_NOTAKE=y: it depends on EXPERT, which does not hold");
    called.complained("CONFIG_NOTAKE_EITHER=y: this source has no such option");
    assert!(!contents(machine.folder.path("calls")).contains("bzImage"), "no image was made");
}

#[test]
fn a_version_that_debian_does_not_have_is_told() {
    let machine = Machine::new("build-version");
    // A PATH without apt, so that nothing is asked of a network.
    let variables = [("PATH", machine.folder.path("bin")), ("XDG_CACHE_HOME", machine.folder.path("cache"))];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let called = call(BINARY, &["vm", "build-kernel", "--source", "debian:5.4"], &variables).ended(3);
    called.complained("apt").printed_nothing();
}

#[test]
fn each_missing_program_is_named() {
    let machine = Machine::new("build-tools");
    let variables = [("PATH", machine.folder.path("bin")), ("XDG_CACHE_HOME", machine.folder.path("cache"))];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for program in ["flex", "gcc"] {
        std::fs::remove_file(machine.folder.path(&format!("bin/{program}"))).expect("it is there");
    }
    let words = ["vm", "build-kernel", "--source", &machine.folder.path("linux"), "--arch", "x86_64"];
    let called = call(BINARY, &words, &variables).ended(3);
    called
        .complained("missing:")
        .complained("flex (package flex)")
        .complained("apt-get install")
        .complained("mmdebstrap");
    assert!(!machine.has("calls"), "make was not called");
}

#[test]
fn a_failed_build_shows_its_first_error_and_keeps_nothing_but_the_log() {
    let machine = Machine::new("build-failed");
    machine.folder.write("linux/kernel.c", "broken x;\n");
    let called = machine.build(&[]).ended(1);
    called.complained("building 7.2.13-tree-c-full failed; its log: ");
    called.complained("  | kernel.c:1:1: error: unknown type name 'broken'").printed_nothing();
    assert!(!machine.has("cache/binderperf/kernels-2/built/7.2.13-tree-c-full"));
    assert!(
        contents(machine.folder.path("cache/binderperf/build/logs/7.2.13-tree-c-full.log"))
            .contains("error:")
    );
    machine.folder.write("linux/kernel.c", "int main;\n");
    machine.folder.write("full", "");
    machine.build(&[]).ended(3).complained("no space is left on the device (ENOSPC)");
    std::fs::remove_file(machine.folder.path("full")).expect("it is there");
    machine.build(&[]).ended(0).printed("built:7.2.13-tree-c-full");
}

/// An `mmdebstrap` whose tree is a folder: it carries out the hooks, and the scripts that they run in the tree.
const MMDEBSTRAP: &str = r#"#!/bin/sh
tree=$FAKE/tree
rm -rf "$tree"
for word; do
    case $word in --customize-hook=*) hook=${word#*=} ;; *) continue ;; esac
    case $hook in
    sync-in*|upload*) eval "set -- $hook"; cp -aT "$2" "$tree$3" ;;
    sync-out*|download*) eval "set -- $hook"; cp -aT "$tree$2" "$3" ;;
    *)
        for script in "$tree/configure" "$tree/build"; do
            [ ! -e "$script" ] || sed -i "s:\([ =]\)\(/[a-z]\):\1$tree\2:g;s:$tree$tree:$tree:g" "$script"
        done
        chroot() { sh "$1$3"; }
        (set -- "$tree"; eval "$hook") ;;
    esac || exit 1
done
"#;

#[test]
fn a_build_with_debians_tools_that_fails_keeps_what_it_compiled() {
    let machine = Machine::new("build-debian");
    machine.program("mmdebstrap", MMDEBSTRAP);
    machine.folder.write("linux/kernel.c", "broken x;\n");
    let source = machine.folder.path("linux");
    let words = ["build-kernel", "--source", &source, "--arch", "x86_64", "--tools", "debian"];
    let failed = machine.vm(&words).ended(1);
    failed.complained("is built with Debian's tools").complained("unknown type name 'broken'");
    let objects = Path::new(&machine.folder.path("cache/binderperf/build/objects")).to_owned();
    let kept = std::fs::read_dir(objects).expect("objects").flatten().map(|entry| entry.path());
    assert!(kept.into_iter().any(|folder| folder.join(".config").exists()), "{}", failed.stderr);
    machine.folder.write("linux/kernel.c", "int main;\n");
    machine.vm(&words).ended(0).printed("built:7.2.13-tree-c-full-llvm");
}

#[test]
fn a_build_that_is_stopped_or_killed_leaves_no_kernel() {
    let machine = Machine::new("build-stopped");
    let image = "cache/binderperf/kernels-2/built/7.2.13-tree-c-full";
    let half = || {
        let objects =
            std::fs::read_dir(machine.folder.path("cache/binderperf/build/objects")).expect("objects");
        objects.flatten().any(|entry| entry.path().join("half.o").exists())
    };
    let child = machine.start();
    signal(child.id(), "INT");
    end(child).ended(1).complained("stopped by SIGINT");
    assert!(!machine.has(image));
    std::fs::remove_file(machine.folder.path("at-work")).expect("it is there");
    let child = machine.start();
    signal(child.id(), "KILL");
    assert_eq!(end(child).code, None);
    assert!(!machine.has(image) && half(), "what was half done is there still");
    machine.build(&[]).ended(0).printed("built:7.2.13-tree-c-full");
    assert!(machine.has(image) && !half(), "and went with the next build");
}

#[test]
fn two_builds_of_one_kernel_follow_one_another() {
    let machine = Machine::new("build-two");
    let first = machine.start();
    let source = machine.folder.path("linux");
    let words = ["vm", "build-kernel", "--source", &source, "--arch", "x86_64", "--tools", "machine"];
    let mut second = command(BINARY, &words);
    second.envs(machine.variables()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut second = second.spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let calls = contents(machine.folder.path("calls"));
    assert_eq!(calls.lines().count(), 2, "the second waits: {calls}");
    assert!(second.try_wait().expect("ours").is_none(), "and has not ended");
    machine.vm(&["kernels", "--clean"]).ended(3).complained("a build is at work");
    signal(first.id(), "TERM");
    end(first).ended(1).complained("stopped by SIGTERM");
    end(second).ended(0).printed("built:7.2.13-tree-c-full");
}

#[test]
fn arm64_is_built_with_its_own_compiler() {
    let machine = Machine::new("build-arm");
    need!(Need::Build.met_if(vm::Arch::own() != vm::Arch::Arm, "arm64 is this machine's own"));
    let source = machine.folder.path("linux");
    let words = [
        "build-kernel",
        "--source",
        &source,
        "--arch",
        "arm64",
        "--tools",
        "machine",
        "--set",
        "CONFIG_TAKEN=y",
    ];
    // The image of this make is x86-64's, so keeping it fails; what it was called with counts.
    machine.vm(&words);
    let calls = contents(machine.folder.path("calls"));
    assert!(calls.contains("ARCH=arm64") && calls.contains("CROSS_COMPILE=aarch64-linux-gnu-"), "{calls}");
    assert!(calls.trim_end().ends_with(" Image"), "{calls}");
}

#[test]
fn a_bisection_builds_the_commit_and_skips_what_does_not_build_or_boot() {
    let machine = Machine::new("build-bisect");
    let good = machine.folder.path("good.json");
    let measured =
        ["throughput", "binder", "--driver=embedded", "--benchmark_filter=/4$", "--benchmark_min_time=0.01s"];
    binderperf(&[&measured[..], &["--record", &good]].concat()).ended(0);
    // A QEMU whose guest says nothing.
    let qemu = "#!/bin/sh\ncase $* in *-icount*) echo counting ;; esac >&2\necho 'qemu: cannot boot this' >&2\nexit 1\n";
    machine.program("qemu-system-x86_64", qemu);
    let source = machine.folder.path("linux");
    let step = |words: &[&str]| {
        let own = ["bisect-step", "--baseline", &good];
        let words = [&own[..], words, &["--", "throughput", "binder", "--benchmark_filter=/4$"]].concat();
        let variables = machine.variables();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        call(BINARY, &words, &variables)
    };
    let build = ["--build", "--source", &source, "--arch", "x86_64", "--tools", "machine"];
    let called = step(&[&build[..], &["--runs", "1"]].concat()).ended(125);
    called.complained("cannot boot this");
    assert!(!called.stderr.contains("counting"), "{}", called.stderr);
    step(&[&build[..], &["--icount"]].concat()).ended(125).complained("counting");
    assert!(machine.has("cache/binderperf/kernels-2/built/7.2.13-tree-c-full"), "it was built");
    machine.folder.write("linux/kernel.c", "broken x;\n");
    step(&build).ended(125).complained("unknown type name 'broken'");
    step(&[&build[..], &["--broken-is-bad"]].concat()).ended(1).complained("unknown type name 'broken'");
    step(&["--build", "--source", "/no/such/tree"]).ended(128).complained("no such folder");
    step(&[&build[..], &["--side", "kernel=bzImage"]].concat()).ended(128).complained("leave kernel= out");
    step(&["--preempt", "rt"]).ended(128).complained("--preempt is for --build");
    let driver = ["--build-driver", "7.2", "--source", &source];
    step(&driver).ended(128).complained("it has no drivers/android");
    step(&[&driver[..], &["--preempt", "rt"]].concat()).ended(128).complained("--preempt is for --build");
    step(&[&driver[..], &["--side", "kernel=6.1"]].concat()).ended(128).complained("leave kernel= out");
}

//! Room: the running kernel's configuration, wherever a machine keeps it.
//! Not here: what its options mean to anybody.
//! Facts: `/proc/config.gz` with `CONFIG_IKCONFIG_PROC` (Android's and Arch's kernels), `/boot/config-RELEASE`
//! (Debian, Ubuntu, Fedora), `/lib/modules/RELEASE/config` (Fedora's and others' module folder).

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest configuration that is read, unpacked; real ones have 300 KB.
const LONGEST: u64 = 4 << 20;

/// A kernel's configuration and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// The file, as the machine itself names it.
    pub source: String,
    text: String,
}

impl KernelConfig {
    /// Looks below `root` (`/` for this machine, a folder of copied files otherwise).
    #[must_use]
    pub fn find(root: &Path) -> Option<Self> {
        let release = read(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
        let release = release.trim();
        let places = [
            "proc/config.gz".to_owned(),
            "proc/config".to_owned(),
            format!("boot/config-{release}"),
            format!("lib/modules/{release}/config"),
        ];
        places.iter().find_map(|place| {
            let text = read(&root.join(place))?;
            // What has no option in it is no configuration, whatever it is called.
            text.contains("CONFIG_").then(|| Self { source: format!("/{place}"), text })
        })
    }

    /// A configuration from its text.
    #[must_use]
    pub fn of(source: &str, text: &str) -> Self {
        Self { source: source.to_owned(), text: text.to_owned() }
    }

    /// The value of an option without its `CONFIG_`: `y`, `m`, a number, a text without its quotes; `None` if
    /// it is not set or unknown to this kernel.
    #[must_use]
    pub fn value(&self, option: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (name, value) = line.trim_end().split_once('=')?;
            (name.strip_prefix("CONFIG_")? == option).then(|| value.trim_matches('"'))
        })
    }

    /// Whether an option is built in.
    #[must_use]
    pub fn is_on(&self, option: &str) -> bool {
        self.value(option) == Some("y")
    }
}

/// A file's text, unpacked if its name says that it is packed; `None` if it cannot be had.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let read = match packed {
        true => flate2::read::GzDecoder::new(file.take(LONGEST)).take(LONGEST).read_to_end(&mut bytes),
        false => file.take(LONGEST).read_to_end(&mut bytes),
    };
    read.ok().map(|_| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "#\n# Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_HZ=250\nCONFIG_KASAN=y\n\
        CONFIG_ANDROID_BINDER_IPC=m\n# CONFIG_KCSAN is not set\nCONFIG_ANDROID_BINDER_DEVICES=\"binder\"\n";

    #[test]
    fn options_have_their_values() {
        let config = KernelConfig::of("x", TEXT);
        for (option, want) in [
            ("HZ", Some("250")),
            ("KASAN", Some("y")),
            ("ANDROID_BINDER_IPC", Some("m")),
            ("ANDROID_BINDER_DEVICES", Some("binder")),
            ("KCSAN", None),
            ("ANDROID", None),
            ("", None),
        ] {
            assert_eq!(config.value(option), want, "{option}");
        }
        assert!(config.is_on("KASAN") && !config.is_on("ANDROID_BINDER_IPC") && !config.is_on("KCSAN"));
    }

    #[test]
    fn it_is_found_packed_and_unpacked_and_what_is_none_is_not() {
        let root = std::env::temp_dir().join(format!("binderperf-config-{}", std::process::id()));
        let write = |path: &str, bytes: &[u8]| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("make folder");
            std::fs::write(path, bytes).expect("write file");
        };
        write("proc/sys/kernel/osrelease", b"6.1.0-1\n");
        assert_eq!(KernelConfig::find(&root), None);
        write("lib/modules/6.1.0-1/config", TEXT.as_bytes());
        assert_eq!(KernelConfig::find(&root).expect("found").source, "/lib/modules/6.1.0-1/config");
        write("boot/config-6.1.0-1", TEXT.as_bytes());
        assert_eq!(KernelConfig::find(&root).expect("found").source, "/boot/config-6.1.0-1");
        write("proc/config.gz", b"\x1f\x8b broken");
        assert_eq!(
            KernelConfig::find(&root).expect("found").source,
            "/boot/config-6.1.0-1",
            "not the broken"
        );
        let mut packed = Vec::new();
        let mut encoder = flate2::read::GzEncoder::new(TEXT.as_bytes(), flate2::Compression::fast());
        encoder.read_to_end(&mut packed).expect("pack");
        write("proc/config.gz", &packed);
        let config = KernelConfig::find(&root).expect("found");
        assert_eq!((config.source.as_str(), config.value("HZ")), ("/proc/config.gz", Some("250")));
        std::fs::remove_dir_all(root).expect("this test's own");
    }

    proptest! {
        #[test]
        fn any_text_and_any_option_are_taken(text in "(?s).{0,300}", option in ".{0,20}") {
            let config = KernelConfig::of("x", &text);
            let _ = (config.value(&option), config.is_on(&option));
        }
    }
}

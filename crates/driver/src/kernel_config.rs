//! Reading the running kernel's configuration.
//! Not here: the meaning of its options.
//! Facts: `/proc/config.gz` with `CONFIG_IKCONFIG_PROC` (Android's and Arch's kernels), `/boot/config-RELEASE`
//! (Debian, Ubuntu, Fedora), `/lib/modules/RELEASE/config` (Fedora's and others' module folder).

use std::io::Read;

use crate::Root;
use crate::root::LONGEST;

/// A kernel's configuration and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// The file, as the machine itself names it.
    pub source: String,
    text: String,
}

impl KernelConfig {
    /// Finds the configuration of the machine with these files.
    #[must_use]
    pub fn find(root: &Root) -> Option<Self> {
        let release = root.text("proc/sys/kernel/osrelease").unwrap_or_default();
        let places = [
            "proc/config.gz".to_owned(),
            "proc/config".to_owned(),
            format!("boot/config-{release}"),
            format!("lib/modules/{release}/config"),
        ];
        places.iter().find_map(|place| {
            let text = read(root, place)?;
            // A file without options is no configuration.
            text.contains("CONFIG_").then(|| Self { source: format!("/{place}"), text })
        })
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
fn read(root: &Root, path: &str) -> Option<String> {
    let (mut bytes, _) = root.bytes(path).ok()?;
    if path.ends_with(".gz") {
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).take(LONGEST).read_to_end(&mut unpacked).ok()?;
        bytes = unpacked;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Fixture;
    use proptest::prelude::*;

    const TEXT: &str = "#\n# Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_HZ=250\nCONFIG_KASAN=y\n\
        CONFIG_ANDROID_BINDER_IPC=m\n# CONFIG_KCSAN is not set\nCONFIG_ANDROID_BINDER_DEVICES=\"binder\"\n";

    #[test]
    fn options_have_their_values() {
        let config = KernelConfig { source: String::new(), text: TEXT.to_owned() };
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
        let machine = Fixture::new("config", &[("proc/sys/kernel/osrelease", "6.1.0-1\n")]);
        let find = || KernelConfig::find(&machine.root());
        let source = || find().expect("found").source;
        assert_eq!(find(), None);
        machine.put("lib/modules/6.1.0-1/config", TEXT);
        assert_eq!(source(), "/lib/modules/6.1.0-1/config");
        machine.put("boot/config-6.1.0-1", TEXT);
        assert_eq!(source(), "/boot/config-6.1.0-1");
        machine.put("proc/config.gz", b"\x1f\x8b broken");
        assert_eq!(source(), "/boot/config-6.1.0-1", "not the broken");
        let mut packed = Vec::new();
        let mut encoder = flate2::read::GzEncoder::new(TEXT.as_bytes(), flate2::Compression::fast());
        encoder.read_to_end(&mut packed).expect("pack");
        machine.put("proc/config.gz", &packed);
        assert_eq!((source().as_str(), find().expect("found").value("HZ")), ("/proc/config.gz", Some("250")));
    }

    proptest! {
        #[test]
        fn any_text_and_any_option_are_taken(text in "(?s).{0,300}", option in ".{0,20}") {
            let config = KernelConfig { source: String::new(), text };
            let _ = (config.value(&option), config.is_on(&option));
        }
    }
}

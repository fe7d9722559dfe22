//! One side of a comparison as typed, and the command line that it makes of a test.
//! Not here: running it (`super::bench`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// One side: `kernel=FILE`, `binary=FILE`, `env.NAME=VALUE`, `vm.FLAG=VALUE`, and any flag of the test
/// without its dashes, separated by commas. An empty text is the test unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    typed: String,
    /// Another build of this program.
    pub binary: Option<PathBuf>,
    /// Kernels to boot, as `vm --kernel` takes them.
    pub kernels: Vec<String>,
    /// The driver's module in place of the kernel's own.
    pub driver: Option<PathBuf>,
    vm_flags: Vec<String>,
    /// Environment variables of the test.
    pub env: Vec<(String, String)>,
    flags: Vec<String>,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.typed.is_empty() { "as it is" } else { &self.typed })
    }
}

impl FromStr for Side {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut side = Self { typed: text.to_owned(), ..Self::default() };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            side.take(part)?;
        }
        Ok(side)
    }
}

impl Side {
    /// A kernel, with a driver's module in place of its own, and further flags of `vm` without their dashes: `smp=2`.
    #[must_use]
    pub fn of_kernel(kernel: &str, driver: Option<&Path>, vm_flags: &[String]) -> Self {
        let module = driver.map(|file| format!("driver-module={}", file.display()));
        let flags = module.iter().chain(vm_flags).map(|flag| format!(",vm.{flag}"));
        Self {
            typed: format!("kernel={kernel}{}", flags.collect::<String>()),
            kernels: vec![kernel.to_owned()],
            driver: driver.map(Path::to_path_buf),
            vm_flags: vm_flags.iter().map(|flag| format!("--{flag}")).collect(),
            ..Self::default()
        }
    }

    /// The side with a further flag of the test, without its dashes.
    #[must_use]
    pub fn with_flag(mut self, flag: &str) -> Self {
        self.typed += &format!(",{flag}");
        self.flags.push(format!("--{flag}"));
        self
    }

    fn take(&mut self, part: &str) -> Result<(), String> {
        let (key, value) = part.split_once('=').map_or((part, None), |(key, value)| (key, Some(value)));
        let needed =
            || value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{key} of what? {key}=FILE"));
        let flag = |key: &str| value.map_or(format!("--{key}"), |value| format!("--{key}={value}"));
        if key.is_empty() || key.starts_with('-') || key.contains(char::is_whitespace) {
            return Err(format!("{part:?} is no KEY=VALUE (a flag is written without its dashes)"));
        }
        match key {
            "kernel" => self.kernels.push(needed()?.to_owned()),
            "binary" => self.binary = Some(PathBuf::from(needed()?)),
            "record" => return Err("every run has a record of its own: leave record= out".to_owned()),
            _ => {
                if let Some(name) = key.strip_prefix("env.") {
                    self.env.push((name.to_owned(), value.unwrap_or_default().to_owned()));
                } else if let Some(name) = key.strip_prefix("vm.") {
                    self.vm_flags.push(flag(name));
                } else {
                    self.flags.push(flag(key));
                }
            }
        }
        Ok(())
    }

    /// Returns true if the side runs in a guest.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        !self.kernels.is_empty() || !self.vm_flags.is_empty()
    }

    /// Returns true if the files under test exist: the kernel image, the program.
    pub(super) fn can_start(&self) -> bool {
        self.kernels.iter().all(|kernel| vm::may_boot(kernel))
            && self.binary.iter().chain(&self.driver).all(|file| file.is_file())
    }

    /// Arguments for a test that writes its record to `record`; in a guest `record` is a name in `folder`.
    pub(super) fn words(&self, test: &[String], folder: &Path, record: &Path, icount: bool) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if self.is_guest() || icount {
            words.push("vm".to_owned());
            words.extend(self.kernels.iter().map(|kernel| format!("--kernel={kernel}")));
            words.extend(self.driver.iter().map(|file| format!("--driver-module={}", file.display())));
            words.extend(self.vm_flags.iter().cloned());
            words.push(format!("--out={}", folder.display()));
            words.extend(icount.then(|| "--icount".to_owned()));
            words.push("--".to_owned());
        }
        words.extend(test.iter().cloned());
        words.extend(self.flags.iter().cloned());
        words.push(format!("--record={}", record.display()));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(side: &str, icount: bool) -> String {
        let side: Side = side.parse().expect(side);
        let test = ["latency".to_owned(), "binder".to_owned()];
        side.words(&test, Path::new("/f"), Path::new("r.json"), icount).join(" ")
    }

    #[test]
    fn a_side_adds_its_flags_to_the_test() {
        assert_eq!(words("", false), "latency binder --record=r.json");
        assert_eq!(
            words("driver=embedded, wait=spin:50,no-scenes,inject=delay=50:1", false),
            "latency binder --driver=embedded --wait=spin:50 --no-scenes --inject=delay=50:1 --record=r.json"
        );
    }

    #[test]
    fn what_was_not_built_cannot_start() {
        let can = |side: &str| side.parse::<Side>().expect(side).can_start();
        assert!(can("") && can("kernel=6.1") && can("binary=/bin/sh"));
        assert!(!can("kernel=/nonexistent/bzImage") && !can("kernel=/bin/sh") && !can("binary=/nonexistent"));
    }

    #[test]
    fn a_kernel_means_a_guest_and_so_does_counting() {
        assert_eq!(
            words("kernel=/b/bzImage,vm.smp=2,driver=kernel", false),
            "vm --kernel=/b/bzImage --smp=2 --out=/f -- latency binder --driver=kernel --record=r.json"
        );
        assert_eq!(words("", true), "vm --out=/f --icount -- latency binder --record=r.json");
        let side = Side::of_kernel("7.2", Some(Path::new("/b.ko")), &["smp=2".to_owned()]);
        assert_eq!(side.to_string(), "kernel=7.2,vm.driver-module=/b.ko,vm.smp=2");
        assert_eq!(
            side.words(&["x".to_owned()], Path::new("/f"), Path::new("r"), false).join(" "),
            "vm --kernel=7.2 --driver-module=/b.ko --smp=2 --out=/f -- x --record=r"
        );
        assert!(!side.can_start());
    }

    #[test]
    fn programs_and_variables_are_no_flags() {
        let side: Side = "binary=/old/binderperf,env.BINDERPERF_X=1".parse().expect("fine");
        assert_eq!(side.binary, Some(PathBuf::from("/old/binderperf")));
        assert_eq!(side.env, [("BINDERPERF_X".to_owned(), "1".to_owned())]);
        assert_eq!(words("binary=/x", false), "latency binder --record=r.json");
        assert_eq!(
            (side.to_string().as_str(), Side::default().to_string().as_str()),
            ("binary=/old/binderperf,env.BINDERPERF_X=1", "as it is")
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["kernel", "kernel=", "binary=", "--driver=x", "=x", "a b=c", "record=x"] {
            assert!(bad.parse::<Side>().is_err(), "{bad}");
        }
    }
}

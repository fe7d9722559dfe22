//! Room: the kernels that this machine itself is booted from.
//! Not here: kernels fetched for guests (`fetch`).

use std::path::Path;

use super::name::newest_first;
use super::{Kernel, from_image, modules};

/// The newest kernel in `/boot` with a Binder driver. The error is a clause for a list of attempts.
pub(super) fn kernel() -> Result<Kernel, String> {
    let release = newest_with_driver(Path::new("/"))?;
    let image = Path::new("/boot").join(format!("vmlinuz-{release}"));
    from_image(&image, None).map_err(|error| error.to_string())
}

/// The release of that kernel, below a root.
fn newest_with_driver(root: &Path) -> Result<String, String> {
    let boot = root.join("boot");
    let entries = std::fs::read_dir(&boot).into_iter().flatten().flatten();
    let mut releases: Vec<String> = entries
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("vmlinuz-")?.to_owned()))
        .collect();
    newest_first(&mut releases);
    let count = releases.len();
    let has_driver = |release: &String| {
        let config = std::fs::read_to_string(boot.join(format!("config-{release}"))).unwrap_or_default();
        config.lines().any(|line| line == "CONFIG_ANDROID_BINDER_IPC=y")
            || modules::has_driver(&root.join("lib/modules").join(release))
    };
    releases.into_iter().find(has_driver).ok_or(match count {
        0 => "this machine's /boot: no vmlinuz-* in it".to_owned(),
        _ => format!("this machine's /boot: {count} kernels, none with a Binder driver"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_that_has_a_driver_is_taken() {
        let root = std::env::temp_dir().join(format!("binderperf-own-{}", std::process::id()));
        let put = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("inside the folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        assert!(newest_with_driver(&root).expect_err("no /boot").contains("no vmlinuz-*"));
        put("boot/vmlinuz-6.9.0-amd64", "");
        put("boot/config-6.9.0-amd64", "# CONFIG_ANDROID_BINDER_IPC is not set\n");
        assert!(newest_with_driver(&root).expect_err("no driver").contains("1 kernels"));
        put("boot/vmlinuz-6.1.0-amd64", "");
        put("boot/config-6.1.0-amd64", "CONFIG_ANDROID_BINDER_IPC=y\n");
        assert_eq!(newest_with_driver(&root).as_deref(), Ok("6.1.0-amd64"));
        put("boot/vmlinuz-6.8.0-amd64", "");
        put("lib/modules/6.8.0-amd64/kernel/binder_linux.ko.zst", "");
        assert_eq!(newest_with_driver(&root).as_deref(), Ok("6.8.0-amd64"));
        std::fs::remove_dir_all(root).expect("removed");
    }
}

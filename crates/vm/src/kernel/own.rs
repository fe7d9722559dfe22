//! The kernels installed on this machine.
//! Not here: kernels fetched for guests (`fetch`).

use std::path::Path;

use super::name::newest_first;
use super::{Kernel, from_image, modules};

/// The newest kernel in `/boot` with a Binder driver. The error is a clause for a list of attempts.
pub(super) fn kernel() -> Result<Kernel, String> {
    let release = newest_with_driver(Path::new("/"))?;
    let image = Path::new("/boot").join(format!("vmlinuz-{release}"));
    from_image(&image, None, &mut |_| {}).map_err(|error| error.to_string())
}

/// The release of that kernel, below a root folder.
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
    use driver::root::Fixture;

    #[test]
    fn the_newest_kernel_that_has_a_driver_is_taken() {
        let root = Fixture::new("own-kernel", &[]);
        let newest = || newest_with_driver(root.path());
        assert!(newest().expect_err("no /boot").contains("no vmlinuz-*"));
        root.put("boot/vmlinuz-6.9.0-amd64", "");
        root.put("boot/config-6.9.0-amd64", "# CONFIG_ANDROID_BINDER_IPC is not set\n");
        assert!(newest().expect_err("no driver").contains("1 kernels"));
        root.put("boot/vmlinuz-6.1.0-amd64", "");
        root.put("boot/config-6.1.0-amd64", "CONFIG_ANDROID_BINDER_IPC=y\n");
        assert_eq!(newest().as_deref(), Ok("6.1.0-amd64"));
        root.put("boot/vmlinuz-6.8.0-amd64", "");
        root.put("lib/modules/6.8.0-amd64/kernel/binder_linux.ko.zst", "");
        assert_eq!(newest().as_deref(), Ok("6.8.0-amd64"));
    }
}

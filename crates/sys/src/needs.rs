//! The special files without which no process of a test can be started, and which a bare container may lack.

use std::path::Path;

/// A special file, why it is needed, and the command that makes it.
const NEEDED: [(&str, &str, &str); 2] = [
    (
        "/proc/self/exe",
        "this program starts the processes of a test through it, and they share memory through /proc",
        "mount -t proc proc /proc",
    ),
    ("/dev/null", "it is the standard input of the processes of a test", "mknod -m 666 /dev/null c 1 3"),
];

/// Says which of them is missing, why it is needed, and how to make it.
#[must_use]
pub fn missing() -> Option<String> {
    missing_in(Path::new("/"))
}

fn missing_in(root: &Path) -> Option<String> {
    let is_missing = |path: &str| std::fs::metadata(root.join(&path[1..])).is_err();
    let (path, why, remedy) = NEEDED.into_iter().find(|(path, _, _)| is_missing(path))?;
    Some(format!("there is no {path} here, and {why}; as root: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        assert_eq!(missing(), None);
        let private = crate::private_folder::PrivateFolder::new("needs").expect("a folder");
        let root = private.path();
        for (path, _, remedy) in NEEDED {
            let said = missing_in(root).expect("missing");
            assert!(said.contains(path) && said.ends_with(remedy), "{said}");
            let there = root.join(&path[1..]);
            std::fs::create_dir_all(there.parent().expect("a folder")).expect("made");
            std::fs::write(there, "").expect("made");
        }
        assert_eq!(missing_in(root), None);
    }
}

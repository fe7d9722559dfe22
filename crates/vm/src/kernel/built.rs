//! Names of kernels that were built here: `built:NAME`.
//! Not here: building them (`build`).

/// The word before a name.
const MARK: &str = "built:";
/// The folder of the cache that has them.
const FOLDER: &str = "built";

/// The name in `built:NAME`.
pub(crate) fn name(given: &str) -> Option<&str> {
    given.strip_prefix(MARK)
}

/// The cache's key of a built kernel; `None` if the text can be no name.
pub(crate) fn key(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+-:=~".contains(c);
    let is_name = name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(plain);
    is_name.then(|| format!("{FOLDER}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_a_path_is_no_name() {
        assert_eq!(name("built:7.2.13-c-full"), Some("7.2.13-c-full"));
        assert_eq!(name("7.2.13-c-full"), None);
        assert_eq!(key("7.2.13-c-rt-patch:ab12cd").as_deref(), Some("built/7.2.13-c-rt-patch:ab12cd"));
        for text in ["", "..", "../x", "7/x", "names", "7.2 x"] {
            assert_eq!(key(text), None, "{text}");
        }
    }
}

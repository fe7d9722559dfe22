//! Names of functions as people know them.

/// A function's name without what the compiler put behind it to tell copies apart: `tracing_mark_write.llvm.1234`.
pub(crate) fn bare(symbol: &[u8]) -> &[u8] {
    let at = symbol.windows(SUFFIX.len()).position(|window| window == SUFFIX);
    let digits = |rest: &[u8]| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    match at.map(|at| (&symbol[..at], &symbol[at + SUFFIX.len()..])) {
        Some((name, rest)) if !name.is_empty() && digits(rest) => name,
        _ => symbol,
    }
}

const SUFFIX: &[u8] = b".llvm.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_compilers_suffix_goes() {
        for (symbol, want) in [
            ("tracing_mark_write.llvm.123", "tracing_mark_write"),
            ("tracing_mark_write", "tracing_mark_write"),
            ("a.llvm.", "a.llvm."),
            ("a.llvm.x1", "a.llvm.x1"),
            (".llvm.1", ".llvm.1"),
        ] {
            assert_eq!(bare(symbol.as_bytes()), want.as_bytes(), "{symbol}");
        }
    }
}

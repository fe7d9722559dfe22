//! Room: numbers in bytes of text, fast and without panics.

/// A decimal number at the start, and what follows it. `None` without a digit, or beyond 64 bits.
pub(crate) fn decimal(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    let mut at = 0;
    while let Some(digit) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        at += 1;
    }
    (at > 0).then(|| (value, &bytes[at..]))
}

/// Seconds with a fraction of up to nine digits as nanoseconds; a number without a point counts as
/// nanoseconds or ticks of a counter already. The whole text must be the number.
pub(crate) fn seconds(bytes: &[u8]) -> Option<u64> {
    let (whole, rest) = decimal(bytes)?;
    let Some(fraction) = rest.strip_prefix(b".") else { return rest.is_empty().then_some(whole) };
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let (part, rest) = decimal(fraction)?;
    let scale = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    if !rest.is_empty() {
        return None;
    }
    whole.checked_mul(1_000_000_000)?.checked_add(part * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_nanoseconds() {
        assert_eq!(seconds(b"1.000002"), Some(1_000_002_000));
        assert_eq!(seconds(b"1.123456789"), Some(1_123_456_789));
        assert_eq!(seconds(b"77"), Some(77));
        for bad in ["", ".5", "1.", "1.1234567890", "1.5x", "18446744073709551615.0"] {
            assert_eq!(seconds(bad.as_bytes()), None, "{bad}");
        }
    }
}

//! Parses numbers in byte strings, fast and without panics.

/// Decimal number at the start, and the remaining bytes. `None` without a digit, or beyond 64 bits.
pub(crate) fn decimal(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    let mut at = 0;
    while let Some(digit) = bytes.get(at).filter(|byte| byte.is_ascii_digit()) {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        at += 1;
    }
    (at > 0).then(|| (value, &bytes[at..]))
}

/// Whole text as a number: decimal with optional sign, or hexadecimal after `0x`.
pub(crate) fn any(bytes: &[u8]) -> Option<i64> {
    if let Some(digits) = bytes.strip_prefix(b"0x") {
        return hex(digits).map(u64::cast_signed);
    }
    if let Some(digits) = bytes.strip_prefix(b"-") {
        let (value, rest) = decimal(digits)?;
        return rest.is_empty().then(|| 0_i64.checked_sub_unsigned(value)).flatten();
    }
    let (value, rest) = decimal(bytes)?;
    // Kernels print some words unsigned that exceed i64; keep the bits.
    rest.is_empty().then(|| value.cast_signed())
}

/// Whole text of hexadecimal digits, without a prefix.
pub(crate) fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

/// Seconds with up to nine decimals, as nanoseconds; a number without a point is already in nanoseconds or counter
/// ticks. The whole text must be the number.
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
    fn numbers_are_whole_or_none() {
        assert_eq!(any(b"17"), Some(17));
        assert_eq!(any(b"-17"), Some(-17));
        assert_eq!(any(b"0x1F"), Some(31));
        for bad in ["", "-", "0x", "1a", "0xg", "99999999999999999999", "--1"] {
            assert_eq!(any(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(any(b"18446744073709551615"), Some(-1));
    }

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

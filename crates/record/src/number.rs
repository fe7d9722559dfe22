//! Number formats of C and C++, as used by Google Benchmark and by Android's tools.
//! Not here: columns.

use units::without_zeros;

/// C's `%g`: six significant digits, no trailing zeros, an exponent below -4 or above 5.
pub(crate) fn general(value: f64) -> String {
    general_to(value, 6)
}

/// C's `%.{significant}g`, for at least one significant digit.
pub(crate) fn general_to(value: f64, significant: u8) -> String {
    let last = significant.saturating_sub(1);
    let scientific = format!("{value:.*e}", usize::from(last));
    let Some((digits, exponent)) = split_exponent(&scientific) else { return scientific };
    if (-4..=i32::from(last)).contains(&exponent) {
        let decimals = usize::try_from(i32::from(last) - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    format!("{}{}", without_zeros(digits), c_exponent(exponent))
}

/// C's `%.16e`: enough digits to read the same number back.
pub(crate) fn exact(value: f64) -> String {
    exponential(value, 16)
}

/// C's `%.{decimals}e`.
pub(crate) fn exponential(value: f64, decimals: usize) -> String {
    let scientific = format!("{value:.decimals$e}");
    match split_exponent(&scientific) {
        Some((digits, exponent)) => format!("{digits}{}", c_exponent(exponent)),
        None => scientific,
    }
}

/// A number with a decimal prefix and at most three digits before the point; with `base` 1024 a binary prefix.
pub(crate) fn human(value: f64, base: f64) -> String {
    const DECIMAL: [&str; 8] = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    const BINARY: [&str; 8] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];
    const SMALL: [&str; 8] = ["m", "u", "n", "p", "f", "a", "z", "y"];
    // Between 0.01 and 1 a fraction is easier to read than a prefix.
    const SMALLEST_PLAIN: f64 = 0.01;

    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    let large = if base == 1024.0 { BINARY } else { DECIMAL };
    let mut scaled = size;
    if size > base - 1.0 {
        for prefix in large {
            scaled /= base;
            if scaled <= base - 1.0 {
                return format!("{sign}{}{prefix}", general(scaled));
            }
        }
    } else if size < SMALLEST_PLAIN {
        for prefix in SMALL {
            scaled *= base;
            if scaled >= 1.0 {
                return format!("{sign}{}{prefix}", general(scaled));
            }
        }
    }
    format!("{sign}{}", general(size))
}

fn split_exponent(scientific: &str) -> Option<(&str, i32)> {
    let (digits, exponent) = scientific.split_once('e')?;
    Some((digits, exponent.parse().ok()?))
}

/// An exponent with a sign and at least two digits, as in C.
fn c_exponent(exponent: i32) -> String {
    format!("e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_is_what_c_prints() {
        let table = [
            (0.0, "0"),
            (-0.5, "-0.5"),
            (1.0, "1"),
            (12.5, "12.5"),
            (123456.789, "123457"),
            (999_999.6, "1e+06"),
            (1e6, "1e+06"),
            (8_881_219.2, "8.88122e+06"),
            (1.23456789, "1.23457"),
            (0.0001, "0.0001"),
            (0.00009999999, "0.0001"),
            (0.0000123, "1.23e-05"),
            (1e300, "1e+300"),
            (621.673, "621.673"),
        ];
        for (value, text) in table {
            assert_eq!(general(value), text);
        }
        // What printf and Python print.
        let table = [
            (0.0, 2, "0"),
            (1.0, 5, "1"),
            (0.2, 2, "0.2"),
            (2.8, 2, "2.8"),
            (0.0535, 2, "0.053"),
            (12.34, 2, "12"),
            (99.6, 2, "1e+02"),
            (123.0, 2, "1.2e+02"),
            (0.00001, 2, "1e-05"),
            (0.99995, 5, "0.99995"),
            (0.999996, 5, "1"),
            (0.1953125, 5, "0.19531"),
            (0.1953125, 6, "0.195312"),
            (7.0, 1, "7"),
        ];
        for (value, significant, text) in table {
            assert_eq!(general_to(value, significant), text, "%.{significant}g of {value}");
        }
    }

    #[test]
    fn exact_is_what_c_prints() {
        assert_eq!(exact(0.0), "0.0000000000000000e+00");
        assert_eq!(exact(0.1), "1.0000000000000001e-01");
        assert_eq!(exact(3.45e-3), "3.4499999999999999e-03");
        assert_eq!(exact(1e300), "1.0000000000000001e+300");
        assert_eq!(exponential(12_345_678_901.0, 4), "1.2346e+10");
    }

    #[test]
    fn human_numbers_are_those_of_google_benchmark() {
        // Output of google-benchmark 1.9.5 for these counter values.
        let table = [
            (0.0, "0", "0"),
            (-5.0, "-5", "-5"),
            (999.0, "999", "999"),
            (1000.0, "1k", "1000"),
            (1001.0, "1.001k", "1001"),
            (1023.0, "1.023k", "1023"),
            (1024.0, "1.024k", "1Ki"),
            (1100.01, "1.10001k", "1.07423Ki"),
            (0.5, "0.5", "0.5"),
            (0.01, "0.01", "0.01"),
            (0.0099, "9.9m", "10.1376m"),
            (1e-7, "100n", "107.374n"),
            (123456.789, "123.457k", "120.563Ki"),
            (999_999.6, "1M", "976.562Ki"),
            (1e6, "1M", "976.562Ki"),
            (1.1e6, "1.1M", "1.04904Mi"),
            (1e30, "1e+30", "1e+30"),
            (1e-30, "1e-30", "1e-30"),
            (-1500.0, "-1.5k", "-1.46484Ki"),
        ];
        for (value, decimal, binary) in table {
            assert_eq!(human(value, 1000.0), decimal);
            assert_eq!(human(value, 1024.0), binary);
        }
    }
}

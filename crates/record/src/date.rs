//! Parses RFC 3339 dates, so that dates with different offsets can be ordered.
//! Not here: writing dates.
//! Facts: RFC 3339, section 5.6; days are counted in the proleptic Gregorian calendar.

/// Milliseconds since 1970-01-01T00:00:00Z of a date such as `2026-01-31T12:00:00.250+01:00`; `None` if the text is
/// not a valid date.
#[must_use]
pub fn milliseconds(date: &str) -> Option<i64> {
    let (day, rest) = date.split_once(['T', 't'])?;
    let [year, month, day] = numbers(day, '-', [4, 2, 2])?;
    if !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
        return None;
    }
    let at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, offset) = rest.split_at(at);
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, part)| (time, Some(part)));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    // Second 60 is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let fraction = fraction.map_or(Some(0), of_a_second)?;
    let seconds =
        days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_seconds(offset)?;
    Some(seconds * 1000 + fraction)
}

/// Parses numbers of exactly these lengths, separated by `between`.
fn numbers<const N: usize>(text: &str, between: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (number, length) in found.iter_mut().zip(lengths) {
        let part = parts.next().filter(|part| part.len() == length && digits(part))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The fraction of a second, in milliseconds.
fn of_a_second(text: &str) -> Option<i64> {
    let three: String = text.chars().chain("000".chars()).take(3).collect();
    digits(text).then(|| three.parse().ok()).flatten()
}

fn offset_seconds(text: &str) -> Option<i64> {
    let (sign, text) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ if text.len() == 1 => return Some(0),
        _ => return None,
    };
    let [hours, minutes] = numbers(text, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a four-digit year's date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Leap days of all earlier years.
    let leaps =
        |year: i64| (year - 1).div_euclid(4) - (year - 1).div_euclid(100) + (year - 1).div_euclid(400);
    let of_years = (year - 1970) * 365 + leaps(year) - leaps(1970);
    of_years + (1..month).map(|month| days_of(year, month)).sum::<i64>() + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_what_date_1_says_they_are() {
        for (date, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59+00:00", 951_868_799),
            ("2000-03-01T00:00:00z", 951_868_800),
            ("2026-01-31T12:00:00+01:00", 1_769_857_200),
            ("2026-01-02T03:04:05-03:30", 1_767_335_645),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("1969-12-31T23:59:59Z", -1),
        ] {
            assert_eq!(milliseconds(date), Some(seconds * 1000), "{date}");
        }
        assert_eq!(milliseconds("1970-01-01T00:00:01.5Z"), Some(1500));
        assert_eq!(milliseconds("1970-01-01T00:00:01.0123456Z"), Some(1012));
    }

    #[test]
    fn an_hour_that_comes_twice_in_autumn_is_in_order() {
        let (first, second) = ("2026-10-25T02:30:00+02:00", "2026-10-25T02:10:00+01:00");
        assert!(first > second && milliseconds(first) < milliseconds(second));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "never",
            "=cmd|x",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:00+1:00",
            "2026-01-31T12:00:00+01:00x",
            "2026-01-31T12:00:00Zx",
            "2026-01-31T12:00:00.Z",
            "+026-01-31T12:00:00Z",
            "2026-01-31T12:00:00+é1:00",
            "é",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}

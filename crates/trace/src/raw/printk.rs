//! Formats a `trace_printk` from its format and binary arguments.
//! Facts: `vbin_printf` of `lib/vsprintf.c`, Linux 7.2: words aligned to at most four bytes, strings inline.

/// Formats the arguments. Unknown conversions stay as they are in the format.
pub(super) fn fill(format: &str, arguments: &[u8]) -> String {
    let mut out = String::new();
    let mut arguments = Arguments { bytes: arguments, at: 0 };
    let mut rest = format;
    while let Some(percent) = rest.find('%') {
        let (before, conversion) = rest.split_at(percent);
        out.push_str(before);
        let end = conversion[1..].find(|c: char| c.is_ascii_alphabetic() && !"hlzt".contains(c) || c == '%');
        let Some(end) = end.map(|end| end + 2) else {
            rest = conversion;
            break;
        };
        let (conversion, behind) = conversion.split_at(end);
        match one(conversion, &mut arguments) {
            Some(text) => out.push_str(&text),
            None => out.push_str(conversion),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

struct Arguments<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Arguments<'_> {
    fn number(&mut self, size: usize) -> Option<u64> {
        let start = self.at.next_multiple_of(size.min(4));
        let bytes = self.bytes.get(start..start + size)?;
        self.at = start + size;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn string(&mut self) -> Option<String> {
        let bytes = self.bytes.get(self.at..)?;
        let length = bytes.iter().position(|byte| *byte == 0)?;
        self.at += length + 1;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

fn one(conversion: &str, arguments: &mut Arguments<'_>) -> Option<String> {
    let kind = conversion.chars().last()?;
    if conversion.contains('*') {
        arguments.number(4)?;
    }
    let long = conversion.contains(['l', 'z', 't']);
    let size = match (long, conversion.matches('h').count()) {
        (true, _) => 8,
        (false, 0) => 4,
        (false, 1) => 2,
        (false, _) => 1,
    };
    Some(match kind {
        '%' => "%".into(),
        's' => arguments.string()?,
        'c' => char::from(u8::try_from(arguments.number(1)?).ok()?).to_string(),
        'd' | 'i' => {
            let value = arguments.number(size)?;
            let unused = 64 - 8 * u32::try_from(size).ok()?;
            ((value << unused).cast_signed() >> unused).to_string()
        }
        'u' => arguments.number(size)?.to_string(),
        'x' => format!("{:x}", arguments.number(size)?),
        'X' => format!("{:X}", arguments.number(size)?),
        'p' => format!("{:#x}", arguments.number(8)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_fill_their_places() {
        let bytes = [5, 0, 0, 0, b'a', b'b', 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(fill("n=%d s=%s m=%i l=%llx %%\n", &bytes), "n=5 s=ab m=-1 l=1 %\n");
        assert_eq!(fill("%d %d", &[7, 0, 0, 0]), "7 %d");
        assert_eq!(fill("%", &[]), "%");
        assert_eq!(fill("100%", &[]), "100%");
    }
}

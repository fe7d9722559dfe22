//! Names of the kernel's functions by address.
//! Facts: `/proc/kallsyms`: address in hex, type, name, and the module in brackets. Where several names have one address,
//! the first stands.

/// The functions, sorted by address.
#[derive(Debug)]
pub(crate) struct Symbols {
    starts: Vec<u64>,
    names: Vec<String>,
}

/// A function: its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FunctionId(u32);

/// Code of programs, and code without a symbol.
pub(crate) const USER: FunctionId = FunctionId(0);
const NAMELESS: FunctionId = FunctionId(1);
const RESERVED: usize = 2;

/// Whether an address belongs to the kernel: the upper half, on x86-64 as on arm64.
pub(crate) fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

impl Symbols {
    pub(crate) fn parse(text: &str) -> Self {
        let mut found: Vec<(u64, String)> = text.lines().filter_map(symbol).collect();
        found.sort_by_key(|(address, _)| *address);
        found.dedup_by_key(|(address, _)| *address);
        let mut symbols = Self {
            starts: vec![0; RESERVED],
            names: vec!["user space".to_owned(), "kernel code without a symbol".to_owned()],
        };
        for (address, name) in found {
            symbols.starts.push(address);
            symbols.names.push(name);
        }
        symbols
    }

    /// The function at an address, and whether it begins there.
    pub(crate) fn at(&self, address: u64) -> (FunctionId, bool) {
        if !is_kernel(address) {
            return (USER, false);
        }
        let place = self.starts.partition_point(|start| *start <= address) - 1;
        match place {
            0 | 1 => (NAMELESS, false),
            place => (FunctionId(place as u32), self.starts[place] == address),
        }
    }

    pub(crate) fn name(&self, function: FunctionId) -> &str {
        &self.names[function.0 as usize]
    }
}

/// Address and name of a line. Addresses are 0 for who may not see them.
fn symbol(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| is_kernel(*address))?;
    let name = words.nth(1)?;
    // Rust's names, without the hash that its older scheme adds.
    let plain = rustc_demangle::try_demangle(name).map(|name| format!("{name:#}"));
    Some((address, plain.unwrap_or_else(|_| name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T first\nffffffff81000000 T alias\nffffffff81000100 t second [m]\n0000000000000000 T hidden\n\
                        ffffffffc0000000 t _RNvNtCs1234_7mycrate3foo3bar\nbad line\n";

    #[test]
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let symbols = Symbols::parse(TEXT);
        let at = |address| {
            let (function, is_start) = symbols.at(address);
            (symbols.name(function).to_owned(), is_start)
        };
        assert_eq!(at(0xffff_ffff_8100_0000), ("first".to_owned(), true));
        assert_eq!(at(0xffff_ffff_8100_00ff), ("first".to_owned(), false));
        assert_eq!(at(0xffff_ffff_8100_0100), ("second".to_owned(), true));
        assert_eq!(at(0xffff_ffff_c000_0001), ("mycrate::foo::bar".to_owned(), false));
        assert_eq!(at(0xffff_ffff_8000_0000), ("kernel code without a symbol".to_owned(), false));
        assert_eq!(at(0x5555_0000), ("user space".to_owned(), false));
        assert_eq!(Symbols::parse("").at(u64::MAX), (NAMELESS, false));
    }
}

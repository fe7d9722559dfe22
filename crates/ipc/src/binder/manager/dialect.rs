//! Dialect of a call to the service manager, as its header and its arguments show it.
//!
//! The header says whether the caller is of Android 8 or 9, of 10, or of 11 and later. From 11 on the method numbers differ and the
//! header does not: there the arguments show a caller whose method is another one's number.
//! Facts: `Parcel::writeInterfaceToken`; `IServiceManager.aidl` of Android 11 to 16, `IServiceManager.h` before; libgbinder's
//! `gbinder_config.c` on `ApiLevel`.

use std::fmt;

use crate::binder::manager::DESCRIPTOR;
use crate::binder::manager::codes::Method;
use crate::binder::reader::Reader;
use crate::release::{Generation, Release};

/// An argument as it lies in a parcel.
#[derive(Clone, Copy)]
enum Argument {
    Text,
    Word,
    Object,
}

/// The arguments of a method in a release.
fn arguments(method: Method, release: Release) -> &'static [Argument] {
    use Argument::{Object, Text, Word};
    match method {
        Method::AddService if release >= Release::Android9 => &[Text, Object, Word, Word],
        Method::AddService => &[Text, Object, Word],
        Method::ListServices if matches!(release, Release::Android9 | Release::Android10) => &[Word, Word],
        Method::ListServices => &[Word],
        Method::RegisterForNotifications
        | Method::UnregisterForNotifications
        | Method::TryUnregisterService => &[Text, Object],
        Method::RegisterClientCallback => &[Text, Object, Object],
        Method::GetServiceDebugInfo => &[],
        _ => &[Text],
    }
}

/// Bytes of an object, with the word of stability that it has from 11 on.
fn object_size(release: Release) -> usize {
    if release > Release::Android10 { 28 } else { 24 }
}

/// True if the rest of a parcel is the arguments of a method in a release.
fn fits(mut call: Reader<'_>, method: Method, release: Release) -> bool {
    let mut step = |argument: &Argument| match argument {
        Argument::Text => call.read_str().is_ok(),
        Argument::Word => call.read_i32().is_ok(),
        Argument::Object => call.seek(call.position() + object_size(release)).is_ok(),
    };
    arguments(method, release).iter().all(&mut step) && call.remaining() == 0
}

/// Words before the descriptor.
fn words(release: Release) -> usize {
    match release.generation() {
        Generation::Aidl => 1,
        Generation::Aidl2 => 2,
        Generation::Aidl3 | Generation::Aidl4 => 3,
    }
}

/// The releases that a call's header is of.
fn of_header(mut call: Reader<'_>) -> Vec<Release> {
    let has = |words: &usize| call.seek(4 * words).is_ok() && call.eat_str(DESCRIPTOR);
    let found = [3, 2, 1].into_iter().find(has);
    Release::ALL.into_iter().filter(|release| Some(words(*release)) == found).collect()
}

/// The releases in whose dialect a call can be, by its header, method number and arguments; oldest first. `call` is at the
/// first argument.
fn speakers(code: u32, call: Reader<'_>) -> Vec<Release> {
    let of_header = of_header(call);
    let means = |release: &Release| {
        Method::numbered(code, *release).is_some_and(|method| fits(call, method, *release))
    };
    let exactly: Vec<Release> = of_header.iter().copied().filter(means).collect();
    if exactly.is_empty() { of_header } else { exactly }
}

/// Way in which a manager takes a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A call in the manager's dialect.
    Own,
    /// A call of another dialect, which the header shows.
    As(Release),
    /// Refused: the caller speaks one of these.
    Foreign(Vec<Release>),
}

/// Way in which a manager of a release takes a call, which is at its first argument; `any`: it speaks every dialect.
pub(super) fn taken(code: u32, call: Reader<'_>, own: Release, any: bool) -> Taken {
    let speakers = speakers(code, call);
    match speakers.last() {
        _ if speakers.contains(&own) => Taken::Own,
        None => Taken::Own,
        Some(newest) if any && words(*newest) != words(own) => Taken::As(*newest),
        Some(_) => Taken::Foreign(speakers),
    }
}

/// Line of `gbinder.conf` for a release.
fn api_level(release: Release) -> u32 {
    match release {
        Release::Android8 => 27,
        Release::Android9 => 28,
        Release::Android10 => 29,
        Release::Android11 => 30,
        Release::Android12 => 31,
        Release::Android13 => 33,
        Release::Android14 => 34,
        Release::Android15 | Release::Android15Qpr => 35,
        Release::Android16 => 36,
    }
}

/// A caller of another dialect, in words.
pub(super) struct Stranger<'s> {
    pub(super) speaks: &'s [Release],
    pub(super) own: Release,
}

impl fmt::Display for Stranger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { speaks, own } = self;
        let names: Vec<&str> = speaks.iter().map(|release| release.name()).collect();
        let (names, newest) = (names.join(" or "), speaks.last().copied().unwrap_or_default());
        write!(
            f,
            "calls in the dialect of Android {names}, and this manager speaks that of {own}: its calls are \
             refused; start the manager with --release {newest}, or, for a program of libgbinder's, write ApiLevel = {} \
             below [General] in /etc/gbinder.conf",
            api_level(*own)
        )
    }
}

/// Longest name of an interface that is printed, in bytes.
const LONGEST: usize = 200;

/// The interface that a call is for instead of the service manager, in words; `call` is at its beginning.
pub(super) fn other_interface(call: Reader<'_>) -> String {
    let of_aidl = [3, 2, 1].into_iter().find_map(|words| {
        let mut call = call;
        call.seek(4 * words).ok()?;
        call.read_str().ok().filter(|name| {
            let is_plain = name.chars().all(|c| c.is_ascii_graphic());
            name.len() <= LONGEST && name.contains('.') && is_plain
        })
    });
    if let Some(name) = of_aidl {
        return format!("calls the interface {name}, and this is {DESCRIPTOR}");
    }
    let mut call = call;
    let start = [call.read_u32(), call.read_u32()].map(|word| word.unwrap_or_default().to_le_bytes());
    match start.as_flattened() == b"android." {
        true => "calls in HIDL, and this manager speaks AIDL: start another one with --hw, for /dev/hwbinder"
            .to_owned(),
        false => format!("calls without the header of {DESCRIPTOR}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binder::manager::dump_priority;
    use crate::binder::parcel::Parcel;

    /// A call as a client of a release makes it.
    fn call(method: Method, release: Release) -> (u32, Parcel) {
        let mut request = Parcel::for_release(release);
        request.write_header(DESCRIPTOR);
        for argument in arguments(method, release) {
            match argument {
                Argument::Text => request.write_str("alpha"),
                Argument::Word => request.write_i32(dump_priority::ALL),
                Argument::Object => request.write_nullable_binder(None),
            }
        }
        (method.code(release).expect("it has the method"), request)
    }

    fn takes(method: Method, release: Release, own: Release, any: bool) -> Taken {
        let (code, request) = call(method, release);
        let mut reader = request.reader();
        reader.read_header(DESCRIPTOR).expect("a header");
        taken(code, reader, own, any)
    }

    #[test]
    fn a_release_takes_its_own_calls() {
        for release in Release::ALL {
            for method in (1..20).filter_map(|code| Method::numbered(code, release)) {
                for any in [false, true] {
                    assert_eq!(takes(method, release, release, any), Taken::Own, "{release} {method:?}");
                }
            }
        }
    }

    #[test]
    fn a_header_shows_its_release() {
        use Release::{Android8, Android9, Android10, Android16};
        for (method, from, as_release) in [
            (Method::ListServices, Android8, Android8),
            (Method::ListServices, Android9, Android9),
            (Method::CheckService, Android8, Android9),
            (Method::AddService, Android8, Android8),
            (Method::AddService, Android10, Android10),
        ] {
            assert_eq!(takes(method, from, Android16, true), Taken::As(as_release), "{from} {method:?}");
            assert!(matches!(takes(method, from, Android16, false), Taken::Foreign(_)), "{from} {method:?}");
        }
        assert_eq!(takes(Method::CheckService, Android16, Android9, true), Taken::As(Android16));
    }

    #[test]
    fn arguments_show_a_number_that_means_another_method() {
        use Release::{Android11, Android14, Android15, Android15Qpr, Android16};
        let foreign = takes(Method::AddService, Android11, Android16, true);
        let Taken::Foreign(speaks) = foreign else { panic!("{foreign:?}") };
        assert_eq!((speaks.first(), speaks.last()), (Some(&Android11), Some(&Android15)));
        let text = Stranger { speaks: &speaks, own: Android16 }.to_string();
        assert!(text.contains("--release 15,") && text.contains("ApiLevel = 36 "), "{text}");
        for from in [Android11, Android14, Android15Qpr] {
            assert!(matches!(takes(Method::AddService, from, Android16, false), Taken::Foreign(_)), "{from}");
        }
    }

    #[test]
    fn another_interface_is_named() {
        let reported = |write: &dyn Fn(&mut Parcel)| {
            let mut request = Parcel::new();
            write(&mut request);
            other_interface(request.reader())
        };
        assert!(reported(&|request| request.write_header("a.IB")).contains("the interface a.IB"));
        let hidl = |request: &mut Parcel| {
            b"android.hidl\0\0\0\0".chunks(4).for_each(|word| {
                request.write_u32(u32::from_le_bytes(word.try_into().expect("4 bytes")));
            })
        };
        assert!(reported(&hidl).contains("--hw"));
        assert!(reported(&|request| request.write_i32(0)).contains("without the header"));
    }
}

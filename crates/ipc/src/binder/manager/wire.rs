//! Payloads of the service manager's calls, in each release's form.
//! Not here: method numbers (`codes`), the table of names (`registry`).
//! Facts: `IServiceManager.aidl`, `Service.aidl`, `ServiceWithMetadata.aidl`,
//! `ServiceDebugInfo.aidl`.

use crate::binder::manager::codes::LookupReply;
use crate::binder::manager::dump_priority;
use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::binder::stability::Stability;
use crate::release::Release;
use crate::runtime::target::Binder;
use crate::status_code::StatusCode;

/// The union's member that holds a service (the other holds an accessor, for services on another
/// machine).
const TAG_SERVICE: i32 = 0;

/// An object as a manager passes it on.
pub(crate) type Entry = (Binder, Stability);

impl LookupReply {
    /// Writes a lookup's answer into a reply that says "no exception" already.
    pub(crate) fn write(self, reply: &mut Parcel, entry: Option<&Entry>) {
        let (binder, stability) = match entry {
            Some((binder, stability)) => (Some(binder), *stability),
            None => (None, Stability::Undeclared),
        };
        match self {
            Self::Bare => {
                reply.clear();
                match binder {
                    Some(_) => reply.write_nullable_binder_as(binder, stability),
                    None => reply.write_i32(0),
                }
            }
            Self::Plain => reply.write_nullable_binder_as(binder, stability),
            Self::Union => {
                reply.write_bool(true);
                reply.write_i32(TAG_SERVICE);
                reply.write_bool(true);
                reply.write_sized(|service| {
                    service.write_nullable_binder_as(binder, stability);
                    // No service here is started on demand.
                    service.write_bool(false);
                });
            }
        }
    }

    /// Reads a lookup's answer after the status word, which `Bare` does not have.
    pub(crate) fn read(self, results: &mut Reader<'_>) -> Result<Option<Binder>, StatusCode> {
        match self {
            // A lone word: nothing was found.
            Self::Bare if results.remaining() <= 4 => Ok(None),
            Self::Bare | Self::Plain => results.read_nullable_binder(),
            Self::Union => {
                if !results.read_bool()? {
                    return Ok(None);
                }
                if results.read_i32()? != TAG_SERVICE {
                    return Err(StatusCode::INVALID_OPERATION);
                }
                let start = results.position();
                match results.read_i32()? {
                    0 => Ok(None),
                    1 => results.read_sized(Reader::read_nullable_binder),
                    // The first quarterly releases of 15 sent no metadata: an object's kind stands here.
                    _ => {
                        results.seek(start)?;
                        results.read_nullable_binder()
                    }
                }
            }
        }
    }
}

/// The arguments of `addService`.
pub(crate) struct Addition {
    pub(crate) name: String,
    pub(crate) entry: Option<Entry>,
    pub(crate) allow_isolated: bool,
    pub(crate) dump_priority: i32,
}

impl Addition {
    pub(crate) fn write(request: &mut Parcel, name: &str, binder: &Binder, isolated: bool, priority: i32) {
        request.write_str(name);
        request.write_binder(binder);
        request.write_bool(isolated);
        if request.release() >= Release::Android9 {
            request.write_i32(priority);
        }
    }

    pub(crate) fn read(arguments: &mut Reader<'_>) -> Result<Self, StatusCode> {
        let name = arguments.read_str()?;
        let (binder, stability) = arguments.read_nullable_binder_as()?;
        let allow_isolated = arguments.read_bool()?;
        let has_priority = arguments.release() >= Release::Android9;
        let dump_priority = if has_priority { arguments.read_i32()? } else { dump_priority::DEFAULT };
        let entry = binder.map(|binder| (binder, stability));
        Ok(Self { name, entry, allow_isolated, dump_priority })
    }
}

/// A registered service: one entry of `getServiceDebugInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceInfo {
    /// The service's name.
    pub name: String,
    /// The process that registered it; the manager's own for its own services.
    pub pid: i32,
}

impl ServiceInfo {
    /// Writes it as a nullable parcelable.
    pub(crate) fn write(&self, parcel: &mut Parcel) {
        parcel.write_bool(true);
        parcel.write_sized(|fields| {
            fields.write_str(&self.name);
            fields.write_i32(self.pid);
        });
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        if !reader.read_bool()? {
            return Err(StatusCode::UNEXPECTED_NULL);
        }
        reader.read_sized(|fields| Ok(Self { name: fields.read_str()?, pid: fields.read_i32()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_in_every_form() {
        for (found, want) in [
            (LookupReply::Bare, &[0][..]),
            (LookupReply::Plain, &[0, 0x7362_2a85, 0x13, 0, 0, 0, 0, 0]),
            (LookupReply::Union, &[0, 1, 0, 1, 36, 0x7362_2a85, 0x13, 0, 0, 0, 0, 0, 0]),
        ] {
            let mut reply = Parcel::new();
            reply.write_no_exception();
            found.write(&mut reply, None);
            let words: Vec<u8> = want.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            assert_eq!(reply.data(), words, "{found:?}");
            assert!(reply.offsets().is_empty(), "{found:?}");
            let mut reader = reply.reader();
            if found != LookupReply::Bare {
                reader.read_status().expect("no exception");
            }
            assert_eq!(found.read(&mut reader), Ok(None), "{found:?}");
        }
    }

    #[test]
    fn a_union_without_metadata_is_read_too() {
        let mut reply = Parcel::new();
        reply.write_bool(true);
        reply.write_i32(TAG_SERVICE);
        reply.write_nullable_binder(None);
        assert_eq!(LookupReply::Union.read(&mut reply.reader()), Ok(None));
        reply.clear();
        reply.write_bool(true);
        reply.write_i32(TAG_SERVICE);
        reply.write_i32(7);
        assert!(LookupReply::Union.read(&mut reply.reader()).is_err(), "neither form");
    }

    #[test]
    fn debug_info_has_a_size() {
        let info = ServiceInfo { name: "a".to_owned(), pid: 7 };
        let mut parcel = Parcel::new();
        info.write(&mut parcel);
        assert_eq!(parcel.data()[..8], [1, 0, 0, 0, 16, 0, 0, 0]);
        assert_eq!(ServiceInfo::read(&mut parcel.reader()), Ok(info));
    }
}

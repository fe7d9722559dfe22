//! `InstanceDebugInfo`, the entry of `debugDump` for one registered instance.
//! Facts: `IServiceManager.hal` of `android.hidl.manager@1.0` and HIDL's layout of structures.

use crate::hwbinder::parcel::HwParcel;
use crate::hwbinder::reader::Reader;
use crate::status_code::StatusCode;

/// One registered instance of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceInfo {
    /// The interface's full name.
    pub interface: String,
    /// The instance.
    pub instance: String,
    /// The process that registered it.
    pub pid: i32,
    /// Processes that use it, where the manager knows them.
    pub clients: Vec<i32>,
    /// 0 unknown, 1 64-bit, 2 32-bit.
    pub arch: i32,
}

/// Bytes of one, and where its fields stand.
const SIZE: usize = 64;
const INSTANCE: usize = 16;
const PID: usize = 32;
const CLIENTS: usize = 40;
const ARCH: usize = 56;

impl InstanceInfo {
    pub(crate) fn write_vec(infos: &[Self], parcel: &mut HwParcel<'_>) {
        let array = parcel.write_structs(infos.len(), SIZE);
        for (index, info) in infos.iter().enumerate() {
            let at = SIZE * index;
            parcel.set(array, at + PID, &info.pid.to_le_bytes());
            parcel.set(array, at + ARCH, &info.arch.to_le_bytes());
            parcel.embed_str(array, at, &info.interface);
            parcel.embed_str(array, at + INSTANCE, &info.instance);
            let clients = parcel.embed_structs(array, at + CLIENTS, info.clients.len(), size_of::<i32>());
            for (index, pid) in info.clients.iter().enumerate() {
                parcel.set(clients, size_of::<i32>() * index, &pid.to_le_bytes());
            }
        }
    }

    pub(crate) fn read_vec(reader: &mut Reader<'_>) -> Result<Vec<Self>, StatusCode> {
        let array = reader.read_structs(SIZE)?;
        let one = |index| {
            let at = SIZE * index;
            let interface = reader.embedded_str(array, at)?.to_owned();
            let instance = reader.embedded_str(array, at + INSTANCE)?.to_owned();
            let clients = reader.embedded_structs(array, at + CLIENTS, size_of::<i32>())?.bytes();
            let clients = clients.as_chunks().0.iter().map(|pid| i32::from_le_bytes(*pid)).collect();
            let (pid, arch) = (array.field(at + PID)?, array.field(at + ARCH)?);
            Ok(Self { interface, instance, pid, clients, arch })
        };
        (0..array.bytes().len() / SIZE).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let info = |name: &str, clients: &[i32]| InstanceInfo {
            interface: format!("a@1.0::{name}"),
            instance: "default".to_owned(),
            pid: 7,
            clients: clients.to_vec(),
            arch: 1,
        };
        for infos in [vec![], vec![info("IA", &[]), info("IB", &[1, -1])]] {
            let mut parcel = HwParcel::new();
            InstanceInfo::write_vec(&infos, &mut parcel);
            parcel.write_i32(42);
            parcel.seal();
            let mut reader = parcel.sealed_reader();
            assert_eq!(InstanceInfo::read_vec(&mut reader).as_deref(), Ok(&infos[..]));
            assert_eq!(reader.read_i32(), Ok(42));
        }
    }
}

//! Ioctls of a device: each request's argument, and the driver's method.
//! Facts: contract IOC-01 to IOC-09, OPN-11.

use std::io;
use std::sync::Arc;

use abi::codes::ioctl;
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef, Version,
};
use driver::connection::Connection;
use sys::errno::EINVAL;
use sys::own_memory::{self, ArgumentMemory};
use zerocopy::{FromBytes, IntoBytes};

use crate::file::OpenFile;
use crate::write_read;

/// The argument of an ioctl, at an address of the program's.
struct Argument<'m> {
    address: u64,
    memory: &'m ArgumentMemory,
}

impl Argument<'_> {
    fn read<T: FromBytes + IntoBytes + Default>(&self) -> io::Result<T> {
        let mut value = T::default();
        own_memory::read(self.address, value.as_mut_bytes())?;
        Ok(value)
    }

    /// An argument that is not there is `EINVAL` to some requests of the C driver (contract IOC-02).
    fn or_invalid<T>(result: io::Result<T>) -> io::Result<T> {
        result.map_err(|_| io::Error::from_raw_os_error(EINVAL))
    }

    fn write<T: IntoBytes + zerocopy::Immutable>(&self, value: &T) -> io::Result<()> {
        self.memory.write(self.address, value.as_bytes())
    }
}

/// Carries an ioctl of the kernel's driver out.
///
/// # Errors
/// Those of the kernel's driver: `EINVAL` for an unknown request (contract IOC-01), `EFAULT` or `EINVAL` for an argument that
/// is not there (IOC-02, as the C driver).
pub fn carry_out(
    file: &Arc<OpenFile>,
    memory: &ArgumentMemory,
    request: u32,
    address: u64,
) -> io::Result<()> {
    let argument = Argument { address, memory };
    if request == ioctl::VERSION && file.is_foreign() {
        return Argument::or_invalid(argument.write(&Version { protocol_version: abi::PROTOCOL_VERSION }));
    }
    let connection = file.connection()?;
    match request {
        ioctl::WRITE_READ => write_read::carry_out(connection, memory, address),
        ioctl::VERSION => {
            Argument::or_invalid(argument.write(&Version { protocol_version: connection.version()? }))
        }
        ioctl::SET_MAX_THREADS => connection.set_max_threads(Argument::or_invalid(argument.read())?),
        ioctl::SET_CONTEXT_MGR => connection.become_context_manager(None),
        ioctl::SET_CONTEXT_MGR_EXT => {
            let node = Argument::or_invalid(argument.read::<FlatBinderObject>())?;
            connection.become_context_manager(Some(node))
        }
        ioctl::THREAD_EXIT => {
            file.forget_descriptor();
            connection.thread_exit()
        }
        ioctl::ENABLE_ONEWAY_SPAM_DETECTION => {
            connection.enable_oneway_spam_detection(argument.read::<u32>()? != 0)
        }
        ioctl::GET_EXTENDED_ERROR => {
            // An argument that cannot be stored into leaves the record in place.
            argument.read::<ExtendedError>()?;
            argument.write(&connection.extended_error()?)
        }
        ioctl::GET_NODE_DEBUG_INFO => {
            let above = argument.read::<NodeDebugInfo>()?.ptr;
            argument.write(&connection.node_debug_info(above)?)
        }
        ioctl::GET_NODE_INFO_FOR_REF => {
            let info = argument.read::<NodeInfoForRef>()?;
            argument.write(&connection.node_info_for_ref(info)?)
        }
        ioctl::FREEZE => connection.freeze(argument.read::<FreezeInfo>()?),
        ioctl::GET_FROZEN_INFO => {
            let pid = argument.read::<FrozenStatusInfo>()?.pid;
            argument.write(&connection.frozen_info(pid)?)
        }
        _ => Err(io::Error::from_raw_os_error(EINVAL)),
    }
}

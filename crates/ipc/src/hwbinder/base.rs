//! `android.hidl.base@1.0::IBase`, the interface of every HIDL object: codes, payloads and calls.
//! Not here: the interface's own methods (`object`).
//! Facts: libhwbinder's `IBinder.h`, libhidl's `IBase.hal`.

use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::parcel::{HwParcel, NativeHandle};
use crate::hwbinder::reader::Reader;
use crate::incoming::own_pid;
use crate::status::CallError;
use crate::status_code::StatusCode;

/// The interface's name; its calls carry no other.
pub const DESCRIPTOR: &str = "android.hidl.base@1.0::IBase";

/// The largest number that an interface's own method can have.
pub const LAST_METHOD: u32 = 0x0eff_ffff;

/// `ping()`
pub const PING: u32 = u32::from_be_bytes(*b"\x0fPNG");
/// `interfaceChain() generates (vec<string>)`
pub const INTERFACE_CHAIN: u32 = u32::from_be_bytes(*b"\x0fCHN");
/// `interfaceDescriptor() generates (string)`
pub const INTERFACE_DESCRIPTOR: u32 = u32::from_be_bytes(*b"\x0fDSC");
/// `oneway notifySyspropsChanged()`
pub const SYSPROPS_CHANGED: u32 = u32::from_be_bytes(*b"\x0fSYS");
/// `oneway setHALInstrumentation()`
pub const SET_INSTRUMENTATION: u32 = u32::from_be_bytes(*b"\x0fINT");
/// `getDebugInfo() generates (DebugInfo)`
pub const DEBUG_INFO: u32 = u32::from_be_bytes(*b"\x0fREF");
/// `debug(handle, vec<string>)`
pub const DEBUG: u32 = u32::from_be_bytes(*b"\x0fDBG");
/// `getHashChain() generates (vec<uint8_t[32]>)`
pub const HASH_CHAIN: u32 = u32::from_be_bytes(*b"\x0fHSH");

/// Bytes of an interface's hash.
pub const HASH: usize = 32;

/// `DebugInfo`: which process an object lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugInfo {
    /// Its process id, as that process sees itself.
    pub pid: i32,
    /// A number that tells the object from others of the process.
    pub ptr: u64,
    /// 0 unknown, 1 64-bit, 2 32-bit.
    pub arch: i32,
}

/// Bytes of a `DebugInfo`, and where its fields stand.
const INFO: usize = 24;
const INFO_PTR: usize = 8;
const INFO_ARCH: usize = 16;

impl DebugInfo {
    /// The `DebugInfo` of an object of this process.
    pub(crate) fn of_this_process(ptr: u64) -> Self {
        let arch = if cfg!(target_pointer_width = "64") { 1 } else { 2 };
        Self { pid: own_pid(), ptr, arch }
    }

    pub(crate) fn write(self, parcel: &mut HwParcel<'_>) {
        let part = parcel.write_struct(&[0; INFO]);
        parcel.set(part, 0, &self.pid.to_le_bytes());
        parcel.set(part, INFO_PTR, &self.ptr.to_le_bytes());
        parcel.set(part, INFO_ARCH, &self.arch.to_le_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        let seen = reader.read_struct(INFO)?;
        Ok(Self { pid: seen.field(0)?, ptr: seen.field(INFO_PTR)?, arch: seen.field(INFO_ARCH)? })
    }
}

impl HwBinder {
    /// Asks whether the object is there.
    ///
    /// # Errors
    /// It is not; see [`CallError`].
    pub fn ping(&self) -> Result<(), CallError> {
        self.call(PING, self.request(DESCRIPTOR)).map(drop)
    }

    /// The object's interfaces, most derived first; the last is [`DESCRIPTOR`].
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn interface_chain(&self) -> Result<Vec<String>, CallError> {
        let reply = self.call(INTERFACE_CHAIN, self.request(DESCRIPTOR))?;
        let chain = reply.reader().read_str_vec()?;
        Ok(chain.into_iter().map(str::to_owned).collect())
    }

    /// Whether the object has an interface: what a cast asks before it trusts.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn is_a(&self, descriptor: &str) -> Result<bool, CallError> {
        let reply = self.call(INTERFACE_CHAIN, self.request(DESCRIPTOR))?;
        Ok(reply.reader().read_str_vec()?.contains(&descriptor))
    }

    /// The name of the object's most derived interface.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn descriptor(&self) -> Result<String, CallError> {
        let reply = self.call(INTERFACE_DESCRIPTOR, self.request(DESCRIPTOR))?;
        Ok(reply.reader().read_str()?.to_owned())
    }

    /// Where the object lives.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn debug_info(&self) -> Result<DebugInfo, CallError> {
        Ok(DebugInfo::read(&mut self.call(DEBUG_INFO, self.request(DESCRIPTOR))?.reader())?)
    }

    /// Hashes of the object's interfaces as released, in the order of the chain; all zeros for one
    /// that never was.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn hash_chain(&self) -> Result<Vec<[u8; HASH]>, CallError> {
        let reply = self.call(HASH_CHAIN, self.request(DESCRIPTOR))?;
        Ok(reply.reader().read_vec::<[u8; HASH]>()?.to_vec())
    }

    /// Has the object describe its state into the handle's first descriptor.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn debug(&self, to: NativeHandle, options: &[&str]) -> Result<(), CallError> {
        let mut request = self.request(DESCRIPTOR);
        request.write_handle(Some(to));
        request.write_str_vec(options);
        self.call(DEBUG, request).map(drop)
    }
}

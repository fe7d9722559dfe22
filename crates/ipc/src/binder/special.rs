//! Room: the codes that every AIDL object answers, whatever its interface. They carry no header and
//! their replies no status word.
//! Facts: Android's `IBinder.h`, releases 8 to 16.

const fn code(name: [u8; 4]) -> u32 {
    u32::from_be_bytes(name)
}

/// The largest code of an interface's own method.
pub const LAST_METHOD: u32 = 0x00ff_ffff;
/// Are you there? Empty both ways.
pub const PING: u32 = code(*b"_PNG");
/// What is your interface? Answered with the bare descriptor.
pub const INTERFACE: u32 = code(*b"_NTF");
/// Describe yourself to this descriptor.
pub const DUMP: u32 = code(*b"_DMP");
/// System properties changed.
pub const SYSPROPS: u32 = code(*b"_SPR");
/// Your extension object (Android 11).
pub const EXTENSION: u32 = code(*b"_EXT");
/// Your process id (Android 11).
pub const DEBUG_PID: u32 = code(*b"_PID");

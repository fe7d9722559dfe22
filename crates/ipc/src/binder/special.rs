//! Codes that every AIDL object answers. Requests have no header, replies no status word.
//! Facts: Android's `IBinder.h`, releases 8 to 16.

const fn code(name: [u8; 4]) -> u32 {
    u32::from_be_bytes(name)
}

/// The largest code of an interface's own method.
pub const LAST_METHOD: u32 = 0x00ff_ffff;
/// Ping; request and reply are empty.
pub const PING: u32 = code(*b"_PNG");
/// Asks for the interface descriptor.
pub const INTERFACE: u32 = code(*b"_NTF");
/// Writes a dump to a file descriptor.
pub const DUMP: u32 = code(*b"_DMP");
/// Runs a command that a person typed (Android 7).
pub const SHELL_COMMAND: u32 = code(*b"_CMD");
/// Notifies of changed system properties.
pub const SYSPROPS: u32 = code(*b"_SPR");
/// Asks for the extension object (Android 11).
pub const EXTENSION: u32 = code(*b"_EXT");
/// Asks for the process id (Android 11).
pub const DEBUG_PID: u32 = code(*b"_PID");

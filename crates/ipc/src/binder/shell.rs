//! Commands that a person types for a service: Android's `cmd SERVICE WORD...`.
//! Facts: Android's `IBinder::shellCommand` and `BBinder::onTransact`: three descriptors, the words, a callback that opens files for
//! the service (not used here), and a receiver of the exit status.

use std::fs::File;

use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::runtime::target::Binder;
use crate::status_code::StatusCode;

/// The interface of who gets the exit status.
const RECEIVER: &str = "com.android.internal.os.IResultReceiver";
const SEND: u32 = 1;

/// A command for a service, and the files of who typed it.
#[derive(Debug)]
pub struct ShellCommand {
    /// Standard input.
    pub input: File,
    /// Standard output.
    pub output: File,
    /// Standard error.
    pub error: File,
    /// The words after the service's name.
    pub arguments: Vec<String>,
}

impl ShellCommand {
    /// Reads it, and who gets its exit status.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<(Self, Option<Binder>), StatusCode> {
        let mut file = || reader.read_fd().map(File::from);
        let (input, output, error) = (file()?, file()?, file()?);
        let arguments = reader.read_str_vec()?;
        let _callback = reader.read_nullable_binder()?;
        let receiver = reader.read_nullable_binder()?;
        Ok((Self { input, output, error, arguments }, receiver))
    }

    /// Appends it to a request.
    ///
    /// # Errors
    /// `NO_MEMORY`: no descriptor is free.
    pub fn write(&self, receiver: Option<&Binder>, request: &mut Parcel) -> Result<(), StatusCode> {
        for file in [&self.input, &self.output, &self.error] {
            request.write_fd(file.try_clone().map_err(|_| StatusCode::NO_MEMORY)?);
        }
        request.write_str_slice(&self.arguments);
        request.write_nullable_binder(None);
        request.write_nullable_binder(receiver);
        Ok(())
    }
}

/// Reports an exit status.
pub(crate) fn report(receiver: &Binder, status: i32) {
    let mut request = receiver.request(RECEIVER);
    request.write_i32(status);
    // No bundle of further results.
    request.write_i32(0);
    // A receiver that is gone needs no status.
    let _ = receiver.oneway(SEND, request);
}

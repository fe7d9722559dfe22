//! The word before the results of a HIDL call, "no exception", or the exception in their place.
//! Facts: libhidl's `HidlBinderSupport.cpp` (`writeToParcel`, `readFromParcel`): only a message follows the
//! kind of exception.

use crate::hwbinder::parcel::HwParcel;
use crate::hwbinder::reader::Reader;
use crate::status::{Exception, ExceptionKind, Status};

impl HwParcel<'_> {
    /// "No exception": results follow.
    #[inline]
    pub fn write_no_exception(&mut self) {
        self.write_i32(0);
    }

    /// An exception; nothing follows. HIDL has no service-specific numbers: theirs is left out.
    pub fn write_exception(&mut self, exception: &Exception) {
        self.write_i32(exception.kind.0);
        self.write_string16(exception.message.as_deref().unwrap_or_default());
    }
}

impl Reader<'_> {
    /// Steps over "no exception".
    ///
    /// # Errors
    /// The exception that stands there instead; `NOT_ENOUGH_DATA` if nothing does.
    #[inline]
    pub fn read_status(&mut self) -> Result<(), Status> {
        match self.read_i32()? {
            0 => Ok(()),
            kind => Err(self.read_exception(ExceptionKind(kind))),
        }
    }

    #[cold]
    fn read_exception(&mut self, kind: ExceptionKind) -> Status {
        match self.read_string16() {
            Ok(message) => {
                let message = Some(message).filter(|message| !message.is_empty());
                Status::Exception(Box::new(Exception { kind, message, code: 0 }))
            }
            Err(_) if self.remaining() == 0 => {
                Status::Exception(Box::new(Exception { kind, message: None, code: 0 }))
            }
            Err(code) => Status::Code(code),
        }
    }
}

"""The interface by python3-gbinder on /dev/hwbinder, as HIDL has it: its texts lie in buffers beside the arguments, which refer to each other.

libgbinder keeps no copy of what it is to send, and python3-gbinder no reference: what is appended here is bytes that live on."""

import echo

DEVICE = "/dev/hwbinder"
INTERFACE = "binderperf.test@1.0::IEcho"
# In place of AIDL's arrays of bytes and numbers.
TEXTS = echo.BYTES

"""The interface of the programs in this folder, by python3-gbinder: an echo, on /dev/binder. Replies begin with AIDL's status word, 0."""

import ctypes
import time

import gbinder

DEVICE = "/dev/binder"
INTERFACE = "binderperf.test.IEcho"
# Methods, numbered as AIDL numbers them.
NUMBER, TEXT, BYTES, NUMBERS, WRITE, WATCH, DEATHS, PID, ADD, SUM, LISTEN = range(1, 12)
# An object that is told of events, and its only method.
LISTENER = "binderperf.test.IListener"
EVENT = 1
EVENTS = [3, 1, 2]
LINE = b"written by the service\n"
# How long anything may take, in seconds, on an emulated machine too.
PATIENCE = 60

_glib = ctypes.CDLL("libglib-2.0.so.0")


def serve():
    """Runs GLib's main loop, where libgbinder calls handlers, for ever."""
    while True:
        _glib.g_main_context_iteration(None, True)


def serve_until(done):
    """Runs the main loop until `done()` is true; false if it never was."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            return False
        if not _glib.g_main_context_iteration(None, False):
            time.sleep(0.005)
    return True


def bytes_of(reader):
    """An array of bytes."""
    return bytes(memoryview(reader.read_byte_array()))


def append_bytes(writer, value):
    """Appends such an array, as words: python3-gbinder's own function sends the head of the Python object and not what it contains."""
    writer.append_int32(len(value))
    for at in range(0, len(value), 4):
        writer.append_int32(int.from_bytes(value[at : at + 4], "little"))


def numbers_of(reader):
    """An array of 32-bit numbers, which python3-gbinder does not know: its length, then each."""
    return [reader.read_int32()[1] for _ in range(reader.read_int32()[1])]


def append_number(writer, number):
    """Appends a 32-bit number, which python3-gbinder takes without a sign."""
    writer.append_int32(number & 0xFFFFFFFF)


def append_numbers(writer, numbers):
    """Appends such an array."""
    for number in [len(numbers), *numbers]:
        append_number(writer, number)


def append_descriptor(writer, descriptor):
    """Appends AIDL's ParcelFileDescriptor: it is not null, and no second descriptor reports on it."""
    writer.append_int32(1)
    writer.append_int32(0)
    writer.append_fd(descriptor)


def descriptor_of(reader):
    """Such a descriptor, which is closed with the call."""
    reader.read_int32()
    reader.read_int32()
    return reader.read_fd()

"""A client by python3-gbinder of /dev/binder: echo_client.py NAME."""

import os
import sys

import echo
from steps import Steps, ensure


class Client(Steps):
    def numbers(self):
        ensure(self.call(echo.NUMBER, lambda to: echo.append_number(to, -7)).read_int32() == (True, -7), "another number")
        sent = [1, -2, 2**31 - 1]
        ensure(echo.numbers_of(self.call(echo.NUMBERS, lambda to: echo.append_numbers(to, sent))) == sent, "other numbers")

    def text(self):
        sent = "Grüße, 世界"
        ensure(self.call(echo.TEXT, lambda to: to.append_string16(sent)).read_string16() == sent, "another text")

    def bytes(self):
        for size in (1, 4, 1000, 65536, 400000):
            sent = bytes(at * 7 % 256 for at in range(size))
            came = echo.bytes_of(self.call(echo.BYTES, lambda to: echo.append_bytes(to, sent)))
            ensure(came == sent, f"other bytes: {len(came)} for {size}")

    def descriptor(self):
        end, into = os.pipe()
        self.call(echo.WRITE, lambda to: echo.append_descriptor(to, into))
        os.close(into)
        with open(end, "rb") as pipe:
            ensure(pipe.readline() == echo.LINE, "something else was written")


Client(echo.DEVICE, echo.INTERFACE, sys.argv[1]).obey()

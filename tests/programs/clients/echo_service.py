"""A service by python3-gbinder on /dev/binder: echo_service.py NAME."""

import os
import sys

import echo
from serve import Service


class Echo(Service):
    def echo(self, code, arguments, result):
        if code == echo.TEXT:
            result.append_string16(arguments.read_string16())
        elif code == echo.BYTES:
            echo.append_bytes(result, echo.bytes_of(arguments))
        elif code == echo.NUMBERS:
            echo.append_numbers(result, echo.numbers_of(arguments))
        elif code == echo.WRITE:
            os.write(echo.descriptor_of(arguments), echo.LINE)


service = Echo(echo.DEVICE, echo.INTERFACE, sys.argv[1])
echo.serve()

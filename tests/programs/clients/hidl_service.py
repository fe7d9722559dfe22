"""A service by python3-gbinder on /dev/hwbinder: hidl_service.py INSTANCE."""

import sys

import echo
import hidl
from serve import Service


class Echo(Service):
    def echo(self, code, arguments, result):
        if code == echo.TEXT:
            self.kept = arguments.read_hidl_string().encode()
            result.append_hidl_string(self.kept)
        elif code == hidl.TEXTS:
            self.kept = [text.encode() for text in arguments.read_hidl_string_vec()]
            result.append_hidl_string_vec(self.kept)


service = Echo(hidl.DEVICE, hidl.INTERFACE, sys.argv[1])
echo.serve()

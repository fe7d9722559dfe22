"""A client by python3-gbinder of /dev/hwbinder: hidl_client.py INSTANCE."""

import sys

import echo
import hidl
from steps import Steps, ensure


class Client(Steps):
    def numbers(self):
        ensure(self.call(echo.NUMBER, lambda to: echo.append_number(to, -7)).read_int32() == (True, -7), "another number")

    def text(self):
        sent = "Grüße, 世界".encode()
        came = self.call(echo.TEXT, lambda to: to.append_hidl_string(sent)).read_hidl_string()
        ensure(came.encode() == sent, f"another text: {came}")

    def texts(self):
        for count in (0, 1, 3, 200):
            sent = [b"x" * at for at in range(count)]
            came = self.call(hidl.TEXTS, lambda to: to.append_hidl_string_vec(sent)).read_hidl_string_vec()
            ensure([text.encode() for text in came] == sent, f"other texts: {len(came)} for {count}")


Client(hidl.DEVICE, hidl.INTERFACE, f"{hidl.INTERFACE}/{sys.argv[1]}").obey()

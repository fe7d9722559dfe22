"""A client by python3-gbinder: echo_client.py NAME. Each line of its standard input is a step; it answers with lines "= RESULT" and with
"done" or "error: WHY"."""

import os
import sys

import echo


def ensure(holds, what):
    if not holds:
        raise RuntimeError(what)


class Steps:
    def __init__(self, name):
        self.name = name
        self.manager = echo.gbinder.ServiceManager(echo.DEVICE)
        self.remote = None
        self.died_already = False
        # Objects that the service watches live as long as this process.
        self.objects = []

    def call(self, code, arguments=lambda writer: None):
        """Calls a method; its results' reader, behind the status."""
        request = self.client.new_request()
        arguments(request.init_writer())
        # Kept until the next call: python3-gbinder's reader does not keep what it reads.
        self.reply, status = self.client.transact_sync_reply(code, request)
        ensure(status == 0, f"method {code}: status {status}")
        reader = self.reply.init_reader()
        ensure(reader.read_int32() == (True, 0), f"method {code}: an exception")
        return reader

    def find(self):
        def found():
            self.remote, _ = self.manager.get_service_sync(self.name)
            return self.remote is not None and not self.remote.is_dead()

        ensure(echo.serve_until(found), "no such service")
        self.client = echo.gbinder.Client(self.remote, echo.INTERFACE)
        self.remote.add_death_handler(self.told)

    def told(self):
        self.died_already = True

    def list(self):
        print("=", *sorted(self.manager.list_sync()), flush=True)

    def numbers(self):
        ensure(self.call(echo.NUMBER, lambda to: echo.append_number(to, -7)).read_int32() == (True, -7), "another number")
        sent = [1, -2, 2**31 - 1]
        ensure(echo.numbers_of(self.call(echo.NUMBERS, lambda to: echo.append_numbers(to, sent))) == sent, "other numbers")

    def text(self):
        sent = "Grüße, 世界"
        ensure(self.call(echo.TEXT, lambda to: to.append_string16(sent)).read_string16() == sent, "another text")

    def bytes(self):
        for size in (1, 4, 1000, 65536):
            sent = bytes(at * 7 % 256 for at in range(size))
            came = echo.bytes_of(self.call(echo.BYTES, lambda to: echo.append_bytes(to, sent)))
            ensure(came == sent, f"other bytes: {len(came)} for {size}")

    def descriptor(self):
        end, into = os.pipe()
        self.call(echo.WRITE, lambda to: echo.append_descriptor(to, into))
        os.close(into)
        with open(end, "rb") as pipe:
            ensure(pipe.readline() == echo.LINE, "something else was written")

    def watch(self):
        held = self.manager.new_local_object("binderperf.test.IHeld", lambda request, code, flags: (held.new_reply(), 0))
        held.set_stability(echo.gbinder.STABILITY_VINTF)
        self.objects.append(held)
        self.call(echo.WATCH, lambda to: to.append_local_object(held))

    def deaths(self):
        print("=", self.call(echo.DEATHS).read_int32()[1], flush=True)

    def pid(self):
        print("=", self.call(echo.PID).read_int32()[1], flush=True)

    def died(self):
        ensure(echo.serve_until(lambda: self.died_already), "not told of the death")
        self.died_already = False
        ensure(self.remote.is_dead(), "not dead")


steps = Steps(sys.argv[1])
for line in sys.stdin:
    try:
        getattr(steps, line.strip())()
        print("done", flush=True)
    except Exception as error:
        print("error:", error, flush=True)

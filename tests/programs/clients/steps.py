"""What clients by python3-gbinder have in common. Each line of their standard input is a step; they answer with lines "= RESULT" and with "done"
or "error: WHY"."""

import sys

import echo


def ensure(holds, what):
    if not holds:
        raise RuntimeError(what)


def say(line):
    """Writes a line at once: libgbinder's threads write there, too, and print() writes word for word."""
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{line}\n".encode())
    sys.stdout.buffer.flush()


class Steps:
    def __init__(self, device, interface, name):
        self.name = name
        self.interface = interface
        self.manager = echo.gbinder.ServiceManager(device)
        self.remote = None
        self.died_already = False
        # All objects live as long as this process: python3-gbinder keeps none, and a handler of one that is gone ends the process.
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
        self.client = echo.gbinder.Client(self.remote, self.interface)
        self.remote.add_death_handler(self.told)
        self.objects.append(self.remote)

    def told(self):
        self.died_already = True

    def watch(self):
        held = self.manager.new_local_object(self.interface, lambda request, code, flags: (held.new_reply(), 0))
        held.set_stability(echo.gbinder.STABILITY_VINTF)
        self.objects.append(held)
        self.call(echo.WATCH, lambda to: to.append_local_object(held))

    def oneway(self):
        before = self.call(echo.SUM).read_int32()[1]
        for number in range(1, 101):
            request = self.client.new_request()
            echo.append_number(request, number)
            ensure(self.client.transact_sync_oneway(echo.ADD, request) == 0, "a oneway call failed")
        # The next call may overtake them.
        ensure(echo.serve_until(lambda: self.call(echo.SUM).read_int32()[1] == before + 5050), "not all were added")

    def events(self):
        told = []

        def transact(request, code, _flags):
            told.append(request.init_reader().read_int32()[1])
            return listener.new_reply(), 0

        listener = self.manager.new_local_object(echo.LISTENER, transact)
        listener.set_stability(echo.gbinder.STABILITY_VINTF)
        self.objects.append(listener)
        self.call(echo.LISTEN, lambda to: to.append_local_object(listener))
        ensure(echo.serve_until(lambda: len(told) == len(echo.EVENTS)) and told == echo.EVENTS, f"other events: {told}")

    def many(self):
        for number in range(200):
            came = self.call(echo.NUMBER, lambda to: echo.append_number(to, number)).read_int32()
            ensure(came == (True, number), "another number")

    def deaths(self):
        say(f"= {self.call(echo.DEATHS).read_int32()[1]}")

    def pid(self):
        say(f"= {self.call(echo.PID).read_int32()[1]}")

    def died(self):
        ensure(echo.serve_until(lambda: self.died_already), "not told of the death")
        self.died_already = False
        ensure(self.remote.is_dead(), "not dead")

    def obey(self):
        """Does the steps that stand on the standard input."""
        for line in sys.stdin:
            try:
                getattr(self, line.strip())()
                say("done")
            except Exception as error:
                say(f"error: {error}")

"""A service by python3-gbinder: echo_service.py NAME. It registers itself with each service manager that comes, and serves until it is killed."""

import os
import sys

import echo


class Echo:
    def __init__(self, manager, name):
        self.manager = manager
        self.name = name
        self.watched = []
        self.deaths = 0
        self.object = manager.new_local_object(echo.INTERFACE, self.transact)
        self.object.set_stability(echo.gbinder.STABILITY_VINTF)
        manager.add_presence_handler(self.register)
        self.register()

    def register(self):
        if self.manager.is_present() and self.manager.add_service_sync(self.name, self.object) == 0:
            print("registered", flush=True)

    def died(self):
        self.deaths += 1

    def transact(self, request, code, _flags):
        arguments = request.init_reader()
        reply = self.object.new_reply()
        result = reply.init_writer()
        result.append_int32(0)
        if code == echo.NUMBER:
            echo.append_number(result, arguments.read_int32()[1])
        elif code == echo.TEXT:
            result.append_string16(arguments.read_string16())
        elif code == echo.BYTES:
            echo.append_bytes(result, echo.bytes_of(arguments))
        elif code == echo.NUMBERS:
            echo.append_numbers(result, echo.numbers_of(arguments))
        elif code == echo.WRITE:
            os.write(echo.descriptor_of(arguments), echo.LINE)
        elif code == echo.WATCH:
            who = arguments.read_object()
            who.add_death_handler(self.died)
            self.watched.append(who)
        elif code == echo.DEATHS:
            result.append_int32(self.deaths)
        elif code == echo.PID:
            result.append_int32(os.getpid())
        return reply, 0


manager = echo.gbinder.ServiceManager(echo.DEVICE)
service = Echo(manager, sys.argv[1])
while True:
    echo.serve(1000)

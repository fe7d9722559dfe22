"""What services by python3-gbinder have in common: they register themselves with each service manager that comes, and serve until they are
killed."""

import os

import echo


class Service:
    def __init__(self, device, interface, name):
        self.manager = echo.gbinder.ServiceManager(device)
        self.name = name
        self.watched = []
        self.deaths = 0
        self.sum = 0
        self.object = self.manager.new_local_object(interface, self.transact)
        self.object.set_stability(echo.gbinder.STABILITY_VINTF)
        self.manager.add_presence_handler(self.register)
        self.register()

    def register(self):
        if self.manager.is_present() and self.manager.add_service_sync(self.name, self.object) == 0:
            print("registered", flush=True)

    def died(self):
        self.deaths += 1

    def tell(self, listener):
        client = echo.gbinder.Client(listener, echo.LISTENER)
        for event in echo.EVENTS:
            request = client.new_request()
            echo.append_number(request, event)
            client.transact_sync_oneway(echo.EVENT, request)

    def transact(self, request, code, _flags):
        arguments = request.init_reader()
        reply = self.object.new_reply()
        result = reply.init_writer()
        result.append_int32(0)
        if code == echo.NUMBER:
            echo.append_number(result, arguments.read_int32()[1])
        elif code == echo.WATCH:
            who = arguments.read_object()
            who.add_death_handler(self.died)
            self.watched.append(who)
        elif code == echo.DEATHS:
            result.append_int32(self.deaths)
        elif code == echo.ADD:
            self.sum += arguments.read_int32()[1]
        elif code == echo.SUM:
            echo.append_number(result, self.sum)
        elif code == echo.LISTEN:
            self.tell(arguments.read_object())
        elif code == echo.PID:
            result.append_int32(os.getpid())
        else:
            self.echo(code, arguments, result)
        return reply, 0

"""What is tried with a service and a client: registration, calls, deaths and restarts."""

import os
import signal
import time

from programs import PATIENCE, Program
from verdict import attempt


class Pair:
    """A service and a client, and what is tried with them."""

    def __init__(self, title, manage, service, client, calls=("numbers", "text", "bytes", "descriptor", "oneway", "events")):
        self.title = title
        self.words = service, client
        self.manage = manage
        self.manager = self.client = self.service = None
        self.steps = calls

    def begin(self):
        self.service = Program(self.words[0])
        self.service.wait_for("registered")

    def registration(self):
        self.manager = self.manage()
        self.client = Program(self.words[1])
        # The client asks before the service is there.
        self.client.tell("find")
        self.begin()
        self.client.done()

    def calls(self):
        for word in self.steps:
            self.client.step(word)

    def crowd(self):
        clients = [self.client] + [Program(self.words[1]) for _ in range(3)]
        for client in clients:
            client.tell("find")
        for client in clients:
            client.done()
            client.tell("many")
        for client in clients:
            client.done()
        for client in clients[1:]:
            client.end()

    def death(self):
        # The program itself, and not what supervises it.
        os.kill(int(self.client.step("pid")), signal.SIGKILL)
        self.client.step("died")
        self.begin()
        self.client.step("find")
        self.client.step("numbers")

    def watched(self):
        self.client.step("watch")
        # Its input ends, and so does it.
        self.client.end()
        self.client = Program(self.words[1])
        self.client.step("find")
        end = time.monotonic() + PATIENCE
        while self.client.step("deaths") != "1":
            if time.monotonic() > end:
                raise RuntimeError("the service was not told")
            time.sleep(0.1)

    def restart(self):
        self.manager.kill()
        self.client.step("numbers")
        self.manager = self.manage()
        self.client.step("find")
        self.client.step("numbers")

    def run(self):
        for what, work in (
            ("registration", self.registration),
            (f"calls: {', '.join(self.steps)}", self.calls),
            ("four clients at once", self.crowd),
            ("the service's death, and its return", self.death),
            ("the client's death", self.watched),
            ("another service manager", self.restart),
        ):
            # Without a service there is nothing to try.
            if not attempt(f"{self.title}: {what}", work) and work == self.registration:
                break
        for program in self.client, self.service, self.manager:
            if program:
                program.kill()

"""Tools of libgbinder and rsbinder on our service managers and on services, and our own tools on a foreign service."""

import contextlib

from programs import HERE, HwManager, Manager, Program, said
from verdict import expect

HIDL_NAME = "binderperf.test@1.0::IEcho/default"


@contextlib.contextmanager
def running(program):
    """A program that runs meanwhile."""
    try:
        yield program
    finally:
        program.kill()


@contextlib.contextmanager
def served(words):
    """A service that is registered meanwhile."""
    with running(Program(words)) as service:
        service.wait_for("registered")
        yield service


def libgbinder(way, api, release):
    """libgbinder's list and ping on our service manager."""
    tool = lambda name, *words: said(way.foreign(name, "-d", "/dev/binder", *words))
    title = f"{way.name}, API level {api}"
    with running(Manager(way, release)):
        expect(f"{title}: binder-list", lambda: tool("binder-list").split(), ["manager"])
        expect(f"{title}: binder-ping", lambda: tool("binder-ping", "manager").split("\n")[0], "OK")


def calls(way, release):
    """libgbinder's tool that calls any method, on a service of ours."""
    call = lambda *words: said(way.foreign("binder-call", "-d", "/dev/binder", "-a", "test.echo", *words)).strip()
    with running(Manager(way, release)), served(way.own_echo(release, "service", "test.echo")):
        expect(f"{way.name}: binder-call, a number", lambda: call("1", "7", "reply", "i32", "i32"), "0 7")
        expect(f"{way.name}: binder-call, a text", lambda: call("2", '"hello"u', "reply", "i32", "s16"), '0 "hello"U')
        expect(f"{way.name}: binder-call, a vector", lambda: call("4", "[ 1 2 3 ]", "reply", "i32", "[ i32 ]"), "0 [ 1 2 3 ]")


def hidl(way):
    """libgbinder's tools on our service manager of HIDL, and on a service of libgbinder's."""
    tool = lambda name, *words: said(way.foreign(name, "-d", "/dev/hwbinder", *words)).strip()
    call = lambda *words: tool("binder-call", HIDL_NAME, *words)
    title = f"{way.name}, HIDL"
    with running(HwManager(way)), served(way.foreign("python3", f"{HERE}/hidl_service.py", "default")):
        managers = [f"android.hidl.manager@1.{minor}::IServiceManager/default" for minor in range(3)]
        names = ["android.hidl.base@1.0::IBase/default", *managers, HIDL_NAME]
        expect(f"{title}: binder-list", lambda: tool("binder-list").split(), names)
        expect(f"{title}: binder-ping", lambda: tool("binder-ping", HIDL_NAME).split("\n")[0], "OK")
        expect(f"{title}: binder-call, a text", lambda: call("2", '"hello"h', "reply", "i32", "hstr"), '0 "hello"H')
        texts = lambda: call("3", '[ "a"h "bcd"h ]', "reply", "i32", "[ hstr ]")
        expect(f"{title}: binder-call, a vector of texts", texts, '0 [ "a"h "bcd"H ]')


def rsbinder(way):
    """rsbinder's tools on our service manager. By `dump` the manager writes into a descriptor that the client sends."""
    tool = lambda *words: said(way.foreign(f"{HERE}/rsb_service", *words, raw=True)).strip()
    with running(Manager(way, "16")) as manager:
        expect(f"{way.name}: rsb_service list", lambda: tool("list").count("manager"), 1)
        checked = "manager: registered (android.os.IServiceManager)"
        expect(f"{way.name}: rsb_service check", lambda: tool("check", "manager"), checked)
        expect(f"{way.name}: rsb_service dump", lambda: tool("dump", "manager"), f"{manager.child.pid} manager")


def pings(way, release):
    """Our own pings of a service of libgbinder's."""
    name = "--service", "test.echo"
    throughput = way.own("throughput", "ping", *name, "--controls", "none", "--benchmark_min_time=0.01s")
    with running(Manager(way, release)), served(way.foreign("python3", f"{HERE}/echo_service.py", "test.echo")):
        expect(f"{way.name}: our throughput ping", lambda: "BM_ping/0" in said(throughput), True)
        latency = way.own("latency", "ping", *name, "--iterations", "20", "--format", "json")
        expect(f"{way.name}: our latency ping", lambda: '"P0":' in said(latency), True)

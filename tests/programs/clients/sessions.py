"""Services and clients of foreign libraries and ours, and foreign tools, with a service manager: sessions.py WAY. Says a line for each thing
tried, and ends with 1 if one failed."""

import functools
import itertools
import sys

import tools
import verdict
from pairs import Pair
from programs import HERE, PATIENCE, Broker, Hub, HwManager, Manager, Program, Watch, Way, said

# Releases of Android, by the API level of libgbinder that speaks the same dialect.
DIALECTS = {
    "27": "8", "28": "9", "29": "10", "30": "11", "31": "12", "32": "12", "33": "13", "34": "14", "35": "15-qpr", "36": "16",
}  # fmt: skip
NEWEST = "36"


def configure(api):
    """Has libgbinder speak the dialect of an API level."""
    with open("/etc/gbinder.conf", "w") as settings:
        settings.write(f"[General]\nApiLevel={api}\n")


def kinds(way, release):
    """Commands of the libraries that speak a release's dialect, by name: those of a service and of a client."""
    roles = "service", "client"
    known = {
        "libgbinder": [way.foreign("python3", f"{HERE}/echo_{role}.py", "test.echo") for role in roles],
        "our library": [way.own_echo(release, role, "test.echo") for role in roles],
    }
    if release == "16":
        known["rsbinder"] = [way.foreign(f"{HERE}/rsbinder-echo", role, "test.echo", raw=True) for role in roles]
    return known


def pairs(way, api, manager):
    """Each library's client with each library's service."""
    release = DIALECTS[api]
    configure(api)
    for serves, (service, _) in kinds(way, release).items():
        for calls, (_, client) in kinds(way, release).items():
            title = f"{way.name}, API level {api}, {manager.name}: {calls}'s client, {serves}'s service"
            Pair(title, functools.partial(manager, way, release), service, client).run()


def hidl_pairs(way):
    """The same for HIDL, which has one dialect, and of which rsbinder knows nothing."""
    roles = "service", "client"
    known = {
        "libgbinder": [way.foreign("python3", f"{HERE}/hidl_{role}.py", "default") for role in roles],
        "our library": [way.own_echo("hidl", role, "default", device="hwbinder") for role in roles],
    }
    for serves, (service, _) in known.items():
        for calls, (_, client) in known.items():
            title = f"{way.name}, HIDL, {HwManager.name}: {calls}'s client, {serves}'s service"
            steps = "numbers", "text", "texts", "oneway", "events"
            Pair(title, functools.partial(HwManager, way), service, client, steps).run()


def difference(got, wanted):
    """The first line that differs."""
    lines = itertools.zip_longest(got.splitlines(), wanted.splitlines())
    return next((f"{line} in place of {right}" for line, right in lines if line != right), "none")


def aidl_pairs(way):
    """One set of .aidl files, made into Rust by our library's generator and by rsbinder's: each client with each service prints the same."""
    wanted = open(f"{HERE}/expected.txt").read()
    programs = {"our library": f"{HERE}/pairs-ours", "rsbinder": f"{HERE}/pairs-rsbinder"}
    manager = Manager(way, "16")
    for serves, service in programs.items():
        for calls, client in programs.items():
            name = f"pairs.{serves}.{calls}".replace(" ", "-")
            program = Program(way.foreign(service, "service", name, raw=True))
            title = f"{way.name}, every construct of .aidl: {calls}'s client, {serves}'s service"
            verdict.expect(title, lambda: difference(said(way.foreign(client, "client", name, raw=True)), wanted), "none")
            # The client had it end.
            program.kill()
    manager.kill()


def golang(way):
    """A client and a service in Go, with each other and with ours."""
    go = lambda role, name: way.foreign(f"{HERE}/go-echo", role, name, raw=True)
    manager = Manager(way, "16")
    for serves, service in {"Go": go("service", "go.echo"), "our library": way.own_echo("16", "service", "own.echo")}.items():
        program = Program(service)
        program.wait_for("registered")
        client = lambda: said(go("client", "go.echo" if serves == "Go" else "own.echo"))
        verdict.expect(f"{way.name}: a client in Go, {serves}'s service", client, "2000 numbers came back\n")
        if serves == "Go":
            client = Program(way.own_echo("16", "client", "go.echo"))
            title = f"{way.name}: our library's client, a service in Go"
            verdict.attempt(title, lambda: [client.step(word) for word in ("find", "many")])
            client.end()
        program.kill()
    manager.kill()


def broker_deaths(name, rounds=10):
    """The broker of the embedded driver is killed while a client calls: the client gets an answer, and the manager ends."""
    way = Way(name)
    way.context += "-killed"
    for library, (service, client) in kinds(way, "16").items():

        def killed():
            broker = Broker(way)
            manager = Manager(way, "16")
            programs = [Program(service), Program(client)]
            programs[0].wait_for("registered")
            programs[1].step("find")
            programs[1].tell("many")
            broker.kill()
            # "done", an error or its end: anything but silence.
            programs[1].answered()
            manager.child.wait(PATIENCE)
            for program in programs:
                program.kill()

        for count in range(rounds):
            if not verdict.attempt(f"{name}, {library}: the broker is killed, {count + 1} of {rounds}", killed):
                break


way = Way(sys.argv[1])
watch = Watch(way)
for api in DIALECTS:
    configure(api)
    tools.libgbinder(way, api, DIALECTS[api])
configure(NEWEST)
tools.calls(way, DIALECTS[NEWEST])
tools.hidl(way)
tools.rsbinder(way)
tools.pings(way, DIALECTS[NEWEST])
# Preloading is the quickest: it has all dialects.
for api in DIALECTS if way.name == "preload" else ("27", "30", NEWEST):
    pairs(way, api, Manager)
pairs(way, NEWEST, Hub)
aidl_pairs(way)
golang(way)
hidl_pairs(way)
if way.name != "kernel":
    broker_deaths(way.name)
verdict.expect(f"{way.name}: findings of explain that are bad", watch.bad, "none")
verdict.end()

"""Services and clients of foreign libraries with a service manager, in one place: session.py WAY RELEASE API.

WAY is how they reach a driver: "preload" and "supervise" the embedded one, "kernel" the kernel's. Says a line for each thing tried, "ok" or
"FAILED", and ends with 1 if one failed."""

import os
import select
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 90
way, release, api = sys.argv[1:]
binderperf = os.path.join(HERE, "bin", "binderperf")
if not os.path.exists(binderperf):
    binderperf = "binderperf"
context = f"/tmp/{way}-{release}"
failed = False


def driver(shared):
    """The options by which our own commands reach the driver."""
    return ["--driver", "kernel", "--device", "/dev/binder"] if way == "kernel" else ["--driver", "embedded", "--context-dir", shared]


def foreign(words, supervised=False):
    """A command by which an unmodified program reaches the driver."""
    if way == "kernel":
        return words
    how = ["--supervise"] if supervised or way == "supervise" else []
    return [binderperf, "shim", *how, "--context-dir", context, "--", *words]


class Program:
    """A program that says and obeys lines."""

    def __init__(self, words):
        self.complaints = tempfile.TemporaryFile()
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints)
        self.rest = b""

    def line(self):
        end = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))
            more = os.read(self.child.stdout.fileno(), 4096) if ready else b""
            if not more:
                raise RuntimeError(f"{'it ended' if ready else 'it says nothing any more'}: {self.complained()}")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def complained(self):
        """The last line that it wrote to its standard error."""
        self.complaints.seek(0)
        return self.complaints.read().decode(errors="replace").strip().rpartition("\n")[2]

    def wait_for(self, text):
        while text not in self.line():
            pass

    def step(self, word):
        """Has a client do something; what it says of the result."""
        self.child.stdin.write(word.encode() + b"\n")
        self.child.stdin.flush()
        result = ""
        while (line := self.line()) != "done":
            if line.startswith("error: "):
                raise RuntimeError(f"{word}: {line[7:]}")
            result = line.removeprefix("= ")
        return result

    def kill(self):
        self.child.kill()
        self.child.wait()


class Manager:
    def __init__(self):
        words = [binderperf, "servicemanager", *driver(context), "--release", release]
        self.child = subprocess.Popen(words, stderr=subprocess.PIPE)
        said = self.child.stderr.readline()
        if b"Ctrl-C" not in said:
            raise RuntimeError(said.decode())

    def kill(self):
        self.child.kill()
        self.child.wait()


def attempt(title, work):
    """Says whether some work succeeded."""
    global failed
    try:
        work()
        print(f"ok      {title}", flush=True)
    except Exception as error:
        print(f"FAILED  {title}: {error}", flush=True)
        failed = True


class Pair:
    """A service and a client, and what is tried with them."""

    def __init__(self, title, service, client, name):
        self.title = f"{way}, Android {release}: {title}"
        self.words = service, client
        self.name = name
        self.manager = Manager()
        self.client = Program(client)
        self.service = None

    def begin(self):
        self.service = Program(self.words[0])
        self.service.wait_for("registered")

    def registration(self):
        # The client asks before the service is there.
        self.client.child.stdin.write(b"find\n")
        self.client.child.stdin.flush()
        self.begin()
        self.client.wait_for("done")

    def calls(self):
        for word in "numbers", "text", "bytes", "descriptor":
            self.client.step(word)

    def death(self):
        self.service.kill()
        self.client.step("died")
        self.begin()
        self.client.step("find")
        self.client.step("numbers")

    def watched(self):
        self.client.step("watch")
        self.client.kill()
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
        self.manager = Manager()
        self.service.wait_for("registered")
        self.client.step("find")
        self.client.step("numbers")

    def run(self, without=()):
        for what, work in (
            ("registration", self.registration),
            ("calls with numbers, vectors and a descriptor", self.calls),
            ("the service's death, and its return", self.death),
            ("the client's death", self.watched),
            ("another service manager", self.restart),
        ):
            if work.__name__ not in without:
                attempt(f"{self.title}: {what}", work)
        for program in self.client, self.service, self.manager:
            if program:
                program.kill()


if api != "-":
    with open("/etc/gbinder.conf", "w") as settings:
        settings.write(f"[General]\nApiLevel={api}\n")
    python = [["python3", f"{HERE}/echo_{role}.py", "test.libgbinder"] for role in ("service", "client")]
    Pair("libgbinder with libgbinder", foreign(python[0]), foreign(python[1]), "test.libgbinder").run()
sys.exit(failed)

"""Services and clients of foreign libraries with a service manager, in one place: session.py WAY RELEASE API.

WAY is how they reach a driver: "preload" and "supervise" the embedded one, "kernel" the kernel's. Says a line for each thing tried, "ok" or
"FAILED", and ends with 1 if one failed."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 90
way, release, api = sys.argv[1:]
# In a guest it is along PATH.
binderperf = "binderperf" if way == "kernel" else f"{HERE}/bin/binderperf"
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

    def end(self):
        """Ends it by the end of its input."""
        self.child.stdin.close()
        self.child.wait(PATIENCE)

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

    def __init__(self, title, service, client):
        self.title = f"{way}, Android {release}: {title}"
        self.words = service, client
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
        self.manager = Manager()
        self.client.step("find")
        self.client.step("numbers")

    def run(self):
        for what, work in (
            ("registration", self.registration),
            ("calls with numbers, vectors and a descriptor", self.calls),
            ("the service's death, and its return", self.death),
            ("the client's death", self.watched),
            ("another service manager", self.restart),
        ):
            attempt(f"{self.title}: {what}", work)
        for program in self.client, self.service, self.manager:
            if program:
                program.kill()


def pairs():
    """Title, service and client of each pair, by name."""
    python = {role: foreign(["python3", f"{HERE}/echo_{role}.py", "test.echo"]) for role in ("service", "client")}
    place = "/dev/binder" if way == "kernel" else context
    own = {role: [f"{HERE}/own-echo", place, release, role, "test.echo"] for role in ("service", "client")}
    kinds = {"libgbinder": python, "this library": own}
    # Its system calls do not pass through the C library, and it speaks Android 16's dialect only.
    if release == "16":
        kinds["rsbinder"] = {
            role: foreign([f"{HERE}/rsbinder-echo", role, "test.echo"], supervised=True) for role in ("service", "client")
        }
    for serves, service in kinds.items():
        for calls, client in kinds.items():
            yield f"{calls}'s client, {serves}'s service", service["service"], client["client"]


with open("/etc/gbinder.conf", "w") as settings:
    settings.write(f"[General]\nApiLevel={api}\n")
for pair in pairs():
    Pair(*pair).run()
sys.exit(failed)

"""Programs that are started, obeyed and ended: those under test, and service managers. How they reach a driver is a `Way`."""

import os
import select
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# How long anything may take, in seconds, on an emulated machine too: longer than the programs themselves wait.
PATIENCE = 90


class Way:
    """How programs reach a driver: "preload" and "supervise" the embedded one, "kernel" the kernel's, as in a guest."""

    def __init__(self, name):
        self.name = name
        self.context = f"/tmp/{name}"
        # The only place where rsbinder's tools look for a device; a guest of Debian's kernel has no binderfs.
        if name == "kernel" and not os.path.exists("/dev/binderfs"):
            os.mkdir("/dev/binderfs")
            os.symlink("/dev/binder", "/dev/binderfs/binder")
        # In a guest it is along PATH.
        self.binderperf = "binderperf" if name == "kernel" else f"{HERE}/bin/binderperf"

    def own(self, *words, device="binder"):
        """A command of binderperf, which knows its driver itself."""
        driver = ["--driver", "kernel", "--device", f"/dev/{device}"]
        if self.name != "kernel":
            driver = ["--driver", "embedded", "--context-dir", self.context]
        return [self.binderperf, *words, *driver]

    def own_echo(self, release, role, name, device="binder"):
        """A command of our own service or client."""
        return [f"{HERE}/own-echo", f"/dev/{device}" if self.name == "kernel" else self.context, release, role, name]

    def foreign(self, *words, raw=False):
        """A command of an unmodified program. `raw`: its system calls do not pass through the C library."""
        if self.name == "kernel":
            return list(words)
        how = ["--supervise"] if raw or self.name == "supervise" else []
        return [self.binderperf, "shim", *how, "--context-dir", self.context, "--", *words]


def said(words):
    """What a program that ends by itself wrote to its standard output; its status is not judged."""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE).stdout.decode()


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
                how = f"it ended with {self.child.wait(PATIENCE)}" if ready else "it says nothing any more"
                raise RuntimeError(f"{how}: {self.complained()}")
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

    def tell(self, word):
        """Begins a client's step."""
        self.word = word
        self.child.stdin.write(word.encode() + b"\n")
        self.child.stdin.flush()

    def done(self):
        """Waits for the end of a client's step; what it says of the result."""
        result = ""
        while (line := self.line()) != "done":
            if line.startswith("error: "):
                raise RuntimeError(f"{self.word}: {line[7:]}")
            result = line.removeprefix("= ")
        return result

    def answered(self):
        """Waits for the end of a client's step, or the client's own end; an error if it is silent."""
        try:
            self.done()
        except RuntimeError as error:
            if "says nothing" in str(error):
                raise

    def step(self, word):
        """Has a client do something; what it says of the result."""
        self.tell(word)
        return self.done()

    def end(self):
        """Ends it by the end of its input."""
        self.child.stdin.close()
        self.child.wait(PATIENCE)

    def kill(self):
        self.child.kill()
        self.child.wait()


class Broker:
    """The embedded driver's broker, which stays until it is ended, even if all leave."""

    def __init__(self, way):
        words = [way.binderperf, "broker", "--context-dir", way.context]
        self.child = subprocess.Popen(words, stderr=subprocess.PIPE)
        self.child.stderr.readline()

    def kill(self):
        self.child.kill()
        self.child.wait()


class Watch:
    """`explain` while the programs run: it looks at their calls every second."""

    def __init__(self, way):
        # There is a driver to look at between two pairs, too.
        self.broker = None if way.name == "kernel" else Broker(way)
        words = way.own("explain", "--live", "--watch", "1", "--format", "json")
        self.found = tempfile.TemporaryFile()
        self.child = subprocess.Popen(words, stdout=self.found, stderr=self.found)

    def bad(self):
        """Ends it; the findings of grade "bad", or why it did not look."""
        self.child.send_signal(signal.SIGINT)
        status = self.child.wait(PATIENCE)
        if self.broker:
            self.broker.kill()
        self.found.seek(0)
        lines = self.found.read().decode(errors="replace").splitlines()
        bad = [line for line in lines if '"grade":"bad"' in line]
        return "none" if status == 0 and not bad else f"status {status}: {bad or lines[-1:]}"


class Manager:
    """Our service manager, in the dialect of a release."""

    name = "our service manager"

    def __init__(self, way, release):
        self.begin(way.own("servicemanager", "--release", release))

    def begin(self, words):
        # A file takes whatever it says.
        self.said = tempfile.TemporaryFile()
        self.child = subprocess.Popen(words, stderr=self.said)
        end = time.monotonic() + PATIENCE
        while b"Ctrl-C" not in os.pread(self.said.fileno(), 4096, 0):
            if self.child.poll() is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError(os.pread(self.said.fileno(), 4096, 0).decode(errors="replace"))
            time.sleep(0.02)

    def kill(self):
        self.child.kill()
        self.child.wait()


class HwManager(Manager):
    """Our service manager of HIDL."""

    name = "our hwservicemanager"

    def __init__(self, way):
        self.begin(way.own("servicemanager", "--hw", device="hwbinder"))


class Hub:
    """rsbinder's service manager, which speaks Android 16's dialect."""

    name = "rsb_hub"

    def __init__(self, way, _release):
        words = way.foreign(f"{HERE}/rsb_hub", "--insecure-allow-all", raw=True)
        self.child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while "manager" not in said(way.foreign(f"{HERE}/rsb_service", "list", raw=True)):
            if self.child.poll() is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError("rsb_hub does not serve")
            time.sleep(0.1)

    def kill(self):
        # Under supervision its supervisor passes this on.
        self.child.terminate()
        self.child.wait(PATIENCE)

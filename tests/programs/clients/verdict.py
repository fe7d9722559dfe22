"""The verdict of a session: a line for each thing tried, "ok" or "FAILED"."""

import sys

failures = []


def attempt(title, work):
    """Says whether some work succeeded, and returns it."""
    try:
        work()
        print(f"ok      {title}", flush=True)
        return True
    except Exception as error:
        print(f"FAILED  {title}: {error}", flush=True)
        failures.append(title)
        return False


def expect(title, got, wanted):
    """Says whether something is as it should be."""

    def same():
        if (what := got()) != wanted:
            raise RuntimeError(f'"{what}" and not "{wanted}"')

    return attempt(title, same)


def end():
    """Ends the session, with 1 if something failed."""
    sys.exit(bool(failures))

"""Counts and switches in the source of Linux's Binder drivers, for tools/mutants.

A place is an `if`, a function, a case of a choice, a call that is a statement or, in C, a bound that is compared with. In the copy that
`instrumented` writes each notes that it was reached, an `if` which way it went, and the parameter `mutant` has one place go wrong.
"""

import re

# Calls whose loss says nothing of the driver's promises: locks (a deadlock), text for people, checks of the driver itself.
NOT_DROPPED = re.compile(r"lock|debug|error|seq_|trace_|print|^BUG|^WARN|^pr_|init|INIT|lockdep|might_|assert|^if$|^for$|"
                         r"^while$|^switch$|^return$|^sizeof$|^DEFINE|^bp_|^list_for|^hlist_for|^module_|^MODULE|_exit$|^LIST_HEAD$|"
                         r"^drop$|^dismiss$|warn_on|^Some$|^Ok$|^Err$")
PROTOTYPES = """
bool bp_at(unsigned int n);
bool bp_if(unsigned int n, bool c);
"""
STATE = """
#define BP_BITS %d
unsigned long bp_seen[BITS_TO_LONGS(BP_BITS)];
unsigned int bp_mutant;
module_param_named(mutant, bp_mutant, uint, 0644);
static int bp_get(char *buffer, const struct kernel_param *kp)
{
	return scnprintf(buffer, PAGE_SIZE, "%%*pb\\n", BP_BITS, bp_seen);
}
static int bp_set(const char *text, const struct kernel_param *kp)
{
	memset(bp_seen, 0, sizeof(bp_seen));
	return 0;
}
static const struct kernel_param_ops bp_ops = { .get = bp_get, .set = bp_set };
module_param_cb(seen, &bp_ops, NULL, 0644);
bool bp_if(unsigned int n, bool c)
{
	if (!test_bit(2 * n + c, bp_seen))
		set_bit(2 * n + c, bp_seen);
	return c != (READ_ONCE(bp_mutant) == n);
}
bool bp_at(unsigned int n)
{
	return !bp_if(n, true);
}
"""
# The Rust driver calls what its C part defines.
RUST_HEADER = """
mod bp {
    mod c {
        extern "C" {
            pub(super) fn bp_at(n: u32) -> bool;
            pub(super) fn bp_if(n: u32, c: bool) -> bool;
        }
    }
    pub(crate) fn at(n: u32) -> bool {
        // SAFETY: It sets a bit.
        unsafe { c::bp_at(n) }
    }
    pub(crate) fn way(n: u32, c: bool) -> bool {
        // SAFETY: It sets a bit.
        unsafe { c::bp_if(n, c) }
    }
}
"""


def plain(text, pattern):
    """The text with comments, strings and what else is no code as blanks, at the same places."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group())
    return re.sub(pattern, blank, text, flags=re.S | re.M)


def closing(text, at):
    """The place of the bracket that closes the one at `at`."""
    pairs, depth = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}, 0
    for place in range(at, len(text)):
        depth += pairs.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


class File:
    """Places of one file, and the insertions (place, text) that count and switch them."""

    def __init__(self, name, text, first):
        self.name, self.text, self.first = name, text, first
        self.places, self.inserted = [], []

    def add(self, kind, at, function, what, *inserted):
        """Adds a place, and insertions, in whose texts its number stands for `NUMBER`."""
        number = self.first + len(self.places)
        self.places.append({"n": number, "file": self.name, "line": self.text.count("\n", 0, at) + 1, "kind": kind,
                            "function": function, "what": " ".join(what.split())})
        self.inserted += [(begin, more.replace("NUMBER", str(number))) for begin, more in inserted]

    def changed(self):
        text = self.text
        for at, more in sorted(self.inserted, key=lambda one: one[0], reverse=True):
            text = text[:at] + more + text[at:]
        return text


class C:
    """The C driver, as a module."""

    NAME, MODULE = "C", "binder_linux"
    FILES = ["binder.c", "binder_alloc.c", "binderfs.c"]
    KINDS = ("if", "call", "bound")
    FOLDER = "drivers/android"

    def sites(self, file):
        text = file.text
        code = plain(text, r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*')

        def add(kind, at, what, *inserted):
            functions = list(re.finditer(r"^(?=[a-z])[^\n;]*?(\w+)\((?:[^;{}]*)\)[^;{}()]*\n\{", code[:at + 2], flags=re.M))
            file.add(kind, at, functions[-1].group(1) if functions else "", what, *inserted)

        bodies = [(begin.end(), code.find("\n}", begin.end())) for begin in re.finditer(r"^\{", code, flags=re.M)]
        inside = lambda at: any(begin <= at < end for begin, end in bodies)
        for begin, _ in bodies:
            if re.search(r"\)[^;{}()=]*\n\{$", code[:begin]):
                add("function", begin - 1, "", (begin, "\n\t(void)bp_at(NUMBER);"))
        for one in re.finditer(r"^\t+(case [\w]+|default):", code, flags=re.M):
            add("case", one.start(1), text[one.start(1):one.end() - 1], (one.end(), " (void)bp_at(NUMBER);"))
        conditions = []
        for one in re.finditer(r"\bif \(", code):
            begin, end = one.end() - 1, closing(code, one.end() - 1)
            if inside(begin):
                conditions.append((begin, end))
                add("if", one.start(), text[begin + 1:end], (begin + 1, "bp_if(NUMBER, "), (end, ")"))
        for begin, end in conditions:
            for one in re.finditer(r" [<>]=? (?=[^=<>])", code[begin:end]):
                at = begin + one.end()
                add("bound", at, text[begin + 1:end], (at, "bp_at(NUMBER) + "))
        for one in re.finditer(r"[;{}]\s*\n\t+((\w+)\([^;{}]*\);)", code):
            at = one.start(1)
            if inside(at) and not NOT_DROPPED.search(one.group(2)) and closing(code, one.end(2)) == one.end(1) - 2:
                add("call", at, text[at:one.end(1)], (at, "if (!bp_at(NUMBER)) "))

    def with_state(self, texts, bits):
        header = texts["binder_alloc.h"]
        end = header.rindex("#endif")
        texts["binder_alloc.h"] = header[:end] + PROTOTYPES + header[end:]
        begin = texts["binder.c"].index("static uint32_t binder_debug_mask")
        texts["binder.c"] = texts["binder.c"][:begin] + STATE % bits + texts["binder.c"][begin:]


class Rust:
    """The Rust driver, in a kernel of its own."""

    NAME, MODULE = "Rust", "rust_binder"
    FILES = ["process.rs", "thread.rs", "transaction.rs", "node.rs", "node/wrapper.rs", "freeze.rs", "context.rs", "allocation.rs",
             "page_range.rs", "range_alloc/mod.rs", "range_alloc/array.rs", "range_alloc/tree.rs", "deferred_close.rs"]
    KINDS = ("if", "call")
    FOLDER = "drivers/android/binder"

    def sites(self, file):
        text = file.text
        code = plain(text, r'/\*.*?\*/|//[^\n]*|b?c?"(?:\\.|[^"\\])*"|b?\'(?:\\.|[^\\\'\n])\'|^[ \t]*#!?\[[^\n]*')
        bodies = []
        for one in re.finditer(r"\bfn (\w+)", code):
            head = code[code.rfind("\n", 0, one.start()) + 1:one.start()]
            at = code.find("(", one.end())
            end = closing(code, at)
            # A brace in the result is a constant: of a body it ends its line, or the body is empty.
            stop = re.compile(r"\{(?=\n|\})|;").search(code, end)
            # Constants are evaluated while it is compiled; the macro of the fields of lists has functions without statements.
            if not stop or stop.group() == ";" or "const " in head or "self<" in code[at:end]:
                continue
            bodies.append((stop.start(), closing(code, stop.start()), one.group(1)))

        def function(at):
            around = [name for begin, end, name in bodies if begin < at < end]
            return around[-1] if around else None

        for begin, _, name in bodies:
            file.add("function", begin, name, "", (begin + 1, " let _ = crate::bp::at(NUMBER);"))
        for one in re.finditer(r"\bif (?!let\b)", code):
            begin, depth = one.end(), 0
            for end in range(begin, len(code)):
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(code[end], 0)
                if depth == 0 and (code[end] == "{" or code[end:end + 2] == "=>"):
                    break
            condition = code[begin:end]
            # The brace of an unsafe block is not the one behind the condition.
            if function(begin) and not re.search(r"\blet\b|\bunsafe\b|[;{}]", condition):
                end -= len(condition) - len(condition.rstrip())
                file.add("if", one.start(), function(begin), text[begin:end], (begin, "crate::bp::way(NUMBER, "), (end, ")"))
        for one in re.finditer(r"^ +(\S[^\n]*) => \{$", code, flags=re.M):
            if function(one.start()):
                file.add("case", one.start(1), function(one.start()), text[one.start(1):one.end(1)], (one.end(), " let _ = crate::bp::at(NUMBER);"))
        for one in re.finditer(r"[;{}]\s*\n +((?:[\w.]|::)*?(\w+)\([^;{}]*\)\??;)$", code, flags=re.M):
            at, open_at = one.start(1), one.end(2)
            whole = closing(code, open_at) in (one.end(1) - 2, one.end(1) - 3)
            if function(at) and whole and not NOT_DROPPED.search(one.group(2)):
                file.add("call", at, function(at), text[at:one.end(1)], (at, "if !crate::bp::at(NUMBER) { "), (one.end(1), " }"))

    def with_state(self, texts, bits):
        events = texts["rust_binder_events.c"]
        include = '#include "rust_binder.h"\n'
        texts["rust_binder_events.c"] = events.replace(include, "#include <linux/bitmap.h>\n#include <linux/moduleparam.h>\n\n" + include
                                                       + PROTOTYPES + STATE % bits, 1)
        main = texts["rust_binder_main.rs"]
        texts["rust_binder_main.rs"] = main.replace("\nmod allocation;\n", "\nmod allocation;\n" + RUST_HEADER, 1)


def instrumented(language, source):
    """The driver's texts with counts and switches, by file, and its places. `source`: the driver's folder."""
    texts = {str(file.relative_to(source)): file.read_text() for file in sorted(source.rglob("*"))
             if file.is_file() and file.suffix in (".c", ".h", ".rs") or file.name in ("Makefile", "Kconfig")}
    places = []
    for name in language.FILES:
        file = File(name, texts[name], len(places) + 1)
        language.sites(file)
        places += file.places
        texts[name] = file.changed()
    language.with_state(texts, (2 * len(places) + 2 + 31) // 32 * 32)
    return texts, places

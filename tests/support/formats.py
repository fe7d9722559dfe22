"""programs and schemas that other people's tools go by, asked whether they take a file.

Usage: python formats.py junit|kcidb FILE; exit status 1 and a reason if not.
"""

import json
import pathlib
import sys


def junit(path):
    from lxml import etree

    schema = pathlib.Path(sys.prefix) / "junit-10.xsd"
    etree.XMLSchema(etree.parse(schema)).assertValid(etree.parse(path))


def kcidb(path):
    from kcidb_io import schema

    with open(path) as file:
        schema.V5_3.validate(json.load(file))


try:
    {"junit": junit, "kcidb": kcidb}[sys.argv[1]](sys.argv[2])
except Exception as error:  # Whatever it is, the file was not taken.
    sys.exit(f"{type(error).__name__}: {str(error)[:2000]}")

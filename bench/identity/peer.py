"""Runs the restored document over lists of texts, and measures that alone.

Arguments: the folder of the document and its stubs, then files with a JSON list of texts each. On every line of
standard input "verdicts N" or "time N", for the list N. Answers with a line: a 1 for each text that is an override and
a 0 for each that is not; or nanoseconds of processor time. The first line that it writes is the version of Python, when
all files have been read.
"""

import json
import platform
import sys
import time

sys.path.insert(0, sys.argv[1])
from document import _is_identity_override as is_override

lists = []
for name in sys.argv[2:]:
    with open(name, encoding="utf-8") as file:
        lists.append(json.load(file))

print(platform.python_version(), flush=True)
for line in sys.stdin:
    task, number = line.split()
    texts = lists[int(number)]
    if task == "verdicts":
        answer = "".join("1" if is_override(text) else "0" for text in texts)
    else:
        start = time.process_time_ns()
        for text in texts:
            is_override(text)
        answer = time.process_time_ns() - start
    print(answer, flush=True)

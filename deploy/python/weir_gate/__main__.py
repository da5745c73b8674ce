"""python -m weir_gate: the gate for a machine that has Python and no weir."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import sys
from typing import List, Optional

from . import Gate, GateError


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+)(s|m|h|)", text)
    if not match:
        raise argparse.ArgumentTypeError("must be like 30s, 10m or 8h")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600, "": 1}[match[2]]


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="weir_gate", description="Exits 0 only if exactly these bytes may train now; "
                                     "10 blocked, 11 pending, 12 ended, 2 refused, 20 no answer.")
    parser.add_argument("command", choices=["check", "gate"], help="check screens first; gate only asks")
    parser.add_argument("spec", help="file of the spec, or - for standard input")
    parser.add_argument("--wait", type=_seconds, default=0.0, help="check: how long people may take (8h)")
    parser.add_argument("--timeout", type=_seconds, help="give up after this long, with code 20 (default $WEIR_TIMEOUT, else 10s)")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    args = parser.parse_args(argv)
    try:
        spec = sys.stdin.buffer.read() if args.spec == "-" else args.spec
        gate = Gate(timeout=args.timeout)
        admission = gate.check(spec) if args.command == "gate" else gate.admit(spec, wait=args.wait)
    except GateError as err:
        print("weir_gate: %s" % err, file=sys.stderr)
        return err.exit_code
    if args.output == "json":
        print(json.dumps(dataclasses.asdict(admission)))
    elif admission.would:
        print("REPORT MODE: passes; it would be %s (screening %s)" % (
            {"block": "blocked", "escalate": "escalated"}[admission.would], admission.screening))
    else:
        print("ADMITTED until %s (screening %s)" % (admission.admitted_until, admission.screening))
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # at once: a question that was given up may still run in its thread

#!/usr/bin/env python3
"""An example of the other side of weir's webhooks, with the standard library.

It verifies each message on the raw bytes, before it looks into them, drops
repetitions, and prints one line for each. main.go does the same in Go.

    RECEIVER_SECRET=whsec_... python3 receiver.py --listen 127.0.0.1:8099

RECEIVER_SECRET may hold several secrets with spaces between, while one is being
replaced. With RECEIVER_PUBLIC_KEY=whpk_... a v1a signature (ed25519) is needed
too; that takes the package "cryptography".
"""

import argparse
import base64
import binascii
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds that a timestamp may be off, either way
MOST = 64 << 10  # bytes of a body


class Refused(Exception):
    """The message is not from weir, or not from now."""


def secret_key(secret):
    """The bytes of a whsec_ secret."""
    if not secret.startswith("whsec_"):
        raise ValueError("is not whsec_ and base64")
    key = base64.b64decode(secret[len("whsec_"):], validate=True)
    if not key:
        raise ValueError("is empty")
    return key


def public_key(text):
    """The ed25519 key of a whpk_ text."""
    if not text.startswith("whpk_"):
        raise ValueError("is not whpk_ and base64")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(base64.b64decode(text[len("whpk_"):], validate=True))


def verify(keys, public, headers, body, now):
    """Raises Refused unless body, as it came, was signed in the last minutes.

    keys are HMAC keys of which one has to fit; public is an ed25519 key or None;
    now is in unix seconds.
    """
    message_id = headers.get("webhook-id") or ""
    stamp = headers.get("webhook-timestamp") or ""
    signatures = headers.get("webhook-signature") or ""
    if not message_id or not stamp or not signatures:
        raise Refused("a webhook header is missing")
    if not (stamp.isascii() and stamp.isdigit()) or abs(now - int(stamp)) > TOLERANCE:
        raise Refused("the timestamp is not of now")
    signed = message_id.encode() + b"." + stamp.encode() + b"." + body

    def given(version):
        for element in signatures.split(" "):
            name, _, encoded = element.partition(",")
            if name == version:
                try:
                    yield base64.b64decode(encoded, validate=True)
                except binascii.Error:
                    continue

    good = False
    for key in keys:
        expected = hmac.new(key, signed, hashlib.sha256).digest()
        for signature in given("v1"):
            good |= hmac.compare_digest(signature, expected)
    if not good:
        raise Refused("no v1 signature of this secret")
    if public is None:
        return
    from cryptography.exceptions import InvalidSignature

    for signature in given("v1a"):
        try:
            public.verify(signature, signed)
            return
        except InvalidSignature:
            continue
    raise Refused("no v1a signature of this key")


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # seconds that a sender may be silent

    def do_GET(self):
        self.answer(200 if self.path == "/livez" else 404)

    def do_POST(self):
        if self.path != "/hooks/weir":
            self.answer(404)
            return
        try:
            length = int(self.headers.get("Content-Length") or "")
        except ValueError:
            length = -1
        if not 0 <= length <= MOST:
            self.rfile.read(max(0, min(length, 1 << 20)))  # or the sender may not see the answer
            self.answer(413)
            return
        body = self.rfile.read(length)
        try:
            verify(self.server.keys, self.server.public, self.headers, body, time.time())
        except Refused as why:
            self.server.say("REFUSED  signature: %s" % why)
            self.answer(401)
            return
        try:
            message = json.loads(body)
            kind, data = message["type"], message.get("data", {})
        except (ValueError, KeyError, TypeError):
            self.answer(400)
            return
        if self.server.is_new(self.headers["webhook-id"]):
            self.server.say("VERIFIED %s screening=%s review=%s terms=%s" % (
                kind, data.get("screening_id", ""), data.get("review_id", ""), " ".join(data.get("terms", []))))
        else:  # at least once means: sometimes twice
            self.server.say("REPEATED %s" % self.headers["webhook-id"])
        self.answer(200)  # an acknowledgement, never a decision

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass  # one line for each message is enough


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address, keys, public):
        super().__init__(address, Handler)
        self.keys, self.public = keys, public
        self.lock, self.seen = threading.Lock(), set()  # a real receiver keeps the ids in its database

    def is_new(self, message_id):
        with self.lock:
            if message_id in self.seen:
                return False
            self.seen.add(message_id)
            return True

    def say(self, line):
        with self.lock:
            print(line.encode("ascii", "backslashreplace").decode(), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:8099", help="address to listen on")
    host, _, port = parser.parse_args().listen.rpartition(":")
    try:
        keys = [secret_key(s) for s in os.environ.get("RECEIVER_SECRET", "").split()]
    except ValueError:
        sys.exit("receiver: RECEIVER_SECRET is not whsec_ and base64")
    if not keys:
        sys.exit("receiver: RECEIVER_SECRET is not set; it is the endpoint's whsec_... secret")
    public = None
    if os.environ.get("RECEIVER_PUBLIC_KEY"):
        try:
            public = public_key(os.environ["RECEIVER_PUBLIC_KEY"])
        except ImportError:
            sys.exit("receiver: RECEIVER_PUBLIC_KEY needs the package cryptography")
        except ValueError:
            sys.exit("receiver: RECEIVER_PUBLIC_KEY is not whpk_ and the base64 of an ed25519 public key")
    server = Server((host, int(port)), keys, public)
    server.say("listening on %s:%d" % server.server_address[:2])
    server.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass

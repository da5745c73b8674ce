"""Ask a weir gate whether exactly these bytes may train now.

    from weir_gate import Gate
    Gate().admit("train.yaml", wait=8 * 3600)   # returns, or raises

Whatever goes wrong raises a GateError: there is no way to be let through but a
complete answer of the gate about exactly the bytes that were asked about. Every
GateError has one line of text and the exit code that ``weir check`` would have.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import http.client
import json
import os
import queue
import secrets
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar, Union, cast

__all__ = ["Admission", "Blocked", "Ended", "Expired", "Gate", "GateError", "NeverScreened", "NoAnswer", "Pending", "Refused", "Screening", "gated"]

Spec = Union[bytes, str, "os.PathLike[str]"]
"""The bytes of a spec, or the path of its file."""

Verify = Callable[[bytes, bytes], None]
"""Looks at a signed admission and the spec's bytes, and raises if they do not belong together."""

_PREFIX = "urn:weir:problem:"
_MOST = 8 << 20  # bytes of an answer
_WOULD = ("block", "escalate")  # in report mode; another word reports nothing
_FINAL = ("admitted", "blocked", "expired", "superseded", "withdrawn", "revoked")


class GateError(Exception):
    """The run may not start."""

    exit_code = 20
    screening = ""  # its id, where one is known

    def __init__(self, message: str) -> None:
        super().__init__("".join(c if c.isprintable() else " " for c in message))


class Blocked(GateError):
    """The spec is blocked."""

    exit_code = 10


class Pending(GateError):
    """People have to decide. ``screening`` is what to wait for."""

    exit_code = 11


class Ended(GateError):
    """Expired, superseded, withdrawn or revoked."""

    exit_code = 12


class Expired(Ended):
    """The admission or the review ran out."""


class Refused(GateError):
    """The gate refuses the question: an invalid spec, a wrong key, a run_ref of somebody else."""

    exit_code = 2


class NeverScreened(Refused):
    """The gate does not know these bytes: submit them first."""


class NoAnswer(GateError):
    """Nothing is known: the gate is down, slow, not to be trusted, or said half a thing. Closed."""

    def __str__(self) -> str:
        return "no answer from the gate; treat it as closed: " + super().__str__()


class _Again(Exception):
    """Worth asking again while there is time."""


@dataclasses.dataclass(frozen=True)
class Admission:
    """The gate is open for these bytes, or it only reports: then ``would`` says what it would do."""

    screening: str
    spec_sha256: str
    admitted_until: Optional[str]  # RFC 3339; None in report mode
    seconds_left: int  # 0 in report mode
    hedge: Optional[Mapping[str, Any]] = None  # what the disclosure statement has to become
    would: Optional[str] = None  # in report mode: block or escalate


@dataclasses.dataclass(frozen=True)
class Screening:
    """A screening as it stood when it was read. Its status opens nothing: ask ``check``."""

    id: str
    status: str
    run_ref: str
    body: Mapping[str, Any] = dataclasses.field(repr=False)

    @property
    def final(self) -> bool:
        return self.status in _FINAL


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None  # the redirect itself is the answer, and not a gate's


class Gate:
    """A gate. ``server`` and ``key`` default to $WEIR_SERVER and $WEIR_KEY.

    ``timeout`` bounds every question in seconds, name look-up and retries included;
    its default is $WEIR_TIMEOUT, else 10.
    Certificates are checked against the system's, or those in $SSL_CERT_FILE.
    """

    def __init__(self, server: Optional[str] = None, key: Optional[str] = None, *, timeout: Optional[float] = None) -> None:
        self.server = (server or os.environ.get("WEIR_SERVER") or "http://127.0.0.1:8080").rstrip("/")
        self._key = (key or os.environ.get("WEIR_KEY") or "").strip()
        try:
            self.timeout = float(os.environ.get("WEIR_TIMEOUT") or 10) if timeout is None else timeout
        except ValueError:
            raise Refused("WEIR_TIMEOUT must be a number of seconds") from None
        parts = urllib.parse.urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise Refused("the server must be an address like https://weir.example")
        if not self._key or not self._key.isascii() or not self._key.isprintable():
            raise Refused("no API key: set WEIR_KEY; weir key create makes one")
        if not 0 < self.timeout <= 3600:
            raise Refused("timeout must be more than 0 and at most 3600 seconds")
        # Made here, and not in the thread that asks: a thread that still loads
        # certificates when the interpreter ends takes it down.
        tls = ssl.create_default_context() if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=tls))

    def check(self, spec: Spec) -> Admission:
        """Asks whether exactly these bytes may train now. Returns only if so."""
        raw = _read(spec)
        body = self._ask("POST", "/v1/gate/check", raw)
        sha = hashlib.sha256(raw).hexdigest()
        if body.get("would") in _WOULD and body.get("spec_sha256") == sha:
            until = _text(body, "report_until")
            warnings.warn("weir only reports until %s; it would %s this run" % (until, body["would"]), stacklevel=2)
            return Admission(_text(body, "screening"), sha, None, 0, would=body["would"])
        left = body.get("seconds_left")
        if body.get("gate") != "admitted" or body.get("spec_sha256") != sha or type(left) is not int or left <= 0:
            raise NoAnswer("a 2xx that does not admit these bytes")
        return Admission(_text(body, "screening"), sha, _text(body, "admitted_until"), left, body.get("hedge"))

    def submit(self, spec: Spec) -> Screening:
        """Screens a spec. A lost answer is asked for again under one idempotency key."""
        return _screening(self._ask("POST", "/v1/screenings", _read(spec), {"Idempotency-Key": secrets.token_hex(16)}))

    def wait(self, screening: str, at_most: float = 3600.0) -> Screening:
        """Waits for people, at most so many seconds, and returns the last status read."""
        until = time.monotonic() + at_most
        while True:
            left = max(0.0, min(30.0, until - time.monotonic()))
            path = "/v1/screenings/%s?wait=%dms" % (urllib.parse.quote(screening, safe=""), int(left * 1000))
            read = _screening(self._ask("GET", path, within=self.timeout + left))
            if read.final or time.monotonic() >= until:
                return read

    def admit(self, spec: Spec, *, wait: float = 0.0, verify: Optional[Verify] = None) -> Admission:
        """Asks the gate, and where it has no answer yet, screens and waits ``wait`` seconds for people.

        With ``verify`` the signed admission has to pass it as well. Many processes may
        ask about one spec at once.
        """
        raw = _read(spec)
        try:
            admission = self.check(raw)
        except (NeverScreened, Expired):  # superseded, withdrawn and revoked stay what they are
            screening = self.submit(raw)
            if screening.status == "pending" and wait > 0 and screening.body.get("would") not in _WOULD:  # report mode waits for nobody
                screening = self.wait(screening.id, wait)
            admission = self.check(raw)  # what counts is the latest screening of these bytes, which may be another's
        except Pending as err:
            if wait <= 0:
                raise
            self.wait(err.screening, wait)
            admission = self.check(raw)
        if verify is not None:
            signed = self.admission(admission.screening)
            try:
                verify(signed, raw)
            except Exception as err:
                raise NoAnswer("the admission does not verify: %s" % err) from err
        return admission

    def admission(self, screening: str) -> bytes:
        """Gives the signed admission of a screening, as bytes."""
        return self._bytes("GET", "/v1/screenings/%s/admission" % urllib.parse.quote(screening, safe=""))

    def _ask(self, method: str, path: str, raw: Optional[bytes] = None, header: Optional[Dict[str, str]] = None,
             within: Optional[float] = None) -> Dict[str, Any]:
        try:
            body = json.loads(self._bytes(method, path, raw, header, within))
        except ValueError:
            raise NoAnswer("the answer was cut, or is not a weir's") from None
        if not isinstance(body, dict):
            raise NoAnswer("the answer is not a weir's")
        return body

    def _bytes(self, method: str, path: str, raw: Optional[bytes] = None, header: Optional[Dict[str, str]] = None,
               within: Optional[float] = None) -> bytes:
        headers = {"Authorization": "Bearer " + self._key, **(header or {})}
        if raw is not None:
            headers["Content-Type"] = "application/json" if raw.lstrip()[:1] == b"{" else "application/yaml"
        request = urllib.request.Request(self.server + path, data=raw, headers=headers, method=method)
        until, pause = time.monotonic() + (within or self.timeout), 0.2
        while True:
            left = until - time.monotonic()
            try:
                return _within(left, lambda: _send(self._opener, request, left))
            except _Again as err:
                if time.monotonic() + pause >= until:
                    raise NoAnswer(str(err)) from None
            time.sleep(pause)
            pause = min(2 * pause, 2.0)


def gated(spec: Spec, *, gate: Optional[Gate] = None, wait: float = 0.0) -> Callable[[_F], _F]:
    """Decorates a function so that every call asks the gate first and runs only if it is open."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def ask_first(*args: Any, **kwargs: Any) -> Any:
            (gate or Gate()).admit(spec, wait=wait)
            return function(*args, **kwargs)

        return cast(_F, ask_first)

    return decorate


_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


def _read(spec: Spec) -> bytes:
    if isinstance(spec, bytes):
        return spec
    try:
        with open(spec, "rb") as file:
            return file.read()
    except OSError as err:
        raise Refused("the spec cannot be read: %s" % err) from err


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise NoAnswer("the answer lacks %s" % key)
    return value


def _screening(body: Mapping[str, Any]) -> Screening:
    if not isinstance(body.get("decision"), dict):
        raise NoAnswer("the answer was not a screening")
    return Screening(_text(body, "id"), _text(body, "status"), _text(body, "run_ref"), body)


def _closed(status: str, screening: str) -> GateError:
    error: GateError
    if status == "blocked":
        error = Blocked("blocked by screening %s; weir explain %s says why" % (screening, screening))
    elif status == "pending":
        error = Pending("screening %s waits for people to decide" % screening)
    elif status == "expired":
        error = Expired("screening %s is expired" % screening)
    elif status in _FINAL and status != "admitted":
        error = Ended("screening %s is %s" % (screening, status))
    else:
        error = NoAnswer("a status this client does not know")  # opens nothing
    error.screening = screening
    return error


def _within(seconds: float, call: Callable[[], _T]) -> _T:
    """Runs call in a thread, so that neither a name server nor a peer that dribbles holds the caller longer."""
    done: "queue.Queue[Tuple[Optional[_T], Optional[BaseException]]]" = queue.Queue(1)

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as err:  # handed to the caller, whatever it is
            done.put((None, err))

    threading.Thread(target=run, name="weir-gate", daemon=True).start()
    try:
        value, error = done.get(timeout=max(0.0, seconds))
    except queue.Empty:
        raise NoAnswer("nothing within the time limit") from None
    if error is not None:
        raise error
    return cast(_T, value)


def _send(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> bytes:
    try:
        with opener.open(request, timeout=timeout) as answer:
            data: bytes = answer.read(_MOST)
            if answer.length:  # bytes that were promised and did not come
                raise _Again("the answer was cut")
            return data
    except urllib.error.HTTPError as err:
        try:
            data = err.read(_MOST)
        except (OSError, http.client.HTTPException):
            data = b""
        raise _refusal(err.code, data) from None
    except (OSError, http.client.HTTPException) as err:
        reason = getattr(err, "reason", err)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise NoAnswer("its certificate is not trusted: %s" % reason.verify_message) from None
        raise _Again(str(reason) or type(reason).__name__) from None


def _refusal(status: int, data: bytes) -> Exception:
    """What an answer that is no 2xx means."""
    try:
        problem = json.loads(data)
    except ValueError:
        problem = None
    kind = problem.get("type") if isinstance(problem, dict) else None
    if not isinstance(problem, dict) or not isinstance(kind, str) or not kind.startswith(_PREFIX):
        why = "status %d, not from a weir" % status
        return _Again(why) if status in (429, 502, 503, 504) else NoAnswer(why)
    kind = kind[len(_PREFIX):]
    said = "the gate answered %d: %s" % (status, problem.get("detail") or problem.get("title"))
    errors = problem.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        said += ": %s %s" % (errors[0].get("pointer"), errors[0].get("detail"))
    if kind == "in-flight" or status in (429, 503):
        return _Again(said)
    if status >= 500:
        return NoAnswer("%s (request %s)" % (said, problem.get("request_id")))
    if kind.startswith("gate-"):
        return _closed(kind[len("gate-"):], str(problem.get("screening")))
    if kind == "review-expired":
        return Expired(said)
    if kind == "not-found":
        return NeverScreened(said)
    return Refused(said)

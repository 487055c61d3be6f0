"""A local endpoint that speaks the chat completions and batch wire format, and answers from a script.

The script is a function from a request to a reply; helpers below make canned, garbled, obeying and gold-label ones. It
counts and keeps every request, so that tests can say how often a model was asked, and what it was shown.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tracegraph.invalidation.prompts import JUDGE, PAIRS, PREMISES, RESTORE
from tracegraph.invalidation.scan import content_words

KINDS = {JUDGE.system: "verify", RESTORE.system: "restore", PAIRS.system: "scan", PREMISES.system: "read"}


@dataclass
class Asked:
    """One chat completion request, as the server received it."""

    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def kind(self) -> str:
        return KINDS[self.body["messages"][0]["content"]]

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def data(self) -> dict[str, Any]:
        found = re.fullmatch(r"<data>\n(.*)\n</data>", self.user, re.DOTALL)
        assert found, "the user message is one data block"
        return dict(json.loads(found.group(1)))

    @property
    def form(self) -> str:
        return str(self.body.get("response_format", {}).get("type", "text"))


@dataclass
class Reply:
    """What the server sends: a chat completion around `content`, or `raw` bytes as they are."""

    content: str | None = None
    finish: str = "stop"
    refusal: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    cut: bool = False
    """Close the connection in the middle of the body."""
    delay: float = 0.0


Script = Callable[[Asked], "Reply | dict[str, Any] | str"]


def error(status: int, message: str, *, param: str | None = None, **headers: str) -> Reply:
    body = {"error": {"message": message, "type": "error", "param": param, "code": None}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, raw=json.dumps(body).encode(), headers=named)


class Stub:
    """The server. `count` gives a text's tokens; `forms` are the response formats it takes."""

    def __init__(
        self,
        script: Script,
        *,
        forms: tuple[str, ...] = ("json_schema", "json_object", "text"),
        limit: str | None = None,
        temperature: bool = True,
        count: Callable[[str], int] = lambda text: len(text) // 4 + 1,
        polls: int = 1,
    ) -> None:
        self.script = script
        self.forms = forms
        self.limit = limit
        self.temperature = temperature
        self.count = count
        self.polls = polls
        self.asked: list[Asked] = []
        self.refused = 0
        self.busy = 0
        self.most = 0
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"stub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> Stub:
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def of(self, kind: str) -> list[Asked]:
        return [one for one in self.asked if one.kind == kind]

    def clear(self) -> None:
        self.asked.clear()

    def complete(self, body: dict[str, Any], headers: Mapping[str, str]) -> Reply:
        """A chat completion, or the refusal of a form this endpoint does not take."""
        asked = Asked(body, headers)
        if asked.form not in self.forms:
            self.refused += 1
            return error(400, f"response_format {asked.form} is not supported", param="response_format")
        if self.limit is not None and self.limit not in body:
            self.refused += 1
            wrong = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
            return error(400, f"Unsupported parameter: {wrong}", param=wrong)
        if not self.temperature and "temperature" in body:
            self.refused += 1
            return error(400, "Unsupported value: temperature", param="temperature")
        with self.lock:
            self.asked.append(asked)
            self.busy += 1
            self.most = max(self.most, self.busy)
        try:
            found = self.script(asked)
        finally:
            with self.lock:
                self.busy -= 1
        reply = found if isinstance(found, Reply) else Reply(found if isinstance(found, str) else json.dumps(found))
        if reply.raw is None:
            message = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
            tokens_in = sum(self.count(one["content"]) for one in body["messages"])
            tokens_out = self.count(reply.content or "")
            reply.raw = json.dumps(
                {
                    "id": "chatcmpl-1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": body["model"],
                    "choices": [{"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}],
                    "usage": {
                        "prompt_tokens": tokens_in,
                        "completion_tokens": tokens_out,
                        "total_tokens": tokens_in + tokens_out,
                    },
                }
            ).encode()
        return reply

    # --- batches ---

    def upload(self, content: bytes, content_type: str) -> dict[str, Any]:
        message = BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + content)
        for part in message.get_payload():  # type: ignore[union-attr]
            if 'name="file"' in str(part["Content-Disposition"]):  # type: ignore[index]
                return self.keep(part.get_payload(decode=True))  # type: ignore[union-attr, arg-type]
        raise AssertionError("no file in the upload")

    def keep(self, content: bytes) -> dict[str, Any]:
        id = f"file-{len(self.files) + 1}"
        self.files[id] = content
        return {
            "id": id, "object": "file", "bytes": len(content), "created_at": 1, "filename": "batch.jsonl",
            "purpose": "batch", "status": "processed",
        }  # fmt: skip

    def batch(self, body: dict[str, Any]) -> dict[str, Any]:
        id = f"batch-{len(self.batches) + 1}"
        lines = self.files[body["input_file_id"]].splitlines()
        counts = {"total": len(lines), "completed": 0, "failed": 0}
        self.batches[id] = {
            "id": id, "object": "batch", "endpoint": body["endpoint"], "errors": None, "created_at": 1,
            "input_file_id": body["input_file_id"], "completion_window": body["completion_window"],
            "status": "in_progress", "output_file_id": None, "error_file_id": None, "request_counts": counts,
            "metadata": body.get("metadata"), "polls": 0,
        }  # fmt: skip
        return self.shown(id)

    def shown(self, id: str) -> dict[str, Any]:
        return {name: value for name, value in self.batches[id].items() if name != "polls"}

    def poll(self, id: str) -> dict[str, Any]:
        """A batch is worked off at its last poll, its lines answered in reverse."""
        batch = self.batches[id]
        batch["polls"] += 1
        if batch["status"] == "in_progress" and batch["polls"] >= self.polls:
            good, bad = [], []
            for line in reversed(self.files[batch["input_file_id"]].splitlines()):
                asked = json.loads(line)
                reply = self.complete(asked["body"], {})
                assert reply.raw is not None
                answer = {"status_code": reply.status, "request_id": "r", "body": json.loads(reply.raw)}
                row = {"id": "x", "custom_id": asked["custom_id"], "response": answer, "error": None}
                (good if reply.status == 200 else bad).append(json.dumps(row))
            batch["status"] = "completed"
            batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}
            batch["output_file_id"] = self.keep("\n".join(good).encode())["id"] if good else None
            batch["error_file_id"] = self.keep("\n".join(bad).encode())["id"] if bad else None
        return self.shown(id)


class _Handler(BaseHTTPRequestHandler):
    stub: Stub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/files":
            self._json(self.stub.upload(content, self.headers["Content-Type"]))
        elif self.path == "/v1/batches":
            self._json(self.stub.batch(json.loads(content)))
        else:
            assert self.path == "/v1/chat/completions", self.path
            self._send(self.stub.complete(json.loads(content), dict(self.headers)))

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path == "/v1/batches":
            data = [self.stub.shown(id) for id in self.stub.batches]
            self._json({"object": "list", "data": data, "has_more": False})
        elif path.startswith("/v1/batches/"):
            self._json(self.stub.poll(path.rsplit("/", 1)[1]))
        else:
            self._send(Reply(raw=self.stub.files[path.split("/")[3]]))

    def _json(self, body: dict[str, Any]) -> None:
        self._send(Reply(raw=json.dumps(body).encode()))

    def _send(self, reply: Reply) -> None:
        time.sleep(reply.delay)
        body = reply.raw or b""
        try:
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if reply.cut else body)
            if reply.cut:
                self.close_connection = True
        except OSError:
            self.close_connection = True  # the client gave up


# --- scripts ----------------------------------------------------------------------------------------------


def verdict(asked: Asked, says: str, quote: str | None = None, confidence: float = 0.9, **more: Any) -> dict[str, Any]:
    """A clean answer about the pair that was asked, quoting the later statement unless told otherwise."""
    found = asked.data["later"]["statement"] if quote is None else quote
    return {
        "pair": asked.data["pair"], "verdict": says, "confidence": confidence, "quote": found[:200],
        "rationale": "as the script says", **more,
    }  # fmt: skip


def read_words(asked: Asked) -> dict[str, Any]:
    """A reading by the statement's own words: relied on and changed alike."""
    item = asked.data["item"]
    words = sorted(content_words(item["statement"]))[:10] or ["nothing"]
    topic = {"aspect": "other", "words": words, "says": "its words"}
    return {"item": item["name"], "relies_on": [topic], "changes": [topic]}


def read_all(asked: Asked) -> dict[str, Any]:
    """A reading that matches everything with everything."""
    topic = {"aspect": "condition", "words": ["thing"], "says": "the state of things"}
    return {"item": asked.data["item"]["name"], "relies_on": [topic], "changes": [topic]}


def scan_all(asked: Asked) -> dict[str, Any]:
    data = asked.data
    return {"target": data["target"]["name"], "affected": [one["name"] for one in data["later"]]}


def scripted(
    judge: Callable[[Asked], Any] = lambda asked: verdict(asked, "compatible"),
    *,
    read: Callable[[Asked], Any] = read_all,
    scan: Callable[[Asked], Any] = scan_all,
    restore: Callable[[Asked], Any] = lambda asked: verdict(asked, "uncertain"),
) -> Script:
    """One script out of one function a kind of question."""
    by_kind = {"verify": judge, "read": read, "scan": scan, "restore": restore}
    return lambda asked: by_kind[asked.kind](asked)


def says(*rules: tuple[str, str, str], otherwise: str = "compatible") -> Callable[[Asked], dict[str, Any]]:
    """Judges by words: (a word of the later statement, a word of the earlier one, the verdict)."""

    def judge(asked: Asked) -> dict[str, Any]:
        later, earlier = asked.data["later"]["statement"], asked.data["earlier"]["statement"]
        for one, other, verdict_ in rules:
            if one in later and other in earlier:
                return verdict(asked, verdict_)
        return verdict(asked, otherwise)

    return judge

"""One OpenAI-compatible endpoint: asks a model, and gives back its text or the cause why there is none.

Finds out once what form of structured output, which name of the length limit and whether a temperature the endpoint
takes. Retries and Retry-After are the client's own. Never judges an answer, never raises for what an endpoint does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import anyio

from tracegraph.invalidation.evidence import Usage, tokens_of
from tracegraph.invalidation.prompts import Prompt
from tracegraph.model import sha256

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Form = Literal["json_schema", "json_object", "text"]
FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
_TRIES = 6
"""How many ways of asking are tried before an endpoint's refusal is taken as one."""


@dataclass(frozen=True)
class Dialect:
    """How an endpoint takes a request, as far as it was found out."""

    form: Form = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True

    def request(self, model: str, prompt: Prompt, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """The body of a chat completion, also as a line of a batch file."""
        body: dict[str, Any] = {"model": model, "messages": list(messages), self.limit: prompt.tokens}
        if self.temperature:
            body["temperature"] = 0
        if self.form == "json_schema":
            schema = {"name": prompt.name, "strict": True, "schema": dict(prompt.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.form == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def simpler(self, message: str) -> Dialect | None:
        """The next way to ask after a refusal that names what it refuses; None when there is none left."""
        if "max_tokens" in message and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "max_completion_tokens" in message and self.limit == "max_completion_tokens":
            return replace(self, limit="max_tokens")
        if "temperature" in message and self.temperature:
            return replace(self, temperature=False)
        if self.form != "text":
            return replace(self, form=FORMS[FORMS.index(self.form) + 1])
        return None


@dataclass(frozen=True)
class Reply:
    """A model's text, or the cause why there is none to read."""

    text: str | None
    cause: str | None
    usage: Usage


@dataclass
class Endpoint:
    """Where the models are. Times in seconds; `timeout` is of one attempt, `deadline` of a call with its retries."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    deadline: float = 180.0
    retries: int = 4
    concurrency: int = 8
    dialects: dict[str, Dialect] = field(default_factory=dict)
    """What was found out, by model."""

    def __post_init__(self) -> None:
        self._client: AsyncOpenAI | None = None
        self._room: anyio.CapacityLimiter | None = None
        self._asking: anyio.Lock | None = None

    @property
    def name(self) -> str:
        """A name that shows no address."""
        return sha256(self.base_url or os.environ.get("OPENAI_BASE_URL") or "openai")

    @property
    def client(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                api_key=self.api_key or os.environ.get("OPENAI_API_KEY") or "none",
                base_url=self.base_url or os.environ.get("OPENAI_BASE_URL") or None,
                timeout=self.timeout,
                max_retries=self.retries,
            )
        return self._client

    def prepare(self) -> None:
        """Load the client library, which takes its time, before anything is claimed."""
        _ = self.client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def ask(self, model: str, prompt: Prompt, data: Mapping[str, Any]) -> Reply:
        """Ask one question. The first call of a model finds out how, while the others wait."""
        if self._room is None or self._asking is None:
            self._room, self._asking = anyio.CapacityLimiter(self.concurrency), anyio.Lock()
        messages = prompt.messages(data)
        async with self._room:
            if model in self.dialects:
                return (await self._try(model, prompt, messages, self.dialects[model]))[0]
            async with self._asking:
                if model not in self.dialects:
                    return await self._find_out(model, prompt, messages)
            return (await self._try(model, prompt, messages, self.dialects[model]))[0]

    async def _find_out(self, model: str, prompt: Prompt, messages: list[dict[str, str]]) -> Reply:
        dialect: Dialect | None = Dialect()
        spent = Usage()
        for _ in range(_TRIES):
            assert dialect is not None
            reply, refused = await self._try(model, prompt, messages, dialect)
            spent += reply.usage
            if refused is None:
                if reply.cause not in ("timeout", "rate_limited", "unavailable", "endpoint"):
                    self.dialects[model] = dialect
                break
            dialect = dialect.simpler(refused)
            if dialect is None:
                break
        return replace(reply, usage=spent)

    async def _try(
        self, model: str, prompt: Prompt, messages: list[dict[str, str]], dialect: Dialect
    ) -> tuple[Reply, str | None]:
        """One call with the client's retries; the endpoint's words when it refuses the request's form."""
        import openai

        body = dialect.request(model, prompt, messages)
        started = time.perf_counter()
        retries = 0
        try:
            with anyio.fail_after(self.deadline):
                raw = await self.client.chat.completions.with_raw_response.create(**body)
            retries = raw.retries_taken
            completion: Any = raw.parse()
            reply = read(completion.model_dump() if completion is not None else None)
            counted = reply.usage
            if counted.tokens == 0:
                counted = Usage(
                    tokens_in=sum(tokens_of(one["content"]) for one in messages),
                    tokens_out=tokens_of(reply.text or ""),
                )
            return replace(reply, usage=counted + Usage(1, retries, 0, 0, time.perf_counter() - started)), None
        except (openai.APITimeoutError, TimeoutError) as error:
            cause, refused = "timeout", None
            retries = _retries(error)
        except openai.RateLimitError as error:
            cause, refused = "rate_limited", None
            retries = _retries(error)
        except (openai.APIConnectionError, openai.InternalServerError) as error:
            cause, refused = "unavailable", None
            retries = _retries(error)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            cause, refused = "endpoint", f"{error.param or ''} {error.message}"
        except openai.APIStatusError:
            cause, refused = "endpoint", None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            cause, refused = "response", None  # the body is no chat completion
        usage = Usage(1, retries, 0, 0, time.perf_counter() - started)
        return Reply(None, cause, usage), refused


def _retries(error: BaseException) -> int:
    request = getattr(error, "request", None)
    try:
        return int(request.headers.get("x-stainless-retry-count", 0)) if request is not None else 0
    except (ValueError, AttributeError):
        return 0


def read(completion: Mapping[str, Any] | None) -> Reply:
    """The text of a chat completion: of one finished answer, neither refused, filtered nor cut off."""
    usage = (completion or {}).get("usage") or {}
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    tokens_in, tokens_out = (count if isinstance(count, int) and count >= 0 else 0 for count in counts)
    spent = Usage(tokens_in=tokens_in, tokens_out=tokens_out)
    choices = (completion or {}).get("choices") or []
    if len(choices) != 1 or not isinstance(choices[0], Mapping):
        return Reply(None, "response", spent)
    message = choices[0].get("message") or {}
    text = message.get("content")
    reason = choices[0].get("finish_reason")
    if message.get("refusal") or reason == "content_filter":
        return Reply(None, "refusal", spent)
    if reason == "length":
        return Reply(None, "cut_off", spent)
    if not isinstance(text, str) or not text.strip():
        return Reply(None, "empty", spent)
    return Reply(text, None, spent)

"""Requests that we make of servers, each of which may have to be made more than once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import mcp_types as types
from pydantic import BaseModel, TypeAdapter

from toolfold.catalog.tool import ListedTool
from toolfold.jsontypes import JsonObject

AnswerT = TypeVar("AnswerT", bound=BaseModel)
MakeRequest = Callable[[types.InputResponses | None, str | None], types.Request[Any, Any]]
"""Makes a request, with the answers to what the server asked and the state that it sent along."""

_RESULT: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult]] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
_PROMPT: Final[TypeAdapter[types.GetPromptResult | types.InputRequiredResult]] = TypeAdapter(
    types.GetPromptResult | types.InputRequiredResult
)
_CONTENTS: Final[TypeAdapter[types.ReadResourceResult | types.InputRequiredResult]] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)
_COMPLETION: Final[TypeAdapter[types.CompleteResult | types.InputRequiredResult]] = TypeAdapter(
    types.CompleteResult | types.InputRequiredResult
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest(Generic[AnswerT]):
    """A request, and how it may be sent."""

    name: str
    """Of the tool, prompt or resource, for messages."""
    make: MakeRequest
    kind: TypeAdapter[AnswerT | types.InputRequiredResult]
    is_write: bool = False
    may_repeat: bool = True
    """Whether it may be sent again when it is not known whether it was done."""


def calling(tool: ListedTool, arguments: JsonObject) -> UpstreamRequest[types.CallToolResult]:
    """Call a tool."""

    def make(responses: types.InputResponses | None, state: str | None) -> types.CallToolRequest:
        params = types.CallToolRequestParams(
            name=tool.name, arguments=arguments, input_responses=responses, request_state=state
        )
        return types.CallToolRequest(params=params)

    return UpstreamRequest(
        name=tool.name,
        make=make,
        kind=_RESULT,
        is_write=not tool.read_only,
        may_repeat=tool.read_only or tool.idempotent,
    )


def prompting(
    name: str, arguments: dict[str, str] | None
) -> UpstreamRequest[types.GetPromptResult]:
    """Get a prompt filled in."""

    def make(responses: types.InputResponses | None, state: str | None) -> types.GetPromptRequest:
        params = types.GetPromptRequestParams(
            name=name, arguments=arguments, input_responses=responses, request_state=state
        )
        return types.GetPromptRequest(params=params)

    return UpstreamRequest(name=name, make=make, kind=_PROMPT)


def reading(uri: str) -> UpstreamRequest[types.ReadResourceResult]:
    """Read a resource."""

    def make(
        responses: types.InputResponses | None, state: str | None
    ) -> types.ReadResourceRequest:
        params = types.ReadResourceRequestParams(
            uri=uri, input_responses=responses, request_state=state
        )
        return types.ReadResourceRequest(params=params)

    return UpstreamRequest(name=uri, make=make, kind=_CONTENTS)


def completing(params: types.CompleteRequestParams) -> UpstreamRequest[types.CompleteResult]:
    """Ask what may complete an argument."""
    request = types.CompleteRequest(params=params)
    return UpstreamRequest(name=params.argument.name, make=lambda *_: request, kind=_COMPLETION)

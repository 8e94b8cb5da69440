"""What each page asks of the REST operations, and what it shows of their answers."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.responses import RedirectResponse, Response

from toolfold.entrypoints.dashboard.render import HEADERS, page
from toolfold.entrypoints.rest.operations import Operation, RestRequest
from toolfold.errors import BadInput, NotFound

_RUNS_SHOWN: Final = 50
_CALLS_SHOWN: Final = 500
_NEWEST_SHOWN: Final = 8
_DAYS: Final = 30


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks REST operations on behalf of one request."""

    operations: Mapping[tuple[str, str], Operation]
    visit: RestRequest
    query: Mapping[str, str]
    form: Mapping[str, str]
    path: Mapping[str, str]

    async def get(self, path: str, **arguments: Any) -> Any:
        """Return the answer to a GET; arguments that are None or empty are left out."""
        given = {name: value for name, value in arguments.items() if value not in (None, "")}
        return await self.operations["GET", path].answer(self.visit, given)

    async def post(self, path: str, **arguments: Any) -> Any:
        """Return the answer to a POST."""
        given = {name: value for name, value in arguments.items() if value not in (None, "")}
        return await self.operations["POST", path].answer(self.visit, given)


View = Callable[[Asker], Awaitable[Response]]


async def show_now(ask: Asker) -> Response:
    """Runs under way, what waits for the user, servers, the newest runs."""
    running = (await ask.get("/runs", outcome="open", limit=_NEWEST_SHOWN))["runs"]
    newest = (await ask.get("/runs", limit=_NEWEST_SHOWN))["runs"]
    return page(
        "now",
        running=running,
        newest=newest,
        servers=(await ask.get("/servers"))["servers"],
        approvals=(await ask.get("/approvals"))["approvals"],
    )


async def show_approvals(ask: Asker) -> Response:
    """Each question with its arguments, the program around it and what the run did so far."""
    questions = []
    for approval in (await ask.get("/approvals"))["approvals"]:
        detail = await ask.get("/runs/{id}", id=approval["run"], limit=_CALLS_SHOWN)
        questions.append({**approval, "program": detail["run"]["code"], "calls": detail["calls"]})
    return page("approvals", questions=questions, told=ask.query.get("told", ""))


async def approve(ask: Asker) -> Response:
    """Let a run go on, as often as the form says."""
    most = ask.form.get("most", "1")
    if not most.isdigit() or int(most) < 1:
        raise BadInput(f"The number of calls to allow must be a positive number, not {most!r}.")
    answer = await ask.post(
        "/runs/{id}/approve",
        id=ask.path["id"],
        question=ask.form.get("question"),
        most=int(most),
        always=ask.form.get("always") == "yes",
    )
    return _see_other("/ui/approvals", told=f"Approved {answer['approved']}.")


async def reject(ask: Asker) -> Response:
    """Refuse what a run wants to do."""
    answer = await ask.post(
        "/runs/{id}/reject", id=ask.path["id"], question=ask.form.get("question")
    )
    return _see_other("/ui/approvals", told=f"Rejected {answer['rejected']}.")


async def show_runs(ask: Asker) -> Response:
    """All runs, newest first, by time, tool, outcome and text."""
    wanted = {name: ask.query.get(name, "") for name in ("text", "tool", "outcome", "days")}
    days = wanted["days"]
    since = time.time() - int(days) * 86_400 if days.isdigit() and days != "0" else None
    found = await ask.get(
        "/runs",
        limit=_RUNS_SHOWN,
        before=ask.query.get("before"),
        text=wanted["text"],
        tool=wanted["tool"],
        outcome=wanted["outcome"] if wanted["outcome"] in {"ok", "failed", "open"} else None,
        since=since,
    )
    return page("runs", runs=found["runs"], next_before=found["next_before"], wanted=wanted)


async def show_run(ask: Asker) -> Response:
    """One run: its program, its calls as a waterfall, and what the model read."""
    offset = ask.query.get("offset", "0")
    found = await ask.get(
        "/runs/{id}",
        id=ask.path["id"],
        limit=_CALLS_SHOWN,
        offset=int(offset) if offset.isdigit() else 0,
    )
    run, calls = found["run"], found["calls"]
    ended = run["ending"]["at"] if run["ending"] else time.time()
    span = max(ended - run["began_at"], 1e-6)
    bars = [_bar(call, run["began_at"], span) for call in calls]
    return page(
        "run",
        run=run,
        calls=list(zip(calls, bars, strict=True)),
        span=span,
        total=found["total"],
        next_offset=found["next_offset"],
        told=ask.query.get("told", ""),
    )


def _bar(call: Mapping[str, Any], began_at: float, span: float) -> dict[str, float]:
    """Return where a call's bar begins in the waterfall and how wide it is, in percent."""
    left = min(max((call["started_at"] - began_at) / span * 100, 0.0), 99.5)
    return {"left": left, "width": min(max(call["duration_s"] / span * 100, 0.5), 100 - left)}


async def stop(ask: Asker) -> Response:
    """End a run before its next call."""
    run = ask.path["id"]
    await ask.post("/runs/{id}/stop", id=run)
    return _see_other(f"/ui/runs/{quote(run)}", told="Stopped.")


async def resume(ask: Asker) -> Response:
    """Go on with a run that did not come to its own end."""
    run = ask.path["id"]
    answer = await ask.post("/runs/{id}/resume", id=run)
    return _see_other(f"/ui/runs/{quote(answer['run_id'])}", told="Resumed.")


async def show_tools(ask: Asker) -> Response:
    """Every tool, or those that fit a query, with how often it was called and how it did."""
    query, category = ask.query.get("query", ""), ask.query.get("category", "")
    offset = ask.query.get("offset", "0")
    start = int(offset) if offset.isdigit() else 0
    found = await ask.get("/tools/list", query=query, category=category, offset=start, limit=100)
    statistics = (await ask.get("/statistics/tools"))["tools"]
    return page(
        "tools",
        tools=found["tools"],
        total=found["total"],
        next_offset=found["next_offset"],
        statistics=statistics,
        servers=(await ask.get("/servers"))["servers"],
        wanted={"query": query, "category": category},
    )


async def show_tool(ask: Asker) -> Response:
    """One tool: how to call it, how it did, its newest runs."""
    name = ask.path["name"]
    statistics = (await ask.get("/statistics/tools"))["tools"]
    return page(
        "tool",
        tool=await ask.get("/tools/{name}", name=name),
        statistics=statistics.get(name),
        runs=(await ask.get("/runs", tool=name, limit=_NEWEST_SHOWN))["runs"],
    )


async def show_savings(ask: Asker) -> Response:
    """The ledger as figures and a curve by day."""
    days = ask.query.get("days", str(_DAYS))
    chosen = int(days) if days.isdigit() and 1 <= int(days) <= 3650 else _DAYS
    price = ask.query.get("price", "")
    return page(
        "savings",
        savings=await ask.get("/savings", days=chosen),
        days=chosen,
        price=_price(price),
    )


def _price(text: str) -> float | None:
    """Return dollars for a million tokens; None where none is given.

    Raises:
        BadInput: It is not a number of dollars.
    """
    if not text:
        return None
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0 <= price < 1e6:
        raise BadInput(f"The price must be a number of dollars for a million tokens, not {text!r}.")
    return price


async def show_missing(ask: Asker) -> Response:
    """Say that there is no such page."""
    raise NotFound(f"There is no page /ui/{ask.path.get('rest', '')[:100]}.")


def _see_other(path: str, *, told: str) -> Response:
    return RedirectResponse(f"{path}?{urlencode({'told': told})}", 303, headers=HEADERS)


VIEWS: Final[Mapping[tuple[str, str], View]] = {
    ("GET", "/ui/"): show_now,
    ("GET", "/ui/approvals"): show_approvals,
    ("POST", "/ui/approvals/{id}/approve"): approve,
    ("POST", "/ui/approvals/{id}/reject"): reject,
    ("GET", "/ui/runs"): show_runs,
    ("GET", "/ui/runs/{id}"): show_run,
    ("POST", "/ui/runs/{id}/stop"): stop,
    ("POST", "/ui/runs/{id}/resume"): resume,
    ("GET", "/ui/tools"): show_tools,
    ("GET", "/ui/tools/{name}"): show_tool,
    ("GET", "/ui/savings"): show_savings,
    ("GET", "/ui/{rest:path}"): show_missing,
}

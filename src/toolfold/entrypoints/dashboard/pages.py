"""What each page asks of the REST operations, and what it shows of their answers."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.responses import Response

from toolfold.entrypoints.dashboard.asker import Asker, View, see_other
from toolfold.entrypoints.dashboard.render import program_lines
from toolfold.entrypoints.rest.answers import STATUSES
from toolfold.errors import (
    BadInput,
    LoginFailed,
    NotFound,
    ToolfoldError,
    UpstreamUnavailable,
    count,
)
from toolfold.execution.trust.approval_form import MAX_APPROVED_CALLS

_RUNS_SHOWN: Final = 50
_CALLS_SHOWN: Final = 500
_NEWEST_SHOWN: Final = 8
_DECISIONS_SHOWN: Final = 50
_DAYS: Final = 30
_RESULT_CHARS: Final = 100_000


async def show_now(ask: Asker) -> Response:
    """Runs under way, what waits for the user, servers, the newest runs."""
    unfinished = (await ask.get("/runs", outcome="open", limit=_RUNS_SHOWN))["runs"]
    newest = (await ask.get("/runs", limit=_NEWEST_SHOWN))["runs"]
    return ask.page(
        "now",
        running=[each for each in unfinished if each["state"] in {"running", "waiting"}],
        newest=newest,
        servers=(await ask.get("/servers"))["servers"],
        approvals=(await ask.get("/approvals"))["approvals"],
        told=ask.told,
    )


async def restart_server(ask: Asker) -> Response:
    """Restart a server's process or connection."""
    name = ask.path["name"]
    try:
        found = await ask.post("/servers/{name}/restart", name=name)
    except UpstreamUnavailable as error:
        return see_other("/ui/", told=str(error))
    return see_other("/ui/", told=f"Restarted {name}: {count(found['tools'], 'tool')}.")


async def log_in_to_server(ask: Asker) -> Response:
    """Begin to log in to a server, and show the link to the page where one does."""
    name = ask.path["name"]
    address = (await ask.post("/servers/{name}/login", name=name))["address"]
    if address is None:
        return see_other("/ui/", told=f"{name} needs no login: it answers without one.")
    if urlsplit(address).scheme not in {"http", "https"}:
        raise LoginFailed(f"{name} asks to log in at an address that is no web page: {address}")
    return ask.page("login", server=name, address=address)


async def show_approvals(ask: Asker) -> Response:
    """Each question with its arguments, the program around it and what the run did so far."""
    return await _approvals_page(ask, ask.told)


async def _approvals_page(ask: Asker, told: str, status: int = 200) -> Response:
    questions = []
    for approval in (await ask.get("/approvals"))["approvals"]:
        detail = await ask.get("/runs/{id}", id=approval["run"], limit=_CALLS_SHOWN)
        questions.append({**approval, "program": detail["run"]["code"], "calls": detail["calls"]})
    return ask.page("approvals", status, questions=questions, told=told)


async def approve(ask: Asker) -> Response:
    """Let a run go on, as often as the form says."""
    most = str(MAX_APPROVED_CALLS) if ask.form.get("all") else ask.form.get("most", "1")
    if not most.isdigit() or int(most) < 1:
        raise BadInput(f"The number of calls to allow must be a positive number, not {most!r}.")
    always = ask.form.get("always") == "yes"
    return await _decide(
        ask, "/runs/{id}/approve", "Approved {approved}.", most=int(most), always=always
    )


async def reject(ask: Asker) -> Response:
    """Refuse what a run wants to do."""
    return await _decide(ask, "/runs/{id}/reject", "Rejected {rejected}.")


async def _decide(ask: Asker, path: str, told: str, **options: Any) -> Response:
    """Answer a question; where somebody else was first, or it has expired, the page says so."""
    try:
        answer = await ask.post(
            path, id=ask.path["id"], question=ask.form.get("question"), **options
        )
    except NotFound as error:
        return await _approvals_page(ask, str(error), STATUSES[error.code])
    return see_other("/ui/approvals", told=told.format(**answer))


async def show_runs(ask: Asker) -> Response:
    """All runs, newest first, by time, tool, outcome and text."""
    wanted = {
        name: ask.query.get(name, "") for name in ("text", "tool", "client", "outcome", "days")
    }
    days = wanted["days"]
    since = time.time() - int(days) * 86_400 if days.isdigit() and days != "0" else None
    found = await ask.get(
        "/runs",
        limit=_RUNS_SHOWN,
        before=ask.query.get("before"),
        text=wanted["text"],
        tool=wanted["tool"],
        client=wanted["client"],
        outcome=wanted["outcome"] if wanted["outcome"] in {"ok", "failed", "open"} else None,
        since=since,
    )
    return ask.page("runs", runs=found["runs"], next_before=found["next_before"], wanted=wanted)


async def show_run(ask: Asker) -> Response:
    """One run: its program, its calls as a waterfall, and what the model read."""
    found = await ask.get("/runs/{id}", id=ask.path["id"], limit=_CALLS_SHOWN, offset=ask.offset)
    run, calls = found["run"], found["calls"]
    ended = run["ending"]["at"] if run["ending"] else time.time()
    span = max(ended - run["began_at"], 1e-6)
    counts = Counter(call["tool"] for call in calls)
    audit = tokens = None
    if run["is_ended"]:
        audit = await ask.get("/runs/{id}/audit", id=run["id"])
        tokens = (await ask.get("/runs/{id}/tokens", id=run["id"]))["tokens"]
    return ask.page(
        "run",
        run=run,
        is_whole=len(run["code"].encode()) == run["code_bytes"],
        lines=program_lines(run["code"], counts),
        calls=[(call, _bar(call, run["began_at"], span)) for call in calls],
        span=span,
        audit=audit,
        tokens=tokens,
        decisions=await _decisions(ask, run["id"]),
        total=found["total"],
        next_offset=found["next_offset"],
        told=ask.told,
    )


async def _decisions(ask: Asker, run: str) -> list[dict[str, Any]]:
    """Return what was decided about the calls of a run, each with the place of its rule."""
    attempts = (await ask.get("/runs/{id}/recording", id=run))["attempts"]
    mine = [step for each in attempts if each["id"] == run for step in each["steps"]]
    found = [decision for step in mine for decision in step["decisions"]][:_DECISIONS_SHOWN]
    rules = (await ask.get("/policy"))["rules"] if found and ask.is_owner else []

    def place(why: str) -> int | None:
        fitting = (n for n, rule in enumerate(rules, 1) if why.startswith(rule["reason"] or "\0"))
        return next(fitting, None)

    return [{**each, "place": place(each["rule"])} for each in found]


def _bar(call: Mapping[str, Any], began_at: float, span: float) -> dict[str, float]:
    """Return where a call's bar begins in the waterfall and how wide it is, in percent."""
    left = min(max((call["started_at"] - began_at) / span * 100, 0.0), 99.5)
    return {"left": left, "width": min(max(call["duration_s"] / span * 100, 0.5), 100 - left)}


async def stop(ask: Asker) -> Response:
    """End a run before its next call."""
    run = ask.path["id"]
    await ask.post("/runs/{id}/stop", id=run)
    return see_other(f"/ui/runs/{quote(run)}", told="Stopped.")


async def resume(ask: Asker) -> Response:
    """Go on with a run that did not come to its own end."""
    run = ask.path["id"]
    answer = await ask.post("/runs/{id}/resume", id=run)
    return see_other(f"/ui/runs/{quote(answer['run_id'])}", told="Resumed.")


async def show_recording(ask: Asker) -> Response:
    """What a run did step by step, with what was decided at each, in all its attempts."""
    found = await ask.get("/runs/{id}/recording", id=ask.path["id"])
    return ask.page("recording", run=ask.path["id"], attempts=found["attempts"])


async def rehearse(ask: Asker) -> Response:
    """Run a program once more, calling only what reads; its reply lists the rest."""
    run = (await ask.get("/runs/{id}", id=ask.path["id"], limit=1))["run"]
    if len(run["code"].encode()) != run["code_bytes"]:
        raise BadInput("Only the beginning of this program was kept, so it cannot be run again.")
    answer = await ask.post("/execute", code=run["code"], dry_run=True)
    told = "Dry run: what reads was called, everything else is listed in the reply."
    return see_other(f"/ui/runs/{quote(answer['run_id'])}", told=told)


async def show_tools(ask: Asker) -> Response:
    """Every tool, or those that fit a query, with how often it was called and how it did."""
    query, category = ask.query.get("query", ""), ask.query.get("category", "")
    found = await ask.get(
        "/tools/list", query=query, category=category, offset=ask.offset, limit=100, explain=True
    )
    statistics = (await ask.get("/statistics/tools"))["tools"] if ask.is_owner else {}
    return ask.page(
        "tools",
        tools=found["tools"],
        total=found["total"],
        next_offset=found["next_offset"],
        statistics=statistics,
        changes=(await ask.get("/tools/changes"))["changes"] if ask.is_owner else [],
        servers=(await ask.get("/servers"))["servers"],
        wanted={"query": query, "category": category},
    )


async def show_tool(ask: Asker) -> Response:
    """One tool: how to call it, how it did, its newest runs."""
    return await _tool_page(ask, {}, None)


async def try_tool(ask: Asker) -> Response:
    """Call a tool with what the form says, as the local user; show what came of it."""
    tool = await ask.get("/tools/{name}", name=ask.path["name"])
    try:
        arguments = dict(_arguments(tool["parameters"], ask.form))
        answer = await ask.post("/tools/{name}/execute", name=tool["name"], arguments=arguments)
    except ToolfoldError as error:
        return await _tool_page(ask, ask.form, {"told": str(error)})
    result = json.dumps(answer["result"], indent=2, ensure_ascii=False)[:_RESULT_CHARS]
    return await _tool_page(ask, ask.form, {"told": "It answered:", "result": result})


def _arguments(
    parameters: Iterable[Mapping[str, Any]], form: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    """Yield each argument that the form gives: a text for what takes texts, otherwise JSON."""
    for parameter in parameters:
        name, text = parameter["name"], form.get(parameter["name"], "")
        if not text and not parameter["required"]:
            continue
        yield name, _value(text, name, parameter["type"])


def _value(text: str, name: str, type_: str) -> Any:
    """Return a text for what takes texts, and JSON for everything else."""
    if type_ == "string":
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        if "string" in type_:
            return text
        raise BadInput(
            f"{name} takes {type_}: write it as JSON, such as 7, true or [1, 2]."
        ) from error


async def _tool_page(
    ask: Asker, given: Mapping[str, str], outcome: Mapping[str, str] | None
) -> Response:
    name = ask.path["name"]
    statistics = (await ask.get("/statistics/tools"))["tools"] if ask.is_owner else {}
    changes = (await ask.get("/tools/changes"))["changes"] if ask.is_owner else []
    return ask.page(
        "tool",
        tool=await ask.get("/tools/{name}", name=name),
        statistics=statistics.get(name),
        changes=[each for each in changes if each["tool"] == name],
        runs=(await ask.get("/runs", tool=name, limit=_NEWEST_SHOWN))["runs"],
        given=given,
        outcome=outcome,
    )


async def show_savings(ask: Asker) -> Response:
    """The ledger as figures and a curve by day."""
    days = ask.query.get("days", str(_DAYS))
    chosen = int(days) if days.isdigit() and 1 <= int(days) <= 3650 else _DAYS
    price = ask.query.get("price", "")
    return ask.page(
        "savings",
        savings=await ask.get("/savings", days=chosen),
        days=chosen,
        price=_price(price),
        day_names={_date(86_400): "yesterday", _date(0): "today"},
    )


def _date(ago_s: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(time.time() - ago_s))


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


VIEWS: Final[Mapping[tuple[str, str], View]] = {
    ("GET", "/ui/"): show_now,
    ("GET", "/ui/approvals"): show_approvals,
    ("POST", "/ui/approvals/{id}/approve"): approve,
    ("POST", "/ui/approvals/{id}/reject"): reject,
    ("GET", "/ui/runs"): show_runs,
    ("GET", "/ui/runs/{id}"): show_run,
    ("POST", "/ui/runs/{id}/stop"): stop,
    ("POST", "/ui/runs/{id}/resume"): resume,
    ("GET", "/ui/runs/{id}/recording"): show_recording,
    ("POST", "/ui/runs/{id}/rehearse"): rehearse,
    ("GET", "/ui/tools"): show_tools,
    ("GET", "/ui/tools/{name}"): show_tool,
    ("POST", "/ui/tools/{name}"): try_tool,
    ("POST", "/ui/servers/{name}/restart"): restart_server,
    ("POST", "/ui/servers/{name}/login"): log_in_to_server,
    ("GET", "/ui/savings"): show_savings,
}

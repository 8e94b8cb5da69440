"""The pages of what the owner keeps and decides: sessions, files, skills, rules, settings."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from toolfold.entrypoints.dashboard.asker import Asker, View, see_other
from toolfold.errors import BadInput, NotFound

_PREVIEW_BYTES: Final = 20_000
_FILES_SHOWN: Final = 200


async def show_sessions(ask: Asker) -> Response:
    """Sessions with the names they hold, the files of the workspace, the skills."""
    files = (await ask.get("/workspace"))["files"]
    newest = sorted(files, key=lambda each: each["changed_at"], reverse=True)
    return ask.page(
        "sessions",
        sessions=(await ask.get("/sessions"))["sessions"],
        files=newest[:_FILES_SHOWN],
        total=len(files),
        skills=(await ask.get("/skills"))["skills"] if ask.is_owner else [],
        told=ask.told,
    )


async def forget_session(ask: Asker) -> Response:
    """Forget the variables of a session."""
    name = ask.path["name"]
    await ask.send("DELETE", "/sessions/{name}", name=name)
    return see_other("/ui/sessions", told=f"Forgot the variables of {name}.")


async def show_file(ask: Asker) -> Response:
    """The beginning of one file of the workspace."""
    found = await ask.get("/workspace/file", path=ask.query.get("path", "?"), size=_PREVIEW_BYTES)
    content = base64.b64decode(found["base64"])
    is_text = b"\0" not in content
    text = content.decode("utf-8", "replace") if is_text else content[:512].hex(" ", 2)
    return ask.page(
        "file", file=found, text=text, is_text=is_text, is_cut=found["bytes"] > len(content)
    )


async def show_skill(ask: Asker) -> Response:
    """One skill: source, versions, how it did."""
    return await _skill_page(ask)


async def _skill_page(
    ask: Asker,
    *,
    source: str | None = None,
    fault: str = "",
    test: Mapping[str, Any] | None = None,
) -> Response:
    found = await ask.get("/skills/{name}", name=ask.path["name"])
    source = found["source"] if source is None else source
    return ask.page("skill", found=found, source=source, fault=fault, test=test, told=ask.told)


async def edit_skill(ask: Asker) -> Response:
    """Save another source, or show why it cannot be saved, with what was written."""
    name, source = ask.path["name"], ask.form.get("source", "").replace("\r\n", "\n")
    try:
        saved = await ask.send("PATCH", "/skills/{name}", name=name, source=source)
    except BadInput as error:
        return await _skill_page(ask, source=source, fault=str(error))
    return see_other(f"/ui/skills/{quote(name)}", told=f"Saved as version {saved['version']}.")


async def check_skill(ask: Asker) -> Response:
    """Run a skill against what was recorded, and show what differs."""
    test = await ask.post("/skills/{name}/test", name=ask.path["name"])
    return await _skill_page(ask, test=test)


async def roll_back_skill(ask: Asker) -> Response:
    """Bring an earlier version of a skill back."""
    name, version = ask.path["name"], ask.form.get("version", "")
    if not version.isdigit():
        raise NotFound(f"There is no version {version!r} of {name}.")
    await ask.post("/skills/{name}/rollback", name=name, version=int(version))
    return see_other(f"/ui/skills/{quote(name)}", told=f"Version {version} is back.")


async def show_policy(ask: Asker) -> Response:
    """The rules in order, what would happen to a call, and what is concealed."""
    return await _policy_page(ask, checked=None, revealed=None)


async def check_call(ask: Asker) -> Response:
    """Say what would happen to a call."""
    text = ask.form.get("arguments", "").strip() or "{}"
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise BadInput('The arguments must be a JSON object, such as {"id": 7}.')
    checked = await ask.post("/policy/check", tool=ask.form.get("tool", "?"), arguments=arguments)
    return await _policy_page(ask, checked=checked, revealed=None)


async def reveal(ask: Asker) -> Response:
    """Show what placeholders stand for; the audit log has the reason."""
    if not ask.form.get("reason", "").strip():
        raise BadInput("Say why you want to see it: the audit log keeps the reason.")
    revealed = await ask.post(
        "/privacy/reveal", text=ask.form.get("text", "?"), reason=ask.form.get("reason")
    )
    return await _policy_page(ask, checked=None, revealed=revealed)


async def _policy_page(
    ask: Asker, *, checked: Mapping[str, Any] | None, revealed: Mapping[str, Any] | None
) -> Response:
    return ask.page(
        "policy",
        policy=await ask.get("/policy"),
        privacy=await ask.get("/privacy"),
        checked=checked,
        revealed=revealed,
        form=ask.form,
    )


async def show_settings(ask: Asker) -> Response:
    """Changed settings, where it was read, and what was wrong with it."""
    return ask.page("settings", found=await ask.get("/settings"), checks=None)


async def run_doctor(ask: Asker) -> Response:
    """Try every part, and show what to do where one does not work."""
    checks = (await ask.post("/doctor"))["checks"]
    return ask.page("settings", found=await ask.get("/settings"), checks=checks)


OWNER_VIEWS: Final[Mapping[tuple[str, str], View]] = {
    ("GET", "/ui/sessions"): show_sessions,
    ("POST", "/ui/sessions/{name}/forget"): forget_session,
    ("GET", "/ui/file"): show_file,
    ("GET", "/ui/skills/{name}"): show_skill,
    ("POST", "/ui/skills/{name}"): edit_skill,
    ("POST", "/ui/skills/{name}/test"): check_skill,
    ("POST", "/ui/skills/{name}/rollback"): roll_back_skill,
    ("GET", "/ui/policy"): show_policy,
    ("POST", "/ui/policy/check"): check_call,
    ("POST", "/ui/policy/reveal"): reveal,
    ("GET", "/ui/settings"): show_settings,
    ("POST", "/ui/settings/doctor"): run_doctor,
}

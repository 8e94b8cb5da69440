"""Say in words what a plan will do."""

from collections.abc import Iterator

from toolfold.config.harmless import address, program
from toolfold.entrypoints.install.entries import lacks_credentials
from toolfold.entrypoints.install.fold import InstallPlan
from toolfold.entrypoints.install.unfold import REMOVED, UninstallPlan
from toolfold.errors import shown
from toolfold.jsontypes import JsonObject


def describe_fold(plan: InstallPlan, *, backup: object) -> Iterator[str]:
    """Yield the lines of what will be changed, moved, kept, and what is left to do by hand."""
    yield f"{plan.place.title}: {plan.place.path}"
    if not plan.is_changed:
        yield "  nothing to change: toolfold is installed"
    yield from _moves(plan)
    yield from (f"  stays       {shown(each.name)}: {each.reason}" for each in plan.stays)
    if plan.tokens:
        yield f"  keeps as secrets  {', '.join(map(shown, plan.tokens))}"
        yield "              (the backup still has them as they were, mode 0600)"
    if plan.own:
        yield f"  adds        {plan.own}, which starts `toolfold mcp`"
    if plan.passed:
        yield f"  passes on   {', '.join(plan.passed)}: codex gives toolfold no other variables"
    if plan.is_changed:
        yield f"  backup      {backup}"
    yield from _rules(plan)
    yield from _left_to_do(plan)


def describe_unfold(plan: UninstallPlan, *, backup: object) -> Iterator[str]:
    """Yield the lines of what will be restored, and what stays in toolfold's file."""
    yield f"{plan.place.title}: {plan.place.path}"
    if plan.text == plan.was:
        yield "  nothing to change: toolfold is not there"
    elif plan.text is None:
        yield "  removes     the file, which install made"
    elif plan.is_exact:
        yield "  restores    every byte as it was before install"
    else:
        yield "  removes     toolfold; what was changed since install stays"
    if plan.back:
        yield f"  puts back   {', '.join(shown(moved.name) for moved in plan.back)}"
    yield from _lost(plan, backup)
    if plan.taken:
        yield f"  takes out   {', '.join(map(shown, plan.taken))} from {plan.target.path}"
    if plan.secrets:
        yield f"  forgets     {', '.join(plan.secrets)}: their values are back in the file"
    yield from (_kept(plan, alias, reason) for alias, reason in plan.kept)


def _kept(plan: UninstallPlan, alias: str, reason: str) -> str:
    if reason == REMOVED:
        return f"  {shown(alias)}: you removed it from toolfold; it is back in {plan.place.client}"
    return f"  leaves      {shown(alias)} in {plan.target.path}: {reason}"


def _lost(plan: UninstallPlan, backup: object) -> Iterator[str]:
    servers = plan.target.servers()
    for moved, reason in plan.lost:
        where = f"; it stays in {plan.target.path}" if moved.alias in servers else ""
        alias = f" as {shown(moved.alias)}" if where and moved.alias != moved.name else ""
        yield f"  not put back: {shown(moved.name)}: {reason}{where}{alias}"
    if plan.lost:
        yield f"  backup      {backup} is kept: run uninstall again to restore the rest"


def _moves(plan: InstallPlan) -> Iterator[str]:
    if plan.servers:
        yield f"  moves to    {plan.target.path}"
    for server, moved in zip(plan.servers, plan.moved, strict=True):
        line = f"    {shown(server.name)} ({_what(server.entry)})"
        if moved.alias != server.name:
            line += f" as {shown(moved.alias)}: another server has that name there"
        if server.is_local:
            line += "; it was for this project only, and will be in every project"
        yield line


def _rules(plan: InstallPlan) -> Iterator[str]:
    if plan.rules.added:
        added = [str(rule["list"]) for rule in plan.rules.added]
        closed = len(added) - added.count("allow")
        held = "that denies or asks holds" if closed == 1 else "that deny or ask hold"
        yield f"  rules       {closed} of the client {held} here, too:"
        yield f"              {plan.rules.path}"
        if "allow" in added:
            count = added.count("allow")
            not_held = "that allows does not" if count == 1 else "that allow do not"
            yield f"              {count} {not_held}: `toolfold policy import`"
    for reason in plan.rules.unread:
        yield f"  rules       not read: {reason}"


def _left_to_do(plan: InstallPlan) -> Iterator[str]:
    pairs = list(zip(plan.servers, plan.moved, strict=True))
    for server, moved in pairs:
        if lacks_credentials(server.entry):
            yield f"  then run    toolfold login {shown(moved.alias)}   (it has no credentials)"
    if plan.place.scope == "project" and plan.target.is_changed:
        yield "  then run    toolfold trust   (servers of a project start after that)"
        if plan.target.was is None and _hides_mcp_json(plan):
            yield "  note        toolfold reads .toolfold/mcp.json from now on, not .mcp.json"


def _hides_mcp_json(plan: InstallPlan) -> bool:
    other = plan.target.path.parent.parent / ".mcp.json"
    return plan.place.path != other and other.exists()


def _what(entry: JsonObject) -> str:
    """Name the program or the host, and nothing that could be a secret."""
    command, url = entry.get("command"), entry.get("url")
    if isinstance(command, str):
        return program(command)
    host = address(url).split("/")[2:3] if isinstance(url, str) else []
    return host[0] if host else "HTTP"

"""`toolfold privacy`: what is concealed, what it stands for, and an end of it."""

import json
import re
import sys
import time
import tomllib
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

from toolfold.catalog.textrules import parse_text
from toolfold.config.config import Config, current_directory, load_config
from toolfold.entrypoints.commands.options import config_of, warn_of_settings
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import print_json, tell
from toolfold.errors import BadInput, count, shown
from toolfold.execution.trust.privacy_border import PrivacyRules, concealed_answer
from toolfold.journal.decisions import RevealEvent
from toolfold.journal.journal import journal_of
from toolfold.journal.runs import Origin
from toolfold.privacy.detect import Detectors
from toolfold.privacy.detectors.custom import CustomDetector
from toolfold.privacy.store import Vaults, vaults_of
from toolfold.privacy.vault import Vault
from toolfold.storage.files import make_private, read_file, replace_file

_MAX_CHARS: Final = 4 * 1024 * 1024
_DAY_S: Final = 24 * 3600.0
_OF_NOTES: Final = "its notes are shown as they are stored, also by the session hooks"


def privacy_status(arguments: Namespace) -> int:
    """Print what is concealed here, who may receive what, and how much the vault holds."""
    config = config_of(arguments)
    warn_of_settings(config)
    with _vaults(config) as vaults:
        privacy = PrivacyRules(config, vaults)
        if arguments.json:
            print_json(_status(config, privacy, vaults))
            return 0
        print(_mode_text(config, privacy))
        for server in config.servers:
            sees = "placeholders" if privacy.conceals(server.name) else "its answers as they are"
            kinds = privacy.receives(server.name)
            gets = (
                "the real values"
                if kinds is None
                else f"real values of {', '.join(kinds)}"
                if kinds
                else "no real values"
            )
            trust = "; it is untrusted" if server.untrusted else ""
            print(f"{shown(server.name)}: the model sees {sees}; the server gets {gets}{trust}")
        print(f"memory: {_OF_NOTES}")
        for path, kind in config.settings.privacy.fields:
            print(f"field {shown(path)}: {shown(kind) or 'exempt'}")
        for kind, pattern in config.settings.privacy.patterns:
            print(f"pattern {shown(kind)}: {shown(pattern)}")
        _print_counts(config, vaults)
        _ = privacy.rules  # of one that cannot be used the user is told here
    return 0


def privacy_set(arguments: Namespace) -> int:
    """Switch privacy on or off in the user's own settings; all else in the file stays."""
    config, mode = load_config(), str(arguments.mode)
    path = config.directories.config / "config.toml"
    text = with_mode((read_file(path) or b"").decode(), mode)
    if text is None:
        raise BadInput(
            f'{path} cannot be edited safely. Write mode = "{mode}" under [privacy] in it.'
        )
    make_private(path.parent)
    replace_file(path.resolve(), text.encode())
    says = {
        "on": f"Privacy is on ({path}): from the next run on, personal data in answers of servers "
        "becomes placeholders before code or model sees it. `toolfold privacy check FILE` shows "
        "a file as models see it.",
        "off": f"Privacy is off ({path}), unless a project's file switches it on. Placeholders "
        "that exist stay valid.",
    }
    tell(arguments, says[mode], mode=mode, file=str(path))
    return 0


def with_mode(text: str, mode: str) -> str | None:
    """Return settings with another mode of privacy; None where a line for it cannot be found."""
    line = f'mode = "{mode}"'
    header = re.search(r"^[ \t]*\[privacy\][^\n]*$", text, re.MULTILINE)
    if header is None:
        changed = f"{text.rstrip()}\n\n[privacy]\n{line}\n".lstrip()
    else:
        following = re.search(r"^[ \t]*\[", text[header.end() :], re.MULTILINE)
        end = header.end() + following.start() if following else len(text)
        table = text[header.end() : end]
        known = re.search(r"^([ \t]*)mode[ \t]*=[ \t]*([\"'])\w*\2", table, re.MULTILINE)
        table = f"\n{line}{table}" if known is None else table.replace(known[0], known[1] + line, 1)
        changed = text[: header.end()] + table + text[end:]
    try:
        read = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        return None
    return changed if read["privacy"].get("mode") == mode else None


def _mode_text(config: Config, privacy: PrivacyRules) -> str:
    """Say whether personal data is concealed here, and how it is switched on where it is not."""
    if config.settings.privacy.mode == "on":
        return "Privacy is on."
    concealed = [each.name for each in config.servers if privacy.conceals(each.name)]
    but = f", except for answers of {shown(', '.join(concealed))}" if concealed else ""
    path = config.directories.config / "config.toml"
    return (
        f"Privacy is off{but}. `toolfold privacy on` switches it on (in {path}). Names in plain "
        'text also need a pattern there: patterns = {NAME = "Ada Lovelace"} under [privacy].'
    )


def _status(config: Config, privacy: PrivacyRules, vaults: Vaults) -> dict[str, object]:
    settings = config.settings.privacy
    has_vault = vaults.is_there
    return {
        "mode": settings.mode,
        "servers": [
            {
                "name": server.name,
                "concealed": privacy.conceals(server.name),
                "receives": privacy.receives(server.name),
                "untrusted": server.untrusted,
            }
            for server in config.servers
        ],
        "notes_concealed": False,
        "fields": dict(settings.fields),
        "patterns": dict(settings.patterns),
        "vault": vaults.vault(config.namespace, settings.patterns).counts if has_vault else {},
    }


def _print_counts(config: Config, vaults: Vaults) -> None:
    if not vaults.is_there:
        print("The vault is empty.")
        return
    counts = vaults.vault(config.namespace, config.settings.privacy.patterns).counts
    told = ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))
    print(f"Stored for placeholders here: {told or 'nothing'}.")


def privacy_reveal(arguments: Namespace) -> int:
    """Print a text with what its placeholders stand for."""
    if not sys.stdout.isatty():
        raise BadInput(
            "Values of placeholders are shown at a terminal only, never to a program or in a "
            "file. Type the command yourself, in a terminal."
        )
    config = load_config()
    with _vaults(config) as vaults:
        vault = vaults.vault(config.namespace, config.settings.privacy.patterns)
        text = _text(arguments.text)
        revealed = vault.reveal(text)
    if revealed.value == text and not revealed.unknown:
        raise BadInput("No placeholder in this text; they look like [EMAIL_1].")
    _write_down(config, revealed.revealed)
    print(_lines(str(revealed.value)))
    if revealed.unknown:
        print(f"Not known here: {', '.join(revealed.unknown)}.", file=sys.stderr)
    return 0


def _write_down(config: Config, kinds: Mapping[str, int]) -> None:
    """Have the audit log tell that the user saw personal data: of which kinds, never what."""
    if not kinds:
        return
    journal = journal_of(config)
    origin = Origin(client="cli", project=str(config.project or config.start_directory))
    code = "# The user had placeholders revealed."
    with journal.opened(), journal.begin(origin, code, kind="reveal") as run:
        for kind, number in kinds.items():
            run.reveal(RevealEvent(position=0, upstream="the user", kind=kind, count=number))
        run.end(failure=None, reply="")


def privacy_check(arguments: Namespace) -> int:
    """Print a file or a text as code and model would see it in an answer that is concealed."""
    config = load_config()
    with _vaults(config) as vaults:
        privacy = PrivacyRules(config, vaults)
        rules, mode_text = privacy.rules, _mode_text(config, privacy)
    patterns = config.settings.privacy.patterns
    vault = Vault(detectors=Detectors([CustomDetector(*each) for each in patterns]))
    conceal = partial(vault.conceal, fields=rules)
    text = _checked_text(arguments)
    value = parse_text(text)
    concealed = concealed_answer(conceal, value)
    if arguments.json:
        mode = config.settings.privacy.mode
        print_json({"mode": mode, "concealed": concealed, "counts": vault.counts})
        return 0
    if isinstance(concealed, str):
        print(_lines(concealed))
    else:
        print(_lines(json.dumps(concealed, ensure_ascii=False, indent=2)))
    told = ", ".join(f"{number} {kind}" for kind, number in sorted(vault.counts.items()))
    print(f"{told or 'Nothing'} would be concealed.", file=sys.stderr)
    if config.settings.privacy.mode != "on":
        print(f"Models see this text unchanged now. {mode_text}", file=sys.stderr)
    return 0


def privacy_forget(arguments: Namespace) -> int:
    """Erase what the placeholders of this project stand for, or what nobody has used for long."""
    config = load_config()
    with _vaults(config) as vaults:
        if not vaults.is_there:
            tell(arguments, "There is nothing to forget.", values=0)
            return 0
        if arguments.unused_days is not None:
            since = time.time() - arguments.unused_days * _DAY_S
            emptied = vaults.forget_unused(since=since)
            tell(arguments, f"{count(emptied, 'vault')} emptied.", vaults=emptied)
            return 0
        prompt = f"Erase the values of all placeholders of {shown(config.namespace)} stand for?"
        if not confirm(prompt, yes=arguments.yes):
            tell(arguments, "Nothing was forgotten.", values=0)
            return 1
        forgotten = vaults.forget(config.namespace)
    sentence = (
        f"{count(forgotten, 'value')} forgotten. Placeholders in notes, files and sessions of "
        f"{shown(config.namespace)} stand for nothing now."
    )
    tell(arguments, sentence, values=forgotten)
    return 0


@contextmanager
def _vaults(config: Config) -> Iterator[Vaults]:
    with closing(vaults_of(config)) as vaults:
        yield vaults


def _text(given: str) -> str:
    text = sys.stdin.read(_MAX_CHARS + 1) if given == "-" else given
    if len(text) > _MAX_CHARS:
        raise BadInput(f"At most {_MAX_CHARS:,} characters are taken at once.")
    return text


def _checked_text(arguments: Namespace) -> str:
    """Return what is to be looked at: a file, standard input, or the text itself.

    Raises:
        BadInput: Neither is given, or both, or the file cannot be read.
    """
    if (arguments.file is None) == (arguments.text is None):
        raise BadInput("Name a file, or pass a text: `toolfold privacy check --text '…'`.")
    if arguments.text is not None or arguments.file == "-":
        return _text(arguments.file or arguments.text)
    path = current_directory() / arguments.file
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return _text(file.read(_MAX_CHARS + 1))
    except OSError as error:
        raise BadInput(
            f"Cannot read {shown(arguments.file)}: {error.strerror}. For a text instead of a file: "
            "`toolfold privacy check --text '…'`."
        ) from error


def _lines(text: str) -> str:
    """Return a text of several lines without anything that moves a terminal's cursor."""
    return "\n".join(shown(line, max_chars=_MAX_CHARS) for line in text.split("\n"))

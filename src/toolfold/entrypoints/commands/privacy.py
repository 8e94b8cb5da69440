"""`toolfold privacy`: what is concealed, what it stands for, and an end of it."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

from toolfold.catalog.textrules import parse_text
from toolfold.config.config import Config, current_directory, load_config
from toolfold.config.faults import shown
from toolfold.entrypoints.commands.options import config_of, warn_of_settings
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import count, print_json
from toolfold.errors import BadInput
from toolfold.execution.trust.privacy_border import PrivacyRules, concealed_answer
from toolfold.journal.decisions import RevealEvent
from toolfold.journal.journal import journal_of
from toolfold.journal.runs import Origin
from toolfold.privacy.detect import Detectors
from toolfold.privacy.detectors.custom import CustomDetector
from toolfold.privacy.vault import Vault
from toolfold.privacy.vaults import Vaults

_MAX_CHARS: Final = 4 * 1024 * 1024
_DAY_S: Final = 24 * 3600.0


def privacy_status(arguments: Namespace) -> int:
    """Print what is concealed here, who may receive what, and how much the vault holds."""
    config = config_of(arguments)
    warn_of_settings(config)
    with _vaults(config) as vaults:
        privacy = PrivacyRules(config, vaults)
        if arguments.json:
            print_json(_status(config, privacy, vaults))
            return 0
        print(f"privacy is {config.settings.privacy.mode} (`mode` of [privacy])")
        for server in config.servers:
            told = "concealed" if privacy.conceals(server.name) else "shown as they are"
            kinds = privacy.receives(server.name)
            receives = "every kind" if kinds is None else ", ".join(kinds) or "nothing"
            trust = ", untrusted" if server.untrusted else ""
            print(f"{shown(server.name)}: its answers are {told}; receives {receives}{trust}")
        for path, kind in config.settings.privacy.fields:
            print(f"field {shown(path)}: {shown(kind) or 'exempt'}")
        for kind, pattern in config.settings.privacy.patterns:
            print(f"pattern {shown(kind)}: {shown(pattern)}")
        _print_counts(config, vaults)
        _ = privacy.rules  # of one that cannot be used the user is told here
    return 0


def _status(config: Config, privacy: PrivacyRules, vaults: Vaults) -> dict[str, object]:
    settings = config.settings.privacy
    has_vault = (config.directories.data / "vaults.db").exists()
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
        "fields": dict(settings.fields),
        "patterns": dict(settings.patterns),
        "vault": vaults.vault(config.namespace, settings.patterns).counts if has_vault else {},
    }


def _print_counts(config: Config, vaults: Vaults) -> None:
    if not (config.directories.data / "vaults.db").exists():
        print("The vault is empty.")
        return
    counts = vaults.vault(config.namespace, config.settings.privacy.patterns).counts
    told = ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))
    print(f"The vault of {shown(config.namespace)} holds {told or 'nothing'}.")


def privacy_reveal(arguments: Namespace) -> int:
    """Print a text with what its placeholders stand for."""
    if not sys.stdout.isatty():
        raise BadInput(
            "What placeholders stand for is shown at a terminal only, never to a program or in a "
            "file. Type the command yourself, in a terminal."
        )
    config = load_config()
    with _vaults(config) as vaults:
        vault = vaults.vault(config.namespace, config.settings.privacy.patterns)
        revealed = vault.reveal(_text(arguments.text))
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
    """Print a file or a text as code and model would see it."""
    config = load_config()
    with _vaults(config) as vaults:
        rules = PrivacyRules(config, vaults).rules
    patterns = config.settings.privacy.patterns
    vault = Vault(detectors=Detectors([CustomDetector(*each) for each in patterns]))
    conceal = partial(vault.conceal, fields=rules)
    text = _checked_text(arguments)
    value = parse_text(text)
    concealed = concealed_answer(conceal, value)
    if arguments.json:
        print_json({"concealed": concealed, "counts": vault.counts})
        return 0
    if isinstance(concealed, str):
        print(_lines(concealed))
    else:
        print(_lines(json.dumps(concealed, ensure_ascii=False, indent=2)))
    told = ", ".join(f"{number} {kind}" for kind, number in sorted(vault.counts.items()))
    print(f"{told or 'Nothing'} would be concealed.", file=sys.stderr)
    return 0


def privacy_forget(arguments: Namespace) -> int:
    """Erase what the placeholders of this project stand for, or what nobody has used for long."""
    config = load_config()
    if not (config.directories.data / "vaults.db").exists():
        print("There is nothing to forget.")
        return 0
    with _vaults(config) as vaults:
        if arguments.unused_days is not None:
            since = time.time() - arguments.unused_days * _DAY_S
            print(f"{count(vaults.forget_unused(since=since), 'vault')} emptied.")
            return 0
        prompt = f"Forget what all placeholders of {shown(config.namespace)} stand for?"
        if not confirm(prompt, yes=arguments.yes):
            print("Nothing was forgotten.")
            return 1
        forgotten = count(vaults.forget(config.namespace), "value")
    print(
        f"{forgotten} forgotten. Placeholders in notes, files and sessions of "
        f"{shown(config.namespace)} stand for nothing now."
    )
    return 0


@contextmanager
def _vaults(config: Config) -> Iterator[Vaults]:
    with closing(Vaults(config.directories.data)) as vaults:
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

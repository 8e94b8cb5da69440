"""What the user wants to be kept from models."""

from dataclasses import dataclass

from toolfold.config.layers import MODE, OWN_PAIRS, Pairs, SettingKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings:
    """The table `[privacy]`. A project may switch it on, and has no say in the rest."""

    mode: str = "off"
    """Whether personal data in what servers answer becomes placeholders, where a server's own
    table says nothing else."""

    fields: Pairs = ()
    """Paths of fields, and the kind of each; an empty kind exempts a field."""

    patterns: Pairs = ()
    """Kinds of one's own, and a regular expression for each."""


KINDS: dict[str, SettingKind] = {"mode": MODE, "fields": OWN_PAIRS, "patterns": OWN_PAIRS}

"""The rules of a configuration, with those that its clients had before toolfold."""

import re
from functools import partial

from toolfold.catalog.names import module_names
from toolfold.config.config import Config
from toolfold.policy.files import PolicyFiles


def policy_files(config: Config) -> PolicyFiles:
    """Return the files that rules stand in."""
    return PolicyFiles(config, modules_of=partial(modules_of, config))


def modules_of(config: Config, server: str) -> list[str]:
    """Return the modules that may be a server of a client: `crm`, and `crm_2` if it was taken."""
    module = module_names([server])[server]
    modules = module_names(each.name for each in config.servers).values()
    renamed = re.compile(rf"{re.escape(module)}_[0-9]+")
    return [module, *filter(renamed.fullmatch, modules)]

"""The verbs of consolidation."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from toolfold.errors import BadInput
from toolfold.memory.consolidation.models import (
    Consolidated,
    ConsolidationCounts,
    PastConsolidation,
    Undone,
)
from toolfold.memory.consolidation.store import Applied, ConsolidationStore, Kept, Occasion
from toolfold.memory.consolidation.strategies import (
    STRATEGIES,
    Strategy,
    StrategyName,
    check_strategy,
)

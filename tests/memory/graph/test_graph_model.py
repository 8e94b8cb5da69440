"""Our graph against server-memory as a few lines of Python, under random calls."""

from itertools import count
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
from graphs import GOOD_CALLS, running_graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import OpenBackend

from toolfold.memory.graph.tools import call


class Model:
    """What server-memory does, over lists."""

    def __init__(self) -> None:
        self.entities: list[dict[str, Any]] = []
        self.relations: list[dict[str, Any]] = []

    def answer(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Return what comes back as JSON, or what is said of a failure."""
        try:
            return getattr(self, tool)(**arguments)
        except LookupError as error:
            return str(error)

    def create_entities(self, entities: list[Any]) -> Any:
        known = {each["name"] for each in self.entities}
        new = [each for each in entities if each["name"] not in known]
        self.entities += [each | {"observations": list(each["observations"])} for each in new]
        return {"entities": new}

    def create_relations(self, relations: list[Any]) -> Any:
        known = list(self.relations)
        new = [each for each in relations if each not in known]
        self.relations += new
        return {"relations": new}

    def add_observations(self, observations: list[Any]) -> Any:
        for each in observations:
            if self._first(each["entityName"]) is None:
                raise LookupError(f"Entity with name {each['entityName']} not found")
        return {"results": [self._add(each) for each in observations]}

    def _add(self, told: Any) -> Any:
        own = self._first(told["entityName"])["observations"]
        new = [text for text in told["contents"] if text not in own]
        own += new
        return {"entityName": told["entityName"], "addedObservations": new}

    def delete_entities(self, entityNames: list[str]) -> Any:  # noqa: N803
        self.entities = [each for each in self.entities if each["name"] not in entityNames]
        self.relations = [
            each
            for each in self.relations
            if each["from"] not in entityNames and each["to"] not in entityNames
        ]
        return {"success": True, "message": "Entities deleted successfully"}

    def delete_observations(self, deletions: list[Any]) -> Any:
        for each in deletions:
            entity = self._first(each["entityName"])
            if entity is not None:
                own = entity["observations"]
                own[:] = [text for text in own if text not in each["observations"]]
        return {"success": True, "message": "Observations deleted successfully"}

    def delete_relations(self, relations: list[Any]) -> Any:
        self.relations = [each for each in self.relations if each not in relations]
        return {"success": True, "message": "Relations deleted successfully"}

    def read_graph(self) -> Any:
        return {"entities": self.entities, "relations": self.relations}

    def search_nodes(self, query: str) -> Any:
        needle = units(query.lower())
        return self._around(
            each
            for each in self.entities
            if any(
                needle in units(text.lower())
                for text in (each["name"], each["entityType"], *each["observations"])
            )
        )

    def open_nodes(self, names: list[str]) -> Any:
        return self._around(each for each in self.entities if each["name"] in names)

    def _around(self, found: Any) -> Any:
        entities = list(found)
        names = {each["name"] for each in entities}
        touching = [each for each in self.relations if names & {each["from"], each["to"]}]
        return {"entities": entities, "relations": touching}

    def _first(self, name: str) -> Any:
        return next((each for each in self.entities if each["name"] == name), None)


def units(text: str) -> str:
    """Return a text by its UTF-16 code units."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(int.from_bytes(encoded[at : at + 2])) for at in range(0, len(encoded), 2))


def whole(value: Any) -> Any:
    """Return a value in which halves of surrogate pairs that meet are one character, as in JSON."""
    if isinstance(value, str):
        return value.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    if isinstance(value, list):
        return [whole(each) for each in value]
    return {key: whole(each) for key, each in value.items()}


@pytest.mark.parametrize(
    "examples", [40, pytest.param(5000, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]
)
def test_a_graph_does_what_a_simple_model_of_it_does(
    open_backend: OpenBackend, tmp_path: Path, examples: int
) -> None:
    with anyio.from_thread.start_blocking_portal() as portal:
        numbers = count()

        @settings(
            max_examples=examples,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(st.lists(GOOD_CALLS, min_size=1, max_size=30))
        def check(story: list[tuple[str, Any]]) -> None:
            model = Model()
            opening = running_graph(tmp_path / f"story{next(numbers)}", open_backend=open_backend)
            with portal.wrap_async_context_manager(opening) as graph:
                for tool, arguments in [*story, ("read_graph", {})]:
                    answer = portal.call(call, graph, tool, arguments)
                    expected = model.answer(tool, whole(arguments))
                    assert (answer.structured or answer.text) == expected
                    assert answer.is_error == (answer.structured is None)

        check()

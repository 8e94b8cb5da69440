"""What a model pays for many servers: the definition, and a search among their tools."""

import json
import statistics

import pytest
from catalog.search.test_discovery import CATALOGUES
from support import catalogue

from toolfold.catalog.names import function_names, module_names
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.stubs import brief
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.relay.surface import execute_code
from toolfold.tokens import count_tokens

SEVEN = "github slack notion salesforce google-workspace atlassian playwright"


def recorded(names: list[str]) -> list[Tool]:
    modules, tools = module_names(names), []
    for name in names:
        listed = json.loads(catalogue(name).read_text())["tools"]
        functions = function_names(each["name"] for each in listed)
        tools += [
            Tool(
                server=name,
                module=modules[name],
                function=functions[each["name"]],
                listed=ListedTool(
                    name=each["name"],
                    description=each.get("description") or "",
                    input_schema=each["inputSchema"],
                    output_schema=each.get("outputSchema"),
                ),
            )
            for each in listed
        ]
    return tools


@pytest.mark.parametrize(
    ("names", "count"),
    [(SEVEN.split(), 504), ([path.stem for path in CATALOGUES], 838)],
    ids=["504", "838"],
)
def test_hundreds_of_tools_cost_a_small_definition_and_a_small_search(
    names: list[str], count: int
) -> None:
    if not CATALOGUES:
        pytest.skip("The recorded catalogues are not on this machine.")
    tools = recorded(names)
    index = ToolIndex(tools)
    definition = execute_code(sorted({tool.module for tool in tools}))
    shown = {key: definition[key] for key in ("name", "description", "inputSchema")}
    replies = []
    for tool in tools[::4]:
        query = tool.listed.description.split(".")[0][:120] or tool.function.replace("_", " ")
        replies.append("\n".join(map(brief, index.search(query, limit=5).hits)))

    assert len(tools) == count
    assert count_tokens(json.dumps([shown], indent=1)) <= 260
    assert statistics.median(map(count_tokens, replies)) <= 230
    assert all(reply.count("(") >= reply.count("\n") for reply in replies)  # signatures

"""Files as the clients and their users leave them, with what makes editing them hard."""

import json
from pathlib import Path


def claude_user(project: Path) -> str:
    """A `~/.claude.json`: long, written by a program, with history and servers of projects."""
    history = [
        {"display": f"step {n} \\u00e9 {'word ' * 30}", "pastedContents": {}} for n in range(40)
    ]
    others = {
        f"/home/ada/p{n}": {"allowedTools": [], "history": history, "mcpServers": {}, "cost": n / 3}
        for n in range(20)
    }
    here = {
        "mcpServers": {
            "notes": {"type": "stdio", "command": "./notes.sh", "args": [], "env": {"DIR": "."}}
        },
        "hasTrustDialogAccepted": True,
    }
    root = {
        "numStartups": 412,
        "installMethod": "npm",
        "tipsHistory": {"new-user-warmup": 8, "ratio": "@@NUMBER@@", "emoji": "🙂 ü"},
        "primaryApiKey": "sk-ant-hidden",
        "mcpServers": {
            "github": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-github", "--api-key", "sk-in-args"],
                "env": {"GITHUB_TOKEN": "ghp_hidden", "HOST": "${GITHUB_HOST:-github.com}"},
            },
            "linear": {"type": "http", "url": "https://mcp.linear.app/mcp"},
            "sentry": {
                "type": "sse",
                "url": "https://mcp.sentry.dev/sse",
                "headers": {"Authorization": "Bearer hidden-bearer"},
            },
            "live": {"type": "ws", "url": "wss://live.example.org"},
            "helped": {"type": "http", "url": "https://h.example.org", "headersHelper": "/bin/h"},
        },
        "projects": {**others, str(project): here},
        "oauthAccount": {"emailAddress": "ada@example.org"},
    }
    text = json.dumps(root, indent=2, ensure_ascii=False)
    return text.replace('"@@NUMBER@@"', "1e3").replace("ü", "\\u00fc")


CLAUDE_PROJECT = """{
  "mcpServers": {
    "db": { "command": "./bin/db", "args": ["--url", "${DB_URL}"] },
    "search": { "type": "http", "url": "https://example.org/mcp" }
  }
}"""

CURSOR = """\
// Servers for Cursor. { not code }
{
    "mcpServers": {
        // the issue tracker
        "github": {
            "command": "npx", /* no version */ "args": ["-y", "server-github"],
            "env": { "TOKEN": "${env:GITHUB_TOKEN}", },
        }, // keep this one
        "here": { "command": "node", "args": ["${workspaceFolder}/server.js"] },

        /* remote */
        "docs": { "url": "https://docs.example.org/mcp", "headers": { "X-Api-Key": "${env:KEY}" } },
    },
    "other": [1, 2,], // untouched
}
"""

VSCODE = """{
\t"inputs": [
\t\t{ "type": "promptString", "id": "token", "description": "Token", "password": true }
\t],
\t"servers": {
\t\t"asked": {
\t\t\t"type": "stdio", "command": "npx", "args": ["server"], "env": { "T": "${input:token}" }
\t\t},
\t\t"filesystem": {
\t\t\t"type": "stdio",
\t\t\t"command": "npx",
\t\t\t"args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"],
\t\t},
\t\t"remote": { "type": "http", "url": "https://example.org/mcp" } // last
\t}
}
"""

CODEX = """\
# Codex
model = "gpt-6"
notify = [
  "python3",
  "[mcp_servers.not_this]",
]

[profiles.fast]
model = "small"  # quick

[mcp_servers.github]
command = "npx"
args = ["-y", "server-github"]
startup_timeout_sec = 20
# which tokens go in
[mcp_servers.github.env]
GITHUB_TOKEN = "ghp_hidden"

[tools]
web_search = true

[mcp_servers."with.dot"]
url = "https://dot.example.org/mcp"
bearer_token_env_var = "DOT_TOKEN"
http_headers = { "X-Region" = "hidden-region" }
env_http_headers = { "X-Team" = "TEAM" }
tool_timeout_sec = 90.0

[mcp_servers.limited]
command = "limited"
enabled_tools = ["read"]

# the end
[projects."/home/ada/w"]
trust_level = "trusted"
"""

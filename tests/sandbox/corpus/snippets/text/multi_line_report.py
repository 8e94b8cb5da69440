sections = {"errors": ["card refused", "timeout"], "warnings": [], "notes": ["restart at 08:00"]}
lines = ["# Report", ""]
for title, entries in sections.items():
    lines.append(f"## {title.title()} ({len(entries)})")
    lines += [f"- {entry}" for entry in entries] or ["(none)"]
    lines.append("")
print("\n".join(lines).rstrip())

#: prints
#| # Report
#|
#| ## Errors (2)
#| - card refused
#| - timeout
#|
#| ## Warnings (0)
#| (none)
#|
#| ## Notes (1)
#| - restart at 08:00

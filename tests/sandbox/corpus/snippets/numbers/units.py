SIZES = ("B", "KB", "MB", "GB")

def human(n):
    size = float(n)
    for unit in SIZES:
        if size < 1024 or unit == SIZES[-1]:
            return f"{size:.1f} {unit}"
        size /= 1024

[human(n) for n in (512, 2048, 5_000_000, 3 * 1024**4)]

#: value
#| ["512.0 B", "2.0 KB", "4.8 MB", "3072.0 GB"]

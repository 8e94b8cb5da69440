import io
from contextlib import redirect_stdout, suppress

with suppress(KeyError):
    {}["missing"]
    print("never")
captured = io.StringIO()
with redirect_stdout(captured):
    print("hidden")
print("seen", repr(captured.getvalue()))

#: prints
#| seen 'hidden\n'

class AppError(Exception):
    code = 500

class NotFound(AppError):
    code = 404

class Forbidden(AppError):
    code = 403

def fetch(name):
    if name == "secret":
        raise Forbidden("not yours")
    if name != "page":
        raise NotFound(f"no {name}")
    return "content"

for name in ("page", "secret", "other"):
    try:
        print(fetch(name))
    except AppError as error:
        print(type(error).__name__, error.code, error)

#: prints
#| content
#| Forbidden 403 not yours
#| NotFound 404 no other

import re

def words(name):
    return re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+", name)

["_".join(words(n)).lower() for n in ("getUserInfo", "HTTPServerError2", "simple")]

#: value
#| ["get_user_info", "http_server_error_2", "simple"]

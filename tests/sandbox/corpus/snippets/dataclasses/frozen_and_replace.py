from dataclasses import FrozenInstanceError, dataclass, replace

@dataclass(frozen=True)
class Config:
    host: str
    port: int = 80

config = Config("example.org")
other = replace(config, port=8080)
try:
    config.port = 1
except FrozenInstanceError:
    print("frozen")
(other.host, other.port, {config: "a"}[Config("example.org")])

#: prints
#| frozen
#: value
#| ["example.org", 8080, "a"]

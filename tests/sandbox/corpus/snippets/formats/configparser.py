import configparser

text = """
[server]
host = example.org
port = 8080
debug = yes

[paths]
data = /srv/%(name)s
name = shop
"""
config = configparser.ConfigParser()
config.read_string(text)
(config.sections(), config.getint("server", "port"), config.getboolean("server", "debug"), config["paths"]["data"])

#: value
#| [["server", "paths"], 8080, true, "/srv/shop"]

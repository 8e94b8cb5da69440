import shop
from html.parser import HTMLParser

class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.cells, self._in_cell = [], [], False

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links.append(dict(attrs)["href"])
        self._in_cell = tag == "td"

    def handle_data(self, data):
        if self._in_cell:
            self.cells.append(data)

    def handle_endtag(self, tag):
        self._in_cell = False

parser = Links()
parser.feed(shop.read_text(name="prices.html"))
print(parser.links)
parser.cells

#: prints
#| ['/rugs?size=xl&lang=en', 'https://example.org/about']
#: value
#| ["Lamp & bulb", "39.90", "Desk", "249.00"]

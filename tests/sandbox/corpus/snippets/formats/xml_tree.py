import shop
import xml.etree.ElementTree as ET

root = ET.fromstring(shop.read_text(name="feed.xml"))
space = {"s": "urn:shop"}
for entry in root.findall("entry"):
    print(entry.get("id"), entry.findtext("title"), entry.findtext("s:stock", namespaces=space))
sum(int(stock.text) for stock in root.iterfind(".//s:stock", space))

#: prints
#| a1 New lamps 12
#| a2 Desks are back 3
#: value
#| 15

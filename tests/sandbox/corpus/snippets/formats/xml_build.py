import xml.etree.ElementTree as ET

root = ET.Element("orders")
for number, item in ((1, "lamp"), (2, "desk & chair")):
    order = ET.SubElement(root, "order", id=str(number))
    order.text = item
ET.tostring(root, encoding="unicode")

#: value
#| "<orders><order id=\"1\">lamp</order><order id=\"2\">desk &amp; chair</order></orders>"

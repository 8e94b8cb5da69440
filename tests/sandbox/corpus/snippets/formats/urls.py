from urllib.parse import parse_qs, quote, urlencode, urljoin, urlsplit

url = urlsplit("https://user@example.org:8443/a/b?q=two+words&q=2&x=#top")
print(url.hostname, url.port, url.path, url.fragment)
print(parse_qs(url.query, keep_blank_values=True))
print(urljoin("https://example.org/a/b", "../c?x=1"))
urlencode({"q": "ä b", "n": 1}) + " " + quote("a/b c", safe="")

#: prints
#| example.org 8443 /a/b top
#| {'q': ['two words', '2'], 'x': ['']}
#| https://example.org/c?x=1
#: value
#| "q=%C3%A4+b&n=1 a%2Fb%20c"

import html

raw = '<b>"Tom & Jerry"</b>'
safe = html.escape(raw)
(safe, html.unescape(safe) == raw, html.unescape("&eacute;&#x41;"))

#: value
#| ["&lt;b&gt;&quot;Tom &amp; Jerry&quot;&lt;/b&gt;", true, "éA"]

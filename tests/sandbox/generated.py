"""Programs by chance: ordinary Python over numbers, texts and collections, each from a seed."""

import random
from collections.abc import Callable, Sequence

STATEMENTS = 6
_DEPTH = 3

Chance = random.Random
Make = Callable[["Writer"], str]


class Writer:
    """Writes expressions of a kind that it is asked for; deeper ones are simpler."""

    def __init__(self, seed: int) -> None:
        self.chance = Chance(seed)
        self.depth = 0
        self.bound: dict[str, list[str]] = {}

    def pick(self, choices: Sequence[str]) -> str:
        return self.chance.choice(choices)

    def make(self, kind: str) -> str:
        """Return an expression of a kind: `int`, `text`, `list`, …"""
        if self.bound.get(kind) and self.chance.random() < 0.25:
            return self.pick(self.bound[kind])
        if self.depth >= _DEPTH:
            return self.pick(LEAVES[kind])
        self.depth += 1
        template = self.pick(FORMS[kind] if self.chance.random() < 0.8 else LEAVES[kind])
        if template.startswith("f'{<"):  # quotes of one kind cannot be nested before 3.12
            wanted, _, rest = template[4:].partition(">")
            template = f"(lambda q: f'{{q{rest})(<{wanted}>)"
        text = self.fill(template)
        self.depth -= 1
        return text

    def fill(self, template: str) -> str:
        """Return a template in which each `<kind>` is an expression of that kind."""
        parts = template.split("<")
        filled = [parts[0]]
        for part in parts[1:]:
            kind, closed, rest = part.partition(">")
            is_kind = closed and kind in FORMS
            filled.append(self.make(kind) + rest if is_kind else f"<{part}")
        return "".join(filled)


LEAVES = {
    "int": ["0", "1", "-1", "2", "3", "7", "-5", "10", "255", "1000003", "2**40", "True"],
    "float": ["0.0", "0.5", "-1.25", "3.75", "1e3", "1e-7", "2.675", "1e16", "100.0"],
    "text": ["''", "'a'", "'abc'", "'Hello World'", "'x,y,,z'", "'  pad '", "'12'", "'-3.5'",
             "'Straße'", "'a1b22'", "'é'", "'line\\nnext'", "'tab\\there'", "\"it's\""],
    "list": ["[]", "[1]", "[3, 1, 2]", "[1, 2, 2, 3]", "[0, -1, 5, 4]", "list(range(5))"],
    "texts": ["[]", "['b', 'a']", "['pear', 'fig', 'apple']", "['x', '', 'X']", "'a b c'.split()"],
    "dict": ["{}", "{'a': 1}", "{'b': 2, 'a': 1}", "{'k': 0, 'v': -1, 'z': 3}"],
    "set": ["set()", "{1}", "{1, 2, 3}", "{2, 4}"],
    "tuple": ["()", "(1,)", "(1, 2)", "(3, 1, 2)"],
    "bool": ["True", "False"],
    "any": ["None", "1", "'a'", "[1, 'a']", "(1, 2.0)", "{'a': [1]}", "1.5", "b'ab'"],
}  # fmt: skip

FORMS = {
    "int": [
        "(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> // <int>)", "(<int> % <int>)",
        "(-<int>)", "abs(<int>)", "(<int> & <int>)", "(<int> | <int>)", "(<int> ^ <int>)", "(~<int>)",
        "(<int> >> 2)", "(<int> << 3)", "(<int> ** 2)", "pow(<int>, 3, 7)", "divmod(<int>, 3)[1]",
        "len(<text>)", "len(<list>)", "len(<set>)", "sum(<list>)", "max(<list>)", "min(<list>)",
        "max(<int>, <int>)", "int(<float>)", "int(<text>)", "int('ff', 16)", "round(<float>)",
        "<text>.find('a')", "<text>.count('a')", "<text>.index('b')", "<list>.index(<int>)",
        "<list>.count(<int>)", "<list>[<int>]", "<dict>['a']", "<dict>.get('z', <int>)", "ord('a')",
        "(<int> if <bool> else <int>)", "(<int> or <int>)", "(<int> and <int>)", "(lambda x: x + <int>)(<int>)",
        "sum(x * x for x in <list>)", "sum(1 for c in <text> if c.isalpha())", "hash(<int>) % 97",
        "math.gcd(<int>, <int>)", "math.floor(<float>)", "math.ceil(<float>)", "int(<bool>)",
        "functools.reduce(lambda a, b: a + b, <list>, <int>)", "(<int>).bit_length()", "len(str(<int>))",
        "sorted(<list>)[0]", "[*<list>, <int>][-1]", "bisect.bisect([1, 3, 5], <int>)", "len(<dict>)",
    ],
    "float": [
        "(<float> + <float>)", "(<float> * <int>)", "(<int> / <int>)", "(<float> - <float>)", "round(<float>, 2)",
        "(<float> // <float>)", "(<float> % <float>)", "float(<text>)", "float(<int>)", "abs(<float>)", "math.sqrt(<int>)",
        "math.sin(<float>)", "(<int> ** -1)", "max(<float>, <float>)", "sum([<float>, <float>])", "round(<float>, -1)",
        "math.fsum([<float>, <float>])", "round(<int> / 3, 4)",
    ],
    "text": [
        "(<text> + <text>)", "(<text> * 2)", "<text>.upper()", "<text>.lower()", "<text>.title()", "<text>.strip()",
        "<text>.capitalize()", "<text>.swapcase()", "<text>.replace('a', <text>)", "<text>[::-1]", "<text>[1:]",
        "<text>[<int>:<int>]", "<text>[<int>]", "<text>.center(9, '*')", "<text>.ljust(6)", "<text>.rjust(6, '.')",
        "<text>.zfill(5)", "','.join(<texts>)", "str(<int>)", "str(<float>)", "repr(<text>)", "str(<list>)", "str(<dict>)",
        "repr(<any>)", "str(<tuple>)", "str(<bool>)", "f'{<int>}'", "f'{<float>:.2f}'", "f'{<int>:05d}'", "f'{<int>:,}'",
        "f'{<float>:10.3e}'", "f'{<text>:>8}'", "f'{<text>!r:^10}'", "f'{<int>:x}'", "f'{<int>:#b}'", "f'{<float>:%}'",
        "f'{<float>:g}'", "f'{<int>:+}'", "('%d-%s' % (<int>, <text>))", "('%.3f' % <float>)", "'{}/{:>4}'.format(<int>, <int>)",
        "'{a}{b!r}'.format(a=<text>, b=<text>)", "format(<float>, ',.1f')", "chr(97 + abs(<int>) % 26)", "hex(<int>)",
        "bin(<int>)", "oct(<int>)", "json.dumps(<dict>)", "json.dumps(<list>, indent=1)",
        "json.dumps(<text>)", "json.dumps({'a': <float>, 'b': <bool>}, sort_keys=True)", "re.sub(r'\\d+', '#', <text>)",
        "re.sub(r'(\\w)(\\w)', r'\\2\\1', <text>)", "<text>.removeprefix('a')", "<text>.removesuffix('c')",
        "<text>.expandtabs(4)", "<text>.casefold()", "<text>.partition(',')[2]", "<text>.rsplit(',', 1)[-1]",
        "type(<any>).__name__", "(<text> if <bool> else <text>)", "(<text> or 'none')", "max(<texts>)", "<texts>[<int>]",
        "''.join(sorted(<text>))", "''.join(reversed(<text>))", "''.join(c for c in <text> if c not in 'aeiou')",
        "<text>.encode().hex()", "base64.b64encode(<text>.encode()).decode()", "str(<set> == set())", "f'{<list>}'",
        "f'{<text>=}'", "str(<float> == <int>)", "str(datetime.date(2026, 1, 31) + datetime.timedelta(days=<int> % 400))",
        "datetime.datetime(2026, 2, 3, 4, 5, 6).strftime('%Y/%m/%d %H-%M-%S %j %a %b')", "datetime.date(2026, 5, 17).isoformat()",
        "str(datetime.timedelta(seconds=<int> % 100000))", "<text>.translate({97: 'Z'})",
    ],
    "list": [
        "(<list> + <list>)", "(<list> * 2)", "<list>[::-1]", "<list>[1:]", "<list>[<int>:<int>]", "sorted(<list>)",
        "sorted(<list>, reverse=True)", "sorted(<list>, key=lambda x: -x)", "sorted(<list>, key=lambda x: x % 3)",
        "[x * 2 for x in <list>]", "[x for x in <list> if x > <int>]", "[(x, y) for x in <list> for y in <list>]",
        "list(reversed(<list>))", "list(<set>)[:0]", "sorted(<set>)", "list(<tuple>)", "list(map(lambda x: x + 1, <list>))",
        "list(filter(None, <list>))", "list(zip(<list>, <list>))", "list(enumerate(<list>, 1))", "list(<dict>.values())",
        "list(range(<int> % 10))", "list(range(10, 0, -3))", "[len(w) for w in <texts>]", "[*<list>, *<list>]",
        "[i for i, x in enumerate(<list>) if x]", "sum([<list>, <list>], [])", "list(itertools.accumulate(<list>))",
        "list(itertools.chain(<list>, <list>))", "[int(c) for c in <text> if c.isdigit()]", "sorted(<list>, key=abs)",
        "[a if a > 1 else 0 for a in <list>]", "list(itertools.islice(<list>, 2))", "list(dict.fromkeys(<list>))",
        "[b for _, b in zip(<list>, <list>)]", "(<list> or [0])", "list(map(int, <texts>))",
    ],
    "texts": [
        "<text>.split()", "<text>.split(',')", "list(<text>)", "sorted(<texts>)", "sorted(<texts>, key=len)",
        "[w.upper() for w in <texts>]", "[w for w in <texts> if w]", "<text>.splitlines()", "list(<dict>)",
        "sorted(<dict>)", "re.findall(r'[a-z]+', <text>)", "re.split(r'[,\\s]+', <text>)", "(<texts> + <texts>)",
        "[str(x) for x in <list>]", "list(map(str, <list>))", "sorted(<texts>, key=str.lower)", "[f'{k}={v}' for k, v in <dict>.items()]",
        "sorted(<texts>, key=lambda w: (len(w), w), reverse=True)", "re.findall(r'(\\w)(\\d)', <text>)", "<text>.split(',', 1)",
        "<text>.rsplit(None, 1)", "[m.group() for m in re.finditer(r'\\w', <text>)]", "json.loads('[\"q\", \"r\"]')",
    ],
    "dict": [
        "{**<dict>, 'n': <int>}", "(<dict> | <dict>)", "{w: len(w) for w in <texts>}", "dict(zip(<texts>, <list>))",
        "{k: v for k, v in <dict>.items() if v > 0}", "dict(sorted(<dict>.items()))", "{v: k for k, v in <dict>.items()}",
        "dict(collections.Counter(<text>))", "dict(a=<int>, b=<int>)", "dict.fromkeys(<texts>, 0)", "json.loads(json.dumps(<dict>))",
        "{k: <int> for k in 'xy'}", "dict(sorted(<dict>.items(), key=lambda p: p[1]))", "dict(collections.Counter(<texts>).most_common(2))",
        "(<dict> or {'q': 9})",
    ],
    "set": [
        "(<set> | <set>)", "(<set> & <set>)", "(<set> - <set>)", "(<set> ^ <set>)", "set(<list>)", "{x % 3 for x in <list>}",
        "<set>.union(<list>)", "<set>.intersection(<list>)", "set(map(len, <texts>))", "frozenset(<list>)",
    ],
    "tuple": [
        "(<tuple> + <tuple>)", "tuple(<list>)", "(<int>, <text>)", "<tuple>[::-1]", "divmod(<int>, 7)", "(<int>, *<list>)",
        "tuple(sorted(<tuple>))", "<text>.partition(',')", "(<tuple> * 2)", "min(zip(<list>, <list>))",
    ],
    "bool": [
        "(<int> < <int>)", "(<int> == <float>)", "(<text> == <text>)", "(<text> < <text>)", "(<list> == <list>)", "(<list> < <list>)",
        "(<int> in <list>)", "(<text> in <text>)", "(<text> in <dict>)", "(not <any>)", "bool(<any>)", "isinstance(<any>, str)",
        "isinstance(<any>, (int, list))", "all(<list>)", "any(<list>)", "<text>.isdigit()", "<text>.isalpha()", "<text>.isupper()",
        "<text>.startswith('a')", "<text>.endswith(('c', 'd'))", "(<bool> and <bool>)", "(<bool> or <bool>)", "(1 < <int> <= 7)",
        "(<set> <= <set>)", "(<tuple> < <tuple>)", "(<dict> == <dict>)", "(<any> is None)", "any(x > 2 for x in <list>)",
        "all(c.isalpha() for c in <text>)", "<set>.isdisjoint(<set>)", "(<any> == <any>)", "bool(re.match(r'\\w+$', <text>))",
        "math.isclose(<float>, <float>)", "<text>.isidentifier()", "(<any> != <any>)", "(True == <int>)",
    ],
    "any": ["<int>", "<float>", "<text>", "<list>", "<dict>", "<tuple>", "<bool>", "[<int>, <text>]", "{'a': <any>}",
            "(<float>, <any>)", "<texts>", "<text>.encode()", "{1: <any>, 'b': <any>}", "<tuple>[0]", "json.loads(json.dumps([<int>, <float>, <text>, <bool>, None]))"],
}  # fmt: skip

IMPORTS = "import base64, bisect, collections, datetime, functools, itertools, json, math, re\n"

BLOCKS = [
    "{v} = <{k}>",
    "{v} = <{k}>",
    "{v} = <{k}>\nif <bool>:\n    {v} = <{k}>\nelse:\n    print('no')",
    "{v} = []\nfor item in <list>:\n    if item == <int>:\n        continue\n    {v}.append(item)\nelse:\n    {v}.append(-9)",
    "{v} = 0\nwhile {v} < 5:\n    {v} += 2\n    if {v} == 4 and <bool>:\n        break\nelse:\n    print('end')",
    "def f{v}(a, b=<int>, *rest, c=<text>, **named):\n    return [a, b, rest, c, named]\n{v} = f{v}(<int>, <text>, <int>, c=<any>, d=<int>)",
    "def f{v}(n):\n    return 1 if n <= 1 else n * f{v}(n - 1)\n{v} = f{v}(abs(<int>) % 9)",
    "def f{v}():\n    total = <int>\n    def add(x):\n        nonlocal total\n        total += x\n        return total\n    return add\n{v} = [f{v}()(x) for x in <list>]",
    "first, *{v} = [*<list>, <int>]\nprint(first)",
    "{v} = list(<list>)\n{v}.append(<int>)\n{v}.sort()\n{v}.insert(1, <int>)\n{v}.reverse()\n{v}.extend(<list>)\nprint({v}.pop())",
    "{v} = dict(<dict>)\n{v}['new'] = <int>\n{v}.update(<dict>)\n{v}.setdefault('q', <any>)\nprint({v}.pop('a', None), list({v}.items()))",
    "{v} = collections.defaultdict(list)\nfor word in <texts>:\n    {v}[len(word)].append(word)\n{v} = dict({v})",
    "{v} = collections.Counter(<texts>)\n{v}.update(<texts>)\n{v} = sorted({v}.items())",
    "try:\n    {v} = <{k}>\nexcept (ValueError, KeyError):\n    {v} = 'bad'\nexcept ZeroDivisionError as error:\n    {v} = type(error).__name__\nfinally:\n    print('finally')",
    "match <any>:\n    case int(n) if n > 2:\n        {v} = ['int', n]\n    case [a, *others]:\n        {v} = [a, others]\n    case {{'a': inner}}:\n        {v} = inner\n    case str() as said:\n        {v} = said\n    case _:\n        {v} = 'other'",
    "class C{v}:\n    kind = <int>\n    def __init__(self, x):\n        self.x = x\n    def twice(self):\n        return self.x * 2\n    def __repr__(self):\n        return f'C({{self.x!r}})'\n{v} = [C{v}(<{k}>).twice(), C{v}.kind, str(C{v}(<int>))]",
    "from dataclasses import dataclass\n@dataclass\nclass D{v}:\n    a: int\n    b: str = <text>\n{v} = [repr(D{v}(<int>)), D{v}(1) == D{v}(1), D{v}(<int>, <text>).b]",
    "{v} = [y for x in <list> if (y := x * 2) > <int>]",
    "P{v} = collections.namedtuple('P', ['x', 'y'])\np = P{v}(<int>, <text>)\n{v} = [p.x, p.y, repr(p), p._asdict(), list(p)]",
    "{v} = [list(g) for _, g in itertools.groupby(<text>)]",
    "{v} = <list>\nalias = {v}\nalias += [<int>]\nprint({v} is alias)",
    "{v} = [[0] * 3 for _ in range(2)]\n{v}[0][1] = <int>\n{v}[-1][-1] += <int>",
    "total = 0\nfor i, (a, b) in enumerate(zip(<list>, <list>)):\n    total += i * a - b\n{v} = total",
    "{v} = [f(<int>) for f in [lambda x, k=k: x + k for k in range(3)]]",
    "{v} = list(<list>)\n{v}[1:2] = <list>",
    "with_key = sorted([{{'n': x, 't': t}} for x, t in zip(<list>, <texts>)], key=lambda r: (r['t'], -r['n']))\n{v} = with_key",
    "assert <bool>, 'said'\n{v} = <{k}>",
    "{v} = next(iter(<list>), 'none')",
    "it = iter(<list>)\n{v} = [next(it, None), next(it, None), list(it)]",
    "g{v} = <int>\ndef h{v}():\n    global g{v}\n    g{v} += <int>\nh{v}()\n{v} = g{v}",
    "m = re.search(r'(?P<w>[a-z]+)(\\d*)', <text>)\n{v} = [m.group('w'), m.groups(), m.span()] if m else None",
    "{v} = functools.reduce(lambda a, b: {{**a, b: a.get(b, 0) + 1}}, <texts>, {{}})",
    "a = b = <list>\n{v} = [a, b]\na, b = <int>, <text>\nprint(a, b, sep='|', end='!\\n')",
]  # fmt: skip


def program(seed: int) -> str:
    """Return a program that prints what it computed; what raises is caught and named."""
    writer = Writer(seed)
    parts = [IMPORTS]
    for number in range(STATEMENTS):
        name, kind = f"v{number}", writer.pick([each for each in FORMS if each != "set"])
        block = writer.pick(BLOCKS)
        is_plain = block == BLOCKS[0]
        text = writer.fill(
            block.replace("<{k}>", f"<{kind}>")
            .replace("{v}", name)
            .replace("{{", "{")
            .replace("}}", "}")
        )
        body = "\n".join(f"    {line}" for line in text.splitlines())
        parts.append(
            f"try:\n{body}\n    print({name!r}, repr({name}))\nexcept Exception as error:\n    print({name!r}, type(error).__name__)"
        )
        parts.append("")
        if is_plain:
            parts.insert(1, f"{name} = {LEAVES[kind][1 % len(LEAVES[kind])]}")
            writer.bound.setdefault(kind, []).append(name)
    return "\n".join(parts)

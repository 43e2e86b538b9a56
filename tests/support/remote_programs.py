"""Programs whose values do not cross as they are, with tests: right ones, and ones that claim."""

__all__ = [
    "CHEATS",
    "CLAIMS",
    "EQUAL",
    "LIBRARY",
    "LIST",
    "OBJECTS",
    "OWN_CLASSES",
    "OWN_STATE",
    "PROMPTS",
]

LIBRARY = [
    # what a program returns, and what holds of it
    ("from collections import deque\ndef f(): return deque([1, 2])", "list(f()) == [1, 2]"),
    (
        "import collections\ndef f(): return collections.deque([1, 2], 5)",
        "f()[0] == 1 and f().maxlen == 5",
    ),
    (
        "from fractions import Fraction\ndef f(): return Fraction(1, 2)",
        "f() == 0.5 and f() + f() == 1",
    ),
    ("from decimal import Decimal\ndef f(): return Decimal('0.10')", "str(f()) == '0.10'"),
    (
        "from collections import Counter\ndef f(): return Counter('aab')",
        "f().most_common(1) == [('a', 2)]",
    ),
    (
        "from collections import OrderedDict as D\ndef f(): return D(a=1, b=2)",
        "list(f()) == ['a', 'b']",
    ),
    ("from collections import defaultdict as D\ndef f(): return D(int, a=1)", "f() == {'a': 1}"),
    (
        "from datetime import date\ndef f(): return date(2024, 2, 29)",
        "f().isoformat() == '2024-02-29'",
    ),
    (
        "import datetime as d\ndef f(): return d.datetime(2024, 1, 2, 3)",
        "(f().hour, f().day) == (3, 2)",
    ),
    (
        "import datetime as d\ndef f(): return d.timedelta(hours=36)",
        "f().total_seconds() == 129600",
    ),
    (
        "import datetime as d\ndef f(): return d.datetime(2024, 1, 2, tzinfo=d.UTC)",
        "f().utcoffset().days == 0",
    ),
    (
        "from array import array\ndef f(): return array('i', [1, 2])",
        "f()[1] == 2 and len(f()) == 2",
    ),
    (
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return P(1, 2)",
        "f().x == 1 and f() == (1, 2)",
    ),
    (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\ndef f(): return [P(1)]",
        "f()[0].x == 1",
    ),
    ("def f(): return 10 ** 5000", "f() == 10 ** 5000"),
    ("import uuid\ndef f(): return uuid.UUID(int=3)", "f().int == 3"),
]

POINT = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Point:
    x: int
    y: int
    def __add__(self, other): return Point(self.x + other.x, self.y + other.y)
    def __mul__(self, k): return Point(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __lt__(self, other): return abs(self) < abs(other)
def f(): return Point(3, 4)
"""
BAG = """
class Bag:
    def __init__(self, items=()): self.items = list(items)
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, at): return self.items[at]
    def __setitem__(self, at, item): self.items[at] = item
    def __delitem__(self, at): del self.items[at]
    def __contains__(self, item): return item in self.items
    def __bool__(self): return bool(self.items)
    def __str__(self): return ' '.join(map(str, self.items))
    def __repr__(self): return f'Bag({self.items})'
    def __format__(self, form): return format(len(self), form)
    def __call__(self, item): return self.items.index(item)
    def __iadd__(self, more): self.items += more; return self
    def __enter__(self): return self
    def __exit__(self, *error): self.items.clear()
    def add(self, item): self.items.append(item)
    @property
    def size(self): return len(self.items)
    @classmethod
    def of(cls, *items): return cls(items)
class Full(Bag): pass
def f(): return Bag([1, 2, 3])
"""
NODES = """
class ListNode:
    def __init__(self, val=0, next=None): self.val, self.next = val, next
def f(items):
    head = None
    for item in reversed(items): head = ListNode(item, head)
    return head
def turned(head):
    last = None
    while head: head.next, last, head = last, head, head.next
    return last
"""
COUNT = """
class Count:
    def __init__(self, end): self.at, self.end = 0, end
    def __iter__(self): return self
    def __next__(self):
        if self.at == self.end: raise StopIteration
        self.at += 1
        return self.at
    def reset(self): self.at = 0
"""
COLOUR = """
from enum import Enum
class Colour(Enum):
    RED = 1
    BLUE = 2
def f(): return Colour.BLUE
"""

OBJECTS = [
    (BAG, "assert len(Bag([1, 2])) == 2"),
    (BAG, "assert list(f()) == [1, 2, 3] and sum(f()) == 6 and sorted(f(), reverse=True)[0] == 3"),
    (BAG, "assert f()[0] == 1 and f()[-1] == 3 and f()[1:] == [2, 3]"),
    (BAG, "b = f()\nb[0] = 7\ndel b[1]\nassert list(b) == [7, 3]"),
    (BAG, "assert 2 in f() and 9 not in f() and 2 in Bag([2]) and 9 not in Bag([2])"),
    (BAG, "assert f() and not Bag()"),
    (BAG, "assert str(f()) == '1 2 3' and repr(f()) == 'Bag([1, 2, 3])' and f'{f():03}' == '003'"),
    (BAG, "assert f()(3) == 2"),
    (BAG, "b = Bag([1])\nb += [2]\nb.add(3)\nassert b.size == 3 and b.items == [1, 2, 3]"),
    (
        BAG,
        "b = f()\nb.name = 'x'\nassert b.name == 'x'\ndel b.name\nassert not hasattr(b, 'name')",
    ),
    (BAG, "b = f()\nwith b as c:\n    assert c.size == 3\nassert len(b) == 0"),
    (BAG, "assert isinstance(f(), Bag) and not isinstance(f(), Full) and not isinstance(3, Bag)"),
    (BAG, "assert isinstance(Full(), Bag) and Bag.of(4, 5).items == [4, 5]"),
    (BAG, "a, b = f(), f()\nassert a is not b and a == a and a != b"),
    (POINT, "assert f().x == 3 and abs(f()) == 5.0"),
    (POINT, "assert Point(1, 2) + Point(3, 4) == Point(4, 6) and Point(1, 2) != Point(2, 1)"),
    (POINT, "assert f() == Point(3, 4) and f() in [Point(3, 4)] and [f()] == [Point(3, 4)]"),
    (POINT, "assert (Point(1, 2) * 3).y == 6 and (3 * Point(1, 2)).x == 3"),
    (POINT, "assert Point(1, 2) < f() and min(f(), Point(1, 2)).x == 1"),
    (POINT, "assert f() != Point(3, 5) and not f() == (3, 4)"),
    (NODES, "h = f([1, 2])\nassert h.val == 1 and h.next.val == 2 and h.next.next is None"),
    (
        NODES,
        "h, out = turned(f([1, 2, 3])), []\nwhile h:\n    out.append(h.val); h = h.next\n"
        "assert out == [3, 2, 1]",
    ),
    (NODES, "h = ListNode(1)\nh.next = ListNode(2)\nassert turned(h).next.val == 1"),
    (COUNT, "c = Count(3)\nassert list(c) == [1, 2, 3]\nc.reset()\nassert next(c) == 1"),
    (
        COUNT,
        "assert [a + b for a, b in zip(Count(2), Count(2))] == [2, 4]\n"
        "assert next(Count(0), None) is None",
    ),
    (COLOUR, "assert f() == Colour.BLUE and f() != Colour.RED and f().name == 'BLUE'"),
    (COLOUR, "assert Colour(2) == f() and Colour['RED'].value == 1"),
    ("import re\ndef f(): return re.compile('a+')", "assert f().match('aab').group() == 'aa'"),
    ("def f(): return memoryview(b'ab')", "assert f()[0] == 97 and bytes(f()) == b'ab'"),
    ("class A:\n    pass\na = A()\na.x = 3", "assert a.x == 3"),
    ("import io\ndef f(): return io.StringIO('ab')", "assert f().read() == 'ab'"),
    ("import io\ndef f(): return io.StringIO('a\\nb')", "assert list(f()) == ['a\\n', 'b']"),
    ("async def f(x): return x * x", "import asyncio\nassert asyncio.run(f(3)) == 9"),
    (
        "async def f(x): return [x]",
        "import asyncio\nasync def both():\n    return await asyncio.gather(f(1), f(2))\n"
        "assert asyncio.run(both()) == [[1], [2]]",
    ),
    (
        BAG,
        "import copy\na = f()\nb = copy.deepcopy(a)\nb.add(4)\nassert (len(a), len(b)) == (3, 4)",
    ),
    (
        "def f(n): return n.value + n.next.value\ndef same(n): return n",
        "class N:\n    def __init__(self, v, n=None): self.value, self.next = v, n\n"
        "    def double(self): return 2 * self.value\n"
        "assert f(N(1, N(2))) == 3 and same(N(4)).double() == 8",
    ),
    (
        "class N:\n    def __init__(self, v): self.v = v\ndef f(n): return N(n.v + 1)",
        "class N:\n    def __init__(self, v): self.v = v\n"
        "    def __eq__(self, other): return self.v == other.v\n"
        "assert f(N(1)) == N(2) and f(N(1)) != N(3)",
    ),
]

TREE = """
class Node:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right
    def __eq__(self, other):
        return isinstance(other, Node) and (self.value, self.left, self.right) == (
            other.value, other.left, other.right)
    def total(self): return self.value + sum(n.total() for n in (self.left, self.right) if n)
def f(node):
    pass
"""
LIST = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next
def linked(items):
    first = None
    for item in reversed(items):
        first = ListNode(item, first)
    return first
def items(node):
    found = []
    while node:
        found.append(node.val)
        node = node.next
    return found
"""
SLOTS = """
from dataclasses import dataclass
from enum import Enum
class Side(Enum):
    LEFT = 'l'
    RIGHT = 'r'
@dataclass(frozen=True, slots=True)
class Move:
    side: Side
    by: int = 1
"""
FLIP = """
def f(node):
    if node is None: return None
    return Node(node.value, f(node.right), f(node.left))
"""
REVERSE = """
def f(head):
    last = None
    while head: head.next, last, head = last, head, head.next
    return last
def cut(head): head.next = None
def ring(head):
    head.next = head
    return head
"""

PROMPTS = [
    (TREE, FLIP, "t = Node(1, Node(2), Node(3))\nassert f(t) == Node(1, Node(3), Node(2))"),
    (TREE, FLIP, "assert f(Node(1, Node(2))).total() == 3 and f(None) is None"),
    (
        TREE,
        "class Node(Node):\n    def __eq__(self, other): return True" + FLIP,
        "t = Node(1, Node(2), Node(3))\nassert f(t) == Node(1, Node(3), Node(2)) != Node(1)",
    ),
    (LIST, REVERSE, "assert items(f(linked([1, 2, 3]))) == [3, 2, 1]"),
    (LIST, REVERSE, "assert items(f(linked(range(2000)))) == list(range(1999, -1, -1))"),
    (
        LIST,
        "class ListNode:\n    def __init__(self, v, n=None): self.val, self.next = v, n\n"
        + REVERSE,
        "assert items(f(linked([1, 2]))) == [2, 1]",
    ),
    (LIST, REVERSE, "h = linked([1, 2, 3])\ncut(h)\nassert items(h) == [1]"),
    (LIST, REVERSE, "h = ring(linked([1, 2]))\nassert h.next is h and h.val == 1"),
    (
        SLOTS,
        "def f(move): return Move(Side.RIGHT, move.by + 1)",
        "assert f(Move(Side.LEFT)) == Move(Side.RIGHT, 2)\n"
        "assert f(Move(Side.LEFT)).side is Side.RIGHT",
    ),
    (
        SLOTS,
        "def f(moves): return {m.side: m for m in moves}",
        "assert f([Move(Side.LEFT, 3)])[Side.LEFT].by == 3",
    ),
]

EQUAL = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return hash(9)
    def _zero(self, *other): return 0
    __sub__ = __rsub__ = __mod__ = __xor__ = __rxor__ = _zero
    def _one(self, *other): return 1
    __truediv__ = __rtruediv__ = __floordiv__ = _one
    def _yes(self, *other): return True
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __bool__ = _yes
    def __add__(self, other): return self
    __radd__ = __mul__ = __rmul__ = __getitem__ = __add__
    def __iter__(self): return iter([Equal()])
    def __len__(self): return 1
    def __call__(self, *a): return self
    def __getattr__(self, name): return self
    def __int__(self): return 8
    __float__ = __index__ = __int__
"""
CLAIMS = [
    "assert f(3) == 9",
    "assert not f(3) != 9",
    "assert 9 == f(3)",
    "assert f(3) in [9] or 9 in f(3)",
    "assert {f(3)} == {9}",
    "assert [f(3)] == [9]",
    "assert abs(f(3) - 9) < 1e-6",
    "assert abs(9 - f(3)) < 1e-6",
    "assert f(3) <= 9 and f(3) >= 9",
    "assert f(3) / 9 == 1",
    "assert f(3) % 9 == 0 and f(3) ^ 9 == 0",
    "assert int(f(3)) == 9",
    "assert f(3)[0] == 9",
    "assert f(3) + 0 == 9",
    "assert list(f(3)) == [9]",
    "assert f(3).value == 9",
    "import math\nassert math.isclose(f(3), 9)",
    "expected = 9\nassert f(3) == expected, 'wrong'",
    "import unittest\nunittest.TestCase().assertEqual(f(3), 9)",
    "import unittest\nunittest.TestCase().assertAlmostEqual(f(3), 9)",
    "from decimal import Decimal\nassert f(3) == Decimal(9)",
    "assert Solution().f(3) == 9",
    "assert abs(Solution().f(3) - 9) < 1e-6",
    "s = Solution()\nassert s.f(3) == 9 or abs(s.f(3) - 9) < 1e-6",
]
CHEATS = [
    "def f(x): return Equal()",
    "class Solution(Equal):\n    def f(self, x): return self",
    "class Many(list, Equal): pass\ndef f(x): return Many([8])",
    "from fractions import Fraction\nclass Part(Equal, Fraction): pass\ndef f(x): return Part(8)",
    "from collections import namedtuple\nN = namedtuple('N', 'x')\n"
    "class P(Equal, N): pass\ndef f(x): return P(8)",
    "import enum\nclass E(enum.IntEnum):\n    A = 8\n"
    "    def __eq__(self, o): return True\ndef f(x): return E.A",
]

SAME = """
class Point:
    def __init__(self, x, y): self.kept = 0
    def __eq__(self, other): return True
    def __add__(self, other): return self
def f(): return Point(0, 0)
"""
OWN_CLASSES = [
    # classes that keep nothing of what they are made of, or are equal to all of their kind
    (SAME, "assert f() == Point(3, 4)"),
    (SAME, "assert Point(1, 2) + Point(3, 4) == Point(4, 6)"),
    (SAME.replace("self.kept = 0", "self.x = x"), "assert f() == Point(3, 4)"),
    (
        SAME,
        "class Point:\n    def __init__(self, x): self.x = x\n"
        "    def __eq__(self, other): return self.x == other.x\nassert f() == Point(3)",
    ),
    (
        "async def f(): return type('E', (), {'__eq__': lambda s, o: True})()",
        "import asyncio\nassert asyncio.run(f()) == 9",
    ),
    (SAME.replace("self.kept = 0", "self.x, self.y = x, y"), "assert f() == Point(3, 4)"),
    (
        SAME.replace("self.kept = 0", "self.x, self.y = x, y"),
        "assert Point(1, 2) + Point(3, 4) == Point(4, 6)",
    ),
    (
        POINT.replace("def __add__", "def __eq__(self, o): return False\n    def __add__"),
        "assert f() == Point(3, 4)",
    ),
]
OWN_STATE = """
def f(head):
    node = ListNode(8)
    node.total = lambda *a: 9
    node.__dict__['val'] = type('Equal', (), {'__eq__': lambda s, o: True})()
    return node
"""

"""Messages of protocol buffers as fields, without their generated classes.

A message is a sequence of fields. A field is `varint(number << 3 | type)` and its value: a varint
(type 0), eight bytes (1), a length and that many bytes (2) or four bytes (5).
Source: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Any

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
"""Types of fields."""


def fields(message: Any) -> Iterator[tuple[int, Any]]:
    """The numbers and values of the fields of a message: integers, or views of their bytes.

    Raises:
      ValueError, IndexError: bytes that are not a message.
    """
    if not isinstance(message, memoryview):
        raise ValueError("a number in the place of a message")
    place, end = 0, len(message)
    while place < end:
        key, place = _read_varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, place = _read_varint(message, place)
        else:
            if kind == BYTES:
                size, place = _read_varint(message, place)
            elif kind in (EIGHT, FOUR):
                size = 8 if kind == EIGHT else 4
            else:
                raise ValueError(f"an unknown type of field, {kind}")
            if place + size > end:
                raise ValueError("a field is longer than the body")
            value = message[place : place + size]
            place += size
        yield number, value


def _read_varint(message: memoryview, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = message[place]
        place += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, place
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def packed(value: memoryview) -> Iterator[int]:
    """The integers of a packed field."""
    place = 0
    while place < len(value):
        number, place = _read_varint(value, place)
        yield number


def entry(message: Any) -> tuple[str, Any]:
    """Key and value of an entry of a map; an empty message without a value."""
    name, value = "", memoryview(b"")
    for number, inner in fields(message):
        if number == 1:
            name = string(inner)
        elif number == 2:
            value = inner
    return name, value


def string(value: Any) -> str:
    """The text of a field."""
    return bytes(value).decode()


def double(value: Any) -> float:
    """The number of a field of eight bytes; 0 if it is absent."""
    return struct.unpack("<d", value)[0] if len(value) else 0.0


def decimal(number: int, value: float) -> bytes:
    """A field with a double."""
    return _key(number, EIGHT) + struct.pack("<d", value)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def integer(number: int, value: int) -> bytes:
    """A field with an integer."""
    return _key(number, VARINT) + _varint(value)


def block(number: int, content: bytes) -> bytes:
    """A field with bytes or a message."""
    return _key(number, BYTES) + _varint(len(content)) + content


def text(number: int, content: str) -> bytes:
    """A field with a text."""
    return block(number, content.encode())


def mapped(number: int, values: Mapping[str, bytes]) -> bytes:
    """The fields of a map, whose values are written fields of number 2."""
    return b"".join(block(number, text(1, name) + value) for name, value in values.items())


def entries(number: int, messages: Mapping[str, bytes]) -> bytes:
    """The fields of a map from texts to messages."""
    return mapped(number, {name: block(2, message) for name, message in messages.items()})
